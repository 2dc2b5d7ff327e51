"""An observer's findings: a statement, its priority, its gate verdict, and the span of the message that says it."""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Literal

from msgspec import Struct, convert, to_builtins
from msgspec.structs import replace

from lukasa.model.errors import InvalidInput
from lukasa.model.requests import Request
from lukasa.model.transcript import Role, Utterance
from lukasa.model.values import Gate
from lukasa.observe.support import missing_words, support

Priority = Literal["high", "medium", "low"]
IMPORTANCE: dict[Priority, float] = {"high": 0.8, "medium": 0.5, "low": 0.3}


class Observation(Struct, frozen=True):
    """One statement. `start` and `end` are its span in the message; both 0 if the quoted words were not found there.

    `role` is the least trusted speaker that it may come from. `unquoted` are its words that the quotation lacks.
    """

    text: str
    priority: Priority
    gate: Gate
    confidence: float
    category: str
    message: str
    start: int
    end: int
    role: Role = "user"
    reason: str = ""
    asked: Request | None = None  # the request, if somebody asked to remember it
    unquoted: tuple[str, ...] = ()

    @property
    def importance(self) -> float:
        if self.asked is not None and self.asked.importance is not None:
            return self.asked.importance
        return IMPORTANCE[self.priority]

    def plain(self) -> dict[str, Any]:
        """The observation as JSON data, for a journal."""
        data: dict[str, Any] = to_builtins(self)
        return data

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> Observation:
        return convert(data, cls)


CHUNK = 24_000  # characters of a session that a model gets at a time
MOST_SEGMENTS = 50
MOST_FACTS = 100
MOST_TEXT = 1000
MOST_NARRATIVE = 1500
SUREST = 0.99  # a model is never as sure as a rule, so that rules can overrule it


class Segment(Struct, frozen=True):
    topic: str
    narrative: str
    facts: tuple[Observation, ...]


class ObserverAnswer(Struct, frozen=True):
    """The usable part of a model's answer; `faults` gives the reason for each unusable part."""

    segments: tuple[Segment, ...]
    faults: tuple[str, ...] = ()

    @property
    def facts(self) -> tuple[Observation, ...]:
        return tuple(fact for segment in self.segments for fact in segment.facts)


def chunks(utterances: Sequence[Utterance], most: int = CHUNK) -> Iterator[tuple[Utterance, ...]]:
    """Split messages into portions of a bounded size; a message longer than a portion gets its own."""
    portion: list[Utterance] = []
    size = 0
    for utterance in utterances:
        if portion and size + len(utterance.text) > most:
            yield tuple(portion)
            portion, size = [], 0
        portion.append(utterance)
        size += len(utterance.text)
    if portion:
        yield tuple(portion)


def shown(utterances: Sequence[Utterance]) -> str:
    """Messages as lines of JSON. Their ids are short numbers, which models copy without mistakes."""
    lines = ({"id": str(u.place), "role": u.role, "text": u.text} for u in utterances)
    return "\n".join(json.dumps(line, ensure_ascii=False) for line in lines)


def read(data: Mapping[str, Any], utterances: Sequence[Utterance], categories: Collection[str]) -> ObserverAnswer:
    """Read a model's answer about these messages and list its faults; InvalidInput if no part can be used."""
    listed = data.get("segments")
    if not isinstance(listed, list) or len(listed) > MOST_SEGMENTS:
        raise InvalidInput(f"segments must be a list of at most {MOST_SEGMENTS}")
    messages = {str(u.place): u for u in utterances} | {u.id: u for u in utterances}
    faults: list[str] = []
    segments = []
    for number, item in enumerate(listed, 1):
        try:
            segments.append(_segment(item, messages, categories, faults))
        except InvalidInput as fault:
            faults.append(f"segment {number}: {fault.message}")
    found = ObserverAnswer(tuple(segments), tuple(faults))
    if len(found.facts) > MOST_FACTS:
        raise InvalidInput(f"there must be at most {MOST_FACTS} facts")
    if faults and not found.facts:
        raise InvalidInput(f"no part of the answer can be read ({faults[0]})")
    return found


