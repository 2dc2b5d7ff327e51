"""The standing jobs that every workspace has: vectors that are missing, and records that have served their time."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from lukasa.pipeline.task import Task
from lukasa.ports.access import ForgetAnswers
from lukasa.ports.pipeline import ForgetJobs, ForgetPoints
from lukasa.service import backfilling
from lukasa.service.room import Room

BATCH = 50
KEEP_JOBS = timedelta(days=30)  # longer than any schedule's window, so that a window is never worked on twice
KEEP_POINTS = timedelta(days=90)
KEEP_READS = timedelta(days=14)  # what reads report, which are many
KEEP_ANSWERS = timedelta(days=1)


def backfill(room: Room, task: Task) -> dict[str, Any]:
    """O8: vectors for a batch of entries that have none. They are derived, so that repeating it costs nothing."""
    if not task.journaled("embedded"):
        counts = {"embedded": backfilling.backfill(room, BATCH)}
        task.commit("embedded", counts, task.point("backfill.completed", metadata=counts))
    return dict(task.output("embedded"))


def tidy(room: Room, task: Task) -> dict[str, Any]:
    """Finished jobs, answers and telemetry are kept for a while. Dead jobs stay until somebody decides."""
    now = room.now
    points = (ForgetPoints(now - KEEP_POINTS), ForgetPoints(now - KEEP_READS, "debug"))
    if not task.journaled("tidied"):
        room.apply(room.account, *points)
    forget = (ForgetJobs(now - KEEP_JOBS), *points, ForgetAnswers(now - KEEP_ANSWERS))
    task.once("tidied", dict, *forget, task.point("tidy.completed"))
    return {}
