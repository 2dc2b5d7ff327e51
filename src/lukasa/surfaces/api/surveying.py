"""Verbs for whoever looks after a workspace: what is in it at a glance, and the words that an entry rests on."""

from __future__ import annotations

from datetime import date
from typing import Any

from lukasa.model.grant import Capability
from lukasa.surfaces.api.entries import AT, EntryIn
from lukasa.surfaces.api.shapes import EntryOut
from lukasa.surfaces.api.verb import Call, Nothing, Told, Verb


class TierCountOut(Told):
    """A tier with its entries by state; `needs` are the keys that must be chosen to look into it."""

    name: str
    home: str
    description: str
    needs: list[str]
    states: dict[str, int]


class DayOut(Told):
    day: date
    counts: dict[str, int]


class FadingOut(Told):
    """An entry that time takes from: its relevance now, and a month ahead if nobody asks for it."""

    entry: EntryOut
    now: float
    ahead: float


class VectorsOut(Told):
    model: str
    waiting: int


class SurveyOut(Told):
    tiers: list[TierCountOut]
    growth: list[DayOut]
    fading: list[FadingOut]
    held: int
    proposals: int
    jobs: dict[str, int]
    vectors: VectorsOut | None = None
    events: int


def overview(call: Call, given: Nothing) -> SurveyOut:
    return SurveyOut.of(call.overseen(Capability.STATS).survey())


class SaidOut(Told):
    quote: dict[str, Any]
    text: str
    role: str
    title: str


class EvidenceOut(Told):
    quotes: list[SaidOut]


def evidence(call: Call, given: EntryIn) -> EvidenceOut:
    return EvidenceOut.of({"quotes": call.workspace.evidence(given.id)})


VERBS = (
    Verb(
        "workspace_overview",
        "Show a workspace at a glance: entries by tier and state, how it grew, what fades next, what waits.",
        Capability.STATS,
        "GET",
        "/workspaces/{workspace}/overview",
        Nothing,
        SurveyOut,
        overview,
        owner_only=True,
        tool=False,
    ),
    Verb(
        "memory_evidence",
        "Show the words that an entry rests on, as they were said in a session.",
        Capability.READ,
        "GET",
        f"{AT}/{{id}}/evidence",
        EntryIn,
        EvidenceOut,
        evidence,
        owner_only=True,
        tool=False,
    ),
)
