"""What a question asks for: its terms, whom it names, what kind of answer it wants, how much of it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache, lru_cache

from lukasa.model.talk import ONESELF, OTHERS
from lukasa.model.text import STOP_WORDS, terms, words

USER = "user"  # the source of what the person said, where nobody is named
_BROAD = frozenset("everything all list summarise summarize overview history compare why explain review".split())
_WITH_OTHERS = OTHERS | {"us"}
# How one asks, which tells nothing of whom: "could you please remind me", "over our conversations".
_COURTESY = (
    r"\b(?:can|could|would|will) you(?: please)?\b(?: \w+ me\b)?|\b(?:tell|remind|show|give|help) me\b"
    r"|\bour (?:\w+ )?(?:chats?|conversations?|discussions?|sessions?)\b"
)
_POSSESSIVE = re.compile(r"['’]s\b")
# Patterns are compiled when they are first needed: most questions want neither a time nor a number.
_WHEN = r"\bwhen\b|\bhow long\b|\b(?:what|which)\s+(?:date|day|month|year|time|week|weekend|season|weekday)\b"
_HOW_MANY = r"\bhow (?:many|much|old|often|far|tall|big|large|fast)\b"
_TIMES = (
    r"\b(?:yesterday|today|tonight|tomorrow|ago|last|next|since|recently|weeks?|weekend|months?|years?|days|morning"
    r"|evening|(?:mon|tues|wednes|thurs|fri|satur|sun)day|january|february|march|april|may|june|july|august|september"
    r"|october|november|december|(?:19|20)\d\d|\d{1,2}(?:st|nd|rd|th))\b"
)
_NUMBERS = (
    r"\b(?:\d[\d.,]*|one|two|three|four|five|six|seven|eight|nine|ten|dozen|couple|several|few|once|twice|first|second"
    r"|third|hundreds?|thousands?)\b"
)


def query_terms(query: str, most: int = 32) -> tuple[str, ...]:
    """The distinct index terms of a question, in order."""
    return tuple(dict.fromkeys(terms(query)))[:most]


def choose_profile(query: str) -> str:
    """`auto`: a broad or long question gets `deep`, one or two words get `lean`, the rest `balanced`."""
    asked = words(query)
    meaningful = [w for w in asked if w not in STOP_WORDS]
    if len(meaningful) > 12 or _BROAD & set(asked):
        return "deep"
    return "lean" if len(meaningful) <= 2 else "balanced"


def named_sources(query: str, sources: Iterable[str]) -> frozenset[str]:
    """Those of the sources that a question names: by the whole name, or by a part of it written as a name."""
    said, as_names = _said(query)
    return frozenset(
        source
        for source in sources
        if (name := _name(source)) and (name <= said or (len(name) > 1 and name & as_names))
    )


@lru_cache(maxsize=64)
def _said(query: str) -> tuple[set[str], set[str]]:
    """The words of a question, and those of them that are written as names."""
    parts = _POSSESSIVE.sub("", query).split()
    said = {word for part in parts for word in words(part)}
    return said, {word for part in parts[1:] if part[:1].isupper() and not part.isupper() for word in words(part)}


@lru_cache(maxsize=4096)
def _name(source: str) -> frozenset[str]:
    return frozenset(words(source))


def without_names(query: str, sources: Iterable[str]) -> str:
    """A question without the names of those who said things, for comparing meanings.

    A name pulls a vector toward texts that address the person, while what is asked for was mostly said *by* them;
    who said it is the speaker signal's to know. If nothing else was asked, the question stays as it is.
    """
    names = {word for source in named_sources(query, sources) for word in _name(source)}
    if not names:
        return query
    kept = [part for part in query.split() if not names.intersection(words(_POSSESSIVE.sub("", part)))]
    return " ".join(kept) if query_terms(" ".join(kept)) else query


def is_about_oneself(query: str) -> bool:
    """Whether the asking person asks about themselves alone: "what did I say it was?", "can you list my pets?"."""
    if ONESELF.isdisjoint(words(query)):
        return False
    said = set(words(_compiled(_COURTESY).sub(" ", query)))
    return bool(said & ONESELF) and not said & _WITH_OTHERS


def wanted_answer(query: str) -> re.Pattern[str] | None:
    """What an answer to this would hold: a time, a number, or nothing in particular."""
    if _compiled(_WHEN).search(query):
        return _compiled(_TIMES)
    return _compiled(_NUMBERS) if _compiled(_HOW_MANY).search(query) else None


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)
