"""The PostgreSQL bench: what it measures at a small size, what it says of it, and the page that is computed from it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from bench import scale
from bench.backends import watching
from bench.made import Table
from bench.postgres import calmest, measure, recall
from bench.postgres_clients import through
from bench.postgres_load import fill, held
from bench.postgres_peers import PEERS, ask
from bench.postgres_peers import fill as fill_peer
from bench.postgres_report import by_size, report
from tests.helpers.postgres import Postgres

ROOT = Path(__file__).parents[2]
FOUND = json.loads(scale.COSTS.read_text("utf-8"))


def test_a_small_database_is_filled_and_measured(tmp_path: Path, database_url: str) -> None:
    """X3: workspaces with entries of their own; the backend takes a part of the time; every table has its bytes."""
    fill(tmp_path, database_url, 60, 2)
    about = held(tmp_path)
    assert about.sizes["entries"] > about.empty["entries"]
    assert recall(tmp_path, database_url) > 0
    found = measure(tmp_path, database_url, 4, 1)
    for what in ("read", "again", "after a put", "context", "single", "batch"):
        assert 0 < found[what]["beside"] < found[what]["p50"]
    assert found["log"] > 1_000 < found["backend memory"] * 1_000
    row = {"name": "postgres", "entries": 60, "workspaces": 2, "busiest": 1.0, "recall": None, "disk": 1.0}
    assert "PostgreSQL, 60 over 2 workspaces" in by_size([row | {"seconds": 1.0, "indexing": 0.0} | found])


def test_stores_beside_ours_find_something(postgres: Postgres) -> None:
    """X3: each in a database of its own, with the index for vectors that it was filled without."""
    for name in ("langgraph", "hybrid-any", "hybrid-all"):
        opened, table = PEERS[name][1], Table()
        with postgres.database() as url:
            assert fill_peer(opened, url, table, 50)["bytes"] > 0
            with watching(url) as backends:
                asked = ["ba ke li mo nu", "what about ra"]
                peer = opened(url, table)
                found = ask(peer, backends, asked, asked, 1)
                assert found["read"]["beside"] > 0
                peer.close()


def test_clients_are_answered_through_servers(tmp_path: Path, own_postgres: Postgres) -> None:
    """X3: all clients get answers, without an error, through each of two servers that are held back."""
    url, server = own_postgres.cluster.url(), own_postgres.cluster.postmaster()
    assert server is not None
    fill(tmp_path, url, 40, 2)
    found = through(2, tmp_path, url, server.pid, slow=True, seconds=2.0)
    assert found["errors"] == []
    assert found["requests"] > 0 < found["cpu"]["PostgreSQL"]


def test_each_figure_is_of_its_calmest_round() -> None:
    """X3: and the busiest round is told."""
    rounds: list[dict[str, Any]] = [{"read": {"p50": 3.0}, "log": 5.0}, {"read": {"p50": 2.0}, "log": 6.0}]
    assert calmest(rounds) == {"read": {"p50": 2.0}, "log": 5.0, "busiest": 3.0}


def test_the_results_are_those_of_the_figures() -> None:
    """X3: the section of the results is what the report makes of the file that the page is computed from."""
    assert report(FOUND) in (ROOT / "bench" / "RESULTS.md").read_text("utf-8")


def test_the_page_about_scale_is_what_the_script_computes() -> None:
    """X3: no figure of a table is written by hand; `make bench-scale` writes them anew."""
    page = (ROOT / "docs" / "explanation" / "scale.md").read_text("utf-8")
    tables = scale.tables(scale.costs(FOUND))
    assert len(tables) == page.count("<!-- begin ")
    assert [name for name, table in tables.items() if f"<!-- begin {name} -->\n{table}\n<!-- end" not in page] == []


def test_a_plan_grows_with_what_it_is_for() -> None:
    """X3: ten times the workspaces need ten times the bytes, requests and cores, up to rounding."""
    cost = scale.costs(FOUND)
    small, large = (scale._plan(cost, entries, entries // 100) for entries in (100_000_000, 1_000_000_000))
    for name in ("reads a second at the peak", "puts a second at the peak"):
        assert abs(_number(large[name]) - 10 * _number(small[name])) <= 1
    assert _number(large["cores for PostgreSQL"]) > 5 * _number(small["cores for PostgreSQL"])
    assert _number(large["machines for PostgreSQL"]) > 1


def _number(text: str) -> float:
    return float(text.replace(",", ""))
