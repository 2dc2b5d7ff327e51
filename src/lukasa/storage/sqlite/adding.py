"""New entries of a transaction, all at once: most of what one insert costs is asked and said for many together."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from operator import itemgetter
from os import urandom
from typing import Any, NamedTuple

import apsw

from lukasa.index.rows import VectorKey
from lukasa.model.entry import Entry
from lukasa.model.errors import Conflict
from lukasa.model.timestamps import micros
from lukasa.storage import rules
from lukasa.storage.operations import SaveEntry, Transaction
from lukasa.storage.sqlite import pending, sql
from lukasa.storage.sqlite.numbers import Numbers
from lukasa.storage.sqlite.query import all_rows, one_value, rows_of_each
from lukasa.storage.sqlite.rows import entry_columns, snapshot, vector_checksum

_SALT = 16
_FIRST_MARK, _BETWEEN_MARKS = 1_000, 1.25
MANY, _SHARE = 500, 0.02  # entries that one process adds, and their share of all, from which on it leaves an order
_in_order = itemgetter(*sql.ENTRY_COLUMNS)


class _New(NamedTuple):
    """An entry on its way in: the operation, the entry as it will be kept, and the columns of its row."""

    operation: SaveEntry
    entry: Entry
    columns: dict[str, Any]


def add(
    db: apsw.Connection,
    numbers: Numbers,
    transaction: Transaction,
    saves: Sequence[SaveEntry],
    grown: Counter[VectorKey],
) -> list[bytes]:
    """Insert entries that must not be there yet; the answers are the salts for the commitments in their events. Where
    vectors were added, and how many, is put into `grown`."""
    blobs = iter(rules.checked_vectors([s.embedding for s in saves if s.embedding is not None]))
    entries = [_first_version(save.entry) for save in saves]
    before, fed = _last_row(db, entries)
    news = _with_columns(numbers, saves, entries, before)
    _insert(db, news)
    actor, at = str(transaction.actor), micros(transaction.at)
    db.executemany(sql.NEW_VERSION, [_version(new, actor, at) for new in news])
    _feed(db, news, before, fed)
    vectors = [_vector(numbers, new, next(blobs)) for new in news if new.operation.embedding is not None]
    db.executemany(sql.NEW_VECTOR, vectors)
    grown.update([(partition, model) for _, model, partition, *_ in vectors])
    _grow(db, news)
    return [new.columns["salt"] for new in news]


def _feed(db: apsw.Connection, news: Sequence[_New], before: int, fed: int) -> None:
    """Have words put into the index where enough rows or a long one is without, and the index in order where it has
    grown much."""
    last = before + len(news)
    if last - fed >= pending.STEP or max([new.columns["term_count"] for new in news]) > pending.LONG:
        pending.index_pending(db, last)
    if outgrown(before, last):
        db.execute(sql.TIDY_INDEX)


def outgrown(before: int, after: int) -> bool:
    """Whether entries have come past a mark by which the index of words is put in order.

    It grows in segments, and each word is looked for in every one of them. From mark to mark there are a quarter more
    entries, so that putting them all in order costs each of them little.
    """
    return after >= _FIRST_MARK and _marks(before) < _marks(after)


def tidy(db: apsw.Connection, added: int) -> None:
    """Put the index of words in order behind one who added so many entries, if these are a good part of all."""
    if added >= max(MANY, _SHARE * one_value(db, sql.LAST_ROW)):
        db.execute(sql.TIDY_INDEX)


def _marks(count: int) -> int:
    return math.floor(math.log(count / _FIRST_MARK, _BETWEEN_MARKS)) if count >= _FIRST_MARK else -1


def _first_version(entry: Entry) -> Entry:
    return entry if entry.version == 1 and not entry.metadata else rules.stored(entry, 1)


def _last_row(db: apsw.Connection, entries: Sequence[Entry]) -> tuple[int, int]:
    """After which entries of these ids may come, and up to which words are in the index; refused if one of the ids was
    used before."""
    ids = [entry.id for entry in entries]
    for used, retired in rows_of_each(db, sql.USED, [(id,) for id in ids]):
        if retired:
            raise Conflict(f"id {used} was used before", fix="make a new id")
        rules.check_version("entry", used, 1, 0)
    if len(set(ids)) < len(ids):
        rules.check_version("entry", next(id for place, id in enumerate(ids) if id in ids[:place]), 1, 0)
    ((last, fed),) = all_rows(db, sql.LAST_ROW_EVER)
    return last, fed


def _with_columns(numbers: Numbers, saves: Sequence[SaveEntry], entries: Sequence[Entry], row: int) -> list[_New]:
    salts = urandom(_SALT * len(entries))
    news = []
    for place, (save, entry) in enumerate(zip(saves, entries, strict=True)):
        columns = entry_columns(entry)
        columns["rowid"] = row + place + 1
        columns["scope_id"], columns["partition_id"] = numbers.partition(entry)
        columns["content_version"] = 1
        columns["salt"] = salts[_SALT * place : _SALT * (place + 1)]
        news.append(_New(save, entry, columns))
    return news


def _insert(db: apsw.Connection, news: Sequence[_New]) -> None:
    try:
        db.executemany(sql.NEW_ENTRY, [_in_order(new.columns) for new in news])
    except apsw.ConstraintError:
        for new in news:
            refuse_twin(db, new.entry, new.columns)
        raise


def refuse_twin(db: apsw.Connection, entry: Entry, columns: dict[str, Any]) -> None:
    """What a scope may hold only once for each owner."""
    if entry.state in rules.TWIN_STATES:
        key = (columns["scope_id"], entry.owner, columns["content_key"], entry.id)
        if one_value(db, sql.TWIN_ID, key) is not None:
            raise rules.twin_conflict(entry)


def _version(new: _New, actor: str, at: int) -> tuple[Any, ...]:
    operation, entry, columns = new
    return columns["rowid"], 1, operation.action, operation.cause, actor, at, snapshot(entry, columns)


def _vector(numbers: Numbers, new: _New, blob: bytes) -> tuple[Any, ...]:
    assert new.operation.embedding is not None
    columns = new.columns
    model = numbers.model(new.operation.embedding.model)
    checksum = vector_checksum(columns["content_hash"], blob)
    return columns["rowid"], model, columns["partition_id"], checksum, blob


def _grow(db: apsw.Connection, news: Sequence[_New]) -> None:
    grown: dict[int, list[int]] = {}
    for operation, _, columns in news:
        counts = grown.setdefault(columns["partition_id"], [0, 0, 0])
        counts[0] += 1
        counts[1] += columns["term_count"]
        counts[2] += operation.embedding is not None
    db.executemany(sql.GROWN, [(*counts, partition) for partition, counts in grown.items()])
