"""What a new text may repeat is found by its words, and how near it is by vectors, whatever happened to the room."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apsw
import numpy as np
import pytest

from lukasa.index.matches import NeighbourQuery, NewText
from lukasa.model.entry import Entry
from lukasa.model.statements import content_words
from lukasa.model.values import State
from lukasa.ports import EmbeddingModel, Vector
from lukasa.storage.operations import DropEntry
from lukasa.storage.sqlite import SqliteStore, sql
from tests.helpers.stores import WORK, commit, entry, move, put, stored

MODEL = EmbeddingModel("wide", 64, "x")
HERE = NeighbourQuery(WORK, "shared", MODEL, None, 12)
COMMON = "garden river stone winter market candle harbour meadow lantern orchard".split()


class Both:
    """A store, and what should be in it."""

    def __init__(self, store: SqliteStore, seed: int = 0) -> None:
        self.store = store
        self.texts: dict[str, str] = {}
        self.vectors: dict[str, Vector] = {}
        self.dice = random.Random(seed)

    def vector(self) -> Vector:
        drawn: Vector = np.random.default_rng(self.dice.randrange(2**32)).standard_normal(64).astype(np.float32)
        return drawn

    def add(self, count: int) -> None:
        """Texts of common words, some with one that hardly any other has."""
        made = []
        for _ in range(count):
            words = self.dice.sample(COMMON, self.dice.randint(2, 4))
            if self.dice.random() < 0.4:
                words.append(f"item{self.dice.randrange(40)}")
            words.append(f"n{self.dice.randrange(2**40)}")  # no text twice
            made.append((entry(" ".join(words)), self.vector()))
        commit(self.store, *(put(e, vector, MODEL) for e, vector in made))
        self.texts |= {e.id: e.content for e, _ in made}
        self.vectors |= {e.id: vector for e, vector in made}

    def entry(self, id: str) -> Entry:
        return stored(self.store, entry(id=id))

    def compare(self, asked: list[str], *, together: bool) -> None:
        """What the store says of texts, and what all texts and vectors say."""
        newcomers = [NewText(text, self.vector()) for text in asked]
        ask = self.store.neighbours
        answers = ask(HERE, newcomers) if together else [ask(HERE, [newcomer])[0] for newcomer in newcomers]
        for newcomer, found in zip(newcomers, answers, strict=True):
            near = [n for n in found if n.cosine is not None]
            wanted = set(content_words(newcomer.content))
            holding = [id for id, text in self.texts.items() if wanted.issubset(content_words(text))][-HERE.limit :]
            cosines = {id: _cosine(self.vectors[id], newcomer.vector) for id in holding}
            assert {n.entry.id for n in near} == set(holding)
            assert all(abs((n.cosine or 0.0) - cosines[n.entry.id]) < 1e-5 for n in near)
            assert [n.cosine for n in near] == sorted([n.cosine or 0.0 for n in near], reverse=True)

    def sample(self) -> list[str]:
        """Texts that are there, parts of them, and some that nothing repeats."""
        there = [self.texts[id] for id in self.dice.sample(sorted(self.texts), 4)]
        parts = [" ".join(text.split()[:-1]) for text in there]
        single = self.dice.choice(COMMON)
        return [*there, *parts, f"the {single} now", f"{single} and nothing known", "item7 is actually here"]


def _cosine(a: Vector, b: Vector | None) -> float:
    assert b is not None
    return float(a @ b / np.linalg.norm(a) / np.linalg.norm(b))


@pytest.fixture
def both(tmp_path: Path) -> Iterator[Both]:
    both = Both(SqliteStore(tmp_path / "store", role="workspace", create=True))
    yield both
    both.store.close()


@pytest.mark.parametrize("together", [True, False])
def test_copies_are_found_whatever_happened_to_the_room(both: Both, together: bool) -> None:
    """W3: in rooms where words are rare and where all are common, after others came and went; one by one and all at
    once."""
    for count in (6, 40, 90, 1, 160):
        both.add(count)
        both.compare(both.sample(), together=together)
        gone, held = both.dice.sample(sorted(both.texts), 2)
        commit(both.store, DropEntry(gone, 1, "gone"), move(both.entry(held), State.HELD))
        texts = [both.texts.pop(id) for id in (gone, held)]
        both.compare([*texts, *both.sample()], together=together)


def test_words_are_asked_for_as_far_as_needed(both: Both) -> None:
    """W3: one that looks rare and is, and no other; where none is, each once, and then the rarest of them together
    until few rows are left to look at."""
    both.add(400)
    known = next(text for text in both.texts.values())
    asked = [
        (known, [1]),
        ("lantern garden zebra7 market unheard", [1]),
        ("garden river", [1, 1, 2]),
        ("garden river", [2]),
        ("stone market", [1, 1, 2]),
        ("garden river stone market", [2, 4]),
        (known, [1]),
    ]
    for text, expected in asked:
        assert words_asked(both, text) == expected


def words_asked(both: Both, text: str) -> list[int]:
    """How many words are looked for together, question by question; and no more rows are read than are to be."""
    run: list[tuple[str, Any]] = []

    def traced(_: apsw.Cursor, statement: str, bindings: Any) -> bool:
        run.append((statement, bindings))
        return True

    with both.store._connections.reading() as db:
        db.exec_trace = traced
        both.store.neighbours(HERE, [NewText(text, both.vector())])
        db.exec_trace = None
    assert [statement for statement, _ in run].count(sql.TERMS_OF_ROW) <= 32
    return [bindings[0].count('"') // 2 for statement, bindings in run if statement == sql.NEWEST_ROWS_OF]


def test_what_has_no_vector_is_compared_with_nothing(both: Both) -> None:
    """W3: neither a text without a vector nor one among others that have one of another model."""
    both.add(5)
    commit(both.store, put(entry("garden river"), None))
    (found,) = both.store.neighbours(HERE, [NewText("river garden", both.vector())])
    assert [n for n in found if n.cosine is not None] == []
    (found,) = both.store.neighbours(HERE, [NewText(next(iter(both.texts.values())) + " now", None)])
    assert [n for n in found if n.cosine is not None] == []


def test_another_process_is_seen(both: Both, tmp_path: Path) -> None:
    """W3: what others put is compared with, from the next put on."""
    both.add(60)
    both.compare(both.sample(), together=True)
    other = Both(SqliteStore(tmp_path / "store", role="workspace", create=False), seed=40)
    other.add(30)
    both.texts |= other.texts
    both.vectors |= other.vectors
    both.compare(other.sample(), together=False)
    other.store.close()


def test_an_earlier_view_is_told_what_it_sees(both: Both) -> None:
    """T31: another thread has written more than this one's view of the database holds."""
    both.add(60)
    with both.store.snapshot():
        both.compare(both.sample(), together=True)
        later = Both(both.store, seed=9)
        thread = threading.Thread(target=later.add, args=(20,))
        thread.start()
        thread.join()
        both.compare([*both.sample(), *later.texts.values()], together=True)
    both.texts |= later.texts
    both.vectors |= later.vectors
    both.compare(list(later.texts.values()), together=True)
