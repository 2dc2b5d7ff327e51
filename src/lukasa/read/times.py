"""Read the time in the past that a question names: a day, a week, a month, a season, a year, or from one to another.

English and German. A day may be written as 2024-01-21, 21.01.2024, 1/21/2024 (the month first, unless it cannot be one)
or in words.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from functools import cache

from msgspec import Struct

_DAY = timedelta(days=1)
TOLD_LATE = timedelta(days=9)  # events are often told a week later ("last Saturday we …")
_MONTHS = (  # the forms of each month, the full English one first
    "january jan januar jänner jaenner",
    "february feb februar",
    "march mar märz maerz mär",
    "april apr",
    "may mai",
    "june jun juni",
    "july jul juli",
    "august aug",
    "september sept sep",
    "october oct oktober okt",
    "november nov",
    "december dec dezember dez",
)
_WRITTEN_AS_NAMES = frozenset({"march", "mar", "may"})  # months only if they are written with a capital letter
_MONTH_OF = {form: number for number, forms in enumerate(_MONTHS, 1) for form in forms.split()}
_WEEKDAYS = (
    "monday montag",
    "tuesday dienstag",
    "wednesday mittwoch",
    "thursday donnerstag",
    "friday freitag",
    "saturday samstag sonnabend",
    "sunday sonntag",
)
_WEEKDAY_OF = {form: number for number, forms in enumerate(_WEEKDAYS) for form in forms.split()}
_SEASONS = {"spring": 3, "summer": 6, "autumn": 9, "fall": 9, "winter": 12} | {
    "frühling": 3,
    "frühjahr": 3,
    "sommer": 6,
    "herbst": 9,
}
_COUNTS = (
    "one ein eine einem einen einer",
    "two zwei",
    "three drei",
    "four vier",
    "five fünf",
    "six sechs",
    "seven sieben",
    "eight acht",
    "nine neun",
    "ten zehn",
    "eleven elf",
    "twelve zwölf",
)
_NUMBERS = {form: number for number, forms in enumerate(_COUNTS, 1) for form in forms.split()}
_NUMBERS |= {"a": 1, "an": 1, "couple of": 2, "a couple of": 2, "few": 3, "a few": 3, "ein paar": 3, "paar": 3}
_NUMBERS |= {"einigen": 3, "wenigen": 3}
_RECENT = {
    "day before yesterday": 2,
    "yesterday": 1,
    "last night": 1,
    "today": 0,
    "tonight": 0,
    "this morning": 0,
    "this afternoon": 0,
    "this evening": 0,
    "vorgestern": 2,
    "gestern": 1,
    "letzte nacht": 1,
    "heute": 0,
}
_ORDINALS = {
    form: number
    for number, forms in enumerate(
        (
            "first 1st erste ersten erster",
            "second 2nd zweite zweiten zweiter",
            "third 3rd dritte dritten dritter",
            "fourth 4th vierte vierten vierter",
        ),
        1,
    )
    for form in forms.split()
} | dict.fromkeys("last final letzte letzten letzter".split(), -1)
# A feast by its month, its first day and how many days it has.
_FEASTS = {
    "christmas eve": (12, 24, 1),
    "christmas": (12, 24, 3),
    "new year's eve": (12, 31, 1),
    "new year's day": (1, 1, 1),
    "halloween": (10, 31, 1),
    "valentine's day": (2, 14, 1),
    "heiligabend": (12, 24, 1),
    "weihnachten": (12, 24, 3),
    "silvester": (12, 31, 1),
    "neujahr": (1, 1, 1),
}
_WORD = re.compile(r"[^\W\d_]+")


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
    return (_from_to(question, now) if said & _BETWEEN else None) or _one(question, said, now)


def _one(question: str, said: set[str], now: datetime) -> Span | None:
    for hints, pattern, flags, reading in _READINGS:
        found = _compiled(pattern, flags).search(question) if hints & said else None
        if found is None:
            continue
        try:
            read = reading(found, now)
            read = read and _part(read, question[: _beginning(found)])
        except (ValueError, OverflowError):  # 31 June, a million years ago
            continue
        if read is not None and read.start <= now:
            return read
    return None


def _from_to(question: str, now: datetime) -> Span | None:
    """The time from one that is named to another one."""
    found = _compiled(_RANGE, re.IGNORECASE).search(question)
    if found is None:
        return None
    first, last = found["first"], found["last"]
    end = _one(f"in {last}", {*_WORD.findall(last.lower()), "0"}, now)
    if len(first.strip(" .")) <= 2:  # "between 3 and 5 March"
        first = _compiled(r"\d{1,2}", 0).sub(first.strip(" ."), last, count=1)
    year = _compiled(r"\b(?:19|20)\d\d\b", 0)
    if (closing := year.search(last)) and not year.search(first):
        first = f"{first} {closing[0]}"
    start = _one(f"in {first}", {*_WORD.findall(first.lower()), "0"}, now)
    return Span(start.start, end.end) if start and end and start.start < end.end else None


def _part(whole: Span, before: str) -> Span:
    """The part of a span that the words before it name: "the first week of", "early", "Ende"."""
    if not before:
        return whole
    before, length = before[-48:], whole.end - whole.start
    if length < 27 * _DAY:
        found = _compiled(_WEEK_OF, re.IGNORECASE).search(before) if length <= _DAY else None
        return _around(whole, found["unit"].lower()) if found else whole
    if (found := _compiled(_NTH, re.IGNORECASE).search(before)) is not None:
        return _nth(whole, _ORDINALS[found["which"].lower()], found["unit"].lower())
    if (found := _compiled(_EDGE, re.IGNORECASE).search(before)) is not None:
        third = length / 3
        start = whole.start + _THIRDS[found["edge"].lower()] * third
        words = whole.words if length < 32 * _DAY else ()
        return Span(_midnight(start), _midnight(start + third), words)
    return whole


def _around(day: Span, unit: str) -> Span:
    """The week or the weekend of a day."""
    monday = day.start - day.start.weekday() * _DAY
    return _days(monday + 5 * _DAY, 2) if unit in _WEEKENDS else _days(monday, 7)


def _nth(whole: Span, which: int, unit: str) -> Span:
    """The first, second … or last week, weekend, half or quarter of a span."""
    if unit in _WEEKENDS:
        saturday = whole.start + (5 - whole.start.weekday()) % 7 * _DAY
        count = (whole.end - saturday - _DAY) // (7 * _DAY) + 1
        start = saturday + ((count if which < 0 else which) - 1) * 7 * _DAY
        return _days(start, 2) if start < whole.end else whole
    parts = _PARTS.get(unit, 0)
    if parts and whole.end - whole.start > 360 * _DAY:
        months = 12 // parts
        return _months(whole.start.year, 13 - months if which < 0 else 1 + (which - 1) * months, months)
    length = (whole.end - whole.start) // 2 if parts else 7 * _DAY
    start = whole.end - length if which < 0 else whole.start + (which - 1) * length
    return Span(start, start + length) if start < whole.end else whole


def _beginning(found: re.Match[str]) -> int:
    """Where the name of the time begins, behind a preposition that a pattern asks for."""
    named = found.groupdict()
    return min((found.start(name) for name in ("day", "month", "season", "year") if named.get(name)), default=0)


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
    return int(name) if name.isdigit() else _MONTH_OF[name.lower()]


def _month_pattern(number: int) -> str:
    """A pattern of a month's names; those that are words as well, only if they are written as names."""
    forms = _MONTHS[number - 1].split()
    return "(?:" + "|".join(f if f.istitle() else f"(?i:{f})" for f in map(_as_name, forms)) + ")"


