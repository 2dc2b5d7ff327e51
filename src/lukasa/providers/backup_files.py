"""The files of a data folder that belong to memory and are in no store: list them for a backup, and write them back."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from msgspec import Struct

from lukasa.model import system
from lukasa.model.errors import Conflict, StoreError
from lukasa.ports import CHECKPOINTS
from lukasa.providers.files.safe_write import locked, os_errors

WORKSPACES, PROMPTS, CURATED = "workspaces", "prompts", "curated"
PIECE = 1 << 18  # bytes of a file that are read at a time


class FoundFile(Struct, frozen=True):
    """A file by its path in the data folder; `link` is where a symbolic link leads."""

    path: str
    place: Path
    mode: int
    link: str = ""

    def pieces(self) -> Iterator[bytes]:
        if self.link:
            return
        with os_errors(self.place), self.place.open("rb") as stream:
            while piece := stream.read(PIECE):
                yield piece


@contextmanager
def held(data: Path, ids: Sequence[str], but: Collection[str]) -> Iterator[list[FoundFile]]:
    """Give the files of workspaces, and the prompts; nobody writes a curated document meanwhile."""
    with ExitStack() as stack:
        for id in ids:
            folder = data / WORKSPACES / id / CURATED
            if folder.is_dir():
                stack.enter_context(locked(folder / ".lock"))
        yield list(_listed(data, ids, but))


def _listed(data: Path, ids: Sequence[str], but: Collection[str]) -> Iterator[FoundFile]:
    stems = (*but, CHECKPOINTS)
    for top in (*(f"{WORKSPACES}/{id}" for id in ids), PROMPTS):
        for folder, folders, names in os.walk(data / top):
            inside = Path(folder)
            of_git = ".git" in inside.parts
            for name in sorted({*names, *(one for one in folders if (inside / one).is_symlink())}):
                of_store = any(name == stem or name.startswith((f"{stem}-", f"{stem}.")) for stem in stems)
                if of_git or not (of_store or name.endswith(".lock")):
                    yield from _found(data, inside / name)


def _found(data: Path, place: Path) -> Iterator[FoundFile]:
    try:
        status = place.lstat()
    except FileNotFoundError:
        return  # git or an editor has replaced it just now
    path = place.relative_to(data).as_posix()
    if stat.S_ISLNK(status.st_mode):
        yield FoundFile(path, place, 0o777, os.readlink(place))
    elif stat.S_ISREG(status.st_mode):
        yield FoundFile(path, place, stat.S_IMODE(status.st_mode))


def require_absent(data: Path, paths: Sequence[str]) -> None:
    """Raise if one of these files is there already."""
    found = next((path for path in paths if os.path.lexists(_inside(data, path))), None)
    if found is not None:
        raise Conflict(
            f"{data / found} is there already", fix="restore into a folder without files; nothing was changed"
        )


def put(data: Path, path: str, mode: int, link: str, pieces: Callable[[], Iterator[bytes]]) -> None:
    """Write one file as a whole, with its mode; it takes the place of what an interrupted attempt has left."""
    place = _inside(data, path)
    with os_errors(place):
        place.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        temporary = place.with_name(f".{place.name}.part")
        temporary.unlink(missing_ok=True)
        if link:
            temporary.symlink_to(link)
        else:
            descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | system.CLOEXEC, 0o600)
            with os.fdopen(descriptor, "wb") as file:
                for piece in pieces():
                    file.write(piece)
                system.set_mode(file.fileno(), mode & 0o777)
                file.flush()
                os.fsync(file.fileno())
        temporary.replace(place)


def _inside(data: Path, path: str) -> Path:
    """Return where a path leads in a data folder; refuse one that leads out of what a backup holds."""
    parts = Path(path).parts
    if Path(path).is_absolute() or ".." in parts or not parts or parts[0] not in (WORKSPACES, PROMPTS):
        raise StoreError(f"the backup names {path[:200]!r}, which is no file of memory", fix="nothing was restored")
    return data / path
