"""Plain chat logs: a speaker, a colon, and the text, which may continue on the following lines.

    User: the deploy failed again                       [2026-03-01 09:12] ana: the deploy failed again
    Assistant: which host?                              [09:13] bot: which host?

A speaker counts as a person unless the name is known as a machine's.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import datetime

from lukasa.model.text import MACHINES
from lukasa.model.transcript import Role
from lukasa.providers.transcripts.recording_builder import RecordingBuilder, parse_time

NAME = "chat-log"
_STAMPED = re.compile(
    r"^\[(?P<time>[^\]\n]{4,40})\]\s*(?:<(?P<nick>[^>\n]{1,40})>|[*_]{0,2}(?P<name>[^\W\d_][\w .'@-]{0,39}?)[*_]{0,2}:)"
    r"[*_]{0,2}\s*(?P<said>.*)$"
)
_SPEAKER = re.compile(
    r"^[#>*_\s]{0,6}(?P<name>user|human|person|me|you|customer|client|assistant|ai|bot|agent|model|chatgpt|claude|gpt"
    r"|gemini|copilot|system|tool)(?:\s*\([^)\n]{1,30}\))?\s*[*_]{0,2}:[*_]{0,2}\s*(?P<said>.*)$",
    re.IGNORECASE,
)
_SYSTEM = frozenset({"system"})
LEAST_TURNS = 2


def read(into: RecordingBuilder, lines: Iterable[str]) -> bool:
    """Add the turns of a log; return False if fewer than two lines name a speaker."""
    speaker: Role | None = None
    at: datetime | None = None
    said: list[str] = []
    turns = 0

    def end() -> None:
        if speaker is not None and (text := "\n".join(said).strip()):
            into.add(speaker, text, at=at, aside="system" if speaker == "system" else "")

    for line in lines:
        found = _STAMPED.match(line) or _SPEAKER.match(line)
        if found is None:
            if speaker is not None:
                said.append(line)
            continue
        end()
        turns += 1
        groups = found.groupdict()
        speaker = _role(groups.get("name") or groups.get("nick") or "")
        at = parse_time(groups.get("time"))
        said = [found["said"]]
    end()
    return turns >= LEAST_TURNS


def _role(name: str) -> Role:
    plain = name.strip().lower()
    if plain in _SYSTEM:
        return "system"
    if plain == "tool":
        return "tool"
    machine = plain in MACHINES or plain.endswith(("bot", " ai", "assistant"))
    return "assistant" if machine else "user"
