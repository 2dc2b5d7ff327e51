"""The rows that search asks for, from PostgreSQL: statements and decoding, and few decisions.

Words are searched by our own postings, scored in this process as for every backend. Vectors are compared by pgvector:
all of a partition, or by the index that a large partition has of its own.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cache
from typing import Any

from lukasa.index import bm25, keyword
from lukasa.index.ann import Floats, Ints, normalised
from lukasa.index.cache import AddedRow, LogPosition, ReadCache
from lukasa.index.matches import VectorMatch
from lukasa.index.postings import Postings, best_rows
from lukasa.index.rows import AdjacentRow, CandidateRow, MatchedRow, Partition
from lukasa.index.vectors import Searched
from lukasa.model.arrays import at_hand, np
from lukasa.model.candidate import Candidate
from lukasa.model.entry import Access, Entry, Scope
from lukasa.model.selection import Filters, Selection
from lukasa.model.timestamps import micros
from lukasa.ports import EmbeddingModel, Vector
from lukasa.storage import row_rules
from lukasa.storage.entry_codec import KINDS, anchor_text, candidates_of, checked_entry, scope_of
from lukasa.storage.postgres import sql
from lukasa.storage.postgres.execute import VECTOR_HEADER, Handle, PgVector, Row, vector_bytes

_OLDER_THAN_ALL, _NEWER_THAN_ALL = -(2**63), (2**63 - 1, 2**63 - 1)
_PARTITION, _CONVERSATION, _ROWID = 1, 7, 17  # positions among the columns of a candidate
_FEW = 4_000  # admitted rows of an indexed partition up to which each of them is compared
_FEW_QUERIES, _MOST_BROUGHT = 3, 20_000  # queries beyond which the vectors are brought here, if they are not more
_TOGETHER = 64  # queries that are multiplied together
_PAGE = 1_000  # rows whose filters are asked together


class PostgresSearchRows:
    """Implements `index.rows.SearchRows`."""

    __slots__ = ("cache", "db", "number")

    def __init__(self, db: Handle) -> None:
        self.db = db
        self.cache: ReadCache = db.cache

    # Changes

    def snapshot_number(self) -> int:
        return self.db.head.commits

    def log_position(self) -> LogPosition:
        head = self.db.head
        return LogPosition(head.seq, head.entries, head.rebuilt)

    def rows_since(self, row: int) -> list[AddedRow]:
        return [AddedRow(*found) for found in self.db.all(sql.ROWS_SINCE, row)]

    def entries_changed_since(self, seq: int) -> set[str]:
        return {subject for (subject,) in self.db.all(sql.SUBJECTS_SINCE, seq)}

    def records_changed_since(self, seq: int) -> bool:
        return bool(self.db.value(sql.RECORDS_CHANGED_SINCE, seq, self.db.head.seq - seq))

    # Partitions and words

    def partitions(self, selection: Selection) -> list[Partition]:
        scopes = list(dict.fromkeys(selection.scopes))
        asked = [scope.tier for scope in scopes], [anchor_text(scope) for scope in scopes]
        visibilities = sorted(map(str, selection.visibilities))
        if selection.owners is None:
            found = self.db.all(sql.PARTITIONS_OF_ALL, *asked, visibilities)
        else:
            owners = list(dict.fromkeys(selection.owners))
            found = self.db.all(sql.PARTITIONS_OF_OWNERS, owners, *asked, visibilities)
        return [Partition(*row) for row in found]  # with the number of its indexes: nothing here counts removals

    def frequencies(self, words: Sequence[str]) -> Iterable[tuple[str, int]]:
        return self.db.all(sql.FREQUENCIES, list(words))

    def postings(self, words: Sequence[str]) -> Iterable[tuple[str, Postings]]:
        blocks: dict[str, list[bytes]] = {word: [] for word in words}
        for word, rows in self.db.all(sql.POSTINGS, list(words)):
            blocks[word].append(rows)
        return [(word, Postings(_numbers(parts))) for word, parts in blocks.items()]

    def newest_postings(self, word: str, limit: int) -> Sequence[int]:
        blocks = [rows for (rows,) in self.db.all(sql.NEWEST_BLOCKS, word, limit)]
        return sorted(set(_numbers(blocks)), reverse=True)[:limit]

    def pending_rows(self) -> Iterable[tuple[int, int, str]]:
        return self.db.all(sql.PENDING, self.db.head.fed)

    def filtered_rows(self, words: Sequence[str], pending: Collection[int], filters: Filters, limit: int) -> list[int]:
        found = sorted(self._admitted_rows(pending, filters), reverse=True) if pending else []
        held = dict(self.postings(words))
        weights = {word: bm25.idf(self.db.head.entries, len(rows)) for word, rows in held.items() if rows}
        best = best_rows({word: [held[word]] for word in weights}, weights, sum(len(held[word]) for word in weights))
        for start in range(0, len(best), _PAGE):
            if len(found) >= limit:
                break
            page = best[start : start + _PAGE]
            admitted = set(self._admitted_rows(page, filters))
            found += [row for row in page if row in admitted]
        return found[:limit]

    def _admitted_rows(self, rows: Iterable[int], filters: Filters) -> list[int]:
        clause, values = conditions(filters)
        return [row for (row,) in self.db.all(sql.ROWS_ADMITTED + clause, list(rows), *values)]

    def lengths(self, rows: Sequence[int]) -> Mapping[int, int]:
        return dict(self.db.all(sql.LENGTHS, list(rows)))

    def trusts(self, rows: Sequence[int]) -> Iterable[tuple[int, int]]:
        return self.db.all(sql.TRUSTS, list(rows))

    def matched(self, rows: Sequence[int]) -> dict[int, MatchedRow]:
        found = self.db.all(sql.MATCHED, list(rows))
        candidates = self._candidates(found)
        return {row[_ROWID]: MatchedRow(one, row[-2], row[-1]) for row, one in zip(found, candidates, strict=True)}

    # Entries

    def versions_and_rows(self, ids: Sequence[str]) -> Iterable[tuple[str, int, int]]:
        return self.db.all(sql.STAMPS, list(ids))

    def candidate_rows(self, ids: Sequence[str], filters: Filters) -> list[CandidateRow]:
        clause, values = conditions(filters)
        found = self.db.all(sql.CARDS + clause, list(ids), *values)
        return [CandidateRow(one, row[_ROWID]) for row, one in zip(found, self._candidates(found), strict=True)]

    def contents(self, ids: Sequence[str]) -> Iterable[tuple[str, str]]:
        return self.db.all(sql.TEXTS, list(ids))

    def adjacent_rows(self, rows: Sequence[int], reach: int) -> list[AdjacentRow]:
        """Ask for all numbers at once, and pair them here: the planner makes a poor plan of a join by distance."""
        numbers = {number for row in rows for number in range(row - reach, row + reach + 1)}
        found = self.db.all(sql.BESIDE, sorted(numbers))
        made = dict(zip([row[_ROWID] for row in found], self._candidates(found), strict=True))
        rooms = {row[_ROWID]: (row[_PARTITION], row[_CONVERSATION]) for row in found}
        return [
            AdjacentRow(made[near], near, made[row].id)
            for row in rows
            if row in made
            for near in range(row - reach, row + reach + 1)
            if rooms.get(near) == rooms[row]
        ]

    def _candidates(self, rows: Sequence[Row]) -> list[Candidate]:
        scopes: dict[int, Scope] = self.cache.entries("scopes", self)
        unknown = {row[1] for row in rows} - scopes.keys()
        if unknown:
            found = self.db.all(sql.SCOPES, list(unknown))
            scopes.update((partition, scope_of(tier, anchor)) for partition, tier, anchor in found)
        return candidates_of(rows, scopes)

    # Vectors

    def model_number(self, model: EmbeddingModel) -> int | None:
        numbers = self.cache.fixed("numbers")
        number: int | None = numbers.get(model)
        if number is None:
            number = self.db.value(sql.MODEL_ID, model.name, model.dimensions, model.digest)
            if number is not None:
                numbers[model] = number
        return number

    def entry_vectors(self) -> Any:
        """What `VectorSearch` asks: these rows, since no vectors are held here."""
        return self

    def admitted(self, partition: int, filters: Filters) -> Iterable[int]:
        clause, values = conditions(filters)
        return [row for (row,) in self.db.all(sql.ADMITTED + clause, partition, *values)]

    def vectors_of(self, rows: Sequence[int], model: int) -> list[tuple[int, bytes]]:
        found = self.db.all(sql.VECTORS, list(rows), model)
        return [(row, vector_bytes(vector)) for row, vector in found]

    # Neighbours of new texts

    def same_text(self, scope: Scope, owner: str, keys: Sequence[str]) -> Iterable[tuple[str, int]]:
        where = (scope.tier, anchor_text(scope), owner)
        return self.db.all(sql.SAME_TEXT, *where, list(keys))

    def newest_with_all(self, words: Sequence[str], limit: int) -> list[int]:
        if len(words) == 1:
            return list(self.newest_postings(words[0], limit))
        held = [set(_numbers([rows])) if rows else set[int]() for rows in self._joined(words)]
        return sorted(set.intersection(*held), reverse=True)[:limit]

    def _joined(self, words: Sequence[str]) -> list[bytes]:
        blocks = dict.fromkeys(words, b"")
        for word, rows in self.db.all(sql.POSTINGS, list(blocks)):
            blocks[word] += rows
        return list(blocks.values())

    def pending_in(self, partition: int) -> list[tuple[int, str]]:
        return self.db.all(sql.PENDING_IN, self.db.head.fed, partition)

    def terms_of(self, rows: Sequence[int]) -> list[tuple[int, str]]:
        found: dict[int, str] = dict(self.db.all(sql.TERMS_OF_ROWS, list(rows))) if rows else {}
        return [(row, found[row]) for row in rows if row in found]

    def with_subject(self, partition: int, subjects: Sequence[int], limit: int) -> Iterable[tuple[int, int]]:
        return self.db.all(sql.OF_SUBJECT, partition, limit, list(subjects))

    def with_role(self, partition: int, roles: Sequence[int], limit: int) -> Iterable[tuple[int, int]]:
        return self.db.all(sql.IN_ROLE, partition, limit, list(roles))

    def entries_by_row(self, rows: Collection[int]) -> dict[int, Entry]:
        entries = {row[-1]: checked_entry(row) for row in self.db.all(sql.NUMBERED_ENTRIES, list(rows))}
        return {row: entry for row, entry in entries.items() if not entry.damaged}


def _numbers(blocks: Sequence[bytes]) -> list[int]:
    """The row numbers of blocks of postings in ascending order, each as often as it is there."""
    data = b"".join(blocks)
    if at_hand():
        found: list[int] = np.sort(np.frombuffer(data, "<i4"), kind="stable").tolist()
        return found
    return sorted(int.from_bytes(data[at : at + 4], "little") for at in range(0, len(data), 4))


# Filters


_LISTS = ("kinds", "categories", "tags", "sources", "curators", "states", "lifetimes", "conversations")


def conditions(filters: Filters) -> tuple[str, list[Any]]:
    """The clause of the conditions that are asked, and their values."""
    given: dict[str, Any] = {name: sorted(map(str, getattr(filters, name))) for name in _LISTS}
    given |= {"since": filters.since and micros(filters.since), "until": filters.until and micros(filters.until)}
    given |= {"min_importance": filters.min_importance}
    given |= {"min_trust": None if filters.min_trust is None else int(filters.min_trust)}
    given |= {"filed": None if filters.filed is None else int(filters.filed)}
    asked = tuple(name for name in sql.FILTERS if given[name] not in (None, []))
    return _clause(asked), [given[name] for name in asked]


@cache
def _clause(asked: tuple[str, ...]) -> str:
    return "".join(f" AND {sql.FILTERS[name]}" for name in asked)


# Vectors


def bound_vector(vector: Vector) -> PgVector:
    return PgVector(np.ascontiguousarray(vector, dtype="<f4").tobytes())


def cosine(distance: float) -> float:
    """The cosine of a distance; 0 for a vector of length zero, which has no direction."""
    return 0.0 if math.isnan(distance) else min(1.0, max(-1.0, 1.0 - distance))


class VectorSearch:
    """Vector search by pgvector, in the form in which the neighbour search and reads ask for it."""

    def nearest_of_each(
        self, rows: PostgresSearchRows, where: Searched, queries: Sequence[Floats], limit: int
    ) -> list[list[tuple[float, int]]]:
        """The best of each query as (cosine, entry row); among equals the newer entry.

        A batch of new texts asks for many: then the vectors are brought here once, instead of compared there each time.
        """
        if len(queries) > _FEW_QUERIES and where.size <= _MOST_BROUGHT:
            return _of_matrix(*_matrix(rows.db, where), np.array(queries, dtype=np.float32), limit)
        one = Partition(where.partition, where.size, 0, where.removals)
        return [best_of(rows.db, [one], where.model, where.dimensions, query, limit) for query in queries]

    def recent(self, rows: PostgresSearchRows, model: int) -> dict[int, Floats]:
        return {}

    def in_step(self, rows: PostgresSearchRows, keys: object) -> Sequence[Any]:
        return ()


def _matrix(db: Handle, where: Searched) -> tuple[Ints, Floats]:
    """All vectors of a partition at length one, each with its entry row."""
    found = db.all(sql.VECTORS_IN, where.partition, where.model)
    rows = np.array([row for row, _ in found], dtype=np.int64)
    numbers = np.frombuffer(b"".join([vector[VECTOR_HEADER:] for _, vector in found]), ">f4").astype(np.float32)
    return rows, normalised(numbers.reshape(len(found), where.dimensions))


def _of_matrix(rows: Ints, matrix: Floats, queries: Floats, limit: int) -> list[list[tuple[float, int]]]:
    """The best of each query among the rows of a matrix."""
    found: list[list[tuple[float, int]]] = []
    for start in range(0, len(queries), _TOGETHER):
        for cosines in np.clip(queries[start : start + _TOGETHER] @ matrix.T, -1.0, 1.0):
            some = np.arange(len(rows))
            if limit < len(rows):  # all that are as good as the last one wanted: newer ones win among equals
                some = (cosines >= np.partition(cosines, len(rows) - limit)[len(rows) - limit]).nonzero()[0]
            order = some[np.lexsort((-rows[some], -cosines[some]))][:limit]
            found.append(list(zip(cosines[order].tolist(), rows[order].tolist(), strict=True)))
    return found


def nearest(
    rows: PostgresSearchRows, selection: Selection, model: EmbeddingModel, vector: Vector, limit: int, *, exact: bool
) -> list[VectorMatch]:
    """The best cosines first, among vectors of exactly this model."""
    number = rows.model_number(model)
    partitions = [one for one in keyword.partitions_of(rows, selection) if one.size]
    if number is None or limit < 1 or not partitions:
        return []
    query = np.asarray(vector, dtype=np.float32)
    best = best_of(rows.db, partitions, number, model.dimensions, query, limit, filters=selection.filters, exact=exact)
    found = keyword.matched(rows, [row for _, row in best])
    return [VectorMatch(found[row].candidate, cosine) for cosine, row in best]


def best_of(
    db: Handle,
    partitions: Sequence[Partition],
    model: int,
    dimensions: int,
    query: Vector,
    limit: int,
    *,
    filters: Filters | None = None,
    exact: bool = False,
) -> list[tuple[float, int]]:
    """The best vectors of partitions: large ones by their own index, all others by comparing every vector."""
    asked = bound_vector(query)
    maybe = [] if exact else [one.id for one in partitions if one.removals]
    indexed = {id for (id,) in db.all(sql.INDEXED_PARTITIONS, maybe, model)} if maybe else set()
    clause, values = conditions(filters) if filters else ("", [])
    plain = [one.id for one in partitions if one.id not in indexed]
    found: list[Row] = []
    if plain:
        statement = (sql.NEAREST_ADMITTED if clause else sql.NEAREST) + clause + sql.NEAREST_FIRST
        found += db.all(statement, asked, plain, model, *values, limit)
    for partition in indexed:
        found += _by_index(db, partition, model, dimensions, asked, limit, clause, values)
    best = sorted([(cosine(far), row) for row, far in found], reverse=True)
    return best[:limit]


def _by_index(
    db: Handle,
    partition: int,
    model: int,
    dimensions: int,
    asked: PgVector,
    limit: int,
    clause: str,
    values: Sequence[Any],
) -> list[Row]:
    """Search a large partition by its index. If the filters admit few rows, compare each of these instead."""
    if clause:
        admitted = db.all(sql.ADMITTED + clause + " LIMIT %s", partition, *values, _FEW + 1)
        if len(admitted) <= _FEW:
            return db.all(sql.NEAREST_OF, asked, [row for (row,) in admitted], model, limit)
    statement = sql.nearest_by_index(db.store, partition, model, dimensions, limit, filtered=bool(clause))
    return db.all(statement.replace("{filters}", clause), asked, *values)


# Pages of entries, and access counts


def find(db: Handle, selection: Selection, limit: int, after: str | None, *, damaged: bool = False) -> list[Entry]:
    """A page of entries, newest first, behind the entry `after`; without the damaged ones unless they are asked for."""
    clause, values = conditions(selection.filters)
    since, until = selection.filters.since, selection.filters.until
    before = _NEWER_THAN_ALL if after is None else _position(db, after)
    if until is not None:
        before = min(before, (micros(until), 0))
    oldest = _OLDER_THAN_ALL if since is None else micros(since)
    statement = sql.NEWEST_OF_KIND + clause + sql.NEWEST_FIRST
    partitions = keyword.partitions_of(PostgresSearchRows(db), selection)
    found: list[Entry] = []
    while True:
        newest, wanted = list[Row](), limit - len(found)
        for partition in partitions:
            for kind in selection.filters.kinds or KINDS:
                newest += db.all(statement, partition.id, str(kind), oldest, *before, *values, wanted)
        page = sorted(newest, reverse=True)[:wanted]
        rows = db.all(sql.ENTRIES_IN_ORDER, [row for _, row in page]) if page else []
        found += [entry for entry in map(checked_entry, rows) if damaged or not entry.damaged]
        if len(found) == limit or len(page) < wanted:
            return found
        before = page[-1][0], page[-1][1]


def _position(db: Handle, id: str) -> tuple[int, int]:
    row = db.one(sql.MARK, id)
    if row is None:
        raise row_rules.missing("entry", id)
    return row[0], row[1]


class AccessTable:
    """Implements `storage.access_counts.CountRows`. Answers hold until anybody writes counts of this store."""

    def __init__(self, db: Handle) -> None:
        self._db = db

    def cached(self) -> dict[str, Access | None]:
        held = self._db.cache.fixed("access counts")
        if held.get("written") != self._db.head.written:
            held.clear()
            held["written"] = self._db.head.written
            held["answers"] = {}
        answers: dict[str, Access | None] = held["answers"]
        return answers

    def counts(self, ids: Sequence[str]) -> Iterable[tuple[str, int, int]]:
        return self._db.all(sql.ACCESS, list(ids))

    def add(self, counts: Sequence[tuple[str, int, int]]) -> None:
        if counts:
            columns = [list(column) for column in zip(*counts, strict=True)]
            self._db.run(sql.ADD_ACCESS, *columns)
            self._db.run(sql.ACCESS_WRITTEN)

    def drop(self, ids: Sequence[str]) -> None:
        self._db.run(sql.DROP_ACCESS, list(ids))

    def ids(self) -> list[str]:
        return [id for (id,) in self._db.all(sql.COUNTED)]
