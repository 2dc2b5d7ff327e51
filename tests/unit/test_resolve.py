"""Dedup, resolution and the plan: what happens to a new statement beside the old ones."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from msgspec.structs import replace

from lukasa.index.matches import Neighbour
from lukasa.model.entry import Entry, GateVerdict
from lukasa.model.ids import new_id
from lukasa.model.values import SHARED, Curator, Gate, Kind, Origin, Relation, State, Trust
from lukasa.spec import MemorySpec, load_preset, load_taxonomy, parse_spec, preset_text
from lukasa.storage.operations import Record, SaveEntry, SaveRivalry
from lukasa.write.plan import RESOLVE, Action, Draft, Plan, Proposal, Setting, plan, run
from tests.helpers.making import RETIRE, WORKSPACE, make_entry

NOW = datetime(2026, 11, 15, tzinfo=UTC)
EARLIER = NOW - timedelta(days=3)
RETIRING = parse_spec(preset_text("default") + RETIRE)


def resolved(
    content: str,
    *near: Neighbour,
    trust: Trust = Trust.AUTHOR,
    kind: Kind = Kind.SEMANTIC,
    spec: MemorySpec | None = None,
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
    setting = Setting(spec or load_preset("default"), load_taxonomy("v1"), NOW, neighbours=near)
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


def test_a_paraphrase_is_kept_beside_the_entry_above_the_threshold_only() -> None:
    """W3: over the spec's threshold another wording says the same; each wording stays."""
    old = make_entry("The staging server runs Debian 12")
    new = "With Debian 12 the staging server runs"
    for cosine, relations in ((0.97, [Relation.SAME]), (0.84, [])):
        draft, planned = resolved(new, Neighbour(old, cosine))
        assert (planned.outcome, [rival.relation for rival in draft.decision.rivals]) == ("stored", relations)
        assert [e.content for e in saved(planned)] == [new]


def test_a_near_text_with_another_number_is_not_merged() -> None:
    """W3: nearness alone never swallows a different fact."""
    old = make_entry("The staging server runs Debian 12")
    assert resolved("The staging server runs Debian 13", Neighbour(old, 0.99))[1].outcome != "merged"


def test_a_new_fact_is_stored_beside_the_old_one() -> None:
    """W4: the rules retire nothing: both are active, and the pair is noted with its reason."""
    old = make_entry(at=EARLIER)
    draft, planned = resolved("The villain is called Vexis", Neighbour(old, 0.93))
    assert (planned.outcome, planned.beside) == ("stored", (old.id,))
    (new,) = saved(planned)
    assert (new.state, new.valid_at) == (State.ACTIVE, NOW)
    (pair,) = [op.rivalry for op in planned.operations if isinstance(op, SaveRivalry)]
    assert (pair.entry, pair.other, pair.relation, pair.decided_by) == (new.id, old.id, Relation.UPDATE, "")
    assert pair.reason == draft.ledger[-1].reason == "they give the same thing two names"


def test_many_values_are_values_of_many() -> None:
    """W4: what has several values already gets one more, which replaces none."""
    near = [Neighbour(make_entry(f"The ferry stops in {place}"), 0.93) for place in ("Bari", "Kotor", "Split")]
    draft, _ = resolved("The ferry stops in Zadar", *near)
    assert {rival.relation for rival in draft.decision.rivals} == {Relation.CLOSE}


def test_two_speakers_are_two_people() -> None:
    """W4: what another person says of themselves neither repeats nor replaces."""
    mine = replace(make_entry("I live in Bari"), source="Ines")
    for said in ("I live in Bari", "I live in Kotor now"):
        draft, planned = resolved(said, Neighbour(mine, 0.99))
        assert (planned.outcome, draft.decision.rivals) == ("stored", ())
    assert resolved("The port is in Bari", Neighbour(replace(make_entry("The port is in Kotor"), source="Ines"), 0.95))[
        0
    ].decision.rivals


def test_the_spec_lets_the_rules_retire() -> None:
    """W4: with by_rule = "retire" the old gets invalid_at, the new valid_at, both rows stay."""
    old = make_entry(at=EARLIER)
    _, planned = resolved("The villain is called Vexis", Neighbour(old, 0.93), spec=RETIRING)
    retired, new = saved(planned)
    assert (retired.id, retired.state, retired.invalid_at, retired.superseded_by) == (
        old.id,
        State.INVALIDATED,
        NOW,
        new.id,
    )
    assert (new.state, new.valid_at) == (State.ACTIVE, NOW)


def test_a_new_preference_archives_the_old_one() -> None:
    """W4: procedural supersession, if the spec lets the rules retire: the latest wins, the prior is archived."""
    old = make_entry("The user prefers dark mode", kind=Kind.PROCEDURAL)
    _, planned = resolved("The user prefers light mode now", Neighbour(old, 0.9), kind=Kind.PROCEDURAL, spec=RETIRING)
    assert saved(planned)[0].state is State.ARCHIVED


def test_episodes_accumulate() -> None:
    """W4: events replace no event: both stay, and neither is a rival."""
    old = make_entry("The deadline is Monday", kind=Kind.EPISODIC)
    draft, planned = resolved("The deadline is Friday", Neighbour(old, 0.9), kind=Kind.EPISODIC)
    assert (draft.decision.action, draft.decision.rivals) == (Action.ADD, ())
    assert [e.state for e in saved(planned)] == [State.ACTIVE]


def test_kinds_are_compared() -> None:
    """W4: a rule and a fact about one thing are rivals."""
    old = make_entry("Releases are on Mondays", kind=Kind.PROCEDURAL)
    assert resolved("Releases are on Fridays now", Neighbour(old, 0.92))[1].beside == (old.id,)


def test_all_contradicted_facts_are_retired() -> None:
    """W4: if two old values stand, both end, where the spec lets the rules retire."""
    first, second = make_entry("Alice lives in Paris", at=EARLIER), make_entry("Alice lives in Rome", at=EARLIER)
    near = (Neighbour(first, None), Neighbour(second, None))
    _, planned = resolved("Alice moved to Berlin", *near, spec=RETIRING)
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
    """B2: merging takes no words, no time and no trust from the newcomer."""
    old = make_entry("The staging server runs Debian 12", trust=Trust.AUTHOR, at=EARLIER)
    (merged,) = saved(resolved("the staging server runs Debian 12!", Neighbour(old, 0.99), trust=Trust.UNTRUSTED)[1])
    assert (merged.content, merged.trust, merged.origin) == (old.content, old.trust, old.origin)
    assert merged.confirmed_at == old.confirmed_at


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
