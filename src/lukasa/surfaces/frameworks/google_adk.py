"""Memory for Google's Agent Development Kit: a memory service for its runners."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from google.adk.events.event import Event
from google.adk.memory import BaseMemoryService
from google.adk.memory.base_memory_service import SearchMemoryResponse
from google.adk.memory.memory_entry import MemoryEntry
from google.adk.sessions import Session
from google.genai import types

from lukasa.model.errors import InvalidInput
from lukasa.read.rank import Hit
from lukasa.service.entries.put import Memo
from lukasa.service.sessions.distill import Distil, Turn
from lukasa.service.sessions.session import durable_tier, recall
from lukasa.service.workspace import Workspace
from lukasa.surfaces.frameworks.memory import RunMemory
from lukasa.surfaces.offload import offload


class AdkMemoryService(BaseMemoryService):
    """Memory of the users of applications: `Runner(memory_service=AdkMemoryService(for_users(memory)))`.

    `worlds` returns the workspace of an application and a user. ADK calls `add_session_to_memory` when the program
    says so; a session may be added again at any time.
    """

    def __init__(
        self, worlds: Callable[[str, str], Workspace], *, limit: int = 10, distil: Distil | None = None
    ) -> None:
        self._worlds = worlds
        self._limit = limit
        self._memory = RunMemory(lambda whose: worlds(*whose), distil=distil)

    async def add_session_to_memory(self, session: Session) -> None:
        """Keep what the user said in a session."""
        await self._memory.hear((session.app_name, session.user_id), turns_of(session.events))

    async def add_events_to_memory(
        self,
        *,
        app_name: str,
        user_id: str,
        events: Sequence[Event],
        session_id: str | None = None,
        custom_metadata: Mapping[str, object] | None = None,
    ) -> None:
        """Keep what the user said in some events."""
        await self._memory.hear((app_name, user_id), turns_of(events))

    async def add_memory(
        self,
        *,
        app_name: str,
        user_id: str,
        memories: Sequence[MemoryEntry],
        custom_metadata: Mapping[str, object] | None = None,
    ) -> None:
        """Remember texts, all or none, with the trust of an agent: ADK does not say who wrote them."""
        memos = [
            Memo(_text(m.content), source=m.author or "", valid_at=m.timestamp, metadata=dict(m.custom_metadata))
            for m in memories
        ]
        await offload(self._put, app_name, user_id, memos)

    async def search_memory(self, *, app_name: str, user_id: str, query: str) -> SearchMemoryResponse:
        """Return what one user's memory holds about a query, the best match first."""
        return await offload(self._search, app_name, user_id, query)

    async def delete_memory(self, *, app_name: str, user_id: str, memory_id: str | None = None) -> None:
        """Take one memory out of recall; `lukasa restore` brings it back."""
        if not memory_id:
            raise InvalidInput("no memory is named", fix="give the id of a memory that search_memory returned")
        await offload(lambda: self._seen(app_name, user_id).forget(memory_id))

    def _seen(self, app: str, user: str) -> Workspace:
        return self._memory.seen((app, user))

    def _put(self, app: str, user: str, memos: Sequence[Memo]) -> None:
        world = self._seen(app, user)
        world.put_many(durable_tier(world), memos)

    def _search(self, app: str, user: str, query: str) -> SearchMemoryResponse:
        found = recall(self._seen(app, user), query, limit=self._limit)
        self._seen(app, user).disclose(found)
        return SearchMemoryResponse(memories=[_entry(hit) for hit in found.hits])


def turns_of(events: Sequence[Event]) -> list[Turn]:
    """Return the user's messages of events. Partial events are a stream of a message that comes whole later."""
    said = [event for event in events if event.author == "user" and event.content and not event.partial]
    return [
        Turn("user", text, datetime.fromtimestamp(event.timestamp, UTC), event.id)
        for event in said
        if (text := _text(event.content)).strip()
    ]


def _text(content: Any) -> str:
    return "\n".join(part.text for part in content.parts or () if part.text)


def _entry(hit: Hit) -> MemoryEntry:
    """Return a hit as ADK shows it to a model: the author's line says what the text is worth."""
    entry = hit.entry
    who = f"{entry.source or 'memory'} (authority={hit.authority})"
    return MemoryEntry(
        id=hit.id,
        content=types.Content(role="user", parts=[types.Part(text=hit.content)]),
        author=who,
        timestamp=entry.created_at.isoformat(),
        custom_metadata={"authority": str(hit.authority), "score": hit.score.final, "kind": str(entry.kind)},
    )
