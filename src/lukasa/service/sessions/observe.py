"""Observe: turn a recorded session into entries, in journaled steps.

    take in      keep the messages of a session file that was only noted so far, and queue a job for them
    look         find observations by a model, chunk by chunk, with journaled answers; or by rules without a model
    store        gate → categorise → dedup → resolve, like every write; committed with its journal line
    finish       record how much of the transcript is observed, with which result and by what

A worker retries failures. Until then the transcript states the error, its messages stay searchable, and it does not
count as observed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from lukasa.model.conversation import Status
from lukasa.model.entry import OBSERVER, GateVerdict
from lukasa.model.errors import EmbedderError, InvalidInput, LostClaim, LukasaError, NotFound, Refused
from lukasa.model.events import EventDraft
from lukasa.model.ids import derived_id
from lukasa.model.job import JobState
from lukasa.model.past import IMPORTED
from lukasa.model.transcript import Progress, Quote, Transcript, Utterance
from lukasa.model.values import Curator, Gate, Kind, Trust
from lukasa.observe import classifier, observation, rules
from lukasa.observe.observation import Observation, ObserverAnswer, Segment
from lukasa.service.call import CallContext, retry_on_conflict
from lukasa.service.entries.put import Memo, Written, put_many
from lukasa.service.jobs.allowance import NotNow
from lukasa.service.jobs.task import Task, ask
from lukasa.service.sessions import session, transcripts
from lukasa.service.sessions.distill import UNQUOTED, Turn
from lukasa.service.workspace import Workspace
from lukasa.spec.prompts import prompt
from lukasa.spec.types import WriteMode
from lukasa.storage.operations import Operation, Record, SaveTranscript

NARRATIVE = "session-narrative"
NARRATIVE_IMPORTANCE = 0.3
MOST_DETAIL = 300
_COUNTED = {"stored": "allowed", "replaced": "allowed", "held": "held", "discarded": "discarded", "merged": "deduped"}


class _Batch(Struct, frozen=True):
    """The memos for one tier with one trust, written in one commit."""

    step: str
    tier: str
    trust: Trust
    memos: tuple[Memo, ...]


def observe(ctx: CallContext, task: Task) -> dict[str, Any]:
    """Run an "observe" job."""
    payload = task.job.payload
    try:
        here = _in_its_project(ctx.at(**{str(k): str(v) for k, v in dict(payload.get("keys") or {}).items()}), payload)
        if "path" in payload and not task.journaled("taken"):
            into, tier = str(payload["transcript"]), payload.get("tier")
            taken = transcripts.take_in(here, str(payload["path"]), into=into, tier=tier, task=task)
            return {"transcript": taken.transcript.id, "messages": taken.new}
        return _observe(here, task) if "path" not in payload else dict(task.output("taken"))
    except LostClaim:
        raise
    except NotNow as later:
        _say(ctx, task, Progress.PENDING, f"waits: {later.reason}")
        raise
    except LukasaError as error:
        over = task.job.attempts >= task.job.max_attempts
        again = "" if over else "; it will be tried again"
        _say(ctx, task, Progress.FAILED if over else Progress.PENDING, f"{error.code}: {error.message}{again}")
        raise


def _in_its_project(ctx: CallContext, payload: Mapping[str, Any]) -> CallContext:
    """Return the context with the session's project at hand. Its file names the folder, so it must be under git."""
    folder = str(payload.get("folder") or "")
    there = ctx.projects is not None and ctx.projects.at(folder, in_git=True) is not None
    return ctx.in_project(folder if there else "")


def _observe(ctx: CallContext, task: Task) -> dict[str, Any]:
    payload = task.job.payload
    found = ctx.local.transcript(str(payload["transcript"]))
    if found is None:
        raise NotFound(f"the transcript of job {task.job.id} is gone", fix="cancel the job")
    start, end = int(payload["start"]), int(payload["end"])
    said = ctx.local.utterances(found.id, start=start, limit=end - start)
    by_rules = task.chat is None or bool(payload.get("rules"))
    counts: Counter[str] = Counter(observations_extracted=0, allowed=0, held=0, discarded=0, deduped=0, malformed=0)
    for number, portion in enumerate(observation.chunks(said)):
        answer = _by_rules(ctx, task, number, portion) if by_rules else _by_model(ctx, task, number, portion)
        counts["observations_extracted"] += len(answer.facts)
        counts["malformed"] += len(answer.faults)
        times = {u.id: u.at for u in portion if u.at is not None}
        for batch in _batches(ctx, task, found, number, answer, times):
            counts.update(_COUNTED[outcome] for outcome in _store(ctx, task, batch))
    _retell(ctx, found)
    how = "rules" if by_rules or task.chat is None else f"model {task.chat.name}"
    return _finish(ctx, task, found.id, how, {**counts, "messages": len(said)})


def _retell(ctx: CallContext, transcript: Transcript) -> None:
    """Write the summary of an ended conversation again: it tells what was remembered of it, and that is known now."""
    key = ctx.keys.get("conversation")
    conversation = ctx.local.conversation(key) if key is not None else None
    if conversation is not None and conversation.status is not Status.ACTIVE:
        said = [Turn("user", u.text, id=u.id) for u in ctx.local.utterances(transcript.id) if u.role == "user"]
        session.retell(Workspace(ctx), conversation, said)