def _as_name(form: str) -> str:
    return form.title() if form in _WRITTEN_AS_NAMES else form


def _year_of(given: str | None, now: datetime, month: int, day: int) -> int:
    """The year that is given; without one, the latest in which that day has begun."""
    if given:
        return int(given) if len(given) == 4 else 2000 + int(given)
    return now.year - (_date(now.year, month, day) > now)


def _calendar(found: re.Match[str], now: datetime) -> Span | None:
    """A day, some days or a whole month. Without a year, the latest one that has begun."""
    parts = found.groupdict()
    month, day = _month_number(parts["month"]), int(parts.get("day") or 0)
    year = _year_of(parts.get("year"), now, month, day or 1)
    named = _month_pattern(month)
    if not day:
        return _months(year, month, 1, (named,))
    if last := int(parts.get("last") or 0):
        return Span(_date(year, month, day), _date(year, month, last) + _DAY) if day < last else None
    return _days(_date(year, month, day), 1, (named, rf"{day}(?:st|nd|rd|th)?"))


def _slashed(found: re.Match[str], now: datetime) -> Span | None:
    """A day with its month before or behind it: before, unless there is no such month."""
    month, day = int(found["month"]), int(found["other"])
    if month > 12:
        month, day = day, month
    year = _year_of(found["year"], now, month, day)
    return _days(_date(year, month, day), 1, (_month_pattern(month), rf"{day}(?:st|nd|rd|th)?"))


