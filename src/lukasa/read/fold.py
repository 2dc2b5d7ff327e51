"""Folding: of hits that concern the same thing, show the one said last, with the earlier ones under it.

Nothing is lost by it: a folded entry stays active, and a question that names what only it says still returns it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from lukasa.model.entry import Entry, Rivalry
from lukasa.model.text import terms
from lukasa.model.values import Relation
from lukasa.read.rank import Earlier, Hit
from lukasa.storage.operations import Verdict

FOLDED = (Relation.UPDATE, Relation.SAME)


class Folded(NamedTuple):
    """The hits that remain, best first, and the reasons of those that do not."""

    hits: list[Hit]
    dropped: dict[str, Verdict]


def fold(
    hits: Sequence[Hit],
    others: Mapping[str, Entry],
    pairs: Iterable[Rivalry],
    asked: Collection[str],
    literals: Collection[str] = (),
) -> Folded:
    """Fold hits by the pairs that concern them. `others` are entries of these pairs that are no hits themselves.

    Of a pair of which both may hold, the later one is lifted above the earlier one, unless it is less trusted. A hit
    with a word of the question that the later one lacks keeps its place. One with a literal of the question (an id, a
    number, a quotation) that the later one lacks stands above it.
    """
    ranked = {hit.id: hit for hit in hits}
    entries = {**others, **{hit.id: hit.entry for hit in hits}}
    known = [pair for pair in pairs if pair.entry in entries and pair.other in entries]
    groups = _groups(entries, [pair for pair in known if pair.relation in FOLDED])
    names = _Naming(asked, literals)
    out: dict[str, Hit] = {}
    dropped: dict[str, Verdict] = {}
    for hit in _lifted(ranked, entries, [pair for pair in known if pair.relation is Relation.CLOSE], names):
        group = groups.get(hit.id)
        if group is None:
            out.setdefault(hit.id, hit)
            continue
        head = entries[group.head]
        if hit.id != head.id and names.literally(hit.entry, head):
            out[hit.id] = hit
        if head.id not in out:
            best = ranked.get(head.id) or hit._replace(entry=head, access=None)
            out[head.id] = best._replace(earlier=(*group.earlier(entries), *best.earlier))
        if hit.id != head.id and hit.id not in out:
            if group.relations[hit.id] is not Relation.SAME and names.only(hit.entry, head):
                out[hit.id] = hit
            else:
                dropped[hit.id] = Verdict("fold", "folded", group.why(hit.id), {"under": head.id})
    return Folded(list(out.values()), dropped)


class _Naming:
    """Compare entries by the words of the question that they hold."""

    def __init__(self, asked: Collection[str], literals: Collection[str]) -> None:
        self._asked, self._literals = frozenset(asked), literals
        self._held: dict[str, frozenset[str]] = {}

    def only(self, entry: Entry, other: Entry) -> bool:
        """Whether the question has a word that is in one entry and not in the other."""
        return bool(self._of(entry) - self._of(other)) or self.literally(entry, other)

    def literally(self, entry: Entry, other: Entry) -> bool:
        """Whether the question has a literal that is in one entry and not in the other."""
        return any(one in entry.content.casefold() and one not in other.content.casefold() for one in self._literals)

    def _of(self, entry: Entry) -> frozenset[str]:
        if entry.id not in self._held:
            self._held[entry.id] = self._asked.intersection(terms(entry.content))
        return self._held[entry.id]


def said(entry: Entry) -> tuple[datetime, datetime]:
    """When somebody last said it, and when it was written."""
    return entry.confirmed_at, entry.created_at


def in_time(pair: Rivalry, entries: Mapping[str, Entry]) -> tuple[Entry, Entry]:
    """The earlier and the later one of a pair: by when they were said; if at once, in the order of writing."""
    older, newer = entries[pair.other], entries[pair.entry]
    return (older, newer) if said(older) <= said(newer) else (newer, older)


def _lifted(
    ranked: Mapping[str, Hit], entries: Mapping[str, Entry], pairs: Iterable[Rivalry], names: _Naming
) -> Iterator[Hit]:
    """The hits in order, each after those that were said later and may replace it."""
    later: dict[str, list[Hit]] = {}
    for pair in pairs:
        old, new = in_time(pair, entries)
        if old.id in ranked and new.trust >= old.trust and not names.only(old, new):
            hit = ranked.get(new.id) or ranked[old.id]._replace(entry=new, access=None, earlier=())
            later.setdefault(old.id, []).append(hit)
    passed: set[str] = set()
    for hit in ranked.values():
        above = sorted(later.get(hit.id, ()), key=lambda one: said(one.entry), reverse=True)
        for one in (*above, hit):
            if one.id not in passed:
                passed.add(one.id)
                yield one


class _Group(NamedTuple):
    """Entries that concern one thing, the one said last at the head."""

    head: str
    relations: dict[str, Relation]

    def earlier(self, entries: Mapping[str, Entry]) -> tuple[Earlier, ...]:
        under = [(entries[id], relation) for id, relation in self.relations.items() if id != self.head]
        return tuple(Earlier(*one) for one in sorted(under, key=lambda one: said(one[0]), reverse=True))

    def why(self, id: str) -> str:
        if self.relations[id] is Relation.SAME:
            return f"entry {self.head} says the same, and shows it under itself"
        return f"it may no longer hold: entry {self.head} was said later, and shows it under itself"


def _groups(entries: Mapping[str, Entry], pairs: Sequence[Rivalry]) -> dict[str, _Group]:
    """By entry, the group that the pairs connect it to."""
    beside: dict[str, dict[str, Relation]] = {}
    for pair in pairs:
        beside.setdefault(pair.entry, {})[pair.other] = pair.relation
        beside.setdefault(pair.other, {})[pair.entry] = pair.relation
    groups: dict[str, _Group] = {}
    for start in beside:
        if start in groups:
            continue
        members = _reached(start, beside)
        head = _head([entries[id] for id in members], [pair for pair in pairs if pair.entry in members], entries)
        group = _Group(head, {id: beside[head].get(id, Relation.UPDATE) for id in members})
        groups |= dict.fromkeys(members, group)
    return groups


def _head(members: Sequence[Entry], pairs: Sequence[Rivalry], entries: Mapping[str, Entry]) -> str:
    """The most trusted one; of those with equal trust, the one said last."""
    most = max((entry.trust, *said(entry)) for entry in members)
    tied = [entry.id for entry in members if (entry.trust, *said(entry)) == most]
    passed = {in_time(pair, entries)[0].id for pair in pairs if pair.entry in tied and pair.other in tied}
    return next((id for id in tied if id not in passed), tied[-1])


def _reached(start: str, beside: Mapping[str, Mapping[str, Relation]]) -> list[str]:
    found, waiting = [start], [start]
    while waiting:
        new = [id for id in beside[waiting.pop()] if id not in found]
        found += new
        waiting += new
    return found
