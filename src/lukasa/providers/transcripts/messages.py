"""Message lists in the format of OpenAI's chat API, which many other programs use too.

    [{"role": "system" | "developer" | "user" | "assistant" | "tool", "content": text | parts, "tool_calls"?, "id"?}, …]

As one JSON array, as an object with `messages` (and perhaps an id and a title), or one message a line.

Two coding agents have forms of their own: Cursor puts the content into `message`, and a person's words between
<user_query> tags; Gemini CLI names the speaker as `type`, user or gemini.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lukasa.providers.transcripts.recording_builder import RecordingBuilder, brief, label, parse_time, texts

NAME = "messages"
_PEOPLE = ("user", "human")
_SYSTEM = ("system", "developer")
_TOOLS = ("tool", "function")
_GEMINI = {"user": "user", "gemini": "model"}
_QUERY = ("<user_query>", "</user_query>")  # what Cursor puts around what a person wrote
_ROLES = (*_PEOPLE, *_SYSTEM, *_TOOLS, "assistant", "ai", "model")


def fits(record: Mapping[str, Any]) -> bool:
    held = _held(record)
    return _role(record) in _ROLES and ("content" in held or "tool_calls" in held or "parts" in held)


def _held(record: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the part of a record that holds the content."""
    message = record.get("message")
    return message if isinstance(message, Mapping) and "role" in record else record


def _role(record: Mapping[str, Any]) -> object:
    kind = record.get("type")
    return record.get("role") or (_GEMINI.get(kind) if isinstance(kind, str) and "message" not in record else None)


def document(into: RecordingBuilder, data: object) -> bool:
    """Add the messages of a JSON document; return False if it holds none."""
    listed = data.get("messages") if isinstance(data, Mapping) else data
    if not isinstance(listed, list) or not any(isinstance(m, Mapping) and fits(m) for m in listed):
        return False
    if isinstance(data, Mapping):
        into.session = label(data, "session_id", "sessionId", "conversation_id", "thread_id", "id")
        into.title = label(data, "title", "name")
    for number, message in enumerate(listed, 1):
        if not isinstance(message, Mapping) or not add(into, message):
            into.broken.append(number)
    return True


def add(into: RecordingBuilder, record: Mapping[str, Any]) -> bool:
    """Add one message; return False if the record is not a message."""
    if not fits(record):
        return False
    role, held = _role(record), _held(record)
    id = label(record, "id", "message_id")
    at = parse_time(record.get("created_at") or record.get("timestamp") or record.get("created"))
    text = texts(held.get("content"))
    if role in _SYSTEM:
        into.add("system", text, id=id, at=at, aside="system")
    elif role in _TOOLS:
        into.add("tool", brief(record.get("content")), id=id, at=at, aside="tool-result")
    elif role in _PEOPLE:
        bare, (begin, end) = text.strip(), _QUERY
        asked = bare.startswith(begin) and bare.endswith(end)
        into.add("user", bare[len(begin) : -len(end)].strip() if asked else text, id=id, at=at)
    else:
        calls = record.get("tool_calls") or record.get("function_call")
        if text or not calls:
            into.add("assistant", text, id=id, at=at)
        if calls:
            into.add("assistant", "", at=at, aside="tool-call")
    return True
