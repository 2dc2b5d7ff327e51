"""LlamaIndex: real agents with a model of our own, and a block in their memory."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.base.llms.types import ChatMessage, ChatResponse, LLMMetadata
from llama_index.core.llms.function_calling import FunctionCallingLLM
from llama_index.core.memory import Memory
from pydantic import Field

from lukasa import Lukasa, LukasaError, Workspace
from lukasa.frameworks import LlamaIndexMemoryBlock
from tests.frameworks.conftest import ASKED, REPLY, TAUGHT, said_by_user


class Scripted(FunctionCallingLLM):
    """A model that notes what it is asked, and says one thing."""

    prompts: list[str] = Field(default_factory=list)
    fails: bool = False

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(is_chat_model=True, is_function_calling_model=True)

    def _answer(self, messages: Sequence[ChatMessage]) -> ChatResponse:
        self.prompts.append("\n".join(f"{m.role.value}: {m.content}" for m in messages))
        if self.fails:
            raise ConnectionError("away")
        return ChatResponse(message=ChatMessage(role="assistant", content=REPLY))

    async def achat(self, messages: Sequence[ChatMessage], **given: Any) -> Any:
        return self._answer(messages)

    async def astream_chat(self, messages: Sequence[ChatMessage], **given: Any) -> Any:
        raise NotImplementedError

    def get_tool_calls_from_response(self, *given: Any, **more: Any) -> Any:
        return []

    def _prepare_chat_with_tools(self, tools: Any, chat_history: Any = None, **more: Any) -> Any:
        return {"messages": chat_history or []}

    chat = complete = stream_chat = stream_complete = acomplete = astream_complete = _answer


def run(world: Any, session: str, *texts: str, **about: Any) -> list[str]:
    model = Scripted(**about)
    block = LlamaIndexMemoryBlock(world)

    async def talk() -> None:
        memory = Memory.from_defaults(session_id=session, memory_blocks=[block])
        agent = FunctionAgent(llm=model, system_prompt="You cook.", streaming=False)
        for text in texts:
            await agent.run(text, memory=memory)

    asyncio.run(talk())
    return model.prompts


def test_the_second_session_knows_what_the_first_was_told(world: Workspace) -> None:
    """Frameworks: the prompt of another session holds the user's words, though the first one was short."""
    first = run(world, "one", TAUGHT)
    assert TAUGHT not in first[0].rpartition("user: ")[0]
    second = run(world, "two", ASKED)
    assert TAUGHT in second[0]
    assert "You cook." in second[0]


def test_each_message_is_kept_once(world: Workspace) -> None:
    """Frameworks: the block sees the history again with each message, and keeps what is new."""
    run(world, "one", TAUGHT, "hello again", "And the cellar has a second oven for bread.")
    assert sorted(said_by_user(world)) == ["And the cellar has a second oven for bread.", TAUGHT]
    assert all(hit.entry.merged_count == 1 for hit in world.read("peanuts oven"))


def test_users_do_not_mix(users: Callable[[str, str], Workspace]) -> None:
    """Frameworks: sessions of two users, told apart by their session ids, hold nothing of each other."""
    of = lambda session: users("cook", session.partition("-")[0])  # noqa: E731
    run(of, "ada-1", TAUGHT)
    assert TAUGHT not in run(of, "bob-1", ASKED)[0]
    assert TAUGHT in run(of, "ada-2", ASKED)[0]


def test_a_model_that_fails_loses_nothing(world: Workspace) -> None:
    """Frameworks: the words are kept before the model is asked, and the model's error reaches the program."""
    with pytest.raises(Exception, match="away"):
        run(world, "one", TAUGHT, fails=True)
    assert said_by_user(world) == [TAUGHT]


def test_an_error_of_memory_reaches_the_program(memory: Lukasa, world: Workspace) -> None:
    """Frameworks: memory that is closed fails the run; nobody swallows it."""
    memory.close()
    with pytest.raises(LukasaError):
        run(world, "one", TAUGHT)
