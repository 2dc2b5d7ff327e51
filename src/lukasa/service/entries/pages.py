"""Pages (named entries): the author writes them; agents may only read them."""

from __future__ import annotations

from lukasa.curated.document import NAME
from lukasa.model.entry import NamedEntry
from lukasa.model.errors import Conflict, Damaged, InvalidScope, NotFound, ReadOnlyForAgents
from lukasa.model.job import JobDraft
from lukasa.service import inputs
from lukasa.service.call import CallContext
from lukasa.spec.types import Tier
from lukasa.storage.operations import Enqueue, Operation, SaveNamed
from lukasa.storage.port import Store

BODY_LIMIT = 100_000
_MOVING = {"channel", "conversation", "session"}  # scopes that end; a page belongs to a lasting one


def named(ctx: CallContext) -> list[NamedEntry]:
    """Return the pages of all tiers in reach."""
    found = (n for store in (ctx.account, ctx.local) for n in store.named())
    return sorted((n for n in found if _opens(ctx, n)), key=lambda n: n.name)


def _opens(ctx: CallContext, page: NamedEntry) -> bool:
    return ctx.opens(page.tier)


def get_named(ctx: CallContext, name: str) -> NamedEntry:
    """Return the page of that name; Damaged if its text is not the one that was written."""
    found = _find(ctx, inputs.name(name))[1]
    if found.damaged:
        raise Damaged(f"page {found.name}")
    return found


def _find(ctx: CallContext, name: str) -> tuple[Store, NamedEntry]:
    for store in (ctx.local, ctx.account):
        for found in store.named(name):
            if _opens(ctx, found):
                return store, found
    raise NotFound(f"no named entry {name!r}", fix="`lukasa named list` shows the names, `lukasa named edit` makes one")


def named_versions(ctx: CallContext, name: str) -> list[NamedEntry]:
    """Return every version of a page, oldest first."""
    key = inputs.name(name)
    store, _ = _find(ctx, key)
    return store.named_versions(key)


def edit_named(
    ctx: CallContext, name: str, body: str, *, tier: str | None = None, expect: int | None = None
) -> NamedEntry:
    """Write a page, creating it if it is new. Only the author may; every former text is kept."""
    if not ctx.is_author:
        raise ReadOnlyForAgents(
            f"{ctx.origin.principal!r} cannot write {name}: only the author writes named entries",
            fix="ask the author to edit it",
        )
    ctx.require_whole(f"write {name}")
    key = inputs.name(name)
    inputs.page(body, "body", BODY_LIMIT)
    before = next((n for n in named(ctx) if n.name == key), None)
    home = _named_tier(ctx, tier, before)
    version = before.version if before else 0
    if expect is not None and expect != version:
        raise Conflict(f"{key} is at version {version}, not {expect}", fix="read it again, then edit")
    entry = NamedEntry(key, home, body, ctx.now, str(ctx.actor), version + 1)
    ctx.apply(ctx.store(home), SaveNamed(entry, version), *_written_out(ctx, entry))
    return entry


def _written_out(ctx: CallContext, entry: NamedEntry) -> tuple[Operation, ...]:
    """Return the job that writes the curated page to its file, if the page is that one."""
    if entry.name != NAME or ctx.curated_file is None or ctx.store(entry.tier) is not ctx.local:
        return ()
    return (Enqueue(JobDraft("curate", f"curate:{entry.version}", {"version": entry.version})),)


def lasting(ctx: CallContext) -> list[Tier]:
    """Return the tiers that can hold pages, the narrowest first."""
    return [t for t in ctx.spec.tiers if t.persistent and not _MOVING & {key.name for key in t.anchor}]


def _named_tier(ctx: CallContext, tier: str | None, before: NamedEntry | None) -> str:
    if before is not None:
        if tier not in (None, before.tier):
            raise InvalidScope(f"{before.name} is in the {before.tier} tier", fix="leave the tier out")
        return before.tier
    homes = [t.name for t in lasting(ctx)]
    chosen = tier if tier is not None else homes[0]
    if chosen not in homes:
        raise InvalidScope(f"tier {chosen!r} cannot hold named entries", fix=f"use one of: {', '.join(homes)}")
    return chosen
