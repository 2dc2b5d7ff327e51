"""Ranking: the match weighed by importance, decay and use; duplicates out; as many as the profile asks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from datetime import datetime
from typing import overload

from mnemon.model.arrays import np
from mnemon.model.entry import Access, Document, Entry
from mnemon.model.frozen import dataclass
from mnemon.model.statements import says_the_same
from mnemon.model.text import content_key
from mnemon.model.values import Authority
from mnemon.ports.embedder import Vector
from mnemon.ports.store import Verdict
from mnemon.read.decay import decay_factor, frequency, relevance
from mnemon.read.fuse import Match
from mnemon.spec.types import MemorySpec


@dataclass(frozen=True, slots=True)
class Score:
    """Every factor of a hit's place: final = match × prior × tier weight."""

    final: float
    match: Match
    importance: float
    decay: float
    frequency: float
    relevance: float
    prior: float
    tier_weight: float


@dataclass(frozen=True, slots=True)
class Provenance:
    """A corpus source as it stands now, seen through an entry's link."""

    source: str
    locator: str
    status: str  # current | changed | vanished
    title: str = ""
    origin: str = ""
    lifecycle: str = ""
    weight: float | None = None
    standing: str = ""


@dataclass(frozen=True, slots=True)
class Hit:
    """A candidate, not a fact: the entry with everything that says how far to believe it and why it is here."""

    entry: Entry
    score: Score
    access: Access | None
    provenance: tuple[Provenance, ...] = ()

    @property
    def id(self) -> str:
        return self.entry.id

    @property
    def content(self) -> str:
        return self.entry.content

    @property
    def authority(self) -> Authority:
        return self.entry.authority


@dataclass(frozen=True, slots=True)
class Ranking:
    """What ranking is given beside the matches."""

    spec: MemorySpec
    now: datetime
    access: Mapping[str, Access]
    closed: Mapping[str, datetime] = field(default_factory=dict)
    vectors: Mapping[str, Vector] = field(default_factory=dict)


def score(entry: Entry, match: Match, given: Ranking) -> Score:
    factor, often, value, prior, tier_weight = _factors(entry, given)
    return Score(match.value * prior * tier_weight, match, entry.importance, factor, often, value, prior, tier_weight)


def _factors(entry: Entry, given: Ranking) -> tuple[float, float, float, float, float]:
    """Decay, frequency, relevance, prior and tier weight of an entry."""
    tier = entry.scope.tier
    access = given.access.get(entry.id)
    closed_at = given.closed.get(entry.scope.value("conversation") or "") if given.closed else None
    factor = decay_factor(given.spec.behaviours[tier, entry.kind].decay, entry, access, given.now, closed_at)
    often = frequency(access) if access else 1.0
    value = relevance(entry.importance, factor, often)
    weight = given.spec.retrieval.prior_weight
    return factor, often, value, (1 - weight) + weight * value, given.spec.retrieval.tier_weights.get(tier, 1.0)


class Ranked(Sequence[Hit]):
    """Candidates in order. A hit is made when somebody looks at it: of hundreds, an answer shows a few."""

    def __init__(self, order: Sequence[Entry], matches: Mapping[str, Match], given: Ranking) -> None:
        self._order, self._matches, self._given = order, matches, given

    def __len__(self) -> int:
        return len(self._order)

    @overload
    def __getitem__(self, place: int) -> Hit: ...
    @overload
    def __getitem__(self, place: slice) -> list[Hit]: ...
    def __getitem__(self, place: int | slice) -> Hit | list[Hit]:
        found = self._order[place]
        return self._hit(found) if isinstance(found, Entry) else [self._hit(entry) for entry in found]

    def _hit(self, entry: Entry) -> Hit:
        return Hit(entry, score(entry, self._matches[entry.id], self._given), self._given.access.get(entry.id))


def rank(entries: Mapping[str, Entry], matches: Mapping[str, Match], given: Ranking) -> Ranked:
    """Best first; ties go to the newest. A tier that the spec ranks by recency is ordered by time alone."""
    order = []
    for id, entry in entries.items():
        if id in matches:
            _, _, _, prior, tier_weight = _factors(entry, given)
            order.append((matches[id].value * prior * tier_weight, entry.created_at, id))
    tiers = {entries[id].scope.tier for _, _, id in order}
    if len(tiers) == 1 and tiers <= set(given.spec.retrieval.recency_tiers):
        order = [(0.0, at, id) for _, at, id in order]
    order.sort(reverse=True)
    return Ranked([entries[id] for _, _, id in order], matches, given)


def drop_repeats(hits: Sequence[Hit], given: Ranking, wanted: int) -> tuple[list[Hit], dict[str, Verdict]]:
    """Keep the best of those that say the same; stop once enough are kept. Also: what was dropped, and for whom."""
    threshold = given.spec.retrieval.dedup_cosine
    kept: list[Hit] = []
    dropped: dict[str, Verdict] = {}
    for hit in hits:
        if len(kept) >= wanted:
            break
        twin = next((other for other in kept if _repeats(hit, other, threshold, given.vectors)), None)
        if twin is None:
            kept.append(hit)
        else:
            dropped[hit.id] = Verdict("dedup", "dropped", "says the same as a better hit", {"kept": twin.id})
    return kept, dropped


def _repeats(hit: Hit, other: Hit, threshold: float, vectors: Mapping[str, Vector]) -> bool:
    if content_key(hit.content) == content_key(other.content):
        return True
    a, b = vectors.get(hit.id), vectors.get(other.id)
    if a is None or b is None or float(np.dot(a, b)) <= threshold:
        return False
    return says_the_same(hit.content, other.content)


def provenance(entry: Entry, documents: Mapping[str, Document]) -> tuple[Provenance, ...]:
    """What an entry's links show now. The source's axes are read through the link, never from the entry."""
    shown = []
    for link in entry.links:
        document = documents.get(link.source)
        if document is None or document.removed:
            shown.append(Provenance(link.source, link.locator, "vanished"))
            continue
        status = "current" if document.version == link.version else "changed"
        shown.append(
            Provenance(
                link.source,
                link.locator,
                status,
                document.title,
                document.origin,
                document.lifecycle,
                document.weight,
                document.standing,
            )
        )
    return tuple(shown)
