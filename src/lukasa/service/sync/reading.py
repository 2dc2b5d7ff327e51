"""What a store holds of each kind of thing that syncs, as views: all of it, or what events say may have changed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

from lukasa.model.entry import Entry
from lukasa.model.events import SCRUBBED, Event
from lukasa.model.selection import Selection
from lukasa.model.values import Visibility
from lukasa.service.admin.projects import BOUND, FOLDER, MOST
from lukasa.storage.port import ItemQuery, Store
from lukasa.write import things
from lukasa.write.things import View, spot_of

_PAGE = 500
_MANY = 1_000_000
Names = Collection[str] | None  # None is all of a kind


def entries(store: Store) -> Iterator[Entry]:
    """Give every entry of a store, whatever its state."""
    selection = Selection(tuple(count.scope for count in store.census()), frozenset(Visibility), None)
    after = None
    while page := store.find(selection, limit=_PAGE, after=after, damaged=True):
        yield from page
        after = page[-1].id


def read(store: Store, kind: str, names: Names) -> dict[str, View]:
    """Return things of a kind by where they are shown, without damaged ones.

    `names` are ids or names; of what hangs on something (notes, messages, pairs, confirmations, citations), those are
    of what it hangs on. An action is named by itself.
    """
    return {spot_of(kind, view.name): view for view in _READERS[kind](store, names)}


def damaged(store: Store, kind: str, names: Names) -> set[str]:
    """Return where things are shown whose text is not the one that was written: nobody can say what they hold."""
    if kind == "entry":
        every = entries(store) if names is None else store.entries(names, damaged=True).values()
        return {entry.id for entry in every if entry.damaged}
    if kind == "page":
        return {spot_of(kind, (page.name,)) for page in store.named() if page.damaged}
    if kind == "document":
        found = store.documents(_document_ids(store) if names is None else names)
        return {spot_of(kind, (one.id,)) for one in found.values() if one.damaged}
    return set()


def _of_entries(store: Store, names: Names) -> Iterator[View]:
    every = entries(store) if names is None else store.entries(names, damaged=True).values()
    yield from (things.entry_view(entry) for entry in every if not entry.damaged)


def _of_pages(store: Store, names: Names) -> Iterator[View]:
    yield from (things.page_view(page) for page in store.named() if not page.damaged and _in(page.name, names))


def _of_notes(store: Store, names: Names) -> Iterator[View]:
    wanted = [one.id for one in store.conversations(archived=True)] if names is None else names
    yield from (things.note_view(note) for id in wanted for note in store.notes(id))


def _document_ids(store: Store) -> list[str]:
    found: list[str] = []
    while page := store.list_documents(after=found[-1] if found else "", limit=_PAGE):
        found += [head.id for head in page]
    return found


def _of_documents(store: Store, names: Names) -> Iterator[View]:
    ids = list(_document_ids(store) if names is None else names)
    for start in range(0, len(ids), _PAGE):
        some = ids[start : start + _PAGE]
        sources = store.document_sources(some)
        for document in store.documents(some).values():
            if not document.damaged:
                yield things.document_view(document, sources.get(document.id))


def _of_items(store: Store, names: Names) -> Iterator[View]:
    every = [found.item for found in store.find_items(ItemQuery(()))]
    indexes = store.item_indexes([item.place for item in every])
    yield from (things.item_view(item, indexes[item.place]) for item in every if item.place in indexes)


def _of_channels(store: Store, names: Names) -> Iterator[View]:
    yield from (things.plain_view("channel", one) for one in store.channels() if _in(one.id, names))


def _of_conversations(store: Store, names: Names) -> Iterator[View]:
    every = store.conversations(archived=True) if names is None else map(store.conversation, names)
    yield from (things.plain_view("conversation", one) for one in every if one is not None)


def _of_transcripts(store: Store, names: Names) -> Iterator[View]:
    every = store.transcripts(limit=_MANY) if names is None else map(store.transcript, names)
    yield from (things.plain_view("transcript", one) for one in every if one is not None)


def _of_utterances(store: Store, names: Names) -> Iterator[View]:
    from_all = [one.id for one in store.transcripts(limit=_MANY)] if names is None else names
    for id in from_all:
        yield from (things.utterance_view(id, said) for said in store.utterances(id))


def _ids(store: Store, names: Names) -> Collection[str]:
    return [entry.id for entry in entries(store)] if names is None else names


def _of_rivals(store: Store, names: Names) -> Iterator[View]:
    yield from (things.plain_view("rival", one) for one in store.rivals(_ids(store, names)))


def _of_confirmations(store: Store, names: Names) -> Iterator[View]:
    yield from (things.confirmation_view(one) for one in store.confirmations(_ids(store, names)))


def _of_citations(store: Store, names: Names) -> Iterator[View]:
    yield from (things.plain_view("citation", one) for one in store.citations(_ids(store, names)))


def _of_actions(store: Store, names: Names) -> Iterator[View]:
    resting = defaultdict[str, list[str]](list)
    for entry, actions in store.linked([entry.id for entry in entries(store)]).items():
        for action in actions:
            resting[action].append(entry)
    for id, description in store.actions().items():
        if _in(id, names):
            yield things.action_view(id, description, resting[id])


def _of_closed(store: Store, names: Names) -> Iterator[View]:
    yield from (things.plain_view("closed", one) for one in store.closed())


def _of_amendments(store: Store, names: Names) -> Iterator[View]:
    yield from (things.plain_view("amendment", one) for one in store.amendments(names, limit=_MANY))


def _of_workspaces(store: Store, names: Names) -> Iterator[View]:
    yield from (things.plain_view("workspace", one) for one in store.workspaces() if _in(one.id, names))


def _of_projects(store: Store, names: Names) -> Iterator[View]:
    """Give the last word about each project; a folder is one of this machine."""
    last = {event.subject: event.detail for event in store.events(action=BOUND, limit=MOST)}
    for identity, detail in last.items():
        if not identity.startswith(FOLDER) and detail.get("workspace") and _in(identity, names):
            yield things.project_view(identity, detail)


def _in(name: str, names: Names) -> bool:
    return names is None or name in names


_READERS: Mapping[str, Callable[[Store, Names], Iterable[View]]] = {
    "workspace": _of_workspaces,
    "project": _of_projects,
    "channel": _of_channels,
    "conversation": _of_conversations,
    "note": _of_notes,
    "transcript": _of_transcripts,
    "utterance": _of_utterances,
    "document": _of_documents,
    "page": _of_pages,
    "entry": _of_entries,
    "rival": _of_rivals,
    "confirmation": _of_confirmations,
    "citation": _of_citations,
    "action": _of_actions,
    "closed": _of_closed,
    "item": _of_items,
    "amendment": _of_amendments,
}
_HANGING = {"entry": ("entry", "rival", "confirmation", "citation")}
_PREFIXES: Mapping[str, tuple[str, ...]] = {
    "entry": _HANGING["entry"],
    "rivals": _HANGING["entry"],
    "citation": _HANGING["entry"],
    "named": ("page",),
    "document": ("document",),
    "note": ("note",),
    "channel": ("channel",),
    "conversation": ("conversation",),
    "transcript": ("transcript", "utterance"),
    "amendment": ("amendment",),
    "workspace": ("workspace",),
    "project": ("project",),
    "action": ("action",),
}
_AS_A_WHOLE = {"item": "item", "scope": "closed"}  # their events do not name them


def touched(events: Iterable[Event]) -> dict[str, Names]:
    """Return what events may have changed: by kind the names to read, or None for all of it."""
    found: dict[str, set[str] | None] = {}
    for event in events:
        prefix = event.action.partition(".")[0]
        if event.action == SCRUBBED:
            return dict.fromkeys(_READERS)
        if prefix in _AS_A_WHOLE:
            found[_AS_A_WHOLE[prefix]] = None
        for kind in _PREFIXES.get(prefix, ()) if event.subject else ():
            names = found.setdefault(kind, set())
            if names is not None:
                names.add(event.subject)
    return dict(found)
