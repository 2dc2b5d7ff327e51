"""What the PostgreSQL bench found, as tables: by size, beside other stores, through servers, and what was asked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from bench.speed_report import Target, grid

Row = dict[str, Any]
LABELS = {
    "hybrid-any": "pgvector and GIN with ts_rank, any word",
    "hybrid-all": "pgvector and GIN with ts_rank, all words",
    "langgraph": "LangGraph PostgresStore, by vector",
}
ENGINES = {"postgres": "PostgreSQL", "sqlite": "SQLite"}
MILLION = 1_000_000
ABOUT_BESIDE = """Seven results a question, in the same server. The hybrids are one table, one statement and two
indexes; they keep no versions, events, access counts or duplicates. The rows `any word` and `all words` differ in what
a text must hold of the question to be found by words."""
ABOUT_CLIENTS = """64 clients at once over HTTP, on 16 workspaces of a thousand entries: of ten requests eight are
reads, one is a context and one is a put. Of three rounds the one with the most answers; errors of all of them. Clients,
servers and PostgreSQL share the cores of one machine, so a second server mostly takes from the first one: the ratio
says little about servers on machines of their own. So servers are also held back: each runs for a quarter of the time,
in turn, and stands still otherwise, also in the middle of a transaction. `cores` is how many were busy on average."""
ABOUT_INDEXES = """A large partition has an index for its vectors alone. This is what such indexes of other workspaces
cost a workspace of a thousand entries that has none."""


def report(found: Mapping[str, Any]) -> str:
    ours, others = found["ours"], found["others"]
    parts = ["### PostgreSQL and SQLite", by_size(ours), "### Bytes in PostgreSQL", disk(ours)]
    for size in dict.fromkeys(row["entries"] for row in others):
        parts += [f"### Beside other stores in PostgreSQL, {size:,} entries", ABOUT_BESIDE.replace("\n", " ")]
        parts.append(beside(size, ours, others))
    parts += ["### 64 clients through one server and through two", ABOUT_CLIENTS.replace("\n", " ")]
    parts += [clients(found["clients"]), "### Indexes of other partitions", ABOUT_INDEXES.replace("\n", " ")]
    parts.append(indexes(found["indexes"]))
    body = grid(["", "asked", "measured", "kept"], [target.cells() for target in targets(found)])
    return "\n\n".join([*parts, "### What PostgreSQL was asked for", body])


def one(ours: Sequence[Row], engine: str, entries: int) -> Row | None:
    return next((row for row in ours if (row["name"], row["entries"]) == (engine, entries)), None)


def heading(row: Row) -> str:
    over = f" over {row['workspaces']:,} workspaces" if row["workspaces"] > 1 else ""
    return f"{ENGINES[row['name']]}, {row['entries']:,}{over}"


def by_size(ours: Sequence[Row]) -> str:
    def of(what: str, figure: str = "p50", each: int = 1) -> list[str]:
        return [f"{row[what][figure] / each:.2f}" if figure in row[what] else "" for row in ours]

    lines = [
        ["read p50", *of("read")],
        ["· of it the backend", *of("read", "beside")],
        ["read p50, in the busiest round", *(f"{row['busiest']:.2f}" for row in ours)],
        ["read p95", *of("read", "p95")],
        ["read p50, of workspaces asked before", *of("again")],
        ["read p50, right after a put", *of("after a put")],
        ["context p50", *of("context")],
        ["· of it the backend of a context", *of("context", "beside")],
        ["put p50, one at a time", *of("single")],
        ["· of it the backend of a put", *of("single", "beside")],
        ["put p50, each of a batch of 100", *of("batch", each=100)],
        ["read p50 on the clock, ms", *of("read", "wall")],
        ["put p50 on the clock, ms", *of("single", "wall")],
        ["vector recall at 10", *("" if row["recall"] is None else f"{row['recall']:.3f}" for row in ours)],
        ["bytes of write-ahead log a put", *(f"{row['log']:,.0f}" if row["log"] else "" for row in ours)],
        ["memory of the process, MB", *(f"{row['memory']:.0f}" for row in ours)],
        ["memory of a backend of its own, MB", *(f"{row['backend memory'] or 0:.0f}" for row in ours)],
        ["filled a second on the clock", *(f"{row['entries'] / row['seconds']:,.0f}" for row in ours)],
        ["index for vectors, seconds", *(f"{row['indexing']:.0f}" if row["indexing"] > 1 else "" for row in ours)],
        ["disk, MB", *(f"{row['disk']:,.0f}" for row in ours)],
    ]
    return grid(["CPU ms unless named", *map(heading, ours)], lines)


def disk(ours: Sequence[Row]) -> str:
    """Bytes an entry, by table with its indexes."""
    rows = [row for row in ours if row["sizes"]]
    head = [f"{row['entries']:,}" + (f" over {row['workspaces']:,}" if row["workspaces"] > 1 else "") for row in rows]
    names = {"hnsw": "index for vectors (HNSW)"}
    every = {name for row in rows for name in row["sizes"]}
    tables = sorted(every, key=lambda name: (-max(row["sizes"][name] for row in rows), name))
    lines = [
        [names.get(table, table), *(f"{row['sizes'][table] / row['entries']:,.0f}" for row in rows)]
        for table in tables
        if any(row["sizes"][table] / row["entries"] >= 1 for row in rows)
    ]
    lines.append(["all bytes an entry", *(f"{sum(row['sizes'].values()) / row['entries']:,.0f}" for row in rows)])
    return grid(["bytes an entry", *head], lines)


def beside(size: int, ours: Sequence[Row], others: Sequence[Row]) -> str:
    mine = one(ours, "postgres", size)
    lines = []
    for row in [*([mine] if mine else []), *(other for other in others if other["entries"] == size)]:
        name = LABELS.get(row["name"], "Lukasa on PostgreSQL, by words and vectors")
        name += f" ({row['version']})" if row["name"] == "langgraph" else ""
        times = f"{row['read']['p50'] / mine['read']['p50']:.1f}×" if mine and row is not mine else ""
        figures = [row["read"]["p50"], row["read"]["beside"], row["busiest"], row["single"]["p50"]]
        cells = [f"{figure:.2f}" for figure in (*figures, row["batch"]["p50"] / 100)]
        size_mb = row["disk"] if row is mine else row["bytes"] / 2**20
        lines.append([name, cells[0], times, *cells[1:], f"{size_mb:,.0f}"])
    head = ["CPU ms", "a search", "ours is less by", "of it the backend", "in the busiest round", "a put"]
    return grid([*head, "each of 100 puts", "disk, MB"], lines)


def clients(rows: Sequence[Row]) -> str:
    lines = []
    for row in rows:
        cpu = [f"{row['cpu'][part]:.2f}" for part in ("servers", "PostgreSQL", "clients")]
        waits = [f"{row['p50']:.0f}", f"{row['p95']:.0f}"]
        servers = "one server" if row["servers"] == 1 else "two servers"
        servers += ", held back" if row["slow"] else ""
        lines.append([servers, f"{row['rate']:,.0f}", f"{row['errors']}", *waits, *cpu, f"{row['busy']:.2f}"])
    head = ["", "answers a second", "errors", "ms p50", "ms p95", "server CPU ms", "PostgreSQL CPU ms"]
    return grid([*head, "client CPU ms", "cores"], lines)


def indexes(rows: Sequence[Row]) -> str:
    lines = [
        [
            f"{row['indexes']:,} indexes",
            *(f"{row[what]['p50']:.2f}" for what in ("read", "single")),
            f"{row['single']['beside']:.2f}",
            f"{row['backend memory']:.0f}",
        ]
        for row in rows
    ]
    return grid(["CPU ms", "a read", "a put", "of a put the backend", "memory of a backend, MB"], lines)


def targets(found: Mapping[str, Any]) -> Iterator[Target]:
    """What PostgreSQL should cost on a machine of two cores."""
    ours, others = found["ours"], found["others"]
    small, middle, large = (one(ours, "postgres", entries) for entries in (10_000, 100_000, MILLION))
    yield Target("CPU ms a read on PostgreSQL, 100,000", 8, middle["read"]["p50"] if middle else None, form=".2f")
    what = "CPU ms a read on PostgreSQL, 1,000,000 over 1,000 workspaces"
    yield Target(what, 5, large["read"]["p50"] if large else None, form=".2f")
    grown = large["read"]["p50"] / small["read"]["p50"] if small and large else None
    yield Target("growth of a read, 10,000 to 1,000,000 over 1,000 workspaces, times", 2, grown, form=".2f")
    for name in ("hybrid-any", "hybrid-all"):
        theirs = next((row for row in others if (row["name"], row["entries"]) == (name, 100_000)), None)
        less = theirs["read"]["p50"] / middle["read"]["p50"] if theirs and middle else None
        asked = 5 if name == "hybrid-any" else 1
        yield Target(f"times less CPU a read than {LABELS[name]}, 100,000", asked, less, least=True)
    alone, both, slow, slow_both = found["clients"]
    yield Target("errors of 64 clients through two servers", 0, both["errors"] + slow_both["errors"], form=".0f")
    for said, less, more in (("", alone, both), (", held back", slow, slow_both)):
        what = f"answers through two servers to those through one{said}"
        yield Target(what, 1.6, more["rate"] / less["rate"], least=True, form=".2f")
