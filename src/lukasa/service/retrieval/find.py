"""Finding candidates: the question put to every signal that the spec names, in one order."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from msgspec import Struct, field
from msgspec.structs import replace

from lukasa.model.candidate import Candidate, candidate_of
from lukasa.model.entry import Entry
from lukasa.model.errors import EmbedderError
from lukasa.model.moments import micros
from lukasa.model.text import terms as terms_of
from lukasa.model.values import VISIBILITY, Visibility
from lukasa.ports import Vector
from lukasa.read import signals, surroundings
from lukasa.read.asking import is_about_oneself, named_sources, wanted_answer, without_names
from lukasa.read.fuse import Compared, compared, strengths
from lukasa.read.signals import Signal
from lukasa.read.times import Span, span
from lukasa.service.call import CallContext
from lukasa.storage.port import NO_FILTERS, Filters, Neighbour, Selection, Store

NO_EMBEDDER = "no embedding model: found by keyword only"
OF_A_TIME = 60  # entries that the time alone brings in

Place = tuple[Store, Selection]


class Asked(Struct, frozen=True):
    """A question with the places to look in and how many answers are wanted. `as_of` asks for what held at a moment, in
    the wording of that moment."""

    query: str
    terms: tuple[str, ...]
    places: Sequence[Place]
    wanted: int = 0
    as_of: datetime | None = None

    @property
    def filters(self) -> Filters:
        return self.places[0][1].filters if self.places else NO_FILTERS


class Found(Struct):
    """What was found so far: candidates, what each signal said of them, and what the caller should know.

    `past` are the forms of a moment that was asked for, where that is not now; `places` are those of the question that
    hold anything.
    """

    places: Sequence[Place]
    now: int
    candidates: dict[str, Candidate] = field(default_factory=dict)
    past: dict[str, Entry] = field(default_factory=dict)
    signals: list[Signal] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    compared: Compared | None = None  # the signals that bring candidates, once all of these have spoken


def find(ctx: CallContext, asked: Asked) -> Found:
    """Every signal of the spec, each of which may bring candidates or weigh those that are there."""
    found = Found(asked.places, micros(ctx.now))
    if not asked.query.strip():
        _newest(ctx, asked, found)
        return found
    wanted = set(ctx.spec.retrieval.signals)
    # Words come first, so that the names of who said things are known before the meaning is asked for.
    named: frozenset[str] = frozenset()
    if "keyword" in wanted and asked.terms:
        named = _by_keyword(ctx, asked, found)
    if "vector" in wanted:
        _by_vector(ctx, asked, found, named)
    stretch = span(asked.query, asked.as_of or ctx.now) if "time" in wanted else None
    if stretch is not None:
        _by_time(ctx, asked, found, stretch)
    if "structured" in wanted:
        found.signals.append(
            signals.structured(found.candidates.values(), asked.terms, sources="speaker" not in wanted)
        )
    if "context" in wanted:
        _by_context(ctx, asked, found)
    candidates = found.candidates.values()
    if "speaker" in wanted:
        named = named_sources(asked.query, {candidate.source for candidate in candidates})
        found.signals.append(signals.speaker(candidates, named, is_about_oneself(asked.query)))
    sought = wanted_answer(asked.query) if "answer" in wanted else None
    texts = _texts(found) if stretch is not None or sought is not None else {}
    if "time" in wanted:
        found.signals.append(signals.time(candidates, stretch, texts))
    if "answer" in wanted:
        found.signals.append(signals.answer(candidates, sought, texts))
    return found


def _bring(ctx: CallContext, asked: Asked) -> int:
    """How many candidates a signal brings. Words bring twice as many where there are no vectors to bring theirs."""
    alone = ctx.embedder is None or "vector" not in ctx.spec.retrieval.signals
    return max(asked.wanted, ctx.spec.retrieval.candidates * (2 if alone else 1))


def _newest(ctx: CallContext, asked: Asked, found: Found) -> None:
    limit = _bring(ctx, asked)
    recent = {e.id: e for store, selection in asked.places for e in store.find(selection, limit=limit)}
    _admit_entries(ctx, asked, found, recent)
    found.signals.append(Signal("recency", dict.fromkeys(found.candidates, 1.0)))


def _by_keyword(ctx: CallContext, asked: Asked, found: Found) -> frozenset[str]:
    """By words; the answer is which sources the question names."""
    limit = _bring(ctx, asked)
    matches = [store.keyword(selection, asked.terms, limit) for store, selection in asked.places]
    for (store, _), match in zip(asked.places, matches, strict=True):
        _admit(ctx, asked, found, store, match.candidates)
    found.places = [place for place, match in zip(asked.places, matches, strict=True) if match.size]
    named = named_sources(asked.query, {candidate.source for candidate in found.candidates.values()})
    names = frozenset(term for source in named for term in terms_of(source))
    lines = {id for id, candidate in found.candidates.items() if candidate.said} if names else frozenset[str]()
    found.signals.append(_among(signals.keyword(matches, asked.terms, names, lines), found))
    return named


def _by_vector(ctx: CallContext, asked: Asked, found: Found, named: Iterable[str]) -> None:
    vector = _query_vector(ctx, without_names(asked.query, named), found)
    if vector is None or ctx.embedder is None:
        return
    model = ctx.embedder.model
    limit = _bring(ctx, asked)
    near: list[Neighbour] = []
    for store, selection in found.places:
        these = store.nearest(selection, model, vector, limit)
        _admit(ctx, asked, found, store, [candidate for candidate, cosine in these if cosine > model.floor])
        near += these
    found.signals.append(_among(signals.vector(near, model.floor, limit), found))


def _query_vector(ctx: CallContext, meaning: str, found: Found) -> Vector | None:
    if ctx.embedder is None:
        found.notes.append(NO_EMBEDDER)
        return None
    try:
        return ctx.embedder.embed_query(meaning)
    except EmbedderError as error:
        found.notes.append(f"the embedding model failed ({error.message}): found by keyword only")
        return None


def _by_time(ctx: CallContext, asked: Asked, found: Found, stretch: Span) -> None:
    """What was recorded at the time that the question names, though no word of it was asked for."""
    for store, selection in found.places:
        then = replace(selection, filters=_within(selection.filters, stretch))
        recorded = {entry.id: entry for entry in store.find(then, limit=OF_A_TIME) if entry.id not in found.candidates}
        _admit_entries(ctx, asked, found, recorded)


def _within(filters: Filters, stretch: Span) -> Filters:
    since = max(stretch.start, filters.since) if filters.since else stretch.start
    until = min(stretch.until, filters.until) if filters.until else stretch.until
    return replace(filters, since=since, until=until)


def _by_context(ctx: CallContext, asked: Asked, found: Found) -> None:
    """What stands beside the best matches, and how much of their strength it borrows."""
    found.compared = compared(found.signals, ctx.spec.retrieval)
    strong = strengths(found.signals, ctx.spec.retrieval, found.compared)
    lenders = surroundings.lenders(strong, found.candidates)
    beside: dict[str, dict[str, int]] = {}
    for store, ids in at_home(found, lenders):
        near = store.beside(ids, surroundings.REACH)
        others = list({id: None for steps in near.values() for id in steps if id not in found.candidates})
        _admit(ctx, asked, found, store, store.candidates(others, asked.filters).values() if others else ())
        beside |= near
    found.signals.append(surroundings.context(strong, beside, found.candidates))


def _texts(found: Found) -> dict[str, str]:
    texts = {id: entry.content for id, entry in found.past.items()}
    for store, unread in at_home(found, [id for id in found.candidates if id not in texts]):
        texts |= store.texts(unread)
    return texts


def at_home(found: Found, ids: Sequence[str]) -> list[tuple[Store, Sequence[str]]]:
    """Candidates with the store that holds them: mostly all are in one."""
    if len(found.places) == 1:
        return [(found.places[0][0], ids)] if ids else []
    grouped: list[tuple[Store, Sequence[str]]] = []
    for store, selection in found.places:
        tiers = {scope.tier for scope in selection.scopes}
        here = [id for id in ids if found.candidates[id].scope.tier in tiers]
        if here:
            grouped.append((store, here))
    return grouped


def _admit(ctx: CallContext, asked: Asked, found: Found, store: Store, candidates: Iterable[Candidate]) -> None:
    """Make candidates of these, if the question may see them. What is blank answers nothing."""
    if asked.as_of is not None:
        wanted = [candidate.id for candidate in candidates if candidate.id not in found.candidates]
        if wanted:
            _admit_entries(ctx, asked, found, store.entries(wanted))
        return
    now = found.now
    found.candidates |= {
        candidate.id: candidate
        for candidate in candidates
        if candidate.chars
        and ((candidate.invalid_at is None and (candidate.valid_at or 0) <= now) or _answers(candidate, now))
    }


def _answers(candidate: Candidate, now: int) -> bool:
    return candidate.holds_at(now) or candidate.retired


def _admit_entries(ctx: CallContext, asked: Asked, found: Found, entries: Mapping[str, Entry]) -> None:
    """The same for entries that were read whole. An empty file answers nothing."""
    now = ctx.now
    for id, entry in entries.items():
        if not entry.content or entry.content.isspace() or not asked.filters.admits(entry):
            continue
        if asked.as_of is None:
            if entry.holds_at(now) or retired(entry):
                found.candidates[id] = candidate_of(entry)
        elif (then := as_it_was(ctx, entry, asked.as_of)) is not None:
            found.candidates[id], found.past[id] = candidate_of(then), then


def _among(signal: Signal, found: Found) -> Signal:
    if signal.scores.keys() <= found.candidates.keys():
        return signal
    return signal._replace(scores={id: score for id, score in signal.scores.items() if id in found.candidates})


def as_it_was(ctx: CallContext, entry: Entry, at: datetime) -> Entry | None:
    """The form of an entry at a moment, if it held then: written and not retired, or said since to have held."""
    if entry.updated_at > at:
        versions = ctx.store(entry.scope.tier).versions(entry.id)
        before = [v.entry for v in versions if v.at <= at]
        first = versions[0].entry
        if not before and (first.valid_at is None or first.valid_at > at):
            return None
        entry = replace(before[-1] if before else first, invalid_at=entry.invalid_at)
    return entry if entry.holds_at(at) and not retired(entry) else None


def retired(entry: Entry) -> bool:
    return VISIBILITY[entry.state] is Visibility.HISTORY
