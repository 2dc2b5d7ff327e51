"""Find the platform's folders for data and caches, and move the folders of the project's earlier name.

On Linux the rule is two lines long. Importing `platformdirs` would take a tenth of a hook's time, so only the other
platforms import it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Collection
from importlib import import_module
from pathlib import Path

from lukasa.model import system
from lukasa.model.errors import StoreBusy, StoreError
from lukasa.ports import CHECKPOINTS

NAME = "lukasa"
EARLIER_NAME = "mnemon"  # the project's name before this one; its files are compatible

# SQLite's lock bytes: every connection to a database in WAL mode holds a shared lock on them.
_SHARED_FIRST, _SHARED_SIZE = 0x40000002, 510


def user_data(name: str = NAME) -> Path:
    return _folder(name, "XDG_DATA_HOME", "~/.local/share", "user_data_path")


def user_cache(name: str = NAME) -> Path:
    return _folder(name, "XDG_CACHE_HOME", "~/.cache", "user_cache_path")


def _folder(name: str, variable: str, usual: str, known_as: str) -> Path:
    chosen = os.environ.get(variable) or os.path.expanduser(usual)
    plain = sys.platform == "linux" and "ANDROID_DATA" not in os.environ and not hasattr(sys, "getandroidapilevel")
    if plain and chosen.startswith("/") and chosen == chosen.strip():
        return Path(chosen) / name
    found: Path = getattr(import_module("platformdirs"), known_as)(name)
    return found


def earlier_data() -> Path | None:
    """The default data folder of the earlier name, if there is one with an account in it."""
    folder = user_data(EARLIER_NAME)
    return folder if (folder / "account" / "memory.db").is_file() else None


def earlier_cache() -> Path | None:
    """The default cache folder of the earlier name, if there is one."""
    folder = user_cache(EARLIER_NAME)
    return folder if folder.is_dir() else None


def require_closed(folder: Path) -> None:
    """Raise `StoreBusy` if a process has a database of this folder open, or is opening one."""
    found = [Path(place, name) for place, _, names in os.walk(folder) for name in names]
    for path in found:
        if path.suffix in (".db", ".lock") and _in_use(path):
            raise StoreBusy(
                f"a running process has {path} open", fix="stop the server, worker or chat that uses it, and try again"
            )


def _in_use(path: Path) -> bool:
    descriptor = os.open(path, os.O_RDWR | system.CLOEXEC)
    try:
        if path.suffix == ".lock":
            return not system.try_lock(descriptor)
        return system.is_range_locked(descriptor, _SHARED_FIRST, _SHARED_SIZE)
    finally:
        os.close(descriptor)


def copy_files(source: Path, target: Path, *, but: Collection[str]) -> None:
    """Copy the files of workspaces and the prompts of a data folder into another. Databases, and what is only of use
    while a process runs, are left out; `but` names the files of stores."""
    shutil = import_module("shutil")

    def left_out(folder: str, names: list[str]) -> list[str]:
        if ".git" in Path(folder).parts:
            return []
        stems = (*but, CHECKPOINTS)
        return [
            name
            for name in names
            if any(name == stem or name.startswith((f"{stem}-", f"{stem}.")) for stem in stems)
            or name.endswith(".lock")
        ]

    try:
        for part in ("workspaces", "prompts"):
            if (source / part).is_dir():
                shutil.copytree(source / part, target / part, ignore=left_out, symlinks=True, dirs_exist_ok=True)
    except OSError as error:
        raise StoreError(
            f"the files of {source} cannot be copied to {target}: {error}", fix="check the folder and its permissions"
        ) from error


def count_files(folder: Path, *, but: Collection[str]) -> int:
    """Count the files of a folder that no store keeps; `but` names those of stores."""
    found = (name for _, _, names in os.walk(folder) for name in names)
    return sum(not any(name == stem or name.startswith((f"{stem}-", f"{stem}.")) for stem in but) for name in found)


def remove_tree(folder: Path) -> None:
    """Remove a folder with all that is in it; nothing if there is none."""
    try:
        import_module("shutil").rmtree(folder)
    except FileNotFoundError:
        return
    except OSError as error:
        raise StoreError(
            f"{folder} cannot be removed: {error}", fix="check its permissions, and give the same command again"
        ) from error


def move(source: Path, target: Path) -> None:
    """Rename a folder to a path that is free. Both are in the same parent, so the rename is atomic."""
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        source.rename(target)
    except OSError as error:
        raise StoreError(
            f"{source} cannot be moved to {target}: {error.strerror}", fix=f"move it by hand: mv {source} {target}"
        ) from error
