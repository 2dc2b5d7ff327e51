"""Turn what changed in a store since the last time into revisions: the store is compared with what its revisions say.

Events only tell where to look. What was written because another machine said so is equal to its revisions, and makes
no new ones.
"""

from __future__ import annotations

import secrets
from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from lukasa.model.events import Actor, Event
from lukasa.model.sync import Erasure, KeptRevision, Revision, Stage, SyncNote, revision_digest
from lukasa.model.timestamps import micros, moment
from lukasa.service.sync import reading
from lukasa.service.sync.known import Known, Seen
from lukasa.service.sync.reading import Names
from lukasa.storage.operations import KeepRevisions, Transaction
from lukasa.storage.port import Store
from lukasa.storage.revision_rows import CAPTURED, LOCAL
from lukasa.write import revisions, things
from lukasa.write.things import FIELDED, FIELDS, KINDS, TEXTS, View, spot_of

_PAGE = 5000
_ROUNDS = 4  # one change may bring another one to light: of two entries with one text, the first may go
_HANGS = frozenset({"note", "utterance", "rival", "confirmation", "citation"})  # read by what they hang on
_LOCAL = frozenset({"state", "trust"})  # fields of another person's entry that are decided here alone
_KEPT = frozenset({"workspace", "project", "entry"})  # not to be here says nothing, or an erasure says it


class Desk(Struct, frozen=True):
    """Where revisions are made: in a store, by a machine. `store` is the id of a workspace, or empty."""

    store_id: str
    store: Store
    machine: str
    actor: Actor
    now: datetime


def captured(store: Store) -> int:
    """Return the number of the last event whose change is in the revisions."""
    return int(store.sync_notes([CAPTURED]).get(CAPTURED, {}).get("event", 0))


def capture(desk: Desk) -> int:
    """Make revisions of all that changed; return the number of the event up to which that is."""
    head, since = desk.store.head()[0], captured(desk.store)
    if head == since and not desk.store.revisions("erasure", [Erasure.FRESH]):
        return head
    work = _Capture(desk)
    work.note_erasures()
    for kind, names in _ordered(reading.touched(_events(desk.store, since))):
        work.compare(kind, names)
    rows, notes = tuple(work.made.values()), tuple(SyncNote(*one) for one in work.notes.items())
    desk.store.apply(Transaction(desk.actor, desk.now, (KeepRevisions(rows, notes, read=head),)))
    return head


def _events(store: Store, since: int) -> Iterable[Event]:
    while page := store.events(after=since, limit=_PAGE):
        yield from page
        since = page[-1].seq


def _ordered(found: dict[str, Names]) -> list[tuple[str, Names]]:
    return [(kind, found[kind]) for kind in KINDS if kind in found]


