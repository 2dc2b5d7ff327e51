"""Check expectations over a memory. A check counts no read, notes no disclosure and asks no language model."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime

from msgspec.structs import replace

from lukasa.model.entry import Entry
from lukasa.model.errors import ExpectationsError, InvalidInput, NotFound, Refused
from lukasa.model.secrets import redact
from lukasa.model.selection import Selection
from lukasa.model.values import Visibility
from lukasa.read.expected import (
    SOME,
    Outcome,
    Piece,
    brief,
    context_faults,
    count_fault,
    holds,
    never_faults,
    quoted,
    recall_faults,
)
from lukasa.service import admin, inputs, retrieval
from lukasa.service.call import CallContext
from lukasa.service.retrieval.read import ReadRequest
from lukasa.service.workspace import Workspace
from lukasa.spec.expectations import (
    Asker,
    ContextExpectation,
    EntriesExpectation,
    Expectation,
    Expectations,
    NeverExpectation,
    RecallExpectation,
)

Enter = Callable[[Asker], CallContext]
_ROWS = 1000


def bound(ctx: CallContext) -> Enter:
    """Return how to act as an asker in one workspace; only an account's access control knows grants."""

    def enter(asker: Asker) -> CallContext:
        if asker.grant:
            raise InvalidInput("a workspace alone knows no grants", fix="check the file with `lukasa assert`")
        here = Workspace(ctx).at(**asker.scope).ctx if asker.scope else ctx
        return here.acting(agent=asker.agent) if asker.agent else here

    return enter


def check(expected: Expectations, enter: Enter) -> list[Outcome]:
    """Check every expectation, in order. One that cannot be asked is a fault of the file."""
    return [_checked(one, expected.file, enter) for one in expected.expectations]


def _checked(one: Expectation, file: str, enter: Enter) -> Outcome:
    try:
        ctx = replace(enter(one.asker), chat=None)
        match one:
            case RecallExpectation():
                return _recall(ctx, one)
            case ContextExpectation():
                return _context(ctx, one)
            case NeverExpectation():
                return _never(ctx, one)
            case EntriesExpectation():
                return _entries(ctx, one)
    except (InvalidInput, NotFound, Refused) as error:
        raise ExpectationsError(error.message, file=file, key=one.key, fix=error.fix) from error


def _outcome(ctx: CallContext, kind: str, one: Expectation, wrong: str, *explain: str) -> Outcome:
    """Return the outcome, with the commands that explain it as whole command lines."""
    words = ["lukasa", "-w", quoted(ctx.info.name)]
    words += ["--agent", quoted(one.asker.agent)] if one.asker.agent else []
    words += [part for key, value in one.asker.scope.items() for part in ("--scope", quoted(f"{key}={value}"))]
    return Outcome(kind, one.name, one.key, not wrong, wrong, tuple(" ".join([*words, e]) for e in explain if wrong))


def _recall(ctx: CallContext, one: RecallExpectation) -> Outcome:
    moment = _moment(ctx, one.as_of) if one.as_of else None
    limit = one.limit or max(one.within, ctx.spec.profiles["balanced"].limit)
    asked = ReadRequest(one.query, one.tiers or None, one.profile, limit, as_of=moment)
    hits = retrieval.read.read(ctx, asked, count=False).hits
    wrong, id = recall_faults(one, [hit.entry for hit in hits], moment)
    if wrong and not id and not one.absent:
        id = next((entry.id for entry in _everything(ctx, one.tiers) if holds(entry.content, one.finds)), "")
        wrong += "" if id else "; no entry in reach holds it"
    when = f" --as-of {quoted(one.as_of)}" if one.as_of else ""
    why = f"why {quoted(one.query)} {id}{when}" if id else f"read {quoted(one.query)} --explain{when}"
    return _outcome(ctx, "recall", one, wrong and f"read {one.query!r}: {wrong}", why)


def _moment(ctx: CallContext, given: str) -> datetime:
    if admin.bookmarks.is_name(given):
        return admin.bookmarks.named(ctx, given).at
    return inputs.moment(given, "as_of")


def _context(ctx: CallContext, one: ContextExpectation) -> Outcome:
    wrong, asked = [], ""
    for query in one.queries:
        found = retrieval.read.context(
            ctx, query, tiers=one.tiers or None, budget=one.budget or None, profile="balanced", count=False
        )
        faults = context_faults(one, query, str(found))
        asked = asked or (query if faults else "")
        wrong += faults
    return _outcome(ctx, "context", one, "; ".join(wrong[:SOME]), f"context {quoted(asked)} --why")


