"""Decision records as text: read strictly, edited in place, checked against one another."""

from __future__ import annotations

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lukasa.curated.adr import Decision, compose, faults, file_name, parse, with_field
from lukasa.model.errors import InvalidDecision, InvalidInput

GOOD = "---\nstatus: accepted\ndate: 2026-11-16\n---\n\n# 0007 One writer\n\nBecause.\n"
NAME = "0007-one-writer.md"


def test_a_record_is_read() -> None:
    """K3: number, title, status, date, and lists in either spelling."""
    text = GOOD.replace("---\n\n#", "deciders: ada lovelace, grace\ntags: []\nsupersedes: [0003, 4]\n---\n\n#", 1)
    found = parse(NAME, text)
    assert (found.number, found.title, found.status, found.date) == (7, "One writer", "accepted", "2026-11-16")
    assert (found.deciders, found.tags, found.supersedes) == (("ada lovelace", "grace"), (), (3, 4))


@pytest.mark.parametrize(
    ("change", "to", "says"),
    [
        ("status: accepted", "status: accepted  # for now", "status cannot be read"),
        ("status: accepted", "status: done", "its status is 'done'"),
        ("status: accepted\n", "", "its status is 'not there'"),
        ("date: 2026-11-16", "date: 2026-02-30", "its date is"),
        ("date: 2026-11-16", "date: yesterday", "its date is"),
        ("date:", "dated:", "unknown key 'dated'"),
        ("date: 2026-11-16", "date: 2026-11-16\ndate: 2026-11-16", "date is there twice"),
        ("date: 2026-11-16", "date: 2026-11-16\nsupersedes: [seven]", "names no numbers"),
        ("---\n", "", "no front matter"),
        ("# 0007 One writer", "# 0008 One writer", "its title has the number 0008"),
        ("# 0007 One writer", "One writer", "no title"),
    ],
)
def test_what_is_no_record_is_refused(change: str, to: str, says: str) -> None:
    """K3: front matter is read strictly, and the error names the file and the fault."""
    with pytest.raises(InvalidDecision, match=says) as refused:
        parse(NAME, GOOD.replace(change, to))
    assert refused.value.message.startswith(NAME)
    assert refused.value.fix


def test_a_name_must_be_numbered() -> None:
    """K3"""
    with pytest.raises(InvalidDecision, match="not named like a decision"):
        parse("one-writer.md", GOOD)


@given(st.text())
def test_a_new_record_can_be_read(title: str) -> None:
    """K3: whatever the title, what is made is either refused or read back."""
    try:
        text = compose(12, title, "proposed", date(2026, 11, 16), {"deciders": ["ada"], "supersedes": ["0003"]})
    except InvalidInput:
        return
    found = parse(file_name(12, title), text)
    assert (found.number, found.title) == (12, " ".join(title.split()))
    assert (found.deciders, found.supersedes, found.tags) == (("ada",), (3,), ())


def test_setting_a_field_leaves_the_rest() -> None:
    """K3: one line changes or is added, and every other byte stays."""
    changed = with_field(NAME, GOOD, "status", ["superseded"])
    assert changed == GOOD.replace("accepted", "superseded")
    assert with_field(NAME, changed, "superseded-by", ["0009"]) == changed.replace(
        "date: 2026-11-16\n", "date: 2026-11-16\nsuperseded-by: [0009]\n"
    )


def record(
    number: int,
    status: str = "accepted",
    supersedes: tuple[int, ...] = (),
    superseded_by: tuple[int, ...] = (),
) -> Decision:
    file = f"{number:04d}-t.md"
    return Decision(number, "T", status, "2026-11-16", file, supersedes=supersedes, superseded_by=superseded_by)


def test_references_are_mutual() -> None:
    """K3: a record that supersedes another is named there, and a superseded one names its successor."""
    old, new = record(1, "superseded", superseded_by=(2,)), record(2, supersedes=(1,))
    assert list(faults([old, new])) == []
    told = [f.what for f in faults([record(1), new])]
    assert told == ["supersedes names 0001, which does not say so"]
    assert [f.what for f in faults([old])] == ["superseded-by names 0002, which is not here"]
    assert len(list(faults([record(1, "superseded")]))) == 1
    assert [f.what for f in faults([record(1, "superseded", superseded_by=(1,))])] == ["superseded-by names itself"]


def test_a_number_is_used_once() -> None:
    """K3"""
    twin = Decision(1, "U", "accepted", "2026-11-16", "0001-u.md")
    assert [f.what for f in faults([record(1), twin])] == ["0001-t.md has the number 0001 too"]
