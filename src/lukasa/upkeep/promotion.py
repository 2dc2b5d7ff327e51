"""Promotion and ageing: entries that get a longer lifetime, another kind or a broader tier, and entries that leave."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta

from msgspec import Struct, field

from lukasa.model.corroboration import counts_for, observations
from lukasa.model.entry import Confirmation, Document, Entry
from lukasa.model.values import Kind, Lifetime, Outcome, State
from lukasa.spec.types import Consolidation, LifecyclePolicy, MemorySpec, Promotion
from lukasa.storage.operations import DropEntry
from lukasa.upkeep.weighed import Weighed


class Rise(Struct, frozen=True):
    """An entry that is promoted, with the others that say the same and are superseded by it."""

    weighed: Weighed
    with_it: tuple[Weighed, ...]
    rule: Promotion
    cause: str

    @property
    def within(self) -> bool:
        return self.rule.to == self.weighed.entry.scope.tier


class Evidence(Struct, frozen=True):
    """What promotion looks at beside the entries: documents that they link to, statements that repeat them."""

    documents: Mapping[str, Document] = field(default_factory=dict)
    said: Sequence[Confirmation] = ()

    def observed(self, entries: Collection[Entry]) -> int:
        """The number of independent observations of entries that say the same."""
        ids = {entry.id for entry in entries}
        return len(observations(entries, [one for one in self.said if one.entry in ids]))

    def stated(self, group: Sequence[Weighed]) -> int:
        """How often the statement of a group was made or confirmed, by whomever that counts for."""
        floors = {w.id: counts_for(w.entry) for w in group}
        again = [one for one in self.said if one.entry in floors and one.outcome is Outcome.CONFIRMED]
        return len(group) + sum(one.trust >= floors[one.entry] for one in again)


def rises(groups: Iterable[Sequence[Weighed]], rule: Promotion, evidence: Evidence) -> list[Rise]:
    """The promotions among groups that say the same, best supported entry first: those that meet all conditions."""
    if not rule.to:
        return []
    return [rise for group in groups if (rise := _rise(group, rule, evidence)) is not None]


def as_trusted(group: Sequence[Weighed]) -> list[Weighed]:
    """The members of a group that may support its first: none is trusted less than that one, or than an agent.

    So a less trusted copy neither lends support nor pulls the trust of the whole down.
    """
    floor = counts_for(group[0].entry)
    return [w for w in group if w.entry.trust >= floor]


def _rise(found: Sequence[Weighed], rule: Promotion, evidence: Evidence) -> Rise | None:
    group = as_trusted(found)
    best, entry = group[0], group[0].entry
    if not _has_somewhere_to_go(entry, rule) or not (rule.min_relevance or rule.min_access or _asks_evidence(rule)):
        return None
    grounds = []
    if rule.min_relevance or rule.min_access:
        if not (best.relevance > rule.min_relevance and best.reads > rule.min_access):
            return None
        grounds.append(f"relevance {best.relevance:.2f} and {best.reads} reads")
    if rule.min_observations:
        seen = evidence.observed([w.entry for w in group])
        if seen < rule.min_observations:
            return None
        grounds.append(f"{seen} independent observations")
    if rule.min_versions:
        outlived = versions_outlived(entry, evidence.documents)
        if outlived < rule.min_versions:
            return None
        grounds.append(f"it held through {outlived} versions of what it refers to")
    if rule.min_recurrence:
        times = evidence.stated(group)
        if times < rule.min_recurrence:
            return None
        grounds.append(f"stated or confirmed {times} times")
    return Rise(best, tuple(group[1:]), rule, f"promoted: {', '.join(grounds)}")


def _asks_evidence(rule: Promotion) -> bool:
    return bool(rule.min_observations or rule.min_versions or rule.min_recurrence)


def _has_somewhere_to_go(entry: Entry, rule: Promotion) -> bool:
    if rule.to == entry.scope.tier and rule.kind in (None, entry.kind):
        return entry.lifetime is Lifetime.SHORT_TERM or (lasts(entry, rule) and not entry.meta)
    return entry.kind is not Kind.PROCEDURAL


def lasts(entry: Entry, rule: Promotion) -> bool:
    """Whether a promotion makes a fact meta-semantic: because it held through versions of what it refers to."""
    return entry.kind is Kind.SEMANTIC and rule.kind in (None, Kind.SEMANTIC) and rule.min_versions > 0


def versions_outlived(entry: Entry, documents: Mapping[str, Document]) -> int:
    """How many versions of its sources an entry has outlived: of those that are still there.

    Zero if none of them is, or if a version has come since that nobody checked the entry against.
    """
    spans = [0]
    for link in entry.links:
        document = documents.get(link.source)
        if document is None or document.removed:
            continue
        if not link.vouched(document.version):
            return 0
        spans.append(document.version - link.version + 1)
    return max(spans)


class Move(Struct, frozen=True):
    """An entry as it was at the decision, and its new state."""

    entry: Entry
    state: State
    action: str
    cause: str


# Upkeep takes no entry out of recall where a person decides (`dispose`), or where nothing but a person ends it.
_KEPT = (LifecyclePolicy.DISPOSE, LifecyclePolicy.INDEFINITE)


def may_go(entry: Entry, policy: LifecyclePolicy) -> bool:
    """Whether upkeep may prune or forget an entry: never a long-term one, nor one that somebody exempted."""
    return policy not in _KEPT and not entry.exempt and entry.lifetime is not Lifetime.LONG_TERM


def pruned(found: Sequence[Weighed], rule: Consolidation, policy: LifecyclePolicy) -> list[Move]:
    """Prune the entries whose relevance is below the spec's floor."""
    floor = rule.prune_below
    return [
        Move(w.entry, State.PRUNED, "entry.pruned", f"relevance {w.relevance:.4f} is below {floor:g}")
        for w in found
        if w.relevance < floor and may_go(w.entry, policy)
    ]


