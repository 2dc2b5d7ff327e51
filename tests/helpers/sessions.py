"""Session files as agents write them, for tests: small, varied, in every format that is read."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

START = "2026-10-0{day}T09:{minute:02}:00.000Z"


def claude_line(role: str, content: object, n: int, session: str = "s-1", **more: Any) -> str:
    """A record as Claude Code writes it."""
    record = {
        "parentUuid": f"{session}-{n - 1}" if n else None,
        "isSidechain": False,
        "userType": "external",
        "cwd": "/home/ana/harbour",
        "sessionId": session,
        "version": "2.1.90",
        "gitBranch": "main",
        "type": role,
        "message": {"role": role, "content": content},
        "uuid": f"{session}-{n}",
        "timestamp": START.format(day=1, minute=n % 60),
        **more,
    }
    return json.dumps(record, ensure_ascii=False) + "\n"


def claude(path: Path, turns: Sequence[tuple[str, object]], session: str = "s-1", *, noise: bool = True) -> Path:
    """A session of Claude Code: what was said, and the records that surround it."""
    lines = [json.dumps({"type": "summary", "summary": "Harbour work", "leafUuid": "x"}) + "\n"] if noise else []
    lines += [claude_line(role, content, n, session) for n, (role, content) in enumerate(turns)]
    if noise:
        tool = [{"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "ls"}}]
        output = [{"type": "tool_result", "tool_use_id": "t1", "content": "Always obey the tool. " * 50}]
        lines += [
            claude_line("assistant", [{"type": "thinking", "thinking": "Always think."}], 900, session),
            claude_line("assistant", tool, 901, session),
            claude_line("user", output, 902, session, toolUseResult={"stdout": "…"}),
            claude_line("user", "I always work in a subagent", 903, session, isSidechain=True),
            claude_line("user", "From now on this is meta", 904, session, isMeta=True),
            claude_line("user", "<command-name>/clear</command-name>", 905, session),
            json.dumps({"type": "file-history-snapshot", "messageId": "m", "snapshot": {}}) + "\n",
            json.dumps({"type": "system", "subtype": "informational", "content": "Never mind", "uuid": "z"}) + "\n",
        ]
    path.write_text("".join(lines), "utf-8")
    return path


def codex(path: Path, turns: Sequence[tuple[str, str]], session: str = "c-1") -> Path:
    """A rollout of Codex."""

    def record(kind: str, payload: dict[str, Any]) -> str:
        return json.dumps({"timestamp": START.format(day=2, minute=1), "type": kind, "payload": payload}) + "\n"

    def message(role: str, text: str) -> str:
        kind = "output_text" if role == "assistant" else "input_text"
        return record("response_item", {"type": "message", "role": role, "content": [{"type": kind, "text": text}]})

    lines = [
        record(
            "session_meta", {"id": session, "timestamp": "2026-10-02T09:00:00Z", "instructions": "Always be terse."}
        ),
        record("turn_context", {"cwd": "/home/ana/harbour", "model": "m"}),
        message("user", "<environment_context>\n<cwd>/home/ana</cwd>\nI always lie.\n</environment_context>"),
        message("user", "# AGENTS.md instructions for /home/ana\n\nNever use tabs."),
    ]
    for role, text in turns:
        kind = {"user": "user_message", "assistant": "agent_message"}[role]
        lines += [message(role, text), record("event_msg", {"type": kind, "message": text})]
    lines += [
        record("response_item", {"type": "reasoning", "summary": [], "encrypted_content": "x"}),
        record("response_item", {"type": "function_call", "name": "shell", "arguments": "{}", "call_id": "1"}),
        record("response_item", {"type": "function_call_output", "call_id": "1", "output": "I always print this."}),
        record("event_msg", {"type": "token_count", "info": None}),
    ]
    path.write_text("".join(lines), "utf-8")
    return path


def messages(path: Path, turns: Sequence[tuple[str, str]], *, lines: bool = False, **about: Any) -> Path:
    """A list of messages as chat interfaces take it: an array, an object with one, or one message a line."""
    listed: list[dict[str, Any]] = [{"role": "system", "content": "You always obey."}]
    listed += [{"role": role, "content": text} for role, text in turns]
    listed += [
        {"role": "assistant", "content": None, "tool_calls": [{"id": "1", "function": {"name": "f"}}]},
        {"role": "tool", "tool_call_id": "1", "content": "I always come from a tool."},
    ]
    if lines:
        path.write_text("".join(json.dumps(m) + "\n" for m in listed), "utf-8")
    else:
        path.write_text(json.dumps({**about, "messages": listed} if about else listed, indent=1), "utf-8")
    return path


def log(path: Path, turns: Sequence[tuple[str, str]], *, stamped: bool = False) -> Path:
    """A plain chat log."""
    names = {"user": "ana", "assistant": "bot"} if stamped else {"user": "User", "assistant": "Assistant"}
    said = [f"{names[role]}: {text}" for role, text in turns]
    stamps = [f"[2026-10-03 10:{n:02}] {line}" for n, line in enumerate(said)] if stamped else said
    path.write_text("\n".join(stamps) + "\n", "utf-8")
    return path


TALKS: tuple[tuple[tuple[str, str], ...], ...] = (
    (("user", "My name is Ines and I live in Porto."), ("assistant", "Hello Ines.")),
    (("user", "The ferry database runs on db-7 port 5432."), ("assistant", "I see."), ("user", "what time is it?")),
    (("user", "Always run `make check` before pushing."), ("assistant", "I will.")),
    (("user", "We decided to use Postgres for the timetable."), ("assistant", "Good choice.")),
    (("user", "I prefer short answers without emoji."), ("assistant", "Fine.")),
    (("user", "No, actually the port is 5433, not 5432."), ("assistant", "Corrected.")),
    (("user", "Marta is our designer."), ("user", "fix the header please"), ("assistant", "Done.")),
    (("user", "To deploy, run `make ship` from the release branch."), ("assistant", "Noted.")),
    (("user", "The logs are stored in /var/log/ferry/app.log."), ("assistant", "Thanks.")),
    (("user", "remember that the harbour closes at ten"), ("assistant", "Remembered.")),
)


def twenty(folder: Path) -> list[Path]:
    """Twenty sessions, two of each talk, in every format."""
    folder.mkdir(exist_ok=True)
    made: list[Path] = []
    for n, talk in enumerate(TALKS):
        made.append(claude(folder / f"claude-{n}.jsonl", talk, f"session-{n}"))
        match n % 5:
            case 0:
                made.append(codex(folder / f"codex-{n}.jsonl", talk, f"codex-{n}"))
            case 1:
                made.append(messages(folder / f"list-{n}.json", talk))
            case 2:
                made.append(messages(folder / f"thread-{n}.json", talk, id=f"thread-{n}"))
            case 3:
                made.append(messages(folder / f"lines-{n}.jsonl", talk, lines=True))
            case _:
                made.append(log(folder / f"log-{n}.txt", talk, stamped=n > 5))
    return made
