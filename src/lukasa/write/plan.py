"""The values of the write path, the steps that compare with neighbours, and the plan that the store applies."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from enum import StrEnum
from functools import lru_cache
from types import MappingProxyType
from typing import Any, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from lukasa.index.matches import Neighbour
from lukasa.model.entry import Category, Confirmation, Entry, GateVerdict, Rivalry, Scope, SourceLink, speaker_name
from lukasa.model.events import EventDraft
from lukasa.model.statements import compare
from lukasa.model.text import commitment, in_first_person, said_key, speaker, terms
from lukasa.model.transcript import Quote
from lukasa.model.values import Curator, Gate, Kind, Lifetime, Origin, Relation, State, Trust
from lukasa.spec.taxonomy import Taxonomy
from lukasa.spec.types import Behaviour, ByRule, ConflictRule, MemorySpec
from lukasa.storage.operations import (
    Embedding,
    Operation,
    Record,
    SaveConfirmation,
    SaveEntry,
    SaveRivalry,
    Verdict,
)


class Proposal(NamedTuple):
    """A text that a caller wants to store: validated, but nothing is decided yet."""

    id: str
    scope: Scope
    content: str
    curator: Curator
    source: str
    origin: Origin
    owner: str
    importance: float
    kind: Kind | None = None
    lifetime: Lifetime = Lifetime.LONG_TERM
    tags: tuple[str, ...] = ()
    conversation: str | None = None
    links: tuple[SourceLink, ...] = ()
    derived_from: tuple[str, ...] = ()
    derived_trust: tuple[Trust, ...] = ()
    valid_at: datetime | None = None
    supersedes: str | None = None
    corrects: str | None = None
    gate: GateVerdict | None = None
    category: str = ""
    metadata: Mapping[str, Any] = MappingProxyType({})
    evidence: tuple[Quote, ...] = ()
    path: str | None = None
    observed: bool = False  # taken from a session, not put on purpose
    said_at: datetime | None = None  # of an entry that is stored already
    meta: bool = False

    @property
    def place(self) -> dict[str, Any]:
        """The tier, the scope keys and the owner, for the event of a text that is not stored."""
        anchor = {key: value for key, value in self.scope.anchor if value is not None}
        return {"tier": self.scope.tier, "anchor": anchor, "owner": self.owner}

    @property
    def speaker(self) -> str:
        """The person who says "I" in the text, if it is not the user."""
        return speaker_name(self.source, self.origin.principal)

    @property
    def named(self) -> tuple[str, ...]:
        """The entries that the writer names: the one to replace, and the one to correct."""
        return tuple(id for id in (self.supersedes, self.corrects) if id is not None)


class Canonical(Struct, frozen=True):
    """A body that memory must not repeat, and its category in the spec's non-mirror list."""

    id: str
    category: str
    body: str


class Action(StrEnum):
    ADD = "add"
    UPDATE = "update"  # add, and end the validity of (or supersede) the targets
    MERGE = "merge"  # the target already says the same
    PAST = "past"  # add as ended: the targets contradict it, and somebody said them later
    DISCARD = "discard"


class Rival(NamedTuple):
    """An entry that concerns the same thing as a draft."""

    entry: Entry
    relation: Relation
    reason: str
    valued: bool = False


class Resolution(Struct, frozen=True):
    """The decision about a draft: `targets` are retired or confirmed, `rivals` stay beside it."""

    action: Action
    targets: tuple[Entry, ...] = ()
    reason: str = ""
    rivals: tuple[Rival, ...] = ()


@lru_cache(maxsize=256)
def _verdict(step: str, outcome: str, reason: str) -> Verdict:
    """A shared value: most drafts get the same few verdicts."""
    return Verdict(step, outcome, reason)


