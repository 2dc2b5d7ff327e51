"""Apply to an older backup what was removed for good since: its rows without those that a newer backup lacks.

The newer backup has the whole log of the older one, so a row that it lacks was removed in between. Rows that never
change, such as versions and messages, differ only if an erasure took words out of them, and then come from the newer
backup. Events that were emptied since are emptied, and an event at the end vouches for them; behind it are those that
vouch for texts without the words.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from heapq import merge
from typing import Any

from msgspec import Struct

from lukasa.model.erasure import ERASED
from lukasa.model.errors import Conflict
from lukasa.model.events import SCRUBBED, Actor, Event, EventDraft, Stamp, canonical_json, redaction
from lukasa.model.item import ItemAddress, item_id, namespace_of
from lukasa.storage import tables, transfer
from lukasa.storage.backup_image import ImageStore
from lukasa.storage.transfer import PARTS, Part, Row

RESTATED = "entry.redacted"
_BY_NAME = {table.name: table for table in tables.tables()}
_ALWAYS = (transfer.RETIRED, transfer.REDACTIONS, transfer.SPENDING, transfer.CLOSED_SCOPES, transfer.MODELS)
# These belong to entries, and go with them.
_OF_ENTRIES = {
    *("vectors", "rivals", "canonical_links", "derivations", "citations", "citation_checks"),
    *("action_links", "access"),
}
_OF_DOCUMENTS = ("passage_vectors", "document_sources")
_WORDS = {"body", "title", "editor", "text", "text_hash"}  # what an erasure changes in the rows of histories
_HISTORIES = {"named": transfer.NAMED_VERSIONS, "documents": transfer.DOCUMENT_VERSIONS}
_UNSPLIT = next(part for part in PARTS if part.name == "unsplit")
_EMPTIED = ("points", "disclosures", "answers")
_EXPIRES = {"jobs", "job_steps", "answers", "points", "disclosures", "access", "unswept", "vectors"}  # by themselves


class Without(Struct, frozen=True):
    """The rows of a store without what was removed: by part, each with its order in front; where its log ends."""

    rows: dict[Part, list[Row]]
    ends: tuple[int, str]
    removed: dict[str, int]


def without(old: ImageStore, new: ImageStore, actor: Actor, at: datetime) -> Without | None:
    """Return an older store without what the newer one lacks; None if it lacks nothing."""
    return _Purge(old, new).run(Stamp(at, actor), at)


class _Purge:
    def __init__(self, old: ImageStore, new: ImageStore) -> None:
        self._old, self._new = old, new
        self._removed: Counter[str] = Counter()
        self._reworded = 0
        self._events, self._going = self._emptied()
        self._touched = {event.subject for event in self._going} - {""}
        self._restated = self._restated_entries()
        self._gone = self._gone_entries()
        self._altered = {name: self._altered_rows(part, part.order) for name, part in _HISTORIES.items()}

    def run(self, stamp: Stamp, at: datetime) -> Without | None:
        kept: dict[Part, list[Row]] = {}
        for part in PARTS:
            if part not in (transfer.EVENTS, transfer.RETIRED, transfer.REDACTIONS):
                kept[part] = list(self._survivors(part, kept))
        if not self._going and not self._reworded and not self._removed.keys() - _EXPIRES:
            return None
        kept[_UNSPLIT] = self._unsplit(kept)
        told = [*self._dropped_items(kept), *self._vouching()]
        kept[transfer.EVENTS], ends, spans = self._log(stamp, told)
        kept[transfer.RETIRED] = self._joined(transfer.RETIRED, [(id,) for id in self._gone if isinstance(id, str)])
        kept[transfer.REDACTIONS] = self._joined(transfer.REDACTIONS, [(*span, ends[0]) for span in spans])
        also = {"events": len(self._going), "reworded": self._reworded}
        return Without(kept, ends, dict(self._removed) | {kind: count for kind, count in also.items() if count})

    # The log

    def _emptied(self) -> tuple[list[Row], list[Event]]:
        """Return the newer log up to where the older one ended, behind it the events of earlier purges; and the events
        that were emptied in between."""
        head, position = self._old.image.head, tables.EVENTS.positions
        digest = self._new.digest_of(head[0]) if head[0] else head[1]
        if digest != head[1]:
            raise Conflict(
                f"the backup of {self._old.image.id} is not an earlier state of this memory",
                fix="nothing of it was purged; remove that backup if it must go",
            )
        emptied = {
            row[position["seq"]]
            for row in self._new.values(transfer.EVENTS)
            if row[position["seq"]] <= head[0] and not row[position["subject"]] and row[position["detail"]] == "{}"
        }
        rows, going = list[Row](), list[Event]()
        for row in self._old.values(transfer.EVENTS):
            if row[position["seq"]] in emptied and (row[position["subject"]] or row[position["detail"]] != "{}"):
                going.append(tables.EVENTS.decode(row))
                spelled = list(row)
                spelled[position["subject"]], spelled[position["detail"]] = "", "{}"
                row = tuple(spelled)
            rows.append(row)
        return rows, going

    def _log(self, stamp: Stamp, told: list[EventDraft]) -> tuple[list[Row], tuple[int, str], list[Any]]:
        """Add to the log what became of items and texts, and the event that vouches for those that are emptied."""
        said = redaction(self._going)
        about = {"mode": "backup", "scope": {"place": self._old.image.id}, "counts": dict(self._removed)}
        last = EventDraft(SCRUBBED, self._old.image.id, {**about, "digest": said.husks, "redacted": said.plain()})
        seq, digest = self._old.about.head
        for draft in (*told, last):
            detail, previous = canonical_json(dict(draft.detail)), digest
            seq += 1
            digest = stamp.digest(draft, detail, seq, previous)
            self._events.append((seq, stamp.at, *stamp.who, draft.action, draft.subject, detail, previous, digest))
        return [(row[0], *row) for row in self._events], (seq, digest), list(said.ranges)

    def _dropped_items(self, kept: dict[Part, list[Row]]) -> Iterator[EventDraft]:
        part = transfer.ITEMS
        there = {self._item(row[len(part.order) :]) for row in kept[part]}
        paths = {row[0]: row[1] for row in self._old.values(transfer.ITEM_SPACES)}
        for row in self._old.values(part):
            if (found := self._item(row)) not in there:
                space, key, salt = found
                place = ItemAddress(tuple(namespace_of(paths[space])), key)
                yield EventDraft("item.dropped", item_id(salt, place), {"cause": "removed since"})

    def _joined(self, part: Part, rows: Iterable[Row]) -> list[Row]:
        known = list(self._old.ordered(part))
        new = {(*row[: len(part.order)], *row) for row in rows} - set(known)
        return list(merge(known, sorted(new)))

    # Rows

    def _restated_entries(self) -> dict[Any, tuple[Row, Row]]:
        """Return the rows of entries from which an erasure took words, by id and by row number in the older store.

        They are the newer store's, with the row number that the entry had. An entry that was changed again since, or
        that is in another partition, is none of them: it goes.
        """
        subject, action, seq = (tables.EVENTS.positions[name] for name in ("subject", "action", "seq"))
        rewritten = {
            row[subject]
            for row in self._new.values(transfer.EVENTS)
            if row[seq] > self._old.image.head[0] and row[action] == RESTATED
        }
        if not rewritten:
            return {}
        columns = transfer.ENTRIES.columns
        number, version, place = (columns.index(name) for name in ("rowid", "version", "partition_id"))
        partitions = {row[0] for row in self._old.values(transfer.PARTITIONS)}
        now = {row[1]: row for row in self._new.values(transfer.ENTRIES) if row[1] in rewritten and row[version] == 1}
        first = {row[0]: row for row in self._new.values(transfer.VERSIONS) if row[1] == 1}
        found: dict[Any, tuple[Row, Row]] = {}
        for row in self._old.values(transfer.ENTRIES):
            new = now.get(row[1])
            if new is not None and new[place] in partitions:
                pair = (row[number], *new[1:]), (row[number], *first[new[number]][1:])
                found |= {row[1]: pair, row[number]: pair}
        return found

    def _gone_entries(self) -> set[Any]:
        """Return ids and row numbers of entries that the newer store lacks, or of which it lacks a version."""
        there = {row[0] for row in self._new.values(transfer.ENTRIES)}
        versions = {hash(row) for row in self._new.values(transfer.VERSIONS)}
        altered = {row[0] for row in self._old.values(transfer.VERSIONS) if hash(row) not in versions}
        return {
            name
            for row in self._old.values(transfer.ENTRIES)
            if (row[0] not in there or row[0] in altered) and row[0] not in self._restated
            for name in row[:2]
        }

    def _altered_rows(self, part: Part, key: tuple[str, ...]) -> dict[Row, Row | None]:
        """Return the rows that never change but are others now, by key: without words as the newer store has them.

        One that differs in more than words was removed, and another one is in its place: None.
        """
        keys = [part.columns.index(name) for name in key]
        fixed = [at for at, name in enumerate(part.columns) if name not in _WORDS]
        there = {tuple(row[at] for at in keys): row for row in self._new.values(part)}
        found: dict[Row, Row | None] = {}
        for row in self._old.values(part):
            place = tuple(row[at] for at in keys)
            now = there.get(place)
            if now != row:
                found[place] = now if now is not None and all(now[at] == row[at] for at in fixed) else None
        return found

    def _vouching(self) -> Iterator[EventDraft]:
        """Give the newer log's events that vouch for texts without the words, as this log needs them too."""
        families = {"named.": transfer.NAMED_VERSIONS, "document.": transfer.DOCUMENT_VERSIONS}
        known = {prefix: {row[: len(p.order)] for row in self._old.ordered(p)} for prefix, p in families.items()}
        for row in self._new.values(transfer.EVENTS):
            event = tables.EVENTS.decode(row)
            if event.seq <= self._old.image.head[0]:
                continue
            prefix = next((one for one in families if event.action.startswith(one)), "")
            again = (event.subject, event.detail.get("version")) in known.get(prefix, ())
            if again or (event.action == RESTATED and event.subject in self._restated):
                yield EventDraft(event.action, event.subject, event.detail)

    def _unsplit(self, kept: dict[Part, list[Row]]) -> list[Row]:
        """Return the documents that have to be split into passages again: also those that lost words."""
        there, rows = self._ids(transfer.DOCUMENTS, kept), {row[0] for row in self._old.values(_UNSPLIT)}
        rows |= {row[0] for row in self._old.values(transfer.PASSAGES) if row[0] in self._rewritten_documents}
        return [(id, id) for id in sorted(rows & there)]

    @property
    def _rewritten_documents(self) -> set[Any]:
        return {id for id, _ in self._altered["documents"]}

    def _item(self, row: Row) -> Row:
        columns = transfer.ITEMS.columns
        return tuple(row[columns.index(name)] for name in ("space", "key", "salt"))

    def _survivors(self, part: Part, kept: dict[Part, list[Row]]) -> Iterator[Row]:
        decide = self._decide(part, kept)
        for row in self._old.ordered(part):
            found = decide(row[len(part.order) :])
            if found is None:
                self._removed[part.name] += 1
            else:
                self._reworded += found != row[len(part.order) :]
                yield (*row[: len(part.order)], *found)

    def _decide(self, part: Part, kept: dict[Part, list[Row]]) -> Callable[[Row], Row | None]:
        """Return what says of a row of a part whether it stays, and as what."""
        columns = part.columns
        if part in _ALWAYS:
            return lambda row: row
        if part is transfer.ENTRIES:
            return lambda row: None if row[0] in self._gone else self._restated.get(row[0], (row,))[0]
        if part is transfer.VERSIONS:
            return self._version
        if part.name in _OF_ENTRIES:
            places = [columns.index(name) for name in ("entry", "other", "id") if name in columns]
            lost = self._gone if part.name == "access" else self._gone | self._restated.keys()
            return lambda row: None if any(row[place] in lost for place in places) else row
        if part is transfer.UTTERANCES:
            of_message = ("transcript", "place")
            mine, messages = [columns.index(name) for name in of_message], self._altered_rows(part, of_message)
            return lambda row: messages.get(tuple(row[at] for at in mine), row)
        for name, history in _HISTORIES.items():
            if part is history or part.name == name:
                return self._of_pages(part, history, name)
        if part.name == "confirmations":
            there = {hash(row) for row in self._new.values(part)}
            return lambda row: row if hash(row) in there and row[0] not in self._gone else None
        if part is _UNSPLIT:
            return lambda row: row
        if part is transfer.PASSAGES:
            ids = self._ids(transfer.DOCUMENTS, kept) - self._rewritten_documents
            return lambda row: row if row[0] in ids else None
        if part.name in _OF_DOCUMENTS:
            place, ids = columns.index("document"), self._ids(transfer.DOCUMENTS, kept)
            ids -= self._rewritten_documents if part is transfer.PASSAGE_VECTORS else set()
            return lambda row: row if row[place] in ids else None
        if part is transfer.ITEMS:
            items = {self._item(row) for row in self._new.values(part)}
            return lambda row: row if self._item(row) in items else None
        if part is transfer.ITEM_VECTORS:
            keys = {self._item(row[len(transfer.ITEMS.order) :])[:2] for row in kept[transfer.ITEMS]}
            places = [columns.index(name) for name in ("space", "key")]
            return lambda row: row if tuple(row[place] for place in places) in keys else None
        return self._by_key(part)

    def _ids(self, part: Part, kept: dict[Part, list[Row]]) -> set[Any]:
        place = len(part.order) + part.columns.index("id")
        return {row[place] for row in kept[part]}

    def _version(self, row: Row) -> Row | None:
        """Decide on a version of an entry. Of one that lost words there is one version, the newer store's."""
        if row[0] in self._gone:
            return None
        if row[0] in self._restated:
            return self._restated[row[0]][1] if row[1] == 1 else None
        return row

    def _gone_pages(self, name: str) -> set[Any]:
        """Return the pages, or documents, that lack a version: they go as a whole."""
        return {key[0] for key, now in self._altered[name].items() if now is None}

    def _of_pages(self, part: Part, history: Part, name: str) -> Callable[[Row], Row | None]:
        """A page or a document, and each of its versions, is what that version is now."""
        assert part.columns == history.columns
        altered, gone = self._altered[name], self._gone_pages(name)
        places = [part.columns.index(column) for column in history.order]

        def decide(row: Row) -> Row | None:
            return None if row[places[0]] in gone else altered.get(tuple(row[at] for at in places), row)

        return decide

    def _by_key(self, part: Part) -> Callable[[Row], Row | None]:
        """A row stays if the newer store has one in its place: as that one is, if it can only have lost words."""
        key = _BY_NAME[part.name].key if part.name in _BY_NAME else ("id",)
        places = [part.columns.index(name) for name in (key or part.columns)]
        there = {tuple(row[place] for place in places): row for row in self._new.values(part)}

        def decide(row: Row) -> Row | None:
            now = there.get(tuple(row[place] for place in places))
            if now is None or now == row:
                return now
            if part.name in _EMPTIED or self._is_wordless(part, now):
                return now
            if (fewer := _reworded(row, now)) != row:
                return fewer
            return None if not self._touched.isdisjoint(row[place] for place in places) else row

        return decide

    def _is_wordless(self, part: Part, row: Row) -> bool:
        return part.name == tables.SUBMISSIONS.name and bool(tables.SUBMISSIONS.decode(row).wordless)


def _reworded(row: Row, now: Row) -> Row:
    """Return a row with those texts that have lost words since."""
    return tuple(
        new if isinstance(new, str) and ERASED in new and new != old else old for old, new in zip(row, now, strict=True)
    )
