"""Bring a store from what it holds of a thing to what it is to hold: the operations of one transaction."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from lukasa.model.conversation import Channel
from lukasa.model.events import EventDraft
from lukasa.model.values import State
from lukasa.service.admin.projects import BOUND
from lukasa.storage.operations import (
    CloseScope,
    DropItem,
    DropNotes,
    DropRivals,
    ForgetThing,
    KeepUtterances,
    LinkAction,
    Operation,
    Record,
    SaveAmendment,
    SaveChannel,
    SaveCitations,
    SaveConfirmation,
    SaveConversation,
    SaveDocument,
    SaveDocumentSource,
    SaveEntry,
    SaveItem,
    SaveNamed,
    SaveNote,
    SaveRivalry,
    SaveTranscript,
    SaveWorkspace,
)
from lukasa.storage.port import Store
from lukasa.storage.row_rules import TWIN_STATES
from lukasa.write import things
from lukasa.write.things import View

ACTION = "entry.synced"
CAUSE = "it came from another machine"
MEETING = "the texts of two machines change places"


class Change(Struct, frozen=True):
    """What a store holds of a thing, and what it is to hold; `also` are texts for the history of a page."""

    kind: str
    now: View | None
    want: View | None
    also: tuple[View, ...] = ()

    @property
    def name(self) -> tuple[str, ...]:
        """The name of the thing."""
        view = self.want or self.now
        return view.name if view is not None else ()

    @property
    def outcome(self) -> str:
        """What becomes of the thing."""
        if self.now is None:
            return "new"
        return "removed" if self.want is None else "changed"


def lacks(store: Store, change: Change, made: Collection[tuple[str, str]], gone: Callable[[str], bool]) -> bool:
    """Whether something that a thing refers to has not come yet.

    `made` are the things that come along, by kind and id, and `gone` says which entries were erased.
    """
    if change.want is None or (change.now is not None and change.kind != "action"):
        return False
    return any(
        (kind, id) not in made and not _HERE[kind](store, id) and not (kind == "entry" and gone(id))
        for kind, id in _refers(change)
    )


def without_gone(change: Change, gone: Callable[[str], bool]) -> Change:
    """Return a change without what hangs on entries that were erased."""
    if change.kind not in ("rival", "confirmation", "citation", "action") or change.want is None:
        return change
    lost = [id for _, id in _refers(change) if gone(id)]
    if not lost:
        return change
    left = {name: value for name, value in change.want.fields.items() if name.removeprefix("tags/") not in lost}
    kept = replace(change.want, fields=left)
    return replace(change, want=kept if change.kind == "action" and things.action_entries(kept) else None)


def _refers(change: Change) -> Iterator[tuple[str, str]]:
    view = change.want
    if view is None:
        return
    match change.kind:
        case "note":
            yield "conversation", view.name[0]
        case "utterance":
            yield "transcript", view.name[0]
        case "conversation":
            yield "channel", view.fields["channel"]
        case "rival":
            yield from (("entry", id) for id in view.name)
        case "confirmation":
            yield "entry", view.fields["said"]["entry"]
        case "citation":
            yield "entry", view.fields["entry"]
        case "action":
            yield from (("entry", id) for id in things.action_entries(view))
        case "entry":
            yield from (("document", link.source) for link in things.entry_of(view).links)


_HERE: Mapping[str, Callable[[Store, str], bool]] = {
    "conversation": lambda store, id: store.conversation(id) is not None,
    "transcript": lambda store, id: store.transcript(id) is not None,
    "channel": lambda store, id: any(one.id == id for one in store.channels()),
    "entry": lambda store, id: bool(store.entries([id], damaged=True)),
    "document": lambda store, id: bool(store.document_heads([id])),
}


def operations(store: Store, changes: Sequence[Change], workspace: str) -> list[Operation]:
    """Return the operations for some changes, which are in the order of `things.KINDS`."""
    found = list(_parked(store, changes))
    for change in sorted(changes, key=lambda one: (things.KINDS.index(one.kind), not _stands_back(one))):
        if change.kind in ("rival", "citation"):
            continue
        found += _WRITERS[change.kind](store, change, workspace)
    found += _pairs(store, [one for one in changes if one.kind == "rival"])
    found += _citations(store, [one for one in changes if one.kind == "citation"])
    return found


def _stands_back(change: Change) -> bool:
    """Whether a thing gives a name away that another one may take in the same transaction."""
    if change.now is None or change.want is None or change.kind not in ("workspace", "channel", "transcript"):
        return False
    freed = change.now.fields.get("is_default") and not change.want.fields.get("is_default")
    return bool(freed) or (
        things.twin_of(change.kind, change.now) != things.twin_of(change.kind, change.want)
        and things.is_second_name(change.kind, change.want)
    )


# Entries


def _parked(store: Store, changes: Sequence[Change]) -> Iterator[Operation]:
    """Set entries aside first whose text another one is about to take: a scope holds a text once."""
    leaving: dict[str, str] = {}
    taking: set[str] = set()
    for one in changes:
        if one.kind == "entry" and one.want is not None:
            before = "" if one.now is None else _claimed(one.now)
            after = _claimed(one.want)
            if before and before != after:
                leaving[one.name[0]] = before
            if after and before != after:
                taking.add(after)
    for id, key in leaving.items():
        if key in taking:
            entry = store.entries([id])[id]
            aside = replace(entry, state=State.SUPERSEDED)
            yield SaveEntry(aside, entry.version, ACTION, MEETING)


def _claimed(view: View) -> str:
    return things.twin_of("entry", view) if State(view.fields["state"][0]) in TWIN_STATES else ""


def _entry(store: Store, change: Change, workspace: str) -> Iterator[Operation]:
    """An entry that is not to be seen any more was erased, and goes by the way of an erasure."""
    if change.want is None:
        return
    entry = things.entry_of(change.want)
    here = store.entries([entry.id], damaged=True).get(entry.id)
    yield SaveEntry(entry, 0 if here is None else here.version, ACTION, CAUSE)


def in_order(store: Store, made: list[Operation]) -> list[Operation]:
    """Count the versions of entries that are saved more than once in one transaction."""
    seen: dict[str, int] = {}
    done: list[Operation] = []
    for one in made:
        if isinstance(one, SaveEntry):
            expect = seen.get(one.entry.id, one.expect)
            seen[one.entry.id] = expect + 1
            one = replace(one, expect=expect)
        done.append(one)
    return done


# Texts


def _page(store: Store, change: Change, workspace: str) -> Iterator[Operation]:
    """Texts that lost go into the history of the page, behind the one that is shown."""
    if change.want is None:
        yield ForgetThing("page", change.name)
        return
    page = things.page_of(change.want)
    past = store.named_versions(page.name)
    version, bodies = len(past) and past[-1].version, {one.body for one in past}
    for view in change.also:
        other = replace(things.page_of(view), name=page.name)
        if other.body not in bodies and other.body != page.body:
            bodies.add(other.body)
            yield SaveNamed(other, version)
            version += 1
    yield SaveNamed(page, version)


def _note(store: Store, change: Change, workspace: str) -> Iterator[Operation]:
    if change.want is None:
        yield DropNotes(*change.name)
    else:
        yield SaveNote(things.note_of(change.want))


def _document(store: Store, change: Change, workspace: str) -> Iterator[Operation]:
    if change.want is None:
        yield ForgetThing("document", change.name)
        return
    document, source = things.document_of(change.want)
    now, want = change.now, change.want
    before = store.document_heads([document.id]).get(document.id)
    alike = now is not None and now.text == want.text and source is not None and not document.removed
    if alike and now is not None and set(_differing(now, want)) == {"read"}:
        yield SaveDocumentSource(source)  # type: ignore[arg-type]
        return
    yield SaveDocument(document, 0 if before is None else before.version, None, source)


def _differing(now: View, want: View) -> list[str]:
    return [name for name in {**now.fields, **want.fields} if now.fields.get(name) != want.fields.get(name)]


def _item(store: Store, change: Change, workspace: str) -> Iterator[Operation]:
    if change.want is None:
        yield DropItem(things.place_of(change.name), CAUSE)
    else:
        item, index = things.item_of(change.want)
        yield SaveItem(item, (), index)


# Fields alone


def _workspace(store: Store, change: Change, workspace: str) -> Iterator[Operation]:
    if change.want is None:
        return
    here = next((one for one in store.workspaces() if one.id == change.name[0]), None)
    ready = None if here is None else here.ready
    yield SaveWorkspace(things.plain_of("workspace", change.want, ready=int(bool(ready))), ready)


def _project(store: Store, change: Change, workspace: str) -> Iterator[Operation]:
    if change.want is not None:
        said = {name: value for name, value in change.want.fields.items() if value}
        yield Record(EventDraft(BOUND, change.name[0], said))


def _channel(store: Store, change: Change, workspace: str) -> Iterator[Operation]:
    if change.want is not None:
        channel: Channel = things.plain_of("channel", change.want, workspace=workspace)
        yield SaveChannel(channel, again=change.now is not None)


def _conversation(store: Store, change: Change, workspace: str) -> Iterator[Operation]:
    if change.want is not None:
        made = things.plain_of("conversation", change.want)
        here = store.conversation(made.id)
        yield SaveConversation(made, None if here is None else here.status)


def _transcript(store: Store, change: Change, workspace: str) -> Iterator[Operation]:
    if change.want is None:
        yield ForgetThing("transcript", change.name)
    else:
        made = things.plain_of("transcript", change.want)
        here = store.transcript(made.id)
        yield SaveTranscript(made, 0 if here is None else here.version)


def _utterance(store: Store, change: Change, workspace: str) -> Iterator[Operation]:
    if change.want is None:
        yield ForgetThing("utterance", change.name)
    else:
        found = things.plain_of("utterance", change.want)
        yield KeepUtterances(found.transcript, (found.utterance,), instead=change.now is not None)


def _confirmation(store: Store, change: Change, workspace: str) -> Iterator[Operation]:
    if change.want is not None and change.now is None:
        yield SaveConfirmation(things.confirmation_of(change.want))
    elif change.want is None and change.now is not None:
        value = things.confirmation_of(change.now)
        yield ForgetThing("confirmation", (value.entry,), value)


def _action(store: Store, change: Change, workspace: str) -> Iterator[Operation]:
    if change.want is not None:
        there = set() if change.now is None else set(things.action_entries(change.now))
        new = tuple(id for id in things.action_entries(change.want) if id not in there)
        if new:
            yield LinkAction(change.name[0], change.want.fields["description"], new)


def _closed(store: Store, change: Change, workspace: str) -> Iterator[Operation]:
    if change.want is not None:
        yield CloseScope(things.plain_of("closed", change.want), again=change.now is not None)


def _amendment(store: Store, change: Change, workspace: str) -> Iterator[Operation]:
    if change.want is None:
        yield ForgetThing("amendment", change.name)
    else:
        made = things.plain_of("amendment", change.want)
        here = store.amendments([made.id])
        yield SaveAmendment(made, here[0].version if here else 0)


def _pairs(store: Store, changes: Sequence[Change]) -> Iterator[Operation]:
    """Write pairs. One alone cannot be dropped, so the others of its entry are written again."""
    gone = {change.now.name for change in changes if change.want is None and change.now is not None}
    for id in dict.fromkeys(pair[0] for pair in gone):
        yield DropRivals(id)
        for one in store.rivals([id]):
            if (one.entry, one.other) not in gone:
                yield SaveRivalry(one)
    for change in changes:
        if change.want is not None:
            pair = things.plain_of("rival", change.want)
            if change.now is not None and change.now.name != change.want.name:
                pair = replace(pair, entry=change.now.name[0], other=change.now.name[1])
            yield SaveRivalry(pair)


def _citations(store: Store, changes: Sequence[Change]) -> Iterator[Operation]:
    """Write all citations of each entry of which some change."""
    by_entry: dict[str, dict[str, View | None]] = {}
    for change in changes:
        view = change.want or change.now
        if view is not None:
            by_entry.setdefault(str(view.fields["entry"]), {})[view.name[0]] = change.want
    for entry, wanted in by_entry.items():
        here = store.citations([entry])
        if not here and not store.entries([entry], damaged=True):
            continue
        kept: list[Any] = [one for one in here if one.id not in wanted]
        kept += [things.plain_of("citation", view) for view in wanted.values() if view is not None]
        yield SaveCitations(entry, tuple(kept), tuple(one.id for one in here))


_WRITERS: Mapping[str, Callable[[Store, Change, str], Iterator[Operation]]] = {
    "workspace": _workspace,
    "project": _project,
    "channel": _channel,
    "conversation": _conversation,
    "note": _note,
    "transcript": _transcript,
    "utterance": _utterance,
    "document": _document,
    "page": _page,
    "entry": _entry,
    "confirmation": _confirmation,
    "action": _action,
    "closed": _closed,
    "item": _item,
    "amendment": _amendment,
}
