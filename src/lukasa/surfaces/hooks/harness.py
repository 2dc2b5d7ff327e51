"""Read a harness's event from stdin, name the workspace of its project folder, and hold a hook's result.

These fields of the hook input of Claude Code, Codex and Gemini CLI are read; other fields, and fields of a wrong type,
are ignored:

    session_id, transcript_path, cwd, hook_event_name      every event
    conversation_id, workspace_roots                       Cursor, in place of session_id and cwd
    source                                                 SessionStart: startup, resume, clear, compact
    prompt                                                 UserPromptSubmit
    tool_name, tool_input, error, is_interrupt             PostToolUseFailure
    tool_response                                          PostToolUse, if a harness has no event for failures
    reason                                                 SessionEnd
    agent_id                                               every event inside a subagent
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from lukasa.model.errors import InvalidInput
from lukasa.model.text import storable
from lukasa.service.project_names import workspace_name

__all__ = ["HarnessEvent", "HookResult", "excerpt", "project", "read_event", "workspace_name"]

MOST_BYTES = 64_000_000
MOST_LABEL = 4096
QUESTION = 2000
_FAILURES = ("error", "stderr", "message")


class HarnessEvent(Struct, frozen=True):
    """One event of a harness. A field that the event did not have is empty."""

    name: str = ""
    session: str = ""
    agent: str = ""
    cwd: str = ""
    transcript: str = ""
    source: str = ""
    reason: str = ""
    prompt: str = ""
    tool: str = ""
    tool_input: str = ""
    failure: str = ""


def read_event(raw: bytes) -> HarnessEvent:
    """Parse one event of a harness."""
    if len(raw) > MOST_BYTES:
        raise InvalidInput(f"the event is larger than {MOST_BYTES:,} bytes", fix="hooks take one JSON object on stdin")
    try:
        data = json.loads(raw.decode("utf-8-sig", "replace"))
    except (ValueError, RecursionError):
        raise InvalidInput("stdin is not JSON", fix="hooks take one JSON object on stdin") from None
    if not isinstance(data, dict):
        raise InvalidInput("stdin is JSON, but not an object", fix="hooks take one JSON object on stdin")
    return HarnessEvent(
        name=_label(data, "hook_event_name"),
        session=_label(data, "session_id") or _label(data, "conversation_id"),
        agent=_label(data, "agent_id"),
        cwd=_label(data, "cwd") or _first(data.get("workspace_roots")),
        transcript=_label(data, "transcript_path"),
        source=_label(data, "source"),
        reason=_label(data, "reason"),
        prompt=_text(data.get("prompt")),
        tool=_label(data, "tool_name"),
        tool_input=_asked(data.get("tool_input")),
        failure="" if data.get("is_interrupt") is True else _failure(data),
    )


def excerpt(text: str, most: int = QUESTION) -> str:
    """Cut a long text to its beginning and its end, where people say what they want."""
    if len(text) <= most:
        return text
    tail = most // 3
    return f"{text[: most - tail - 1]}\n{text[-tail:]}"


def _text(value: object) -> str:
    """Return a value if it is text, in a form that can be stored; else an empty text."""
    return storable(value) if isinstance(value, str) else ""


def _label(data: Mapping[str, Any], key: str) -> str:
    value = _text(data.get(key))
    return value if len(value) <= MOST_LABEL else ""


def _first(value: object) -> str:
    """Return the first of a list of folders."""
    return _label({"": value[0]}, "") if isinstance(value, list) and value else ""


def _asked(value: object) -> str:
    """Return the texts of a tool's input, such as a command or a path."""
    if isinstance(value, dict):
        return " ".join(_text(part)[:200] for part in list(value.values())[:8] if isinstance(part, str))
    return _text(value)[:200]


def _failure(data: Mapping[str, Any]) -> str:
    """Return the error of a tool call, from any field that a harness uses; empty if the call succeeded."""
    response = data.get("tool_response")
    if "error" in data or not isinstance(response, dict):
        return _said(data.get("error"))
    failed = response.get("is_error") is True or response.get("success") is False or bool(response.get("error"))
    return " ".join(filter(None, (_said(response.get(key)) for key in _FAILURES))) if failed else ""


def _said(value: object) -> str:
    return _said(value.get("message")) if isinstance(value, dict) else _text(value)


class HookResult(Struct, frozen=True):
    """A hook's result: the text to inject, empty if nothing is new, and the ids of the entries in it.

    `queued` is true if the hook queued a job for a worker.
    """

    text: str = ""
    ids: tuple[str, ...] = ()
    queued: bool = False


def project(cwd: str, env: Mapping[str, str]) -> str:
    """Return the project's folder. Claude Code sets it in the environment, because `cwd` changes with every `cd`."""
    return env.get("CLAUDE_PROJECT_DIR") or cwd or os.getcwd()
