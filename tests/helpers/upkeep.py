"""Upkeep in tests: a run as a worker does it, and a model that waits until it is told to answer."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from msgspec.structs import replace

from lukasa import Entry, Workspace
from lukasa.model.job import Job, JobState
from lukasa.ports import Chat, Message, Reply, Tool, Usage
from lukasa.service.jobs import queue


def run(world: Workspace, kind: str, *, tiers: Sequence[str] | None = None, chat: Chat | None = None) -> Job:
    """Ask for a run of the whole workspace and have it done, as a worker does; it must not fail."""
    whole = replace(world.ctx, keys={})
    job = queue.work(whole, queue.ask(whole, kind, tiers), chat=chat)
    assert job.state is JobState.DONE, job.error
    return job


def same(entry: Entry) -> Entry:
    """An entry without what every new version stamps."""
    return replace(entry, version=0, updated_at=entry.created_at, transition=None)


@dataclass
class Consolidator:
    """A model that joins what it is given with semicolons. With `gate`, it answers once that is set."""

    gate: threading.Event | None = None
    asked: threading.Event = field(default_factory=threading.Event)
    calls: int = 0
    say: Callable[[list[dict[str, Any]]], str] | None = None
    name: str = "fake"

    def reply(
        self,
        messages: Sequence[Message],
        tools: Sequence[Tool] = (),
        *,
        timeout: float = 60.0,
        on_text: Callable[[str], None] | None = None,
    ) -> Reply:
        notes = [json.loads(line) for line in messages[1].content.split("\n")]
        self.calls += 1
        self.asked.set()
        if self.gate is not None:
            assert self.gate.wait(60)
        text = self.say(notes) if self.say else "; ".join(note["text"] for note in notes)
        answer = {"text": text, "sources": [note["number"] for note in notes]}
        return Reply(json.dumps(answer, ensure_ascii=False), usage=Usage(10, 3))
