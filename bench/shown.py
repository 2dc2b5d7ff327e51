"""What the disclosure ledger costs: CPU of a context with and without it, bytes of a row, questions to a full ledger.

    python -m bench.shown [CONTEXTS]

Contexts with and without the ledger take turns in one process, so that load on the machine meets both alike.
"""

from __future__ import annotations

import sys
import tempfile
import time
from datetime import timedelta
from pathlib import Path
from statistics import median

import apsw

from lukasa import Lukasa
from lukasa.model.disclosure import Disclosure, DisclosureQuery, Shown
from lukasa.service.entries.put import Memo
from lukasa.service.workspace import Workspace
from lukasa.storage.operations import ForgetDisclosures

ENTRIES, FULL, HELD = 10_000, 50_000, 8


def cpu(world: Workspace, query: str, *, record: bool) -> float:
    began = time.process_time()
    world.context(query, record=record)
    return (time.process_time() - began) * 1000


def contexts(world: Workspace, rounds: int) -> None:
    took: dict[bool, list[float]] = {True: [], False: []}
    for n in range(rounds):
        for record in (True, False) if n % 2 else (False, True):
            took[record].append(cpu(world, f"what about river {n % 97} and mountain {n % 89}?", record=record))
    with_, without = sum(took[True]), sum(took[False])
    medians = f"median {median(took[True]):.2f} and {median(took[False]):.2f}"
    print(f"context, CPU ms with and without: {medians}, mean ratio {with_ / without:.3f}")


def ledger(world: Workspace, folder: Path, ids: list[str]) -> None:
    store, now = world.ctx.local, world.ctx.now
    size = _bytes(folder)
    world.ctx.apply(store, ForgetDisclosures(now + timedelta(days=1), 1))
    before = _bytes(folder)
    began = time.process_time()
    for n in range(FULL):
        shown = tuple(Shown(ids[(n * 31 + m * 7) % len(ids)], 1, 40) for m in range(HELD))
        at = now - timedelta(minutes=FULL - n)
        store.disclose(Disclosure(at, "claude-code", "hook", "claude-code", ids[n % 50], "", "hook.prompt", 400, shown))
    world.shown(limit=1)
    took = (time.process_time() - began) / FULL * 1e6
    grown = _bytes(folder) - min(size, before)
    print(f"{FULL:,} texts of {HELD} entries: {grown / FULL:.0f} bytes each, {grown / FULL / HELD:.0f} an entry")
    print(f"noting one: {took:.0f} µs CPU, written in batches")
    for name, ask in (
        ("shown ID", lambda: world.shown(ids[3])),
        ("stats --tokens, 7 days", lambda: world.token_use("7d")),
        ("shown --unused, 7 days", lambda: world.unused("7d")),
        ("all of it, decoded", lambda: store.disclosures(DisclosureQuery())),
    ):
        began = time.process_time()
        ask()
        print(f"{name}: {(time.process_time() - began) * 1000:.0f} ms CPU")


def _bytes(folder: Path) -> int:
    db = apsw.Connection(str(next((folder / "workspaces").glob("*/memory.db"))))
    ((pages, free, page),) = db.execute(
        "SELECT page_count, freelist_count, page_size FROM pragma_page_count, pragma_freelist_count, pragma_page_size"
    )
    db.close()
    return (int(str(pages)) - int(str(free))) * int(str(page))


def main(rounds: int) -> None:
    with tempfile.TemporaryDirectory() as data, Lukasa.open(data, embedder="none") as memory:
        world = memory.workspace("novel")
        memos = [Memo(f"River {n} meets mountain {n % 89} near the town of {n * 7919 % 1009}") for n in range(ENTRIES)]
        ids = [one.id for at in range(0, ENTRIES, 200) for one in world.put_many("workspace", memos[at : at + 200])]
        for n in range(20):
            world.context(f"river {n}", record=False)
        contexts(world, rounds)
        ledger(world, Path(data), ids)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 400)