def _segment(
    item: object, messages: Mapping[str, Utterance], categories: Collection[str], faults: list[str]
) -> Segment:
    if not isinstance(item, Mapping):
        raise InvalidInput("it must be an object")
    topic, narrative = _text(item.get("topic", ""), "topic", 200), _text(item.get("narrative", ""), "narrative", 20_000)
    listed = item.get("facts", [])
    if not isinstance(listed, list):
        raise InvalidInput("its facts must be a list")
    facts = []
    for fact in listed:
        try:
            facts.append(_fact(fact, messages, categories))
        except InvalidInput as fault:
            faults.append(f"a fact of {topic[:60]!r}: {fault.message}")
    return Segment(topic, narrative[:MOST_NARRATIVE], tuple(facts))


def _fact(item: object, messages: Mapping[str, Utterance], categories: Collection[str]) -> Observation:
    if not isinstance(item, Mapping):
        raise InvalidInput("it must be an object")
    text = _text(item.get("text"), "text", MOST_TEXT)
    if not text:
        raise InvalidInput("its text is empty")
    priority, gate, category = item.get("priority"), item.get("gate"), item.get("category", "")
    if priority not in IMPORTANCE:
        raise InvalidInput("its priority must be high, medium or low")
    if gate not in tuple(Gate):
        raise InvalidInput("its gate must be allow, hold or discard")
    found = Observation(
        text=text,
        priority=priority,
        gate=Gate(gate),
        confidence=_confidence(item.get("confidence")),
        category=category if category in categories else "",
        message="",
        start=0,
        end=0,
        role="assistant",
    )
    return _located(found, item, messages)


def _located(found: Observation, item: Mapping[str, Any], messages: Mapping[str, Utterance]) -> Observation:
    """Add the message and span to a fact. A fact that its quotation does not say is held, whatever the model says.

    Such a fact may come from any message that the model saw.
    """
    said = messages.get(str(item.get("message", "")))
    shown_roles = [u.role for u in messages.values()]
    found = replace(found, role=_least_trusted(shown_roles))
    if said is None:
        return _unproved(found, "the fact names no message of the session")
    found = replace(found, message=said.id)
    quote = item.get("quote")
    if not isinstance(quote, str) or not quote.strip():
        return _unproved(found, "the fact quotes nothing")
    span = find_quote(said.text, quote)
    if span is None:
        return _unproved(found, "the quoted words are not in the message")
    found = replace(found, start=span[0], end=span[1])
    checked = support(found.text, said.text, *span)
    if checked.reason:
        return _unproved(replace(found, unquoted=checked.missing), checked.reason)
    # The speaker may only repeat what somebody else said before.
    earlier = [u.role for u in messages.values() if u.place < said.place and not missing_words(found.text, u.text)]
    return replace(found, role=_least_trusted([said.role, *earlier]))


def _least_trusted(roles: Sequence[Role]) -> Role:
    """Return the first role that is not the user's: only the user's words have an agent's trust."""
    return next((role for role in roles if role != "user"), "user")


def _unproved(found: Observation, reason: str) -> Observation:
    if found.gate is Gate.DISCARD:
        return found
    return replace(found, gate=Gate.HOLD, confidence=1.0, reason=reason)


def find_quote(text: str, quote: str) -> tuple[int, int] | None:
    """The span of a quotation: an exact match, or one that differs only in white space."""
    quote = quote.strip()
    start = text.find(quote)
    if start >= 0:
        return start, start + len(quote)
    positions = [i for i, c in enumerate(text) if not c.isspace()]
    wanted = "".join(quote.split())
    at = "".join(text[i] for i in positions).find(wanted)
    return (positions[at], positions[at + len(wanted) - 1] + 1) if at >= 0 and wanted else None


def _text(value: object, what: str, most: int) -> str:
    if not isinstance(value, str):
        raise InvalidInput(f"its {what} must be text")
    if len(value) > most:
        raise InvalidInput(f"its {what} is longer than {most:,} characters")
    return value.replace("\x00", " ").strip()


def _confidence(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise InvalidInput("its confidence must be a number from 0 to 1")
    if not 0 <= value <= 1:
        raise InvalidInput("its confidence must be from 0 to 1")
    return min(float(value), SUREST)
