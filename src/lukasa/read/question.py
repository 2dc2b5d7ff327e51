"""Read a question: its terms, the people that it names, the kind of answer that it wants, and how much."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache, lru_cache

from lukasa.model.text import ONESELF, OTHERS, STOP_WORDS, terms, words
from lukasa.read.coverage import wanted_coverage

USER = "user"  # the source of the person's own words, if they have no name
_BROAD = frozenset("everything all list summarise summarize overview history compare why explain review".split())
_WITH_OTHERS = OTHERS | {"us"}
# Polite wordings that do not say whom a question is about: "could you please remind me", "over our conversations".
_COURTESY = (
    r"\b(?:can|could|would|will) you(?: please)?\b(?: \w+ me\b)?|\b(?:tell|remind|show|give|help) me\b"
    r"|\bour (?:\w+ )?(?:chats?|conversations?|discussions?|sessions?)\b"
)
_POSSESSIVE = re.compile(r"['’]s\b")
# Patterns are compiled at their first use: most questions want neither a time nor a number.
_WHEN = r"\bwhen\b|\bhow long\b|\b(?:what|which)\s+(?:date|day|month|year|time|week|weekend|season|weekday)\b"
_HOW_MANY = r"\bhow (?:many|much|old|often|far|tall|big|large|fast)\b"
_SOME_TIME = (
    r"\b(?:yesterday|today|tonight|tomorrow|ago|last|next|since|recently|weeks?|weekend|months?|years?|days|morning"
    r"|evening|(?:mon|tues|wednes|thurs|fri|satur|sun)day|january|february|march|april|may|june|july|august|september"
    r"|october|november|december|(?:19|20)\d\d|\d{1,2}(?:st|nd|rd|th))\b"
)
_SOME_NUMBER = (
    r"\b(?:\d[\d.,]*|one|two|three|four|five|six|seven|eight|nine|ten|dozen|couple|several|few|once|twice|first|second"
    r"|third|hundreds?|thousands?)\b"
)


_QUOTED = r"""["“”„«»`]([^"“”„«»`\n]{3,120})["“”«»`]"""
_CLOSING, _OPENING = ".,;:!?)]}>\"'’”“«»`", "([{<\"'’“”„«»`"
_LITERAL = r"\d|(?<=\w)[/\\_@#=]+(?=\w)|^[/~.]+/\w|(?<=\w)(?:::|\.)(?=[^\W\d])|(?<=[a-z])[A-Z]"
_ORDINARY = (
    r"[$€£]?\d{1,2}%?|(?:19|20)\d\d|\d{1,4}(?:st|nd|rd|th|am|pm|s|k|m|h|\.)|\d{1,2}:\d\d(?:am|pm)?|[A-Za-z]{1,9}"
)
_ORDINARY += r"|[A-Za-z.]{1,4}\.?|(?:and/or|his/her|he/she|w/o|24/7|\d-(?:day|week|month|year)(?:-old)?)"


def literals(query: str) -> tuple[str, ...]:
    """The parts of a question that an entry must hold letter by letter: ids, codes, paths, versions, numbers, quotes.

    Small numbers, years and times of the day are said of many things and are none.
    """
    quoted = _compiled(_QUOTED, 0)
    found = [part.strip() for part in quoted.findall(query)]
    sought, ordinary = _compiled(_LITERAL, 0), _compiled(_ORDINARY, 0)
    for word in quoted.sub(" ", query).split():
        bare = _POSSESSIVE.sub("", word).rstrip(_CLOSING).lstrip(_OPENING)
        if len(bare) > 1 and sought.search(bare) and not ordinary.fullmatch(bare):
            found.append(bare)
    return tuple(dict.fromkeys(part.casefold() for part in found))[:8]


MOST_TERMS = 128  # of a question; a long passage may be the question


def query_terms(query: str, most: int = MOST_TERMS) -> tuple[str, ...]:
    """The distinct index terms of a question, in order."""
    return tuple(dict.fromkeys(terms(query)))[:most]


def choose_profile(query: str) -> str:
    """Choose the profile for `auto`: `lean` for a word or two, `deep` for a question that is broad or long or wants all
    of something, else `balanced`."""
    asked = words(query)
    meaningful = [w for w in asked if w not in STOP_WORDS]
    if len(meaningful) > 12 or _BROAD & set(asked) or wanted_coverage(query):
        return "deep"
    return "lean" if len(meaningful) <= 2 else "balanced"


def named_sources(query: str, sources: Iterable[str]) -> frozenset[str]:
    """The sources that a question names: by the whole name, or by a part of it written as a name."""
    said, as_names = _said(query)
    return frozenset(
        source
        for source in sources
        if (name := _name(source)) and (name <= said or (len(name) > 1 and name & as_names))
    )


@lru_cache(maxsize=64)
def _said(query: str) -> tuple[set[str], set[str]]:
    """The words of a question, and the ones that are written as names."""
    parts = _POSSESSIVE.sub("", query).split()
    said = {word for part in parts for word in words(part)}
    return said, {word for part in parts[1:] if part[:1].isupper() and not part.isupper() for word in words(part)}


@lru_cache(maxsize=4096)
def _name(source: str) -> frozenset[str]:
    return frozenset(words(source))


def without_names(query: str, sources: Iterable[str]) -> str:
    """A question without the names of speakers, for comparing meanings.

    A name pulls a vector toward texts that address the person, but the answer was mostly said *by* them; the speaker
    signal handles that. If nothing else was asked, the question stays as it is.
    """
    names = {word for source in named_sources(query, sources) for word in _name(source)}
    if not names:
        return query
    kept = [part for part in query.split() if not names.intersection(words(_POSSESSIVE.sub("", part)))]
    return " ".join(kept) if query_terms(" ".join(kept)) else query


def is_about_oneself(query: str) -> bool:
    """Whether people ask about themselves alone: "what did I say it was?", "can you list my pets?"."""
    if ONESELF.isdisjoint(words(query)):
        return False
    said = set(words(_compiled(_COURTESY, re.IGNORECASE).sub(" ", query)))
    return bool(said & ONESELF) and not said & _WITH_OTHERS


def wanted_answer(query: str) -> re.Pattern[str] | None:
    """A pattern that an answer to this question would match: a time or a number; None for other questions."""
    if _compiled(_WHEN, re.IGNORECASE).search(query):
        return _compiled(_SOME_TIME, re.IGNORECASE)
    return _compiled(_SOME_NUMBER, re.IGNORECASE) if _compiled(_HOW_MANY, re.IGNORECASE).search(query) else None


@cache
def _compiled(pattern: str, flags: int) -> re.Pattern[str]:
    return re.compile(pattern, flags)
