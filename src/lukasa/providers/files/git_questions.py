"""Ask git about a folder without running anything that its repository names: no monitor, hook, filter or driver."""

from __future__ import annotations

import os
from importlib import import_module

_SETTINGS = (
    ("core.fsmonitor", "false"),
    ("core.hooksPath", os.devnull),
    ("core.quotePath", "false"),
    ("diff.renameLimit", "2000"),
)
_OWN = {"GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0", "GIT_NO_LAZY_FETCH": "1", "LC_ALL": "C"}


def ask_git(folder: str, *words: str, seconds: float, program: str = "git") -> bytes | None:
    """Return what git prints; None if it refuses, or is not there. TimeoutError after so many seconds."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
    settings = (word for name, value in _SETTINGS for word in ("-c", f"{name}={value}"))
    programs = import_module("subprocess")  # loaded when git is asked: most processes never do
    try:
        done = programs.run(
            [program, *settings, "-C", folder, *words],
            stdin=programs.DEVNULL,
            capture_output=True,
            env={**kept, **_OWN},
            timeout=seconds,
            check=False,
        )
    except programs.TimeoutExpired:
        raise TimeoutError from None
    except OSError:
        return None
    return bytes(done.stdout) if done.returncode == 0 else None
