"""Asking a language model for data: one JSON object, checked, asked for once more if it cannot be used, journaled."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from mnemon.model.errors import ChatError, ChatMalformed, InvalidInput
from mnemon.model.telemetry import Spending
from mnemon.pipeline.task import Task
from mnemon.ports.chat import Chat, Message, Reply, Usage
from mnemon.ports.pipeline import Spend

T = TypeVar("T")
TIMEOUT = 120.0
_THINKING = re.compile(r"<think(?:ing)?>.*?</think(?:ing)?>", re.DOTALL | re.IGNORECASE)


def ask(
    task: Task,
    step: str,
    prompt: str,
    content: str,
    read: Callable[[Mapping[str, Any]], T],
    *,
    timeout: float = TIMEOUT,
) -> T:
    """What the model of a task says to `content`, read by `read`, which raises InvalidInput for what it cannot use.

    The answer is journaled before anything is done with it, in one commit with what it cost: it is paid for once.
    """
    if not task.journaled(step):
        chat = task.chat
        if chat is None:
            raise InvalidInput("no language model is set", fix="set MNEMON_CHAT, or let the rules do it")
        task.allowance.check(chat)
        began = time.monotonic()
        try:
            data, usage, calls = _answer(chat, prompt, content, read, timeout)
        except ChatError as error:
            task.allowance.failed(chat, error)
            took = (time.monotonic() - began) * 1000
            about: dict[str, Any] = {"step": step, "model": chat.name, "error": error.code}
            task.tell(task.point("model.failed", success=False, level="error", duration_ms=took, metadata=about))
            raise
        task.allowance.succeeded(chat)
        took = (time.monotonic() - began) * 1000
        about = {"step": step, "model": chat.name, "calls": calls}
        about |= {"prompt_tokens": usage.prompt, "completion_tokens": usage.completion}
        spent = Spending(f"{task.clock.now():%Y-%m-%d}", chat.name, calls, usage.prompt, usage.completion)
        task.commit(step, data, Spend(spent), task.point("model.answered", duration_ms=took, metadata=about))
    return read(task.output(step))


def _answer(
    chat: Chat, prompt: str, content: str, read: Callable[[Mapping[str, Any]], object], timeout: float
) -> tuple[Mapping[str, Any], Usage, int]:
    """Both tries end within `timeout`."""
    ends = time.monotonic() + timeout
    asked = [Message("system", prompt), Message("user", content)]
    first = chat.reply(asked, timeout=timeout)
    try:
        return _usable(first, read), first.usage, 1
    except InvalidInput as fault:
        said = Message("assistant", first.text.strip()[:20_000] or "(nothing)")
        asked += [said, Message("user", f"That cannot be used: {fault.message}. Answer with the JSON object alone.")]
    second = chat.reply(asked, timeout=max(1.0, ends - time.monotonic()))
    total = Usage(first.usage.prompt + second.usage.prompt, first.usage.completion + second.usage.completion)
    try:
        return _usable(second, read), total, 2
    except InvalidInput as fault:
        raise ChatMalformed(
            f"{chat.name} gave no usable answer: {fault.message}", fix="try again later, or with another model"
        ) from fault


def _usable(reply: Reply, read: Callable[[Mapping[str, Any]], object]) -> Mapping[str, Any]:
    data = json_object(reply.text)
    read(data)
    return data


def json_object(text: str) -> Mapping[str, Any]:
    """The JSON object in a reply, whatever stands around it: thoughts, a fence, prose."""
    text = _THINKING.sub("", text)
    decoder = json.JSONDecoder(object_pairs_hook=_each_key_once)
    for match in re.finditer(r"\{", text):
        try:
            data, _ = decoder.raw_decode(text, match.start())
        except (ValueError, RecursionError):
            continue
        if isinstance(data, dict):
            return _encodable(data)
    raise InvalidInput("it is not a JSON object")


def _each_key_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    data = dict(pairs)
    if len(data) != len(pairs):
        raise InvalidInput("an object of it has the same key twice")
    return data


def _encodable(data: dict[str, Any]) -> dict[str, Any]:
    try:
        json.dumps(data, ensure_ascii=False, allow_nan=False).encode("utf-8")
    except (UnicodeEncodeError, ValueError):
        raise InvalidInput("it holds text or numbers that cannot be kept") from None
    return data
