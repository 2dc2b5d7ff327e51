"""A model that the user brings: one setting, and search works by its meaning, in the languages that it knows."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from lukasa import Lukasa

pytest.importorskip("onnxruntime")
# Words of one meaning share a row of the table: a multilingual model, small enough to be made here.
MEANINGS = (
    "[PAD]", "[UNK]", "[CLS]", "[SEP]", "key schlüssel llave", "lies liegt está", "flowerpot blumentopf maceta",
    "under unter bajo", "bread brot pan", "fresh frisch fresco",
)  # fmt: skip


def number(value: int) -> bytes:
    """A number of variable length, as protocol buffers write it."""
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])


def field(place: int, value: bytes | str | int) -> bytes:
    """A field of a message: a number, or bytes with their length."""
    if isinstance(value, int):
        return number(place << 3) + number(value)
    content = value.encode() if isinstance(value, str) else value
    return number(place << 3 | 2) + number(len(content)) + content


def tensor(name: str, values: np.ndarray[tuple[int, ...], np.dtype[np.generic]], kind: int) -> bytes:
    return b"".join(field(1, n) for n in values.shape) + field(2, kind) + field(8, name) + field(9, values.tobytes())


def value(name: str, kind: int, dims: tuple[str, ...]) -> bytes:
    shape = b"".join(field(1, field(2, dim)) for dim in dims)
    return field(1, name) + field(2, field(1, field(1, kind) + field(2, shape)))


def made(folder: Path) -> Path:
    """An ONNX file that adds up the vectors of a text's words, and its vocabulary."""
    words = [(word, row) for row, forms in enumerate(MEANINGS) for word in forms.split()]
    rows = np.random.default_rng(3).standard_normal((len(MEANINGS), 16)).astype(np.float32)
    rows[0] = 0
    rows[1:4] *= 0.1
    table = np.stack([rows[row] for _, row in words])
    gather = field(1, "table") + field(1, "input_ids") + field(2, "words") + field(4, "Gather")
    keep = field(1, "keepdims") + field(3, 0) + field(20, 2)
    total = field(1, "words") + field(1, "axes") + field(2, "sentence_embedding") + field(4, "ReduceSum")
    graph = field(1, gather) + field(1, total + field(5, keep)) + field(2, "made")
    graph += field(5, tensor("table", table, 1)) + field(5, tensor("axes", np.array([1], dtype=np.int64), 7))
    graph += field(11, value("input_ids", 7, ("b", "t"))) + field(12, value("sentence_embedding", 1, ("b", "d")))
    folder.mkdir()
    (folder / "model.onnx").write_bytes(field(1, 8) + field(7, graph) + field(8, field(1, "") + field(2, 13)))
    (folder / "vocab.txt").write_text("\n".join(word for word, _ in words) + "\n", encoding="utf-8")
    return folder


def test_one_setting_switches_to_a_model_of_ones_own(tmp_path: Path) -> None:
    """R1, U1: with `folder:PATH` a German and a Spanish entry are found by an English question that shares no word."""
    setting = f"folder:{made(tmp_path / 'model')}"
    with Lukasa.open(tmp_path / "data", embedder=setting) as memory:
        world = memory.workspace()
        texts = ["Schlüssel liegt unter Blumentopf", "pan fresco", "llave bajo maceta"]
        for text in texts:
            world.put("workspace", text)
        assert {hit.content for hit in world.read("key under flowerpot", limit=2, count=False)} == {texts[0], texts[2]}
        assert world.read("fresh bread", count=False)[0].content == "pan fresco"
        assert world.read("fresh bread", count=False).notes == ()
