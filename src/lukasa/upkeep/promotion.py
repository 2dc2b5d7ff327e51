"""Promotion and ageing: entries that get a longer lifetime, another kind or a broader tier, and entries that leave."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta

from msgspec import Struct

from lukasa.model.entry import Document, Entry
from lukasa.model.values import Kind, Lifetime, State
from lukasa.spec.types import Consolidation, LifecyclePolicy, Promotion
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


def rises(groups: Iterable[Sequence[Weighed]], rule: Promotion, documents: Mapping[str, Document]) -> list[Rise]:
    """The promotions among groups that say the same, best supported entry first: those that meet all conditions."""
    if not rule.to:
        return []
    return [rise for group in groups if (rise := _rise(group, rule, documents)) is not None]


def _rise(group: Sequence[Weighed], rule: Promotion, documents: Mapping[str, Document]) -> Rise | None:
    best, entry = group[0], group[0].entry
    if not _has_somewhere_to_go(entry, rule) or not (rule.min_relevance or rule.min_access or _asks_evidence(rule)):
        return None
    grounds = []
    if rule.min_relevance or rule.min_access:
        if not (best.relevance > rule.min_relevance and best.reads > rule.min_access):
            return None
        grounds.append(f"relevance {best.relevance:.2f} and {best.reads} reads")
    if rule.min_observations:
        seen = len(observations(w.entry for w in group))
        if seen < rule.min_observations:
            return None
        grounds.append(f"{seen} independent observations")
    if rule.min_versions:
        outlived = versions_outlived(entry, documents)
        if outlived < rule.min_versions:
            return None
        grounds.append(f"it held through {outlived} versions of what it refers to")
    return Rise(best, tuple(group[1:]), rule, f"promoted: {', '.join(grounds)}")


def _asks_evidence(rule: Promotion) -> bool:
    return bool(rule.min_observations or rule.min_versions)


def _has_somewhere_to_go(entry: Entry, rule: Promotion) -> bool:
    if rule.to == entry.scope.tier and rule.kind in (None, entry.kind):
        return entry.lifetime is Lifetime.SHORT_TERM
    return entry.kind is not Kind.PROCEDURAL


def observations(entries: Iterable[Entry]) -> set[tuple[str, str]]:
    """The independent sources of a statement: the sessions it was observed in, else conversations, else principals.

    Repetition does not count: the same source twice is one observation.
    """
    found: set[tuple[str, str]] = set()
    for entry in entries:
        if entry.evidence:
            found |= {("transcript", quote.transcript) for quote in entry.evidence}
        elif entry.conversation:
            found.add(("conversation", entry.conversation))
        else:
            found.add(("principal", entry.origin.principal))
    return found


def versions_outlived(entry: Entry, documents: Mapping[str, Document]) -> int:
    """How many versions of its sources an entry has outlived; zero if one of them was removed.

    A source must have changed at least once, and still exist.
    """
    if not entry.links:
        return 0
    spans = []
    for link in entry.links:
        document = documents.get(link.source)
        if document is None or document.removed:
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
