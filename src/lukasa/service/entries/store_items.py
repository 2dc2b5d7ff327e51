"""Items of a LangGraph store: write, read, search, list, sweep. Values are kept as given; a change is an event."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Literal

from msgspec import Struct, field
from msgspec.structs import force_setattr, replace

from lukasa.model.errors import Conflict, EmbedderError, InvalidInput, InvalidQuery, NotFound
from lukasa.model.item import Item, ItemAddress, ItemFilter, checked_namespace, lifetime, value_text, whole_text
from lukasa.model.secrets import redact_all
from lukasa.model.text import terms
from lukasa.ports import Embedder
from lukasa.service import inputs
from lukasa.service.call import CallContext
from lukasa.service.instrument import verb
from lukasa.storage.operations import DropItem, ItemIndex, ItemVector, Operation, SaveItem
from lukasa.storage.port import FoundItem, ItemQuery

_SWEEP = 500


class PutItem(Struct, frozen=True):
    """A value for an address; None deletes the item.

    `texts` are the texts that a search compares, each with its field; `indexer` names the maker of their vectors.
    """

    place: ItemAddress
    value: Mapping[str, Any] | None
    ttl: float | None = None
    texts: tuple[tuple[str, str], ...] = ()
    indexer: str = ""

    @property
    def index(self) -> ItemIndex:
        """The fields that a search compares."""
        whole = whole_text(self.value or {})
        return ItemIndex(tuple((f, None if text == whole else text) for f, text in self.texts), self.indexer)


class ItemSearch(Struct, frozen=True):
    """A search for items: a namespace prefix, a query, filters and a page."""

    prefix: tuple[str, ...]
    query: str | None = None
    filter: ItemFilter = field(default_factory=ItemFilter)
    limit: int = 10
    offset: int = 0
    omit_expired: bool = False


class Pattern(Struct, frozen=True):
    """The labels with which a namespace must begin or end; `*` stands for any one label."""

    end: Literal["prefix", "suffix"]
    path: tuple[str, ...]

    def __post_init__(self) -> None:
        if self.end not in ("prefix", "suffix"):
            raise InvalidQuery(f"unknown match type {str(self.end)[:60]!r}", fix="use 'prefix' or 'suffix'")
        force_setattr(self, "path", checked_namespace(self.path))

    def fits(self, namespace: tuple[str, ...]) -> bool:
        """Say whether a namespace matches."""
        size = len(self.path)
        part = namespace[:size] if self.end == "prefix" else namespace[max(len(namespace) - size, 0) :]
        return len(part) == size and all(asked in ("*", label) for asked, label in zip(self.path, part, strict=True))

    @property
    def plain_prefix(self) -> tuple[str, ...]:
        """Return the labels with which every matching namespace begins."""
        known = self.path if self.end == "prefix" else ()
        return known[: known.index("*")] if "*" in known else known


# Tenants


def _root(ctx: CallContext) -> tuple[str, ...]:
    """Return the labels under which a bound tenant keeps its items. An unbound handle sees them there."""
    return tuple(f"{key}={value}" for key, value in ctx.tenancy.items())


def _inside(ctx: CallContext, place: ItemAddress) -> ItemAddress:
    root = _root(ctx)
    return ItemAddress(root + place.namespace, place.key) if root else place


def _outside(item: Item, root: tuple[str, ...]) -> Item:
    return replace(item, place=ItemAddress(item.place.namespace[len(root) :], item.place.key))


# Writing


@verb("item", "write")
def write(ctx: CallContext, puts: Sequence[PutItem], embedder: Embedder | None) -> None:
    """Write values in one transaction. Of several values for one address, the last counts.

    Secrets in the values of agents are redacted; the owner's programs read back what they wrote.
    """
    puts = [replace(put, place=_inside(ctx, put.place)) for put in puts] if ctx.tenancy else puts
    last = {put.place: put if ctx.is_author else redact_all(put) for put in puts}
    vectors = _vectors([put for put in last.values() if put.value is not None], embedder)
    now = ctx.now
    saves = [
        SaveItem(_new(put, now), vectors.get(place, ()), put.index)
        for place, put in last.items()
        if put.value is not None
    ]
    emptied = [place for place, put in last.items() if put.value is None]
    while True:
        present = ctx.local.items(emptied) if emptied else {}
        operations: list[Operation] = [*saves, *(DropItem(place, "deleted") for place in present)]
        if not operations:
            return
        try:
            ctx.apply(ctx.local, *operations)
        except NotFound:
            continue  # another process deleted one of these items meanwhile
        return


def _new(put: PutItem, now: datetime) -> Item:
    span = lifetime(put.ttl)
    expires_at = None if span is None else now + span
    return Item(put.place, dict(put.value or {}), now, now, expires_at, put.ttl)


def _vectors(puts: Sequence[PutItem], embedder: Embedder | None) -> dict[ItemAddress, tuple[ItemVector, ...]]:
    """Compute one vector for each field. If the embedder fails, the values are kept and backfilled later."""
    for put in puts:
        if not all(map(inputs.is_one_line, (*put.place.namespace, put.place.key))):
            raise InvalidInput(
                "a namespace or a key holds a line break or another control character",
                fix="write each on one line of plain characters",
            )
        value_text(put.value or {})  # refuse a value that cannot be stored before computing vectors
        lifetime(put.ttl)
    texts = list(dict.fromkeys(text for put in puts for _, text in put.texts))
    if embedder is None or not texts:
        return {}
    try:
        known = dict(zip(texts, embedder.embed_memories(texts), strict=True))
    except EmbedderError:
        return {}
    model = embedder.model
    return {put.place: tuple(ItemVector(f, model, known[t]) for f, t in dict(put.texts).items()) for put in puts}


@verb("item", "sweep")
def sweep(ctx: CallContext) -> int:
    """Delete expired items; return how many."""
    swept = 0
    while True:
        now = ctx.now
        places = ctx.local.expired_items(now, _SWEEP)
        if not places:
            return swept
        try:
            ctx.apply(ctx.local, *(DropItem(place, "expired", expired_by=now) for place in places))
        except (NotFound, Conflict):
            continue  # another process deleted or renewed one of them meanwhile
        swept += len(places)


# Reading


def read(ctx: CallContext, places: Iterable[ItemAddress], *, omit_expired: bool = False) -> dict[ItemAddress, Item]:
    """Return the items at these addresses."""
    now = ctx.now
    asked = {_inside(ctx, place): place for place in places}
    found = ctx.local.items(asked)
    kept = {asked[place]: item for place, item in found.items() if not (omit_expired and item.expired(now))}
    return {place: replace(item, place=place) for place, item in kept.items()} if ctx.tenancy else kept


def renew(ctx: CallContext, items: Iterable[Item]) -> None:
    """Restart the time to live of items, as reading them does."""
    places = list(dict.fromkeys(_inside(ctx, item.place) for item in items if item.ttl is not None))
    if places:
        ctx.local.touch_items(places, ctx.now)


def search(ctx: CallContext, asked: ItemSearch, embedder: Embedder | None) -> list[FoundItem]:
    """Return items: without a query the last changed first; with one the best first, then items without a vector."""
    root = _root(ctx)
    found = _search(ctx, replace(asked, prefix=root + checked_namespace(asked.prefix)), embedder)
    return [FoundItem(_outside(one.item, root), one.score) for one in found] if root else found


def _search(ctx: CallContext, asked: ItemSearch, embedder: Embedder | None) -> list[FoundItem]:
    _check_page(asked.limit, asked.offset)
    alive_at = ctx.now if asked.omit_expired else None
    plain = ItemQuery(asked.prefix, asked.filter, alive_at)
    if not asked.query:
        return ctx.local.find_items(plain, limit=asked.limit, offset=asked.offset)
    try:
        near = (embedder.model, embedder.embed_query(asked.query)) if embedder is not None else None
    except EmbedderError:
        near = None
    if near is None:
        ranked = _by_words([found.item for found in ctx.local.find_items(plain)], asked.query)
        return ranked[asked.offset : asked.offset + asked.limit]
    query = ItemQuery(plain.prefix, plain.filter, alive_at, near)
    return ctx.local.find_items(query, limit=asked.limit, offset=asked.offset)


def _check_page(limit: int, offset: int) -> None:
    for name, number in (("limit", limit), ("offset", offset)):
        if isinstance(number, bool) or not isinstance(number, int) or not 0 <= number < 2**62:
            raise InvalidQuery(f"unusable {name} {str(number)[:60]}", fix="use a whole number from 0")


def _by_words(items: Sequence[Item], query: str) -> list[FoundItem]:
    """Score items without an embedder: the share of the query's words that an item has, rare words counting more."""
    asked = set(terms(query))
    held = [asked & set(terms(" ".join(_strings(item.value)))) for item in items]
    counts = Counter(term for shared in held for term in shared)
    weights = {term: math.log(1 + len(items) / (counts[term] + 0.5)) for term in asked}
    whole = sum(weights.values())
    scored = [
        FoundItem(item, sum(weights[t] for t in shared) / whole if shared else None)
        for item, shared in zip(items, held, strict=True)
    ]
    return sorted(scored, key=lambda found: -(found.score or 0.0))


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping | list):
        for part in value.values() if isinstance(value, Mapping) else value:
            yield from _strings(part)


def namespaces(
    ctx: CallContext,
    patterns: Sequence[Pattern] = (),
    *,
    max_depth: int | None = None,
    limit: int = 100,
    offset: int = 0,
    omit_expired: bool = False,
) -> list[tuple[str, ...]]:
    """Return the namespaces that match all patterns, cut at a depth, each once, in order."""
    _check_page(limit, offset)
    if max_depth is not None:
        _check_page(max_depth, 0)
    root = _root(ctx)
    known = root + max((pattern.plain_prefix for pattern in patterns), key=len, default=())
    found = ctx.local.item_namespaces(known, alive_at=ctx.now if omit_expired else None)
    held = [namespace[len(root) :] for namespace in found]
    fitting = {namespace[:max_depth] for namespace in held if all(pattern.fits(namespace) for pattern in patterns)}
    return sorted(fitting)[offset : offset + limit]
