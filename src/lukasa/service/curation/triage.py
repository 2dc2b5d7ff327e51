"""Triage: every proposal ends somewhere, with who decided and why. Rules first, then a model, then a person."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from lukasa.curated import document
from lukasa.curated import triaging as pure
from lukasa.curated.document import Dated
from lukasa.curated.triaging import Facts, Judged
from lukasa.model.amendment import Amendment, AmendmentState
from lukasa.model.arrays import np
from lukasa.model.errors import EmbedderError
from lukasa.model.job import JobDraft
from lukasa.model.values import State, Trust
from lukasa.ports import Vector
from lukasa.service.call import Room
from lukasa.service.curation import publish
from lukasa.service.jobs.model_calls import ask
from lukasa.service.jobs.task import Task
from lukasa.service.retry import deciding_anew
from lukasa.spec.prompts import prompt
from lukasa.spec.types import WritePolicy
from lukasa.storage.operations import Enqueue, Operation, SaveAmendment
from lukasa.write.screen import is_artifact, signals, weight

MOST = 200  # proposals in one job; more of them are another's
RULES = "rules"
NO_MODEL = "no rule decides it, and no language model is set: a person has to"
_STATES = {"reject": AmendmentState.REJECTED, "review": AmendmentState.REVIEW}


def triage(room: Room, task: Task) -> dict[str, Any]:
    """O4: what waits for triage is promoted, merged, rejected, or left to a person. Nothing is left undecided."""
    publish.take_in(room)
    ids = task.once("waiting", lambda: [a.id for a in _pending(room)])
    near = _Near(room)
    for id in ids:
        if not task.journaled(f"ruled:{id}"):
            _rule(room, task, id, near)
    left = [id for id in ids if task.output(f"ruled:{id}") == "judge"]
    size = room.spec.triage.batch
    for start in range(0, len(left), size):
        _judge(room, task, left[start : start + size], start // size, near)
    if not task.journaled("completed"):
        counts = _counts(task, ids, left)
        more = [Enqueue(JobDraft("triage", f"triage:after:{ids[-1]}"))] if len(ids) == MOST else []
        task.commit("completed", counts, *more, task.point("triage.completed", metadata=counts))
    return dict(task.output("completed"))


def _pending(room: Room) -> list[Amendment]:
    return room.local.amendments(states={AmendmentState.PENDING}, limit=MOST)


def _counts(task: Task, ids: Sequence[str], left: Sequence[str]) -> dict[str, int]:
    told = Counter(task.output(f"judged:{id}" if id in left else f"ruled:{id}") for id in ids)
    return {"proposals": len(ids), **dict(sorted(told.items()))}


# Tier 1


def _rule(room: Room, task: Task, id: str, near: _Near) -> None:
    def attempt() -> None:
        amendment = _still(room, id)
        if amendment is None:
            _pass_over(task, f"ruled:{id}", id)
            return
        body = publish.body(room)
        facts = _facts(room, amendment, near.lines(body, amendment.change))
        ruling = pure.rule(amendment, body, facts, room.spec.triage)
        if ruling.outcome == "judge":
            if task.chat is not None:
                task.commit(f"ruled:{id}", "judge")
                return
            _settle(room, task, f"ruled:{id}", amendment, "review", RULES, NO_MODEL)
        elif ruling.outcome in ("reject", "review"):
            _settle(room, task, f"ruled:{id}", amendment, ruling.outcome, RULES, ruling.reason)
        else:
            _promote(room, task, f"ruled:{id}", amendment, amendment.change, RULES, ruling.reason, ruling.into)

    deciding_anew(attempt)


def _still(room: Room, id: str) -> Amendment | None:
    """The proposal, if nobody has decided about it meanwhile."""
    found = room.local.amendments([id])
    return found[0] if found and found[0].state is AmendmentState.PENDING else None


def _pass_over(task: Task, step: str, id: str) -> None:
    point = task.point("triage.passed", metadata={"proposal": id, "reason": "somebody else decided meanwhile"})
    task.commit(step, "passed", point)


def _facts(room: Room, amendment: Amendment, near: tuple[Dated, ...] | None) -> Facts:
    found = room.local.entries(amendment.sources)
    standing = [entry for entry in found.values() if entry.state is State.ACTIVE and entry.holds_at(room.now)]
    trust = min((entry.trust for entry in standing), default=Trust.UNTRUSTED)
    tiers = {entry.scope.tier for entry in standing}
    shared = all(tier in room.spec.visibility and room.spec.visibility[tier].agents == "shared" for tier in tiers)
    return Facts(
        signals=signals(amendment.change),
        artifact=is_artifact(amendment.change),
        short=weight(amendment.change) < _policy(room).min_chars,
        standing=bool(standing) or not amendment.sources,
        untrusted=trust is Trust.UNTRUSTED,
        restricted=not shared,
        near=near,
    )


def _policy(room: Room) -> WritePolicy:
    tier = room.spec.tier(publish.home(room))
    return room.spec.behaviour(tier.name, tier.typology[0]).write


# Tier 2


def _judge(room: Room, task: Task, ids: Sequence[str], number: int, near: _Near) -> None:
    """A model's judgement of a batch, asked for once. What was decided meanwhile stays as it was decided."""
    step = f"batch:{number}"
    if task.chat is None and not task.journaled(step):
        for id in ids:
            if not task.journaled(f"judged:{id}"):
                _follow(room, task, id, Judged("review", "", NO_MODEL), near)
        return
    found = {a.id: a for a in room.local.amendments(ids)}
    batch = [found[id] for id in ids]
    asked = prompt("triage", room.prompts)
    verdicts = ask(
        task,
        step,
        asked,
        pure.briefing(batch, publish.body(room)),
        lambda data: pure.read_verdicts(data, len(ids)),
    )
    for id, judged in zip(ids, verdicts, strict=True):
        if not task.journaled(f"judged:{id}"):
            _follow(room, task, id, judged, near)


