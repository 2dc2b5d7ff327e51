"""The second look of a read: what the best matches name and the question does not, with the words they leave open.

"Where was the author of Misery born?" finds who wrote Misery, and then where that person was born.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence

from msgspec import Struct

from lukasa.model.text import STOP_WORDS, terms, words
from lukasa.read.signals import Signal

LEADERS, LOOKS = 3, 4  # matches that are looked at, and names that are asked for, at most
ENOUGH = 0.4  # share of the open terms that a text must hold, by how rare they are
ALIKE = 5  # letters that two forms of a word share at least
MOST = 400  # characters of a match that may name something: a longer text names too much
_JOINED = r"(?:of|the|de|la|von|van|der|di|da|del|and|for|in|&)"
_CAPITAL = r"[^\W\d_a-zß-öø-ÿ][\w'’.\-]*"
_RUN = re.compile(rf"{_CAPITAL}(?:\s+(?:{_JOINED}\s+){{0,2}}{_CAPITAL})*")


class Hop(Struct, frozen=True):
    """A name that a match brought, with its terms, and the terms of the question that the match leaves open."""

    leader: str
    name: str
    terms: tuple[str, ...]
    left: tuple[str, ...]
    strength: float


def names(text: str) -> list[str]:
    """The names in a text: runs of words with a capital. A common word at the beginning is none."""
    found = []
    for run in _RUN.findall(text[:MOST]):
        parts = run.strip(" .'’").split()
        while parts and words(parts[0]) and set(words(parts[0])) <= STOP_WORDS:
            parts = parts[1:]
        if parts and len(" ".join(parts)) > 2:
            found.append(" ".join(parts).removesuffix("'s").removesuffix("’s"))
    return list(dict.fromkeys(found))


def hops(
    asked: Sequence[str], strengths: Mapping[str, float], texts: Mapping[str, str], known: Collection[str] = ()
) -> list[Hop]:
    """The names to ask for: of the strongest matches that answer a part of the question and name something new.

    `known` are terms that say nothing here, such as the names of speakers.
    """
    wanted = [term for term in asked if term not in known]
    found: dict[str, Hop] = {}
    best = max(strengths.values(), default=0.0)
    for id in sorted(texts, key=lambda id: -strengths.get(id, 0.0))[:LEADERS]:
        text = texts[id]
        held = set(terms(text)) if len(text) <= MOST else set()
        left = tuple(term for term in wanted if term not in held)
        if not left or len(left) == len(wanted) or not best:
            continue
        for name in names(text):
            own = tuple(dict.fromkeys(terms(name)))
            if own and not set(own) & set(asked) and not set(own) <= set(known) and name not in found:
                found[name] = Hop(id, name, own, left, strengths.get(id, 0.0) / best)
    return list(found.values())[:LOOKS]


def links(found: Sequence[tuple[Hop, Mapping[str, str]]], weight: Mapping[str, float]) -> Signal:
    """How well a text goes on from a match: the share of the open terms that it holds, if it has the whole name.

    `found` are the texts that each hop brought; `weight` says how rare a term is.
    """
    scores: dict[str, float] = {}
    for hop, texts in found:
        total = sum(weight.get(term, 1.0) for term in hop.left)
        for id, text in texts.items():
            held = set(terms(text))
            if id == hop.leader or total <= 0 or not held.issuperset(hop.terms):
                continue
            share = sum(weight.get(term, 1.0) for term in hop.left if _has(held, term)) / total
            if share >= ENOUGH:
                scores[id] = max(scores.get(id, 0.0), share * hop.strength)
    return Signal("links", scores, own_scale=True)


def _has(held: Collection[str], term: str) -> bool:
    """Whether a term is among those of a text, or begins as one of them does: "citizenship" as "citizen"."""
    if term in held:
        return True
    most = [one for one in held if len(one) >= ALIKE and term.startswith(one[:ALIKE])]
    return any(term.startswith(one) or one.startswith(term) for one in most)
