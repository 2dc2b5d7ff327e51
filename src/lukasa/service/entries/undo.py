"""Undo: take back a change of memory by writing a new version, so that an undo can be undone too."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from lukasa.model.entry import Entry, Version
from lukasa.model.errors import Conflict, InvalidInput, InvalidTransition, LukasaError, NotFound
from lukasa.model.events import Event
from lukasa.model.ids import is_part_of_id, parse_id
from lukasa.model.job import Job
from lukasa.model.values import VISIBILITY, State, Visibility
from lukasa.service import corpus
from lukasa.service.call import CallContext, retry_on_conflict
from lukasa.service.curation import curated_document
from lukasa.service.entries import pages
from lukasa.service.entries.revise import (
    LeftAlone,
    Others,
    Reopened,
    as_before,
    commit,
    compared,
    final,
    reopen,
    retired_with,
    says_otherwise,
)
from lukasa.storage.operations import SaveEntry, Verdict
from lukasa.storage.port import Store

ACTION = "entry.undone"
_ON_THE_PAGE = ("promoted", "merged")  # what triage journals for a proposal that it put on the curated page


class Undone(Struct, frozen=True):
    """The entries as they are after an undo. `kept` lists entries that stay as they are, each with its reason.

    `named` is the page that has its text of before, and `document` the document.
    """

    entries: tuple[Entry, ...] = ()
    kept: tuple[LeftAlone, ...] = ()
    replaces: tuple[str, ...] = ()
    named: str = ""
    document: str = ""

    @property
    def ids(self) -> tuple[str, ...]:
        """The ids of the changed entries."""
        return tuple(entry.id for entry in self.entries)


Permit = Callable[[Entry, Entry], None]  # gets an entry as it is and as it would be, and raises to refuse


def undo(ctx: CallContext, what: str | int, cause: str, *, permit: Permit | None = None) -> Undone:
    """Take back the last change of an entry, that of an event, all changes of a job, a promotion or an acceptance."""
    if isinstance(what, bool) or not isinstance(what, str | int):
        raise InvalidInput(
            f"{what!r} is neither an id nor an event's number",
            fix="give the id of an entry or job, or the number of an event",
        )
    if isinstance(what, int):
        return _event(ctx, what, cause)
    key = ctx.entry_id(what) if is_part_of_id(what) else parse_id(what)
    try:
        ctx.entry(key)
    except NotFound:
        if corpus.submitting.one_of(ctx, key) is not None:
            return _acceptance(ctx, key, cause)
        job = None if ctx.tenancy or not ctx.is_author else ctx.local.job(key)
        if job is not None:
            return _job(ctx, job, cause)
        if ctx.tenancy or not ctx.is_author or not ctx.local.amendments([key]):
            raise
        return _promotion(ctx, key)
    return _entry(ctx, key, cause, permit=permit)


def _entry(ctx: CallContext, id: str, cause: str, expect: int | None = None, permit: Permit | None = None) -> Undone:
    def attempt() -> Undone:
        store, entry = ctx.entry(id)
        if expect is not None and entry.version != expect:
            raise InvalidTransition(
                f"entry {entry.id} has changed since, and is at version {entry.version}",
                fix=f"`lukasa undo {entry.id}` takes back its last change first",
            )
        versions = store.versions(entry.id)
        changed = _reversed(ctx, entry, versions, cause)
        if permit is not None:
            permit(entry, changed)
        back = _reopened(ctx, versions, changed, cause)
        replaced = _replaced(ctx, store, entry, changed, back)
        verdict = Verdict("undo", "undone", f"takes back {versions[-1].action} of version {entry.version}")
        save = SaveEntry(changed, entry.version, ACTION, cause, (verdict,))
        commit(ctx, store, changed, *replaced.retired, save, *replaced.beside, *back.of(store))
        other = ctx.account if store is ctx.local else ctx.local
        if back.of(other):
            ctx.apply(other, *back.of(other))
        entries = (changed, *(save.entry for _, save in back.saves))
        return Undone(entries, back.kept, replaced.replaces)

    return final(lambda: retry_on_conflict(attempt))


def _reversed(ctx: CallContext, entry: Entry, versions: list[Version], cause: str) -> Entry:
    """Return the entry without its last change. For a creation, forget the entry: its row stays."""
    ctx.require_trust(entry, "undo a change of")
    if len(versions) == 1:
        moved = entry.moved(State.FORGOTTEN, at=ctx.now, cause=cause, actor=str(ctx.actor))
        return replace(moved, version=entry.version + 1)
    before = versions[-2].entry
    ctx.require_trust(before, "undo a change of")
    if VISIBILITY[entry.state] is Visibility.HELD and VISIBILITY[before.state] is not Visibility.HELD:
        ctx.require_author("let in what is held")
    return as_before(before, entry, ctx, cause)


def _reopened(ctx: CallContext, versions: list[Version], changed: Entry, cause: str) -> Reopened:
    retired = retired_with(ctx, versions[-1], since=len(versions) == 1)
    staying = changed if changed.state is State.ACTIVE else None
    return reopen(ctx, retired, changed, staying, cause)


def _replaced(ctx: CallContext, store: Store, entry: Entry, changed: Entry, back: Reopened) -> Others:
    if not says_otherwise(entry, changed):
        return Others()
    others = compared(ctx, store, changed, None)
    return replace(others, retired=tuple(save for save in others.retired if save.entry.id not in back.ids))


def _event(ctx: CallContext, seq: int, cause: str) -> Undone:
    ctx.require_author("undo by an event's number")
    ctx.require_whole("undo by an event's number")
    event = next(iter(ctx.local.events(after=seq - 1, limit=1)), None)
    if event is None or event.seq != seq:
        raise NotFound(f"no event {seq} in this workspace", fix="`lukasa events list` shows the numbers")
    if event.action == "curated.changed":
        return Undone(named=curated_document.take_back(ctx, int(event.detail["version"])).name)
    if event.action == "named.edited":
        return _named(ctx, event)
    if event.action == "submission.accepted":
        return _acceptance(ctx, event.subject, cause)
    if not event.action.startswith("entry.") or not ctx.local.entries([event.subject], damaged=True):
        raise InvalidTransition(f"event {seq} ({event.action}) left nothing to take back", fix="choose another event")
    return _entry(ctx, event.subject, cause, expect=event.detail["version"])


def _named(ctx: CallContext, event: Event) -> Undone:
    """Restore a page to its text before an edit; later edits must be undone first."""
    versions = ctx.local.named_versions(event.subject)
    version = event.detail["version"]
    if versions[-1].version != version:
        raise Conflict(f"{event.subject} was edited again since", fix="undo the later edits first")
    pages.edit_named(ctx, event.subject, versions[-2].body, expect=version)
    curated_document.commit_now(ctx)
    return Undone(named=event.subject)


def _acceptance(ctx: CallContext, submission: str, cause: str) -> Undone:
    """Take a submission out of its document; it waits for a person again, and its memories hold again."""
    back = corpus.submitting.take_back(ctx, submission, cause)
    return Undone(back.entries, back.kept, document=back.document.id)


def _promotion(ctx: CallContext, proposal: str) -> Undone:
    """Take a promoted proposal off the curated page; it waits for a person again."""
    version = curated_document.promoted_in(ctx, proposal)
    if version is None:
        raise InvalidTransition(f"proposal {proposal} is not on the page", fix="`lukasa review` shows what waits")
    return Undone(named=curated_document.take_back(ctx, version).name)


def _job(ctx: CallContext, job: Job, cause: str) -> Undone:
    """Take back all changes of a job that nobody has changed since, the last first."""
    ctx.require_author("undo what a job did")
    steps = ctx.local.steps(job.id)
    changes = [change for output in steps.values() for change in _changes(output)]
    proposals = [step.partition(":")[2] for step, output in steps.items() if output in _ON_THE_PAGE]
    if not changes and not proposals:
        raise InvalidTransition(f"job {job.id} ({job.kind}) changed no entry", fix="choose another job")
    entries: dict[str, Entry] = {}
    kept: list[LeftAlone] = []
    replaced: list[str] = []
    named = ""
    for proposal in reversed(proposals):
        try:
            named = _promotion(ctx, proposal).named
        except LukasaError as error:
            kept.append(LeftAlone(proposal, error.message))
    for id, version in reversed(changes):
        try:
            done = _entry(ctx, id, cause, expect=version)
        except LukasaError as error:
            kept.append(LeftAlone(id, error.message))
            continue
        entries.update((entry.id, entry) for entry in done.entries)
        kept.extend(done.kept)
        replaced.extend(done.replaces)
    return Undone(tuple(entries.values()), tuple(kept), tuple(replaced), named)


def _changes(output: Any) -> list[tuple[str, int]]:
    """Return the changes that a journaled step lists: ids, each with the version that the step left."""
    listed = output.get("changed", ()) if isinstance(output, dict) else ()
    return [(str(id), int(version)) for id, version in listed]
