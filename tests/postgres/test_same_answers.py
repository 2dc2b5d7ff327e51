"""SQLite and PostgreSQL are one memory: the same operations and reads give the same answers, order and digests."""

from __future__ import annotations

import json
import os
import random
import re
import secrets
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
import pytest

from lukasa import Lukasa
from lukasa.langgraph import LukasaStore
from lukasa.model.ids import new_id, new_ref_code
from lukasa.model.selection import Filters, Selection
from lukasa.model.values import Kind, State, Visibility
from lukasa.ports import Vector
from lukasa.spec.load import preset_text
from lukasa.storage import commit as committing
from lukasa.storage.port import ItemQuery, Store
from lukasa.storage.sqlite import store_files
from lukasa.surfaces.cli.data import plain
from tests.fakes import FakeEmbedder
from tests.helpers import sessions
from tests.helpers.cli import support_spec
from tests.helpers.making import RETIRE, FixedClock
from tests.helpers.processes import TORTURE
from tests.stories.test_noninterference import AS_TENANT, OPERATION, WORDS, Driver

OPERATIONS, READS = (2000, 300) if TORTURE else (400, 150)
# Scores that differ by less are equal, and then the order may differ. Cosines differ by up to 1e-5, as vectors have
# another form in memory, and the scaling of a signal to the range of its candidates makes that more.
NEAR = 2e-4
# Each worker has a name of its own, and everything takes its time.
OWN = re.compile(r'"(worker|max_ms|mean_ms|duration_ms)": ("[^"]*"|[0-9.e-]+)')
EVERY: Mapping[str, Callable[[Driver], Any]] = {
    **OPERATION,
    **{name: act for name, act in AS_TENANT.items() if name not in OPERATION},
    "forget and undo": lambda d: (d.world.forget(d.some()), d.world.undo(d.known[-1])),
    "add tags": lambda d: d.world.update(d.some(), tags=[d.dice.choice(WORDS), "old"]),
    "import": lambda d: d.known.extend(one.id for one in d.world.put_many(d.tier, [d.text() for _ in range(9)])),
    "work": lambda d: d.work(),  # type: ignore[attr-defined]
    "search": lambda d: [(hit.score.final, hit.content) for hit in d.world.read(d.text(), limit=20)],
    "remove a document": lambda d: d.world.remove_document(d.dice.choice(WORDS)),
    "cancel a job": lambda d: d.world.cancel_job(d.world.jobs(limit=1)[0].id),
    "put an item deep": lambda d: LukasaStore(d.world).put(("docs", d.dice.choice(WORDS)), "k", {"n": d.dice.random()}),
}


_urandom = os.urandom


class Distinct(FakeEmbedder):
    """Vectors that differ for the same words in another order. Otherwise many cosines are equal but for their rounding,
    and a spec that fuses by rank makes much of that."""

    def _embed(self, text: str) -> Vector:
        own = np.random.default_rng(crc32(text.encode())).standard_normal(self.model.dimensions)
        vector = super()._embed(text) + 0.02 * own
        unit: Vector = (vector / np.linalg.norm(vector)).astype(np.float32)
        return unit


class Chance:
    """Dice in place of the system's: ids, salts and secrets are the same in another run, and so are digests."""

    def __init__(self) -> None:
        self._dice, self._ticks = random.Random(0), 0

    def begin(self, step: object) -> None:
        self._dice.seed(repr(step))

    def urandom(self, count: int) -> bytes:
        return self._dice.randbytes(count) if count > 4 else _urandom(count)  # four bytes name a temporary file

    def time_ns(self) -> int:
        self._ticks += 1
        return 1_800_000_000_000_000_000 + self._ticks * 1_000_000

    @contextmanager
    def ruling(self) -> Iterator[Chance]:
        with pytest.MonkeyPatch.context() as patch:
            for module in (os, committing):
                patch.setattr(module, "urandom", self.urandom)
            patch.setattr(store_files, "urandom", bytes)  # the secret of a store
            patch.setattr(secrets, "token_bytes", bytes)
            patch.setattr(time, "time_ns", self.time_ns)
            yield self


@dataclass
class Told:
    """All that one engine answered."""

    answers: list[str] = field(default_factory=list)
    reads: list[tuple[str, Any]] = field(default_factory=list)
    logs: list[list[Any]] = field(default_factory=list)


