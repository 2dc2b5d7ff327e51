"""The hosts that call hooks: their events, the form of an answer, and the part of their settings that calls us. Pure.

    {"hooks": {EVENT: [{"matcher": …, "hooks": [{"type": "command", "command": …, "timeout": …}]}]}}   grouped
    {"version": 1, "hooks": {EVENT: [{"command": …}]}}                                                 Cursor

A hook that ends with code 2 blocks the user's action, so ours never does; see `surfaces/cli/hook.py`.
"""

from __future__ import annotations

import copy
import json
import re
import shlex
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from msgspec import Struct

from lukasa.model.errors import InvalidInput

Settings = dict[str, Any]
TIMEOUT = 30  # seconds


class Host(Struct, frozen=True):
    """A program that calls hooks: the `lukasa hook` command for each of its events, in the order of a session.

    `answered` are the moments whose answer it adds to its context. Its timeouts count `ticks` a second; 0: it has none.
    """

    name: str
    events: Mapping[str, str]
    answered: frozenset[str]
    ticks: int = 1
    grouped: bool = True


_READING = frozenset({"session-start", "prompt", "tool-failure", "subagent-start"})
CLAUDE_CODE = Host(
    "claude-code",
    {
        "SessionStart": "session-start",
        "UserPromptSubmit": "prompt",
        "PostToolUseFailure": "tool-failure",
        "SubagentStart": "subagent-start",
        "PreCompact": "pre-compact",
        "Stop": "stop",
        "SessionEnd": "session-end",  # without a timeout of its own, it gets 1.5 seconds
    },
    _READING,
)
# Codex has no event for a failure or the end of a session: the next start observes a session that has ended.
CODEX = Host(
    "codex",
    {
        "SessionStart": "session-start",
        "UserPromptSubmit": "prompt",
        "SubagentStart": "subagent-start",
        "PreCompact": "pre-compact",
        "Stop": "stop",
    },
    _READING,
)
# Gemini has an event after every tool, and none for failures: a process for each tool call would cost too much time.
GEMINI = Host(
    "gemini",
    {
        "SessionStart": "session-start",
        "BeforeAgent": "prompt",
        "PreCompress": "pre-compact",
        "SessionEnd": "session-end",
    },
    _READING,
    ticks=1000,
)
# Cursor adds only the answer of a start to its context; the MCP server answers the rest.
CURSOR = Host(
    "cursor",
    {
        "sessionStart": "session-start",
        "preCompact": "pre-compact",
        "stop": "stop",
        "sessionEnd": "session-end",
    },
    frozenset({"session-start"}),
    ticks=0,
    grouped=False,
)
HOSTS = {host.name: host for host in (CLAUDE_CODE, CODEX, GEMINI, CURSOR)}
MOMENTS = ("session-start", "prompt", "tool-failure", "subagent-start", "pre-compact", "stop", "session-end")
# Names under which a host may call a moment that it has another name for.
_OTHER_NAMES = {"tool-failure": ("PostToolUse",)}
# The hooks that start a worker; the language model is set for them alone, so that no prompt waits for it.
_WORKING = frozenset({"pre-compact", "session-end"})
_CHAT = "LUKASA_CHAT="
_MODULE = "lukasa.surfaces.cli.main"
_OPERATORS = frozenset({";", "&", "&&", "|", "||", ">", ">>", "<", "("})


def answer(host: Host, moment: str, event: str, text: str) -> str:
    """Return the JSON that makes a host add a text to its context; empty for a moment where it cannot."""
    if not text or moment not in host.answered:
        return ""
    if not host.grouped:
        return json.dumps({"additional_context": text}) + "\n"
    known = [name for name, called in host.events.items() if called == moment]
    names = (*known, *_OTHER_NAMES.get(moment, ()))
    if not names:
        return ""
    name = event if event in names else names[0]
    # Escaped to ASCII, so that no locale can corrupt it.
    return json.dumps({"hookSpecificOutput": {"hookEventName": name, "additionalContext": text}}) + "\n"


def command(host: Host, program: Sequence[str], options: Sequence[str], moment: str) -> str:
    """Return the shell command of a hook."""
    form = [] if host is CLAUDE_CODE else ["--format", host.name]
    return shlex.join([*program, *options, "hook", moment, *form])


def ours(hook: object) -> bool:
    """Return whether `installed` wrote this hook, with any program path, options and language model."""
    parts = _parts(hook)
    if parts and parts[0].startswith(_CHAT):
        parts = parts[1:]
    if not parts or _OPERATORS & set(parts):
        return False
    program = re.split(r"[/\\]", parts[0])[-1]
    called = program in ("lukasa", "lukasa.exe") or _MODULE in parts[1:4]
    return called and any(a == "hook" and b in MOMENTS for a, b in pairwise(parts))


