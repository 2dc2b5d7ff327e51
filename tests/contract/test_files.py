"""Files: entries with a path, of which a scope holds one for each path, whatever their texts."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from lukasa.model.errors import Conflict
from lukasa.model.selection import Filters
from lukasa.model.text import content_key, path_key
from lukasa.model.values import SHARED, State
from lukasa.storage.port import Store, twin_key
from tests.helpers.stores import OPEN, ROOM, WORK, change, commit, entry, move, put, stored


def test_a_path_survives_the_store(store: Store) -> None:
    """B11: the path is part of an entry and of each of its versions."""
    one = entry("text", path="project/todo.md")
    commit(store, put(one))
    commit(store, change(stored(store, one), path="done.md"))
    assert stored(store, one).path == "done.md"
    assert [version.entry.path for version in store.versions(one.id)] == ["project/todo.md", "done.md"]


def test_files_may_share_a_text(store: Store) -> None:
    """B11, W3: the same text may be in many files and once outside them; an empty one is a text too."""
    commit(store, put(entry("text")), put(entry("text", path="a")), put(entry("text", path="b")))
    commit(store, put(entry("", path="c")), put(entry("", path="d")))
    with pytest.raises(Conflict):
        commit(store, put(entry("text")))


def test_a_path_is_there_once(store: Store) -> None:
    """B11: one active or held file for each path of a scope and owner; a forgotten one leaves it free."""
    one = entry("one", path="a")
    commit(store, put(one))
    with pytest.raises(Conflict):
        commit(store, put(entry("two", path="a")))
    commit(store, put(entry("two", path="a", scope=ROOM)), put(entry("two", path="a", owner="bo")))
    commit(store, move(stored(store, one), State.FORGOTTEN))
    commit(store, put(entry("three", path="a", state=State.HELD)))
    with pytest.raises(Conflict):
        commit(store, move(stored(store, one), State.ACTIVE))


def test_a_file_is_looked_up_by_its_path(store: Store) -> None:
    """B11: a path and a text never answer for one another, even if they are the same letters."""
    file, other = entry("notes.md", path="text"), entry("text")
    commit(store, put(file), put(other))
    assert (twin_key(file), twin_key(other)) == (path_key("text"), content_key("text"))
    assert store.twin(WORK, SHARED, path_key("text")) == stored(store, file)
    assert store.twin(WORK, SHARED, content_key("text")) == stored(store, other)
    assert store.twin(WORK, SHARED, path_key("notes.md")) is None


def test_files_are_found_apart(store: Store) -> None:
    """B11: a selection can ask for files alone, or for all else."""
    file, other = entry("a file", path="a"), entry("no file")
    commit(store, put(file), put(other))
    found = {filed: [e.id for e in store.find(replace(OPEN, filters=Filters(filed=filed)))] for filed in (True, False)}
    assert found == {True: [file.id], False: [other.id]}
    assert len(store.find(OPEN)) == 2


def test_a_file_is_indexed_by_its_name_too(store: Store) -> None:
    """B11: the words of a path find its file."""
    commit(store, put(entry("flour and milk", path="recipes/pancakes.md")))
    assert len(store.keyword(OPEN, ["pancak"], 10).rows) == 1