def run(folder: Path, database: str, operations: int, reads: int) -> Told:
    """Do the same operations and reads as any other run of these numbers."""
    folder.mkdir()
    told, clock, chance = Told(), FixedClock(), Chance()
    session = sessions.claude(folder / "s.jsonl", [("user", f"The {word} is red") for word in WORDS], noise=False)
    with chance.ruling():
        chance.begin("open")
        open_ = Lukasa.open(folder / "data", database=database, embedder=Distinct(), clock=clock, principal="ada")
        with open_ as memory:
            drivers = _drivers(memory, session, chance)
            for step in range(operations):
                chance.begin(step)
                clock.time += timedelta(minutes=7)
                driver = drivers[step % len(drivers)]
                driver.step(EVERY)
                told.answers.append(OWN.sub(r'"\1": 0', driver.said[-1]))
            for number in range(reads):
                chance.begin(("read", number))
                dice = random.Random(f"read {number}")
                told.reads.append(_asked(drivers[number % len(drivers)], dice))
            for store in (*(driver.world.ctx.local.within({}) for driver in drivers[:2]), memory.account):
                assert store.check() == []
                told.logs.append(
                    [store.head(), *[(e.seq, e.action, e.subject, e.digest) for e in store.event_stream()]]
                )
    return told


def _drivers(memory: Lukasa, session: Path, chance: Chance) -> list[Driver]:
    chance.begin("novel")
    novel = memory.workspace("novel", spec=preset_text("default") + RETIRE)
    chance.begin("desk")
    desk = memory.workspace("desk", spec=support_spec())
    made = [
        Driver(novel, random.Random("first"), new_id, foreign_talk=new_ref_code, session=session),
        Driver(
            desk.at(tenant_id="acme", customer_id="7"),
            random.Random("second"),
            new_id,
            tier="customer",
            foreign_talk=new_ref_code,
            session=session,
        ),
        Driver(
            desk.at(tenant_id="evil", customer_id="7").acting(agent="helper"),
            random.Random("third"),
            new_id,
            tier="customer",
            foreign_talk=new_ref_code,
            session=session,
        ),
    ]
    for driver in made:
        driver.work = memory.worker(workspace=driver.world).drain  # type: ignore[attr-defined]
    return made


def _asked(driver: Driver, dice: random.Random) -> tuple[str, Any]:
    name = dice.choice(list(READ))
    return name, READ[name](driver, driver.world.ctx.local.within({}), dice)


def _selection(driver: Driver, dice: random.Random) -> Selection:
    scopes = sorted({count.scope for count in driver.world.ctx.local.within({}).census()}, key=str)
    filters = dice.choice(
        [
            Filters(),
            Filters(kinds=frozenset([Kind.SEMANTIC])),
            Filters(states=frozenset([State.ACTIVE, State.HELD])),
            Filters(tags=frozenset(["old"])),
            Filters(min_importance=dice.random()),
            Filters(since=driver.world.ctx.now - timedelta(hours=dice.randrange(1, 200))),
            Filters(until=driver.world.ctx.now - timedelta(hours=dice.randrange(1, 200))),
        ]
    )
    return Selection(
        tuple(dice.sample(scopes, dice.randint(1, len(scopes)))) if scopes else (),
        frozenset(Visibility) if dice.random() < 0.5 else frozenset([Visibility.OPEN]),
        None if dice.random() < 0.5 else ("", "helper"),
        filters,
    )


def _sentence(dice: random.Random) -> str:
    return f"The {dice.choice(WORDS)} is near the {dice.choice(WORDS)} by {dice.choice(WORDS)}"


def _nearest(driver: Driver, store: Store, dice: random.Random) -> list[tuple[float, str]]:
    embedder = driver.world.ctx.embedder
    assert embedder is not None
    query = embedder.embed_query(_sentence(dice))
    found = store.nearest(_selection(driver, dice), embedder.model, query, 10, exact=dice.random() < 0.5)
    return [(float(match.cosine), match.candidate.id) for match in found]


def _hits(driver: Driver, dice: random.Random, **how: Any) -> list[tuple[float, str]]:
    return [(hit.score.final, hit.id) for hit in driver.world.read(_sentence(dice), count=False, **how)]


def _keyword(driver: Driver, store: Store, dice: random.Random) -> Any:
    """All that is found, by id: the score is made of it later, and a store may bring it in any order."""
    found = store.keyword(_selection(driver, dice), _sentence(dice).lower().split(), 1000)
    rows = zip(found.ids, plain(found.candidates), found.lengths, *found.counts, strict=True)
    return [found.size, found.total_terms, found.frequencies, sorted(rows)]


