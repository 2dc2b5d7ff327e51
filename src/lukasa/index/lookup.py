"""Entries by id, and the entries adjacent to them, from the cache where it has them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from lukasa.index import keyword
from lukasa.index.rows import CandidateRow, EntryRows
from lukasa.model.candidate import Candidate
from lukasa.model.selection import Filters

ROWS_AROUND = 8  # row numbers around an entry within which adjacent entries are looked for


def versions(rows: EntryRows, ids: Iterable[str]) -> dict[str, tuple[int, int]]:
    """Version and row of the entries that exist. A search that found them has cached these already."""
    asked, answers = list(ids), rows.cache.entries("versions", rows)
    unknown = [id for id in asked if id not in answers]
    if unknown:
        answers.update((id, (version, row)) for id, version, row in rows.versions_and_rows(unknown))
    return {id: answers[id] for id in asked if id in answers}


def candidates(rows: EntryRows, ids: Sequence[str], filters: Filters) -> dict[str, Candidate]:
    """The candidates that exist and that the filters admit, in the order asked."""
    if filters:
        found = {one.candidate.id: one.candidate for one in rows.candidate_rows(ids, filters)}
        return {id: found[id] for id in ids if id in found}
    answers: dict[str, Candidate] = rows.cache.entries("candidates", rows)
    unknown = [id for id in ids if id not in answers]
    if unknown:
        _learn(rows, rows.candidate_rows(unknown, filters))
    return {id: answers[id] for id in ids if id in answers}


def _learn(rows: EntryRows, found: Iterable[CandidateRow]) -> None:
    fresh = list(found)
    rows.cache.entries("candidates", rows).update([(one.id, one) for one, _ in fresh])
    rows.cache.entries("versions", rows).update([(one.id, (one.version, row)) for one, row in fresh])


def texts(rows: EntryRows, ids: Sequence[str]) -> dict[str, str]:
    """The contents of the entries that exist; short ones are cached."""
    answers = rows.cache.entries("texts", rows)
    unknown = [id for id in ids if id not in answers]
    fresh: dict[str, str] = dict(rows.contents(unknown)) if unknown else {}
    answers.update((id, text) for id, text in fresh.items() if len(text) <= keyword.SHORT)
    return {id: text for id in ids if (text := fresh.get(id, answers.get(id))) is not None}


# Adjacent entries


def adjacent(rows: EntryRows, ids: Iterable[str], reach: int) -> dict[str, dict[str, int]]:
    """The entries written just before and after each of these, with how many steps after it each was written.

    Most are right beside it; only where they are not, more rows are looked at.
    """
    asked = list(ids)
    answers = rows.cache.snapshot("adjacent", rows)
    unknown = [id for id in asked if (id, reach) not in answers]
    if unknown:
        found = _around(rows, unknown, reach)
        alone = [id for id in unknown if len(found.get(id, ())) <= 2 * reach]
        found |= _around(rows, alone, ROWS_AROUND) if alone else {}
        answers.update(((id, reach), steps(id, order, reach)) for id, order in found.items())
    return {id: near for id in asked if (near := answers.get((id, reach)))}


def steps(id: str, order: Sequence[str], reach: int) -> dict[str, int]:
    """The neighbours of an id in a list of ids, with their distance in steps; negative for those before it."""
    position = order.index(id)
    first = max(0, position - reach)
    found = {other: step for step, other in enumerate(order[first : position + reach + 1], first - position)}
    del found[id]
    return found


def _around(rows: EntryRows, ids: Sequence[str], reach: int) -> dict[str, list[str]]:
    """By id, the ids of its partition and conversation that are at most `reach` rows away, in order of writing.

    A read asks for the candidates of these next, so they are cached on the way.
    """
    found = rows.adjacent_rows([row for _, row in versions(rows, ids).values()], reach)
    known = rows.cache.entries("candidates", rows)
    _learn(rows, [CandidateRow(one.candidate, one.row) for one in found if one.candidate.id not in known])
    order: dict[str, list[tuple[int, str]]] = {}
    for one in found:
        order.setdefault(one.of, []).append((one.row, one.candidate.id))
    return {id: [name for _, name in sorted(those)] for id, those in order.items()}
