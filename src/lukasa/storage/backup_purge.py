"""Apply to an older backup what was removed for good since: its rows without those that a newer backup lacks.

The newer backup has the whole log of the older one, so a row that it lacks was removed in between. Rows that never
change must be the same in both; events that were emptied since are emptied, and an event at the end vouches for them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from heapq import merge
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from lukasa.model.errors import Conflict
from lukasa.model.events import SCRUBBED, Actor, Event, EventDraft, Stamp, canonical_json, redaction
from lukasa.model.item import ItemAddress, item_id, namespace_of
from lukasa.storage import tables, transfer
from lukasa.storage.backup_image import ImageStore
from lukasa.storage.transfer import PARTS, About, Part, Row

_BY_NAME = {table.name: table for table in tables.tables()}
_ALWAYS = (transfer.RETIRED, transfer.REDACTIONS, transfer.SPENDING, transfer.CLOSED_SCOPES, transfer.MODELS)
# These belong to entries, and go with them.
_OF_ENTRIES = {
    *("versions", "vectors", "rivals", "canonical_links", "derivations", "citations", "citation_checks"),
    *("action_links", "access"),
}
_OF_DOCUMENTS = ("passages", "passage_vectors", "document_sources", "unsplit")
_FIXED = ("named_versions", "document_versions", "utterances", "confirmations")  # rows that never change
_EMPTIED = ("points", "disclosures", "answers")  # rows that change only by losing words
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
        self._events, self._going = self._emptied()
        self._touched = {event.subject for event in self._going} - {""}
        self._gone = self._gone_entries()

    def run(self, stamp: Stamp, at: datetime) -> Without | None:
        kept: dict[Part, list[Row]] = {}
        for part in PARTS:
            if part not in (transfer.EVENTS, transfer.RETIRED, transfer.REDACTIONS):
                kept[part] = list(self._survivors(part, kept))
        if not self._going and not self._removed.keys() - _EXPIRES:
            return None
        dropped = list(self._dropped_items(kept))
        kept[transfer.EVENTS], ends, spans = self._log(stamp, dropped)
        kept[transfer.RETIRED] = self._joined(transfer.RETIRED, [(id,) for id in self._gone if isinstance(id, str)])
        kept[transfer.REDACTIONS] = self._joined(transfer.REDACTIONS, [(*span, ends[0]) for span in spans])
        return Without(kept, ends, dict(self._removed) | ({"events": len(self._going)} if self._going else {}))

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

    def _log(self, stamp: Stamp, dropped: list[EventDraft]) -> tuple[list[Row], tuple[int, str], list[Any]]:
        """Add to the log which items are gone, and the event that vouches for those that are emptied."""
        said = redaction(self._going)
        about = {"mode": "backup", "scope": {"place": self._old.image.id}, "counts": dict(self._removed)}
        last = EventDraft(SCRUBBED, self._old.image.id, {**about, "digest": said.husks, "redacted": said.plain()})
        seq, digest = self._old.about.head
        for draft in (*dropped, last):
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

    def _gone_entries(self) -> set[Any]:
        """Return ids and row numbers of entries that the newer store lacks, or of which it lacks a version."""
        there = {row[0] for row in self._new.values(transfer.ENTRIES)}
        versions = {hash(row) for row in self._new.values(transfer.VERSIONS)}
        altered = {row[0] for row in self._old.values(transfer.VERSIONS) if hash(row) not in versions}
        return {
            name
            for row in self._old.values(transfer.ENTRIES)
            if row[0] not in there or row[0] in altered
            for name in row[:2]
        }

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
                yield (*row[: len(part.order)], *found)

    def _decide(self, part: Part, kept: dict[Part, list[Row]]) -> Callable[[Row], Row | None]:
        """Return what says of a row of a part whether it stays, and as what."""
        columns = part.columns
        if part in _ALWAYS:
            return lambda row: row
        if part is transfer.ENTRIES:
            return lambda row: None if row[0] in self._gone else row
        if part.name in _OF_ENTRIES:
            places = [columns.index(name) for name in ("entry", "other", "id") if name in columns]
            return lambda row: None if any(row[place] in self._gone for place in places) else row
        if part.name in _FIXED:
            there = {hash(row) for row in self._new.values(part)}
            return lambda row: row if hash(row) in there and row[0] not in self._gone else None
        if part in (transfer.NAMED, transfer.DOCUMENTS):
            return self._with_history(part)
        if part.name in _OF_DOCUMENTS:
            place, ids = columns.index("document"), self._ids(transfer.DOCUMENTS, kept)
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

    def _with_history(self, part: Part) -> Callable[[Row], Row | None]:
        """A page or a document stays if all of its versions do."""
        history = transfer.NAMED_VERSIONS if part is transfer.NAMED else transfer.DOCUMENT_VERSIONS
        there = {hash(row) for row in self._new.values(history)}
        name = "name" if part is transfer.NAMED else "id"
        mine, past = part.columns.index(name), history.columns.index(name)
        altered = {row[past] for row in self._old.values(history) if hash(row) not in there}
        return lambda row: None if row[mine] in altered else row

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
            return None if not self._touched.isdisjoint(row[place] for place in places) else row

        return decide

    def _is_wordless(self, part: Part, row: Row) -> bool:
        return part.name == tables.SUBMISSIONS.name and bool(tables.SUBMISSIONS.decode(row).wordless)


def renewed(old: ImageStore, found: Without) -> About:
    """Return what there is to say of the store that is left."""
    return replace(old.about, head=found.ends)