class Draft(NamedTuple):
    """A proposal between two steps. A tuple, which takes a third of the time: every step of a write makes one."""

    proposal: Proposal
    content: str
    kind: Kind
    trust: Trust
    gate: GateVerdict
    category: Category | None = None
    decision: Resolution = Resolution(Action.ADD)
    ledger: tuple[Verdict, ...] = ()

    @property
    def resolved(self) -> bool:
        """Whether a step has decided that nothing will be stored."""
        return self.gate.verdict is Gate.DISCARD

    def noting(self, step: str, outcome: str, reason: str, **data: Any) -> Draft:
        verdict = Verdict(step, outcome, reason, data) if data else _verdict(step, outcome, reason)
        return self._with(self.gate, (*self.ledger, verdict))

    def ruled(self, verdict: Gate, confidence: float, reason: str) -> Draft:
        return self._with(GateVerdict(verdict, confidence, reason), self.ledger)

    def _with(self, gate: GateVerdict, ledger: tuple[Verdict, ...]) -> Draft:
        return Draft(self.proposal, self.content, self.kind, self.trust, gate, self.category, self.decision, ledger)


class Setting(NamedTuple):
    """The input of the steps: the spec, the time, and the neighbours that the store found.

    `by_person` says that the author lets the text in, so that a contradiction is noted and does not hold it.
    """

    spec: MemorySpec
    taxonomy: Taxonomy
    now: datetime
    canonical: tuple[Canonical, ...] = ()
    neighbours: tuple[Neighbour, ...] = ()
    by_person: bool = False

    def among(self, neighbours: tuple[Neighbour, ...]) -> Setting:
        return self._replace(neighbours=neighbours)

    def behaviour(self, draft: Draft) -> Behaviour:
        return self.spec.behaviour(draft.proposal.scope.tier, draft.kind)


Step = Callable[[Draft, Setting], Draft]


def run(steps: tuple[Step, ...], draft: Draft, setting: Setting) -> Draft:
    """Run the steps in order; a discarded draft skips the rest."""
    for step in steps:
        if draft.gate.verdict is Gate.DISCARD:
            break
        draft = step(draft, setting)
    return draft


DOUBT_COSINE = 0.75
MOST_DOUBTS = 5
MANY = 3  # values of one thing, from which on another one is one more
MOST_RIVALS = 16  # pairs stored for one write: the nearest


def dedup(draft: Draft, setting: Setting) -> Draft:
    """Confirm an entry with the same text, instead of storing it twice."""
    p = draft.proposal
    if p.path is not None:
        return draft.noting("dedup", "new", "a file is stored under its path, even if another entry says the same")
    key = said_key(draft.content, p.speaker)
    for entry in [n.entry for n in setting.neighbours]:
        if entry.state not in (State.ACTIVE, State.HELD) or entry.path is not None:
            continue
        if said_key(entry.content, entry.speaker) != key:
            continue
        reason = "an entry has the same text"
        if entry.ended_by(setting.now):
            # The old statement held until its end, and holds again: only a new row makes reads find it.
            return _decide(draft, Action.UPDATE, (entry,), f"{reason}, but it had ended", "dedup")
        if draft.trust > entry.trust:
            # A trusted restatement must not be merged into a less trusted copy: it replaces the copy.
            reason = f"{reason}, of lower trust: the new statement replaces it"
            return _decide(draft, Action.UPDATE, (entry,), reason, "dedup")
        return _decide(draft, Action.MERGE, (entry,), reason, "dedup")
    return draft.noting("dedup", "new", f"none of {len(setting.neighbours)} neighbours has the same text")


