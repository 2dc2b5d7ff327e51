"""Read a question: its terms, the people and times that it names, the kind of answer that it wants, and how much."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from functools import cache, lru_cache

from msgspec import Struct

from lukasa.model.text import ONESELF, OTHERS, STOP_WORDS, terms, words

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


def query_terms(query: str, most: int = 32) -> tuple[str, ...]:
    """The distinct index terms of a question, in order."""
    return tuple(dict.fromkeys(terms(query)))[:most]


def choose_profile(query: str) -> str:
    """Choose the profile for `auto`: `deep` for a broad or long question, `lean` for a word or two, else `balanced`."""
    asked = words(query)
    meaningful = [w for w in asked if w not in STOP_WORDS]
    if len(meaningful) > 12 or _BROAD & set(asked):
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


MONTHS = "january february march april may june july august september october november december".split()
WEEKDAYS = "monday tuesday wednesday thursday friday saturday sunday".split()
_SEASONS = {"spring": 3, "summer": 6, "autumn": 9, "fall": 9, "winter": 12}
_NUMBERS = {
    word: n for n, word in enumerate("one two three four five six seven eight nine ten eleven twelve".split(), 1)
}
_NUMBERS |= {"a": 1, "an": 1, "couple of": 2, "a couple of": 2, "few": 3, "a few": 3}
_RECENT = {"day before yesterday": 2, "yesterday": 1, "last night": 1, "today": 0, "this morning": 0}
_WORD = re.compile("[a-z]+")
_DAY = timedelta(days=1)
TOLD_LATE = timedelta(days=9)  # events are often told a week later ("last Saturday we …")


class Span(Struct, frozen=True):
    """From `start` until `end`, and patterns for a text that names the same time."""

    start: datetime
    end: datetime
    words: tuple[str, ...] = ()

    @property
    def until(self) -> datetime:
        """The latest time at which an event of this span is likely to be told."""
        return self.end + TOLD_LATE

    def nearness(self, at: datetime) -> float:
        """1 inside the span, less within TOLD_LATE after it or a day before a short one, 0 elsewhere."""
        if self.start <= at < self.end:
            return 1.0
        short = self.end - self.start <= 8 * _DAY
        if short and self.start - _DAY <= at < self.until:
            return 0.8
        return 0.5 if self.end <= at < self.until else 0.0

    def named_in(self, text: str) -> bool:
        """Whether a text names this time itself, by month and day or by month alone, as the question did."""
        return bool(self.words) and all(re.search(rf"\b{word}\b", text) for word in self.words)


def span(question: str, now: datetime) -> Span | None:
    """The time span in the past that a question names; None if it names none."""
    said = set(_WORD.findall(question.lower())) | ({"0"} if any(map(str.isdigit, question)) else set())
    if _HINTS.isdisjoint(said):  # true of most questions
        return None
    now = now.astimezone(UTC)
    for hints, pattern, flags, reading in _READINGS:
        found = _compiled(pattern, flags).search(question) if hints & said else None
        if found is None:
            continue
        try:
            read = reading(found, now)
        except (ValueError, OverflowError):  # 31 June, a million years ago
            continue
        if read is not None and read.start <= now:
            return read
    return None


def _days(start: datetime, count: int = 1, words: tuple[str, ...] = ()) -> Span:
    return Span(start, start + count * _DAY, words)


def _midnight(at: datetime) -> datetime:
    return at.replace(hour=0, minute=0, second=0, microsecond=0)


def _date(year: int, month: int, day: int = 1) -> datetime:
    return datetime(year, month, day, tzinfo=UTC)


def _months(year: int, month: int, count: int, words: tuple[str, ...] = ()) -> Span:
    last = month - 1 + count
    return Span(_date(year, month), _date(year + last // 12, last % 12 + 1), words)


def _month_number(name: str) -> int:
    return next(n for n, month in enumerate(MONTHS, 1) if month.startswith(name.lower()[:3]))


def _month_pattern(number: int) -> str:
    name = MONTHS[number - 1]
    # "may" and "march" are months only if they are written as names.
    start = name[:3].title() if name in ("may", "march") else f"(?i:{name[:3]})"
    return f"{start}(?:{name[3:]})?"


def _calendar(found: re.Match[str], now: datetime) -> Span | None:
    """A day or a whole month. Without a year, the latest one that has begun."""
    parts = found.groupdict()
    month, day = _month_number(parts["month"]), int(parts.get("day") or 0)
    year = int(parts["year"]) if parts.get("year") else now.year
    if not parts.get("year") and _date(year, month, day or 1) > now:
        year -= 1
    named = _month_pattern(month)
    if not day:
        return _months(year, month, 1, (named,))
    return _days(_date(year, month, day), 1, (named, rf"{day}(?:st|nd|rd|th)?"))


def _iso(found: re.Match[str], now: datetime) -> Span | None:
    year, month, day = int(found["year"]), int(found["month"]), int(found["day"] or 0)
    return _days(_date(year, month, day)) if day else _months(year, month, 1)


def _season(found: re.Match[str], now: datetime) -> Span | None:
    month = _SEASONS[found["season"].lower()]
    year = int(found["year"]) if found["year"] else now.year
    if not found["year"]:
        end = _months(year, month, 3).end
        begun = _date(year, month) <= now and (found["which"].lower() == "this" or end <= now)
        year -= not begun
    return _months(year, month, 3, (f"(?i:{found['season']})",))


def _year(found: re.Match[str], now: datetime) -> Span | None:
    return _months(int(found["year"]), 1, 12, (found["year"],))


def _ago(found: re.Match[str], now: datetime) -> Span | None:
    """A span around a moment, as wide as its unit."""
    length = _UNITS[found["unit"].lower()]
    middle = _midnight(now - _count(found["n"]) * length)
    half = timedelta(days=length.days // 2)
    return Span(middle - half, middle + half + _DAY)


def _past(found: re.Match[str], now: datetime) -> Span | None:
    return Span(now - _count(found["n"]) * _UNITS[found["unit"].lower()], now + _DAY)


def _count(text: str) -> int:
    plain = " ".join(text.lower().split())
    return int(plain) if plain.isdigit() else _NUMBERS[plain]


def _calendar_unit(found: re.Match[str], now: datetime) -> Span | None:
    back = 1 if found["which"].lower() in ("last", "previous") else 0
    today = _midnight(now)
    match found["unit"].lower():
        case "week":
            return _days(today - (today.weekday() + 7 * back) * _DAY, 7)
        case "weekend":
            saturday = today - ((today.weekday() - 5) % 7) * _DAY
            return _days(saturday - 7 * _DAY if back and saturday + 2 * _DAY > today else saturday, 2)
        case "month":
            count = today.year * 12 + today.month - 1 - back
            return _months(count // 12, count % 12 + 1, 1)
        case _:
            return _months(today.year - back, 1, 12)


def _weekday(found: re.Match[str], now: datetime) -> Span | None:
    back = (now.weekday() - WEEKDAYS.index(found["day"].lower())) % 7 or 7
    return _days(_midnight(now) - back * _DAY)


def _recent_day(found: re.Match[str], now: datetime) -> Span | None:
    said = " ".join(found[0].lower().split())
    return _days(_midnight(now) - _RECENT[said] * _DAY)


_UNITS = {
    unit + plural: timedelta(days=days)
    for unit, days in (("day", 1), ("week", 7), ("month", 30), ("year", 365))
    for plural in ("", "s")
}
_PLAIN_MONTHS = r"jan(?:uary)?|feb(?:ruary)?|apr(?:il)?|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?"
_PLAIN_MONTHS += r"|nov(?:ember)?|dec(?:ember)?"
_MONTH = rf"(?P<month>(?i:{_PLAIN_MONTHS})|Mar(?:ch)?|May)\b\.?"
_ANY_MONTH = rf"(?P<month>(?i:{_PLAIN_MONTHS}|mar(?:ch)?|may))\b\.?"
_DAY_OF = r"(?P<day>\d{1,2})(?:st|nd|rd|th)?"
_YEAR_OF = r"(?P<year>(?:19|20)\d\d)\b"
_N = r"(?P<n>\d{1,3}|a couple of|couple of|a few|few|an?|" + "|".join(list(_NUMBERS)[:12]) + ")"
_SEASON = rf"(?P<season>{'|'.join(_SEASONS)})"
_ALL_MONTHS = " ".join(form for month in MONTHS for form in (month, month[:3], month[:4]))
_CALENDAR_UNIT = r"\b(?P<which>last|this|past|previous)\s+(?P<unit>week|weekend|month|year)\b"
_UNIT = r"(?P<unit>days?|weeks?|months?|years?)"
_Reading = Callable[[re.Match[str], datetime], Span | None]
# Each pattern with words of which a question must have one, "0" for any digit. Most questions have none, and then the
# pattern is not compiled.
_READINGS: tuple[tuple[frozenset[str], str, int, _Reading], ...] = tuple(
    (frozenset(hints.split()), pattern, flags, reading)
    for hints, pattern, flags, reading in (
        ("0", r"\b(?P<year>(?:19|20)\d\d)-(?P<month>\d\d)(?:-(?P<day>\d\d))?\b", 0, _iso),
        (_ALL_MONTHS, rf"\b{_DAY_OF}\s+(?:of\s+)?{_ANY_MONTH}(?:,?\s+(?:of\s+)?{_YEAR_OF})?", 0, _calendar),
        (_ALL_MONTHS, rf"\b{_ANY_MONTH}\s+(?:the\s+)?{_DAY_OF}\b(?!\d)(?:,?\s+{_YEAR_OF})?", 0, _calendar),
        (_ALL_MONTHS, rf"\b{_ANY_MONTH},?\s+(?:of\s+)?{_YEAR_OF}", 0, _calendar),
        (" ".join(_SEASONS), rf"\b(?P<which>last|this|past|previous)\s+{_SEASON}\b(?P<year>)", re.I, _season),
        (" ".join(_SEASONS), rf"\b(?P<which>){_SEASON}\s+(?:of\s+)?{_YEAR_OF}", re.I, _season),
        (_ALL_MONTHS, rf"\b(?i:in|during|last|this|since|early|late|mid)[\s-]+{_MONTH}", 0, _calendar),
        ("yesterday today night morning", rf"\b(?:{'|'.join(_RECENT)})\b", re.I, _recent_day),
        ("ago back earlier", rf"\b{_N}\s+{_UNIT}\s+(?:ago|back|earlier)\b", re.I, _ago),
        (" ".join(_UNITS), rf"\b(?:last|past|previous)\s+{_N}\s+{_UNIT}\b", re.I, _past),
        ("week weekend month year", _CALENDAR_UNIT, re.I, _calendar_unit),
        (" ".join(WEEKDAYS), rf"\b(?:last|this past)\s+(?P<day>{'|'.join(WEEKDAYS)})\b", re.I, _weekday),
        ("0", rf"\b(?:in|during|of|since|throughout)\s+(?:the\s+year\s+)?{_YEAR_OF}", re.I, _year),
    )
)


_HINTS = frozenset[str]().union(*(hints for hints, *_ in _READINGS))


@cache
def _compiled(pattern: str, flags: int) -> re.Pattern[str]:
    return re.compile(pattern, flags)
