"""Update, forget, accept, restore: changes to what is there, each a new version with its cause and actor."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from msgspec.structs import replace

from lukasa.model.entry import Entry, GateVerdict
from lukasa.model.errors import Conflict, EmbedderError, InvalidInput, InvalidTransition, Refused
from lukasa.model.values import VISIBILITY, Gate, Kind, Lifetime, State, Trust, Visibility
from lukasa.service import inputs
from lukasa.service.call import CallContext, retry_on_conflict
from lukasa.service.entries.put import Written, canonical, checked_content, neighbours, screened
from lukasa.service.entries.reopen import Reopened, corrected, redraft
from lukasa.storage.operations import Embedding, SaveEntry
from lukasa.storage.port import Store, twin_key
from lukasa.write.check import policy
from lukasa.write.plan import Action, Draft, Setting, resolve, retire, run

T = TypeVar("T")
_READERS: dict[str, Callable[[Any], Any]] = {
    "content": lambda value: value,  # screened below, as a put is
    "importance": inputs.importance,
    "tags": inputs.tags,
    "kind": lambda value: inputs.choice(value, Kind, "kind"),
    "lifetime": lambda value: inputs.choice(value, Lifetime, "lifetime"),
    "metadata": inputs.metadata,
    "valid_at": lambda value: inputs.moment(value, "valid_at"),
}


def update(ctx: CallContext, id: str, patch: Mapping[str, Any], *, expect: int | None = None) -> Written:
    """Change an entry. Its origin, scope and owner stay; its trust can only fall to that of the editor."""
    unknown = set(patch) - set(_READERS)
    if unknown or not patch:
        raise InvalidInput(
            f"cannot update {', '.join(sorted(unknown))}" if unknown else "the patch is empty",
            fix=f"change one or more of: {', '.join(_READERS)}",
        )

    def attempt() -> Written:
        store, entry = ctx.entry(id)
        ctx.require_trust(entry, "update")
        if VISIBILITY[entry.state] is Visibility.HISTORY:
            raise InvalidTransition(
                f"entry {entry.id} is {entry.state} and cannot be changed", fix=f"`lukasa restore {entry.id}` first"
            )
        if expect is not None and entry.version != expect:
            raise _Stale(f"entry {entry.id} is at version {entry.version}, not {expect}", fix="read it again")
        draft = _redrafted(ctx, store, entry, patch)
        changed = _patched(ctx, entry, patch, draft)
        embedding = _reembedded(ctx, entry, changed)
        retired = outdated(ctx, store, changed, embedding) if says_otherwise(entry, changed) else ()
        save = SaveEntry(changed, entry.version, "entry.updated", "update", draft.ledger, embedding)
        commit(ctx, store, changed, *retired, save)
        return Written("updated", entry.id, changed, draft.ledger, tuple(op.entry.id for op in retired))

    return final(lambda: retry_on_conflict(attempt))


def final(attempts: Callable[[], T]) -> T:
    """What looking again cannot mend is a conflict for the caller."""
    try:
        return attempts()
    except (_Stale, _Taken) as lost:
        raise Conflict(lost.message, fix=lost.fix) from None


class _Stale(InvalidInput):
    """The caller's version is not the present one; looking again cannot help."""


def _redrafted(ctx: CallContext, store: Store, entry: Entry, patch: Mapping[str, Any]) -> Draft:
    """The entry as it would be, put through the steps again: all of them for new text, policy for anything else."""
    trust = min(entry.trust, ctx.origin.trust)
    content = checked_content(ctx, patch["content"], entry.path) if "content" in patch else entry.content
    kind = inputs.choice(patch["kind"], Kind, "kind") if "kind" in patch else entry.kind
    proposal = redraft(ctx, replace(entry, content=content, kind=kind)).proposal
    setting = Setting(ctx.spec, ctx.taxonomy, ctx.now, canonical(ctx))
    if "content" in patch:
        draft = screened(ctx, store, proposal, setting)
    else:
        gate = GateVerdict(Gate.ALLOW, 1.0, "")
        draft = run((policy,), Draft(proposal, content, kind, trust, gate, entry.category), setting)
    if draft.settled:
        raise Refused(f"the new text would be discarded: {draft.gate.reason}", fix="write a full statement")
    return draft._replace(trust=trust)


def _patched(ctx: CallContext, entry: Entry, patch: Mapping[str, Any], draft: Draft) -> Entry:
    changes = {key: _READERS[key](value) for key, value in patch.items()}
    if "content" in patch:
        changes.update(content=draft.content, category=draft.category, gate=draft.gate)
    changed = replace(entry, updated_at=ctx.now, trust=draft.trust, version=entry.version + 1, **changes)
    if draft.gate.verdict is Gate.HOLD and entry.state is State.ACTIVE:
        return changed.moved(State.HELD, at=ctx.now, cause=draft.gate.reason, actor=str(ctx.actor), gate=draft.gate)
    return changed


def says_otherwise(old: Entry, new: Entry) -> bool:
    return new.state is State.ACTIVE and (old.content, old.kind) != (new.content, new.kind)


