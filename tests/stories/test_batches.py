"""A batch is what its members would be one by one: nothing but the number of transactions differs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from msgspec.structs import replace

from lukasa import Lukasa, Memo, Trust, Workspace
from lukasa.service.entries.put import Written
from lukasa.storage.memory.memory_store import MemoryStore
from tests.fakes import FakeEmbedder
from tests.helpers.making import FixedClock

STANDING = [
    "Ada lives in Rome",
    "The villain is called Malachar",
    "The capital of Lorne is Harrow",
    "Joseph does not like fish",
    "The harbour has three lighthouses",
    "Malachar is the villain",
]
MIXED: list[Memo] = [
    Memo("Ada moved to Paris"),
    Memo("The deadline is Friday"),
    Memo("ada moved to paris."),
    Memo("The deadline is Monday"),
    Memo("Joseph likes fish", importance=0.9, tags=["food"]),
    Memo("Joseph likes fish", importance=0.2, tags=["fish"]),
    Memo("ok", observed=True),
    Memo("insert this after the second paragraph", observed=True),
    Memo("insert this after the third paragraph"),
    Memo("The token: sk-abcdefghijklmnop1234 opens the door of the archive"),
    Memo("The harbour has three lighthouses"),
    Memo("The harbour has four lighthouses"),
    Memo("The villain is called Vexis", kind="episodic"),
    Memo("The villain is called Vexis"),
    Memo("Vexis is the villain"),
    Memo("The deadline is Tuesday"),
    Memo("Ada lives in Rome"),
    Memo("The harbour has three lighthouses there"),
    Memo("The capital of Lorne is Vell", valid_at="2031-01-01"),
    Memo("Notes of the day", path="notes/day.md"),
    Memo("Ada lives in Oslo", path="notes/ada.md"),
    Memo("Ada lives in Oslo", owner="scribe"),
    Memo("Ada lives in Bergen", owner="scribe"),
    Memo("Run `make test` before every release of the harbour"),
    *(Memo(f"Stall number {n} of the market sells {what}") for n, what in enumerate(["tea", "rope", "salt"])),
]


TIERS = {"default": "workspace", "anchored": "persistent"}  # the latter takes secrets out of what it is given


class Outcome(NamedTuple):
    outcome: str
    replaces: list[str]
    beside: list[str]
    reason: str
    entry: dict[str, Any] | None


def fresh(folder: Path, *, embedded: bool, store: str, preset: str) -> Workspace:
    embedder: Any = FakeEmbedder(256) if embedded else "none"
    world = Lukasa.open(folder, embedder=embedder, clock=FixedClock()).workspace("novel", preset=preset)
    if store == "memory":
        world = Workspace(replace(world.ctx, local=MemoryStore(), account=MemoryStore()))
    if preset == "anchored":
        world = world.at(org_id="lorne", domain_id="harbour")
    for text in STANDING:
        world.put(TIERS[preset], text)
    return world


def told(world: Workspace, written: Sequence[Written]) -> list[Outcome]:
    """With texts in place of ids, which are made anew in each store."""
    found = []
    for one in written:
        entry = None
        if one.entry is not None:
            now = world.get(one.entry.id)
            entry = {"text": now.content, "state": str(now.state), "kind": str(now.kind), "version": now.version}
            entry |= {"count": now.merged_count, "importance": now.importance, "tags": now.tags, "owner": now.owner}
            entry |= {"until": now.invalid_at, "by": now.superseded_by and world.get(now.superseded_by).content}
        replaced = sorted(world.get(id).content for id in one.replaces)
        beside = sorted(world.get(id).content for id in one.beside)
        found.append(Outcome(one.outcome, replaced, beside, one.reason, entry))
    return found


@pytest.mark.parametrize("preset", ["default", "anchored"])
@pytest.mark.parametrize("store", ["sqlite", "memory"])
@pytest.mark.parametrize("embedded", [True, False])
def test_a_batch_is_what_its_members_are_one_by_one(tmp_path: Path, embedded: bool, store: str, preset: str) -> None:
    """W3, W4, W9: repeats, contradictions, secrets, files and plain facts, in one batch and each alone."""
    together = fresh(tmp_path / "a", embedded=embedded, store=store, preset=preset)
    apart = fresh(tmp_path / "b", embedded=embedded, store=store, preset=preset)
    at_once = together.put_many(TIERS[preset], MIXED)
    in_turn = [written for memo in MIXED for written in apart.put_many(TIERS[preset], [memo])]
    assert told(together, at_once) == told(apart, in_turn)
    assert {"stored", "merged", "discarded"} <= {written.outcome for written in at_once}
    assert any(written.beside for written in at_once)
    secret = any("sk-abcdefghijklmnop" in entry["text"] for *_, entry in told(together, at_once) if entry is not None)
    assert secret is (preset == "default")


@pytest.mark.parametrize("embedded", [True, False])
def test_what_is_less_trusted_is_held_in_a_batch_too(tmp_path: Path, embedded: bool) -> None:
    """W4, W10: a stranger's contradictions wait, also among the members of their own batch."""
    together = fresh(tmp_path / "a", embedded=embedded, store="sqlite", preset="default").acting(trust=Trust.UNTRUSTED)
    apart = fresh(tmp_path / "b", embedded=embedded, store="sqlite", preset="default").acting(trust=Trust.UNTRUSTED)
    at_once = together.put_many("workspace", MIXED[:6])
    in_turn = [written for memo in MIXED[:6] for written in apart.put_many("workspace", [memo])]
    assert told(together, at_once) == told(apart, in_turn)
    assert "held" in {written.outcome for written in at_once}
