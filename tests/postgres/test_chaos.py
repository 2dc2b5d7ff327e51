"""Servers, workers and PostgreSQL itself are killed while clients write: nothing is lost, and nothing doubled."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from lukasa import Lukasa
from lukasa.model.job import JobState
from lukasa.model.selection import Selection
from lukasa.model.values import Visibility
from tests.helpers import sessions
from tests.helpers.cli import Shell
from tests.helpers.crowd import Writer, crowd, writing
from tests.helpers.postgres import Postgres
from tests.helpers.processes import TORTURE, until

KILLS, CRASHES, JOBS = (100, 20, 300) if TORTURE else (6, 2, 12)
PATIENCE = 300.0


def sent(folder: Path, url: str, jobs: int) -> tuple[Shell, str]:
    """Make a workspace with so many sessions that nobody has observed yet, and a token for clients."""
    shell = Shell(folder / "data", {"LUKASA_EMBEDDER": "none", "LUKASA_CHAT": "none", "LUKASA_DATABASE": url})
    with Lukasa.open(folder / "here", database=url, embedder="none") as memory:
        world = memory.workspace("main")
        for number in range(jobs):
            said = [("user", fact(number))]
            world.observe(sessions.claude(folder / f"{number}.jsonl", said, session=f"s-{number}", noise=False))
        return shell, memory.access.create("clients", workspaces=["main"], can=["read", "write"]).token


def fact(number: int) -> str:
    return f"I always take ferry {number} to the harbour of Veyra"


def grown(writers: Sequence[Writer], by: int) -> None:
    """Return when so many more writes were acknowledged."""
    before = sum(len(writer.acknowledged) for writer in writers)
    until(lambda: sum(len(writer.acknowledged) for writer in writers) >= before + by, PATIENCE)


def examined(folder: Path, url: str, writers: Sequence[Writer], jobs: int) -> str:
    """Hold what is stored against what clients and jobs were told; nobody writes any more. Return the counts."""
    with Lukasa.open(folder / "here", database=url, embedder="none") as memory:
        world = memory.workspace("main")
        everything = Selection((world.ctx.scope("workspace"),), frozenset(Visibility), None)
        stored = world.ctx.local.find(everything, limit=1_000_000)
        texts = Counter(entry.content for entry in stored)
        by_id = {entry.id: entry for entry in stored}
        acknowledged = {id: text for writer in writers for text, id in writer.acknowledged.items()}
        assert [writer.refused for writer in writers] == [[] for _ in writers]
        assert {id: text for id, text in acknowledged.items() if id not in by_id or by_id[id].content != text} == {}
        assert [text for text, count in texts.items() if count > 1] == []
        facts = {fact(number) for number in range(jobs)}
        assert facts <= texts.keys()
        assert [one.content for one in stored if one.content in facts and one.merged_count != 1] == []
        assert (world.check(), world.verify(), memory.account.check()) == ([], [], [])
        return f"{len(acknowledged)} acknowledged, {sum(writer.tries for writer in writers)} tries, {jobs} jobs"


def finished(folder: Path, url: str, jobs: int) -> None:
    """Wait until workers have done all jobs."""
    with Lukasa.open(folder / "here", database=url, embedder="none") as memory:
        world = memory.workspace("main")
        until(lambda: [job.state for job in world.jobs(kind="observe", limit=1000)] == [JobState.DONE] * jobs, PATIENCE)


def test_servers_and_workers_are_killed_while_clients_write(tmp_path: Path, database_url: str) -> None:
    """X3, T01, T20: three servers and three workers on one database, killed with -9 at random and replaced, while eight
    clients write: no acknowledged write is lost or doubled, no job is lost or done twice, and the chain verifies."""
    dice = random.Random(5)
    shell, token = sent(tmp_path, database_url, JOBS)
    with crowd(shell) as crew:
        with writing(crew, token) as writers:
            for round in range(KILLS):
                grown(writers, dice.randint(1, 5))
                time.sleep(dice.uniform(0, 0.03))  # so that it hits any moment of a request
                crew.kill(f"{'worker' if round % 2 else 'server'} {dice.randrange(3)}")
            grown(writers, 3)
        finished(tmp_path, database_url, JOBS)
    told = examined(tmp_path, database_url, writers, JOBS)
    print(f"{crew.kills} kills: {told}")


def test_the_database_crashes_while_clients_write(tmp_path: Path, own_postgres: Postgres) -> None:
    """X3, T01: PostgreSQL is stopped at once, or its first process killed with -9, and started again: what was
    acknowledged is there once, and servers and workers go on by themselves."""
    url = own_postgres.cluster.url()
    shell, token = sent(tmp_path, url, JOBS)
    servers, workers = (3, 3) if TORTURE else (2, 1)
    with crowd(shell, servers, workers) as crew:
        until(lambda: len(crew.ports) == servers, PATIENCE)
        with writing(crew, token) as writers:
            for crash in range(CRASHES):
                grown(writers, 5)
                (own_postgres.cluster.crash if crash % 2 else own_postgres.cluster.kill)()
                own_postgres.cluster.start()
            grown(writers, 5)
        finished(tmp_path, url, JOBS)
        ended = {name: crew.log(name).read_text() for name, one in crew.places.items() if one.poll() is not None}
        assert ended == {}
    told = examined(tmp_path, url, writers, JOBS)
    print(f"{CRASHES} crashes: {told}")
