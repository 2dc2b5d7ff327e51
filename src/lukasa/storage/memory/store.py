"""A store in plain dictionaries: the reference that says what the others must do. It keeps nothing on disk."""

from __future__ import annotations

import secrets
import threading
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from copy import copy
from dataclasses import dataclass, field
from datetime import UTC, datetime

from msgspec.structs import replace

from lukasa.index import bm25, lookup
from lukasa.index.keyword import KeywordMatches
from lukasa.index.neighbours import Neighbour, NeighbourQuery, NewText
from lukasa.index.vectors import VectorMatch
from lukasa.model.arrays import np
from lukasa.model.candidate import Candidate, Use, candidate_of
from lukasa.model.conversation import Channel, Conversation, Note, Status, WorkspaceInfo
from lukasa.model.entry import Access, Document, Entry, NamedEntry, Scope, Version
from lukasa.model.errors import Conflict
from lukasa.model.events import GENESIS, Actor, Event, EventDraft, chain_faults, seal
from lukasa.model.item import Item, ItemAddress
from lukasa.model.job import Job
from lukasa.model.scrub import Extent, Holdings
from lukasa.model.selection import NO_FILTERS, Filters, Selection
from lukasa.model.statements import content_words, role, subject
from lukasa.model.telemetry import TelemetryEvent
from lukasa.model.text import content_key
from lukasa.model.timestamps import micros
from lukasa.model.values import VISIBILITY, Kind, State, Visibility
from lukasa.ports import EmbeddingModel, Vector
from lukasa.storage import rules
from lukasa.storage.memory import items as memory_items
from lukasa.storage.memory import scrub
from lukasa.storage.memory.grants import GrantReads, Grants
from lukasa.storage.memory.items import KeptItem
from lukasa.storage.memory.pipeline import Background, BackgroundReads
from lukasa.storage.operations import (
    DropAnswer,
    DropEntry,
    DropItem,
    DropNotes,
    Emit,
    ForgetAnswers,
    LinkAction,
    Operation,
    Record,
    SaveAnswer,
    SaveChannel,
    SaveConversation,
    SaveDocument,
    SaveEmbedding,
    SaveEntry,
    SaveGrant,
    SaveItem,
    SaveItemVectors,
    SaveNamed,
    SaveNote,
    SaveWorkspace,
    Scrub,
    Transaction,
    describe,
)
from lukasa.storage.port import (
    Arrivals,
    Census,
    Finding,
    FoundItem,
    ItemQuery,
    Share,
    Unembedded,
    UnembeddedItem,
    index_terms,
    twin_key,
)


@dataclass
class _State:
    """Everything a store holds. Values are never changed in place, so a shallow copy is a snapshot."""

    entries: dict[str, Entry] = field(default_factory=dict)
    salts: dict[str, bytes] = field(default_factory=dict)
    terms: dict[str, tuple[str, ...]] = field(default_factory=dict)
    twin_keys: dict[str, tuple[Scope, str, str]] = field(default_factory=dict)
    content_versions: dict[str, int] = field(default_factory=dict)
    versions: dict[str, tuple[Version, ...]] = field(default_factory=dict)
    retired: frozenset[str] = frozenset()
    vectors: dict[tuple[str, EmbeddingModel], Vector] = field(default_factory=dict)
    named: dict[str, tuple[NamedEntry, ...]] = field(default_factory=dict)
    documents: dict[str, Document] = field(default_factory=dict)
    channels: dict[str, Channel] = field(default_factory=dict)
    conversations: dict[str, Conversation] = field(default_factory=dict)
    notes: dict[tuple[str, str], Note] = field(default_factory=dict)
    links: dict[str, tuple[str, ...]] = field(default_factory=dict)
    workspaces: dict[str, WorkspaceInfo] = field(default_factory=dict)
    items: dict[ItemAddress, KeptItem] = field(default_factory=dict)
    background: Background = field(default_factory=Background)
    access_rows: Grants = field(default_factory=Grants)
    events: tuple[Event, ...] = ()
    unswept: frozenset[str] = frozenset()

    def snapshot(self) -> _State:
        new = copy(self)
        for name, value in vars(self).items():
            setattr(new, name, copy(value))
        return new


