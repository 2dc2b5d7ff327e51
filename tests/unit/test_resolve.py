"""Dedup, resolution and the plan: what happens to a new statement beside the old ones."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from msgspec.structs import replace

from lukasa.index.matches import Neighbour
from lukasa.model.entry import Entry, GateVerdict
from lukasa.model.ids import new_id
from lukasa.model.values import SHARED, Curator, Gate, Kind, Origin, State, Trust
from lukasa.spec import load_preset, load_taxonomy
from lukasa.storage.operations import Record, SaveEntry
from lukasa.write.plan import RESOLVE, Action, Draft, Plan, Proposal, Setting, plan, run
from tests.helpers.making import WORKSPACE, make_entry

NOW = datetime(2026, 11, 15, tzinfo=UTC)
EARLIER = NOW - timedelta(days=3)


def resolved(
    content: str, *near: Neighbour, trust: Trust = Trust.AUTHOR, kind: Kind = Kind.SEMANTIC
) -> tuple[Draft, Plan]:
    proposal = Proposal(
        id=new_id(),
        scope=WORKSPACE,
        content=content,
        curator=Curator.AUTHOR,
        source="user",
        origin=Origin("t", "library", "in-process", trust),
        owner=SHARED,
        importance=0.7,
        tags=("new",),
    )
    setting = Setting(load_preset("default"), load_taxonomy("v1"), NOW, neighbours=near)
    start = Draft(proposal, content, kind, trust, GateVerdict(Gate.ALLOW, 1.0, ""))
    draft = run(RESOLVE, start, setting)
    return draft, plan(draft, setting, actor="t@test", embedding=None, secret=b"s")


def saved(planned: Plan) -> list[Entry]:
    return [op.entry for op in planned.operations if isinstance(op, SaveEntry)]


def test_the_same_text_is_merged() -> None:
    """W3: a repeated text raises merged_count and renews the confirmation; no new row."""
    old = make_entry(at=EARLIER)
    _, planned = resolved("the villain is called malachar.", Neighbour(old, None))
    (merged,) = saved(planned)
    assert (planned.outcome, merged.id, merged.merged_count, merged.confirmed_at) == ("merged", old.id, 2, NOW)
    assert merged.content == old.content


def test_a_near_restatement_is_merged_above_the_threshold_only() -> None:
    """W3: cosine over the spec's threshold merges; at or below it does not."""
    old = make_entry("The staging server runs Debian 12")
    new = "Our staging server runs Debian 12"
    assert resolved(new, Neighbour(old, 0.97))[1].outcome == "merged"
    assert resolved(new, Neighbour(old, 0.92))[1].outcome == "stored"


def test_a_near_text_with_another_number_is_not_merged() -> None:
    """W3: nearness alone never swallows a different fact."""
    old = make_entry("The staging server runs Debian 12")
    assert resolved("The staging server runs Debian 13", Neighbour(old, 0.99))[1].outcome != "merged"


def test_a_new_fact_ends_the_validity_of_the_old_one() -> None:
    """W4: semantic update: the old gets invalid_at, the new valid_at, both rows stay."""
    old = make_entry(at=EARLIER)
    _, planned = resolved("The villain is called Vexis", Neighbour(old, 0.93))
    retired, new = saved(planned)
    assert (retired.id, retired.state, retired.invalid_at, retired.superseded_by) == (
        old.id,
        State.INVALIDATED,
        NOW,
        new.id,
    )
    assert (new.state, new.valid_at) == (State.ACTIVE, NOW)


def test_a_new_preference_archives_the_old_one() -> None:
    """W4: procedural supersession: the latest wins, the prior is archived."""
    old = make_entry("The user prefers dark mode", kind=Kind.PROCEDURAL)
    _, planned = resolved("The user prefers light mode", Neighbour(old, 0.9), kind=Kind.PROCEDURAL)
    assert saved(planned)[0].state is State.ARCHIVED


