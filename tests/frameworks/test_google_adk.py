"""Google ADK: real runs of its runner with a model of our own."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from typing import Any

import pytest
from google.adk.agents import LlmAgent
from google.adk.memory.memory_entry import MemoryEntry
from google.adk.models import BaseLlm, LlmResponse
from google.adk.runners import Runner
from google.adk.sessions import InMemorySessionService
from google.adk.tools.load_memory_tool import load_memory_tool
from google.adk.tools.preload_memory_tool import preload_memory_tool
from google.genai import types
from pydantic import Field

from lukasa import Lukasa, LukasaError, Trust, Workspace
from lukasa.frameworks import AdkMemoryService
from tests.frameworks.conftest import ASKED, REPLY, TAUGHT, said_by_user

Users = Callable[[str, str], Workspace]


class Scripted(BaseLlm):
    """A model that notes its prompts; it looks into memory first, if it is told to."""

    model: str = "scripted"
    prompts: list[str] = Field(default_factory=list)
    looks: str = ""

    async def generate_content_async(self, llm_request: Any, stream: bool = False) -> AsyncGenerator[Any, None]:
        self.prompts.append(" ".join(content.model_dump_json() for content in llm_request.contents))
        part = types.Part(text=REPLY)
        if self.looks and len(self.prompts) == 1:
            part = types.Part(function_call=types.FunctionCall(name="load_memory", args={"query": self.looks}))
        yield LlmResponse(content=types.Content(role="model", parts=[part]))


class House:
    """An application with its runner, its sessions and its memory."""

    def __init__(self, users: Users) -> None:
        self.memory = AdkMemoryService(users)
        self.sessions = InMemorySessionService()

    def run(self, user: str, text: str, *, add: int = 1, looks: str = "") -> list[str]:
        return asyncio.run(self._run(user, text, add, looks))

    async def _run(self, user: str, text: str, add: int, looks: str) -> list[str]:
        model = Scripted(looks=looks)
        tools = [load_memory_tool] if looks else [preload_memory_tool]
        agent = LlmAgent(name="cook", model=model, instruction="You cook.", tools=tools)
        runner = Runner(app_name="kitchen", agent=agent, session_service=self.sessions, memory_service=self.memory)
        session = await self.sessions.create_session(app_name="kitchen", user_id=user)
        message = types.Content(role="user", parts=[types.Part(text=text)])
        async for _ in runner.run_async(user_id=user, session_id=session.id, new_message=message):
            pass
        whole = await self.sessions.get_session(app_name="kitchen", user_id=user, session_id=session.id)
        for _ in range(add):
            await self.memory.add_session_to_memory(whole)
        return model.prompts


@pytest.mark.parametrize("looks", ["", "dessert with peanuts"])
def test_the_second_session_knows_what_the_first_was_told(users: Users, looks: str) -> None:
    """Frameworks: ADK's own tools bring the user's words into a prompt of another session, preloaded or looked up."""
    house = House(users)
    assert TAUGHT not in "".join(house.run("ada", ASKED, looks=looks)).replace(ASKED, "")
    house.run("ada", TAUGHT)
    prompt = house.run("ada", ASKED, looks=looks)[-1]
    assert TAUGHT in prompt
    assert "authority=act" in prompt


def test_users_do_not_mix(users: Users) -> None:
    """Frameworks: one service serves two users and two applications; their names cannot be written as one another."""
    house = House(users)
    house.run("ada", TAUGHT)
    assert TAUGHT not in house.run("bob", ASKED)[-1]
    assert users("a/b", "c").id != users("a", "b/c").id
    found = asyncio.run(house.memory.search_memory(app_name="other", user_id="ada", query="peanuts"))
    assert found.memories == []


def test_a_user_asks_for_every_workspace_and_stays_alone(users: Users, memory: Lukasa) -> None:
    """Frameworks: what a user wants remembered everywhere does not leave the user's own memory."""
    house = House(users)
    house.run("ada", "Remember at the account level that the dessert is without peanuts")
    assert "without peanuts" in house.run("ada", ASKED)[-1]
    assert "without peanuts" not in house.run("bob", ASKED)[-1]
    assert "without peanuts" not in str(memory.workspace("main").context(ASKED))


def test_a_session_that_is_added_again_changes_nothing(users: Users) -> None:
    """Frameworks: ADK may add a session many times; a memory that somebody forgot meanwhile stays forgotten."""
    house = House(users)
    house.run("ada", TAUGHT, add=3)
    world = users("kitchen", "ada")
    assert said_by_user(world) == [TAUGHT]
    assert world.read("peanuts")[0].entry.merged_count == 1
    found = asyncio.run(house.memory.search_memory(app_name="kitchen", user_id="ada", query="peanuts"))
    asyncio.run(house.memory.delete_memory(app_name="kitchen", user_id="ada", memory_id=found.memories[0].id))

    async def again() -> None:
        listed = await house.sessions.list_sessions(app_name="kitchen", user_id="ada")
        one = await house.sessions.get_session(app_name="kitchen", user_id="ada", session_id=listed.sessions[0].id)
        await house.memory.add_session_to_memory(one)

    asyncio.run(again())
    assert said_by_user(world) == []


def test_what_is_added_by_hand_is_an_agents(users: Users) -> None:
    """Frameworks: a memory that ADK adds directly has an agent's trust, whatever author it names."""
    house = House(users)
    entry = MemoryEntry(content=types.Content(parts=[types.Part(text="The dessert was plums")]), author="user")
    asyncio.run(house.memory.add_memory(app_name="kitchen", user_id="ada", memories=[entry]))
    hit = users("kitchen", "ada").read("plums")[0]
    assert (hit.content, hit.entry.trust) == ("The dessert was plums", Trust.AGENT)


def test_an_error_of_memory_reaches_the_program(users: Users, memory: Lukasa) -> None:
    """Frameworks: memory that is closed raises, when it is searched and when it is written."""
    house = House(users)
    users("kitchen", "ada")
    memory.close()
    with pytest.raises(LukasaError):
        asyncio.run(house.memory.search_memory(app_name="kitchen", user_id="ada", query="peanuts"))
    with pytest.raises(LukasaError):
        house.run("ada", TAUGHT)
