"""Follow feeds: the worker asks each again and again, and takes each new item as a discovery.

What a feed holds when it is followed counts as seen; what comes later is new. A poll takes a few new items, the oldest
first, and leaves the others to the next one, which then comes sooner. A feed that cannot be read is asked more and more
rarely, and its watch says what is wrong.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable, Mapping
from datetime import timedelta
from functools import partial
from typing import Any

from msgspec.structs import replace

from lukasa.model.corpus import Watch
from lukasa.model.discovery import COLLECTION, Feed, FeedItem
from lukasa.model.errors import ChatUnavailable, Conflict, FetchFailed, InvalidInput, LukasaError, NotFound
from lukasa.model.ids import new_id
from lukasa.ports import Fetched
from lukasa.service import inputs
from lukasa.service.call import CallContext, retry_on_conflict
from lukasa.service.corpus import discovering, looking
from lukasa.service.corpus.discovering import Ask
from lukasa.service.corpus.locations import one_line
from lukasa.service.corpus.looking import Request
from lukasa.service.jobs import allowance
from lukasa.service.jobs.task import Task, ask
from lukasa.storage.operations import DropWatch, SaveWatch

EVERY = timedelta(hours=1)
SOON = timedelta(minutes=10)  # until the next poll, if there are more new items than one poll takes
LONGEST = timedelta(days=1)  # between two polls of a feed that cannot be read
AT_ONCE = 5  # new items of one poll
MOST = 200  # folders and feeds that a workspace follows
_SEEN = 1_000  # ids
_TOLD = 300  # characters of an error
_JITTER = 0.2  # so that feeds that were followed together are not asked together for ever


def follow(ctx: CallContext, url: str) -> Watch:
    """Follow a feed from now on: by its own address, or by that of a page that names one."""
    _require(ctx)
    asked = discovering.checked(url, "", "page", ())
    fetched, feed = _feed_at(ctx, asked.url)

    def attempt() -> Watch:
        known = ctx.local.watches()
        before = next((one for one in known if one.kind == "feed" and one.location == fetched.url), None)
        if before is not None:
            return before
        if len(known) >= MOST:
            raise InvalidInput(f"{MOST} folders and feeds are followed already", fix="end one: `lukasa feed remove`")
        seen = tuple(item.id for item in feed.items)[:_SEEN]
        due = ctx.now + _about(EVERY)
        new = Watch(new_id(), "feed", fetched.url, COLLECTION, ctx.now, due, ctx.now, seen=seen)
        new = replace(new, etag=fetched.etag, modified=fetched.modified)
        ctx.apply(ctx.local, SaveWatch(new, 0))
        return new

    return retry_on_conflict(attempt)


def _feed_at(ctx: CallContext, url: str) -> tuple[Fetched, Feed]:
    web = looking.web(ctx)
    fetched = web.fetch(url)
    if not web.is_feed(fetched):
        links = web.feed_links(fetched)
        if not links:
            raise InvalidInput(f"{url[:200]!r} is no feed, and names none", fix="give the address of a feed")
        # Like a redirect: a public page must not lead into networks that only the owner may name.
        fetched = web.fetch(links[0].url, public_only=fetched.public)
    return fetched, web.feed(fetched)


def followed(ctx: CallContext) -> list[Watch]:
    """Return the feeds that are followed, the oldest first."""
    _require(ctx)
    return [one for one in ctx.local.watches() if one.kind == "feed"]


def unfollow(ctx: CallContext, which: str) -> Watch:
    """Follow a feed no longer, by its address or its id. What was discovered stays."""

    def attempt() -> Watch:
        found = _one(ctx, which)
        ctx.apply(ctx.local, DropWatch(found.id, found.version))
        return found

    return retry_on_conflict(attempt)


def _one(ctx: CallContext, which: str) -> Watch:
    wanted = inputs.text(which, "feed", 4_096).strip()
    found = next((one for one in followed(ctx) if wanted in (one.id, one.location)), None)
    if found is None:
        raise NotFound(f"{wanted[:200]!r} is not followed", fix="`lukasa feed list` shows what is")
    return found


def poll(ctx: CallContext, which: str | None = None) -> dict[str, int]:
    """Ask a feed, or all of them, now."""
    wanted = followed(ctx) if which is None else [_one(ctx, which)]
    counts: dict[str, int] = {}
    for one in wanted:
        _count(counts, look(ctx, one, lambda item: discovering.asker(ctx)))
    return counts


def job(ctx: CallContext, task: Task) -> dict[str, Any]:
    """Ask the feeds whose time has come. A repetition skips the items that are kept already."""
    if not task.journaled("polled"):
        counts: dict[str, int] = {}
        for one in ctx.local.watches():
            if one.kind == "feed" and one.due_at <= ctx.now:
                _count(counts, look(ctx, one, partial(_asker, task)))
        task.commit("polled", counts, task.telemetry("poll.completed", metadata=counts))
    return dict(task.output("polled"))


def _count(counts: dict[str, int], more: Mapping[str, int]) -> None:
    for name, count in more.items():
        counts[name] = counts.get(name, 0) + count


def _asker(task: Task, item: FeedItem) -> Ask | None:
    """Return a function that asks the worker's model about an item, within the budget of background work."""
    chat = task.chat
    if chat is None:
        return None

    def asking(
        instructions: str, given: str, read: Callable[[Mapping[str, Any]], object]
    ) -> tuple[str, Mapping[str, Any]]:
        found: list[Mapping[str, Any]] = []

        def checked(data: Mapping[str, Any]) -> None:
            read(data)
            found.append(data)

        try:
            ask(task, f"note:{_key(item)}", instructions, given, checked)
        except allowance.NotNow as later:
            raise ChatUnavailable(later.reason) from later
        return chat.name, found[-1]

    return asking


