"""Verbs for looking around a whole workspace: all entries as a table, people and things, and what happened lately."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from pydantic import Field

from lukasa.model.grant import Capability
from lukasa.surfaces.api.shapes import EntryOut
from lukasa.surfaces.api.verb import MOST_NUMBER, Call, Moment, Verb, VerbInput, VerbOutput

_WORKSPACE = "/workspaces/{workspace}"
_ANY = "Only these; all if left out."


class TableIn(VerbInput):
    words: str = Field("", max_length=1000, description="Only entries whose text holds all of these.")
    ids: list[str] = Field(default=[], max_length=500, description="Only the entries with these ids.")
    tiers: list[str] = Field(default=[], description=_ANY)
    kinds: list[str] = Field(default=[], description=_ANY)
    states: list[str] = Field(default=[], description="Only these; all but retired entries if left out.")
    curators: list[str] = Field(default=[], description=_ANY)
    sources: list[str] = Field(default=[], description=_ANY)
    categories: list[str] = Field(default=[], description=_ANY)
    agents: list[str] = Field(default=[], description="Only entries that these wrote.")
    tags: list[str] = Field(default=[], description="Only entries that have all of these.")
    conversation: str = Field("", description="Only entries of this conversation, by id.")
    session: str = Field("", description="Only entries that were learned in this recorded session, by id.")
    name: str = Field("", description="Only entries that name this person or thing.")
    since: Moment | None = Field(None, description="Only entries written at or after this time.")
    until: Moment | None = Field(None, description="Only entries written before this time.")
    everything: bool = Field(False, description="Also retired entries: forgotten, replaced, archived.")
    sort: Literal["updated", "created", "importance", "relevance", "reads", "text"] = Field(
        "updated", description="What to sort by."
    )
    ascending: bool = Field(False, description="The lowest, oldest or first first.")
    limit: int = Field(50, ge=1, le=500, description="At most this many entries.")
    offset: int = Field(0, ge=0, le=MOST_NUMBER, description="How many entries to skip.")


class RowOut(VerbOutput):
    """An entry with its relevance now, and how often it was retrieved."""

    entry: EntryOut
    relevance: float
    reads: int


class TableOut(VerbOutput):
    """A page of the table. `facets` counts, for each condition, what passes all the other conditions."""

    rows: list[RowOut]
    total: int
    cut: bool = Field(description="There are so many entries that the oldest were not looked at.")
    facets: dict[str, dict[str, int]]


def table(call: Call, given: TableIn) -> TableOut:
    return TableOut.of(call.overseen(Capability.STATS).table(**given.model_dump()))


class NamesIn(VerbInput):
    kind: Literal["", "person", "thing"] = Field("", description="Only people, or only things.")
    near: str = Field("", max_length=200, description="A name: return it, and those that its entries name too.")
    limit: int = Field(60, ge=1, le=1000, description="At most this many names.")


class NameOut(VerbOutput):
    """A person or a thing, and how many entries in recall name it."""

    key: str
    name: str
    kind: str
    forms: list[str]
    entries: int


class NameLinkOut(VerbOutput):
    """Two names, by their keys, and how many entries name both."""

    one: str
    other: str
    entries: int


class NamesOut(VerbOutput):
    """Names that texts in recall have, guessed from how they are written: nobody has confirmed them."""

    names: list[NameOut]
    links: list[NameLinkOut]
    people: int
    things: int
    entries: int = Field(description="The entries in recall that were looked at.")
    cut: bool = Field(description="There are so many entries that the oldest were not looked at.")


def names(call: Call, given: NamesIn) -> NamesOut:
    found = call.overseen(Capability.STATS).names(**given.model_dump())
    return NamesOut(
        names=[
            NameOut(key=one.key, name=one.name, kind=one.kind, forms=list(one.forms), entries=len(one.texts))
            for one in found.names
        ],
        links=[NameLinkOut(one=link.one, other=link.other, entries=link.texts) for link in found.links],
        people=found.people,
        things=found.things,
        entries=found.entries,
        cut=found.cut,
    )


class ActivityIn(VerbInput):
    limit: int = Field(50, ge=1, le=200, description="At most this many.")


class SubjectOut(VerbOutput):
    """What something happened to. Its text is empty if it is not here any more."""

    id: str
    kind: str
    text: str


class HappeningOut(VerbOutput):
    """Something that somebody did, once or several times in a row.

    `did` is an action of the event log, or `given` if an agent got memories for a prompt.
    """

    at: datetime
    who: str
    surface: str
    yours: bool
    did: str
    times: int
    about: list[SubjectOut]
    memories: int
    tokens: int
    seq: int


class ActivityOut(VerbOutput):
    happened: list[HappeningOut]


def activity(call: Call, given: ActivityIn) -> ActivityOut:
    return ActivityOut.of({"happened": call.overseen(Capability.EVENTS).activity(given.limit)})


VERBS = (
    Verb(
        "memory_table",
        "Show all entries of every tier as a table: filtered, sorted, page by page, with counts for each filter.",
        Capability.STATS,
        "POST",
        f"{_WORKSPACE}/table",
        TableIn,
        TableOut,
        table,
        owner_only=True,
        tool=False,
    ),
    Verb(
        "name_list",
        "Show the people and things that most entries name, and which of them are named together.",
        Capability.STATS,
        "GET",
        f"{_WORKSPACE}/names",
        NamesIn,
        NamesOut,
        names,
        owner_only=True,
        tool=False,
    ),
    Verb(
        "activity_list",
        "Show what happened lately, newest first: what was written, and what agents were given.",
        Capability.EVENTS,
        "GET",
        f"{_WORKSPACE}/activity",
        ActivityIn,
        ActivityOut,
        activity,
        owner_only=True,
        tool=False,
    ),
)
