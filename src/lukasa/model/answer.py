"""Answers kept for a while, so that a request sent twice under one key is done once."""

from __future__ import annotations

from datetime import datetime

from msgspec import Struct


class Answer(Struct, frozen=True):
    """What a request was answered. Until it is, `status` is 0: somebody is at it, or died at it."""

    key: str
    request: str  # a digest of what was asked
    at: datetime
    status: int = 0
    body: str = ""
