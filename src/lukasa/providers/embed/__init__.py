"""Embedders by name: parse a setting, tell whether its model is available, and open it.

    none               no embedder; search by keyword alone
    auto               the default model if it was pulled and onnxruntime is installed, else none
    default            the default model, or an error
    folder:/path       a BERT-family model of your own: model.onnx and vocab.txt
    fastembed:<model>  a model that the fastembed package provides

Importing this module loads no model runtime; the default model loads at its first use.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from lukasa.model import submodules
from lukasa.model.arrays import np
from lukasa.model.errors import InvalidInput, ModelUnavailable
from lukasa.ports import Embedder, EmbeddingModel, Vector
from lukasa.providers import embed
from lukasa.providers.embed import cached
from lukasa.providers.embed.cached import ARCTIC, MULTILINGUAL, PULL_FIX

if TYPE_CHECKING:
    from lukasa.providers.embed import multilingual as multilingual
    from lukasa.providers.embed import onnx as onnx
else:
    __getattr__ = submodules(__name__, ("multilingual", "onnx"))  # imported, with its tokenizer, when a model is opened

_ALLOWED = "none, auto, default, folder:/path, fastembed:<model>"
_RUNTIME_FIX = "pip install 'lukasa[embed]'"


class EmbedderStatus(Struct, frozen=True):
    """Whether the embedder of a setting is available; if not, the reason and the fix."""

    name: str
    available: bool
    reason: str = ""
    fix: str = ""


def open_embedder(setting: str, cache: Path) -> Embedder | None:
    """Open the embedder of a setting; None for `none`, and for `auto` if there is no model."""
    kind, argument = _parse(setting)
    if kind == "none":
        return None
    status = embedder_status(setting, cache)
    if not status.available:
        if kind == "auto":
            return None
        raise ModelUnavailable(status.reason, fix=status.fix)
    if kind == "folder":
        folder = Path(argument).expanduser()
        return embed.onnx.OnnxEmbedder(folder, name=status.name, query_prefix=_query_prefix(folder))
    if kind == "fastembed":
        return FastembedEmbedder(argument)
    return _default(cache)


def open_second(setting: str, cache: Path) -> Embedder | None:
    """Open the multilingual model beside the default one; None beside another one, and if it was not pulled."""
    kind, _ = _parse(setting)
    if kind not in ("auto", "default") or not cached.status(cache, MULTILINGUAL).ready:
        return None
    source = MULTILINGUAL
    model = EmbeddingModel(source.name, source.dimensions, source.digest, source.floor)
    return LazyEmbedder(model, lambda: embed.multilingual.MultilingualEmbedder(cache / source.name))


def embedder_status(setting: str, cache: Path) -> EmbedderStatus:
    """Return what `open_embedder` would find, without loading a model."""
    kind, argument = _parse(setting)
    if kind == "none":
        return EmbedderStatus("none", False, "the setting asks for no embedder", "set the embedder to `auto`")
    if kind == "fastembed":
        if importlib.util.find_spec("fastembed") is None:
            return EmbedderStatus(argument, False, "fastembed is not installed", "pip install fastembed")
        return EmbedderStatus(argument, True)
    if kind == "folder":
        return _folder_status(Path(argument).expanduser())
    model = cached.status(cache)
    if not model.ready:
        return EmbedderStatus(model.name, False, model.reason, model.fix)
    return _runtime_status(model.name)


class LazyEmbedder:
    """An embedder whose identity is known beforehand; the first text loads its weights."""

    def __init__(self, model: EmbeddingModel, load: Callable[[], Embedder]) -> None:
        self._model = model
        self._load = load
        self._lock = threading.Lock()
        self._loaded: Embedder | None = None
        self._refused: ModelUnavailable | None = None

    @property
    def model(self) -> EmbeddingModel:
        return self._model

    @property
    def loaded(self) -> bool:
        return self._loaded is not None

    def embed_memories(self, texts: Sequence[str]) -> Vector:
        if not texts:
            return np.empty((0, self._model.dimensions), dtype=np.float32)
        return self._ready().embed_memories(texts)

    def embed_query(self, text: str) -> Vector:
        return self._ready().embed_query(text)

    def _ready(self) -> Embedder:
        with self._lock:
            if self._refused is not None:  # weights are not loaded for every text only to be refused again
                raise self._refused
            if self._loaded is None:
                loaded = self._load()
                if loaded.model != self._model:
                    self._refused = ModelUnavailable(
                        f"the model loaded is {loaded.model.key}, not {self._model.key}", fix=PULL_FIX
                    )
                    raise self._refused
                self._loaded = loaded
            return self._loaded


class FastembedEmbedder:
    """A model of the fastembed package, which downloads and stores it itself."""

    def __init__(self, name: str) -> None:
        self._backend = _open_fastembed(name)
        dimensions = len(next(iter(self._backend.query_embed("warm"))))
        self._model = EmbeddingModel(f"fastembed:{name}", dimensions)

    @property
    def model(self) -> EmbeddingModel:
        return self._model

    def embed_memories(self, texts: Sequence[str]) -> Vector:
        if not texts:
            return np.empty((0, self._model.dimensions), dtype=np.float32)
        return embed.onnx.unit_rows(np.array(list(self._backend.passage_embed(list(texts))), dtype=np.float32))

    def embed_query(self, text: str) -> Vector:
        vector: Vector = embed.onnx.unit_rows(np.array(list(self._backend.query_embed(text)), dtype=np.float32))[0]
        return vector


def _parse(setting: str) -> tuple[str, str]:
    kind, colon, argument = setting.strip().partition(":")
    plain = kind in ("none", "auto", "default") and not colon
    if plain or (kind in ("folder", "fastembed") and argument):
        return kind, argument
    raise InvalidInput(f"unknown embedder {setting!r}", fix=f"use one of: {_ALLOWED}")


def _default(cache: Path) -> LazyEmbedder:
    source = ARCTIC
    folder = cache / source.name

    def load() -> Embedder:
        return embed.onnx.OnnxEmbedder(folder, name=source.name, query_prefix=source.query_prefix, floor=source.floor)

    model = EmbeddingModel(source.name, source.dimensions, source.digest, source.floor)
    return LazyEmbedder(model, load)


def _folder_status(folder: Path) -> EmbedderStatus:
    name = folder.resolve().name
    missing = [file for file in (embed.onnx.MODEL_FILE, embed.onnx.VOCABULARY_FILE) if not (folder / file).is_file()]
    if missing:
        return EmbedderStatus(name, False, f"{folder} has no {' and no '.join(missing)}", "name a model's folder")
    return _runtime_status(name)


def _runtime_status(name: str) -> EmbedderStatus:
    if not embed.onnx.runtime_installed():
        return EmbedderStatus(name, False, "onnxruntime is not installed", _RUNTIME_FIX)
    return EmbedderStatus(name, True)


def _query_prefix(folder: Path) -> str:
    """Return the query prompt from the model's folder, if it is there; else the default model's."""
    try:
        settings = json.loads((folder / "config_sentence_transformers.json").read_bytes())
        return str(settings["prompts"]["query"])
    except (OSError, ValueError, KeyError, TypeError):
        return ARCTIC.query_prefix


def _open_fastembed(name: str) -> Any:
    fastembed = importlib.import_module("fastembed")
    try:
        return fastembed.TextEmbedding(model_name=name)
    except (ValueError, OSError, RuntimeError) as error:
        raise ModelUnavailable(f"fastembed cannot provide {name!r}", fix="name a model it lists") from error
