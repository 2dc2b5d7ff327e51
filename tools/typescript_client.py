"""Install what the TypeScript client needs, once, and compile it: `python -m tools.typescript_client`."""

from __future__ import annotations

import fcntl
import hashlib
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

CLIENT = Path(__file__).parents[1] / "clients" / "typescript"


def compiled() -> Path:
    """Return the folder of the compiled client. What is installed already is not fetched again."""
    with installed(CLIENT):
        _run(CLIENT, _program("node"), "node_modules/typescript/bin/tsc", "-p", ".")
    return CLIENT / "dist"


@contextmanager
def installed(folder: Path) -> Iterator[Path]:
    """Install what the package.json of a folder names, once, and give node_modules. Others wait for the block."""
    modules = folder / "node_modules"
    needed = (folder / "package.json", folder / "package-lock.json")
    wanted = hashlib.sha256(b"".join(path.read_bytes() for path in needed)).hexdigest()
    with (folder / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # tests run in several processes
        mark = modules / ".installed"
        if not mark.is_file() or mark.read_text() != wanted:
            _run(folder, _program("npm"), "ci", "--ignore-scripts", "--loglevel=error")
            mark.write_text(wanted)
        yield modules


def _program(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        raise RuntimeError("this needs Node 20 or newer with npm: install them")
    return found


def _run(folder: Path, *command: str) -> None:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} failed:\n{done.stdout}{done.stderr}")


if __name__ == "__main__":
    print(compiled())
    sys.exit(0)
