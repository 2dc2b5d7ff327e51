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
from lukasa.model.entry import Category, Entry, GateVerdict, Scope, SourceLink
from lukasa.model.events import EventDraft
from lukasa.model.statements import contradicts, says_the_same
from lukasa.model.text import commitment, content_key, terms
from lukasa.model.transcript import Quote
from lukasa.model.values import Curator, Gate, Kind, Lifetime, Origin, State, Trust
from lukasa.spec.taxonomy import Taxonomy
from lukasa.spec.types import Behaviour, ConflictRule, MemorySpec
from lukasa.storage.operations import Embedding, Operation, Record, SaveEntry, Verdict


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
    gate: GateVerdict | None = None
    category: str = ""
    metadata: Mapping[str, Any] = MappingProxyType({})
    evidence: tuple[Quote, ...] = ()
    path: str | None = None
    observed: bool = False  # taken from a session, not put on purpose


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
    NOOP = "noop"  # contradicts the targets, and all are kept
    DISCARD = "discard"


class Resolution(Struct, frozen=True):
    action: Action
    targets: tuple[Entry, ...] = ()
    reason: str = ""


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
    """The input of the steps: the spec, the time, and the neighbours that the store found."""

    spec: MemorySpec
    taxonomy: Taxonomy
    now: datetime
    canonical: tuple[Canonical, ...] = ()
    neighbours: tuple[Neighbour, ...] = ()

    def among(self, neighbours: tuple[Neighbour, ...]) -> Setting:
        return Setting(self.spec, self.taxonomy, self.now, self.canonical, neighbours)

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


def dedup(draft: Draft, setting: Setting) -> Draft:
    """Confirm an entry that already says the same, instead of storing it twice."""
    if draft.proposal.path is not None:
        return draft.noting("dedup", "new", "a file is stored under its path, even if another entry says the same")
    threshold = setting.behaviour(draft).write.dedup_cosine
    key = content_key(draft.content)
    for neighbour in setting.neighbours:
        reason = _same(draft, neighbour, key, threshold)
        if not reason:
            continue
        if neighbour.entry.ended_by(setting.now):
            # The old statement held until its end, and holds again: only a new row makes reads find it.
            return _decide(draft, Action.UPDATE, (neighbour.entry,), f"{reason}, but it had ended", "dedup")
        if draft.trust > neighbour.entry.trust:
            # A trusted restatement must not be merged into a less trusted copy: it replaces the copy.
            reason = f"{reason}, of lower trust: the new statement replaces it"
            return _decide(draft, Action.UPDATE, (neighbour.entry,), reason, "dedup")
        return _decide(draft, Action.MERGE, (neighbour.entry,), reason, "dedup")
    return draft.noting("dedup", "new", f"none of {len(setting.neighbours)} neighbours says the same")


def _same(draft: Draft, neighbour: Neighbour, key: str, threshold: float) -> str:
    if neighbour.entry.state not in (State.ACTIVE, State.HELD) or neighbour.entry.path is not None:
        return ""
    if content_key(neighbour.entry.content) == key:
        return "an entry has the same text"
    if neighbour.entry.state is State.HELD or neighbour.cosine is None or neighbour.cosine <= threshold:
        return ""
    if not says_the_same(draft.content, neighbour.entry.content):
        return ""
    return f"cosine {neighbour.cosine:.3f} is above {threshold} and it adds no name, number, negation or word"


def resolve(draft: Draft, setting: Setting) -> Draft:
    """Resolve contradictions by the rule of the kind. A less trusted statement never overrules a more trusted one."""
    if draft.decision.action is not Action.ADD:
        return draft
    valid = [neighbour.entry for neighbour in setting.neighbours if not neighbour.entry.ended_by(setting.now)]
    found = [(entry, why) for entry in valid if (why := _conflict(draft, entry))]
    if not found:
        return draft.noting("resolve", "add", "contradicts nothing")
    targets, reason = tuple(entry for entry, _ in found), found[0][1]
    if setting.behaviour(draft).conflict.rule is ConflictRule.NOOP and draft.proposal.supersedes is None:
        return _decide(draft, Action.NOOP, targets, f"{reason}; {draft.kind} memories accumulate", "resolve")
    if draft.trust < max(entry.trust for entry in targets):
        why = f"{reason}, but comes from a less trusted origin: held for a person to decide"
        return draft.ruled(Gate.HOLD, 1.0, why).noting("resolve", "hold", why, targets=[e.id for e in targets])
    said_at = _said_at(draft, setting)
    later = tuple(entry for entry in targets if said_at < min(entry.confirmed_at, setting.now))
    if later and draft.proposal.supersedes is None:
        return _decide(draft, Action.PAST, later, f"{reason}; the other one was said later, and holds", "resolve")
    return _decide(draft, Action.UPDATE, targets, f"{reason}; the later one holds", "resolve")


def _said_at(draft: Draft, setting: Setting) -> datetime:
    """When somebody said it: at the message's time if it was observed, otherwise now. An entry has confirmed_at."""
    p = draft.proposal
    return min(p.valid_at, setting.now) if p.evidence and p.valid_at is not None else setting.now


def _conflict(draft: Draft, other: Entry) -> str:
    if other.state is not State.ACTIVE:
        return ""
    if draft.proposal.supersedes == other.id:
        return "the new entry names this one as replaced"
    if draft.proposal.path is not None or other.path is not None:
        return ""  # a file changes when it is edited, not because of other statements
    return contradicts(draft.content, other.content) if other.kind is draft.kind else ""


def _decide(draft: Draft, action: Action, targets: tuple[Entry, ...], reason: str, step: str) -> Draft:
    decided = draft._replace(decision=Resolution(action, targets, reason))
    return decided.noting(step, str(action), reason, targets=[entry.id for entry in targets])


def ambiguous(draft: Draft, setting: Setting) -> tuple[Entry, ...]:
    """The neighbours of a simply added statement that are so close that the rules may have missed a contradiction."""
    rule = setting.behaviour(draft).conflict.rule
    if draft.decision.action is not Action.ADD or draft.gate.verdict is not Gate.ALLOW or rule is ConflictRule.NOOP:
        return ()
    if draft.proposal.path is not None:
        return ()
    close = [n for n in setting.neighbours if n.entry.kind is draft.kind and _doubtful(draft, n)]
    return tuple(n.entry for n in close if not n.entry.ended_by(setting.now))[:MOST_DOUBTS]


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
    return Plan("held" if entry.state is State.HELD else "stored", entry, (save,))


def _discarded(draft: Draft, secret: bytes) -> Plan:
    detail = {
        "tier": draft.proposal.scope.tier,
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
        confirmed_at=max(target.confirmed_at, _said_at(draft, setting)),
        updated_at=now,
        evidence=tuple(dict.fromkeys((*target.evidence, *draft.proposal.evidence)))[:MOST_EVIDENCE],
        version=target.version + 1,
    )
    if draft.trust >= target.trust:  # a less trusted writer confirms, but changes neither importance nor tags
        importance = max(target.importance, draft.proposal.importance)
        tags = tuple(dict.fromkeys((*target.tags, *draft.proposal.tags)))
        merged = replace(merged, importance=importance, tags=tags)
    save = SaveEntry(merged, target.version, "entry.merged", draft.decision.reason, draft.ledger)
    return Plan("merged", merged, (save,))


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
