"""The second look: what the best matches name leads to what was asked."""

from __future__ import annotations

import pytest

from lukasa import Workspace

QUESTION = "Which city was the author of Misery born in?"
OTHERS = [
    f"{name} was born in the city of {city}"
    for name, city in (
        ("Ines Marlow", "Halden"),
        ("Jorun Vik", "Morra"),
        ("Tadeo Brand", "Kestrel"),
        ("Wilma Sand", "Vinst"),
        ("Oskar Lind", "Tornby"),
        ("Priya Nair", "Quill"),
    )
] + [
    f"The author of {book} is {name}"
    for book, name in (
        ("Dusk", "Ines Marlow"),
        ("The Mill", "Jorun Vik"),
        ("Salt Road", "Tadeo Brand"),
    )
]


@pytest.fixture
def world(world: Workspace) -> Workspace:
    for text in OTHERS:
        world.put("workspace", text)
    return world


def first(world: Workspace, question: str, **how: str) -> str:
    return world.read(question, count=False, profile=how.get("profile", "balanced"))[0].content


def test_a_question_over_two_facts_finds_the_second(world: Workspace) -> None:
    """R1: the birthplace of the author is first, though the question does not name the author."""
    world.put("workspace", "Stephen King was born in the city of Portland")
    world.put("workspace", "The author of Misery is Stephen King")
    assert first(world, QUESTION) == "Stephen King was born in the city of Portland"


def test_the_way_leads_over_what_holds_now(world: Workspace) -> None:
    """R1, P5: a fact that a later one replaces does not lead anywhere."""
    world.put("workspace", "Stephen King was born in the city of Portland")
    world.put("workspace", "Bram Aldous was born in the city of Esker")
    world.put("workspace", "The author of Misery is Stephen King")
    world.put("workspace", "The author of Misery is Bram Aldous")
    assert first(world, QUESTION) == "Bram Aldous was born in the city of Esker"


def test_why_tells_of_the_second_look(world: Workspace) -> None:
    """R8: the signal shows in the contributions and in `why`; a lean read takes no second look."""
    born = world.put("workspace", "Stephen King was born in the city of Portland").id
    world.put("workspace", "The author of Misery is Stephen King")
    (hit, *_) = world.read(QUESTION, count=False, profile="balanced")
    assert {c.signal: c.share for c in hit.score.match.contributions}["links"] > 0
    assert {v.step: v.outcome for v in world.why(QUESTION, born)}["links"] == "found"
    lean = world.read(QUESTION, count=False, profile="lean")
    assert all(c.share == 0 for h in lean for c in h.score.match.contributions if c.signal == "links")


def test_a_question_that_is_answered_is_left_alone(world: Workspace) -> None:
    """R1: a fact that holds all words of the question stays first, whatever it names."""
    world.put("workspace", "Stephen King was born in the city of Portland")
    world.put("workspace", "The author of Misery is Stephen King")
    assert first(world, "Who is the author of Misery?") == "The author of Misery is Stephen King"
    assert first(world, "Which city was Wilma Sand born in?") == "Wilma Sand was born in the city of Vinst"
