"""The commands that erase an entry, a source or a person by a plan and its digest, and list the receipts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import click

from lukasa.service.admin.erasing import ErasurePlan, Receipt
from lukasa.surfaces.cli.data import plain
from lukasa.surfaces.cli.invocation import Invocation, pass_invocation
from lukasa.surfaces.cli.lines import when
from lukasa.surfaces.cli.options import ID, CliCommand
from lukasa.surfaces.cli.output import Line, dim, good, line, many, table, title, warn
from lukasa.surfaces.cli.removal_commands import account_remove, workspace_remove
from lukasa.upkeep.scrub_plan import SHORTEST

_MOST_SHOWN = 10


@click.command(
    "erase",
    cls=CliCommand,
    examples=(
        "lukasa erase --person 'Ada Lovelace'",
        "lukasa erase --person 'Ada Lovelace' --confirm 3f1c9a0b77de",
        "lukasa erase --entry 01a1e1c3-5b1c-7000-8000-0123456789ab",
        "lukasa erase --source notes.md --account",
        "lukasa erase --workspace drafts",
    ),
)
@click.option("--entry", metavar="ID", type=ID, help="One entry.")
@click.option("--source", metavar="NAME", help="All entries of a source: a speaker, or a document by id or location.")
@click.option("--person", metavar="NAME", help="Everything that mentions a person.")
@click.option("--alias", "aliases", multiple=True, metavar="NAME", help="Another name; replaces those in the plan.")
@click.option("--group", multiple=True, metavar="NAME", help="Which of several people of that name is meant.")
@click.option(
    "--shared",
    type=click.Choice(["redact", "remove"]),
    default="redact",
    show_default=True,
    help="Of entries that name other people too, take the name out, or remove them.",
)
@click.option("--account", is_flag=True, help="In all workspaces and in the account, not in this workspace alone.")
@click.option("--confirm", metavar="DIGEST", help="Digest of the plan: erase all that it lists, for good.")
@click.pass_context
@pass_invocation
def erase(
    cli: Invocation,
    ctx: click.Context,
    entry: str | None,
    source: str | None,
    person: str | None,
    aliases: tuple[str, ...],
    group: tuple[str, ...],
    shared: str,
    account: bool,
    confirm: str | None,
) -> None:
    """Erase an entry, a source or a person for good, with all that was derived from it, and prove it.

    Without --confirm, list all that would go and print the digest of the plan; nothing is removed. Afterwards, every
    file is searched for the words, and a receipt says what was found. There is no undo. If it is interrupted, give the
    same command again. Exits with code 1 if the words are still somewhere. With --workspace NAME alone, or --account
    alone, all of that goes, as by `lukasa workspace remove` and `lukasa account remove`.
    """
    if (entry, source, person, aliases, group) == (None, None, None, (), ()):
        if account:
            ctx.invoke(account_remove, confirm=confirm)
            return
        if cli.choices.workspace:
            ctx.invoke(workspace_remove, name=cli.choices.workspace, confirm=confirm)
            return
    what: dict[str, Any] = {"entry": entry, "source": source, "person": person, "group": group, "shared": shared}
    what["aliases"] = aliases or None
    where = cli.memory if account else cli.workspace()
    if confirm is None:
        shown = where.erase_plan(**what)
        cli.emit(plain(shown), _plan(shown))
        return
    receipt = where.erase(**what, confirm=confirm)
    cli.emit(_data(receipt), _receipt(receipt))
    if not receipt.clean:
        ctx.exit(1)


@click.command("erasures", cls=CliCommand, examples=("lukasa erasures",))
@pass_invocation
def erasures(cli: Invocation) -> None:
    """List the receipts of erasures in the workspace and the account, newest first; none holds the words."""
    found = cli.workspace().erasures()
    told = [part for one in found for part in _receipt(one)] or [line("Nothing was erased here.")]
    cli.emit({"receipts": [_data(one) for one in found]}, told)


def _data(receipt: Receipt) -> dict[str, Any]:
    return {**plain(receipt), "clean": receipt.clean}


def _plan(shown: ErasurePlan) -> Iterator[Line]:
    yield line(title("would be erased"), dim(f"  {shown.kind} {shown.name}; nothing is removed yet"))
    if len(shown.groups) > 1:
        rows = ((one.name, f"{one.texts:,}", ", ".join(one.aliases)) for one in shown.groups)
        yield from table(("group", "texts", "other names"), rows)
    if shown.kind == "person" and shown.names:
        yield line(dim("  names    "), ", ".join(shown.names))
    for part in shown.lines:
        yield line(f"  {part.count:>7,}  ", part.what)
    if shown.derived:
        yield line(dim("  derived  "), f"{len(shown.derived)} entries rest on what goes, and go with it")
    for one in shown.shared[:_MOST_SHOWN]:
        outcome = "the name is taken out" if one.outcome == "redact" else "removed"
        yield line(dim("  shared   "), f"{one.id} also names {', '.join(one.others)}: {outcome}")
    if len(shown.shared) > _MOST_SHOWN:
        yield line(dim(f"           and {len(shown.shared) - _MOST_SHOWN} more; `--json` lists them"))
    for id, actions in shown.kept.items():
        yield line(dim("  stays    "), f"{id}: {', '.join(actions)} rests on it")
    for name, count in shown.files.items():
        yield line(dim("  file     "), f"{name}: {many(count, 'time')}")
    if shown.chats:
        yield line(dim("  chats    "), f"the states of {many(shown.chats, 'chat')} go as a whole")
    for told in shown.recipients:
        yield line(
            dim("  shown to "), f"{told.principal}@{told.surface}, {many(told.times, 'time')}, last {when(told.last)}"
        )
    for warning in shown.warnings:
        yield line(warn("  ! "), warning)
    for one_place in shown.unreachable:
        yield line(dim("  not reached: "), one_place)
    if shown.digest:
        yield line(dim(f"  digest {shown.digest}"))
        yield line(dim(f"  the same command with `--confirm {shown.digest[:SHORTEST]}` does it; there is no undo"))


def _receipt(one: Receipt) -> Iterator[Line]:
    verdict = good("erased ") if one.clean else warn("erased, but not everywhere ")
    rows = sum(count for kind, count in one.counts.items() if kind in ("entries", "documents", "notes", "items"))
    yield line(verdict, f"{one.kind or 'something'}, {many(rows, 'row')}", dim(f"  receipt {one.id}, {when(one.at)}"))
    if one.searched and not one.left:
        yield line("  every file and table was searched: the words are nowhere")
    for place, count in one.left.items():
        yield line(warn("  ! "), f"{place} still holds the words, {many(count, 'time')}")
    if not one.searched:
        yield line(warn("  ! "), "the words were not known any more, so the files were rewritten but not searched")
    if not one.swept:
        yield line(warn("  ! "), "the files could not be rewritten yet: `lukasa scrub files` does it")
    for id, actions in one.kept.items():
        yield line(dim("  stays    "), f"{id}: {', '.join(actions)} rests on it")
    for told in one.recipients:
        yield line(dim("  shown to "), f"{told['principal']}@{told['surface']}, {many(told['times'], 'time')}")
    for place in one.unreachable:
        yield line(dim("  not reached: "), place)
    for machine in one.unconfirmed:
        yield line(dim("  not confirmed: "), f"{machine} has not synced since")
