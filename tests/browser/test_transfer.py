"""Taking memory out and bringing it in on the page: a download, a dry run of a file, and its acceptance."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

from playwright.sync_api import expect

from lukasa import Lukasa
from tests.browser.house import House, Visit


def test_memory_is_downloaded(house: House, visit: Visit, tmp_path: Path) -> None:
    """H4, U5: one press gives a file with everything of the workspace, as the command writes it."""
    house.main.put("workspace", "The lighthouse blinks twice")
    visit.go("transfer")
    visit.says("Keep it where only you can read it")
    with visit.page.expect_download() as downloading:
        visit.page.get_by_role("link", name="Download workspace main").click()
    path = tmp_path / "out.jsonl.gz"
    downloading.value.save_as(path)
    assert downloading.value.suggested_filename == "lukasa-workspace.jsonl.gz"
    records = [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]
    assert "The lighthouse blinks twice" in [one["content"] for one in records if one["record"] == "entries"]


def test_a_file_is_shown_and_then_accepted(house: House, visit: Visit, tmp_path: Path, shots: Path) -> None:
    """H4, U5: choose a file, see what is new and what differs, accept; what is here is not overwritten."""
    id = house.main.put("workspace", "The ferry leaves at noon").id
    house.memory.export(tmp_path / "out.jsonl", workspace="main")
    with Lukasa.open(tmp_path / "elsewhere", embedder="none") as other:
        other.import_file(tmp_path / "out.jsonl")
        world = other.existing("main")
        world.update(id, content="The ferry leaves at one")
        world.put("workspace", "A second ferry was bought")
        other.export(tmp_path / "back.jsonl.gz", workspace="main")
    house.main.update(id, content="The ferry leaves at two")
    visit.go("transfer")
    visit.page.get_by_label("File of an export").set_input_files(tmp_path / "back.jsonl.gz")
    visit.press("Show what would change")
    visit.says("Nothing has changed yet")
    row = visit.page.locator("tr", has_text="entries").first
    expect(row.locator("td").nth(1)).to_have_text("1")
    expect(row.locator("td").nth(2)).to_have_text("1")
    visit.says("here it says: The ferry leaves at two")
    visit.page.screenshot(path=shots / "transfer-plan.png", full_page=True)
    assert all(entry.content != "A second ferry was bought" for entry in house.main.entries("workspace"))
    visit.press("Import exactly this")
    visit.says("Imported.")
    texts = {entry.content for entry in house.main.entries("workspace")}
    assert {"The ferry leaves at one", "The ferry leaves at two", "A second ferry was bought"} <= texts


def test_a_file_can_be_dropped(house: House, visit: Visit) -> None:
    """H4, U5: what is no export is refused in words, also when it is dropped on the page."""
    visit.go("transfer")
    dropped = visit.page.evaluate_handle(
        "() => { const d = new DataTransfer(); d.items.add(new File(['hello'], 'notes.txt')); return d; }"
    )
    visit.page.locator(".drop").first.dispatch_event("drop", {"dataTransfer": dropped})
    visit.complaints.clear()
    visit.press("Show what would change")
    expect(visit.page.get_by_role("alert")).to_contain_text("is not an export of Lukasa")
    visit.complaints.clear()  # the browser's console tells of the refusal
