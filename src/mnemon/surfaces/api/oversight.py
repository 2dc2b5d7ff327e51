"""Verbs about the whole of a workspace: what is in it, and what happened there."""

from __future__ import annotations

from pydantic import Field

from mnemon.model.grant import Capability
from mnemon.surfaces.api.shapes import EventOut, EventsOut
from mnemon.surfaces.api.verb import Call, Given, Verb

_AT = "/workspaces/{workspace}"


class EventsIn(Given):
    action: str | None = Field(None, description="Only events of this action, such as entry.added.")
    limit: int = Field(100, ge=1, le=1000)
    after: int = Field(0, ge=0, description="Only events after this number: the `next` of the page before.")


def events(call: Call, given: EventsIn) -> EventsOut:
    whole = call.overseen(Capability.EVENTS)
    page = whole.events(after=given.after, limit=given.limit + 1, action=given.action)
    more = str(page[given.limit - 1].seq) if len(page) > given.limit else None
    return EventsOut(events=[EventOut.of(event) for event in page[: given.limit]], next=more)


VERBS = (
    Verb(
        "event_list",
        "Look into the event log of a workspace: every change, oldest first, without the texts.",
        Capability.EVENTS,
        "GET",
        f"{_AT}/events",
        EventsIn,
        EventsOut,
        events,
        tool=False,
    ),
)
