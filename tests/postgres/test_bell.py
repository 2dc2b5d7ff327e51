"""The bell: a worker that sleeps is woken by a job that somebody queues in the database, and by nothing else."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from lukasa import Lukasa, Workspace
from lukasa.service.jobs import queue
from lukasa.service.jobs.worker import Run
from lukasa.storage.postgres.bell import DEAF, LONGEST, JobBell
from tests.helpers.postgres import Postgres
from tests.helpers.processes import until

AGES = 3600.0
PATIENCE = 60.0


@contextmanager
def sleeping(bell: JobBell) -> Iterator[Callable[[], bool]]:
    """A worker's sleep of an hour in a thread; gives a function that says whether it woke up."""
    stop, deaf = threading.Event(), threading.Event()

    def sleep() -> None:
        bell.wait(stop, AGES)  # returns when the bell listens
        deaf.set()
        bell.wait(stop, AGES)

    thread = threading.Thread(target=sleep)
    thread.start()
    try:
        assert deaf.wait(PATIENCE)

        def woke() -> bool:
            thread.join(PATIENCE)
            return not thread.is_alive()

        yield woke
    finally:
        stop.set()
        thread.join(PATIENCE)
        bell.close()


def ask(world: Workspace) -> None:
    queue.ask(world.ctx, "maintain", None)


def test_a_job_wakes_a_worker_that_sleeps(tmp_path: Path, database_url: str) -> None:
    """O2: whoever queues it, and without a look of the worker in between."""
    with Lukasa.open(tmp_path / "data", database=database_url, embedder="none") as memory:
        world = memory.workspace("novel")
        with sleeping(JobBell(database_url)) as woke:
            ask(world)
            assert woke()


def test_jobs_of_other_accounts_wake_nobody(tmp_path: Path, database_url: str) -> None:
    """S4: the bell asks whose job it is, and rings for one of its own."""
    with (
        Lukasa.open(tmp_path / "a", database=database_url, account="acme", embedder="none") as acme,
        Lukasa.open(tmp_path / "g", database=database_url, account="globex", embedder="none") as globex,
    ):
        theirs, mine = acme.workspace("desk"), globex.workspace("desk")
        rung: list[str] = []

        def wanted(store: str) -> bool:
            rung.append(store)
            return store == mine.id

        with sleeping(JobBell(database_url, wanted)) as woke:
            ask(theirs)
            until(lambda: rung == [theirs.id])
            ask(mine)
            assert woke()
        assert rung == [theirs.id, mine.id]


def test_a_worker_of_an_account_knows_its_stores(tmp_path: Path, database_url: str) -> None:
    """S4: also a workspace that another process made since; those of another account are not its own."""
    with (
        Lukasa.open(tmp_path / "a", database=database_url, account="acme", embedder="none") as acme,
        Lukasa.open(tmp_path / "b", database=database_url, account="acme", embedder="none") as again,
        Lukasa.open(tmp_path / "g", database=database_url, account="globex", embedder="none") as globex,
    ):
        made, other = again.workspace("late"), globex.workspace("desk")
        assert [acme._is_own(world.id) for world in (made, other, other)] == [True, False, False]


def test_a_worker_asks_only_the_workspaces_that_rang(tmp_path: Path, database_url: str) -> None:
    """O2: of many workspaces, one that queued a job costs the others no question; all are asked when hearing begins."""
    with Lukasa.open(tmp_path / "data", database=database_url, embedder="none") as memory:
        busy, quiet = memory.workspace("busy"), memory.workspace("quiet")
        bell = JobBell(database_url)
        assert [bell.rang(busy.id), bell.rang(quiet.id)] == [True, True]  # deaf: nobody knows
        with sleeping(bell) as woke:
            assert [bell.rang(busy.id), bell.rang(quiet.id)] == [True, True]
            assert [bell.rang(busy.id), bell.rang(quiet.id)] == [False, False]
            ask(busy)
            assert woke()
            assert [bell.rang(busy.id), bell.rang(quiet.id)] == [True, False]
            assert not bell.rang(busy.id)


def test_a_worker_that_knows_what_is_due_runs_what_rings(tmp_path: Path, database_url: str) -> None:
    """O2: jobs of any workspace are run at once, though the worker has just been told that there are none."""
    ran: list[str] = []
    with Lukasa.open(tmp_path / "data", database=database_url, embedder="none") as memory:
        worlds = [memory.workspace(name) for name in ("one", "two", "three")]
        stop = threading.Event()

        def tell(what: object) -> None:
            if isinstance(what, Run) and what.job.kind == "maintain":
                ran.append(what.workspace)

        worker = memory.worker(chat=None, tell=tell, kinds=["maintain"])
        thread = threading.Thread(target=worker.run, args=(stop,))
        thread.start()
        for world in (*worlds, worlds[0]):
            before = len(ran)
            queue.ask(world.ctx, "maintain", None)
            until(lambda count=before: len(ran) > count)  # type: ignore[misc]
        stop.set()
        thread.join(PATIENCE)
    assert ran == ["one", "two", "three", "one"]


def test_a_bell_hears_again_after_a_restart(tmp_path: Path, own_postgres: Postgres) -> None:
    """T06: while the database is away, workers look once in a second; when it is back, the bell wakes them."""
    url = own_postgres.cluster.url()
    bell = JobBell(url)
    with Lukasa.open(tmp_path / "data", database=url, embedder="none") as memory:
        world = memory.workspace("novel")
        assert bell.longest == DEAF
        with sleeping(bell):
            assert bell.longest == LONGEST
            own_postgres.cluster.stop()
            until(lambda: bell.longest == DEAF)
            own_postgres.cluster.start()
            until(lambda: bell.longest == LONGEST)
            with sleeping(bell) as woke:
                ask(world)
                assert woke()


def test_a_sleeping_worker_stops(database_url: str) -> None:
    """O2: a worker that is told to stop does not sleep to its end."""
    bell, stop = JobBell(database_url), threading.Event()

    def twice() -> None:
        bell.wait(stop, AGES)  # returns when the bell listens
        bell.wait(stop, AGES)

    sleep = threading.Thread(target=twice)
    sleep.start()
    stop.set()
    sleep.join(PATIENCE)
    assert not sleep.is_alive()
    bell.close()
