"""Compare what is read with what was written: with the hash in its row, or with the commitment in the event log.

What differs is marked as damaged, and its text is not shown. Only what is read is compared; a check compares all.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, TypeAlias, TypeVar

from msgspec.structs import replace

from lukasa.model.entry import DAMAGED, Document, Entry, NamedEntry, Version
from lukasa.model.errors import UNREADABLE, Damaged
from lukasa.model.text import commitment
from lukasa.model.timestamps import moment
from lukasa.storage.entry_codec import entry_of_snapshot

Page = TypeVar("Page", NamedEntry, Document)
Commitments: TypeAlias = "Mapping[tuple[str, int], str]"  # by subject and version


def intact(value: bytes, digest: str) -> bool:
    """Whether stored bytes have the hash that was stored with them."""
    return hashlib.sha256(value).hexdigest() == digest


def commitments(events: Iterable[tuple[str, str, str]], family: str) -> dict[tuple[str, int], str]:
    """By subject and version, what the log committed to, from the action, subject and detail of events.

    `family` is how the actions of such events begin.
    """
    found: dict[tuple[str, int], str] = {}
    for action, subject, text in events:
        if action.partition(".")[0] == family:
            with suppress(*UNREADABLE):  # an event that cannot be read vouches for nothing
                detail = json.loads(text)
                found[subject, detail["version"]] = detail["commitment"]
    return found


def pages(found: Sequence[Page], known: Commitments, secret: bytes) -> list[Page]:
    """Pages or documents, or versions of them; one whose text the log does not vouch for is marked as damaged."""
    return [
        page
        if known.get((page_name(page), page.version)) == commitment(secret, page.body)
        else replace(page, body=DAMAGED)
        for page in found
    ]


def page_name(page: NamedEntry | Document) -> str:
    """The name that events call a page or document by."""
    return page.name if isinstance(page, NamedEntry) else page.id


def history(id: str, rows: Sequence[tuple[Any, ...]], known: Commitments) -> list[Version]:
    """All versions of an entry, oldest first; one whose text the log does not vouch for is marked as damaged.

    A row is the entry at that version as bytes, action, cause, actor, time, number and salt.
    """
    found: list[Version] = []
    for snapshot, action, cause, actor, at, number, salt in rows:
        entry = version_of(snapshot, number, known.get((id, number)), salt)
        if entry is None:
            raise Damaged(f"version {number} of entry {id}")
        found.append(Version(entry, action, cause, actor, moment(at)))
    return found


def version_of(snapshot: bytes, number: int, committed: str | None, salt: bytes) -> Entry | None:
    """An entry as one version has it, marked if its text is damaged; None if the row cannot be read."""
    try:
        entry = entry_of_snapshot(snapshot.decode(errors="replace"))
    except UNREADABLE:
        return None
    sound = entry.version == number and commitment(salt, entry.content) == committed
    return entry if sound else replace(entry, content=DAMAGED)


def sound_copy(id: str, rows: Sequence[tuple[Any, ...]], known: Commitments) -> Entry | None:
    """The last version of an entry, of rows as `history` takes them, if the log vouches for it."""
    if not rows:
        return None
    snapshot, *_, number, salt = rows[-1]
    entry = version_of(snapshot, number, known.get((id, number)), salt)
    return None if entry is None or entry.damaged else entry
