"""Find candidates: ask every signal that the spec names, in two phases.

Signals of the first phase bring candidates; signals of the second phase weigh all candidates. Each signal is a function
with one signature, registered by one line of `BRING` or `WEIGH` under the name that the spec uses for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from msgspec import Struct, field
from msgspec.structs import replace

from lukasa.index import bm25
from lukasa.index.matches import KeywordMatches, VectorMatch
from lukasa.model.candidate import Candidate, candidate_of
from lukasa.model.entry import Entry
from lukasa.model.errors import EmbedderError
from lukasa.model.selection import NO_FILTERS, Filters, Selection
from lukasa.model.text import terms
from lukasa.model.timestamps import micros
from lukasa.model.values import VISIBILITY, Relation, Trust, Visibility
from lukasa.ports import Vector
from lukasa.read import hops, signals
from lukasa.read.fuse import Compared, compared, strengths
from lukasa.read.question import is_about_oneself, literals, named_sources, query_terms, wanted_answer, without_names
from lukasa.read.share import crowded_out
from lukasa.read.signals import Signal
from lukasa.read.times import Span, span
from lukasa.service.call import CallContext
from lukasa.storage.port import Store

NO_EMBEDDER = "no embedding model: found by keyword only"
FURTHER = 400  # nearest entries that are looked through for more trusted ones
HOP = 10  # entries that each name of the second look brings in
LITERAL = 20  # entries that one literal of the question brings in
MOST_BY_TIME = 60  # entries that the time alone brings in

StoreSelection = tuple[Store, Selection]


class Lookup(Struct, frozen=True):
    """A question, the stores to search and how many answers are wanted. With `as_of`, entries answer as they were at
    that time."""

    query: str
    terms: tuple[str, ...]
    stores: Sequence[StoreSelection]
    wanted: int = 0
    as_of: datetime | None = None
    further: bool = True  # whether to ask the signals that cost more

    @property
    def filters(self) -> Filters:
        return self.stores[0][1].filters if self.stores else NO_FILTERS


class Findings(Struct):
    """The candidates so far, the signals that have spoken, and notes for the caller.

    `stores` are those that hold anything; `past` holds former versions of entries, for a question
    about a time in the past.
    """

    stores: Sequence[StoreSelection]
    now: int
    span: Span | None = None  # the time that the question names
    candidates: dict[str, Candidate] = field(default_factory=dict)
    past: dict[str, Entry] = field(default_factory=dict)
    signals: list[Signal] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    names: frozenset[str] = frozenset()  # sources that the question names
    unknown: float = 0.0  # the share of the question's terms that no searched entry has
    literals: tuple[str, ...] = ()  # ids, paths, versions, numbers and quotations in the question
    texts: dict[str, str] = field(default_factory=dict)
    compared: Compared | None = None  # the signals that had spoken before adjacent turns were brought
    strengths: Mapping[str, float] = field(default_factory=dict)
    adjacent: dict[str, dict[str, int]] = field(default_factory=dict)  # to the strongest matches, in steps
    looks: list[tuple[hops.Hop, dict[str, str]]] = field(default_factory=list)  # with the texts that each brought
    weights: dict[str, float] = field(default_factory=dict)  # of the question's terms, by how rare they are
    talk: bool = False  # whether the entries around the strongest matches are a conversation


class SignalStep(NamedTuple):
    """A signal's part in one phase. `missed` says in an explanation why the signal did not find an entry.

    A function that only brings candidates returns None.
    """

    name: str
    run: Callable[[CallContext, Lookup, Findings], Signal | None]
    missed: str = "it says nothing of this entry"


def find(ctx: CallContext, lookup: Lookup) -> Findings:
    """Run the signals of the spec: first those that bring candidates, then those that weigh them."""
    found = Findings(lookup.stores, micros(ctx.now))
    if not lookup.query.strip():
        _newest(ctx, lookup, found)
        return found
    wanted = frozenset(ctx.spec.retrieval.signals)
    if "time" in wanted:
        found.span = span(lookup.query, lookup.as_of or ctx.now)
    for phase in (BRING, WEIGH):
        for step in phase:
            signal = step.run(ctx, lookup, found) if step.name in wanted else None
            if signal is not None:
                found.signals.append(_of_candidates(signal, found))
    return found


def _limit(ctx: CallContext, lookup: Lookup) -> int:
    """How many candidates one signal brings. Keywords bring twice as many where no vector brings any."""
    alone = ctx.embedder is None or "vector" not in ctx.spec.retrieval.signals
    return max(lookup.wanted, ctx.spec.retrieval.candidates * (2 if alone else 1))


def _newest(ctx: CallContext, lookup: Lookup, found: Findings) -> None:
    """Bring the newest entries: the answer to an empty question."""
    limit = _limit(ctx, lookup)
    recent = {e.id: e for place in lookup.stores for e in _newest_of(place, limit, lookup.wanted)}
    _admit_entries(ctx, lookup, found, recent)
    found.signals.append(Signal("recency", dict.fromkeys(found.candidates, 1.0)))


def _newest_of(place: StoreSelection, limit: int, wanted: int) -> list[Entry]:
    """Return the newest entries, damaged ones too, and older ones that newer text of less trust would crowd out."""
    store, selection = place
    newest = store.find(selection, limit=limit, damaged=True)
    asked = crowded_out([entry.trust for entry in newest], wanted) if len(newest) >= limit else []
    further = store.find(selection, limit=FURTHER, damaged=True)[limit:] if asked else []
    chosen = {e.id: e for trust in asked for e in [e for e in further if e.trust >= trust][:wanted]}
    return [*newest, *chosen.values()]


def _by_keyword(ctx: CallContext, lookup: Lookup, found: Findings) -> Signal | None:
    """Bring what holds words of the question, and note which sources the question names."""
    if not lookup.terms:
        return None
    limit = _limit(ctx, lookup)
    matches = [store.keyword(selection, lookup.terms, limit) for store, selection in lookup.stores]
    for (store, _), match in zip(lookup.stores, matches, strict=True):
        _admit(ctx, lookup, found, store, match.candidates)
    more = _more_trusted_words(lookup, matches, limit)
    for store, match in more:
        _admit(ctx, lookup, found, store, match.candidates)
    found.stores = [pair for pair, match in zip(lookup.stores, matches, strict=True) if match.size]
    size = sum(match.size for match in matches)
    counted = list(zip(*(match.frequencies for match in matches), strict=True)) or [() for _ in lookup.terms]
    found.weights = {term: bm25.idf(size, sum(counts)) for term, counts in zip(lookup.terms, counted, strict=True)}
    held = [any(counts) for counts in counted]
    found.unknown = held.count(False) / len(held) if held else 1.0
    found.names = named_sources(lookup.query, {candidate.source for candidate in found.candidates.values()})
    names = frozenset(term for source in found.names for term in terms(source))
    lines = {id for id, candidate in found.candidates.items() if candidate.said} if names else frozenset[str]()
    return signals.keyword([*matches, *(match for _, match in more)], lookup.terms, names, lines)


def _more_trusted_words(
    lookup: Lookup, matches: Sequence[KeywordMatches], limit: int
) -> list[tuple[Store, KeywordMatches]]:
    """Search again for what less trusted text may have crowded out of the candidates. Mostly it did not."""
    more: list[tuple[Store, KeywordMatches]] = []
    for (store, selection), match in zip(lookup.stores, matches, strict=True):
        known = {candidate.id: candidate for candidate in match.candidates}
        for trust in crowded_out([one.trust for one in known.values()], lookup.wanted) if len(known) >= limit else ():
            found = store.keyword(_trusted(selection, trust), lookup.terms, lookup.wanted)
            fresh = [at for at, one in enumerate(found.candidates) if one.id not in known]
            known |= {found.candidates[at].id: found.candidates[at] for at in fresh}
            more.append((store, found.part(fresh)))
    return more


def _trusted(selection: Selection, least: Trust) -> Selection:
    return replace(selection, filters=replace(selection.filters, min_trust=least))


def _by_literal(ctx: CallContext, lookup: Lookup, found: Findings) -> None:
    """Bring what holds the words of the question's ids, paths, versions, numbers and quotes, whatever else it says."""
    found.literals = literals(lookup.query)
    for literal in found.literals:
        asked = query_terms(literal)
        for store, selection in found.stores if asked else ():
            _admit(ctx, lookup, found, store, store.keyword(selection, asked, LITERAL).candidates)


