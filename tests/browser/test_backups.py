"""Backups, imports of other programs and whole workspaces on the page, in a real browser."""

from __future__ import annotations

from pathlib import Path

from playwright.sync_api import expect

from lukasa import Lukasa
from lukasa.app import Settings, restore_backup
from tests.browser.house import House, Visit
from tests.helpers.pasts import MADE


def test_a_backup_is_made_listed_checked_and_comes_back(
    house: House, visit: Visit, tmp_path: Path, shots: Path
) -> None:
    """H4, U5: make one, see it in the list, check it, and the command that is shown brings it back."""
    house.main.put("workspace", "The lighthouse was painted in May")
    folder = tmp_path / "my backups"
    visit.go("backups")
    visit.says("No folder chosen")
    visit.page.get_by_label("Folder of backups").fill(str(folder))
    visit.press("Back up now")
    visit.says("Backed up, and restored on trial.")
    visit.says("1 backup")
    visit.press("Check backups")
    visit.says("All backups are as they were written.")
    visit.page.screenshot(path=shots / "backups.png", full_page=True)
    visit.press("Show the command")
    visit.says(f"restore '{folder}' --at ")
    restore_backup(Settings.resolve(data=tmp_path / "new"), folder)
    visit.page.get_by_text("Which older backups stay").click()
    visit.page.get_by_label("Keep the newest", exact=True).fill("1")
    visit.press("Back up now")
    visit.says("1 older backup went")
    visit.complaints.clear()  # a folder without backups is a 404 of the first look


def test_a_folder_that_cannot_hold_backups_is_refused_in_words(house: House, visit: Visit) -> None:
    """H4: the data folder itself is refused, with what to do."""
    visit.go("backups")
    visit.page.get_by_label("Folder of backups").fill(str(house.memory.settings.data / "inside"))
    visit.press("Back up now")
    expect(visit.page.get_by_role("alert").first).to_contain_text("choose a folder elsewhere")
    visit.complaints.clear()


def test_a_past_of_another_program_comes_in(house: House, visit: Visit, tmp_path: Path, shots: Path) -> None:
    """B10, U5: a file is recognised, its counts and samples are shown, and nothing is written before it is accepted."""
    past = MADE["chatgpt"](tmp_path)
    before = len(house.main.entries("workspace", everything=True))
    visit.go("transfer")
    visit.page.get_by_label("File or zip of another program").set_input_files(past.path)
    visit.press("Show what is in it")
    visit.says("Nothing has changed yet.")
    visit.says(past.format)
    visit.page.screenshot(path=shots / "past-plan.png", full_page=True)
    assert len(house.main.entries("workspace", everything=True)) == before
    visit.press("Import it")
    visit.says("A second import of the same file changes nothing.")
    assert past.holds in [entry.content for entry in house.main.entries("workspace", everything=True)]
    visit.press("Show what is in it")
    visit.says("All of it is here already.")
    visit.page.get_by_label("File or zip of another program").set_input_files(
        {"name": "holiday.xyz", "mimeType": "text/plain", "buffer": b"nothing that anybody knows \x00\x01"}
    )
    visit.press("Show what is in it")
    expect(visit.page.get_by_role("alert")).to_contain_text("holiday.xyz")
    visit.complaints.clear()


def test_a_workspace_is_renamed_merged_and_removed(house: House, visit: Visit) -> None:
    """S1, U5: another name, all of it in a second workspace, and gone after its digest was typed."""
    with Lukasa.open(house.memory.settings.data, embedder="none") as other:  # nobody else may have it open at the end
        other.workspace("drafts").put("workspace", "The gull sleeps on the mast")
    visit.go("workspace", "drafts")
    visit.page.get_by_label("New name").fill("sketches")
    visit.press("Rename")
    visit.says("Rename sketches")
    visit.page.get_by_label("Take all of sketches into").select_option("main")
    visit.press("Show what would change")
    visit.press("Merge exactly this")
    visit.says("Merged into main.")
    assert "The gull sleeps on the mast" in [entry.content for entry in house.main.entries("workspace")]
    visit.press("Show what would be removed")
    button = visit.page.get_by_role("button", name="Remove sketches for good")
    expect(button).to_be_disabled()
    visit.page.get_by_label("Digest of the removal").fill(visit.page.locator("code.digest").inner_text())
    button.click()
    expect(visit.page.get_by_role("button", name="Workspace main")).to_be_visible()
    assert [info.name for info in house.memory.workspaces()] == ["main"]
