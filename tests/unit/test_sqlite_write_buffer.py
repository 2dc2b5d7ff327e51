"""Reports that wait in a process: written with what is written next, never lost without a word, bounded on disk."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path

import apsw
import pytest

from lukasa.model.errors import Conflict
from lukasa.model.telemetry import TelemetryEvent, TelemetryQuery
from lukasa.storage import write_buffer
from lukasa.storage.sqlite import SqliteStore, sqlite_rows
from tests.helpers.stores import commit, entry, put

READ = TelemetryEvent(datetime(2026, 11, 15, tzinfo=UTC), "debug", "cli", "memory", "read", True, 1.0, {"hits": 1})


@pytest.fixture
def store(tmp_path: Path) -> SqliteStore:
    return SqliteStore(tmp_path, role="workspace", create=True, busy_timeout=1.0)


def on_disk(folder: Path) -> int:
    """What another process sees."""
    ((count,),) = apsw.Connection(str(folder / "memory.db")).execute("SELECT count(*) FROM points")
    return int(count)


def locked(folder: Path) -> apsw.Connection:
    """Somebody else who writes."""
    other = apsw.Connection(str(folder / "memory.db"))
    other.execute("BEGIN IMMEDIATE")
    return other


def test_a_write_takes_along_what_waits(store: SqliteStore, tmp_path: Path) -> None:
    """T1: a read costs no transaction; the next write carries its report."""
    store.report(READ)
    assert on_disk(tmp_path) == 0
    commit(store, put(entry()))
    assert on_disk(tmp_path) == 1


def test_what_was_not_written_waits_again(store: SqliteStore, tmp_path: Path) -> None:
    """T1: a write that fails loses no report."""
    store.report(READ)
    twin = entry()
    commit(store, put(twin))
    store.report(READ)
    with pytest.raises(Conflict):
        commit(store, put(twin))
    store.close()
    assert on_disk(tmp_path) == 2


def test_many_are_written_together(store: SqliteStore, tmp_path: Path) -> None:
    """T1: a process that only reads writes its reports every so often."""
    for _ in range(write_buffer.MANY + 1):
        store.report(READ)
    assert on_disk(tmp_path) == write_buffer.MANY


def test_a_reader_waits_for_no_writer(store: SqliteStore, tmp_path: Path) -> None:
    """T1: while somebody else writes they are kept; beyond a bound they are counted, and that is told."""
    other = locked(tmp_path)
    for _ in range(write_buffer.MOST + 5):
        store.report(READ)
    assert store.points(TelemetryQuery()) == []
    other.execute("ROLLBACK")
    (overflow,) = store.points(TelemetryQuery(component="telemetry"))
    assert (overflow.level, overflow.metadata) == ("warn", {"lost": 5})
    assert on_disk(tmp_path) == write_buffer.MOST + 1


def test_a_childs_reports_are_its_own(store: SqliteStore, tmp_path: Path) -> None:
    """C1: what waits at a fork is written by the parent alone."""
    store.report(READ)
    child = os.fork()
    if child == 0:
        store.close()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    assert on_disk(tmp_path) == 0
    store.close()
    assert on_disk(tmp_path) == 1


def test_reads_do_not_fill_the_disk(store: SqliteStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """T1: of what reads report the newest are kept, also where no worker tidies up."""
    monkeypatch.setattr(sqlite_rows, "MOST_DEBUG", 300)
    for _ in range(write_buffer.MANY * write_buffer.PRUNED_EACH):
        store.report(READ)
    assert on_disk(tmp_path) == 300
