"""Signals: the answer of one index to one question, as scores by entry id. Higher is always better."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from lukasa.index import bm25
from lukasa.index.matches import KeywordMatches, VectorMatch
from lukasa.model.candidate import Candidate
from lukasa.model.text import PASSAGE, terms
from lukasa.model.timestamps import HOUR, moment
from lukasa.read.question import USER
from lukasa.read.times import Span

SHORT, LONG = 400, 800  # characters: up to SHORT a text depends on its adjacent turns, from LONG on it does not


class Signal(NamedTuple):
    """Scores by entry id; an entry that was not found scores at most `least`.

    On its `own_scale`, a score between 0 and about 1 counts as it is; other scores are first standardised over the
    candidates.
    """

    name: str
    scores: Mapping[str, float]
    own_scale: bool = False
    least: float = 0.0
    factor: float = 1.0  # how much of its weight counts for this question

    def ranks(self) -> dict[str, int]:
        """Ranks by score; equal scores share a rank."""
        ordered = sorted(self.scores, key=lambda id: (-self.scores[id], id))
        ranks: dict[str, int] = {}
        for rank, id in enumerate(ordered, 1):
            before = ordered[rank - 2] if rank > 1 else id
            ranks[id] = ranks[before] if rank > 1 and self.scores[before] == self.scores[id] else rank
        return ranks


def keyword(
    matches: Iterable[KeywordMatches],
    asked: Sequence[str] = (),
    names: Collection[str] = (),
    lines: Collection[str] = (),
) -> Signal:
    """BM25 over all searched entries.

    Several stores are scored as one collection, so that a small one (an account with three entries) is not penalised
    for its size. The average length is at most that of a passage, so a text longer than a passage always counts as
    long.

    The terms in `names` do not count in `lines` of talks: there a name mostly addresses somebody, and the speaker
    signal knows who said it.
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
    """Cosines above the floor of unrelated texts. If `limit` cut the list, others may be as close as the last one."""
    scores = {candidate.id: cosine for candidate, cosine in neighbours if cosine > floor}
    cut = limit is not None and len(scores) >= limit
    return Signal("vector", scores, least=min(scores.values()) if cut else floor)


KNOWN = 0.5  # share of a question's words in memory from which the second model adds little


def multilingual(neighbours: Sequence[VectorMatch], floor: float, limit: int, unknown: float) -> Signal:
    """Cosines of the model for other languages. It counts by how many words of the question are `unknown` to memory."""
    near = vector(neighbours, floor, limit)
    return near._replace(name="multilingual", factor=min(1.0, unknown / KNOWN))


def structured(candidates: Iterable[Candidate], query_terms: Sequence[str], *, sources: bool = True) -> Signal:
    """The share of question terms that name an entry's tags, category, kind or, with `sources`, its source."""
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


FEW = 3  # entries that may hold a literal before it says less: a rare one decides, a common one does not


def exact(literals: Sequence[str], texts: Mapping[str, str]) -> Signal:
    """The share of the question's literals that a text holds, letter by letter. What many texts hold counts less."""
    folded = {id: text.casefold() for id, text in texts.items()} if literals else {}
    scores: dict[str, float] = {}
    for literal in literals:
        pattern = _whole(literal)
        holders = [id for id, text in folded.items() if literal in text and pattern.search(text)]
        for id in holders:
            scores[id] = scores.get(id, 0.0) + min(1.0, FEW / len(holders)) / len(literals)
    return Signal("exact", scores, own_scale=True)


@lru_cache(maxsize=256)
def _whole(literal: str) -> re.Pattern[str]:
    """A literal that is no part of a longer word, number or path."""
    return re.compile(rf"(?<![\w]){re.escape(literal)}(?!\w|[.,/-]\d)")


def speaker(candidates: Iterable[Candidate], named: Collection[str], oneself: bool) -> Signal:
    """Entries said by a person whom the question names; `oneself` means the asking person."""
    scores = {}
    if named or oneself:
        for candidate in candidates:
            if candidate.source in named or (oneself and candidate.said and candidate.source == USER):
                scores[candidate.id] = 1.0
    return Signal("speaker", scores, own_scale=True)


def time(candidates: Iterable[Candidate], span: Span | None, texts: Mapping[str, str]) -> Signal:
    """How close an entry is to the time that the question names, by its date or by a date in its text."""
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
    """Whether an entry holds a time or number that the question wants. A long text always does, so it gets no score."""
    scores = {}
    if wanted is not None:
        scores = {c.id: leaning(c) for c in candidates if leaning(c) and c.id in texts and _holds(wanted, texts[c.id])}
    return Signal("answer", scores, own_scale=True)


@lru_cache(maxsize=16384)
def _holds(wanted: re.Pattern[str], content: str) -> bool:
    return wanted.search(content) is not None


def leaning(candidate: Candidate) -> float:
    """How far a text depends on its adjacent turns: fully if it is short, not at all if it is long."""
    return min(1.0, max(0.0, (LONG - candidate.chars) / (LONG - SHORT)))


LENDERS = 12  # only the strongest candidates lend: a weak match has nothing to give
REACH = 2  # entries before and after
AFTER, BEFORE = 0.5, 0.3  # the shares lent to an entry after the match, and to one before it
TOGETHER = HOUR // 2  # without a named conversation, entries written within this time belong together


def conversational(adjacent: Mapping[str, Mapping[str, int]], candidates: Mapping[str, Candidate]) -> bool:
    """Whether the entries around the strongest matches are a talk: told soon after one another, by several speakers.

    A diary, notes or facts are none: there, entries before and after are about something else.
    """
    pairs = talks = told = 0
    for lender, others in adjacent.items():
        for id, steps in others.items():
            other = candidates.get(id)
            if other is None or abs(steps) != 1 or lender not in candidates:
                continue
            pairs += 1
            soon = abs(other.created_at - candidates[lender].created_at) <= TOGETHER
            talks += soon and other.said and other.chars <= LONG
            told += other.source != candidates[lender].source
    return pairs > 0 and 2 * talks >= pairs and 4 * told >= pairs


def lenders(strengths: Mapping[str, float], candidates: Mapping[str, Candidate]) -> list[str]:
    """The candidates whose adjacent turns are fetched: matching lines of talks, the best first."""
    strong = [
        (-strength, id)
        for id, strength in strengths.items()
        if strength > 0 and (candidate := candidates.get(id)) is not None and candidate.said
    ]
    return [id for _, id in sorted(strong)[:LENDERS]]


def context(
    strengths: Mapping[str, float], adjacent: Mapping[str, Mapping[str, int]], candidates: Mapping[str, Candidate]
) -> Signal:
    """The score that each entry borrows from adjacent matches. `adjacent` gives steps; positive is after the match."""
    scores: dict[str, float] = {}
    for lender, others in adjacent.items():
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
            together = early <= other.created_at <= late
            if (talk and (together or other.source != candidate.source)) or (other.said and together):
                lent = after if steps > 0 else before
                scores[id] = scores.get(id, 0.0) + (lent if other.chars <= SHORT else lent * leaning(other))
    return Signal("context", {id: score for id, score in scores.items() if score > 0}, own_scale=True)
