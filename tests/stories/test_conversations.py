"""Channels, conversations, notes, and what their end leaves behind."""

from __future__ import annotations

import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lukasa import Lukasa, State, Workspace
from lukasa.model.errors import (
    Conflict,
    InvalidContent,
    InvalidInput,
    InvalidScope,
    InvalidTransition,
    NotFound,
    Refused,
)
from lukasa.model.ids import BASE62, is_ref_code, new_id, new_ref_code, parse_id
from lukasa.storage.operations import DropEntry


def test_a_workspace_has_one_default_channel(world: Workspace) -> None:
    """M5: every workspace starts with one default channel, of this workspace."""
    (channel,) = world.channels()
    assert (channel.is_default, channel.workspace, channel.name) == (True, world.id, "general")


def test_channels_have_names_of_their_own(world: Workspace) -> None:
    """M5: a second channel of a name is refused."""
    world.create_channel("research", "papers and sources")
    with pytest.raises(Conflict):
        world.create_channel("research")
    assert {c.name for c in world.channels()} == {"general", "research"}


def test_a_channel_has_many_conversations(world: Workspace) -> None:
    """M5: conversations belong to the channel they were started in."""
    world.create_channel("research")
    started = {world.start("research").id for _ in range(3)}
    world.start()
    assert {c.id for c in world.conversations(channel="research")} == started


def test_ref_codes() -> None:
    """M6: eleven base62 characters, unlike from one another."""
    codes = {new_ref_code() for _ in range(2000)}
    assert len(codes) == 2000
    assert all(is_ref_code(code) and set(code) <= set(BASE62) for code in codes)


def test_a_conversation_is_found_by_id_and_ref_code(world: Workspace) -> None:
    """M6: the ref code is stable and leads to the same conversation."""
    started = world.start()
    assert world.conversation(started.id) == world.conversation(started.ref_code) == started


def test_the_life_of_a_conversation(world: Workspace) -> None:
    """M6: Active → Idle sets ended_at; Idle → Archived leaves default lists."""
    started = world.start()
    assert (started.status, started.ended_at) == ("active", None)
    idle = world.idle(started.ref_code)
    assert (idle.status, idle.ended_at is not None) == ("idle", True)
    world.archive(started.ref_code)
    assert world.conversations() == []
    assert [c.status for c in world.conversations(archived=True)] == ["archived"]


def test_a_forced_archive(world: Workspace) -> None:
    """M6: Active → Archived at once."""
    archived = world.archive(world.start().id)
    assert (archived.status, archived.ended_at is not None) == ("archived", True)


@pytest.mark.parametrize(("first", "then"), [("idle", "idle"), ("archive", "archive"), ("archive", "idle")])
def test_invalid_transitions(world: Workspace, first: str, then: str) -> None:
    """M6: going back or twice is a typed error, and nothing changes."""
    started = world.start()
    getattr(world, first)(started.id)
    before = world.conversation(started.id)
    with pytest.raises(InvalidTransition):
        getattr(world, then)(started.id)
    assert world.conversation(started.id) == before


def test_an_archived_conversation_takes_no_entries(world: Workspace) -> None:
    """M6: writing into what is archived is refused."""
    started = world.start()
    world.archive(started.id)
    with pytest.raises(InvalidTransition):
        world.at(conversation=started.id).put("conversation", "One more thing about the duel")


def test_an_ended_conversation_takes_no_entries(world: Workspace) -> None:
    """M6, L2: what would never be cleared cannot be written."""
    started = world.start()
    world.end(started.id)
    with pytest.raises(InvalidTransition):
        world.at(conversation=started.id).put("conversation", "One more thing about the duel")


def test_ending_after_idling_still_clears(world: Workspace) -> None:
    """L2: an idle conversation can be ended; ending twice changes nothing more."""
    started = world.start()
    world.at(conversation=started.id).put("conversation", "Today we discuss chapters 1 to 3")
    world.idle(started.id)
    assert world.end(started.id).dropped == 1
    assert world.end(started.id).dropped == 0


def test_ending_finds_every_tier(world: Workspace) -> None:
    """L2: conversation-lifetime entries of channel and account end too, by archiving."""
    started = world.start()
    here = world.at(conversation=started.id)
    ids = [
        here.put(t, f"Only for now: a note in the {t} tier", lifetime="conversation").id for t in ("channel", "account")
    ]
    assert world.end(started.id).archived == 2
    assert {world.get(id).state for id in ids} == {State.ARCHIVED}


def test_unknown_places(world: Workspace) -> None:
    """W9: a channel, conversation or scope key that is not there is a typed error."""
    with pytest.raises(NotFound):
        world.at(channel="nope")
    with pytest.raises(NotFound):
        world.at(conversation="nope")
    with pytest.raises(InvalidScope):
        world.at(galaxy="m31")


