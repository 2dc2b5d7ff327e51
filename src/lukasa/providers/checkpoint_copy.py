"""Copy the chats of a workspace from one checkpointer of LangGraph to another, through its own interface."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from lukasa.ports import Threads


def copy_threads(origin: Threads, target: Threads, threads: Iterable[str]) -> int:
    """Copy the threads that the origin has, each with all its states; return how many. A copy that is there is renewed.

    States are put in the order in which they were made, because each names the one before it.
    """
    found = [thread for thread in threads if origin.kept(thread)]
    if found:
        with origin.saver() as reader, target.saver() as writer:
            for thread in found:
                states = list(reader.list({"configurable": {"thread_id": thread}}))
                for state in reversed(states):
                    _put(writer, state)
    return len(found)


def _put(writer: Any, state: Any) -> None:
    own, before = state.config["configurable"], (state.parent_config or {}).get("configurable", {})
    where = {"thread_id": own["thread_id"], "checkpoint_ns": own.get("checkpoint_ns", "")}
    behind = {"configurable": {**where, "checkpoint_id": before.get("checkpoint_id")}}
    placed = writer.put(behind, state.checkpoint, state.metadata, state.checkpoint["channel_versions"])
    tasks: dict[str, list[tuple[str, Any]]] = {}
    for task, channel, value in state.pending_writes or ():
        tasks.setdefault(task, []).append((channel, value))
    for task, writes in tasks.items():
        writer.put_writes(placed, writes, task)
