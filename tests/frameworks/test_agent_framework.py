"""Microsoft Agent Framework: real agents with a chat client of our own."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest
from agent_framework import (
    Agent,
    AgentSession,
    BaseChatClient,
    ChatResponse,
    Content,
    FunctionInvocationLayer,
    Message,
)

from lukasa import Lukasa, LukasaError, Workspace
from lukasa.frameworks import AgentFrameworkProvider
from tests.frameworks.conftest import ASKED, REPLY, TAUGHT, said_by_user


class Scripted(FunctionInvocationLayer, BaseChatClient):
    """A client that notes what it is asked, and answers from a list, at last with a text."""

    def __init__(self, *answers: Any) -> None:
        super().__init__()
        self.prompts: list[str] = []
        self.answers = list(answers)

    async def _inner_get_response(self, *, messages: Any, stream: bool, options: Any, **more: Any) -> Any:
        said = [
            f"{m.role}: {m.text} {[str(c.result) for c in m.contents if c.type == 'function_result']}" for m in messages
        ]
        self.prompts.append("\n".join([str(options.get("instructions") or ""), *said]))
        answer = self.answers.pop(0) if self.answers else REPLY
        if isinstance(answer, Exception):
            raise answer
        return ChatResponse(messages=[Message(role="assistant", contents=[answer])], response_id="r")


def tool_call(name: str, **arguments: Any) -> Content:
    return Content.from_function_call(call_id=f"c-{name}", name=name, arguments=json.dumps(arguments))


def run(world: Any, text: str, client: Scripted, user: str = "ada") -> str:
    agent = Agent(client, instructions="You cook.", context_providers=[AgentFrameworkProvider(world)])
    session = AgentSession()
    session.state["user"] = user
    return str(asyncio.run(agent.run(text, session=session)).text)


def test_the_second_session_knows_what_the_first_was_told(world: Workspace) -> None:
    """Frameworks: the prompt of another session holds the user's words, and the agent's own instructions."""
    first, second = Scripted(), Scripted()
    run(world, TAUGHT, first)
    assert TAUGHT not in first.prompts[0].partition("user: ")[0]
    assert run(world, ASKED, second) == REPLY
    assert TAUGHT in second.prompts[0]
    assert "You cook." in second.prompts[0]


def test_the_agents_tools_write_as_an_agent(world: Workspace) -> None:
    """Frameworks: what the model stores has an agent's trust; a wrong call tells the model what to change."""
    client = Scripted(
        tool_call("memory_put", content="The user likes dessert with plums"), tool_call("memory_forget", id="none")
    )
    run(world, "hello there", client)
    hit = world.read("plums")[0]
    assert (hit.content, str(hit.authority)) == ("The user likes dessert with plums", "inform")
    assert "error" in client.prompts[-1]


def test_users_do_not_mix(users: Callable[[str, str], Workspace]) -> None:
    """Frameworks: one provider serves two users, told apart by the state of their sessions."""
    prompts = {}
    for user, text in (("ada", TAUGHT), ("bob", ASKED), ("ada", ASKED)):
        client = Scripted()
        run(lambda session: users("cook", session.state["user"]), text, client, user)
        prompts[user] = client.prompts[0]
    assert (TAUGHT in prompts["ada"], TAUGHT in prompts["bob"]) == (True, False)


def test_a_model_that_fails_loses_nothing(world: Workspace) -> None:
    """Frameworks: the words are kept before the model is asked, and the model's error reaches the program."""
    with pytest.raises(ConnectionError):
        run(world, TAUGHT, Scripted(ConnectionError("away")))
    assert said_by_user(world) == [TAUGHT]


def test_an_error_of_memory_reaches_the_program(memory: Lukasa, world: Workspace) -> None:
    """Frameworks: memory that is closed fails the run; nobody swallows it."""
    memory.close()
    with pytest.raises(LukasaError):
        run(world, TAUGHT, Scripted())