# Look


def _by_rules(ctx: CallContext, task: Task, number: int, said: Sequence[Utterance]) -> ObserverAnswer:
    """Observe by the classifier, with vectors if it knows the embedder. If the embedder fails, words are enough."""

    def look() -> list[dict[str, Any]]:
        try:
            found = rules.observe(said, classifier.usable(ctx.embedder))
        except EmbedderError:
            found = rules.observe(said)
        return [o.plain() for o in found]

    listed = task.once(f"rules:{number}", look)
    return ObserverAnswer((Segment("", "", tuple(Observation.of(data) for data in listed)),))


def _by_model(ctx: CallContext, task: Task, number: int, said: Sequence[Utterance]) -> ObserverAnswer:
    categories = [concept.id for concept in ctx.taxonomy.concepts]
    asked = prompt("observer", ctx.prompts, categories=", ".join(categories))
    step = f"ask:{number}"
    answer = ask(task, step, asked, observation.shown(said), lambda data: observation.read(data, said, categories))
    if answer.faults and not task.journaled(f"faults:{number}"):
        points = (
            task.telemetry("observe.malformed", success=False, level="error", metadata={"step": step, "fault": fault})
            for fault in answer.faults
        )
        task.commit(f"faults:{number}", len(answer.faults), *points)
    return answer


# Store


def _batches(
    ctx: CallContext,
    task: Task,
    found: Transcript,
    number: int,
    answer: ObserverAnswer,
    times: Mapping[str, datetime],
) -> list[_Batch]:
    """Group the memos by tier and trust. Only facts that come from nobody but the user get an agent's trust."""
    default = str(task.job.payload.get("tier") or "") or ctx.observed_tier()
    reachable = {tier.name for tier in ctx.reachable() if tier.persistent}
    said = Trust.IMPORTED if IMPORTED in task.job.payload else Trust.AGENT
    sorted_out: dict[tuple[str, Trust], list[Memo]] = {}
    for segment in answer.segments:
        for fact in segment.facts:
            reach = fact.asked.reach if fact.asked is not None else ""
            tier = reach if reach in reachable else default
            trust = said if fact.role == "user" else Trust.UNTRUSTED
            sorted_out.setdefault((tier, trust), []).append(_memo(ctx, fact, found, times))
        if segment.narrative and _keeps_narratives(ctx, default) and _kept(segment):
            sorted_out.setdefault((default, Trust.UNTRUSTED), []).append(_narrative(segment, found))
    batches = []
    for (tier, trust), memos in sorted_out.items():
        step = f"store:{number}:{tier}:{trust.name.lower()}"
        if ctx.store(tier) is not task.store:
            # Another store is not in the journal's transaction: a derived id lets a repetition find its entry there.
            memos = [replace(m, id=derived_id(task.job.key, step, str(n))) for n, m in enumerate(memos)]
        agent = task.job.payload.get("agent")
        if agent and ctx.spec.readers(tier).agents == "owner":  # there every entry is its agent's
            memos = [replace(m, owner=str(agent)) for m in memos]
        if origin := task.job.payload.get(IMPORTED):
            memos = [_imported(memo, origin) for memo in memos]
        batches.append(_Batch(step, tier, trust, tuple(memos)))
    return batches


def _memo(ctx: CallContext, fact: Observation, found: Transcript, times: Mapping[str, datetime]) -> Memo:
    """Return the memo of a fact. It is valid from when somebody said it: a clock ahead of ours counts as now."""
    said_at = times.get(fact.message, found.started_at)
    evidence = (Quote(found.id, fact.message, fact.start, fact.end),) if fact.end > fact.start else ()
    return Memo(
        fact.text,
        importance=fact.importance,
        lifetime=fact.asked.lifetime if fact.asked is not None else None,
        source=OBSERVER,
        gate=GateVerdict(fact.gate, fact.confidence, fact.reason),
        category=fact.category,
        valid_at=min(said_at, ctx.now) if said_at is not None else None,
        metadata={UNQUOTED: list(fact.unquoted)} if fact.unquoted else {},
        evidence=evidence,
        observed=fact.asked is None,
    )


def _imported(memo: Memo, origin: Mapping[str, str]) -> Memo:
    """Return a memo that leads back to the file that its conversation was imported from."""
    return replace(memo, curator=Curator.IMPORT, metadata={**memo.metadata, IMPORTED: dict(origin)})


def _keeps_narratives(ctx: CallContext, tier: str) -> bool:
    """Say whether the spec keeps narratives: the tier holds episodes and is written as observed."""
    kinds = ctx.spec.tier(tier).typology
    return Kind.EPISODIC in kinds and all(ctx.spec.behaviour(tier, k).write.mode is WriteMode.AUTO for k in kinds)


def _kept(segment: Segment) -> bool:
    return any(fact.gate is Gate.ALLOW for fact in segment.facts)


