"""Pydantic AI: real agents with its function model."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from lukasa import Lukasa, LukasaError, Workspace
from lukasa.frameworks import PydanticAIMemory
from tests.frameworks.conftest import ASKED, REPLY, TAUGHT, said_by_user


class Scripted:
    """A model that notes what it is asked, and answers from a list, at last with a text."""

    def __init__(self, *answers: Any) -> None:
        self.prompts: list[str] = []
        self.messages: list[str] = []
        self.answers = list(answers)
        self.model = FunctionModel(self.reply)

    def reply(self, messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        self.prompts.append(info.instructions or "")
        self.messages.append(str(messages[-1].parts))
        answer = self.answers.pop(0) if self.answers else TextPart(REPLY)
        if isinstance(answer, Exception):
            raise answer
        return ModelResponse(parts=[answer])


def run(world: Any, text: str, script: Scripted, **more: Any) -> str:
    agent = Agent(script.model, instructions="You cook.", deps_type=str, capabilities=[PydanticAIMemory(world)])
    return str(asyncio.run(agent.run(text, **more)).output)


def test_the_second_session_knows_what_the_first_was_told(world: Workspace) -> None:
    """Frameworks: the prompt of another session holds the user's words, and the agent's own instructions."""
    first, second = Scripted(), Scripted()
    run(world, TAUGHT, first)
    assert TAUGHT not in first.prompts[0]
    assert run(world, ASKED, second) == REPLY
    assert TAUGHT in second.prompts[0]
    assert "You cook." in second.prompts[0]


def test_the_agents_tools_write_as_an_agent(world: Workspace) -> None:
    """Frameworks: what the model stores has an agent's trust; a wrong call tells the model what to change."""
    put = ToolCallPart("memory_put", {"content": "The user likes dessert with plums"})
    script = Scripted(put, ToolCallPart("memory_put", {"content": ""}))
    run(world, "hello there", script)
    hit = world.read("plums")[0]
    assert (hit.content, str(hit.authority)) == ("The user likes dessert with plums", "inform")
    assert "error" in script.messages[-1]


def test_users_at_the_same_time_do_not_mix(users: Callable[[str, str], Workspace]) -> None:
    """Frameworks: one agent runs for two users at once, and neither prompt holds the other's words."""
    script = Scripted()
    memory = PydanticAIMemory(lambda user: users("cook", user))
    agent = Agent(script.model, deps_type=str, capabilities=[memory])
    asyncio.run(agent.run(TAUGHT, deps="ada"))

    async def both() -> None:
        await asyncio.gather(*[agent.run(f"{ASKED} asks {user}", deps=user) for user in ("ada", "bob")])

    asyncio.run(both())
    asked = zip(script.messages[1:], script.prompts[1:], strict=True)
    seen = {("ada" if "asks ada" in message else "bob"): TAUGHT in prompt for message, prompt in asked}
    assert seen == {"ada": True, "bob": False}


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
