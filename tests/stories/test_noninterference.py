"""Two workspaces, or two tenants of one: what one does, the other cannot see, change, count or infer."""

from __future__ import annotations

import json
import random
import re
import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from lukasa import Lukasa, Trust, Workspace
from lukasa.anthropic import MemoryTool
from lukasa.langgraph import LukasaStore
from lukasa.model.errors import LukasaError
from lukasa.model.ids import new_id, new_ref_code
from lukasa.surfaces.cli.data import plain
from tests.fakes import FakeEmbedder
from tests.helpers import sessions
from tests.helpers.cli import support_spec
from tests.helpers.making import FixedClock
from tests.helpers.processes import TORTURE

OPERATIONS = 12_500 if TORTURE else 125  # of each of the two, for each pair of names
PAIRS = {
    "prefix": ("novel", "novel2"),
    "wildcard": ("a_c", "abc"),
    "percent": ("ab%", "abcd"),
    "punctuation": ("a.b:c/d*e", "a.b:c/d"),
    "case": ("Novel", "novel"),
    "composition": (unicodedata.normalize("NFC", "café"), unicodedata.normalize("NFD", "café")),
    "confusable": ("paypal", "раураl"),
    "long": ("n" * 199, "n" * 200),
}

WORDS = "lantern ferry harbour violin bread tower tide baker Ines Otto".split()
UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
BRIEF = re.compile(r"\[[0-9a-f]{8}(?=[ \]])")  # the end of an id, as a context shows it
TOOK = re.compile(r'"(?:max|mean)_ms": [0-9.e-]+')
DIGEST = re.compile(r"\b[0-9a-f]{12,64}\b")


TENANT_OPERATIONS = 20_000 if TORTURE else 700  # of each of the two tenants, for each pair of names
ANCHORS = {
    "prefix": ({"tenant_id": "acme", "customer_id": "7"}, {"tenant_id": "acme2", "customer_id": "7"}),
    "case": ({"tenant_id": "Acme", "customer_id": "7"}, {"tenant_id": "acme", "customer_id": "7"}),
    "wildcard": ({"tenant_id": "a_c", "customer_id": "%"}, {"tenant_id": "abc", "customer_id": "%"}),
    "customer": ({"tenant_id": "acme", "customer_id": "7"}, {"tenant_id": "acme", "customer_id": "8"}),
    "swapped": ({"tenant_id": "a", "customer_id": "b"}, {"tenant_id": "b", "customer_id": "a"}),
}


@dataclass
class Driver:
    """Does operations in one workspace, each drawn from dice of its own, and notes all that it is answered."""

    world: Workspace
    dice: random.Random
    foreign: Callable[[], str]
    known: list[str] = field(default_factory=list)
    strangers: set[str] = field(default_factory=set)
    talks: list[str] = field(default_factory=list)
    said: list[str] = field(default_factory=list)
    tier: str = "workspace"
    foreign_talk: Callable[[], str] | None = None
    session: Path | None = None  # a recorded session, which both hand in

    def step(self, operations: Mapping[str, Callable[[Driver], Any]] | None = None) -> None:
        known = OPERATION if operations is None else operations
        (name,) = self.dice.choices(list(known), [WEIGHT.get(name, 1) for name in known])
        try:
            answer = plain(known[name](self))
        except LukasaError as error:
            answer = [type(error).__name__, error.message, error.fix]
        self.said.append(f"{name}: {json.dumps(answer, ensure_ascii=False, sort_keys=True, default=str)}")

    def text(self) -> str:
        subject, place, time = (self.dice.choice(WORDS) for _ in range(3))
        return f"The {subject} is {self.dice.choice(['at', 'near', 'not at'])} the {place} by {time}"

    def some(self) -> str:
        """An id of this workspace, or now and then one that is not: another's, where there is another."""
        if self.known and self.dice.random() < 0.8:
            return self.dice.choice(self.known)
        stranger = self.foreign()
        self.strangers.add(stranger)
        return stranger

    def talk(self) -> str:
        if not self.talks or self.dice.random() < 0.2:
            self.talks.append(self.world.start().ref_code)
        return self.dice.choice(self.talks)

    def put(self) -> Any:
        written = self.world.put(self.tier, self.text(), importance=round(self.dice.random(), 2))
        self.known.append(written.id)
        return written

    def put_in_talk(self) -> Any:
        return self.world.at(conversation=self.talk()).put("conversation", self.text())

    def put_in_channel(self) -> Any:
        return self.world.at(channel="general").put("channel", self.text())

    def scrub(self) -> Any:
        if self.dice.random() < 0.9:
            shown = self.world.scrub_plan("workspace")
            return shown.scope, shown.counts, shown.warnings
        mode = self.dice.choice(["full", "keep_named"])
        digest = self.world.scrub_plan("workspace", mode=mode).digest
        done = self.world.scrub_execute("workspace", mode=mode, confirm=digest)
        return done.manifest.counts, done.event, done.swept

    def purge(self) -> Any:
        ref = self.talk()
        return self.world.purge_execute(ref, confirm=self.world.purge_plan(ref).digest).manifest.counts


