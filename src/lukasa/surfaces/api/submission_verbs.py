"""Verbs for the submit boundary: changes of documents that rest on memories, and wait for a person.

Whoever may write memory may submit; only the owner decides, with the verbs of the review inbox.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Literal

from pydantic import Field

from lukasa.model.grant import Capability
from lukasa.service.workspace import Workspace
from lukasa.surfaces.api.shapes import EntryOut, OriginOut, WordsOut
from lukasa.surfaces.api.verb import Call, SessionAnswer, SessionTool, SessionTurn, Verb, VerbInput, VerbOutput

_SUBMISSIONS = "/workspaces/{workspace}/corpus/submissions"


class ChangeOut(VerbOutput):
    """How a text goes into a document. `place` is a heading, or the passage that is replaced."""

    how: Literal["whole", "end", "under", "replace"]
    place: str
    text: str


class SubmissionOut(VerbOutput):
    """A change that is submitted to a document, and what became of it.

    `base` is the version that it was written for, 0 for a new document; `accepted` is the version that it became. Its
    words are gone if a memory on which it rests was removed for good.
    """

    id: str
    document: str
    title: str
    collection: str
    base: int
    change: ChangeOut
    memories: list[str]
    derivable: list[str]
    origin: OriginOut
    note: str
    keys: dict[str, str]
    created_at: datetime
    updated_at: datetime
    state: Literal["open", "accepted", "rejected", "removed"]
    decided_by: str
    reason: str
    edited: bool
    accepted: int
    retired: list[str]
    version: int


class RunOut(VerbOutput):
    """A stretch of text that both versions have, or one of them; `cut` stands for a stretch that is left out."""

    kind: Literal["same", "removed", "added", "cut"]
    text: str


class ShelvedOut(VerbOutput):
    """A document without its text."""

    id: str
    title: str
    origin: str
    lifecycle: str
    weight: float
    standing: str
    version: int
    updated_at: datetime
    collection: str
    removed: bool


class LeftOut(VerbOutput):
    id: str
    reason: str


class OpenSubmissionOut(VerbOutput):
    """A submission that waits: the document as it is now, what would change in it, and what has changed in it since.

    `kept` names memories that are not what they were, or that an acceptance does not retire; `retires` those that it
    does. `source` is the file or address that the document was read from.
    """

    submission: SubmissionOut
    why: str
    document: ShelvedOut | None = None
    changes: list[RunOut] = Field(default=[])
    since: list[RunOut] = Field(default=[])
    trouble: str
    memories: list[EntryOut]
    kept: list[LeftOut] = Field(default=[])
    retires: list[str] = Field(default=[])
    quotes: list[WordsOut] = Field(default=[])
    source: str = ""


class SubmitIn(VerbInput):
    document: str = Field(description="Id of a document, or a new one.")
    memories: list[str] = Field(description="Ids of the entries that the change rests on.", max_length=100)
    text: str = Field("", description="The text; by default, the memories' own words.")
    under: str = Field("", description="Put the text under this heading instead of the end; `Install › Linux` works.")
    replaces: str = Field("", description="Put the text in place of this passage, quoted from the document.")
    whole: bool = Field(False, description="The text is the whole new document.")
    derivable: list[str] = Field(
        default=[], description="Those memories that nobody needs any more once the document says it.", max_length=100
    )
    title: str = Field("", description="Title of a new document.")
    collection: str = Field("documents", description="Collection of a new document.")
    note: str = Field("", description="Why, for the person who decides.")


class SubmissionsIn(VerbInput):
    document: str | None = Field(None, description="Only those for this document.")
    memory: str | None = Field(None, description="Only those that rest on this entry.")
    state: Literal["open", "accepted", "rejected", "removed"] | None = Field(None, description="Only in this state.")
    limit: int = Field(50, ge=1, le=1000, description="At most this many.")


class SubmissionsOut(VerbOutput):
    submissions: list[SubmissionOut]


def submit(call: Call, given: SubmitIn) -> SubmissionOut:
    return SubmissionOut.of(call.workspace.submit(**given.model_dump()))


def submissions(call: Call, given: SubmissionsIn) -> SubmissionsOut:
    return SubmissionsOut.of({"submissions": call.workspace.submissions(**given.model_dump())})


def _submit_in_session(world: Workspace, given: Mapping[str, Any], turn: SessionTurn) -> SessionAnswer:
    made = world.submit(**given)
    return {"id": made.id, "state": str(made.state), "document": made.document, "about": "a person decides"}, ()


VERBS = (
    Verb(
        "corpus_submit",
        "Propose that something you remember goes into a document: at its end, under a heading, in place of a passage, "
        "or as a new document. A person decides; until then nothing changes. Name the entries that it rests on.",
        Capability.WRITE,
        "POST",
        _SUBMISSIONS,
        SubmitIn,
        SubmissionOut,
        submit,
        mutates=True,
        status=201,
        session=SessionTool.of(
            SubmitIn,
            _submit_in_session,
            "document",
            "memories",
            "text",
            "under",
            "replaces",
            "whole",
            "derivable",
            "note",
        ),
    ),
    Verb(
        "corpus_submissions",
        "List changes that were submitted to documents, and what a person decided, with the reason.",
        Capability.READ,
        "GET",
        _SUBMISSIONS,
        SubmissionsIn,
        SubmissionsOut,
        submissions,
    ),
)
