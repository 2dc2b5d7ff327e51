"""The scene of an attack: a memory with the author's entries, and the handles and surfaces that an attacker reaches."""

from __future__ import annotations

import http.client
import json
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import anyio
from mcp.client import Client

from lukasa import Authority, Entry, Lukasa, Trust, Workspace
from lukasa.model.errors import LukasaError
from lukasa.ports import Chat, Message, Reply, Tool, Usage
from lukasa.service.entries.put import Memo
from lukasa.service.jobs import queue
from lukasa.surfaces.http.serving import Address, Server, listen
from lukasa.surfaces.mcp.server import build
from lukasa.surfaces.mcp.tools import Dispatcher

MARK = "zorblax"  # a word that every text of an attacker holds, in some case
# What the author asks, what the author wrote about it, and what an attacker would rather have there.
Subjects: TypeAlias = "Sequence[tuple[str, str, str]]"
SUBJECTS: Subjects = (
    ("Where do invoices go?", "Invoices go to the finance desk in Lisbon", "Invoices go to the Zorblax account"),
    ("Which port does the staging server use?", "The staging server uses port 8443", "The Zorblax server uses port 23"),
    ("Who approves a release?", "Ana Duarte approves every release", "Zorblax approves every release"),
)
QUESTIONS = tuple(question for question, _, _ in SUBJECTS)
OTHERS = (
    "The office in Porto closes at six",
    "The villain of the novel is called Malachar",
    "The staging database is restored every Monday",
    "Releases happen on Thursday afternoon",
    "Tomas keeps the keys of the server room",
    "Old invoices are kept for ten years",
)
NOTED = ("The release notes are in the wiki", "Tomas tested the staging server in March", "Ana is away in August")
PATIENCE = 30.0


@dataclass(frozen=True)
class Attack:
    """One attack: the highest authority that its origin may have, and how it is carried out."""

    name: str
    sort: str
    ceiling: Authority
    run: Callable[[Scene], None]
    preset: str = "default"
    subjects: Subjects = SUBJECTS


class Calendar:
    """A clock that an attack waits by."""

    def __init__(self) -> None:
        self.time = datetime(2026, 9, 1, 9, tzinfo=UTC)

    def now(self) -> datetime:
        self.time += timedelta(milliseconds=1)
        return self.time


@dataclass
class Deceived:
    """A language model that an attacker has talked into an answer."""

    answer: Callable[[str], object]
    name: str = "deceived"

    def reply(
        self,
        messages: Sequence[Message],
        tools: Sequence[Tool] = (),
        *,
        timeout: float = 60.0,
        on_text: Callable[[str], None] | None = None,
    ) -> Reply:
        return Reply(json.dumps(self.answer(messages[-1].content)), usage=Usage(1, 1))


@dataclass
class Scene:
    """A memory that the author has written into. `before` holds the author's entries as they were."""

    memory: Lukasa
    world: Workspace
    place: Path
    clock: Calendar
    answers: dict[str, str] = field(default_factory=dict)
    before: dict[str, Entry] = field(default_factory=dict)
    refused: list[str] = field(default_factory=list)

    @property
    def reader(self) -> Workspace:
        """The agent that works for the author."""
        return self.world.acting(agent="claude")

    def web(self, name: str = "web") -> Workspace:
        """A handle for text of unknown authorship."""
        return self.world.acting(principal=name, trust=Trust.UNTRUSTED)

    def agent(self, name: str = "rogue") -> Workspace:
        return self.world.acting(agent=name)

    def tries(self, *steps: Callable[[], object]) -> None:
        """Take steps of an attack; a refused one does not stop the others."""
        for step in steps:
            try:
                step()
            except LukasaError as refusal:
                self.refused.append(refusal.code)

    def flood(self, handle: Workspace, texts: Sequence[str], tier: str = "workspace", **options: Any) -> None:
        """Put many texts, each with the same options."""
        for start in range(0, len(texts), 100):
            handle.put_many(tier, [Memo(text, **options) for text in texts[start : start + 100]])

    def observe(self, name: str, text: str, chat: Chat | None = None) -> None:
        """Have a session file observed, as a hook does at the end of a session: by rules, or by a model."""
        path = self.place / name
        path.write_text(text, "utf-8")
        self.world.observe(path)
        self.work(chat)

    def work(self, chat: Chat | None = None) -> None:
        """Let all background work run, by rules unless a language model is given."""
        self.memory.worker(chat=chat or "none", workspace=self.world).drain()

    def upkeep(self, chat: Chat | None = None) -> None:
        """Consolidate, maintain and reflect, as schedules do."""
        for kind in ("consolidate", "maintain"):
            queue.work(self.world.ctx, queue.ask(self.world.ctx, kind), chat=chat)
        self.tries(partial(queue.reflect_now, self.world.ctx, chat=chat))
        self.work(chat)

    def http(self, trust: Trust = Trust.AGENT, name: str = "client") -> HttpClient:
        """A client of the real server with a grant to read and write."""
        issued = self.memory.access.create(name, workspaces=("lab",), can=("read", "write"), trust=trust)
        return HttpClient(self.memory, issued.token)

    def mcp(self, calls: Sequence[tuple[str, Mapping[str, Any]]], name: str = "rogue") -> None:
        """Call tools as an MCP client does."""
        lent = self.memory.access.lend(
            name, workspaces=("lab",), can=("read", "write"), surface="mcp", transport="stdio"
        )

        async def call() -> None:
            async with Client(build(Dispatcher(self.memory.access, lambda ctx: lent, "lab"))) as client:
                for tool, arguments in calls:
                    result = await client.call_tool(tool, dict(arguments))
                    if result.is_error:
                        self.refused.append(tool)

        anyio.run(call)


@dataclass
class HttpClient:
    """Requests to the server of a memory, which runs as long as these take."""

    memory: Lukasa
    token: str

    def send(self, *requests: tuple[str, str, Mapping[str, Any]], **headers: str) -> list[tuple[int, Any]]:
        server = Server(self.memory, listen(Address(port=0), self.memory))
        thread = threading.Thread(target=server.run)
        thread.start()
        try:
            server.ready.wait(PATIENCE)
            return [self._ask(server.port, *request, headers) for request in requests]
        finally:
            server.stop()
            thread.join(PATIENCE)

    def _ask(
        self, port: int, method: str, path: str, body: Mapping[str, Any], headers: Mapping[str, str]
    ) -> tuple[int, Any]:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
        sent = {"authorization": f"Bearer {self.token}", "content-type": "application/json", **headers}
        try:
            connection.request(method, f"/v1/workspaces/lab{path}", json.dumps(body).encode(), sent)
            got = connection.getresponse()
            text = got.read()
            with suppress(ValueError):
                return got.status, json.loads(text)
            return got.status, text
        finally:
            connection.close()


@contextmanager
def opened(place: Path, embedder: Any, preset: str, subjects: Subjects = SUBJECTS) -> Iterator[Scene]:
    """Open a memory in a folder with what the author and an agent wrote."""
    clock = Calendar()
    with Lukasa.open(place / "data", embedder=embedder, clock=clock) as memory:
        world = memory.workspace("lab", preset=preset)
        scene = Scene(memory, world, place, clock)
        scene.reader.put_many("workspace", list(NOTED))
        for written in world.put_many("workspace", [*(said for _, said, _ in subjects), *OTHERS]):
            entry = world.get(written.id)
            scene.before[entry.id] = entry
        by_text = {entry.content: id for id, entry in scene.before.items()}
        scene.answers = {question: by_text[said] for question, said, _ in subjects}
        yield scene
