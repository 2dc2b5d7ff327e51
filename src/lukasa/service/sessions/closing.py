"""The end of a scope: the boundary carries on what the spec says, and the rest is cleared. Both are one commit.

    ending entries ─┬─ carried    joined word for word into an entry of the next tier, through that tier's gates
                    ├─ dropped    the row goes: its tier is transient, its policy is `drop`, no action rests on it
                    └─ archived   the row stays, out of recall

So a crash loses nothing and repeats nothing, and nobody has to wait for a worker. The job that the end queues only
does what needs a model or looks beyond the scope: it rewrites the digests, and promotes what has earned it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from lukasa.model.conversation import Conversation, Status
from lukasa.model.entry import ClosedScope, Entry, Scope
from lukasa.model.errors import InvalidTransition
from lukasa.model.selection import Filters, Selection
from lukasa.model.values import VISIBILITY, Lifetime, State, Visibility
from lukasa.service import upkeep
from lukasa.service.call import CallContext, retry_on_conflict
from lukasa.service.jobs.triggers import boundary, session_close
from lukasa.service.sessions.conversations import conversation
from lukasa.spec.types import LifecyclePolicy, Tier
from lukasa.storage.operations import CloseScope, DropEntry, DropNotes, Enqueue, Operation, SaveConversation, SaveEntry
from lukasa.storage.port import Store
from lukasa.upkeep.promotion import removal

PAGE = 500
_TALK = "conversation"


class Ended(Struct, frozen=True):
    """An ended conversation: how many of its entries were dropped, archived or carried on, and its summary."""

    conversation: Conversation
    dropped: int
    archived: int
    carried: int = 0
    summary: Entry | None = None


class ScopeEnded(Struct, frozen=True):
    """A scope that has ended, or was left: what became of its entries, and the conversations that ended with it."""

    tier: str
    scope: Mapping[str, str | None]
    event: str
    closed: bool
    dropped: int = 0
    archived: int = 0
    carried: int = 0
    conversations: tuple[str, ...] = ()


def end(ctx: CallContext, id_or_ref: str) -> Ended:
    """End a conversation: mark it as idle, carry on what its boundary keeps, and clear the rest, of every owner.

    Entries of a persistent tier, and entries that an action rests on, are archived: their rows stay.
    """
    ctx.require_agent("end a conversation")
    return retry_on_conflict(lambda: _end(ctx, id_or_ref))


def _end(ctx: CallContext, id_or_ref: str) -> Ended:
    found = conversation(ctx, id_or_ref)
    if found.status is Status.ARCHIVED:
        raise InvalidTransition(
            f"conversation {found.ref_code} is archived", fix="start a new one, as with `lukasa conversation start`"
        )
    cause = "its conversation ended"
    here, there = (_of_conversation(ctx, store, found) for store in (ctx.local, ctx.account))
    left = _Leaving(ctx, f"conversation {found.ref_code}").of(here, cause)
    operations = list(left.operations)
    if _scratchpad(ctx) == "clear" and ctx.local.notes(found.id):
        operations.append(DropNotes(found.id))
    operations.extend(Enqueue(draft) for draft in session_close(ctx.spec, found.id, left.digests))
    ended = found
    if found.status is Status.ACTIVE:
        ended = found.idle(ctx.now)
        operations.append(SaveConversation(ended, found.status))
    away = _Leaving(ctx, "").of(there, cause, carries=False)
    for_account = [*left.above, *away.operations]
    if for_account:
        ctx.apply(ctx.account, *for_account)
    if operations:
        ctx.apply(ctx.local, *operations)
    return Ended(ended, left.dropped + away.dropped, left.archived + away.archived, left.carried)


def context(ctx: CallContext, found: Conversation) -> CallContext:
    """Bind a conversation, its channel, and the keys under which it has written: an end need not name them."""
    known = {key.name for key in ctx.spec.anchor} - {"account", "workspace"}
    bound = {_TALK: found.id, "channel": found.channel}
    for scope in (count.scope for count in ctx.local.census() if count.scope.value(_TALK) == found.id):
        bound |= {key: value for key, value in scope.anchor if value is not None and key not in ctx.keys}
    takes = {key: value for key, value in bound.items() if key in known and ctx.takes_part(key, value)}
    return ctx.at(**takes) if takes else ctx


def close(ctx: CallContext, tier: Tier, scope: Scope) -> ScopeEnded:
    """End the scope of a lifecycle tier for good, or consolidate the scope of another one, which can be used again."""
    return retry_on_conflict(lambda: _close(ctx, tier, scope))


def _close(ctx: CallContext, tier: Tier, scope: Scope) -> ScopeEnded:
    ends = tier.boundary.type == "lifecycle"
    store, keys = ctx.store(tier.name), dict(scope.anchor)
    if ends and ctx.local.closed([scope]):
        raise InvalidTransition(
            f"this scope of tier {tier.name!r} has ended already", fix="use another value for its keys"
        )
    value = next((v for v in reversed(keys.values()) if v is not None), "")
    left = _Leaving(ctx, f"{tier.name} {value}").of(_within(ctx, store, scope), f"its {tier.name} ended")
    for_account, here = list(left.above), list(left.operations)
    if store is ctx.account:
        for_account, here = [*for_account, *here], []
    here.extend(Enqueue(draft) for draft in boundary(ctx.spec, scope, left.digests))
    if ends:
        here.append(CloseScope(ClosedScope(scope, tier.boundary.event, ctx.now)))
    if for_account:
        ctx.apply(ctx.account, *for_account)
    if here:
        ctx.apply(ctx.local, *here)
    return ScopeEnded(tier.name, keys, tier.boundary.event, ends, left.dropped, left.archived, left.carried)


def inside(ctx: CallContext, scope: Scope) -> list[Scope]:
    """Return the scopes of narrower tiers that lie in this one and hold entries, the narrowest tier first."""
    names = [tier.name for tier in ctx.spec.tiers]
    narrower = names[: names.index(scope.tier)]
    wanted = set(scope.anchor)
    found = [count.scope for count in ctx.local.census() if count.scope.tier in narrower]
    return sorted((s for s in found if wanted <= set(s.anchor)), key=lambda s: names.index(s.tier))


# The entries of a scope


def _of_conversation(ctx: CallContext, store: Store, found: Conversation) -> list[Entry]:
    """Return what ends with a conversation: entries of its lifetime in every tier, and all of its transient scopes."""
    scopes = tuple(count.scope for count in store.census())
    mine = Filters(lifetimes=frozenset({Lifetime.CONVERSATION}), conversations=frozenset({found.id}))
    own = tuple(s for s in scopes if s.value(_TALK) == found.id and _is_transient(ctx, s.tier))
    listed = {entry.id: entry for entry in (*_pages(store, scopes, mine), *(_pages(store, own) if own else ()))}
    return list(listed.values())


def _within(ctx: CallContext, store: Store, scope: Scope) -> list[Entry]:
    """Return what ends with a scope: all of a transient one, and of a lasting one what its policy drops."""
    found = _pages(store, (scope,))
    if _is_transient(ctx, scope.tier):
        return found
    return [entry for entry in found if _policy(ctx, entry) is LifecyclePolicy.DROP]


def _is_transient(ctx: CallContext, tier: str) -> bool:
    return any(known.name == tier and not known.persistent for known in ctx.spec.tiers)


def _policy(ctx: CallContext, entry: Entry) -> LifecyclePolicy:
    return ctx.spec.behaviour(entry.scope.tier, entry.kind).lifecycle.policy


def _pages(store: Store, scopes: tuple[Scope, ...], filters: Filters | None = None) -> list[Entry]:
    """Return all entries of these scopes, in every state, of every owner."""
    selection = Selection(scopes, frozenset(Visibility), None, filters or Filters())
    out: list[Entry] = []
    while True:
        page = store.find(selection, limit=PAGE, after=out[-1].id if out else None)
        out.extend(page)
        if len(page) < PAGE:
            return out


def _scratchpad(ctx: CallContext) -> str:
    narrowest = ctx.spec.tiers[0]
    return ctx.spec.behaviour(narrowest.name, narrowest.typology[0]).lifecycle.scratchpad


# Carry over, archive or drop


class _Leaving:
    """The decision about the entries of an ending scope, as operations."""

    def __init__(self, ctx: CallContext, label: str) -> None:
        self.ctx = ctx
        self.label = label
        self.operations: list[Operation] = []
        self.above: list[Operation] = []  # of the account, if a spec promotes into it
        self.digests: list[str] = []
        self.dropped = self.archived = self.carried = 0

    def of(self, entries: Sequence[Entry], cause: str, *, carries: bool = True) -> _Leaving:
        """Decide about the entries: the rows leave first, because two active entries must not hold one text."""
        if not entries:
            return self
        linked = {id for store in (self.ctx.local, self.ctx.account) for id in store.linked(e.id for e in entries)}
        ending = {e.id: e for e in entries}
        drops = {e.id: drop for e in entries if (drop := self._drop(e, cause, e.id in linked)) is not None}
        crossing = upkeep.crossing.Crossing(self.ctx, self.label, drops.keys())
        if carries:
            crossing.carry([e for e in ending.values() if upkeep.crossing.is_carried(self.ctx, e)])
        for id, entry in ending.items():
            if id in drops:
                self.operations.append(drops[id])
                self.dropped += id not in crossing.into
            elif id in crossing.into or VISIBILITY[entry.state] is not Visibility.HISTORY:
                self.operations.append(_cleared(self.ctx, entry, cause, crossing.into.get(id)))
                self.archived += id not in crossing.into
        self.operations += crossing.here
        self.above, self.digests, self.carried = crossing.above, crossing.digests, len(crossing.into)
        return self

    def _drop(self, entry: Entry, cause: str, linked: bool) -> DropEntry | None:
        """Return the removal of a row, if the policy is to drop it and the audit posture lets it go."""
        softly = _policy(self.ctx, entry) is not LifecyclePolicy.DROP
        return removal(self.ctx.spec, entry, cause, linked=linked, softly=softly)


def _cleared(ctx: CallContext, entry: Entry, cause: str, into: str | None) -> SaveEntry:
    """Take an entry out of recall: forgotten in favour of what it went into, else archived."""
    actor, version = str(ctx.actor), entry.version + 1
    if into is None:
        moved = entry.moved(State.ARCHIVED, at=ctx.now, cause=cause, actor=actor, version=version)
        return SaveEntry(moved, entry.version, "entry.archived", cause)
    why = f"consolidated into {into}"
    moved = entry.moved(State.FORGOTTEN, at=ctx.now, cause=why, actor=actor, version=version, superseded_by=into)
    return SaveEntry(moved, entry.version, "entry.forgotten", why)
