"""Plain chat logs: a speaker, a colon, and the text, which may continue on the following lines.

    User: the deploy failed again                       [2026-03-01 09:12] ana: the deploy failed again
    Assistant: which host?                              [09:13] bot: which host?

A speaker counts as a person unless the name is known as a machine's.

A machine's message may hold lines like "User: …": a web page, a listing, an example. A log has no mark for the end of a
message, so a person's line after a machine's message begins a turn only if nothing speaks against it. Otherwise it
stays the machine's, and nothing in it is taken for the user's words:

    the line is in a fenced block, or its form differs from the log's other lines: quoted, indented, without the time
    the log separates its turns by blank lines, and there is none before this line
    the line before it announces a quotation, by a colon at its end
    a tool has spoken before, anywhere in the log: its output may imitate any line
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
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
    r"^(?P<lead>[#>*_\s]{0,6})(?P<name>user|human|person|me|you|customer|client|assistant|ai|bot|agent|model|chatgpt|claude|gpt"
    r"|gemini|copilot|system|tool)(?:\s*\([^)\n]{1,30}\))?\s*[*_]{0,2}:[*_]{0,2}\s*(?P<said>.*)$",
    re.IGNORECASE,
)
_FENCES = ("```", "~~~")
_SYSTEM = frozenset({"system"})
LEAST_TURNS = 2


def read(into: RecordingBuilder, lines: Iterable[str]) -> bool:
    """Add the turns of a log; return False if fewer than two lines name a speaker."""
    speaker: Role | None = None
    at: datetime | None = None
    said: list[str] = []
    doubts = _Doubts()
    turns = 0

    def end() -> None:
        if speaker is not None and (text := "\n".join(said).strip()):
            into.add(speaker, text, at=at, aside="system" if speaker == "system" else "")

    for line in lines:
        found = _STAMPED.match(line) or _SPEAKER.match(line)
        groups = found.groupdict() if found else {}
        role = _role(groups.get("name") or groups.get("nick") or "")
        if found is None or (role == "user" and speaker not in (None, "user") and doubts.about(groups, said)):
            if speaker is not None:
                said.append(line)
                doubts.continued(line)
            continue
        end()
        doubts.began(groups, role, said)
        turns += 1
        speaker, at, said = role, parse_time(groups.get("time")), [found["said"]]
        doubts.continued(found["said"])
    end()
    return turns >= LEAST_TURNS


class _Doubts:
    """The form of a log's turns so far, and whether a person's line after a machine's message may be forged."""

    def __init__(self) -> None:
        self._turns = 0
        self._form: tuple[bool, str] | None = None  # of a person's line: with a time or without, the marks before it
        self._separated = False
        self._tool = False
        self._fence = ""

    def began(self, groups: Mapping[str, str | None], role: Role, before: Sequence[str]) -> None:
        self._turns += 1
        self._fence = ""
        self._tool = self._tool or role == "tool"
        if self._turns == 2:
            self._separated = _blank_last(before)
        if role == "user" and self._form is None:
            self._form = _form(groups)

    def continued(self, line: str) -> None:
        """Follow the fences of the present message."""
        mark = line.strip()[:3]
        if mark in _FENCES and mark == (self._fence or mark):
            self._fence = "" if self._fence else mark

    def about(self, groups: Mapping[str, str | None], before: Sequence[str]) -> bool:
        last = next((line for line in reversed(before) if line.strip()), "").rstrip(" *_")
        return (
            self._tool
            or bool(self._fence)
            or (self._form is not None and _form(groups) != self._form)
            or (self._separated and not _blank_last(before))
            or last.endswith(":")
        )


def _form(groups: Mapping[str, str | None]) -> tuple[bool, str]:
    return bool(groups.get("time")), groups.get("lead") or ""


def _blank_last(lines: Sequence[str]) -> bool:
    return len(lines) > 1 and not lines[-1].strip()


def _role(name: str) -> Role:
    plain = name.strip().lower()
    if plain in _SYSTEM:
        return "system"
    if plain == "tool":
        return "tool"
    machine = plain in MACHINES or plain.endswith(("bot", " ai", "assistant"))
    return "assistant" if machine else "user"
