"""The event log: every change of memory, append-only, each event sealed to the one before it."""

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


class Actor(Struct, frozen=True):
    """On whose behalf a transaction runs, as the event log names them."""

    principal: str
    surface: str
    transport: str

    def __str__(self) -> str:
        return f"{self.principal}@{self.surface}"


class EventDraft(Struct, frozen=True):
    """What happened, before the store gives it a place in the chain."""

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
    """When and by whom, spelled once for all the events of a transaction."""

    __slots__ = ("_spelled", "at", "who")

    def __init__(self, at: datetime, actor: Actor) -> None:
        self.at = at.isoformat()
        self.who = (actor.principal, actor.surface, actor.transport)
        self._spelled = f"{canonical_json(self.at)},{canonical_json(self.who)}"

    def digest(self, draft: EventDraft, detail: str, seq: int, previous: str) -> str:
        """The seal of an event whose detail is given in its canonical spelling.

        It is that of the list of all seven parts, put together from spellings that are there already.
        """
        named = f"{canonical_json(draft.action)},{canonical_json(draft.subject)}"
        body = f"[{canonical_json(previous)},{seq},{self._spelled},{named},{detail}]"
        return hashlib.sha256(body.encode("utf-8")).hexdigest()


class Spelled(Mapping[str, Any]):
    """A detail in its canonical spelling, from whoever could put that together sooner than an encoder. It is taken
    apart only where somebody looks into it."""

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
    """One spelling for one value, so that digests can be recomputed anywhere."""
    if type(value) is str:
        return _quoted(value)
    if _pieces is None:
        return _CANONICAL.encode(value)
    try:
        return "".join(_pieces(value, 0))
    except RecursionError:
        return _CANONICAL.encode(value)  # says whether that was a circle


def _encoder() -> Callable[[Any, int], Iterable[str]] | None:
    """What the encoder above makes anew for each value, made once; None where the library has it only in Python."""
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


# Redaction: a scrub may empty events. Their place, time, actor and action stay, and so do their seals.


class Redacted(Struct, frozen=True):
    """Which events a scrub emptied, as ranges of numbers, and a digest over all that is left of them."""

    ranges: tuple[tuple[int, int], ...] = ()
    husks: str = ""

    def plain(self) -> dict[str, Any]:
        return {"ranges": [list(span) for span in self.ranges], "husks": self.husks}


def redaction(events: Iterable[Event]) -> Redacted:
    """What a scrub has to say of the events it empties, given in order, so that their husks stay verifiable."""
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
    """A scrub's own event is final: nothing removes it. What is empty already stays as it is vouched for."""
    return event.action != SCRUBBED and not is_emptied(event)


def _husk(event: Event) -> bytes:
    actor = [event.actor.principal, event.actor.surface, event.actor.transport]
    left = [event.seq, event.at.isoformat(), actor, event.action, event.previous, event.digest]
    return hashlib.sha256(canonical_json(left).encode("utf-8")).digest()


def chain_faults(events: Iterable[Event], *, head: tuple[int, str] | None = None) -> list[str]:
    """What is wrong with a chain, in words; empty when it verifies.

    `head` is the (seq, digest) kept outside the log: without it a cut-off tail would still look whole. An event that
    was emptied counts as whole only if a later scrub, itself intact, vouches for exactly what is left of it.
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
            faults.append((event.seq, f"what scrub {event.seq} emptied is not what is there"))
        previous, expected = event.digest, expected + 1
    faults += [(seq, f"event {seq} was emptied, and no scrub vouches for it") for seq in unvouched]
    told = [text for _, text in sorted(faults, key=lambda fault: fault[0])]
    if head is not None and head != (expected - 1, previous):
        told.append(f"the log ends at event {expected - 1}, but its recorded head is event {head[0]}")
    return told


def _vouch(scrub: Event, unvouched: dict[int, bytes]) -> bool:
    """Take off the list what this scrub speaks for; False if that is not exactly what is left."""
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
