"""The chat port: a conversation and some tools in, a reply out. Language models implement it, and so does a
responder that needs none."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import Any, Literal, Protocol

from lukasa.model.frozen import dataclass


@dataclass(frozen=True, slots=True)
class Tool:
    """What a model may call: a name every provider accepts, when to call it, and its arguments as JSON Schema."""

    name: str
    description: str
    parameters: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call as the model made it. `fault` says why its arguments could not be read; they are then empty."""

    id: str
    name: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    fault: str = ""


@dataclass(frozen=True, slots=True)
class Message:
    """One message. Of several system messages at the start, all but the last are the same from turn to turn."""

    role: Literal["system", "user", "assistant", "tool"]
    content: str
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str = ""


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens as the provider counted them; zero where it does not say."""

    prompt: int = 0
    completion: int = 0


@dataclass(frozen=True, slots=True)
class Reply:
    text: str
    tool_calls: tuple[ToolCall, ...] = ()
    usage: Usage = Usage()


class Chat(Protocol):
    """One reply to a conversation. Raises ChatError, of which ChatUnavailable may be tried again later."""

    @property
    def name(self) -> str: ...

    def reply(
        self,
        messages: Sequence[Message],
        tools: Sequence[Tool] = (),
        *,
        timeout: float = 60.0,
        on_text: Callable[[str], None] | None = None,
    ) -> Reply:
        """The whole exchange ends within `timeout` seconds. `on_text` is given the text as it arrives."""
        ...
