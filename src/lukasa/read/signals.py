"""Signals: one question put to one index, as scores by entry id. Higher is better, always."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from lukasa.index import bm25
from lukasa.index.keyword import KeywordMatches
from lukasa.index.vectors import VectorMatch
from lukasa.model.candidate import Candidate
from lukasa.model.text import PASSAGE, terms
from lukasa.model.timestamps import HOUR, moment
from lukasa.read.question import USER, Span

SHORT, LONG = 400, 800  # characters: up to the one a text leans on what is around it, from the other on it does not


class Signal(NamedTuple):
    """Scores by entry id; what was not found has at most the `least`. On its `own_scale`, a score between 0 and about 1
    counts as it is; others are compared with the rest of the candidates first."""

    name: str
    scores: Mapping[str, float]
    own_scale: bool = False
    least: float = 0.0

    def ranks(self) -> dict[str, int]:
        """Places by score; equals share one."""
        ordered = sorted(self.scores, key=lambda id: (-self.scores[id], id))
        places: dict[str, int] = {}
        for place, id in enumerate(ordered, 1):
            before = ordered[place - 2] if place > 1 else id
            places[id] = places[before] if place > 1 and self.scores[before] == self.scores[id] else place
        return places


def keyword(
    matches: Iterable[KeywordMatches],
    asked: Sequence[str] = (),
    names: Collection[str] = (),
    lines: Collection[str] = (),
) -> Signal:
    """BM25 over everything searched. Several stores are scored as one collection, so that a small one (an
    account with three entries) is not penalised for its size. Texts are short or long beside one another up to the
    length of a passage; what is longer is long, however long the others are.

    Of the terms `asked`, those of speakers' `names` do not count in `lines` of talks: in what was said, a name mostly
    addresses somebody, and who said it is another signal's to know.
    """
    found = tuple(matches)
    size = sum(m.size for m in found)
    average = min(PASSAGE, max(1.0, sum(m.total_terms for m in found) / size)) if size else 1.0
    frequencies = [sum(column) for column in zip(*(m.frequencies for m in found), strict=True)]
    weights = [bm25.idf(size, n) for n in frequencies]
    quiet = weights
    if names and not set(asked) <= set(names):
        quiet = [0.0 if term in names else w for term, w in zip(asked, weights, strict=True)]
    scores: dict[str, float] = {}
    for m in found:
        scores.update(zip(m.ids, bm25.scores(m.counts, m.lengths, weights, average), strict=True))
        if lines and quiet is not weights:
            quieter = bm25.scores(m.counts, m.lengths, quiet, average)
            scores.update((id, score) for id, score in zip(m.ids, quieter, strict=True) if id in lines)
    return Signal("keyword", {id: score for id, score in scores.items() if score > 0})


def vector(neighbours: Sequence[VectorMatch], floor: float, limit: int | None = None) -> Signal:
    """Cosines above what unrelated texts reach. If as many came as were asked for, more may be as near as the last."""
    scores = {candidate.id: cosine for candidate, cosine in neighbours if cosine > floor}
    cut = limit is not None and len(scores) >= limit
    return Signal("vector", scores, least=min(scores.values()) if cut else floor)


def structured(candidates: Iterable[Candidate], query_terms: Sequence[str], *, sources: bool = True) -> Signal:
    """How much of the question names an entry's tags, category or kind, and its source unless that is heard already."""
    asked = frozenset(query_terms)
    named: dict[tuple[object, ...], float] = {}  # most candidates share their labels with others
    scores = {}
    for candidate in candidates if asked else ():
        labels = (candidate.tags, candidate.kind, candidate.source if sources else "", candidate.category)
        score = named.get(labels)
        if score is None:
            score = named[labels] = len(asked & _labels(candidate, sources)) / len(asked)
        if score > 0:
            scores[candidate.id] = score
    return Signal("structured", scores)