def _by_vector(ctx: CallContext, lookup: Lookup, found: Findings) -> Signal | None:
    """Bring what is near in meaning to the question without the names of speakers."""
    vector = _query_vector(ctx, without_names(lookup.query, found.names), found)
    if vector is None or ctx.embedder is None:
        return None
    model = ctx.embedder.model
    limit = _limit(ctx, lookup)
    near: list[VectorMatch] = []
    for store, selection in found.stores:
        these = store.nearest(selection, model, vector, limit)
        _admit(ctx, lookup, found, store, [candidate for candidate, cosine in these if cosine > model.floor])
        near += these
        near += _more_trusted_meanings(ctx, lookup, found, (store, selection), these, vector)
    return signals.vector(near, model.floor, limit)


def _by_second(ctx: CallContext, lookup: Lookup, found: Findings) -> Signal | None:
    """Bring what is near in meaning by the model for other languages, if memory lacks words of the question."""
    if ctx.second is None or not found.unknown or (not lookup.further and found.unknown < signals.KNOWN):
        return None
    try:
        vector = ctx.second.embed_query(without_names(lookup.query, found.names))
    except EmbedderError as error:
        found.notes.append(f"the model for other languages failed ({error.message})")
        return None
    model, limit = ctx.second.model, _limit(ctx, lookup)
    near: list[VectorMatch] = []
    for store, selection in found.stores:
        these = store.nearest(selection, model, vector, limit)
        _admit(ctx, lookup, found, store, [candidate for candidate, cosine in these if cosine > model.floor])
        near += these
    return signals.multilingual(near, model.floor, limit, found.unknown)


