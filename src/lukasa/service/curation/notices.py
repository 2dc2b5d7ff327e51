"""Notices: tell a command or a URL of the user's that a proposal waits for a person.

The job is committed together with the state `review`, so each proposal that comes to need a person has exactly one. A
worker delivers it, at least once; the id of the notice stays the same at each attempt.
"""

from __future__ import annotations

import json
import shlex
from typing import Any

from lukasa.model.amendment import Amendment, AmendmentState
from lukasa.model.errors import LukasaError
from lukasa.model.job import JobDraft
from lukasa.model.secrets import redact
from lukasa.ports import Notice
from lukasa.service.call import CallContext
from lukasa.service.jobs.task import Task
from lukasa.storage.operations import Enqueue

KIND = "notify"
ATTEMPTS = 50  # with pauses of up to an hour: about two days
SUMMARY = 80


def asking(ctx: CallContext, amendment: Amendment) -> tuple[Enqueue, ...]:
    """Return the job that tells of an amendment saved as waiting for a person; none if nobody wants to know."""
    if ctx.notices is None or amendment.state is not AmendmentState.REVIEW:
        return ()
    key = f"{KIND}:{amendment.id}:{amendment.version + 1}"
    return (Enqueue(JobDraft(KIND, key, {"proposal": amendment.id}, max_attempts=ATTEMPTS)),)


def notify(ctx: CallContext, task: Task) -> dict[str, Any]:
    """Deliver a notice to each channel once it takes it. What a person has decided meanwhile needs no notice."""
    found = next(iter(ctx.local.amendments([str(task.job.payload["proposal"])])), None)
    if found is None or found.state is not AmendmentState.REVIEW or ctx.notices is None:
        return dict(task.once("passed", lambda: {"delivered": 0}, task.telemetry("notify.passed")))
    notice = Notice(task.job.id, json.dumps(_body(ctx, task, found), ensure_ascii=False).encode())
    failed: LukasaError | None = None
    for channel in ctx.notices():
        step = f"delivered:{channel.name}"
        try:
            if not task.journaled(step):
                channel.send(notice)
                task.commit(step, 1, task.telemetry("notify.completed", metadata={"channel": channel.name}))
        except LukasaError as error:
            about = {"channel": channel.name, "error": error.code}
            task.tell(task.telemetry("notify.failed", success=False, level="error", metadata=about))
            failed = failed or error
    if failed is not None:
        raise failed
    return {"delivered": len(ctx.notices())}


def _body(ctx: CallContext, task: Task, amendment: Amendment) -> dict[str, Any]:
    """Return the notice: what waits, why, and the commands that decide. It holds no secret."""
    change, reason = redact(amendment.change)[0], redact(amendment.reason)[0]
    brief = change if len(change) <= SUMMARY else f"{change[: SUMMARY - 1]}…"
    command = f"lukasa -w {shlex.quote(ctx.info.name)} review"
    return {
        "id": task.job.id,
        "event": "review.needed",
        "at": task.job.created_at.isoformat(),
        "workspace": ctx.info.name,
        "summary": f"Review memory proposal: {brief}",
        "proposal": {
            "id": amendment.id,
            "section": amendment.section,
            "change": change,
            "confidence": amendment.confidence,
            "reason": reason,
            "decided_by": amendment.decided_by,
            "sources": list(amendment.sources),
        },
        "approve": f"{command} approve {amendment.id}",
        "reject": f"{command} reject {amendment.id}",
    }