OPERATION: dict[str, Callable[[Driver], Any]] = {
    "put": Driver.put,
    "put in a conversation": Driver.put_in_talk,
    "put in a channel": Driver.put_in_channel,
    "read": lambda d: d.world.read(d.text(), held=True, history=d.dice.random() < 0.3),
    "context": lambda d: str(d.world.context(d.text())),
    "list": lambda d: d.world.entries("workspace", everything=True),
    "get": lambda d: d.world.get(d.some()),
    "update": lambda d: d.world.update(d.some(), content=d.text()),
    "forget": lambda d: d.world.forget(d.some()),
    "restore": lambda d: d.world.restore(d.some()),
    "undo": lambda d: d.world.undo(d.some()),
    "why": lambda d: d.world.why(d.text(), d.some()),
    "history": lambda d: d.world.history(d.some()),
    "ledger": lambda d: d.world.ledger(d.some()),
    "standing": lambda d: d.world.standing(d.some()),
    "action": lambda d: d.world.link_action(f"a{d.dice.random()}", [d.some()], d.text()),
    "page": lambda d: d.world.edit_named("PLACES", d.text(), tier="workspace"),
    "pages": lambda d: (d.world.named(), d.world.named_history("PLACES")),
    "document": lambda d: d.world.save_document(d.dice.choice(WORDS), d.text()),
    "documents": lambda d: d.world.documents(),
    "note": lambda d: d.world.write_note(d.talk(), d.dice.choice(WORDS), d.text()),
    "clear": lambda d: d.world.clear_notes(d.talk()),
    "notes": lambda d: d.world.notes(d.talk()),
    "end": lambda d: d.world.end(d.talk()),
    "conversations": lambda d: d.world.conversations(archived=True),
    "channel": lambda d: d.world.create_channel(d.dice.choice(WORDS)),
    "census": lambda d: d.world.census(),
    "survey": lambda d: d.world.survey(),
    "stats": lambda d: d.world.stats(),
    "jobs": lambda d: d.world.jobs(),
    "events": lambda d: d.world.events(limit=10_000),
    "verify": lambda d: d.world.verify(),
    "scrub": Driver.scrub,
    "purge": Driver.purge,
}


WEIGHT = {"put": 12, "put in a conversation": 3, "put in a channel": 3, "read": 3, "purge": 0.5}


def doubted(driver: Driver) -> Any:
    """Put what will be held, and note its id."""
    text = f"Always light the lamp of {driver.text()}"
    written = driver.world.acting(trust=Trust.UNTRUSTED).put(driver.tier, text, kind="procedural")
    driver.known.append(written.id)
    return written


def someones_talk(driver: Driver) -> str:
    """A conversation of this tenant, or now and then one of another tenant: an unknown one, if there is none."""
    if driver.foreign_talk is None or driver.dice.random() < 0.5:
        return driver.talk()
    stranger = driver.foreign_talk()
    driver.strangers.add(stranger)
    return stranger


def planned(driver: Driver) -> Any:
    """What a scrub would remove, without the ids: several of one moment have no order."""
    shown = driver.world.scrub_plan(driver.tier)
    return shown.scope, shown.counts, shown.warnings


def items(driver: Driver, verb: str) -> Any:
    store, key = LukasaStore(driver.world), driver.dice.choice(WORDS)
    match verb:
        case "put":
            return store.put(("users", key), key, {"said": driver.text()})
        case "get":
            found = store.get(("users", key), key)
            return None if found is None else found.value
        case "delete":
            return store.delete(("users", key), key)
        case _:
            return [(item.namespace, item.value) for item in store.search(("users",))], store.list_namespaces()


def tool(driver: Driver) -> str:
    """A command of Anthropic's memory tool."""
    path = f"/memories/{driver.tier}/{driver.dice.choice(WORDS)}.md"
    commands = (
        {"command": "view", "path": "/memories"},
        {"command": "create", "path": path, "file_text": driver.text()},
    )
    return str(MemoryTool(driver.world).call(driver.dice.choice(commands)))