def _reembedded(ctx: CallContext, old: Entry, new: Entry) -> Embedding | None:
    if ctx.embedder is None or old.content == new.content:
        return None
    try:
        return Embedding(ctx.embedder.model, ctx.embedder.embed_memories([new.content])[0])
    except EmbedderError:
        return None


def outdated(ctx: CallContext, store: Store, entry: Entry, embedding: Embedding | None) -> tuple[SaveEntry, ...]:
    """What an entry contradicts once it says what it says now: retired with it, in the same transaction."""
    draft = redraft(ctx, entry)
    near = tuple(n for n in neighbours(store, draft, embedding) if n.entry.id != entry.id)
    setting = Setting(ctx.spec, ctx.taxonomy, ctx.now, neighbours=near)
    draft = resolve(draft, setting)
    if draft.gate.verdict is Gate.HOLD:
        raise Refused(
            f"it cannot hold beside what is more trusted: {draft.gate.reason}",
            fix=f"forget what it contradicts first: {', '.join(draft.ledger[-1].data['targets'])}",
        )
    if draft.decision.action is not Action.UPDATE:
        return ()
    actor = str(ctx.actor)
    return tuple(retire(target, entry, setting, draft.decision.reason, actor) for target in draft.decision.targets)


def commit(ctx: CallContext, store: Store, entry: Entry, *operations: SaveEntry) -> None:
    """Apply a revision; if another entry has taken the text that this one would hold, say which."""
    try:
        ctx.apply(store, *operations)
    except Conflict as conflict:
        twin = store.twin(entry.scope, entry.owner, twin_key(entry))
        if twin is not None and twin.id != entry.id and entry.state in (State.ACTIVE, State.HELD):
            what = "text" if entry.path is None else "path"
            message = f"entry {twin.id} already holds the {what} of {entry.id}"
            raise _Taken(message, fix=f"`lukasa forget {twin.id}` first") from conflict
        raise


class _Taken(InvalidInput):
    """Another entry holds the same text; looking again cannot help."""


def forget(ctx: CallContext, id: str, cause: str) -> Written:
    """Take an entry out of memory; its row stays, and what it had corrected is open again."""
    return _move(ctx, id, State.FORGOTTEN, "entry.forgotten", cause)


def restore(ctx: CallContext, id: str, cause: str) -> Written:
    """Bring an entry back from history; what contradicts it now is retired in its stead."""
    _, entry = ctx.entry(id)
    if entry.state is State.HELD:
        raise InvalidTransition(f"entry {entry.id} is held, not gone", fix=f"`lukasa accept {entry.id}` lets it in")
    store, _ = ctx.entry(id)
    before = next((v.entry.state for v in reversed(store.versions(entry.id)) if v.entry.state is not entry.state), None)
    # What was held when it went is held again: bringing something back is not the same as letting it in.
    return _move(ctx, id, State.HELD if before is State.HELD else State.ACTIVE, "entry.restored", cause)


def accept(ctx: CallContext, id: str, cause: str) -> Written:
    """Let a held entry in. Only its author may; untrusted text becomes evidence that the owner let in, no more."""
    ctx.require_author("accept held entries")
    _, entry = ctx.entry(id)
    if entry.state is not State.HELD:
        raise InvalidTransition(f"entry {entry.id} is {entry.state}, not held", fix="only held entries wait for this")
    return _move(ctx, id, State.ACTIVE, "entry.accepted", cause, trust=max(entry.trust, Trust.IMPORTED))


_VERBS = {"entry.forgotten": "forget", "entry.restored": "restore", "entry.accepted": "accept"}


def _move(ctx: CallContext, id: str, state: State, action: str, cause: str, **changes: Any) -> Written:
    def attempt() -> Written:
        store, entry = ctx.entry(id)
        ctx.require_trust(entry, _VERBS[action])
        if entry.state is state:
            raise InvalidTransition(f"entry {entry.id} is already {state}", fix="nothing to do")
        back = {"superseded_by": None, "invalid_at": None} if state is State.ACTIVE else {}
        moved = entry.moved(
            state, at=ctx.now, cause=cause, actor=str(ctx.actor), version=entry.version + 1, **back, **changes
        )
        retired = outdated(ctx, store, moved, None) if state is State.ACTIVE else ()
        reopened = _corrected(ctx, entry) if state is State.FORGOTTEN else Reopened()
        save = SaveEntry(moved, entry.version, action, cause)
        commit(ctx, store, moved, *retired, save, *reopened.of(store))
        replaces = tuple(op.entry.id for op in retired)
        return Written(action.removeprefix("entry."), moved.id, moved, (), replaces, reopened.ids)

    return final(lambda: retry_on_conflict(attempt))


def _corrected(ctx: CallContext, entry: Entry) -> Reopened:
    """What comes back with the end of a statement; one that was no longer in force had nothing to hold down."""
    if VISIBILITY[entry.state] is not Visibility.OPEN:
        return Reopened()
    return corrected(ctx, entry, f"entry {entry.id}, which had replaced it, was forgotten")
