"""What other programs leave on a disk, for tests: small files in their real formats, each with what it holds."""

from __future__ import annotations

import json
import pickle
import sqlite3
import sys
import zipfile
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from langgraph.store.sqlite import SqliteStore

from tests.helpers import sessions

DAY = datetime(2025, 3, 1, 12, tzinfo=UTC)


class Past(NamedTuple):
    """A path to import, and what must come out of it."""

    path: Path
    format: str
    memories: int = 0
    conversations: int = 0
    messages: int = 0
    holds: str = ""  # a memory, word for word
    place: str = ""  # of that memory in its file


def _json(path: Path, data: object) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(data), "utf-8")
    return path


def _file(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")
    return path


# Chats


def chatgpt_chats() -> list[dict[str, Any]]:
    """Conversations as ChatGPT exports them: trees, of which one branch was shown last."""

    def node(id: str, parent: str | None, children: Sequence[str], role: str = "", said: str = "", **more: Any) -> Any:
        message = {
            "id": id,
            "author": {"role": role, "name": None, "metadata": {}},
            "create_time": DAY.timestamp(),
            "content": {"content_type": "text", "parts": [said]},
            "status": "finished_successfully",
            "recipient": "all",
            "metadata": {},
            **more,
        }
        return {"id": id, "message": message if role else None, "parent": parent, "children": list(children)}

    context = {
        "content_type": "user_editable_context",
        "user_profile": "",
        "user_instructions": "Answer in short lists.",
    }
    known = "1. [2024-05-02]. Has a dog called Biscuit.\n\n2. [2024-06-01]. Lives in Porto."
    mapping = [
        node("root", None, ["ctx"]),
        node("ctx", "root", ["mem"], "user", content=context),
        node(
            "mem",
            "ctx",
            ["u1"],
            "system",
            content={"content_type": "model_editable_context", "model_set_context": known},
        ),
        node("u1", "mem", ["a0", "a1"], "user", "I always book the window seat on trains."),
        node("a0", "u1", [], "assistant", "An answer that was thrown away."),
        node("a1", "u1", ["b1"], "assistant", "Window seats it is. I prefer aisles myself."),
        node("b1", "a1", ["t1"], "assistant", "User is allergic to peanuts.", recipient="bio"),
        node("t1", "b1", ["a2"], "tool", "Model set context updated."),
        node("a2", "t1", [], "assistant", "Noted."),
    ]
    return [
        {
            "title": "Trains",
            "create_time": DAY.timestamp(),
            "update_time": DAY.timestamp(),
            "mapping": {one["id"]: one for one in mapping},
            "current_node": "a2",
            "conversation_id": "chat-1",
            "id": "chat-1",
        }
    ]


def chatgpt(folder: Path) -> Past:
    path = folder / "chatgpt.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("user.json", json.dumps({"id": "user-1", "email": "a@example.org"}))
        archive.writestr("conversations-000.json", json.dumps(chatgpt_chats()))
        archive.writestr("chat.html", "<html></html>")
    return Past(path, "chatgpt", 4, 1, 3, "User is allergic to peanuts.", "message b1")


def claude_ai(folder: Path) -> Past:
    def message(id: str, sender: str, said: str) -> dict[str, Any]:
        at = DAY.isoformat()
        content = [{"type": "text", "text": said, "start_timestamp": at, "stop_timestamp": at}]
        shown = {"uuid": id, "text": said, "content": content, "sender": sender, "created_at": at, "updated_at": at}
        return {**shown, "attachments": [], "files": []}

    chats = [
        {
            "uuid": "talk-1",
            "name": "Boats",
            "summary": "",
            "created_at": DAY.isoformat(),
            "updated_at": DAY.isoformat(),
            "account": {"uuid": "acct"},
            "chat_messages": [
                message("m1", "human", "I always sail from Cascais on Sundays."),
                message("m2", "assistant", "I will keep Sundays in mind."),
            ],
        }
    ]
    memory = "**Work context**\n\nAna leads the billing team.\n\n**Personal**\n\nShe restores old boats."
    memories = [
        {"conversations_memory": memory, "project_memories": {"p1": "Uses oak for hulls."}, "account_uuid": "acct"}
    ]
    projects = [{"uuid": "p1", "name": "Hull", "prompt_template": "Always answer in metres.", "docs": []}]
    path = folder / "data-batch-0000.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("users.json", "[]")
        archive.writestr("conversations.json", json.dumps(chats))
        archive.writestr("memories.json", json.dumps(memories))
        archive.writestr("projects.json", json.dumps(projects))
    return Past(path, "claude-ai", 4, 1, 2, "Ana leads the billing team.", "memory, line 3")


# Coding agents


def claude_code(folder: Path) -> Past:
    root = folder / ".claude"
    project = root / "projects" / "-home-ana-harbour"
    project.mkdir(parents=True)
    sessions.claude(project / "s-1.jsonl", [("user", "I always moor on the east side."), ("assistant", "Noted.")])
    _file(
        project / "memory" / "MEMORY.md",
        "# Memory\n\n- [Berths](berths.md) — who lies where\n- The crane is out on Mondays\n",
    )
    _file(
        project / "memory" / "berths.md",
        "---\nname: berths\ndescription: who lies where\ntype: project\n---\n\nBerth 4 belongs to the pilot boat.\n",
    )
    _file(root / "CLAUDE.md", "# Me\n\n- Use tabs in Go files\n- Never push to main\n")
    _file(root / "todos" / "x.json", "{}")
    return Past(root, "claude-code", 4, 1, 2, "Berth 4 belongs to the pilot boat.", "line 7")


def codex(folder: Path) -> Past:
    root = folder / ".codex"
    day = root / "sessions" / "2026" / "10" / "02"
    day.mkdir(parents=True)
    sessions.codex(
        day / "rollout-2026-10-02T09-00-00-c-1.jsonl", [("user", "I always run make check."), ("assistant", "Yes.")]
    )
    _file(root / "history.jsonl", '{"session_id": "c-1", "ts": 1, "text": "x"}\n')
    _file(root / "memories" / "MEMORY.md", "# Notes\n\n- The linter is ruff\n")
    _file(root / "memories" / "raw_memories.md", "raw words\n")
    _file(root / "AGENTS.md", "Write commit subjects in the imperative.\n")
    return Past(root, "codex", 2, 1, 2, "The linter is ruff", "line 3")


def auto_memory(folder: Path) -> Past:
    path = _file(
        folder / "memory" / "MEMORY.md", "# Memory\n\n## Build\n- Run `make` first\n- Tests need Postgres 16\n"
    )
    return Past(path.parent, "auto-memory", 2, holds="Tests need Postgres 16", place="line 5")


def rules(folder: Path) -> Past:
    root = folder / "app"
    _file(
        root / "CLAUDE.md",
        "# App\n\n## Style\n- Use pnpm, not npm\n- Keep functions short:\n\n  ```js\n  f()\n  ```\n\n@docs/more.md\n",
    )
    _file(root / "AGENTS.md", "Run the tests before each commit.\n")
    _file(root / ".cursorrules", "Prefer composition.\n")
    _file(
        root / ".cursor" / "rules" / "ts.mdc",
        "---\ndescription: TypeScript\nglobs: src/**/*.ts\nalwaysApply: false\n---\n\n- No `any`\n",
    )
    return Past(root, "rules", 5, holds="Use pnpm, not npm", place="line 4")


# Memories


def mcp_memory(folder: Path) -> Past:
    lines = [
        {
            "type": "entity",
            "name": "Ana_Lima",
            "entityType": "person",
            "observations": ["Leads the billing team", "Ana Lima sails"],
        },
        {"type": "entity", "name": "Billing", "entityType": "team", "observations": []},
        {"type": "relation", "from": "Ana_Lima", "to": "Billing", "relationType": "works_on"},
    ]
    path = _file(folder / "memory.jsonl", "\n".join(json.dumps(one) for one in lines))
    return Past(path, "mcp-memory", 3, holds="Ana Lima — Leads the billing team", place="line 1, observation 1")


def _mem0_payload(text: str) -> dict[str, Any]:
    return {"data": text, "hash": "0", "user_id": "ana", "created_at": "2025-03-01T04:00:00-08:00"}


def mem0_export(folder: Path) -> Past:
    one = {"id": "m-1", "memory": "Likes oat milk", "hash": "0", "metadata": {"topic": "food"}, "user_id": "ana"}
    two = {"id": "m-2", "memory": "Works from Porto", "categories": ["work"]}
    times = {"created_at": "2025-03-01T04:00:00-08:00", "updated_at": None}
    path = _json(folder / "mem0.json", {"results": [{**one, **times}, {**two, **times}], "relations": []})
    return Past(path, "mem0", 2, holds="Likes oat milk", place="memory m-1")


class PointStruct:
    """Pickles as the client of Qdrant pickles its points, which are values of pydantic."""

    def __init__(self, id: str, vector: list[float], payload: dict[str, Any]) -> None:
        self.state = {
            "__dict__": {"id": id, "vector": vector, "payload": payload},
            "__pydantic_extra__": None,
            "__pydantic_fields_set__": {"id", "vector", "payload"},
            "__pydantic_private__": None,
        }

    def __getstate__(self) -> dict[str, Any]:
        return self.state


def point(id: str, payload: dict[str, Any]) -> bytes:
    """The bytes of one point: its class is named by the module of Qdrant's client, which need not be installed."""
    name = "qdrant_client.http.models.models"
    before, module = sys.modules.get(name), ModuleType(name)
    own = type("PointStruct", (PointStruct,), {"__module__": name})
    module.PointStruct = own  # type: ignore[attr-defined]
    for part in (name.rsplit(".", depth)[0] for depth in range(1, 4)):
        sys.modules.setdefault(part, ModuleType(part))
    sys.modules[name] = module
    try:
        return pickle.dumps(own(id, [0.1, 0.2], payload))
    finally:
        if before is None:
            del sys.modules[name]


def mem0_qdrant(folder: Path) -> Past:
    root = folder / "qdrant"
    place = root / "collection" / "mem0"
    place.mkdir(parents=True)
    _json(root / "meta.json", {"collections": {"mem0": {"vectors": {"size": 2, "distance": "Cosine"}}}, "aliases": {}})
    with sqlite3.connect(place / "storage.sqlite") as db:
        db.execute("CREATE TABLE points (id TEXT PRIMARY KEY, point BLOB)")
        for id, text in (("q-1", "Takes the night train"), ("q-2", "Is learning Basque")):
            db.execute("INSERT INTO points VALUES (?, ?)", (id, point(id, _mem0_payload(text))))
    db.close()
    return Past(root, "mem0", 2, holds="Takes the night train", place="memory q-1")


def mem0_chroma(folder: Path) -> Past:
    root = folder / "chroma"
    root.mkdir()
    with sqlite3.connect(root / "chroma.sqlite3") as db:
        db.execute("CREATE TABLE embeddings (id INTEGER PRIMARY KEY, segment_id TEXT, embedding_id TEXT, seq_id BLOB)")
        db.execute(
            "CREATE TABLE embedding_metadata (id INTEGER, key TEXT, string_value TEXT, int_value INTEGER, "
            "float_value REAL, bool_value INTEGER, PRIMARY KEY (id, key))"
        )
        db.execute("INSERT INTO embeddings VALUES (1, 's', 'c-1', x'00')")
        for key, value in _mem0_payload("Collects maps").items():
            db.execute("INSERT INTO embedding_metadata (id, key, string_value) VALUES (1, ?, ?)", (key, value))
    db.close()
    return Past(root, "mem0", 1, holds="Collects maps", place="memory c-1")


def mem0_history(folder: Path) -> Past:
    path = folder / "history.db"
    with sqlite3.connect(path) as db:
        db.execute(
            "CREATE TABLE history (id TEXT PRIMARY KEY, memory_id TEXT, old_memory TEXT, new_memory TEXT, event TEXT, "
            "created_at DATETIME, updated_at DATETIME, is_deleted INTEGER, actor_id TEXT, role TEXT)"
        )
        at = DAY.isoformat()
        for row in (
            ("1", "h-1", None, "Has two cats", "ADD", at, None, 0, None, None),
            ("2", "h-2", None, "Rents a flat", "ADD", at, None, 0, None, None),
            ("3", "h-1", "Has two cats", "Has three cats", "UPDATE", at, at, 0, None, None),
            ("4", "h-2", "Rents a flat", None, "DELETE", at, at, 1, None, None),
        ):
            db.execute(f"INSERT INTO history VALUES ({', '.join('?' * 10)})", row)
    db.close()
    return Past(path, "mem0", 1, holds="Has three cats", place="memory h-1")


def langgraph_store(folder: Path) -> Past:
    """A store that LangGraph's own library has written."""
    path = folder / "store.db"
    with SqliteStore.from_conn_string(str(path)) as store:
        store.setup()
        store.put(("memories", "ana"), "a", {"text": "Writes with a fountain pen"})
        store.put(("memories", "ana"), "b", {"kind": "Memory", "content": {"content": "Reads Borges"}})
    return Past(path, "langgraph", 2, holds="Reads Borges", place="item memories.ana/b")


def letta(folder: Path) -> Past:
    packed = json.dumps({"type": "user_message", "message": "I always walk to work.", "time": "…"})
    login = json.dumps({"type": "login", "last_login": "never"})
    spoken = {"function": {"name": "send_message", "arguments": json.dumps({"message": "Good for you."})}}
    messages = [
        {"id": "l-0", "role": "system", "content": [{"type": "text", "text": "You are Sam."}]},
        {"id": "l-1", "role": "user", "content": [{"type": "text", "text": login}], "created_at": DAY.isoformat()},
        {"id": "l-2", "role": "user", "content": [{"type": "text", "text": packed}], "created_at": DAY.isoformat()},
        {"id": "l-3", "role": "assistant", "content": [{"type": "text", "text": "thinking"}], "tool_calls": [spoken]},
        {"id": "l-4", "role": "tool", "content": [{"type": "text", "text": "OK"}]},
    ]
    agent = {
        "id": "agent-0",
        "name": "Sam",
        "agent_type": "memgpt_v2_agent",
        "block_ids": ["b-0"],
        "messages": messages,
    }
    blocks = [{"id": "b-0", "label": "human", "value": "Her name is Ana.\nShe walks a lot."}]
    path = _json(folder / "sam.af", {"agents": [agent], "blocks": blocks, "files": [], "sources": [], "tools": []})
    return Past(path, "letta", 1, 1, 2, "Her name is Ana.\nShe walks a lot.", "block human, line 1")


def episodes(folder: Path) -> Past:
    at = DAY.isoformat()
    data = {
        "episodes": [
            {"uuid": "e-1", "name": "talk", "content": "Ana: I always swim at dawn.\nassistant: Cold!",
             "source": "message", "source_description": "chat", "reference_time": at, "group_id": "g"},
            {"uuid": "e-2", "name": "note", "episode_body": "The lido opens in May.", "source": "text",
             "reference_time": at},
        ],
        "edges": [
            {"uuid": "f-1", "fact": "Ana swims at dawn", "valid_at": at, "invalid_at": None},
            {"uuid": "f-2", "fact": "Ana lives in Faro", "valid_at": at, "invalid_at": at},
        ],
    }  # fmt: skip
    return Past(
        _json(folder / "graph.json", data), "graphiti", 2, 1, 2, "The lido opens in May.", "episode e-2, line 1"
    )


def basic_memory(folder: Path) -> Past:
    path = _file(
        folder / "notes" / "coffee" / "Brewing.md",
        "---\ntitle: Brewing\ntype: note\npermalink: coffee/brewing\ntags:\n- coffee\n---\n\n# Brewing\n\n"
        "## Observations\n- [method] Pour over gives more clarity #brewing (tried it)\n"
        "- [tip] Brewing needs fresh water\n\n"
        "## Relations\n- relates_to [[Beans]]\n",
    )
    return Past(path.parents[1], "basic-memory", 3, holds="Brewing needs fresh water", place="line 13")


def obsidian(folder: Path) -> Past:
    root = folder / "Vault"
    _file(root / ".obsidian" / "app.json", "{}")
    _file(root / "People" / "Malachar.md", "---\ntags: [villain]\n---\nFears mirrors. See [[The Keep]].\n")
    _file(root / "Plan.md", "# Plan\n\nFinish act two.\n")
    _file(root / ".trash" / "Old.md", "gone\n")
    return Past(root, "obsidian", 2, holds="Malachar\n\nFears mirrors. See [[The Keep]].", place="line 4")


MADE: dict[str, Callable[[Path], Past]] = {
    made.__name__: made
    for made in (
        chatgpt, claude_ai, claude_code, codex, auto_memory, rules, mcp_memory, mem0_export, mem0_qdrant, mem0_chroma,
        mem0_history, langgraph_store, letta, episodes, basic_memory, obsidian,
    )
}  # fmt: skip
