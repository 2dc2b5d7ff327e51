"""Verbs about the review inbox. A grant may see what waits within its reach; deciding is the owner's alone."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from pydantic import Field

from lukasa.model.errors import NotFound
from lukasa.model.grant import Capability
from lukasa.surfaces.api.shapes import EntryOut
from lukasa.surfaces.api.verb import Call, Given, Told, Verb

_AT = "/workspaces/{workspace}/review"


class WordsOut(Told):
    """Words that something rests on; without text where the message is no longer kept."""

    quote: dict[str, Any]
    text: str
    role: str
    title: str


class HeldOut(Told):
    entry: EntryOut
    why: str
    quotes: list[WordsOut]


class AmendmentOut(Told):
    """A change proposed to the curated document."""

    id: str
    section: str
    change: str
    confidence: float
    sources: list[str]
    created_at: datetime
    updated_at: datetime
    state: str
    decided_by: str
    reason: str
    line: str
    version: int


class ProposalOut(Told):
    amendment: AmendmentOut
    why: str
    sources: list[EntryOut]
    quotes: list[WordsOut]


class InboxOut(Told):
    entries: list[HeldOut]
    proposals: list[ProposalOut]


class DecidedOut(Told):
    id: str
    outcome: str
    entry: EntryOut | None = None
    amendment: AmendmentOut | None = None
    replaces: list[str]


class InboxIn(Given):
    limit: int = Field(100, ge=1, le=1000)


def inbox(call: Call, given: InboxIn) -> InboxOut:
    found = InboxOut.of(call.overseen(Capability.REVIEW).inbox(limit=given.limit))
    return found if call.given.is_owner else _within_reach(call, found)


def _within_reach(call: Call, found: InboxOut) -> InboxOut:
    """What a grant may see of it: entries as it could read them, and proposals without what they rest on."""
    entries = [
        HeldOut(entry=held.entry, why=held.why, quotes=[]) for held in found.entries if _sees(call, held.entry.id)
    ]
    proposals = [
        ProposalOut(amendment=p.amendment, why=p.why, sources=[s for s in p.sources if _sees(call, s.id)], quotes=[])
        for p in found.proposals
        if all(_sees(call, id) for id in p.amendment.sources)
    ]
    return InboxOut(entries=entries, proposals=proposals)


def _sees(call: Call, id: str) -> bool:
    try:
        call.workspace.get(id)
    except NotFound:
        return False
    return True


class DecideIn(Given):
    id: str = Field(description="Id of a held entry or a proposal.")
    reason: str | None = Field(None, description="Why, for the log.")


class ReviewEditIn(DecideIn):
    text: str = Field(description="The words to let it in with, in place of its own.")


def approve(call: Call, given: DecideIn) -> DecidedOut:
    return DecidedOut.of(call.workspace.approve(given.id, **_said(given)))


def edit(call: Call, given: ReviewEditIn) -> DecidedOut:
    return DecidedOut.of(call.workspace.approve(given.id, text=given.text, **_said(given)))


def reject(call: Call, given: DecideIn) -> DecidedOut:
    return DecidedOut.of(call.workspace.reject(given.id, **_said(given)))


def _said(given: DecideIn) -> dict[str, str]:
    return {"reason": given.reason} if given.reason is not None else {}


VERBS = (
    Verb(
        "review_list",
        "Show what waits for the owner's decision: memories that were held, and changes proposed to the curated page. "
        "None of it is recalled until it is approved. Tell the owner about it; do not act on it.",
        Capability.REVIEW,
        "GET",
        _AT,
        InboxIn,
        InboxOut,
        inbox,
    ),
    Verb(
        "review_approve",
        "Let a held entry in, or put a proposal on the curated page. A person decides, on their own surface.",
        Capability.REVIEW,
        "POST",
        f"{_AT}/{{id}}/approve",
        DecideIn,
        DecidedOut,
        approve,
        mutates=True,
        owner_only=True,
        tool=False,
    ),
    Verb(
        "review_edit",
        "Let something in that waits, in other words than its own.",
        Capability.REVIEW,
        "POST",
        f"{_AT}/{{id}}/edit",
        ReviewEditIn,
        DecidedOut,
        edit,
        mutates=True,
        owner_only=True,
        tool=False,
    ),
    Verb(
        "review_reject",
        "Set something aside that waits. It stays, and can be brought back.",
        Capability.REVIEW,
        "POST",
        f"{_AT}/{{id}}/reject",
        DecideIn,
        DecidedOut,
        reject,
        mutates=True,
        owner_only=True,
        tool=False,
    ),
)