def _key(item: FeedItem) -> str:
    return hashlib.sha256(item.id.encode("utf-8", "surrogateescape")).hexdigest()[:16]


def look(ctx: CallContext, one: Watch, asking: Callable[[FeedItem], Ask | None]) -> Mapping[str, int]:
    """Ask one feed now. What is wrong with it is noted in its watch, and raises nothing."""
    web = looking.web(ctx)
    try:
        fetched = web.fetch(one.location, etag=one.etag, modified=one.modified)
        if fetched.data is None:
            _note(ctx, replace(one, checked_at=ctx.now, due_at=ctx.now + _about(EVERY), failures=0, error=""))
            return {"unchanged": 1}
        feed = web.feed(fetched)
    except LukasaError as error:
        return _failed(ctx, one, error)
    seen = set(one.seen)
    new = [item for item in feed.items if item.id not in seen]
    taken = list(reversed(new))[:AT_ONCE]
    counts = {"polled": 1}
    for item in taken:
        _count(counts, {_take(ctx, one, item, fetched.public, asking(item)): 1})
    left = len(new) - len(taken)
    later = {item.id for item in new} - {item.id for item in taken}
    ids = dict.fromkeys((*(item.id for item in feed.items if item.id not in later), *one.seen))
    told = replace(
        one,
        checked_at=ctx.now,
        due_at=ctx.now + _about(SOON if left else EVERY),
        # The items that are left must come again, so the server may not say that nothing changed.
        etag="" if left else fetched.etag,
        modified="" if left else fetched.modified,
        failures=0,
        error="",
        seen=tuple(ids)[:_SEEN],
    )
    _note(ctx, told)
    return {**counts, "left": left} if left else counts


def _take(ctx: CallContext, one: Watch, item: FeedItem, public: bool, asking: Ask | None) -> str:
    """Take a new item as a discovery; return what became of it."""
    url = item.url or f"{one.location}#{_key(item)}"
    if discovering.is_known(ctx, url):
        return "known"
    try:
        discovering.discover(ctx, Request(url, kind="page", item=item, public_only=public), asking)
    except (Conflict, InvalidInput) as error:
        ctx.note(failed=one_line(error.message)[:_TOLD])
        return "failed"
    return "added"


def _failed(ctx: CallContext, one: Watch, error: LukasaError) -> Mapping[str, int]:
    failures = one.failures + 1
    pause = min(EVERY * 2 ** min(failures, 10), LONGEST)
    asked = error.retry_after if isinstance(error, FetchFailed) else None
    if asked is not None:
        pause = max(pause, min(timedelta(seconds=asked), LONGEST))
    told = replace(one, checked_at=ctx.now, due_at=ctx.now + _about(pause), failures=failures)
    _note(ctx, replace(told, error=error.message[:_TOLD]))
    return {"failed": 1}


def _about(pause: timedelta) -> timedelta:
    """Return a pause, or somewhat more."""
    return pause * (1 + _JITTER * random.random())


def _note(ctx: CallContext, told: Watch) -> None:
    """Store what is known of a feed now, unless it is followed no longer or another poll was faster."""
    try:
        ctx.apply(ctx.local, SaveWatch(told, told.version))
    except (Conflict, NotFound):
        return


def _require(ctx: CallContext) -> None:
    ctx.require_author("follow feeds")
    ctx.require_whole("follow feeds")
