"""Jobs, transcripts, amendments and telemetry of the store in dictionaries."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from copy import copy
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from msgspec.structs import replace

from lukasa.model.amendment import Amendment, AmendmentState
from lukasa.model.errors import Conflict
from lukasa.model.ids import new_id
from lukasa.model.job import Job, JobDraft, JobState
from lukasa.model.telemetry import MOST_DEBUG, DayTally, Spending, Tally, TelemetryEvent, TelemetryQuery
from lukasa.model.text import terms as words
from lukasa.model.transcript import Progress, Transcript, Utterance
from lukasa.storage import rules
from lukasa.storage.operations import (
    CancelJob,
    Emit,
    Enqueue,
    FailJob,
    FinishJob,
    ForgetJobs,
    ForgetTelemetry,
    JournalStep,
    KeepUtterances,
    PipelineOperation,
    PostponeJob,
    ReviveJob,
    SaveAmendment,
    SaveTranscript,
    Spend,
)
from lukasa.storage.port import FoundUtterance


@dataclass
class Background:
    """What background work keeps. Values are never changed in place, so a shallow copy is a snapshot."""

    jobs: dict[str, Job] = field(default_factory=dict)
    queued: dict[str, int] = field(default_factory=dict)  # the order in which jobs were asked for
    steps: dict[tuple[str, str], Any] = field(default_factory=dict)
    transcripts: dict[str, Transcript] = field(default_factory=dict)
    utterances: dict[tuple[str, int], Utterance] = field(default_factory=dict)
    amendments: dict[str, Amendment] = field(default_factory=dict)
    points: tuple[TelemetryEvent, ...] = ()
    spending: dict[tuple[str, str], Spending] = field(default_factory=dict)

    def __copy__(self) -> Background:
        return Background(**{name: copy(value) for name, value in vars(self).items()})

    # Writing

    def run(self, operation: PipelineOperation, at: datetime) -> None:
        match operation:
            case Enqueue(draft):
                self._enqueue(draft, at)
            case JournalStep(job, claim, name, output):
                self._held(job, claim)
                if (job, name) in self.steps:
                    raise Conflict(f"step {name!r} is in the journal already", fix="use what it gave")
                self.steps[job, name] = rules.plain_json(output)
            case FinishJob(job, claim, result):
                held = self._held(job, claim)
                self._put(held, at, state=JobState.DONE, error="", result=rules.plain_json(result))
            case FailJob():
                self._fail(operation, at)
            case PostponeJob(job, claim, until, reason):
                held = self._held(job, claim)
                changes = {"attempts": held.attempts - 1, "run_after": until, "error": reason}
                self._put(held, at, state=JobState.QUEUED, **changes)
            case ReviveJob(job):
                found = self._job(job)
                rules.check_revivable(job, found.state)
                self._put(found, at, state=JobState.QUEUED, attempts=0, run_after=at)
            case CancelJob(job, reason):
                found = self._job(job)
                rules.check_cancellable(job, found.state)
                self._put(found, at, state=JobState.CANCELLED, claim=found.claim + 1, error=reason)
            case ForgetJobs(before):
                self._forget_jobs(before)
            case SaveTranscript():
                self._save_transcript(operation)
            case KeepUtterances():
                self._keep(operation)
            case SaveAmendment(amendment, expect):
                current = self.amendments.get(amendment.id)
                rules.check_version("proposal", amendment.id, current.version if current else None, expect)
                self.amendments[amendment.id] = replace(amendment, version=expect + 1)
            case Emit(point):
                kept = replace(point, metadata=rules.plain_json(dict(point.metadata)))
                self.points = (*self.points, kept)[-MOST_DEBUG:]
            case ForgetTelemetry(before, level):
                self.points = tuple(p for p in self.points if p.at >= before or level not in (None, p.level))
            case Spend(spending):
                self._spend(spending)

    def _enqueue(self, draft: JobDraft, at: datetime) -> None:
        if any(job.key == draft.key for job in self.jobs.values()):
            return
        id, payload = new_id(), rules.plain_json(draft.payload)
        self.queued[id] = len(self.queued)
        counts = (0, draft.max_attempts, 0)
        times = (draft.run_after or at, at, at)
        self.jobs[id] = Job(id, draft.kind, draft.key, payload, JobState.QUEUED, *counts, *times)

    def _job(self, id: str) -> Job:
        if id not in self.jobs:
            raise rules.missing("job", id)
        return self.jobs[id]

    def _held(self, id: str, claim: int) -> Job:
        job = self.jobs.get(id)
        if job is None or job.claim != claim or job.state is not JobState.RUNNING:
            raise rules.lost_claim(id)
        return job

    def _put(self, job: Job, at: datetime, **changes: Any) -> None:
        # Taken out first: the last touched is the last in the dictionary.
        self.jobs.pop(job.id, None)
        self.jobs[job.id] = replace(job, updated_at=at, lease_until=changes.pop("lease_until", None), **changes)

    def _fail(self, operation: FailJob, at: datetime) -> None:
        held = self._held(operation.job, operation.claim)
        over = operation.run_after is None or held.attempts >= held.max_attempts
        state = JobState.DEAD if over else JobState.QUEUED
        self._put(held, at, state=state, error=operation.error, run_after=operation.run_after or held.run_after)

    def _forget_jobs(self, before: datetime) -> None:
        over = (JobState.DONE, JobState.CANCELLED)
        gone = {job.id for job in self.jobs.values() if job.state in over and job.updated_at < before}
        self.jobs = {id: job for id, job in self.jobs.items() if id not in gone}
        self.steps = {place: output for place, output in self.steps.items() if place[0] not in gone}

    def _save_transcript(self, operation: SaveTranscript) -> None:
        new = replace(operation.transcript, version=operation.expect + 1)
        current = self.transcripts.get(new.id)
        rules.check_version("transcript", new.id, current.version if current else None, operation.expect)
        if any(other.key == new.key and other.id != new.id for other in self.transcripts.values()):
            raise rules.unique_conflict("transcript", new.id)
        if current is not None:
            new = replace(new, key=current.key, format=current.format, created_at=current.created_at)
        self.transcripts[new.id] = new

    def _keep(self, operation: KeepUtterances) -> None:
        if operation.transcript not in self.transcripts:
            raise rules.missing("transcript", operation.transcript)
        for utterance in operation.utterances:
            utterance.text.encode("utf-8")
            place = (operation.transcript, utterance.place)
            if place in self.utterances:
                raise Conflict(f"message {utterance.place} of the transcript is there already", fix="read it again")
            self.utterances[place] = utterance

    def _spend(self, new: Spending) -> None:
        before = self.spending.get((new.day, new.model), Spending(new.day, new.model, 0, 0, 0))
        self.spending[new.day, new.model] = Spending(
            new.day,
            new.model,
            before.calls + new.calls,
            before.prompt + new.prompt,
            before.completion + new.completion,
            before.cost + new.cost,
        )

    def claim(self, worker: str, now: datetime, lease_until: datetime, kinds: Collection[str] | None) -> Job | None:
        for job in [j for j in self.jobs.values() if _expired(j, now) and j.attempts >= j.max_attempts]:
            error = f"its worker stopped without a word on attempt {job.attempts} of {job.max_attempts}"
            self._put(job, now, state=JobState.DEAD, error=error)
            self.points = (*self.points, rules.buried(now, job.id, job.kind, job.attempts, error))
        due = [
            job
            for job in self.jobs.values()
            if (kinds is None or job.kind in kinds)
            and ((job.state is JobState.QUEUED and job.run_after <= now) or _expired(job, now))
        ]
        if not due:
            return None
        job = min(due, key=lambda j: (j.run_after, self.queued[j.id]))
        changes = {"claim": job.claim + 1, "attempts": job.attempts + 1, "worker": worker}
        self._put(job, now, state=JobState.RUNNING, lease_until=lease_until, **changes)
        return self.jobs[job.id]

    def renew(self, id: str, claim: int, lease_until: datetime) -> bool:
        job = self.jobs.get(id)
        if job is None or job.claim != claim or job.state is not JobState.RUNNING:
            return False
        self.jobs[id] = replace(job, lease_until=lease_until)
        return True


def _expired(job: Job, now: datetime) -> bool:
    return job.state is JobState.RUNNING and job.lease_until is not None and job.lease_until <= now


class BackgroundReads(ABC):
    """The questions about background work, over whatever snapshot the store is at."""

    @property
    @abstractmethod
    def background(self) -> Background: ...

    def jobs(
        self, *, states: Collection[JobState] | None = None, kind: str | None = None, limit: int = 100
    ) -> list[Job]:
        found = [
            job
            for job in reversed(self.background.jobs.values())
            if (states is None or job.state in states) and kind in (None, job.kind)
        ]
        return sorted(found, key=lambda job: job.updated_at, reverse=True)[:limit]

    def job(self, id_or_key: str) -> Job | None:
        jobs = self.background.jobs
        return jobs.get(id_or_key) or next((job for job in jobs.values() if job.key == id_or_key), None)

    def steps(self, job: str) -> dict[str, Any]:
        return {name: rules.plain_json(output) for (id, name), output in self.background.steps.items() if id == job}

    def queue_depth(self) -> dict[JobState, int]:
        return dict(Counter(job.state for job in self.background.jobs.values()))

    def next_run(self, kinds: Collection[str] | None = None) -> datetime | None:
        jobs = [job for job in self.background.jobs.values() if kinds is None or job.kind in kinds]
        due = [job.run_after for job in jobs if job.state is JobState.QUEUED]
        return min([*due, *(j.lease_until for j in jobs if j.lease_until is not None)], default=None)

    def transcripts(
        self, *, progress: Progress | None = None, limit: int = 100, after: str | None = None
    ) -> list[Transcript]:
        found = list(reversed(self.background.transcripts.values()))
        if after is not None:
            ids = [transcript.id for transcript in found]
            found = found[ids.index(after) + 1 :] if after in ids else []
        return [t for t in found if progress in (None, t.progress)][:limit]

    def transcript(self, id_or_key: str) -> Transcript | None:
        kept = self.background.transcripts
        return kept.get(id_or_key) or next((t for t in kept.values() if t.key == id_or_key), None)

    def utterances(self, transcript: str, *, start: int = 0, limit: int | None = None) -> list[Utterance]:
        kept = self.background.utterances
        found = [kept[place] for place in sorted(kept) if place[0] == transcript and place[1] >= start]
        return found[:limit]

    def utterance(self, transcript: str, message: str) -> Utterance | None:
        return next((u for u in self.utterances(transcript) if u.id == message), None)

    def find_utterances(self, terms: Sequence[str], limit: int) -> list[FoundUtterance]:
        asked = set(terms)
        scored = [
            (len(asked & set(words(utterance.text))), FoundUtterance(place[0], utterance))
            for place, utterance in reversed(self.background.utterances.items())
        ]
        found = sorted([pair for pair in scored if pair[0]], key=lambda pair: -pair[0])
        return [said for _, said in found[:limit]]

    def amendments(
        self,
        ids: Iterable[str] | None = None,
        *,
        states: Collection[AmendmentState] | None = None,
        limit: int = 1000,
    ) -> list[Amendment]:
        wanted = None if ids is None else set(ids)
        found = [
            a
            for a in self.background.amendments.values()
            if (wanted is None or a.id in wanted) and (states is None or a.state in states)
        ]
        return found[:limit]

    def points(self, query: TelemetryQuery, *, limit: int = 100) -> list[TelemetryEvent]:
        found = [point for point in reversed(self.background.points) if _admits(query, point)]
        return sorted(found, key=lambda point: point.at, reverse=True)[:limit]

    def tally(self, query: TelemetryQuery) -> list[Tally]:
        groups: dict[tuple[str, str], list[TelemetryEvent]] = {}
        for point in self.background.points:
            if _admits(query, point):
                groups.setdefault((point.component, point.action), []).append(point)
        return [_tally(*name, groups[name]) for name in sorted(groups)]

    def tally_days(self, query: TelemetryQuery) -> list[DayTally]:
        found: dict[str, list[TelemetryEvent]] = {}
        for point in self.background.points:
            if _admits(query, point):
                found.setdefault(f"{point.at.astimezone(UTC):%Y-%m-%d}", []).append(point)
        return [DayTally(day, len(same), sum(not p.success for p in same)) for day, same in sorted(found.items())]

    def spent(self, since_day: str) -> list[Spending]:
        spending = self.background.spending
        return [spending[place] for place in sorted(spending) if place[0] >= since_day]


def _admits(query: TelemetryQuery, point: TelemetryEvent) -> bool:
    return (
        (query.since is None or point.at >= query.since)
        and (query.until is None or point.at < query.until)
        and query.component in (None, point.component)
        and query.action in (None, point.action)
        and query.level in (None, point.level)
        and query.success in (None, point.success)
    )


def _tally(component: str, action: str, points: Sequence[TelemetryEvent]) -> Tally:
    sums: dict[str, float] = {}
    for point in points:
        for key, value in point.metadata.items():
            if isinstance(value, int | float) and not isinstance(value, bool):
                sums[key] = sums.get(key, 0) + value
    durations = [point.duration_ms for point in points]
    failures = sum(not point.success for point in points)
    mean = sum(durations) / len(durations)
    return Tally(component, action, len(points), failures, mean, max(durations), dict(sorted(sums.items())))
