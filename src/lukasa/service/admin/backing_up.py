"""Backups: all memory of an account as it was at one moment, tried out before it counts.

Only the owner may make one: it is a copy of everything, in clear.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack
from datetime import datetime
from pathlib import Path
from typing import Protocol, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from lukasa.model.errors import Conflict, Refused, StoreDamaged, StoreError
from lukasa.model.events import Actor
from lukasa.model.values import Origin, Trust
from lukasa.ports import Clock
from lukasa.storage import backup_image, backup_purge, transfer
from lukasa.storage.backup_folder import BackupFolder, FileImage, Manifest, StoreImage
from lukasa.storage.backup_image import ImageStore
from lukasa.storage.export_file import Exported
from lukasa.storage.port import Finding
from lukasa.storage.transfer import THE_ACCOUNT, Ground
from lukasa.upkeep.retention import Retention

Tell: TypeAlias = Callable[[int], None]
GroundAt: TypeAlias = Callable[[Path], Ground]
CHATS, LOG, CURATED, WORKSPACES = "checkpoints.db", "log.jsonl", "curated", "workspaces"
_OBJECTS = f"/{CURATED}/.git/objects/"
MOST_TOLD = 20  # faults of a backup that are told


class MemoryFile(Protocol):
    """A file of the data folder that belongs to memory."""

    @property
    def path(self) -> str: ...
    @property
    def mode(self) -> int: ...
    @property
    def link(self) -> str: ...
    def pieces(self) -> Iterator[bytes]: ...


class Chats(Protocol):
    """A copy of the states of chats."""

    def threads(self) -> list[str]: ...
    def purge(self, thread: str) -> None: ...


class Source(Struct, frozen=True, kw_only=True):
    """What a backup needs of the memory that is open."""

    moment: Callable[[], AbstractContextManager[Sequence[Exported]]]
    files: Callable[[Sequence[str]], AbstractContextManager[Sequence[MemoryFile]]]
    copy_chats: Callable[[str, Sequence[str], Path], MemoryFile | None]  # of a workspace, into a folder
    ground: GroundAt
    chats: Callable[[Path], Chats]  # in the copy that is in a folder
    clock: Clock
    origin: Origin
    program: str


class Purged(Struct, frozen=True):
    """An older backup from which was taken what has been removed since: rows by kind. `wrong` says why not."""

    at: datetime
    removed: dict[str, int]
    wrong: str = ""


class BackedUp(Struct, frozen=True):
    """A backup that was made and tried out."""

    folder: str
    at: datetime
    stores: int
    entries: int
    events: int
    files: int
    findings: tuple[str, ...]
    written: int  # bytes that no earlier backup had
    size: int  # bytes of all backups in the folder
    removed: tuple[datetime, ...] = ()
    purged: tuple[Purged, ...] = ()
    heads: dict[str, tuple[int, str]] = {}


class Backups:
    """Makes backups of the memory that is open."""

    def __init__(self, source: Source) -> None:
        self._source = source

    def run(
        self,
        path: Path,
        *,
        keep: str = "",
        keep_last: int | None = None,
        purge: bool = False,
        tell: Tell = lambda rows: None,
    ) -> BackedUp:
        """Make a backup, try it out, and only then let it count; then remove those that no rule keeps."""
        retention = Retention.read(keep, keep_last)
        if self._source.origin.trust is not Trust.AUTHOR:
            raise Refused("only the owner can back up memory", fix="ask the owner")
        with ExitStack() as stack:
            with self._source.moment() as stores:
                folder = BackupFolder.make(path, _account(stores[0].store.about.secret))
                stack.enter_context(folder.held())
                trial = stack.enter_context(folder.trial())
                manifest = self._taken(folder, stores, trial, tell)
            return self._completed(folder, manifest, retention, purge, trial, tell)

    def _taken(self, folder: BackupFolder, stores: Sequence[Exported], trial: Path, tell: Tell) -> Manifest:
        source, images, files = self._source, list[StoreImage](), list[FileImage]()
        ids = [one.store.about.id for one in stores[1:]]
        with source.files(ids) as found:
            files += [_filed(folder, file) for file in found]
        for one in stores:
            name = one.workspace.name if one.workspace is not None else ""
            images.append(backup_image.taken(one.store, folder, name, tell))
            if one.workspace is not None:
                place = trial / "chats" / one.workspace.id
                chats = source.copy_chats(one.workspace.id, transfer.conversations(one.store), place)
                files += [_filed(folder, chats)] if chats is not None else []
        at = folder.free_time(source.clock.now())
        return Manifest(at, source.program, folder.account, tuple(images), tuple(files))

    def _completed(
        self, folder: BackupFolder, manifest: Manifest, retention: Retention, purge: bool, trial: Path, tell: Tell
    ) -> BackedUp:
        before = [one.manifest for one in folder.kept() if one.state == "good" and one.manifest is not None]
        known = {store.digest for one in before for store in one.stores}
        findings, told = dict[str, tuple[Finding, ...]](), list[str]()
        for store in manifest.stores:
            if store.digest not in known:
                found = tried(folder, store, self._source.ground(trial), tell)
                findings |= {store.id: found} if found else {}
                told += worded(store, found)
        manifest = replace(manifest, findings=findings)
        folder.save(manifest)
        removed = _retired(folder, retention)
        purged = self._purge(folder, manifest, trial, tell) if purge else ()
        folder.sweep()
        return BackedUp(
            str(folder.path),
            manifest.at,
            len(manifest.stores),
            manifest.rows(transfer.ENTRIES.name),
            manifest.rows(transfer.EVENTS.name),
            len(manifest.files),
            tuple(told[:MOST_TOLD]),
            folder.written,
            folder.size(),
            removed,
            purged,
            {store.id: store.ends for store in manifest.stores},
        )

    # Erasure

    def _purge(self, folder: BackupFolder, newest: Manifest, trial: Path, tell: Tell) -> tuple[Purged, ...]:
        """Take out of older backups what has been removed for good since."""
        found = []
        for one in folder.kept():
            if one.manifest is None:
                found.append(Purged(one.at, {}, one.wrong))
            elif one.at < newest.at:
                try:
                    removed = self._purge_one(folder, one.manifest, newest, trial, tell)
                except (Conflict, StoreError) as error:
                    found.append(Purged(one.at, {}, error.message))
                else:
                    found += [Purged(one.at, removed)] if removed else []
        return tuple(found)

    def _purge_one(
        self, folder: BackupFolder, old: Manifest, newest: Manifest, trial: Path, tell: Tell
    ) -> dict[str, int]:
        now, removed, stores = {store.id: store for store in newest.stores}, dict[str, int](), list[StoreImage]()
        at, findings = self._source.clock.now(), dict[str, tuple[Finding, ...]]()
        actor = Actor(self._source.origin.principal, "backup", self._source.origin.transport)
        for store in old.stores:
            if store.id not in now:
                continue  # the account's store tells of it
            pair = ImageStore(folder, store), ImageStore(folder, now[store.id])
            less = backup_purge.without(*pair, actor, at)
            if less is None:
                stores.append(store)
                findings |= {store.id: old.findings[store.id]} if store.id in old.findings else {}
                continue
            for kind, count in less.removed.items():
                removed[kind] = removed.get(kind, 0) + count
            about = replace(store.about, head=less.ends)
            made = backup_image.cut(about, less.rows, folder, store.name, tell, head=store.head)
            faults = tried(folder, made, self._source.ground(trial / "purged"), tell)
            if len(faults) > len(old.findings.get(store.id, ())):
                raise StoreDamaged(
                    f"the backup of {old.at:%Y-%m-%d %H:%M} would not be sound without what was removed",
                    fix="it is as it was; remove it if it must go",
                )
            findings |= {store.id: faults} if faults else {}
            stores.append(made)
        files, forgotten = self._purged_files(folder, old, newest, trial)
        if forgotten:
            removed["files"] = forgotten
        if removed:
            folder.save(replace(old, stores=tuple(stores), files=files, findings=findings, purged_at=at))
        return removed

    def _purged_files(
        self, folder: BackupFolder, old: Manifest, newest: Manifest, trial: Path
    ) -> tuple[tuple[FileImage, ...], int]:
        """Return the files that an older backup keeps, and how many are others than before.

        A file that is gone goes, a log keeps the lines that it still has, and of chats those that are gone are removed.
        A curated document stays with its history if git still has all of that; otherwise the present one takes its
        place.
        """
        now = {file.path: file for file in newest.files}
        ids = {store.id for store in newest.stores}
        rewritten = {_repository(file) for file in old.files if _OBJECTS in file.path and now.get(file.path) != file}
        kept = [file for file in newest.files if _repository(file) in rewritten]
        changed = sum(_repository(file) in rewritten for file in old.files)
        for file in old.files:
            parts, present = file.path.split("/"), now.get(file.path)
            found: FileImage | None = file
            if _repository(file) in rewritten:
                continue
            if present is None or (parts[0] == WORKSPACES and parts[1] not in ids):
                found = None
            elif parts[-1] == CHATS:
                found = self._purged_chats(folder, file, present, trial)
            elif parts[-1] == LOG:
                found = _purged_log(folder, file, present)
            changed += found != file
            kept += [found] if found is not None else []
        return tuple(kept), changed

    def _purged_chats(self, folder: BackupFolder, old: FileImage, now: FileImage, trial: Path) -> FileImage:
        if old.pieces == now.pieces:
            return old
        then, present = trial / "then", trial / "now"
        for place, file in ((then, old), (present, now)):
            place.mkdir(mode=0o700, exist_ok=True)
            (place / CHATS).write_bytes(b"".join(map(folder.get, file.pieces)))
        chats = self._source.chats(then)
        gone = set(chats.threads()) - set(self._source.chats(present).threads())
        if not gone:
            return old
        for thread in sorted(gone):
            chats.purge(thread)
        data = (then / CHATS).read_bytes()
        return replace(old, size=len(data), pieces=_cut(folder, [data]))


def _repository(file: FileImage) -> str:
    """Return the folder of the curated document that a file is in; nothing for other files."""
    before, found, _ = file.path.partition(f"/{CURATED}/")
    return before if found else ""


def _purged_log(folder: BackupFolder, old: FileImage, now: FileImage) -> FileImage:
    """Return a structured log with the lines that it still has. Lines are only added to one, unless they are erased."""
    if old.pieces == now.pieces:
        return old
    there = set(b"".join(map(folder.get, now.pieces)).splitlines())
    lines = b"".join(map(folder.get, old.pieces)).splitlines(keepends=True)
    left = [line for line in lines if line.rstrip(b"\r\n") in there]
    if len(left) == len(lines):
        return old
    data = b"".join(left)
    return replace(old, size=len(data), pieces=_cut(folder, [data] if data else []))


def _account(secret: bytes) -> str:
    return hashlib.sha256(b"lukasa backup" + secret).hexdigest()


def _filed(folder: BackupFolder, file: MemoryFile) -> FileImage:
    sizes = list[int]()

    def measured() -> Iterator[bytes]:
        for piece in file.pieces():
            sizes.append(len(piece))
            yield piece

    pieces = _cut(folder, measured())
    return FileImage(file.path, file.mode, sum(sizes), pieces, file.link)


def _cut(folder: BackupFolder, pieces: Iterator[bytes] | list[bytes]) -> tuple[str, ...]:
    return tuple(folder.put(piece) for piece in pieces)


def tried(folder: BackupFolder, store: StoreImage, ground: Ground, tell: Tell) -> tuple[Finding, ...]:
    """Bring a store in at a place of trial, and check it as `lukasa doctor` does; return what that finds."""
    try:
        return transfer.rehearse(ImageStore(folder, store), ground, tell)
    finally:
        ground.clear(store.about)


def worded(store: StoreImage, findings: Sequence[Finding]) -> list[str]:
    """Say what was found in a store."""
    return [f"{store.name or THE_ACCOUNT}: {one.what} {one.subject}: {one.detail}" for one in findings]


def _retired(folder: BackupFolder, retention: Retention) -> tuple[datetime, ...]:
    """Remove the backups that no rule keeps. The last good one stays, whatever the rules say."""
    found = folder.kept()
    good = [one.at for one in found if one.state == "good"]
    going = set(retention.going([one.at for one in found if one.state != "damaged"])) - set(good[:1])
    if retention != Retention() and good:
        going |= {one.at for one in found if one.state == "damaged" and one.at < good[0] and one.at.year > 1}
    for at in going:
        folder.remove(at)
    return tuple(sorted(going))
