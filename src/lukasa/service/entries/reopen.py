"""What comes back when the thing that had replaced it goes away."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from msgspec import Struct
from msgspec.structs import replace

from lukasa.index.neighbours import Neighbour
from lukasa.model.entry import Entry, GateVerdict, Transition, Version
from lukasa.model.statements import says_the_same
from lukasa.model.text import content_key
from lukasa.model.values import Gate, State
from lukasa.service.call import CallContext
from lukasa.service.entries.put import neighbours
from lukasa.storage.operations import SaveEntry, Verdict
from lukasa.storage.port import Store, twin_key
from lukasa.write.plan import Draft, Proposal, Setting, resolve

ACTION = "entry.reopened"


class Kept(Struct, frozen=True):
    """Something that was left as it is, and why."""

    id: str
    reason: str


class Reopened(Struct, frozen=True):
    """In each store, what comes back; and what cannot."""

    saves: tuple[tuple[Store, SaveEntry], ...] = ()
    kept: tuple[Kept, ...] = ()

    @property
    def ids(self) -> tuple[str, ...]:
        return tuple(save.entry.id for _, save in self.saves)

    def of(self, store: Store) -> tuple[SaveEntry, ...]:
        return tuple(save for home, save in self.saves if home is store)


def corrected(ctx: CallContext, leaving: Entry, cause: str) -> Reopened:
    """What a correction had superseded, for when it is forgotten.

    Copies of it and what it was made from do not come back: whoever forgets a statement does not want it again in
    other words. `undo` brings back those too.
    """
    found = [
        (store, entry)
        for store, entry, _ in _retired_for(ctx, leaving.id)
        if entry.id not in leaving.derived_from and not _copies(entry, leaving)
    ]
    return reopen(ctx, found, leaving, None, cause)


def retired_with(ctx: CallContext, version: Version, *, since: bool = False) -> list[tuple[Store, Entry]]:
    """What a version of an entry retired: in the same transaction, or with `since` also later."""
    found = _retired_for(ctx, version.entry.id)
    return [(store, entry) for store, entry, last in found if since or last.at == version.at]


def reopen(
    ctx: CallContext, retired: Sequence[tuple[Store, Entry]], leaving: Entry, staying: Entry | None, cause: str
) -> Reopened:
    """Each as it was before it was retired, unless something else that is remembered speaks against it.

    `staying` is the form in which what had replaced them remains, if it does.
    """
    saves: list[tuple[Store, SaveEntry]] = []
    kept: list[Kept] = []
    for store, entry in retired:
        before = store.versions(entry.id)[-2].entry
        why = _against(ctx, store, before, {leaving.id, *(e.id for _, e in retired)}, staying)
        if why:
            kept.append(Kept(entry.id, why))
            continue
        back = as_before(before, entry, ctx, cause)
        ledger = (Verdict("reopen", "reopened", cause, {"targets": [leaving.id]}),)
        saves.append((store, SaveEntry(back, entry.version, ACTION, cause, ledger)))
    return Reopened(tuple(saves), tuple(kept))


def as_before(before: Entry, now: Entry, ctx: CallContext, cause: str) -> Entry:
    """An earlier form as the next version, stamped if that is a change of state."""
    stamp = before.transition if before.state is now.state else Transition(ctx.now, cause, str(ctx.actor))
    return replace(before, transition=stamp, updated_at=ctx.now, version=now.version + 1)


def _retired_for(ctx: CallContext, id: str) -> list[tuple[Store, Entry, Version]]:
    """Entries whose last change was to give way to this one: whatever happened to them later stands."""
    found = []
    for store in (ctx.local, ctx.account):
        for entry in store.replaced_by(id):
            versions = store.versions(entry.id)
            if len(versions) > 1 and versions[-2].entry.superseded_by != id:
                found.append((store, entry, versions[-1]))
    return found


def _copies(entry: Entry, other: Entry) -> bool:
    same = content_key(entry.content) == content_key(other.content)
    return same or says_the_same(entry.content, other.content)


def _against(ctx: CallContext, store: Store, entry: Entry, going: Collection[str], staying: Entry | None) -> str:
    """Why an entry cannot come back; empty if it can."""
    if entry.state is not State.ACTIVE:
        return ""
    twin = store.twin(entry.scope, entry.owner, twin_key(entry))
    if twin is not None and twin.id != entry.id and twin.id not in going:
        return f"entry {twin.id} holds its text by now"
    draft = redraft(ctx, entry)
    near = [n for n in neighbours(store, draft, None) if n.entry.id not in going and n.entry.id != entry.id]
    if staying is not None and (staying.scope, staying.owner) == (entry.scope, entry.owner):
        near.append(Neighbour(staying, None))
    verdict = resolve(draft, Setting(ctx.spec, ctx.taxonomy, ctx.now, neighbours=tuple(near))).ledger[-1]
    against = verdict.data.get("targets", ())
    return f"{', '.join(against)} still speaks against it" if against and verdict.outcome != "noop" else ""


def redraft(ctx: CallContext, entry: Entry) -> Draft:
    """An entry that is there, as a draft that can be compared with its neighbours."""
    proposal = Proposal(
        id=entry.id,
        scope=entry.scope,
        content=entry.content,
        curator=ctx.curator,
        source=entry.source,
        origin=ctx.origin.capped(entry.trust),
        owner=entry.owner,
        importance=entry.importance,
        kind=entry.kind,
        path=entry.path,
    )
    return Draft(proposal, entry.content, entry.kind, entry.trust, GateVerdict(Gate.ALLOW, 1.0, ""))
