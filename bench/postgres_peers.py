"""What else keeps memory in PostgreSQL, on the same texts, questions and vectors, and in the same server.

    python -m bench.postgres_peers NAME URL ENTRIES READS fill|ask

`langgraph` is LangGraph's own PostgresStore with the index for vectors that it makes by default. `hybrid-any` and
`hybrid-all` are one table with pgvector's HNSW and a GIN index over a tsvector, asked by one statement that fuses the
best by vector and the best by `ts_rank` by their ranks, as pgvector's own example does. `all` wants all words of the
question in a text, as that example has it, and so finds few texts by words. `any` wants any of them, as BM25 does. Each
is filled without its index for vectors, which is made at the end by its own definition.
"""

from __future__ import annotations

import json
import re
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from importlib.metadata import version
from typing import Any, Protocol

import psycopg
from langchain_core.embeddings import Embeddings
from langgraph.store.base import PutOp
from langgraph.store.postgres import PostgresStore

from bench.backends import Backends, watching
from bench.gauge import timed
from bench.made import DIMENSIONS, Table, questions, texts

LIMIT, BEST = 7, 50
FEWEST, PATIENCE = 20, 60.0  # questions that are asked at least, and seconds on the clock after which no more are
SCOPE = "bench"
Put = Sequence[tuple[str, str]]


class Peer(Protocol):
    """A store as the bench uses it. One `put` is one call, with as many entries as given."""

    def put(self, given: Put) -> None: ...

    def search(self, question: str) -> int:
        """The number of results."""

    def close(self) -> None: ...


class LangGraph:
    """LangGraph's PostgresStore: by vector alone, in a namespace."""

    schema, graph = "public", "store_vectors_embedding_idx"

    def __init__(self, url: str, table: Table) -> None:
        class Free(Embeddings):
            def embed_documents(self, texts: list[str]) -> list[list[float]]:
                vectors: list[list[float]] = table.vectors(texts).tolist()
                return vectors

            def embed_query(self, text: str) -> list[float]:
                return self.embed_documents([text])[0]

        self._stack = ExitStack()
        index: Any = {"dims": DIMENSIONS, "embed": Free(), "fields": ["text"]}
        self._store = self._stack.enter_context(PostgresStore.from_conn_string(url, index=index))
        self._store.setup()

    def put(self, given: Put) -> None:
        self._store.batch([PutOp((SCOPE,), id, {"text": text}) for id, text in given])

    def search(self, question: str) -> int:
        return len(self._store.search((SCOPE,), query=question, limit=LIMIT))

    def close(self) -> None:
        self._stack.close()


TABLE = (
    "CREATE EXTENSION IF NOT EXISTS vector",
    f"""
    CREATE TABLE IF NOT EXISTS memories (
        id text PRIMARY KEY, scope text NOT NULL, content text NOT NULL, embedding vector({DIMENSIONS}) NOT NULL,
        words tsvector GENERATED ALWAYS AS (to_tsvector('english', content)) STORED
    )
    """,
    "CREATE INDEX IF NOT EXISTS memories_words ON memories USING gin (words)",
    "CREATE INDEX IF NOT EXISTS memories_scope ON memories (scope)",
    "CREATE INDEX IF NOT EXISTS memories_graph ON memories USING hnsw (embedding vector_cosine_ops)",
)
HYBRID = """
WITH asked AS (SELECT {words} AS words, %(vector)s::vector AS vector), near AS (
    SELECT id, row_number() OVER () AS place FROM (
        SELECT id FROM memories WHERE scope = %(scope)s ORDER BY embedding <=> %(vector)s::vector LIMIT %(best)s
    ) AS n
), told AS (
    SELECT id, row_number() OVER () AS place FROM (
        SELECT m.id FROM memories AS m, asked WHERE m.scope = %(scope)s AND m.words @@ asked.words
        ORDER BY ts_rank(m.words, asked.words) DESC LIMIT %(best)s
    ) AS t
)
SELECT m.id, m.content FROM (
    SELECT coalesce(near.id, told.id) AS id,
        coalesce(1.0 / (60 + near.place), 0) + coalesce(1.0 / (60 + told.place), 0) AS score
    FROM near FULL JOIN told ON near.id = told.id ORDER BY score DESC LIMIT %(limit)s
) AS best JOIN memories AS m ON m.id = best.id ORDER BY best.score DESC
"""