def _more_trusted_meanings(
    ctx: CallContext,
    lookup: Lookup,
    found: Findings,
    place: StoreSelection,
    these: Sequence[VectorMatch],
    vector: Vector,
) -> list[VectorMatch]:
    """Look further for what less trusted text may have crowded out of the nearest. Mostly it did not."""
    model = ctx.embedder.model if ctx.embedder is not None else None
    asked = crowded_out([one.candidate.trust for one in these], lookup.wanted)
    if model is None or not asked or len(these) < _limit(ctx, lookup):
        return []
    store, selection = place
    known = {one.id for one in these}
    further = [one for one in store.nearest(selection, model, vector, FURTHER) if one.id not in known]
    chosen: dict[str, VectorMatch] = {}
    for trust in asked:
        trusted = [one for one in further if one.candidate.trust >= trust and one.cosine > model.floor]
        chosen |= {one.id: one for one in trusted[: lookup.wanted]}
    _admit(ctx, lookup, found, store, [one.candidate for one in chosen.values()])
    return list(chosen.values())


def _query_vector(ctx: CallContext, meaning: str, found: Findings) -> Vector | None:
    if ctx.embedder is None:
        found.notes.append(NO_EMBEDDER)
        return None
    try:
        return ctx.embedder.embed_query(meaning)
    except EmbedderError as error:
        found.notes.append(f"the embedding model failed ({error.message}): found by keyword only")
        return None


def _recorded_then(ctx: CallContext, lookup: Lookup, found: Findings) -> None:
    """Bring what was recorded at the time that the question names, even if it shares no word with the question."""
    named = found.span
    if named is None:
        return
    for store, selection in found.stores:
        filters = selection.filters
        since = max(named.start, filters.since) if filters.since else named.start
        until = min(named.until, filters.until) if filters.until else named.until
        then = replace(selection, filters=replace(filters, since=since, until=until))
        recorded = store.find(then, limit=MOST_BY_TIME, damaged=True)
        _admit_entries(ctx, lookup, found, {e.id: e for e in recorded if e.id not in found.candidates})


