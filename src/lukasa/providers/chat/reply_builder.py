"""Build a `Reply` from a model's output, and repair what models often get wrong. Pure functions of values; no I/O."""

from __future__ import annotations

import contextlib
import json
import math
import re
import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NoReturn

from lukasa.model.errors import ChatMalformed, ChatRefused
from lukasa.ports import Message, Reply, ToolCall, Usage

_OPEN, _CLOSE = "<think>", "</think>"
_STRAY_CLOSE = re.compile(rf"^[^\S\n]*{_CLOSE}[^\S\n]*$", re.MULTILINE)
_STRING = r'"(?:[^"\\]++|\\.)*+"?'  # possessive, so that no text takes more than linear time
_JSON_TOKEN = re.compile(rf"{_STRING}|[{{}}]", re.DOTALL)
_TRAILING_COMMA = re.compile(rf"({_STRING})|,(?=\s*[}}\]])", re.DOTALL)
_LONGEST = 1_000_000  # characters that a text or one call's arguments may have
# The providers' words for an answer that ended too early.
_WITHHELD = frozenset({"content_filter", "refusal", "safety"})
_LENGTH = frozenset({"length", "max_tokens", "model_length", "model_context_window_exceeded"})


class ReplyBuilder(ABC):
    """Collects one answer of a provider, whole or event by event. Each provider's format is a subclass."""

    def __init__(self, show: Callable[[str], None], taken: Iterable[str]) -> None:
        self.ended = False  # the provider said that the answer is complete
        self.finish = ""
        self.prompt = 0
        self.completion = 0
        self._show = show
        self._taken = set(taken)
        self._visible = VisibleText()
        self._size = 0
        self._calls: list[PendingCall] = []

    @abstractmethod
    def whole(self, body: Mapping[str, Any]) -> None:
        """Take an answer that came as one JSON object."""

    @abstractmethod
    def event(self, body: Mapping[str, Any]) -> None:
        """Take one event of a streamed answer."""

    def say(self, text: object) -> None:
        if isinstance(text, str) and text:
            self._size += len(text)
            if self._size > _LONGEST:
                raise ChatMalformed(
                    f"the answer is longer than {_LONGEST:,} characters", fix="try again, or another model"
                )
            shown = self._visible.feed(text)
            if shown:
                self._show(shown)

    def begin_call(self, id: object, name: object) -> PendingCall:
        call = PendingCall(id if isinstance(id, str) else "", name if isinstance(name, str) else "")
        self._calls.append(call)
        return call

    def reply(self) -> Reply:
        rest = self._visible.finish()
        if rest:
            self._show(rest)
        text = without_stray_thought(self._visible.text)
        calls = tuple(tool_calls(self._calls, self._taken))
        if not text and not calls:
            if self.cut == "withheld":
                raise ChatRefused("the provider withheld the answer", fix="change the wording of the question")
            if self.cut == "length":
                raise ChatMalformed(
                    "the model reached its limit of tokens before it answered", fix="use a model with a higher limit"
                )
            raise ChatMalformed("the answer has neither text nor a tool call", fix="try again, or another model")
        return Reply(text, calls, Usage(self.prompt, self.completion), self.cut)

    @property
    def cut(self) -> Literal["", "length", "withheld"]:
        """Why the answer is incomplete; empty for a complete one."""
        reason = self.finish.lower()
        return "withheld" if reason in _WITHHELD else "length" if reason in _LENGTH else ""


@dataclass
class PendingCall:
    """A tool call whose arguments may still be arriving: as text, or already as a value."""

    id: str
    name: str
    pieces: list[str] = field(default_factory=list)
    value: object = None

    def complete(self, id: object, name: object) -> None:
        """Fill in the id and the name from a later fragment, if the first had none."""
        self.id = self.id or (id if isinstance(id, str) else "")
        self.name = self.name or (name if isinstance(name, str) else "")

    def add(self, arguments: object) -> None:
        if isinstance(arguments, str):
            self.pieces.append(arguments)
        elif arguments is not None:
            self.value = arguments

    @property
    def arguments(self) -> object:
        return "".join(self.pieces) or self.value


def taken_ids(messages: Iterable[Message]) -> set[str]:
    """Return the ids of all tool calls in a conversation."""
    return {call.id for message in messages for call in message.tool_calls}


def tool_calls(pending: Iterable[PendingCall], taken: set[str]) -> Iterator[ToolCall]:
    """Yield the tool calls; an id that is empty or already used is replaced."""
    used = set(taken)
    for call in pending:
        id = tidy(call.id)
        if not id or id in used:
            id = f"call_{uuid.uuid4().hex[:24]}"
        used.add(id)
        arguments, fault = read_arguments(call.arguments)
        name = tidy(call.name).strip()
        if not name:
            arguments, fault = {}, "the call names no tool"
        yield ToolCall(id, name, arguments, fault)


# --- text ----------------------------------------------------------------------------------------------------


