"""Signals: a new one is a function and a line in one of two phases."""

from __future__ import annotations

from typing import Any

import pytest

from lukasa import Lukasa, Workspace
from lukasa.read.signals import Signal
from lukasa.service.call import CallContext
from lukasa.service.retrieval import find
from lukasa.service.retrieval.find import Findings, Lookup, SignalStep
from lukasa.spec import preset_text, sections
from lukasa.spec.types import SIGNALS

KETTLES = ["The kettle stands in the kitchen of the house", "The kettle is red"]


def brevity(ctx: CallContext, lookup: Lookup, found: Findings) -> Signal:
    """Prefer short texts; compared with the other candidates, as keywords are."""
    return Signal("brevity", {c.id: 1.0 for c in found.candidates.values() if c.chars < 20})


def everything(ctx: CallContext, lookup: Lookup, found: Findings) -> Signal:
    """Bring every entry, whatever the question is."""
    entries = {e.id: e for store, selection in lookup.stores for e in store.find(selection, limit=100)}
    find._admit_entries(ctx, lookup, found, entries)
    return Signal("brevity", dict.fromkeys(entries, 1.0))


def registered(monkeypatch: pytest.MonkeyPatch, memory: Lukasa, phase: str, step: SignalStep) -> Workspace:
    """A workspace whose spec names one signal more, and that signal as the last of its phase."""
    names: Any = (*SIGNALS, step.name)
    monkeypatch.setattr(sections, "SIGNALS", names)
    monkeypatch.setattr(find, phase, (*getattr(find, phase), step))
    text = preset_text("default").replace('"links"]', f'"links", "{step.name}"]', 1)
    return memory.workspace("own", spec=text)


@pytest.mark.parametrize("phase", ["BRING", "WEIGH"])
def test_a_new_signal_counts_and_explains_itself(memory: Lukasa, monkeypatch: pytest.MonkeyPatch, phase: str) -> None:
    """R1, R8: in either phase, behind `context` as well, it moves hits and shows in `contributions` and `why`."""
    world = registered(monkeypatch, memory, phase, SignalStep("brevity", brevity, "it is long"))
    long, brief = (world.put("workspace", text).id for text in KETTLES)
    first, second = world.read("kettle", count=False)
    assert (first.id, second.id) == (brief, long)
    shares = [{c.signal: c.share for c in hit.score.match.contributions} for hit in (first, second)]
    assert shares[0]["brevity"] > 0 > shares[1]["brevity"]
    verdicts = [{v.step: v for v in world.why("kettle", id)}["brevity"] for id in (brief, long)]
    assert (verdicts[0].outcome, verdicts[1].outcome, verdicts[1].reason) == ("found", "missed", "it is long")


def test_a_new_signal_brings_candidates(memory: Lukasa, monkeypatch: pytest.MonkeyPatch) -> None:
    """R1: what no other signal finds is a hit once a signal of the first phase brings it."""
    world = registered(monkeypatch, memory, "BRING", SignalStep("brevity", everything))
    id = world.put("workspace", "The harbour has three lighthouses").id
    assert [hit.id for hit in world.read("quarterly budget", count=False)] == [id]
    assert ("brevity", "found") in {(v.step, v.outcome) for v in world.why("quarterly budget", id)}


def test_every_signal_of_a_spec_is_registered() -> None:
    """R1, P1: each name that a spec may use has a step, and each step has a name that a spec may use."""
    assert {step.name for step in (*find.BRING, *find.WEIGH)} == set(SIGNALS)


def test_an_id_in_the_question_decides(world: Workspace) -> None:
    """R1: of notes that differ in one token, the one with the token of the question is first."""
    notes = {
        f"E{n}": world.put("workspace", f"billing failed with E{n} after the deploy").id for n in range(4100, 4130)
    }
    for code in ("E4101", "E4117", "E4129"):
        assert world.read(f"What about error {code}?", count=False)[0].id == notes[code]
    assert world.read("Is version 1.2.3 out?", count=False, profile="balanced") is not None


def test_an_earlier_value_that_the_question_names_is_first(world: Workspace) -> None:
    """R1, P5: the question names the old value, so the old entry is the answer, and the new one comes after it."""
    world.put("workspace", "The gateway listens on port 60158")
    world.put("workspace", "The gateway listens on port 32504")
    assert "60158" in world.read("What listens on 60158?", count=False)[0].content
    assert "32504" in world.read("On which port does the gateway listen?", count=False)[0].content


def test_a_number_that_is_part_of_another_is_not_the_same(world: Workspace) -> None:
    """R1: 4.2 is not 4.2.1, and E41 is not E411."""
    right = world.put("workspace", "tinder 4.2 was quick").id
    for other in ("tinder 4.2.1 was quick and quick", "tinder 14.2 was quick", "tinder 4.21 was quick, so quick"):
        world.put("workspace", other)
    assert world.read("How was tinder 4.2 in use?", count=False)[0].id == right
