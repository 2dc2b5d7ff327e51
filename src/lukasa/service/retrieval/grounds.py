"""Find the grounds of entries as they are now, the entries that rest on them, and the reason why rows are kept.

Nothing of this is stored with an entry. Documents are looked up through its links, and sources through its derivation,
each time anybody asks: so a source that changes, vanishes or is withdrawn shows at once, and one that comes back too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from lukasa.model.corroboration import failures
from lukasa.model.entry import Document, Entry, Scope
from lukasa.model.errors import NotFound
from lukasa.model.ids import is_part_of_id, parse_id
from lukasa.model.statements import says_the_same
from lukasa.model.text import content_key
from lukasa.model.values import VISIBILITY, Retention, State, Visibility
from lukasa.read.rank import Provenance, Withdrawn, moved_on, provenance
from lukasa.service.call import CallContext
from lukasa.spec.types import Lifecycle
from lukasa.storage.port import Store

REMOVED = "its content was removed for good; its id is kept, and never reused"
DEPTH = 8  # sources of sources that are followed
_BY_UPKEEP = "@worker"  # the end of an actor's name: age ends an entry, and says nothing against it


class Grounds(Struct, frozen=True):
    """The sources of an entry, the entries and actions that rest on it, and the reason why its row is kept.

    `awaits_check` says that a document has moved on since anybody checked the entry; `failures` counts checks that have
    failed since the last confirmation. `entries` are the entries in force that were concluded from it.
    """

    id: str
    retention: Retention
    because: str
    provenance: tuple[Provenance, ...] = ()
    withdrawn: tuple[Withdrawn, ...] = ()
    awaits_check: bool = False
    failures: int = 0
    actions: tuple[str, ...] = ()
    entries: tuple[str, ...] = ()


class Resting(Struct, frozen=True):
    """The grounds of an entry: documents as they are now, and sources that were withdrawn."""

    provenance: tuple[Provenance, ...] = ()
    withdrawn: tuple[Withdrawn, ...] = ()


NOTHING = Resting()


def resting(ctx: CallContext, found: Sequence[Entry]) -> dict[str, Resting]:
    """Return by entry what it rests on; entries that rest on nothing are absent."""
    some = [entry for entry in found if entry.links or entry.derived_from]
    if not some:
        return {}
    documents, gone = _documents(ctx, some), withdrawn(ctx, some)
    return {entry.id: Resting(provenance(entry, documents), gone.get(entry.id, ())) for entry in some}


def grounds(ctx: CallContext, id: str) -> Grounds:
    """Return the grounds of one entry; of one that was removed for good, the owner learns that its id is kept."""
    key = ctx.entry_id(id)
    try:
        _, entry = ctx.entry(key)
    except NotFound:
        if not removed(ctx, key):
            raise
        return Grounds(key, Retention.TOMBSTONED, REMOVED)
    return grounds_of(ctx, [entry])[entry.id]


def tombstone(ctx: CallContext, id: str) -> NotFound | None:
    """Return the error for an entry that was removed for good, if the caller may learn that."""
    key = id if is_part_of_id(id) else parse_id(id)
    if not removed(ctx, key):
        return None
    return NotFound(f"entry {key} is tombstoned: {REMOVED}", fix="`lukasa list --all` shows the ids that there are")


def removed(ctx: CallContext, id: str) -> bool:
    """Say whether an entry with that id was removed for good; only the owner of the whole learns it."""
    return ctx.is_author and not ctx.tenancy and any(store.gone([id]) for store in (ctx.local, ctx.account))


def grounds_of(ctx: CallContext, found: Sequence[Entry]) -> dict[str, Grounds]:
    """Return the grounds of entries, by id; the stores are asked once for all of them."""
    documents, doubts = _documents(ctx, found), withdrawn(ctx, found)
    resting, failed = _resting(ctx, found), _failed(ctx, found)
    closed = _closed_scopes(ctx, {entry.scope for entry in found})
    out = {}
    for entry in found:
        actions, entries = resting.get(entry.id, ((), ()))
        links, gone = provenance(entry, documents), doubts.get(entry.id, ())
        lost = _orphaned(entry, links, gone, closed.get(entry.scope, ""))
        retention, because = _retention(actions, entries, lost)
        due = moved_on(entry, documents, _rule(ctx, entry))
        about = (links, gone, due, failed.get(entry.id, 0), actions, entries)
        out[entry.id] = Grounds(entry.id, retention, because, *about)
    return out


def awaits_check(ctx: CallContext, entry: Entry) -> bool:
    """Say whether a document that an entry links to has changed, or is gone, since anybody checked the entry."""
    return bool(entry.links) and moved_on(entry, _documents(ctx, [entry]), _rule(ctx, entry))


def _rule(ctx: CallContext, entry: Entry) -> Lifecycle:
    return ctx.spec.behaviour(entry.scope.tier, entry.kind).lifecycle


def _documents(ctx: CallContext, found: Iterable[Entry]) -> dict[str, Document]:
    wanted = {link.source for entry in found for link in entry.links}
    return ctx.local.documents(wanted) if wanted else {}


def _retention(actions: Sequence[str], entries: Sequence[str], lost: str) -> tuple[Retention, str]:
    """S4: what rests on a row keeps it, whatever became of its own sources and scope."""
    if actions:
        return Retention.REFERENCED, f"{_counted(actions, 'action')} on it: {', '.join(actions[:3])}"
    if entries:
        return Retention.REFERENCED, f"{_counted(entries, 'entry')} on it: {', '.join(entries[:3])}"
    return (Retention.ORPHANED, lost) if lost else (Retention.ACTIVE, "its scope and its sources are there")


def _counted(found: Sequence[str], what: str) -> str:
    if len(found) == 1:
        return f"an {what} rests"
    return f"{len(found)} {'entries' if what == 'entry' else 'actions'} rest"


def _orphaned(entry: Entry, links: Sequence[Provenance], gone: Sequence[Withdrawn], closed: str) -> str:
    if closed:
        return closed
    if links and all(link.status == "vanished" for link in links):
        return "every document that it links to is gone"
    if gone and len(gone) == len(entry.derived_from):
        return "everything that it was concluded from was withdrawn"
    return ""


def _resting(ctx: CallContext, found: Sequence[Entry]) -> dict[str, tuple[tuple[str, ...], tuple[str, ...]]]:
    """Return by entry the actions, and the entries in force or held, that rest on it."""
    ids = [entry.id for entry in found]
    actions: dict[str, tuple[str, ...]] = {}
    entries: dict[str, tuple[str, ...]] = {}
    for store in (ctx.local, ctx.account):
        for id, named in store.linked(ids).items():
            actions[id] = (*actions.get(id, ()), *named)
        rows = store.derived_from(ids)
        alive = store.entries(dict.fromkeys(row.entry for row in rows)) if rows else {}
        for row in rows:
            one = alive.get(row.entry)
            if one is not None and VISIBILITY[one.state] is not Visibility.HISTORY and ctx.sees(one):
                entries[row.source] = (*entries.get(row.source, ()), row.entry)
    return {id: (actions.get(id, ()), entries.get(id, ())) for id in ids}


def _failed(ctx: CallContext, found: Sequence[Entry]) -> dict[str, int]:
    ids = {entry.id for entry in found}
    said = [one for store in (ctx.local, ctx.account) for one in store.confirmations(ids)]
    return {id: failures([one for one in said if one.entry == id]) for id in {one.entry for one in said}}


def _closed_scopes(ctx: CallContext, scopes: Iterable[Scope]) -> dict[Scope, str]:
    """Return the scopes that have ended, each with what ended."""
    known = list(scopes)
    out = {one.scope: f"its {one.scope.tier} has ended" for one in (ctx.local.closed(known) if known else ())}
    for scope in known:
        talk = scope.value("conversation")
        found = ctx.local.conversation(talk) if talk else None
        if found is not None and found.ended_at is not None:
            out[scope] = f"its conversation {found.ref_code} has ended"
    return out


# Sources that were withdrawn


def withdrawn(ctx: CallContext, found: Sequence[Entry]) -> dict[str, tuple[Withdrawn, ...]]:
    """Return by entry the sources that it was concluded from and that were withdrawn since."""
    if not any(entry.derived_from for entry in found):
        return {}
    sources = _Sources(ctx)
    sources.load(id for entry in found for id in entry.derived_from)
    out = {}
    for entry in found:
        told = [(id, sources.trouble(id, entry.id, DEPTH)) for id in entry.derived_from]
        if any(why for _, why in told):
            out[entry.id] = tuple(Withdrawn(id, why) for id, why in told if why)
    return out


class _Sources:
    """The entries that others were concluded from, each read once."""

    def __init__(self, ctx: CallContext) -> None:
        self._ctx = ctx
        self._known: dict[str, Entry | None] = {}
        self._homes: dict[str, Store] = {}

    def load(self, ids: Iterable[str]) -> None:
        wanted = [id for id in dict.fromkeys(ids) if id not in self._known]
        for store in (self._ctx.local, self._ctx.account):
            for id, entry in (store.entries(wanted) if wanted else {}).items():
                self._known[id] = entry
        self._known.update({id: None for id in wanted if id not in self._known})

    def _get(self, id: str) -> Entry | None:
        self.load([id])
        return self._known[id]

    def trouble(self, id: str, of: str, depth: int) -> str:
        """Say what became of a source of an entry; nothing if it holds, has only aged, or lives on in other words."""
        entry = self._get(id)
        if entry is None:
            return self._missing(id)
        if VISIBILITY[entry.state] is not Visibility.HISTORY:
            return self._in_force(entry, depth)
        if entry.superseded_by:
            return self._replaced(entry, of, depth)
        if entry.state is State.FORGOTTEN and not self._aged(entry):
            return f"was forgotten{self._cause(entry)}"
        closed = entry.state is State.INVALIDATED or (entry.state is State.ARCHIVED and entry.invalid_at is not None)
        return f"no longer holds{self._cause(entry)}" if closed else ""

    def _missing(self, id: str) -> str:
        """Say that a source was scrubbed. One that ended with its conversation, as the log tells, is no trouble."""
        for store in (self._ctx.local, self._ctx.account):
            if store.gone([id]):
                return "" if store.events(subject=id, action="entry.dropped", limit=1) else "was removed for good"
        return ""

    def _in_force(self, entry: Entry, depth: int) -> str:
        if entry.ended_by(self._ctx.now):
            return "no longer holds: its validity has ended"
        if depth:
            for id in entry.derived_from:
                if why := self.trouble(id, entry.id, depth - 1):
                    return f"rests on {id}, which {why}"
        return ""

    def _replaced(self, entry: Entry, of: str, depth: int) -> str:
        to = self._get(entry.superseded_by or "")
        if to is None or to.id == of or not depth:
            return ""
        same = content_key(entry.content) == content_key(to.content) or says_the_same(entry.content, to.content)
        if same or entry.id in to.derived_from:
            return self.trouble(to.id, of, depth - 1)
        return f"was replaced by {to.id}"

    def _aged(self, entry: Entry) -> bool:
        return entry.transition is not None and entry.transition.actor.endswith(_BY_UPKEEP)

    def _cause(self, entry: Entry) -> str:
        shown = entry.transition is not None and self._ctx.sees(entry)
        return f": {entry.transition.cause}" if shown and entry.transition is not None else ""


# Everything that waits for somebody to look


def doubtful(ctx: CallContext, limit: int) -> list[tuple[Entry, tuple[str, ...]]]:
    """Return the entries that rest on something which is not what it was, each with the reasons."""
    entries = _shaken(ctx, limit)
    out = []
    for id, found in grounds_of(ctx, [e for e in entries.values() if ctx.sees(e)]).items():
        if why := reasons(found):
            out.append((entries[id], why))
    return out[:limit]


def _onwards(store: Store, ids: Iterable[str]) -> dict[str, None]:
    """Return entries with those that were concluded from them, and so on."""
    known = dict.fromkeys(ids)
    new = list(known)
    for _ in range(DEPTH):
        new = [row.entry for row in store.derived_from(new) if row.entry not in known] if new else []
        known |= dict.fromkeys(new)
    return known


def in_doubt(ctx: CallContext, entry: Entry) -> bool:
    """Say whether an entry in force rests on something that is not what it was."""
    return VISIBILITY[entry.state] is Visibility.OPEN and bool(reasons(grounds_of(ctx, [entry])[entry.id]))


def reasons(found: Grounds) -> tuple[str, ...]:
    """Say in words why an entry should be checked."""
    moved = [f"document {link.source} has {link.status}" for link in found.provenance if link.status != "current"]
    return (*(moved if found.awaits_check else ()), *(f"source {one.source} {one.reason}" for one in found.withdrawn))


def _shaken(ctx: CallContext, limit: int) -> Mapping[str, Entry]:
    """Return entries in force of which a document or a source may not be what it was; a look at each decides."""
    linked = ctx.local.document_heads(ctx.local.linked_documents())
    changed = [id for id, document in linked.items() if document.version > 1]
    wanted = dict.fromkeys(link.entry for link in (ctx.local.links_to(changed) if changed else ()))
    found: dict[str, Entry] = {}
    for store in (ctx.local, ctx.account):
        more = _onwards(store, [row.entry for row in store.withdrawn(limit=8 * limit)])
        found |= store.entries([*wanted, *more])
    open_now = [e for e in found.values() if VISIBILITY[e.state] is Visibility.OPEN]
    return {entry.id: entry for entry in sorted(open_now, key=lambda e: (e.updated_at, e.id), reverse=True)}
