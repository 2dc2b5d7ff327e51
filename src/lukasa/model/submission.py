"""Submissions: changes of a document that rest on memories, from the proposal to a person's decision.

Nothing goes from memory into the corpus by itself: a submission waits until a person accepts it.
"""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from lukasa.model.values import Origin

REMOVED = "a memory on which it rests was removed for good, and its words with it"


class How(StrEnum):
    """The way in which a submission changes its document."""

    WHOLE = "whole"  # the text replaces the whole document, or is a new one
    END = "end"  # the text comes behind what is there
    UNDER = "under"  # the text comes under a heading, behind what is there
    REPLACE = "replace"  # the text takes the place of a passage that is quoted


class SubmissionState(StrEnum):
    OPEN = "open"  # a person has to decide
    ACCEPTED = "accepted"
    REJECTED = "rejected"
    REMOVED = "removed"  # its words went with a memory that was removed for good


class Change(Struct, frozen=True):
    """A change of a text. `place` is the heading, or the passage that is replaced."""

    how: How
    text: str
    place: str = ""


class Run(Struct, frozen=True):
    """A stretch of text that both versions have, or only one of them; `cut` stands for a stretch that is left out."""

    kind: Literal["same", "removed", "added", "cut"]
    text: str


class Submission(Struct, frozen=True):
    """A change that somebody submits to a document, and what became of it.

    `base` is the version of the document that it was written for, 0 for a new document; `title` and `collection` are
    those of a new one. `derivable` lists the memories that the changed document makes unnecessary. `keys` are the scope
    keys under which it was made.

    `accepted` is the version of the document that it became, and `retired` lists the memories that were retired then.
    """

    id: str
    document: str
    title: str
    collection: str
    base: int
    change: Change
    memories: tuple[str, ...]
    derivable: tuple[str, ...]
    origin: Origin
    note: str
    created_at: datetime
    updated_at: datetime
    keys: dict[str, str] = {}
    state: SubmissionState = SubmissionState.OPEN
    decided_by: str = ""
    reason: str = ""
    edited: bool = False
    accepted: int = 0
    retired: tuple[str, ...] = ()
    version: int = 1

    @property
    def wordless(self) -> bool:
        """Whether its words are gone, with a memory that was removed for good."""
        return not self.change.text

    @property
    def action(self) -> str:
        """The name of the action that rests on its memories: the version of the document that it became."""
        return f"document {self.document}, version {self.accepted}"

    def without_words(self) -> Submission:
        """Return it without its words; what it became and on what it rested stays."""
        left = Change(self.change.how, "")
        if self.state is not SubmissionState.OPEN:
            return replace(self, title="", change=left, note="", reason="", version=self.version + 1)
        gone = {"state": SubmissionState.REMOVED, "reason": REMOVED}
        return replace(self, title="", change=left, note="", version=self.version + 1, **gone)


class Decision(Struct, frozen=True):
    """A person's acceptance. `text` replaces the submitted one; with `whole`, it is the whole document.

    `retire` lists the memories to retire, None for those that the submission names as made unnecessary. `onto` is the
    version of the document that the person looked at.
    """

    reason: str
    text: str | None = None
    whole: bool = False
    retire: tuple[str, ...] | None = None
    onto: int | None = None


class SubmissionMemory(Struct, frozen=True):
    """A memory on which a submission rests, as a row of its own."""

    submission: str
    entry: str
