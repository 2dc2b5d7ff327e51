"""From a settled draft to the operations that store it. Pure: what is planned here is what will be committed."""

from __future__ import annotations

from datetime import datetime
from typing import Any, NamedTuple

from msgspec.structs import replace

from lukasa.model.entry import Entry
from lukasa.model.events import EventDraft
from lukasa.model.text import commitment
from lukasa.model.values import Gate, Kind, State
from lukasa.spec.types import ConflictRule
from lukasa.storage.operations import Embedding, Operation, Record, SaveEntry
from lukasa.write.draft import Action, Draft, Setting

MOST_EVIDENCE = 50  # quotes kept of one fact: enough to count independent observations, and bounded


class Plan(NamedTuple):
    """Operations in order; `entry` is what the caller gets back, None if nothing is stored."""

    outcome: str
    entry: Entry | None
    operations: tuple[Operation, ...]
    replaces: tuple[str, ...] = ()


def plan(draft: Draft, setting: Setting, *, actor: str, embedding: Embedding | None, secret: bytes) -> Plan:
    if draft.settled:
        return _discarded(draft, secret)
    decision = draft.decision
    if decision.action is Action.MERGE:
        return _merged(draft, decision.targets[0], setting.now)
    entry = _entry(draft, setting)
    action = "entry.held" if entry.state is State.HELD else "entry.put"
    save = SaveEntry(entry, 0, action, decision.reason or draft.gate.reason or "put", draft.ledger, embedding)
    if decision.action is Action.UPDATE and entry.state is State.ACTIVE:
        retired = tuple(retire(target, entry, setting, decision.reason, actor) for target in decision.targets)
        # The old go first: two active entries may not hold the same text, and a restatement may be the same.
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


def _merged(draft: Draft, target: Entry, now: datetime) -> Plan:
    merged = replace(
        target,
        merged_count=target.merged_count + 1,
        confirmed_at=now,
        updated_at=now,
        evidence=tuple(dict.fromkeys((*target.evidence, *draft.proposal.evidence)))[:MOST_EVIDENCE],
        version=target.version + 1,
    )
    if draft.trust >= target.trust:  # a less trusted voice confirms, and lends neither weight nor labels
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
        confirmed_at=setting.now,
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
    """End the old statement: a fact's validity closes, a procedure is archived, a copy is superseded."""
    rule = setting.spec.behaviour(entry.scope.tier, entry.kind).conflict.rule
    now, version = setting.now, target.version
    changes: dict[str, Any] = {"superseded_by": entry.id, "version": version + 1}
    if rule is ConflictRule.VALIDITY:
        ends = max(entry.valid_at or now, target.valid_at or target.created_at)
        ends = min(ends, target.invalid_at) if target.invalid_at else ends
        if ends > now:  # the new fact holds from later on; until then the old one does
            closing = replace(target, invalid_at=ends, updated_at=now, **changes)
            return SaveEntry(closing, version, "entry.updated", cause)
        retired = target.moved(State.INVALIDATED, at=now, cause=cause, actor=actor, invalid_at=ends, **changes)
        return SaveEntry(retired, version, "entry.invalidated", cause)
    if rule is ConflictRule.SUPERSEDE:
        retired = target.moved(State.ARCHIVED, at=now, cause=cause, actor=actor, **changes)
        return SaveEntry(retired, version, "entry.archived", cause)
    retired = target.moved(State.SUPERSEDED, at=now, cause=cause, actor=actor, **changes)
    return SaveEntry(retired, version, "entry.superseded", cause)
