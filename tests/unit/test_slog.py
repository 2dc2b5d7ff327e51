"""The structured log as lines."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lukasa.curated.slog import LogQuery, compose, read, select
from lukasa.model.errors import InvalidInput

AT = datetime(2026, 11, 16, 9, tzinfo=UTC)


def line(detail: str, *, action: str = "fix", tool: str = "worker", hours: int = 0) -> bytes:
    return compose(AT + timedelta(hours=hours), action, tool, detail, "").encode() + b"\n"


@given(st.text(), st.text())
def test_a_line_gives_its_entry_back(detail: str, reason: str) -> None:
    """K2: one line whatever the text, and nothing of it is lost."""
    try:
        made = compose(AT, "fix", "worker", detail, reason)
    except InvalidInput:
        return
    assert "\n" not in made
    entry = read(1, made.encode() + b"\n")
    assert entry is not None
    assert (entry.timestamp, entry.detail, entry.reason) == (AT, detail, reason)


@pytest.mark.parametrize(
    "call",
    [("Fix it", "worker", "x", ""), ("fix", "the worker", "x", ""), ("fix", "worker", " ", ""), ("fix", "", "x", "")],
)
def test_an_entry_is_a_verb_a_noun_and_a_detail(call: tuple[str, str, str, str]) -> None:
    """K2"""
    with pytest.raises(InvalidInput) as refused:
        compose(AT, *call)
    assert refused.value.fix


def test_conditions_hold_together() -> None:
    """K2: by action, tool, time and text, newest first."""
    lines = [line("Alpha"), line("beta", tool="gateway", hours=1), line("alphabet", action="deploy", hours=2)]
    found = {
        "all": LogQuery(),
        "action": LogQuery(action="deploy"),
        "tool": LogQuery(tool="gateway"),
        "time": LogQuery(since=AT + timedelta(hours=1), until=AT + timedelta(hours=2)),
        "grep": LogQuery(grep="ALPHA"),
        "before": LogQuery(before=2),
    }
    numbers = {name: [e.number for e in select(lines, query).entries] for name, query in found.items()}
    assert numbers == {"all": [3, 2, 1], "action": [3], "tool": [2], "time": [2], "grep": [3, 1], "before": [1]}


def test_a_page_says_whether_there_is_more() -> None:
    """K2: the next page begins where this one ended."""
    lines = [line(f"no {n}") for n in range(5)]
    first = select(lines, LogQuery(limit=2))
    last = select(lines, LogQuery(limit=3, before=first.entries[-1].number))
    assert ([e.number for e in first.entries], first.more) == ([5, 4], True)
    assert ([e.number for e in last.entries], last.more) == ([3, 2, 1], False)


@pytest.mark.parametrize("torn", [line("whole")[:30], line("whole")[:-1], b"{}\n", b"[1]\n", b"\xff\xfe\n"])
def test_a_torn_line_is_passed_over_and_told(torn: bytes) -> None:
    """K2: what was cut off is no entry, and the lines around it are."""
    page = select([line("one"), torn], LogQuery())
    assert ([e.detail for e in page.entries], page.skipped) == (["one"], (2,))
