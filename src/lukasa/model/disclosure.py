"""The disclosure ledger: which entries and pages went into which prompt. It holds ids and numbers, never a text."""

from __future__ import annotations

import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections import Counter
from collections.abc import Collection, Iterable
from datetime import UTC, datetime

from msgspec import Struct
from msgspec.structs import replace

_PACKED, _PAGE = 22, ":"  # characters of a packed id, and the mark of a page's name, which no packed id holds


class Shown(Struct, frozen=True):
    """One entry or page of a text that was sent: its version, and the tokens that it took there."""

    id: str
    version: int
    tokens: int
    page: bool = False


class Disclosure(Struct, frozen=True):
    """One text that went to an agent: who got it, where and when, and what was in it.

    `tokens` counts the whole text with its frame, or the part of it that this store answers for. `workspace` is empty
    in a workspace's own store; in the account's store it says from which workspace the text was sent.
    """

    at: datetime
    principal: str
    surface: str
    transport: str
    conversation: str
    workspace: str
    verb: str
    tokens: int
    items: tuple[Shown, ...]


class DisclosureQuery(Struct, frozen=True):
    """Conditions that must all hold; an omitted one does not filter."""

    since: datetime | None = None
    conversation: str | None = None
    principal: str | None = None
    item: Shown | None = None  # only its id, and whether it is a page
    times: tuple[datetime, ...] | None = None


def pack(id: str) -> str:
    """Return an id in 22 characters instead of 36; a text that is no usual id stays as it is."""
    try:
        number = bytes.fromhex(id.replace("-", ""))
    except ValueError:
        return id
    return urlsafe_b64encode(number)[:_PACKED].decode() if _spelled(number) == id else id


def unpack(packed: str) -> str:
    return _spelled(urlsafe_b64decode(packed + "==")) if len(packed) == _PACKED else packed


def _spelled(number: bytes) -> str:
    """Return an id as it is written; four times as fast as `UUID`, and a full ledger holds very many."""
    digits = number.hex()
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}" if len(number) == 16 else ""


def mark(item: Shown) -> str:
    """Return the text that stands for an entry or a page in a row, with its quotes: what a search looks for."""
    return json.dumps(_PAGE + item.id if item.page else pack(item.id), ensure_ascii=False)


def items_text(items: Iterable[Shown]) -> str:
    return f"[{','.join(f'{mark(one)},{one.version},{one.tokens}' for one in items)}]"


def items_of(text: str) -> tuple[Shown, ...]:
    parts = json.loads(text)
    return tuple(
        Shown(id[1:], version, tokens, page=True) if id.startswith(_PAGE) else Shown(unpack(id), version, tokens)
        for id, version, tokens in zip(parts[::3], parts[1::3], parts[2::3], strict=True)
    )


def without(given: Disclosure, entries: Collection[str], pages: Collection[str]) -> Disclosure | None:
    """Return a disclosure without some entries and pages; None if nothing else was in it."""
    kept = tuple(one for one in given.items if one.id not in (pages if one.page else entries))
    return replace(given, items=kept) if kept else None


class TokenUse(Struct, frozen=True):
    """What memory cost in tokens since a time: altogether, and by agent, surface, kind of call, and day (UTC)."""

    since: datetime
    tokens: int
    texts: int
    by_agent: dict[str, int]
    by_surface: dict[str, int]
    by_verb: dict[str, int]
    by_day: dict[str, int]


def token_use(since: datetime, found: Iterable[Disclosure]) -> TokenUse:
    """Add up disclosures. The most tokens come first, but days are in order."""
    sums: tuple[Counter[str], ...] = (Counter(), Counter(), Counter(), Counter())
    times: set[tuple[object, ...]] = set()
    for one in found:
        for counter, name in zip(sums, (one.principal, one.surface, one.verb), strict=False):
            counter[name] += one.tokens
        sums[3][f"{one.at.astimezone(UTC):%Y-%m-%d}"] += one.tokens
        times.add(call_of(one))
    by_agent, by_surface, by_verb = (dict(sum_.most_common()) for sum_ in sums[:3])
    return TokenUse(since, sums[3].total(), len(times), by_agent, by_surface, by_verb, dict(sorted(sums[3].items())))


def call_of(one: Disclosure) -> tuple[object, ...]:
    """Return what the parts of one text have in common, which two stores may have noted."""
    return (one.at, one.principal, one.surface, one.conversation, one.verb)
