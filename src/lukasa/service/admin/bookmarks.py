"""Bookmarks: names for positions of the event log. A bookmark is an event itself, so the chain guards it."""

from __future__ import annotations

import re
from datetime import datetime

from msgspec import Struct

from lukasa.model.errors import InvalidInput, NotFound
from lukasa.model.events import BOOKMARKED, Event, EventDraft
from lukasa.service import inputs
from lukasa.service.call import CallContext
from lukasa.storage.operations import Record

# It begins with a letter, so no bookmark looks like a time or a number.
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,59}")
MOST = 10_000


class Bookmark(Struct, frozen=True):
    """A name for a position of the log: everything up to the event `seq` is before it."""

    name: str
    seq: int
    at: datetime
    by: str
    note: str = ""


def place(ctx: CallContext, name: str, note: str) -> Bookmark:
    """Name the present end of the log. A name is given once."""
    ctx.require_agent("name a position of the event log")
    ctx.require_whole("name a position of the event log")
    if not is_name(name):
        raise InvalidInput(
            f"{str(name)[:60]!r} cannot name a bookmark: it begins with a letter, then letters, digits, . _ or -",
            fix="choose another name, such as before-import",
        )
    if _events(ctx, name):
        raise InvalidInput(f"there is a bookmark {name!r} already", fix="choose another name; a bookmark never moves")
    told = inputs.text(note, "note", 500) if note else ""
    ctx.apply(ctx.local, Record(EventDraft(BOOKMARKED, name, {"note": told} if told else {})))
    return _of(_events(ctx, name)[0])


def every(ctx: CallContext) -> list[Bookmark]:
    """Return all bookmarks, the oldest first."""
    ctx.require_agent("list the bookmarks of the event log")
    ctx.require_whole("list the bookmarks of the event log")
    return [_of(event) for event in ctx.local.events(action=BOOKMARKED, limit=MOST)]


def named(ctx: CallContext, name: str) -> Bookmark:
    """Return the bookmark of a name."""
    found = _events(ctx, name) if is_name(name) else []
    if not found:
        fix = "`lukasa events bookmarks` lists the bookmarks; a time is written as 2026-11-15T09:30"
        raise NotFound(f"{str(name)[:60]!r} is no bookmark and no time", fix=fix)
    return _of(found[0])


def is_name(value: object) -> bool:
    """Say whether a value can be the name of a bookmark; no time can."""
    return isinstance(value, str) and _NAME.fullmatch(value) is not None


def _events(ctx: CallContext, name: str) -> list[Event]:
    return ctx.local.events(subject=name, action=BOOKMARKED, limit=1)


def _of(event: Event) -> Bookmark:
    return Bookmark(event.subject, event.seq, event.at, str(event.actor), str(event.detail.get("note", "")))
