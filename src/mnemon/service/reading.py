"""Read: fetch from every reachable tier, then let the pure read path decide."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from mnemon.model.entry import Access, Document, Entry
from mnemon.model.errors import EmbedderError, InvalidQuery
from mnemon.model.frozen import dataclass
from mnemon.model.values import VISIBILITY, Curator, Kind, State, Visibility
from mnemon.ports.embedder import Vector
from mnemon.ports.store import Filters, Selection, Store, Verdict
from mnemon.read import signals
from mnemon.read.fuse import fuse
from mnemon.read.rank import Hit, Ranking, choose_profile, drop_repeats, provenance, query_terms, rank, without_names
from mnemon.read.signals import Signal
from mnemon.service import inputs
from mnemon.service.room import Room
from mnemon.spec.types import DecayModel, Profile, Tier

NO_EMBEDDER = "no embedding model: found by keyword only"


@dataclass(frozen=True, slots=True)
class Question:
    """A read as asked for: where to look, what to admit, how much to return."""

    query: str
    tiers: tuple[str, ...] | None = None
    profile: str = "auto"
    limit: int | None = None
    filters: Filters = Filters()
    held: bool = False
    history: bool = False
    as_of: datetime | None = None


@dataclass(frozen=True, slots=True)
class Search:
    """Everything a read found out, before anything is counted or cut: what `why` looks into."""

    question: Question
    limit: int
    terms: tuple[str, ...]
    signals: tuple[Signal, ...]
    ranked: tuple[Hit, ...]
    kept: tuple[Hit, ...]
    dropped: Mapping[str, Verdict]
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Recall:
    """Hits, best first, with what a caller should know about how they were found."""

    query: str
    profile: str
    hits: tuple[Hit, ...]
    notes: tuple[str, ...] = ()

    def __iter__(self) -> Iterator[Hit]:
        return iter(self.hits)

    def __len__(self) -> int:
        return len(self.hits)

    def __getitem__(self, place: int) -> Hit:
        return self.hits[place]


def filters(
    *,
    kind: Kind | str | None = None,
    category: str | None = None,
    tags: Sequence[str] = (),
    source: str | None = None,
    curator: Curator | str | None = None,
    state: State | str | None = None,
    since: datetime | str | None = None,
    until: datetime | str | None = None,
) -> Filters:
    return Filters(
        kinds=frozenset({inputs.choice(kind, Kind, "kind")}) if kind is not None else frozenset(),
        categories=frozenset({inputs.label(category, "category")}) if category is not None else frozenset(),
        tags=frozenset(inputs.tags(tags)),
        sources=frozenset({inputs.label(source, "source")}) if source is not None else frozenset(),
        curators=frozenset({inputs.choice(curator, Curator, "curator")}) if curator is not None else frozenset(),
        states=frozenset({inputs.choice(state, State, "state")}) if state is not None else frozenset(),
        since=inputs.moment(since, "since") if since is not None else None,
        until=inputs.moment(until, "until") if until is not None else None,
    )


def read(room: Room, question: Question, *, count: bool = True) -> Recall:
    """Find, rank, and count one retrieval of each hit returned."""
    found = search(room, question)
    hits = list(found.kept)
    if count and hits:
        hits = counted(room, hits, room.now)
    hits = with_provenance(room, hits)
    return Recall(question.query, found.question.profile, tuple(hits), found.notes)


def search(room: Room, question: Question) -> Search:
    question = _checked(room, question)
    notes: list[str] = []
    tiers = room.reachable(question.tiers)
    terms = query_terms(question.query)
    fetched = _fetch(room, tiers, question, terms, notes)
    given = Ranking(room.spec, question.as_of or room.now, _access(room, fetched.entries), _closed(room, tiers))
    matches = fuse(fetched.signals, room.spec.retrieval)
    ranked = rank(fetched.entries, matches, given)
    limit = _limit(room, question)
    given = replace(given, vectors=_vectors(room, ranked[: limit * 3]))
    kept, dropped = drop_repeats(ranked, given, limit)
    return Search(question, limit, terms, fetched.signals, tuple(ranked), tuple(kept), dropped, tuple(notes))


def _checked(room: Room, question: Question) -> Question:
    query = inputs.query(question.query)
    profile = choose_profile(query) if question.profile == "auto" else question.profile
    profile_of(room, profile)
    if question.limit is not None:
        inputs.limit(question.limit)
    as_of = inputs.moment(question.as_of, "as_of") if question.as_of is not None else None
    return replace(question, query=query, profile=profile, as_of=as_of)


def profile_of(room: Room, name: str) -> Profile:
    if name not in room.spec.profiles:
        known = ", ".join(["auto", *room.spec.profiles])
        raise InvalidQuery(f"unknown profile {str(name)[:60]!r}", fix=f"use one of: {known}")
    return room.spec.profiles[name]


def _limit(room: Room, question: Question) -> int:
    return question.limit or room.spec.profiles[question.profile].limit


def _query_vector(room: Room, query: str, notes: list[str]) -> Vector | None:
    if "vector" not in room.spec.retrieval.signals or not query.strip():
        return None
    if room.embedder is None:
        notes.append(NO_EMBEDDER)
        return None
    try:
        return room.embedder.embed_query(query)
    except EmbedderError as error:
        notes.append(f"the embedding model failed ({error.message}): found by keyword only")
        return None


@dataclass(frozen=True, slots=True)
class _Fetched:
    entries: dict[str, Entry]
    signals: tuple[Signal, ...]


def selections(room: Room, tiers: Sequence[Tier], question: Question) -> list[tuple[Store, Selection]]:
    """One selection for each database: the scopes of the asked tiers that live there."""
    rooms = {Visibility.OPEN}
    if question.held:
        rooms.add(Visibility.HELD)
    if question.history or question.as_of is not None:
        rooms.add(Visibility.HISTORY)
    found = []
    for store in (room.local, room.account):
        scopes = tuple(room.scope(t.name) for t in tiers if room.store(t.name) is store)
        if scopes:
            found.append((store, Selection(scopes, frozenset(rooms), room.owners, question.filters)))
    return found


def _fetch(room: Room, tiers: Sequence[Tier], question: Question, terms: tuple[str, ...], notes: list[str]) -> _Fetched:
    retrieval = room.spec.retrieval
    places = selections(room, tiers, question)
    if not question.query.strip():
        recent = {e.id: e for store, sel in places for e in store.find(sel, limit=retrieval.candidates)}
        admitted = _as_of(room, recent, question.as_of)
        return _Fetched(admitted, (Signal("recency", dict.fromkeys(admitted, 1.0)),))
    asked: list[Signal] = []
    entries: dict[str, Entry] = {}
    if "keyword" in retrieval.signals and terms:
        asked.append(signals.keyword(store.keyword(sel, terms, retrieval.candidates) for store, sel in places))
        entries |= _entries(places, asked[-1].scores)
    # Words come first, so that the names of who said things are known before the meaning is asked for.
    meaning = without_names(question.query, {entry.source for entry in entries.values()})
    vector = _query_vector(room, meaning, notes)
    if vector is not None and room.embedder is not None:
        model = room.embedder.model
        near = [n for store, sel in places for n in store.nearest(sel, model, vector, retrieval.candidates)]
        asked.append(signals.vector(near, model.floor))
        entries |= _entries(places, asked[-1].scores.keys() - entries.keys())
    entries = _as_of(room, entries, question.as_of)
    if "structured" in retrieval.signals:
        asked.append(signals.structured(entries.values(), terms))
    return _Fetched(entries, tuple(Signal(s.name, {i: v for i, v in s.scores.items() if i in entries}) for s in asked))


def _entries(places: Sequence[tuple[Store, Selection]], ids: Iterable[str]) -> dict[str, Entry]:
    wanted = list(ids)
    return {id: entry for store, _ in places for id, entry in store.entries(wanted).items()} if wanted else {}


def _as_of(room: Room, entries: dict[str, Entry], at: datetime | None) -> dict[str, Entry]:
    entries = {id: entry for id, entry in entries.items() if entry.content.strip()}  # an empty file answers nothing
    if at is None:
        now = room.now
        return {id: entry for id, entry in entries.items() if entry.holds_at(now) or _retired(entry)}
    past = {id: as_it_was(room, entry, at) for id, entry in entries.items()}
    return {id: entry for id, entry in past.items() if entry is not None}


def as_it_was(room: Room, entry: Entry, at: datetime) -> Entry | None:
    """The form of an entry at a moment, if it held then: written and not retired, or said since to have held."""
    if entry.updated_at > at:
        versions = room.store(entry.scope.tier).versions(entry.id)
        before = [v.entry for v in versions if v.at <= at]
        first = versions[0].entry
        if not before and (first.valid_at is None or first.valid_at > at):
            return None
        entry = replace(before[-1] if before else first, invalid_at=entry.invalid_at)
    return entry if entry.holds_at(at) and not _retired(entry) else None


def _retired(entry: Entry) -> bool:
    return VISIBILITY[entry.state] is Visibility.HISTORY


def _access(room: Room, entries: Mapping[str, Entry]) -> dict[str, Access]:
    found: dict[str, Access] = {}
    for store, ids in _by_store(room, entries.values()):
        found.update(store.access(ids))
    return found


def _by_store(room: Room, entries: Iterable[Entry]) -> list[tuple[Store, list[str]]]:
    listed = list(entries)
    grouped = []
    for store in (room.local, room.account):
        ids = [e.id for e in listed if room.store(e.scope.tier) is store]
        if ids:
            grouped.append((store, ids))
    return grouped


def _closed(room: Room, tiers: Sequence[Tier]) -> dict[str, datetime]:
    """When the conversation at hand ended, for tiers whose decay begins there."""
    key = room.keys.get("conversation")
    waiting = any(
        room.spec.behaviour(t.name, kind).decay.model is DecayModel.SCOPE_CLOSE for t in tiers for kind in Kind
    )
    if key is None or not waiting:
        return {}
    conversation = room.local.conversation(key)
    return {key: conversation.ended_at} if conversation and conversation.ended_at else {}


def _vectors(room: Room, hits: Sequence[Hit]) -> dict[str, Vector]:
    if room.embedder is None:
        return {}
    found: dict[str, Vector] = {}
    for store, ids in _by_store(room, (hit.entry for hit in hits)):
        found.update(store.vectors(ids, room.embedder.model))
    return found


def counted(room: Room, hits: Sequence[Hit], now: datetime) -> list[Hit]:
    counts: dict[str, Access] = {}
    for store, ids in _by_store(room, (hit.entry for hit in hits)):
        counts.update(store.touch(ids, now))
    return [replace(hit, access=counts.get(hit.id, hit.access)) for hit in hits]


def with_provenance(room: Room, hits: Sequence[Hit]) -> list[Hit]:
    wanted = {link.source for hit in hits for link in hit.entry.links}
    documents: dict[str, Document] = room.local.documents(wanted) if wanted else {}
    return [replace(hit, provenance=provenance(hit.entry, documents)) for hit in hits]
