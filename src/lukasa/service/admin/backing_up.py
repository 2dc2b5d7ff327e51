"""Backups: all memory of an account as it was at one moment, tried out before it counts, and brought back.

Only the owner may make one: it is a copy of everything, in clear.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Protocol, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from lukasa.model.errors import Conflict, NotFound, Refused, StoreDamaged, StoreError
from lukasa.model.events import Actor
from lukasa.model.values import Origin, Trust
from lukasa.ports import Clock
from lukasa.service import inputs
from lukasa.storage import backup_image, backup_purge, tables, transfer
from lukasa.storage.backup_folder import BackupFolder, FileImage, Kept, Manifest, State, StoreImage
from lukasa.storage.backup_image import ImageStore
from lukasa.storage.export_file import Exported
from lukasa.storage.transfer import THE_ACCOUNT, Ground, Target, Watch
from lukasa.upkeep.retention import Retention

Tell: TypeAlias = Callable[[int], None]
GroundAt: TypeAlias = Callable[[Path], Ground]
CHATS, LOG, CURATED, WORKSPACES = "checkpoints.db", "log.jsonl", "curated", "workspaces"
_OBJECTS = f"/{CURATED}/.git/objects/"
_WORDS = 20  # faults of a backup that are told
_DAY = "2026-11-15"


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


class Listed(Struct, frozen=True):
    """A backup of a folder."""

    at: datetime
    state: State
    wrong: str
    workspaces: tuple[str, ...] = ()
    entries: int = 0
    events: int = 0
    files: int = 0
    purged_at: datetime | None = None


class Checked(Struct, frozen=True):
    """The outcome of checking a backup: whether it was tried out as a whole, and what is wrong."""

    at: datetime
    tried: bool
    wrong: tuple[str, ...]


class Restored(Struct, frozen=True):
    """Memory that came back out of a backup, or would."""

    at: datetime
    into: str
    stores: int
    rows: int
    entries: int
    events: int
    files: int
    findings: int
    resumed: int = 0
    done: bool = True


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
        findings = list[str]()
        for store in manifest.stores:
            if store.digest not in known:
                findings += _tried(folder, store, self._source.ground(trial), tell)
        manifest = replace(manifest, findings=len(findings))
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
            tuple(findings[:_WORDS]),
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
        at = self._source.clock.now()
        actor = Actor(self._source.origin.principal, "backup", self._source.origin.transport)
        for store in old.stores:
            if store.id not in now:
                continue  # the account's store tells of it
            pair = ImageStore(folder, store), ImageStore(folder, now[store.id])
            less = backup_purge.without(*pair, actor, at)
            if less is None:
                stores.append(store)
                continue
            for kind, count in less.removed.items():
                removed[kind] = removed.get(kind, 0) + count
            about = replace(store.about, head=less.ends)
            made = backup_image.cut(about, less.rows, folder, store.name, tell, head=store.head)
            if len(_tried(folder, made, self._source.ground(trial / "purged"), tell)) > old.findings:
                raise StoreDamaged(
                    f"the backup of {old.at:%Y-%m-%d %H:%M} would not be sound without what was removed",
                    fix="it is as it was; remove it if it must go",
                )
            stores.append(made)
        files, forgotten = self._purged_files(folder, old, newest, trial)
        if forgotten:
            removed["files"] = forgotten
        if removed:
            folder.save(replace(old, stores=tuple(stores), files=files, purged_at=at))
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


def _tried(folder: BackupFolder, store: StoreImage, ground: Ground, tell: Tell) -> list[str]:
    """Bring a store in at a place of trial, and check it as `lukasa doctor` does; return what that finds."""
    about = store.about
    try:
        found = transfer.rehearse(ImageStore(folder, store), ground, tell)
    finally:
        ground.clear(about)
    name = store.name or THE_ACCOUNT
    return [f"{name}: {one.what} {one.subject}: {one.detail}" for one in found]


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


# Looking at backups, and bringing one back: no memory need be open


def listed(folder: BackupFolder) -> list[Listed]:
    """Return all backups of a folder, newest first."""
    return [_listed(one) for one in folder.kept()]


def _listed(one: Kept) -> Listed:
    if one.manifest is None:
        return Listed(one.at, one.state, one.wrong)
    made = one.manifest
    return Listed(
        one.at,
        one.state,
        one.wrong,
        tuple(store.name for store in made.stores if store.name),
        made.rows(transfer.ENTRIES.name),
        made.rows(transfer.EVENTS.name),
        len(made.files),
        made.purged_at,
    )


def check(
    folder: BackupFolder, ground: GroundAt, *, at: object = None, every: bool = False, tell: Tell
) -> list[Checked]:
    """Read all pieces of all backups, and try out the newest one, the one of a time, or all of them."""
    with folder.held(), folder.trial() as trial:
        found, known, done = folder.kept(), dict[str, str](), list[Checked]()
        if not found:
            raise NotFound(f"{folder.path} holds no backup yet", fix=f"make one: lukasa backup {folder.path}")
        chosen = _newest_before(found, at) if at is not None else found[0]
        tried = dict[str, list[str]]()
        for one in found:
            wrong = [one.wrong] if one.manifest is None else _wrong_pieces(folder, one.manifest, known)
            trying = (every or one is chosen) and one.manifest is not None and not wrong
            if trying and one.manifest is not None:
                for store in one.manifest.stores:
                    if store.digest not in tried:
                        tried[store.digest] = _trial(folder, store, ground(trial), tell)
                    wrong += tried[store.digest]
            done.append(Checked(one.at, trying, tuple(wrong[:_WORDS])))
        return done


def _trial(folder: BackupFolder, store: StoreImage, ground: Ground, tell: Tell) -> list[str]:
    try:
        return _tried(folder, store, ground, tell)
    except StoreError as error:
        return [error.message]


def _wrong_pieces(folder: BackupFolder, manifest: Manifest, known: dict[str, str]) -> list[str]:
    for piece in manifest.pieces():
        if piece not in known:
            try:
                folder.get(piece)
                known[piece] = ""
            except StoreError as error:
                known[piece] = error.message
    return list(dict.fromkeys(known[piece] for piece in manifest.pieces() if known[piece]))


def moment(value: object, now: datetime) -> datetime:
    """Return a time that somebody named. A day without a time means its end."""
    if isinstance(value, str) and len(value.strip()) == len(_DAY):
        return inputs.moment(value.strip(), "at") + timedelta(days=1, microseconds=-1)
    return inputs.since(value, "at", now)


def _newest_before(found: Sequence[Kept], at: object) -> Kept:
    """Return the newest backup, or the newest one that is not after a time."""
    time = moment(at, datetime.now(UTC)) if at is not None else None
    one = next((one for one in found if time is None or one.at <= time), None)
    if one is None:
        oldest = f"; the oldest is of {found[-1].at:%Y-%m-%d %H:%M:%S} UTC" if found else ""
        raise NotFound(f"there is no backup of that time or before{oldest}", fix="`lukasa backup list` shows them")
    return one


class Place(Struct, frozen=True, kw_only=True):
    """What a restore needs of the place that memory comes to."""

    target: Target
    fits: Callable[[str, str], None]  # refuses a workspace whose spec this place cannot keep
    require_absent: Callable[[Sequence[str]], None]
    put: Callable[[str, int, str, Callable[[], Iterator[bytes]]], None]
    put_chats: (
        Callable[[str, Sequence[str], Callable[[], Iterator[bytes]]], None] | None
    )  # of a workspace; None: a file


def restore(folder: BackupFolder, place: Place, watch: Watch, *, at: object = None, dry_run: bool = False) -> Restored:
    """Bring back a backup, the newest one or the newest that is not after a time, where no memory is.

    It goes on where an interrupted one ended, and nobody opens the place before all of it is there.
    """
    with folder.held():
        chosen = _newest_before(folder.kept(), at)
        manifest = chosen.manifest
        if manifest is None or chosen.wrong:
            raise StoreDamaged(
                f"the backup of {chosen.at:%Y-%m-%d %H:%M:%S} UTC is damaged: {chosen.wrong}",
                fix="name an older one with --at; `lukasa backup list` shows them",
            )
        stores = [ImageStore(folder, store) for store in manifest.stores]
        resumed = _require_room(folder, place, stores, manifest)
        for row in stores[0].values(transfer.WORKSPACES):
            info = tables.WORKSPACES.decode(row)
            if any(store.id == info.id for store in manifest.stores):
                place.fits(info.name, info.spec_toml)
        made = _restored(manifest, place, stores)
        if dry_run:
            return replace(made, done=False)
        moved = transfer.move(stores, str(folder.path), place.target, watch, lambda: _files(folder, manifest, place))
        return replace(made, resumed=moved.resumed if resumed else 0, findings=len(moved.findings))


def _require_room(folder: BackupFolder, place: Place, stores: Sequence[ImageStore], manifest: Manifest) -> bool:
    """Refuse a place where something is; return whether an interrupted restore is to go on."""
    try:
        mark = place.target.mark()
    except Conflict:
        if transfer.moved_before(stores, str(folder.path), place.target) is not None:
            raise Conflict(
                f"{place.target.where} holds this memory already", fix="use it there; nothing was changed"
            ) from None
        raise Conflict(
            f"{place.target.where} holds memory already, and a restore never overwrites it",
            fix="name an empty place: another folder with --data, or another account with --account-name",
        ) from None
    if mark is None:
        place.require_absent([file.path for file in manifest.files])
    return mark is not None


def _restored(manifest: Manifest, place: Place, stores: Sequence[ImageStore]) -> Restored:
    rows = sum(sum(store.counts()) for store in stores)
    entries, events = (manifest.rows(part.name) for part in (transfer.ENTRIES, transfer.EVENTS))
    size, where = len(manifest.files), place.target.where
    return Restored(manifest.at, where, len(stores), rows, entries, events, size, manifest.findings)


def _files(folder: BackupFolder, manifest: Manifest, place: Place) -> None:
    """Write back the files, and the states of chats, before anybody can open the place."""
    for file in manifest.files:

        def pieces(file: FileImage = file) -> Iterator[bytes]:
            return map(folder.get, file.pieces)

        parts = file.path.split("/")
        if parts[-1] == CHATS and len(parts) == 3 and place.put_chats is not None:
            store = next(store for store in manifest.stores if store.id == parts[1])
            place.put_chats(store.id, transfer.conversations(ImageStore(folder, store)), pieces)
        else:
            place.put(file.path, file.mode, file.link, pieces)
