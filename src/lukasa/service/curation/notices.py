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
from lukasa.model.submission import Submission, SubmissionState
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


def submitted(ctx: CallContext, submission: Submission) -> tuple[Enqueue, ...]:
    """Return the job that tells of a change submitted to a document; none if nobody wants to know."""
    if ctx.notices is None:
        return ()
    key = f"{KIND}:{submission.id}:{submission.version}"
    return (Enqueue(JobDraft(KIND, key, {"submission": submission.id}, max_attempts=ATTEMPTS)),)


def notify(ctx: CallContext, task: Task) -> dict[str, Any]:
    """Deliver a notice to each channel once it takes it. What a person has decided meanwhile needs no notice."""
    about = _about(ctx, task)
    if about is None or ctx.notices is None:
        return dict(task.once("passed", lambda: {"delivered": 0}, task.telemetry("notify.passed")))
    notice = Notice(task.job.id, json.dumps(_body(ctx, task, *about), ensure_ascii=False).encode())
    failed: LukasaError | None = None
    for channel in ctx.notices():
        step = f"delivered:{channel.name}"
        try:
            if not task.journaled(step):
                channel.send(notice)
                task.commit(step, 1, task.telemetry("notify.completed", metadata={"channel": channel.name}))
        except LukasaError as error:
            fault = {"channel": channel.name, "error": error.code}
            task.tell(task.telemetry("notify.failed", success=False, level="error", metadata=fault))
            failed = failed or error
    if failed is not None:
        raise failed
    return {"delivered": len(ctx.notices())}


def _about(ctx: CallContext, task: Task) -> tuple[str, str, dict[str, Any]] | None:
    """Return what waits for a person: its id, a summary and its details, without secrets; None if it was decided."""
    if "submission" in task.job.payload:
        made = next(iter(ctx.local.submissions([str(task.job.payload["submission"])])), None)
        return None if made is None or made.state is not SubmissionState.OPEN else _of_submission(made)
    found = next(iter(ctx.local.amendments([str(task.job.payload["proposal"])])), None)
    return None if found is None or found.state is not AmendmentState.REVIEW else _of_proposal(found)


def _of_submission(made: Submission) -> tuple[str, str, dict[str, Any]]:
    text = redact(made.change.text)[0]
    details = {
        "id": made.id,
        "document": made.document,
        "how": str(made.change.how),
        "text": text,
        "by": made.origin.principal,
        "reason": redact(made.note)[0],
        "memories": list(made.memories),
    }
    return made.id, f"Review change of document {made.document}: {_brief(text)}", {"submission": details}


def _of_proposal(amendment: Amendment) -> tuple[str, str, dict[str, Any]]:
    change = redact(amendment.change)[0]
    details = {
        "id": amendment.id,
        "section": amendment.section,
        "change": change,
        "confidence": amendment.confidence,
        "reason": redact(amendment.reason)[0],
        "decided_by": amendment.decided_by,
        "sources": list(amendment.sources),
    }
    return amendment.id, f"Review memory proposal: {_brief(change)}", {"proposal": details}


def _brief(text: str) -> str:
    return text if len(text) <= SUMMARY else f"{text[: SUMMARY - 1]}…"


def _body(ctx: CallContext, task: Task, id: str, summary: str, details: dict[str, Any]) -> dict[str, Any]:
    """Return the notice: what waits, why, and the commands that decide. It holds no secret."""
    command = f"lukasa -w {shlex.quote(ctx.info.name)} review"
    return {
        "id": task.job.id,
        "event": "review.needed",
        "at": task.job.created_at.isoformat(),
        "workspace": ctx.info.name,
        "summary": summary,
        **details,
        "approve": f"{command} approve {id}",
        "reject": f"{command} reject {id}",
    }
