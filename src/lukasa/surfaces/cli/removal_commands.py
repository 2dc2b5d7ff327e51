"""The commands that rename, merge and remove workspaces, and remove the account: by a plan and its digest."""

from __future__ import annotations

from collections.abc import Iterator

import click

from lukasa.app import account_removal
from lukasa.service.admin.removing import Removal, Removed
from lukasa.surfaces.cli.data import plain
from lukasa.surfaces.cli.export_commands import told
from lukasa.surfaces.cli.invocation import Invocation, pass_invocation
from lukasa.surfaces.cli.options import CliCommand, CliGroup
from lukasa.surfaces.cli.output import Line, dim, good, line, many, table, title, warn


@click.command("rename", cls=CliCommand, examples=("lukasa workspace rename novel saga",))
@click.argument("name")
@click.argument("new")
@pass_invocation
def workspace_rename(cli: Invocation, name: str, new: str) -> None:
    """Give a workspace another name. Its id, its memory and its grants stay."""
    renamed = cli.memory.rename_workspace(name, new)
    cli.emit(plain(renamed), [line(good("renamed "), f"{name} to {renamed.name}", dim(f"  id {renamed.id}"))])


@click.command(
    "merge",
    cls=CliCommand,
    examples=("lukasa workspace merge drafts novel --dry-run", "lukasa workspace merge drafts novel"),
)
@click.argument("name")
@click.argument("into")
@click.option("--dry-run", is_flag=True, help="Show what would come in and what would conflict, and change nothing.")
@click.option("--confirm", default="", metavar="DIGEST", help="Merge only what a dry run with this digest showed.")
@pass_invocation
def workspace_merge(cli: Invocation, name: str, into: str, dry_run: bool, confirm: str) -> None:
    """Merge all of the workspace NAME into the workspace INTO, as an import of its export would.

    Of two different texts both are kept. NAME stays as it is; `lukasa workspace remove` removes it.
    """
    done = cli.memory.merge_plan(name, into) if dry_run else cli.memory.merge_workspaces(name, into, confirm=confirm)
    cli.emit(plain(done), told(done))


_CONFIRM = click.option("--confirm", metavar="DIGEST", help="Digest of the plan: remove all that it lists, for good.")


@click.command(
    "remove",
    cls=CliCommand,
    examples=("lukasa workspace remove drafts", "lukasa workspace remove drafts --confirm 9f2c41d07ab3"),
)
@click.argument("name")
@_CONFIRM
@pass_invocation
def workspace_remove(cli: Invocation, name: str, confirm: str | None) -> None:
    """Remove a workspace for good, with its memory, its files and the state of its chats.

    Without --confirm, list all that would go and print the digest of the plan; nothing is removed. There is no undo.
    Entries of account tiers belong to the account and stay.
    """
    if confirm is None:
        shown = cli.memory.removal_plan(name)
        cli.emit(plain(shown), _planned(shown, f"lukasa workspace remove {name}"))
        return
    done = cli.memory.remove_workspace(name, confirm=confirm)
    cli.emit(plain(done), _removed(done))


@click.group(cls=CliGroup, examples=("lukasa account remove",))
def account() -> None:
    """Remove the account with everything in it."""


@account.command("remove", examples=("lukasa account remove", "lukasa account remove --confirm 9f2c41d07ab3"))
@_CONFIRM
@pass_invocation
def account_remove(cli: Invocation, confirm: str | None) -> None:
    """Remove all workspaces, the account's own memory, all grants and all files, for good.

    Without --confirm, list all that would go and print the digest of the plan; nothing is removed. There is no undo.
    Stop servers, workers and chats first.
    """
    work = account_removal(cli.settings)
    if confirm is None:
        shown = work.plan()
        cli.emit(plain(shown), _planned(shown, "lukasa account remove"))
        return
    done = work.execute(confirm)
    cli.emit(plain(done), _removed(done))


def _planned(shown: Removal, command: str) -> Iterator[Line]:
    yield line(title("would be removed"), f"  {shown.what} {shown.name}; nothing is removed yet")
    yield from table(("rows", "of"), ((f"{count:,}", kind) for kind, count in shown.rows.items()))
    if shown.what == "account":
        yield line(dim(f"  workspaces: {', '.join(shown.workspaces) or 'none'}"))
    if shown.grants:
        yield line(warn("! "), f"these grants lose it: {', '.join(shown.grants)}")
    if shown.files:
        yield line(warn("! "), f"{shown.files:,} files go too: the curated document with its history, logs, chats")
    yield line("  there is no undo; `lukasa export` keeps a copy")
    yield line(dim("  to remove all of it: "), f"{command} --confirm {shown.digest[:16]}")


def _removed(done: Removed) -> Iterator[Line]:
    rows = sum(done.removal.rows.values())
    yield line(good("removed "), f"{done.removal.what} {done.removal.name}", dim(f"  {many(rows, 'row')}"))
    if not done.swept:
        yield line(warn("! "), "files of the database may still hold it: `lukasa scrub files` rewrites them")
