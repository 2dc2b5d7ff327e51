"""Idempotency keys: a request sent twice under one key is done once, and answered the same.

The key is taken before the work begins and the answer kept after it, both in the database of the workspace. Work that
fails gives the key back. If the process dies in between, the key is free again after a minute.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from datetime import timedelta

from lukasa.model.answer import Answer
from lukasa.model.errors import Conflict
from lukasa.service.admin.access import Credential
from lukasa.service.call import CallContext
from lukasa.service.jobs.handlers import KEEP_ANSWERS
from lukasa.storage.operations import DropAnswer, ForgetAnswers, SaveAnswer
from lukasa.surfaces.http.problems import Problem

ABANDONED = timedelta(minutes=1)
LONGEST = 200


def checked_key(key: str) -> str:
    if not 1 <= len(key) <= LONGEST or not key.isprintable() or not key.isascii():
        raise Problem(422, "invalid-input", f"a key has 1 to {LONGEST} printable characters", fix="use a UUID")
    return key


def key_of(given: Credential, method: str, path: str, key: str) -> str:
    """Keys belong to whoever sends them, and to one path."""
    return _digest("\n".join((given.holder, method, path, key)))


def once(ctx: CallContext, key: str, request: str, work: Callable[[], tuple[int, str]]) -> tuple[int, str, bool]:
    """Status and body, and whether they were given before. `request` says all that was asked."""
    asked, store, now = _digest(request), ctx.local, ctx.now
    before = store.answer(key)
    if before is None or not before.status:
        try:
            ctx.apply(store, ForgetAnswers(now - KEEP_ANSWERS), SaveAnswer(Answer(key, asked, now), now - ABANDONED))
        except Conflict:
            before = store.answer(key)
        else:
            return (*_answered(ctx, Answer(key, asked, now), work), False)
    if before is None or (before.request == asked and not before.status):
        raise Problem(409, "in-progress", "a request with this key is being done", fix="ask again in a moment")
    if before.request != asked:
        raise Problem(422, "key-reused", "this key belongs to another request", fix="use a new key for each request")
    return before.status, before.body, True


def _answered(ctx: CallContext, taken: Answer, work: Callable[[], tuple[int, str]]) -> tuple[int, str]:
    try:
        status, body = work()
    except BaseException:
        ctx.apply(ctx.local, DropAnswer(taken.key))
        raise
    ctx.apply(ctx.local, SaveAnswer(Answer(taken.key, taken.request, taken.at, status, body)))
    return status, body


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
