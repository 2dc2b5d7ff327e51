"""The command line's own rendering: harmless text, stable data (U2, T56)."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lukasa.model.text import has_hidden_characters
from lukasa.model.values import Trust
from lukasa.surfaces.cli.data import plain
from lukasa.surfaces.cli.lines import ordinal
from lukasa.surfaces.cli.output import block, brief, encode, line, safe, table, write
from tests.helpers.making import make_entry

NASTY = "red \x1b[31m bell \x07 csi \x9b2J bidi \u202e tag \U000e0041 del \x7f"


@given(st.text())
def test_json_is_harmless_and_lossless(text: str) -> None:
    """U2, T56: no hidden character leaves as itself, and the document still says exactly what was stored."""
    encoded = encode({"content": text})
    assert not has_hidden_characters(encoded)
    assert json.loads(encoded) == {"content": text}


def test_lines_are_written_with_escapes_shown(capsys: pytest.CaptureFixture[str]) -> None:
    """T56: escape codes in memory are shown, not sent."""
    write([line(NASTY)])
    out = capsys.readouterr().out
    assert not has_hidden_characters(out)
    assert "\\x1b[31m" in out


def test_a_table_measures_what_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    """Columns line up even where a cell had to be escaped."""
    write(table(("a", "b"), [("\x1b", "x"), ("plain", "y")]))
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].index("x", 4) == lines[2].index("y") == 7


def test_a_table_without_rows_is_its_heads() -> None:
    assert [span.text for (span,) in table(("one", "two"), [])] == ["one  two"]


def test_a_block_keeps_every_line() -> None:
    """The text of a page comes out as it went in, but for its closing line break."""
    assert ["".join(s.text for s in spans) for spans in block("a\n\nb \n")] == ["a", "", "b "]


def test_brief_is_one_line_of_at_most_the_width() -> None:
    assert brief("a\n b\t c", 10) == "a b c"
    assert len(brief("word " * 100, 20)) == 20


@pytest.mark.parametrize(
    ("place", "said"), [(1, "1st"), (2, "2nd"), (3, "3rd"), (4, "4th"), (11, "11th"), (22, "22nd")]
)
def test_places_are_said_in_english(place: int, said: str) -> None:
    assert ordinal(place) == said


def test_an_entry_as_data_has_its_fields_and_what_follows_from_them() -> None:
    """U2: keys are the fields' names; times are ISO 8601; trust and authority are words."""
    data = plain(make_entry(at=datetime(2026, 1, 2, tzinfo=UTC), trust=Trust.AGENT))
    assert data["created_at"] == "2026-01-02T00:00:00+00:00"
    assert (data["trust"], data["authority"], data["tier"]) == ("agent", "inform", "workspace")
    assert data["scope"] == {"tier": "workspace", "workspace": "w1"}
    json.dumps(data)


def test_safe_leaves_ordinary_text_alone() -> None:
    assert safe("naïve 日本語\n\ttab") == "naïve 日本語\n\ttab"
