"""What the speed bench found, as tables: by size, beside other stores, and beside what was asked for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from bench.made import DIMENSIONS

Row = dict[str, Any]
LABELS = {
    "langgraph": "LangGraph SqliteStore, by vector",
    "chroma": "Chroma, by vector",
    "chroma-scoped": "Chroma, by vector, one scope of a collection",
    "lancedb": "LanceDB hybrid, vectors scanned",
    "lancedb-ivf": "LanceDB hybrid, vectors indexed (IVF-PQ)",
    "mem0": "mem0 without inference, by vector",
    "txtai": "txtai hybrid",
}
FEWER = {"langgraph": {10_000: 7.0, 100_000: 50.0}, "lancedb": {10_000: 2.5, 100_000: 2.5}}
FEWER |= {"mem0": {10_000: 30.0, 100_000: 30.0}}
MILLION = 1_000_000


@dataclass(frozen=True)
class Target:
    """Something that was asked for, and what this run measured; None is not measured."""

    what: str
    bound: float
    measured: float | None
    least: bool = False
    form: str = ".1f"

    @property
    def verdict(self) -> str:
        if self.measured is None:
            return "not measured"
        kept = self.measured >= self.bound if self.least else self.measured <= self.bound
        return "yes" if kept else "no"

    def cells(self) -> list[str]:
        asked = f"{'at least' if self.least else 'at most'} {self.bound:,g}"
        return [self.what, asked, "" if self.measured is None else f"{self.measured:,{self.form}}", self.verdict]


def report(rows: Sequence[Row], others: Sequence[Row], model: Row | None, rate: float) -> str:
    parts = ["### By size", by_size(rows, rate)]
    for size in dict.fromkeys(row["entries"] for row in others):
        found = one(rows, size)
        if found is not None:
            parts += [f"### Beside other stores, {size:,} entries", ABOUT_PEERS, peers(found, others)]
    parts += ["### With the default embedder", with_model(model)]
    asked = [*targets(rows, model), *(ratios(rows, others) if others else ())]
    body = grid(["", "asked", "measured", "kept"], [target.cells() for target in asked])
    return "\n\n".join([*parts, "### Asked and measured", body])


ABOUT_PEERS = (
    "The same texts, questions and vectors, seven results a question. Puts a second are those of the median call, on "
    "the clock, as durable as each store makes them by default. Memory is that of the process after the questions, "
    "without the bench's own vectors. Each name says what is searched by; ours keeps access counts with every read."
)


def one(rows: Sequence[Row], entries: int, scopes: int = 1) -> Row | None:
    return next((row for row in rows if (row["entries"], row["scopes"]) == (entries, scopes)), None)


def by_size(rows: Sequence[Row], rate: float) -> str:
    head = [f"{r['entries']:,}" + (f" over {r['scopes']:,} scopes" if r["scopes"] > 1 else "") for r in rows]
    stages = dict.fromkeys(name for r in rows for name in r["stages"])
    lines = [
        ["read p50", *(f"{r['read']['p50']:.1f}" for r in rows)],
        ["read p50, in the busiest round", *(f"{r['busiest']:.1f}" for r in rows)],
        ["read p95", *(f"{r['read']['p95']:.1f}" for r in rows)],
        ["read p50, of scopes asked before", *(f"{r['again']['p50']:.1f}" if r["scopes"] > 1 else "" for r in rows)],
        ["read p50, right after a put", *(f"{r['after a put']['p50']:.1f}" for r in rows)],
        *([f"· {name}", *(f"{r['stages'].get(name, 0):.2f}" for r in rows)] for name in stages),
        ["context p50", *(f"{r['context']['p50']:.1f}" for r in rows)],
        ["context p95", *(f"{r['context']['p95']:.1f}" for r in rows)],
        ["open and first read", *(f"{r['first']:.0f}" for r in rows)],
        [
            f"limit: all vectors once at the measured {rate / 1e9:.0f} GB/s",
            *(f"{r['entries'] / r['scopes'] * DIMENSIONS * 4 / rate * 1000:.2f}" for r in rows),
        ],
        ["puts a second, one at a time", *(f"{r['single']['wall']:,.0f}" for r in rows)],
        ["puts a second, one at a time, of words that others have too", *(f"{r['common']['wall']:,.0f}" for r in rows)],
        ["puts a second, batches of 100", *(f"{r['batch']['wall']:,.0f}" for r in rows)],
        ["puts a second of CPU, batches of 100", *(f"{r['batch']['CPU']:,.0f}" for r in rows)],
        ["filled a second of CPU", *(f"{r['filled a second']:,.0f}" for r in rows)],
        ["vector recall at 10", *(f"{r['recall']:.3f}" if "recall" in r else "" for r in rows)],
        ["memory, MB", *(f"{r['memory']:.0f}" for r in rows)],
        ["disk, MB", *(f"{r['disk']:.0f}" for r in rows)],
    ]
    return grid(["CPU ms unless named", *head], lines)


def peers(ours: Row, others: Sequence[Row]) -> str:
    head = ["", "CPU ms a search", "in the busiest round", "ours is less by", "puts/s, single", "puts/s, 100 at once"]
    head += ["memory, MB", "disk, MB"]
    lines = []
    for row in [ours, *(other for other in others if other["entries"] == ours["entries"])]:
        name = LABELS.get(row["name"], "Lukasa, by words and vectors")
        name += f" ({row['version']})" if "version" in row else ""
        if "missing" in row:
            lines.append([name, row["missing"], *[""] * 6])
            continue
        times = f"{row['read']['p50'] / ours['read']['p50']:.1f}×" if row is not ours else ""
        puts = [f"{row['single']['wall']:,.0f}", f"{row['batch']['wall']:,.0f}"]
        reads = [f"{row['read']['p50']:.1f}", f"{row['busiest']:.1f}"]
        lines.append([name, *reads, times, *puts, f"{row['memory']:.0f}", f"{row['disk']:.0f}"])
    return grid(head, lines)


def with_model(row: Row | None) -> str:
    if row is None:
        return "Not measured: the default embedding model is not on this machine (`make model`)."
    names = {"embedder": "the embedder alone", "read": "read", "context": "context"}
    figures = ("p50", "p95", "wall")
    cells = [[said, *(f"{row[key][figure]:.1f}" for figure in figures)] for key, said in names.items()]
    about = (
        f"{row['entries']:,} entries of plain English, as `make bench-latency` has them; the model is loaded and warm."
    )
    return about + "\n\n" + grid(["ms", "CPU p50", "CPU p95", "wall p50"], cells)


def targets(rows: Sequence[Row], model: Row | None) -> Iterator[Target]:
    """What the speed of a read, a context and a put should be on a machine of two cores."""
    for entries, scopes, bound in ((10_000, 1, 4), (100_000, 1, 6), (MILLION, 1, 15), (MILLION, 1000, 3)):
        row = one(rows, entries, scopes)
        where = f"{entries:,}" + (f" over {scopes:,} scopes" if scopes > 1 else "")
        yield Target(f"CPU ms a read, {where}", bound, row["read"]["p50"] if row else None)
    small, middle, large = (one(rows, entries) for entries in (10_000, 100_000, MILLION))
    grown = large["read"]["p50"] / small["read"]["p50"] if small and large else None
    yield Target("growth of a read, 10,000 to 1,000,000, times", 5, grown)
    worst = min((row["recall"] for row in rows if "recall" in row), default=None)
    yield Target("vector recall at 10, the least of all sizes", 0.99, worst, least=True, form=".3f")
    for row in (small, middle):
        if row is not None:
            what = f"durable puts a second in batches of 100, {row['entries']:,}"
            yield Target(what, 3_000, row["batch"]["wall"], least=True, form=".0f")
    context = model["context"]["wall"] if model else None
    yield Target("ms a context at 10,000, p50 on the clock, embedder warm", 30, context)
    yield Target("MB resident at 100,000", 400, middle["memory"] if middle else None, form=".0f")


def ratios(rows: Sequence[Row], others: Sequence[Row]) -> Iterator[Target]:
    """How much less a read should cost than elsewhere; of a store in two forms the cheaper one counts."""
    for name, size, bound in [(name, size, bound) for name, bounds in FEWER.items() for size, bound in bounds.items()]:
        ours, theirs = one(rows, size), [o for o in others if o["entries"] == size and o["name"].startswith(name)]
        costs = [other["read"]["p50"] for other in theirs if "read" in other]
        what = f"times less CPU a read than {LABELS[name].split(',')[0].split(' without')[0]}, {size:,}"
        yield Target(what, bound, min(costs) / ours["read"]["p50"] if ours and costs else None, least=True)
    for size in (10_000, 100_000):
        ours = one(rows, size)
        theirs = [o for o in others if (o["name"], o["entries"]) == ("langgraph", size) and "single" in o]
        for ones, said in (("batch", "puts in batches of 100"), ("single", "single puts")):
            share = ours[ones]["wall"] / theirs[0]["single"]["wall"] if ours and theirs else None
            yield Target(f"our {said} to LangGraph's single ones, {size:,}", 1, share, least=True, form=".2f")


def grid(head: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    ruled = ["| " + " | ".join(head) + " |", "| --- |" + " ---: |" * (len(head) - 1)]
    return "\n".join([*ruled, *("| " + " | ".join(line) + " |" for line in lines)])