def _by_label(ctx: CallContext, lookup: Lookup, found: Findings) -> Signal:
    """Compare the labels of the candidates so far; adjacent turns, which come later, do not count as labelled."""
    sources = "speaker" not in ctx.spec.retrieval.signals
    return signals.structured(found.candidates.values(), lookup.terms, sources=sources)


def _adjacent_turns(ctx: CallContext, lookup: Lookup, found: Findings) -> None:
    """Bring the turns before and after the strongest matches."""
    found.compared = compared(found.signals, ctx.spec.retrieval)
    found.strengths = strengths(found.signals, ctx.spec.retrieval, found.compared)
    for store, ids in by_store(found, signals.lenders(found.strengths, found.candidates)):
        near = store.adjacent(ids, signals.REACH)
        others = list({id: None for steps in near.values() for id in steps if id not in found.candidates})
        _admit(ctx, lookup, found, store, store.candidates(others, lookup.filters).values() if others else ())
        found.adjacent |= near
    found.talk = signals.conversational(found.adjacent, found.candidates)


def _second_look(ctx: CallContext, lookup: Lookup, found: Findings) -> None:
    """Ask for what the strongest matches name, with the words of the question that these leave open."""
    if not lookup.further or found.talk:
        return
    totals = found.compared.totals if found.compared is not None else strengths(found.signals, ctx.spec.retrieval)
    leaders = sorted(totals, key=totals.__getitem__, reverse=True)[: hops.LEADERS]
    # A line of a talk is not about what it names.
    leaders = _in_force(found, [id for id in leaders if not found.candidates[id].said])
    texts = _texts_of(found, leaders)
    known = frozenset(term for candidate in found.candidates.values() for term in terms(candidate.source))
    for hop in hops.hops(lookup.terms, totals, texts, known):
        brought: dict[str, str] = {}
        for store, selection in found.stores:
            candidates = store.keyword(selection, (*hop.terms, *hop.left), HOP).candidates
            _admit(ctx, lookup, found, store, candidates)
            brought |= _texts_of(found, [one.id for one in candidates if one.id in found.candidates])
        found.looks.append((hop, brought))


def _in_force(found: Findings, ids: Sequence[str]) -> list[str]:
    """These entries without those that a later one of no less trust may have replaced, if it is a candidate too."""
    passed: set[str] = set()
    for store, here in by_store(found, ids):
        for pair in store.rivals(here):
            both = [found.candidates[id] for id in (pair.other, pair.entry) if id in found.candidates]
            if pair.relation is Relation.UPDATE and len(both) == 2:
                old, new = sorted(both, key=lambda one: (one.confirmed_at, one.created_at))
                if new.trust >= old.trust:
                    passed.add(old.id)
    return [id for id in ids if id not in passed]


def _links(ctx: CallContext, lookup: Lookup, found: Findings) -> Signal:
    return hops.links(found.looks, found.weights)


def _context(ctx: CallContext, lookup: Lookup, found: Findings) -> Signal:
    return signals.context(found.strengths, found.adjacent, found.candidates)


def _speaker(ctx: CallContext, lookup: Lookup, found: Findings) -> Signal:
    candidates = found.candidates.values()
    named = named_sources(lookup.query, {candidate.source for candidate in candidates})
    return signals.speaker(candidates, named, is_about_oneself(lookup.query))


def _time(ctx: CallContext, lookup: Lookup, found: Findings) -> Signal:
    texts = _texts(found) if found.span is not None else {}
    return signals.time(found.candidates.values(), found.span, texts)


def _exact(ctx: CallContext, lookup: Lookup, found: Findings) -> Signal:
    return signals.exact(found.literals, _texts(found) if found.literals else {})


def _answer(ctx: CallContext, lookup: Lookup, found: Findings) -> Signal:
    sought = wanted_answer(lookup.query)
    if sought is None or not found.talk:
        return signals.answer((), None, {})
    return signals.answer(found.candidates.values(), sought, _texts(found))


