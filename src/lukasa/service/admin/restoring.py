"""Look at backups, check them, and bring one back. No memory need be open for that."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta

from msgspec import Struct
from msgspec.structs import replace

from lukasa.model.errors import Conflict, NotFound, StoreDamaged, StoreError
from lukasa.service import inputs
from lukasa.service.admin.backing_up import CHATS, MOST_TOLD, GroundAt, Tell, tried, worded
from lukasa.storage import tables, transfer
from lukasa.storage.backup_folder import BackupFolder, FileImage, Kept, Manifest, State, StoreImage
from lukasa.storage.backup_image import ImageStore
from lukasa.storage.transfer import Ground, Target, Watch

_DAY = "2026-11-15"


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
        known_stores = dict[str, list[str]]()
        for one in found:
            wrong = [one.wrong] if one.manifest is None else _wrong_pieces(folder, one.manifest, known)
            trying = (every or one is chosen) and one.manifest is not None and not wrong
            if trying and one.manifest is not None:
                for store in one.manifest.stores:
                    if store.digest not in known_stores:
                        known_stores[store.digest] = _trial(folder, store, ground(trial), tell)
                    wrong += known_stores[store.digest]
            done.append(Checked(one.at, trying, tuple(wrong[:MOST_TOLD])))
        return done


def _trial(folder: BackupFolder, store: StoreImage, ground: Ground, tell: Tell) -> list[str]:
    try:
        return worded(store, tried(folder, store, ground, tell))
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
        stores = [ImageStore(folder, store, manifest.findings.get(store.id, ())) for store in manifest.stores]
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
    return Restored(
        manifest.at, where, len(stores), rows, entries, events, size, sum(map(len, manifest.findings.values()))
    )


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
