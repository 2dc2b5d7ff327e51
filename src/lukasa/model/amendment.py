"""Amendments: changes proposed to the curated document, from reflection to a person's decision."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from msgspec import Struct


class AmendmentState(StrEnum):
    PENDING = "pending"  # no tier of triage has decided yet
    REVIEW = "review"  # a person has to decide
    PROMOTED = "promoted"  # in the curated document
    MERGED = "merged"  # merged into an existing line
    REJECTED = "rejected"


OPEN_AMENDMENTS = frozenset({AmendmentState.PENDING, AmendmentState.REVIEW})


class Amendment(Struct, frozen=True):
    """A proposed change to the curated document.

    `section` is a category of the taxonomy, `change` the new line, `sources` the entries behind it.

    `decided_by` names the tier of triage or the person, and `reason` says why. `line` is the text in the document after
    the amendment was promoted or merged.
    """

    id: str
    section: str
    change: str
    confidence: float
    sources: tuple[str, ...]
    created_at: datetime
    updated_at: datetime
    state: AmendmentState = AmendmentState.PENDING
    decided_by: str = ""
    reason: str = ""
    line: str = ""
    version: int = 1
