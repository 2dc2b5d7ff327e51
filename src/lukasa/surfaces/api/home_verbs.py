"""Verbs of the owner's page about the whole of a workspace: its home, the board, and the timeline."""

from __future__ import annotations

from datetime import date, datetime

from pydantic import Field

from lukasa.model.grant import Capability
from lukasa.surfaces.api.overview_verbs import FadingOut
from lukasa.surfaces.api.shapes import EntryOut, WordsOut
from lukasa.surfaces.api.verb import Call, Moment, NoInput, Verb, VerbInput, VerbOutput

_WORKSPACE = "/workspaces/{workspace}"


class RecentOut(VerbOutput):
    """An entry, and the words that it rests on."""

    entry: EntryOut
    quotes: list[WordsOut]


class UsedOut(VerbOutput):
    """An entry that agents got: how often in a week, when last, and who got it."""

    entry: EntryOut
    times: int
    at: datetime
    by: str


class DayOfUseOut(VerbOutput):
    day: date
    learned: int
    used: int
    tokens: int


class LessonOut(VerbOutput):
    """A recorded session that taught something."""

    id: str
    title: str
    format: str
    updated_at: datetime


class HomeOut(VerbOutput):
    """What a workspace knows, in numbers and in entries.

    `agents` counts sessions by their format. `used` and `tokens` are of seven days: texts of memory that agents got.
    `session` is the last one that taught something; without one, `learned` are the newest entries. `always` are the
    names of the pages that every prompt holds.
    """

    memories: int
    people: int
    things: int
    sessions: int
    agents: dict[str, int]
    used: int
    tokens: int
    week: list[DayOfUseOut]
    waiting: int
    session: LessonOut | None = None
    learned: list[RecentOut]
    lately: list[UsedOut]
    rules: list[EntryOut]
    always: list[str]
    fading: list[FadingOut]
    faded: int


def home(call: Call, given: NoInput) -> HomeOut:
    return HomeOut.of(call.overseen(Capability.STATS).home())


class SpotOut(VerbOutput):
    """A topic of the board: its label, its middle, and the radius that its beads cover."""

    label: str
    x: float
    y: float
    radius: float
    count: int


class BoardOut(VerbOutput):
    """The board of 760 by 420. Beads are columns, the oldest first: number n of each list is about bead n.

    `size` is the relevance of a bead now, and `left` the share that decay has left of it. It was believed from `since`
    until `until`, if that is not null. `act`: agents may act on it.
    """

    spots: list[SpotOut]
    apart: float
    cut: bool
    id: list[str]
    words: list[str]
    tier: list[str]
    topic: list[int]
    x: list[float]
    y: list[float]
    size: list[float]
    left: list[float]
    act: list[bool]
    since: list[date]
    until: list[date | None]


_COLUMNS = ("id", "words", "tier", "topic", "x", "y", "size", "left", "act")


def board(call: Call, given: NoInput) -> BoardOut:
    made = call.overseen(Capability.STATS).board()
    columns = {name: [getattr(bead, name) for bead in made.beads] for name in _COLUMNS}
    return BoardOut(
        spots=[SpotOut.of(spot) for spot in made.spots],
        apart=made.apart,
        cut=made.cut,
        since=[bead.since.date() for bead in made.beads],
        until=[bead.until.date() if bead.until else None for bead in made.beads],
        **columns,
    )


class TimelineIn(VerbInput):
    at: Moment | None = Field(None, description="The time to look at; now if left out.")
    limit: int = Field(40, ge=1, le=200, description="At most this many entries, and this many changes.")


class ChangesOfDayOut(VerbOutput):
    day: date
    learned: int
    changed: int
    retired: int


class BelievedOut(VerbOutput):
    """An entry as it was then. `since_then` says what became of it; `now` is what stands in its place today."""

    entry: EntryOut
    since_then: str
    now: str
    cause: str


class ChangedOut(VerbOutput):
    """A change: learned, changed, replaced or retired; with the words before, or those that took its place, and why."""

    at: datetime
    did: str
    entry: EntryOut
    before: str
    cause: str
    by: str
    replaced_by: str


class TimelineOut(VerbOutput):
    """What was believed at a time, and what changed in the two weeks before it. `days` are all days with changes."""

    at: datetime
    days: list[ChangesOfDayOut]
    total: int
    believed: list[BelievedOut]
    changes: list[ChangedOut]


def timeline(call: Call, given: TimelineIn) -> TimelineOut:
    return TimelineOut.of(call.overseen(Capability.STATS).timeline(given.at, limit=given.limit))


VERBS = (
    Verb(
        "workspace_home",
        "Show what a workspace knows: numbers, what the last session taught it, what was used lately, and what fades.",
        Capability.STATS,
        "GET",
        f"{_WORKSPACE}/home",
        NoInput,
        HomeOut,
        home,
        owner_only=True,
        tool=False,
    ),
    Verb(
        "workspace_board",
        "Lay out every memory as a bead near what it belongs to, with the days on which it was believed.",
        Capability.STATS,
        "GET",
        f"{_WORKSPACE}/board",
        NoInput,
        BoardOut,
        board,
        owner_only=True,
        tool=False,
    ),
    Verb(
        "workspace_timeline",
        "Show what memory believed at a time, what became of it, and what changed in the two weeks before.",
        Capability.STATS,
        "GET",
        f"{_WORKSPACE}/timeline",
        TimelineIn,
        TimelineOut,
        timeline,
        owner_only=True,
        tool=False,
    ),
)
