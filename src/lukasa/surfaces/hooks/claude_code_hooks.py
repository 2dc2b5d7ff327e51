"""Claude Code's formats: a hook's answer, and the part of settings.json that calls it. Pure functions of values.

    {"hooks": {EVENT: [{"matcher": …, "hooks": [{"type": "command", "command": …, "timeout": seconds}]}]}}

A hook that ends with code 2 blocks the user's action, so ours never does; see `surfaces/cli/hook.py`.
"""

from __future__ import annotations

import copy
import json
import re
import shlex
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from lukasa.model.errors import InvalidInput

NAME = "claude-code"
Settings = dict[str, Any]

# The `lukasa hook` command for each event. Without a timeout of its own, SessionEnd gets 1.5 seconds.
PLAN = {
    "SessionStart": "session-start",
    "UserPromptSubmit": "prompt",
    "PostToolUseFailure": "tool-failure",
    "PreCompact": "pre-compact",
    "SessionEnd": "session-end",
}
TIMEOUT = 30
# Events whose answer Claude Code reads; the first is the default if the harness named none.
_ANSWERED = {
    "session-start": ("SessionStart",),
    "prompt": ("UserPromptSubmit",),
    "tool-failure": ("PostToolUseFailure", "PostToolUse"),
}
# The hooks that start a worker; the language model is set for them alone, so that no prompt waits for it.
_WORKING = frozenset({"pre-compact", "session-end"})
_CHAT = "LUKASA_CHAT="
_MODULE = "lukasa.surfaces.cli.main"
_OPERATORS = frozenset({";", "&", "&&", "|", "||", ">", ">>", "<", "("})


def answer(moment: str, event: str, text: str) -> str:
    """Return the JSON that makes Claude Code add a text to the context; empty for events where it cannot."""
    events = _ANSWERED.get(moment)
    if not text or events is None:
        return ""
    name = event if event in events else events[0]
    # Escaped to ASCII, so that no locale can corrupt it.
    return json.dumps({"hookSpecificOutput": {"hookEventName": name, "additionalContext": text}}) + "\n"


def command(program: Sequence[str], options: Sequence[str], moment: str) -> str:
    """Return the shell command of a hook."""
    return shlex.join([*program, *options, "hook", moment])


def ours(hook: object) -> bool:
    """Return whether `installed` wrote this hook, with any program path, options and language model."""
    parts = _parts(hook)
    if parts and parts[0].startswith(_CHAT):
        parts = parts[1:]
    if not parts or _OPERATORS & set(parts):
        return False
    program = re.split(r"[/\\]", parts[0])[-1]
    called = program in ("lukasa", "lukasa.exe") or _MODULE in parts[1:4]
    return called and any(a == "hook" and b in PLAN.values() for a, b in pairwise(parts))


def _parts(hook: object) -> list[str]:
    """Return the words of a hook's command; none if it is no command."""
    if not isinstance(hook, dict) or not isinstance(hook.get("command"), str):
        return []
    try:
        return shlex.split(hook["command"])
    except ValueError:
        return []


def chat_setting(settings: Settings) -> str:
    """Return the language model that our hooks in settings name; empty if they name none."""
    hooks = (hook for groups in _events(settings).values() for group in groups for hook in group.get("hooks", []))
    named = (_parts(hook)[0] for hook in hooks if ours(hook))
    return next((word.removeprefix(_CHAT) for word in named if word.startswith(_CHAT)), "")


def installed(settings: Settings, program: Sequence[str], options: Sequence[str] = (), chat: str = "") -> Settings:
    """Return settings with each of our hooks once, at its old position if it had one; the rest is unchanged.

    `chat` names the language model of background work; without it the hooks keep the one that they name.
    """
    changed = copy.deepcopy(settings)
    events = _events(changed)
    named = chat or chat_setting(settings)
    for event in [*PLAN, *(event for event in events if event not in PLAN)]:
        wanted = _hook(program, options, PLAN[event], named) if event in PLAN else None
        groups, placed = _replaced(events.get(event, []), wanted)
        if wanted is not None and not placed:
            groups = [*groups, {"hooks": [wanted]}]
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
    return changed


def _hook(program: Sequence[str], options: Sequence[str], moment: str, chat: str) -> dict[str, Any]:
    model = [f"{_CHAT}{chat}"] if chat and moment in _WORKING else []
    return {"type": "command", "command": command([*model, *program], options, moment), "timeout": TIMEOUT}


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
