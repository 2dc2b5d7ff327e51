"""Fixtures shared by all tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from lukasa import Lukasa, Workspace
from tests.fakes import FakeEmbedder
from tests.helpers.making import FixedClock
from tests.helpers.postgres import Postgres, alone, shared, worker_folder

# Machines differ by far more than any deadline could allow for; speed lives in bench/.
settings.register_profile("lukasa", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("lukasa")

SYNONYMS = {"antagonist": "villain", "foe": "villain", "automobile": "car", "spouse": "wife"}


@pytest.fixture
def clock() -> FixedClock:
    return FixedClock()


@pytest.fixture(params=["embedded", "keyword"])
def memory(request: pytest.FixtureRequest, tmp_path: Path, clock: FixedClock) -> Iterator[Lukasa]:
    """A real store in a folder, once with an embedder that behaves and once with none."""
    embedder = FakeEmbedder(256, synonyms=SYNONYMS) if request.param == "embedded" else "none"
    with Lukasa.open(tmp_path / "data", embedder=embedder, clock=clock) as opened:
        yield opened


@pytest.fixture
def world(memory: Lukasa) -> Workspace:
    return memory.workspace("novel")


@pytest.fixture(scope="session")
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Postgres:
    """The PostgreSQL server of this run of the tests. All workers share it: a test must not stop it."""
    return shared(*worker_folder(tmp_path_factory))


@pytest.fixture
def database_url(postgres: Postgres) -> Iterator[str]:
    """The URL of an empty database that only this test uses."""
    with postgres.database() as url:
        yield url


@pytest.fixture(params=["sqlite", "postgres"])
def engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The engine that keeps what a test opens: a file in each folder, or a PostgreSQL database of its own."""
    if request.param == "postgres":
        monkeypatch.setenv("LUKASA_DATABASE", request.getfixturevalue("database_url"))
    return str(request.param)


@pytest.fixture
def own_postgres() -> Iterator[Postgres]:
    """A PostgreSQL server that only this test uses, so that it may stop, crash or kill it."""
    with alone() as server:
        yield server
