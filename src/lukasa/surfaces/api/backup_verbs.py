"""Verbs about backups in a folder of the server's machine: make, list and check. They are the owner's alone."""

from __future__ import annotations

from datetime import datetime

from pydantic import Field

from lukasa.model.grant import Capability
from lukasa.surfaces.api.verb import Call, Verb, VerbInput, VerbOutput

_RULE = "[1-9][0-9]{0,3}[hdwmy]"


class BackupsIn(VerbInput):
    folder: str = Field(
        pattern=r"^[/~][^\u0000]*$",
        max_length=1000,
        description="The whole path of a folder of backups on the server's machine, as /mnt/backups.",
    )


class BackupIn(BackupsIn):
    keep: str = Field(
        "",
        pattern=f"^({_RULE}(/{_RULE})*)?$",
        description="Keep the newest of each of the last days, weeks, months: 7d/4w/12m.",
    )
    keep_last: int | None = Field(None, ge=1, le=100_000, description="Keep the newest of all, so many.")
    purge: bool = Field(False, description="Take out of older backups what has been removed for good since.")


class BackupCheckIn(BackupsIn):
    every: bool = Field(False, description="Try out all of them, not the newest alone.")


class PurgedOut(VerbOutput):
    at: datetime
    removed: dict[str, int]
    wrong: str


class BackedUpOut(VerbOutput):
    folder: str
    at: datetime
    stores: int
    entries: int
    events: int
    files: int
    findings: list[str] = Field(description="Faults of the memory itself; with some, the backup is not a good one.")
    written: int = Field(description="Bytes that no earlier backup had.")
    size: int = Field(description="Bytes of all backups of the folder.")
    removed: list[datetime]
    purged: list[PurgedOut]


class BackupOut(VerbOutput):
    at: datetime
    state: str = Field(description="good, faults or damaged")
    wrong: str
    workspaces: list[str]
    entries: int
    events: int
    files: int
    purged_at: datetime | None


class BackupsOut(VerbOutput):
    folder: str
    backups: list[BackupOut]


class CheckedOut(VerbOutput):
    at: datetime
    tried: bool = Field(description="Whether it was restored on trial, as a whole.")
    wrong: list[str]


class ChecksOut(VerbOutput):
    sound: bool
    backups: list[CheckedOut]


def make(call: Call, given: BackupIn) -> BackedUpOut:
    done = call.access.memory.backup(given.folder, keep=given.keep, keep_last=given.keep_last, purge=given.purge)
    return BackedUpOut.of(done)


def listed(call: Call, given: BackupsIn) -> BackupsOut:
    return BackupsOut.of({"folder": given.folder, "backups": call.access.memory.list_backups(given.folder)})


def check(call: Call, given: BackupCheckIn) -> ChecksOut:
    found = call.access.memory.check_backups(given.folder, every=given.every)
    return ChecksOut.of({"sound": not any(one.wrong for one in found), "backups": found})


VERBS = (
    Verb(
        "backup_list",
        "List the backups in a folder, newest first.",
        Capability.GRANTS,
        "GET",
        "/backups",
        BackupsIn,
        BackupsOut,
        listed,
        owner_only=True,
        tool=False,
    ),
    Verb(
        "backup_make",
        "Back up all memory into a folder while it is in use, and try the backup out. With keep and keep_last, older "
        "backups that no rule keeps are removed; the last good one always stays.",
        Capability.GRANTS,
        "POST",
        "/backups",
        BackupIn,
        BackedUpOut,
        make,
        mutates=True,
        owner_only=True,
        tool=False,
        keyed=False,
    ),
    Verb(
        "backup_check",
        "Read every piece of all backups in a folder, and restore one on trial, or all of them.",
        Capability.GRANTS,
        "POST",
        "/backups/check",
        BackupCheckIn,
        ChecksOut,
        check,
        owner_only=True,
        tool=False,
    ),
)
