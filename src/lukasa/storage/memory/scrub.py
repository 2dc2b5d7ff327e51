"""Scrubbing the store in dictionaries: what an extent holds, and the state without it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Protocol

from msgspec.structs import replace

from lukasa.model.conversation import Note
from lukasa.model.entry import Entry, NamedEntry, Version
from lukasa.model.events import Event, emptied, may_be_emptied, redaction
from lukasa.model.job import FINISHED, Job, JobState
from lukasa.model.scrub import Extent, Holdings, holds_words, manifest_digest
from lukasa.model.values import Lifetime
from lukasa.ports import EmbeddingModel, Vector
from lukasa.storage import rules
from lukasa.storage.memory.grants import Grants
from lukasa.storage.memory.pipeline import Background
from lukasa.storage.operations import Scrub

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


class State(Protocol):
    """The part of a store's state that a scrub reads and changes."""

    entries: dict[str, Entry]
    versions: dict[str, tuple[Version, ...]]
    vectors: dict[tuple[str, EmbeddingModel], Vector]
    named: dict[str, tuple[NamedEntry, ...]]
    notes: dict[tuple[str, str], Note]
    links: dict[str, tuple[str, ...]]
    background: Background
    access_rows: Grants
    events: tuple[Event, ...]
    unswept: frozenset[str]


def holdings(state: State, extent: Extent) -> Holdings:
    ids = [e.id for e in state.entries.values() if _reaches(extent, e)]
    names = [name for name, texts in state.named.items() if extent.named == texts[-1].tier]
    notes = [n for n in state.notes.values() if n.conversation == extent.conversation]
    work = state.background if extent.copies else Background()
    held = Holdings(
        entries=tuple((id, state.entries[id].version) for id in ids),
        named=tuple((name, state.named[name][-1].version) for name in names),
        notes=tuple((n.key, (n.updated_at - _EPOCH) // _MICROSECOND) for n in notes),
        transcripts=tuple((t.id, t.version) for t in work.transcripts.values()),
        amendments=tuple((a.id, a.version) for a in work.amendments.values()),
    )
    counts = {
        "versions": sum(len(state.versions[id]) for id in ids),
        "named_versions": sum(len(state.named[name]) for name in names),
        "vectors": sum(id in set(ids) for id, _ in state.vectors),
        "linked": sum(id in state.links for id in ids),
        "answers": sum(answer.status != 0 for answer in state.access_rows.answers.values()),
        "events": sum(map(_about(extent, held), state.events)),
    }
    if extent.copies:
        counts["utterances"] = len(work.utterances)
        counts["jobs"] = sum(_is_over(work, job) for job in work.jobs.values())
        counts["points"] = sum(holds_words(dict(point.metadata)) for point in work.points)
        counts["running"] = sum(job.state is JobState.RUNNING for job in work.jobs.values())
    return replace(held, counts=counts)


def _reaches(extent: Extent, entry: Entry) -> bool:
    if extent.scope is not None:
        return entry.scope == extent.scope
    own = entry.lifetime is Lifetime.CONVERSATION and entry.conversation == extent.conversation
    return own or entry.scope.value("conversation") == extent.conversation


def _is_over(work: Background, job: Job) -> bool:
    return job.state in FINISHED or (job.state is JobState.QUEUED and any(id == job.id for id, _ in work.steps))


def _about(extent: Extent, held: Holdings) -> Callable[[Event], bool]:
    """Which events are about what goes. A scrub's own event is never among them."""
    ids = {id for id, _ in (*held.entries, *held.transcripts, *held.amendments)}
    names = {name for name, _ in held.named}
    tier = extent.scope.tier if extent.scope is not None and extent.whole else None

    def about(event: Event) -> bool:
        of_talk = extent.conversation is not None and event.subject == extent.conversation
        return may_be_emptied(event) and (
            event.subject in ids
            or (event.action.startswith(("named.", "curated.")) and event.subject in names)
            or (of_talk and (extent.purges or event.action in ("note.written", "note.cleared")))
            or (event.action in ("entry.discarded", "entry.refused") and tier == event.detail.get("tier", ""))
            or (event.action == "action.linked" and not ids.isdisjoint(event.detail["entries"]))
        )

    return about


def take(state: State, operation: Scrub, forget: Callable[[str], None]) -> Scrub:
    """Remove everything, if it is what was expected; the answer says which events are to be emptied."""
    extent, held = operation.extent, holdings(state, operation.extent)
    rules.check_manifest(manifest_digest(extent, held), operation.expect)
    about = _about(extent, held)
    going = [event for event in state.events if about(event)]
    for id, _ in held.entries:
        state.links.pop(id, None)
        forget(id)
    for name, _ in held.named:
        del state.named[name]
    for key, _ in held.notes:
        del state.notes[extent.conversation or "", key]
    kept = {key: answer for key, answer in state.access_rows.answers.items() if not answer.status}
    state.access_rows = Grants(state.access_rows.grants, kept)
    if extent.copies:
        rules.check_idle(held.counts["running"])
        state.background = _without_copies(state.background)
    return replace(operation, redacted=redaction(going))


def _without_copies(work: Background) -> Background:
    left = {id: job for id, job in work.jobs.items() if not _is_over(work, job)}
    points = tuple(replace(p, metadata={}) if holds_words(dict(p.metadata)) else p for p in work.points)
    return Background(
        jobs=left,
        queued=work.queued,
        steps={place: output for place, output in work.steps.items() if place[0] in left},
        points=points,
        spending=work.spending,
    )


def seal(state: State, operation: Scrub) -> None:
    ranges = operation.redacted.ranges
    seqs = {seq for first, last in ranges for seq in range(first, last + 1)}
    state.events = tuple(emptied(event) if event.seq in seqs else event for event in state.events)
    if operation.extent.purges and operation.extent.conversation is not None:
        state.unswept |= {operation.extent.conversation}
