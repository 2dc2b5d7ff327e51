"""The speed bench: what it makes, what it measures at a small size, and what it says of it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

from bench.gauge import Times
from bench.load import fill
from bench.made import Table, questions, texts
from bench.plot import growth
from bench.speed import calmest, measure, recall, unnumbered
from bench.speed_peers import FEWEST, bounded
from bench.speed_report import Target, ratios, report, targets


def row(entries: int, scopes: int = 1, **more: Any) -> dict[str, Any]:
    rates = {"wall": 4_000.0, "CPU": 5_000.0}
    cost = {"p50": 2.0, "p95": 3.0, "wall": 2.5}
    found = {"name": "Lukasa", "entries": entries, "scopes": scopes, "read": cost, "context": cost, "stages": {}}
    found |= {"single": rates, "batch": rates, "memory": 90.0, "disk": 40.0, "first": 100.0, "filled a second": 2_000.0}
    found |= {"again": cost, "after a put": cost, "common": rates, "busiest": 2.75}
    return found | {"recall": 1.0} | more


def other(name: str, cost: float) -> dict[str, Any]:
    rates = {"wall": 500.0, "CPU": 700.0}
    found = {"name": name, "entries": 10_000, "version": "1.2", "read": {"p50": cost, "p95": cost, "wall": cost}}
    return found | {"single": rates, "batch": rates, "memory": 50.0, "disk": 20.0, "busiest": 1.5 * cost}


def test_texts_questions_and_vectors_are_the_same_for_every_store() -> None:
    """B13: two processes that know only the seeds measure the same thing."""
    given = texts(50, 7)
    assert given == texts(50, 7) != texts(50, 8)
    assert questions(5, given, 11) == questions(5, given, 11)
    vectors = Table().vectors(given)
    assert np.array_equal(vectors, Table().vectors(given))
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1.0, atol=1e-5)


def test_a_peer_knows_nothing_of_lukasa() -> None:
    """B13: its process has an environment of its own, where Lukasa is not installed."""
    asked = "import sys, bench.speed_peers; sys.exit(any(name.split('.')[0] == 'lukasa' for name in sys.modules))"
    subprocess.run([sys.executable, "-c", asked], check=True, cwd=Path(__file__).parents[2])


def test_a_small_store_is_filled_and_measured(tmp_path: Path) -> None:
    """B13: entries over two scopes, each of which is read; the nearest are those of an exact scan."""
    fill(tmp_path, 60, 2)
    found = measure(tmp_path, 4, rounds=1)
    assert (found["entries"], found["scopes"]) == (60, 2)
    assert found["read"]["p50"] > 0 < found["batch"]["CPU"]
    assert found["again"]["p50"] > 0 < found["after a put"]["p50"]
    assert found["single"]["CPU"] > 0 < found["common"]["CPU"]
    assert unnumbered(1, 13) == [" ".join(texts(1, 13)[0].split()[:-1])]
    assert "nearest" in found["stages"]
    alone = tmp_path / "alone"
    alone.mkdir()
    fill(alone, 60, 1)
    assert recall(alone, 5) == 1.0


def test_rates_are_those_of_the_median_call() -> None:
    """B13: a call that waited for the disk, or for another process, is not the rate."""
    assert Times((2.0, 4.0, 400.0), (5.0, 10.0, 900.0)).rate(100) == {"wall": 10_000.0, "CPU": 25_000.0}


@pytest.mark.parametrize(
    ("target", "verdict"),
    [
        (Target("", 4, 4.0), "yes"),
        (Target("", 4, 4.1), "no"),
        (Target("", 7, 7.5, least=True), "yes"),
        (Target("", 7, 6.5, least=True), "no"),
        (Target("", 7, None), "not measured"),
    ],
)
def test_a_target_is_kept_missed_or_not_measured(target: Target, verdict: str) -> None:
    """B13: what was asked for is compared with what this run measured."""
    assert target.verdict == verdict


def test_of_a_store_in_two_forms_the_cheaper_counts() -> None:
    """B13: a ratio is to what the peer does best."""
    others = [other("lancedb", 30.0), other("lancedb-ivf", 20.0), other("langgraph", 36.0)]
    found = {target.what: target.measured for target in ratios([row(10_000)], others)}
    assert found["times less CPU a read than LanceDB hybrid, 10,000"] == 10.0
    assert found["times less CPU a read than LangGraph SqliteStore, 10,000"] == 18.0
    assert found["our puts in batches of 100 to LangGraph's single ones, 10,000"] == 8.0
    assert found["times less CPU a read than mem0, 10,000"] is None


def test_growth_needs_both_ends() -> None:
    """B13: from ten thousand to a million, in one scope."""
    said = "growth of a read, 10,000 to 1,000,000, times"
    large = row(1_000_000, read={"p50": 6.0, "p95": 7.0, "wall": 6.0})
    assert {t.what: t.measured for t in targets([row(10_000)], None)}[said] is None
    assert {t.what: t.measured for t in targets([row(10_000), large], None)}[said] == 3.0


def test_a_store_that_was_not_measured_says_why() -> None:
    """B13: an absent figure has a reason."""
    text = report(
        [row(10_000)], [{"name": "mem0", "entries": 10_000, "missing": "not filled within 360 s"}], None, 2e10
    )
    assert "| mem0 without inference, by vector | not filled within 360 s |" in text
    assert "the default embedding model is not on this machine" in text


def test_how_far_rounds_are_apart_is_told() -> None:
    """B13: beside the calmest round stands the busiest, of ours and of others."""
    rounds = [row(10_000, read={"p50": p50, "p95": 9.0, "wall": p50}) for p50 in (3.0, 2.0, 4.5)]
    found = calmest(rounds)
    assert (found["read"]["p50"], found["busiest"]) == (2.0, 4.5)
    text = report([found], [other("langgraph", 36.0)], None, 2e10)
    assert "| read p50, in the busiest round | 4.5 |" in text
    assert "| LangGraph SqliteStore, by vector (1.2) | 36.0 | 54.0 | 18.0× |" in text


def test_how_far_calls_are_apart_is_told() -> None:
    """B13: of reads and contexts the slow ones too, and what the embedder takes of them."""
    model = {name: {"p50": p50, "p95": p50 + 1, "wall": p50} for name, p50 in (("embedder", 7), ("read", 9))}
    model |= {"context": {"p50": 11, "p95": 15, "wall": 12}}
    text = report([row(10_000)], [], {"entries": 10_000, **model}, 2e10)
    assert "| read p95 | 3.0 |" in text
    assert "| context p95 | 3.0 |" in text
    assert "| the embedder alone | 7.0 | 8.0 | 7.0 |" in text
    assert "| context | 11.0 | 15.0 | 12.0 |" in text


def test_growth_is_drawn_as_lines() -> None:
    """B13: one line for each cost of ours and for each peer, in a document that parses."""
    drawn = ElementTree.fromstring(growth([row(1_000), row(10_000)], [other("langgraph", 36.0)], {"langgraph": "<L>"}))
    lines = drawn.findall("{http://www.w3.org/2000/svg}polyline")
    assert len(lines) == 4
    assert all(len(line.attrib["points"].split()) == 2 for line in lines[:3])


def test_a_slow_store_is_asked_fewer_questions() -> None:
    """B13: a store that takes a second or two for an answer is measured too, by as many as there is time for."""
    asked = [str(number) for number in range(100)]
    assert list(bounded(asked, 60.0)) == asked
    assert list(bounded(asked, -1.0)) == asked[:FEWEST]