def resolve(draft: Draft, setting: Setting) -> Draft:
    """Find entries that concern the same thing. Retire only what the caller names or what the spec tells the rules to.

    A less trusted statement never overrules a more trusted one: it is held for a person. If a person lets it in, both
    stay, and the pair waits for a decision.
    """
    if draft.decision.action is not Action.ADD:
        return draft
    named = tuple(n.entry for n in setting.neighbours if _names(draft, n.entry, setting))
    found = [rival for n in setting.neighbours if (rival := _rival(draft, n, setting)) is not None]
    updates = named or tuple(rival.entry for rival in found if rival.relation is Relation.UPDATE)
    if not named and not found:
        return draft.noting("resolve", "add", "no entry concerns the same thing")
    conflict = setting.behaviour(draft).conflict
    reason = "the new entry names this one as replaced" if named else found[0].reason
    above = bool(updates) and draft.trust < max(e.trust for e in updates)
    if above and not setting.by_person:
        why = f"{reason}, but comes from a less trusted origin: held for a person to decide"
        return draft.ruled(Gate.HOLD, 1.0, why).noting("resolve", "hold", why, targets=[e.id for e in updates])
    if named:
        return _decide(draft, Action.UPDATE, named, reason, "resolve")
    if updates and conflict.by_rule is ByRule.RETIRE and not above:
        said_at = _said_at(draft, setting)
        later = tuple(entry for entry in updates if said_at < min(entry.confirmed_at, setting.now))
        if later:
            return _decide(draft, Action.PAST, later, f"{reason}; the other one was said later, and holds", "resolve")
        return _decide(draft, Action.UPDATE, updates, f"{reason}; the later one holds", "resolve")
    many = sum(rival.valued for rival in found) >= MANY
    kept = tuple(map(_one_of_many, found) if many else found)[:MOST_RIVALS]
    beside = draft._replace(decision=Resolution(Action.ADD, reason=reason, rivals=kept))
    relations = {str(relation): [r.entry.id for r in kept if r.relation is relation] for relation in Relation}
    return beside.noting("resolve", "beside", reason, **{name: ids for name, ids in relations.items() if ids})


def _one_of_many(rival: Rival) -> Rival:
    """A thing with many values has many: a new one is shown first, but replaces none."""
    return rival._replace(relation=Relation.CLOSE) if rival.valued else rival


def _names(draft: Draft, other: Entry, setting: Setting) -> bool:
    p = draft.proposal
    return p.supersedes == other.id and other.state is State.ACTIVE and not other.ended_by(setting.now)


def _rival(draft: Draft, neighbour: Neighbour, setting: Setting) -> Rival | None:
    """The relation of a draft to a neighbour, if they concern the same thing.

    A file changes when it is edited. Two speakers who say "I" speak of two people.
    """
    other, p = neighbour.entry, draft.proposal
    if other.state is not State.ACTIVE or other.ended_by(setting.now) or other.id == p.id:
        return None
    if p.path is not None or other.path is not None:
        return None
    if p.corrects == other.id:
        return Rival(other, Relation.UPDATE, "its writer says that it corrects this entry")
    if p.speaker != other.speaker and in_first_person(draft.content) and in_first_person(other.content):
        return None
    above = setting.behaviour(draft).write.dedup_cosine
    new, old = draft.content, other.content
    if _said_at(draft, setting) < min(other.confirmed_at, setting.now):
        new, old = old, new
    found = compare(new, old, neighbour.cosine, above)
    if found is None:
        return None
    if found.relation is not Relation.SAME and not (_gives_way(draft, setting) and _gives_way(other, setting)):
        return None
    return Rival(other, *found)


def _gives_way(one: Draft | Entry, setting: Setting) -> bool:
    """Whether a statement may be replaced by another one, as the spec has it for its kind; no line of a talk may."""
    scope = one.proposal.scope if isinstance(one, Draft) else one.scope
    rule = setting.spec.behaviour(scope.tier, one.kind).conflict.rule
    return rule is not ConflictRule.NOOP and speaker(one.content) is None


def _said_at(draft: Draft, setting: Setting) -> datetime:
    """When somebody said it: at the message's time if it was observed, otherwise now. An entry has confirmed_at."""
    p = draft.proposal
    if p.said_at is not None:
        return p.said_at
    return min(p.valid_at, setting.now) if p.evidence and p.valid_at is not None else setting.now


