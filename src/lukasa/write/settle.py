"""The steps that compare with what is already remembered: dedup and resolve."""

from __future__ import annotations

from lukasa.model.entry import Entry
from lukasa.model.statements import contradicts, says_the_same
from lukasa.model.text import content_key, terms
from lukasa.model.values import Gate, State
from lukasa.spec.types import ConflictRule
from lukasa.storage.port import Near
from lukasa.write.draft import Action, Decision, Draft, Setting, Step

DOUBT_COSINE = 0.75
MOST_DOUBTS = 5


def dedup(draft: Draft, setting: Setting) -> Draft:
    """If the same is already remembered, it is confirmed instead of stored twice."""
    if draft.proposal.path is not None:
        return draft.noting("dedup", "new", "a file is kept for its path, whatever else says the same")
    threshold = setting.behaviour(draft).write.dedup_cosine
    key = content_key(draft.content)
    for near in setting.neighbours:
        reason = _same(draft, near, key, threshold)
        if not reason:
            continue
        if near.entry.ended_by(setting.now):
            # It was true until its end, and is said to be true again: a new row, or no read would find it.
            return _decide(draft, Action.UPDATE, (near.entry,), f"{reason}, but it had ended", "dedup")
        if draft.trust > near.entry.trust:
            # A trusted restatement must not be swallowed by a less trusted copy: it takes its place.
            reason = f"{reason}, of lower trust: the new statement takes its place"
            return _decide(draft, Action.UPDATE, (near.entry,), reason, "dedup")
        return _decide(draft, Action.MERGE, (near.entry,), reason, "dedup")
    return draft.noting("dedup", "new", f"none of {len(setting.neighbours)} neighbours says the same")


def _same(draft: Draft, near: Near, key: str, threshold: float) -> str:
    if near.entry.state not in (State.ACTIVE, State.HELD) or near.entry.path is not None:
        return ""
    if content_key(near.entry.content) == key:
        return "the same text is there"
    if near.entry.state is State.HELD or near.cosine is None or near.cosine <= threshold:
        return ""
    if not says_the_same(draft.content, near.entry.content):
        return ""
    return f"cosine {near.cosine:.3f} is above {threshold} and it adds no name, number, negation or word"


def resolve(draft: Draft, setting: Setting) -> Draft:
    """Settle contradictions as the kind's rule says. What is less trusted never overrules what is more."""
    if draft.decision.action is not Action.ADD:
        return draft
    standing = [near.entry for near in setting.neighbours if not near.entry.ended_by(setting.now)]
    found = [(entry, why) for entry in standing if (why := _conflict(draft, entry))]
    if not found:
        return draft.noting("resolve", "add", "contradicts nothing")
    targets, reason = tuple(entry for entry, _ in found), found[0][1]
    if setting.behaviour(draft).conflict.rule is ConflictRule.NOOP and draft.proposal.supersedes is None:
        return _decide(draft, Action.NOOP, targets, f"{reason}; {draft.kind} memories accumulate", "resolve")
    if draft.trust < max(entry.trust for entry in targets):
        why = f"{reason}, but comes from a less trusted origin: held for a person to decide"
        return draft.ruled(Gate.HOLD, 1.0, why).noting("resolve", "hold", why, targets=[e.id for e in targets])
    return _decide(draft, Action.UPDATE, targets, f"{reason}; the later one holds", "resolve")


def _conflict(draft: Draft, other: Entry) -> str:
    if other.state is not State.ACTIVE:
        return ""
    if draft.proposal.supersedes == other.id:
        return "it replaces the entry that it names"
    if draft.proposal.path is not None or other.path is not None:
        return ""  # a file changes when it is edited, not because of what is said elsewhere
    return contradicts(draft.content, other.content) if other.kind is draft.kind else ""


def _decide(draft: Draft, action: Action, targets: tuple[Entry, ...], reason: str, step: str) -> Draft:
    decided = draft._replace(decision=Decision(action, targets, reason))
    return decided.noting(step, str(action), reason, targets=[entry.id for entry in targets])


def ambiguous(draft: Draft, setting: Setting) -> tuple[Entry, ...]:
    """What is near enough to a statement that was simply added for the rules to have missed what they should see."""
    rule = setting.behaviour(draft).conflict.rule
    if draft.decision.action is not Action.ADD or draft.gate.verdict is not Gate.ALLOW or rule is ConflictRule.NOOP:
        return ()
    if draft.proposal.path is not None:
        return ()
    near = [n for n in setting.neighbours if n.entry.kind is draft.kind and _doubtful(draft, n)]
    return tuple(n.entry for n in near if not n.entry.ended_by(setting.now))[:MOST_DOUBTS]


def _doubtful(draft: Draft, near: Near) -> bool:
    if near.entry.state is not State.ACTIVE or near.entry.path is not None:
        return False
    if near.cosine is not None:
        return near.cosine >= DOUBT_COSINE
    mine, theirs = set(terms(draft.content)), set(terms(near.entry.content))
    return 3 * len(mine & theirs) >= len(mine | theirs)


SETTLE: tuple[Step, ...] = (dedup, resolve)
