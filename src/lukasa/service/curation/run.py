"""A round of curation on demand: reflect, triage and write the page out, here and now instead of by a worker."""

from __future__ import annotations

from lukasa.model.amendment import Amendment
from lukasa.model.frozen import dataclass
from lukasa.ports import Chat
from lukasa.service.call import Room
from lukasa.service.curation import reflect
from lukasa.service.curation.publish import EVERY
from lukasa.service.jobs import handlers
from lukasa.service.jobs.allowance import Budget, Guard
from lukasa.service.jobs.worker import Run, Worker

KINDS = ("reflect", "triage", "curate")


@dataclass(frozen=True, slots=True)
class Round:
    """What was read, what came of it, and what went wrong on the way; that is tried again by a worker."""

    observations: int
    proposals: tuple[Amendment, ...]
    errors: tuple[str, ...]


def reflect_now(room: Room, *, chat: Chat | None, budget: Budget | None = None) -> Round:
    """Proposals from everything remembered since the last reflection, each taken as far as triage takes it."""
    room.require_author("reflect on what is remembered")
    before = {a.id for a in room.local.amendments(limit=EVERY)}
    reflect.ask_for(room)
    station = handlers.station(room, {kind: handlers.HANDLERS[kind] for kind in KINDS})
    guard = Guard(room.clock, budget or Budget(), room.local.spent)
    worker = Worker(lambda: [station], clock=room.clock, chat=chat, allowance=guard)
    runs: list[Run] = []
    while (run := worker.step()) is not None:
        runs.append(run)
    made = tuple(a for a in room.local.amendments(limit=EVERY) if a.id not in before)
    read = sum(int(run.result.get("observations", 0)) for run in runs)
    return Round(read, made, tuple(f"{run.job.kind}: {run.error}" for run in runs if run.error))
