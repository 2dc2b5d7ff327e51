"""Memory for Strands agents: a store for its memory manager."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from strands.memory import (
    AddMessagesContext,
    ExtractionConfig,
    InvocationTrigger,
    MemoryEntry,
    MemoryStore,
    SearchOptions,
)

from lukasa.service.sessions.distill import Distil, Turn
from lukasa.service.sessions.session import durable_tier, recall
from lukasa.service.workspace import Workspace
from lukasa.surfaces.frameworks.memory import RunMemory
from lukasa.surfaces.offload import offload

RESULTS = 5


class StrandsMemoryStore(MemoryStore):
    """One user's memory: `Agent(memory_manager=MemoryManager(stores=[StrandsMemoryStore(world)]))`.

    The manager puts what it finds before each message, and gives the store what was said after each run. With
    `add_tool_config=True` the agent gets a tool to add, and acts as an agent.
    """

    def __init__(
        self, world: Workspace, *, name: str = "lukasa", agent: str = "assistant", distil: Distil | None = None
    ) -> None:
        self.name = name
        self.description = f"What was remembered in the workspace {world.name}."
        self.max_search_results: int | None = RESULTS
        self.writable = True
        self.extraction: ExtractionConfig | bool | None = ExtractionConfig(trigger=InvocationTrigger())
        self._memory = RunMemory(world, agent, distil=distil)

    async def search(self, query: str, options: SearchOptions | None = None) -> list[MemoryEntry]:
        """Return what memory holds about a query, the best match first."""
        limit = (options or {}).get("max_search_results") or RESULTS
        return await offload(self._search, query, limit)

    async def add(self, content: str, metadata: dict[str, Any] | None = None) -> Any:
        """Remember a text that the agent decided to keep, with the trust of an agent."""
        written = await offload(self._put, content, metadata or {})
        return {"outcome": str(written.outcome), "reason": written.reason}

    async def add_messages(self, messages: Sequence[Any], context: AddMessagesContext | None = None) -> Any:
        """Keep what the user said. Messages that come again, as after a failure, change nothing."""
        heard = await self._memory.hear(None, turns_of(messages))
        return {"written": len(heard.written), "refused": len(heard.refused)}

    def _search(self, query: str, limit: int) -> list[MemoryEntry]:
        world = self._memory.seen(None)
        found = recall(world, query, limit=limit)
        world.disclose(found)
        return [
            MemoryEntry(
                content=f"{hit.content} [authority={hit.authority}, noted {hit.entry.created_at:%Y-%m-%d}]",
                metadata={"id": hit.id, "authority": str(hit.authority), "score": hit.score.final},
            )
            for hit in found.hits
        ]

    def _put(self, content: str, metadata: dict[str, Any]) -> Any:
        world = self._memory.seen(None)
        return world.put(durable_tier(world), content, metadata=metadata)


def turns_of(messages: Sequence[Any]) -> list[Turn]:
    """Return the user's messages, without the results of tools."""
    users = [message for message in messages if message["role"] == "user"]
    texts = ["\n".join(block["text"] for block in one["content"] if "text" in block) for one in users]
    return [Turn("user", text) for text in texts if text.strip()]
