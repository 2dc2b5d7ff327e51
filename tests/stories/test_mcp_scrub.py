"""Removing for good over MCP: the owner alone, who said so at the start, by what they type (H1, H3, T42)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import mcp_types as types
import pytest
from mcp.client import Client

from lukasa import Lukasa
from lukasa.model.grant import FOR_GOOD
from tests.helpers.cli import Shell
from tests.helpers.mcp import EVERYTHING, called, piped, reached, refused, session

CAN = ("--as", "owner", "--can", "read,write,scrub_plan,scrub_full")
WHAT = {"mode": "full", "tier": "workspace"}
EXECUTE = "memory_scrub_execute"

Answer = Callable[[str], types.ElicitResult]


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    made = Shell(tmp_path / "data")
    with opened(made) as memory:
        memory.workspace("main").put("workspace", "The villain is called Malachar.")
    return made


def opened(shell: Shell) -> Lukasa:
    return Lukasa.open(shell.data, embedder="none", principal="ada")


def kept(shell: Shell) -> list[str]:
    with opened(shell) as memory:
        return [entry.content for entry in memory.workspace("main").entries("workspace", everything=True)]


class Person:
    """Who sits before a client: hears each question and gives the same answer."""

    def __init__(self, answer: Answer) -> None:
        self.heard: list[str] = []
        self._answer = answer

    async def __call__(self, context: Any, params: types.ElicitRequestParams) -> types.ElicitResult:
        self.heard.append(params.message)
        return self._answer(params.message)


def said(text: str) -> types.ElicitResult:
    return types.ElicitResult(action="accept", content={"confirm": text})


def willing() -> Person:
    """Types what they are asked to type."""
    return Person(lambda question: said(question.split()[-1]))


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_by_the_digest_of_what_is_there(shell: Shell, mode: str) -> None:
    """H1, H2, U3: another digest and a plan that is out of date are refused; today's is done, and the log says so."""

    async def work(client: Client) -> None:
        assert EXECUTE in await reached(client)
        assert "digest does not match" in await refused(client, EXECUTE, **WHAT, confirm="f" * 64)
        plan = await called(client, "memory_scrub_plan", **WHAT)
        await called(client, "memory_put", content="The harbour freezes in January.")
        assert "digest does not match" in await refused(client, EXECUTE, **WHAT, confirm=plan["digest"])
        assert len((await called(client, "memory_list"))["entries"]) == 2
        plan = await called(client, "memory_scrub_plan", **WHAT)
        done = await called(client, EXECUTE, **WHAT, confirm=plan["digest"][:12])
        assert done["manifest"] == plan

    session(lambda: piped(shell, *CAN, mode=mode, person=willing()), work)
    assert kept(shell) == []
    with opened(shell) as memory:
        (event,) = memory.workspace("main").events(action="scrub.executed")
        assert (event.actor.surface, event.actor.transport) == ("mcp", "stdio")
        assert memory.workspace("main").verify() == []


def test_a_conversation(shell: Shell) -> None:
    """H1, H3: a thread is purged by the one who may purge threads, who may scrub no tier with that."""

    async def work(client: Client) -> None:
        talk = (await called(client, "conversation_start"))["id"]
        purge = {"mode": "purge_thread", "conversation": talk}
        plan = await called(client, "memory_scrub_plan", **purge)
        whole = await called(client, "memory_scrub_plan", **WHAT)
        assert "does not include 'scrub_full'" in await refused(client, EXECUTE, **WHAT, confirm=whole["digest"])
        assert (await called(client, EXECUTE, **purge, confirm=plan["digest"]))["manifest"] == plan

    options = ("--as", "owner", "--can", "conversations,scrub_plan,scrub_purge_thread")
    session(lambda: piped(shell, *options, person=willing()), work)
    assert len(kept(shell)) == 1


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_a_client_without_a_person_does_nothing(shell: Shell, mode: str) -> None:
    """T42: where nobody can be asked, the right digest from the model is not enough."""

    async def work(client: Client) -> None:
        plan = await called(client, "memory_scrub_plan", **WHAT)
        assert "cannot ask its person" in await refused(client, EXECUTE, **WHAT, confirm=plan["digest"])

    session(lambda: piped(shell, *CAN, mode=mode), work)
    assert len(kept(shell)) == 1


