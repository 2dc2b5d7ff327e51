"""Ranking: weigh the match by the spec's prior; drop duplicates; keep as many hits as the profile asks for."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple, overload

from msgspec import Struct, field

from lukasa.model.arrays import np
from lukasa.model.candidate import Candidate
from lukasa.model.citation import CitedNow
from lukasa.model.entry import Access, Document, Entry, Scope
from lukasa.model.statements import says_the_same
from lukasa.model.text import in_first_person, said_key
from lukasa.model.timestamps import micros
from lukasa.model.values import Authority, Kind, Relation, Trust
from lukasa.ports import Vector
from lukasa.read.decay import DecayCurve, decay_curve, often, relevance
from lukasa.read.fuse import Match, Matches
from lukasa.spec.types import PRIOR, Lifecycle, MemorySpec, PriorFactor
from lukasa.storage.operations import Verdict

LEADERS = 40  # candidates that are weighed by importance, age and use, at least
EVERYONE = sys.maxsize
AHEAD = 8  # entries that are fetched together when a caller iterates over hits


class Score(NamedTuple):
    """Every factor of a hit's rank: final = match × prior × tier weight × trust weight.

    `relevance` is importance × decay × frequency. `factors` names those that the spec's prior multiplies.
    """

    final: float
    match: Match
    importance: float
    decay: float
    frequency: float
    relevance: float
    prior: float
    tier_weight: float
    trust_weight: float = 1.0
    factors: tuple[PriorFactor, ...] = PRIOR


class Provenance(Struct, frozen=True):
    """The present state of a corpus source, looked up through an entry's link."""

    source: str
    locator: str
    status: str  # current | changed | vanished
    title: str = ""
    origin: str = ""
    lifecycle: str = ""
    weight: float | None = None
    standing: str = ""


class Withdrawn(Struct, frozen=True):
    """A source that an entry was concluded from and that was withdrawn since, and what became of it."""

    source: str
    reason: str


class Earlier(NamedTuple):
    """An entry that is folded under a hit: it says the same, or may no longer hold."""

    entry: Entry
    relation: Relation

    @property
    def id(self) -> str:
        return self.entry.id

    @property
    def version(self) -> int:
        return self.entry.version

    @property
    def content(self) -> str:
        return self.entry.content

    @property
    def note(self) -> str:
        """The relation in words."""
        return "says the same" if self.relation is Relation.SAME else "may no longer hold"


class Hit(NamedTuple):
    """A candidate, not a fact: an entry with the evidence for it and the reasons for its rank.

    `earlier` holds entries about the same thing that were said before it, the last one first. `withdrawn` holds the
    sources that it was concluded from and that no longer stand. `citations` holds what it cites, with the verdicts of
    checks that were made for this read.
    """

    entry: Entry
    score: Score
    access: Access | None
    provenance: tuple[Provenance, ...] = ()
    earlier: tuple[Earlier, ...] = ()
    withdrawn: tuple[Withdrawn, ...] = ()
    citations: tuple[CitedNow, ...] = ()

    @property
    def id(self) -> str:
        return self.entry.id

    @property
    def content(self) -> str:
        return self.entry.content

    @property
    def authority(self) -> Authority:
        return self.entry.authority


class Ranking(Struct, frozen=True):
    """The values that ranking needs in addition to the matches."""

    spec: MemorySpec
    now: datetime
    accesses: Mapping[str, Access]
    reach: int = EVERYONE
    closed: Mapping[str, datetime] = field(default_factory=dict)


