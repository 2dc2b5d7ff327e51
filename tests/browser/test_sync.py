"""Sync on the page: the machines, how far each has read, and a round at the press of a button."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import expect

from lukasa import Lukasa
from lukasa.providers.sync import ciphers
from tests.browser.house import House, Visit

PASSPHRASE = "lantern orbit crumble violet seven"


def test_the_page_shows_the_machines_and_syncs(
    house: House, visit: Visit, tmp_path: Path, shots: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """M4, U5: who takes part, with fingerprints; a press takes what another machine told, and its entry is there."""
    monkeypatch.setattr(ciphers, "COST", 1 << 14)
    visit.go("sync")
    visit.says("This memory does not sync")
    house.memory.sync.init(str(tmp_path / "shared"), PASSPHRASE, name="desk")
    with Lukasa.open(tmp_path / "laptop", embedder="none") as laptop:
        laptop.sync.join(str(tmp_path / "shared"), PASSPHRASE, name="laptop")
        laptop.workspace("main").put("workspace", "The ferry leaves at noon")
        laptop.sync.run()
        shown = laptop.sync.status().fingerprint
    visit.go("home")
    visit.go("sync")
    visit.page.get_by_role("button", name="Sync now").click()
    visit.says("took 1 from laptop")
    visit.says("New machine: laptop")
    visit.says(shown)
    expect(visit.page.get_by_role("row", name="laptop")).to_contain_text("member")
    visit.page.screenshot(path=shots / "sync.png", full_page=True)
    assert [e.content for e in house.main.entries("workspace") if "ferry" in e.content] == ["The ferry leaves at noon"]
