"""Bringing what was told of one state of a database up to a later one.

Mostly entries have come since, and nothing has happened to those that were there: then all that was told of these still
holds, and the newcomers' words are added to what is known of the index. The log says whether it is so, for each change
of an entry has its event: one about anything but a newcomer is enough to forget all.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

import apsw

from lukasa.storage import rules
from lukasa.storage.sqlite import sql
from lukasa.storage.sqlite.postings import Postings
from lukasa.storage.sqlite.query import all_rows
from lukasa.storage.sqlite.rows import tokens

_MOST = 64  # events that are looked through: after more of them it is sooner asked anew

Sorts: TypeAlias = "dict[str, dict[Any, Any]]"
# Of what was there, by its id or number; and of words.
LASTING = frozenset({"cards", "matched", "stamps", "texts", "scopes", "postings", "frequencies"})


class Mark(NamedTuple):
    """How far a state has come: the last event, the last row of an entry, and how often the index was made anew."""

    seq: int
    row: int
    rebuilt: int


class Newcomer(NamedTuple):
    id: str
    row: int
    partition: int
    terms: str


def mark(db: apsw.Connection) -> Mark:
    ((seq, row, rebuilt),) = all_rows(db, sql.STANDING_AT)
    return Mark(seq, row, rebuilt)


def followed(db: apsw.Connection, told: Sorts, before: Mark, now: Mark) -> Sorts:
    """What still holds of what was told before."""
    come = _newcomers(db, before, now)
    if come is None:
        return {}
    if come:
        _grow(told.get("postings", {}), told.get("frequencies", {}), come)
    return told


def _newcomers(db: apsw.Connection, before: Mark, now: Mark) -> list[Newcomer] | None:
    """The entries that came in between; None if anything else happened to entries."""
    if now.rebuilt != before.rebuilt or now.seq - before.seq > _MOST:
        return None
    if now.seq == before.seq:
        return []
    come = [Newcomer(*row) for row in all_rows(db, sql.ROWS_SINCE, (before.row,))]
    about = {subject for (subject,) in all_rows(db, sql.SUBJECTS_SINCE, (before.seq,))}
    return come if about <= {newcomer.id for newcomer in come} else None


def _grow(postings: dict[str, Postings], frequencies: dict[str, int], come: Sequence[Newcomer]) -> None:
    """With the words of newcomers, as the index has them since. What is not whole is asked for again."""
    more: dict[str, list[int]] = {}
    for newcomer in come:
        for word, count in Counter(tokens(newcomer.partition, newcomer.terms.split()).split()).items():
            if word in frequencies:
                frequencies[word] += 1
            if word in postings:
                more.setdefault(word, []).extend([newcomer.row] * count)
    for word, rows in more.items():
        held = postings.pop(word)
        if held.whole and len(held) + len(rows) <= rules.POSTING_BUDGET:
            postings[word] = held.plus(rows)
