"""Message lists in the format of OpenAI's chat API, which many other programs use too.

    [{"role": "system" | "developer" | "user" | "assistant" | "tool", "content": text | parts, "tool_calls"?, "id"?}, …]

As one JSON array, as an object with `messages` (and perhaps an id and a title), or one message a line.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lukasa.providers.transcripts.recording_builder import RecordingBuilder, brief, label, parse_time, texts

NAME = "messages"
_PEOPLE = ("user", "human")
_SYSTEM = ("system", "developer")
_TOOLS = ("tool", "function")
_ROLES = (*_PEOPLE, *_SYSTEM, *_TOOLS, "assistant", "ai", "model")


def fits(record: Mapping[str, Any]) -> bool:
    return record.get("role") in _ROLES and ("content" in record or "tool_calls" in record or "parts" in record)


def document(into: RecordingBuilder, data: object) -> bool:
    """Add the messages of a JSON document; return False if it holds none."""
    listed = data.get("messages") if isinstance(data, Mapping) else data
    if not isinstance(listed, list) or not any(isinstance(m, Mapping) and fits(m) for m in listed):
        return False
    if isinstance(data, Mapping):
        into.session = label(data, "session_id", "conversation_id", "thread_id", "id")
        into.title = label(data, "title", "name")
    for number, message in enumerate(listed, 1):
        if not isinstance(message, Mapping) or not add(into, message):
            into.broken.append(number)
    return True


def add(into: RecordingBuilder, record: Mapping[str, Any]) -> bool:
    """Add one message; return False if the record is not a message."""
    if not fits(record):
        return False
    role = record.get("role")
    id = label(record, "id", "message_id")
    at = parse_time(record.get("created_at") or record.get("timestamp") or record.get("created"))
    text = texts(record.get("content"))
    if role in _SYSTEM:
        into.add("system", text, id=id, at=at, aside="system")
    elif role in _TOOLS:
        into.add("tool", brief(record.get("content")), id=id, at=at, aside="tool-result")
    elif role in _PEOPLE:
        into.add("user", text, id=id, at=at)
    else:
        calls = record.get("tool_calls") or record.get("function_call")
        if text or not calls:
            into.add("assistant", text, id=id, at=at)
        if calls:
            into.add("assistant", "", at=at, aside="tool-call")
    return True
