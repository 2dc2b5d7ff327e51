"""The part of the store port that background work rests on: jobs, transcripts, amendments, telemetry.

All of it is written by `Store.apply`, so that an effect, the journal of the step that had it and the job that comes
next are one commit. The exceptions are claims and leases, which are no change of anything but the job itself.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import field
from datetime import datetime
from typing import Any, Protocol

from lukasa.model.amendment import Amendment, AmendmentState
from lukasa.model.frozen import dataclass
from lukasa.model.job import Job, JobDraft, JobState
from lukasa.model.telemetry import DayTally, Level, Point, PointQuery, Spending, Tally
from lukasa.model.transcript import Progress, Transcript, Utterance


@dataclass(frozen=True, slots=True)
class Enqueue:
    """Ask for work. If there is a job of that key already, in whatever state, nothing happens."""

    draft: JobDraft


@dataclass(frozen=True, slots=True)
class JournalStep:
    """Keep what a step gave, under a claim. LostClaim if somebody else has taken the job since."""

    job: str
    claim: int
    name: str
    output: Any


@dataclass(frozen=True, slots=True)
class FinishJob:
    job: str
    claim: int
    result: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class FailJob:
    """This attempt failed: try again at `run_after`, or with None never."""

    job: str
    claim: int
    error: str
    run_after: datetime | None


@dataclass(frozen=True, slots=True)
class PostponeJob:
    """Put a job back as if this attempt had not begun: the worker stops, a breaker is open, the budget is spent."""

    job: str
    claim: int
    until: datetime
    reason: str


@dataclass(frozen=True, slots=True)
class ReviveJob:
    """A dead or cancelled job is queued again, with all its attempts before it and the journal it had."""

    job: str


@dataclass(frozen=True, slots=True)
class CancelJob:
    """A job that is not finished is given up; whoever holds it can write no more."""

    job: str
    reason: str


@dataclass(frozen=True, slots=True)
class ForgetJobs:
    """Remove finished jobs and their journals, last touched before a time. Dead ones stay: they wait for a person."""

    before: datetime


@dataclass(frozen=True, slots=True)
class SaveTranscript:
    """Insert (`expect` 0) or replace the version `expect`. Its key is unique."""

    transcript: Transcript
    expect: int


@dataclass(frozen=True, slots=True)
class KeepUtterances:
    """Add messages to a transcript that is here. A place that is taken is a Conflict."""

    transcript: str
    utterances: tuple[Utterance, ...]


@dataclass(frozen=True, slots=True)
class SaveAmendment:
    amendment: Amendment
    expect: int


@dataclass(frozen=True, slots=True)
class Emit:
    """Telemetry. It is no event: the log says what changed, this says how the work went."""

    point: Point


@dataclass(frozen=True, slots=True)
class ForgetPoints:
    """Remove reports from before a time; of one level alone, if one is named."""

    before: datetime
    level: Level | None = None


@dataclass(frozen=True, slots=True)
class Spend:
    """Add to what a model has cost on a day."""

    spending: Spending


PipelineOperation = (
    Enqueue
    | JournalStep
    | FinishJob
    | FailJob
    | PostponeJob
    | ReviveJob
    | CancelJob
    | ForgetJobs
    | SaveTranscript
    | KeepUtterances
    | SaveAmendment
    | Emit
    | ForgetPoints
    | Spend
)


@dataclass(frozen=True, slots=True)
class Said:
    """A message found by its words, and the transcript it is in."""

    transcript: str
    utterance: Utterance


class PipelineStore(Protocol):
    # Jobs
    def claim_job(
        self, worker: str, *, now: datetime, lease_until: datetime, kinds: Collection[str] | None = None
    ) -> Job | None:
        """Take the job that has waited longest: queued and due, or running with a lease that has run out.

        Its claim and its attempts rise by one. A job whose last attempt ended with its lease is dead instead,
        and has its report.
        """
        ...

    def renew_lease(self, job: str, claim: int, lease_until: datetime) -> bool:
        """Whether the claim still holds; then its lease lasts until that time."""
        ...

    def jobs(
        self, *, states: Collection[JobState] | None = None, kind: str | None = None, limit: int = 100
    ) -> list[Job]:
        """The last touched first."""
        ...

    def job(self, id_or_key: str) -> Job | None: ...
    def steps(self, job: str) -> dict[str, Any]:
        """What each journaled step gave, in the order they were kept."""
        ...

    def queue_depth(self) -> dict[JobState, int]: ...
    def next_run(self, kinds: Collection[str] | None = None) -> datetime | None:
        """When the next job of these kinds is due, or the next lease of one runs out."""
        ...

    # Transcripts
    def transcripts(
        self, *, progress: Progress | None = None, limit: int = 100, after: str | None = None
    ) -> list[Transcript]:
        """The last taken in first; `after` is the last id of the page before."""
        ...

    def transcript(self, id_or_key: str) -> Transcript | None: ...
    def utterances(self, transcript: str, *, start: int = 0, limit: int | None = None) -> list[Utterance]: ...
    def utterance(self, transcript: str, message: str) -> Utterance | None: ...
    def find_utterances(self, terms: Sequence[str], limit: int) -> list[Said]:
        """Messages with any of these terms, the best match first."""
        ...

    # Amendments
    def amendments(
        self,
        ids: Iterable[str] | None = None,
        *,
        states: Collection[AmendmentState] | None = None,
        limit: int = 1000,
    ) -> list[Amendment]:
        """The oldest first."""
        ...

    # Telemetry
    def report(self, point: Point) -> None:
        """Telemetry of what changes nothing, which touches no file by itself: a store may keep it in the process
        until something is written, or until it is asked for reports, is closed, or has many of them. Of level debug
        only the newest are kept, `MOST_DEBUG` or somewhat more."""
        ...

    def points(self, query: PointQuery, *, limit: int = 100) -> list[Point]:
        """The newest first."""
        ...

    def tally(self, query: PointQuery) -> list[Tally]: ...
    def tally_days(self, query: PointQuery) -> list[DayTally]:
        """Days that have points, the oldest first."""
        ...

    def spent(self, since_day: str) -> list[Spending]: ...
