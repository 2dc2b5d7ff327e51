"""The command that moves memory between a data folder and a database."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

import click

from lukasa.app import DEFAULT_ACCOUNT, moving
from lukasa.model.database_url import masked
from lukasa.service.admin.moving import Moving
from lukasa.storage.transfer import Moved, Tell
from lukasa.surfaces.cli.data import plain
from lukasa.surfaces.cli.invocation import Invocation, pass_invocation
from lukasa.surfaces.cli.options import CliCommand
from lukasa.surfaces.cli.output import Line, colourful, dim, good, line, many, safe, table, title, warn


@click.command(
    cls=CliCommand,
    examples=(
        "lukasa move --to postgresql://lukasa@localhost/lukasa --dry-run",
        "lukasa move --to postgresql://lukasa@localhost/lukasa",
        "lukasa --database postgresql://lukasa@localhost/lukasa move --to ~/memory",
        "lukasa move --to postgresql://lukasa@localhost/lukasa --remove-origin --yes",
    ),
)
@click.option("--to", required=True, metavar="URL|DIR", help="PostgreSQL database or data folder to move memory to.")
@click.option(
    "--to-account", default=DEFAULT_ACCOUNT, show_default=True, metavar="NAME", help="Account in that database."
)
@click.option("--dry-run", is_flag=True, help="Count what would be moved, and move nothing.")
@click.option("--clear", is_flag=True, help="Remove what an unfinished move has left at the target, and move nothing.")
@click.option("--remove-origin", is_flag=True, help="Afterwards remove the memory that was moved, if you confirm it.")
@click.option("--yes", is_flag=True, help="Remove without asking.")
@pass_invocation
def move(cli: Invocation, to: str, to_account: str, dry_run: bool, clear: bool, remove_origin: bool, yes: bool) -> None:
    """Move all memory of an account between a data folder and a PostgreSQL database.

    Every row is copied as it is, and both sides are compared before the target can be opened. Nothing is removed at the
    origin without --remove-origin. Stop servers, workers and chats first. An interrupted move goes on when the same
    command is given again.
    """
    if dry_run and clear:
        raise click.UsageError("give either --dry-run or --clear")
    if (dry_run or clear) and remove_origin:
        raise click.UsageError("--remove-origin removes only what was moved; leave --dry-run and --clear out")
    if remove_origin and not yes and (cli.choices.json or not sys.stdin.isatty()):
        raise click.UsageError("nobody can confirm --remove-origin here; give --yes too")
    with moving(cli.settings, to, to_account) as work:
        if clear:
            work.clear()
            cli.emit({"cleared": work.target.where}, [line(good("cleared "), work.target.where)])
        elif dry_run:
            planned = work.plan()
            cli.emit(_data(work, planned) | {"dry_run": True}, _plan(work, planned))
        else:
            with _bar(cli) as watch:
                done = work.run(watch, again=remove_origin)
            removed = remove_origin and (yes or _confirmed(work))
            if removed:
                work.remove_origin(done)
            cli.emit(_data(work, done) | {"dry_run": False, "removed": removed}, _told(work, done, to, removed))


@contextmanager
def _bar(cli: Invocation) -> Iterator[Callable[[int], Tell]]:
    """Show a progress bar on a terminal; yield what takes the number of steps, and returns what advances the bar."""
    if cli.choices.json or not (sys.stderr.isatty() and colourful(cli.choices.no_color)):
        yield lambda steps: lambda taken: None
        return
    with import_module("lukasa.surfaces.cli.terminal").Bar("moving", None) as bar:

        def watch(steps: int) -> Tell:
            bar.expect(steps)
            advance: Tell = bar.advance
            return advance

        yield watch


def _confirmed(work: Moving) -> bool:
    asked = f"All memory is in {work.target.where}. Remove it from {work.origin.where}?"
    return click.confirm(safe(asked), default=False, err=True)


def _data(work: Moving, moved: Moved) -> dict[str, Any]:
    return {
        "from": work.origin.where,
        "to": work.target.where,
        "stores": moved.stores,
        "rows": moved.rows,
        "total": moved.total,
        "heads": {id: {"seq": seq, "digest": digest} for id, (seq, digest) in moved.heads.items()},
        "resumed": moved.resumed,
        "restarted": moved.restarted,
        "chats": work.threads,
        "files": "copied" if work.copies_files else "in place",
        "findings": plain(moved.findings),
    }


def _plan(work: Moving, moved: Moved) -> Iterator[Line]:
    yield line(title("would be moved"), f"  from {work.origin.where} to {work.target.where}")
    yield from table(("rows", "of"), ((f"{count:,}", name) for name, count in moved.rows.items()))
    yield line(dim(f"  {many(moved.stores, 'store')}: the account's, and one for each workspace"))
    yield from _files(work)


def _told(work: Moving, moved: Moved, to: str, removed: bool) -> Iterator[Line]:
    entries, events = moved.rows.get("entries", 0), sum(seq for seq, _ in moved.heads.values())
    yield line(good("moved "), f"{many(moved.total, 'row')} of {many(moved.stores, 'store')} to {work.target.where}")
    yield line(dim(f"  {many(entries, 'entry')} and {many(events, 'event')}; every row is the same on both sides"))
    if moved.restarted:
        yield line(dim("  the origin had changed since an earlier attempt, so all was copied again"))
    elif moved.resumed:
        yield line(dim(f"  {moved.resumed:,} rows were there from an earlier attempt"))
    if moved.findings:
        yield line(
            warn("! "), f"{many(len(moved.findings), 'fault')} of the origin came along: `lukasa doctor` lists them"
        )
    if work.threads:
        yield line(dim(f"  {work.threads:,} chats can go on there"))
    yield from _files(work)
    if removed:
        yield line(good("removed "), f"the memory of {work.origin.where}")
    else:
        yield line(dim(f"  {work.origin.where} still has its memory; nothing writes to both"))
        yield line(dim("  add --remove-origin to remove it there"))
    if "://" in to:
        yield line(f"  use it: set LUKASA_DATABASE={masked(to)}")
    else:
        yield line(f"  use it: unset LUKASA_DATABASE, and set LUKASA_DATA={to}")


def _files(work: Moving) -> Iterator[Line]:
    what = "curated documents, logs, decisions and prompts"
    if work.copies_files:
        yield line(dim(f"  files ({what}) are copied too"))
    else:
        yield line(dim(f"  files ({what}) stay in the data folder, and go on being used from there"))
