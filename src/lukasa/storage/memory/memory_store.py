"""A store in plain dictionaries: the reference that says what the others must do. It keeps nothing on disk."""

from __future__ import annotations

import secrets
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TypeVar

from msgspec.structs import replace

from lukasa.index import bm25, lookup, texts
from lukasa.index.matches import KeywordMatches, Neighbour, NeighbourQuery, NewText, VectorMatch
from lukasa.model.arrays import np
from lukasa.model.candidate import Candidate, candidate_of
from lukasa.model.corpus import NO_PASSAGE_FILTERS, FoundPassage, Passage, PassageFilters
from lukasa.model.disclosure import Disclosure
from lukasa.model.entry import Access, Derivation, Entry, Scope, Version
from lukasa.model.erasure import Words
from lukasa.model.events import chain_faults
from lukasa.model.item import ItemAddress
from lukasa.model.selection import NO_FILTERS, Filters, Selection
from lukasa.model.statements import content_words, role, subject
from lukasa.model.telemetry import MOST_DEBUG, DayTally, Tally, TelemetryEvent, TelemetryQuery
from lukasa.model.text import said_key
from lukasa.model.timestamps import micros
from lukasa.model.values import VISIBILITY, Kind, State, Visibility
from lukasa.ports import EmbeddingModel, Vector
from lukasa.storage import removal, row_rules, tables
from lukasa.storage.backend import Rows
from lukasa.storage.commit import commit
from lukasa.storage.memory import memory_items, memory_texts
from lukasa.storage.memory.memory_rows import Contents, MemoryRows
from lukasa.storage.operations import Transaction
from lukasa.storage.port import (
    Arrivals,
    Census,
    Finding,
    FoundItem,
    FoundUtterance,
    ItemQuery,
    Share,
    Store,
    Unembedded,
    UnembeddedItem,
    UnembeddedPassage,
)
from lukasa.storage.reads import PlainReads

Value = TypeVar("Value")


