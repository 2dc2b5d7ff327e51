"""The folders that a platform has for a program's data and caches.

On Linux the rule is two lines long, and asking `platformdirs` for it loads as much as a tenth of a hook: that is left
to the platforms where there is something to know.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module
from pathlib import Path

NAME = "lukasa"


def user_data() -> Path:
    return _folder("XDG_DATA_HOME", "~/.local/share", "user_data_path")


def user_cache() -> Path:
    return _folder("XDG_CACHE_HOME", "~/.cache", "user_cache_path")


def _folder(variable: str, usual: str, known_as: str) -> Path:
    chosen = os.environ.get(variable) or os.path.expanduser(usual)
    plain = sys.platform == "linux" and "ANDROID_DATA" not in os.environ and not hasattr(sys, "getandroidapilevel")
    if plain and chosen.startswith("/") and chosen == chosen.strip():
        return Path(chosen) / NAME
    found: Path = getattr(import_module("platformdirs"), known_as)(NAME)
    return found
