"""Memory for LlamaIndex: a memory block."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.bridge.pydantic import PrivateAttr
from llama_index.core.memory import BaseMemoryBlock

from lukasa.service.sessions.distill import Distil, Turn
from lukasa.surfaces.frameworks.memory import RunMemory, World


class LlamaIndexMemoryBlock(BaseMemoryBlock[str]):
    """One block of a `Memory`: `Memory.from_defaults(memory_blocks=[LlamaIndexMemoryBlock(world)])`.

    `world` may be a function of the session id of the `Memory`. LlamaIndex gives a block only those messages that fall
    out of its short-term memory, so the block keeps what the user says when it is asked for its context.
    """

    _memory: RunMemory = PrivateAttr()
    _heard: set[tuple[Any, int, str]] = PrivateAttr(default_factory=set)

    def __init__(
        self,
        world: World,
        *,
        name: str = "lukasa",
        agent: str = "assistant",
        budget: int | None = None,
        distil: Distil | None = None,
        **fields: Any,
    ) -> None:
        super().__init__(name=name, **fields)
        self._memory = RunMemory(world, agent, budget, distil)

    async def _aget(self, messages: list[ChatMessage] | None = None, **given: Any) -> str:
        """Return the context for the last message, and keep what the user says."""
        run, said = given.get("session_id"), turns_of(messages or ())
        context = await self._memory.turn(run, said[-1].text if said else "", self._new(run, said))
        self._heard |= {(run, number, turn.text) for number, turn in enumerate(said)}
        return context

    async def _aput(self, messages: list[ChatMessage]) -> None:
        """Take nothing: what falls out of the short-term memory was kept when it was said."""

    def _new(self, run: Any, said: Sequence[Turn]) -> list[Turn]:
        return [turn for number, turn in enumerate(said) if (run, number, turn.text) not in self._heard]


def turns_of(messages: Sequence[ChatMessage]) -> list[Turn]:
    """Return the user's messages."""
    users = [message.content or "" for message in messages if message.role == "user"]
    return [Turn("user", text) for text in users if text.strip()]
