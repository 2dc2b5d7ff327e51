"""Bring your past: what other programs remember, imported once, with its words, its time and where it comes from."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from langgraph.store.memory import InMemoryStore

from lukasa import Lukasa
from lukasa.langgraph import import_store
from tests.helpers.cli import Shell
from tests.helpers.pasts import MADE


def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path / "data")


def everything(shell: Shell, *more: str) -> list[dict[str, Any]]:
    """Every entry of every workspace."""
    found = []
    for one in shell.json("workspace", "list")["workspaces"]:
        for tier in ("workspace", "account"):
            found += shell.json("-w", one["name"], "list", "--tier", tier, "--all", *more)["entries"]
    return list({entry["id"]: entry for entry in found}.values())


def state(shell: Shell) -> list[Any]:
    """What a run may not change: every entry, transcript and event."""
    kept: list[Any] = [sorted((e["id"], e["version"], e["state"]) for e in everything(shell))]
    for one in shell.json("workspace", "list")["workspaces"]:
        kept.append(shell.json("-w", one["name"], "events", "list", "--limit", "10000"))
        kept.append(shell.json("-w", one["name"], "transcripts", "list"))
    return kept


@pytest.mark.parametrize("name", MADE)
def test_an_import_has_all_of_its_past_and_a_second_run_changes_nothing(name: str, tmp_path: Path) -> None:
    """Each format: a dry run writes nothing and counts right; a run brings all of it; a second one changes nothing."""
    past, user = MADE[name](tmp_path), shell(tmp_path)
    planned = user.json("import", str(past.path), "--dry-run")
    assert planned["format"] == past.format
    assert sum(planned["memories"].values()) == past.memories == planned["memories"].get("new", 0)
    assert planned["conversations"] == ({"new": past.conversations} if past.conversations else {})
    assert planned["messages"].get("new", 0) == past.messages
    assert planned["samples"]
    assert everything(user) == []

    done = user.json("import", str(past.path))
    assert done["memories"].get("stored", 0) + done["memories"].get("held", 0) == past.memories
    assert done["messages"].get("new", 0) == past.messages
    before = state(user)
    again = user.json("import", str(past.path))
    assert again["memories"] == ({"known": past.memories} if past.memories else {})
    assert again["conversations"] == ({"known": past.conversations} if past.conversations else {})
    assert state(user) == before


@pytest.mark.parametrize("name", MADE)
def test_an_imported_memory_leads_back_to_its_file(name: str, tmp_path: Path) -> None:
    """Provenance: the words stay as they were, and say from which place of which file they come, and that they are
    imported."""
    past, user = MADE[name](tmp_path), shell(tmp_path)
    user.json("import", str(past.path))
    entry = next(e for e in everything(user) if e["content"] == past.holds)
    origin = entry["metadata"]["imported"]
    assert (origin["from"], origin["item"]) == (past.format, past.place)
    assert origin["file"].startswith(str(past.path))
    assert (entry["curator"], entry["trust"], entry["authority"]) == ("import", "imported", "inform")


@pytest.mark.parametrize("name", [name for name in MADE if name in ("chatgpt", "claude_ai", "claude_code", "letta")])
def test_facts_of_an_imported_conversation_lead_back_to_message_and_file(name: str, tmp_path: Path) -> None:
    """Conversations go through the observer: what the person said becomes a fact of an import, the assistant's words
    do not, and the fact names message and file."""
    past, user = MADE[name](tmp_path), shell(tmp_path)
    user.json("import", str(past.path))
    facts = [e for e in everything(user) if e["evidence"]]
    assert [e["content"] for e in facts if "always" in e["content"]]
    assert all("I prefer aisles" not in e["content"] for e in everything(user) if e["state"] == "active")
    fact = next(e for e in facts if "always" in e["content"])
    assert (fact["curator"], fact["trust"]) == ("import", "imported")
    assert fact["metadata"]["imported"]["file"].startswith(str(past.path))
    assert fact["confirmed_at"].startswith("202")
    assert fact["confirmed_at"] < fact["created_at"]
    place = next(
        one["name"]
        for one in user.json("workspace", "list")["workspaces"]
        if any(e["id"] == fact["id"] for e in user.json("-w", one["name"], "list", "--all")["entries"])
    )
    shown = user.json("-w", place, "transcripts", "show", fact["evidence"][0]["transcript"])
    message = next(m for m in shown["messages"] if m["id"] == fact["evidence"][0]["message"])
    assert message["role"] == "user"
    assert shown["imported"]["file"].startswith(str(past.path))


def test_conversations_can_wait_for_a_worker(tmp_path: Path) -> None:
    """--queue-only stores conversations, and says how many wait; the next import, or a worker, observes them."""
    past, user = MADE["chatgpt"](tmp_path), shell(tmp_path)
    done = user.json("import", str(past.path), "--queue-only")
    assert (done["pending"], done["observed"]) == (1, {})
    assert user.json("transcripts", "search", "window seat")["messages"]
    again = user.json("import", str(past.path), "--rules")
    assert (again["pending"], again["observed"]["observations_extracted"]) == (0, 1)


def test_any_store_of_langgraph_comes_in_once(tmp_path: Path) -> None:
    """LangGraph stores: the library brings the items of any BaseStore; those that came from a file before are known."""
    path = MADE["langgraph_store"](tmp_path).path
    other = InMemoryStore()
    other.put(("memories", "ana"), "a", {"text": "Writes with a fountain pen"})
    other.put(("memories", "ana"), "c", {"data": "Keeps bees"})
    other.put(("settings",), "d", {"text": "Out of the question"})
    with Lukasa.open(tmp_path / "data", embedder="none") as memory:
        memory.importing(path).run()
        world = memory.workspace()
        assert import_store(world, other, namespace=("memories",)) == {"known": 1, "stored": 1}
        assert import_store(world, other, namespace=("memories",)) == {"known": 2}
        entry = next(e for e in world.entries("workspace") if e.content == "Keeps bees")
        assert entry.metadata["imported"]["item"] == "item memories.ana/c"
