"""One store beside Lukasa, on the texts, questions and vectors of `bench/made.py`, in an environment of its own.

    python -m bench.speed_peers NAME FOLDER ENTRIES READS fill|ask

`fill` puts the entries into the folder, `ask` opens what is there in a new process and measures it; each prints JSON.
Every store is used as its own documentation does, with what it does by default to make a put durable. Nothing of Lukasa
is imported, no model and no network is used.
"""

from __future__ import annotations

import json
import os
import sqlite3
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Protocol

from bench.gauge import disk, resident, timed
from bench.made import DIMENSIONS, Table, questions, texts

LIMIT = 7
SINGLE, PUTS = 50, 500
FEWEST, PATIENCE = 20, 60.0  # questions that are measured at least, and seconds of CPU after which no more are asked
SCOPE = "bench"
Put = Sequence[tuple[str, str]]


class Peer(Protocol):
    """A store as the bench uses it. One `put` is one call of the store's own, with as many entries as given."""

    def put(self, given: Put) -> None: ...

    def ready(self) -> None:
        """What has to be called after a load, before questions; most need nothing."""

    def search(self, question: str) -> int:
        """The number of results."""


class LangGraph:
    """LangGraph's SqliteStore: cosine over the text field, by vector alone, in a namespace."""

    def __init__(self, folder: Path, table: Table) -> None:
        if not hasattr(sqlite3.Connection, "enable_load_extension"):
            sys.modules["sqlite3"] = import_module("pysqlite3")  # many builds of Python cannot load sqlite-vec
        embeddings = import_module("langchain_core.embeddings").Embeddings

        class Free(embeddings):  # type: ignore[misc, valid-type]
            def embed_documents(self, given: list[str]) -> list[list[float]]:
                # This version hands over a value as JSON whatever "fields" says.
                plain = [json.loads(text)["text"] if text.startswith("{") else text for text in given]
                vectors: list[list[float]] = table.vectors(plain).tolist()
                return vectors

            def embed_query(self, text: str) -> list[float]:
                return self.embed_documents([text])[0]

        index = {"dims": DIMENSIONS, "embed": Free(), "fields": ["text"], "distance_type": "cosine"}
        self._operation = import_module("langgraph.store.base").PutOp
        module = import_module("langgraph.store.sqlite")
        self._opened = module.SqliteStore.from_conn_string(str(folder / "store.db"), index=index)
        self._store = self._opened.__enter__()
        self._store.setup()

    def put(self, given: Put) -> None:
        self._store.batch([self._operation((SCOPE,), id, {"text": text}) for id, text in given])

    def ready(self) -> None:
        pass

    def search(self, question: str) -> int:
        return len(self._store.search((SCOPE,), query=question, limit=LIMIT))


class Chroma:
    """Chroma with its persistent client: one collection, by vector alone."""

    where: dict[str, str] | None = None

    def __init__(self, folder: Path, table: Table) -> None:
        chroma = import_module("chromadb")
        quiet = import_module("chromadb.config").Settings(anonymized_telemetry=False)
        client = chroma.PersistentClient(path=str(folder / "chroma"), settings=quiet)
        self._table = table
        self._made = client.get_or_create_collection("bench", metadata={"hnsw:space": "cosine"})

    def put(self, given: Put) -> None:
        plain = [text for _, text in given]
        ids, scopes = [id for id, _ in given], [{"scope": SCOPE} for _ in given]
        self._made.add(ids=ids, embeddings=self._table.vectors(plain), documents=plain, metadatas=scopes)

    def ready(self) -> None:
        pass

    def search(self, question: str) -> int:
        vector = self._table.vectors([question])
        return len(self._made.query(query_embeddings=vector, n_results=LIMIT, where=self.where)["ids"][0])


class ChromaScoped(Chroma):
    """The same, asked for one scope of a collection that could hold several."""

    where = {"scope": SCOPE}  # noqa: RUF012


class LanceDB:
    """LanceDB's hybrid search, by vector and full text, fused by rank as by default; vectors are scanned exactly."""

    def prepare(self) -> None:
        """What is done to the vectors after a load."""

    def __init__(self, folder: Path, table: Table) -> None:
        self._vectors = table
        self._arrow = import_module("pyarrow")
        self._index = import_module("lancedb.index")
        self._db = import_module("lancedb").connect(str(folder / "lance"))
        vector = self._arrow.list_(self._arrow.float32(), DIMENSIONS)
        text = self._arrow.string()
        self._schema = self._arrow.schema([("id", text), ("text", text), ("vector", vector)])
        self._table = self._db.create_table("bench", schema=self._schema, exist_ok=True)

    def put(self, given: Put) -> None:
        plain = [text for _, text in given]
        flat = self._arrow.array(self._vectors.vectors(plain).ravel())
        vectors = self._arrow.FixedSizeListArray.from_arrays(flat, DIMENSIONS)
        columns = [[id for id, _ in given], plain, vectors]
        self._table.add(self._arrow.table(columns, schema=self._schema))

    def ready(self) -> None:
        self._table.create_index("text", config=self._index.FTS(), replace=True)
        self.prepare()
        self._table.optimize()

    def search(self, question: str) -> int:
        asked = self._table.search(query_type="hybrid").vector(self._vectors.vectors([question])[0]).text(question)
        return len(asked.limit(LIMIT).to_list())


