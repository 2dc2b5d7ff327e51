"""LangGraph's own SQLite store on the same texts, questions and vectors, in the same run."""

from __future__ import annotations

import sqlite3
import statistics
import tempfile
import time
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any


def langgraph(texts: Sequence[str], asked: Sequence[str], embedder: Any, ours: dict[str, Any]) -> str:
    """Its cost of a search and a put, and ours as a share of it; by vector, which is all that it searches by."""
    try:
        import_module("sqlite_vec")
        sqlite = import_module("langgraph.store.sqlite")
        base = import_module("langgraph.store.base")
    except ImportError:
        return "LangGraph's SqliteStore was not measured beside it: it needs `sqlite-vec`."
    if not hasattr(sqlite3.Connection, "enable_load_extension"):
        return "LangGraph's SqliteStore was not measured beside it: this Python's `sqlite3` loads no extensions."

    def embed(given: Sequence[str]) -> list[list[float]]:
        return [[float(x) for x in row] for row in embedder.embed_memories(given)]

    index = {"dims": embedder.model.dimensions, "embed": embed, "fields": ["text"]}
    with (
        tempfile.TemporaryDirectory() as folder,
        sqlite.SqliteStore.from_conn_string(str(Path(folder) / "store.db"), index=index) as store,
    ):
        store.setup()
        put = []
        for at in range(0, len(texts), 100):
            started = time.process_time()
            store.batch([base.PutOp(("bench",), str(at + i), {"text": t}) for i, t in enumerate(texts[at : at + 100])])
            put.append((time.process_time() - started) * 1000)
        read = []
        for question in asked:
            started = time.process_time()
            store.search(("bench",), query=question, limit=7)
            read.append((time.process_time() - started) * 1000)
    search, rate = statistics.median(read), 100_000 / statistics.median(put)
    return (
        f"LangGraph's SqliteStore with 10,000 items, by vector alone: {search:.1f} CPU ms a search "
        f"({search / ours['read']['p50']:.1f} × ours), {rate:,.0f} puts a second of CPU in batches of 100 "
        f"({rate / ours['put']['per second CPU']:.1f} × ours), its list of floats made by the embedder included."
    )
