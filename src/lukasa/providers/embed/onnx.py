"""Embed texts with a BERT-family model from a folder (`model.onnx`, `vocab.txt`), run by onnxruntime on the CPU."""

from __future__ import annotations

import importlib
import importlib.util
import mmap
import threading
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lukasa.model.arrays import np
from lukasa.model.errors import EmbedderError, ModelUnavailable
from lukasa.ports import EmbeddingModel, Vector
from lukasa.providers.embed.cached import PULL_FIX, content_digest
from lukasa.providers.embed.wordpiece import WordPiece

if TYPE_CHECKING:
    from numpy.typing import NDArray

MODEL_FILE = "model.onnx"
VOCABULARY_FILE = "vocab.txt"
MAX_THREADS = 2

_BATCH_ROWS = 32
_BATCH_TOKENS = 4096
_QUERIES_CACHED = 256
_KNOWN_INPUTS = {"input_ids", "attention_mask", "token_type_ids"}
_INTEGERS = {"tensor(int64)": "int64", "tensor(int32)": "int32"}


class OnnxEmbedder:
    """One loaded model; any number of threads may call it."""

    def __init__(self, folder: Path, *, name: str, query_prefix: str, floor: float = 0.0, threads: int = 1) -> None:
        path = folder / MODEL_FILE
        for needed in (path, folder / VOCABULARY_FILE):
            if not needed.is_file():
                raise ModelUnavailable(f"there is no {needed.name} in {folder}", fix=PULL_FIX)
        digest = _hashing(path)  # while the runtime loads it, which takes longer
        self._tokenizer = WordPiece.load(folder / VOCABULARY_FILE)
        self._runtime_errors = _runtime_errors()
        self._session = self._open(path, max(1, min(threads, MAX_THREADS)))
        self._inputs = _read_inputs(self._session)
        self._output = _choose_output(self._session)
        self._prefix = query_prefix
        self._rows = 1 if _scales_by_batch(path) else _BATCH_ROWS
        self._query = lru_cache(maxsize=_QUERIES_CACHED)(self._embed_query)
        dimensions = self._run([self._tokenizer.encode("warm")]).shape[1]
        self._model = EmbeddingModel(name, dimensions, digest(), floor)

    @property
    def model(self) -> EmbeddingModel:
        return self._model

    def embed_memories(self, texts: Sequence[str]) -> Vector:
        tokens = [self._tokenizer.encode(text) for text in texts]
        vectors = np.empty((len(texts), self._model.dimensions), dtype=np.float32)
        for rows in batches([len(ids) for ids in tokens], rows=self._rows, tokens=_BATCH_TOKENS):
            vectors[rows] = self._run([tokens[row] for row in rows])
        return vectors

    def embed_query(self, text: str) -> Vector:
        return self._query(text).copy()

    def _embed_query(self, text: str) -> Vector:
        vector: Vector = self._run([self._tokenizer.encode(self._prefix + text)])[0]
        return vector

    def _run(self, tokens: Sequence[Sequence[int]]) -> Vector:
        ids = np.full((len(tokens), max(map(len, tokens))), self._tokenizer.pad, dtype=np.int64)
        mask = np.zeros_like(ids)
        for row, sequence in enumerate(tokens):
            ids[row, : len(sequence)] = sequence
            mask[row, : len(sequence)] = 1
        named = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        feed = {name: named[name].astype(kind, copy=False) for name, kind in self._inputs.items()}
        try:
            (output,) = self._session.run([self._output], feed)
        except self._runtime_errors as error:
            raise EmbedderError("the embedding model failed on its input") from error
        return unit_rows(output[:, 0] if output.ndim == 3 else output)

    def _open(self, path: Path, threads: int) -> Any:
        runtime = importlib.import_module("onnxruntime")
        options = runtime.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        options.log_severity_level = 4  # its warnings go straight to stderr; failures arrive as exceptions
        try:
            return runtime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        except self._runtime_errors as error:
            raise ModelUnavailable(f"onnxruntime cannot load {path}", fix="use a model exported to ONNX") from error


def _hashing(path: Path) -> Callable[[], str]:
    """Hash a file in a thread; return a function that waits for the digest."""
    found: list[str] = []
    thread = threading.Thread(target=lambda: found.append(content_digest(path)), name="lukasa-hash", daemon=True)
    thread.start()

    def digest() -> str:
        thread.join()
        return found[0] if found else ""  # a file that cannot be read is not the promised one

    return digest


def runtime_installed() -> bool:
    """Return whether onnxruntime is installed, without importing it."""
    return importlib.util.find_spec("onnxruntime") is not None


def batches(lengths: Sequence[int], *, rows: int, tokens: int) -> Iterator[list[int]]:
    """Yield row numbers grouped by similar length, so that batches hold little padding."""
    batch: list[int] = []
    for row in sorted(range(len(lengths)), key=lengths.__getitem__):
        if batch and (len(batch) == rows or lengths[row] * (len(batch) + 1) > tokens):
            yield batch
            batch = []
        batch.append(row)
    if batch:
        yield batch


def unit_rows(vectors: NDArray[np.floating[Any]]) -> Vector:
    """Scale rows to length one; raise for a row that is zero or not finite."""
    if vectors.ndim != 2:
        raise EmbedderError(f"the embedding model returned an array of {vectors.ndim} dimensions instead of 2")
    lengths = np.linalg.norm(vectors.astype(np.float64), axis=1, keepdims=True)
    if not (np.isfinite(lengths) & (lengths > 0)).all():
        raise EmbedderError("the embedding model returned a zero or non-finite vector")
    unit: Vector = (vectors / lengths).astype(np.float32)
    return unit


def _runtime_errors() -> tuple[type[Exception], ...]:
    """Return the exceptions of onnxruntime; they share no base class but Exception."""
    try:
        native = importlib.import_module("onnxruntime.capi.onnxruntime_pybind11_state")
    except ImportError as error:
        raise ModelUnavailable("onnxruntime is not installed", fix="pip install 'lukasa[embed]'") from error
    kinds = (kind for kind in vars(native).values() if isinstance(kind, type) and issubclass(kind, Exception))
    return (*kinds, RuntimeError, ValueError, OSError)


def _read_inputs(session: Any) -> dict[str, str]:
    """Return the model's inputs with their integer types; raise if it is not a BERT-family model."""
    wanted = {put.name: put.type for put in session.get_inputs()}
    foreign = sorted(name for name, kind in wanted.items() if name not in _KNOWN_INPUTS or kind not in _INTEGERS)
    if foreign or "input_ids" not in wanted:
        raise EmbedderError(
            f"not a BERT-family text model: its inputs are {', '.join(sorted(wanted))}",
            fix=f"use a model with the inputs {', '.join(sorted(_KNOWN_INPUTS))}",
        )
    return {name: _INTEGERS[kind] for name, kind in wanted.items()}


def _choose_output(session: Any) -> str:
    """Return the output's name: the pooled sentence vector if there is one, else the token states ([CLS] first)."""
    names = [str(put.name) for put in session.get_outputs()]
    return "sentence_embedding" if "sentence_embedding" in names else names[0]


def _scales_by_batch(path: Path) -> bool:
    """Return whether the model quantises its activations at run time.

    One scale then covers the whole batch, so a text's vector would depend on the other texts (cosine 0.99 to itself).
    Run alone, a text always gets the same vector; on a CPU a batch saves such a model at most a tenth of the time.
    """
    with path.open("rb") as stream, mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as content:
        return content.find(b"DynamicQuantize") >= 0