class _Weighing:
    """Compute the relevance of candidates. Values that one scope and kind share are looked up once."""

    def __init__(self, given: Ranking) -> None:
        self._given, self._now = given, micros(given.now)
        self._weight = given.spec.retrieval.prior_weight
        self._prior = given.spec.retrieval.prior
        by_trust = given.spec.retrieval.trust_weights
        self._trusted = [by_trust.get(trust.name.lower(), 1.0) for trust in Trust]
        self._closed = {id: micros(at) for id, at in given.closed.items()}
        self._shared: dict[
            tuple[int, int], tuple[DecayCurve, float, int | None]
        ] = {}  # by the identity of scope and kind

    def _alike(self, candidate: Candidate) -> tuple[DecayCurve, float, int | None]:
        """The decay of a candidate, the weight of its tier, and the end of its conversation."""
        alike = (id(candidate.scope), id(candidate.kind))
        found = self._shared.get(alike)
        if found is None:
            spec, tier = self._given.spec, candidate.scope.tier
            ended = self._closed.get(candidate.scope.value("conversation") or "") if self._closed else None
            fades = decay_curve(spec.behaviours[tier, candidate.kind].decay)
            found = self._shared[alike] = fades, spec.retrieval.tier_weights.get(tier, 1.0), ended
        return found

    def score(self, candidate: Candidate, match: Match) -> Score:
        access = self._given.accesses.get(candidate.id)
        fades, tier_weight, ended = self._alike(candidate)
        factor = fades.of(candidate, access, self._now, ended)
        frequency = often(access.count) if access else 1.0
        worth: dict[PriorFactor, float] = {
            "importance": candidate.importance,
            "decay": factor,
            "frequency": frequency,
        }
        prior = (1 - self._weight) + self._weight * math.prod(worth[name] for name in self._prior)
        trusted = self._trusted[candidate.trust]
        final = match.value * prior * tier_weight * trusted
        value = relevance(candidate.importance, factor, frequency)
        return Score(
            final, match, candidate.importance, factor, frequency, value, prior, tier_weight, trusted, self._prior
        )

    def finals(
        self, ids: Sequence[str], candidates: Mapping[str, Candidate], matches: Matches
    ) -> list[tuple[float, int, str]]:
        """The final score of each id, with its age and id."""
        accesses, now, weight, low = self._given.accesses, self._now, self._weight, 1 - self._weight
        by_importance, by_age, by_use = (factor in self._prior for factor in PRIOR)
        trusted = self._trusted
        found = []
        scope: Scope | None = None
        of_kinds: dict[Kind, tuple[DecayCurve, float, int | None]] = {}
        for id, match in zip(ids, matches.values_of(ids), strict=True):
            candidate = candidates[id]
            if candidate.scope is not scope:  # mostly the same as the previous one
                scope, of_kinds = candidate.scope, {}
            alike = of_kinds.get(candidate.kind)
            if alike is None:
                alike = of_kinds[candidate.kind] = self._alike(candidate)
            fades, tier_weight, ended = alike
            access = accesses.get(id)
            value = candidate.importance if by_importance else 1.0
            if by_age:
                value *= fades.of(candidate, access, now, ended)
            if by_use and access is not None:
                value *= often(access.count)
            final = match * (low + weight * value) * tier_weight * trusted[candidate.trust]
            found.append((final, candidate.created_at, id))
        return found


Fetch = Callable[[Sequence[str]], Mapping[str, Entry]]


class Ranked(Sequence[Hit]):
    """Candidates in order, by id.

    An entry is fetched and a hit is made only when it is read: of hundreds, an answer shows a few.
    """

    def __init__(
        self,
        ids: Sequence[str],
        candidates: Mapping[str, Candidate],
        matches: Matches,
        weighing: _Weighing,
        accesses: Mapping[str, Access],
        fetch: Fetch,
    ) -> None:
        self.ids = ids
        self._candidates, self._matches, self._weighing, self._accesses, self._fetch = (
            candidates,
            matches,
            weighing,
            accesses,
            fetch,
        )
        self._entries: dict[str, Entry] = {}

    def __len__(self) -> int:
        return len(self.ids)

    @overload
    def __getitem__(self, index: int) -> Hit: ...
    @overload
    def __getitem__(self, index: slice) -> list[Hit]: ...
    def __getitem__(self, index: int | slice) -> Hit | list[Hit]:
        if isinstance(index, slice):
            return self._hits(self.ids[index])
        at = range(len(self.ids))[index]
        if self.ids[at] not in self._entries:
            self._read(self.ids[at : at + AHEAD])
        return self._hit(self.ids[at])

    def trusts(self) -> list[Trust]:
        """The trust of each, in order; nothing is fetched for it."""
        return [self._candidates[id].trust for id in self.ids]

    def in_order(self, positions: Sequence[int]) -> Ranked:
        """The same candidates in another order. What was fetched stays."""
        ids = [self.ids[position] for position in positions]
        other = Ranked(ids, self._candidates, self._matches, self._weighing, self._accesses, self._fetch)
        other._entries = self._entries
        return other

    def _hits(self, ids: Sequence[str]) -> list[Hit]:
        self._read(ids)
        return [self._hit(id) for id in ids]

    def _read(self, ids: Sequence[str]) -> None:
        unread = [id for id in ids if id not in self._entries]
        if unread:
            self._entries.update(self._fetch(unread))

    def _hit(self, id: str) -> Hit:
        found = self._weighing.score(self._candidates[id], self._matches[id])
        access = self._accesses.get(id)
        return Hit(self._entries[id], found, access)


def rank(
    order: Sequence[str], candidates: Mapping[str, Candidate], matches: Matches, given: Ranking, fetch: Fetch
) -> Ranked:
    """Best first; of equal ones the newest. A tier that the spec ranks by recency is ordered by time alone.

    `order` is the order of the matches. Only the first `reach` are weighed by their relevance, which breaks ties and
    lifts nothing from far below; after them only the match counts.
    """
    by_time, weighing = given.spec.retrieval.recency_tiers, _Weighing(given)
    tier = next((candidate.scope.tier for candidate in candidates.values()), None)
    if tier in by_time and all(candidate.scope.tier == tier for candidate in candidates.values()):
        newest = sorted(((candidates[id].created_at, id) for id in order), reverse=True)
        return Ranked([id for _, id in newest], candidates, matches, weighing, given.accesses, fetch)
    weighed = sorted(weighing.finals(order[: given.reach], candidates, matches), reverse=True)
    first = [id for _, _, id in weighed]
    if given.spec.retrieval.widening:
        first = _widened(first, candidates, matches, given.spec)
    ids = [*first, *order[given.reach :]]
    return Ranked(ids, candidates, matches, weighing, given.accesses, fetch)


