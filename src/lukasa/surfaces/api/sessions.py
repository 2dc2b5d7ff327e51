"""Verbs about recorded sessions, word for word: the owner's alone."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from pydantic import Field

from lukasa.model.grant import Capability
from lukasa.surfaces.api.shapes import PageOut
from lukasa.surfaces.api.verb import Call, Given, Told, Verb

_AT = "/workspaces/{workspace}/transcripts"


class TranscriptOut(Told):
    """A session that was taken in: how much of it is kept, and how much of that was turned into memory."""

    id: str
    key: str
    format: str
    title: str
    created_at: datetime
    updated_at: datetime
    started_at: datetime | None = None
    progress: str
    kept: int
    observed: int
    how: str
    detail: str


class TranscriptsOut(PageOut):
    transcripts: list[TranscriptOut]


class UtteranceOut(Told):
    id: str
    role: str
    text: str
    place: int
    at: datetime | None = None


class TranscriptSaidOut(PageOut):
    transcript: TranscriptOut
    said: list[UtteranceOut]


class TranscriptsIn(Given):
    progress: Literal["pending", "observed", "failed"] | None = None
    limit: int = Field(50, ge=1, le=500)
    after: str | None = Field(None, description="The `next` of the page before.")


def transcripts(call: Call, given: TranscriptsIn) -> TranscriptsOut:
    page = call.workspace.transcripts(progress=given.progress, limit=given.limit + 1, after=given.after)
    more = page[given.limit - 1].id if len(page) > given.limit else None
    return TranscriptsOut(transcripts=[TranscriptOut.of(one) for one in page[: given.limit]], next=more)


class SaidIn(Given):
    id: str = Field(description="Id of a transcript.")
    limit: int = Field(100, ge=1, le=1000)
    after: int = Field(0, ge=0, description="How many messages to leave out: the `next` of the page before.")


def said(call: Call, given: SaidIn) -> TranscriptSaidOut:
    found = call.workspace.said(given.id, start=given.after, limit=given.limit + 1)
    more = str(given.after + given.limit) if len(found) > given.limit else None
    about = TranscriptOut.of(call.workspace.transcript(given.id))
    return TranscriptSaidOut(transcript=about, said=[UtteranceOut.of(one) for one in found[: given.limit]], next=more)


VERBS = (
    Verb(
        "transcript_list",
        "List the recorded sessions that were taken in, the last first.",
        Capability.READ,
        "GET",
        _AT,
        TranscriptsIn,
        TranscriptsOut,
        transcripts,
        owner_only=True,
        tool=False,
    ),
    Verb(
        "transcript_get",
        "Show what was said in a recorded session, message by message.",
        Capability.READ,
        "GET",
        f"{_AT}/{{id}}",
        SaidIn,
        TranscriptSaidOut,
        said,
        owner_only=True,
        tool=False,
    ),
)
