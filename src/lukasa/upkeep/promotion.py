"""Who has earned a longer life, another kind, or a broader tier. Procedures are the durable form already."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from lukasa.model.entry import Document, Entry
from lukasa.model.values import Kind, Lifetime
from lukasa.spec.types import Promotion
from lukasa.upkeep.weighed import Weighed


class Rise(Struct, frozen=True):
    """An entry that rises, with the others that say the same and give way to it."""

    weighed: Weighed
    with_it: tuple[Weighed, ...]
    rule: Promotion
    cause: str

    @property
    def within(self) -> bool:
        return self.rule.to == self.weighed.entry.scope.tier


def rises(groups: Iterable[Sequence[Weighed]], rule: Promotion, documents: Mapping[str, Document]) -> list[Rise]:
    """Of groups that say the same, best supported first, those that meet all of a spec's conditions."""
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
    """Who or what has independently said it: sessions it was observed in, else conversations, else principals.

    How often it was said does not count: the same voice twice is one observation.
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
    """How many versions of its sources an entry has held through; zero if one of them has vanished.

    What it refers to must have moved on at least once for there to be something to outlive, and still be there.
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