@pytest.mark.parametrize(
    "options",
    [(), ("--as", "owner"), ("--can", ",".join(EVERYTHING)), ("--as", "owner", "--can", "read,scrub_plan")],
    ids=" ".join,
)
def test_nobody_else_is_offered_it(shell: Shell, options: tuple[str, ...]) -> None:
    """T42, X4: whoever is merely connected cannot: no agent with all that can be granted, no owner who did not say."""
    with opened(shell) as memory:
        digest = memory.workspace("main").scrub_plan("workspace").digest

    async def work(client: Client) -> None:
        assert EXECUTE not in await reached(client)
        told = await refused(client, EXECUTE, **WHAT, confirm=digest)
        assert "does not include" in told or "only the owner" in told

    person = Person(lambda question: said(digest))
    session(lambda: piped(shell, *options, person=person), work)
    assert len(kept(shell)) == 1
    assert person.heard == []


def test_no_token_is_enough(shell: Shell) -> None:
    """T42: a grant's token, with every way to scrub granted, is an agent's over a pipe too."""
    with opened(shell) as memory:
        digest = memory.workspace("main").scrub_plan("workspace").digest
        token = memory.access.create("claude", workspaces=["main"], can=sorted(FOR_GOOD)).token

    async def work(client: Client) -> None:
        assert EXECUTE not in await reached(client)
        assert "only the owner" in await refused(client, EXECUTE, **WHAT, confirm=digest)

    session(lambda: piped(shell, "--token-env", "MY_TOKEN", MY_TOKEN=token), work)
    assert len(kept(shell)) == 1


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_a_person_who_can_be_asked_is(shell: Shell, mode: str) -> None:
    """T42, H1: they are told what would go, and what they type counts."""
    person = willing()

    async def work(client: Client) -> None:
        plan = await called(client, "memory_scrub_plan", **WHAT)
        assert "digest does not match" in await refused(client, EXECUTE, **WHAT, confirm="f" * 64)
        assert person.heard == []
        assert (await called(client, EXECUTE, **WHAT, confirm=plan["digest"]))["manifest"] == plan
        (question,) = person.heard
        assert question.startswith("Remove for good from workspace main: tier workspace, full\n- 1 entries")
        assert question.endswith(f"There is no undo. To confirm, type {plan['digest'][:12]}")

    session(lambda: piped(shell, *CAN, mode=mode, person=person), work)
    assert kept(shell) == []


@pytest.mark.parametrize("mode", ["auto", "legacy"])
@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (types.ElicitResult(action="decline"), "did not confirm"),
        (types.ElicitResult(action="cancel"), "did not confirm"),
        (said("yes, all of it, please"), "digest does not match"),
        (said(""), "confirm: "),
        (types.ElicitResult(action="accept"), "confirm: "),
        (types.ElicitResult(action="accept", content={"confirm": True}), "confirm: "),
    ],
    ids=["decline", "cancel", "other", "empty", "nothing", "no text"],
)
def test_a_model_does_not_answer_for_them(shell: Shell, mode: str, answer: types.ElicitResult, told: str) -> None:
    """T42, B2: with the right digest from the model, whatever the person does but type it stops it."""
    person = Person(lambda question: answer)

    async def work(client: Client) -> None:
        plan = await called(client, "memory_scrub_plan", **WHAT)
        assert told in await refused(client, EXECUTE, **WHAT, confirm=plan["digest"])

    session(lambda: piped(shell, *CAN, mode=mode, person=person), work)
    assert len(kept(shell)) == 1
    assert len(person.heard) == 1
