"""Workspaces, channels, conversations, notes, pages and documents from a terminal (U2, M5 to M9, X1)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.helpers.cli import Shell

FACT = "The harbour freezes in January"


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path / "data")


@pytest.fixture
def ref(shell: Shell) -> str:
    return str(shell.json("conversation", "start")["ref_code"])


def test_a_new_account_has_no_workspace_and_says_what_to_do(shell: Shell) -> None:
    """U2: empty states name the next step."""
    assert "lukasa workspace create" in shell.run("workspace", "list")


def test_workspaces_are_created_listed_and_shown(shell: Shell) -> None:
    """P5, X3: a workspace has a spec of its own and holds nothing of another's."""
    assert "lukasa -w novel" in shell.run("workspace", "create", "novel", "--preset", "tiered")
    shell.run("-w", "novel", "put", FACT)
    assert [w["name"] for w in shell.json("workspace", "list")["workspaces"]] == ["novel"]
    assert "1 active" in shell.run("workspace", "show", "novel")
    shown = shell.json("workspace", "show", "novel")
    assert shown["workspace"]["preset"] == "tiered"
    assert {t["name"]: t["counts"] for t in shown["tiers"]}["workspace"] == {"active": 1}
    assert shell.run("workspace", "show", "novel", "--spec") == shell.run("spec", "show", "tiered", "--toml")


def test_a_workspace_from_a_spec_file(shell: Shell, tmp_path: Path) -> None:
    """P5: a file of one's own is as good as a preset."""
    file = tmp_path / "mine.toml"
    shell.run("spec", "new", "--yes", "--set", "name=mine", "-o", str(file))
    assert shell.json("workspace", "create", "desk", "--spec", str(file))["preset"] == "mine"


def test_a_workspace_is_not_created_twice(shell: Shell) -> None:
    shell.run("workspace", "create", "novel")
    assert shell.fails("workspace", "create", "novel", code=1)["code"] == "conflict"
    assert shell.fails("workspace", "create", "x", "--preset", "a", "--spec", "b", code=2)["code"] == "usage"


def test_a_mistyped_workspace_is_not_made(shell: Shell) -> None:
    """W9: an unknown name is an error, never a new empty memory."""
    shell.put(FACT)
    for command in (("list",), ("put", FACT), ("read", "x"), ("workspace", "show")):
        assert shell.fails("-w", "novle", *command, code=1)["code"] == "not-found"
    assert [w["name"] for w in shell.json("workspace", "list")["workspaces"]] == ["main"]


def test_channels(shell: Shell) -> None:
    """M5: one default channel from the start; a channel's entries are read only in it."""
    made = shell.json("channel", "create", "research", "--description", "Sources")
    assert made["is_default"] is False
    assert [c["name"] for c in shell.json("channel", "list")["channels"]] == ["general", "research"]
    assert "default" in shell.run("channel", "list")
    shell.run("--channel", "research", "put", FACT, "--tier", "channel")
    assert len(shell.json("--channel", "research", "read", "harbour")["hits"]) == 1
    assert shell.json("--channel", "general", "read", "harbour")["hits"] == []
    assert shell.fails("channel", "create", "research", code=1)["code"] == "conflict"
    assert shell.fails("--channel", "attic", "list", code=1)["code"] == "not-found"


def test_conversations_live_and_end(shell: Shell, ref: str) -> None:
    """M6, L2: an 11-character ref code; what lives only in a conversation goes with it."""
    assert len(ref) == 11
    shell.run("--conversation", ref, "put", "We are polishing scene one", "--tier", "conversation")
    assert len(shell.json("--conversation", ref, "read", "polishing")["hits"]) == 1
    ended = shell.json("conversation", "end", ref)
    assert (ended["conversation"]["status"], ended["dropped"], ended["archived"]) == ("idle", 1, 0)
    assert shell.json("--conversation", ref, "read", "polishing")["hits"] == []


def test_an_archived_conversation_leaves_the_default_list(shell: Shell, ref: str) -> None:
    """M6: Active → Idle → Archived; anything else is a typed error."""
    assert shell.json("conversation", "idle", ref)["status"] == "idle"
    assert shell.fails("conversation", "idle", ref, code=1)["code"] == "invalid-transition"
    assert "archived" in shell.run("conversation", "archive", ref)
    assert "conversation start" in shell.run("conversation", "list")
    assert [c["ref_code"] for c in shell.json("conversation", "list", "--archived")["conversations"]] == [ref]
    assert shell.fails("conversation", "archive", ref, code=1)["code"] == "invalid-transition"


def test_conversations_by_channel(shell: Shell, ref: str) -> None:
    """M5: one channel has many conversations."""
    shell.run("channel", "create", "research")
    other = shell.json("conversation", "start", "--channel", "research")["ref_code"]
    found = shell.json("conversation", "list", "--channel", "research")["conversations"]
    assert [c["ref_code"] for c in found] == [other]
    assert ref in shell.run("conversation", "list")


def test_notes(shell: Shell, ref: str) -> None:
    """M7: JSON by key, in one conversation, never found as memory."""
    here = ("--conversation", ref, "note")
    assert shell.json(*here, "set", "plan", '{"steps": [1, 2]}')["value"] == {"steps": [1, 2]}
    shell.run(*here, "set", "mood", "rather hopeful")
    assert shell.json(*here, "set", "code", "42", "--text")["value"] == "42"
    shell.run(*here, "set", "long", "-", input="from stdin\n")
    assert shell.run(*here, "get", "plan") == '{"steps": [1, 2]}\n'
    assert [n["key"] for n in shell.json(*here, "list")["notes"]] == ["code", "long", "mood", "plan"]
    assert "rather hopeful" in shell.run("conversation", "show", ref)
    assert shell.json("--conversation", ref, "read", "hopeful")["hits"] == []
    assert shell.json(*here, "clear", "mood")["cleared"] == 1
    assert shell.fails(*here, "get", "mood", code=1)["code"] == "not-found"
    assert shell.json(*here, "clear")["cleared"] == 3
    assert "note set" in shell.run(*here, "list")


