"""Strands: real agents with a model of our own."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from strands import Agent
from strands.memory import MemoryManager
from strands.models import Model

from lukasa import Lukasa, LukasaError, Workspace
from lukasa.frameworks import StrandsMemoryStore
from tests.frameworks.conftest import ASKED, REPLY, TAUGHT, said_by_user


class Scripted(Model):
    """A model that notes what it is asked, and calls tools from a list before it answers."""

    def __init__(self, *calls: tuple[str, dict[str, Any]]) -> None:
        self.prompts: list[str] = []
        self.calls = list(calls)

    def update_config(self, **config: Any) -> None:
        pass

    def get_config(self) -> Any:
        return {}

    def structured_output(self, *given: Any, **more: Any) -> Any:
        raise NotImplementedError

    async def stream(self, messages: Any, *given: Any, **more: Any) -> AsyncIterator[Any]:
        self.prompts.append(str(messages))
        call = self.calls.pop(0) if self.calls else None
        yield {"messageStart": {"role": "assistant"}}
        if call is not None:
            yield {"contentBlockStart": {"start": {"toolUse": {"name": call[0], "toolUseId": f"t{len(self.calls)}"}}}}
            yield {"contentBlockDelta": {"delta": {"toolUse": {"input": json.dumps(call[1])}}}}
        else:
            yield {"contentBlockStart": {"start": {}}}
            yield {"contentBlockDelta": {"delta": {"text": REPLY}}}
        yield {"contentBlockStop": {}}
        yield {"messageStop": {"stopReason": "tool_use" if call is not None else "end_turn"}}


def run(world: Workspace, text: str, *calls: tuple[str, dict[str, Any]]) -> Scripted:
    model = Scripted(*calls)

    async def session() -> None:
        manager = MemoryManager(stores=[StrandsMemoryStore(world)], add_tool_config=True)
        agent = Agent(model=model, memory_manager=manager, callback_handler=None)
        await agent.invoke_async(text)
        await manager.flush()

    asyncio.run(session())
    return model


def test_the_second_session_knows_what_the_first_was_told(world: Workspace) -> None:
    """Frameworks: the manager puts the user's words of another session before the message, with their authority."""
    assert TAUGHT not in run(world, ASKED).prompts[0]
    run(world, TAUGHT)
    prompt = run(world, ASKED).prompts[0]
    assert f"{TAUGHT} [authority=act" in prompt


def test_the_agents_tools_write_as_an_agent(world: Workspace) -> None:
    """Frameworks: what the model adds has an agent's trust, and its search finds the user's words."""
    run(world, TAUGHT)
    model = run(
        world,
        "hello there",
        ("add_memory", {"entries": ["The user likes dessert with plums"]}),
        ("search_memory", {"query": "peanuts"}),
    )
    hit = world.read("plums")[0]
    assert (hit.content, str(hit.authority)) == ("The user likes dessert with plums", "inform")
    assert TAUGHT in model.prompts[-1]
    assert said_by_user(world) == [TAUGHT]


def test_users_do_not_mix(memory: Lukasa) -> None:
    """Frameworks: a store is one user's; another user's store holds nothing of it."""
    run(memory.workspace("ada"), TAUGHT)
    assert TAUGHT not in run(memory.workspace("bob"), ASKED).prompts[0]


def test_an_error_of_memory_reaches_the_manager(memory: Lukasa, world: Workspace) -> None:
    """Frameworks: memory that is closed raises from each method of the store; Strands decides what to do about it."""
    store = StrandsMemoryStore(world)
    memory.close()
    said = [{"role": "user", "content": [{"text": TAUGHT}]}]
    for call in (store.search("peanuts"), store.add(TAUGHT), store.add_messages(said)):
        with pytest.raises(LukasaError):
            asyncio.run(call)
