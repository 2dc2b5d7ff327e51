"""Amendments: changes proposed to the curated document, from reflection to a person's decision."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from msgspec import Struct


class AmendmentState(StrEnum):
    PENDING = "pending"  # no tier of triage has decided yet
    REVIEW = "review"  # a person has to
    PROMOTED = "promoted"  # in the curated document
    MERGED = "merged"  # folded into a line that was there
    REJECTED = "rejected"


OPEN_AMENDMENTS = frozenset({AmendmentState.PENDING, AmendmentState.REVIEW})


class Amendment(Struct, frozen=True):
    """`section` is a category of the taxonomy, `change` the line proposed, `sources` the entries it rests on.

    `decided_by` names the tier of triage or the person; `reason` says why; `line` is the text that stands in the
    document once it was promoted or merged.
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