def test_episodes_accumulate() -> None:
    """W4: contradicting episodes both stay, and the decision is recorded."""
    old = make_entry("The deadline is Monday", kind=Kind.EPISODIC)
    draft, planned = resolved("The deadline is Friday", Neighbour(old, 0.9), kind=Kind.EPISODIC)
    assert draft.decision.action is Action.NOOP
    assert [e.state for e in saved(planned)] == [State.ACTIVE]


def test_all_contradicted_facts_are_retired() -> None:
    """W4: if two old values stand, both end."""
    first, second = make_entry("Alice lives in Paris", at=EARLIER), make_entry("Alice lives in Rome", at=EARLIER)
    _, planned = resolved("Alice moved to Berlin", Neighbour(first, None), Neighbour(second, None))
    assert [e.state for e in saved(planned)] == [State.INVALIDATED, State.INVALIDATED, State.ACTIVE]


def test_less_trusted_text_cannot_overrule() -> None:
    """B2: a contradiction from a less trusted origin is held; what it contradicts stays."""
    old = make_entry(trust=Trust.AUTHOR)
    _, planned = resolved("The villain is called Vexis", Neighbour(old, 0.93), trust=Trust.UNTRUSTED)
    assert [(e.id == old.id, e.state) for e in saved(planned)] == [(False, State.HELD)]


def test_merging_never_raises_trust() -> None:
    """B2: repeating untrusted text by the author supersedes it; by an untrusted voice it only confirms."""
    old = make_entry(trust=Trust.UNTRUSTED)
    retired, new = saved(resolved(old.content, Neighbour(old, 1.0), trust=Trust.AUTHOR)[1])
    assert (retired.trust, retired.superseded_by, new.trust) == (Trust.UNTRUSTED, new.id, Trust.AUTHOR)
    (merged,) = saved(resolved(old.content, Neighbour(old, 1.0), trust=Trust.UNTRUSTED)[1])
    assert merged.trust is Trust.UNTRUSTED


def test_untrusted_repetition_leaves_a_trusted_text_as_it_is() -> None:
    """B2: merging takes no words and no trust from the newcomer."""
    old = make_entry("The staging server runs Debian 12", trust=Trust.AUTHOR)
    (merged,) = saved(resolved("Our staging server runs Debian 12", Neighbour(old, 0.99), trust=Trust.UNTRUSTED)[1])
    assert (merged.content, merged.trust, merged.origin) == (old.content, old.trust, old.origin)


def test_a_less_trusted_repetition_lends_no_weight() -> None:
    """B2: repeating a text from a less trusted origin raises neither importance nor tags."""
    old = make_entry(trust=Trust.AUTHOR, importance=0.2)
    (merged,) = saved(resolved(old.content, Neighbour(old, 1.0), trust=Trust.UNTRUSTED)[1])
    assert (merged.importance, merged.tags, merged.merged_count) == (0.2, (), 2)


def test_retired_neighbours_are_ignored() -> None:
    """W3: what was forgotten does not keep the same text from being remembered again."""
    gone = replace(make_entry(), state=State.FORGOTTEN)
    assert resolved(gone.content, Neighbour(gone, 1.0))[1].outcome == "stored"


def test_a_discarded_draft_leaves_an_event_without_its_text() -> None:
    """W2: discard stores nothing, but is counted and traceable; the text itself is not kept."""
    setting = Setting(load_preset("default"), load_taxonomy("v1"), NOW)
    draft, _ = resolved("The villain is called Malachar")
    dropped = draft.ruled(Gate.DISCARD, 1.0, "too short")
    planned = plan(dropped, setting, actor="t", embedding=None, secret=b"s")
    (record,) = planned.operations
    assert isinstance(record, Record)
    assert record.draft.action == "entry.discarded"
    assert "Malachar" not in repr(record.draft)


@pytest.mark.parametrize("trust", list(Trust))
def test_derived_trust_is_the_least_of_its_sources(trust: Trust) -> None:
    """B2: derived trust = min over sources."""
    origin = Origin("a", "library", "in-process", Trust.AUTHOR)
    assert origin.capped(Trust.AUTHOR, trust).trust is min(Trust.AUTHOR, trust)