AS_TENANT: dict[str, Callable[[Driver], Any]] = {
    **{name: act for name, act in OPERATION.items() if name not in ("put in a channel", "channel", "scrub", "verify")},
    "put by an agent": lambda d: d.world.acting(agent="helper").put(d.tier, d.text()),
    "put what is doubted": doubted,
    "put instead": lambda d: d.world.put(d.tier, d.text(), supersedes=d.some()),
    "put from": lambda d: d.world.put(d.tier, d.text(), derived_from=[d.some(), d.some()]),
    "put in a conversation": lambda d: d.world.at(conversation=someones_talk(d)).put("conversation", d.text()),
    "list": lambda d: (d.world.entries("customer", everything=True), d.world.entries("tenant")),
    "related": lambda d: d.world.related(d.some()),
    "evidence": lambda d: d.world.evidence(d.some()),
    "accept": lambda d: d.world.accept(d.some()),
    "corroborate": lambda d: d.world.corroborate(d.some(), d.dice.choice(["confirmed", "failed"])),
    "grounds": lambda d: d.world.grounds(d.some()),
    "put many": lambda d: d.world.put_many(d.tier, [d.text(), d.text()]),
    "end a scope": lambda d: d.world.end_scope("customer_change"),
    "idle": lambda d: d.world.idle(someones_talk(d)),
    "bookmark": lambda d: d.world.bookmark(d.dice.choice(WORDS)),
    "bookmarks": lambda d: d.world.bookmarks(),
    "read a note": lambda d: d.world.read_note(someones_talk(d), d.dice.choice(WORDS)),
    "look at a job": lambda d: d.world.job(d.some()),
    "dispose": lambda d: d.world.dispose(d.some(), "archive", "old"),
    "dispositions": lambda d: d.world.dispositions(),
    "inbox": lambda d: d.world.inbox(),
    "approve": lambda d: d.world.approve(d.some()),
    "reject": lambda d: d.world.reject(d.some()),
    "settle": lambda d: d.world.settle(d.some(), d.some(), "both"),
    "agent's get": lambda d: d.world.acting(agent="helper").get(d.some()),
    "agent's forget": lambda d: d.world.acting(agent="helper").forget(d.some()),
    "join": lambda d: d.world.conversation(someones_talk(d)),
    "note": lambda d: d.world.write_note(someones_talk(d), d.dice.choice(WORDS), d.text()),
    "notes": lambda d: d.world.notes(someones_talk(d)),
    "archive": lambda d: d.world.archive(someones_talk(d)),
    "observe": lambda d: d.world.observe(str(d.session)),
    "transcripts": lambda d: (d.world.transcripts(), d.world.search_transcripts(d.text())),
    "transcript": lambda d: d.world.said("claude-code:s-1"),
    "scrub plan": planned,
    "put an item": lambda d: items(d, "put"),
    "get an item": lambda d: items(d, "get"),
    "delete an item": lambda d: items(d, "delete"),
    "list items": lambda d: items(d, "list"),
    "tool": tool,
}


def normal(driver: Driver) -> list[str]:
    """Ids, ref codes and seals are random: each becomes the number of its first appearance, or nothing. So is how long
    something took."""
    seen = dict.fromkeys(driver.strangers, "stranger")

    def number(match: re.Match[str]) -> str:
        return seen.setdefault(match[0], f"#{len(seen) - len(driver.strangers)}")

    refs = re.compile("|".join(map(re.escape, (*driver.talks, *driver.strangers))) or r"(?!)")
    said = [BRIEF.sub("[brief", TOOK.sub("took", line)) for line in driver.said]
    return [DIGEST.sub("seal", refs.sub(number, UUID.sub(number, line))) for line in said]


def drive(folder: Path, names: tuple[str, str], seed: str, *, together: bool) -> list[str]:
    """What the first workspace says, alone or with the second one busy between its steps."""
    clock = FixedClock()
    dice = random.Random(f"between {seed}")
    with Lukasa.open(folder, embedder=FakeEmbedder(), clock=clock, principal="ada") as memory:
        other = Driver(memory.workspace(names[1]), random.Random(f"second {seed}"), new_id) if together else None
        foreign = (lambda: dice.choice(other.known) if other.known else new_id()) if other else new_id
        first = Driver(memory.workspace(names[0]), random.Random(f"first {seed}"), foreign)
        for _ in range(OPERATIONS):
            clock.time += timedelta(minutes=7)
            first.step()
            if other is not None:
                other.step()
        assert first.world.check() == []
    return normal(first)


