"""Trouble with connections or the database: tried again or a typed error, in bounded time, nothing twice or half."""

from __future__ import annotations

import os
import stat
import subprocess
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from shutil import disk_usage
from typing import Any

import psycopg
import pytest

from lukasa.model.errors import LukasaError, StoreBusy, StoreError, StoreFull, StoreUnreachable
from lukasa.model.ids import new_id
from lukasa.model.job import JobDraft
from lukasa.model.selection import Selection
from lukasa.storage.operations import Enqueue
from lukasa.storage.postgres import database as databases
from lukasa.storage.postgres import sql as statements
from lukasa.storage.postgres.database import Database
from lukasa.storage.postgres.postgres_store import PostgresStore
from tests.helpers.postgres import Postgres, alone
from tests.helpers.processes import until
from tests.helpers.proxy import proxy
from tests.helpers.stores import NOW, OPEN, WORK, change, commit, entry, later, put, vector_of
from tools.cluster import binary, free_port, os_user

Connection = psycopg.Connection[Any]


@contextmanager
def opened(url: str) -> Iterator[PostgresStore]:
    database = Database.open(url)
    store = database.store(new_id(), account=new_id(), role="workspace", create=True)
    yield store
    database.close()


def again(url: str, store: PostgresStore) -> list[str]:
    """What another process finds in the store, which must be whole."""
    fresh = Database.open(url)
    found = fresh.store(store.id, account=new_id(), role="workspace")
    assert found.check() == []
    contents = [one.content for one in found.find(OPEN, limit=1000)]
    fresh.close()
    return contents


@pytest.mark.parametrize("cut", ["before", "after"])
def test_an_answer_to_commit_that_got_lost_is_looked_up(database_url: str, cut: str) -> None:
    """T01: whether the server got the COMMIT before the connection was cut or not, the write is there exactly once,
    and the caller gets no error."""
    with proxy(database_url) as wire, opened(wire.url) as store:
        commit(store, put(entry("before")))
        wire.armed = cut  # type: ignore[assignment]
        one = entry("the crate holds a lantern")
        commit(store, put(one), put(entry("and a rope")))
        assert wire.cuts == 1
        commit(store, change(store.entries([one.id])[one.id], content="the crate holds two lanterns"))
        assert store.head()[0] == 4
        assert sorted(again(database_url, store)) == ["and a rope", "before", "the crate holds two lanterns"]


def test_a_claim_whose_answer_got_lost_is_held_once(database_url: str) -> None:
    """T20: a job that was claimed in the moment the connection was cut is claimed by that worker, with one attempt."""
    with proxy(database_url) as wire, opened(wire.url) as store:
        commit(store, Enqueue(JobDraft("observe", "observe:1", {})))
        wire.armed = "after"
        job = store.claim_job("w1", now=NOW, lease_until=later(60))
        assert wire.cuts == 1
        assert job is not None
        assert (job.attempts, job.claim) == (1, 1)


def test_a_crash_gives_no_number_of_a_lost_commit_to_another() -> None:
    """T01: a crash may take an unfinished transaction with its number, which PostgreSQL then gives to another one.

    That one's commit is not taken for ours: the write is made again, and is there when it is acknowledged.
    """
    with alone(wal_writer_delay="10s") as server, proxy(server.cluster.url()) as wire:
        direct = server.cluster.url()
        with opened(direct) as other, opened(wire.url) as store, ThreadPoolExecutor(1) as pool:
            commit(store, put(entry("before")))
            commit(other, put(entry("before")))
            wire.armed = "unnoticed"
            writing = pool.submit(commit, store, put(entry("while it crashed")))
            assert wire.cut.wait(30)
            wire.open.clear()
            server.cluster.kill()
            server.cluster.start()
            for number in range(5):
                commit(other, put(entry(f"others go on {number}")))
            wire.open.set()
            writing.result(60)
            assert sorted(again(direct, store)) == ["before", "while it crashed"]


def terminate_all(url: str) -> int:
    with psycopg.connect(url, autocommit=True) as admin:
        found = admin.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'"
        ).fetchall()
    return len(found)


def test_every_connection_is_ended_again_and_again(database_url: str) -> None:
    """T01: while four threads write and two read, all connections are ended ten times: each write that was answered is
    there once, each that was refused has a typed error and is not there, and reading gives answers or a typed error."""
    with opened(database_url) as store:
        stop = threading.Event()
        answered: list[str] = []
        refused: list[str] = []
        troubles: list[BaseException] = []

        def write(name: int) -> None:
            number = 0
            while not stop.is_set():
                text = f"crate {name} {number}"
                number += 1
                try:
                    commit(store, put(entry(text), vector_of(text)))
                    answered.append(text)
                except (StoreBusy, StoreUnreachable):
                    refused.append(text)

        def read(_: int) -> None:
            while not stop.is_set():
                try:
                    store.keyword(OPEN, ["crate"], 10)
                    with store.snapshot() as now:
                        assert now.size(OPEN) == now.size(OPEN)
                except (StoreBusy, StoreUnreachable) as error:
                    troubles.append(error)

        with ThreadPoolExecutor(6) as pool:
            jobs = [pool.submit(write, n) for n in range(4)] + [pool.submit(read, n) for n in range(2)]
            for _ in range(10):
                goal = len(answered) + 5
                until(lambda goal=goal: len(answered) >= goal or any(job.done() for job in jobs), 60)  # type: ignore[misc]
                assert terminate_all(database_url) > 0
            stop.set()
            for job in jobs:
                job.result(60)
        stored = again(database_url, store)
    assert sorted(stored) == sorted(answered)
    assert all(error.fix for error in troubles if isinstance(error, LukasaError))


