"""Talking to the reference agent in tests: conversations on a real store, by the real graph."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from lukasa import Entry, Lukasa, Workspace
from lukasa.ports import Chat
from lukasa.providers.chat.offline import OfflineChat
from lukasa.surfaces.langgraph.graph import Agent, Making


@contextmanager
def agent(
    memory: Lukasa,
    world: Workspace,
    *,
    name: str = "assistant",
    chat: Chat | None = None,
    resume: str | None = None,
    **making: Any,
) -> Iterator[Agent]:
    """An agent in a conversation of its own, left open."""
    made = Making(chat or OfflineChat(), **making)
    with Agent(world.acting(agent=name), made, threads=memory.threads(world), resume=resume) as opened:
        yield opened


def say(memory: Lukasa, world: Workspace, *messages: str, name: str = "assistant") -> str:
    """A whole conversation: every message a turn, then its end. Gives the last reply."""
    with agent(memory, world, name=name) as talk:
        replies = [talk.turn(message).reply for message in messages]
        talk.end()
    return replies[-1]


def facts(world: Workspace, tier: str = "workspace") -> list[Entry]:
    """What a tier holds beside the summaries of conversations, oldest first."""
    found = world.entries(tier, everything=True)
    return [entry for entry in reversed(found) if "conversation-summary" not in entry.tags]


def fact(world: Workspace, tier: str = "workspace") -> Entry:
    (found,) = facts(world, tier)
    return found


def reads(world: Workspace, entry: Entry) -> int:
    """How often an entry was retrieved."""
    access = world.standing(entry.id).access
    return access.count if access else 0


if __name__ == "__main__":
    folder, setting, message = sys.argv[1:]
    with Lukasa.open(folder, embedder=setting) as opened:
        print(say(opened, opened.workspace("A"), message))
