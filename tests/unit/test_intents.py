"""Requests in words that nobody listed: what is kept, how, and that the statement stays as it was said (L3)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lukasa.app import Settings
from lukasa.model import wordings
from lukasa.model.errors import EmbedderError
from lukasa.model.intents import Intent, understand
from lukasa.ports import Embedder
from lukasa.providers.embed import open_embedder
from tests.fakes import FakeEmbedder

# Clauses and questions that are in no example and were not used to choose the examples: the thresholds are chosen here.
HELD_APART = {
    "keep": [
        "please bear it in mind for me", "be sure to retain it", "store that somewhere safe", "keep it handy",
        "you'd better write this one down", "this is something you should know from now on", "have a record of this",
        "make sure that you don't lose it", "put this away for another day", "I'd hate to tell you this twice",
    ],
    "account": ["in every place I use you", "whatever project I am in", "across the board, in all workspaces"],
    "conversation": [
        "for today's conversation only", "until we say goodbye", "you can erase it when this chat ends",
        "it has no meaning after we hang up",
    ],
    "short_term": ["for some days", "only for this month or so", "it will be over soon, so keep it briefly"],
    "private": ["stay quiet about it towards the other assistants", "let no other agent read this"],
    "content": [
        "The dragon sleeps under the mountain", "I hold a licence for boats", "my aunt stores apples in the cellar",
        "She said goodbye at the station", "I will be in Paris for a week", "Nobody at work knows that I paint",
        "the treaty was kept for a hundred years", "I usually write at night", "The harbour master records every ship",
        "my phone number changed", "it's cold today", "The last scene should be longer", "he lost track of time",
        "take the second exit", "the bakery opens at six", "we sold the piano", "my boss speaks Danish",
        "the bridge was rebuilt last year", "put the kettle on", "this sentence is too long", "it makes no sense to me",
    ],
}  # fmt: skip
QUESTIONS = {
    "overview": ["what's on record?", "so what have you noted?", "anything you know already?",
                 "fill me in on this workspace", "what have we collected so far?", "list what you've saved"],
    "count": ["what's the sum now?", "how many does that come to?", "and what am I at?"],
    "last_time": ["What did we do in the last session?", "how did we finish the other day?"],
    "topic": ["who wrote the letter?", "where did I park?", "what do I like?", "what have I written about the war?",
              "do you know a villain named Malachar?", "when does the ferry leave?", "what's my name?",
              "do you have anything about the budget?", "who feeds the cat on Sundays?"],
}  # fmt: skip


@pytest.fixture(scope="module")
def embedder() -> Embedder:
    opened = open_embedder("auto", Settings.resolve().models)
    assert opened is not None, "the default model is not installed: run `make model`"
    return opened


@pytest.mark.parametrize(
    ("group", "ordinary", "held"), [("clauses", "content", HELD_APART), ("questions", "topic", QUESTIONS)]
)
def test_the_examples_carry_over(embedder: Embedder, group: str, ordinary: str, held: dict[str, list[str]]) -> None:
    """L3: no ordinary text is taken for a request, and most requests in other words are understood."""
    told = [
        (label, wordings.label(group, text, embedder, ordinary), text)
        for label, texts in held.items()
        for text in texts
    ]
    assert [row for row in told if row[0] == ordinary != row[1]] == []
    wanted = [row for row in told if row[0] != ordinary]
    assert sum(label == found for label, found, _ in wanted) >= 0.7 * len(wanted), told


@pytest.mark.parametrize("texts", wordings.examples().values())
def test_the_examples_are_apart_from_those_of_the_test(texts: dict[str, list[str]]) -> None:
    """L3: what measures a threshold is not what fits the classifier."""
    apart = {text for held in (HELD_APART, QUESTIONS) for some in held.values() for text in some}
    assert not apart & {text for some in texts.values() for text in some}


@pytest.mark.parametrize(
    ("said", "content", "properties"),
    [
        ("The mill wheel is oak. Would you hold on to that?", "The mill wheel is oak.", {}),
        ("For everything I do with you: remember I write dates as 2031-05-02.", "I write dates as 2031-05-02.", {}),
        ("Keep in mind for all of my projects that I hate Mondays", "I hate Mondays", {"reach": "account"}),
        ("As long as this chat lasts, note: the hero is tired.", "the hero is tired.", {"reach": "conversation"}),
        ("Only until we're finished: call me Ishmael.", "call me Ishmael.", {"reach": "conversation"}),
        (
            "The bins go out on Tuesday; keep that for a week or two.",
            "The bins go out on Tuesday",
            {"lifetime": "short_term"},
        ),
        ("My PIN hint is blue, and that stays between us.", "My PIN hint is blue", {"private": True}),
        ("No big deal, but please note: the tea is cold.", "the tea is cold.", {}),
        ("This is vital, remember it: never wake the bear.", "never wake the bear.", {"importance": 0.9}),
        ("Schreib dir das bitte auf: der Müll kommt dienstags.", "der Müll kommt dienstags.", {}),
        (
            "Der Müll kommt dienstags. Behalte das dauerhaft im Kopf.",
            "Der Müll kommt dienstags.",
            {"lifetime": "long_term"},
        ),
    ],
)
def test_requests(said: str, content: str, properties: dict[str, object]) -> None:
    """L3: clauses about the note set its properties; the statement is kept word for word, by words alone."""
    asked = understand(said).asked
    assert asked is not None
    assert asked.content == content
    assert {name: getattr(asked, name) for name in properties} == properties


@pytest.mark.parametrize(
    "said",
    [
        "I told him to remember it.",
        "She asked me to keep it to myself.",
        "We only talk about work in this chat.",
        "Save the file.",
        "Fix the bug, then commit it.",
        "Write a scene about the storm, and keep it short.",
        "I share a flat with my brother, just for now.",
        "In this workspace, tests run with make.",
        "The count lives in a castle.",
        "This project is important to me.",
        "Make it darker, and keep the dragon.",
        "The chat went well, and all of it was private.",
    ],
)
@pytest.mark.parametrize("by", ["words", "examples"])
def test_ordinary_text_is_no_request(said: str, by: str, embedder: Embedder) -> None:
    """W1: nothing is stored that nobody asked to store."""
    assert understand(said, embedder if by == "examples" else None) == Intent()


@pytest.mark.parametrize(
    ("said", "target"),
    [
        ("Please forget everything about my sister.", "my sister"),
        ("Could you forget what I said about the dentist?", "the dentist"),
        ("Delete the note about the dentist", "the dentist"),
        ("Vergiss bitte alles über den Zahnarzt", "den Zahnarzt"),
        ("Forget it", "it"),
    ],
)
def test_requests_to_forget(said: str, target: str) -> None:
    """L3: what is to be forgotten, without the words of the request."""
    assert understand(said).forget == target


@pytest.mark.parametrize("said", ["Remove the last line.", "Don't forget the milk.", "I never forget", "Drop the mic!"])
def test_not_every_removal_is_of_a_memory(said: str) -> None:
    """L3: files, lines and figures of speech are not in memory."""
    assert understand(said).forget is None


@pytest.mark.parametrize("said", ["Please don't store that.", "My aunt is ill. No need to remember this."])
def test_a_request_not_to_keep(said: str) -> None:
    """L3: it is not a request to remember."""
    assert understand(said) == Intent(declined=True)


def test_without_the_embedder_words_are_enough() -> None:
    """L3: an embedder that fails, or whose floor nobody has measured, changes nothing."""
    broken = FakeEmbedder(64)
    broken.fail = True
    said = "The mill wheel is oak. Please remember it."
    assert understand(said, broken) == understand(said, FakeEmbedder(64)) == understand(said)

    class Measured(FakeEmbedder):
        @property
        def model(self):  # type: ignore[no-untyped-def]
            from msgspec.structs import replace

            return replace(super().model, floor=0.5)

    failing = Measured(64)
    failing.fail = True
    with pytest.raises(EmbedderError):
        failing.embed_query("x")
    assert wordings.label("clauses", "stash that away", failing, "content") == "content"


@given(st.text(max_size=300))
def test_a_statement_is_always_part_of_the_message(said: str) -> None:
    """W2: whatever is said, the content is a stretch of it; only the case of its first letter may differ."""
    asked = understand(said).asked
    if asked is not None and asked.content:
        assert asked.content[1:] in said