def _parts(hook: object) -> list[str]:
    """Return the words of a hook's command; none if it is no command."""
    if not isinstance(hook, dict) or not isinstance(hook.get("command"), str):
        return []
    try:
        return shlex.split(hook["command"])
    except ValueError:
        return []


def _hooks_of(group: dict[str, Any]) -> list[Any]:
    """Return the hooks of a group; in Cursor's settings each hook is a group of its own."""
    found: list[Any] = [group] if "hooks" not in group and "command" in group else group.get("hooks", [])
    return found


def chat_setting(settings: Settings) -> str:
    """Return the language model that our hooks in settings name; empty if they name none."""
    hooks = (hook for groups in _events(settings).values() for group in groups for hook in _hooks_of(group))
    named = (_parts(hook)[0] for hook in hooks if ours(hook))
    return next((word.removeprefix(_CHAT) for word in named if word.startswith(_CHAT)), "")


def installed(
    host: Host, settings: Settings, program: Sequence[str], options: Sequence[str] = (), chat: str = ""
) -> Settings:
    """Return settings with each of our hooks once, at its old position if it had one; the rest is unchanged.

    `chat` names the language model of background work; without it the hooks keep the one that they name.
    """
    changed = copy.deepcopy(settings)
    if not host.grouped:
        changed.setdefault("version", 1)
    events = _events(changed)
    named = chat or chat_setting(settings)
    for event in [*host.events, *(event for event in events if event not in host.events)]:
        wanted = _hook(host, program, options, host.events[event], named) if event in host.events else None
        groups, placed = _replaced(events.get(event, []), wanted)
        if wanted is not None and not placed:
            groups = [*groups, {"hooks": [wanted]} if host.grouped else wanted]
        _keep(events, event, groups)
    changed.setdefault("hooks", events)
    return changed


def removed(settings: Settings) -> Settings:
    """Return settings without our hooks, and without groups and events that held nothing else."""
    changed = copy.deepcopy(settings)
    events = _events(changed)
    for event in list(events):
        _keep(events, event, _replaced(events[event], None)[0])
    if not events and settings.get("hooks"):
        changed.pop("hooks", None)
        if changed == {"version": 1}:
            changed.pop("version")  # of Cursor's settings, which hold nothing else
    return changed


def _hook(host: Host, program: Sequence[str], options: Sequence[str], moment: str, chat: str) -> dict[str, Any]:
    model = [f"{_CHAT}{chat}"] if chat and moment in _WORKING else []
    said = command(host, [*model, *program], options, moment)
    kind = {"type": "command"} if host.grouped else {}
    return {**kind, "command": said, **({"timeout": TIMEOUT * host.ticks} if host.ticks else {})}


def _events(settings: Settings) -> dict[str, Any]:
    """Return the hooks of settings; raise if Claude Code could not read them."""
    events = settings.get("hooks", {})
    if not isinstance(events, dict):
        raise _unreadable("hooks", "an object")
    for event, groups in events.items():
        if not isinstance(groups, list):
            raise _unreadable(f"hooks.{event}", "a list")
        if not all(isinstance(g, dict) and isinstance(g.get("hooks", []), list) for g in groups):
            raise _unreadable(f"hooks.{event}", "a list of objects with a list of hooks")
    return events


def _unreadable(where: str, what: str) -> InvalidInput:
    return InvalidInput(f"`{where[:80]}` in the settings is not {what}", fix="repair the file; nothing was written")


def _replaced(groups: Sequence[dict[str, Any]], wanted: dict[str, Any] | None) -> tuple[list[dict[str, Any]], bool]:
    """Replace the first of our hooks by the wanted one and remove the others; tell whether one was replaced."""
    left: list[dict[str, Any]] = []
    placed = False
    for group in groups:
        if ours(group):
            if wanted is not None and not placed:
                left.append(wanted)
                placed = True
            continue
        hooks = group.get("hooks", [])
        kept = []
        for hook in hooks:
            if not ours(hook):
                kept.append(hook)
            elif wanted is not None and not placed:
                kept.append(wanted)
                placed = True
        if kept or not hooks:
            left.append({**group, "hooks": kept} if kept != hooks else group)
    return left, placed


def _keep(events: dict[str, Any], event: str, groups: list[dict[str, Any]]) -> None:
    """Set an event's groups; remove an event that held only our hooks, keep one that was empty before."""
    if groups or events.get(event) == []:
        events[event] = groups
    else:
        events.pop(event, None)