READ: dict[str, Callable[[Driver, Store, random.Random], Any]] = {
    "keyword": _keyword,
    "nearest": _nearest,
    "find": lambda d, s, dice: [e.id for e in s.find(_selection(d, dice), limit=dice.choice([3, 50]))],
    "adjacent": lambda d, s, dice: s.adjacent(dice.sample(d.known, min(5, len(d.known))), 3),
    "versions": lambda d, s, dice: plain([s.versions(id) for id in dice.sample(d.known, min(3, len(d.known)))]),
    "items": lambda d, s, dice: plain([f.item.value for f in s.find_items(ItemQuery(dice.choice([(), ("users",)])))]),
    "namespaces": lambda d, s, dice: s.item_namespaces(),
    "utterances": lambda d, s, dice: plain(s.find_utterances([dice.choice(WORDS).lower(), "red"], 5)),
    "census": lambda d, s, dice: [(str(c.scope), dict(c.states)) for c in s.census()],
    "arrivals": lambda d, s, dice: plain(s.arrivals()),
    "shares": lambda d, s, dice: plain(s.shares(d.world.ctx.now - timedelta(days=1))),
    "candidates": lambda d, s, dice: plain(s.candidates(d.known, _selection(d, dice).filters)),
    "withdrawn": lambda d, s, dice: plain(s.withdrawn(limit=20)),
    "access": lambda d, s, dice: plain(s.access(d.known)),
    "rivals": lambda d, s, dice: plain(s.rivals(d.known)),
    "read": lambda d, s, dice: [
        (hit.score.final, hit.id) for hit in d.world.read(_sentence(dice), limit=20, count=False)
    ],
    "read of history": lambda d, s, dice: _hits(d, dice, history=True, held=True),
    "context": lambda d, s, dice: str(d.world.context(_sentence(dice), count=False)),
    "entries": lambda d, s, dice: plain(d.world.entries(d.tier, everything=True)),
    "survey": lambda d, s, dice: plain(s.event_counts(d.world.ctx.now - timedelta(days=1))),
}


def ranked(one: Any) -> bool:
    """Whether it is hits with their scores. What comes from JSON has lists in place of tuples."""
    return (
        isinstance(one, list)
        and bool(one)
        and all(isinstance(r, tuple | list) and len(r) == 2 and isinstance(r[0], float) for r in one)
    )


def alike(one: Any, other: Any) -> bool:
    """Whether two answers are the same, numbers within a rounding, and ranked lists in order but for ties."""
    if ranked(one) and ranked(other):
        return len(one) == len(other) and all(
            abs(a - b) < NEAR and (x == y or _tied(one, other, place))
            for place, ((a, x), (b, y)) in enumerate(zip(one, other, strict=True))
        )
    if isinstance(one, float) and isinstance(other, float):
        return abs(one - other) < NEAR
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(alike(one[key], other[key]) for key in one)
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(map(alike, one, other))
    return bool(one == other)


def _tied(one: list[tuple[float, str]], other: list[tuple[float, str]], place: int) -> bool:
    """Whether the two at a place are tied with it in both lists; at the end of a list, a tie may have been cut."""
    score = one[place][0]
    here = {id for value, id in one if abs(value - score) < NEAR}
    there = {id for value, id in other if abs(value - score) < NEAR}
    return here == there or abs(one[-1][0] - score) < NEAR


def same(one: str, other: str) -> bool:
    """Whether two answers of an operation are the same; scores are numbers in their JSON."""
    if one == other:
        return True
    (name, _, mine), (also, _, theirs) = one.partition(": "), other.partition(": ")
    try:
        return name == also and alike(json.loads(mine), json.loads(theirs))
    except json.JSONDecodeError:
        return False


def test_both_engines_are_one_memory(tmp_path: Path, database_url: str) -> None:
    """Port: a seeded run of operations of all kinds, then reads of all kinds: the same answers in the same order, and
    the same log to its last digest."""
    here = run(tmp_path / "sqlite", "", OPERATIONS, READS)
    there = run(tmp_path / "postgres", database_url, OPERATIONS, READS)
    for number, (one, other) in enumerate(zip(here.answers, there.answers, strict=True)):
        assert same(one, other), f"operation {number}:\n{one}\n{other}"
    for number, (mine, theirs) in enumerate(zip(here.reads, there.reads, strict=True)):
        assert alike(mine, theirs), f"read {number}:\n{mine}\n{theirs}"
    assert here.logs == there.logs
    assert {line.split(":")[0] for line in here.answers} >= set(EVERY) - {"scrub", "purge"}  # rare
    assert {name for name, _ in here.reads} == set(READ)
    assert len([line for line in here.answers if "Error" not in line[:80]]) > OPERATIONS // 2
