"""The survey: what an author sees of a workspace at a glance."""

from __future__ import annotations

from datetime import timedelta

import pytest

from lukasa import Lukasa, State, Workspace
from lukasa.model.errors import Refused
from lukasa.model.transcript import Progress, Quote, Transcript, Utterance
from lukasa.service.entries.put import Memo
from lukasa.storage.operations import KeepUtterances, SaveTranscript
from tests.helpers.making import FixedClock


def test_tiers_are_counted_by_state(world: Workspace) -> None:
    """U5: every tier of the spec is there, also an empty one, with the keys that it needs."""
    world.put("workspace", "The villain is called Malachar")
    gone = world.put("workspace", "The hero rides a horse")
    world.forget(gone.id)
    tiers = {tier.name: tier for tier in world.survey().tiers}
    assert dict(tiers["workspace"].states) == {State.ACTIVE: 1, State.FORGOTTEN: 1}
    assert (dict(tiers["account"].states), tiers["account"].home) == ({}, "account")
    assert (tiers["workspace"].needs, "conversation" in tiers["conversation"].needs) == ((), True)


def test_growth_adds_up_day_by_day(world: Workspace, clock: FixedClock) -> None:
    """U5: the plot of growth counts what is in recall: what was forgotten has left it."""
    first = world.put("workspace", "The villain is called Malachar")
    clock.time += timedelta(days=2)
    world.put("workspace", "The hero rides a horse named Bran")
    world.forget(first.id)
    growth = world.survey().growth
    assert [day.counts["workspace"] for day in growth] == [1, 1]
    assert growth[1].day - growth[0].day == timedelta(days=2)


def test_what_fades_comes_with_its_future(world: Workspace, clock: FixedClock) -> None:
    """U5: the least relevant first, each with what a month will take; held and retired entries are no part of it."""
    world.put("workspace", "Trivial: the tea was green", importance=0.1, kind="episodic")
    world.put("workspace", "The villain is called Malachar", importance=0.9, kind="episodic")
    retired = world.put("workspace", "The hero rides a horse", importance=0.1, kind="episodic")
    world.forget(retired.id)
    clock.time += timedelta(days=3)
    fading = world.survey().fading
    assert [one.entry.importance for one in fading] == [0.1, 0.9]
    assert all(one.ahead < one.now for one in fading)
    assert fading[0].now == pytest.approx(world.standing(fading[0].entry.id).relevance)


def test_the_survey_is_the_authors(world: Workspace) -> None:
    """U5, X4: it counts private entries, so an agent gets none."""
    with pytest.raises(Refused):
        world.acting(agent="helper").survey()


def test_vectors_that_are_missing_are_counted(memory: Lukasa) -> None:
    """U5: the state of the embedder, and how much has no vector yet."""
    world = memory.workspace("novel")
    world.put("workspace", "The villain is called Malachar")
    vectors = world.survey().vectors
    assert vectors is None if memory.settings.embedder == "none" else (vectors is not None and vectors.waiting == 0)


def test_evidence_is_quoted_from_its_transcript(world: Workspace, clock: FixedClock) -> None:
    """U5, B4: the words a fact rests on; a message that is gone leaves the quote without text, not an error."""
    now = clock.now()
    transcript = Transcript("t1", "k1", "plain", "Planning the book", now, now, progress=Progress.PENDING, kept=1)
    message = Utterance("m1", "user", "Well, the villain is called Malachar, I think.", 0, now)
    world.ctx.apply(world.ctx.local, SaveTranscript(transcript, 0), KeepUtterances("t1", (message,)))
    quotes = (Quote("t1", "m1", 6, 36), Quote("t1", "gone", 0, 4))
    (written,) = world.put_many("workspace", [Memo("The villain is called Malachar", evidence=quotes)])
    said = world.evidence(written.id)
    assert [(one.text, one.role, one.title) for one in said] == [
        ("the villain is called Malachar", "user", "Planning the book"),
        ("", "", ""),
    ]
