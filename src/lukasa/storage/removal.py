"""Removing for good: what an extent holds, taking all of it, and emptying the events about it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from msgspec.structs import replace

from lukasa.model.disclosure import Disclosure, without
from lukasa.model.events import Event, EventDraft, may_be_emptied, redaction
from lukasa.model.job import JobState
from lukasa.model.scrub import Extent, Holdings, KeptRow, Versioned, manifest_digest
from lukasa.model.submission import SubmissionState
from lukasa.model.sync import thing_of
from lukasa.model.timestamps import micros
from lukasa.storage import erasing, job_queue, revision_rows, row_rules, tables
from lukasa.storage.backend import Rows
from lukasa.storage.operations import DropItem, DropWorkspace, Scrub, describe
from lukasa.storage.tables import Purged

FILES = Purged("")  # says that the engine's files may still hold what was scrubbed
_NOTES = ("note.written", "note.cleared")
_REFUSALS = ("entry.discarded", "entry.refused")
_LINKED = "action.linked"
_EVER = datetime(9999, 1, 1, tzinfo=UTC)
_SUBMISSION = "submission."
_SUBMISSIONS = tuple(f"{_SUBMISSION}{state}" for state in SubmissionState)


def holdings(rows: Rows, extent: Extent) -> Holdings:
    """Everything that a scrub of this extent would take now."""
    held = _listed(rows, extent)
    ids = [id for id, _ in held.entries]
    traces = rows.entry_traces(ids)
    counts = {
        "versions": traces.versions,
        "named_versions": rows.count(tables.VERSIONS_OF_NAMED_AMONG, [name for name, _ in held.named]),
        "vectors": traces.vectors,
        "linked": traces.linked,
        "answers": rows.count(tables.ANSWERED, 0),
        "events": len(_events(rows, extent, held)),
        "disclosures": len(_disclosed(rows, extent, held)),
        "submissions": len({one.submission for one in rows.select(tables.SUBMISSIONS_ON, ids)}),
    }
    if extent.erases:
        counts = {**erasing.mentions(rows, extent.words).counts(), **counts}
        counts["items"] = len(extent.items)
    if extent.copies:
        counts["submissions"] = rows.count(tables.OLDEST_SUBMISSIONS, None, None, None)
        counts["utterances"] = rows.count(tables.ALL_UTTERANCES)
        counts["jobs"] = len(job_queue.over(rows))
        counts["points"] = rows.count_wordy_telemetry()
        counts["running"] = rows.count(tables.JOBS_IN_STATE, JobState.RUNNING)
    return replace(held, counts=counts)


def _listed(rows: Rows, extent: Extent) -> Holdings:
    documents: Versioned = ()
    if extent.erases:
        found, documents = erasing.listed(rows, extent)
    else:
        found = rows.entries_within(extent)
    named = rows.select(tables.NAMED_OF_TIER, extent.named) if extent.named is not None else []
    notes = rows.select(tables.NOTES_OF, extent.conversation, None) if extent.conversation is not None else []
    transcripts = rows.select(tables.NEWEST_TRANSCRIPTS, None) if extent.copies else []
    amendments = rows.select(tables.OLDEST_AMENDMENTS, None, None) if extent.copies else []
    linked = {} if extent.linked else rows.linked_entries([id for id, _ in found])
    return Holdings(
        entries=tuple(pair for pair in found if pair[0] not in linked),
        kept=tuple(KeptRow(id, linked[id]) for id, _ in found if id in linked),
        named=tuple((page.name, page.version) for page in named),
        notes=tuple((note.key, micros(note.updated_at)) for note in notes),
        transcripts=tuple((transcript.id, transcript.version) for transcript in transcripts),
        amendments=tuple((amendment.id, amendment.version) for amendment in amendments),
        documents=documents,
    )


def _events(rows: Rows, extent: Extent, held: Holdings) -> list[Event]:
    """The events about what goes, in order. A scrub's own event is never among them, and none is emptied twice."""
    ids = {id for id, _ in (*held.entries, *held.transcripts, *held.amendments, *held.documents)}
    names = {name for name, _ in held.named}
    tier = extent.scope.tier if extent.scope is not None and extent.whole else None

    def about(event: Event) -> bool:
        of_talk = extent.conversation is not None and event.subject == extent.conversation
        return may_be_emptied(event) and (
            event.subject in ids
            or (event.action.startswith(("named.", "curated.")) and event.subject in names)
            or (of_talk and (extent.purges or event.action in _NOTES))
            or (event.action in _REFUSALS and tier == event.detail.get("tier", ""))
            or (event.action == _LINKED and not ids.isdisjoint(event.detail["entries"]))
            or (event.action.startswith(_SUBMISSION) and not ids.isdisjoint(event.detail["memories"]))
        )

    talk = [] if extent.conversation is None else [extent.conversation]
    found = rows.select(tables.EVENTS_OF_SUBJECTS, [*ids, *names, *talk])
    found += rows.select(tables.EVENTS_OF_ACTIONS, (*_REFUSALS, _LINKED, *_SUBMISSIONS))
    by_number = {event.seq: event for event in found if about(event)}
    if extent.erases:
        by_number |= {event.seq: event for event in erasing.events(rows, extent.words)}
    return [by_number[seq] for seq in sorted(by_number)]


