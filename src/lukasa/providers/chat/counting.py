"""Read counts from messages: "I have edited 3 pages so far", "two more", "how many is that?"."""

from __future__ import annotations

import re
from collections.abc import Sequence

from msgspec import Struct

from lukasa.model import wordings
from lukasa.model.intents import Intent
from lukasa.model.text import STOP_WORDS, fold
from lukasa.ports import Embedder

_NUMBERS = {
    w: n for n, w in enumerate("zero one two three four five six seven eight nine ten eleven twelve".split())
} | {w: n for n, w in enumerate("null eins zwei drei vier fünf sechs sieben acht neun zehn elf zwölf".split())}
_MORE = frozenset("more another further additional extra weitere weiteren mehr".split())
_HOW_MANY = re.compile(
    r"\bhow (?:many|much)\b|\b(?:the|my|our) (?:running )?(?:total|count|tally|sum)\b|\bin total\b|\baltogether\b"
    r"|\bwie ?viele?\b|\binsgesamt\b",
    re.IGNORECASE,
)
_TOTAL = frozenset("far total altogether overall bisher bislang insgesamt".split())
_BETWEEN = frozenset(
    """plus add added i we ive weve have had just already now only also about another so been were was are is got today
    done did do finished finish made complete completed managed through ich wir habe haben noch weitere schon heute
    and then the a of""".split()
)
_TOKEN = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")


class Count(Struct, frozen=True):
    """A number of things that somebody did: "edited 3 pages". `adds` to an earlier count; `asks` for the total."""

    amount: int
    unit: str
    verb: str
    adds: bool
    asks: bool
    starts: bool  # without an earlier count this starts one


def asks_count(said: str) -> bool:
    return bool(_HOW_MANY.search(said))


def reported_count(said: str, intent: Intent, embedder: Embedder | None) -> Count | None:
    """Return the count that a message reports; None if it reports none, or nobody keeps count."""
    text = intent.asked.content if intent.asked is not None else said
    parts = re.split(r"(?<=[.!?,;])\s", text)
    named = _COUNTED.search(said)
    for part in parts:
        tokens = [fold(token).replace("’", "").replace("'", "") for token in _TOKEN.findall(part)]
        found = _reported(tokens, fold(named[1]) if named is not None else "")
        if found is not None:
            break
    else:
        return None
    number, unit, verb, more = found
    asked = [other for other in parts if other.rstrip().endswith("?") and other is not part]
    asks = ("?" in text and asks_count(text)) or any(
        wordings.label("questions", other, embedder, "topic") == "count" for other in asked
    )
    total = not _TOTAL.isdisjoint(tokens)
    tracking = named is not None or (intent.asked is not None and intent.asked.tracking)
    if intent.asked is not None and not tracking and not (total and intent.asked.reach == "conversation"):
        return None
    soon = total and (intent.asked is not None or tokens[0] in ("i", "we", "ive", "weve", "ich", "wir"))
    if not (tracking or more or asks or soon):
        return None
    return Count(number, unit, verb, more or not (tracking or soon), asks, tracking or asks or soon)


# "keep a tally of my pages", "keep track of how many pages I edit"
_COUNTED = re.compile(
    r"\b(?:tally|track|count) (?:of )?(?:how many |my |the |our )*([^\W\d_]{3,})\b(?<!\bthis)(?<!\bthat)(?<!\bfor)"
    r"(?<!\bnow)(?<!\bplease)",
    re.IGNORECASE,
)


def _reported(tokens: Sequence[str], named: str) -> tuple[int, str, str, bool] | None:
    """Return the number, unit and verb of a reported count, and whether it is "more"; None if there is none."""
    for at, token in enumerate(tokens):
        number, unit = _number(token), _unit(tokens, at)
        unit = named if unit is None and named and named not in STOP_WORDS else unit
        verb = _verb(tokens, at)
        if number is not None and unit is not None and verb is not None:
            near = tokens[max(0, at - 1) : at + 2]
            return number, unit, verb, not _MORE.isdisjoint(near) or "noch" in near
    return None


def _unit(tokens: Sequence[str], at: int) -> str | None:
    """Return the word for the counted things after a number; empty after "two more"; None if it counts nothing."""
    after = [token for token in tokens[at + 1 : at + 3] if token not in _MORE]
    if after and after[0].isalpha() and after[0] not in STOP_WORDS | {"today", "pm", "am", "percent", "heute"}:
        return after[0]
    return "" if not _MORE.isdisjoint(tokens[max(0, at - 1) : at + 2]) else None


def _verb(tokens: Sequence[str], at: int) -> str | None:
    """Return the verb of a count; empty if it is a general one; None if the thing is only intended."""
    before = [token for token in tokens[:at] if token not in _BETWEEN and token not in _MORE]
    if "to" in before or "want" in before:
        return None
    if before:
        return before[-1]
    after = [
        token for token in tokens[at + 2 :] if token not in _BETWEEN and token not in _TOTAL and token not in _MORE
    ]
    return after[0] if after else ""


def _number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else _NUMBERS.get(text)
