"""Upkeep that a person asks for: as a job like any other, or as a look at what it would do."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from lukasa.model.errors import InvalidInput, StoreError
from lukasa.model.ids import new_id
from lukasa.model.job import FINISHED, Job, JobDraft
from lukasa.ports import Chat
from lukasa.service.call import Room
from lukasa.service.instrument import verb
from lukasa.service.jobs.handlers import Work, room_for, run_next
from lukasa.service.upkeep.consolidate import OPERATOR, consolidate
from lukasa.service.upkeep.maintain import maintain
from lukasa.service.upkeep.scope import Tell, silent
from lukasa.storage.operations import Enqueue

KINDS: Mapping[str, Callable[..., dict[str, Any]]] = {"consolidate": consolidate, "maintain": maintain}


def preview(room: Room, kind: str, tiers: Sequence[str] | None = None) -> dict[str, Any]:
    """What a run would do now, by rules alone; nothing is changed and no model is asked."""
    room.require_author(f"ask to {_known(kind)}")
    return KINDS[kind](room_for(room, kind), None, tiers=_tiers(room, tiers))


@verb("job", "ask")
def ask(room: Room, kind: str, tiers: Sequence[str] | None = None) -> Job:
    """Ask for a run; a worker does it."""
    room.require_author(f"ask to {_known(kind)}")
    payload: dict[str, Any] = {"trigger": OPERATOR, "tiers": _tiers(room, tiers)}
    draft = JobDraft(kind, f"{kind}:{OPERATOR}:{new_id()}", payload)
    room.apply(room.local, Enqueue(draft))
    return _job(room, draft.key)


def work(room: Room, job: Job, *, chat: Chat | None = None, tell: Tell = silent) -> Job:
    """Do a job here and now, unless another worker is faster; the answer is the job as it is afterwards."""
    handlers: dict[str, Work] = {job.kind: partial(KINDS[job.kind], tell=tell)}
    while job.state not in FINISHED and run_next(room, chat=chat, handlers=handlers) is not None:
        job = _job(room, job.id)
    return _job(room, job.id)


def _job(room: Room, id_or_key: str) -> Job:
    found = room.local.job(id_or_key)
    if found is None:
        raise StoreError("the job is gone that was just asked for", fix="ask again")
    return found


def _known(kind: str) -> str:
    if kind not in KINDS:
        raise InvalidInput(f"{kind[:60]!r} is no upkeep", fix=f"use one of: {', '.join(KINDS)}")
    return kind


def _tiers(room: Room, tiers: Sequence[str] | None) -> list[str] | None:
    return [room.spec.tier(name).name for name in tiers] if tiers else None
