"""The order of a read where a spec says what may weigh beside the match: in `observer`, time alone does."""

from __future__ import annotations

import math
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from lukasa import Lukasa, State, Trust, Workspace
from lukasa.spec import preset_text
from lukasa.surfaces.cli.data import plain
from tests.helpers.cli import Shell
from tests.helpers.making import FixedClock
from tests.helpers.upkeep import run

OTHERS = (
    "The canteen opens at noon",
    "Lena reads the weekly report",
    "The lift needs a new cable",
    "Invoices leave on the first of the month",
    "Parking cards are renewed in May",
)


@pytest.fixture
def watched(memory: Lukasa) -> Workspace:
    return memory.workspace("watched", preset="observer")


def _put(world: Workspace, text: str, **fields: Any) -> str:
    return world.put("workspace", text, kind="semantic", **fields).id


def _pass(world: Workspace, clock: FixedClock, days: float) -> None:
    """Let days go by, and other things be said, all of them important."""
    clock.time += timedelta(days=days)
    for text in OTHERS:
        _put(world, text, importance=0.9)


def _order(world: Workspace, question: str, *ids: str) -> list[str]:
    found = [hit.id for hit in world.read(question, limit=10)]
    return [id for id in found if id in ids]


@pytest.mark.parametrize("days", [20, 70, 150])
def test_of_two_alike_the_fresh_one_leads(watched: Workspace, clock: FixedClock, days: int) -> None:
    """D2: two statements that answer equally well come in the order of their days."""
    old = _put(watched, "The ferry to Brest sails from quay four")
    _pass(watched, clock, days)
    fresh = _put(watched, "The ferry to Cadiz sails from quay nine")
    assert _order(watched, "from which quay sails the ferry?", old, fresh) == [fresh, old]


@pytest.mark.parametrize("days", [3, 14, 45])
def test_an_answer_leads_before_a_fresh_word_in_passing(watched: Workspace, clock: FixedClock, days: int) -> None:
    """D2: decay weighs the match and does not replace it, so a clear answer outlives some weeks."""
    answer = _put(watched, "Jonas approves invoices above a thousand euros", importance=0.1)
    _pass(watched, clock, days)
    passing = _put(watched, "Invoices are printed on blue paper", importance=1.0)
    question = "who approves invoices above a thousand euros?"
    assert _order(watched, question, answer, passing) == [answer, passing]


def test_importance_lifts_nothing(watched: Workspace, clock: FixedClock) -> None:
    """D2: what somebody called important stands where its match and its age put it."""
    old = _put(watched, "The ferry to Brest sails from quay four", importance=1.0)
    _pass(watched, clock, 30)
    fresh = _put(watched, "The ferry to Cadiz sails from quay nine", importance=0.05)
    assert _order(watched, "from which quay sails the ferry?", old, fresh) == [fresh, old]


def test_reading_lifts_nothing(watched: Workspace, clock: FixedClock) -> None:
    """D2: a fact that was recalled a hundred times, the last time today, fades by its own age."""
    old = _put(watched, "The ferry to Brest sails from quay four")
    _pass(watched, clock, 30)
    for _ in range(100):
        watched.read("Brest", limit=1)
    fresh = _put(watched, "The ferry to Cadiz sails from quay nine")
    assert _order(watched, "from which quay sails the ferry?", old, fresh) == [fresh, old]


def test_stale_counts_half(watched: Workspace, clock: FixedClock) -> None:
    """D2: a stale fact has half the weight of its age, and `why` says with which factors it was placed."""
    stale = _put(watched, "The ferry to Brest sails from quay four")
    used = _put(watched, "The ferry to Cadiz sails from quay nine")
    watched.read("Cadiz", limit=1)
    clock.time += timedelta(days=91)
    run(watched, "maintain")
    assert (watched.get(stale).state, watched.get(used).state) == (State.STALE, State.ACTIVE)
    assert _order(watched, "from which quay sails the ferry?", stale, used) == [used, stale]
    hits = {hit.id: hit.score for hit in watched.read("from which quay sails the ferry?", limit=10)}
    assert hits[used].prior == pytest.approx(math.exp(-0.01 * 91))
    assert hits[stale].prior == pytest.approx(math.exp(-0.01 * 91) * 0.5)
    assert hits[stale].final == pytest.approx(hits[stale].match.value * hits[stale].prior)
    (placed,) = [v for v in watched.why("from which quay sails the ferry?", stale) if v.step == "rank"]
    assert "(decay)" in placed.reason
    assert placed.data["decay"] == pytest.approx(math.exp(-0.91) * 0.5, abs=1e-4)


