"""An embedding model whose file is not the published one is not used: its vectors would mean something else."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from lukasa.providers.embed.cached import ARCTIC, default_cache
from lukasa.providers.embed.pull import pull
from tests.helpers.cli import Shell

PLACE = 20_000_000  # in the weights: the model still loads


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    shutil.copytree(pull(default_cache(), progress=lambda said: None), tmp_path / "models" / ARCTIC.name)
    return Shell(tmp_path / "data", {"LUKASA_MODELS": str(tmp_path / "models"), "LUKASA_EMBEDDER": "auto"})


def told(shell: Shell, *args: str) -> Any:
    """The answer of a process of its own: within one, a model stays loaded."""
    done = shell.process(*args, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def flipped(shell: Shell) -> Path:
    """Flip one bit of the weights, and set the file's time back."""
    model = Path(shell.env["LUKASA_MODELS"]) / ARCTIC.name / "model.onnx"
    before = model.stat()
    with model.open("r+b") as stream:
        stream.seek(PLACE)
        (byte,) = stream.read(1)
        stream.seek(PLACE)
        stream.write(bytes([byte ^ 1]))
    os.utime(model, ns=(before.st_atime_ns, before.st_mtime_ns))
    return model


def test_a_changed_model_is_noticed_whatever_its_time_says(shell: Shell) -> None:
    """A file of the same size and time with other weights is found changed before it is loaded; keywords still find."""
    told(shell, "put", "The harbour freezes in January")
    assert told(shell, "model", "status")["embedder"]["available"] is True
    flipped(shell)
    status = told(shell, "model", "status")["embedder"]
    assert status["available"] is False
    assert "does not match its recorded hash" in status["reason"]
    answer = told(shell, "read", "harbour")
    assert [hit["entry"]["content"] for hit in answer["hits"]] == ["The harbour freezes in January"]
    assert any("keyword only" in note for note in answer["notes"])


def test_rotten_weights_are_noticed_when_they_are_loaded(shell: Shell) -> None:
    """If the disk changed the content and nothing else, the hash at loading says so: no vector of it is stored or used,
    a read says what it did without, and the next process knows before it loads anything."""
    told(shell, "put", "The harbour freezes in January")
    model = flipped(shell)
    stamp = model.with_name("model.onnx.stamp")
    state = model.stat()
    noted = {name: getattr(state, f"st_{name}") for name in ("size", "mtime_ns", "ctime_ns", "ino")}
    stamp.write_text(json.dumps({**noted, "sha256": ARCTIC.digest}))
    answer = told(shell, "read", "harbour")
    assert [hit["entry"]["content"] for hit in answer["hits"]] == ["The harbour freezes in January"]
    assert any(ARCTIC.digest[:8] in note and "keyword only" in note for note in answer["notes"])
    assert told(shell, "model", "status")["embedder"]["available"] is False
