"""The exports of ChatGPT and Claude.ai, as downloaded or unpacked.

    ChatGPT     conversations.json, or conversations-000.json and so on: a list of conversations, each a tree of
                messages: {"conversation_id", "title", "create_time", "current_node", "mapping": {id: {"message",
                "parent", "children"}}}. What it remembers is in messages to `bio` and in `model_editable_context`,
                the person's own instructions are in `user_editable_context`.
    Claude.ai   conversations.json: [{"uuid", "name", "created_at", "chat_messages": [{"uuid", "sender", "text",
                "content", "created_at"}]}]; memories.json: what it remembers; projects.json: instructions of projects.

Of a tree, the line that the person saw last counts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from lukasa.model.past import PastStatement, moment_of
from lukasa.model.values import Kind
from lukasa.ports import Aside, PastTalk
from lukasa.providers.past.bundle import Bundle, malformed
from lukasa.providers.past.markdown import statements, tag
from lukasa.providers.transcripts.recording_builder import RecordingBuilder, brief, label, texts

CHATGPT, CLAUDE_AI = "chatgpt", "claude-ai"
CHATGPT_TITLE = "ChatGPT's export: the zip as downloaded, or conversations.json"
CLAUDE_AI_TITLE = "Claude.ai's export: the zip as downloaded, or conversations.json and memories.json"
_CHATS = re.compile(r"(?:^|/)conversations(?:[-_]\d+)?\.json$")
_MEMORIES = re.compile(r"(?:^|/)memories(?:[-_]\d+)?\.json$|(?:^|/)memories/[^/]+\.json$")
_PROJECTS = re.compile(r"(?:^|/)projects(?:[-_]\d+)?\.json$|(?:^|/)projects/[^/]+\.json$")
_NUMBERED = re.compile(r"^\s*(?:\d{1,4}\.|[-*])\s*(?:\[(?P<day>\d{4}-\d{2}-\d{2})\]\.?\s*)?(?P<said>\S.*)$")
_QUOTED = re.compile(r"```(.*?)```", re.DOTALL)
_DEEPEST = 100_000  # messages of one line of a conversation


def _matching(bundle: Bundle, pattern: re.Pattern[str]) -> list[str]:
    return sorted(name for name in bundle.names if pattern.search(name))


def _chats_hold(bundle: Bundle, mark: bytes) -> bool:
    return any(mark in bundle.head(name) for name in _matching(bundle, _CHATS))


def fits_chatgpt(bundle: Bundle) -> bool:
    if bundle.is_file:
        head = bundle.head(bundle.names[0])
        return head.lstrip()[:1] == b"[" and b'"mapping"' in head and b'"message"' in head
    return _chats_hold(bundle, b'"mapping"')


def fits_claude_ai(bundle: Bundle) -> bool:
    if bundle.is_file:
        head = bundle.head(bundle.names[0])
        return head.lstrip()[:1] in (b"[", b"{") and (b'"chat_messages"' in head or b'"conversations_memory"' in head)
    if _chats_hold(bundle, b'"chat_messages"'):
        return True
    return any(b'"conversations_memory"' in bundle.head(name) for name in _matching(bundle, _MEMORIES))


# ChatGPT


def read_chatgpt(bundle: Bundle) -> Iterator[PastTalk | PastStatement]:
    contexts: dict[str, PastStatement] = {}
    for name in bundle.names if bundle.is_file else _matching(bundle, _CHATS):
        for number, chat in bundle.listed(name):
            place = f"{bundle.place(name)}: conversation {number}"
            if not isinstance(chat, Mapping) or not isinstance(chat.get("mapping"), Mapping):
                raise malformed(place, "it has no `mapping` of messages")
            noted: list[PastStatement] = []
            talk = _chatgpt_talk(bundle, name, chat, noted)
            for one in noted:  # its contexts are repeated in every conversation: the first that shows one dates it
                known = contexts.get(one.text)
                if known is None or (one.said_at and known.said_at and one.said_at < known.said_at):
                    contexts[one.text] = one
            if any(not piece.aside for piece in talk.recording.pieces):
                yield talk
    yield from contexts.values()


def _chatgpt_talk(bundle: Bundle, name: str, chat: Mapping[str, Any], noted: list[PastStatement]) -> PastTalk:
    into = RecordingBuilder(CHATGPT, label(chat, "conversation_id", "id"), label(chat, "title"))
    into.started_at = moment_of(chat.get("create_time"))
    place = f"{bundle.place(name)} › {into.session or into.title}"
    for node in _line(chat):
        message = node.get("message")
        if isinstance(message, Mapping):
            _chatgpt_message(into, message, noted, place)
    return PastTalk(into.recording(), place)


def _line(chat: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the nodes from the first message to the one that was shown last."""
    mapping: Mapping[str, Any] = chat["mapping"]
    at = chat.get("current_node")
    if not isinstance(at, str) or at not in mapping:
        leaves = [id for id, node in mapping.items() if isinstance(node, Mapping) and not node.get("children")]
        at = leaves[-1] if leaves else None
    found: list[Mapping[str, Any]] = []
    seen: set[str] = set()
    while isinstance(at, str) and at not in seen and len(found) < _DEEPEST:
        node = mapping.get(at)
        if not isinstance(node, Mapping):
            break
        seen.add(at)
        found.append(node)
        at = node.get("parent")
    return found[::-1]