def test_a_held_fact_has_its_place_when_it_is_asked_for(watched: Workspace, clock: FixedClock) -> None:
    """D2, R7: held entries are in no order by default; asked for, they are ranked as the others."""
    doubted = watched.acting(principal="mail", trust=Trust.UNTRUSTED).put(
        "workspace", "Always board the ferry to Brest at quay four", kind="procedural"
    )
    assert doubted.outcome == "held"
    _pass(watched, clock, 40)
    fresh = _put(watched, "The ferry to Cadiz sails from quay nine")
    question = "from which quay does the ferry sail?"
    assert doubted.id not in [hit.id for hit in watched.read(question, limit=10)]
    found = [hit.id for hit in watched.read(question, limit=10, held=True)]
    assert found.index(fresh) < found.index(doubted.id)


def test_ten_facts_come_in_the_order_of_their_days(watched: Workspace, clock: FixedClock) -> None:
    """D2: importance, reads and age are mixed at random; the order is by age, because all match alike."""
    quays = ("Brest", "Cadiz", "Dover", "Emden", "Faro", "Genoa", "Hull", "Ibiza")
    ids = []
    for n, town in enumerate(quays):
        ids.append(_put(watched, f"The ferry to {town} sails from a quay", importance=(n * 7 % 10) / 10))
        for _ in range(n * 5 % 7):
            watched.read(town, limit=1)
        clock.time += timedelta(days=25)
    found = watched.read("from a quay sails the ferry", limit=15)
    assert [hit.id for hit in found if hit.id in ids] == ids[::-1]


def test_a_spec_chooses_its_factors(memory: Lukasa, clock: FixedClock) -> None:
    """R2: with `prior = ["importance"]` age counts nothing, and the other way round."""
    orders = []
    for number, prior in enumerate(('["importance"]', '["decay"]', '["frequency"]')):
        text = preset_text("observer").replace('prior = ["decay"]', f"prior = {prior}")
        world = memory.workspace(f"chosen-{number}", spec=text)
        important = _put(world, "The ferry to Brest sails from quay four", importance=1.0)
        clock.time += timedelta(days=40)
        fresh = _put(world, "The ferry to Cadiz sails from quay nine", importance=0.2)
        read = _put(world, "The ferry to Dover sails from quay six", importance=0.2)
        for _ in range(20):
            world.read("Dover", limit=1)
        clock.time += timedelta(days=1)
        order = _order(world, "from which quay sails the ferry?", important, fresh, read)
        orders.append(["important", "fresh", "read"][[important, fresh, read].index(order[0])])
        assert plain(world.read("ferry", limit=1)[0].score)["factors"] == [prior.strip('[]"')]
    assert orders[0] == "important"
    assert orders[1] in ("fresh", "read")
    assert orders[2] == "read"


def test_the_command_names_the_factors(tmp_path: Path) -> None:
    """R8, U2: `read --explain` shows what the prior takes, also as JSON."""
    shell = Shell(tmp_path / "data")
    shell.run("workspace", "create", "w", "--preset", "observer")
    shell.run("-w", "w", "put", "Pigeons nest on the roof of the depot")
    assert "the prior takes decay" in shell.run("-w", "w", "read", "pigeons", "--explain")
    found = shell.json("-w", "w", "read", "pigeons", "--explain")
    assert found["hits"][0]["score"]["factors"] == ["decay"]
