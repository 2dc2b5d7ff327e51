"""Take revisions of other machines in: keep them, wait for what they were made from, and bring the store to them.

Each step is a transaction that can be repeated, so whoever was killed on the way goes on by absorbing again.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence

from msgspec import Struct, field
from msgspec.structs import replace

from lukasa.model.errors import InvalidInput
from lukasa.model.sync import Erasure, KeptRevision, Revision, Stage, revision_digest
from lukasa.model.values import State, Trust
from lukasa.service.call import retry_on_conflict
from lukasa.service.sync import reading, writing
from lukasa.service.sync.capturing import Desk, capture, captured, indexed
from lukasa.service.sync.known import Known, Seen
from lukasa.service.sync.writing import Change
from lukasa.storage.operations import KeepRevisions, Transaction
from lukasa.storage.port import Store
from lukasa.write import revisions, things
from lukasa.write.things import FIELDS, KINDS, TEXTS, View

_CHUNK = 100  # things of a transaction
_PAGE = 500


class Member(Struct, frozen=True):
    """Whose machine revisions come from, as this machine sees it.

    `own` says that it is another machine of the same person. Of others, `trust` is the most that a statement keeps, and
    preferences and procedures are held until somebody accepts them here.
    """

    name: str
    trust: Trust = Trust.AUTHOR
    own: bool = True


class Absorbed(Struct):
    """What a set of revisions changed here.

    `changes` counts things by kind and by what became of them: new, changed, removed, rival. `known` revisions were
    here already, `waiting` ones lack a parent that has not come yet, and `held` entries wait for a person in the inbox.
    `joined` has workspaces that became part of another one, and `erased` counts revisions that lost their words.
    """

    changes: dict[str, dict[str, int]] = field(default_factory=dict)
    known: int = 0
    waiting: int = 0
    held: int = 0
    erased: int = 0
    joined: dict[str, str] = field(default_factory=dict)

    def add(self, kind: str, outcome: str) -> None:
        """Count one thing."""
        of = self.changes.setdefault(kind, {})
        of[outcome] = of.get(outcome, 0) + 1


def verified(revision: Revision) -> Revision:
    """Return a revision that is what its digest says; InvalidInput if it is not."""
    r = revision
    if r.body is not None:
        said = revision_digest(r.store, r.kind, r.thing, r.parents, r.body, r.at, r.machine, r.salt)
        if said != r.digest:
            raise InvalidInput(
                f"revision {r.digest[:16]} of machine {r.machine[:40]} is not what its digest says",
                fix="fetch the bundle again; if it is the same, the machine that wrote it is not to be trusted",
            )
    return revision


# Keeping


def keep(desk: Desk, given: Sequence[Revision], member: Member, done: Absorbed) -> None:
    """Keep the revisions that are not here yet, without the words that were erased."""
    for start in range(0, len(given), _PAGE):
        some = {one.digest: one for one in given[start : start + _PAGE]}
        here = {one.revision.digest for one in desk.store.revisions("digest", list(some))}
        done.known += len(here)
        new = [one for digest, one in some.items() if digest not in here]
        if new:
            rows = [_row(verified(one), member) for one in new]
            desk.store.apply(Transaction(desk.actor, desk.now, (KeepRevisions(tuple(rows)),)))


def _row(one: Revision, member: Member) -> KeptRevision:
    body = one.body or {}
    kind, spot = one.kind, one.thing
    row = KeptRevision(one, "" if "erased" in body else spot, stage=Stage.WAITING, told=True)
    if not member.own:
        row = replace(row, member=member.name, trust=member.trust)
    if one.body is None:
        return replace(row, erasure=Erasure.TOLD)
    if kind in TEXTS and body.get("text") is not None:
        return indexed(row, things.view_of_text(kind, body, ""))
    if "set" in body and kind != FIELDS:
        return _found_by(row, tuple(body["name"]), body["set"])
    return row


def _found_by(row: KeptRevision, name: tuple[str, ...], fields: dict[str, object]) -> KeptRevision:
    """Return a revision of fields with what it is found by, as far as these fields tell it."""
    try:
        return indexed(row, View(name, fields=fields))
    except KeyError:
        return replace(row, twin=name[1]) if row.revision.kind == "rival" else row


def _at(desk: Desk, *stages: Stage) -> list[KeptRevision]:
    """Return the revisions of a store that are at these stages. The account also keeps some for stores to come."""
    return [one for one in desk.store.revisions("stage", stages) if one.revision.store == desk.store_id]


def promote(desk: Desk) -> int:
    """Let revisions count whose parents are here; return how many still wait. An erasure waits for nothing."""
    waiting = {one.revision.digest: one for one in _at(desk, Stage.WAITING)}
    wanted = {parent for one in waiting.values() for parent in one.revision.parents if parent not in waiting}
    here = {one.revision.digest for one in desk.store.revisions("digest", sorted(wanted))} if wanted else set()
    ready: list[KeptRevision] = []
    for one in revisions.ordered(row.revision for row in waiting.values()):
        if revisions.is_erasure(one) or all(parent in here for parent in one.parents):
            here.add(one.digest)
            ready.append(replace(waiting[one.digest], stage=Stage.READY))
    for start in range(0, len(ready), _PAGE):
        rows = tuple(ready[start : start + _PAGE])
        desk.store.apply(Transaction(desk.actor, desk.now, (KeepRevisions(rows),)))
    return len(waiting) - len(ready)


# Erasures of others


class Going(Struct, frozen=True):
    """What others erased and is still in a store: the entries to remove, and the texts of which nothing may be left."""

    entries: tuple[str, ...]
    texts: tuple[str, ...]
    rows: tuple[KeptRevision, ...]


def going(desk: Desk) -> Going:
    """Return what is erased by revisions that are here, and is here still."""
    store = desk.store
    news = {one.revision.thing for one in _at(desk, Stage.WAITING, Stage.READY)}
    every = store.revisions("thing", sorted(news)) if news else []
    groups = defaultdict[tuple[str, str], list[KeptRevision]](list)
    for row in every:
        groups[row.revision.kind, row.revision.thing].append(row)
    entries, texts, rows = list[str](), list[str](), list[KeptRevision]()
    for (kind, _), group in groups.items():
        gone = revisions.erased(one.revision for one in group)
        for row in group:
            if row.revision.digest in gone and not _erases(row):
                if row.revision.body is not None:
                    texts += _words(kind, row.revision)
                    rows.append(row)
                if kind == "entry" and row.spot:
                    entries.append(row.spot)
    known = Known(store, set(Stage))
    spots = {spot for thing in known.things_at(entries).values() for spot in _alive(known, thing)}
    ids = [id for id in dict.fromkeys(entries) if id not in spots]
    there = store.entries(ids, damaged=True) if ids else {}
    return Going(tuple(there), tuple(dict.fromkeys(texts)), tuple(rows))


def _erases(row: KeptRevision) -> bool:
    return revisions.is_erasure(row.revision)


def _alive(known: Known, thing: str) -> set[str]:
    return {one.spot for one in known.seen("entry", thing) if one.plain is not None}


def _words(kind: str, revision: Revision) -> Iterator[str]:
    """Give the texts of a revision that are long enough to be searched for by themselves."""
    body = revision.body or {}
    found: list[object] = []
    if kind in TEXTS and body.get("text") is not None:
        found = list(body["text"].values())
    elif kind == "utterance":
        found = list(body.get("set", {}).get("said", ()))[3:]
    for one in _strings(found):
        if len(one) >= _SHORTEST:
            yield one


_SHORTEST = 12  # as an erasure here has it


def _strings(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for part in value.values():
            yield from _strings(part)
    elif isinstance(value, list | tuple):
        for part in value:
            yield from _strings(part)


def emptied(desk: Desk, rows: Iterable[KeptRevision]) -> None:
    """Take the words out of revisions that somebody else erased."""
    new = tuple(replace(one, revision=replace(one.revision, body=None), erasure=Erasure.TOLD) for one in rows)
    if new:
        desk.store.apply(Transaction(desk.actor, desk.now, (KeepRevisions(new),)))


# Showing


def settle(desk: Desk, done: Absorbed) -> None:
    """Bring the store to what its revisions say, some things in each transaction."""
    capture(desk)
    known = Known(desk.store, {Stage.DONE, Stage.READY})
    known.load("stage", [Stage.READY])
    waiting = _pairs_of(known, _at(desk, Stage.READY))
    order = {kind: n for n, kind in enumerate(KINDS)}
    todo = sorted(waiting, key=lambda pair: (order[pair[0]], pair[1]))
    for start in range(0, len(todo), _CHUNK):
        some = todo[start : start + _CHUNK]
        retry_on_conflict(lambda some=some: _settle(desk, some, done))  # type: ignore[misc]


def _pairs_of(known: Known, rows: Iterable[KeptRevision]) -> dict[tuple[str, str], None]:
    """Return the things that revisions are of, by kind; the fields of a text are of the text."""
    found: dict[tuple[str, str], None] = {}
    for row in rows:
        kind, thing = row.revision.kind, row.revision.thing
        if kind == FIELDS:
            texts = [one for one in known.load("spot", [thing]) if one.revision.kind in TEXTS]
            for one in texts[:1]:
                found[one.revision.kind, one.revision.thing] = None
        else:
            found[kind, thing] = None
    return found


def _settle(desk: Desk, some: Sequence[tuple[str, str]], done: Absorbed) -> None:
    read = captured(desk.store)
    if desk.store.head()[0] != read:
        read = capture(desk)
    known = Known(desk.store, {Stage.DONE, Stage.READY})
    seen = known.settled(some)
    entries = [one for one in seen if one.kind == "entry"]
    by_thing = defaultdict[str, list[Seen]](list)
    for one in entries:
        by_thing[one.thing].append(one)
    pairs = {spot for group in by_thing.values() for spot in known.pairs(group)}
    seen += [one for spot in pairs for one in known.seen("rival", spot)]
    changes, ready = _changes(desk.store, known, list({(s.kind, s.spot): s for s in seen}.values()))
    made = writing.in_order(desk.store, writing.operations(desk.store, changes, desk.store_id))
    rows = _rows(known, seen, ready)
    operation = KeepRevisions(tuple(rows), read=read)
    desk.store.apply(Transaction(desk.actor, desk.now, (*made, operation)))
    second = {one.spot for one in entries if one.spot != one.thing}
    for change in changes:
        rival = change.kind == "entry" and change.outcome == "new" and change.name[0] in second
        done.add(change.kind, "rival" if rival else change.outcome)
    held = {one.spot for one in entries if one.held and one.view and one.view.fields["state"][0] == str(State.HELD)}
    done.held += sum(1 for change in changes if change.kind == "entry" and _is_held(change, entries)) if held else 0


def _is_held(change: Change, entries: Collection[Seen]) -> bool:
    return any(
        one.held
        and one.spot == change.name[0]
        and one.view is not None
        and one.view.fields["state"][0] == str(State.HELD)
        for one in entries
    )


def _changes(store: Store, known: Known, seen: Sequence[Seen]) -> tuple[list[Change], set[tuple[str, str]]]:
    """Return the changes that bring the store to these things, and the things that are then as they should be."""
    order = {kind: n for n, kind in enumerate(KINDS)}
    local = _local(store, known, seen)
    changes, made = list[Change](), set[tuple[str, str]]()
    ready, lacking = set[tuple[str, str]](), set[tuple[str, str]]()
    for one in sorted(seen, key=lambda one: (order[one.kind], one.thing, one.spot != one.thing)):
        now, also = local.get((one.kind, one.spot)), tuple[View, ...]()
        if one.kind == "page":
            if one.spot != one.thing:
                continue
            also = tuple(o.view for o in seen if o.thing == one.thing and o.spot != one.spot and o.view is not None)
        change = writing.without_gone(Change(one.kind, now, one.view, also), known.erased_entry)
        ready.add((one.kind, one.thing))
        if change.want is None and now is None:
            continue
        if change.want is not None and now is not None and now.same(change.want) and not also:
            continue
        if writing.lacks(store, change, made, known.erased_entry):
            lacking.add((one.kind, one.thing))
            continue
        if change.want is not None:
            made.add((one.kind, change.want.name[0]))
        changes.append(change)
    return changes, ready - lacking


def _local(store: Store, known: Known, seen: Sequence[Seen]) -> dict[tuple[str, str], View]:
    """Return what the store holds of these things."""
    names: dict[str, set[str] | None] = {}
    for one in seen:
        some = set(_names(known, one))
        if not some:  # its name went with its words
            names[one.kind] = None
        elif (known_names := names.setdefault(one.kind, set())) is not None:
            known_names |= some
    found: dict[tuple[str, str], View] = {}
    for kind, wanted in names.items():
        found |= {(kind, spot): view for spot, view in reading.read(store, kind, wanted).items()}
    return found


def _names(known: Known, one: Seen) -> Iterator[str]:
    """Give the names by which a store finds a thing, also if it is not to be seen any more."""
    if one.kind in things.BY_ID and one.kind != "citation":
        yield one.spot
        return
    for row in known.rows(one.kind, one.thing):
        if row.about:
            yield row.about
        if one.kind == "rival" and row.twin:
            yield row.twin
        body = row.revision.body
        if not row.about and body is not None and "name" in body:
            yield body["name"][0]
    if one.view is not None:
        yield things.about_of(one.kind, one.view.name, one.view.fields) or one.view.name[0]


def _rows(known: Known, seen: Iterable[Seen], ready: Collection[tuple[str, str]]) -> list[KeptRevision]:
    """Return the revisions that are in memory now, each with the place where it is shown."""
    found: dict[str, KeptRevision] = {}
    for one in seen:
        if (one.kind, one.thing) not in ready:
            continue
        for row in known.rows(one.kind, one.thing):
            found.setdefault(row.revision.digest, row)
        for digest in one.path:
            found[digest] = replace(known.row(digest), spot=one.spot)
        if one.kind in TEXTS:
            for row in known.rows(FIELDS, one.spot):
                found.setdefault(row.revision.digest, row)
    done = {digest: replace(row, stage=Stage.DONE) for digest, row in found.items()}
    return [row for digest, row in done.items() if row != known.row(digest)]
