"""The recording in the README is what the program does today, and it is a picture that every reader can look at."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tools.recording import record
from tools.terminal_svg import COLUMNS, Run, Scene, drawn, rows_of, rows_told, styled

ROOT = Path(__file__).parents[2]
PICTURE = ROOT / "docs" / "pictures" / "session.svg"


@pytest.fixture(scope="module")
def picture() -> str:
    return PICTURE.read_text("utf-8")


def test_the_recording_shows_what_the_program_does(picture: str) -> None:
    """Docs: recorded anew, the session has the same text; otherwise `make recording` makes the picture again."""
    assert rows_of(picture) == rows_told(record())


def test_the_recording_shows_a_fact_that_reaches_the_next_session(picture: str) -> None:
    """Docs: what was said on Monday is in Tuesday's context, and the newer fact comes first later."""
    rows = rows_of(picture)
    starts = next(i for i, row in enumerate(rows) if row.startswith("$ lukasa hook session-start"))
    assert "> The booking queue lives in SQLite." in rows[starts:]
    reads = next(i for i, row in enumerate(rows) if row.startswith("$ lukasa read"))
    assert "1. The booking queue lives in Redis since last week." in rows[reads:]


def test_the_recording_needs_nothing_from_elsewhere(picture: str) -> None:
    """Docs: one small file without a script, a font or a request."""
    assert len(picture.encode()) < 60_000
    assert re.findall(r"https?://[^\s\"<]+", picture) == ["http://www.w3.org/2000/svg"]
    assert not re.search(r"<script|@import|@font-face|<image|<foreignObject|url\((?!#)", picture)


def test_the_recording_is_still_for_those_who_want_no_motion(picture: str) -> None:
    """Docs: with less motion there is no animation, and then no row is hidden."""
    assert re.search(r"@media \(prefers-reduced-motion:reduce\)\{\.t>g,\.c\{animation:none\}\}", picture)
    outside = re.sub(r"@keyframes \w+\{.*\}\}$", "", picture, flags=re.MULTILINE)
    assert re.findall(r"opacity:0[^.]", outside) == ["opacity:0;"]  # the covers of what is typed, and nothing else
    assert "visibility" not in outside


def test_every_animation_of_the_recording_is_there(picture: str) -> None:
    """Docs: each row and each cover has its keyframes, and ends within the picture's time."""
    assert set(re.findall(r"animation-name:(\w+)", picture)) == set(re.findall(r"@keyframes (\w+)", picture))
    assert all(float(share) <= 100 for share in re.findall(r"([\d.]+)%", picture))


def test_a_terminal_is_drawn_as_it_is() -> None:
    """Docs: colours become fills, long lines wrap, and markup in a text stays text."""
    row = styled("\x1b[1;32mok\x1b[0m <b> & \x1b[2mdim\x1b[0m")
    assert [run.text for run in row] == ["ok", " <b> & ", "dim"]
    assert "font-weight" in row[0].css
    assert row[1].css == ""
    made = drawn([Scene("$ true", (row, (Run("x" * (COLUMNS + 3)),)))])
    ElementTree.fromstring(made)
    assert rows_of(made) == ["$ true", "ok <b> & dim", "x" * COLUMNS, "xxx"]
