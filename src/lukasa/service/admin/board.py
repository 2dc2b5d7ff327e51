"""The board and the timeline: every memory near what it belongs to, and what was believed on any day.

Both are about the newest entries of the workspace and of the account, in whatever scope and state. The places of beads
are computed once for each state of the two logs.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import date, datetime, timedelta
from itertools import pairwise

from msgspec import Struct

from lukasa.model.entry import Access, Entry, Version
from lukasa.model.values import VISIBILITY, State, Visibility
from lukasa.ports import Vector
from lukasa.read import board as drawing
from lukasa.read.board import Layout, Spot
from lukasa.read.decay import decay_factor, frequency, relevance
from lukasa.service.admin import looking
from lukasa.service.admin.overview import ended
from lukasa.service.call import CallContext
from lukasa.service.retrieval.find import as_it_was
from lukasa.storage.port import Store

_LAID_OUT = 4  # boards that are kept
_lock = threading.Lock()
_boards: dict[tuple[str, str], tuple[object, Layout]] = {}


class Bead(Struct, frozen=True):
    """An entry on the board. `size` is its relevance now, `left` what decay has left of it, both from 0 to 1.

    It was believed from `since` until `until`, which is None if it still is. `act` says that agents may act on it.
    """

    id: str
    words: str
    tier: str
    topic: int
    x: float
    y: float
    size: float
    left: float
    act: bool
    since: datetime
    until: datetime | None


class Board(Struct, frozen=True):
    """All beads, the oldest first, and the topics that they are in. If `cut`, there are older entries."""

    spots: tuple[Spot, ...]
    beads: tuple[Bead, ...]
    apart: float
    cut: bool


def board(ctx: CallContext) -> Board:
    """Return the board of a workspace. Only the author may see it, because it covers all tiers and owners."""
    _owned(ctx)
    entries, cut = shown(ctx)
    made = _laid_out(ctx, entries)
    left = _decayed(ctx, entries)
    beads = [
        Bead(
            entry.id,
            _brief(entry.content),
            entry.scope.tier,
            made.topic[number],
            made.x[number],
            made.y[number],
            *left[entry.id],
            entry.authority == "act",
            entry.valid_at or entry.created_at,
            ended(entry),
        )
        for number, entry in enumerate(entries)
    ]
    return Board(made.spots, tuple(beads), made.apart, cut)


def _owned(ctx: CallContext) -> None:
    ctx.require_author("see the whole of memory")
    ctx.require_whole("see it")


def shown(ctx: CallContext) -> tuple[list[Entry], bool]:
    """Return entries that are or were believed, the oldest first, and whether there are older ones. No files."""
    found, cut = looking.every(ctx)
    kept = [
        one
        for one in found
        if not one.damaged and one.path is None and one.state is not State.HELD and one.content.strip()
    ]
    return sorted(kept, key=lambda one: (one.created_at, one.id)), cut


def _brief(text: str, most: int = 140) -> str:
    line = " ".join(text.split())
    return line if len(line) <= most else f"{line[: most - 1].rstrip()}…"


def _laid_out(ctx: CallContext, entries: Sequence[Entry]) -> Layout:
    stores = (ctx.local, ctx.account)
    model = ctx.embedder.model if ctx.embedder else None
    key = (ctx.local.secret().hex(), ctx.account.secret().hex())
    state = ([store.head() for store in stores], model.name if model else "", len(entries))
    with _lock:
        known = _boards.get(key)
    if known is not None and known[0] == state:
        return known[1]
    made = drawing.layout([one.content for one in entries], _vectors(ctx, entries))
    with _lock:
        _boards[key] = (state, made)
        while len(_boards) > _LAID_OUT:
            del _boards[next(iter(_boards))]
    return made


def _vectors(ctx: CallContext, entries: Sequence[Entry]) -> dict[int, Vector]:
    if ctx.embedder is None:
        return {}
    position = {entry.id: number for number, entry in enumerate(entries)}
    found: dict[int, Vector] = {}
    for store in (ctx.local, ctx.account):
        found |= {position[id]: vector for id, vector in store.unit_vectors(list(position), ctx.embedder.model).items()}
    return found


def _decayed(ctx: CallContext, entries: Sequence[Entry]) -> dict[str, tuple[float, float]]:
    """Return the relevance of each entry now, and the share that decay has left of it."""
    reads: dict[str, Access] = {}
    for store in (ctx.local, ctx.account):
        reads |= store.access([entry.id for entry in entries])
    closed = {talk.id: talk.ended_at for talk in ctx.local.conversations(archived=True)}
    found = {}
    for entry in entries:
        decay = ctx.spec.behaviour(entry.scope.tier, entry.kind).decay
        access = reads.get(entry.id)
        left = decay_factor(decay, entry, access, ctx.now, closed.get(entry.scope.value("conversation") or ""))
        found[entry.id] = (round(relevance(entry.importance, left, frequency(access)), 3), round(left, 3))
    return found


# The timeline


class DayOfChanges(Struct, frozen=True):
    """How many entries were learned, changed and retired on a day."""

    day: date
    learned: int
    changed: int
    retired: int


class Believed(Struct, frozen=True):
    """An entry as it was on a day. `since_then` says what became of it: "", changed, or the state that it has now.

    `now` is its text of today, if it differs, or the text of the entry that took its place.
    """

    entry: Entry
    since_then: str
    now: str
    cause: str


class Change(Struct, frozen=True):
    """Something that changed what memory believes: learned, changed or retired; with the words before, and why."""

    at: datetime
    did: str
    entry: Entry
    before: str
    cause: str
    by: str
    replaced_by: str


class Timeline(Struct, frozen=True):
    """What was believed at a time, of how many, and what changed in the days before it, the newest first."""

    at: datetime
    days: tuple[DayOfChanges, ...]
    total: int
    believed: tuple[Believed, ...]
    changes: tuple[Change, ...]


WINDOW = timedelta(days=14)


def timeline(ctx: CallContext, at: datetime | None = None, *, limit: int = 40) -> Timeline:
    """Return what memory believed at a time, now if none is given, and what changed in the two weeks before it."""
    _owned(ctx)
    moment = at or ctx.now
    entries, _ = shown(ctx)
    then = [one for one in entries if (one.valid_at or one.created_at) <= moment < (ended(one) or moment + WINDOW)]
    told = [_believed(ctx, one, moment) for one in reversed(then[-limit * 2 :])]
    return Timeline(
        at=moment,
        days=_days(entries),
        total=len(then),
        believed=tuple(one for one in told if one is not None)[:limit],
        changes=tuple(_changes(ctx, entries, moment, limit)),
    )


def _days(entries: Iterable[Entry]) -> tuple[DayOfChanges, ...]:
    learned, changed, retired = Counter[date](), Counter[date](), Counter[date]()
    for entry in entries:
        learned[entry.created_at.date()] += 1
        if (over := ended(entry)) is not None:
            retired[over.date()] += 1
        elif _edited(entry):
            changed[entry.updated_at.date()] += 1
    every = sorted({*learned, *changed, *retired})
    return tuple(DayOfChanges(day, learned[day], changed[day], retired[day]) for day in every)


def _edited(entry: Entry) -> bool:
    """Whether an entry that holds was changed since it was learned, as far as its row tells."""
    return entry.version > 1 and entry.updated_at > entry.created_at and entry.updated_at != entry.confirmed_at


def _believed(ctx: CallContext, entry: Entry, at: datetime) -> Believed | None:
    then = as_it_was(ctx, entry, at)
    if then is None or not then.content.strip():
        return None
    if VISIBILITY[entry.state] is Visibility.HISTORY:
        follower = _named(ctx, entry.superseded_by)
        cause = entry.transition.cause if entry.transition else ""
        return Believed(then, str(entry.state), follower.content if follower else "", cause)
    if entry.content != then.content:
        return Believed(then, "changed", entry.content, "")
    return Believed(then, "", "", "")


def _changes(ctx: CallContext, entries: Sequence[Entry], until: datetime, limit: int) -> list[Change]:
    since = until - WINDOW
    found: list[Change] = []
    for entry in entries:
        if since < entry.created_at <= until:
            found.append(Change(entry.created_at, "learned", entry, "", "", entry.origin.principal, ""))
        over = ended(entry)
        if over is not None and since < over <= until:
            cause, by = (entry.transition.cause, entry.transition.actor) if entry.transition else ("", "")
            follower = _named(ctx, entry.superseded_by)
            did = "replaced" if follower else "retired"
            found.append(Change(over, did, entry, "", cause, by, follower.content if follower else ""))
        elif _edited(entry) and entry.updated_at > since:
            found += _edits(ctx.store(entry.scope.tier), entry, since, until)
    return sorted(found, key=lambda one: (one.at, one.entry.id), reverse=True)[:limit]


def _edits(store: Store, entry: Entry, since: datetime, until: datetime) -> list[Change]:
    versions: list[Version] = store.versions(entry.id)
    return [
        Change(new.at, "changed", new.entry, old.entry.content, new.cause, new.actor, "")
        for old, new in pairwise(versions)
        if since < new.at <= until and new.entry.content != old.entry.content
    ]


def _named(ctx: CallContext, id: str | None) -> Entry | None:
    if id is None:
        return None
    for store in (ctx.local, ctx.account):
        if (found := store.entries([id]).get(id)) is not None:
            return found
    return None