def _decide(draft: Draft, action: Action, targets: tuple[Entry, ...], reason: str, step: str) -> Draft:
    decided = draft._replace(decision=Resolution(action, targets, reason))
    return decided.noting(step, str(action), reason, targets=[entry.id for entry in targets])


def ambiguous(draft: Draft, setting: Setting) -> tuple[Entry, ...]:
    """The neighbours of an added statement that are so close that a model should compare them, rivals first."""
    rule = setting.behaviour(draft).conflict.rule
    if draft.decision.action is not Action.ADD or draft.gate.verdict is not Gate.ALLOW or rule is ConflictRule.NOOP:
        return ()
    if draft.proposal.path is not None:
        return ()
    rivals = [rival.entry for rival in draft.decision.rivals]
    close = [n.entry for n in setting.neighbours if n.entry.kind is draft.kind and _doubtful(draft, n)]
    found = {entry.id: entry for entry in (*rivals, *close) if not entry.ended_by(setting.now)}
    return tuple(found.values())[:MOST_DOUBTS]


def _doubtful(draft: Draft, neighbour: Neighbour) -> bool:
    if neighbour.entry.state is not State.ACTIVE or neighbour.entry.path is not None:
        return False
    if neighbour.cosine is not None:
        return neighbour.cosine >= DOUBT_COSINE
    mine, theirs = set(terms(draft.content)), set(terms(neighbour.entry.content))
    return 3 * len(mine & theirs) >= len(mine | theirs)


RESOLVE: tuple[Step, ...] = (dedup, resolve)


MOST_EVIDENCE = 50  # quotes stored for one fact: enough to count independent observations


class Plan(NamedTuple):
    """The operations in order; `entry` is the result for the caller, None if nothing is stored."""

    outcome: str
    entry: Entry | None
    operations: tuple[Operation, ...]
    replaces: tuple[str, ...] = ()
    beside: tuple[str, ...] = ()


def plan(draft: Draft, setting: Setting, *, actor: str, embedding: Embedding | None, secret: bytes) -> Plan:
    if draft.resolved:
        return _discarded(draft, secret)
    decision = draft.decision
    if decision.action is Action.MERGE:
        return _merged(draft, decision.targets[0], setting)
    entry = _entry(draft, setting)
    if decision.action is Action.PAST:
        newer = min(decision.targets, key=lambda target: target.confirmed_at)
        entry = replace(entry, invalid_at=max(entry.confirmed_at, newer.valid_at or newer.created_at))
        entry = replace(entry, superseded_by=newer.id)
    action = "entry.held" if entry.state is State.HELD else "entry.put"
    save = SaveEntry(entry, 0, action, decision.reason or draft.gate.reason or "put", draft.ledger, embedding)
    if decision.action is Action.UPDATE and entry.state is State.ACTIVE:
        retired = tuple(retire(target, entry, setting, decision.reason, actor) for target in decision.targets)
        # Retire the old ones first: two active entries must not hold the same text, and a restatement may.
        return Plan("replaced", entry, (*retired, save), tuple(target.id for target in decision.targets))
    if entry.state is State.HELD:
        return Plan("held", entry, (save,))
    pairs = rivalries(draft, setting)
    return Plan("stored", entry, (save, *pairs), beside=tuple(pair.rivalry.other for pair in pairs))


def rivalries(draft: Draft, setting: Setting) -> tuple[SaveRivalry, ...]:
    """The pairs of a draft with the entries that concern the same thing."""
    id, now = draft.proposal.id, setting.now
    return tuple(SaveRivalry(Rivalry(id, r.entry.id, r.relation, r.reason, now)) for r in draft.decision.rivals)


def _discarded(draft: Draft, secret: bytes) -> Plan:
    detail = {
        **draft.proposal.place,
        "cause": draft.gate.reason,
        "commitment": commitment(secret, draft.content),
        "ledger": [verdict.plain() for verdict in draft.ledger],
    }
    return Plan("discarded", None, (Record(EventDraft("entry.discarded", draft.proposal.id, detail)),))


