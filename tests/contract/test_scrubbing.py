"""Removing for good, on every store: what goes, what stays, and a log that still verifies."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from lukasa.model.amendment import Amendment
from lukasa.model.answer import Answer
from lukasa.model.conversation import Note
from lukasa.model.entry import Document, Entry, Scope
from lukasa.model.errors import Conflict, LukasaError, Refused
from lukasa.model.events import SCRUBBED, EventDraft, chain_faults
from lukasa.model.job import JobDraft
from lukasa.model.scrub import Extent, KeptRow, Mode, manifest_digest
from lukasa.model.selection import Selection
from lukasa.model.telemetry import TelemetryEvent, TelemetryQuery
from lukasa.model.transcript import Transcript, Utterance
from lukasa.model.values import Lifetime, State, Visibility
from lukasa.storage.operations import (
    Emit,
    Enqueue,
    FinishJob,
    JournalStep,
    KeepUtterances,
    LinkAction,
    Record,
    SaveAmendment,
    SaveAnswer,
    SaveChannel,
    SaveConversation,
    SaveDocument,
    SaveNamed,
    SaveNote,
    SaveTranscript,
    Scrub,
)
from lukasa.storage.port import Store
from tests.helpers.stores import (
    MODEL,
    NOW,
    ROOM,
    WORK,
    change,
    channel,
    commit,
    conversation,
    entry,
    later,
    move,
    named,
    put,
    stored,
    unit,
    vector_of,
)

FULL = Extent("w1", Mode.FULL, WORK, whole=True, copies=True)
KEEP = replace(FULL, mode=Mode.KEEP_NAMED)
ALL = Selection((WORK, ROOM), frozenset(Visibility), None)


def scrub(store: Store, extent: Extent) -> None:
    commit(store, Scrub(extent, manifest_digest(extent, store.holdings(extent)), {"operator": "ada"}))
    assert store.purge_files()


def fill(store: Store) -> tuple[Entry, Entry]:
    """Two entries of the workspace, one changed and one forgotten and private, and one of a channel."""
    first, second = entry("a green lantern"), entry("the tide turns at nine", owner="otto")
    commit(store, put(first, vector_of(first.content)), put(second), put(entry("a channel's own", scope=ROOM)))
    commit(store, change(first, content="a red lantern"))
    commit(store, move(stored(store, second), State.FORGOTTEN))
    commit(store, SaveNamed(named(), 0), SaveNamed(named("VOICE", "Speak softly."), 1))
    return first, second


def test_pages_are_gone_for_who_knew_them(store: Store) -> None:
    """M3: what was asked for right before a scrub is not told after it."""
    fill(store)
    assert [page.body for page in store.named()] == ["Speak softly."]
    scrub(store, FULL)
    assert store.named() == []


def test_a_full_scrub_takes_everything_of_its_scope(store: Store) -> None:
    """H1: entries of every state and owner, versions, vectors, index, access, named entries; of its scope alone."""
    first, second = fill(store)
    store.touch([first.id], NOW)
    scrub(store, FULL)
    assert [e.content for e in store.find(ALL)] == ["a channel's own"]
    assert store.versions(first.id) == []
    assert store.access([first.id]) == {}
    assert store.vectors([first.id], MODEL) == {}
    assert store.keyword(Selection((WORK,)), ["lantern"], 5).rows == ()
    assert store.nearest(Selection((WORK,)), MODEL, unit(1, 0, 0, 0), 5) == []
    assert store.named() == []
    assert store.named_versions("VOICE") == []
    assert {count.scope for count in store.census()} == {ROOM}
    with pytest.raises(Conflict):
        commit(store, put(replace(second, version=1)))


def test_named_entries_can_be_kept(store: Store) -> None:
    """H1: keep_named takes the rest."""
    fill(store)
    scrub(store, KEEP)
    assert [n.body for n in store.named()] == ["Speak softly."]
    assert [e.scope for e in store.find(ALL)] == [ROOM]


def test_what_an_action_rests_on_stays(store: Store) -> None:
    """H1, X1: a scrub leaves the rows that an action rests on, with their history, and takes everything else."""
    first, second = fill(store)
    commit(store, LinkAction("deploy", "because of the lantern", (first.id,)))
    commit(store, LinkAction("report", "", (first.id,)))
    held = store.holdings(FULL)
    assert [id for id, _ in held.entries] == [second.id]
    assert held.kept == (KeptRow(first.id, ("deploy", "report")),)
    scrub(store, FULL)
    assert [entry.id for entry in store.find(Selection((WORK,), frozenset(Visibility), None))] == [first.id]
    assert [version.entry.content for version in store.versions(first.id)] == ["a green lantern", "a red lantern"]
    assert store.linked([first.id]) == {first.id: ("deploy", "report")}
    assert store.events(subject=first.id)
    assert chain_faults(store.event_stream(), head=store.head()) == []


def test_an_exemption_takes_what_an_action_rests_on(store: Store) -> None:
    """H1, X1: with the exemption an action has no hold; the count says so beforehand."""
    first, second = fill(store)
    commit(store, LinkAction("deploy", "because of the lantern", (first.id, second.id)))
    whole = replace(FULL, linked=True)
    assert store.holdings(whole).counts["linked"] == 2
    scrub(store, whole)
    assert store.linked([first.id]) == {}
    assert "because of the lantern" not in str([event.detail for event in store.event_stream()])


def test_copies_of_a_workspace_go_with_it(store: Store) -> None:
    """H1: transcripts, messages, proposals, finished and half-done jobs, words in telemetry."""
    talk = Transcript("t1", "k1", "claude", "About lanterns", NOW, NOW)
    said = Utterance("m1", "user", "a green lantern", 0)
    commit(store, SaveTranscript(talk, 0), KeepUtterances("t1", (said,)))
    commit(store, SaveAmendment(Amendment("a1", "facts", "lanterns are green", 0.9, (), NOW, NOW), 0))
    for key in ("over", "half", "waiting"):
        commit(store, Enqueue(JobDraft("observe", key, {"text": "a green lantern"})))
        if key != "waiting":
            job = store.claim_job("w", now=NOW, lease_until=later(60))
            assert job is not None
            commit(store, JournalStep(job.id, job.claim, "read", "a green lantern"))
            if key == "over":
                commit(store, FinishJob(job.id, job.claim))
    report = TelemetryEvent(
        NOW, "info", "lukasa", "observe", "read", True, metadata={"error": "no green lantern", "n": 1}
    )
    commit(store, Emit(report), Emit(replace(report, metadata={"n": 2, "kind": "fact"})))
    with pytest.raises(Refused):
        scrub(store, FULL)  # half is running
    assert store.claim_job("w", now=later(61), lease_until=later(90)) is not None
    held = store.holdings(FULL)
    assert (held.counts["utterances"], held.counts["jobs"], held.counts["points"]) == (1, 1, 1)
    half = store.job("half")
    assert half is not None
    commit(store, FinishJob(half.id, half.claim))
    scrub(store, FULL)
    assert store.transcripts() == []
    assert store.amendments() == []
    assert store.find_utterances(["lantern"], 5) == []
    assert [job.key for job in store.jobs()] == ["waiting"]
    assert store.steps(half.id) == {}
    assert [point.metadata for point in store.points(TelemetryQuery())] == [{"n": 2, "kind": "fact"}, {}]


def test_answers_that_clients_got_are_not_kept(store: Store) -> None:
    """H1: a kept answer repeats what was read; one that is still being worked on stays taken."""
    commit(store, SaveAnswer(Answer("k1", "r1", NOW)), SaveAnswer(Answer("k1", "r1", NOW, 200, "a green lantern")))
    commit(store, SaveAnswer(Answer("k2", "r2", NOW)))
    assert store.holdings(FULL).counts["answers"] == 1
    scrub(store, FULL)
    assert store.answer("k1") is None
    assert store.answer("k2") == Answer("k2", "r2", NOW)


def test_documents_and_places_are_untouched(store: Store) -> None:
    """H1: what is not a memory tier stays."""
    document = Document("d1", "Map", "the tide tables", "author", "current", 1.0, "canonical", 1, NOW)
    commit(store, SaveDocument(document, 0), SaveChannel(channel()))
    fill(store)
    scrub(store, FULL)
    assert [head.id for head in store.list_documents()] == ["d1"]
    assert len(store.channels()) == 1


def test_a_changed_manifest_is_refused(store: Store) -> None:
    """H1: the digest covers every id and version; one more entry, or one edit, and nothing goes."""
    first, _ = fill(store)
    digest = manifest_digest(FULL, store.holdings(FULL))
    commit(store, put(entry("one more")))
    with pytest.raises(Conflict):
        commit(store, Scrub(FULL, digest))
    digest = manifest_digest(FULL, store.holdings(FULL))
    commit(store, change(stored(store, first), content="a blue lantern"))
    before = store.find(ALL)
    with pytest.raises(Conflict):
        commit(store, Scrub(FULL, digest))
    assert store.find(ALL) == before
    assert manifest_digest(FULL, store.holdings(FULL)) != manifest_digest(KEEP, store.holdings(FULL))


def test_a_scrub_is_all_or_nothing(store: Store) -> None:
    """H1: one transaction, with whatever else is in it."""
    first, _ = fill(store)
    digest = manifest_digest(FULL, store.holdings(FULL))
    head = store.head()
    with pytest.raises(LukasaError):
        commit(store, Scrub(FULL, digest), change(first, content="too late"))
    assert store.head() == head
    assert len(store.find(ALL)) == 3


def test_events_about_what_went_are_emptied_and_the_log_verifies(store: Store) -> None:
    """H1, X2: place, time, actor and action stay, and a scrub's own event vouches for what is left."""
    first, _ = fill(store)
    commit(store, Record(EventDraft("entry.discarded", "x", {"tier": "workspace", "cause": "noise"})))
    actions = [event.action for event in store.event_stream()]
    scrub(store, FULL)
    events = list(store.event_stream())
    assert chain_faults(events, head=store.head()) == []
    assert [event.action for event in events] == [*actions, SCRUBBED]
    assert store.events(subject=first.id) == []
    last = events[-1]
    emptied = [event.seq for event in events if not event.subject and not event.detail]
    ranges = last.detail["redacted"]["ranges"]
    assert emptied == [seq for a, b in ranges for seq in range(a, b + 1)] == [1, 2, 4, 5, 6, 7, 8]
    assert (last.subject, last.detail["mode"], last.detail["operator"]) == ("workspace", "full", "ada")
    assert last.detail["scope"] == {"place": "w1", "tier": "workspace", "workspace": "w1"}


