"""Records beside the curated page: the log and the decision records as files of the same git repository.

    log         one commit for all lines of an hour, and with each `curated export`
    decisions   one commit for each change of a record, at once

The files are there at once, whatever becomes of the commit: its job is tried again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextvars import Context
from datetime import timedelta
from functools import partial
from typing import Any

from lukasa.model.errors import GitMissing
from lukasa.model.ids import new_id
from lukasa.model.job import JobDraft
from lukasa.ports import CuratedFile
from lukasa.service.call import CallContext
from lukasa.service.jobs.task import Task, job_actor, job_context, whole
from lukasa.service.jobs.worker import JobSource, Worker
from lukasa.storage.operations import Enqueue

KIND = "record"
LOG = "log.jsonl"
DECISIONS = "decisions"
WINDOW = timedelta(hours=1)
_FILES = {"log": (LOG,), "decisions": (f"{DECISIONS}/*.md", f"{DECISIONS}/.highest-number")}


def patterns(ctx: CallContext) -> tuple[str, ...]:
    """Return the patterns of the files that the spec keeps in the repository."""
    return tuple(pattern for name in ctx.spec.curated_keeps for pattern in _FILES[name])


def commit_later(ctx: CallContext) -> None:
    """Queue the commit of what is written until the present hour ends, if the spec keeps the log in git."""
    if ctx.curated_file is None or "log" not in ctx.spec.curated_keeps:
        return
    start = ctx.now.replace(minute=0, second=0, microsecond=0)
    draft = JobDraft(KIND, f"{KIND}:{start:%Y-%m-%dT%H:%MZ}", run_after=start + WINDOW)
    if ctx.local.job(draft.key) is None:
        ctx.apply(ctx.local, Enqueue(draft))


def commit_now(ctx: CallContext) -> None:
    """Queue a commit of what has changed, and make it here and now; if that fails, a worker does."""
    if ctx.curated_file is None:
        return
    draft = JobDraft(KIND, f"{KIND}:{new_id()}")
    ctx.apply(ctx.local, Enqueue(draft))
    source = JobSource(ctx.info.name, whole(ctx), {KIND: partial(record, job_context(ctx, KIND))}, job_actor)
    Context().run(Worker(lambda: [source], clock=ctx.clock).step)


def keep(ctx: CallContext, file: CuratedFile) -> int:
    """Commit the kept files that have changed; return how many. The caller holds the file's lock."""
    wanted = patterns(ctx)
    try:
        return file.keep(wanted, author=str(ctx.actor), at=ctx.now) if wanted else 0
    except GitMissing:
        return 0


def record(ctx: CallContext, task: Task) -> dict[str, Any]:
    """K2, K3: commit the log and the decision records; a repetition finds nothing to commit."""
    file = ctx.curated_file
    if file is None:
        return {}
    with file.locked():
        counts = {"files": keep(ctx, file)}
    return dict(task.once("kept", lambda: counts, task.telemetry("record.completed", metadata=counts)))


def put_back(ctx: CallContext, found: Mapping[str, bytes]) -> Sequence[str]:
    """Write the kept files of another repository where this workspace has none, and commit them; return their names."""
    file = ctx.curated_file
    if file is None:
        return ()
    with file.locked():
        made = [name for name, data in sorted(found.items()) if file.put_back(name, data)]
    if made:
        commit_now(ctx)
    return made
