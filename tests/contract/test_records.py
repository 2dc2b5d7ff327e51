"""Standing content, conversations, notes and the registry."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from lukasa.model.conversation import Note, Status, WorkspaceInfo
from lukasa.model.entry import ClosedScope, Document, Scope
from lukasa.model.errors import Conflict, NotFound, Refused
from lukasa.storage.operations import (
    CloseScope,
    DropEntry,
    DropNotes,
    LinkAction,
    SaveChannel,
    SaveConversation,
    SaveDocument,
    SaveNamed,
    SaveNote,
    SaveWorkspace,
)
from lukasa.storage.port import Store
from tests.helpers.stores import NOW, channel, commit, conversation, entry, later, named, put

PAGE = Document("page-1", "Tea", "How to make tea.", "wiki", "current", 1.0, "endorsed", 1, NOW)
SHOP = WorkspaceInfo("w1", "shop", "lean", "[spec]", NOW, False)


def test_named_entries_keep_every_edit(store: Store) -> None:
    """M8: an edit by version replaces the page and keeps the one before."""
    commit(store, SaveNamed(named(), 0), SaveNamed(named("SOUL", "Be kind.", tier="account"), 0))
    commit(store, SaveNamed(named(body="Be brief.", edited_at=later(9), editor="bo"), 1))
    assert [(n.name, n.body, n.version, n.editor) for n in store.named()] == [
        ("SOUL", "Be kind.", 1, "ada"),
        ("VOICE", "Be brief.", 2, "bo"),
    ]
    assert [n.body for n in store.named_versions("VOICE")] == ["Speak plainly.", "Be brief."]
    assert store.named("VOICE") == [store.named_versions("VOICE")[-1]]
    assert store.named("NOBODY") == []


def test_named_entries_are_edited_by_version(store: Store) -> None:
    """M8, T03: an edit of another version is a conflict, of no page not found."""
    commit(store, SaveNamed(named(), 0))
    for expect in (0, 2):
        with pytest.raises(Conflict):
            commit(store, SaveNamed(named(body="x"), expect))
    with pytest.raises(NotFound):
        commit(store, SaveNamed(named("NEW"), 1))


def test_documents_are_kept_by_version(store: Store) -> None:
    """M9: a document is replaced by version, and a removed one is still known as such."""
    commit(store, SaveDocument(PAGE, 0))
    commit(store, SaveDocument(replace(PAGE, id="page-0", weight=0.25), 0))
    commit(store, SaveDocument(replace(PAGE, body="", removed=True, updated_at=later(1)), 1))
    assert [head.id for head in store.list_documents()] == ["page-0"]
    assert store.documents(["page-0", "nobody"]) == {"page-0": replace(PAGE, id="page-0", weight=0.25)}
    assert store.documents(["page-1"])["page-1"] == replace(PAGE, body="", removed=True, updated_at=later(1), version=2)
    assert store.documents([]) == {}
    with pytest.raises(Conflict):
        commit(store, SaveDocument(PAGE, 1))


def test_channels_have_one_default_and_unique_names(store: Store) -> None:
    """M5: a second default, a taken name or id is a conflict."""
    first, second = channel(is_default=True, description="all"), channel("b")
    commit(store, SaveChannel(first), SaveChannel(second))
    for clash in (channel("x", is_default=True), channel("general"), channel("y", id=first.id)):
        with pytest.raises(Conflict):
            commit(store, SaveChannel(clash))
    assert store.channels() == [first, second]


def test_conversations_are_found_by_id_and_code(store: Store) -> None:
    """M6: by either name; the newest first; of one channel where asked."""
    here, there = channel("a"), channel("b")
    one, two = conversation(here, "1" * 11), conversation(here, "2" * 11, started_at=later(1))
    far = conversation(there, "3" * 11, started_at=later(2))
    commit(store, SaveChannel(here), SaveChannel(there), *(SaveConversation(c, None) for c in (one, two, far)))
    assert store.conversation(one.id) == store.conversation("1" * 11) == one
    assert store.conversation("nobody") is None
    assert store.conversations() == [far, two, one]
    assert store.conversations(channel=here.id) == [two, one]


def test_archived_conversations_are_left_out_by_default(store: Store) -> None:
    """M6: archived ones are listed only on request."""
    room = channel()
    c = conversation(room)
    commit(store, SaveChannel(room), SaveConversation(c, None))
    commit(store, SaveConversation(c.archive(later(5)), Status.ACTIVE))
    assert store.conversations() == []
    assert store.conversations(archived=True) == [c.archive(later(5))]


def test_a_conversation_changes_from_the_status_it_has(store: Store) -> None:
    """M6, T03: another status is a conflict; channel, code and start are fixed."""
    room, other = channel(), channel("b")
    c = conversation(room)
    commit(store, SaveChannel(room), SaveChannel(other), SaveConversation(c, None))
    with pytest.raises(Conflict):
        commit(store, SaveConversation(c.archive(NOW), Status.IDLE))
    for fixed in ({"ref_code": "z" * 11}, {"channel": other.id}, {"started_at": later(1)}):
        with pytest.raises(Refused):
            commit(store, SaveConversation(replace(c, **fixed), Status.ACTIVE))
    with pytest.raises(NotFound):
        commit(store, SaveConversation(conversation(room, "q" * 11), Status.ACTIVE))
    assert store.conversation(c.id) == c


def test_a_conversation_starts_in_a_channel_under_a_new_code(store: Store) -> None:
    """M6: a taken id or code is a conflict, an unknown channel not found."""
    room = channel()
    c = conversation(room)
    commit(store, SaveChannel(room), SaveConversation(c, None))
    for clash in (c, conversation(room, c.ref_code), conversation(room, "n" * 11, id=c.id)):
        with pytest.raises(Conflict):
            commit(store, SaveConversation(clash, None))
    with pytest.raises(NotFound):
        commit(store, SaveConversation(conversation(channel("gone"), "g" * 11), None))


def test_notes_are_replaced_by_key(store: Store) -> None:
    """M7: one JSON value a key, the first time of writing kept; other conversations are apart."""
    room = channel()
    c, d = conversation(room), conversation(room, "d" * 11)
    commit(store, SaveChannel(room), SaveConversation(c, None), SaveConversation(d, None))
    commit(store, SaveNote(Note(c.id, "b", [1, {"x": None}], NOW, NOW)), SaveNote(Note(c.id, "a", "é", NOW, NOW)))
    commit(store, SaveNote(Note(c.id, "b", 2.5, later(9), later(9))))
    assert store.notes(c.id) == [Note(c.id, "a", "é", NOW, NOW), Note(c.id, "b", 2.5, NOW, later(9))]
    assert store.notes(d.id) == []
    commit(store, SaveConversation(c.archive(NOW), Status.ACTIVE))
    assert len(store.notes(c.id)) == 2


def test_a_note_is_written_onto_what_was_read(store: Store) -> None:
    """M7, D6: with what was read in hand, a note that says something else by now is a conflict, and stays."""
    room = channel()
    c = conversation(room)
    commit(store, SaveChannel(room), SaveConversation(c, None))
    first, second = Note(c.id, "a", [1], NOW, NOW), Note(c.id, "a", [1, 2], NOW, later(9))
    with pytest.raises(Conflict):
        commit(store, SaveNote(second, onto=first))
    commit(store, SaveNote(first, onto=None))
    with pytest.raises(Conflict):
        commit(store, SaveNote(second, onto=None))
    commit(store, SaveNote(second, onto=first))
    with pytest.raises(Conflict):
        commit(store, SaveNote(first, onto=first))
    assert store.notes(c.id) == [second]


def test_notes_are_cleared_by_key_or_whole(store: Store) -> None:
    """M7: clearing one leaves the others; clearing an absent one is not found, clearing all never."""
    room = channel()
    c = conversation(room)
    commit(store, SaveChannel(room), SaveConversation(c, None))
    commit(store, *(SaveNote(Note(c.id, key, 1, NOW, NOW)) for key in "abc"))
    commit(store, DropNotes(c.id, "b"))
    assert [n.key for n in store.notes(c.id)] == ["a", "c"]
    with pytest.raises(NotFound):
        commit(store, DropNotes(c.id, "b"))
    commit(store, DropNotes(c.id))
    commit(store, DropNotes(c.id))
    assert store.notes(c.id) == []


def test_notes_belong_to_a_conversation(store: Store) -> None:
    """M7: a note of no conversation is not found."""
    with pytest.raises(NotFound):
        commit(store, SaveNote(Note("nobody", "k", 1, NOW, NOW)))
    with pytest.raises(NotFound):
        commit(store, DropNotes("nobody"))


def test_workspaces_are_registered_then_ready(store: Store) -> None:
    """X3: registering twice, marking what is not as expected, or taking a name is a conflict."""
    commit(store, SaveWorkspace(SHOP, None))
    with pytest.raises(Conflict):
        commit(store, SaveWorkspace(SHOP, None))
    commit(store, SaveWorkspace(replace(SHOP, ready=True), False))
    with pytest.raises(Conflict):
        commit(store, SaveWorkspace(replace(SHOP, ready=True), False))
    with pytest.raises(Conflict):
        commit(store, SaveWorkspace(replace(SHOP, id="w2"), None))
    with pytest.raises(NotFound):
        commit(store, SaveWorkspace(replace(SHOP, id="w3", name="x"), True))
    assert store.workspaces() == [replace(SHOP, ready=True)]


def test_a_scope_is_closed_once(store: Store) -> None:
    """P6: a scope that has ended is found by all of its keys; it ends once, and the log does not hold its keys."""
    one = Scope("session", (("org_id", "acme"), ("session", "s1")))
    other = Scope("session", (("org_id", "acme"), ("session", None)))
    closed = ClosedScope(one, "session_end", NOW)
    commit(store, CloseScope(closed))
    assert store.closed([other, one]) == [closed]
    assert store.closed([other]) == store.closed([]) == []
    with pytest.raises(Conflict):
        commit(store, CloseScope(closed))
    (event,) = store.events(action="scope.ended")
    assert event.subject == "session"
    assert "acme" not in str(event.detail)


def test_a_linked_row_goes_only_by_an_exemption(store: Store) -> None:
    """X1: without the exemption the removal is refused; with it, the row and its links go, and the event says why."""
    kept = entry("The user approved the deletion")
    commit(store, put(kept), LinkAction("deploy-7", "", (kept.id,)))
    with pytest.raises(Refused):
        commit(store, DropEntry(kept.id, 1, "its scope ended", {"keep-persistent": "a trial"}))
    commit(store, DropEntry(kept.id, 1, "its scope ended", {"keep-action-linked": "a trial"}))
    assert (store.entries([kept.id]), store.linked([kept.id])) == ({}, {})
    (event,) = store.events(action="entry.dropped")
    assert event.detail["exempt"] == {"keep-action-linked": "a trial"}
