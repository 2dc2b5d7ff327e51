"""Background work of a workspace: which kinds there are, and the station a worker finds there.

A handler gets the workspace's room and a task, does its work in journaled steps, and returns its counts. A new kind of
work is one line in `HANDLERS`; a kind that is not there is neither asked for nor claimed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from lukasa.model.events import Actor
from lukasa.model.values import Origin, Trust
from lukasa.pipeline.task import Task
from lukasa.pipeline.worker import Run, Station, Worker
from lukasa.ports.chat import Chat
from lukasa.service import chores, consolidating, curating, maintaining, observing, reflecting, resolving, triaging
from lukasa.service.room import Room
from lukasa.service.triggering import Triggers

PRINCIPAL = "lukasa"
SURFACE = "worker"

Work = Callable[[Room, Task], dict[str, Any]]

HANDLERS: dict[str, Work] = {
    "backfill": chores.backfill,
    "consolidate": consolidating.consolidate,
    "curate": curating.curate,
    "maintain": maintaining.maintain,
    "reflect": reflecting.reflect,
    "resolve": resolving.resolve,
    "tidy": chores.tidy,
    "observe": observing.observe,
    "triage": triaging.triage,
}


def room_for(room: Room, kind: str) -> Room:
    """The room as a job of that kind has it: nothing bound, and the log says which work it was.

    It sees what the author sees, since maintenance is about all entries. What a job writes that it concluded itself,
    or was told by a model, it writes with `acting(trust=Trust.AGENT)` or less.
    """
    return replace(room, origin=Origin(PRINCIPAL, SURFACE, kind, Trust.AUTHOR), agent=None, keys={}, stage=None)


def station(room: Room, handlers: Mapping[str, Work] | None = None) -> Station:
    work = HANDLERS if handlers is None else handlers
    return Station(
        workspace=room.info.name,
        store=room.local,
        handlers={kind: partial(handle, room_for(room, kind)) for kind, handle in work.items()},
        actor=lambda kind: Actor(PRINCIPAL, SURFACE, kind),
        wanted=Triggers(room).wanted,
    )


def run_next(room: Room, *, chat: Chat | None = None, handlers: Mapping[str, Work] | None = None) -> Run | None:
    """Run the next job that is due in this workspace, if there is one."""
    here = station(room, handlers)
    return Worker(lambda: [here], clock=room.clock, chat=chat).step()