def _merged(draft: Draft, target: Entry, setting: Setting) -> Plan:
    now = setting.now
    merged = replace(
        target,
        merged_count=target.merged_count + 1,
        updated_at=now,
        evidence=tuple(dict.fromkeys((*target.evidence, *draft.proposal.evidence)))[:MOST_EVIDENCE],
        version=target.version + 1,
    )
    if draft.trust >= target.trust:  # a less trusted writer's repetition counts, but changes nothing else
        merged = replace(merged, confirmed_at=max(target.confirmed_at, _said_at(draft, setting)))
        importance = max(target.importance, draft.proposal.importance)
        tags = tuple(dict.fromkeys((*target.tags, *draft.proposal.tags)))
        merged = replace(merged, importance=importance, tags=tags, links=_checked(target.links, draft.proposal.links))
    save = SaveEntry(merged, target.version, "entry.merged", draft.decision.reason, draft.ledger)
    p = draft.proposal
    again = Confirmation(
        target.id,
        _said_at(draft, setting),
        p.origin.principal,
        p.source,
        p.conversation or "",
        draft.content,
        p.evidence,
        draft.trust,
    )
    return Plan("merged", merged, (save, SaveConfirmation(again)))


def _checked(links: tuple[SourceLink, ...], stated: tuple[SourceLink, ...]) -> tuple[SourceLink, ...]:
    """The links of an entry that is stated again, with the versions of their documents that it is stated from now."""
    read = {link.source: link.version for link in stated}
    return tuple(replace(link, checked=max(link.checked, read.get(link.source, 0))) for link in links)


def _entry(draft: Draft, setting: Setting) -> Entry:
    p = draft.proposal
    return Entry(
        id=p.id,
        scope=p.scope,
        content=draft.content,
        kind=draft.kind,
        lifetime=p.lifetime,
        curator=p.curator,
        source=p.source,
        importance=p.importance,
        origin=p.origin,
        trust=draft.trust,
        created_at=setting.now,
        updated_at=setting.now,
        confirmed_at=_said_at(draft, setting),
        owner=p.owner,
        tags=p.tags,
        conversation=p.conversation,
        category=draft.category,
        gate=draft.gate,
        valid_at=p.valid_at or (setting.now if draft.kind is Kind.SEMANTIC else None),
        state=State.HELD if draft.gate.verdict is Gate.HOLD else State.ACTIVE,
        derived_from=p.derived_from,
        links=p.links,
        metadata=dict(p.metadata),
        evidence=p.evidence,
        path=p.path,
        meta=p.meta,
    )


def retire(target: Entry, entry: Entry, setting: Setting, cause: str, actor: str) -> SaveEntry:
    """End the old statement: close a fact's validity, archive a procedure, supersede a copy."""
    rule = setting.spec.behaviour(entry.scope.tier, entry.kind).conflict.rule
    now, version = setting.now, target.version
    changes: dict[str, Any] = {"superseded_by": entry.id, "version": version + 1}
    if rule is ConflictRule.VALIDITY:
        ends = max(entry.valid_at or now, target.valid_at or target.created_at)
        ends = min(ends, target.invalid_at) if target.invalid_at else ends
        if ends > now:  # the new fact holds only from later on; until then the old one does
            closing = replace(target, invalid_at=ends, updated_at=now, **changes)
            return SaveEntry(closing, version, "entry.updated", cause)
        retired = target.moved(State.INVALIDATED, at=now, cause=cause, actor=actor, invalid_at=ends, **changes)
        return SaveEntry(retired, version, "entry.invalidated", cause)
    if rule is ConflictRule.SUPERSEDE:
        retired = target.moved(State.ARCHIVED, at=now, cause=cause, actor=actor, **changes)
        return SaveEntry(retired, version, "entry.archived", cause)
    retired = target.moved(State.SUPERSEDED, at=now, cause=cause, actor=actor, **changes)
    return SaveEntry(retired, version, "entry.superseded", cause)
