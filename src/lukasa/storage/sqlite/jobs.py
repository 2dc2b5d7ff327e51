"""Jobs and the journal of their steps. Every write under a claim looks at the claim in the same transaction."""

from __future__ import annotations

import json
from collections.abc import Collection
from datetime import datetime
from typing import Any

import apsw

from lukasa.model.errors import Conflict
from lukasa.model.ids import new_id
from lukasa.model.job import Job, JobDraft, JobState
from lukasa.model.timestamps import micros, micros_or_none, moment, moment_or_none
from lukasa.storage import rules
from lukasa.storage.operations import CancelJob, FailJob, FinishJob, JournalStep, PostponeJob, ReviveJob
from lukasa.storage.sqlite import pipeline_sql as sql
from lukasa.storage.sqlite import telemetry
from lukasa.storage.sqlite.query import Row, all_rows, one_row, one_value
from lukasa.storage.sqlite.rows import json_list


def enqueue(db: apsw.Connection, draft: JobDraft, at: datetime) -> None:
    payload = json.dumps(rules.plain_json(draft.payload))
    due, now = micros(draft.run_after or at), micros(at)
    db.execute(sql.NEW_JOB, (new_id(), draft.kind, draft.key, payload, draft.max_attempts, due, now, now))


def journal(db: apsw.Connection, operation: JournalStep, at: datetime) -> None:
    _require_claim(db, operation.job, operation.claim)
    if one_value(db, sql.HAS_STEP, (operation.job, operation.name)):
        raise Conflict(f"step {operation.name!r} is in the journal already", fix="use what it gave")
    output = json.dumps(rules.plain_json(operation.output))
    db.execute(sql.JOURNAL, (operation.job, operation.name, operation.claim, micros(at), output))


def finish(db: apsw.Connection, operation: FinishJob, at: datetime) -> None:
    _require_claim(db, operation.job, operation.claim)
    result = json.dumps(rules.plain_json(operation.result))
    db.execute(sql.FINISH_JOB, (micros(at), result, operation.job))


def fail(db: apsw.Connection, operation: FailJob, at: datetime) -> None:
    _require_claim(db, operation.job, operation.claim)
    times = {"now": micros(at), "run_after": micros_or_none(operation.run_after)}
    db.execute(sql.FAIL_JOB, {"id": operation.job, "error": operation.error, **times})


def postpone(db: apsw.Connection, operation: PostponeJob, at: datetime) -> None:
    _require_claim(db, operation.job, operation.claim)
    db.execute(sql.POSTPONE_JOB, (micros(operation.until), micros(at), operation.reason, operation.job))


def revive(db: apsw.Connection, operation: ReviveJob, at: datetime) -> None:
    rules.check_revivable(operation.job, _state(db, operation.job))
    db.execute(sql.REVIVE_JOB, (micros(at), micros(at), operation.job))


def cancel(db: apsw.Connection, operation: CancelJob, at: datetime) -> None:
    rules.check_cancellable(operation.job, _state(db, operation.job))
    db.execute(sql.CANCEL_JOB, (micros(at), operation.reason, operation.job))


def forget(db: apsw.Connection, before: datetime) -> None:
    db.execute(sql.FORGET_JOBS, (micros(before),))


def _require_claim(db: apsw.Connection, job: str, claim: int) -> None:
    if not one_value(db, sql.HOLDS_CLAIM, (job, claim)):
        raise rules.lost_claim(job)


def _state(db: apsw.Connection, job: str) -> JobState:
    found = one_value(db, sql.JOB_STATE, (job,))
    if found is None:
        raise rules.missing("job", job)
    return JobState(found)


# Claims


def claim(
    db: apsw.Connection, worker: str, now: datetime, lease_until: datetime, kinds: Collection[str] | None
) -> Job | None:
    """Inside a write transaction, so that two workers cannot take one job."""
    for id, kind, attempts, error in all_rows(db, sql.BURY_JOBS, {"now": micros(now)}):
        telemetry.emit(db, rules.buried(now, id, kind, attempts, error))
    wanted = None if kinds is None else json_list(kinds)
    times = {"now": micros(now), "lease_until": micros(lease_until)}
    row = one_row(db, sql.CLAIM_JOB, {"worker": worker, "kinds": wanted, **times})
    return None if row is None else _job(row)


def renew(db: apsw.Connection, job: str, claim: int, lease_until: datetime) -> bool:
    return bool(all_rows(db, sql.RENEW_LEASE, {"id": job, "claim": claim, "lease_until": micros(lease_until)}))


# Reads


def jobs(db: apsw.Connection, states: Collection[JobState] | None, kind: str | None, limit: int) -> list[Job]:
    wanted = None if states is None else json_list(str(state) for state in states)
    return [_job(row) for row in all_rows(db, sql.JOBS, {"states": wanted, "kind": kind, "limit": limit})]


def job(db: apsw.Connection, id_or_key: str) -> Job | None:
    row = one_row(db, sql.JOB, {"id": id_or_key})
    return None if row is None else _job(row)


def steps(db: apsw.Connection, job: str) -> dict[str, Any]:
    return {name: json.loads(output) for name, output in all_rows(db, sql.STEPS, (job,))}


def depth(db: apsw.Connection) -> dict[JobState, int]:
    return {JobState(state): count for state, count in all_rows(db, sql.QUEUE_DEPTH)}


def next_run(db: apsw.Connection, kinds: Collection[str] | None) -> datetime | None:
    wanted = None if kinds is None else json_list(kinds)
    return moment_or_none(one_value(db, sql.NEXT_RUN, {"kinds": wanted}))


def _job(row: Row) -> Job:
    id, kind, key, payload, state, attempts, most, claim, due, new, last, lease, worker, error, result = row
    return Job(
        id=id,
        kind=kind,
        key=key,
        payload=json.loads(payload),
        state=JobState(state),
        attempts=attempts,
        max_attempts=most,
        claim=claim,
        run_after=moment(due),
        created_at=moment(new),
        updated_at=moment(last),
        lease_until=moment_or_none(lease),
        worker=worker,
        error=error,
        result=json.loads(result),
    )