def _widened(ids: Sequence[str], candidates: Mapping[str, Candidate], matches: Matches, spec: MemorySpec) -> list[str]:
    """Put entries that match about as well as the best one first, those of narrower tiers before those of broader ones.

    So a cut takes the broadest ones away first, although decay differs by tier. Inside a tier the order stays.
    """
    places = {tier.name: n for n, tier in enumerate(spec.tiers)}
    near = [id for id, share in zip(ids, matches.nearness(ids), strict=True) if share >= spec.retrieval.widening]
    leading = sorted(near, key=lambda id: places[candidates[id].scope.tier])
    among = set(near)
    return [*leading, *(id for id in ids if id not in among)]


def drop_repeats(
    hits: Sequence[Hit], vectors: Mapping[str, Vector], threshold: float, wanted: int, sensitive: bool = True
) -> tuple[list[Hit], dict[str, Verdict]]:
    """Fold hits that say the same under one of them, until enough are kept. Also return the reasons.

    It is the best of them, or a more trusted one in its place. Unless `sensitive` is set, entries with secrets are
    dropped. Damaged entries always are.
    """
    near = _near(vectors, threshold)
    kept: dict[str, Hit] = {}
    by_key: dict[str, str] = {}
    dropped: dict[str, Verdict] = {}
    for position in range(len(hits)):
        if len(kept) >= wanted:
            break
        hit = hits[position]
        if hit.entry.sensitive and not sensitive:
            dropped[hit.id] = Verdict("sensitive", "dropped", "it holds a secret, and the read does not ask for these")
            continue
        if hit.entry.damaged:
            dropped[hit.id] = Verdict("damaged", "dropped", "its text is not the one that was written")
            continue
        key = said_key(hit.content, hit.entry.speaker)
        twin = by_key.get(key)
        if twin is None and (close := near.get(hit.id)):  # the best of those it repeats, whatever their order is there
            twin = next((id for id, one in kept.items() if id in close and _repeats(hit.entry, one.entry)), None)
        if twin is None:
            kept[hit.id], by_key[key] = hit, hit.id
        elif hit.entry.trust > kept[twin].entry.trust:
            kept = {hit.id if id == twin else id: one for id, one in kept.items()}
            less = kept[hit.id]
            kept[hit.id] = hit._replace(earlier=(*less.earlier, Earlier(less.entry, Relation.SAME)))
            by_key[key] = by_key[said_key(less.content, less.entry.speaker)] = hit.id
            dropped[twin] = Verdict("dedup", "dropped", "says the same as a more trusted entry", {"kept": hit.id})
        else:
            best = kept[twin]
            kept[twin] = best._replace(earlier=(*best.earlier, Earlier(hit.entry, Relation.SAME)))
            dropped[hit.id] = Verdict("dedup", "dropped", "says the same as a better hit", {"kept": twin})
    return list(kept.values()), dropped


def _repeats(entry: Entry, other: Entry) -> bool:
    if entry.speaker != other.speaker and in_first_person(entry.content):
        return False
    return says_the_same(entry.content, other.content)


def _near(vectors: Mapping[str, Vector], threshold: float) -> dict[str, list[str]]:
    """For each id, the ids whose cosine with it is above the threshold."""
    if len(vectors) < 2:
        return {}
    ids, rows = list(vectors), np.array(list(vectors.values()))
    close = rows @ rows.T > threshold
    found: dict[str, list[str]] = {}
    if np.count_nonzero(close) <= len(ids):  # each only with itself, as mostly
        return found
    for a, b in np.argwhere(np.triu(close, 1)).tolist():
        found.setdefault(ids[a], []).append(ids[b])
        found.setdefault(ids[b], []).append(ids[a])
    return found


def moved_on(entry: Entry, documents: Mapping[str, Document], rule: Lifecycle) -> bool:
    """Whether an entry should be checked: a document of it is gone, or has changed since anybody checked.

    Where the spec keeps such entries as they are, nobody is asked. A meta-semantic fact has held through versions
    already: another one asks for no check.
    """
    for link in entry.links:
        document = documents.get(link.source)
        gone = document is None or document.removed
        changed = document is not None and not gone and not (entry.meta or link.vouched(document.version))
        if (gone and rule.source_vanished != "keep") or (changed and rule.source_changed != "keep"):
            return True
    return False


def provenance(entry: Entry, documents: Mapping[str, Document]) -> tuple[Provenance, ...]:
    """The sources of an entry as they are now. Their properties are read through the link, never from the entry."""
    shown = []
    for link in entry.links:
        document = documents.get(link.source)
        if document is None or document.removed:
            shown.append(Provenance(link.source, link.locator, "vanished"))
            continue
        status = "current" if link.vouched(document.version) else "changed"
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
