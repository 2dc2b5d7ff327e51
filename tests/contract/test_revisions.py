"""Revisions: kept with what they are found by, refused on stale grounds, and emptied with what they say."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from lukasa.model.entry import ClosedScope, Confirmation, Scope
from lukasa.model.erasure import Words
from lukasa.model.errors import Conflict
from lukasa.model.scrub import Extent, Mode, manifest_digest
from lukasa.model.sync import Erasure, KeptRevision, Revision, Stage, SyncNote, revision_digest
from lukasa.model.transcript import Transcript, Utterance
from lukasa.model.values import Trust
from lukasa.storage.operations import (
    CloseScope,
    DropEntry,
    ForgetThing,
    KeepRevisions,
    KeepUtterances,
    SaveChannel,
    SaveConfirmation,
    SaveNamed,
    SaveTranscript,
    Scrub,
)
from lukasa.storage.port import Store
from tests.helpers.stores import NOW, channel, commit, entry, named, put


def kept(thing: str, said: str, *, kind: str = "entry", parents: tuple[str, ...] = (), **more: object) -> KeptRevision:
    body = {"name": [thing], "text": {"content": said}, "rest": {}, "fields": {}}
    digest = revision_digest("w1", kind, thing, parents, body, NOW, "laptop", "salt")
    made = KeptRevision(Revision("w1", kind, thing, parents, body, NOW, "laptop", "salt", digest), thing)
    return replace(made, **more)


def test_a_revision_is_kept_once_and_found_by_each_of_its_columns(store: Store) -> None:
    """27: all of it reads back; the same digest again replaces what is noted about it."""
    one = kept("t1", "The quay is closed", about="c1", twin="key", member="ben", trust=Trust.AGENT)
    other = kept("t2", "The mill is closed", parents=(one.revision.digest,), stage=Stage.WAITING, told=True)
    commit(store, KeepRevisions((one, other), (SyncNote("local:t1", {"state": ["held"]}),)))
    assert store.revisions("digest", [one.revision.digest]) == store.revisions("thing", ["t1"]) == [one]
    assert store.revisions("spot", ["t2"]) == store.revisions("stage", [Stage.WAITING]) == [other]
    assert store.revisions("about", ["c1"]) == store.revisions("twin", ["key"]) == [one]
    assert store.revisions("told", [False]) == [one]
    assert store.revisions("kind", ["entry", "page"]) == [one, other]
    assert store.sync_notes(["local:t1", "nothing"]) == {"local:t1": {"state": ["held"]}}
    commit(store, KeepRevisions((replace(one, told=True),), forget=("local:t1",), drop=(other.revision.digest,)))
    assert store.revisions("told", [True]) == [replace(one, told=True)]
    assert store.sync_notes(["local:t1"]) == {}


def test_what_was_decided_on_stale_grounds_is_refused(store: Store) -> None:
    """27: nothing is written if the log went on since it was read; otherwise the note says how far it goes now."""
    head = store.head()[0]
    commit(store, put(entry("The quay is closed")))
    one = kept("t1", "The mill is closed")
    with pytest.raises(Conflict):
        commit(store, put(entry("The lamp is lit")), KeepRevisions((one,), read=head))
    assert store.revisions("thing", ["t1"]) == []
    commit(store, put(entry("The lamp is lit")), KeepRevisions((one,), read=store.head()[0]))
    assert store.sync_notes(["captured"]) == {"captured": {"event": store.head()[0]}}


def test_an_entry_that_is_removed_takes_the_words_of_its_revisions_along(store: Store) -> None:
    """27: those of its text and of what hangs on it, in the same transaction; an erasure's own revision stays."""
    one = entry("The quay is closed on Fridays")
    commit(store, put(one))
    text, about = kept(one.id, one.content), kept("t2", "said again", kind="confirmation", about=one.id)
    says = kept("t3", "x", about=one.id)
    erases = replace(says, revision=replace(says.revision, body={"erased": [], "kept": [], "whole": False}))
    other = kept("t4", "The mill is closed")
    commit(store, KeepRevisions((text, about, erases, other)))
    commit(store, DropEntry(one.id, 1, "its scope ended"))
    (found,) = store.revisions("thing", [one.id])
    assert (found.revision.body, found.revision.digest, found.erasure) == (None, text.revision.digest, Erasure.FRESH)
    assert {row.revision.digest for row in store.revisions("erasure", [Erasure.FRESH])} == {
        text.revision.digest,
        about.revision.digest,
    }
    assert store.revisions("thing", ["t3", "t4"]) == [erases, other]


def test_an_erasure_empties_the_revisions_that_hold_its_words(store: Store) -> None:
    """27: wherever the words are in them."""
    commit(store, KeepRevisions((kept("t1", "Zebulon likes the quay"), kept("t2", "Ben likes the quay"))))
    extent = Extent("w1", Mode.ERASE, words=Words(("Zebulon",)), mark="x")
    commit(store, Scrub(extent, manifest_digest(extent, store.holdings(extent))))
    assert [row.revision.body is None for row in store.revisions("thing", ["t1", "t2"])] == [True, False]
    store.purge_files()
    assert store.traces(Words(("Zebulon",))) == {}


def test_things_change_as_another_machine_says(store: Store) -> None:
    """27: a channel gets another name, a message another text, a scope another end; and things go for good."""
    one = channel("quay")
    commit(store, SaveChannel(one))
    with pytest.raises(Conflict):
        commit(store, SaveChannel(replace(one, name="mill")))
    commit(store, SaveChannel(replace(one, name="mill"), again=True))
    assert [found.name for found in store.channels()] == ["mill"]
    scope = ClosedScope(Scope("session", (("session", "s1"),)), "ended", NOW)
    commit(store, CloseScope(scope), CloseScope(replace(scope, event="over"), again=True))
    assert [found.event for found in store.closed()] == ["over"]
    transcript = Transcript("t1", "k1", "lines", "title", NOW, NOW, kept=2)
    said = [Utterance(f"m{n}", "user", f"The quay {n}", n, NOW) for n in range(2)]
    commit(store, SaveTranscript(transcript, 0), KeepUtterances("t1", tuple(said)))
    commit(store, KeepUtterances("t1", (replace(said[0], text="The lamp"),), instead=True))
    assert [one.text for one in store.utterances("t1")] == ["The lamp", "The quay 1"]
    commit(store, SaveTranscript(replace(transcript, key="k2"), 1), ForgetThing("utterance", ("t1", "1")))
    found = store.transcript("k2")
    assert found is not None
    assert [one.text for one in store.utterances("t1")] == ["The lamp"]
    assert [hit.utterance.text for hit in store.find_utterances(["lamp", "quay"], 5)] == ["The lamp"]
    commit(store, SaveNamed(named("VOICE", "Speak plainly."), 0))
    commit(store, ForgetThing("page", ("VOICE",)), ForgetThing("transcript", ("t1",)))
    assert (store.named(), store.named_versions("VOICE"), store.transcripts()) == ([], [], [])
    lit = entry("The lamp is lit")
    first, second = (Confirmation(lit.id, NOW, "ada", "", "", words) for words in ("it is lit", "it burns"))
    commit(store, put(lit), SaveConfirmation(first), SaveConfirmation(second))
    commit(store, ForgetThing("confirmation", (lit.id,), first))
    assert store.confirmations([lit.id]) == [second]
