"""What the owner's page shows of all entries: a table of every tier and scope, and the names of people and things.

Both are about the newest entries of the workspace and of the account, in whatever scope. They are read once for each
state of the event log, because somebody who looks around asks again and again.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from functools import partial
from threading import Lock
from typing import Any, Generic, Literal, TypeVar, get_args

from msgspec import Struct

from lukasa.model.entry import Access, Entry
from lukasa.model.errors import InvalidQuery
from lukasa.model.names import Name, NameIndex, NameLink, Text, name_index
from lukasa.model.selection import Selection
from lukasa.model.text import fold
from lukasa.model.values import VISIBILITY, Visibility
from lukasa.read.decay import decay_factor, frequency, relevance
from lukasa.service.call import CallContext
from lukasa.storage.port import Store

LOOKED_AT = 20_000  # the newest entries of a store; of a larger one, the rest is left out, and the answer says so
_REMEMBERED = 4  # stores of which the last answer is kept
_PAGE = 1000

T = TypeVar("T")
Sort = Literal["updated", "created", "importance", "relevance", "reads", "text"]


class Conditions(Struct, frozen=True):
    """What an entry of the table must be. One of several values of a condition is enough; of tags, all must be there.

    `words` must all be in its text; `name` is a person or a thing that it names; `session` is the id of a transcript
    that it was learned in; `agent` wrote it. Without `everything` and without states, retired entries are left out.
    """

    words: str = ""
    ids: tuple[str, ...] = ()
    tiers: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    states: tuple[str, ...] = ()
    curators: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    agents: tuple[str, ...] = ()
    conversation: str = ""
    session: str = ""
    name: str = ""
    since: datetime | None = None
    until: datetime | None = None
    everything: bool = False


def conditions(given: Mapping[str, Any]) -> Conditions:
    """Return conditions by their names; a single value may stand for a list of one."""
    known = Conditions.__struct_fields__
    if unknown := set(given) - set(known):
        raise InvalidQuery(f"unknown condition {sorted(unknown)[0][:60]!r}", fix=f"use: {', '.join(known)}")
    lists = {name for name in known if isinstance(getattr(Conditions(), name), tuple)}
    made: dict[str, Any] = {}
    for name, value in given.items():
        made[name] = value if name not in lists else (value,) if isinstance(value, str) else tuple(value)
    return Conditions(**made)


class Row(Struct, frozen=True):
    """An entry of the table: its relevance now, and how often it was retrieved."""

    entry: Entry
    relevance: float
    reads: int


class Table(Struct, frozen=True):
    """A page of the table. `facets` counts, for each condition, the entries that pass all the other conditions.

    `total` counts what passes all of them. If `cut`, there are older entries that nobody looked at.
    """

    rows: tuple[Row, ...]
    total: int
    cut: bool
    facets: dict[str, dict[str, int]]


class NameMap(Struct, frozen=True):
    """The names in most entries, which of them are named together, and how many people and things there are."""

    names: tuple[Name, ...]
    links: tuple[NameLink, ...]
    people: int
    things: int
    entries: int
    cut: bool


# All entries, once for each state of the log


class _Seen(Struct, frozen=True):
    head: int
    entries: tuple[Entry, ...]
    cut: bool


class Lately(Generic[T]):
    """The last answers about some stores, each with the end of the log that it is of."""

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[str, ...], tuple[object, T]] = OrderedDict()
        self._lock = Lock()

    def get(self, key: tuple[str, ...], state: object, make: Callable[[], T]) -> T:
        with self._lock:
            known = self._kept.get(key)
            if known is not None and known[0] == state:
                self._kept.move_to_end(key)
                return known[1]
        made = make()
        with self._lock:
            self._kept[key] = (state, made)
            self._kept.move_to_end(key)
            while len(self._kept) > _REMEMBERED:
                self._kept.popitem(last=False)
        return made


_entries: Lately[_Seen] = Lately()
_names: Lately[NameIndex] = Lately()


def _owned(ctx: CallContext) -> None:
    ctx.require_author("look at all entries")
    ctx.require_whole("look at all entries")


def _read(store: Store) -> _Seen:
    with store.snapshot() as still:
        head = still.head()[0]
        scopes = tuple(count.scope for count in still.census())
        found: list[Entry] = []
        selection = Selection(scopes, frozenset(Visibility), None)
        while scopes and len(found) <= LOOKED_AT:
            page = still.find(selection, limit=_PAGE, after=found[-1].id if found else None, damaged=True)
            found += page
            if len(page) < _PAGE:
                break
    return _Seen(head, tuple(found[:LOOKED_AT]), len(found) > LOOKED_AT)


def entries_of(store: Store) -> tuple[Entry, ...]:
    """Return the newest entries of a store, of all scopes, in every state; damaged ones are marked."""
    return _seen(store).entries


def _seen(store: Store) -> _Seen:
    return _entries.get(_key(store), store.head(), partial(_read, store))


def every(ctx: CallContext) -> tuple[list[Entry], bool]:
    known = {tier.name for tier in ctx.spec.tiers}
    seen = [_seen(store) for store in _stores(ctx)]
    return [one for part in seen for one in part.entries if one.scope.tier in known], any(part.cut for part in seen)


def _stores(ctx: CallContext) -> tuple[Store, Store]:
    return ctx.local, ctx.account


def _key(store: Store) -> tuple[str, ...]:
    """Tell stores apart by their secrets: a path or an object may be another store tomorrow."""
    return (store.secret().hex(),)


# The table


def table(
    ctx: CallContext,
    wanted: Conditions,
    *,
    sort: str = "updated",
    ascending: bool = False,
    limit: int = 50,
    offset: int = 0,
) -> Table:
    """Return a page of all entries that meet the conditions, sorted, with what the conditions leave to choose."""
    _owned(ctx)
    if sort not in get_args(Sort):
        raise InvalidQuery(f"entries cannot be sorted by {sort[:40]!r}", fix=f"use: {', '.join(get_args(Sort))}")
    entries, cut = every(ctx)
    checks = _checks(ctx, wanted)
    passed, facets = _sorted_out(entries, checks)
    rows = _rows(ctx, passed, sort, ascending)
    return Table(tuple(rows[offset : offset + limit]), len(rows), cut, facets)


_Check = Callable[[Entry], bool]
_FACETS: dict[str, Callable[[Entry], Iterable[str]]] = {
    "tier": lambda entry: (entry.scope.tier,),
    "kind": lambda entry: (str(entry.kind),),
    "state": lambda entry: (str(entry.state),),
    "curator": lambda entry: (str(entry.curator),),
    "source": lambda entry: (entry.source,),
    "category": lambda entry: (entry.category.name,) if entry.category else (),
    "agent": lambda entry: (entry.origin.principal,),
    "tag": lambda entry: entry.tags,
}
_MOST_VALUES = 200  # of one facet


def _checks(ctx: CallContext, wanted: Conditions) -> dict[str, _Check]:
    """Return what each condition asks of an entry, by its name; a facet leaves its own condition out."""
    made: dict[str, _Check] = {}
    given = {
        "tier": wanted.tiers,
        "kind": wanted.kinds,
        "curator": wanted.curators,
        "source": wanted.sources,
        "category": wanted.categories,
        "agent": wanted.agents,
    }
    for name, values in given.items():
        if values:
            made[name] = _any_of(_FACETS[name], frozenset(values))
    if wanted.states:
        made["state"] = _any_of(_FACETS["state"], frozenset(wanted.states))
    elif not wanted.everything:
        made["state"] = lambda entry: VISIBILITY[entry.state] is not Visibility.HISTORY
    if wanted.tags:
        made["tag"] = lambda entry: set(wanted.tags) <= set(entry.tags)
    others = [*_others(ctx, wanted)]
    if others:
        made[""] = lambda entry: all(check(entry) for check in others)
    return made


def _any_of(values: Callable[[Entry], Iterable[str]], wanted: frozenset[str]) -> _Check:
    return lambda entry: not wanted.isdisjoint(values(entry))


def _others(ctx: CallContext, wanted: Conditions) -> Iterable[_Check]:
    if words := fold(wanted.words).split():
        yield lambda entry: all(word in text for text in (fold(entry.content),) for word in words)
    if wanted.ids:
        yield lambda entry: entry.id in wanted.ids
    if wanted.name:
        named = frozenset(found.texts if (found := _index(ctx).find(wanted.name)) else ())
        yield lambda entry: entry.id in named
    if session := wanted.session:
        yield lambda entry: any(quote.transcript == session for quote in entry.evidence)
    if talk := wanted.conversation:
        yield lambda entry: talk in (entry.conversation, entry.scope.value("conversation"))
    if since := wanted.since:
        yield lambda entry: entry.created_at >= since
    if until := wanted.until:
        yield lambda entry: entry.created_at < until


def _sorted_out(entries: Sequence[Entry], checks: dict[str, _Check]) -> tuple[list[Entry], dict[str, dict[str, int]]]:
    """Return the entries that pass, and the facets: of each condition, what passes all the others."""
    counts = {name: Counter[str]() for name in _FACETS}
    passed = []
    for entry in entries:
        failed = [name for name, check in checks.items() if not check(entry)]
        if not failed:
            passed.append(entry)
        for name, values in _FACETS.items():
            if not failed or failed == [name]:
                counts[name].update(values(entry))
    return passed, {name: dict(counter.most_common(_MOST_VALUES)) for name, counter in counts.items()}


def _rows(ctx: CallContext, entries: Sequence[Entry], sort: str, ascending: bool) -> list[Row]:
    accesses: dict[str, Access] = {}
    for store in _stores(ctx):
        accesses |= store.access([entry.id for entry in entries])
    ended = {talk.id: talk.ended_at for talk in ctx.local.conversations(archived=True)}
    now = ctx.now

    def row(entry: Entry) -> Row:
        access = accesses.get(entry.id)
        decay = ctx.spec.behaviour(entry.scope.tier, entry.kind).decay
        faded = decay_factor(decay, entry, access, now, ended.get(entry.scope.value("conversation") or ""))
        return Row(entry, relevance(entry.importance, faded, frequency(access)), access.count if access else 0)

    keys: dict[str, Callable[[Row], Any]] = {
        "updated": lambda one: (one.entry.updated_at, one.entry.id),
        "created": lambda one: (one.entry.created_at, one.entry.id),
        "importance": lambda one: (one.entry.importance, one.entry.id),
        "relevance": lambda one: (one.relevance, one.entry.id),
        "reads": lambda one: (one.reads, one.entry.id),
        "text": lambda one: (fold(one.entry.content), one.entry.id),
    }
    return sorted((row(entry) for entry in entries), key=keys[sort], reverse=not ascending)


# People and things


def name_map(ctx: CallContext, *, kind: str = "", most: int = 60, near: str = "") -> NameMap:
    """Return the names in most entries in recall, and the links between them; `near` asks for those beside one name."""
    _owned(ctx)
    index = _index(ctx)
    chosen = [name for name in index.names if not kind or name.kind == kind]
    if near:
        chosen = _beside(index, near, kind)
    shown = chosen[:most]
    links = index.links(name.key for name in shown)
    people = sum(name.kind == "person" for name in index.names)
    entries, cut = every(ctx)
    counted = sum(_is_open(entry) for entry in entries)
    return NameMap(tuple(shown), tuple(links[: most * 4]), people, len(index.names) - people, counted, cut)


def _beside(index: NameIndex, near: str, kind: str) -> list[Name]:
    """Return a name, then the names that most of its entries name too."""
    middle = index.find(near)
    if middle is None:
        return []
    here, together = set(middle.texts), Counter[str]()
    for name in index.names:
        if name.key != middle.key and (not kind or name.kind == kind):
            together[name.key] = len(here.intersection(name.texts))
    by_key = {name.key: name for name in index.names}
    return [middle, *(by_key[key] for key, count in together.most_common() if count)]


def _index(ctx: CallContext) -> NameIndex:
    stores = _stores(ctx)
    state = tuple(store.head() for store in stores)
    return _names.get(tuple(part for store in stores for part in _key(store)), state, lambda: _indexed(ctx))


def _indexed(ctx: CallContext) -> NameIndex:
    found = [entry for entry in every(ctx)[0] if _is_open(entry)]
    documents = {link.source for entry in found for link in entry.links}
    titles = {id: head.title or id for id, head in ctx.local.document_heads(documents).items()}
    return name_index(_text(entry, titles) for entry in found)


def _text(entry: Entry, titles: dict[str, str]) -> Text:
    things = tuple(titles[link.source] for link in entry.links if link.source in titles)
    named = entry.speaker and not entry.source[:1].islower()  # "standup" said nothing, "Ada" did
    return Text(entry.id, entry.content, entry.source if named else "", things)


def _is_open(entry: Entry) -> bool:
    return VISIBILITY[entry.state] is Visibility.OPEN and not entry.damaged
