"""Hearing: what a user says is kept as it is said, where no session ends."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from lukasa import Lukasa, Trust, Workspace
from lukasa.frameworks import by_model_or_rules, for_users, remember
from lukasa.model.errors import ChatUnavailable
from lukasa.ports import Reply
from lukasa.service.sessions.distill import Turn
from lukasa.service.sessions.hearing import beside, hear


@pytest.fixture
def world() -> Workspace:
    return Lukasa.open(in_memory=True, embedder="none").workspace("kitchen")


def kept(world: Workspace) -> list[tuple[str, str]]:
    """What memory holds, each with its kind."""
    return sorted((entry.content, str(entry.kind)) for entry in world.entries("workspace"))


def test_what_a_user_says_is_kept_once(world: Workspace) -> None:
    """Sessions: facts are entries, other statements episodes; a message heard again changes nothing."""
    said = [Turn("user", "Hi! I'm Ada. I'm allergic to peanuts. What shall I cook?"), Turn("user", "I hate coriander")]
    for _ in range(3):
        hear(world, said)
    facts = [("I'm allergic to peanuts.", "procedural"), ("Hi! I'm Ada.", "episodic"), ("I hate coriander", "episodic")]
    assert kept(world) == sorted(facts)
    assert {entry.merged_count for entry in world.entries("workspace")} == {1}


@pytest.mark.parametrize(
    "text",
    [
        "What is the capital of France?",
        "hi",
        "ok, go on",
        "   ",
        "Please don't remember this: the party is on Monday",
        "Forget that I hate coriander",
        "Was kochen wir heute? Und wann?",
    ],
)
def test_what_says_nothing_is_not_kept(world: Workspace, text: str) -> None:
    """Sessions: questions, greetings, requests to forget and what the user does not want kept become nothing."""
    remember(world, text)
    assert kept(world) == []


def test_the_agents_words_are_not_heard(world: Workspace) -> None:
    """Sessions: what an assistant says may be memory read back."""
    assert hear(world, [Turn("assistant", "You are allergic to peanuts.")]).written == ()
    assert kept(world) == []


def test_what_was_forgotten_stays_forgotten_until_it_is_said_again(world: Workspace) -> None:
    """Sessions: an old message that is handed in again brings nothing back; a new one does."""
    old = datetime(2026, 1, 1, tzinfo=UTC)
    (written,) = hear(world, [Turn("user", "I hate coriander", old)]).written
    assert written.entry is not None
    world.forget(written.entry.id)
    hear(world, [Turn("user", "I hate coriander", old)])
    assert kept(world) == []
    hear(world, [Turn("user", "I hate coriander")])
    assert [content for content, _ in kept(world)] == ["I hate coriander"]


def test_trust_is_the_handles_and_secrets_are_marks(world: Workspace) -> None:
    """Sessions: a lowered handle writes with its trust, the speaker is the source, and no key is stored."""
    remember(world.acting(trust=Trust.IMPORTED), "The cellar has a second oven", speaker="Tom")
    remember(world, "The api key is sk-ant-api03-abcdefghijklmnopqrstuvwxyz0123456789 for staging")
    oven = next(entry for entry in world.entries("workspace") if "oven" in entry.content)
    assert (oven.trust, oven.source) == (Trust.IMPORTED, "Tom")
    assert "sk-ant" not in str(kept(world))


def test_a_text_that_is_refused_is_listed_and_stops_no_other(world: Workspace) -> None:
    """Sessions: a message that is too long is in the result with its reason; the others are kept."""
    heard = hear(world, [Turn("user", "word " * 30_000), Turn("user", "The cellar has a second oven")])
    assert [refused.code for refused in heard.refused] == ["invalid-content"]
    assert [content for content, _ in kept(world)] == ["The cellar has a second oven"]


class Away:
    """A language model that never answers."""

    name = "away"

    def reply(self, *given: object, **more: object) -> Reply:
        raise ChatUnavailable("the model is away")


def test_a_model_that_is_away_loses_nothing(world: Workspace) -> None:
    """Sessions: where a model finds the facts and gives no answer, rules find them."""
    remember(world, "I'm allergic to peanuts.", distil=by_model_or_rules(Away()))
    assert kept(world) == [("I'm allergic to peanuts.", "procedural")]


def test_what_is_beside_the_facts() -> None:
    """Sessions: a statement that ends with a question mark asks; lines of code are no sentences."""
    assert beside("We moved to Graz. Is it far?\n```\nprint(1)\n```", ()) == "We moved to Graz."


def test_names_of_users_cannot_be_written_as_one_another() -> None:
    """Tenants: each pair of an application and a user has a memory of its own, whatever characters are in the names."""
    users = for_users(Lukasa.open(in_memory=True, embedder="none"))
    pairs = [("a", "b/c"), ("a/b", "c"), ("a%2Fb", "c"), ("a", "b c"), ("A", "b c"), ("a", "ü"), ("a", "..")]
    assert len({users(app, user).id for app, user in pairs}) == len(pairs)
