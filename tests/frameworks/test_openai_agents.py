"""OpenAI Agents SDK: real runs with a model of our own."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any
from uuid import uuid4

import pytest
from agents import Agent, Model, ModelResponse, RunConfig, Runner, SQLiteSession, Usage
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText

from lukasa import Lukasa, LukasaError, Workspace
from lukasa.frameworks import OpenAIAgentsMemory
from tests.frameworks.conftest import ASKED, REPLY, TAUGHT, said_by_user

QUIET = RunConfig(tracing_disabled=True)


class Scripted(Model):
    """A model that notes what it is asked, and answers from a list, at last with a text."""

    def __init__(self, *answers: Any) -> None:
        self.prompts: list[str] = []
        self.inputs: list[Any] = []
        self.answers = list(answers)

    async def get_response(self, system_instructions: str | None, input: Any, *given: Any, **more: Any) -> Any:
        self.prompts.append(system_instructions or "")
        self.inputs.append(input)
        answer = self.answers.pop(0) if self.answers else REPLY
        if isinstance(answer, Exception):
            raise answer
        if isinstance(answer, str):
            text = ResponseOutputText(text=answer, type="output_text", annotations=[])
            answer = ResponseOutputMessage(id="m", role="assistant", status="completed", type="message", content=[text])
        return ModelResponse(output=[answer], usage=Usage(), response_id=None)

    def stream_response(self, *given: Any, **more: Any) -> Any:
        raise NotImplementedError


def tool_call(name: str, **arguments: Any) -> ResponseFunctionToolCall:
    id = uuid4().hex
    return ResponseFunctionToolCall(arguments=json.dumps(arguments), call_id=id, name=name, type="function_call", id=id)


def run(memory: OpenAIAgentsMemory, text: str, model: Scripted, **more: Any) -> Any:
    agent = Agent("cook", instructions=memory.instructions("You cook."), tools=memory.tools(), model=model)
    return asyncio.run(Runner.run(agent, text, run_config=QUIET, **more))


def test_the_second_session_knows_what_the_first_was_told(world: Workspace) -> None:
    """Frameworks: the prompt of another session holds the user's words, and the agent's own instructions."""
    first, second = Scripted(), Scripted()
    run(OpenAIAgentsMemory(world), TAUGHT, first, session=SQLiteSession("one"))
    assert TAUGHT not in first.prompts[0]
    run(OpenAIAgentsMemory(world), ASKED, second, session=SQLiteSession("two"))
    assert second.prompts[0].startswith("You cook.")
    assert TAUGHT in second.prompts[0]
    assert TAUGHT not in str(second.inputs[0])


def test_the_agents_tools_write_as_an_agent(world: Workspace) -> None:
    """Frameworks: what the model stores has an agent's trust; a wrong call tells the model what to change."""
    model = Scripted(tool_call("memory_put", content="The user likes dessert with plums"), tool_call("memory_put"))
    run(OpenAIAgentsMemory(world), "hello there", model)
    hit = world.read("plums")[0]
    assert (hit.content, str(hit.authority)) == ("The user likes dessert with plums", "inform")
    assert "invalid-input" in str(model.inputs[-1])


def test_a_run_with_tools_makes_its_context_once(world: Workspace) -> None:
    """Frameworks: each call of the model in a run has the same context, and the message is kept once."""
    model = Scripted(tool_call("memory_read", query="dessert"))
    run(OpenAIAgentsMemory(world), TAUGHT, model)
    assert len(model.prompts) == 2
    assert model.prompts[0] == model.prompts[1]
    assert len(said_by_user(world)) == 1


def test_users_do_not_mix(users: Callable[[str, str], Workspace]) -> None:
    """Frameworks: one agent serves two users, and neither prompt holds the other's words."""
    memory = OpenAIAgentsMemory(lambda user: users("cook", user))
    agents = Agent("cook", instructions=memory.instructions(), tools=memory.tools(users("cook", "ada")))
    for user, text in (("ada", TAUGHT), ("bob", ASKED), ("ada", ASKED)):
        model = Scripted(tool_call("memory_read", query=ASKED))
        asyncio.run(Runner.run(agents.clone(model=model), text, context=user, run_config=QUIET))
        assert (TAUGHT in model.prompts[0] or TAUGHT in str(model.inputs[-1])) == (user == "ada")


def test_a_model_that_fails_loses_nothing(world: Workspace) -> None:
    """Frameworks: the words are kept before the model is asked, and the model's error reaches the program."""
    with pytest.raises(ConnectionError):
        run(OpenAIAgentsMemory(world), TAUGHT, Scripted(ConnectionError("away")))
    assert said_by_user(world) == [TAUGHT]


def test_an_error_of_memory_reaches_the_program(memory: Lukasa, world: Workspace) -> None:
    """Frameworks: memory that is closed fails the run; nobody swallows it."""
    agents = OpenAIAgentsMemory(world)
    tools = agents.tools()
    memory.close()
    agent = Agent("cook", instructions=agents.instructions(), tools=tools, model=Scripted())
    with pytest.raises(LukasaError):
        asyncio.run(Runner.run(agent, TAUGHT, run_config=QUIET))