def _chatgpt_message(
    into: RecordingBuilder, message: Mapping[str, Any], noted: list[PastStatement], place: str
) -> None:
    author, content = message.get("author"), message.get("content")
    role = author.get("role") if isinstance(author, Mapping) else None
    if not isinstance(content, Mapping):
        return
    id, at = label(message, "id"), moment_of(message.get("create_time"))
    kind = content.get("content_type")
    if kind in ("user_editable_context", "model_editable_context"):
        noted.extend(_contexts(content, into, id, place, at))
        return
    said = _parts(content)
    hidden = isinstance(about := message.get("metadata"), Mapping) and about.get("is_visually_hidden_from_conversation")
    if role == "user":
        into.add("user", said, id=id, at=at, aside="harness" if hidden else "")
    elif role == "assistant":
        to = message.get("recipient") or "all"
        if to == "bio" and said.strip():
            noted.append(
                PastStatement(CHATGPT, said.strip(), place, f"message {id}", at or into.started_at, by=CHATGPT)
            )
        aside: Aside = "tool-call" if to != "all" else "" if kind in ("text", "multimodal_text") else "thinking"
        into.add("assistant", said if not aside else "", id=id, at=at, aside=aside)
    elif role == "tool":
        into.add("tool", brief(said), id=id, at=at, aside="tool-result")
    elif said:
        into.add("system", said, id=id, at=at, aside="system")


def _parts(content: Mapping[str, Any]) -> str:
    parts = content.get("parts")
    if isinstance(parts, list):
        return "\n".join(said for part in parts if (said := _part(part)))
    return texts(content.get("text"))


def _part(part: object) -> str:
    """Return the words of a part: text, or what was said aloud. A picture has none."""
    if isinstance(part, Mapping):
        return str(part.get("text") or "") if part.get("content_type") == "audio_transcription" else ""
    return part if isinstance(part, str) else ""


def _contexts(
    content: Mapping[str, Any], into: RecordingBuilder, id: str, place: str, at: Any
) -> Iterator[PastStatement]:
    when = at or into.started_at
    for field in ("user_profile", "user_instructions"):
        said = content.get(field)
        if isinstance(said, str) and said.strip():
            quoted = _QUOTED.search(said)
            words = (quoted[1] if quoted else said).strip()
            if words:
                rule = field == "user_instructions"
                kind = Kind.PROCEDURAL if rule else None
                yield PastStatement(
                    CHATGPT, words, place, f"message {id}", when, kind=kind, rule=rule, tags=(tag(field),)
                )
    known = content.get("model_set_context")
    for line in known.split("\n") if isinstance(known, str) else ():
        if (found := _NUMBERED.match(line)) is not None:
            said_at = moment_of(found["day"]) or when
            yield PastStatement(CHATGPT, found["said"].strip(), place, f"message {id}", said_at, by=CHATGPT)


# Claude.ai


