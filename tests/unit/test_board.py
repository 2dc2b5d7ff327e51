"""The board: where beads are, that they stay there, and what topics are called."""

from __future__ import annotations

import math

import numpy as np

from lukasa.read.board import HIGH, WIDE, Layout, layout

TOPICS = ("Deploys of the API go out on {}", "Marta reads the contract with {}", "Tests of the ledger freeze {}")


def memories(count: int) -> list[str]:
    return [TOPICS[n % 3].format(f"item{n}") for n in range(count)]


def places(made: Layout) -> list[tuple[float, float]]:
    return list(zip(made.x, made.y, strict=True))


def test_the_same_memory_is_laid_out_the_same() -> None:
    """U5: the board is a function of memory, so two processes and two days draw the same picture."""
    assert layout(memories(70)) == layout(memories(70))


def test_beads_stay_where_they_are_when_more_come() -> None:
    """U5: until memory has doubled, no bead leaves its topic, and none moves farther than its topic grows."""
    before, after = layout(memories(64)), layout(memories(100))
    names_before = [before.spots[one].label for one in before.topic]
    names_after = [after.spots[one].label for one in after.topic[:64]]
    assert names_before == names_after
    moved = [math.dist(one, other) for one, other in zip(places(before), places(after)[:64], strict=True)]
    assert max(moved) < 60
    assert before.apart == after.apart


def test_beads_are_on_the_board_and_topics_apart() -> None:
    """U5: with 1, 5, 60 and 5,000 beads, all of them are inside, and no topic is over another."""
    for count in (1, 5, 60, 5000):
        made = layout(memories(count))
        assert len(made.x) == count
        assert all(0 <= x <= WIDE and 0 <= y <= HIGH for x, y in places(made))
        for n, one in enumerate(made.spots):
            for other in made.spots[n + 1 :]:
                far = math.dist((one.x, one.y), (other.x, other.y))
                assert far > 0.85 * (one.radius + other.radius), (count, one, other)


def test_what_is_about_one_thing_is_together_and_named_by_it() -> None:
    """U5: without vectors, words tell; the label is a word that most of a topic have, spelled as they spell it."""
    texts = memories(48)
    made = layout(texts)
    alike = sum(made.topic[n] == made.topic[n + 3] for n in range(len(texts) - 3)) / (len(texts) - 3)
    assert alike > 0.6
    labels = {spot.label for spot in made.spots}
    assert labels & {"Marta", "contract", "reads"}
    assert "of" not in labels
    assert len(labels) == len(made.spots)


def test_vectors_decide_where_they_are_known() -> None:
    """U5: like vectors share a topic whatever their words say; a text without one goes where its words are."""
    east, west = np.array([1.0, 0, 0], dtype=np.float32), np.array([0, 1.0, 0], dtype=np.float32)
    texts = [f"word{n} alone{n}" for n in range(16)]
    vectors = {n: east if n % 2 else west for n in range(16)}
    made = layout([*texts, "word1 again"], vectors)
    assert len({made.topic[n] for n in range(16) if n % 2} & {made.topic[n] for n in range(16) if not n % 2}) == 0
    assert made.topic[16] == made.topic[1]


def test_nothing_is_an_empty_board() -> None:
    """U5: a new workspace has a board too."""
    assert layout([]).spots == ()
