"""Verify a store in PostgreSQL against itself, and rebuild its derived state."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from lukasa.index.postings import tokens
from lukasa.model.arrays import np
from lukasa.model.events import Event, chain_faults
from lukasa.model.text import TOKENIZER_VERSION
from lukasa.storage import tables
from lukasa.storage.port import Finding
from lukasa.storage.postgres import sql
from lukasa.storage.postgres.execute import Handle
from lukasa.storage.postgres.postgres_rows import PostgresRows


def check(db: Handle, secret: bytes) -> list[Finding]:
    rows = PostgresRows(db, {})
    found = [
        Finding("chain", "events", fault, derived=False) for fault in chain_faults(_events(rows), head=rows.head())
    ]
    expected: Counter[tuple[str, int]] = Counter()
    for row, partition, terms in db.all(sql.PENDING, 0):
        if row <= db.head.fed:
            expected.update((word, row) for word in tokens(partition, terms.split()).split())
    actual: Counter[tuple[str, int]] = Counter()
    for word, first, last, holders, data in db.all(sql.ALL_POSTINGS):
        held = np.frombuffer(data, "<i4").tolist()
        actual.update((word, row) for row in held)
        if len(set(held)) != holders or min(held) < first or max(held) > last:
            found.append(Finding("index", word, "a block has wrong counts", derived=True))
    if expected != actual:
        found.append(
            Finding("index", "postings", f"differ: {(expected - actual)} {(actual - expected)}"[:300], derived=True)
        )
    for id, *counts in db.all(sql.PARTITION_COUNTS):
        if counts[:3] != counts[3:]:
            found.append(Finding("partition", str(id), f"counts {counts[:3]} should be {counts[3:]}", derived=True))
    return found


def _events(rows: PostgresRows) -> Iterator[Event]:
    yield from rows.select(tables.EVENTS_AFTER, 0, None)


def rebuild(rows: PostgresRows, secret: bytes) -> None:
    rows.db.run(sql.EMPTY_POSTINGS)
    rows.fed = 0
    rows.index_pending()
    rows.db.run(sql.RECOUNT)
    rows.rebuild_utterances()
    rows.db.run(sql.SET_TOKENIZER, TOKENIZER_VERSION)