def test_a_scrub_event_cannot_be_scrubbed(store: Store) -> None:
    """H2: however often everything is scrubbed, each scrub's own event stays whole."""
    for _ in range(3):
        commit(store, put(entry()))
        scrub(store, FULL)
    scrubs = store.events(action=SCRUBBED)
    assert len(scrubs) == 3
    assert all(event.detail["digest"] for event in scrubs)
    assert chain_faults(store.event_stream(), head=store.head()) == []


def test_a_thread_is_purged_with_its_events(store: Store) -> None:
    """H1: entries of the conversation's scope or lifetime, its notes and all its events; another's stay."""
    room = channel()
    mine, other = conversation(room), conversation(room, "other000000")
    commit(store, SaveChannel(room), SaveConversation(mine, None), SaveConversation(other, None))
    place = Scope("conversation", (("workspace", "w1"), ("conversation", mine.id)))
    gone = [
        entry("said in the thread", scope=place),
        entry("lives with it", lifetime=Lifetime.CONVERSATION, conversation=mine.id),
    ]
    kept = entry("learnt in it, kept for good", conversation=mine.id)
    commit(store, *(put(e) for e in (*gone, kept)))
    commit(store, *(SaveNote(Note(c.id, "plan", "a green lantern", NOW, NOW)) for c in (mine, other)))
    extent = Extent("w1", Mode.PURGE_THREAD, conversation=mine.id)
    scrub(store, extent)
    assert [e.id for e in store.find(ALL)] == [kept.id]
    assert store.notes(mine.id) == []
    assert len(store.notes(other.id)) == 1
    assert [event.action for event in store.events(subject=mine.id)] == [SCRUBBED]
    assert [event.action for event in store.events(subject=other.id)] == ["conversation.started", "note.written"]
    assert store.purged_conversations() == [mine.id]
    store.forget_purged(mine.id)
    assert store.purged_conversations() == []


def test_an_empty_scope_can_be_scrubbed(store: Store) -> None:
    """H1, H2: nothing goes, and the event says so."""
    scrub(store, FULL)
    (event,) = store.events()
    assert event.detail["redacted"] == {"ranges": [], "husks": ""}
