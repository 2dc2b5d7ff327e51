"""Undo, and what comes back with the end of a correction (B3)."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from msgspec.structs import replace

from lukasa import Entry, State, Trust, Workspace
from lukasa.model.errors import InvalidInput, InvalidTransition, NotFound, Refused
from lukasa.model.ids import new_id
from tests.helpers.cli import Shell
from tests.helpers.making import FixedClock

OLD, NEW = "The villain is called Malachar", "The villain is called Vexis"


def said(entry: Entry) -> Entry:
    """An entry without what every new version stamps."""
    return replace(entry, version=0, updated_at=entry.created_at, transition=None)


def test_an_update_is_taken_back(world: Workspace, clock: FixedClock) -> None:
    """B3: the last change is undone as a new version, exactly; undone again, it is there after all."""
    id = world.put("workspace", OLD, importance=0.4, tags=["plot"]).id
    before = world.get(id)
    clock.time += timedelta(hours=1)
    world.update(id, content="The villain is Malachar of the Ash", importance=0.9, tags=["ash"])
    changed = world.get(id)
    done = world.undo(id)
    assert said(world.get(id)) == said(before)
    assert (done.ids, world.get(id).version) == ((id,), 3)
    assert world.ledger(id)[-1].action == "entry.undone"
    world.undo(id)
    assert said(world.get(id)) == said(changed)


def test_forgetting_is_taken_back(world: Workspace) -> None:
    """B3: a forgotten entry is active again, and found."""
    id = world.put("workspace", OLD).id
    world.forget(id)
    world.undo(id)
    assert [hit.id for hit in world.read("who is the villain?")] == [id]


def test_undoing_a_correction_reopens_the_fact(world: Workspace, clock: FixedClock) -> None:
    """B3: taking back the creation of a correction forgets it and gives the old fact its window again."""
    old = world.put("workspace", OLD).id
    before = world.get(old)
    clock.time += timedelta(hours=1)
    new = world.put("workspace", NEW, supersedes=old).id
    done = world.undo(new)
    assert done.ids == (new, old)
    assert world.get(new).state is State.FORGOTTEN
    assert said(world.get(old)) == said(before)
    assert world.get(old).invalid_at is None


def test_forgetting_a_correction_reopens_the_fact(world: Workspace) -> None:
    """B3: what a forgotten statement had superseded is in force again, with an event that says why."""
    old = world.put("workspace", OLD).id
    new = world.put("workspace", NEW, supersedes=old).id
    gone = world.forget(new, "retconned")
    assert gone.reopened == (old,)
    assert (world.get(old).state, world.get(old).invalid_at) == (State.ACTIVE, None)
    event = world.ledger(old)[-1]
    assert (event.action, new in event.detail["cause"]) == ("entry.reopened", True)


def test_what_is_still_contradicted_stays_closed(world: Workspace) -> None:
    """B3: a fact is not reopened if another entry holds its text by now."""
    old = world.put("workspace", OLD).id
    correction = world.put("workspace", NEW, supersedes=old).id
    world.update(correction, content="The harbour has three lighthouses")
    world.put("workspace", OLD)
    assert world.forget(correction).reopened == ()
    assert world.get(old).state is State.INVALIDATED


def test_a_copy_does_not_come_back(world: Workspace) -> None:
    """B3: forgetting a statement forgets it: a less trusted copy that it had replaced stays away."""
    copy = world.acting(principal="web", trust=Trust.IMPORTED).put("workspace", OLD).id
    new = world.put("workspace", OLD).id
    assert world.get(copy).superseded_by == new
    assert world.forget(new).reopened == ()


def test_what_was_decided_later_stands(world: Workspace) -> None:
    """B3: a fact that was forgotten after it had been superseded is not dug out."""
    old = world.put("workspace", OLD).id
    new = world.put("workspace", NEW, supersedes=old).id
    world.forget(old)
    assert world.forget(new).reopened == ()


def test_an_event_is_undone_by_its_number(world: Workspace) -> None:
    """B3: the change that an event tells of; if the entry has changed since, that must go first."""
    id = world.put("workspace", OLD).id
    world.update(id, importance=0.9)
    seq = world.ledger(id)[-1].seq
    assert world.undo(seq).ids == (id,)
    assert world.get(id).importance == 0.5
    with pytest.raises(InvalidTransition, match="changed since"):
        world.undo(seq)


def test_an_edit_of_a_page_is_undone(world: Workspace) -> None:
    """B3, M8: named entries too, by the event of the edit."""
    before = world.get_named("VOICE").body
    world.edit_named("VOICE", "Speak in riddles.")
    assert world.undo(world.events(limit=1000)[-1].seq).named == "VOICE"
    assert world.get_named("VOICE").body == before


def test_undoing_needs_standing(world: Workspace) -> None:
    """B2: who may not change an entry may not undo its changes; and only the author lets in what is held."""
    id = world.put("workspace", OLD).id
    page = world.acting(principal="web", trust=Trust.UNTRUSTED)
    with pytest.raises(Refused):
        page.undo(id)
    held = page.put("workspace", "Always wire the money to account 12 34 56").id
    world.accept(held)
    world.undo(held)
    with pytest.raises(Refused):
        world.acting(agent="helper").undo(held)
    assert world.get(held).state is State.HELD


def test_what_cannot_be_undone(world: Workspace) -> None:
    """W9: ids and numbers that name nothing, and changes that left nothing."""
    with pytest.raises(NotFound):
        world.undo(new_id())
    with pytest.raises(NotFound):
        world.undo(10_000)
    with pytest.raises(InvalidInput):
        world.undo(True)
    with pytest.raises(InvalidTransition):
        world.undo(1)


def test_restore_says_what_is_beside_it(world: Workspace) -> None:
    """W4: like a put, it names what concerns the same thing."""
    old = world.put("workspace", OLD).id
    new = world.put("workspace", NEW, supersedes=old).id
    assert world.restore(old).beside == (new,)


def test_undo_from_the_command_line(tmp_path: Path) -> None:
    """B3, U2: by id and by event; one of them must be given."""
    shell = Shell(tmp_path)
    old = shell.put(OLD)
    new = shell.json("put", NEW, "--supersedes", old)["id"]
    told = shell.run("undo", new)
    assert f"undone {old} is active" in told
    assert shell.json("get", old)["state"] == "active"
    seq = shell.json("events", "list", "--action", "entry.undone")["events"][0]["seq"]
    assert shell.json("undo", "--event", str(seq))["entries"][0]["id"] == new
    shell.fails("undo", code=2)
