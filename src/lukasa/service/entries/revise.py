"""Update, forget, accept, restore: change an entry. Each change is a new version with its cause and actor."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from lukasa.index.matches import Neighbour
from lukasa.model.entry import SENSITIVE, Entry, GateVerdict, Transition, Version
from lukasa.model.errors import Conflict, Contradicts, EmbedderError, InvalidInput, InvalidTransition, Refused
from lukasa.model.secrets import redact_all
from lukasa.model.statements import says_the_same
from lukasa.model.text import content_key
from lukasa.model.values import VISIBILITY, Curator, Gate, Kind, Lifetime, State, Trust, Visibility
from lukasa.service import inputs
from lukasa.service.call import CallContext, retry_on_conflict
from lukasa.service.citations import citing
from lukasa.service.corpus.canonical import canonical
from lukasa.service.entries.put import Written, checked, checked_content, neighbours, unsorted
from lukasa.storage.operations import DropRivals, Embedding, Operation, SaveEntry, SaveRivalry, Verdict
from lukasa.storage.port import Store, twin_key
from lukasa.write.check import admit, policy
from lukasa.write.plan import Action, Draft, Proposal, Setting, resolve, retire, rivalries, run

T = TypeVar("T")
QUOTED = 120  # characters of another entry that an error quotes
_READERS: dict[str, Callable[[Any], Any]] = {
    "content": lambda value: value,  # checked below, like the text of a put
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
        others = compared(ctx, store, changed, embedding) if says_otherwise(entry, changed) else Others()
        save = SaveEntry(changed, entry.version, "entry.updated", "update", draft.ledger, embedding)
        gone = [DropRivals(entry.id)] if entry.content != changed.content and store.rivals([entry.id]) else []
        asked = unsorted(ctx, store, [draft]) if "content" in patch else []
        here = asked if store is ctx.local else []
        cited = citing.for_text(ctx, store, changed, changed.content) if entry.content != changed.content else []
        commit(ctx, store, changed, *others.retired, save, *gone, *others.beside, *cited, *here)
        if asked and not here:
            ctx.apply(ctx.local, *asked)
        return Written("updated", entry.id, changed, draft.ledger, others.replaces, beside=others.ids)

    return final(lambda: retry_on_conflict(attempt))


def final(attempts: Callable[[], T]) -> T:
    """Run a change; turn a conflict that a retry cannot solve into one for the caller."""
    try:
        return attempts()
    except (_Stale, _Taken) as lost:
        raise Conflict(lost.message, fix=lost.fix) from None


class _Stale(InvalidInput):
    """The caller expects another version than the present one; a retry cannot help."""


def _redrafted(ctx: CallContext, store: Store, entry: Entry, patch: Mapping[str, Any]) -> Draft:
    """Return the entry after the patch, checked again: by all steps for a new text, else by the policy alone."""
    trust = min(entry.trust, ctx.origin.trust)
    content = checked_content(ctx, patch["content"], entry.path) if "content" in patch else entry.content
    kind = inputs.choice(patch["kind"], Kind, "kind") if "kind" in patch else entry.kind
    proposal = redraft(ctx, replace(entry, content=content, kind=kind)).proposal
    setting = Setting(ctx.spec, ctx.taxonomy, ctx.now, canonical(ctx, [content]))
    if "content" in patch:
        draft = checked(ctx, store, proposal, setting)
        if "kind" not in patch:
            # Nobody states the kind of the new text.
            admit(draft._replace(proposal=proposal._replace(kind=None)), setting)
    else:
        gate = GateVerdict(Gate.ALLOW, 1.0, "")
        draft = run((admit, policy), Draft(proposal, content, kind, trust, gate, entry.category), setting)
    if draft.resolved:
        raise Refused(f"the new text would be discarded: {draft.gate.reason}", fix="write a full statement")
    return draft._replace(trust=trust)


def _patched(ctx: CallContext, entry: Entry, patch: Mapping[str, Any], draft: Draft) -> Entry:
    changes = {key: _READERS[key](value) for key, value in patch.items()}
    if "content" in patch:
        changes.update(content=draft.content, category=draft.category, gate=draft.gate, confirmed_at=ctx.now)
    if "metadata" in changes or draft.proposal.metadata.get(SENSITIVE):
        changes["metadata"] = _marked(ctx, entry, changes.get("metadata", entry.metadata), draft)
    changed = replace(entry, updated_at=ctx.now, trust=draft.trust, version=entry.version + 1, **changes)
    if draft.gate.verdict is Gate.HOLD and entry.state is State.ACTIVE:
        return changed.moved(State.HELD, at=ctx.now, cause=draft.gate.reason, actor=str(ctx.actor), gate=draft.gate)
    return changed


def _marked(ctx: CallContext, entry: Entry, metadata: Mapping[str, Any], draft: Draft) -> dict[str, Any]:
    """Return new metadata. Only the owner decides whether an entry is sensitive, and may put secrets into it."""
    kept = {key: entry.metadata[key] for key in (SENSITIVE,) if key in entry.metadata}
    if ctx.curator is not Curator.AUTHOR:
        return {**redact_all({key: value for key, value in metadata.items() if key != SENSITIVE}), **kept}
    if SENSITIVE in metadata or not (draft.proposal.metadata.get(SENSITIVE) or entry.sensitive):
        return dict(metadata)
    return {**metadata, SENSITIVE: True}


def says_otherwise(old: Entry, new: Entry) -> bool:
    """Say whether a new version is in force and states something else than the old one."""
    return new.state is State.ACTIVE and (old.content, old.kind) != (new.content, new.kind)


def _reembedded(ctx: CallContext, old: Entry, new: Entry) -> Embedding | None:
    if ctx.embedder is None or old.content == new.content:
        return None
    try:
        return Embedding(ctx.embedder.model, ctx.embedder.embed_memories([new.content])[0])
    except EmbedderError:
        return None


class Others(Struct, frozen=True):
    """The changes of other entries that a change of one brings: entries to retire, and pairs to note."""

    retired: tuple[SaveEntry, ...] = ()
    beside: tuple[SaveRivalry, ...] = ()

    @property
    def replaces(self) -> tuple[str, ...]:
        """The ids of the retired entries."""
        return tuple(save.entry.id for save in self.retired)

    @property
    def ids(self) -> tuple[str, ...]:
        """The ids of the entries that concern the same thing and stay."""
        return tuple(pair.rivalry.other for pair in self.beside)


def compared(ctx: CallContext, store: Store, entry: Entry, embedding: Embedding | None) -> Others:
    """Compare an entry with its neighbours, as a put does, for the same transaction.

    If the author lets in what contradicts a more trusted entry, both stay, and wait as a pair for the decision. From
    anybody else it is refused.
    """
    draft = redraft(ctx, entry)
    near = tuple(n for n in neighbours(store, draft, embedding) if n.entry.id != entry.id)
    setting = Setting(ctx.spec, ctx.taxonomy, ctx.now, neighbours=near, by_person=ctx.is_author)
    draft = resolve(draft, setting)
    if draft.gate.verdict is Gate.HOLD:
        targets = tuple(draft.ledger[-1].data["targets"])
        said = "; ".join(f"“{ctx.shown(n.entry).content[:QUOTED]}”" for n in near if n.entry.id in targets)
        raise Contradicts(
            f"the entry would contradict what is trusted more: {said}",
            against=targets,
            fix="put the new statement as an entry of its own: it waits in the review inbox, where the author decides",
        )
    if draft.decision.action is not Action.UPDATE:
        return Others(beside=_unnoted(store, draft, setting))
    actor = str(ctx.actor)
    targets = draft.decision.targets
    return Others(tuple(retire(target, entry, setting, draft.decision.reason, actor) for target in targets))


def against(ctx: CallContext, entry: Entry) -> tuple[Entry, ...]:
    """Return the entries in force that a held one contradicts: those it was held for, and those of today."""
    store = ctx.store(entry.scope.tier)
    draft = redraft(ctx, entry)
    near = tuple(n for n in neighbours(store, draft, None) if n.entry.id != entry.id)
    verdicts = [v.plain() for v in resolve(draft, Setting(ctx.spec, ctx.taxonomy, ctx.now, neighbours=near)).ledger]
    verdicts += [v for event in store.events(subject=entry.id) for v in event.detail.get("ledger", ())]
    held = [v for v in verdicts if (v.get("step"), v.get("outcome")) == ("resolve", "hold")]
    ids = dict.fromkeys(id for verdict in held for id in verdict.get("targets", ()))
    return tuple(other for other in store.entries(ids).values() if other.state is State.ACTIVE)


def pairs(ctx: CallContext, store: Store, entry: Entry, embedding: Embedding) -> tuple[SaveRivalry, ...]:
    """Return the pairs of an entry that got a vector only now."""
    draft = redraft(ctx, entry)
    near = tuple(n for n in neighbours(store, draft, embedding) if n.entry.id != entry.id)
    setting = Setting(ctx.spec, ctx.taxonomy, ctx.now, neighbours=near)
    return _unnoted(store, resolve(draft, setting), setting)


def _unnoted(store: Store, draft: Draft, setting: Setting) -> tuple[SaveRivalry, ...]:
    found = rivalries(draft, setting)
    known = {pair.beside(draft.proposal.id) for pair in store.rivals([draft.proposal.id])} if found else set()
    return tuple(pair for pair in found if pair.rivalry.other not in known)


def commit(ctx: CallContext, store: Store, entry: Entry, *operations: Operation) -> None:
    """Apply a revision; if another entry holds the same text, name it in the error."""
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
    """Another entry holds the same text; a retry cannot help."""


def forget(ctx: CallContext, id: str, cause: str) -> Written:
    """Take an entry out of recall. Its row stays, and the entries that it had corrected hold again."""
    return _move(ctx, id, State.FORGOTTEN, "entry.forgotten", cause)


def restore(ctx: CallContext, id: str, cause: str) -> Written:
    """Bring an entry back from history, and compare it with the others as a put does."""
    _, entry = ctx.entry(id)
    if entry.state is State.HELD:
        raise InvalidTransition(f"entry {entry.id} is held, not gone", fix=f"`lukasa accept {entry.id}` lets it in")
    store, _ = ctx.entry(id)
    before = next((v.entry.state for v in reversed(store.versions(entry.id)) if v.entry.state is not entry.state), None)
    # An entry that was held before is held again: a restore is no acceptance.
    state = State.HELD if before is State.HELD else State.ACTIVE
    return _move(ctx, id, state, "entry.restored", cause, confirmed_at=ctx.now)


def accept(ctx: CallContext, id: str, cause: str) -> Written:
    """Let a held entry into recall. Only the author may; an untrusted text becomes evidence, no more."""
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
        others = compared(ctx, store, moved, None) if state is State.ACTIVE else Others()
        reopened = corrected(ctx, entry, "forgotten") if state is State.FORGOTTEN else Reopened()
        save = SaveEntry(moved, entry.version, action, cause)
        commit(ctx, store, moved, *others.retired, save, *others.beside, *reopened.of(store))
        outcome = action.removeprefix("entry.")
        return Written(outcome, moved.id, moved, (), others.replaces, reopened.ids, others.ids)

    return final(lambda: retry_on_conflict(attempt))


ACTION = "entry.reopened"


class LeftAlone(Struct, frozen=True):
    """An entry that stays as it is, and the reason."""

    id: str
    reason: str


class Reopened(Struct, frozen=True):
    """The entries that come back, by store, and those that cannot."""

    saves: tuple[tuple[Store, SaveEntry], ...] = ()
    kept: tuple[LeftAlone, ...] = ()

    @property
    def ids(self) -> tuple[str, ...]:
        """The ids of the entries that come back."""
        return tuple(save.entry.id for _, save in self.saves)

    def of(self, store: Store) -> tuple[SaveEntry, ...]:
        """Return the changes for one store."""
        return tuple(save for home, save in self.saves if home is store)


def corrected(ctx: CallContext, leaving: Entry, how: str) -> Reopened:
    """Return the entries that a correction superseded, for when the correction is closed; none if it was not in force.

    Its copies and its sources do not come back: a user who forgets a statement does not want it in other words. `undo`
    brings them back too. `how` says how the correction was closed: "forgotten", "archived", "removed for good".
    """
    if VISIBILITY[leaving.state] is not Visibility.OPEN:
        return Reopened()
    cause = f"entry {leaving.id}, which had replaced it, was {how}"
    found = [
        (store, entry)
        for store, entry, _ in _retired_for(ctx, leaving.id)
        if entry.id not in leaving.derived_from and not _copies(entry, leaving)
    ]
    return reopen(ctx, found, leaving, None, cause)


def retired_with(ctx: CallContext, version: Version, *, since: bool = False) -> list[tuple[Store, Entry]]:
    """Return the entries that a version of an entry retired in its transaction, with `since` also later ones."""
    found = _retired_for(ctx, version.entry.id)
    return [(store, entry) for store, entry, last in found if since or last.at == version.at]


def reopen(
    ctx: CallContext, retired: Sequence[tuple[Store, Entry]], leaving: Entry, staying: Entry | None, cause: str
) -> Reopened:
    """Bring each entry back as it was before it was retired, unless another entry contradicts it.

    `staying` is the form in which the replacing entry remains, if it does.
    """
    saves: list[tuple[Store, SaveEntry]] = []
    kept: list[LeftAlone] = []
    for store, entry in retired:
        before = store.versions(entry.id)[-2].entry
        why = _against(ctx, store, before, {leaving.id, *(e.id for _, e in retired)}, staying)
        if why:
            kept.append(LeftAlone(entry.id, why))
            continue
        back = as_before(before, entry, ctx, cause)
        ledger = (Verdict("reopen", "reopened", cause, {"targets": [leaving.id]}),)
        saves.append((store, SaveEntry(back, entry.version, ACTION, cause, ledger)))
    return Reopened(tuple(saves), tuple(kept))


def as_before(before: Entry, now: Entry, ctx: CallContext, cause: str) -> Entry:
    """Return an earlier version as the next one, with a transition if the state changes."""
    stamp = before.transition if before.state is now.state else Transition(ctx.now, cause, str(ctx.actor))
    return replace(before, transition=stamp, updated_at=ctx.now, version=now.version + 1)


def _retired_for(ctx: CallContext, id: str) -> list[tuple[Store, Entry, Version]]:
    """Return the entries whose last change was to give way to this one; a later change of theirs stands."""
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
    """Return why an entry cannot come back; empty if it can."""
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
    return f"{', '.join(against)} still speaks against it" if against else ""


def redraft(ctx: CallContext, entry: Entry) -> Draft:
    """Return a stored entry as a draft, to compare it with its neighbours."""
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
        said_at=entry.confirmed_at,
    )
    return Draft(proposal, entry.content, entry.kind, entry.trust, GateVerdict(Gate.ALLOW, 1.0, ""))