def _disclosed(rows: Rows, extent: Extent, held: Holdings) -> list[Disclosure]:
    """The disclosures to a conversation that goes, and those of entries and pages that go."""
    ids, names = {id for id, _ in held.entries}, {name for name, _ in held.named}
    return [
        one
        for one in rows.select(tables.OLDEST_DISCLOSURES, None)
        if (extent.conversation is not None and one.conversation == extent.conversation)
        or any(item.id in (names if item.page else ids) for item in one.items)
    ]


def _undisclose(rows: Rows, extent: Extent, held: Holdings) -> None:
    """Remove what goes from the ledger: a disclosure of other entries too keeps those."""
    found = {one.at for one in _disclosed(rows, extent, held)}
    if not found:
        return
    ids, names = {id for id, _ in held.entries}, {name for name, _ in held.named}
    then = rows.select(tables.DISCLOSURES_AT, list(found))
    rows.delete(tables.DISCLOSURES_AT, list(found))
    left = [without(one, ids, names) for one in then if one.conversation != extent.conversation]
    rows.insert(tables.DISCLOSURES, [one for one in left if one is not None])


def take(rows: Rows, operation: Scrub, secret: bytes) -> tuple[Scrub, list[EventDraft | None]]:
    """Remove everything, if it is what was expected.

    The answer says which events are to be emptied, and has the events of an erasure: what it left of pages and
    documents, and which items are gone.
    """
    extent, held = operation.extent, _listed(rows, operation.extent)
    row_rules.check_manifest(manifest_digest(extent, held), operation.expect)
    if extent.copies:
        row_rules.check_idle(rows.count(tables.JOBS_IN_STATE, JobState.RUNNING))
    going = _events(rows, extent, held)
    ids = [id for id, _ in held.entries]
    _undisclose(rows, extent, held)
    stay = {entry.id for entry in operation.restated}
    rows.unlink_entries(ids)
    drop_entries(rows, [id for id in ids if id not in stay])
    names = [name for name, _ in held.named]
    rows.delete(tables.VERSIONS_OF_NAMED_AMONG, names)
    rows.delete(tables.NAMED_AMONG, names)
    rows.delete(tables.ANSWERED, 0)
    revision_rows.erase_shown(rows, [thing_of(name) for name in names])
    if extent.conversation is not None:
        rows.delete(tables.NOTES_OF, extent.conversation, None)
        revision_rows.erase_about(rows, [extent.conversation])
    if extent.copies:
        _drop_copies(rows)
        revision_rows.erase_kinds(rows, ("transcript", "utterance", "amendment"))
    drafts: list[EventDraft | None] = []
    if extent.erases:
        for place in extent.items:
            item = rows.stored_item(place)
            if item is not None:
                rows.drop_item(place)
                drafts.append(describe(DropItem(place, "erased"), item.salt))
        drop_grounds(rows, sorted(stay))
        rows.drop_entries(sorted(stay), retire=False)
        drafts += [describe(one, secret) for one in erasing.take_words(rows, extent)]
    return replace(operation, redacted=redaction(going)), drafts


