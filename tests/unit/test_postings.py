"""Adding up postings: by hand where numpy is not loaded, by arrays where it is, and the same either way."""

from __future__ import annotations

import json
import random
import subprocess
import sys

import pytest

from lukasa.index.postings import Postings, by_arrays, by_dicts, occurrences
from lukasa.storage.sqlite.search import row_numbers


def drawn(seed: int, rows: int, far: int) -> tuple[dict[str, list[Postings]], dict[str, float]]:
    dice = random.Random(seed)
    postings = {}
    for term in "abcde"[: dice.randint(1, 5)]:
        counts = {1 + far * dice.randrange(rows): dice.choice((1, 1, 1, 2, 5)) for _ in range(dice.randrange(rows))}
        held = sorted(row for row, count in counts.items() for _ in range(count))
        postings[term] = [Postings(held), Postings([-row for row in reversed(held) if row % 7 == 0])]
    return postings, {term: dice.uniform(0.1, 9.0) for term in postings}


@pytest.mark.parametrize("far", [1, 1000], ids=["dense", "scattered"])
@pytest.mark.parametrize("seed", range(40))
def test_arrays_find_what_a_loop_finds(seed: int, far: int) -> None:
    """R1: which rows are the best does not depend on how they were added up."""
    postings, weights = drawn(seed, 300, far)
    for limit in (1, 7, 60, 1000):
        assert by_arrays(postings, weights, limit) == by_dicts(postings, weights, limit)


def test_equals_are_in_order_of_age() -> None:
    """R2: of rows that hold the same words, the newer come first."""
    postings = {"a": [Postings([3, 5, 9])]}
    assert by_dicts(postings, {"a": 1.0}, 2) == by_arrays(postings, {"a": 1.0}, 2) == [9, 5]


def test_occurrences_are_told_in_the_order_asked() -> None:
    """R1: how often each row holds a word, in one room or in several."""
    assert occurrences([3, 4, 1], [[Postings([1, 2, 3, 3])]]) == [[2, 0, 1]]
    assert occurrences([3, 4, 1], [[Postings([1, 3, 3]), Postings([4, 4, 4])], [Postings([])]]) == [
        [2, 3, 1],
        [0, 0, 0],
    ]


LISTS: tuple[list[int], ...] = ([], [7], [1, 1, 2, 999_999, 2**62], list(range(3, 4000, 3)))


@pytest.mark.parametrize("rows", LISTS, ids=len)
def test_a_list_is_read_as_it_was_written(rows: list[int]) -> None:
    """R1: with numpy at hand, as SQLite writes lists."""
    assert row_numbers(json.dumps(rows, separators=(",", ":"))).tolist() == rows


def test_a_list_is_read_without_numpy() -> None:
    """A hook without an embedder reads the same, and loads no numpy for it."""
    reading = (
        "import sys; from lukasa.storage.sqlite.search import row_numbers; "
        "print(row_numbers('[5,6,6]').tolist(), row_numbers('[]').tolist(), 'numpy' in sys.modules)"
    )
    told = subprocess.run([sys.executable, "-c", reading], capture_output=True, text=True, check=True).stdout
    assert told.strip() == "[5, 6, 6] [] False"