def _day_of_month(found: re.Match[str], now: datetime) -> Span | None:
    """The latest day with this number: "on the 21st?"."""
    this = _date(now.year, now.month, int(found["day"]))
    return _days(this if this <= now else _date(now.year - (now.month == 1), (now.month - 2) % 12 + 1, this.day))


def _season(found: re.Match[str], now: datetime) -> Span | None:
    month = _SEASONS[found["season"].lower()]
    year = int(found["year"]) if found["year"] else now.year
    if not found["year"]:
        end = _months(year, month, 3).end
        begun = _date(year, month) <= now and (found["which"].lower() in _THIS or end <= now)
        year -= not begun
    return _months(year, month, 3, (f"(?i:{found['season']})",))


def _year(found: re.Match[str], now: datetime) -> Span | None:
    return _months(int(found["year"]), 1, 12, (found["year"],))


def _decade(found: re.Match[str], now: datetime) -> Span | None:
    return _months(int(found["year"]), 1, 120, (f"{found['year'][:3]}[0-9]s?",))


def _quarter(found: re.Match[str], now: datetime) -> Span | None:
    return _months(int(found["year"]), 3 * int(found["n"]) - 2, 3)


def _week(found: re.Match[str], now: datetime) -> Span | None:
    """A week by its number in the calendar."""
    monday = date.fromisocalendar(int(found["year"] or now.year), int(found["n"]), 1)
    return _days(_date(monday.year, monday.month, monday.day), 7)


