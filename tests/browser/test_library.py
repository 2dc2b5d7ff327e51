"""Looking things up on the page: add files, find passages, read on, and see what is followed."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.browser.house import House, Visit
from tests.helpers.documents import page, pdf

GUIDE = (
    "# Deploys\n\nTwo people deploy.\n\n## On Fridays\n\nNobody deploys on a Friday, because the crane stands still.\n"
)


@pytest.fixture
def shelf(tmp_path: Path) -> Path:
    folder = tmp_path / "shelf"
    folder.mkdir()
    (folder / "guide.md").write_text(GUIDE)
    (folder / "crane.pdf").write_bytes(pdf([["It lifts forty tonnes."], ["Oil the winch weekly."]], "Crane manual"))
    (folder / "evil.html").write_text(
        page("<h1>Gate</h1><p>&lt;img src=x onerror=alert(1)&gt; The lantern burns.</p>", "Gate")
    )
    return folder


def test_files_are_added_found_and_read(house: House, visit: Visit, shelf: Path, shots: Path) -> None:
    """K4, U5: an empty library says how to add; files are sent, found with their places, read as text and removed."""
    visit.go("library", "main")
    visit.says("No documents yet")
    visit.says("lukasa corpus add PATH")
    visit.page.screenshot(path=shots / "library-empty.png", full_page=True)
    bad = shelf / "not.pdf"
    bad.write_bytes(b"no pdf")
    visit.page.get_by_label("Files").set_input_files([*sorted(shelf.iterdir())])
    visit.says("guide.md: added, version 1")
    visit.says("its bytes are not one")
    visit.complaints.clear()  # the browser itself notes a 422
    bad.unlink()
    main = house.main
    written = main.put("workspace", "Fridays are free of deploys", links=[main.search_corpus("Friday")[0].link])
    visit.go("library", "main", q="how often is the winch oiled")
    hit = visit.page.locator("li.card", has_text="Oil the winch weekly.").first
    expect(hit).to_contain_text("p. 2")
    expect(hit).to_contain_text("origin upload")
    expect(hit).to_contain_text("reference")
    visit.page.screenshot(path=shots / "library-hits.png", full_page=True)
    visit.go("library", "main", q="lantern")
    visit.says("<img src=x onerror=alert(1)> The lantern burns.")
    visit.go("library", "main", q="who deploys on Friday")
    visit.page.get_by_role("link", name="Deploys").first.click()
    visit.says("with those around it")
    visit.says("Nobody deploys on a Friday")
    visit.says("Fridays are free of deploys")
    assert written.id in visit.page.content()
    visit.page.screenshot(path=shots / "library-document.png", full_page=True)
    visit.press("Remove")
    visit.page.get_by_role("dialog").get_by_role("button", name="Remove").click()
    expect(visit.page.get_by_role("heading", name="Library", exact=True)).to_be_visible()
    assert [head.id for head in main.documents()] == ["crane.pdf", "evil.html"]


def test_a_folder_is_added_and_followed(house: House, visit: Visit, shelf: Path, shots: Path) -> None:
    """K4, U5: a folder of the server's machine is added with what it is worth, and followed until it is stopped."""
    visit.go("library")
    visit.page.get_by_label("A file or folder on this machine").fill(str(shelf))
    visit.page.get_by_text("What they are", exact=True).click()
    visit.page.get_by_label("Standing").fill("binding")
    visit.press("Add")
    visit.says("3 added")
    assert house.main.about_document("shelf/guide.md").head.standing == "binding"
    visit.page.get_by_label("A folder on this machine", exact=True).fill(str(shelf))
    visit.press("Follow")
    card = visit.page.locator("li.card", has_text=str(shelf))
    expect(card).to_contain_text("looked at")
    visit.page.screenshot(path=shots / "library-followed.png", full_page=True)
    card.get_by_role("button", name="Stop").click()
    visit.says("Nothing is followed.")
    assert house.main.watches() == []
    visit.page.get_by_label("A folder on this machine", exact=True).fill("/nowhere")
    visit.press("Follow")
    visit.says("there is no file or folder")
    visit.complaints.clear()  # the browser itself notes a 404


def test_a_long_document_is_read_a_stretch_at_a_time(house: House, visit: Visit) -> None:
    """K4, U5: the page asks for more only when somebody reads on."""
    text = "\n\n".join(f"Paragraph {n} of the long report is about ship {n} and its ropes." for n in range(400))
    house.main.add_upload("long.txt", text.encode())
    visit.go("library/long.txt")
    visit.says("Paragraph 5 of")
    assert "Paragraph 390 of" not in visit.page.content()
    while visit.page.get_by_role("button", name="Read on").count():
        visit.page.get_by_role("button", name="Read on").click()
        expect(visit.page.locator(".loading")).to_have_count(0)
    visit.says("Paragraph 399 of")
