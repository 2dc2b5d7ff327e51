"""The parts that all upkeep shares: select entries of a scope, weigh them, and carry out decisions.

A decision carries the version that it was made about. If the entry has changed meanwhile, the newer change stands, and
the decision is dropped with an event and a telemetry event. The journal of a step lists its changes; `undo` of a job
reads them there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from lukasa.model.conversation import Status
from lukasa.model.entry import Access, Entry, Scope
from lukasa.model.errors import Conflict, NotFound
from lukasa.model.events import EventDraft
from lukasa.model.selection import Filters, Selection
from lukasa.model.values import VISIBILITY, State, Visibility
from lukasa.read.decay import decay_factor, frequency, relevance
from lukasa.service.call import CallContext
from lukasa.service.jobs.task import Task
from lukasa.storage.operations import DropEntry, Operation, Record, SaveEntry, SaveRivalry
from lukasa.storage.port import Store
from lukasa.upkeep.promotion import Move, removal
from lukasa.upkeep.weighed import Weighed

if TYPE_CHECKING:
    from lukasa.ports import Vector

PAGE = 1000
BATCH = 100
DROPPED = "decision.dropped"
COMPLETED = "completed"

Tell = Callable[[str], None]


def silent(_: str) -> None:
    """Report progress to nobody."""


class Target(Struct, frozen=True):
    """A scope that upkeep works on, and the store that holds it."""

    store: Store
    scope: Scope

    @property
    def tier(self) -> str:
        return self.scope.tier


def targets(ctx: CallContext, tiers: Collection[str] | None = None) -> list[Target]:
    """Return every scope of the workspace and the account in these tiers: upkeep is bound to no conversation."""
    known = {tier.name: tier for tier in ctx.spec.tiers if tiers is None or tier.name in tiers}
    found = []
    for store in (ctx.local, ctx.account):
        for count in store.census():
            tier = known.get(count.scope.tier)
            if tier is None or ctx.store(tier.name) is not store:
                continue
            if count.scope.value("workspace") in (None, ctx.info.id) and _anchored(count.scope, tier.anchor):
                found.append(Target(store, count.scope))
    return found


def _anchored(scope: Scope, anchor: Iterable[Any]) -> bool:
    """Say whether a scope has the keys of this spec; another workspace may use other keys in the account."""
    return [key for key, _ in scope.anchor] == [key.name for key in anchor]


def weighed(ctx: CallContext, target: Target, *, conversation: str | None = None) -> list[Weighed]:
    """Return the entries in force in a scope, of every owner, without files, with their relevance now.

    Sensitive entries are left out: nothing merges, promotes or prunes the secrets that the owner keeps here.
    """
    now = ctx.now
    out: list[Weighed] = []
    for page in _pages(target):
        mine = [e for e in page if e.holds_at(now) and not e.sensitive and (not conversation or _of(e, conversation))]
        access = target.store.access([e.id for e in mine])
        out.extend(weigh(ctx, target.store, e, access.get(e.id), now) for e in mine)
    return out


def weigh(ctx: CallContext, store: Store, entry: Entry, access: Access | None, now: datetime) -> Weighed:
    """Return an entry with its relevance now."""
    decay = ctx.spec.behaviour(entry.scope.tier, entry.kind).decay
    factor = decay_factor(decay, entry, access, now, _closed(store, entry))
    return Weighed(entry, relevance(entry.importance, factor, frequency(access)), access.count if access else 0)


def _closed(store: Store, entry: Entry) -> datetime | None:
    key = entry.scope.value("conversation")
    conversation = store.conversation(key) if key else None
    return conversation.ended_at if conversation else None


def _of(entry: Entry, conversation: str) -> bool:
    return conversation in (entry.conversation, entry.scope.value("conversation"))


def _pages(target: Target) -> Iterator[list[Entry]]:
    selection = Selection((target.scope,), frozenset({Visibility.OPEN}), None, Filters(filed=False))
    after = None
    while page := target.store.find(selection, limit=PAGE, after=after):
        yield page
        if len(page) < PAGE:
            return
        after = page[-1].id


def vectors(ctx: CallContext, target: Target, found: Sequence[Weighed]) -> dict[str, Vector]:
    """Return the vectors of the present model, for entries that have one."""
    if ctx.embedder is None:
        return {}
    out: dict[str, Vector] = {}
    for start in range(0, len(found), PAGE):
        out |= target.store.vectors([w.id for w in found[start : start + PAGE]], ctx.embedder.model)
    return out


def open_conversations(ctx: CallContext) -> set[str]:
    """Return the ids of the active conversations."""
    return {c.id for c in ctx.local.conversations() if c.status is Status.ACTIVE}


class Upkeep:
    """One run of upkeep: carry out decisions step by step, journal their changes, and count.

    Without a task it is a dry run: it only counts.
    """

    def __init__(self, ctx: CallContext, task: Task | None, tell: Tell = silent) -> None:
        self.ctx = ctx
        self.task = task
        self._tell = tell
        self._counts: Counter[str] = Counter()
        self._steps = 0
        if task is not None:
            kept = task.store.steps(task.job.id).values()
            self._steps = len(kept)
            for output in kept:  # counts of earlier attempts at this job
                self._counts.update(output.get("counts", {}) if isinstance(output, dict) else {})

    @property
    def counts(self) -> dict[str, int]:
        """The changes so far, by kind."""
        return {what: n for what, n in sorted(self._counts.items()) if n}

    @property
    def asks(self) -> bool:
        """Whether there is a language model to ask; otherwise rules decide."""
        return self.task is not None and self.task.chat is not None

    def say(self, text: str) -> None:
        """Report progress."""
        self._tell(text)

    def move(self, store: Store, what: str, moves: Sequence[Move]) -> set[str]:
        """Move entries to other states; return the ids of those that moved."""
        gone: set[str] = set()
        for start in range(0, len(moves), BATCH):
            batch = moves[start : start + BATCH]
            if self.commit(store, what, [self._save(move) for move in batch], count=len(batch), told=False):
                gone |= {move.entry.id for move in batch}
            else:  # one of them has changed: move each by itself
                gone |= {m.entry.id for m in batch if self.commit(store, what, [self._save(m)])}
            if len(moves) > BATCH:
                self.say(f"{what}: {min(start + BATCH, len(moves)):,} of {len(moves):,}")
        return gone

    def _save(self, move: Move) -> SaveEntry:
        entry = move.entry
        moved = entry.moved(move.state, at=self.ctx.now, cause=move.cause, actor=str(self.ctx.actor))
        return SaveEntry(replace(moved, version=entry.version + 1), entry.version, move.action, move.cause)

    def commit(
        self,
        store: Store,
        what: str,
        saves: Sequence[SaveEntry],
        *,
        pairs: Sequence[SaveRivalry] = (),
        main: str | None = None,
        count: int = 1,
        told: bool = True,
        step: str | None = None,
    ) -> bool:
        """Commit a group of changes and pairs with its journal line; return False if an entry has changed meanwhile.

        `main` is the entry whose undo takes back the whole group. `told` says whether to record a dropped decision.
        """
        if self.task is None:
            self._counts[what] += count
            return True
        gone = self._removals(store, saves)
        changed = [[s.entry.id, s.expect + 1] for s in saves if main in (None, s.entry.id) and s.entry.id not in gone]
        output = {"changed": changed, "counts": {what: count}}
        try:
            self._apply(store, self._name(what, step), output, [*(gone.get(s.entry.id, s) for s in saves), *pairs])
        except (Conflict, NotFound) as error:
            if told:
                self.drop(what, [s.entry.id for s in saves], error.message, step=step)
            return False
        self._counts[what] += count
        return True

    def _removals(self, store: Store, saves: Sequence[SaveEntry]) -> dict[str, DropEntry]:
        """Return the removals of rows that leave recall, where the spec does not ask to keep such rows."""
        if not self.ctx.spec.exemption("soft-supersession"):
            return {}
        leaving = [s for s in saves if s.expect and VISIBILITY[s.entry.state] is Visibility.HISTORY]
        linked = store.linked([s.entry.id for s in leaving])
        found = {}
        for save in leaving:
            before = replace(save.entry, version=save.expect)
            drop = removal(self.ctx.spec, before, save.cause, linked=save.entry.id in linked, softly=True)
            if drop is not None:
                found[save.entry.id] = drop
        return found

    def drop(self, what: str, ids: Sequence[str], reason: str, *, step: str | None = None) -> None:
        """Record a decision that is not carried out, with its reason, in the event log and in telemetry."""
        self._counts["dropped"] += 1
        if self.task is None:
            return
        told = {"what": what, "cause": reason, "entries": list(ids)}
        event = Record(EventDraft(DROPPED, self.task.job.id, told))
        point = self.task.telemetry(DROPPED, success=False, level="warn", metadata={"what": what, "reason": reason})
        self.task.commit(self._name(what, step), {"dropped": told, "counts": {"dropped": 1}}, event, point)

    def finish(self, **more: Any) -> dict[str, Any]:
        """Record the end of the run with its counts."""
        result = {**self.counts, **more}
        if self.task is not None:
            point = self.task.telemetry(f"{self.task.job.kind}.completed", metadata=result)
            self.task.commit(COMPLETED, result, point)
        return result

    def _name(self, what: str, step: str | None) -> str:
        self._steps += 1
        return step or f"{what}:{self._steps}"

    def _apply(self, store: Store, step: str, output: dict[str, Any], operations: Sequence[Operation]) -> None:
        task = self.task
        if task is None:
            return
        if store is task.store:
            task.commit(step, output, *operations)
            return
        self.ctx.apply(store, *operations)  # another store: the expected versions keep a repetition from writing twice
        task.commit(step, output)


def without(found: Iterable[Weighed], gone: Collection[str]) -> list[Weighed]:
    """Leave out the entries with these ids."""
    return [w for w in found if w.id not in gone]


def active(found: Iterable[Weighed]) -> list[Weighed]:
    """Keep the active entries."""
    return [w for w in found if w.entry.state is State.ACTIVE]