class VisibleText:
    """The text of an answer without its <think> parts and without white space at either end.

    `text` is all that `feed` and `finish` have returned, however the input was cut into pieces.
    """

    def __init__(self) -> None:
        self._held = ""  # may be the start of a tag, or half a surrogate pair
        self._blanks = ""  # white space that is dropped unless more text follows
        self._thinking = False
        self._given: list[str] = []

    @property
    def text(self) -> str:
        return "".join(self._given)

    def feed(self, text: str) -> str:
        self._held += text
        out = []
        while True:
            tag = _CLOSE if self._thinking else _OPEN
            before, found, after = self._held.partition(tag)
            if not found:
                break
            out.append("" if self._thinking else tidy(before))
            self._thinking, self._held = not self._thinking, after
        ready = len(self._held) - _unsure(self._held, tag)
        out.append("" if self._thinking else tidy(self._held[:ready]))
        self._held = self._held[ready:]
        return self._give("".join(out))

    def finish(self) -> str:
        rest, self._held = ("" if self._thinking else self._held), ""
        return self._give(tidy(rest))

    def _give(self, text: str) -> str:
        text = self._blanks + text
        if not self._given:
            text = text.lstrip()
        given = text.rstrip()
        self._blanks = text[len(given) :]
        if given:
            self._given.append(given)
        return given


def _unsure(text: str, tag: str) -> int:
    """Return how many characters at the end may be the start of a tag or of a surrogate pair."""
    for size in range(min(len(tag) - 1, len(text)), 0, -1):
        if text.endswith(tag[:size]):
            return size
    return 1 if "\ud800" <= text[-1:] <= "\udbff" else 0


def without_stray_thought(text: str) -> str:
    """Cut a thought whose opening tag is missing: some templates put the opening tag into the prompt."""
    ends = list(_STRAY_CLOSE.finditer(text))
    return text[ends[-1].end() :].strip() if ends else text


def tidy(text: str) -> str:
    """Return text that can be encoded: surrogate pairs are joined, lone surrogates replaced."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def count(value: object) -> int:
    """Return a number of tokens; zero if the value is not one."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0


# --- arguments -----------------------------------------------------------------------------------------------


def read_arguments(raw: object) -> tuple[Mapping[str, Any], str]:
    """Return a call's arguments and an empty fault, or no arguments and a description of the fault."""
    if raw is None or (isinstance(raw, str) and not raw.strip()):
        return {}, ""
    if isinstance(raw, str) and len(raw) > _LONGEST:
        return {}, f"the arguments are longer than {_LONGEST:,} characters"
    try:
        value = _loads(raw) if isinstance(raw, str) else raw
        if not isinstance(value, dict):
            return {}, f"the arguments are {_kind(value)}, not a JSON object"
        return _tidy_value(value), ""
    except _Ambiguous as repeated:
        return {}, f"the argument {str(repeated)!r} is given twice, with different values"
    except (ValueError, RecursionError) as error:
        reason = error.msg if isinstance(error, json.JSONDecodeError) else "it cannot be read"
        return {}, f"the arguments are not JSON: {reason}"


def _loads(text: str) -> Any:
    try:
        return _strict(text)
    except json.JSONDecodeError:
        # Accept one object inside a code fence or prose, with trailing commas. Two objects are ambiguous, a list is
        # wrong.
        found = [] if text.lstrip().startswith("[") else list(_readable(_outermost_objects(text)))
        if len(found) != 1:
            raise
        return found[0]


def _readable(candidates: Iterable[str]) -> Iterator[Any]:
    for candidate in candidates:
        with contextlib.suppress(json.JSONDecodeError):
            yield _strict(candidate)


def _strict(text: str) -> Any:
    return json.loads(text, object_pairs_hook=_once_each, parse_constant=_no_constant)


class _Ambiguous(ValueError):
    """A key with two different values."""


def _once_each(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found and found[key] != value:
            raise _Ambiguous(key)
        found[key] = value
    return found


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _outermost_objects(text: str) -> Iterator[str]:
    """Yield each text between outermost braces. Nothing inside unclosed braces counts: half an object is no object."""
    start = text.find("{")
    while start >= 0:
        end = _closing(text, start)
        if end < 0:
            return
        yield _TRAILING_COMMA.sub(lambda match: match[1] or "", text[start:end])
        start = text.find("{", end)


def _closing(text: str, start: int) -> int:
    depth = 0
    for token in _JSON_TOKEN.finditer(text, start):
        depth += {"{": 1, "}": -1}.get(token[0], 0)
        if not depth:
            return token.end()
    return -1


def _kind(value: object) -> str:
    kinds = {list: "a list", str: "a text", bool: "true or false", type(None): "null"}
    return kinds.get(type(value), "a number")


def _tidy_value(value: Any) -> Any:
    if isinstance(value, str):
        return tidy(value)
    if isinstance(value, list):
        return [_tidy_value(item) for item in value]
    if isinstance(value, dict):
        return {tidy(str(key)): _tidy_value(item) for key, item in value.items()}
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError("a number that JSON does not have")
    return value
