"""What is written at length: pages, working notes, and the context of a prompt."""

from __future__ import annotations

from playwright.sync_api import expect

from tests.browser.house import House, Visit, visiting


def test_a_page_is_edited_with_a_preview_and_keeps_its_history(house: House, visit: Visit) -> None:
    """U5, M8: markdown beside how it looks, saved by version, every version with its difference."""
    visit.go("pages")
    visit.page.get_by_role("link", name="VOICE").click()
    text = visit.page.get_by_label("Markdown")
    text.fill("# Voice\n\nWrite **plainly**.\n\n- short\n")
    preview = visit.page.get_by_role("region", name="Preview")
    expect(preview.locator("strong")).to_have_text("plainly")
    expect(preview.locator("li")).to_have_text("short")
    before = house.main.get_named("VOICE").version
    visit.press("Save")
    expect(visit.page.get_by_text(f"Saved as version {before + 1}.")).to_be_visible()
    text.press("Control+s")
    visit.settled()
    visit.page.get_by_role("button", name=f"Show version {before + 1}").click()
    expect(visit.page.locator("ins").last).to_contain_text("plainly")
    assert "plainly" in house.main.get_named("VOICE").body


def test_a_page_changed_elsewhere_is_not_overwritten(house: House) -> None:
    """U5: both texts, and the person decides."""
    with visiting(house, calm=False) as visit:
        visit.go("pages/SOUL")
        visit.page.get_by_label("Markdown").fill("mine")
        house.main.edit_named("SOUL", "theirs")
        visit.press("Save")
        expect(visit.page.locator("del")).to_contain_text("theirs")
        assert house.main.get_named("SOUL").body == "theirs"
        visit.press("Save")
        expect(visit.page.get_by_text("Saved as version")).to_be_visible()
    assert house.main.get_named("SOUL").body == "mine"


def test_a_new_page_is_made(house: House, visit: Visit) -> None:
    """U5, M8: with a name and a tier of its own."""
    visit.go("pages")
    visit.press("New page")
    dialog = visit.page.get_by_role("dialog")
    dialog.get_by_label("Name").fill("STYLE")
    dialog.get_by_role("button", name="Create").click()
    expect(visit.heading("STYLE").first).to_be_visible()
    assert house.main.get_named("STYLE").tier == "workspace"


def test_a_conversation_shows_its_working_note(house: House, visit: Visit) -> None:
    """U5, M7: the scratchpad can be read, not changed."""
    talk = house.main.start()
    house.main.write_note(talk.id, "plan", {"step": 2, "todo": ["ask Ada"]})
    house.main.write_note(talk.id, "total", 42)
    house.main.at(conversation=talk.id).put("conversation", "The guest is in a hurry")
    visit.go("conversations")
    visit.page.get_by_role("link", name="In general").first.click()
    expect(visit.heading("Notes")).to_be_visible()
    for text in ("plan", "ask Ada", "total", "42", "The guest is in a hurry"):
        visit.says(text)
    expect(visit.main().locator("textarea, input")).to_have_count(0)
    visit.press("End")
    visit.page.get_by_role("dialog").get_by_role("button", name="End it").click()
    visit.says("idle")


def test_the_context_of_a_prompt_is_shown_with_its_cost_and_reasons(house: House, visit: Visit) -> None:
    """U5, R9: blocks, tokens, why each is there, and what did not fit; a preview counts nothing."""
    house.main.put("workspace", "The deploy command is make ship", importance=0.9)
    for n in range(30):
        house.main.put("workspace", f"Deploy note {n}: " + f"step number {n} needs care and patience " * 6)
    visit.go("context")
    visit.page.get_by_label("The prompt").fill("how do I deploy the ship command?")
    visit.page.get_by_label("Budget in tokens").fill("400")
    visit.press("Show the context")
    for text in ("tokens", "make ship", "here because of keyword", "did not fit", "budget"):
        visit.says(text)
    visit.page.get_by_text("The text exactly as an agent gets it").click()
    visit.says("# Memory of workspace")
    found = house.main.read("deploy ship", count=False)
    assert all(hit.access is None for hit in found)
