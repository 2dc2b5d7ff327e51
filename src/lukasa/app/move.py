"""Moving the account to another data folder or database."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from lukasa.app.places import memory_at, threads_at
from lukasa.app.settings import DEFAULT_ACCOUNT, Settings
from lukasa.model import database_url
from lukasa.model.errors import InvalidInput
from lukasa.providers import folders
from lukasa.service import admin
from lukasa.storage.sqlite.store_files import MEMORY_FILES

if TYPE_CHECKING:
    from lukasa.service.admin.moving import Moving


def moving(settings: Settings, to: str, account: str = DEFAULT_ACCOUNT) -> Moving:
    """Return a move of the account of the settings to a data folder or to an account of a database."""
    url = to if "://" in to else ""
    if url:
        database_url.check(url)
    elif account != DEFAULT_ACCOUNT:
        raise InvalidInput(
            f"account {account[:60]!r} is named, but a data folder has one account", fix="leave --to-account out"
        )
    data = settings.data if url else Path(to).expanduser()
    origin = memory_at(settings.database, settings.data, settings.account_name)
    try:
        target = memory_at(url, data, account)
    except BaseException:
        origin.close()
        raise

    def copy_files() -> None:
        folders.copy_files(settings.data, data, but=MEMORY_FILES)

    made: Moving = admin.moving.Moving(
        origin,
        target,
        to_folder=not url,
        require_unused=lambda: None if settings.database else folders.require_closed(settings.data),
        copy_files=copy_files if data.absolute() != settings.data.absolute() else None,
        copy_threads=import_module("lukasa.providers.checkpoint_copy").copy_threads,
        threads_here=lambda id: threads_at(settings.database, settings.data / "workspaces" / id),
        threads_there=lambda id: threads_at(url, data / "workspaces" / id),
    )
    return made
