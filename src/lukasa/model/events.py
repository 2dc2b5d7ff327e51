"""The event log: every change of memory, append-only; each event's digest covers the event before it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

GENESIS = "0" * 64
SCRUBBED = "scrub.executed"
BOOKMARKED = "log.bookmarked"


class Actor(Struct, frozen=True):
    """The principal, surface and transport that the event log records for a transaction."""

    principal: str
    surface: str
    transport: str

    def __str__(self) -> str:
        return f"{self.principal}@{self.surface}"


class EventDraft(Struct, frozen=True):
    """An event before the store gives it a position in the chain."""

    action: str
    subject: str
    detail: Mapping[str, Any]


class Event(Struct, frozen=True):
    seq: int
    at: datetime
    actor: Actor
    action: str
    subject: str
    detail: dict[str, Any]
    previous: str
    digest: str


def _digest(draft: EventDraft, seq: int, at: datetime, actor: Actor, previous: str) -> str:
    return Stamp(at, actor).digest(draft, canonical_json(dict(draft.detail)), seq, previous)


class Stamp:
    """The time and the actor in canonical JSON, encoded once for all the events of a transaction."""

    __slots__ = ("_spelled", "at", "who")

    def __init__(self, at: datetime, actor: Actor) -> None:
        self.at = at.isoformat()
        self.who = (actor.principal, actor.surface, actor.transport)
        self._spelled = f"{canonical_json(self.at)},{canonical_json(self.who)}"

    def digest(self, draft: EventDraft, detail: str, seq: int, previous: str) -> str:
        """The digest of an event whose detail is given as canonical JSON.

        It is the digest of the list of all seven parts, joined from parts that are encoded already.
        """
        named = f"{canonical_json(draft.action)},{canonical_json(draft.subject)}"
        body = f"[{canonical_json(previous)},{seq},{self._spelled},{named},{detail}]"
        return hashlib.sha256(body.encode("utf-8")).hexdigest()


class Spelled(Mapping[str, Any]):
    """A detail that its caller wrote as canonical JSON, faster than an encoder would.

    It is decoded only when somebody reads a key.
    """

    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text = text

    def read(self) -> dict[str, Any]:
        return dict(json.loads(self.text))

    def __getitem__(self, key: str) -> Any:
        return self.read()[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self.read())

    def __len__(self) -> int:
        return len(self.read())


_CANONICAL = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def canonical_json(value: Any) -> str:
    """Encode a value as JSON in one canonical form, so that anybody can recompute a digest."""
    if type(value) is str:
        return _quoted(value)
    if _pieces is None:
        return _CANONICAL.encode(value)
    try:
        return "".join(_pieces(value, 0))
    except RecursionError:
        return _CANONICAL.encode(value)  # raises if the value contains itself


def _encoder() -> Callable[[Any, int], Iterable[str]] | None:
    """The C encoder, made once instead of for each value; None if the library has only the Python one."""
    make, plain = getattr(json.encoder, "c_make_encoder", None), _CANONICAL
    if make is None:
        return None
    separators = (plain.key_separator, plain.item_separator)
    made: Callable[[Any, int], Iterable[str]] = make(
        None, plain.default, json.encoder.encode_basestring, None, *separators, plain.sort_keys, False, True
    )
    return made


_pieces = _encoder()
_quoted: Callable[[str], str] = json.encoder.encode_basestring


# Redaction: a scrub may empty events. Their sequence number, time, actor, action and digests stay.


class Redacted(Struct, frozen=True):
    """The events that a scrub emptied, as ranges of sequence numbers, and a digest over all that is left of them."""

    ranges: tuple[tuple[int, int], ...] = ()
    husks: str = ""

    def plain(self) -> dict[str, Any]:
        return {"ranges": [list(span) for span in self.ranges], "husks": self.husks}


def redaction(events: Iterable[Event]) -> Redacted:
    """The record of the events that a scrub empties, given in order, so that the rest of each stays verifiable."""
    ranges: list[tuple[int, int]] = []
    husks = hashlib.sha256()
    for event in events:
        if ranges and ranges[-1][1] == event.seq - 1:
            ranges[-1] = (ranges[-1][0], event.seq)
        else:
            ranges.append((event.seq, event.seq))
        husks.update(_husk(event))
    return Redacted(tuple(ranges), husks.hexdigest() if ranges else "")


def emptied(event: Event) -> Event:
    return replace(event, subject="", detail={})


def is_emptied(event: Event) -> bool:
    return not event.subject and not event.detail


def may_be_emptied(event: Event) -> bool:
    """Whether a scrub may empty an event: not a scrub's own event, and not one that is already empty."""
    return event.action != SCRUBBED and not is_emptied(event)


def _husk(event: Event) -> bytes:
    actor = [event.actor.principal, event.actor.surface, event.actor.transport]
    left = [event.seq, event.at.isoformat(), actor, event.action, event.previous, event.digest]
    return hashlib.sha256(canonical_json(left).encode("utf-8")).digest()


def chain_faults(events: Iterable[Event], *, head: tuple[int, str] | None = None) -> list[str]:
    """Describe each fault of a chain; an empty list means that it verifies.

    `head` is the (seq, digest) that is stored outside the log: without it a truncated log would look whole. An emptied
    event counts as whole only if a later scrub, itself intact, recorded exactly what is left of it.
    """
    faults: list[tuple[int, str]] = []
    unvouched: dict[int, bytes] = {}
    previous, expected = GENESIS, 1
    for event in events:
        if event.seq != expected:
            faults.append((event.seq, f"event {expected} is missing or out of order (found {event.seq})"))
            expected = event.seq
        if event.previous != previous:
            faults.append((event.seq, f"event {event.seq} does not continue the one before it"))
        draft = EventDraft(event.action, event.subject, event.detail)
        if _digest(draft, event.seq, event.at, event.actor, event.previous) != event.digest:
            if is_emptied(event) and event.action != SCRUBBED:
                unvouched[event.seq] = _husk(event)
            else:
                faults.append((event.seq, f"event {event.seq} was altered"))
        elif event.action == SCRUBBED and not _vouch(event, unvouched):
            faults.append((event.seq, f"scrub {event.seq} does not match the events that it emptied"))
        previous, expected = event.digest, expected + 1
    faults += [(seq, f"event {seq} was emptied, and no scrub has a record of it") for seq in unvouched]
    told = [text for _, text in sorted(faults, key=lambda fault: fault[0])]
    if head is not None and head != (expected - 1, previous):
        told.append(f"the log ends at event {expected - 1}, but its recorded head is event {head[0]}")
    return told


def _vouch(scrub: Event, unvouched: dict[int, bytes]) -> bool:
    """Remove the events that this scrub recorded from `unvouched`; False if the record does not match."""
    said = scrub.detail.get("redacted") or {}
    try:
        spans = [(int(first), int(last)) for first, last in said.get("ranges", [])]
    except (TypeError, ValueError):
        return False
    if not all(0 < first <= last < scrub.seq for first, last in spans):
        return False
    seqs = [seq for first, last in spans for seq in range(first, last + 1)]
    husks = hashlib.sha256(b"".join(unvouched.pop(seq, b"") for seq in seqs)).hexdigest() if seqs else ""
    return bool(husks == said.get("husks", ""))
