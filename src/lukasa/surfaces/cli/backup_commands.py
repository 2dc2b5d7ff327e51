"""The commands that back memory up, look at backups, and bring one back."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from importlib import import_module

import click

from lukasa.app import check_backups, list_backups, restore_backup
from lukasa.service.admin.backing_up import BackedUp
from lukasa.service.admin.restoring import Checked, Listed, Restored
from lukasa.storage.transfer import Tell
from lukasa.surfaces.cli.data import plain
from lukasa.surfaces.cli.invocation import Invocation, pass_invocation
from lukasa.surfaces.cli.options import ShortGroup
from lukasa.surfaces.cli.output import Line, bad, colourful, dim, good, line, many, table, title, warn

DAMAGED = 3


@click.group(
    cls=ShortGroup,
    short="make",
    examples=("lukasa backup /mnt/backups", "lukasa backup list /mnt/backups", "lukasa restore /mnt/backups"),
)
def backup() -> None:
    """Back up all memory while it is in use; list, check and restore backups.

    `lukasa backup DIR` is short for `lukasa backup make DIR`. A backup holds all memory in clear: keep the folder as
    safe as the memory itself.
    """


@backup.command(
    "make",
    examples=(
        "lukasa backup /mnt/backups",
        "lukasa backup /mnt/backups --keep 7d/4w/12m",
        "lukasa backup /mnt/backups --purge --json",
    ),
)
@click.argument("folder", metavar="DIR")
@click.option(
    "--keep", default="", metavar="RULE", help="Keep the newest of each of the last days, weeks …: 7d/4w/12m."
)
@click.option("--keep-last", type=click.IntRange(1), default=None, metavar="N", help="Keep the newest N in any case.")
@click.option("--purge", is_flag=True, help="Take out of older backups what has been removed for good since.")
@pass_invocation
@click.pass_context
def backup_make(
    ctx: click.Context, cli: Invocation, folder: str, keep: str, keep_last: int | None, purge: bool
) -> None:
    """Make a backup of all memory in DIR, while servers, workers and clients go on.

    It holds every store at one moment, with curated documents, logs, decisions, prompts and chats. It counts once it
    was restored at a place of trial, compared row by row and checked as `lukasa doctor` does. Only what no earlier
    backup in DIR has is written. Without --keep and --keep-last all backups stay; the last good one always does.
    """
    with _bar(cli, "backing up") as watch:
        done = cli.memory.backup(folder, keep=keep, keep_last=keep_last, purge=purge, tell=watch(0))
    cli.emit(plain(done), _made(done))
    if done.findings or any(one.wrong for one in done.purged):
        ctx.exit(DAMAGED)


def _made(done: BackedUp) -> Iterator[Line]:
    yield line(good("backed up "), f"{many(done.entries, 'entry')} and {many(done.events, 'event')} to {done.folder}")
    yield line(
        dim(
            f"  {_utc(done.at)}  {many(done.stores, 'store')}, {many(done.files, 'file')};"
            " restored on trial and checked"
        )
    )
    yield line(dim(f"  {_bytes(done.written)} new; all backups there take {_bytes(done.size)}"))
    if done.removed:
        yield line(dim(f"  removed {len(done.removed):,} older backups that no rule keeps"))
    for one in done.purged:
        if one.wrong:
            yield line(warn("! "), f"{_utc(one.at)} was not purged: {one.wrong}")
        else:
            told = ", ".join(f"{count:,} {kind}" for kind, count in one.removed.items())
            yield line(good("purged "), _utc(one.at), dim(f"  {told}"))
    if done.findings:
        yield line(warn("! "), "the memory itself has faults, and so has this backup: `lukasa doctor` lists them")
        yield from (line(dim(f"  {finding}")) for finding in done.findings)
    yield line(dim("  it holds all memory in clear; only you can read it"))


@backup.command("list", examples=("lukasa backup list /mnt/backups", "lukasa backup list /mnt/backups --json"))
@click.argument("folder", metavar="DIR")
@pass_invocation
def backup_list(cli: Invocation, folder: str) -> None:
    """List the backups in DIR, newest first.

    This looks whether each has all of its pieces; `lukasa backup check` reads them.
    """
    found = list_backups(folder)
    cli.emit({"backups": plain(found)}, _listed(found))


def _listed(found: Sequence[Listed]) -> Iterator[Line]:
    if not found:
        yield line("There is no backup yet.")
        return
    rows = (
        (_utc(one.at), one.state, f"{one.entries:,}", f"{one.events:,}", f"{one.files:,}", _purged(one))
        for one in found
    )
    yield from table(("time", "state", "entries", "events", "files", ""), rows)
    for one in found:
        if one.wrong:
            yield line(bad("! "), one.wrong)


def _purged(one: Listed) -> str:
    return f"purged {_utc(one.purged_at)}" if one.purged_at is not None else ""


@backup.command("check", examples=("lukasa backup check /mnt/backups", "lukasa backup check /mnt/backups --all --json"))
@click.argument("folder", metavar="DIR")
@click.option("--at", default=None, metavar="TIME", help="Try out the newest backup that is not later, not the newest.")
@click.option("--all", "every", is_flag=True, help="Try out every backup.")
@pass_invocation
@click.pass_context
def backup_check(ctx: click.Context, cli: Invocation, folder: str, at: str | None, every: bool) -> None:
    """Read every piece of all backups in DIR, and try out the newest one.

    To try one out is to restore it at a place of trial, compare it row by row, compare the heads of its logs, and check
    it as `lukasa doctor` does. The exit code is 3 if anything is wrong; each message names the file.
    """
    with _bar(cli, "checking") as watch:
        found = check_backups(folder, at=at, every=every, tell=watch(0))
    sound = not any(one.wrong for one in found)
    cli.emit({"sound": sound, "backups": plain(found)}, _checked(found))
    if not sound:
        ctx.exit(DAMAGED)


def _checked(found: Sequence[Checked]) -> Iterator[Line]:
    for one in found:
        how = "restored on trial and checked" if one.tried else "all pieces are as written"
        yield line((bad if one.wrong else good)(_utc(one.at)), dim("" if one.wrong else f"  {how}"))
        yield from (line(f"  {wrong}") for wrong in one.wrong)


@backup.command(
    "restore",
    examples=(
        "lukasa --data ~/memory backup restore /mnt/backups",
        "lukasa --data ~/memory backup restore /mnt/backups --at 2026-11-18T12:00 --dry-run",
        "lukasa --database postgresql://lukasa@localhost/lukasa backup restore /mnt/backups",
    ),
)
@click.argument("folder", metavar="DIR")
@click.option("--at", default=None, metavar="TIME", help="Take the newest backup that is not later than this time.")
@click.option("--dry-run", is_flag=True, help="Show which backup is taken, and restore nothing.")
@pass_invocation
def backup_restore(cli: Invocation, folder: str, at: str | None, dry_run: bool) -> None:
    """Bring back the newest backup of DIR, or that of a time, into an empty data folder or database.

    Nothing is ever overwritten. Every row is compared, and nobody can open the memory before all of it is there. A
    restore that was interrupted goes on when it is given again. `lukasa restore DIR` does the same.
    """
    brought_back(cli, folder, at, dry_run=dry_run)


def brought_back(cli: Invocation, folder: str, at: str | None, *, dry_run: bool) -> None:
    """Restore a backup, and tell which."""
    with _bar(cli, "restoring") as watch:
        done = restore_backup(cli.settings, folder, at=at, dry_run=dry_run, watch=watch)
    cli.emit(plain(done), _restored(done))


def _restored(done: Restored) -> Iterator[Line]:
    told = good("restored ") if done.done else title("would restore ")
    yield line(told, f"the backup of {_utc(done.at)} into {done.into}")
    yield line(
        dim(
            f"  {many(done.entries, 'entry')} and {many(done.events, 'event')}"
            f" of {many(done.stores, 'store')}, {many(done.files, 'file')}"
        )
    )
    if done.resumed:
        yield line(dim(f"  {done.resumed:,} rows were there from an earlier attempt"))
    if done.findings:
        yield line(
            warn("! "), f"the memory had {many(done.findings, 'fault')} when it was backed up: see `lukasa doctor`"
        )


def _utc(at: datetime | None) -> str:
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC" if at is not None else ""


def _bytes(size: int) -> str:
    return f"{size / 1_000_000:,.1f} MB" if size >= 100_000 else f"{size / 1000:,.1f} kB"


@contextmanager
def _bar(cli: Invocation, label: str) -> Iterator[Callable[[int], Tell]]:
    """Show a progress bar on a terminal; yield what takes the number of steps, and returns what advances the bar."""
    if cli.choices.json or not (sys.stderr.isatty() and colourful(cli.choices.no_color)):
        yield lambda steps: lambda taken: None
        return
    with import_module("lukasa.surfaces.cli.terminal").Bar(label, None) as bar:

        def watch(steps: int) -> Tell:
            if steps:
                bar.expect(steps)
            advance: Tell = bar.advance
            return advance

        yield watch
