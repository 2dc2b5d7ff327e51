"""Estimate how sure a read is that its best hit answers: the probability, from how near and how complete it is.

Two things tell an answer from the best of nothing: the cosine of the best hit, measured from what unrelated texts reach
under the same model, and the share of the question's words that one of the first hits has, rare words counting more.
Lines of a talk are worded loosely and resemble each other, so there the same numbers say less. The coefficients were
fitted on questions whose evidence was taken away (`bench/answers.py`); they say nothing about whether memory is right.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping, Sequence
from functools import cache

from msgspec import Struct

FIRST = 5  # hits whose words are compared with the question's
_ASKING = (
    r"\?\s*$|^\W*(?:who|whom|whose|what|when|where|which|why|how|is|are|was|were|do|does|did|has|have|had|can|could|will"
    r"|would|should|wer|wen|wem|wessen|was|wann|wo|wohin|woher|welche[mnrs]?|warum|weshalb|wie|wieviel|ist|sind|war"
    r"|waren|hat|haben|hatte|kann|qui|quand|où|quel(?:le)?s?|pourquoi|comment|quién|qué|cuándo|dónde|cuál(?:es)?|cómo)\b"
)


class Coefficients(Struct, frozen=True):
    """The logistic of the estimate: what nothing at all gives, and what nearness and shared words add."""

    base: float
    nearness: float
    words: float


FACTS, FACTS_BY_WORDS = Coefficients(-2.2, 6.3, 0.5), Coefficients(-1.3, 0.0, 2.4)
TALK, TALK_BY_WORDS = Coefficients(-1.0, 2.0, 1.2), Coefficients(-0.8, 0.0, 1.5)


def confidence(nearness: float | None, words: float, *, talk: bool) -> float:
    """Return the probability that the best hit answers.

    `nearness` is 0 at the cosine of unrelated texts and 1 for the same text; None without a model. `words` is the share
    of the question's words. `talk` says that the best hit is a line of a talk.
    """
    if nearness is None:
        by = TALK_BY_WORDS if talk else FACTS_BY_WORDS
    else:
        by = TALK if talk else FACTS
    return 1 / (1 + math.exp(-(by.base + by.nearness * (nearness or 0.0) + by.words * words)))


def nearness(cosine: float, floor: float) -> float:
    """Return how far a cosine is on the way from the model's floor to the same text."""
    return min(1.0, max(0.0, (cosine - floor) / (1 - floor))) if floor < 1 else 0.0


def shared_words(weights: Mapping[str, float], hits: Sequence[Collection[str]]) -> float:
    """Return the largest share of the question's words that one hit has, each word by its weight."""
    whole = sum(weights.values())
    if whole <= 0:
        return 0.0
    return max((sum(weights.get(term, 0.0) for term in set(held)) / whole for held in hits[:FIRST]), default=0.0)


@cache
def _asking() -> re.Pattern[str]:
    return re.compile(_ASKING, re.IGNORECASE)


def asks(query: str) -> bool:
    """Say whether a text asks something that a memory may answer; "continue chapter three" does not."""
    return _asking().search(query.strip()) is not None