def test_a_note_needs_its_conversation(shell: Shell) -> None:
    assert "--conversation" in shell.fails("note", "list", code=2)["message"]
    assert shell.fails("--conversation", "nope", "note", "list", code=1)["code"] == "not-found"


def test_named_entries_are_there_and_keep_their_history(shell: Shell, tmp_path: Path) -> None:
    """M8: VOICE and SOUL from the first start; every edit keeps what was before."""
    assert [n["name"] for n in shell.json("named", "list")["named"]] == ["SOUL", "VOICE"]
    before = shell.json("named", "show", "VOICE")["body"]
    assert shell.run("named", "show", "VOICE") == f"{before}\n"
    file = tmp_path / "voice.md"
    file.write_text("Plain words.\n")
    assert "version 2" in shell.run("named", "edit", "VOICE", "--file", str(file))
    assert shell.run("named", "show", "voice") == "Plain words.\n"
    assert [v["body"] for v in shell.json("named", "history", "VOICE")["versions"]] == [before, "Plain words."]
    assert "Plain words." in shell.run("named", "history", "VOICE")
    assert shell.json("named", "edit", "VOICE", "--file", str(file))["changed"] is False


def test_a_named_entry_of_ones_own(shell: Shell) -> None:
    """M8: users add theirs, in either lasting tier."""
    made = shell.json("named", "edit", "style", "--file", "-", "--tier", "account", input="Short.\n")
    assert (made["named"]["name"], made["named"]["tier"]) == ("STYLE", "account")
    assert "Short." in shell.run("context")
    stale = ("named", "edit", "STYLE", "--file", "-", "--expect", "9")
    assert shell.fails(*stale, input="Other.\n", code=1)["code"] == "conflict"


def test_an_agent_cannot_edit_a_named_entry(shell: Shell) -> None:
    """M8: agents read these pages."""
    refused = shell.fails("--agent", "scout", "named", "edit", "VOICE", "--file", "-", input="Mine.\n", code=1)
    assert refused["code"] == "read-only-for-agents"
    assert "Mine." not in shell.run("named", "show", "VOICE")


def test_editing_without_a_terminal_asks_for_a_file(shell: Shell) -> None:
    assert "--file" in shell.fails("named", "edit", "VOICE", code=2)["fix"]


def test_documents_and_what_links_to_them(shell: Shell, tmp_path: Path) -> None:
    """M9: the link shows the source as it is now: current, changed, vanished."""
    file = tmp_path / "guide.md"
    file.write_text("# Guide\n\nUse the serial comma.\n")
    axes = ("--title", "Style guide", "--origin", "press", "--lifecycle", "draft", "--weight", "0.4")
    added = shell.json("document", "add", "guide", str(file), *axes, "--standing", "house rule", "--collection", "docs")
    assert (added["version"], added["weight"], added["collection"]) == (1, 0.4, "docs")
    shell.put("Our commas follow the press", "--link", "guide")
    assert "Style guide · current · press · draft · weight 0.4 · house rule" in shell.run("read", "commas")
    shell.run("document", "add", "guide", "-", input="Never use it.")
    assert shell.json("read", "commas")["hits"][0]["provenance"][0]["status"] == "changed"
    assert shell.run("document", "show", "guide") == "Never use it.\n"
    assert "guide" in shell.run("document", "list")
    shell.run("document", "remove", "guide")
    assert shell.json("read", "commas")["hits"][0]["provenance"][0]["status"] == "vanished"
    assert "document add" in shell.run("document", "list")
    assert shell.fails("document", "show", "guide", code=1)["code"] == "not-found"
    assert shell.fails("put", "Commas again, from nowhere", "--link", "guide", code=1)["code"] == "not-found"


def test_an_action_holds_what_it_rests_on(shell: Shell, ref: str) -> None:
    """X1: an entry that an action rests on is archived, not dropped, when its conversation ends."""
    here = ("--conversation", ref)
    id = shell.json(*here, "put", "The client agreed to the price", "--tier", "conversation")["id"]
    assert "1 entry" in shell.run("action", "link", "invoice-7", id, "--description", "sent on this word")
    ended = shell.json("conversation", "end", ref)
    assert (ended["dropped"], ended["archived"]) == (0, 1)
    assert shell.json("get", id)["state"] == "archived"


def test_the_three_kinds_of_scope_for_another_spec(shell: Shell) -> None:
    """P6: --scope binds anchors, --conversation the thread; organisations do not see each other."""
    shell.run("workspace", "create", "desk", "--preset", "anchored")
    acme = ("-w", "desk", "--scope", "org_id=acme", "--scope", "domain_id=tax")
    shell.run(*acme, "put", "Returns are due at the end of May")
    assert len(shell.json(*acme, "read", "returns")["hits"]) == 1
    other = ("-w", "desk", "--scope", "org_id=other", "--scope", "domain_id=tax")
    assert shell.json(*other, "read", "returns")["hits"] == []
    assert shell.fails("--scope", "planet=mars", "list", code=2)["code"] == "invalid-scope"
    assert shell.fails("--scope", "nonsense", "list", code=2)["code"] == "usage"