def capped(found: Sequence[Weighed], cap: int, going: Sequence[Weighed]) -> list[Move]:
    """Prune the least relevant of `going` if a scope holds more than the spec allows."""
    if not cap or len(found) <= cap:
        return []
    least = sorted(going, key=lambda w: (w.relevance, w.entry.confirmed_at, w.id))[: len(found) - cap]
    return [
        Move(w.entry, State.PRUNED, "entry.pruned", f"its scope holds more than {cap:,}, and this was least relevant")
        for w in least
    ]


def aged(found: Sequence[Weighed], rule: Consolidation, policy: LifecyclePolicy, now: datetime) -> list[Move]:
    """Make never recalled entries stale, forget those that stayed stale, and restore stale ones that were recalled.

    A long-term entry grows stale, which lowers its rank alone, and is not forgotten.
    """
    return [move for w in found if (move := _aged(w, rule, policy, now)) is not None]


def _aged(w: Weighed, rule: Consolidation, policy: LifecyclePolicy, now: datetime) -> Move | None:
    entry, age = w.entry, now - w.entry.confirmed_at
    if entry.state is State.STALE and w.reads:
        return Move(entry, State.ACTIVE, "entry.restored", "it was recalled after it had grown stale")
    if w.reads or policy in _KEPT or entry.exempt:
        return None
    if entry.state is State.STALE and may_go(entry, policy) and _older(age, rule.forget_after_days):
        cause = f"stale, never recalled, and older than {rule.forget_after_days:g} days"
        return Move(entry, State.FORGOTTEN, "entry.forgotten", cause)
    if entry.state is State.ACTIVE and _older(age, rule.stale_after_days):
        cause = f"never recalled, and older than {rule.stale_after_days:g} days"
        return Move(entry, State.STALE, "entry.stale", cause)
    return None


def _older(age: timedelta, days: float) -> bool:
    return days > 0 and age > timedelta(days=days)


def removal(spec: MemorySpec, entry: Entry, cause: str, *, linked: bool, softly: bool = False) -> DropEntry | None:
    """Return the removal of a row that goes; None if a rule of the audit posture keeps the row.

    `softly` says that the row would be kept out of recall. Each rule that the spec exempts is named, with its reason.
    """
    persistent = any(tier.name == entry.scope.tier and tier.persistent for tier in spec.tiers)
    asked = {"soft-supersession": softly, "keep-persistent": persistent, "keep-action-linked": linked}
    exempt = {rule: spec.exemption(rule) for rule, applies in asked.items() if applies}
    return DropEntry(entry.id, entry.version, cause, exempt) if all(exempt.values()) else None