def _follow(room: Room, task: Task, id: str, judged: Judged, near: _Near) -> None:
    step, by = f"judged:{id}", f"model {task.chat.name}" if task.chat is not None else RULES

    def attempt() -> None:
        amendment = _still(room, id)
        if amendment is None:
            _pass_over(task, step, id)
            return
        if judged.decision != "promote":
            _settle(room, task, step, amendment, judged.decision, by, judged.reason)
            return
        body = publish.body(room)
        doubt = pure.unfaithful(judged.text, amendment.change)
        if not doubt and document.contradicted(body, judged.text) is not None:
            doubt = "it contradicts a line of the page"
        if doubt:
            _settle(room, task, step, amendment, "review", by, doubt)
            return
        into = pure.similar(body, judged.text, near.lines(body, judged.text))
        reason = judged.reason or "worth loading every time"
        _promote(room, task, step, amendment, judged.text, by, reason, into)

    deciding_anew(attempt)


# Deciding


def _settle(room: Room, task: Task, step: str, amendment: Amendment, outcome: str, by: str, reason: str) -> None:
    state = _STATES[outcome]
    decided = replace(amendment, state=state, decided_by=by, reason=reason, updated_at=room.now)
    task.commit(step, str(state), SaveAmendment(decided, amendment.version))


def _promote(
    room: Room, task: Task, step: str, amendment: Amendment, text: str, by: str, reason: str, into: Dated | None
) -> None:
    decided, operations = publish.promotion(room, amendment, text, decided_by=by, reason=reason, into=into)
    done: tuple[Operation, ...] = operations
    task.commit(step, str(decided.state), *done)


class _Near:
    """Which lines of a page an embedder finds near a text. Each text is embedded once in a run."""

    def __init__(self, room: Room) -> None:
        self._embedder = room.embedder
        self._threshold = _policy(room).dedup_cosine
        self._vectors: dict[str, Vector] = {}

    def lines(self, body: str, text: str) -> tuple[Dated, ...] | None:
        """None where there is no embedder, or it fails: then words have to do."""
        if self._embedder is None:
            return None
        lines = document.lines(body)
        missing = [t for t in dict.fromkeys((text, *(d.text for d in lines))) if t not in self._vectors]
        try:
            if missing:
                self._vectors.update(zip(missing, self._embedder.embed_memories(missing), strict=True))
        except EmbedderError:
            return None
        mine = self._vectors[text]
        return tuple(d for d in lines if float(np.dot(self._vectors[d.text], mine)) > self._threshold)
