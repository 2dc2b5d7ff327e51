"""Jobs: asked for once a key, taken by one worker at a time, and nothing written by whoever lost the claim."""

from __future__ import annotations

from datetime import timedelta

import pytest

from lukasa.model.errors import Conflict, InvalidTransition, LostClaim, NotFound
from lukasa.model.job import Job, JobDraft, JobState
from lukasa.model.telemetry import TelemetryQuery
from lukasa.storage.operations import (
    CancelJob,
    Enqueue,
    FailJob,
    FinishJob,
    ForgetJobs,
    JournalStep,
    PostponeJob,
    ReviveJob,
)
from lukasa.storage.port import Store
from tests.helpers.stores import NOW, commit, entry, later, put


def ask(store: Store, key: str = "observe:1", **changes: object) -> None:
    commit(store, Enqueue(JobDraft("observe", key, {"n": 1}, **changes)))  # type: ignore[arg-type]


def take(store: Store, at: float = 0, lease: float = 60) -> Job:
    job = store.claim_job("w1", now=later(at), lease_until=later(at + lease))
    assert job is not None
    return job


def test_a_key_is_queued_once(store: Store) -> None:
    """O5: asking again for the same work changes nothing, whatever has become of it."""
    ask(store)
    ask(store)
    job = take(store)
    commit(store, FinishJob(job.id, job.claim, {"stored": 3}))
    ask(store)
    (only,) = store.jobs()
    assert (only.state, only.result, only.payload, only.attempts) == (JobState.DONE, {"stored": 3}, {"n": 1}, 1)
    assert store.job("observe:1") == store.job(only.id) == only
    assert store.queue_depth() == {JobState.DONE: 1}


def test_a_job_comes_with_what_caused_it_or_not_at_all(store: Store) -> None:
    """O2: enqueueing is part of the transaction."""
    e = entry()
    commit(store, put(e))
    with pytest.raises(Conflict):
        commit(store, Enqueue(JobDraft("observe", "k")), put(e))
    assert store.jobs() == []


def test_the_longest_waiting_due_job_is_taken(store: Store) -> None:
    """O5: jobs are taken in the order they became due, and none before its time."""
    ask(store, "late", run_after=later(50))
    ask(store, "first")
    ask(store, "second")
    assert [take(store).key, take(store).key] == ["first", "second"]
    assert store.claim_job("w", now=later(1), lease_until=later(2)) is None
    assert store.next_run() == store.next_run(["observe"]) == later(50)
    assert store.next_run(["other"]) is None
    assert take(store, 50).key == "late"
    assert store.claim_job("w", now=later(51), lease_until=later(55), kinds=["other"]) is None


def test_a_stale_claim_can_write_nothing(store: Store) -> None:
    """T24: once the lease has run out and another has the job, the first holder is refused in the same commit."""
    ask(store)
    old = take(store, lease=60)
    new = take(store, at=61)
    assert (new.claim, new.attempts, new.id) == (old.claim + 1, 2, old.id)
    e = entry()
    for late in (
        JournalStep(old.id, old.claim, "s", 1),
        FinishJob(old.id, old.claim),
        FailJob(old.id, old.claim, "x", None),
        PostponeJob(old.id, old.claim, later(1), "x"),
    ):
        with pytest.raises(LostClaim):
            commit(store, put(e), late)
    assert store.entries([e.id]) == {}
    assert store.steps(old.id) == {}
    assert not store.renew_lease(old.id, old.claim, later(500))
    assert store.renew_lease(new.id, new.claim, later(500))
    assert store.claim_job("w3", now=later(400), lease_until=later(460)) is None


def test_a_step_is_journaled_once(store: Store) -> None:
    """O2, T20: what a step gave is kept under its name; a second time is a conflict."""
    ask(store)
    job = take(store)
    commit(store, JournalStep(job.id, job.claim, "model", {"facts": [1, "ü"]}))
    commit(store, JournalStep(job.id, job.claim, "store", None))
    with pytest.raises(Conflict):
        commit(store, JournalStep(job.id, job.claim, "model", {}))
    assert list(store.steps(job.id).items()) == [("model", {"facts": [1, "ü"]}), ("store", None)]


def test_crashes_count_as_attempts(store: Store) -> None:
    """T06: a job whose worker dies every time is dead after its attempts, and says so."""
    ask(store, max_attempts=2)
    take(store, 0, lease=10)
    take(store, 20, lease=10)
    assert store.claim_job("w", now=later(40), lease_until=later(50)) is None
    (dead,) = store.jobs(states=[JobState.DEAD])
    assert dead.attempts == 2
    assert "attempt 2 of 2" in dead.error
    (told,) = store.points(TelemetryQuery(action="job.dead"))
    assert (told.component, told.level, told.success, told.metadata["job"]) == ("observe", "error", False, dead.id)


def test_a_failed_job_waits_and_then_dies(store: Store) -> None:
    """T06: failures are retried at their time until the attempts are used up; a person can revive the dead."""
    ask(store, max_attempts=2)
    job = take(store)
    commit(store, FailJob(job.id, job.claim, "no answer", later(30)))
    assert store.claim_job("w", now=later(29), lease_until=later(60)) is None
    job = take(store, 30)
    commit(store, JournalStep(job.id, job.claim, "model", 1))
    commit(store, FailJob(job.id, job.claim, "no answer", later(90)))
    (dead,) = store.jobs(states={JobState.DEAD})
    assert (dead.error, dead.attempts) == ("no answer", 2)
    commit(store, ReviveJob(dead.id))
    again = take(store, 100)
    assert again.attempts == 1
    assert store.steps(again.id) == {"model": 1}
    with pytest.raises(InvalidTransition):
        commit(store, ReviveJob(dead.id))


def test_a_postponed_job_has_lost_no_attempt(store: Store) -> None:
    """T21, T06: stopping, an open breaker or a spent budget cost nothing."""
    ask(store)
    job = take(store)
    commit(store, PostponeJob(job.id, job.claim, later(10), "the budget is spent"))
    found = store.job(job.id)
    assert found is not None
    assert (found.state, found.attempts, found.error) == (JobState.QUEUED, 0, "the budget is spent")
    assert take(store, 10).claim == job.claim + 1


def test_a_cancelled_job_is_taken_from_its_holder(store: Store) -> None:
    """O5: interruptible; what is finished cannot be cancelled."""
    ask(store)
    job = take(store)
    commit(store, CancelJob(job.id, "not wanted"))
    with pytest.raises(LostClaim):
        commit(store, FinishJob(job.id, job.claim))
    with pytest.raises(InvalidTransition):
        commit(store, CancelJob(job.id, "again"))
    with pytest.raises(NotFound):
        commit(store, CancelJob("nobody", "x"))


def test_finished_jobs_are_forgotten_by_age_and_dead_ones_are_not(store: Store) -> None:
    """T06: dead letters stay visible."""
    for key in ("done", "dead"):
        ask(store, key)
    done, dead = take(store), take(store)
    commit(store, JournalStep(done.id, done.claim, "s", 1))
    commit(store, FinishJob(done.id, done.claim), FailJob(dead.id, dead.claim, "x", None))
    commit(store, ForgetJobs(NOW + timedelta(days=1)))
    assert [job.key for job in store.jobs()] == ["dead"]
    assert store.steps(done.id) == {}
