"""Parts of every framework's adapter: the context of a run, what its user's messages say, the tools of its agent.

The user's words are written by the handle that the program gives, so with its trust. The agent reads and writes by
that handle as an agent, so it never has more trust than an agent. A handle bounds both, so one user's run reaches
nothing of another user.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any
from urllib.parse import quote

from msgspec import Struct

from lukasa.app import Lukasa
from lukasa.ports import Tool, ToolCall
from lukasa.service.sessions import hearing, session
from lukasa.service.sessions.distill import Distil, Turn, by_model_or_rules
from lukasa.service.workspace import Workspace
from lukasa.surfaces.api.toolbox import Toolbox
from lukasa.surfaces.offload import offload

__all__ = ["RunMemory", "World", "by_model_or_rules", "for_users", "remember"]

TOOLS = ("memory_put", "memory_read", "memory_update", "memory_forget")

# A workspace, or a function that finds it from what the framework says about a run: its own object for the run.
World = Workspace | Callable[[Any], Workspace]


def for_users(memory: Lukasa) -> Callable[[str, str], Workspace]:
    """Return a function that returns the memory of a user of an application: a workspace of its own.

    The handle reaches no tier that workspaces share, so nothing that one user says reaches another one.
    """

    def of(app: str, user: str) -> Workspace:
        world = memory.workspace(f"{quote(app, safe=' @')}/{quote(user, safe=' @')}")
        own = [tier.name for tier in world.spec.tiers if tier.home == "workspace"]
        return world.limited(*own).acting(principal=user)

    return of


def remember(
    world: Workspace, text: str, *, distil: Distil | None = None, speaker: str = hearing.SPEAKER
) -> hearing.Heard:
    """Keep what a user's message says, in a loop of your own: its facts, and its other statements as episodes."""
    return hearing.hear(world, [Turn("user", text)], distil=distil, speaker=speaker)


class RunMemory(Struct, frozen=True):
    """Memory for the runs of one agent. All its methods that work are coroutines, and work in a thread."""

    world: World
    agent: str = "assistant"
    budget: int | None = None
    distil: Distil | None = None

    def of(self, run: Any) -> Workspace:
        """Return the workspace of a run, as its user holds it."""
        return self.world if isinstance(self.world, Workspace) else self.world(run)

    def seen(self, run: Any) -> Workspace:
        """Return the workspace of a run as the agent sees it: what goes to its model passes the spec's gates."""
        return self.of(run).acting(agent=self.agent).outbound("chat")

    async def turn(self, run: Any, question: str, said: Sequence[Turn]) -> str:
        """Return the context for a question, then keep what was said. So a context never repeats its own question."""
        return await offload(self.turn_now, run, question, said)

    def turn_now(self, run: Any, question: str, said: Sequence[Turn]) -> str:
        """Do the same in this thread."""
        context = str(session.orient(self.seen(run), question, budget=self.budget))
        self.hear_now(run, said)
        return context

    async def hear(self, run: Any, said: Sequence[Turn]) -> hearing.Heard:
        """Keep what was said."""
        return await offload(self.hear_now, run, said)

    def hear_now(self, run: Any, said: Sequence[Turn]) -> hearing.Heard:
        """Do the same in this thread."""
        return hearing.hear(self.of(run), said, distil=self.distil)

    async def tools(self, run: Any) -> tuple[Tool, ...]:
        """Return the tools of the agent, as data."""
        return await offload(self.tools_now, run)

    def tools_now(self, run: Any) -> tuple[Tool, ...]:
        """Do the same in this thread."""
        return tuple(tool for tool in Toolbox(self.seen(run)).tools if tool.name in TOOLS)

    async def call(self, run: Any, name: str, arguments: dict[str, Any]) -> str:
        """Call a tool, and return the answer for the model; a wrong call is answered with what to change."""
        return (await offload(lambda: Toolbox(self.seen(run)).call(ToolCall("", name, arguments)))).text