def _narrative(segment: Segment, found: Transcript) -> Memo:
    when = f"{found.started_at:%Y-%m-%d}: " if found.started_at else ""
    quotes = [Quote(found.id, fact.message, fact.start, fact.end) for fact in segment.facts if fact.end > fact.start]
    return Memo(
        f"{when}{segment.narrative}",
        kind=Kind.EPISODIC,
        importance=NARRATIVE_IMPORTANCE,
        tags=(NARRATIVE,),
        source=OBSERVER,
        evidence=tuple(quotes),
        observed=True,
    )


def _store(ctx: CallContext, task: Task, batch: _Batch) -> list[str]:
    """Write a batch once, and count the outcomes. A memo that the write path refuses does not stop the others."""
    if not task.journaled(batch.step):
        actor = ctx.acting(agent=OBSERVER, trust=batch.trust)
        try:
            _put(actor, task, batch)
        except (Refused, InvalidInput):
            outcomes = [_alone(actor, task, batch, number) for number in range(len(batch.memos))]
            task.commit(batch.step, outcomes)
    return [str(outcome) for outcome in task.output(batch.step)]


def _alone(actor: CallContext, task: Task, batch: _Batch, number: int) -> str:
    single = replace(batch, step=f"{batch.step}:{number}", memos=batch.memos[number : number + 1])
    if not task.journaled(single.step):
        try:
            _put(actor, task, single)
        except (Refused, InvalidInput) as refusal:
            about = {"step": single.step, "error": refusal.code, "reason": refusal.message[:MOST_DETAIL]}
            point = task.telemetry("observe.refused", success=False, level="warn", metadata=about)
            task.commit(single.step, ["discarded"], point)
    return str(task.output(single.step)[0])


def _put(actor: CallContext, task: Task, batch: _Batch) -> None:
    if actor.store(batch.tier) is task.store:
        put_many(actor, batch.tier, batch.memos, also=lambda written: [task.entry(batch.step, _outcomes(written))])
        task.refresh()
        return
    there = actor.store(batch.tier).entries([memo.id for memo in batch.memos if memo.id is not None])
    missing = [memo for memo in batch.memos if memo.id not in there]
    written = put_many(actor, batch.tier, missing)
    task.commit(batch.step, [*_outcomes(written), *("stored" for _ in there)])


def _outcomes(written: Sequence[Written]) -> list[str]:
    return [w.outcome for w in written]


# Finish


def _finish(ctx: CallContext, task: Task, id: str, how: str, counts: Mapping[str, int]) -> dict[str, Any]:
    """Commit the transcript's progress and the telemetry event together."""

    def finish() -> None:
        now = _current(ctx, id)
        observed = _reached(ctx, now, task.job.payload)
        done = observed >= now.kept
        after = replace(
            now,
            observed=observed,
            progress=Progress.OBSERVED if done else Progress.PENDING,
            how=how,
            detail="" if done else now.detail,
            updated_at=ctx.now,
        )
        told = EventDraft("transcript.observed", id, {"how": how, **counts})
        point = task.telemetry("observe.completed", metadata={"transcript": id, "how": how, **counts})
        task.commit("done", {**counts, "how": how}, SaveTranscript(after, now.version), Record(told), point)

    if not task.journaled("done"):
        retry_on_conflict(finish)
    return dict(task.output("done"))


def _reached(ctx: CallContext, transcript: Transcript, payload: Mapping[str, Any]) -> int:
    """Return how many messages are observed without a gap, after these; a later part may have been done before."""
    start, end = int(payload["start"]), int(payload["end"])
    if start > transcript.observed:
        return transcript.observed
    reached = max(transcript.observed, end)
    if reached < transcript.kept:
        done = ctx.local.jobs(states=[JobState.DONE], kind=transcripts.KIND, limit=1000)
        mine = (job.payload for job in done if job.payload.get("transcript") == transcript.id)
        spans = {int(payload["start"]): int(payload["end"]) for payload in mine if "start" in payload}
        while reached in spans:
            reached = max(spans[reached], reached + 1)
    return reached


def _current(ctx: CallContext, id: str) -> Transcript:
    found = ctx.local.transcript(id)
    if found is None:
        raise NotFound(f"transcript {id} is gone", fix="cancel the job")
    return found


def _say(ctx: CallContext, task: Task, progress: Progress, detail: str) -> None:
    """Record on the transcript why it is not observed yet; report a failure as a telemetry event."""
    id = str(task.job.payload.get("transcript", ""))

    def say() -> None:
        now = ctx.local.transcript(id)
        operations: list[Operation] = []
        if now is not None and (now.detail, now.progress) != (detail[:MOST_DETAIL], progress):
            after = replace(now, progress=progress, detail=detail[:MOST_DETAIL], updated_at=ctx.now)
            operations.append(SaveTranscript(after, now.version))
        if progress is Progress.FAILED or not detail.startswith("waits"):
            about = {"transcript": id, "reason": detail[:MOST_DETAIL]}
            operations.append(task.telemetry("observe.failed", success=False, level="error", metadata=about))
        if operations:
            ctx.apply(ctx.local, *operations)

    retry_on_conflict(say)