# Phase one, in order: each step sees the candidates of the steps before it. Keywords come first, because they show
# which speakers the question names; adjacent turns come last, because they belong to the strongest matches.
BRING: tuple[SignalStep, ...] = (
    SignalStep("keyword", _by_keyword),
    SignalStep("vector", _by_vector),
    SignalStep(
        "multilingual",
        _by_second,
        "by the model for other languages its meaning is not near enough, or others are nearer",
    ),
    SignalStep("exact", _by_literal),
    SignalStep("time", _recorded_then),
    SignalStep("structured", _by_label, "no tag, category, kind or source of it is named in the question"),
    SignalStep("context", _adjacent_turns),
    SignalStep("links", _second_look),
)
# Phase two: all candidates are known, and no step depends on another.
WEIGH: tuple[SignalStep, ...] = (
    SignalStep("context", _context, "no adjacent turn matches, or it does not depend on its adjacent turns"),
    SignalStep(
        "exact", _exact, "the question names no id, path, version, number or quotation, or the entry holds none of them"
    ),
    SignalStep("links", _links, "the best matches name nothing that it goes on from"),
    SignalStep("speaker", _speaker, "the question does not name who said it"),
    SignalStep("time", _time, "the question names no time, or another one"),
    SignalStep(
        "answer",
        _answer,
        "the question asks for no time or number, or it holds none, or is too long for that to say anything, or the "
        "best matches are no lines of a conversation",
    ),
)


def _texts(found: Findings) -> dict[str, str]:
    """The texts of all candidates, each read once."""
    return _texts_of(found, list(found.candidates))


def _texts_of(found: Findings, ids: Sequence[str]) -> dict[str, str]:
    texts = found.texts
    texts |= {id: entry.content for id, entry in found.past.items()}
    for store, unread in by_store(found, [id for id in ids if id not in texts]):
        texts |= store.texts(unread)
    return {id: texts[id] for id in ids if id in texts}


def by_store(found: Findings, ids: Sequence[str]) -> list[tuple[Store, Sequence[str]]]:
    """Group candidates by the store that holds them: mostly one store holds all."""
    if len(found.stores) == 1:
        return [(found.stores[0][0], ids)] if ids else []
    grouped: list[tuple[Store, Sequence[str]]] = []
    for store, selection in found.stores:
        tiers = {scope.tier for scope in selection.scopes}
        here = [id for id in ids if found.candidates[id].scope.tier in tiers]
        if here:
            grouped.append((store, here))
    return grouped


def _admit(ctx: CallContext, lookup: Lookup, found: Findings, store: Store, candidates: Iterable[Candidate]) -> None:
    """Add candidates that hold now, or that history shows. A blank text answers nothing."""
    if lookup.as_of is not None:
        wanted = [candidate.id for candidate in candidates if candidate.id not in found.candidates]
        if wanted:
            _admit_entries(ctx, lookup, found, store.entries(wanted, damaged=True))
        return
    now = found.now
    found.candidates |= {
        candidate.id: candidate
        for candidate in candidates
        if candidate.chars
        and (
            (candidate.invalid_at is None and (candidate.valid_at or 0) <= now)  # as mostly
            or candidate.holds_at(now)
            or candidate.retired
        )
    }


def _admit_entries(ctx: CallContext, lookup: Lookup, found: Findings, entries: Mapping[str, Entry]) -> None:
    """Add candidates of entries that were read whole. An empty file answers nothing."""
    now = ctx.now
    for id, entry in entries.items():
        if not entry.content or entry.content.isspace() or not lookup.filters.admits(entry):
            continue
        if lookup.as_of is None:
            if entry.holds_at(now) or retired(entry):
                found.candidates[id] = candidate_of(entry)
        elif (then := as_it_was(ctx, entry, lookup.as_of)) is not None:
            found.candidates[id], found.past[id] = candidate_of(then), then


def _of_candidates(signal: Signal, found: Findings) -> Signal:
    """Leave out scores of entries that were not admitted."""
    if signal.scores.keys() <= found.candidates.keys():
        return signal
    return signal._replace(scores={id: score for id, score in signal.scores.items() if id in found.candidates})


def as_it_was(ctx: CallContext, entry: Entry, at: datetime) -> Entry | None:
    """Return the version of an entry at a time if it held then: written and not retired, or said since to have held."""
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
