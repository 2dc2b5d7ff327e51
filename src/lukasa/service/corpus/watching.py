"""Follow folders: the worker looks at each again and again, and takes over what changed, came and went.

A folder that is not there, or is empty all at once, may be a disk that is not mounted. Its documents stay, and its
watch says what is wrong. A file that could not be read is tried again when it changes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from msgspec.structs import replace

from lukasa.model.corpus import AddedFiles, FoundFile, FoundFiles, Watch
from lukasa.model.errors import Conflict, InvalidInput, LukasaError, NotFound
from lukasa.model.ids import new_id
from lukasa.service import inputs
from lukasa.service.call import CallContext, retry_on_conflict
from lukasa.service.corpus import adding
from lukasa.service.corpus.adding import Shelf, Tell
from lukasa.service.corpus.locations import files_of, is_url
from lukasa.service.jobs.task import Task
from lukasa.storage.operations import DropWatch, SaveWatch

EVERY = timedelta(minutes=5)
LONGEST = timedelta(hours=6)  # between two looks at a folder that cannot be read
MOST = 200  # watches of a workspace
_FAILED = 1_000  # files that could not be read and are not tried again until they change
_TOLD = 300  # characters of an error


def watch(
    ctx: CallContext, folder: str, collection: str | None = None, tell: Tell = adding.silent
) -> tuple[Watch, AddedFiles]:
    """Follow a folder from now on, and add what is in it. The worker then looks every few minutes."""
    _require(ctx)
    if is_url(folder):
        raise InvalidInput(f"{folder[:200]!r} is an address and no folder", fix="name a folder of this machine")
    found = files_of(ctx).find(folder)
    if not found.is_folder:
        raise InvalidInput(f"{folder[:200]!r} is no folder", fix="add a single file with `lukasa corpus add`")
    named = None if collection is None else inputs.one_line(collection, "collection")

    def attempt() -> Watch:
        known = ctx.local.watches()
        before = next((one for one in known if one.kind == "folder" and one.location == found.location), None)
        if before is None and len(known) >= MOST:
            raise InvalidInput(f"{MOST} folders and feeds are followed already", fix="end one: `lukasa corpus unwatch`")
        new = before or Watch(new_id(), "folder", found.location, named or "documents", ctx.now, ctx.now)
        new = replace(new, collection=named or new.collection, due_at=ctx.now + EVERY, failures=0, error="", seen=())
        ctx.apply(ctx.local, SaveWatch(new, before.version if before else 0))
        return replace(new, version=(before.version if before else 0) + 1)

    begun = retry_on_conflict(attempt)
    return _look(ctx, begun, found, tell)


def unwatch(ctx: CallContext, folder: str) -> Watch:
    """Follow a folder no longer, by its path or the id of its watch. Its documents stay."""
    _require(ctx)
    wanted = inputs.label(folder, "folder") if len(folder) <= inputs.MAX_LABEL else folder
    real = "" if is_url(wanted) else files_of(ctx).absolute(wanted)

    def attempt() -> Watch:
        found = next(
            (one for one in ctx.local.watches() if wanted in (one.id, one.location) or one.location == real), None
        )
        if found is None:
            raise NotFound(f"{wanted[:200]!r} is not followed", fix="`lukasa corpus watches` shows what is")
        ctx.apply(ctx.local, DropWatch(found.id, found.version))
        return found

    return retry_on_conflict(attempt)


def watches(ctx: CallContext) -> list[Watch]:
    """Return what the worker follows, the oldest first."""
    ctx.require_author("list what is followed")
    return ctx.local.watches()


def follow(ctx: CallContext, task: Task) -> dict[str, Any]:
    """Look at the folders whose time has come, and take over what changed in them."""
    if not task.journaled("followed"):
        counts: dict[str, int] = {}
        for one in ctx.local.watches():
            if one.kind == "folder" and one.due_at <= ctx.now:
                for outcome, count in look(ctx, one).items():
                    counts[outcome] = counts.get(outcome, 0) + count
        task.commit("followed", counts, task.telemetry("follow.completed", metadata=counts))
    return dict(task.output("followed"))


def look(ctx: CallContext, one: Watch) -> Mapping[str, int]:
    """Look at one folder now. What is wrong with it is noted in its watch, and raises nothing."""
    try:
        found = files_of(ctx).find(one.location)
        if not found.is_folder:
            raise NotFound(f"{one.location[:200]!r} is no folder any more", fix="check the path")
        if not found.files and not found.unreadable and ctx.local.sources_below(one.location):
            raise NotFound(
                f"{one.location[:200]!r} is empty; its documents stay, in case it is not mounted",
                fix="`lukasa corpus add FOLDER --prune` removes them",
            )
        _, done = _look(ctx, one, found)
        return {str(outcome): count for outcome, count in done.counts.items()}
    except LukasaError as error:
        failures = one.failures + 1
        until = ctx.now + min(EVERY * 2 ** min(failures, 20), LONGEST)
        _note(ctx, replace(one, checked_at=ctx.now, due_at=until, failures=failures, error=error.message[:_TOLD]))
        return {"failed": 1}


def _look(ctx: CallContext, one: Watch, found: FoundFiles, tell: Tell = adding.silent) -> tuple[Watch, AddedFiles]:
    """Take over what a folder holds now, and note what was seen."""
    before = set(one.seen)
    tried = replace(found, files=tuple(file for file in found.files if _mark(file) not in before))
    done = adding.add_found(ctx, tried, Shelf(fallback=one.collection), tell=tell)
    failed = {outcome.location: outcome.error for outcome in done.of("failed")}
    seen = sorted(_mark(file) for file in found.files if file.location in failed or _mark(file) in before)
    error = one.error if seen else ""  # of those that failed before
    if failed:
        error = f"{max(len(seen), len(failed)):,} could not be read: {next(iter(failed.values()))}"[:_TOLD]
    told = replace(one, checked_at=ctx.now, due_at=ctx.now + EVERY, failures=0, error=error, seen=tuple(seen[:_FAILED]))
    return _note(ctx, told), done


def _mark(file: FoundFile) -> str:
    """Return what stands for a file as it is now."""
    return hashlib.sha256(f"{file.location}\0{file.stamp}".encode("utf-8", "surrogateescape")).hexdigest()[:24]


def _note(ctx: CallContext, told: Watch) -> Watch:
    """Store what is known of a watch now, unless it ended or another look was faster."""
    try:
        ctx.apply(ctx.local, SaveWatch(told, told.version))
    except (Conflict, NotFound):
        return told
    return replace(told, version=told.version + 1)


def _require(ctx: CallContext) -> None:
    ctx.require_author("follow folders")
    ctx.require_whole("follow folders")
