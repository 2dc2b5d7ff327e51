"""Install what the TypeScript client needs, once, and compile it: `python -m tools.typescript_client`."""

from __future__ import annotations

import fcntl
import hashlib
import shutil
import subprocess
import sys
from pathlib import Path

CLIENT = Path(__file__).parents[1] / "clients" / "typescript"
_NEEDED = (CLIENT / "package.json", CLIENT / "package-lock.json")


def compiled() -> Path:
    """Return the folder of the compiled client. What is installed already is not fetched again."""
    npm, node = shutil.which("npm"), shutil.which("node")
    if npm is None or node is None:
        raise RuntimeError("the TypeScript client needs Node 20 or newer with npm: install them")
    modules = CLIENT / "node_modules"
    wanted = hashlib.sha256(b"".join(path.read_bytes() for path in _NEEDED)).hexdigest()
    with (CLIENT / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # tests run in several processes
        mark = modules / ".installed"
        if not mark.is_file() or mark.read_text() != wanted:
            _run(npm, "ci", "--ignore-scripts", "--loglevel=error")
            mark.write_text(wanted)
        _run(node, "node_modules/typescript/bin/tsc", "-p", ".")
    return CLIENT / "dist"


def _run(*command: str) -> None:
    done = subprocess.run(command, cwd=CLIENT, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} failed:\n{done.stdout}{done.stderr}")


if __name__ == "__main__":
    print(compiled())
    sys.exit(0)
