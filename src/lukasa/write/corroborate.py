"""What enough independent observations do: an episode becomes a fact, and an agent's held claim comes out of hold.

Both pass the gates again. The text keeps its own trust, so support never lifts its authority.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from msgspec.structs import replace

from lukasa.model.corroboration import observations
from lukasa.model.entry import Confirmation, Entry, GateVerdict
from lukasa.model.errors import MirrorsCanonical
from lukasa.model.values import Gate, Kind, Lifetime, State
from lukasa.spec.types import MemorySpec
from lukasa.storage.operations import Operation, SaveConfirmation, SaveEntry, Verdict
from lukasa.write.check import by_promotion_only, guard, sanitise
from lukasa.write.plan import Action, Draft, Plan, Proposal, Setting, resolve, retire, rivalries, run

PROMOTED, RELEASED = "entry.promoted", "entry.released"


class Rising(NamedTuple):
    """What an entry becomes with so many independent observations."""

    kind: Kind
    needed: int
    action: str


class Risen(NamedTuple):
    """An entry after it has risen, the operations that make it so, and the verdict."""

    entry: Entry
    operations: tuple[Operation, ...]
    verdict: Verdict


def observations_needed(spec: MemorySpec, tier: str, kind: Kind) -> int:
    """The observations that a tier asks for before an entry becomes one of this kind; 0 if none are enough."""
    rules = (spec.behaviour(tier, other).promotion for other in Kind)
    asked = [rule.min_observations for rule in rules if rule.to == tier and rule.kind is kind and rule.min_observations]
    return min(asked, default=0)


def awaits_promotion(entry: Entry) -> bool:
    """Whether an entry is held only because agents do not write its kind directly."""
    gate = entry.gate
    return entry.state is State.HELD and gate is not None and gate.reason == by_promotion_only(entry.kind)


def rising(entry: Entry, spec: MemorySpec) -> Rising | None:
    """What corroboration alone can make of an entry; None if it changes nothing or asks for more than observations."""
    tier = entry.scope.tier
    if entry.sensitive or entry.path is not None:
        return None
    if entry.state is State.HELD:
        needed = observations_needed(spec, tier, entry.kind) if awaits_promotion(entry) else 0
        return Rising(entry.kind, needed, RELEASED) if needed else None
    rule = spec.behaviour(tier, entry.kind).promotion
    more = rule.min_relevance or rule.min_access or rule.min_versions
    if entry.state is not State.ACTIVE or rule.to != tier or rule.kind in (None, entry.kind) or more:
        return None
    return Rising(rule.kind or entry.kind, rule.min_observations, PROMOTED) if rule.min_observations else None


def corroborated(
    planned: Plan, known: Sequence[Confirmation], setting: Setting, actor: str
) -> tuple[Plan, Verdict | None]:
    """Add to a plan that confirms an entry what its observations make of that entry, and return the verdict if any."""
    if planned.entry is None:
        return planned, None
    found = risen(planned.entry, [*known, *stated(planned)], setting, actor)
    if found is None:
        return planned, None
    operations = (*planned.operations, *found.operations)
    return planned._replace(entry=found.entry, operations=operations), found.verdict


def stated(planned: Plan) -> list[Confirmation]:
    """The confirmations that a plan stores."""
    return [op.confirmation for op in planned.operations if isinstance(op, SaveConfirmation)]


def risen(entry: Entry, said: Sequence[Confirmation], setting: Setting, actor: str) -> Risen | None:
    """Return what an entry becomes, if it has enough observations and the gates let it; otherwise None."""
    to = rising(entry, setting.spec)
    if to is None:
        return None
    count = len(observations([entry], [one for one in said if one.entry == entry.id]))
    return risen_by(entry, to, count, setting, actor) if count >= to.needed else None


def risen_by(entry: Entry, to: Rising, count: int, setting: Setting, actor: str) -> Risen | None:
    """Return what an entry becomes by so many observations; None if a gate or another entry speaks against it."""
    draft = _passed(entry, to.kind, setting)
    if draft is None:
        return None
    return _changed(entry, to, draft, f"{count} independent observations", setting, actor)


def _passed(entry: Entry, kind: Kind, setting: Setting) -> Draft | None:
    """Run the gates and compare the entry with its neighbours; None if something speaks against it."""
    around = tuple(near for near in setting.neighbours if near.entry.id != entry.id)
    try:
        draft = run((sanitise, guard, resolve), redrafted(entry, kind), setting.among(around))
    except MirrorsCanonical:
        return None
    return draft if draft.gate.verdict is Gate.ALLOW else None


def redrafted(entry: Entry, kind: Kind) -> Draft:
    """A stored entry as a draft of another kind, with the trust that it has."""
    proposal = Proposal(
        id=entry.id,
        scope=entry.scope,
        content=entry.content,
        curator=entry.curator,
        source=entry.source,
        origin=entry.origin.capped(entry.trust),
        owner=entry.owner,
        importance=entry.importance,
        kind=kind,
        metadata=entry.metadata,
        evidence=entry.evidence,
        said_at=entry.confirmed_at,
    )
    return Draft(proposal, entry.content, kind, entry.trust, GateVerdict(Gate.ALLOW, 1.0, ""))


def _changed(entry: Entry, to: Rising, draft: Draft, why: str, setting: Setting, actor: str) -> Risen:
    released = to.action == RELEASED
    cause = f"{'no longer held' if released else 'promoted'}: {why}"
    verdict = Verdict("promote", "released" if released else str(to.kind), cause)
    gate = GateVerdict(Gate.ALLOW, 1.0, cause) if released else entry.gate
    about = {
        "content": draft.content,
        "kind": to.kind,
        "gate": gate,
        "valid_at": entry.valid_at or (entry.created_at if to.kind is Kind.SEMANTIC else None),
        "updated_at": setting.now,
        "version": entry.version + 1,
    }
    if released:
        changed = entry.moved(State.ACTIVE, at=setting.now, cause=cause, actor=actor)
        changed = replace(changed, **about)
    else:
        changed = replace(entry, lifetime=Lifetime.LONG_TERM, **about)
    ledger = (*draft.ledger, verdict)
    save = SaveEntry(changed, entry.version, to.action, cause, ledger)
    decision = draft.decision
    gone: tuple[Operation, ...] = ()
    if decision.action is Action.UPDATE:
        gone = tuple(retire(target, changed, setting, decision.reason, actor) for target in decision.targets)
    pairs = rivalries(draft, setting) if decision.action is Action.ADD else ()
    return Risen(changed, (*gone, save, *pairs), verdict)
