"""What an erasure does to the rows of a store beyond the entries that it removes: every mention of its words.

Rows that only carry words about somebody go (notes, jobs, proposals, items, stored answers); messages lose the
sentences that mention the words; pages and documents, which are somebody's own text, lose the words alone, in every
version.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from lukasa.model.amendment import Amendment
from lukasa.model.citation import Citation
from lukasa.model.conversation import Channel, Note
from lukasa.model.corpus import Passage
from lukasa.model.entry import CanonicalLink, Confirmation, Document, NamedEntry, Rivalry
from lukasa.model.erasure import Words
from lukasa.model.events import Event, may_be_emptied
from lukasa.model.job import Job, JobState
from lukasa.model.scrub import Extent, Versioned
from lukasa.model.submission import Submission
from lukasa.model.telemetry import TelemetryEvent
from lukasa.model.transcript import Transcript
from lukasa.storage import job_queue, revision_rows, row_rules, tables
from lukasa.storage.backend import Rows
from lukasa.storage.operations import Operation, SaveDocument, SaveNamed
from lukasa.storage.port import FoundUtterance


class Mentions(Struct, frozen=True):
    """The rows of a store that hold the words of an erasure, by kind."""

    named: list[NamedEntry]  # every version of the pages that any version mentions
    documents: list[Document]
    passages: list[Passage]
    utterances: list[FoundUtterance]
    transcripts: list[Transcript]
    amendments: list[Amendment]
    submissions: list[Submission]
    notes: list[Note]
    jobs: list[Job]
    points: list[TelemetryEvent]
    confirmations: list[Confirmation]
    rivals: list[Rivalry]
    citations: list[Citation]
    links: list[CanonicalLink]
    channels: list[Channel]
    actions: list[tables.ActionRow]

    def counts(self) -> dict[str, int]:
        """How many rows of each kind there are; of pages and documents, how many pages and documents."""
        found = {name: len(getattr(self, name)) for name in self.__struct_fields__}
        found["named"] = len({one.name for one in self.named})
        found["documents"] = len({one.id for one in self.documents})
        return found


def mentions(rows: Rows, words: Words) -> Mentions:
    """Find all rows that hold the words."""

    def of(query: Any, *values: Any) -> Any:
        return [one for one in rows.select(query, *values, only=words.may_be_in_row) if words.found_in(one)]

    names, ids = _rewritten(rows, words)
    jobs: list[Job] = rows.select(tables.ALL_JOBS)
    busy = {step.job for step in rows.select(tables.STEPS_AMONG, [job.id for job in jobs]) if words.found_in(step)}
    return Mentions(
        named=[one for one in rows.select(tables.ALL_NAMED_VERSIONS) if one.name in names] if names else [],
        documents=[one for one in rows.select(tables.ALL_DOCUMENT_VERSIONS) if one.id in ids] if ids else [],
        passages=of(tables.ALL_PASSAGES),
        utterances=of(tables.ALL_UTTERANCES),
        transcripts=of(tables.NEWEST_TRANSCRIPTS, None),
        amendments=of(tables.OLDEST_AMENDMENTS, None, None),
        submissions=[one for one in of(tables.OLDEST_SUBMISSIONS, None, None, None) if not one.wordless],
        notes=of(tables.ALL_NOTES),
        jobs=[job for job in jobs if job.id in busy or words.found_in(job)],
        points=of(tables.ALL_TELEMETRY),
        confirmations=of(tables.ALL_CONFIRMATIONS),
        rivals=of(tables.ALL_RIVALS),
        citations=of(tables.ALL_CITATIONS),
        links=of(tables.ALL_LINKS),
        channels=of(tables.ALL_CHANNELS),
        actions=of(tables.ALL_ACTIONS),
    )


def listed(rows: Rows, extent: Extent) -> tuple[Versioned, Versioned]:
    """Return the ids and versions of the entries, and of the documents, that an erasure names."""
    found = [stored.entry for id in extent.ids if (stored := rows.stored_entry(id)) is not None]
    heads = rows.select(tables.DOCUMENTS_AMONG, list(extent.documents))
    return tuple((e.id, e.version) for e in found), tuple((d.id, d.version) for d in heads)


def events(rows: Rows, words: Words) -> Iterator[Event]:
    """Give the events that hold the words, or the commitments to texts of pages and documents that are rewritten."""
    pages, documents = _rewritten(rows, words)
    prefixes = tuple(prefix for prefix, names in (("named.", pages), ("document.", documents)) if names)
    action = tables.EVENTS.positions["action"]

    def may_be(row: Sequence[Any]) -> bool:
        return row[action].startswith(prefixes) or words.may_be_in_row(row)

    for event in rows.select(tables.EVENTS_AFTER, 0, None, only=may_be):
        about = (event.action.startswith("named.") and event.subject in pages) or (
            event.action.startswith("document.") and event.subject in documents
        )
        if may_be_emptied(event) and (about or words.found_in([event.subject, event.detail])):
            yield event


def _rewritten(rows: Rows, words: Words) -> tuple[set[str], set[str]]:
    """Return the names of the pages, and the ids of the documents, that have the words in any version."""
    named = rows.select(tables.ALL_NAMED_VERSIONS, only=words.may_be_in_row)
    versions = rows.select(tables.ALL_DOCUMENT_VERSIONS, only=words.may_be_in_row)
    return (
        {one.name for one in named if words.found_in(one)},
        {one.id for one in versions if words.found_in(one)},
    )


def refuse_while_busy(found: Mentions) -> None:
    """Raise if a job that runs holds the words: what it writes next might hold them too."""
    row_rules.check_idle(sum(job.state is JobState.RUNNING for job in found.jobs))


def take_words(rows: Rows, extent: Extent) -> list[Operation]:
    """Remove every mention, and return the operations that would have written what pages and documents say now."""
    words, found = extent.words, mentions(rows, extent.words)
    refuse_while_busy(found)
    rows.delete(tables.ANSWERED, 0)
    job_queue.drop(rows, [job.id for job in found.jobs])
    for note in found.notes:
        rows.delete(tables.NOTES_OF, note.conversation, note.key)
    for table, values in (
        (tables.TRANSCRIPTS, found.transcripts),
        (tables.RIVALS, found.rivals),
    ):
        for one in values:
            rows.save(table, words.taken_out(one))
    for action in found.actions:  # its label names what rests on it: it stays, and the receipt tells where words are
        rows.save(tables.ACTIONS, replace(action, description=words.taken_out(action.description)))
    _rename_channels(rows, found.channels, words)
    for submission in found.submissions:
        rows.save(tables.SUBMISSIONS, submission.without_words())
    for amendment in found.amendments:
        rows.delete(tables.AMENDMENTS.one, amendment.id)
    gone = [one.id for one in found.citations]
    for id in gone:
        rows.delete(tables.CITATION_CHECKS.one, id)
        rows.delete(tables.CITATIONS.one, id)
    _restate(rows, tables.CONFIRMATIONS, tables.CONFIRMATIONS_OF, "entry", found.confirmations, words)
    _restate(rows, tables.CANONICAL_LINKS, tables.LINKS_OF, "entry", found.links, words)
    _restate(rows, tables.TELEMETRY, tables.TELEMETRY_AT, "at", found.points, words)
    _empty_messages(rows, found.utterances, words)
    revision_rows.erase_words(rows, words)
    return [*_pages(rows, found.named, words), *_documents(rows, found, extent)]


def _rename_channels(rows: Rows, found: Sequence[Channel], words: Words) -> None:
    """Write channels without the words. Two that are then named alike get a number."""
    taken = {(one.workspace, one.name) for one in rows.select(tables.ALL_CHANNELS)} if found else set()
    for one in found:
        bare = words.taken_out(one.name)
        names = (bare, *(f"{bare} {n}" for n in range(2, len(taken) + 3)))
        name = next(name for name in names if name == one.name or (one.workspace, name) not in taken)
        taken.add((one.workspace, name))
        rows.save(tables.CHANNELS, replace(words.taken_out(one), name=name))


def _restate(rows: Rows, table: Any, query: Any, key: str, values: Sequence[Any], words: Words) -> None:
    """Write rows that have no key of their own again without the words, with those beside them."""
    keys = row_rules.unique(getattr(one, key) for one in values)
    if keys:
        then = rows.select(query, keys)
        rows.delete(query, keys)
        rows.insert(table, [words.taken_out(one) for one in then])


def _empty_messages(rows: Rows, found: Sequence[FoundUtterance], words: Words) -> None:
    places: dict[str, list[FoundUtterance]] = defaultdict(list)
    for one in found:
        places[one.transcript].append(one)
    for transcript, said in places.items():
        rows.drop_texts(tables.UTTERANCES_AT, transcript, [one.utterance.place for one in said])
        left = [replace(one.utterance, text=words.sentences_out(one.utterance.text)) for one in said]
        rows.add_texts(tables.UTTERANCES, [FoundUtterance(transcript, words.taken_out(one)) for one in left])


def _pages(rows: Rows, found: Sequence[NamedEntry], words: Words) -> Iterator[Operation]:
    for version in found:
        new = replace(version, body=words.taken_out(version.body), editor=words.taken_out(version.editor))
        rows.save(tables.NAMED_VERSIONS, new)
        yield SaveNamed(new, new.version - 1)
    for now in rows.select(tables.NAMED_AMONG, row_rules.unique(one.name for one in found)) if found else ():
        rows.save(tables.NAMED, replace(now, body=words.taken_out(now.body), editor=words.taken_out(now.editor)))


def drop_document(rows: Rows, id: str) -> None:
    """Remove a document with its versions, its passages and the links to it."""
    rows.delete(tables.LINKS_TO, [id])
    rows.drop_texts(tables.PASSAGES_OF, [id])
    rows.delete(tables.UNSPLIT.one, id)
    rows.delete(tables.DOCUMENT_SOURCES.one, id)
    rows.delete(tables.VERSIONS_OF_DOCUMENT, id)
    rows.delete(tables.DOCUMENTS.one, id)


def _documents(rows: Rows, found: Mentions, extent: Extent) -> Iterator[Operation]:
    """Documents that are named go as a whole; others lose the words in each version and each passage."""
    words = extent.words
    for id in extent.documents:
        drop_document(rows, id)
    stay = [one for one in found.documents if one.id not in extent.documents]
    for version in stay:
        new = replace(version, title=words.taken_out(version.title), body=words.taken_out(version.body))
        rows.save(tables.DOCUMENT_VERSIONS, new)
        yield SaveDocument(new, new.version - 1)
    ids = row_rules.unique(one.id for one in stay)
    for now in rows.select(tables.DOCUMENTS_AMONG, ids) if ids else ():
        rows.save(tables.DOCUMENTS, replace(now, title=words.taken_out(now.title), body=words.taken_out(now.body)))
    for id in row_rules.unique(one.document for one in found.passages if one.document not in extent.documents):
        then = rows.select(tables.PASSAGES_OF, [id])
        rows.drop_texts(tables.PASSAGES_OF, [id])
        rows.add_texts(tables.PASSAGES, [words.taken_out(passage) for passage in then])