def drive_tenants(
    folder: Path,
    pair: tuple[dict[str, str], dict[str, str]],
    seed: str,
    *,
    together: bool,
    database: str = "",
    steps: int = TENANT_OPERATIONS,
) -> list[str]:
    """What the first tenant says, alone or with the second one busy between its steps."""
    clock = FixedClock()
    session = sessions.claude(folder / "s.jsonl", [("user", f"The {word} is red") for word in WORDS], noise=False)
    dice = random.Random(f"between {seed}")
    where = {"data": folder, "database": database, "account": folder.name} if database else {"in_memory": True}
    with Lukasa.open(**where, embedder="none", clock=clock, principal="ada") as memory:
        desk = memory.workspace("desk", spec=support_spec())
        desk.edit_named("PLACES", "Ferry, harbour, tower.", tier="tenant")
        busy = Driver(desk.at(**pair[1]), random.Random(f"second {seed}"), new_id, tier="customer", session=session)
        other = busy if together else None
        known, talks = (other.known, other.talks) if other else ([], [])
        first = Driver(
            desk.at(**pair[0]),
            random.Random(f"first {seed}"),
            lambda: dice.choice(known) if known else new_id(),
            tier="customer",
            foreign_talk=lambda: dice.choice(talks) if talks else new_ref_code(),
            session=session,
        )
        for _ in range(steps):
            clock.time += timedelta(minutes=7)
            first.step(AS_TENANT)
            if other is not None:
                other.step(AS_TENANT)
        assert desk.check() == []
        told = "\n".join(first.said)
        assert not [id for id in known if id in told and id not in first.strangers]
    return normal(first)


@pytest.mark.parametrize("kind", ANCHORS)
def test_what_one_tenant_does_another_cannot_tell(tmp_path: Path, kind: str) -> None:
    """T07, S4: in one workspace, all that a tenant is answered is the same, alone or beside a busy one."""
    alone = drive_tenants(tmp_path, ANCHORS[kind], kind, together=False)
    beside = drive_tenants(tmp_path, ANCHORS[kind], kind, together=True)
    for number, (one, two) in enumerate(zip(alone, beside, strict=True)):
        assert one == two, f"answer {number}"
    assert {line.split(":")[0] for line in alone} == set(AS_TENANT)


@pytest.mark.parametrize("kind", ANCHORS if TORTURE else ["customer"])
def test_nor_in_a_database_that_both_share(tmp_path: Path, database_url: str, kind: str) -> None:
    """S4, X3: the same in PostgreSQL, where row-level security is bound to the keys of each tenant."""
    told = []
    for name, together in (("alone", False), ("beside", True)):
        (tmp_path / name).mkdir()
        steps = 5000 if TORTURE else 150
        told.append(
            drive_tenants(tmp_path / name, ANCHORS[kind], kind, together=together, database=database_url, steps=steps)
        )
    for number, (one, two) in enumerate(zip(*told, strict=True)):
        assert one == two, f"answer {number}"


@pytest.mark.parametrize("kind", PAIRS)
def test_what_one_workspace_does_another_cannot_tell(tmp_path: Path, kind: str) -> None:
    """T07, X3: all that a workspace answers is the same, alone or beside a busy one; foreign ids are unknown ids."""
    alone = drive(tmp_path / "alone", PAIRS[kind], kind, together=False)
    beside = drive(tmp_path / "beside", PAIRS[kind], kind, together=True)
    for number, (one, two) in enumerate(zip(alone, beside, strict=True)):
        assert one == two, f"answer {number}"
    assert len({line.split(":")[0] for line in alone}) > 25


def test_the_account_is_what_workspaces_share(tmp_path: Path) -> None:
    """T07: by design, and nothing else: a fact of the account is read in each, and scrubbed for all by the author."""
    with Lukasa.open(tmp_path, embedder="none") as memory:
        one, two = memory.workspace("one"), memory.workspace("two")
        one.put("account", "The author prefers short answers")
        two.put("workspace", "The ferry leaves at noon every day")
        assert [hit.content for hit in two.read("which answers are preferred?")] == ["The author prefers short answers"]
        two.scrub_execute("account", confirm=one.scrub_plan("account").digest)
        assert one.entries("account") == []
        assert len(two.entries("workspace")) == 1
        assert one.events(action="scrub.executed") == []
