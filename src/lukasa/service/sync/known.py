"""What the revisions of a store say: each thing as it is to be seen here."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from lukasa.model.sync import KeptRevision, Revision, Stage
from lukasa.model.timestamps import micros
from lukasa.model.values import Gate, Kind, Relation, State, Trust
from lukasa.storage.port import Store
from lukasa.storage.revision_rows import LOCAL
from lukasa.write import revisions
from lukasa.write.things import (
    FIELDED,
    FIELDS,
    TEXTS,
    View,
    entry_of,
    spot_of,
    twin_of,
    view_of_text,
    with_other_name,
)

_TWINS = frozenset({"entry", "channel", "transcript", "workspace"})
_SHOWN = frozenset({str(State.ACTIVE), str(State.HELD)})
_MET = "two versions of it met when machines synced"
_PERSONAL = frozenset({"preferences"})  # categories of what holds for one person


class Seen(Struct, frozen=True):
    """A thing, or the second text of one, as this machine shows it.

    `plain` is what all machines agree on, and `view` what is to be seen here; None for nothing. `heads` are what the
    next change of its text is made from, `path` the revisions of its text. `since` orders things that claim one name.
    """

    kind: str
    thing: str
    spot: str
    plain: View | None
    view: View | None
    heads: tuple[str, ...]
    path: tuple[str, ...] = ()
    since: tuple[int, str] = (0, "")
    held: bool = False
    member: str = ""


class Known:
    """The revisions of a store, with those that are about to be kept, and what follows from them."""

    def __init__(self, store: Store, stages: Collection[Stage]) -> None:
        self._store, self._stages = store, frozenset(stages)
        self._rows: dict[str, KeptRevision] = {}  # by digest
        self._things: dict[str, list[str]] = defaultdict(list)
        self._loaded: set[str] = set()
        self._notes: dict[str, dict[str, Any] | None] = {}
        self._pairs: dict[str, View] = {}

    # Revisions

    def load(self, by: str, values: Collection[Any]) -> list[KeptRevision]:
        """Return the revisions that a column of rows finds, each with the others of its thing loaded too."""
        found = self._store.revisions(by, list(values)) if values else []
        self._load({one.revision.thing for one in found} - self._loaded)
        return [self._rows[one.revision.digest] for one in found]

    def _load(self, things: Collection[str]) -> None:
        if things:
            self._loaded |= set(things)
            for one in self._store.revisions("thing", sorted(things)):
                self.put(one)

    def put(self, one: KeptRevision) -> None:
        """Take a revision into account that is about to be kept, or that changed."""
        digest = one.revision.digest
        if digest not in self._rows:
            self._things[one.revision.thing].append(digest)
        self._rows[digest] = one

    def row(self, digest: str) -> KeptRevision:
        """Return a revision as it is kept."""
        return self._rows[digest]

    def rows(self, kind: str, thing: str) -> list[KeptRevision]:
        """Return the revisions of a thing, of a stage that counts."""
        if thing not in self._loaded:
            self._load({thing})
        every = (self._rows[digest] for digest in self._things[thing])
        return [one for one in every if one.revision.kind == kind and one.stage in self._stages]

    def _graph(self, kind: str, thing: str) -> list[Revision]:
        return [one.revision for one in self.rows(kind, thing)]

    def things_at(self, spots: Collection[str]) -> dict[str, str]:
        """Return the thing that is shown in each of these places; of a place that nothing is known of, itself."""
        found = {spot: spot for spot in spots}
        for one in self.load("spot", spots):
            if one.revision.kind in TEXTS:
                found[one.spot] = one.revision.thing
        for one in self._rows.values():
            if one.spot in found and one.revision.kind in TEXTS:
                found[one.spot] = one.revision.thing
        return found

    def erased_entry(self, id: str) -> bool:
        """Whether an entry is known, and not to be seen any more."""
        thing = self.things_at([id])[id]
        return any(one.spot == id and one.path and one.plain is None for one in self.seen("entry", thing))

    # What they say

    def seen(self, kind: str, thing: str) -> list[Seen]:
        """Return a thing as its revisions have it, apart from others that claim its name."""
        return self._texts(kind, thing) if kind in TEXTS else self._fields_alone(kind, thing)

    def _texts(self, kind: str, thing: str) -> list[Seen]:
        found = []
        for path in revisions.paths(self._graph(kind, thing)):
            spot = thing
            view = None if path.body is None else self._text(kind, path)
            if path.mark:
                spot = spot_of(kind, view.name) if view is not None else self._rows[path.first.digest].spot
            heads = path.heads or revisions.heads(self._graph(kind, thing))
            one = Seen(kind, thing, spot, view, view, heads, path.members, _since(path.first))
            found.append(self._here(one, self._rows[path.members[0]]) if path.members else one)
        return found

    def _text(self, kind: str, path: revisions.Path) -> View | None:
        body = path.body or {}
        if body["text"] is None:
            return None
        view = view_of_text(kind, body, path.mark)
        if kind not in FIELDED:
            return view
        # A second text has the fields that its writer saw last; he may have thought that it was the only one.
        base = body["fields"] if path.mark else (path.first.body or body)["fields"]
        return replace(view, fields=revisions.merged(self._graph(FIELDS, spot_of(kind, view.name)), base))

    def _fields_alone(self, kind: str, thing: str) -> list[Seen]:
        graph = self._graph(kind, thing)
        base = self._pair(thing) if kind == "rival" else None
        named = [one for one in revisions.ordered(graph) if one.body is not None and "name" in one.body]
        if not named and base is None:
            return [Seen(kind, thing, thing, None, None, revisions.heads(graph))]
        fields = revisions.merged(graph, base.fields if base is not None else None)
        gone = bool(fields.pop(revisions.GONE, False)) or not fields
        name = tuple((named[0].body or {})["name"]) if named else (base.name if base is not None else ())
        view = None if gone else View(name, fields=fields)
        since = _since(named[0]) if named else (0, "")
        return [Seen(kind, thing, thing, view, view, revisions.heads(graph), since=since)]

    # Two texts of one thing are a pair, before anybody has judged it.

    def pairs(self, seen: Iterable[Seen]) -> dict[str, View]:
        """Return the pairs that the texts of one entry make, by where they are shown."""
        shown = [one for one in seen if one.view is not None]
        found = {}
        for one in shown[1:]:
            earlier, later = sorted((shown[0], one), key=lambda each: each.since)
            name = (later.spot, earlier.spot)
            judged = [str(Relation.UPDATE), _MET, ""]
            found[spot_of("rival", name)] = View(name, fields={"judged": judged, "at": later.since[0]})
        for spot, view in found.items():
            self._pairs[spot] = view
        return found

    def _pair(self, spot: str) -> View | None:
        return self._pairs.get(spot)

    # As this machine shows it

    def _here(self, one: Seen, origin: KeptRevision) -> Seen:
        """Return a thing as this machine shows it: of other people, with the trust that they have here."""
        if one.kind != "entry" or one.view is None or not origin.member:
            return one
        view, trust = one.view, int(origin.trust)
        principal, surface, transport, own = view.rest["origin"]
        who = origin.member if own >= Trust.AUTHOR else f"{principal} ({origin.member})"
        rest = {**view.rest, "origin": [who, surface, transport, min(own, trust)]}
        fields = {**view.fields, "trust": min(view.fields["trust"], trust)}
        category = (view.fields["category"] or [""])[0]
        held = view.fields["kind"] == str(Kind.PROCEDURAL) or category in _PERSONAL
        if held and view.fields["state"][0] == str(State.ACTIVE):
            decided = self._note(f"{LOCAL}{one.spot}")
            waits = [str(State.HELD), None, None, [str(Gate.HOLD), 1.0, f"it is from {origin.member}"]]
            fields |= decided if decided is not None else {"state": waits}
        return replace(one, view=replace(view, rest=rest, fields=fields), held=held, member=origin.member)

    def _note(self, name: str) -> dict[str, Any] | None:
        if name not in self._notes:
            self._notes[name] = self._store.sync_notes([name]).get(name)
        return self._notes[name]

    def note(self, name: str, value: dict[str, Any]) -> None:
        """Take a note into account that is about to be kept."""
        self._notes[name] = value

    # Things that claim one name

    def settled(self, wanted: Iterable[tuple[str, str]]) -> list[Seen]:
        """Return things as they are to be seen, with all others that claim a name that one of them has or had."""
        found: dict[tuple[str, str], list[Seen]] = {}
        waiting, keys = dict.fromkeys(wanted), set[str]()
        if any(kind == "channel" for kind, _ in waiting):
            waiting |= dict.fromkeys(("channel", id) for id in self._default_channels())
        while waiting:
            for kind, thing in waiting:
                found[kind, thing] = self.seen(kind, thing)
            some = {key for pair in waiting for key in self._keys(pair, found[pair])} - keys
            keys |= some
            others = {
                (one.revision.kind, one.revision.thing)
                for one in (*self.load("twin", some), *self._rows.values())
                if one.twin in some and one.revision.kind in _TWINS
            }
            waiting = dict.fromkeys(others - found.keys())
        every = [one for seen in found.values() for one in seen]
        return self._apart(every)

    def _keys(self, pair: tuple[str, str], seen: Iterable[Seen]) -> set[str]:
        if pair[0] not in _TWINS:
            return set()
        kept = {one.twin for one in self.rows(*pair)}
        return (kept | {twin_of(one.kind, one.view) for one in seen if one.view is not None}) - {""}

    def _apart(self, every: Iterable[Seen]) -> list[Seen]:
        """Keep the first of the things that claim one name; the others stand back."""
        groups = defaultdict[str, list[Seen]](list)
        done: list[Seen] = []
        for one in every:
            key = _claim(one)
            (groups[key] if key else done).append(one)
        for group in groups.values():
            first, *others = sorted(group, key=lambda one: one.since)
            done += [first, *(_behind(one, first) for one in others)]
        return self._one_default(done)

    def _one_default(self, every: list[Seen]) -> list[Seen]:
        """Let one channel be the default one."""
        defaults = [one for one in every if one.kind == "channel" and one.view and one.view.fields["is_default"]]
        if not defaults:
            return every
        known = [one for id in self._default_channels() for one in self.seen("channel", id) if one.view is not None]
        first = min((*defaults, *known), key=lambda one: one.since)
        return [
            replace(one, view=replace(one.view, fields={**one.view.fields, "is_default": 0}))
            if one in defaults and one.view is not None and one.spot != first.spot
            else one
            for one in every
        ]

    def _default_channels(self) -> set[str]:
        return {
            one.revision.thing
            for one in self.load("kind", ["channel"])
            if one.stage in self._stages and (one.revision.body or {}).get("set", {}).get("is_default")
        }


def _since(revision: Revision) -> tuple[int, str]:
    return micros(revision.at), revision.digest


def _claim(one: Seen) -> str:
    """Return the name that a thing claims, if only one may have it."""
    if one.kind not in _TWINS or one.view is None:
        return ""
    if one.kind == "entry" and one.view.fields["state"][0] not in _SHOWN:
        return ""
    return twin_of(one.kind, one.view)


def _behind(one: Seen, first: Seen) -> Seen:
    """Return a thing that stands back: an entry is superseded by the first one, others get another name."""
    if one.view is None:
        return one
    if one.kind != "entry":
        return replace(one, view=with_other_name(one.kind, one.view))
    entry = entry_of(one.view)
    why = "the same text came from another machine"
    state = [str(State.SUPERSEDED), first.spot, [micros(entry.updated_at), why, "sync"], one.view.fields["state"][3]]
    return replace(one, view=replace(one.view, fields={**one.view.fields, "state": state}))
