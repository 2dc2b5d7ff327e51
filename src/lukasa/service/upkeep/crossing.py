"""The crossing of a boundary: entries of an ended scope on their way into the next tier, through that tier's gates."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from msgspec.structs import replace

from lukasa.model.entry import Entry, Scope
from lukasa.model.ids import derived_id
from lukasa.model.statements import says_the_same
from lukasa.model.text import content_key
from lukasa.model.values import Kind, Lifetime, Origin, State, Trust
from lukasa.service.call import CallContext
from lukasa.service.corpus.canonical import canonical
from lukasa.service.entries.put import neighbours
from lukasa.service.jobs.triggers import BOUNDARY
from lukasa.service.upkeep.promote import crossed, embedded, proposed, scope_above
from lukasa.service.upkeep.run import Upkeep
from lukasa.storage.operations import Embedding, Operation, SaveEntry
from lukasa.upkeep.digest import SOURCE, digest, leaving
from lukasa.upkeep.weighed import Weighed
from lukasa.write.plan import RESOLVE, Action, Draft, Resolution, Setting, plan, run

PRINCIPAL = "lukasa"


def is_carried(ctx: CallContext, entry: Entry) -> bool:
    """Whether the boundary carries an entry on: its kind is consolidated at the close, and has a tier to go to."""
    if entry.state not in (State.ACTIVE, State.STALE) or not entry.holds_at(ctx.now) or entry.path is not None:
        return False
    rule = ctx.spec.behaviour(entry.scope.tier, entry.kind)
    asks = rule.promotion.min_relevance or rule.promotion.min_access or rule.promotion.min_observations
    unconditional = not (asks or rule.promotion.min_versions)
    leaves = rule.promotion.to not in ("", entry.scope.tier) and not ctx.spec.tier(entry.scope.tier).persistent
    closes = "session_close" in rule.consolidation.triggers and rule.consolidation.style != "none"
    return leaves and closes and unconditional and not (entry.passing or entry.sensitive)


class Crossing:
    """Entries on their way into the next tier: what is written there, and where each of them went."""

    def __init__(self, ctx: CallContext, label: str, going: Collection[str]) -> None:
        origin = Origin(PRINCIPAL, ctx.origin.surface, BOUNDARY, Trust.AUTHOR)
        self.ctx = replace(ctx, origin=origin, agent=None, reach=None, within=None)
        self.label = label
        self.going = going  # rows that do not stay, and cannot be referred to
        self.here: list[Operation] = []
        self.above: list[Operation] = []
        self.digests: list[str] = []
        self.into: dict[str, str] = {}
        self._up = Upkeep(self.ctx, None)
        self._latest: dict[str, Entry] = {}
        self._texts: dict[tuple[Scope, str, str], str] = {}

    def carry(self, entries: Sequence[Entry]) -> None:
        """Join the episodes of each owner and trust; carry every other statement by itself."""
        if not entries:
            return
        self._setting = Setting(
            self.ctx.spec, self.ctx.taxonomy, self.ctx.now, canonical(self.ctx, [e.content for e in entries])
        )
        new = [Weighed(e, e.importance) for e in entries if not self._confirms(e)]
        notes = [w for w in new if self._compounds(w.entry)]
        for group in leaving(notes):
            sources = [w.entry for w in group]
            content = digest(group, self.label).content if len(group) > 1 else sources[0].content
            self._write(sources, content)
        for w in new:
            if not self._compounds(w.entry):
                self._write([w.entry], w.entry.content)

    def _compounds(self, entry: Entry) -> bool:
        style = self.ctx.spec.behaviour(entry.scope.tier, entry.kind).consolidation.style
        return style == "compound" and entry.kind is Kind.EPISODIC

    def _scope(self, entry: Entry) -> Scope | None:
        """Return where an entry goes: the tier that its promotion names, or the next one whose keys are known."""
        names = [tier.name for tier in self.ctx.spec.tiers]
        to = self.ctx.spec.behaviour(entry.scope.tier, entry.kind).promotion.to
        for tier in self.ctx.spec.tiers[names.index(to) :]:
            scope = scope_above(self.ctx, entry, tier.name) if tier.home == self.ctx.spec.tier(to).home else None
            if scope is not None and not self.ctx.local.closed([scope]):
                return scope
        return None

    def _draft(self, sources: Sequence[Entry], content: str, scope: Scope) -> Draft | None:
        """Return the entry of the next tier as a draft that has passed that tier's gates."""
        first = max(sources, key=lambda e: (e.importance, e.confirmed_at, e.id))
        id = derived_id("carried", scope.tier, *(f"{e.id}@{e.version}" for e in sources))
        base = proposed(self.ctx, replace(first, content=content), sources, scope, id, first.kind)
        shared = {e.conversation for e in sources}
        proposal = base._replace(
            source=SOURCE if len(sources) > 1 else first.source,
            lifetime=Lifetime.SHORT_TERM if not self.ctx.spec.tier(scope.tier).persistent else Lifetime.LONG_TERM,
            conversation=shared.pop() if len(shared) == 1 else None,
            derived_from=tuple(e.id for e in sources if e.id not in self.going),
        )
        return crossed(self._up, [e.id for e in sources], proposal, first.kind)

    def _confirms(self, entry: Entry) -> bool:
        """Let an entry of the next tier that says the same be confirmed, and say whether there is one."""
        scope = self._scope(entry)
        draft = self._draft([entry], entry.content, scope) if scope is not None else None
        if scope is None or draft is None:
            return True  # it has nowhere to go, or that tier's gates refuse it: it ends as the policy says
        store = self.ctx.store(scope.tier)
        above = self.ctx.spec.behaviour(scope.tier, entry.kind).write.dedup_cosine
        for near in neighbours(store, draft, self._vector(entry)):
            known = self._latest.get(near.entry.id, near.entry)
            same = content_key(known.content) == content_key(draft.content)
            close = near.cosine is not None and near.cosine > above and says_the_same(draft.content, known.content)
            if known.state is State.ACTIVE and known.trust >= draft.trust and (same or close):
                reason = "an entry of the next tier says the same"
                self._plan(draft._replace(decision=Resolution(Action.MERGE, (known,), reason)), [entry], None)
                return True
        return False

    def _vector(self, entry: Entry) -> Embedding | None:
        embedder = self.ctx.embedder
        if embedder is None:
            return None
        vector = self.ctx.store(entry.scope.tier).vectors([entry.id], embedder.model).get(entry.id)
        return None if vector is None else Embedding(embedder.model, vector)

    def _write(self, sources: Sequence[Entry], content: str) -> None:
        scope = self._scope(sources[0])
        draft = self._draft(sources, content, scope) if scope is not None else None
        if scope is None or draft is None:
            return
        key = (scope, sources[0].owner, content_key(draft.content))
        if key in self._texts:
            self.into.update(dict.fromkeys((e.id for e in sources), self._texts[key]))
            return
        embedding = embedded(self.ctx, "", draft.content)
        near = tuple(neighbours(self.ctx.store(scope.tier), draft, embedding))
        settled = run(RESOLVE, draft, self._setting.among(near))
        if any(target.id in self._latest for target in settled.decision.targets):
            settled = draft  # this boundary has changed that entry already
        id = self._plan(settled, sources, embedding)
        self._texts[key] = id
        if len(sources) > 1:
            self.digests.append(id)

    def _plan(self, draft: Draft, sources: Sequence[Entry], embedding: Embedding | None) -> str:
        store = self.ctx.store(draft.proposal.scope.tier)
        planned = plan(draft, self._setting, actor=str(self.ctx.actor), embedding=embedding, secret=store.secret())
        entry = planned.entry
        id = draft.proposal.id if entry is None else entry.id
        known = store is not self.ctx.local and draft.proposal.id in store.entries([draft.proposal.id])
        if not known:  # a repetition after a crash finds what the account holds already
            into = self.here if store is self.ctx.local else self.above
            into.extend(_as_crossing(planned.operations, len(sources), self.label))
        if entry is not None:
            self._latest[entry.id] = entry
        self.into.update(dict.fromkeys((e.id for e in sources), id))
        return id


def _as_crossing(operations: Sequence[Operation], count: int, label: str) -> Iterator[Operation]:
    """Name new entries in the log by how they came about."""
    action = "entry.consolidated" if count > 1 else "entry.promoted"
    cause = f"{count} entries of {label} became one" if count > 1 else f"carried over the end of {label}"
    for operation in operations:
        new = isinstance(operation, SaveEntry) and not operation.expect
        yield replace(operation, action=action, cause=cause) if isinstance(operation, SaveEntry) and new else operation