class Hybrid:
    """A table, two indexes and one statement. `words` makes the question a tsquery."""

    schema, graph, words = "public", "memories_graph", "plainto_tsquery('english', %(question)s)"

    def __init__(self, url: str, table: Table) -> None:
        self._table, self._db = table, psycopg.connect(url, autocommit=True)
        for statement in TABLE:
            self._db.execute(statement)
        self._db.prepare_threshold = 2
        self._statement = HYBRID.format(words=self.words)

    def put(self, given: Put) -> None:
        vectors = self._table.vectors([text for _, text in given])
        rows = [(id, SCOPE, text, _literal(vector)) for (id, text), vector in zip(given, vectors, strict=True)]
        with self._db.transaction(), self._db.cursor() as cursor:
            cursor.executemany("INSERT INTO memories (id, scope, content, embedding) VALUES (%s, %s, %s, %s)", rows)

    def search(self, question: str) -> int:
        values = {"question": self.asked(question), "vector": _literal(self._table.vectors([question])[0])}
        found = self._db.execute(self._statement.encode(), values | {"scope": SCOPE, "best": BEST, "limit": LIMIT})
        return len(found.fetchall())

    def asked(self, question: str) -> str:
        return question

    def close(self) -> None:
        self._db.close()


class HybridAny(Hybrid):
    """The same for any word of the question."""

    words = "to_tsquery('english', %(question)s)"

    def asked(self, question: str) -> str:
        return " | ".join(re.findall(r"\w+", question))


def _literal(vector: Any) -> str:
    return "[" + ",".join(map(str, vector.tolist())) + "]"


PEERS: dict[str, tuple[str, Callable[[str, Table], Any]]] = {
    "langgraph": ("langgraph-checkpoint-postgres", LangGraph),
    "hybrid-any": ("psycopg", HybridAny),
    "hybrid-all": ("psycopg", Hybrid),
}


def fill(opened: Callable[[str, Table], Any], url: str, table: Table, entries: int) -> dict[str, Any]:
    peer = opened(url, table)
    given = [(str(number), text) for number, text in enumerate(texts(entries, 7))]
    try:
        with watching(url) as backends, psycopg.connect(url, autocommit=True) as admin:
            ((definition,),) = admin.execute("SELECT pg_get_indexdef(%s::regclass)", (peer.graph,)).fetchall()
            admin.execute(f"DROP INDEX {peer.graph}".encode())
            began = time.perf_counter()
            for at in range(0, entries, 1000):
                peer.put(given[at : at + 1000])
            filled = time.perf_counter()
            admin.execute(definition.encode())
            indexed = time.perf_counter()
            admin.execute("VACUUM ANALYZE")
            return {
                "seconds": filled - began,
                "indexing": indexed - filled,
                "bytes": sum(backends.sizes(peer.schema).values()),
            }
    finally:
        peer.close()


def bounded(given: Sequence[Any], seconds: float = PATIENCE) -> Iterator[Any]:
    """As many as can be dealt with in so many seconds, and a few in any case."""
    began = time.perf_counter()
    for number, one in enumerate(given):
        if number >= FEWEST and time.perf_counter() - began > seconds:
            return
        yield one


def ask(peer: Peer, backends: Backends, asked: Sequence[str], before: Sequence[str], seed: int) -> dict[str, Any]:
    answers = [peer.search(question) for question in bounded(before, PATIENCE / 3)]
    if not all(answers):
        raise RuntimeError("the store finds nothing")
    beside = backends.look().milliseconds
    read = timed(peer.search, bounded(asked), beside)
    fresh = [(f"new-{seed}-{number}", text) for number, text in enumerate(texts(330, 13 + seed))]
    single = timed(lambda one: peer.put([one]), bounded(fresh[:30], PATIENCE / 3), beside)
    batch = timed(peer.put, bounded([fresh[at : at + 100] for at in (30, 130, 230)], PATIENCE / 3), beside)
    return {"read": read.spread(), "single": single.spread(), "batch": batch.spread(), "asked": len(read.cpu)}


def main() -> None:
    name, url, entries, reads, step, *seed = sys.argv[1:]
    package, opened = PEERS[name]
    table = Table()
    if step == "fill":
        print(json.dumps({"version": version(package), **fill(opened, url, table, int(entries))}))
        return
    asked = questions(1000, texts(int(entries), 7), 11)
    asked = asked[: 2 * int(reads)]
    table.prepare(asked)
    with watching(url) as backends:
        peer = opened(url, table)
        print(json.dumps(ask(peer, backends, asked[: int(reads)], asked[int(reads) :], int(seed[0]))))


if __name__ == "__main__":
    main()
