"""Letta's agent files (.af): the core memory of an agent, its archive, and the messages in its context.

    now       {"agents": [{"id", "name", "block_ids", "messages": […]}], "blocks": [{"id", "label", "value"}], …}
    before    {"agent_type", "name", "core_memory": [{"label", "value"}], "messages": […]}

A message of the person may be wrapped in JSON, and the agent may speak through the tool `send_message`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from lukasa.model.past import PastStatement, moment_of
from lukasa.ports import PastTalk
from lukasa.providers.past.bundle import Bundle, malformed, parsed
from lukasa.providers.past.markdown import sections, tag
from lukasa.providers.transcripts.recording_builder import RecordingBuilder, brief, label, texts

NAME = "letta"
TITLE = "Letta agent files: *.af"


def _files(bundle: Bundle) -> Sequence[str]:
    if bundle.is_file:
        name = bundle.names[0]
        head = bundle.head(name)
        old = b'"core_memory"' in head and b'"agent_type"' in head
        new = b'"agents"' in head and (b'"blocks"' in head or b'"block_ids"' in head)
        return bundle.names if name.lower().endswith(".af") or old or new else ()
    return bundle.ending(".af")


def fits(bundle: Bundle) -> bool:
    return bool(_files(bundle))


def read(bundle: Bundle) -> Iterator[PastStatement | PastTalk]:
    for name in _files(bundle):
        data, place, at = bundle.json(name), bundle.place(name), bundle.modified(name)
        if isinstance(data, str):  # some of these files hold their JSON as a text in JSON
            data = parsed(data.encode(), place)
        if not isinstance(data, Mapping):
            raise malformed(place, "it is not an object")
        agents = data.get("agents")
        if not isinstance(agents, list) and "core_memory" not in data:
            raise malformed(place, "it has neither `agents` nor `core_memory`")
        yield from _blocks(data.get("blocks") or data.get("core_memory") or [], place, at)
        for number, agent in enumerate(agents if isinstance(agents, list) else [data], 1):
            if not isinstance(agent, Mapping):
                raise malformed(f"{place}: agent {number}", "it is not an object")
            yield from _archive(agent, place, at)
            talk = _talk(agent, f"{place}: agent {number}", place)
            if any(not piece.aside for piece in talk.recording.pieces):
                yield talk
        yield from _archive(data, place, at)


def _blocks(blocks: object, place: str, at: datetime | None) -> Iterator[PastStatement]:
    if not isinstance(blocks, list):
        raise malformed(place, "its blocks of memory are not a list")
    for number, block in enumerate(blocks, 1):
        if not isinstance(block, Mapping) or not isinstance(block.get("value", ""), str):
            raise malformed(f"{place}: block {number}", "it has no text `value`")
        named = label(block, "label")
        when = moment_of(block.get("updated_at")) or moment_of(block.get("created_at")) or at
        for said in sections(block.get("value", "")):
            about = {"block": named} if named else {}
            tags = (tag(named),) if tag(named) else ()
            item = f"block {named or number}, line {said.line}"
            yield PastStatement(NAME, said.text, place, item, when, by=NAME, tags=tags, about=about)


def _archive(holder: Mapping[str, Any], place: str, at: datetime | None) -> Iterator[PastStatement]:
    for key in ("archival_memory", "passages", "archival_passages"):
        listed = holder.get(key)
        for number, one in enumerate(listed if isinstance(listed, list) else [], 1):
            text = one.get("text") if isinstance(one, Mapping) else one
            if isinstance(text, str) and text.strip():
                when = moment_of(one.get("created_at")) if isinstance(one, Mapping) else None
                yield PastStatement(NAME, text.strip(), place, f"{key} {number}", when or at, by=NAME)


def _talk(agent: Mapping[str, Any], where: str, place: str) -> PastTalk:
    into = RecordingBuilder(NAME, label(agent, "id", "name"), label(agent, "name"))
    messages = agent.get("messages") or []
    if not isinstance(messages, list):
        raise malformed(where, "its messages are not a list")
    for number, message in enumerate(messages, 1):
        if not isinstance(message, Mapping) or not isinstance(message.get("role"), str):
            raise malformed(f"{where}, message {number}", "it has no role")
        _add(into, message)
    recording = into.recording()
    return PastTalk(recording, f"{place} › {recording.session or recording.title}")


def _add(into: RecordingBuilder, message: Mapping[str, Any]) -> None:
    role, id = message["role"], label(message, "id")
    at, said = moment_of(message.get("created_at")), texts(message.get("content")) or texts(message.get("text"))
    if role == "user":
        words = _unwrapped(said)
        into.add("user", words or said, id=id, at=at, aside="" if words else "harness")
    elif role == "assistant":
        calls = message.get("tool_calls")
        spoken = [_spoken(call) for call in calls] if isinstance(calls, list) else []
        if any(spoken):
            into.add("assistant", "\n".join(filter(None, spoken)), id=id, at=at)
        elif calls:
            into.add("assistant", "", id=id, at=at, aside="tool-call")
        else:
            into.add("assistant", said, id=id, at=at)
    elif role == "tool":
        into.add("tool", brief(said), id=id, at=at, aside="tool-result")
    else:
        into.add("system", said, id=id, at=at, aside="system")


def _unwrapped(said: str) -> str:
    """Return what the person said; empty for an event of the program in the person's place, such as a login."""
    if not said.lstrip().startswith("{"):
        return said
    try:
        packed = json.loads(said)
    except (ValueError, RecursionError):
        return said
    if not isinstance(packed, dict) or "type" not in packed:
        return said
    return str(packed.get("message", "")) if packed["type"] == "user_message" else ""


def _spoken(call: object) -> str:
    """Return the words of a call of `send_message`, by which such an agent speaks."""
    made = call.get("function") if isinstance(call, Mapping) else None
    if not isinstance(made, Mapping) or made.get("name") != "send_message":
        return ""
    try:
        given = json.loads(str(made.get("arguments") or "{}"))
    except (ValueError, RecursionError):
        return ""
    return str(given.get("message", "")) if isinstance(given, dict) else ""