def drop_entries(rows: Rows, ids: Sequence[str]) -> None:
    """Remove entries with all that is stored about them."""
    drop_rivals(rows, ids)
    drop_grounds(rows, ids)
    drop_citations(rows, ids)
    rows.delete(tables.CONFIRMATIONS_OF, ids)
    empty_submissions(rows, ids)
    revision_rows.erase_shown(rows, ids)
    rows.drop_entries(ids)


def drop_grounds(rows: Rows, ids: Sequence[str]) -> None:
    """Remove what entries rest on. What rests on them stays: it tells that a source is gone."""
    rows.delete(tables.LINKS_OF, ids)
    rows.delete(tables.DERIVED_BY, ids)


def drop_citations(rows: Rows, ids: Sequence[str]) -> None:
    """Remove what entries cite, with the outcomes of its checks."""
    rows.delete(tables.CHECKS_OF, ids)
    rows.delete(tables.CITATIONS_OF, ids)


def drop_rivals(rows: Rows, ids: Sequence[str]) -> None:
    """Remove the pairs of entries."""
    rows.delete(tables.RIVALS_OF_LATER, ids)
    rows.delete(tables.RIVALS_OF_EARLIER, ids)


def empty_submissions(rows: Rows, ids: Sequence[str]) -> None:
    """Take the words out of the submissions that rest on these entries."""
    resting = row_rules.unique(one.submission for one in rows.select(tables.SUBMISSIONS_ON, ids))
    for one in rows.select(tables.OLDEST_SUBMISSIONS, resting, None, None) if resting else ():
        if not one.wordless:
            rows.save(tables.SUBMISSIONS, one.without_words())


def _drop_copies(rows: Rows) -> None:
    """Remove what may repeat a workspace's memory."""
    rows.delete(tables.SUBMISSIONS_ON, None)
    rows.delete(tables.OLDEST_SUBMISSIONS, None, None, None)
    rows.drop_texts(tables.ALL_UTTERANCES)
    rows.delete(tables.NEWEST_TRANSCRIPTS, None)
    rows.delete(tables.OLDEST_AMENDMENTS, None, None)
    job_queue.drop(rows, job_queue.over(rows))
    rows.empty_wordy_telemetry()


def take_workspace(rows: Rows, operation: DropWorkspace) -> DropWorkspace:
    """Take a workspace off the list, with what the ledger says of it."""
    id = operation.id
    if not rows.delete(tables.WORKSPACES.one, id):
        raise row_rules.missing("workspace", id)
    rows.delete(tables.DISCLOSURES_BEFORE, _EVER, id)
    going = [event for event in rows.select(tables.EVENTS_OF_SUBJECTS, [id]) if may_be_emptied(event)]
    return replace(operation, redacted=redaction(going))


def redact(rows: Rows, operation: Scrub | DropWorkspace, seq: int) -> None:
    """Empty the events that the scrub's own event, which is number `seq`, vouches for; and note what is left to do."""
    ranges: Sequence[tuple[int, int]] = operation.redacted.ranges
    if ranges:
        rows.redact_events(ranges, seq)
    rows.save(tables.PURGED, FILES)
    if isinstance(operation, DropWorkspace):
        return
    if operation.extent.purges and operation.extent.conversation is not None:
        rows.save(tables.PURGED, Purged(operation.extent.conversation))
