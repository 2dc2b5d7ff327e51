"""Memory for CrewAI: its memory class, with Lukasa behind it instead of a vector store and a model that analyses.

CrewAI's own class asks a language model what to keep and what it means. This one keeps the words, and asks none.
"""

from __future__ import annotations

import re
from typing import Any, NoReturn

from crewai.memory.types import MemoryMatch, MemoryRecord
from crewai.memory.unified_memory import Memory
from pydantic import PrivateAttr

from lukasa.model.errors import InvalidInput
from lukasa.read.rank import Hit
from lukasa.service.entries.put import Memo
from lukasa.service.sessions.distill import Distil
from lukasa.service.sessions.session import durable_tier, recall
from lukasa.service.workspace import Workspace
from lukasa.surfaces.frameworks.memory import RunMemory

_PARTS = re.compile(r"^(?:Task|Input|Agent|Expected result|Result): ", re.MULTILINE)
_LONGEST = 2000  # characters of a result that are kept; the rest is the crew's work, not memory
_SCOPE = "scope"


class _NoStorage:
    """The place of CrewAI's own store; whatever asks for it asks for what Lukasa has other commands for."""

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__"):
            raise AttributeError(name)
        raise InvalidInput(
            f"CrewAI's storage operation {name!r} is not for memory in Lukasa",
            fix="use remember, recall and forget, or the commands of lukasa",
        )


class CrewAIMemory(Memory):
    """One user's memory: `Crew(…, memory=CrewAIMemory(world))` or `Agent(…, memory=CrewAIMemory(world))`.

    What a crew saves has the trust of an agent: CrewAI does not say which words are the user's.
    """

    _memory: RunMemory = PrivateAttr()

    def __init__(self, world: Workspace, *, agent: str = "crew", distil: Distil | None = None, **fields: Any) -> None:
        super().__init__(storage=_NoStorage(), **fields)
        self._memory = RunMemory(world, agent, distil=distil)

    def extract_memories(self, content: str) -> list[str]:
        """Return what a finished task states: the task's words without questions, and the beginning of its result."""
        asked, *_, result = [part.strip() for part in _PARTS.split(content) if part.strip()] or [content]
        return [text for text in (asked, result[:_LONGEST]) if len(text) > 1]

    def remember(self, content: str, scope: str | None = None, **given: Any) -> MemoryRecord | None:
        """Remember a text as the agent's; return None if this memory is read-only, or if the write was discarded."""
        found = self.remember_many([content], scope, **given)
        return found[0] if found else None

    def remember_many(
        self,
        contents: list[str],
        scope: str | None = None,
        categories: list[str] | None = None,
        metadata: dict[str, Any] | None = None,
        importance: float | None = None,
        source: str | None = None,
        private: bool = False,
        agent_role: str | None = None,
        root_scope: str | None = None,
    ) -> list[MemoryRecord]:
        """Remember texts as the agent's: all of them, or none."""
        if self.read_only or not contents:
            return []
        if private:
            raise InvalidInput("a memory that only its source sees is not kept", fix="give each user a workspace")
        path = _path(root_scope or self.root_scope, scope)
        about = {**(metadata or {}), **({_SCOPE: path} if path else {})}
        memos = [
            Memo(
                content,
                tags=tuple(categories or ()),
                metadata=about,
                importance=self.default_importance if importance is None else importance,
                source=source or agent_role or "",
                observed=True,
            )
            for content in contents
        ]
        world = self._memory.seen(None)
        written = world.put_many(durable_tier(world), memos)
        return [_record(one.entry, one.entry.content) for one in written if one.entry is not None]

    def recall(
        self,
        query: str,
        scope: str | None = None,
        categories: list[str] | None = None,
        limit: int = 10,
        depth: Any = "deep",
        source: str | None = None,
        include_private: bool = False,
    ) -> list[MemoryMatch]:
        """Return what memory holds about a query, the best match first. Each match says what it is worth."""
        world = self._memory.seen(None)
        path = _path(self.root_scope, scope)
        found = recall(world, query, limit=limit if not (path or categories) else 10 * limit)
        hits = [hit for hit in found.hits if _within(hit, path) and _among(hit, categories)][:limit]
        world.disclose(found)
        return [
            MemoryMatch(
                record=_record(hit.entry, hit.content, authority=str(hit.authority)),
                score=hit.score.final,
                match_reasons=[contribution.signal for contribution in hit.score.match.contributions],
            )
            for hit in hits
        ]

    def forget(self, *, record_ids: list[str] | None = None, **given: Any) -> int:
        """Take memories out of recall by their ids; `lukasa restore` brings them back."""
        if not record_ids or any(value is not None for value in given.values()):
            raise InvalidInput("only ids say what to forget", fix="recall, then give the ids of the records")
        world = self._memory.seen(None)
        return len([world.forget(id) for id in record_ids])


def _path(root: str | None, scope: str | None) -> str:
    parts = [part for given in (root, scope) for part in (given or "").split("/") if part]
    return "/" + "/".join(parts) if parts else ""


def _within(hit: Hit, path: str) -> bool:
    held = str(hit.entry.metadata.get(_SCOPE, ""))
    return not path or held == path or held.startswith(path + "/")


def _among(hit: Hit, categories: list[str] | None) -> bool:
    return not categories or bool(set(categories) & set(hit.entry.tags))


def _record(entry: Any, content: str, **about: str) -> MemoryRecord:
    return MemoryRecord(
        id=entry.id,
        content=content,
        scope=str(entry.metadata.get(_SCOPE, "/")),
        categories=list(entry.tags),
        metadata=about,
        importance=entry.importance,
        created_at=entry.created_at,
        last_accessed=entry.confirmed_at,
        source=entry.source or None,
    )
