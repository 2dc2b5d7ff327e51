"""Many people are erased one after the other: nothing of them is left in any file, and nobody else loses anything."""

from __future__ import annotations

from pathlib import Path

import psycopg
import pytest

from lukasa import Lukasa
from lukasa.app import Settings, restore_backup
from tests.fakes import FakeEmbedder
from tests.helpers.curating import work
from tests.helpers.erasing import found_in, furnish, names, of_others
from tests.helpers.postgres import Postgres
from tests.helpers.processes import TORTURE

PEOPLE, ENTRIES = (200, 5_000) if TORTURE else (4, 100)


def test_people_are_erased_and_nobody_else_loses(engine: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """B5, T10, H4: entries, versions, vectors, summaries, transcripts, notes, telemetry, documents, items, logs, the
    curated document in git, and an older backup: 0 bytes left of the people, and all of everybody else."""
    everybody = names(PEOPLE + 3)
    going, backups = everybody[:PEOPLE], tmp_path / "backups"
    with Lukasa.open(tmp_path / "data", embedder=FakeEmbedder()) as memory:
        world = memory.workspace("novel", preset="observer")
        furnish(world, tmp_path, everybody, ENTRIES)
        work(world)
        before = of_others(world, going)
        old = memory.backup(backups)
        assert found_in(backups, everybody) == everybody
        derived = set[str]()
        for name in going:
            plan = world.erase_plan(person=name)
            assert plan.names == (name,)
            derived.update(plan.derived)
            receipt = world.erase(person=name, confirm=plan.digest)
            assert receipt.clean, receipt
        assert len(derived) == PEOPLE
        after = of_others(world, going)
        assert {key: after.get(key) for key in before if key not in derived} == {
            key: kept for key, kept in before.items() if key not in derived
        }
        assert world.verify() == []
        assert world.check() == []
        assert len(world.erasures()) == PEOPLE
        made = memory.backup(backups, purge=True)
        assert [(one.at, one.wrong) for one in made.purged] == [(old.at, "")]
    if engine == "postgres":
        with psycopg.connect(memory.settings.database, autocommit=True) as db:
            db.execute("CHECKPOINT")
        server: Postgres = request.getfixturevalue("postgres")
        for part in ("base", "global"):
            assert found_in(server.cluster.data / part, going) == []
        assert found_in(server.cluster.data / "base", everybody[PEOPLE:]) == everybody[PEOPLE:]
    assert found_in(tmp_path / "data", going) == []
    assert found_in(backups, going) == []
    assert found_in(tmp_path, everybody[PEOPLE:]) == everybody[PEOPLE:]
    restore_backup(Settings.resolve(data=tmp_path / "then", database=""), backups, at=old.at.isoformat())
    with Lukasa.open(tmp_path / "then", database="", embedder=FakeEmbedder()) as memory:
        world = memory.existing("novel")
        then = of_others(world, going)
        assert {key: then.get(key) for key in before if key not in derived} == {
            key: kept for key, kept in before.items() if key not in derived
        }
        assert world.check() == []