def _labels(candidate: Candidate, sources: bool) -> set[str]:
    labels = [*candidate.tags, candidate.kind, candidate.source if sources else "", candidate.category or ""]
    return set().union(*map(_label_terms, labels))


@lru_cache(maxsize=4096)
def _label_terms(label: str) -> frozenset[str]:
    return frozenset(terms(label))


def speaker(candidates: Iterable[Candidate], named: Collection[str], oneself: bool) -> Signal:
    """What was said by somebody the question names. Who asks about themselves alone names themselves."""
    scores = {}
    if named or oneself:
        for candidate in candidates:
            if candidate.source in named or (oneself and candidate.said and candidate.source == USER):
                scores[candidate.id] = 1.0
    return Signal("speaker", scores, own_scale=True)


def time(candidates: Iterable[Candidate], span: Span | None, texts: Mapping[str, str]) -> Signal:
    """How near an entry is to the time that the question names: when it was recorded, or what it speaks of."""
    if span is None:
        return Signal("time", {}, own_scale=True)
    scores = {
        candidate.id: 1.0
        if span.named_in(texts[candidate.id])
        else span.nearness(moment(candidate.valid_at or candidate.created_at))
        for candidate in candidates
        if candidate.id in texts
    }
    return Signal("time", {id: score for id, score in scores.items() if score > 0}, own_scale=True)


def answer(candidates: Iterable[Candidate], wanted: re.Pattern[str] | None, texts: Mapping[str, str]) -> Signal:
    """Whether an entry holds what the question wants: a time, a number. A long text always does, so it says nothing."""
    scores = {}
    if wanted is not None:
        scores = {c.id: leaning(c) for c in candidates if leaning(c) and c.id in texts and _holds(wanted, texts[c.id])}
    return Signal("answer", scores, own_scale=True)


@lru_cache(maxsize=16384)
def _holds(wanted: re.Pattern[str], content: str) -> bool:
    return wanted.search(content) is not None


def leaning(candidate: Candidate) -> float:
    """How far a text depends on what is around it: wholly if it is short, not at all if it is long."""
    return min(1.0, max(0.0, (LONG - candidate.chars) / (LONG - SHORT)))


LENDERS = 12  # only the strongest candidates lend: what hardly matches has nothing to give
REACH = 2  # entries before and after
AFTER, BEFORE = 0.5, 0.3  # what is lent to an entry that came after the match, and to one that came before it
TOGETHER = HOUR // 2  # where no conversation is named, what was written within this is of one occasion


def lenders(strengths: Mapping[str, float], candidates: Mapping[str, Candidate]) -> list[str]:
    """The candidates whose neighbours are worth looking at: matching lines of talks, the best first."""
    strong = [
        (-strength, id)
        for id, strength in strengths.items()
        if strength > 0 and (candidate := candidates.get(id)) is not None and candidate.said
    ]
    return [id for _, id in sorted(strong)[:LENDERS]]


def context(
    strengths: Mapping[str, float], beside: Mapping[str, Mapping[str, int]], candidates: Mapping[str, Candidate]
) -> Signal:
    """What each entry borrows from the matches beside it. `beside` gives steps: positive, written after the match."""
    scores: dict[str, float] = {}
    for lender, others in beside.items():
        candidate = candidates.get(lender)
        if candidate is None:
            continue
        after, before = AFTER * strengths[lender], BEFORE * strengths[lender]
        talk, early, late = (
            candidate.conversation is not None,
            candidate.created_at - TOGETHER,
            candidate.created_at + TOGETHER,
        )
        for id, steps in others.items():
            other = candidates.get(id)
            if other is None or other.filed:
                continue
            if talk or (other.said and early <= other.created_at <= late):
                lent = after if steps > 0 else before
                scores[id] = scores.get(id, 0.0) + (lent if other.chars <= SHORT else lent * leaning(other))
    return Signal("context", {id: score for id, score in scores.items() if score > 0}, own_scale=True)
