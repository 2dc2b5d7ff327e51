"""Stored answers of HTTP requests: a request that is sent twice under one idempotency key runs once."""

from __future__ import annotations

from datetime import datetime

from msgspec import Struct


class Answer(Struct, frozen=True):
    """The answer to a request. While `status` is 0, the request is still running, or its process died."""

    key: str
    request: str  # a digest of the request
    at: datetime
    status: int = 0
    body: str = ""