def read_claude_ai(bundle: Bundle) -> Iterator[PastTalk | PastStatement]:
    chats, memories, projects = (
        (list(bundle.names), list(bundle.names), [])
        if bundle.is_file
        else (_matching(bundle, pattern) for pattern in (_CHATS, _MEMORIES, _PROJECTS))
    )
    if bundle.is_file:
        talks = b'"chat_messages"' in bundle.head(bundle.names[0])
        chats, memories = (chats, []) if talks else ([], memories)
    for name in chats:
        for number, chat in bundle.listed(name):
            place = f"{bundle.place(name)}: conversation {number}"
            if not isinstance(chat, Mapping) or not isinstance(chat.get("chat_messages"), list):
                raise malformed(place, "it has no list `chat_messages`")
            talk = _claude_talk(bundle, name, chat, place)
            if any(not piece.aside for piece in talk.recording.pieces):
                yield talk
    titles: dict[str, str] = {}
    for name in projects:
        yield from _claude_projects(bundle, name, titles)
    for name in memories:
        yield from _claude_memories(bundle, name, titles)


def _claude_talk(bundle: Bundle, name: str, chat: Mapping[str, Any], place: str) -> PastTalk:
    into = RecordingBuilder(CLAUDE_AI, label(chat, "uuid"), label(chat, "name"))
    into.started_at = moment_of(chat.get("created_at"))
    for number, message in enumerate(chat["chat_messages"], 1):
        if not isinstance(message, Mapping) or message.get("sender") not in ("human", "assistant"):
            raise malformed(f"{place}, message {number}", "it has no sender `human` or `assistant`")
        content = message.get("content")
        said = texts(content, ("text",)) or texts(message.get("text"))
        id, at = label(message, "uuid"), moment_of(message.get("created_at"))
        into.add("user" if message["sender"] == "human" else "assistant", said, id=id, at=at)
        for part in content if isinstance(content, list) else ():
            kind = part.get("type") if isinstance(part, Mapping) else ""
            if kind == "tool_result":
                into.add("tool", brief(part.get("content")), at=at, aside="tool-result")
    return PastTalk(into.recording(), f"{bundle.place(name)} › {into.session or into.title}")


def _claude_projects(bundle: Bundle, name: str, titles: dict[str, str]) -> Iterator[PastStatement]:
    """Yield the instructions that the person wrote for projects."""
    data = bundle.json(name)
    for number, project in enumerate(data if isinstance(data, list) else [data], 1):
        if not isinstance(project, Mapping):
            raise malformed(f"{bundle.place(name)}: project {number}", "it is not an object")
        title = label(project, "name")
        titles[label(project, "uuid")] = title
        said = project.get("prompt_template")
        if isinstance(said, str) and said.strip():
            at = moment_of(project.get("updated_at")) or moment_of(project.get("created_at"))
            place, item = bundle.place(name), f"project {title or number}"
            about = {"project": title} if title else {}
            tags = (tag(title),) if tag(title) else ()
            yield PastStatement(
                CLAUDE_AI, said.strip(), place, item, at, kind=Kind.PROCEDURAL, rule=True, tags=tags, about=about
            )


def _claude_memories(bundle: Bundle, name: str, titles: Mapping[str, str]) -> Iterator[PastStatement]:
    data, at = bundle.json(name), bundle.modified(name)
    for number, kept in enumerate(data if isinstance(data, list) else [data], 1):
        if not isinstance(kept, Mapping):
            raise malformed(f"{bundle.place(name)}: item {number}", "it is not an object")
        ofprojects = kept.get("project_memories")
        named = {"conversations": kept.get("conversations_memory")}
        named |= {str(key): said for key, said in ofprojects.items()} if isinstance(ofprojects, Mapping) else {}
        for key, said in named.items():
            title = "" if key == "conversations" else titles.get(key, key)
            bold = ""
            for one in statements(said) if isinstance(said, str) else ():
                if words := _heading_of(one.text):
                    bold = words
                    continue
                heading = bold or (one.headings[-1] if one.headings else "")
                about = {**({"project": title} if title else {}), **({"section": heading} if heading else {})}
                tags = tuple(found for found in (tag(title), tag(heading)) if found)
                item = f"{'memory' if not title else 'memory of project ' + title}, line {one.line}"
                yield PastStatement(
                    CLAUDE_AI, one.text, bundle.place(name), item, at, by=CLAUDE_AI, tags=tags, about=about
                )


def _heading_of(text: str) -> str:
    """Return the words of a paragraph that is only a heading in bold; empty for any other."""
    found = re.fullmatch(r"\*\*([^*\n]{1,80})\*\*:?", text.strip())
    return found[1] if found else ""
