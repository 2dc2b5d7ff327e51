"""What happened lately: what somebody wrote, from the event log, and what agents were given, from the ledger.

Both are turned into the parts of a sentence: who, did what, with which memories. What one of them did many times in a
row is one sentence with a number.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta

from msgspec import Struct
from msgspec.structs import replace

from lukasa.model.entry import Entry
from lukasa.model.events import Event
from lukasa.service.admin import shown
from lukasa.service.call import CallContext

MOST_TEXTS = 3  # of one sentence
_SHORT = 160
_TOGETHER = timedelta(minutes=5)
# Of these, another event of the same act tells the same.
_SILENT = frozenset({"transcript.said", "transcript.updated", "entry.superseded", "rivals.found", "named.created"})


class About(Struct, frozen=True):
    """A thing that something happened to: its id, its kind, and the beginning of its text, if that is still here."""

    id: str
    kind: str
    text: str


class Happening(Struct, frozen=True):
    """Something that somebody did, once or several times in a row, last at `at`.

    `did` is the action of the event, or `given` if an agent got memories. `yours` says that the owner did it.
    """

    at: datetime
    who: str
    surface: str
    yours: bool
    did: str
    times: int
    about: tuple[About, ...]
    memories: int = 0
    tokens: int = 0
    seq: int = 0


def activity(ctx: CallContext, *, limit: int = 50) -> list[Happening]:
    """Return what happened lately in a workspace, the newest first. Only the author may see it."""
    ctx.require_author("see what happened")
    ctx.require_whole("see what happened")
    head = ctx.local.head()[0]
    events = ctx.local.events(after=max(0, head - limit * 8), limit=limit * 8)
    found = [*_written(ctx, events), *_given(ctx, limit)]
    found.sort(key=lambda one: one.at, reverse=True)
    return _told(ctx, [*_joined(found)][:limit])


def _written(ctx: CallContext, events: Iterable[Event]) -> Iterator[Happening]:
    for event in events:
        if event.action in _SILENT:
            continue
        about = (About(event.subject, event.action.partition(".")[0], ""),) if event.subject else ()
        who, surface = event.actor.principal, event.actor.surface
        yield Happening(event.at, who, surface, who == ctx.origin.principal, event.action, 1, about, seq=event.seq)


def _given(ctx: CallContext, limit: int) -> Iterator[Happening]:
    for one in shown.sent(ctx, limit=limit):
        entries = [item for item in one.items if not item.page]
        about = tuple(About(item.id, "entry", "") for item in entries)
        yours = one.principal == ctx.origin.principal
        yield Happening(one.at, one.principal, one.surface, yours, "given", 1, about, len(entries), one.tokens)


def _joined(found: Sequence[Happening]) -> Iterator[Happening]:
    """Join what the same one did in a row, within minutes. What agents were given stays apart: each was a question."""
    last: Happening | None = None
    for one in found:
        same = last is not None and (last.who, last.surface, last.did) == (one.who, one.surface, one.did)
        if last is not None and same and one.did != "given" and last.at - one.at < _TOGETHER:
            new = tuple(thing for thing in one.about if thing not in last.about)
            last = replace(last, times=last.times + one.times, about=last.about + new)
            continue
        if last is not None:
            yield last
        last = one
    if last is not None:
        yield last


def _told(ctx: CallContext, found: Sequence[Happening]) -> list[Happening]:
    """Give the things their texts, the first few of each."""
    ids = {thing.id for one in found for thing in one.about[:MOST_TEXTS] if thing.kind == "entry"}
    texts = {id: _short(entry) for store in (ctx.local, ctx.account) for id, entry in store.entries(ids).items()}
    for one in found:
        for thing in one.about[:MOST_TEXTS]:
            if thing.kind == "transcript" and (session := ctx.local.transcript(thing.id)) is not None:
                texts[thing.id] = session.title[:_SHORT]
            elif thing.kind == "conversation" and (talk := ctx.local.conversation(thing.id)) is not None:
                texts[thing.id] = talk.ref_code
    return [
        replace(one, about=tuple(replace(t, text=texts.get(t.id, "")) for t in one.about[:MOST_TEXTS])) for one in found
    ]


def _short(entry: Entry) -> str:
    return entry.content if len(entry.content) <= _SHORT else f"{entry.content[: _SHORT - 1]}…"
