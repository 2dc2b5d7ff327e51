"""The built wheel, in an empty environment without the repository: what somebody gets who installs Lukasa."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
import zipfile
from email import message_from_string
from pathlib import Path

import pytest

from tests.helpers.cli import ROOT

UV = Path(sys.executable).with_name("uv")


def call(command: list[str | Path], folder: Path, **env: str) -> subprocess.CompletedProcess[str]:
    """Run a command far from the repository, with nothing of this environment."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "LUKASA", "VIRTUAL"))}
    return subprocess.run(
        [str(part) for part in command],
        cwd=folder,
        env={**kept, "HOME": str(folder), "XDG_DATA_HOME": str(folder / "data"), **env},
        capture_output=True,
        text=True,
        timeout=300,
    )


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built from the tree."""
    out = tmp_path_factory.mktemp("dist")
    built = subprocess.run(
        [UV, "build", "--wheel", "--quiet", "--out-dir", out, ROOT], capture_output=True, text=True, timeout=300
    )
    assert built.returncode == 0, built.stderr
    (made,) = out.glob("lukasa-*.whl")
    return made


@pytest.fixture(scope="module")
def lukasa(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The command in an environment that has the wheel and its dependencies, and nothing else."""
    place = tmp_path_factory.mktemp("empty")
    subprocess.run([UV, "venv", "--quiet", "--python", sys.executable, place / "venv"], check=True, timeout=300)
    python = place / "venv" / "bin" / "python"
    installed: list[str | Path] = [
        UV,
        "pip",
        "install",
        "--quiet",
        "--constraint",
        ROOT / "constraints.txt",
        "--python",
        python,
        wheel,
    ]
    done = subprocess.run(installed, capture_output=True, text=True, timeout=300, cwd=place)
    assert done.returncode == 0, done.stderr
    return place / "venv" / "bin" / "lukasa"


def test_the_wheel_holds_what_runs_and_nothing_else(wheel: Path) -> None:
    """Install: the page, the presets, the migrations and the prompts are inside; tests and tools are not."""
    names = zipfile.ZipFile(wheel).namelist()
    source = ROOT / "src"
    wanted = {
        path.relative_to(source).as_posix()
        for path in (source / "lukasa").rglob("*")
        if path.is_file() and path.suffix not in (".pyc",)
    }
    assert wanted - set(names) == set()
    assert {name.split("/")[0] for name in names} == {
        "lukasa",
        next(n for n in names if "dist-info" in n).split("/")[0],
    }


def test_lukasa_alone_says_what_is_here_and_what_to_do_next(lukasa: Path, tmp_path: Path) -> None:
    """U1: five lines: nothing yet, then what was stored; the first call makes no folder."""
    first = call([lukasa], tmp_path)
    assert (first.returncode, first.stderr) == (0, "")
    assert len(first.stdout.splitlines()) == 5
    assert "There is none yet" in first.stdout
    assert "lukasa install claude-code" in first.stdout
    assert not (tmp_path / "data").exists()
    assert call([lukasa, "put", "The villain is called Malachar"], tmp_path).returncode == 0
    then = call([lukasa], tmp_path)
    assert len(then.stdout.splitlines()) == 5
    assert "1 workspace, 1 entry in main" in then.stdout
    assert 'lukasa read "…"' in then.stdout
    assert re.search(r"lukasa serve$", then.stdout, re.MULTILINE)


def test_the_readme_s_first_steps_work(lukasa: Path, tmp_path: Path) -> None:
    """U1: put, read, the library, the spec and the tour run from the wheel alone."""
    assert call([lukasa, "put", "The villain is called Malachar", "--importance", "0.8"], tmp_path).returncode == 0
    assert "Malachar" in call([lukasa, "read", "who is the villain?"], tmp_path).stdout
    code = "from lukasa import Lukasa\nwith Lukasa.open() as m: print(m.workspace('main').read('villain')[0].content)"
    assert call([lukasa.with_name("python"), "-c", code], tmp_path).stdout == "The villain is called Malachar\n"
    assert "default" in call([lukasa, "spec", "list"], tmp_path).stdout
    served = call([lukasa, "serve"], tmp_path)
    assert served.returncode != 0
    assert "pip install 'lukasa[serve]'" in served.stderr


def test_shells_complete_commands(lukasa: Path, tmp_path: Path) -> None:
    """U2: what the page on the command line says about completion works in each of the three shells."""
    for shell in ("bash", "zsh", "fish"):
        script = call([lukasa], tmp_path, _LUKASA_COMPLETE=f"{shell}_source")
        assert script.returncode == 0
        assert "_LUKASA_COMPLETE" in script.stdout
    told = call([lukasa], tmp_path, _LUKASA_COMPLETE="bash_complete", COMP_WORDS="lukasa work", COMP_CWORD="1")
    assert told.stdout.split() == ["plain,workspace", "plain,worker"]


def test_the_extra_for_serving_is_in_the_wheel(wheel: Path) -> None:
    """Install: `lukasa[serve]` brings the server and the embedding runtime; older names stay."""
    with zipfile.ZipFile(wheel) as packed:
        (name,) = (one for one in packed.namelist() if one.endswith(".dist-info/METADATA"))
        about = message_from_string(packed.read(name).decode("utf-8"))
    extras = set(about.get_all("Provides-Extra") or [])
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert {one.replace("_", "-") for one in extras} == set(project["optional-dependencies"])
    assert any("lukasa[embed,server]" in one and "serve" in one for one in about.get_all("Requires-Dist") or [])


@pytest.mark.skipif("LUKASA_TORTURE" not in os.environ, reason="long: LUKASA_TORTURE=1")
def test_uvx_serves_from_the_wheel(wheel: Path, tmp_path: Path) -> None:
    """Install: `uvx 'lukasa[serve]'` and the same by pipx's way of one environment a tool run the server's help."""
    shown = call([UV, "tool", "run", "--from", f"{wheel}[serve]", "lukasa", "serve", "--help"], tmp_path)
    assert "Serve the page" in shown.stdout
    code = "import mcp, uvicorn, onnxruntime"
    assert call([UV, "tool", "run", "--from", f"{wheel}[serve]", "python", "-c", code], tmp_path).returncode == 0