def test_more_threads_than_connections_wait_for_their_turn(database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """X3: thirty threads over two connections: all write, and the log has every one of them."""
    monkeypatch.setattr(databases, "CONNECTIONS", 2)
    with opened(database_url) as store:
        with ThreadPoolExecutor(30) as pool:
            list(pool.map(lambda n: commit(store, put(entry(f"crate {n}"))), range(60)))
        assert store.head()[0] == 60
        assert len(again(database_url, store)) == 60


def test_all_connections_lost_in_commit_are_looked_up(database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """T01: with no connection left in the pool, the answer to a lost commit is still found, and at once."""
    monkeypatch.setattr(databases, "CONNECTIONS", 1)
    with proxy(database_url) as wire, opened(wire.url) as store:
        commit(store, put(entry("before")))
        wire.armed = "after"
        commit(store, put(entry("after")))
        assert again(database_url, store) == ["after", "before"]


def refusing(store: PostgresStore) -> LukasaError:
    before = store.head()
    with pytest.raises(LukasaError) as refused:
        commit(store, put(entry("refused")), put(entry("refused as well")))
    assert refused.value.fix
    assert store.head() == before
    return refused.value


def impatient(monkeypatch: pytest.MonkeyPatch, **settings: str) -> None:
    """Let the next connections have these settings after the usual ones."""
    more = tuple(f"SET {name} = '{value}'" for name, value in settings.items())
    monkeypatch.setattr(statements, "SETTINGS", (*statements.SETTINGS, *more))


def test_a_writer_that_waits_too_long_is_told_so(database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """X3: the lock of the store is held by somebody: a typed error after the lock timeout, and nothing is written."""
    impatient(monkeypatch, lock_timeout="200ms")
    with opened(database_url) as store, psycopg.connect(database_url) as holding:
        holding.execute("SELECT 1 FROM lukasa.heads FOR UPDATE")
        error = refusing(store)
        holding.rollback()
        assert isinstance(error, StoreBusy)
        commit(store, put(entry("now")))
        assert again(database_url, store) == ["now"]


def test_a_statement_that_takes_too_long_is_told_so(database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """X3: a statement over the limit of the session is a typed error, and nothing is written."""
    impatient(monkeypatch, statement_timeout="300ms", lock_timeout="0")
    with opened(database_url) as store, psycopg.connect(database_url) as holding:
        holding.execute("LOCK TABLE lukasa.versions IN ACCESS EXCLUSIVE MODE")
        error = refusing(store)
        holding.rollback()
        assert isinstance(error, StoreBusy)
        assert again(database_url, store) == []


def test_who_lost_against_another_is_tried_again(database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """X3: a serialization failure is no error for the caller, because nothing was acknowledged; it is tried again."""
    lost: list[str] = []

    def failing(change: Callable[[Any], Any]) -> Callable[[Any], Any]:
        def run(rows: Any) -> Any:
            done = change(rows)
            if len(lost) < 2:
                lost.append("x")
                rows.db.session.cursor.execute(
                    "DO $$ BEGIN RAISE EXCEPTION 'lost' USING ERRCODE = 'serialization_failure'; END $$"
                )
            return done

        return run

    real = PostgresStore._change
    monkeypatch.setattr(PostgresStore, "_change", lambda self, change, **how: real(self, failing(change), **how))
    with opened(database_url) as store:
        commit(store, put(entry("once")))
        assert (len(lost), store.head()[0], again(database_url, store)) == (2, 1, ["once"])


def taken_up(url: str) -> Connection | None:
    """Take one more connection; None if the server has no more."""
    try:
        return psycopg.connect(url)
    except psycopg.OperationalError:
        return None


def test_a_server_without_room_for_connections_is_busy() -> None:
    """X3: with all connections of the server taken, opening is a typed error, and works when there is room."""
    with alone(max_connections="8", superuser_reserved_connections="0") as server:
        url = server.cluster.url()
        with opened(url) as store:
            commit(store, put(entry("before")))
            store._database.close()
        taken = list(iter(partial(taken_up, url), None))
        with pytest.raises(LukasaError) as refused:
            Database.open(url)
        assert isinstance(refused.value, StoreBusy)
        assert "max_connections" in refused.value.fix
        for connection in taken:
            connection.close()
        assert again(url, store) == ["before"]


def test_a_database_that_only_reads_says_so(database_url: str) -> None:
    """X3: after `default_transaction_read_only`, reading goes on, and a write says to name the primary."""
    with opened(database_url) as store:
        commit(store, put(entry("before")))
        with psycopg.connect(database_url, autocommit=True) as admin:
            name = admin.info.dbname
            admin.execute(f"ALTER DATABASE {name} SET default_transaction_read_only = on".encode())
        terminate_all(database_url)
        error = refusing(store)
        assert "read-only" in error.message
        assert "primary" in error.fix
        assert [one.content for one in store.find(OPEN)] == ["before"]
        assert again(database_url, store) == ["before"]


def test_a_database_that_is_away_for_long_says_so_in_bounded_time(
    own_postgres: Postgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    """X3: with the server down, reads and writes give a typed error after the outage that is waited for; and after its
    return, the same store works."""
    monkeypatch.setattr(databases, "OUTAGE", 0.5)
    monkeypatch.setattr(databases, "PATIENCE", 1.0)
    url = own_postgres.cluster.url()
    with opened(url) as store:
        commit(store, put(entry("before")))
        own_postgres.cluster.stop()
        for call in (
            lambda: commit(store, put(entry("refused"))),
            lambda: store.find(OPEN),
            lambda: Database.open(url),
        ):
            with pytest.raises(StoreUnreachable) as refused:
                call()
            assert refused.value.fix
        own_postgres.cluster.start()
        until(lambda: _works(store), 60)
        assert again(url, store) == ["after", "before"]


def _works(store: PostgresStore) -> bool:
    try:
        commit(store, put(entry("after")))
    except StoreError:
        return False
    return True


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of its own with little room; only root can mount one."""
    if os.geteuid() != 0 or subprocess.run(["mount", "-t", "tmpfs", "-o", "size=24m", "tmpfs", tmp_path]).returncode:
        pytest.skip("needs to mount a small disk")
    yield tmp_path
    subprocess.run(["umount", tmp_path], check=True)


def test_a_full_disk_says_so_and_keeps_what_was_there(small_disk: Path, own_postgres: Postgres) -> None:
    """X3: with the tables on a disk that is full, a write is a typed error that says what to do; what was stored can be
    read, and with room again writing goes on."""
    os.chown(small_disk, *(os_user() or (os.geteuid(), os.getegid())))
    for folder in small_disk.parents:
        folder.chmod(folder.stat().st_mode | stat.S_IXOTH)
    own_postgres.run(f"CREATE TABLESPACE small LOCATION '{small_disk}'")
    own_postgres.run("CREATE DATABASE crammed TABLESPACE small")
    url = own_postgres.cluster.url("crammed")
    filler = small_disk / "filler"
    with opened(url) as store:
        commit(store, put(entry("before")))
        filler.write_bytes(bytes(disk_usage(small_disk).free - (1 << 18)))
        answered, refused = ["before"], None
        while refused is None:
            text = f"crate {len(answered)} {'lantern ' * 400}".strip()
            try:
                commit(store, put(entry(text, owner=new_id())))
                answered.append(text)
            except LukasaError as error:
                refused = error
        assert isinstance(refused, StoreFull)
        assert "free some space" in refused.fix
        everyone = Selection((WORK,), owners=None)
        assert len(store.find(everyone, limit=1000)) == len(answered)
        filler.unlink()
        commit(store, put(entry("after")))
        assert store.check() == []
        assert {one.content for one in store.find(everyone, limit=1000)} == {*answered, "after"}
    own_postgres.run("DROP DATABASE crammed WITH (FORCE)")
    own_postgres.run("DROP TABLESPACE small")


def test_a_standby_is_no_place_to_open_a_memory(own_postgres: Postgres, tmp_path: Path) -> None:
    """X3: the URL of a real standby, which replicates, is refused with the sentence to name the primary."""
    first = own_postgres.cluster
    with opened(first.url()) as store:
        commit(store, put(entry("before")))
    second = replace(first, folder=first.folder / "standby", port=free_port())
    second.folder.mkdir()
    os.chown(second.folder, *(os_user() or (os.geteuid(), os.getegid())))
    user, *group = os_user() or (None,)
    subprocess.run(
        [binary("pg_basebackup"), "-D", second.data, "-R", "-X", "stream", "-c", "fast", "-d", first.url()],
        user=user,
        group=group[0] if group else None,
        extra_groups=[] if group else None,
        check=True,
        cwd="/",
    )
    second.removed = False
    second.start()
    try:
        with pytest.raises(StoreError) as refused:
            Database.open(second.url())
        assert "read-only replica" in refused.value.message
        assert "primary" in refused.value.fix
    finally:
        second.crash()
