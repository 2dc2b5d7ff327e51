"""Claude Code's session files: one JSON object a line, each with a content block or a whole message.

{"type": "user" | "assistant", "message": {"role", "content": text | blocks}, "uuid", "sessionId", "timestamp"}
{"type": "summary", "summary", "leafUuid"}      {"type": "system", "subtype", "content"}
All other records (snapshots, queues, titles) describe the session and hold nothing that was said.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from lukasa.model.transcript import Role
from lukasa.ports import Aside
from lukasa.providers.transcripts.recording_builder import RecordingBuilder, brief, label, parse_time, texts

NAME = "claude-code"
MOST_FOLDER = 4096
_SPOKEN = ("user", "assistant")
_ABOUT = ("summary", "system", "file-history-snapshot", "queue-operation", "progress", "attachment", "last-prompt",
          "custom-title", "ai-title", "agent-name", "permission-mode", "pr-link")  # fmt: skip
# Marks of records that no participant said.
_MARKS: dict[str, Aside] = {
    "isSidechain": "sidechain",
    "isCompactSummary": "summary",
    "isMeta": "harness",
    "isApiErrorMessage": "harness",
}


def fits(record: Mapping[str, Any]) -> bool:
    kind = record.get("type")
    if kind in _SPOKEN:
        return isinstance(record.get("message"), Mapping) and ("uuid" in record or "sessionId" in record)
    return kind in _ABOUT


def add(into: RecordingBuilder, record: Mapping[str, Any]) -> bool:
    """Add the pieces of a record; return False if the record is malformed."""
    kind = record.get("type")
    _identify(into, record)
    if kind == "summary":
        into.title = into.title or label(record, "summary")
        return True
    if kind not in _SPOKEN:
        if kind == "system":
            into.add("system", texts(record.get("content")), id=label(record, "uuid"), aside="system")
        return isinstance(kind, str)
    message = record.get("message")
    if not isinstance(message, Mapping):
        return False
    role: Role = "user" if kind == "user" else "assistant"
    aside: Aside = next((aside for mark, aside in _MARKS.items() if record.get(mark)), "")
    id, at = label(record, "uuid"), parse_time(record.get("timestamp"))
    content = message.get("content")
    if said := texts(content, ("text",)):
        into.add(role, said, id=id, at=at, aside=aside)
    for part in content if isinstance(content, list) else ():
        if isinstance(part, Mapping):
            _block(into, part, id, at)
    return True


def _identify(into: RecordingBuilder, record: Mapping[str, Any]) -> None:
    """Take the session's id and folder from a record. A subagent's file names its parent, so its own id is added."""
    if not into.folder and isinstance(folder := record.get("cwd"), str) and len(folder) <= MOST_FOLDER:
        into.folder = folder
    if not into.session and (session := label(record, "sessionId", "session_id")):
        agent = label(record, "agentId") if record.get("isSidechain") else ""
        into.session = f"{session}:{agent}" if agent else session


def _block(into: RecordingBuilder, part: Mapping[str, Any], id: str, at: datetime | None) -> None:
    kind = str(part.get("type", ""))
    if kind == "text":
        return
    if kind in ("thinking", "redacted_thinking"):
        into.add("assistant", "", id=id, at=at, aside="thinking")
    elif kind.endswith("tool_result"):
        failed = part.get("is_error") is True
        name = label(part, "tool_use_id") or id
        into.add("tool", brief(part.get("content")), id=name, at=at, aside="tool-result", failed=failed)
    elif kind.endswith("tool_use"):
        into.add("assistant", "", id=id, at=at, aside="tool-call")
    else:
        into.add("user", "", id=id, at=at, aside="other")