def test_notes_are_json_by_key(world: Workspace) -> None:
    """M7: write, read, list, clear; a rewrite keeps created_at."""
    ref = world.start().ref_code
    first = world.write_note(ref, "total", 3)
    again = world.write_note(ref, "total", {"pages": [3, 2]})
    assert (again.value, again.created_at) == ({"pages": [3, 2]}, first.created_at)
    world.write_note(ref, "other", None)
    assert [n.key for n in world.notes(ref)] == ["other", "total"]
    assert world.clear_notes(ref, "total") == 1
    assert world.clear_notes(ref) == 1
    assert world.clear_notes(ref) == 0


def test_notes_are_never_memory(world: Workspace) -> None:
    """M7: the scratchpad is not searched and is no fifth tier."""
    here = world.at(conversation=world.start().id)
    here.write_note(here.ctx.keys["conversation"], "villain", "The villain is called Malachar")
    assert len(here.read("villain Malachar")) == 0
    assert "Malachar" not in str(here.context("villain"))


def test_notes_survive_archive(world: Workspace) -> None:
    """M7: archiving keeps the working trail."""
    started = world.start()
    world.write_note(started.id, "k", 1)
    world.archive(started.id)
    assert [n.value for n in world.notes(started.id)] == [1]


@pytest.mark.parametrize("value", [object(), float("nan"), "x" * 200_000, {"a": "\ud800"}])
def test_bad_notes(world: Workspace, value: object) -> None:
    """W9: a value that is not plain, storable JSON of bounded size is refused."""
    ref = world.start().ref_code
    with pytest.raises((InvalidInput, InvalidContent)):
        world.write_note(ref, "k", value)
    assert world.notes(ref) == []


@given(
    st.recursive(
        st.none()
        | st.booleans()
        | st.integers()
        | st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")),
        st.lists,
        max_leaves=5,
    )
)
@example(" ")
@example("\x85")
def test_any_json_value_comes_back(value: object) -> None:
    """M7: a note's value is stored exactly."""
    with Lukasa.open(in_memory=True, embedder="none") as memory:
        world = memory.workspace()
        ref = world.start().ref_code
        assert json.dumps(world.write_note(ref, "k", value).value) == json.dumps(value)


def test_ending_clears_what_lives_only_in_the_conversation(world: Workspace) -> None:
    """M3, X1: conversation-lifetime entries go with their conversation; others stay."""
    started = world.start()
    here = world.at(conversation=started.id)
    gone = here.put("conversation", "Today we discuss chapters 1 to 3").id
    stays = here.put("workspace", "The villain is called Malachar").id
    brief = here.put("workspace", "There is a writing session next week", lifetime="short_term").id
    ended = world.end(started.ref_code)
    assert (ended.conversation.status, ended.dropped, ended.archived) == ("idle", 1, 0)
    with pytest.raises(NotFound):
        world.get(gone)
    assert world.get(stays).state is world.get(brief).state is State.ACTIVE


def test_conversation_lifetime_in_a_persistent_tier_is_archived(world: Workspace) -> None:
    """X1: no row of a persistent tier is ever removed."""
    started = world.start()
    id = (
        world.at(conversation=started.id).put("workspace", "For now we call the city Veyra", lifetime="conversation").id
    )
    world.end(started.id)
    assert world.get(id).state is State.ARCHIVED


def test_what_an_action_rests_on_stays(world: Workspace) -> None:
    """X1: an entry with action-linkage survives the end of its transient scope."""
    started = world.start()
    here = world.at(conversation=started.id)
    id = here.put("conversation", "The user approved the deletion of draft 2").id
    world.link_action("deploy-7", [id], "draft 2 deleted")
    ended = world.end(started.id)
    assert (ended.dropped, ended.archived, world.get(id).state) == (0, 1, State.ARCHIVED)


def test_the_store_itself_refuses_to_drop_linked_entries(world: Workspace) -> None:
    """X1: the guard is in the store, below every verb."""
    started = world.start()
    id = world.at(conversation=started.id).put("conversation", "The user approved the deletion").id
    world.link_action("deploy-7", [id])
    with pytest.raises(Refused):
        world.ctx.apply(world.ctx.local, DropEntry(id, 1, "test"))
    assert world.get(id).version == 1


def test_ending_clears_private_entries_too(world: Workspace) -> None:
    """M3, M4: an agent's own conversation entries end with it as well."""
    started = world.start()
    agent = world.at(conversation=started.id).acting(agent="researcher")
    id = agent.put("conversation", "I looked into the archive already", owner="researcher").id
    world.end(started.id)
    with pytest.raises(NotFound):
        agent.get(id)


def test_ending_clears_the_scratchpad_as_the_spec_says(memory: Lukasa) -> None:
    """M7: `default` clears the scratchpad at the end, `workspace` keeps it."""
    kept = {}
    for preset in ("default", "workspace"):
        world = memory.workspace(preset, preset=preset)
        started = world.start()
        world.write_note(started.id, "k", 1)
        world.end(started.id)
        kept[preset] = len(world.notes(started.id))
    assert kept == {"default": 0, "workspace": 1}


def test_ids_sort_by_time_and_are_canonical() -> None:
    """M2: ids are UUIDs of version 7, unique and in canonical form."""
    ids = [new_id() for _ in range(1000)]
    assert len(set(ids)) == 1000
    assert all(parse_id(id.upper()) == id and id[14] == "7" for id in ids)