class _Capture:
    """What one capture makes."""

    def __init__(self, desk: Desk) -> None:
        self._desk, self._store = desk, desk.store
        self._known = Known(desk.store, {Stage.DONE})
        self.made: dict[str, KeptRevision] = {}
        self.notes: dict[str, dict[str, Any]] = {}

    # Erasures that happened here

    def note_erasures(self) -> None:
        """Say which revisions have lost their words here, in a revision for each thing."""
        fresh = self._known.load("erasure", [Erasure.FRESH])
        groups = defaultdict[tuple[str, str], list[KeptRevision]](list)
        for one in fresh:
            groups[one.revision.kind, one.revision.thing].append(one)
        for (kind, thing), rows in groups.items():
            every = self._store.revisions("thing", [thing])
            graph = [one.revision for one in every if one.revision.kind == kind]
            said = revisions.erased(graph)
            new = [one.revision.digest for one in rows if one.revision.digest not in said]
            if new:
                self._erasure(kind, thing, graph, new, said)
            for one in rows:
                self._keep(replace(one, erasure=Erasure.TOLD))

    def _erasure(self, kind: str, thing: str, graph: Sequence[Revision], new: list[str], said: set[str]) -> None:
        """Make the revision that says it. It comes behind the end of the text, so that a new text can follow."""
        gone = said | set(new)
        ends = [one for path in revisions.paths(graph) if kind in TEXTS for one in path.heads if one in gone]
        kept = sorted(one.digest for one in graph if one.body is not None and one.digest not in gone)
        body = {"erased": sorted(new), "kept": kept, "whole": kind not in TEXTS and not kept}
        self._keep(self._row(kind, thing, tuple(sorted(ends)), body, self._desk.now, spot=""))

    # Changes

    def compare(self, kind: str, names: Names) -> None:
        """Compare things with what their revisions say, until nothing is new."""
        for _ in range(_ROUNDS):
            before = len(self.made) + len(self.notes)
            self._compare(kind, names)
            if len(self.made) + len(self.notes) == before:
                return

    def _compare(self, kind: str, names: Names) -> None:
        there = self._things(kind, names)
        if kind == "document" and names is None:  # a list leaves out those that were removed
            names = {view.name[0] for one in there for view in self._views(kind, one)}
            names |= {view.name[0] for view in reading.read(self._store, kind, None).values()}
        local = reading.read(self._store, kind, names)
        unreadable = reading.damaged(self._store, kind, names)
        pairs = self._pairs(local) if kind == "rival" else set()
        at = self._known.things_at(local.keys()) if kind in TEXTS else {spot: spot for spot in local}
        seen = self._known.settled((kind, thing) for thing in dict.fromkeys((*at.values(), *there, *pairs)))
        spots = {one.spot for one in seen}
        others = [one.view.name[0] for one in seen if one.view is not None and one.spot not in local]
        if others and kind not in _HANGS:
            local |= {s: v for s, v in reading.read(self._store, kind, others).items() if s in spots}
        for one in seen:
            if one.spot not in unreadable and (kind != "page" or one.spot == one.thing):
                self._difference(one, local.get(one.spot))
        for spot, view in local.items():
            if spot not in spots:
                self._difference(Seen(kind, spot, spot, None, None, ()), view)

    def _views(self, kind: str, thing: str) -> list[View]:
        return [one.view for one in self._known.seen(kind, thing) if one.view is not None]

    def _things(self, kind: str, names: Names) -> list[str]:
        """Return the things of a kind that revisions know and that a capture of these names is about."""
        if names is None:
            found = self._known.load("kind", [kind])
        elif kind in _HANGS:
            found = [*self._known.load("about", names), *self._known.load("twin", names)]
        else:
            found = self._known.load("spot", [spot_of(kind, (name,)) for name in names])
        return list(dict.fromkeys(one.revision.thing for one in found if one.revision.kind == kind))

    def _pairs(self, local: dict[str, View]) -> set[str]:
        """Return the pairs that the texts of one entry make."""
        ids = {id for view in local.values() for id in view.name}
        entries = set(self._known.things_at(ids).values())
        return {spot for thing in entries for spot in self._known.pairs(self._known.seen("entry", thing))}

    def _difference(self, seen: Seen, now: View | None) -> None:
        if now is None:
            if seen.view is not None and seen.kind not in _KEPT:
                self._taken_away(seen, seen.view)
        elif not now.same(seen.view):
            (self._text if seen.kind in TEXTS else self._fields)(seen, now)

    def _taken_away(self, seen: Seen, before: View) -> None:
        name = self._name(seen, before)
        gone: dict[str, Any] = {"name": name, "set": {revisions.GONE: True}}
        if seen.kind in TEXTS:
            gone = {"name": name, "text": None, "rest": {}, "fields": {}}
        self._keep(self._row(seen.kind, seen.thing, seen.heads, gone, self._desk.now, seen.spot, before))

    def _text(self, seen: Seen, now: View) -> None:
        before, plain = seen.view, seen.plain
        delta = revisions.changed(now.fields, before.fields) if before is not None else {}
        if seen.held and _LOCAL & delta.keys():
            note = {name: now.fields[name] for name in _LOCAL}
            self.notes[f"{LOCAL}{seen.spot}"] = note
            self._known.note(f"{LOCAL}{seen.spot}", note)
        if seen.held:
            delta = {name: value for name, value in delta.items() if name not in _LOCAL}
        if before is None or (now.text, now.rest) != (before.text, before.rest):
            fields = now.fields if plain is None else {**plain.fields, **delta}
            rest = plain.rest if plain is not None and seen.kind == "entry" else now.rest
            body = things.text_body(View(tuple(self._name(seen, now)), now.text, rest, fields, now.hint))
            if before is None or plain is None or (now.text, rest) != (plain.text, plain.rest):
                self._keep(self._row(seen.kind, seen.thing, seen.heads, body, _when(now, self._desk), seen.spot, now))
        if before is not None and delta and seen.kind in FIELDED:
            heads = revisions.heads(one.revision for one in self._known.rows(FIELDS, seen.spot))
            body = {"name": list(now.name), "set": delta}
            self._keep(self._row(FIELDS, seen.spot, heads, body, _when(now, self._desk), seen.spot))

    def _fields(self, seen: Seen, now: View) -> None:
        before = {} if seen.view is None else seen.view.fields
        delta = revisions.changed(now.fields, before)
        if seen.view is None and seen.heads:
            delta[revisions.GONE] = False
        body = {"name": list(now.name), "set": delta}
        self._keep(self._row(seen.kind, seen.thing, seen.heads, body, _when(now, self._desk), seen.spot, now))

    def _name(self, seen: Seen, now: View) -> list[str]:
        """Return the name of a thing itself, also of its second text."""
        for digest in seen.path:
            body = self._known.row(digest).revision.body
            if body is not None and "name" in body:
                return list(body["name"])
        return list(now.name)

    # Rows

    def _row(
        self,
        kind: str,
        thing: str,
        parents: tuple[str, ...],
        body: dict[str, Any],
        at: datetime,
        spot: str,
        view: View | None = None,
    ) -> KeptRevision:
        desk, salt, at = self._desk, secrets.token_hex(16), moment(micros(at))
        digest = revision_digest(desk.store_id, kind, thing, parents, body, at, desk.machine, salt)
        made = Revision(desk.store_id, kind, thing, parents, body, at, desk.machine, salt, digest)
        return indexed(KeptRevision(made, spot), view)

    def _keep(self, row: KeptRevision) -> None:
        self.made[row.revision.digest] = row
        self._known.put(row)


def indexed(row: KeptRevision, view: View | None) -> KeptRevision:
    """Return a revision with what it is found by: what it hangs on, and the name that it claims."""
    kind = row.revision.kind
    if view is None:
        return row
    about = things.about_of(kind, view.name, view.fields) if view.fields or kind == "note" else row.about
    twin = view.name[1] if kind == "rival" else things.twin_of(kind, view)
    return replace(row, about=about, twin=twin)


def _when(view: View, desk: Desk) -> datetime:
    """Return when a thing was changed last, as it says itself."""
    said = {**view.fields, **view.rest}
    found = next((said[name] for name in ("updated_at", "edited_at", "at") if isinstance(said.get(name), int)), None)
    return desk.now if found is None else moment(found)
