"""Bring a store of an export into one that is in use: decide what is new, what is here already, and what differs.

Nothing here is overwritten. The same id with the same text is known. With another text both are kept: an entry comes
in beside the one that is here as its rival, a page goes into the history behind the present text, and a document, an
item or a note gets a name of its own. Each decision is a step with its operations, so that a dry run and a run decide
alike. A step that was taken is known to the next run, so an import that was killed goes on when it is given again.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from itertools import groupby, islice
from typing import Any, Literal, TypeAlias, TypeVar, cast

from msgspec import Struct, field
from msgspec.structs import replace

from lukasa.model.citation import Citation
from lukasa.model.conversation import Channel, WorkspaceInfo
from lukasa.model.corpus import DocumentSource
from lukasa.model.entry import Document, Entry, NamedEntry, Rivalry, Scope
from lukasa.model.errors import Conflict, LukasaError
from lukasa.model.events import Actor, EventDraft
from lukasa.model.ids import derived_id, new_ref_code
from lukasa.model.item import Item, ItemAddress, value_text
from lukasa.model.text import content_hash
from lukasa.model.timestamps import moment, moment_or_none
from lukasa.model.values import Curator, Relation, Trust
from lukasa.spec.types import MemorySpec
from lukasa.storage import row_rules, tables, transfer
from lukasa.storage.codec import Table
from lukasa.storage.entry_codec import entry_of_snapshot
from lukasa.storage.export_file import FileStore
from lukasa.storage.operations import (
    CloseScope,
    ItemIndex,
    KeepUtterances,
    LinkAction,
    Operation,
    Record,
    SaveAmendment,
    SaveChannel,
    SaveChecks,
    SaveCitations,
    SaveConfirmation,
    SaveConversation,
    SaveDocument,
    SaveEntry,
    SaveItem,
    SaveNamed,
    SaveNote,
    SaveRivalry,
    SaveTranscript,
    Transaction,
)
from lukasa.storage.port import FoundUtterance, Store, twin_key
from lukasa.storage.transfer import PARTS, Part

Outcome = Literal["new", "known", "both", "left"]
FIRST_START = "lukasa@first-start"  # the editor of a page that nobody has changed yet
_BATCH = 200  # rows that are looked up together
_AT_ONCE = 100  # operations of a transaction
MOST_SAMPLES = 5  # of each outcome, over all kinds
HERE_ONLY: dict[Part, str] = {
    transfer.WATCHES: "this machine follows no folder or feed because a file says so",
    transfer.SUBMISSIONS: "what was submitted to a document is decided where it was submitted",
    transfer.JOBS: "work is done where it was queued",
    transfer.TELEMETRY: "how work went belongs to the place where it was done",
    transfer.SPENDING: "money was spent there",
    transfer.DISCLOSURES: "the ledger says what went out from here",
    transfer.GRANTS: "access is given here, never by a file",
    transfer.ANSWERS: "answers to requests belong to the server that gave them",
    transfer.EVENTS: "the log of this memory tells what happened here",
    transfer.REVISIONS: "what machines tell each other is told by them",
    transfer.SYNC_NOTES: "it is about the machine of the file",
    transfer.RETIRED: "what was removed there is decided here",
}
# Kinds of records that have steps of their own, and those that come along with these or are made again.
MERGED = frozenset(
    """
    channels conversations notes transcripts utterances documents named entries rivals confirmations citations
    citation_checks actions closed_scopes items amendments
    """.split()
)
ALONG = frozenset(
    """
    versions named_versions document_versions document_sources passages unsplit action_links canonical_links
    derivations models vectors item_vectors passage_vectors workspaces submission_memories job_steps redactions access
    """.split()
)

Value = TypeVar("Value")
Tell: TypeAlias = Callable[[int], None]


class Step(Struct, frozen=True):
    """A decision about one thing in the file: its outcome, and the operations that bring it in.

    `instead` are operations for the case that the store refuses these.
    """

    kind: str
    outcome: Outcome
    line: int
    what: str
    why: str = ""
    operations: tuple[Operation, ...] = ()
    instead: tuple[Operation, ...] = ()


class Sample(Struct, frozen=True):
    """One thing as a dry run shows it."""

    kind: str
    outcome: Outcome
    line: int
    what: str
    why: str


class Merged(Struct):
    """What a merge did or would do: outcomes counted by kind, and some of each."""

    counts: dict[str, dict[Outcome, int]] = field(default_factory=dict)
    samples: list[Sample] = field(default_factory=list)

    def add(self, step: Step) -> None:
        of = self.counts.setdefault(step.kind, {})
        of[step.outcome] = of.get(step.outcome, 0) + 1
        if step.what and sum(one.outcome == step.outcome for one in self.samples) < MOST_SAMPLES:
            what = " ".join(step.what.split())[:100]
            self.samples.append(Sample(step.kind, step.outcome, step.line, what, step.why))

    def total(self, *outcomes: Outcome) -> int:
        return sum(of.get(outcome, 0) for of in self.counts.values() for outcome in outcomes)


class Merging:
    """The steps that bring one store of a file into a store here.

    `here` is the workspace of that store, and `spec` says which tiers it has; the account's store has neither.
    `trust` is the most that any entry may keep of its own.
    """

    def __init__(
        self,
        given: FileStore,
        store: Store,
        at: datetime,
        *,
        here: WorkspaceInfo | None = None,
        spec: MemorySpec | None = None,
        source: str = "",
        trust: Trust = Trust.AUTHOR,
    ) -> None:
        self._given, self._store, self._at, self._here, self._spec = given, store, at, here, spec
        self._source, self._trust = source, trust
        self._channels: dict[str, str] = {}  # ids in the file, by those here
        self._transcripts: dict[str, str] = {}  # the same
        self._same: dict[str, str] = {}  # entries of the file whose text another entry here has
        self._brought: set[str] = set()

    def steps(self) -> Iterator[Step]:
        """Give every step in an order in which each finds what it refers to."""
        yield from self._of_channels()
        yield from self._of_conversations()
        yield from self._of_notes()
        yield from self._of_transcripts()
        yield from self._of_documents()
        yield from self._of_pages()
        yield from self._of_entries()
        yield from self._of_rivals()
        yield from self._of_confirmations()
        yield from self._of_citations()
        yield from self._of_checks()
        yield from self._of_actions()
        yield from self._of_closed_scopes()
        yield from self._of_items()
        yield from self._of_amendments()
        for part in PARTS:
            if part.name not in MERGED | ALONG or part in HERE_ONLY:
                for line, _ in self._given.records(part):
                    yield Step(part.name, "left", line, "", HERE_ONLY.get(part, "it is not merged"))

    def _values(self, part: Part, table: Table[Value]) -> Iterator[tuple[int, Value]]:
        for line, record in self._given.records(part):
            yield line, table.decode(self._given.numbers.row(part, record))

    # Conversations

    def _of_channels(self) -> Iterator[Step]:
        known = {channel.name: channel for channel in self._store.channels()}
        ids = {channel.id for channel in known.values()}
        for line, one in self._values(transfer.CHANNELS, tables.CHANNELS):
            local = known.get(one.name)
            self._channels[one.id] = local.id if local is not None and one.id not in ids else one.id
            if local is not None or one.id in ids:
                yield Step("channels", "known", line, one.name)
            elif self._here is not None:
                made = Channel(one.id, self._here.id, one.name, one.description, False, one.created_at)
                yield Step("channels", "new", line, one.name, operations=(SaveChannel(made),))

    def _of_conversations(self) -> Iterator[Step]:
        for line, one in self._values(transfer.CONVERSATIONS, tables.CONVERSATIONS):
            if self._store.conversation(one.id) is not None:
                yield Step("conversations", "known", line, one.ref_code)
                continue
            taken = self._store.conversation(one.ref_code) is not None
            channel = self._channels.get(one.channel, one.channel)
            made = replace(one, channel=channel, ref_code=new_ref_code() if taken else one.ref_code)
            yield Step("conversations", "new", line, one.ref_code, operations=(SaveConversation(made, None),))

    def _of_notes(self) -> Iterator[Step]:
        for line, one in self._values(transfer.NOTES, tables.NOTES):
            local = {note.key: note.value for note in self._store.notes(one.conversation)}
            beside = _beside(one.key, json.dumps(one.value))
            if local.get(one.key, local) == one.value or local.get(beside, local) == one.value:
                yield Step("notes", "known", line, one.key)
            elif one.key in local:
                save = SaveNote(replace(one, key=beside), None)
                yield Step("notes", "both", line, one.key, f"the file's is kept as {beside}", (save,))
            else:
                yield Step("notes", "new", line, one.key, operations=(SaveNote(one, None),))

    # Documents and pages

    def _of_documents(self) -> Iterator[Step]:
        sources = {one.document: one for _, one in self._values(transfer.SOURCES, tables.DOCUMENT_SOURCES)}
        every = self._values(transfer.DOCUMENT_VERSIONS, tables.DOCUMENT_VERSIONS)
        for id, group in groupby(every, key=lambda pair: pair[1].id):
            versions = list(group)
            yield self._document(id, versions[-1][0], [one for _, one in versions], sources.get(id))

    def _document(self, id: str, line: int, versions: Sequence[Document], source: DocumentSource | None) -> Step:
        last, local = versions[-1], self._store.documents([id]).get(id)
        if local is None:
            return Step("documents", "new", line, last.title, operations=_document_saves(versions, source))
        if _same_document(local, last) or any(_same_document(one, last) for one in self._past(id)):
            return Step("documents", "known", line, last.title)
        beside = _beside(id, last.body)
        if beside in self._store.documents([beside]):
            return Step("documents", "known", line, last.title)
        saves = _document_saves([replace(last, id=beside)], source)
        return Step("documents", "both", line, last.title, f"the file's is kept as {beside}", saves)

    def _past(self, id: str) -> Iterator[Document]:
        for head in self._store.document_history(id):
            found = self._store.document_version(id, head.version)
            if found is not None:
                yield found

    def _of_pages(self) -> Iterator[Step]:
        every = self._values(transfer.NAMED_VERSIONS, tables.NAMED_VERSIONS)
        for name, group in groupby(every, key=lambda pair: pair[1].name):
            versions = list(group)
            yield self._page(name, versions[-1][0], [one for _, one in versions])

    def _page(self, name: str, line: int, versions: Sequence[NamedEntry]) -> Step:
        last = versions[-1]
        if not self._has_tier(last.tier):
            return Step("named", "left", line, name, f"this workspace has no tier {last.tier}")
        past = self._store.named_versions(name)
        if not past:
            saves = tuple(SaveNamed(one, expect) for expect, one in enumerate(versions))
            return Step("named", "new", line, name, operations=saves)
        if any(one.body == last.body for one in past):
            return Step("named", "known", line, name)
        if len(past) == 1 and past[0].editor == FIRST_START:
            return Step("named", "new", line, name, operations=(SaveNamed(last, 1),))
        now = past[-1]
        saves = (SaveNamed(replace(last, tier=now.tier), now.version), SaveNamed(now, now.version + 1))
        return Step("named", "both", line, name, "the file's is kept in the history of the page", saves)

    def _misfit(self, entry: Entry) -> str:
        """Say why the spec of this workspace has no place for an entry; nothing if it has."""
        if not self._has_tier(entry.scope.tier):
            return f"this workspace has no tier {entry.scope.tier}"
        if self._spec is not None and entry.kind not in self._spec.tier(entry.scope.tier).typology:
            return f"tier {entry.scope.tier} of this workspace takes no {entry.kind} entries"
        return ""

    def _has_tier(self, name: str) -> bool:
        return self._spec is None or any(tier.name == name for tier in self._spec.tiers)

    # Entries

    def _of_entries(self) -> Iterator[Step]:
        groups = groupby(self._given.records(transfer.VERSIONS), key=lambda pair: pair[1]["entry"])
        every = ((line, self._versions(pairs)) for line, pairs in ((p[0][0], p) for p in (list(g) for _, g in groups)))
        while batch := list(islice(every, _BATCH)):
            ids = [versions[-1].id for _, versions in batch]
            found, gone = self._store.entries(ids, damaged=True), self._store.gone(ids)
            closed = {one.scope for one in self._store.closed({versions[-1].scope for _, versions in batch})}
            for line, versions in batch:
                yield self._entry(line, versions, found, gone, closed)

    def _versions(self, pairs: Iterable[tuple[int, dict[str, Any]]]) -> list[Entry]:
        made = []
        for _, record in pairs:
            row = self._given.numbers.row(transfer.VERSIONS, record)
            entry = entry_of_snapshot(row[transfer.VERSIONS.columns.index("snapshot")])
            scope, trust = self._scope(entry.scope), min(entry.trust, self._trust)
            said = tuple(
                replace(q, transcript=self._transcripts.get(q.transcript, q.transcript)) for q in entry.evidence
            )
            made.append(replace(entry, scope=scope, curator=Curator.IMPORT, trust=trust, evidence=said))
        return made

    def _scope(self, scope: Scope) -> Scope:
        """Return a scope of the file as one of this workspace."""
        if self._here is None:
            return scope
        here = {"workspace": self._here.id}
        values = ((key, here.get(key, value) if value is not None else None) for key, value in scope.anchor)
        moved = (
            (key, self._channels.get(value, value) if key == "channel" and value else value) for key, value in values
        )
        return Scope(scope.tier, tuple(moved))

    def _entry(
        self, line: int, versions: Sequence[Entry], found: dict[str, Entry], gone: set[str], closed: set[Scope]
    ) -> Step:
        last = versions[-1]
        if last.id in gone:
            return Step("entries", "left", line, last.content, "it was removed here for good")
        if misfit := self._misfit(last):
            return Step("entries", "left", line, last.content, misfit)
        if last.id in found:
            return self._beside(line, last, found[last.id])
        if last.scope in closed:
            return Step("entries", "left", line, last.content, "its scope has ended here")
        if last.state in row_rules.TWIN_STATES:
            twin = self._store.twin(last.scope, last.owner, twin_key(last))
            if twin is not None:
                self._same[last.id] = twin.id
                return Step("entries", "known", line, last.content, f"its text is here as {twin.id}")
        self._brought.add(last.id)
        saves = tuple(self._save(one, n) for n, one in enumerate(versions))
        alone = (self._save(replace(last, version=1, links=()), 0),)
        return Step("entries", "new", line, last.content, operations=saves, instead=alone)

    def _beside(self, line: int, last: Entry, local: Entry) -> Step:
        """Decide about an entry whose id is here: the same if any version here has its text, and otherwise a rival."""
        texts = (
            {local.content}
            if local.content == last.content
            else {v.entry.content for v in self._store.versions(last.id)}
        )
        id = derived_id("import", last.id, last.content)
        if last.content in texts or self._store.entries([id], damaged=True) or self._store.gone([id]):
            return Step("entries", "known", line, last.content)
        rival = replace(last, id=id, version=1, superseded_by=None)
        if rival.state in row_rules.TWIN_STATES and self._store.twin(rival.scope, rival.owner, twin_key(rival)):
            return Step("entries", "known", line, last.content)
        noted = Rivalry(id, local.id, Relation.UPDATE, "two versions of one entry met in an import", self._at)
        saves = (self._save(rival, 0), SaveRivalry(noted))
        instead = (self._save(replace(rival, links=()), 0), SaveRivalry(noted))
        return Step("entries", "both", line, last.content, f"here it says: {local.content[:80]}", saves, instead)

    def _save(self, entry: Entry, expect: int) -> SaveEntry:
        return SaveEntry(entry, expect, "entry.imported", f"imported from {self._source}")

    def _id(self, id: str) -> str | None:
        """Return the id that an entry of the file has here; None if it is not here, and does not come."""
        id = self._same.get(id, id)
        return id if id in self._brought or self._store.candidates([id]) else None

    def _of_rivals(self) -> Iterator[Step]:
        for line, one in self._values(transfer.RIVALS, tables.RIVALS):
            entry, other = self._id(one.entry), self._id(one.other)
            if entry is None or other is None or entry == other:
                yield Step("rivals", "left", line, one.reason, "one of its entries is not here")
            elif any({one.entry, one.other} == {entry, other} for one in self._store.rivals([entry])):
                yield Step("rivals", "known", line, one.reason)
            else:
                made = replace(one, entry=entry, other=other)
                yield Step("rivals", "new", line, one.reason, operations=(SaveRivalry(made),))

    def _of_confirmations(self) -> Iterator[Step]:
        for line, one in self._values(transfer.CONFIRMATIONS, tables.CONFIRMATIONS):
            entry = self._id(one.entry)
            if entry is None:
                yield Step("confirmations", "left", line, one.said, "its entry is not here")
                continue
            made = replace(one, entry=entry, trust=min(one.trust, self._trust))
            if made in self._store.confirmations([entry]):
                yield Step("confirmations", "known", line, one.said)
            else:
                yield Step("confirmations", "new", line, one.said, operations=(SaveConfirmation(made),))

    def _of_citations(self) -> Iterator[Step]:
        by_entry: dict[str, list[tuple[int, Citation]]] = {}
        for line, one in self._values(transfer.CITATIONS, tables.CITATIONS):
            by_entry.setdefault(one.entry, []).append((line, one))
        for id, pairs in by_entry.items():
            (line, first), entry = pairs[0], self._id(id)
            if entry is None or entry != id:
                yield Step("citations", "left", line, first.label, "its entry is not here")
            elif self._store.citations([entry]):
                yield Step("citations", "known", line, first.label)
            else:
                save = SaveCitations(entry, tuple(one for _, one in pairs), ())
                yield Step("citations", "new", line, first.label, operations=(save,))

    def _of_checks(self) -> Iterator[Step]:
        for line, one in self._values(transfer.CITATION_CHECKS, tables.CITATION_CHECKS):
            entry = self._id(one.entry)
            if entry != one.entry:
                yield Step("citation_checks", "left", line, one.why, "its entry is not here")
            elif any(known.citation == one.citation for known in self._store.citation_checks([entry])):
                yield Step("citation_checks", "known", line, one.why)
            else:
                yield Step("citation_checks", "new", line, one.why, operations=(SaveChecks((one,)),))

    def _of_actions(self) -> Iterator[Step]:
        entries: dict[str, list[str]] = {}
        for _, record in self._given.records(transfer.ACTION_LINKS):
            entries.setdefault(record["action"], []).append(record["entry"])
        for line, one in self._values(transfer.ACTIONS, tables.ACTIONS):
            ids = [id for id in map(self._id, entries.get(one.id, ())) if id is not None]
            linked = self._store.linked(ids)
            missing = tuple(id for id in ids if one.id not in linked.get(id, ()))
            if missing:
                save = LinkAction(one.id, one.description, missing)
                yield Step("actions", "new", line, one.description, operations=(save,))
            else:
                yield Step("actions", "known", line, one.description)

    def _of_closed_scopes(self) -> Iterator[Step]:
        for line, one in self._values(transfer.CLOSED_SCOPES, tables.CLOSED_SCOPES):
            made = replace(one, scope=self._scope(one.scope))
            if self._store.closed([made.scope]):
                yield Step("closed_scopes", "known", line, made.scope.tier)
            else:
                yield Step("closed_scopes", "new", line, made.scope.tier, operations=(CloseScope(made),))

    # Transcripts, items, proposals

    def _of_items(self) -> Iterator[Step]:
        for line, record in self._given.records(transfer.ITEMS):
            row = dict(zip(transfer.ITEMS.columns, self._given.numbers.row(transfer.ITEMS, record), strict=True))
            place, value = ItemAddress(tuple(record["namespace"]), row["key"]), json.loads(row["value"])
            beside = replace(place, key=_beside(place.key, row["value"]))
            local = self._store.items([place, beside])
            if any(value_text(one.value) == row["value"] for one in local.values()):
                yield Step("items", "known", line, place.key)
                continue
            both = place in local
            texts = tuple((str(name), text) for name, text in json.loads(row["texts"]))
            times = moment(row["created_at"]), moment(row["updated_at"]), moment_or_none(row["expires_at"])
            made = SaveItem(
                Item(beside if both else place, value, *times, row["ttl"]), (), ItemIndex(texts, row["indexer"])
            )
            why = f"the file's is kept as {beside.key}" if both else ""
            yield Step("items", "both" if both else "new", line, place.key, why, (made,))

    def _of_transcripts(self) -> Iterator[Step]:
        here: dict[str, tuple[str, dict[int, str]]] = {}
        for line, one in self._values(transfer.TRANSCRIPTS, tables.TRANSCRIPTS):
            local = self._store.transcript(one.id) or self._store.transcript(one.key)
            if local is None:
                here[one.id] = one.id, {}
                yield Step("transcripts", "new", line, one.title, operations=(SaveTranscript(one, 0),))
            else:
                kept = {said.place: said.text for said in self._store.utterances(local.id)}
                here[one.id] = local.id, kept
                self._transcripts[one.id] = local.id
                yield Step("transcripts", "known", line, one.title)
        every = self._values(transfer.UTTERANCES, cast("Table[FoundUtterance]", tables.UTTERANCES))
        for line, found in every:
            id, kept = here.get(found.transcript, (found.transcript, {}))
            said = found.utterance
            if kept.get(said.place) == said.text:
                yield Step("utterances", "known", line, said.text)
            elif said.place in kept:
                yield Step("utterances", "left", line, said.text, "another message is in its place here")
            else:
                yield Step("utterances", "new", line, said.text, operations=(KeepUtterances(id, (said,)),))

    def _of_amendments(self) -> Iterator[Step]:
        known: set[str] = set()
        every = list(self._values(transfer.AMENDMENTS, tables.AMENDMENTS))
        if every:
            known = {one.id for one in self._store.amendments([one.id for _, one in every])}
        for line, one in every:
            if one.id in known:
                yield Step("amendments", "known", line, one.change)
            else:
                yield Step("amendments", "new", line, one.change, operations=(SaveAmendment(one, 0),))


def _beside(name: str, text: str) -> str:
    """Return the name of a thing that comes in beside one of the same name: the same text always gets the same."""
    return f"{name} (imported {content_hash(text)[:8]})"


def _same_document(one: Document, other: Document) -> bool:
    return (one.body, one.title, one.removed) == (other.body, other.title, other.removed)


def _document_saves(versions: Sequence[Document], source: DocumentSource | None) -> tuple[Operation, ...]:
    """Return the operations that write a document version by version; only the last one is split into passages."""
    *earlier, last = versions
    saves: list[Operation] = [SaveDocument(one, expect, ()) for expect, one in enumerate(earlier)]
    return (*saves, SaveDocument(last, len(earlier), None, source))


def merge(merging: Merging, store: Store, actor: Actor, at: datetime, about: dict[str, Any], tell: Tell) -> Merged:
    """Take every step, some in one transaction. The log says first and last that this is an import, and of what."""
    done, waiting, begun = Merged(), list[Step](), False
    label = str(about["file"])[:12]

    def write(steps: Sequence[Step]) -> None:
        nonlocal begun
        first: list[Operation] = [] if begun else [Record(EventDraft("import.begun", label, about))]
        operations = [op for step in steps for op in step.operations]
        store.apply(Transaction(actor, at, (*first, *operations)))
        begun = True

    def one_by_one(steps: Sequence[Step]) -> Iterator[Step]:
        """Take steps alone, because the store refused one of them: that one is taken another way, or left."""
        for step in steps:
            tries, reason = [step, *([replace(step, operations=step.instead)] if step.instead else [])], ""
            for attempt in tries:
                try:
                    write([attempt])
                    yield step
                    break
                except LukasaError as error:
                    reason = error.message
            else:
                yield replace(step, outcome="left", why=f"refused: {reason[:200]}")

    def flush() -> None:
        if any(step.operations for step in waiting):
            try:
                write(waiting)
            except (Conflict, LukasaError):
                waiting[:] = one_by_one(waiting)
        for step in waiting:
            done.add(step)
        tell(len(waiting))
        waiting.clear()

    for step in merging.steps():
        waiting.append(step)
        if len(waiting) >= _BATCH or sum(len(one.operations) for one in waiting) >= _AT_ONCE:
            flush()
    flush()
    if begun:
        counts = {kind: dict(of) for kind, of in done.counts.items()}
        store.apply(
            Transaction(actor, at, (Record(EventDraft("import.finished", label, {**about, "counts": counts})),))
        )
    return done


def outlook(merging: Merging, tell: Tell) -> Merged:
    """Return what a merge would do, and do nothing."""
    found = Merged()
    for number, step in enumerate(merging.steps(), 1):
        found.add(step)
        if not number % _BATCH:
            tell(_BATCH)
    return found
