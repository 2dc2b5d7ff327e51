"""Submissions to the corpus: kept with what they rest on, and without words once that is removed for good."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from lukasa.model.errors import Conflict
from lukasa.model.ids import new_id
from lukasa.model.scrub import Extent, Mode, manifest_digest
from lukasa.model.submission import REMOVED, Change, How, Submission, SubmissionState
from lukasa.model.values import Origin, Trust
from lukasa.storage.operations import DropEntry, EmptySubmissions, SaveSubmission, Scrub
from lukasa.storage.port import Store
from tests.helpers.stores import NOW, WORK, commit, entry, put


def submission(*memories: str, **more: object) -> Submission:
    made = Submission(
        id=new_id(),
        document="deploys",
        title="Deploys",
        collection="documents",
        base=0,
        change=Change(How.WHOLE, "The quay is closed on Fridays"),
        memories=memories,
        derivable=memories[:1],
        origin=Origin("claude", "mcp", "stdio", Trust.AGENT),
        note="everybody asks about the quay",
        created_at=NOW,
        updated_at=NOW,
        keys={"org_id": "acme"},
    )
    return replace(made, **more)


def test_a_submission_is_kept_and_found_by_document_state_and_memory(store: Store) -> None:
    """K5: all of it reads back; the log names document and memories, and none of its words."""
    one, other = entry("The quay is closed on Fridays"), entry("The mill is closed")
    commit(store, put(one), put(other))
    first, second = submission(one.id, other.id), submission(other.id, document="mills", base=4)
    commit(store, SaveSubmission(first, 0), SaveSubmission(second, 0))
    assert store.submissions() == [first, second]
    assert store.submissions([second.id]) == store.submissions(document="mills") == [second]
    assert [s.submission for s in store.submissions_on([other.id])] == [first.id, second.id]
    done = replace(first, state=SubmissionState.ACCEPTED, accepted=1, retired=(one.id,), decided_by="ada", edited=True)
    commit(store, SaveSubmission(done, 1))
    assert store.submissions(states={SubmissionState.OPEN}) == [second]
    assert store.submissions([first.id]) == [replace(done, version=2)]
    with pytest.raises(Conflict):
        commit(store, SaveSubmission(done, 1))
    (_, event) = store.events(subject=first.id)
    assert event.action == "submission.accepted"
    assert event.detail["memories"] == [one.id, other.id]
    assert (event.detail["document"], event.detail["accepted"], event.detail["retired"]) == ("deploys", 1, [one.id])
    assert "quay" not in str([e.detail for e in store.events()])


def test_the_words_go_with_a_memory_that_is_dropped(store: Store) -> None:
    """H1: one that waits is removed; one that was decided stays with its ids. Nobody can put the words back."""
    one, other = entry("The quay is closed on Fridays"), entry("The mill is closed")
    commit(store, put(one), put(other))
    waits, accepted, apart = submission(one.id, other.id), submission(one.id, accepted=3), submission(other.id)
    accepted = replace(accepted, state=SubmissionState.ACCEPTED, reason="the quay is right")
    commit(store, *(SaveSubmission(s, 0) for s in (waits, accepted, apart)))
    commit(store, DropEntry(one.id, 1, "gone"))
    found = {s.id: s for s in store.submissions()}
    assert (found[waits.id].state, found[waits.id].reason) == (SubmissionState.REMOVED, REMOVED)
    assert (found[accepted.id].state, found[accepted.id].accepted) == (SubmissionState.ACCEPTED, 3)
    assert all(found[s.id].wordless and found[s.id].memories for s in (waits, accepted))
    assert "quay" not in str([found[s.id] for s in (waits, accepted)])
    assert found[apart.id] == apart
    with pytest.raises(Conflict):
        commit(store, SaveSubmission(waits, 2))
    commit(store, EmptySubmissions((other.id,)))
    assert all(s.wordless for s in store.submissions())


def test_a_scrub_takes_the_words_and_empties_the_events(store: Store) -> None:
    """H1: the plan counts the submissions; the events about what goes are emptied, and the chain still holds."""
    one = entry("The quay is closed on Fridays")
    commit(store, put(one))
    made = submission(one.id)
    commit(store, SaveSubmission(made, 0))
    commit(store, SaveSubmission(replace(made, state=SubmissionState.REJECTED, reason="the quay is not closed"), 1))
    extent = Extent("w1", Mode.FULL, WORK, whole=True)
    held = store.holdings(extent)
    assert held.counts["submissions"] == 1
    commit(store, Scrub(extent, manifest_digest(extent, held), {}))
    (left,) = store.submissions()
    assert left.wordless
    assert "quay" not in str([left, *store.events()])
    assert store.check() == []


def test_a_scrub_of_copies_removes_submissions(store: Store) -> None:
    """H1: a workspace that is emptied as a whole keeps no row of them."""
    one = entry("The quay is closed on Fridays")
    commit(store, put(one))
    commit(store, SaveSubmission(submission(one.id), 0))
    extent = Extent("w1", Mode.FULL, WORK, whole=True, copies=True)
    commit(store, Scrub(extent, manifest_digest(extent, store.holdings(extent)), {}))
    assert (store.submissions(), store.submissions_on([one.id])) == ([], [])


def test_a_submission_holds_no_secret(store: Store) -> None:
    """T56: whoever wrote it, and whatever part it is in."""
    one = entry("The quay is closed on Fridays")
    secret = "ghp_" + "a1B2c3D4e5F6g7H8i9J0" * 2
    made = submission(one.id, note=f"see {secret}", change=Change(How.END, f"use {secret[:40]}", f"at {secret[:40]}"))
    commit(store, put(one), SaveSubmission(made, 0))
    assert secret[:30] not in str(store.submissions())
