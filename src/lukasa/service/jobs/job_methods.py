"""The methods of a workspace about background jobs."""

from __future__ import annotations

from typing import Any

from lukasa.model.job import Job, JobState
from lukasa.service import jobs
from lukasa.service.call import Bound
from lukasa.service.instrument import verb


class JobMethods(Bound, frozen=True):
    """List, retry and cancel background jobs."""

    def jobs(self, *, state: JobState | str | None = None, kind: str | None = None, limit: int = 100) -> list[Job]:
        """Return background jobs, the last changed first. Only the author may see or change jobs."""
        return jobs.queue.jobs(self.ctx, state=state, kind=kind, limit=limit)

    def job(self, id_or_key: str) -> Job:
        """Return one job."""
        return jobs.queue.job(self.ctx, id_or_key)

    def job_steps(self, id_or_key: str) -> dict[str, Any]:
        """Return the journal of a job: the output of each finished step, in order."""
        return jobs.queue.steps(self.ctx, id_or_key)

    @verb("job", "retry")
    def retry_job(self, id_or_key: str) -> Job:
        """Queue a dead or cancelled job again, with the journal it had."""
        return jobs.queue.retry(self.ctx, id_or_key)

    @verb("job", "cancel")
    def cancel_job(self, id_or_key: str, reason: str = "cancelled on request") -> Job:
        """Cancel a job that is not finished."""
        return jobs.queue.cancel(self.ctx, id_or_key, reason)