def _never(ctx: CallContext, one: NeverExpectation) -> Outcome:
    found = never_faults(one, _pieces(ctx))
    told = [f"{piece.name} holds {brief(words)!r}" for piece, words in found[:SOME]]
    more = f", and {len(found) - SOME} more" if len(found) > SOME else ""
    ids = [piece.name for piece, _ in found[:SOME]]
    explain = [f"named show {id.removeprefix('page ')}" if id.startswith("page ") else f"get {id}" for id in ids]
    return _outcome(ctx, "never", one, "; ".join(told) + more, *explain)


def _pieces(ctx: CallContext) -> Iterator[Piece]:
    """Yield all pages, and all entries that a context of this asker could hold, as they would leave memory."""
    reachable = {tier.name for tier in ctx.reachable()}
    for page in (page for store in (ctx.account, ctx.local) for page in store.named()):
        if page.tier in reachable and not page.damaged:
            yield Piece(f"page {page.name}", redact(page.body)[0])
    for entry in _everything(ctx, (), frozenset({Visibility.OPEN})):
        if not entry.sensitive and entry.holds_at(ctx.now):
            yield Piece(entry.id, ctx.shown(entry).content)


def _everything(
    ctx: CallContext, tiers: tuple[str, ...], seen: frozenset[Visibility] = frozenset(Visibility)
) -> Iterator[Entry]:
    """Yield the entries in reach of an asker, page by page."""
    for store, selection in retrieval.read.selections(ctx, ctx.reachable(tiers or None), ReadRequest("")):
        whole = Selection(selection.scopes, seen, selection.owners)
        after: str | None = None
        while page := store.find(whole, limit=_ROWS, after=after):
            yield from page
            after = page[-1].id


def _entries(ctx: CallContext, one: EntriesExpectation) -> Outcome:
    seen = frozenset(Visibility)
    if not (one.everything or "state" in one.where):
        seen = frozenset({Visibility.OPEN})
    plain = {key: words for key, words in one.where.items() if key not in _OF_GROUNDS}
    grounded = {key: words for key, words in one.where.items() if key in _OF_GROUNDS}
    found = [
        entry
        for entry in _everything(ctx, (), seen)
        if all(not set(words).isdisjoint(_PROPERTIES[key](entry)) for key, words in plain.items())
        and holds(entry.content, one.contains)
    ]
    if grounded:
        grounds = retrieval.grounds.grounds_of(ctx, found)
        found = [
            entry
            for entry in found
            if all(not set(words).isdisjoint(_OF_GROUNDS[key](grounds[entry.id])) for key, words in grounded.items())
        ]
    wrong = count_fault(one, len(found))
    if wrong and found:
        wrong += ": " + "; ".join(f"{entry.id} {brief(entry.content)}" for entry in found[:SOME])
    explain = [f"get {entry.id}" for entry in found[:SOME]] or ["list --all"]
    return _outcome(ctx, "entries", one, wrong, *explain)


# The conditions of [[entries]]: the words that an entry has for each.
_PROPERTIES: dict[str, Callable[[Entry], tuple[str, ...]]] = {
    "authority": lambda e: (str(e.authority),),
    "trust": lambda e: (e.trust.name.lower(),),
    "kind": lambda e: (str(e.kind),),
    "state": lambda e: (str(e.state),),
    "curator": lambda e: (str(e.curator),),
    "lifetime": lambda e: (str(e.lifetime),),
    "tier": lambda e: (e.scope.tier,),
    "category": lambda e: (e.category.name,) if e.category is not None else (),
    "source": lambda e: (e.source,),
    "surface": lambda e: (e.origin.surface,),
    "principal": lambda e: (e.origin.principal,),
    "owner": lambda e: (e.owner,),
    "speaker": lambda e: (e.speaker,),
    "tag": lambda e: tuple(e.tags),
    "sensitive": lambda e: (_flag(e.sensitive),),
    "unverified": lambda e: (_flag(e.unverified),),
}
_OF_GROUNDS: dict[str, Callable[[retrieval.grounds.Grounds], tuple[str, ...]]] = {
    "retention": lambda g: (str(g.retention),),
    "withdrawn": lambda g: (_flag(bool(g.withdrawn)),),
    "awaits_check": lambda g: (_flag(g.awaits_check),),
}


def _flag(value: bool) -> str:
    return str(value).lower()
