"""Chat models behind an OpenAI-compatible `/chat/completions`: OpenAI, and most self-hosted servers."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import takewhile
from typing import Any

from lukasa.model.errors import ChatMalformed, ChatRefused
from lukasa.ports import Message, Reply, Tool
from lukasa.providers.chat.endpoint import DEFAULT_LIMITS, Endpoint, Limits, checked_url
from lukasa.providers.chat.reply_builder import PendingCall, ReplyBuilder, count, taken_ids
from lukasa.providers.chat.wire import ask

DEFAULT_URL = "https://api.openai.com/v1"


class OpenAIChat:
    """One model of one server. Keeps no connection; threads may share it."""

    def __init__(
        self, base_url: str, model: str, key: str = "", *, insecure: bool = False, limits: Limits = DEFAULT_LIMITS
    ) -> None:
        url = f"{checked_url(base_url or DEFAULT_URL, insecure=insecure)}/chat/completions"
        self._endpoint = Endpoint(url, key.strip(), limits=limits)
        self._model = model

    def __repr__(self) -> str:
        return f"<{self.name} at {self._endpoint.host}>"

    @property
    def name(self) -> str:
        return f"openai:{self._model}"

    def reply(
        self,
        messages: Sequence[Message],
        tools: Sequence[Tool] = (),
        *,
        timeout: float = 60.0,
        on_text: Callable[[str], None] | None = None,
    ) -> Reply:
        body = request(self._model, messages, tools, stream=on_text is not None)
        started = time.monotonic()
        try:
            return self._ask(body, messages, timeout, on_text)
        except ChatRefused as refused:
            # Some servers refuse unknown fields; this one only asks for token counts, so try without it.
            if "stream_options" not in body or "stream_options" not in refused.message:
                raise
        del body["stream_options"]
        return self._ask(body, messages, timeout - (time.monotonic() - started), on_text)

    def _ask(
        self, body: dict[str, Any], messages: Sequence[Message], timeout: float, on_text: Callable[[str], None] | None
    ) -> Reply:
        taken = taken_ids(messages)
        return ask(self._endpoint, body, lambda show: OpenAIReplyBuilder(show, taken), timeout=timeout, on_text=on_text)


def request(model: str, messages: Sequence[Message], tools: Iterable[Tool], *, stream: bool) -> dict[str, Any]:
    body: dict[str, Any] = {"model": model, "messages": [_message(message) for message in _one_system(messages)]}
    functions = [_function(tool) for tool in tools]
    if functions:
        body["tools"] = functions
    if stream:
        body |= {"stream": True, "stream_options": {"include_usage": True}}
    return body


def _one_system(messages: Sequence[Message]) -> Iterator[Message]:
    """Join the system messages at the start: many servers take only one, and prompt caches compare prefixes."""
    first = list(takewhile(lambda message: message.role == "system", messages))
    if first:
        yield Message("system", "\n\n".join(message.content for message in first if message.content))
    yield from messages[len(first) :]


def _message(message: Message) -> dict[str, Any]:
    body: dict[str, Any] = {"role": message.role, "content": message.content}
    if message.role == "tool":
        body["tool_call_id"] = message.tool_call_id
    if message.tool_calls:
        body["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": json.dumps(dict(call.arguments), ensure_ascii=False)},
            }
            for call in message.tool_calls
        ]
    return body


def _function(tool: Tool) -> dict[str, Any]:
    function = {"name": tool.name, "description": tool.description, "parameters": dict(tool.parameters)}
    return {"type": "function", "function": function}


class OpenAIReplyBuilder(ReplyBuilder):
    """Reads a chat completion, whole or in chunks."""

    def __init__(self, show: Callable[[str], None], taken: Iterable[str]) -> None:
        super().__init__(show, taken)
        self._at: dict[object, PendingCall] = {}
        self._refused = False  # the message is a refusal, which a provider ends with "stop" like any other

    def whole(self, body: Mapping[str, Any]) -> None:
        choices = body.get("choices")
        choice = choices[0] if isinstance(choices, list) and choices else None
        message = choice.get("message") if isinstance(choice, dict) else None
        if not isinstance(choice, dict) or not isinstance(message, dict):
            raise ChatMalformed("the answer holds no message", fix="check that the URL is that of a chat API")
        self._speak(message)
        for call in _dicts(message.get("tool_calls")):
            function = _dict(call.get("function"))
            self.begin_call(call.get("id"), function.get("name")).add(function.get("arguments"))
        self._end(choice.get("finish_reason"))
        self._count(body.get("usage"))

    def event(self, body: Mapping[str, Any]) -> None:
        for choice in _dicts(body.get("choices"))[:1]:
            delta = _dict(choice.get("delta"))
            self._speak(delta)
            for fragment in _dicts(delta.get("tool_calls")):
                self._fragment(fragment)
            self._end(choice.get("finish_reason"))
        self._count(body.get("usage"))

    def _speak(self, message: Mapping[str, Any]) -> None:
        content = message.get("content")
        if message.get("refusal"):
            self._refused = True
        for part in content if isinstance(content, list) else [content or message.get("refusal")]:
            self.say(part.get("text") if isinstance(part, dict) else part)

    def _fragment(self, fragment: Mapping[str, Any]) -> None:
        """Add a fragment to the call with its index. Some servers send no index, or the same one for every call."""
        function, id, index = _dict(fragment.get("function")), fragment.get("id"), fragment.get("index")
        key = index if isinstance(index, int) else None
        call = self._at.get(key)
        another = call and ((id and call.id and id != call.id) or (key is None and function.get("name")))
        if call is None or another:
            call = self._at[key] = self.begin_call(id, function.get("name"))
        call.complete(id, function.get("name"))
        call.add(function.get("arguments"))

    def _end(self, reason: object) -> None:
        if isinstance(reason, str) and reason:
            self.ended, self.finish = True, "refusal" if self._refused else reason

    def _count(self, usage: object) -> None:
        if isinstance(usage, dict):
            self.prompt, self.completion = count(usage.get("prompt_tokens")), count(usage.get("completion_tokens"))


def _dict(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _dicts(value: object) -> list[dict[str, Any]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []
