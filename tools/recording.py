"""Record a terminal session of the real program as an animated SVG: `make recording`.

    python -m tools.recording docs/pictures/session.svg

The commands run in a terminal of their own, with an empty home and a throw-away memory. Only what is random is replaced
by fixed text: ids, today's date, durations and the folder's name. So the same program gives the same picture, and a
test sees when the picture is no longer true.
"""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import shlex
import struct
import subprocess
import sys
import termios
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory

from tools.terminal_svg import COLUMNS, Scene, drawn, styled

MONDAY = "The booking queue lives in SQLite. Always run `make check` before you commit."
LATER = "The booking queue lives in Redis since last week."

# A line with # is told, a line with $ is typed and run.
SCRIPT = f"""\
$ lukasa install claude-code --yes | tail -2

# Monday. In a session you tell Claude Code, among other things:
#   “{MONDAY}”
# The session ends. Its hook hands it over, and a worker reads it:
$ lukasa hook session-end < monday.json; lukasa worker --once > work.log

# Tuesday. Another session starts, and Claude Code asks its hook what to know. Among the answer:
$ lukasa hook session-start --format text < tuesday.json | sed -n '/rules/,/channel/p' | grep '^>'

# A week later you say: “{LATER}”
$ lukasa hook session-end < later.json; lukasa worker --once > work.log
$ lukasa read "where does the booking queue live?" --limit 1
# The newer one first, the older one under it. `lukasa review` decides, `lukasa why` explains.
"""


def record() -> list[Scene]:
    """Run the script, and return what a viewer sees after another."""
    with TemporaryDirectory(prefix="lukasa-recording-") as name:
        folder = Path(name).resolve()
        env = _environment(folder)
        steady = _Steady(folder)
        return list(_scenes(folder, env, steady))


def _scenes(folder: Path, env: dict[str, str], steady: _Steady) -> Iterator[Scene]:
    for line in SCRIPT.splitlines():
        if line.startswith("$ "):
            printed = steady.text(_typed(line[2:], folder, env))
            yield Scene(line, tuple(styled(row) for row in printed.splitlines()))
        else:
            yield Scene(line)


def _environment(folder: Path) -> dict[str, str]:
    """Make a home, a project with three sessions, and a `lukasa` on the path; return the variables of the terminal."""
    home, project, programs = folder / "home", folder / "home" / "harbour", folder / "bin"
    for made in (home, project, programs):
        made.mkdir(parents=True)
    command = programs / "lukasa"
    command.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m lukasa.surfaces.cli.main "$@"\n', "utf-8")
    command.chmod(0o755)
    _session(project, "monday", "2026-03-02T09:00:00Z", MONDAY)
    _session(project, "later", "2026-03-10T09:00:00Z", f"{LATER} Please update the client.")
    starts = {"session_id": "tuesday", "hook_event_name": "SessionStart", "source": "startup"}
    (project / "tuesday.json").write_text(json.dumps(starts), "utf-8")
    source = str(Path(__file__).parents[1] / "src")
    return {
        "HOME": str(home),
        "PATH": f"{programs}:/usr/bin:/bin",
        "PYTHONPATH": source,
        "TERM": "xterm-256color",
        "LANG": "C.UTF-8",
        "LUKASA_DATA": str(home / "memory"),
        "LUKASA_WORKSPACE": "harbour",
        "LUKASA_EMBEDDER": "none",
        "LUKASA_WORKER": "off",
    }


def _session(project: Path, name: str, at: str, said: str) -> None:
    """Write a session as Claude Code does, and the event that ends it."""
    told = {"role": "user", "content": said}
    line = {"type": "user", "sessionId": name, "uuid": f"{name}-1", "timestamp": at, "message": told}
    (project / f"{name}.jsonl").write_text(json.dumps(line) + "\n", "utf-8")
    ends = {"session_id": name, "hook_event_name": "SessionEnd", "reason": "other", "transcript_path": f"{name}.jsonl"}
    (project / f"{name}.json").write_text(json.dumps(ends), "utf-8")


def _typed(command: str, folder: Path, env: dict[str, str]) -> str:
    """Run a command in a terminal of the picture's width, and return what it printed there."""
    ours, its = pty.openpty()
    fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack("HHHH", 40, COLUMNS, 0, 0))
    child = subprocess.Popen(
        ["sh", "-c", command],
        cwd=folder / "home" / "harbour",
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=its,
        stderr=its,
    )
    os.close(its)
    printed = b"".join(_until_closed(ours))
    os.close(ours)
    if child.wait() != 0:
        raise RuntimeError(f"{command!r} failed: {printed.decode()}")
    return printed.decode().replace("\r\n", "\n")


def _until_closed(terminal: int) -> Iterator[bytes]:
    """Yield what comes out of a terminal. Linux ends with an error when the last program has closed it."""
    while True:
        try:
            part = os.read(terminal, 65536)
        except OSError:
            return
        if not part:
            return
        yield part


_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_SHOWN_DAY = "2026-03-10"


@dataclass
class _Steady:
    """Replaces what is random. The n-th id that appears is the same in each recording."""

    folder: Path

    def __post_init__(self) -> None:
        self.ids: dict[str, str] = {}

    def text(self, printed: str) -> str:
        """Return the text with fixed ids, dates and durations, and with `~` for the home."""
        printed = _UUID.sub(lambda found: self.ids.setdefault(found[0], _id(len(self.ids))), printed)
        printed = printed.replace(str(self.folder / "home"), "~").replace(f"{datetime.now(UTC):%Y-%m-%d}", _SHOWN_DAY)
        return re.sub(r"\b\d+ ms\b", "40 ms", printed)


def _id(number: int) -> str:
    """Return the fixed id of a number, in the form of a real one."""
    digits = sha256(str(number).encode()).hexdigest()
    return f"019cd60a-{digits[:4]}-7{digits[4:7]}-9{digits[7:10]}-{digits[10:22]}"


def main(names: Sequence[str]) -> int:
    """Write the picture into the file."""
    picture = Path(names[0])
    picture.parent.mkdir(parents=True, exist_ok=True)
    picture.write_text(drawn(record()), "utf-8")
    print(f"{picture}: {picture.stat().st_size:,} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
