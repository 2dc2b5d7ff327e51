"""What an install costs: packages, imports, and nothing from the network."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from importlib.metadata import distribution, requires
from pathlib import Path

from packaging.requirements import Requirement

ROOT = Path(__file__).parents[2]
UNINSTALLED = {
    "local",
    "serve",
    "all",
}  # `make` leaves it out, because it is compiled for longer than all tests run; the others name these extras


def closure(requirements: list[str]) -> set[str]:
    """Return every distribution that these requirements bring on this platform, with the extras that they ask for."""
    seen: set[tuple[str, str]] = set()
    waiting = [(Requirement(given), "") for given in requirements]
    while waiting:
        requirement, extra = waiting.pop()
        if requirement.marker is not None and not requirement.marker.evaluate({"extra": extra}):
            continue
        for wanted in {"", *requirement.extras}:
            if (requirement.name.lower(), wanted) not in seen:
                seen.add((requirement.name.lower(), wanted))
                waiting.extend((Requirement(brought), wanted) for brought in requires(requirement.name) or [])
    return {name for name, _ in seen}


def test_the_core_is_at_most_fifteen_packages() -> None:
    """Install: the core with all that it brings stays under fifteen packages."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert 0 < len(closure(project["dependencies"])) + 1 <= 15


def test_every_installed_package_is_pinned() -> None:
    """Install: what the project asks for, directly or not, has its version in constraints.txt."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    extras = {name: given for name, given in project["optional-dependencies"].items() if name not in UNINSTALLED}
    wanted = [*project["dependencies"], *(r for extra in extras.values() for r in extra)]
    pins = (ROOT / "constraints.txt").read_text("utf-8").splitlines()
    pinned = {line.split("==")[0].lower().replace("_", "-") for line in pins if "==" in line}
    assert {name.replace("_", "-") for name in closure(wanted)} <= pinned


def test_importing_lukasa_loads_none_of_the_engine() -> None:
    """Install: `import lukasa` is cheap: numpy, the database and the embedding runtime come on first use."""
    code = "import sys, lukasa; print({'numpy', 'apsw', 'onnxruntime', 'rich', 'click'} & set(sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "set()\n"


def test_opening_does_not_load_the_model() -> None:
    """Install: opening memory does not wait for the embedding runtime."""
    code = "import sys, tempfile; from lukasa import Lukasa; Lukasa.open(tempfile.mkdtemp()).workspace(); "
    code += "print('onnxruntime' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"


def test_the_installed_version_is_the_declared_one() -> None:
    """Install: one version number, in the package and in its metadata."""
    code = "import lukasa; print(lukasa.__version__)"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert shown == project["version"] == distribution("lukasa").version
