"""The pictures of the page in the README and the docs: there, small, and still of the page's shape."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import expect

from lukasa import Lukasa
from tests.browser.house import House, Visit
from tools import demo, pictures

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("name", list(pictures.PICTURES))
def test_a_picture_is_there_and_small(name: str) -> None:
    """U1: of the size of its window, not above 150 kB, and shown by the README or a page."""
    taken = (pictures.FOLDER / name).read_bytes()
    assert pictures.shape(taken) == pictures.PICTURES[name][2]
    assert len(taken) <= pictures.LARGEST
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    assert any(f"pictures/{name}" in page.read_text("utf-8") for page in pages), f"no page shows {name}"


def test_packing_changes_no_pixel() -> None:
    """U1: what is packed again is packed as before."""
    taken = (pictures.FOLDER / "home-light.png").read_bytes()
    assert pictures.smaller(taken) == taken


def test_the_memory_to_show_is_the_same_each_time(tmp_path: Path) -> None:
    """U1: two runs have the same texts, times and waiting decisions, so a picture changes only with the page."""
    seen = []
    for run in ("one", "two"):
        clock = demo.Clock()
        with Lukasa.open(tmp_path / run, embedder="none", clock=clock, principal="mia") as memory:
            home = demo.furnish(memory, clock).home()
            pairs = [(pair.earlier.content, pair.later.content) for pair in memory.workspace(demo.NAME).inbox().rivals]
            learned = [(one.entry.content, one.entry.created_at) for one in home.learned]
            seen.append((home.memories, home.sessions, home.used, home.people, learned, pairs))
    assert seen[0] == seen[1]
    assert ("The on-call engineer is Tomás", "The on-call engineer is Priya") in seen[0][5]


def test_the_page_has_the_parts_that_the_pictures_show(house: House, visit: Visit) -> None:
    """U1: the board, the sentence and the panels of the pictures are on the page of today."""
    home = house.memory.workspace("shown")
    home.put("workspace", "The heron is grey")
    visit.go("home", "shown")
    expect(visit.heading("What Lukasa knows about shown")).to_be_visible()
    expect(visit.page.locator(".board circle")).to_have_count(1)
    for title in ("This week", "Recently learned"):
        expect(visit.heading(title)).to_be_visible()
