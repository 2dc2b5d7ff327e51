"""Corrections in chat: "actually March 12" is shown first, with what it corrects folded under it (S0, W4)."""

from __future__ import annotations

import pytest

from lukasa import Lukasa, Workspace
from lukasa.app import Settings
from lukasa.ports import Embedder
from lukasa.providers.chat.corrections import corrected
from lukasa.providers.embed import open_embedder
from tests.helpers import talk

DENTIST = "my dentist is called Dr. Weber"
CORRECTIONS = [
    "Hmm, the name was wrong, he is called Wagner", "I said Weber but it's Wagner", "Forgive me, Wagner is his name",
    "I mixed it up, it's Wagner", "that's outdated, now it's Wagner", "his name is Wagner, not Weber",
    "oh wait I confused the names: Wagner", "let me correct that: Wagner", "The right one is Dr. Wagner",
]  # fmt: skip
OTHER_THINGS = [
    "My sister is called Emma", "the bus was late again", "The train to Berlin leaves at 9", "Chapter 3 is done",
    "No problem at all, take your time", "no, chapter 4 is fine as it is", "the villain is called Malachar",
    "Actually I like the sea", "wait for me at the door", "It is 9 pm already", "Tom likes jazz", "not bad",
    "Actually, is Dr. Wagner my dentist?",
]  # fmt: skip


@pytest.fixture(scope="module")
def embedder() -> Embedder:
    opened = open_embedder("auto", Settings.resolve().models)
    assert opened is not None, "the default model is not installed: run `make model`"
    return opened


def test_a_correction_is_shown_first_and_the_earlier_one_under_it(memory: Lukasa, world: Workspace) -> None:
    """S0: the bare value is kept with the statement that it corrects, both word for word; both entries stay."""
    told = talk.say(
        memory, world, "Remember that the launch is on March 10.", "Actually, March 12.", "When is the launch?"
    )
    assert told.index("“the launch is on March 10. Actually, March 12.”") < told.index("(may no longer hold)")
    (hit,) = world.read("When is the launch?").hits
    assert hit.content == "the launch is on March 10. Actually, March 12."
    assert [one.content for one in hit.earlier] == ["the launch is on March 10."]
    assert [entry.state for entry in talk.facts(world)] == ["active", "active"]


def test_a_whole_sentence_stands_for_itself(memory: Lukasa, world: Workspace) -> None:
    """S0, W4: a correction with its own subject is stored as it was said."""
    talk.say(memory, world, "Remember that the launch is on March 10.", "Sorry, the launch is on April 2")
    (hit,) = world.read("When is the launch?").hits
    assert hit.content == "Sorry, the launch is on April 2"
    assert [one.content for one in hit.earlier] == ["the launch is on March 10."]


def test_what_memory_quoted_can_be_corrected(memory: Lukasa, world: Workspace) -> None:
    """S0: a statement of an earlier conversation is corrected once the chat has quoted it."""
    talk.say(memory, world, "Remember that the ferry leaves at 9.")
    talk.say(memory, world, "When does the ferry leave?", "No, at 10.")
    (hit,) = world.read("When does the ferry leave?").hits
    assert hit.content == "the ferry leaves at 9. No, at 10."


def test_without_anything_to_correct_nothing_is_stored_at_once(memory: Lukasa, world: Workspace) -> None:
    """W1: a word such as "actually" alone is no request."""
    with talk.agent(memory, world) as agent:
        answer = agent.turn("Actually, March 12.")
    assert answer.calls == ()
    assert talk.facts(world) == []


@pytest.mark.parametrize("said", CORRECTIONS)
def test_corrections_in_other_words(embedder: Embedder, said: str) -> None:
    """L3: wordings that no example holds are understood, and kept word for word after the statement."""
    text = corrected(said, DENTIST, embedder)
    assert text == f"{DENTIST}. {said}"


@pytest.mark.parametrize("said", OTHER_THINGS)
def test_a_message_about_something_else_corrects_nothing(embedder: Embedder, said: str) -> None:
    """W4: nothing is put under a statement that has another subject."""
    assert corrected(said, DENTIST, embedder) is None
    assert corrected(said, DENTIST, None) is None


def test_an_entry_to_correct_is_in_the_same_tier(world: Workspace) -> None:
    """W9: a text corrects an entry of its own tier; another one is refused with what to do."""
    first = world.put("workspace", "The launch is on March 10")
    second = world.put("workspace", "Make it the week after", corrects=first.id)
    assert second.beside == (first.id,)
    with pytest.raises(Exception, match="to replace or correct") as refused:
        world.put("account", "Make it the week after that", corrects=first.id)
    assert "tier of that entry" in str(getattr(refused.value, "fix", ""))
