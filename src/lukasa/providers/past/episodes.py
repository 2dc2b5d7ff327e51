"""Episodes of Zep and Graphiti as JSON, and the facts that they made of them.

    {"episodes": [{"uuid", "name", "content" | "episode_body", "source": "text" | "message" | "json",
                   "reference_time" | "valid_at" | "created_at", "group_id", "role", "role_type"}]}
    {"edges": [{"uuid", "fact", "valid_at", "invalid_at", "expired_at"}]}

As one list, under `episodes`, `edges` or `facts`, or one object a line. Messages are a conversation; a text is a
statement of its time. A fact that Graphiti has ended is left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from lukasa.model.past import PastStatement, moment_of, words_of
from lukasa.model.text import MACHINES
from lukasa.model.transcript import Role
from lukasa.ports import PastTalk
from lukasa.providers.past.bundle import Bundle, malformed
from lukasa.providers.past.markdown import sections
from lukasa.providers.transcripts.recording_builder import RecordingBuilder, label

NAME = "graphiti"
TITLE = "Zep and Graphiti: episodes and facts as JSON"
_BODIES = ("content", "episode_body", "data")
_TIMES = ("reference_time", "valid_at", "created_at")
_MARKS = (b'"episode_body"', b'"episodes"', b'"reference_time"', b'"source_description"', b'"fact"')
_SPOKEN = re.compile(r"^(?P<name>[^\W\d_][^:\n]{0,60}?)(?:\s*\((?P<role>[a-z]{2,12})\))?:\s+(?P<said>.*)$")


def fits(bundle: Bundle) -> bool:
    if not bundle.is_file:
        return False
    head = bundle.head(bundle.names[0]).lstrip(b"\xef\xbb\xbf \t\r\n")
    return head[:1] in (b"[", b"{") and any(mark in head for mark in _MARKS)


def read(bundle: Bundle) -> Iterator[PastStatement | PastTalk]:
    name = bundle.names[0]
    place, talks = bundle.place(name), dict[str, RecordingBuilder]()
    for number, one in _items(bundle, name):
        where = f"{place}: item {number}"
        if not isinstance(one, Mapping):
            raise malformed(where, "it is not an object")
        if isinstance(one.get("fact"), str):
            yield from _fact(one, place, number)
            continue
        body = next((one[key] for key in _BODIES if one.get(key)), None)
        if body is None:
            raise malformed(where, "it has neither `content`, `episode_body` nor `fact`")
        if one.get("source") == "message" or one.get("role") or one.get("role_type"):
            group = label(one, "thread_id", "session_id", "group_id") or "all"
            into = talks.setdefault(group, RecordingBuilder(NAME, group, label(one, "name")))
            _add(into, one, body if isinstance(body, str) else words_of(body), str(number))
        else:
            yield from _text(one, body, place, number)
    for group, into in talks.items():
        into.pieces.sort(key=lambda piece: piece.at.timestamp() if piece.at else 0.0)
        into.started_at = next((piece.at for piece in into.pieces if piece.at), None)
        yield PastTalk(into.recording(), f"{place} › {group}")


def _items(bundle: Bundle, name: str) -> Iterator[tuple[int, Any]]:
    if name.lower().endswith((".jsonl", ".ndjson")):
        yield from bundle.lines(name)
        return
    data = bundle.json(name)
    if isinstance(data, Mapping):
        found = [data[key] for key in ("episodes", "edges", "facts") if isinstance(data.get(key), list)]
        if not found:
            raise malformed(bundle.place(name), "it has no list `episodes`, `edges` or `facts`")
        data = [one for listed in found for one in listed]
    if not isinstance(data, list):
        raise malformed(bundle.place(name), "it is not a list of episodes")
    yield from enumerate(data, 1)


def _when(one: Mapping[str, Any]) -> Any:
    return next((at for key in _TIMES if (at := moment_of(one.get(key)))), None)


def _fact(one: Mapping[str, Any], place: str, number: int) -> Iterator[PastStatement]:
    if one.get("invalid_at") or one.get("expired_at") or not one["fact"].strip():
        return
    id = label(one, "uuid")
    yield PastStatement(NAME, one["fact"].strip(), place, f"fact {id or number}", _when(one), key=id, by=NAME)


def _text(one: Mapping[str, Any], body: object, place: str, number: int) -> Iterator[PastStatement]:
    id = label(one, "uuid", "name")
    about = {key: str(one[key]) for key in ("name", "source_description", "group_id") if isinstance(one.get(key), str)}
    for said in sections(body if isinstance(body, str) else words_of(body)):
        item = f"episode {id or number}, line {said.line}"
        yield PastStatement(NAME, said.text, place, item, _when(one), key=id, by=NAME, about=about)


def _add(into: RecordingBuilder, one: Mapping[str, Any], body: str, number: str) -> None:
    id, at = label(one, "uuid") or number, _when(one)
    given = str(one.get("role_type") or one.get("role") or "").lower()
    if given:
        role: Role = _role(given)
        into.add(
            role, body, id=id, at=at, aside="system" if role == "system" else "tool-result" if role == "tool" else ""
        )
        return
    speaker: Role = "user"
    said: list[str] = []
    turns: list[tuple[Role, str]] = []
    for line in body.split("\n"):
        found = _SPOKEN.match(line)
        if found is None:
            said.append(line)
            continue
        if any(said):
            turns.append((speaker, "\n".join(said).strip()))
        speaker, said = _role((found["role"] or found["name"]).lower()), [found["said"]]
    turns.append((speaker, "\n".join(said).strip()))
    for turn, (role, text) in enumerate(turns, 1):
        into.add(role, text, id=f"{id}:{turn}", at=at, aside="system" if role == "system" else "")


def _role(name: str) -> Role:
    if name in ("system", "tool"):
        return "system" if name == "system" else "tool"
    if name in ("function", "norole"):
        return "tool"
    machine = name in MACHINES or name in ("assistant", "ai", "model") or name.endswith(("bot", " ai", "assistant"))
    return "assistant" if machine else "user"
