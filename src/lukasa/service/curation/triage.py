"""Triage: decide every proposal, and record who decided and why. Rules first, then a model, then a person."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace

from lukasa.curated import document, verdicts
from lukasa.curated.document import Dated
from lukasa.curated.verdicts import Judged, ProposalFacts
from lukasa.model.amendment import Amendment, AmendmentState
from lukasa.model.arrays import np
from lukasa.model.errors import EmbedderError
from lukasa.model.job import JobDraft
from lukasa.model.values import State, Trust
from lukasa.ports import Vector
from lukasa.service.call import CallContext, retry_on_conflict
from lukasa.service.curation import curated_document, notices
from lukasa.service.jobs.task import Task, ask
from lukasa.spec.prompts import prompt
from lukasa.spec.types import WritePolicy
from lukasa.storage.operations import Enqueue, Operation, SaveAmendment
from lukasa.write.check import is_artifact, signals, weight

MOST = 200  # proposals in one job; another job takes the rest
RULES = "rules"
NO_MODEL = "no rule decides it, and no language model is set: a person has to"
_STATES = {"reject": AmendmentState.REJECTED, "review": AmendmentState.REVIEW}


def triage(ctx: CallContext, task: Task) -> dict[str, Any]:
    """O4: promote, merge or reject each waiting proposal, or leave it to a person. None stays undecided."""
    curated_document.take_in(ctx)
    ids = task.once("waiting", lambda: [a.id for a in _pending(ctx)])
    near = _Near(ctx)
    for id in ids:
        if not task.journaled(f"ruled:{id}"):
            _rule(ctx, task, id, near)
    left = [id for id in ids if task.output(f"ruled:{id}") == "judge"]
    size = ctx.spec.triage.batch
    for start in range(0, len(left), size):
        _judge(ctx, task, left[start : start + size], start // size, near)
    if not task.journaled("completed"):
        counts = _counts(task, ids, left)
        more = [Enqueue(JobDraft("triage", f"triage:after:{ids[-1]}"))] if len(ids) == MOST else []
        task.commit("completed", counts, *more, task.telemetry("triage.completed", metadata=counts))
    return dict(task.output("completed"))


def _pending(ctx: CallContext) -> list[Amendment]:
    return ctx.local.amendments(states={AmendmentState.PENDING}, limit=MOST)


def _counts(task: Task, ids: Sequence[str], left: Sequence[str]) -> dict[str, int]:
    told = Counter(task.output(f"judged:{id}" if id in left else f"ruled:{id}") for id in ids)
    return {"proposals": len(ids), **dict(sorted(told.items()))}


# Tier 1


def _rule(ctx: CallContext, task: Task, id: str, near: _Near) -> None:
    def attempt() -> None:
        amendment = _still(ctx, id)
        if amendment is None:
            _pass_over(task, f"ruled:{id}", id)
            return
        body = curated_document.body(ctx)
        facts = _facts(ctx, amendment, near.lines(body, amendment.change))
        ruling = verdicts.rule(amendment, body, facts, ctx.spec.triage)
        if ruling.outcome == "judge":
            if task.chat is not None:
                task.commit(f"ruled:{id}", "judge")
                return
            _settle(ctx, task, f"ruled:{id}", amendment, "review", RULES, NO_MODEL)
        elif ruling.outcome in ("reject", "review"):
            _settle(ctx, task, f"ruled:{id}", amendment, ruling.outcome, RULES, ruling.reason)
        else:
            _promote(ctx, task, f"ruled:{id}", amendment, amendment.change, RULES, ruling.reason, ruling.into)

    retry_on_conflict(attempt)


def _still(ctx: CallContext, id: str) -> Amendment | None:
    """Return the proposal, if nobody has decided about it meanwhile."""
    found = ctx.local.amendments([id])
    return found[0] if found and found[0].state is AmendmentState.PENDING else None


def _pass_over(task: Task, step: str, id: str) -> None:
    point = task.telemetry("triage.passed", metadata={"proposal": id, "reason": "somebody else decided meanwhile"})
    task.commit(step, "passed", point)


def _facts(ctx: CallContext, amendment: Amendment, near: tuple[Dated, ...] | None) -> ProposalFacts:
    found = ctx.local.entries(amendment.sources)
    standing = [entry for entry in found.values() if entry.state is State.ACTIVE and entry.holds_at(ctx.now)]
    trust = min((entry.trust for entry in standing), default=Trust.UNTRUSTED)
    tiers = {entry.scope.tier for entry in standing}
    shared = all(tier in ctx.spec.visibility and ctx.spec.visibility[tier].agents == "shared" for tier in tiers)
    return ProposalFacts(
        signals=signals(amendment.change),
        artifact=is_artifact(amendment.change),
        short=weight(amendment.change) < _policy(ctx).min_chars,
        standing=bool(standing) or not amendment.sources,
        untrusted=trust is Trust.UNTRUSTED,
        restricted=not shared,
        near=near,
    )


def _policy(ctx: CallContext) -> WritePolicy:
    tier = ctx.spec.tier(curated_document.home(ctx))
    return ctx.spec.behaviour(tier.name, tier.typology[0]).write


# Tier 2


def _judge(ctx: CallContext, task: Task, ids: Sequence[str], number: int, near: _Near) -> None:
    """Ask a model once about a batch, and apply its decisions to proposals that nobody has decided meanwhile."""
    step = f"batch:{number}"
    if task.chat is None and not task.journaled(step):
        for id in ids:
            if not task.journaled(f"judged:{id}"):
                _follow(ctx, task, id, Judged("review", "", NO_MODEL), near)
        return
    found = {a.id: a for a in ctx.local.amendments(ids)}
    batch = [found[id] for id in ids]
    asked = prompt("triage", ctx.prompts)
    judgements = ask(
        task,
        step,
        asked,
        verdicts.briefing(batch, curated_document.body(ctx)),
        lambda data: verdicts.read_verdicts(data, len(ids)),
    )
    for id, judged in zip(ids, judgements, strict=True):
        if not task.journaled(f"judged:{id}"):
            _follow(ctx, task, id, judged, near)


def _follow(ctx: CallContext, task: Task, id: str, judged: Judged, near: _Near) -> None:
    step, by = f"judged:{id}", f"model {task.chat.name}" if task.chat is not None else RULES

    def attempt() -> None:
        amendment = _still(ctx, id)
        if amendment is None:
            _pass_over(task, step, id)
            return
        if judged.decision != "promote":
            _settle(ctx, task, step, amendment, judged.decision, by, judged.reason)
            return
        body = curated_document.body(ctx)
        doubt = verdicts.unfaithful(judged.text, amendment.change)
        if not doubt and document.contradicted(body, judged.text) is not None:
            doubt = "it contradicts a line of the page"
        if doubt:
            _settle(ctx, task, step, amendment, "review", by, doubt)
            return
        into = verdicts.similar(body, judged.text, near.lines(body, judged.text))
        reason = judged.reason or "worth loading every time"
        _promote(ctx, task, step, amendment, judged.text, by, reason, into)

    retry_on_conflict(attempt)


# Deciding


def _settle(ctx: CallContext, task: Task, step: str, amendment: Amendment, outcome: str, by: str, reason: str) -> None:
    state = _STATES[outcome]
    decided = replace(amendment, state=state, decided_by=by, reason=reason, updated_at=ctx.now)
    task.commit(step, str(state), SaveAmendment(decided, amendment.version), *notices.asking(ctx, decided))


def _promote(
    ctx: CallContext, task: Task, step: str, amendment: Amendment, text: str, by: str, reason: str, into: Dated | None
) -> None:
    decided, operations = curated_document.promotion(ctx, amendment, text, decided_by=by, reason=reason, into=into)
    done: tuple[Operation, ...] = operations
    task.commit(step, str(decided.state), *done)
    curated_document.commit_now(ctx)


class _Near:
    """Find the lines of a page that are near a text by vector. Each text is embedded once in a run."""

    def __init__(self, ctx: CallContext) -> None:
        self._embedder = ctx.embedder
        self._threshold = _policy(ctx).dedup_cosine
        self._vectors: dict[str, Vector] = {}

    def lines(self, body: str, text: str) -> tuple[Dated, ...] | None:
        """Return the near lines; None without an embedder or if it fails: words decide then."""
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
