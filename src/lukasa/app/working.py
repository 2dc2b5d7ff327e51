"""Workers of a memory: what runs the jobs of its workspaces."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from contextlib import suppress
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any

from lukasa.app.syncing import SyncMethods, sync_minutes
from lukasa.model.errors import InvalidInput, LukasaError
from lukasa.service import jobs
from lukasa.service.workspace import Workspace

if TYPE_CHECKING:
    from lukasa.model.job import JobState
    from lukasa.ports import Chat
    from lukasa.service.jobs.worker import Crew, Tell, Worker
    from lukasa.storage.postgres.bell import JobBell

MOST_THREADS = 32


class WorkMethods(SyncMethods):
    """Workers and their queue."""

    def worker(
        self,
        *,
        chat: Chat | str | None = None,
        tell: Tell | None = None,
        workspace: Workspace | None = None,
        kinds: Collection[str] | None = None,
    ) -> Worker:
        """Return a worker for all workspaces: `drain()` runs due jobs, `run(stop)` works until it is stopped.

        With a `workspace` it works for that one alone, with `kinds` on these kinds of work alone. `chat` is a model or
        a setting like LUKASA_CHAT, which is the default; without a model, rules do the work. The worker calls `tell`
        with each run, and with each trouble of a workspace.
        """
        return self._crew(1, chat, tell, workspace=workspace.id if workspace else None, kinds=kinds).workers[0]

    def crew(self, threads: int = 1, *, chat: Chat | str | None = None, tell: Tell | None = None) -> Crew:
        """Return workers for a process that does nothing else: `serve(stop, hurry)` returns when all have stopped."""
        if not 1 <= threads <= MOST_THREADS:
            raise InvalidInput(f"a worker cannot run {threads} threads", fix=f"give 1 to {MOST_THREADS}")
        made = self._crew(threads, chat, tell)
        told = tell or (lambda what: None)
        if sync_minutes() and not self._in_memory:
            made.beside = (partial(self._sync_regularly, tell=told),)
        return made

    def _crew(self, threads: int, chat: Chat | str | None, tell: Tell | None, **only: Any) -> Crew:
        given = self._chat if chat is None else chat
        model = given if given is not None and not isinstance(given, str) else self._model(given or self.settings.chat)
        options = {"chat": model, "clock": self._clock, "budget": self.settings.budget, "tell": tell, **only}
        options["span"] = import_module("lukasa.providers.spans").opentelemetry_spans()
        options["bell"] = self._job_bell()
        return jobs.handlers.crew(threads, self.workspaces, self._open_context, **options)

    def queue_depth(self) -> dict[JobState, int]:
        """Count the jobs of all workspaces by state. A workspace that cannot be read is left out."""
        found: Counter[JobState] = Counter()
        for info in self._account.workspaces():
            with suppress(LukasaError):
                found.update(self._open_context(info).local.queue_depth() if info.ready else {})
        return dict(found)

    def _job_bell(self) -> JobBell | None:
        """Return the bell of a database for all workers of this memory; files have none."""
        if self._database is None:
            return None
        if self._bell is None:
            made = import_module("lukasa.storage.postgres.bell").JobBell(self.settings.database, self._is_own)
            self._bell = made
        return self._bell

    def _is_own(self, store: str) -> bool:
        """Say whether a store of the database is one of this account's workspaces."""
        if store in self._stores:
            return True
        if store in self._foreign:
            return False
        try:
            own = any(info.id == store for info in self._account.workspaces())
        except LukasaError:
            return True  # a worker will look, and tell what is wrong
        if not own:
            self._foreign.add(store)
        return own