class LanceDBIndexed(LanceDB):
    """The same with its index for vectors, whose answers are near enough and not exact."""

    def prepare(self) -> None:
        self._table.create_index("vector", config=self._index.IvfPq(distance_type="cosine"), replace=True)


class Mem0:
    """mem0 with `infer=False` and its local Qdrant, by vector alone: its keyword search needs a model to be fetched."""

    def __init__(self, folder: Path, table: Table) -> None:
        os.environ |= {"MEM0_TELEMETRY": "False", "MEM0_DIR": str(folder / "mem0")}
        memory = import_module("mem0").Memory
        unused = {"provider": "openai", "config": {"api_key": "none"}}
        store = {"path": str(folder / "qdrant"), "embedding_model_dims": DIMENSIONS}
        self._memory = memory.from_config(
            {
                "llm": unused,
                "embedder": unused,
                "vector_store": {"provider": "qdrant", "config": store},
                "history_db_path": str(folder / "history.db"),
            }
        )

        class Free(import_module("mem0.embeddings.base").EmbeddingBase):  # type: ignore[misc]
            def embed(self, text: str, memory_action: str | None = None) -> list[float]:
                vector: list[float] = table.vectors([text])[0].tolist()
                return vector

        self._memory.embedding_model = Free()

    def put(self, given: Put) -> None:
        self._memory.add([{"role": "user", "content": text} for _, text in given], user_id=SCOPE, infer=False)

    def ready(self) -> None:
        pass

    def search(self, question: str) -> int:
        return len(self._memory.search(question, filters={"user_id": SCOPE}, top_k=LIMIT, threshold=0.0)["results"])


class Txtai:
    """txtai's hybrid index with content. A put is an upsert and a save: what is not saved is lost with the process."""

    def __init__(self, folder: Path, table: Table) -> None:
        def transform(given: Sequence[str]) -> Any:  # a plain function: a method would be called to make one
            return table.vectors(given)

        self._path = str(folder / "txtai")
        self._filling = not Path(self._path).exists()
        config = {"method": "external", "transform": transform, "hybrid": True, "content": True}
        embeddings = import_module("txtai").Embeddings
        self._index = embeddings(config) if self._filling else embeddings()
        if not self._filling:
            self._index.load(self._path, config={"transform": transform})

    def put(self, given: Put) -> None:
        self._index.upsert([(id, text, SCOPE) for id, text in given])
        if not self._filling:
            self._index.save(self._path)

    def ready(self) -> None:
        self._index.save(self._path)

    def search(self, question: str) -> int:
        return len(self._index.search(question, LIMIT))


PEERS: dict[str, tuple[str, Callable[[Path, Table], Peer]]] = {
    "langgraph": ("langgraph-checkpoint-sqlite", LangGraph),
    "chroma": ("chromadb", Chroma),
    "chroma-scoped": ("chromadb", ChromaScoped),
    "lancedb": ("lancedb", LanceDB),
    "lancedb-ivf": ("lancedb", LanceDBIndexed),
    "mem0": ("mem0ai", Mem0),
    "txtai": ("txtai", Txtai),
}


def fill(peer: Peer, entries: int) -> dict[str, Any]:
    given = [(str(number), text) for number, text in enumerate(texts(entries, 7))]
    started = time.process_time()
    for at in range(0, entries, 1000):
        peer.put(given[at : at + 1000])
    peer.ready()
    return {"filled a second": entries / (time.process_time() - started)}


def bounded(given: Sequence[str], seconds: float) -> Iterator[str]:
    """As many as can be dealt with in so many seconds of CPU, and a few in any case."""
    started = time.process_time()
    for number, one in enumerate(given):
        if number >= FEWEST and time.process_time() - started > seconds:
            return
        yield one


def ask(peer: Peer, asked: Sequence[str], before: Sequence[str]) -> dict[str, Any]:
    """Questions after as many others, as they are put to Lukasa; fewer of both where a store takes long."""
    answers = [peer.search(question) for question in bounded(before, PATIENCE)]
    if not all(answers):
        raise RuntimeError("the store finds nothing")
    read = timed(peer.search, bounded(asked, PATIENCE))
    used = resident()
    fresh = [(f"new-{number}", text) for number, text in enumerate(texts(SINGLE + PUTS, 13))]
    single = timed(lambda one: peer.put([one]), fresh[:SINGLE])
    batch = timed(peer.put, [fresh[at : at + 100] for at in range(SINGLE, len(fresh), 100)])
    return {"read": read.spread(), "single": single.rate(1), "batch": batch.rate(100), "memory": used}


def main() -> None:
    name, place, entries, reads, step = sys.argv[1:]
    package, opened = PEERS[name]
    try:
        known = version(package)
    except PackageNotFoundError:
        brings = " (it brings torch: `make bench-speed MORE_PEERS=txtai`)" if name == "txtai" else ""
        print(json.dumps({"missing": f"{package} is not installed here{brings}"}))
        return
    folder, before = Path(place), resident()
    asked = questions(2 * int(reads), texts(int(entries), 7), 11) if step == "ask" else []
    table = Table()
    table.prepare(asked)
    own = resident() - before
    if step == "fill":
        print(json.dumps({"version": known, **fill(opened(folder, table), int(entries))}))
        return
    size = disk(folder)
    found = ask(opened(folder, table), asked[: int(reads)], asked[int(reads) :])
    print(json.dumps({**found, "memory": found["memory"] - own, "disk": size}))


if __name__ == "__main__":
    main()
