"""Files: entries kept verbatim under a path, one for each path of a tier. They are shared, and recalled like entries.

A held file is out of recall, like every held entry. A caller can still read it by its path, but only if the caller is
trusted no more than the text: an agent gets back an agent's text, never a stranger's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec.structs import replace

from lukasa.model.entry import Entry
from lukasa.model.errors import Damaged, NotFound
from lukasa.model.selection import Filters, Selection
from lukasa.model.text import path_key
from lukasa.model.values import SHARED, Kind, State, Visibility
from lukasa.service import inputs
from lukasa.service.call import CallContext, retry_on_conflict
from lukasa.service.entries import put, revise
from lukasa.service.entries.put import Memo, Written
from lukasa.service.instrument import verb
from lukasa.storage.operations import SaveEntry

_ALL = 1_000_000


def file(ctx: CallContext, tier: str, path: str) -> Entry | None:
    """Return the file at a path, also if this context may not show it."""
    found = ctx.store(tier).twin(ctx.scope(tier), SHARED, path_key(inputs.path(path)))
    if found is not None and found.damaged:
        raise Damaged(f"file {path}")
    return found


def may_see(ctx: CallContext, entry: Entry) -> bool:
    """Say whether this context may show a file."""
    return entry.state is not State.HELD or entry.trust >= ctx.origin.trust


def files(ctx: CallContext, tier: str) -> list[Entry]:
    """Return every file of a tier that this context may show, by path. A damaged one is marked as such."""
    visible = frozenset({Visibility.OPEN, Visibility.HELD})
    selection = Selection((ctx.scope(tier),), visible, (SHARED,), Filters(filed=True))
    found = ctx.store(tier).find(selection, limit=_ALL, damaged=True)
    return sorted((entry for entry in found if may_see(ctx, entry)), key=lambda entry: entry.path or "")


def others(ctx: CallContext, tier: str, limit: int) -> list[Entry]:
    """Return the newest entries of a tier that are not files."""
    selection = Selection((ctx.scope(tier),), owners=ctx.owners, filters=Filters(filed=False))
    return ctx.store(tier).find(selection, limit=limit, damaged=True)


@verb("file", "create")
def create(ctx: CallContext, tier: str, path: str, text: str) -> Written:
    """Create a file; Conflict if the path is taken."""
    return put.put_many(ctx, tier, [Memo(text, kind=Kind.EPISODIC, path=path)])[0]


@verb("file", "copy")
def copy(ctx: CallContext, tier: str, moves: Sequence[tuple[Entry, str]]) -> None:
    """Copy files into another tier, all or none. A copy is trusted no more than its original."""
    put.put_many(ctx, tier, [Memo(e.content, kind=e.kind, path=path, derived_from=(e.id,)) for e, path in moves])


@verb("file", "rewrite")
def rewrite(ctx: CallContext, tier: str, path: str, change: Callable[[str], str]) -> Written:
    """Apply a change to the present text of a file; if somebody edits it meanwhile, apply it to their text."""

    def attempt() -> Written:
        entry = file(ctx, tier, path)
        if entry is None or not may_see(ctx, entry):
            raise NotFound(f"no file {path} in tier {tier!r}", fix="list the files to see their paths")
        return revise.update(ctx, entry.id, {"content": change(entry.content)}, expect=entry.version)

    return retry_on_conflict(attempt)


@verb("file", "rename")
def rename(ctx: CallContext, tier: str, moves: Sequence[tuple[Entry, str]]) -> None:
    """Give files new paths in their tier, all or none. Each stays the same entry, with its history."""
    saves = []
    for entry, path in moves:
        ctx.require_trust(entry, "rename")
        trust = min(entry.trust, ctx.origin.trust)
        renamed = replace(entry, path=inputs.path(path), trust=trust, updated_at=ctx.now, version=entry.version + 1)
        saves.append(SaveEntry(renamed, entry.version, "entry.updated", "renamed"))
    ctx.apply(ctx.store(tier), *saves)


@verb("file", "remove")
def remove(ctx: CallContext, tier: str, entries: Sequence[Entry], cause: str) -> None:
    """Forget files, all or none. Rows and history stay; `restore` brings each file back."""
    saves = []
    for entry in entries:
        ctx.require_trust(entry, "forget")
        gone = entry.moved(State.FORGOTTEN, at=ctx.now, cause=cause, actor=str(ctx.actor), version=entry.version + 1)
        saves.append(SaveEntry(gone, entry.version, "entry.forgotten", cause))
    ctx.apply(ctx.store(tier), *saves)
