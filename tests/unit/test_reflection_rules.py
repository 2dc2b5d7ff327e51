"""Reflection as a pure function: by rules, and as a model's answer is read."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from lukasa.curated.reflection import LONGEST, briefing, by_rules, confidence, read_answer
from lukasa.model.entry import Category, GateVerdict
from lukasa.model.errors import InvalidInput
from lukasa.model.transcript import Quote
from lukasa.model.values import Gate, Kind, Trust
from lukasa.spec.taxonomy import load_taxonomy
from tests.helpers.making import make_entry

SURE = GateVerdict(Gate.ALLOW, 0.9, "")


def test_confidence_follows_gate_and_corroboration() -> None:
    """O3: as sure as the gate was; the more often it was stated, in more sessions, the surer."""
    once = replace(make_entry(importance=0.5), gate=SURE)
    seen = tuple(Quote(transcript, "m", 0, 1) for transcript in ("a", "b", "c"))
    assert confidence(once) == pytest.approx(0.9)
    assert confidence(once) < confidence(replace(once, merged_count=3)) == confidence(replace(once, evidence=seen))
    assert confidence(replace(once, importance=1.0, merged_count=10**6, gate=replace(SURE, confidence=1.0))) <= 1


def test_a_minor_note_is_never_promoted_by_its_gate() -> None:
    """O4: how sure the observer was says nothing about how much a note matters."""
    certain = replace(make_entry(importance=0.3), gate=replace(SURE, confidence=1.0))
    assert confidence(certain) == pytest.approx(0.8)


def test_a_note_that_nobody_said_is_not_surer_than_the_rules_need() -> None:
    """O4: an agent that repeats its own note does not get it on the page by rules."""
    note = replace(make_entry(trust=Trust.AGENT), gate=replace(SURE, confidence=1.0), merged_count=50)
    assert confidence(note) == pytest.approx(0.8)
    quoted = replace(note, evidence=(Quote("a", "m", 0, 1),))
    assert confidence(quoted) == 1.0


def test_the_surest_are_proposed_within_their_share() -> None:
    """O3: compressed to at most 80 percent of what was read, one line each, grouped by category."""
    entries = [
        replace(
            make_entry(f"Fact number {n} about the gateway", importance=n / 10),
            category=Category("operations" if n % 2 else "projects", 1.0, "v1"),
        )
        for n in range(10)
    ]
    found = by_rules(entries, "")
    length = sum(len(change.change) for change in found.changes)
    assert length <= LONGEST * sum(len(e.content) for e in entries)
    assert {change.sources[0] for change in found.changes} == {e.id for e in entries[2:]}
    assert (set(found.over), found.left) == ({e.id for e in entries[:2]}, ())
    assert [change.section for change in found.changes] == ["operations"] * 4 + ["projects"] * 4


def test_one_observation_is_enough() -> None:
    """O3: compression never leaves nothing."""
    assert len(by_rules([make_entry()], "").changes) == 1


def test_what_is_there_or_merely_happened_is_not_proposed() -> None:
    """O3: lines of the page are not proposed again, and episodes are no lines."""
    there, episode = make_entry("Deploys are gated"), make_entry("We met on Monday", kind=Kind.EPISODIC)
    found = by_rules([there, episode], "- (2026-11-01) deploys are gated.")
    assert (found.changes, found.left) == ((), (there.id, episode.id))


def test_a_model_is_told_the_page_the_observations_and_the_length() -> None:
    """O3: compression guidance is in characters, 60 to 80 percent of the input."""
    told = briefing([make_entry("x" * 100)], "- (2026-11-01) Deploys are gated")
    assert "Length: 60 to 80 characters." in told
    assert '"n": 1' in told
    assert "Deploys are gated" in told


def test_an_answer_is_read() -> None:
    """O3: section, change, confidence and sources."""
    data = {"proposals": [{"section": "operations", "change": "a\nb", "confidence": 1, "sources": [2, 2, 1]}]}
    (change,) = read_answer(data, ["x", "y"], load_taxonomy())
    assert (change.change, change.confidence, change.sources) == ("a b", 1.0, ("y", "x"))


@pytest.mark.parametrize(
    "given",
    [
        {"section": "nonsense"},
        {"change": " "},
        {"change": "x" * 401},
        {"confidence": 1.1},
        {"confidence": True},
        {"sources": []},
        {"sources": [3]},
        {"sources": ["1"]},
        {"sources": None},
    ],
)
def test_what_is_no_proposal_is_refused(given: dict[str, Any]) -> None:
    """O3, T05: a malformed answer is an error, never a silent drop."""
    good = {"section": "operations", "change": "a", "confidence": 0.5, "sources": [1]}
    with pytest.raises(InvalidInput):
        read_answer({"proposals": [{**good, **given}]}, ["x"], load_taxonomy())
    with pytest.raises(InvalidInput):
        read_answer({}, ["x"], load_taxonomy())
