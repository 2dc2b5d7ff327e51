"""Where memory is kept: a data folder, an account of a database, or this process; and what may be kept there."""

from __future__ import annotations

from functools import lru_cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lukasa.model import database_url
from lukasa.model.errors import StoreError, StoreMissing, StoreUnfinished
from lukasa.ports import Threads
from lukasa.providers.checkpoints import CheckpointFile
from lukasa.service import inputs
from lukasa.spec.load import parse_spec, up_to_date
from lukasa.spec.types import MemorySpec
from lukasa.storage.port import Store
from lukasa.storage.sqlite.store_files import MOVING

if TYPE_CHECKING:
    from lukasa.storage.postgres.database import Database
    from lukasa.storage.transfer import Ground


def private(folder: Path) -> None:
    """Create a folder that only its owner can read; an existing folder keeps its mode."""
    try:
        folder.mkdir(parents=True, mode=0o700)
        folder.chmod(0o700)  # because mkdir applies the umask
    except FileExistsError:
        if not folder.is_dir():
            raise StoreError(f"{folder} is not a folder", fix="choose another data folder") from None
    except OSError as error:
        raise StoreError(f"{folder} cannot be created: {error.strerror}", fix="choose another data folder") from error


def in_process() -> Store:
    """Return a store in this process, which writes no file; imported on first use."""
    store: Store = import_module("lukasa.storage.memory.memory_store").MemoryStore()
    return store


def open_database(url: str) -> Database:
    """Connect to a database; its driver is imported here, because most memory is in SQLite."""
    try:
        found: type[Database] = import_module("lukasa.storage.postgres.database").Database
    except ModuleNotFoundError as missing:
        if (missing.name or "").partition(".")[0] == "lukasa":
            raise
        raise StoreError(
            f"PostgreSQL needs the package {missing.name!r}, which is not installed",
            fix="pip install 'lukasa[postgres]'",
        ) from None
    return found.open(url)


def memory_at(url: str, data: Path, account: str) -> Any:
    """Return an account's memory as a move sees it."""
    if not url:
        return import_module("lukasa.storage.sqlite.transfer").FolderMemory(data)
    database = open_database(url)
    try:
        id = database.account(inputs.one_line(account, "account name"))
        return import_module("lukasa.storage.postgres.transfer").DatabaseMemory(database, id, account)
    except BaseException:
        database.close()
        raise


def threads_at(url: str, folder: Path) -> Threads:
    """Return the chats of a workspace: in tables of the database, or in a file of its folder."""
    if not url:
        return CheckpointFile(folder)
    tables: Threads = import_module("lukasa.providers.checkpoint_tables").CheckpointTables(url)
    return tables


def trial_ground(folder: Path) -> Ground:
    """Return a place where a store of a backup is tried out."""
    made: Ground = import_module("lukasa.storage.sqlite.transfer").FolderGround(folder)
    return made


@lru_cache(maxsize=32)
def parsed(text: str, workspace: str) -> MemorySpec:
    """Return the spec of a workspace; a text is parsed once."""
    return parse_spec(text, file=f"workspace {workspace}")


def require_account(data: Path) -> None:
    """Raise if a data folder holds workspaces, but not the database of their account."""
    file = data / "account" / "memory.db"
    if file.exists() or not any((data / "workspaces").iterdir()):
        return
    if any((data / "workspaces").glob("*/memory.db")):
        raise StoreMissing(
            f"{file} is gone, but its workspaces are still there",
            fix="restore that file from a backup; Lukasa never replaces it by an empty one",
        )
    raise StoreMissing(
        f"{data} holds files of workspaces, and no database",
        fix="set LUKASA_DATABASE, if their memory is in PostgreSQL; otherwise restore the databases from a backup, "
        "or choose another data folder",
    )


def require_whole(data: Path) -> None:
    """Raise if memory is being moved into a data folder, and the move is not finished."""
    if (data / MOVING).exists():
        raise StoreUnfinished(str(data))


def require_kept(name: str, spec: MemorySpec) -> None:
    """Raise if a spec keeps a workspace in one process: what comes in would be gone with it."""
    if spec.backend.store == "memory":
        raise StoreError(
            f"the spec of workspace {name[:60]!r} keeps it in one process alone, and nothing of it would be left",
            fix="merge it into a workspace with another spec, with --into",
        )


def require_engine(name: str, text: str, database: str) -> None:
    """Raise if the spec of a workspace does not let it be kept in a place with this database, or without one."""
    spec = parse_spec(up_to_date(text), file=f"workspace {name[:60]}")
    require_kept(name, spec)
    require_database(name, spec, database)


def require_database(name: str, spec: MemorySpec, database: str) -> None:
    """Raise if a spec asks for PostgreSQL and no database is set: its memory must not begin anew in a file."""
    if spec.backend.store == "postgres" and not database:
        raise StoreError(
            f"the spec of workspace {name[:60]!r} keeps it in PostgreSQL, and no database is set",
            fix=f"set LUKASA_DATABASE or give --database, as in {database_url.EXAMPLE}",
        )