class MemoryStore(PlainReads):
    """Implements `lukasa.storage.port.Store`."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._state = Contents()
        self._access: dict[str, Access] = {}
        self._secret = secrets.token_bytes(32)
        self._created_at = datetime.now(UTC).isoformat()

    # Writing

    def apply(self, transaction: Transaction) -> None:
        with row_rules.only_encodable(), self._writing() as rows:
            commit(rows, transaction, self._secret)
            self._access = {id: access for id, access in self._access.items() if id in rows.state.entries}

    @contextmanager
    def _reading(self) -> Iterator[MemoryRows]:
        yield MemoryRows(self._state)

    @contextmanager
    def _writing(self) -> Iterator[MemoryRows]:
        with self._lock:
            state = self._state.snapshot()
            yield MemoryRows(state)
            self._state = state

    def _change(self, change: Callable[[Rows], Value], *, alone: bool = True) -> Value:
        with self._writing() as rows:
            return change(rows)

    def report(self, point: TelemetryEvent) -> None:
        with self._writing() as rows:
            rows.insert(tables.TELEMETRY, [point])
            rows.prune_debug(MOST_DEBUG)

    def disclose(self, given: Disclosure) -> None:
        with self._writing() as rows:
            rows.insert(tables.DISCLOSURES, [given])

    def touch(self, ids: Sequence[str], at: datetime) -> Mapping[str, Access]:
        with self._lock:
            for id in row_rules.unique(ids):
                if id in self._state.entries:
                    before = self._access.get(id)
                    self._access[id] = Access(before.count + 1 if before else 1, micros(at))
            return self.access(ids)

    # Entries

    @contextmanager
    def snapshot(self) -> Iterator[Store]:
        with self._lock:
            yield self

    def candidates(self, ids: Iterable[str], filters: Filters = NO_FILTERS) -> dict[str, Candidate]:
        found = self._state.entries
        return {id: candidate_of(found[id]) for id in ids if id in found and filters.admits(found[id])}

    def texts(self, ids: Iterable[str]) -> dict[str, str]:
        found = self._state.entries
        return {id: found[id].content for id in ids if id in found}

    def entries(self, ids: Iterable[str], *, damaged: bool = False) -> dict[str, Entry]:
        found = self._state.entries
        return {id: _copy(found[id]) for id in ids if id in found}

    def size(self, selection: Selection) -> int:
        return len(self._selected(self._state, selection))

    def find(
        self, selection: Selection, *, limit: int = 100, after: str | None = None, damaged: bool = False
    ) -> list[Entry]:
        state = self._state
        order = {id: place for place, id in enumerate(state.entries)}
        rows = [e for e in self._selected(state, selection) if selection.filters.admits(e)]
        rows.sort(key=lambda e: (e.created_at, order[e.id]), reverse=True)
        if after is not None:
            last = state.entries.get(after)
            if last is None:
                raise row_rules.missing("entry", after)
            mark = (last.created_at, order[after])
            rows = [e for e in rows if (e.created_at, order[e.id]) < mark]
        return [_copy(e) for e in rows[:limit]]

    def twin(self, scope: Scope, owner: str, key: str) -> Entry | None:
        state = self._state
        for entry in state.entries.values():
            if entry.state in row_rules.TWIN_STATES and state.twin_keys[entry.id] == (scope, owner, key):
                return _copy(entry)
        return None

    def replaced_by(self, id: str) -> list[Entry]:
        return [_copy(e) for e in self._state.entries.values() if e.superseded_by == id]

    def withdrawn(self, *, limit: int) -> list[Derivation]:
        entries, left = self._state.entries, _LEFT_RECALL
        found = []
        for one in reversed(MemoryRows(self._state).select(tables.ALL_DERIVATIONS)):
            source = entries.get(one.source)
            gone = source is not None and source.state in left and source.superseded_by != one.entry
            if VISIBILITY[entries[one.entry].state] is not Visibility.HISTORY and (
                source is None or source.invalid_at is not None or gone
            ):
                found.append(one)
        return found[:limit]

    def versions(self, id: str) -> list[Version]:
        return [replace(v, entry=_copy(v.entry)) for v in self._state.versions.get(id, ())]

    def access(self, ids: Iterable[str]) -> dict[str, Access]:
        return {id: self._access[id] for id in ids if id in self._access}

    def census(self) -> list[Census]:
        counts: dict[Scope, Counter[State]] = {}
        for entry in self._state.entries.values():
            counts.setdefault(entry.scope, Counter())[entry.state] += 1
        return [Census(scope, dict(states)) for scope, states in counts.items()]

    def arrivals(self) -> list[Arrivals]:
        days = Counter((e.created_at.astimezone(UTC).date(), e.scope.tier) for e in self._state.entries.values())
        return [Arrivals(day, tier, count) for (day, tier), count in sorted(days.items())]

    def shares(self, since: datetime) -> list[Share]:
        all_of, new, merged = Counter[tuple[str, ...]](), Counter[tuple[str, ...]](), Counter[tuple[str, ...]]()
        for e in self._state.entries.values():
            key = (e.scope.tier, str(e.state), str(e.kind), e.category.name if e.category else "", e.source)
            all_of[key] += 1
            new[key] += e.created_at >= since
            merged[key] += e.merged_count - 1
        rows = sorted(all_of.items(), key=lambda row: (-row[1], row[0]))
        return [Share(k[0], State(k[1]), Kind(k[2]), k[3], k[4], count, new[k], merged[k]) for k, count in rows]

    # Finding

    def keyword(self, selection: Selection, terms: Sequence[str], limit: int) -> KeywordMatches:
        state = self._state
        rows = self._selected(state, selection)
        counts = {e.id: Counter(state.terms[e.id]) for e in rows}
        total = sum(len(state.terms[e.id]) for e in rows)
        frequencies = tuple(sum(term in c for c in counts.values()) for term in terms)
        weights = [bm25.idf(len(rows), frequency) for frequency in frequencies]
        used = {
            term: weight
            for term, weight in zip(terms, weights, strict=True)
            if selection.filters.only_trust or term in set(bm25.rarest(terms, frequencies))
        }
        admitted = [e.id for e in reversed(rows) if selection.filters.admits(e)]
        strength = {id: sum(w * bm25.saturated(counts[id][t]) for t, w in used.items()) for id in admitted}
        many = bm25.cut_size(limit, len(rows), total)
        some = sorted((id for id in admitted if strength[id]), key=lambda id: -strength[id])[:many]
        if len(some) > limit:
            held = [[counts[id][t] for id in some] for t in used]
            some = bm25.cut_by_length(some, list(used.values()), held, [len(state.terms[id]) for id in some], limit)
        if not some:
            return KeywordMatches(len(rows), total, frequencies)
        lengths, columns = [len(state.terms[id]) for id in some], [[counts[id][t] for id in some] for t in terms]
        candidates = [candidate_of(state.entries[id]) for id in some]
        return KeywordMatches(len(rows), total, frequencies, candidates, lengths, columns)

    def nearest(
        self, selection: Selection, model: EmbeddingModel, vector: Vector, limit: int, *, exact: bool = False
    ) -> list[VectorMatch]:
        state = self._state
        found = [
            VectorMatch(candidate_of(e), _cosine(state.vectors[e.id, model], vector))
            for e in reversed(self._selected(state, selection))
            if (e.id, model) in state.vectors and selection.filters.admits(e)
        ]
        return sorted(found, key=lambda n: -n.cosine)[:limit]

    def neighbours(self, query: NeighbourQuery, texts: Sequence[NewText]) -> list[list[Neighbour]]:
        with row_rules.only_encodable():
            return [self._neighbours(query, text) for text in texts]

    def _neighbours(self, query: NeighbourQuery, text: NewText) -> list[Neighbour]:
        scope, owner, limit = query.scope, query.owner, query.limit
        selection = Selection((scope,), frozenset({Visibility.OPEN}), (owner,))
        cosines: dict[str, float | None] = {}
        if query.model is not None and text.vector is not None:
            cosines.update(self._by_vector(query, selection, text.content, text.vector))
        spoken = [e for e in self._selected(self._state, selection) if e.path is None]
        for handle in (subject, role):
            value = handle(text.content)
            alike = [e for e in reversed(spoken) if value and handle(e.content) == value]
            cosines |= {e.id: None for e in alike[:limit] if e.id not in cosines}
        twin = self.twin(scope, owner, said_key(text.content, text.speaker))
        first = [Neighbour(twin, cosines.pop(twin.id, None))] if twin is not None else []
        return first + [Neighbour(_copy(self._state.entries[id]), cosine) for id, cosine in cosines.items()]

    def _by_vector(
        self, query: NeighbourQuery, selection: Selection, text: str, vector: Vector
    ) -> list[tuple[str, float]]:
        """Entries that hold all content words of a text, and entries that reach the floor; the nearest first."""
        assert query.model is not None
        state, limit, wanted = self._state, query.limit, set(content_words(text))
        holding = [e.id for e in self._selected(state, selection) if wanted and wanted.issubset(state.terms[e.id])]
        ranked = self.nearest(selection, query.model, vector, len(state.entries))
        near = [n.id for n in ranked[:limit] if query.floor is not None and n.cosine >= query.floor]
        kept = {*holding[-limit:], *near}
        return [(n.id, n.cosine) for n in ranked if n.id in kept]

    def adjacent(self, ids: Iterable[str], reach: int) -> dict[str, dict[str, int]]:
        state = self._state
        order = list(state.entries)
        places = {id: place for place, id in enumerate(order)}
        found = {}
        for id in ids:
            if id in places:
                start = max(0, places[id] - lookup.ROWS_AROUND)
                rows = order[start : places[id] + lookup.ROWS_AROUND + 1]
                together = [n for n in rows if row_rules.side_by_side(state.entries[n], state.entries[id])]
                found[id] = lookup.steps(id, together, reach)
        return {id: others for id, others in found.items() if others}

    def vectors(self, ids: Iterable[str], model: EmbeddingModel) -> dict[str, Vector]:
        vectors = self._state.vectors
        return {id: vectors[id, model] for id in ids if (id, model) in vectors}

    def unit_vectors(self, ids: Iterable[str], model: EmbeddingModel) -> dict[str, Vector]:
        return {id: v / (np.linalg.norm(v) or 1.0) for id, v in self.vectors(ids, model).items()}

    def unembedded(self, model: EmbeddingModel, limit: int) -> list[Unembedded]:
        state = self._state
        wanting = (
            Unembedded(e.id, e.version, e.content)
            for e in state.entries.values()
            if (e.id, model) not in state.vectors and VISIBILITY[e.state] is not Visibility.HISTORY
        )
        return list(wanting)[:limit]

    @staticmethod
    def _selected(state: Contents, selection: Selection) -> list[Entry]:
        return [e for e in state.entries.values() if row_rules.sees(selection, e)]

    # Items

    def find_items(self, query: ItemQuery, *, limit: int | None = None, offset: int = 0) -> list[FoundItem]:
        return memory_items.find(self._state.items, query, limit, offset)

    def item_namespaces(
        self, prefix: tuple[str, ...] = (), *, alive_at: datetime | None = None
    ) -> list[tuple[str, ...]]:
        return memory_items.namespaces(self._state.items, prefix, alive_at)

    def expired_items(self, at: datetime, limit: int) -> list[ItemAddress]:
        return memory_items.expired(self._state.items, at, limit)

    def unembedded_items(self, model: EmbeddingModel, indexer: str, limit: int) -> list[UnembeddedItem]:
        return memory_items.unembedded(self._state.items, model, indexer, limit)

    def touch_items(self, places: Sequence[ItemAddress], at: datetime) -> None:
        with self._lock:
            self._state.items = memory_items.touched(self._state.items, places, at)

    # Messages and telemetry

    def find_utterances(self, terms: Sequence[str], limit: int) -> list[FoundUtterance]:
        rows = memory_texts.TextRows(tables.UTTERANCES, MemoryRows(self._state).select(tables.ALL_UTTERANCES))
        return [rows.values[row] for row, _ in texts.search(rows, terms, limit)]

    # Passages

    def find_passages(
        self, terms: Sequence[str], limit: int, filters: PassageFilters = NO_PASSAGE_FILTERS
    ) -> list[FoundPassage]:
        rows = self._passages(filters)
        found = texts.search(rows, terms, limit, filtered=bool(filters))
        return [FoundPassage(rows.values[row], score) for row, score in found]

    def nearest_passages(
        self, model: EmbeddingModel, vector: Vector, limit: int, filters: PassageFilters = NO_PASSAGE_FILTERS
    ) -> list[FoundPassage]:
        rows, vectors = self._passages(filters), self._state.passage_vectors
        keys = {row: (rows.values[row].document, rows.values[row].number, model) for row in rows.admitted(rows.all)}
        found = [(_cosine(vectors[key], vector), row) for row, key in keys.items() if key in vectors]
        return [FoundPassage(rows.values[row], cosine) for cosine, row in sorted(found, reverse=True)[:limit]]

    def unembedded_passages(self, model: EmbeddingModel, limit: int) -> list[UnembeddedPassage]:
        vectors, kept = self._state.passage_vectors, MemoryRows(self._state).select(tables.ALL_PASSAGES)
        wanting = [one for one in kept if (one.document, one.number, model) not in vectors]
        return [UnembeddedPassage(one.document, one.version, one.number, one.indexed) for one in wanting[:limit]]

    def _passages(self, filters: PassageFilters) -> memory_texts.TextRows[Passage]:
        rows = MemoryRows(self._state)
        of = {head.id: head.collection for head in rows.select(tables.HEADS_AFTER, "", None, False)}
        return memory_texts.TextRows(
            tables.PASSAGES,
            rows.select(tables.ALL_PASSAGES),
            lambda one: memory_texts.admits(filters, one, of.get(one.document, "")),
        )

    def points(self, query: TelemetryQuery, *, limit: int = 100) -> list[TelemetryEvent]:
        newest_first = self._telemetry(query)[::-1]
        return sorted(newest_first, key=lambda point: point.at, reverse=True)[:limit]

    def tally(self, query: TelemetryQuery) -> list[Tally]:
        groups: dict[tuple[str, str], list[TelemetryEvent]] = {}
        for point in self._telemetry(query):
            groups.setdefault((point.component, point.action), []).append(point)
        return [_tally(*name, groups[name]) for name in sorted(groups)]

    def tally_days(self, query: TelemetryQuery) -> list[DayTally]:
        found: dict[str, list[TelemetryEvent]] = {}
        for point in self._telemetry(query):
            found.setdefault(f"{point.at.astimezone(UTC):%Y-%m-%d}", []).append(point)
        return [DayTally(day, len(same), sum(not p.success for p in same)) for day, same in sorted(found.items())]

    def _telemetry(self, query: TelemetryQuery) -> list[TelemetryEvent]:
        kept = MemoryRows(self._state).select(tables.ALL_TELEMETRY)
        return [
            point
            for point in kept
            if (query.since is None or point.at >= query.since)
            and (query.until is None or point.at < query.until)
            and query.component in (None, point.component)
            and query.action in (None, point.action)
            and query.level in (None, point.level)
            and query.success in (None, point.success)
        ]

    # Health

    def traces(self, words: Words) -> dict[str, int]:
        with self._reading() as rows:
            kept = vars(rows.state)
            texts = {name: repr(part).encode() for name, part in kept.items() if "vectors" not in name}
        return {name: count for name, text in texts.items() if (count := words.count(text))}

    def purge_files(self, *, large: bool = False) -> bool:
        """There is no file that could hold what is gone."""
        self.forget_purged(removal.FILES.conversation)
        return True

    def secret(self) -> bytes:
        return self._secret

    def check(self) -> list[Finding]:
        faults = chain_faults(self.event_stream(), head=self.head())
        return [Finding("chain", "events", fault, derived=False) for fault in faults]

    def rebuild(self) -> None:
        """Nothing here is derived but the terms, which are computed with the row."""

    def close(self) -> None:
        """Nothing to release: the contents live as long as the object."""


_LEFT_RECALL = frozenset({State.FORGOTTEN, State.SUPERSEDED, State.ARCHIVED, State.INVALIDATED})


def _copy(entry: Entry) -> Entry:
    return row_rules.stored(entry, entry.version)


def _tally(component: str, action: str, points: Sequence[TelemetryEvent]) -> Tally:
    sums: dict[str, float] = {}
    for point in points:
        for key, value in point.metadata.items():
            if isinstance(value, int | float) and not isinstance(value, bool):
                sums[key] = sums.get(key, 0) + value
    durations = [point.duration_ms for point in points]
    failures = sum(not point.success for point in points)
    mean = sum(durations) / len(durations)
    return Tally(component, action, len(points), failures, mean, max(durations), dict(sorted(sums.items())))


def _cosine(a: Vector, b: Vector) -> float:
    norms = float(np.linalg.norm(a)) * float(np.linalg.norm(b))
    return min(1.0, max(-1.0, float(np.dot(a, b)) / norms)) if norms else 0.0
