"""The folder of backups: pieces of content named by their digests, and one manifest for each backup.

A piece is written once, however many backups hold it. A backup exists once its manifest does, which is written last;
pieces that no manifest names are the rest of an attempt, and the next backup uses or removes them.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Literal

import msgspec
from msgspec import Struct

from lukasa.model import system
from lukasa.model.errors import Conflict, NotFound, StoreBusy, StoreDamaged, StoreError, StoreForeign, StoreNewer
from lukasa.storage.port import Finding
from lukasa.storage.sqlite.store_files import locked, os_errors, put_in_place
from lukasa.storage.transfer import About, Role

FORMAT, VERSION = "lukasa-backup", 1
MARK, BACKUPS, PIECES, TRIAL, LOCK = "lukasa-backup.json", "backups", "pieces", "trial", ".lock"
State = Literal["good", "faults", "damaged"]
_NAME = "%Y%m%dT%H%M%S.%fZ"
_LIKELY = {MARK, BACKUPS, PIECES, TRIAL, LOCK, f"{MARK}.new"}


class PartImage(Struct, frozen=True):
    """The rows of a part: how many, and the pieces that hold them, in order."""

    rows: int
    pieces: tuple[str, ...]


class StoreImage(Struct, frozen=True):
    """A store as it was at one moment.

    `head` is where its log ended then. A purge adds an event of its own behind that; `ends` is where the log ends.
    """

    id: str
    role: Role
    name: str  # of the workspace; empty for the account
    secret: bytes
    tokenizer: int
    created_at: str
    last_entry: int
    head: tuple[int, str]
    ends: tuple[int, str]
    parts: dict[str, PartImage]

    @property
    def about(self) -> About:
        return About(self.id, self.role, self.secret, self.tokenizer, self.created_at, self.ends, self.last_entry)

    @property
    def digest(self) -> str:
        return hashlib.sha256(msgspec.json.encode(self)).hexdigest()


class FileImage(Struct, frozen=True):
    """A file of the data folder, by its path in it; `link` is where a symbolic link leads."""

    path: str
    mode: int
    size: int
    pieces: tuple[str, ...]
    link: str = ""


class Manifest(Struct, frozen=True):
    """One backup: all stores of an account at one moment, and the files that belong to them."""

    at: datetime
    made_by: str
    account: str  # a digest that tells whose memory it is
    stores: tuple[StoreImage, ...]
    files: tuple[FileImage, ...]
    findings: dict[str, tuple[Finding, ...]] = {}  # faults that the memory itself had, by store
    purged_at: datetime | None = None
    version: int = VERSION

    def pieces(self) -> Iterator[str]:
        for store in self.stores:
            for part in store.parts.values():
                yield from part.pieces
        for file in self.files:
            yield from file.pieces

    def rows(self, part: str) -> int:
        return sum(store.parts[part].rows for store in self.stores if part in store.parts)


class Kept(Struct, frozen=True):
    """A backup of a folder: its time, and its manifest unless that is damaged. `wrong` says what is."""

    at: datetime
    path: Path
    manifest: Manifest | None
    wrong: str = ""

    @property
    def state(self) -> State:
        if self.manifest is None or self.wrong:
            return "damaged"
        return "faults" if self.manifest.findings else "good"


class _Mark(Struct, frozen=True):
    format: str
    version: int
    account: str


class BackupFolder:
    """A folder of backups of one account."""

    def __init__(self, path: Path, account: str) -> None:
        self.path, self.account = path, account
        self.written = 0  # bytes of pieces that were not there before

    @classmethod
    def open(cls, path: Path) -> BackupFolder:
        """Open a folder that holds backups."""
        mark = _mark(path)
        if mark is None:
            raise NotFound(f"{path} holds no backups", fix="name a folder that `lukasa backup` has filled")
        return cls(path, mark.account)

    @classmethod
    def make(cls, path: Path, account: str) -> BackupFolder:
        """Open a folder for backups of this account, which may be new or empty."""
        mark = _mark(path)
        if mark is not None and mark.account != account:
            raise Conflict(f"{path} holds backups of other memory", fix="choose another folder")
        if mark is None:
            with os_errors(path):
                if path.is_dir() and {entry.name for entry in path.iterdir()} - _LIKELY:
                    raise Conflict(f"{path} holds other files", fix="choose a new or an empty folder")
        made = cls(path, account)
        for folder in (path, path / BACKUPS, path / PIECES):
            _private(folder)
        if mark is None:
            _put(path / MARK, msgspec.json.encode(_Mark(FORMAT, VERSION, account)))
        return made

    @contextmanager
    def held(self) -> Iterator[None]:
        """Keep others from changing the folder. One that cannot be written to needs no lock: nobody changes it."""
        if not os.access(self.path, os.W_OK):
            yield
            return
        try:
            with locked(self.path / LOCK, 0.0):
                yield
        except StoreBusy as error:
            raise StoreBusy(
                f"another process works on the backups in {self.path}", fix="wait until it has finished"
            ) from error

    @contextmanager
    def trial(self) -> Iterator[Path]:
        """Give a private place to try out what a backup holds; it is empty before, and removed afterwards.

        It is in the folder, where there should be room, unless that cannot be written to.
        """
        if not os.access(self.path, os.W_OK):
            with tempfile.TemporaryDirectory(prefix="lukasa-trial-") as elsewhere:
                yield Path(elsewhere)
            return
        place = self.path / TRIAL
        try:
            with os_errors(place):
                if place.exists():
                    shutil.rmtree(place)
                _private(place)
            yield place
        finally:
            shutil.rmtree(place, ignore_errors=True)

    # Pieces

    def put(self, data: bytes) -> str:
        """Keep a piece; return its digest. A piece that is there already is compared, and mended if it is damaged."""
        digest = hashlib.sha256(data).hexdigest()
        path = self.piece(digest)
        try:
            if self.get(digest) == data:
                return digest
        except StoreError:
            pass
        _private(path.parent)
        packed = zlib.compress(data, 3)
        _put(path, packed)
        self.written += len(packed)
        return digest

    def piece(self, digest: str) -> Path:
        return self.path / PIECES / digest[:2] / digest

    def get(self, digest: str) -> bytes:
        """Return a piece; StoreDamaged, which names the file, if it is not what was written."""
        path = self.piece(digest)
        try:
            data = zlib.decompress(path.read_bytes())
        except FileNotFoundError:
            raise _damaged(path, "is missing") from None
        except (zlib.error, OSError) as error:
            raise _damaged(path, f"cannot be read: {error}") from error
        if hashlib.sha256(data).hexdigest() != digest:
            raise _damaged(path, "is not what was written")
        return data

    def sweep(self) -> int:
        """Remove pieces that no backup names; return how many bytes that frees. Nothing goes if a manifest is damaged,
        because nobody can tell what it names."""
        found = self.kept()
        if any(one.manifest is None for one in found):
            return 0
        named = {piece for one in found if one.manifest is not None for piece in one.manifest.pieces()}
        freed = 0
        with os_errors(self.path):
            for path in (self.path / PIECES).glob("*/*"):
                if path.name not in named:
                    freed += path.stat().st_size
                    path.unlink()
        return freed

    # Backups

    def kept(self) -> list[Kept]:
        """Return all backups, newest first. Whether their pieces are there is looked at, and not what is in them."""
        with os_errors(self.path):
            there = {path.name for path in (self.path / PIECES).glob("*/*")}
            paths = sorted((self.path / BACKUPS).glob("*.json"), reverse=True)
        return [self._kept(path, there) for path in paths]

    def _kept(self, path: Path, there: set[str]) -> Kept:
        try:
            at = datetime.strptime(path.stem, _NAME).replace(tzinfo=UTC)
        except ValueError:
            return Kept(datetime.min.replace(tzinfo=UTC), path, None, f"{path} is not the name of a backup")
        try:
            body, _, digest = path.read_bytes().partition(b"\n")
            if hashlib.sha256(body).hexdigest().encode() != digest.strip():
                raise ValueError("not what was written")
            manifest = msgspec.json.decode(body, type=Manifest)
        except (OSError, ValueError) as error:
            return Kept(at, path, None, f"{path} is damaged: {error}")
        if manifest.version > VERSION:
            return Kept(at, path, None, f"{path} is of a newer version")
        gone = next((piece for piece in manifest.pieces() if piece not in there), None)
        return Kept(at, path, manifest, f"{self.piece(gone)} is missing" if gone else "")

    def free_time(self, at: datetime) -> datetime:
        """Return this time, or the next one that no backup has."""
        at = at.astimezone(UTC)
        while self._path(at).exists():
            at += timedelta(microseconds=1)
        return at

    def save(self, manifest: Manifest) -> None:
        """Write a manifest: from now on the backup exists, or is another one than before."""
        body = msgspec.json.encode(manifest)
        _put(self._path(manifest.at), body + b"\n" + hashlib.sha256(body).hexdigest().encode() + b"\n")

    def remove(self, at: datetime) -> None:
        with os_errors(self.path):
            self._path(at).unlink()

    def _path(self, at: datetime) -> Path:
        return self.path / BACKUPS / f"{at.astimezone(UTC).strftime(_NAME)}.json"

    def size(self) -> int:
        """Return how many bytes all pieces take."""
        with os_errors(self.path):
            return sum(path.stat().st_size for path in (self.path / PIECES).glob("*/*"))


def is_backup(path: Path) -> bool:
    """Say whether a path is a folder of backups."""
    return (path / MARK).is_file()


def _mark(path: Path) -> _Mark | None:
    file = path / MARK
    try:
        mark = msgspec.json.decode(file.read_bytes(), type=_Mark)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError) as error:
        raise StoreDamaged(f"{file} cannot be read: {error}", fix="restore that file, or use another folder") from error
    if mark.format != FORMAT:
        raise StoreForeign(f"{path} does not hold backups of Lukasa", fix="choose another folder")
    if mark.version > VERSION:
        raise StoreNewer(f"the backups in {path} are of version {mark.version}", fix="upgrade Lukasa")
    return mark


def _damaged(path: Path, what: str) -> StoreDamaged:
    return StoreDamaged(
        f"{path} {what}", fix="use an older backup with --at; another `lukasa backup` writes again what it can"
    )


def _private(folder: Path) -> None:
    """Create a folder that only its owner can read; one that exists keeps its mode."""
    with os_errors(folder), suppress(FileExistsError):
        folder.mkdir(mode=0o700, parents=True)
        folder.chmod(0o700)


def _put(path: Path, data: bytes) -> None:
    """Write a private file as a whole, and sync it."""
    temporary = path.with_name(f"{path.name}.new")
    with os_errors(temporary):
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | system.CLOEXEC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
    put_in_place(temporary, path)
