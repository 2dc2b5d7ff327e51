"""Whatever removes something needs to be told exactly what: no surface has a way to remove everything by mistake."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from lukasa import Lukasa, Workspace
from lukasa.anthropic import MemoryTool
from lukasa.langgraph import LukasaStore
from lukasa.model.errors import LukasaError
from lukasa.surfaces.api.table import VERBS
from lukasa.surfaces.api.verb import Verb, perform
from lukasa.surfaces.cli.data import plain
from tests.helpers.cli import Shell

MEANT: tuple[Any, ...] = (None, "", " ", "\t\n", "*", "%", "_", "?", ".", "..", "/", "**/*", "all", "NULL", [], {}, 0)
WORDS = [value for value in MEANT if isinstance(value, str)]
ENDING = ("conversation_end", "conversation_archive", "memory_scrub_execute", "scope_end")
REMOVING = [verb for verb in VERBS if verb.method == "DELETE" or verb.name in ENDING]
LIBRARY: dict[str, Callable[[Workspace, Any], Any]] = {
    "forget": lambda world, what: world.forget(what),
    "undo": lambda world, what: world.undo(what),
    "remove_document": lambda world, what: world.remove_document(what),
    "clear_notes": lambda world, what: world.clear_notes(what),
    "end": lambda world, what: world.end(what),
    "end_scope": lambda world, what: world.end_scope(what),
    "archive": lambda world, what: world.archive(what),
    "dispose": lambda world, what: world.dispose(what, "prune"),
    "scrub_execute": lambda world, what: world.scrub_execute(what, confirm="0" * 64),
    "purge_execute": lambda world, what: world.purge_execute(what, confirm="0" * 64),
}


@pytest.fixture
def memory(tmp_path: Path) -> Lukasa:
    opened = Lukasa.open(tmp_path / "data", embedder="none")
    world = opened.workspace()
    for text in ("The lantern is lit every evening at nine", "The ferry leaves from the harbour at noon"):
        world.put("workspace", text)
    world.save_document("map", "All the harbours of the coast.")
    world.write_note(world.start().ref_code, "plan", "leave at noon")
    return opened


def everything(memory: Lukasa) -> str:
    world = memory.workspace()
    talks = world.conversations()
    held = (world.entries("workspace", everything=True), world.documents(), talks, [world.notes(t.id) for t in talks])
    return json.dumps(plain(held), default=str)


@pytest.mark.parametrize("name", LIBRARY)
def test_the_library_removes_nothing_that_is_not_named(memory: Lukasa, name: str) -> None:
    """T42: nothing, blanks, patterns and words for everything are refused with a typed error."""
    before = everything(memory)
    for what in MEANT:
        with pytest.raises(LukasaError):
            LIBRARY[name](memory.workspace(), what)
    assert everything(memory) == before


@pytest.mark.parametrize("verb", REMOVING, ids=lambda verb: verb.name)
def test_no_verb_removes_what_is_not_named(memory: Lukasa, verb: Verb) -> None:
    """T42: the same for every verb of HTTP and MCP that removes, even for the owner."""
    before, owner = everything(memory), memory.access.owner("web", "loopback")
    fields = [name for name in verb.input.model_fields if name not in ("reason", "confirm")]
    for what in MEANT:
        given: dict[str, Any] = dict.fromkeys(fields, what)
        if "confirm" in verb.input.model_fields:
            given["confirm"] = "0" * 64
        with pytest.raises((LukasaError, ValidationError)):
            perform(verb, memory.access, owner, "main", verb.input.model_validate(given))
        with pytest.raises((LukasaError, ValidationError)):
            perform(verb, memory.access, owner, "main", verb.input.model_validate({}))
    assert everything(memory) == before


@pytest.mark.parametrize(
    "call",
    [
        ("forget",),
        ("document", "remove"),
        ("conversation", "end"),
        ("scrub", "execute", "--confirm", "0" * 64, "--tier"),
        ("scrub", "execute", "--confirm", "0" * 64, "--thread"),
    ],
    ids=" ".join,
)
def test_no_command_removes_what_is_not_named(memory: Lukasa, tmp_path: Path, call: tuple[str, ...]) -> None:
    """T42: the same on the command line, also with nothing at all."""
    before, shell = everything(memory), Shell(tmp_path / "data")
    assert shell.call(*call).exit_code != 0
    for what in WORDS:
        assert shell.call(*call, what).exit_code != 0
    assert everything(memory) == before


def test_items_and_files_are_removed_by_name_alone(memory: Lukasa) -> None:
    """T42: LangGraph's store takes a namespace and a key whole; the memory tool does not delete its root."""
    world = memory.workspace()
    store = LukasaStore(world)
    store.put(("users", "ada"), "food", {"likes": "bread"})
    for space in (("users",), ("users", "*"), ("users", "ada", "%")):
        for key in ("food", "*", "%"):
            store.delete(space, key)
    store.delete(("users", "ada"), "foo_")
    assert store.get(("users", "ada"), "food") is not None
    tool = MemoryTool(world.acting(agent="assistant"))
    tool.call({"command": "create", "path": "/memories/a.txt", "file_text": "the ferry leaves at noon"})
    for path in ("/memories", "/memories/", "", " ", "*", "/memories/*", "/memories/..", "/", "%"):
        assert "Error" in str(tool.call({"command": "delete", "path": path}))
    assert "a.txt" in str(tool.call({"command": "view", "path": "/memories"}))
