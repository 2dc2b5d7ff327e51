"""Codex's rollout files: one JSON object a line.

    {"timestamp", "type": "session_meta", "payload": {"id", "cwd", "instructions", …}}
    {"timestamp", "type": "response_item", "payload": {"type": "message", "role", "content": […]}}
    {"timestamp", "type": "response_item", "payload": {"type": "function_call" | "function_call_output" | …, …}}
    {"timestamp", "type": "event_msg" | "turn_context" | "compacted" | …, "payload": …}

Response items hold the messages; events repeat them and are ignored. Older files hold the items without an envelope,
after a first line with the session's id.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from lukasa.ports import Aside
from lukasa.providers.transcripts.recording_builder import RecordingBuilder, brief, label, parse_time, texts

NAME = "codex"
MOST_FOLDER = 4096
_ENVELOPES = ("session_meta", "response_item", "event_msg", "turn_context", "compacted", "world_state")
_OLD_ITEMS = ("message", "reasoning", "function_call", "function_call_output", "local_shell_call")
_EXIT = re.compile(r'"exit_code"\s*:\s*(-?\d+)|exited with code (-?\d+)', re.IGNORECASE)
# Codex writes instructions and environment details as user messages.
_INSTRUCTIONS = ("# AGENTS.md instructions", "<user_instructions>", "<permissions instructions>")


def fits(record: Mapping[str, Any]) -> bool:
    if isinstance(record.get("payload"), Mapping):
        return record.get("type") in _ENVELOPES
    if record.get("type") in _OLD_ITEMS and "sessionId" not in record:
        return True
    return "id" in record and "timestamp" in record and ("instructions" in record or "git" in record)


def add(into: RecordingBuilder, record: Mapping[str, Any]) -> bool:
    """Add the pieces of a line; return False if the line is malformed."""
    kind, payload = record.get("type"), record.get("payload")
    if isinstance(payload, Mapping):
        if kind == "session_meta":
            _meta(into, payload)
        elif kind == "response_item":
            _item(into, payload, record.get("timestamp"))
        elif kind == "compacted":
            into.add(
                "assistant", texts(payload.get("message")), at=parse_time(record.get("timestamp")), aside="summary"
            )
        return isinstance(kind, str)
    if kind in _OLD_ITEMS:
        _item(into, record, record.get("timestamp"))
        return True
    if "id" in record and "timestamp" in record:
        _meta(into, record)
        return True
    return record.get("record_type") == "state"


def _meta(into: RecordingBuilder, payload: Mapping[str, Any]) -> None:
    into.session = into.session or label(payload, "id")
    into.started_at = into.started_at or parse_time(payload.get("timestamp"))
    if not into.folder and isinstance(folder := payload.get("cwd"), str) and len(folder) <= MOST_FOLDER:
        into.folder = folder
    instructions = payload.get("instructions") or payload.get("base_instructions")
    if instructions:
        into.add("system", brief(instructions), aside="system")


def _item(into: RecordingBuilder, item: Mapping[str, Any], timestamp: object) -> None:
    kind, at = str(item.get("type", "")), parse_time(timestamp)
    if kind == "message":
        text, role = texts(item.get("content")), item.get("role")
        if role not in ("user", "assistant"):
            into.add("system", text, at=at, aside="system")
            return
        aside: Aside = "system" if role == "user" and text.lstrip().startswith(_INSTRUCTIONS) else ""
        into.add("user" if role == "user" else "assistant", text, at=at, aside=aside)
    elif kind == "reasoning":
        into.add("assistant", "", at=at, aside="thinking")
    elif kind.endswith("_output"):
        output = brief(item.get("output"))
        code = _EXIT.search(output)
        failed = code is not None and (code[1] or code[2]) != "0"
        into.add("tool", output, at=at, aside="tool-result", failed=failed)
    elif kind.endswith("_call"):
        into.add("assistant", brief(item.get("arguments") or item.get("action")), at=at, aside="tool-call")
    else:
        into.add("assistant", "", at=at, aside="other")
