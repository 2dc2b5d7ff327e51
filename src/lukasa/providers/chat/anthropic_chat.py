"""Chat models behind Anthropic's `/v1/messages`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import takewhile
from typing import Any

from lukasa.model.errors import ChatMalformed
from lukasa.ports import Message, Reply, Tool
from lukasa.providers.chat.endpoint import DEFAULT_LIMITS, Endpoint, Limits, checked_url
from lukasa.providers.chat.reply_builder import PendingCall, ReplyBuilder, count, taken_ids
from lukasa.providers.chat.wire import ask

DEFAULT_URL = "https://api.anthropic.com"
MAX_TOKENS = 4096
_VERSION = "2023-06-01"
PROMPT_COUNTS = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")


class AnthropicChat:
    """One model. Keeps no connection; threads may share it."""

    def __init__(
        self,
        model: str,
        key: str,
        base_url: str = DEFAULT_URL,
        *,
        max_tokens: int = MAX_TOKENS,
        insecure: bool = False,
        limits: Limits = DEFAULT_LIMITS,
    ) -> None:
        url = f"{checked_url(base_url or DEFAULT_URL, insecure=insecure).removesuffix('/v1')}/v1/messages"
        version = {"anthropic-version": _VERSION}
        self._endpoint = Endpoint(url, key.strip(), "x-api-key", "", headers=version, limits=limits)
        self._model = model
        self._max_tokens = max_tokens

    def __repr__(self) -> str:
        return f"<{self.name} at {self._endpoint.host}>"

    @property
    def name(self) -> str:
        return f"anthropic:{self._model}"

    def reply(
        self,
        messages: Sequence[Message],
        tools: Sequence[Tool] = (),
        *,
        timeout: float = 60.0,
        on_text: Callable[[str], None] | None = None,
    ) -> Reply:
        body = {"model": self._model, "max_tokens": self._max_tokens, **request(messages, tools)}
        if on_text is not None:
            body["stream"] = True
        taken = taken_ids(messages)
        return ask(
            self._endpoint, body, lambda show: AnthropicReplyBuilder(show, taken), timeout=timeout, on_text=on_text
        )


def request(messages: Sequence[Message], tools: Iterable[Tool]) -> dict[str, Any]:
    """Build a request: system texts apart, and alternating turns, in which tool results belong to the user."""
    body: dict[str, Any] = {"messages": _turns(message for message in messages if message.role != "system")}
    system = [message.content for message in messages if message.role == "system" and message.content.strip()]
    leading = sum(1 for _ in takewhile(lambda message: message.role == "system", messages))
    if system:
        body["system"] = _blocks_to_keep(system) if 1 < leading <= len(system) else "\n\n".join(system)
    offered = [
        {"name": tool.name, "description": tool.description, "input_schema": dict(tool.parameters)} for tool in tools
    ]
    if offered:
        body["tools"] = offered
    return body


def _blocks_to_keep(texts: Sequence[str]) -> list[dict[str, Any]]:
    """Mark all blocks but the last, and the tools before them, for the provider's cache."""
    blocks: list[dict[str, Any]] = [{"type": "text", "text": text} for text in texts]
    blocks[-2]["cache_control"] = {"type": "ephemeral"}
    return blocks


def _turns(messages: Iterable[Message]) -> list[dict[str, Any]]:
    turns: list[dict[str, Any]] = []
    for message in messages:
        role = "assistant" if message.role == "assistant" else "user"
        blocks = _blocks(message)
        if turns and turns[-1]["role"] == role:
            turns[-1]["content"] += blocks
        elif blocks:
            turns.append({"role": role, "content": blocks})
    return turns


def _blocks(message: Message) -> list[dict[str, Any]]:
    if message.role == "tool":
        return [{"type": "tool_result", "tool_use_id": _id(message.tool_call_id), "content": message.content}]
    # The provider refuses a blank text, and white space at the end of the assistant's last text.
    text = message.content.rstrip() if message.role == "assistant" else message.content
    said = [{"type": "text", "text": text}] if text.strip() else []
    calls = [
        {"type": "tool_use", "id": _id(call.id), "name": call.name, "input": dict(call.arguments)}
        for call in message.tool_calls
    ]
    return [*said, *calls]


def _id(id: str) -> str:
    """Replace characters in an id that Anthropic refuses; another provider may have made the id."""
    return re.sub(r"[^a-zA-Z0-9_-]", "_", id)


class AnthropicReplyBuilder(ReplyBuilder):
    """Reads a message, whole or in events."""

    def __init__(self, show: Callable[[str], None], taken: Iterable[str]) -> None:
        super().__init__(show, taken)
        self._uses: dict[object, PendingCall] = {}

    def whole(self, body: Mapping[str, Any]) -> None:
        content = body.get("content")
        if not isinstance(content, list):
            raise ChatMalformed("the answer holds no content", fix="check that the URL is that of a chat API")
        for index, block in enumerate(content):
            self._block(index, block)
        self._end(body)
        self._count(body.get("usage"))

    def event(self, body: Mapping[str, Any]) -> None:
        kind = body.get("type")
        if kind == "message_start" and isinstance(body.get("message"), dict):
            self._count(body["message"].get("usage"))
        elif kind == "content_block_start":
            self._block(body.get("index"), body.get("content_block"))
        elif kind == "content_block_delta":
            self._delta(body.get("index"), body.get("delta"))
        elif kind == "message_delta":
            self._end(body.get("delta"))
            self._count(body.get("usage"))
        elif kind == "message_stop":
            self.ended = True

    def _block(self, index: object, block: object) -> None:
        if not isinstance(block, dict):
            return
        if block.get("type") == "text":
            self.say(block.get("text"))
        elif block.get("type") == "tool_use":
            use = self._uses[index] = self.begin_call(block.get("id"), block.get("name"))
            use.add(block.get("input"))

    def _delta(self, index: object, delta: object) -> None:
        if not isinstance(delta, dict):
            return
        if delta.get("type") == "text_delta":
            self.say(delta.get("text"))
        elif delta.get("type") == "input_json_delta" and index in self._uses:
            self._uses[index].add(delta.get("partial_json"))

    def _end(self, body: object) -> None:
        reason = body.get("stop_reason") if isinstance(body, dict) else None
        if isinstance(reason, str):
            self.finish = reason

    def _count(self, usage: object) -> None:
        """Take token counts; they come at the start and at the end, and a later count replaces an earlier one."""
        if isinstance(usage, dict):
            self.prompt = sum(count(usage.get(name)) for name in PROMPT_COUNTS) or self.prompt
            self.completion = count(usage.get("output_tokens")) or self.completion
