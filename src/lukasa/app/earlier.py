"""Folders of the project's earlier name: finding them, and moving them to the present one."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

from msgspec import Struct

from lukasa.app.memory import Lukasa
from lukasa.app.settings import DEFAULT_ACCOUNT
from lukasa.model.errors import Conflict
from lukasa.model.events import Event
from lukasa.providers import folders

# Events and notes of opening memory and of a hook that starts a session: a folder with nothing else holds no memory.
_SET_UP = frozenset(
    {"workspace.created", "workspace.updated", "channel.created", "named.created", "conversation.started"}
)
_HOOK_NOTES = frozenset({"session", "injected"})


class EarlierFolders(Struct, frozen=True):
    """Default folders of the project's earlier name: data with memory in it, and a cache with models."""

    data: Path | None = None
    cache: Path | None = None


def earlier_folders() -> EarlierFolders:
    """Return the default folders of the earlier name that exist."""
    return EarlierFolders(folders.earlier_data(), folders.earlier_cache())


def take_over() -> EarlierFolders:
    """Move the default folders of the earlier name to those of the present one; return the paths that were moved.

    A data folder of the present name that holds no memory yet makes way. If both hold memory, or a process has the
    earlier one open, nothing is moved.
    """
    found = earlier_folders()
    if found.data is not None:
        target = folders.user_data()
        folders.require_closed(found.data)
        if target.exists():
            _make_way(target, found.data)
        folders.move(found.data, target)
    cache = found.cache
    if cache is not None:
        if folders.user_cache().exists():
            cache = None
        else:
            folders.move(cache, folders.user_cache())
    return EarlierFolders(found.data, cache)


def _make_way(folder: Path, earlier: Path) -> None:
    """Remove a data folder that holds nothing but what opening memory creates; refuse if it holds more."""
    folders.require_closed(folder)
    if not _unused(folder):
        raise Conflict(
            f"{earlier} and {folder} both hold memory, so nothing was moved",
            fix=f"keep one: move the other out of the way and try again, or use `--data {earlier}` for the earlier one",
        )
    import_module("shutil").rmtree(folder)


def _unused(folder: Path) -> bool:
    if {path.name for path in folder.iterdir()} - {"account", "workspaces"}:
        return False
    with Lukasa.open(folder, database="", account=DEFAULT_ACCOUNT, embedder="none") as memory:
        stores = [memory.account, *(memory.existing(info.name).ctx.local for info in memory.workspaces())]
        return all(_is_set_up(event) for store in stores for event in store.event_stream())


def _is_set_up(event: Event) -> bool:
    note = event.action == "note.written" and event.detail["key"] in _HOOK_NOTES
    return note or event.action in _SET_UP
