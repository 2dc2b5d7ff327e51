"""Rankings of other stores over the same turns, questions and vectors. Runs in an environment of its own.

    python peers.py NAME DATA VECTORS.npz OUT.jsonl       NAME: fts5, chroma or langgraph

It imports nothing of Lukasa: `make bench-quality` installs `requirements-peers.txt` into a throwaway environment.
"""

from __future__ import annotations

import json
import re
import sqlite3
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

LIMIT = 20
RANKED = "SELECT id FROM turns WHERE turns MATCH ? ORDER BY rank LIMIT ?"
Row = dict[str, Any]
Ranked = Iterator[tuple[str, list[str]]]


class Data:
    """Turns and questions by scope, and a vector for each text."""

    def __init__(self, folder: Path, vectors: Path) -> None:
        self.corpus = _grouped(folder / "corpus.jsonl")
        self.queries = _grouped(folder / "queries.jsonl")
        with np.load(vectors) as stored:
            kept, rows = json.loads(str(stored["texts"])), stored["vectors"]
        count = len(kept["memories"])
        self.memory = dict(zip(kept["memories"], rows[:count], strict=True))
        self.query = dict(zip(kept["queries"], rows[count:], strict=True))


def _grouped(path: Path) -> dict[str, list[Row]]:
    grouped: dict[str, list[Row]] = {}
    with path.open(encoding="utf-8") as lines:
        for row in map(json.loads, filter(str.strip, lines)):
            grouped.setdefault(row["scope"], []).append(row)
    return grouped


def fts5(data: Data) -> Ranked:
    """SQLite's FTS5 with the porter stemmer: the words of the question, any of them, by its bm25."""
    for scope, turns in data.corpus.items():
        with closing(sqlite3.connect(":memory:")) as db:
            db.execute("CREATE VIRTUAL TABLE turns USING fts5 (id UNINDEXED, text, tokenize = 'porter unicode61')")
            db.executemany("INSERT INTO turns VALUES (?, ?)", [(turn["id"], turn["text"]) for turn in turns])
            for query in data.queries.get(scope, ()):
                match = " OR ".join(f'"{word}"' for word in re.findall(r"\w+", query["text"]))
                found = [] if not match else db.execute(RANKED, (match, LIMIT))
                yield query["id"], [id for (id,) in found]


def chroma(data: Data) -> Ranked:
    """Chroma in memory, a collection for each scope, cosine."""
    client = import_module("chromadb").EphemeralClient()
    for number, (scope, turns) in enumerate(data.corpus.items()):
        made = client.create_collection(f"scope-{number}", metadata={"hnsw:space": "cosine"})
        for at in range(0, len(turns), 1000):
            some = turns[at : at + 1000]
            vectors = [data.memory[turn["text"]] for turn in some]
            made.add(ids=[t["id"] for t in some], embeddings=vectors, documents=[t["text"] for t in some])
        for query in data.queries.get(scope, ()):
            found = made.query(query_embeddings=[data.query[query["text"]]], n_results=LIMIT)
            yield query["id"], found["ids"][0]


def langgraph(data: Data) -> Ranked:
    """LangGraph's SqliteStore, a namespace for each scope, cosine over the text field."""
    if not hasattr(sqlite3.Connection, "enable_load_extension"):
        sys.modules["sqlite3"] = import_module("pysqlite3")  # many builds of Python cannot load sqlite-vec
    embeddings = import_module("langchain_core.embeddings").Embeddings

    class Stored(embeddings):  # type: ignore[misc, valid-type]
        def embed_documents(self, texts: list[str]) -> list[list[float]]:
            return [self.embed_query(text) for text in texts]

        def embed_query(self, text: str) -> list[float]:
            # This version hands over questions as documents, and a value as JSON whatever "fields" says.
            found = data.query[text] if text in data.query else data.memory[json.loads(text)["text"]]
            vector: list[float] = found.tolist()
            return vector

    module = import_module("langgraph.store.sqlite")
    dims = len(next(iter(data.memory.values())))
    index = {"dims": dims, "embed": Stored(), "fields": ["text"], "distance_type": "cosine"}
    with module.SqliteStore.from_conn_string(":memory:", index=index) as store:
        store.setup()
        for scope, turns in data.corpus.items():
            for turn in turns:
                store.put((scope,), turn["id"], {"text": turn["text"]})
            for query in data.queries.get(scope, ()):
                yield query["id"], [item.key for item in store.search((scope,), query=query["text"], limit=LIMIT)]


PEERS: dict[str, Callable[[Data], Ranked]] = {"fts5": fts5, "chroma": chroma, "langgraph": langgraph}


def main() -> None:
    name, folder, vectors, target = sys.argv[1:]
    with Path(target).open("w", encoding="utf-8") as out:
        for id, ranked in PEERS[name](Data(Path(folder), Path(vectors))):
            out.write(json.dumps({"id": id, "ranked": ranked}) + "\n")


if __name__ == "__main__":
    main()