class MemoryStore(BackgroundReads, GrantReads):
    """Implements `lukasa.storage.port.Store`."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._state = _State()
        self._access: dict[str, Access] = {}
        self._secret = secrets.token_bytes(32)

    # Writing

    def apply(self, transaction: Transaction) -> None:
        with self._lock, rules.only_encodable():
            state = self._state.snapshot()
            for given in transaction.operations:
                operation = self._taken(state, given) if isinstance(given, Scrub) else given
                self._run(state, transaction, operation)
                draft = describe(operation, self._salt(state, operation))
                if draft is not None:
                    _append(state, draft, transaction.at, transaction.actor)
                if isinstance(operation, DropEntry):
                    _forget(state, operation.id)
                elif isinstance(operation, DropItem):
                    del state.items[operation.place]
                elif isinstance(operation, Scrub):
                    scrub.seal(state, operation)
            self._state = state
            if any(isinstance(operation, DropEntry | Scrub) for operation in transaction.operations):
                self._access = {id: access for id, access in self._access.items() if id in state.entries}

    def _taken(self, state: _State, operation: Scrub) -> Scrub:
        return scrub.take(state, operation, lambda id: _forget(state, id))

    def _salt(self, state: _State, operation: Operation) -> bytes:
        match operation:
            case SaveEntry(entry):
                return state.salts[entry.id]
            case SaveItem(item):
                return state.items[item.place].salt
            case DropItem(place):
                return state.items[place].salt
        return self._secret

    def _run(self, state: _State, transaction: Transaction, operation: Operation) -> None:
        match operation:
            case SaveEntry():
                _save_entry(state, operation, transaction)
            case DropEntry(id, expect):
                if id not in state.entries:
                    raise rules.missing("entry", id)
                rules.check_version("entry", id, state.entries[id].version, expect)
                if id in state.links:
                    raise rules.linked_refusal(id)
            case SaveEmbedding():
                _save_embedding(state, operation)
            case SaveNamed(entry, expect):
                history = state.named.get(entry.name, ())
                rules.check_version("named entry", entry.name, history[-1].version if history else None, expect)
                state.named[entry.name] = (*history, replace(entry, version=expect + 1))
            case SaveDocument(document, expect):
                current = state.documents.get(document.id)
                rules.check_version("document", document.id, current.version if current else None, expect)
                state.documents[document.id] = replace(document, version=expect + 1)
            case SaveChannel(channel):
                _save_channel(state, channel)
            case SaveConversation():
                _save_conversation(state, operation)
            case SaveNote():
                _save_note(state, operation)
            case DropNotes(conversation, key):
                _drop_notes(state, conversation, key)
            case LinkAction(action, _, entries):
                for id in rules.unique(entries):
                    if id not in state.entries:
                        raise rules.missing("entry", id)
                    state.links[id] = tuple(rules.unique((*state.links.get(id, ()), action)))
            case SaveWorkspace():
                _save_workspace(state, operation)
            case SaveItem():
                memory_items.save(state.items, operation)
            case SaveItemVectors():
                memory_items.embed(state.items, operation)
            case DropItem():
                memory_items.check_drop(state.items, operation)
            case Record() | Scrub():
                pass
            case SaveGrant() | SaveAnswer() | DropAnswer() | ForgetAnswers():
                state.access_rows.run(operation)
            case _:
                state.background.run(operation, transaction.at)

    @property
    def background(self) -> Background:
        return self._state.background

    @property
    def access_rows(self) -> Grants:
        return self._state.access_rows

    def claim_job(
        self, worker: str, *, now: datetime, lease_until: datetime, kinds: Collection[str] | None = None
    ) -> Job | None:
        with self._lock:
            return self._state.background.claim(worker, now, lease_until, kinds)

    def renew_lease(self, job: str, claim: int, lease_until: datetime) -> bool:
        with self._lock:
            return self._state.background.renew(job, claim, lease_until)

    def report(self, point: TelemetryEvent) -> None:
        with self._lock:
            self._state.background.run(Emit(point), point.at)

    def touch(self, ids: Sequence[str], at: datetime) -> Mapping[str, Access]:
        with self._lock:
            for id in rules.unique(ids):
                if id in self._state.entries:
                    before = self._access.get(id)
                    self._access[id] = Access(before.count + 1 if before else 1, at)
            return self.access(ids)

    # Entries

    def snapshot(self) -> AbstractContextManager[object]:
        return self._lock

    def candidates(self, ids: Iterable[str], filters: Filters = NO_FILTERS) -> dict[str, Candidate]:
        found = self._state.entries
        return {id: candidate_of(found[id]) for id in ids if id in found and filters.admits(found[id])}

    def texts(self, ids: Iterable[str]) -> dict[str, str]:
        found = self._state.entries
        return {id: found[id].content for id in ids if id in found}

    def entries(self, ids: Iterable[str]) -> dict[str, Entry]:
        found = self._state.entries
        return {id: _copy(found[id]) for id in ids if id in found}

    def empty(self, selection: Selection) -> bool:
        return not any(True for _ in self._selected(self._state, selection))

    def find(self, selection: Selection, *, limit: int = 100, after: str | None = None) -> list[Entry]:
        state = self._state
        order = {id: place for place, id in enumerate(state.entries)}
        rows = [e for e in self._selected(state, selection) if selection.filters.admits(e)]
        rows.sort(key=lambda e: (e.created_at, order[e.id]), reverse=True)
        if after is not None:
            last = state.entries.get(after)
            if last is None:
                raise rules.missing("entry", after)
            mark = (last.created_at, order[after])
            rows = [e for e in rows if (e.created_at, order[e.id]) < mark]
        return [_copy(e) for e in rows[:limit]]

    def twin(self, scope: Scope, owner: str, key: str) -> Entry | None:
        state = self._state
        for entry in state.entries.values():
            if entry.state in rules.TWIN_STATES and state.twin_keys[entry.id] == (scope, owner, key):
                return _copy(entry)
        return None

    def replaced_by(self, id: str) -> list[Entry]:
        return [_copy(e) for e in self._state.entries.values() if e.superseded_by == id]

    def versions(self, id: str) -> list[Version]:
        return [replace(v, entry=_copy(v.entry)) for v in self._state.versions.get(id, ())]

    def access(self, ids: Iterable[str]) -> dict[str, Access]:
        return {id: self._access[id] for id in ids if id in self._access}

    def uses(self, ids: Iterable[str]) -> dict[str, Use]:
        return {id: Use(found.count, micros(found.at)) for id, found in self.access(ids).items()}

    def linked(self, ids: Iterable[str]) -> dict[str, tuple[str, ...]]:
        links = self._state.links
        return {id: links[id] for id in ids if id in links}

    def census(self) -> list[Census]:
        counts: dict[Scope, Counter[State]] = {}
        for entry in self._state.entries.values():
            counts.setdefault(entry.scope, Counter())[entry.state] += 1
        return [Census(scope, dict(states)) for scope, states in counts.items()]

    def arrivals(self) -> list[Arrivals]:
        days = Counter((e.created_at.astimezone(UTC).date(), e.scope.tier) for e in self._state.entries.values())
        return [Arrivals(day, tier, count) for (day, tier), count in sorted(days.items())]

    def shares(self, since: datetime) -> list[Share]:
        all_of, new = Counter[tuple[str, ...]](), Counter[tuple[str, ...]]()
        for e in self._state.entries.values():
            key = (e.scope.tier, str(e.state), str(e.kind), e.category.name if e.category else "", e.source)
            all_of[key] += 1
            new[key] += e.created_at >= since
        rows = sorted(all_of.items(), key=lambda row: (-row[1], row[0]))
        return [Share(k[0], State(k[1]), Kind(k[2]), k[3], k[4], count, new[k]) for k, count in rows]

    # Finding

    def keyword(self, selection: Selection, terms: Sequence[str], limit: int) -> KeywordMatches:
        state = self._state
        rows = self._selected(state, selection)
        counts = {e.id: Counter(state.terms[e.id]) for e in rows}
        total = sum(len(state.terms[e.id]) for e in rows)
        frequencies = tuple(sum(term in c for c in counts.values()) for term in terms)
        weights = [bm25.idf(len(rows), frequency) for frequency in frequencies]
        used = {
            term: weight
            for term, weight in zip(terms, weights, strict=True)
            if term in set(bm25.rarest(terms, frequencies))
        }
        admitted = [e.id for e in reversed(rows) if selection.filters.admits(e)]
        strength = {id: sum(w * bm25.saturated(counts[id][t]) for t, w in used.items()) for id in admitted}
        many = bm25.cut_size(limit, len(rows), total)
        some = sorted((id for id in admitted if strength[id]), key=lambda id: -strength[id])[:many]
        if len(some) > limit:
            held = [[counts[id][t] for id in some] for t in used]
            some = bm25.cut_by_length(some, list(used.values()), held, [len(state.terms[id]) for id in some], limit)
        if not some:
            return KeywordMatches(len(rows), total, frequencies)
        lengths, columns = [len(state.terms[id]) for id in some], [[counts[id][t] for id in some] for t in terms]
        candidates = [candidate_of(state.entries[id]) for id in some]
        return KeywordMatches(len(rows), total, frequencies, candidates, lengths, columns)

    def nearest(
        self, selection: Selection, model: EmbeddingModel, vector: Vector, limit: int, *, exact: bool = False
    ) -> list[VectorMatch]:
        state = self._state
        found = [
            VectorMatch(candidate_of(e), _cosine(state.vectors[e.id, model], vector))
            for e in reversed(self._selected(state, selection))
            if (e.id, model) in state.vectors and selection.filters.admits(e)
        ]
        return sorted(found, key=lambda n: -n.cosine)[:limit]

    def neighbours(self, query: NeighbourQuery, texts: Sequence[NewText]) -> list[list[Neighbour]]:
        with rules.only_encodable():
            return [self._neighbours(query, text) for text in texts]

    def _neighbours(self, query: NeighbourQuery, text: NewText) -> list[Neighbour]:
        scope, owner, limit = query.scope, query.owner, query.limit
        selection = Selection((scope,), frozenset({Visibility.OPEN}), (owner,))
        cosines: dict[str, float | None] = {}
        if query.model is not None and text.vector is not None:
            cosines.update(self._by_vector(query, selection, text.content, text.vector))
        spoken = [e for e in self._selected(self._state, selection) if e.path is None]
        for handle in (subject, role):
            value = handle(text.content)
            alike = [e for e in reversed(spoken) if value and handle(e.content) == value]
            cosines |= {e.id: None for e in alike[:limit] if e.id not in cosines}
        twin = self.twin(scope, owner, content_key(text.content))
        first = [Neighbour(twin, cosines.pop(twin.id, None))] if twin is not None else []
        return first + [Neighbour(_copy(self._state.entries[id]), cosine) for id, cosine in cosines.items()]

    def _by_vector(
        self, query: NeighbourQuery, selection: Selection, text: str, vector: Vector
    ) -> list[tuple[str, float]]:
        """Those that hold all that tells something in a text, and those that reach the floor; the nearest first."""
        assert query.model is not None
        state, limit, wanted = self._state, query.limit, set(content_words(text))
        holding = [e.id for e in self._selected(state, selection) if wanted and wanted.issubset(state.terms[e.id])]
        ranked = self.nearest(selection, query.model, vector, len(state.entries))
        near = [n.id for n in ranked[:limit] if query.floor is not None and n.cosine >= query.floor]
        kept = {*holding[-limit:], *near}
        return [(n.id, n.cosine) for n in ranked if n.id in kept]

    def adjacent(self, ids: Iterable[str], reach: int) -> dict[str, dict[str, int]]:
        state = self._state
        order = list(state.entries)
        places = {id: place for place, id in enumerate(order)}
        found = {}
        for id in ids:
            if id in places:
                start = max(0, places[id] - lookup.ROWS_AROUND)
                rows = order[start : places[id] + lookup.ROWS_AROUND + 1]
                room = [n for n in rows if rules.side_by_side(state.entries[n], state.entries[id])]
                found[id] = lookup.steps(id, room, reach)
        return {id: others for id, others in found.items() if others}

    def vectors(self, ids: Iterable[str], model: EmbeddingModel) -> dict[str, Vector]:
        vectors = self._state.vectors
        return {id: vectors[id, model] for id in ids if (id, model) in vectors}

    def unit_vectors(self, ids: Iterable[str], model: EmbeddingModel) -> dict[str, Vector]:
        return {id: v / (np.linalg.norm(v) or 1.0) for id, v in self.vectors(ids, model).items()}

    def unembedded(self, model: EmbeddingModel, limit: int) -> list[Unembedded]:
        state = self._state
        wanting = (
            Unembedded(e.id, e.version, e.content)
            for e in state.entries.values()
            if (e.id, model) not in state.vectors and VISIBILITY[e.state] is not Visibility.HISTORY
        )
        return list(wanting)[:limit]

    @staticmethod
    def _selected(state: _State, selection: Selection) -> list[Entry]:
        return [e for e in state.entries.values() if rules.sees(selection, e)]

    # Standing content, conversations, registry

    def named(self, name: str | None = None) -> list[NamedEntry]:
        named = self._state.named
        return [named[n][-1] for n in sorted(named) if name in (None, n)]

    def named_versions(self, name: str) -> list[NamedEntry]:
        return list(self._state.named.get(name, ()))

    def documents(self, ids: Iterable[str] | None = None) -> dict[str, Document]:
        documents = self._state.documents
        return {id: documents[id] for id in (documents if ids is None else ids) if id in documents}

    def channels(self) -> list[Channel]:
        return list(self._state.channels.values())

    def conversations(self, *, archived: bool = False, channel: str | None = None) -> list[Conversation]:
        found = [
            c
            for c in reversed(self._state.conversations.values())
            if (archived or c.status is not Status.ARCHIVED) and channel in (None, c.channel)
        ]
        return sorted(found, key=lambda c: c.started_at, reverse=True)

    def conversation(self, id_or_ref: str) -> Conversation | None:
        for c in self._state.conversations.values():
            if id_or_ref in (c.id, c.ref_code):
                return c
        return None

    def notes(self, conversation: str) -> list[Note]:
        notes = self._state.notes
        return [_note_copy(notes[place]) for place in sorted(notes) if place[0] == conversation]

    def workspaces(self) -> list[WorkspaceInfo]:
        return sorted(self._state.workspaces.values(), key=lambda w: w.created_at)

    # Items

    def items(self, places: Iterable[ItemAddress]) -> dict[ItemAddress, Item]:
        items = self._state.items
        return {place: items[place].at(place) for place in places if place in items}

    def find_items(self, query: ItemQuery, *, limit: int | None = None, offset: int = 0) -> list[FoundItem]:
        return memory_items.find(self._state.items, query, limit, offset)

    def item_namespaces(
        self, prefix: tuple[str, ...] = (), *, alive_at: datetime | None = None
    ) -> list[tuple[str, ...]]:
        return memory_items.namespaces(self._state.items, prefix, alive_at)

    def expired_items(self, at: datetime, limit: int) -> list[ItemAddress]:
        return memory_items.expired(self._state.items, at, limit)

    def unembedded_items(self, model: EmbeddingModel, indexer: str, limit: int) -> list[UnembeddedItem]:
        return memory_items.unembedded(self._state.items, model, indexer, limit)

    def touch_items(self, places: Sequence[ItemAddress], at: datetime) -> None:
        with self._lock:
            self._state.items = memory_items.touched(self._state.items, places, at)

    # Scrubbing

    def holdings(self, extent: Extent) -> Holdings:
        return scrub.holdings(self._state, extent)

    def unswept(self) -> list[str]:
        return sorted(self._state.unswept)

    def swept(self, conversation: str) -> None:
        with self._lock:
            self._state.unswept -= {conversation}

    def sweep(self) -> bool:
        """There is no file that could hold what is gone."""
        return True

    # Log and health

    def events(
        self, *, after: int = 0, limit: int = 1000, subject: str | None = None, action: str | None = None
    ) -> list[Event]:
        found = [
            e
            for e in self._state.events[max(after, 0) :]
            if subject in (None, e.subject) and action in (None, e.action)
        ]
        return [_event_copy(e) for e in found[:limit]]

    def event_counts(self, since: datetime) -> dict[str, int]:
        return dict(sorted(Counter(e.action for e in self._state.events if e.at >= since).items()))

    def event_stream(self) -> Iterator[Event]:
        yield from (_event_copy(e) for e in self._state.events)

    def head(self) -> tuple[int, str]:
        events = self._state.events
        return (events[-1].seq, events[-1].digest) if events else (0, GENESIS)

    def secret(self) -> bytes:
        return self._secret

    def check(self) -> list[Finding]:
        state = self._state
        return [Finding("chain", "events", fault, derived=False) for fault in chain_faults(state.events)]

    def rebuild(self) -> None:
        """Nothing here is derived but the terms, which are computed with the row."""

    def close(self) -> None:
        """Nothing to release: the contents live as long as the object."""


def _version(entry: Entry | None) -> int | None:
    return entry.version if entry else None


def _copy(entry: Entry) -> Entry:
    return rules.stored(entry, entry.version)


def _note_copy(note: Note) -> Note:
    return replace(note, value=rules.plain_json(note.value))


def _event_copy(event: Event) -> Event:
    return replace(event, detail=rules.plain_json(event.detail))


def _append(state: _State, draft: EventDraft, at: datetime, actor: Actor) -> None:
    plain = replace(draft, detail=rules.plain_json(draft.detail))
    previous = state.events[-1].digest if state.events else GENESIS
    state.events = (*state.events, seal(plain, seq=len(state.events) + 1, at=at, actor=actor, previous=previous))


def _save_entry(state: _State, operation: SaveEntry, transaction: Transaction) -> None:
    entry = rules.stored(operation.entry, operation.expect + 1)
    before = state.entries.get(entry.id)
    if entry.id in state.retired:
        raise Conflict(f"id {entry.id} was used before", fix="make a new id")
    rules.check_version("entry", entry.id, _version(before), operation.expect)
    if before is not None:
        rules.check_revision(before, entry)
    if entry.state in rules.TWIN_STATES and _has_twin(state, entry):
        raise rules.twin_conflict(entry)
    state.entries[entry.id] = entry
    state.twin_keys[entry.id] = _twin_key(entry)
    state.terms[entry.id] = tuple(index_terms(entry))
    state.salts.setdefault(entry.id, secrets.token_bytes(16))
    version = Version(entry, operation.action, operation.cause, str(transaction.actor), transaction.at)
    state.versions[entry.id] = (*state.versions.get(entry.id, ()), version)
    if before is None or before.content != entry.content:
        state.content_versions[entry.id] = entry.version
        _drop_vectors(state, entry.id)
    if operation.embedding is not None:
        state.vectors[entry.id, operation.embedding.model] = _frozen(rules.checked_vector(operation.embedding))


def _has_twin(state: _State, entry: Entry) -> bool:
    key = _twin_key(entry)
    return any(
        state.twin_keys[e.id] == key and e.id != entry.id and e.state in rules.TWIN_STATES
        for e in state.entries.values()
    )


def _twin_key(entry: Entry) -> tuple[Scope, str, str]:
    return entry.scope, entry.owner, twin_key(entry)


def _forget(state: _State, id: str) -> None:
    for rows in (state.entries, state.terms, state.twin_keys, state.salts, state.content_versions, state.versions):
        rows.pop(id)
    _drop_vectors(state, id)
    state.retired |= {id}


def _drop_vectors(state: _State, id: str) -> None:
    for place in [p for p in state.vectors if p[0] == id]:
        del state.vectors[place]


def _save_embedding(state: _State, operation: SaveEmbedding) -> None:
    vector = _frozen(rules.checked_vector(operation.embedding))
    entry = state.entries.get(operation.id)
    if entry is not None and state.content_versions[entry.id] <= operation.version <= entry.version:
        state.vectors[entry.id, operation.embedding.model] = vector


def _frozen(vector: Vector) -> Vector:
    vector.flags.writeable = False
    return vector


def _save_channel(state: _State, channel: Channel) -> None:
    for other in state.channels.values():
        same_workspace = other.workspace == channel.workspace
        if other.id == channel.id or (same_workspace and other.name == channel.name):
            raise rules.unique_conflict("channel", channel.id)
        if same_workspace and other.is_default and channel.is_default:
            raise Conflict("there is a default channel already", fix="use that one")
    state.channels[channel.id] = channel


def _save_conversation(state: _State, operation: SaveConversation) -> None:
    new, before = operation.conversation, state.conversations.get(operation.conversation.id)
    if operation.expect is None:
        if before or any(c.ref_code == new.ref_code for c in state.conversations.values()):
            raise rules.unique_conflict("conversation", new.id)
        if new.channel not in state.channels:
            raise rules.missing("channel", new.channel)
    elif before is None:
        raise rules.missing("conversation", new.id)
    elif before.status is not operation.expect:
        raise Conflict(f"conversation {new.id} is {before.status}", fix="read it again and decide anew")
    else:
        rules.check_conversation(before, new)
    state.conversations[new.id] = new


def _save_note(state: _State, operation: SaveNote) -> None:
    note = operation.note
    if note.conversation not in state.conversations:
        raise rules.missing("conversation", note.conversation)
    before = state.notes.get((note.conversation, note.key))
    rules.check_note(operation, before)
    kept = replace(note, created_at=before.created_at) if before else note
    state.notes[note.conversation, note.key] = _note_copy(kept)


def _drop_notes(state: _State, conversation: str, key: str | None) -> None:
    if conversation not in state.conversations:
        raise rules.missing("conversation", conversation)
    if key is not None and (conversation, key) not in state.notes:
        raise rules.missing("note", key)
    for place in [p for p in state.notes if p[0] == conversation and key in (None, p[1])]:
        del state.notes[place]


def _save_workspace(state: _State, operation: SaveWorkspace) -> None:
    info, before = operation.info, state.workspaces.get(operation.info.id)
    if operation.expect is not None and before is None:
        raise rules.missing("workspace", info.id)
    if before is not None and before.ready is not operation.expect:
        raise Conflict(f"workspace {info.id} is registered already", fix="read it again and decide anew")
    if any(w.name == info.name and w.id != info.id for w in state.workspaces.values()):
        raise rules.unique_conflict("workspace", info.id)
    state.workspaces[info.id] = info


def _cosine(a: Vector, b: Vector) -> float:
    norms = float(np.linalg.norm(a)) * float(np.linalg.norm(b))
    return min(1.0, max(-1.0, float(np.dot(a, b)) / norms)) if norms else 0.0