def _feast(found: re.Match[str], now: datetime) -> Span | None:
    month, day, count = _FEASTS[found["feast"].lower().replace("’", "'")]
    return _days(_date(_year_of(found["year"], now, month, day), month, day), count)


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
    back = 0 if found["which"].lower() in _THIS else 1
    today = _midnight(now)
    match found["unit"].lower():
        case "week" | "woche":
            return _days(today - (today.weekday() + 7 * back) * _DAY, 7)
        case "weekend" | "wochenende":
            saturday = today - ((today.weekday() - 5) % 7) * _DAY
            return _days(saturday - 7 * _DAY if back and saturday + 2 * _DAY > today else saturday, 2)
        case "month" | "monat":
            count = today.year * 12 + today.month - 1 - back
            return _months(count // 12, count % 12 + 1, 1)
        case _:
            return _months(today.year - back, 1, 12)


def _weekday(found: re.Match[str], now: datetime) -> Span | None:
    back = (now.weekday() - _WEEKDAY_OF[found["day"].lower()]) % 7 or 7
    return _days(_midnight(now) - back * _DAY)


def _recent_day(found: re.Match[str], now: datetime) -> Span | None:
    said = " ".join(found[0].lower().split())
    return _days(_midnight(now) - _RECENT[said] * _DAY)


_THIS = frozenset("this dieser diese dieses diesen diesem".split())
_WEEKENDS = frozenset({"weekend", "wochenende"})
_PARTS = {"half": 2, "hälfte": 2, "quarter": 4, "quartal": 4}
_THIRDS = dict.fromkeys("early beginning start anfang".split(), 0) | dict.fromkeys("mid middle mitte".split(), 1)
_THIRDS |= dict.fromkeys("late end ende".split(), 2)
_UNITS = {
    unit: timedelta(days=days)
    for units, days in (
        ("day days tag tage tagen", 1),
        ("week weeks woche wochen", 7),
        ("fortnight fortnights", 14),
        ("month months monat monate monaten", 30),
        ("year years jahr jahre jahren", 365),
    )
    for unit in units.split()
}
_LONGEST_FIRST = sorted(_MONTH_OF, key=len, reverse=True)
_PLAIN_MONTHS = "|".join(form for form in _LONGEST_FIRST if form not in _WRITTEN_AS_NAMES)
_MONTH = rf"(?P<month>(?i:{_PLAIN_MONTHS})|Mar(?:ch)?|May)\b\.?"
_ANY_MONTH = rf"(?P<month>(?i:{'|'.join(_LONGEST_FIRST)}))\b\.?"
_DAY_OF = r"(?P<day>\d{1,2})(?:st|nd|rd|th|\.)?"
_DAYS_OF = rf"{_DAY_OF}(?:\s*(?:-|–|to|bis)\s*(?P<last>\d{{1,2}})(?:st|nd|rd|th|\.)?)?"
_YEAR_OF = r"(?P<year>(?:19|20)\d\d)\b"
_N = r"(?P<n>\d{1,3}|" + "|".join(sorted(_NUMBERS, key=len, reverse=True)) + ")"
_SEASON = rf"(?P<season>{'|'.join(_SEASONS)})"
_ALL_MONTHS = " ".join(_MONTH_OF)
_LAST = r"last|past|previous|letzte[nrs]?|vergangene[nrs]?|vorige[nrs]?"
_WHICH = rf"(?P<which>{_LAST}|this|diese[nrsm]?)"
_CALENDAR_UNIT = rf"\b{_WHICH}\s+(?P<unit>week|weekend|month|year|woche|wochenende|monat|jahr)\b"
_UNIT = rf"(?P<unit>{'|'.join(sorted(_UNITS, key=len, reverse=True))})"
_IN = r"(?:in|during|of|for|im|des|jahres|the|von)"
_OPENING = rf"(?:\s+{_IN}){{0,3}}"
_NTH = rf"\b(?P<which>{'|'.join(_ORDINALS)})\s+(?P<unit>week|weekend|half|quarter|woche|wochenende|hälfte|quartal)"
_NTH += rf"{_OPENING}(?:\s+(?:year|month))?\s*$"
_EDGE = rf"\b(?P<edge>{'|'.join(_THIRDS)}){_OPENING}[\s-]*$"
_WEEK_OF = r"\b(?P<unit>week|weekend|woche|wochenende)(?:\s+(?:of|from|starting|beginning|vom|ab|the)){1,2}\s*$"
_RANGE = r"\b(?:between|from|zwischen|vo[nm])\s+(?:the\s+|dem\s+)?(?P<first>\S.{0,40}?)\s+"
_RANGE += r"(?:and|to|until|till|through|und|bis)\s+(?:the\s+|dem\s+|zum\s+)?(?P<last>\S.{2,40})"
_BETWEEN = frozenset("between from zwischen von vom".split())
_FEAST = rf"(?P<feast>{'|'.join(_FEASTS)})".replace("'", "['’]")
_AT_FEAST = rf"\b(?:on|at|over|during|around|last|this|an|zu|über|letzte[ns])\s+{_FEAST}(?:\s+(?:of\s+)?{_YEAR_OF})?"
_TEXT, _ANY = 0, re.IGNORECASE
_Reading = Callable[[re.Match[str], datetime], Span | None]
# Each pattern with words of which a question must have one, "0" for any digit. Most questions have none, and then the
# pattern is not compiled.
_READINGS: tuple[tuple[frozenset[str], str, int, _Reading], ...] = tuple(
    (frozenset(hints.split()), pattern, flags, reading)
    for hints, pattern, flags, reading in (
        ("0", r"\b(?P<year>(?:19|20)\d\d)[-/](?P<month>\d\d)(?:[-/](?P<day>\d\d))?\b", _TEXT, _calendar),
        ("0", rf"(?<![\d.])(?P<day>\d{{1,2}})\.\s?(?P<month>\d{{1,2}})\.\s?{_YEAR_OF}(?!\.\d)", _TEXT, _calendar),
        ("0", r"\b(?:am|vom|den|dem|zum)\s+(?P<day>\d{1,2})\.\s?(?P<month>\d{1,2})\.(?!\d)", _ANY, _calendar),
        ("0", r"(?<![\d/])(?P<month>\d{1,2})/(?P<other>\d{1,2})/(?P<year>(?:20)?\d\d)(?![\d/])", _TEXT, _slashed),
        ("0", rf"(?<![\d./])(?P<month>\d{{1,2}})[./]{_YEAR_OF}(?!\.\d)", _TEXT, _calendar),
        (_ALL_MONTHS, rf"\b{_DAYS_OF}\s*(?:of\s+)?{_ANY_MONTH}(?:,?\s+(?:of\s+)?{_YEAR_OF})?", _TEXT, _calendar),
        (_ALL_MONTHS, rf"\b{_ANY_MONTH}\s+(?:the\s+)?{_DAYS_OF}(?!\d)(?:,?\s+{_YEAR_OF})?", _TEXT, _calendar),
        (_ALL_MONTHS, rf"\b{_ANY_MONTH},?\s+(?:of\s+)?{_YEAR_OF}", _TEXT, _calendar),
        (_ALL_MONTHS, rf"\b{_YEAR_OF},?\s+{_ANY_MONTH}", _TEXT, _calendar),
        ("q quarter quartal", rf"\bq(?P<n>[1-4])[\s/-]*(?:of\s+)?{_YEAR_OF}", _ANY, _quarter),
        ("q quarter quartal", r"\b(?P<year>(?:19|20)\d\d)[\s/-]*q(?P<n>[1-4])\b", _ANY, _quarter),
        ("week kw w", rf"\b(?:week|kw)\s*(?P<n>\d{{1,2}})\b(?:,?[\s/]*(?:of\s+|in\s+)?{_YEAR_OF})?", _ANY, _week),
        (" ".join(_SEASONS), rf"\b{_WHICH}\s+{_SEASON}\b(?P<year>)", _ANY, _season),
        (" ".join(_SEASONS), rf"\b(?P<which>){_SEASON}\s+(?:of\s+)?{_YEAR_OF}", _ANY, _season),
        (
            _ALL_MONTHS,
            rf"\b(?i:in|during|last|this|since|early|late|mid|im|seit|letzten|anfang|mitte|ende|(?:week|weekend|half"
            rf"|beginning|start|middle|end) of|wochenende im|woche im)[\s-]+{_MONTH}",
            _TEXT,
            _calendar,
        ),
        (" ".join(" ".join(_FEASTS).split()), _AT_FEAST, _ANY, _feast),
        ("yesterday today tonight night morning afternoon evening", rf"\b(?:{'|'.join(_RECENT)})\b", _ANY, _recent_day),
        ("vorgestern gestern heute nacht", rf"\b(?:{'|'.join(_RECENT)})\b", _ANY, _recent_day),
        ("ago back earlier", rf"\b{_N}\s+{_UNIT}\s+(?:ago|back|earlier)\b", _ANY, _ago),
        ("vor", rf"\bvor\s+{_N}\s+{_UNIT}\b", _ANY, _ago),
        (" ".join(_UNITS), rf"\b(?:{_LAST})\s+{_N}\s+{_UNIT}\b", _ANY, _past),
        ("week weekend month year woche wochenende monat jahr", _CALENDAR_UNIT, _ANY, _calendar_unit),
        (
            " ".join(_WEEKDAY_OF),
            rf"\b(?:{_LAST}|this past)\s+(?P<day>{'|'.join(_WEEKDAY_OF)})\b",
            _ANY,
            _weekday,
        ),
        ("0", r"\bon\s+the\s+(?P<day>\d{1,2})(?:st|nd|rd|th)\s*(?=[?.!,]|$)", _ANY, _day_of_month),
        ("0", r"\bin\s+the\s+(?P<year>(?:19|20)\d0)s\b", _ANY, _decade),
        (
            "0",
            rf"\b(?:in|during|of|since|throughout|jahr|jahre|jahres|seit|anfang|mitte|ende|early|late|mid|woche|hälfte)"
            rf"[\s-]+(?:the\s+year\s+)?{_YEAR_OF}",
            _ANY,
            _year,
        ),
    )
)


_HINTS = frozenset[str]().union(*(hints for hints, *_ in _READINGS))


@cache
def _compiled(pattern: str, flags: int) -> re.Pattern[str]:
    return re.compile(pattern, flags)
