"""The commands that keep the memory of several machines the same, without a server."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from typing import Any

import click

from lukasa.model.errors import InvalidInput
from lukasa.model.machines import fingerprint
from lukasa.service.sync.exchanging import Synced
from lukasa.service.sync.syncing import SHORTEST, MachineNow, SyncStatus
from lukasa.surfaces.cli.data import plain
from lukasa.surfaces.cli.invocation import Invocation, pass_invocation, read_text
from lukasa.surfaces.cli.lines import when
from lukasa.surfaces.cli.options import CliGroup
from lukasa.surfaces.cli.output import Line, dim, good, line, table, title, warn

VARIABLE, NEW_VARIABLE = "LUKASA_SYNC_PASSPHRASE", "LUKASA_SYNC_NEW_PASSPHRASE"


@click.group(
    cls=CliGroup,
    invoke_without_command=True,
    examples=(
        "lukasa sync init ~/Sync/memory",
        "lukasa sync join git@example.org:me/memory.git",
        "lukasa sync",
        "lukasa sync status",
    ),
)
@click.pass_context
def sync(ctx: click.Context) -> None:
    """Keep the memory of several machines the same, through a folder or a git repository.

    Without a subcommand, do a round: tell the others what changed here, and take what they told. All that leaves this
    machine is encrypted with a key that the passphrase opens, and signed by this machine.
    """
    if ctx.invoked_subcommand is None:
        ctx.invoke(sync_run)


@sync.command("run", examples=("lukasa sync", "lukasa sync run --json"))
@pass_invocation
@click.pass_context
def sync_run(ctx: click.Context, cli: Invocation) -> None:
    """Do a round: tell the others what changed here, and take what they told.

    The exit code is 1 if a file of another machine was refused; all else was taken.
    """
    done = cli.memory.sync.run()
    cli.emit(_data(done), _synced(done))
    if done.refused:
        ctx.exit(1)


_PASSPHRASE = click.option(
    "--passphrase-file", metavar="FILE", help=f"Read the passphrase from FILE; {VARIABLE} or a prompt otherwise."
)
_NAME = click.option("--name", default="", metavar="NAME", help="Name of this machine for the others [default: host].")
_TEAM = click.option(
    "--team",
    is_flag=True,
    help="The other machines belong to other people: hold their preferences and procedures until you accept them.",
)


@sync.command(
    "init", examples=("lukasa sync init ~/Sync/memory", "lukasa sync init git@example.org:me/memory.git --name desk")
)
@click.argument("place", metavar="DIR|GIT-URL")
@_PASSPHRASE
@_NAME
@_TEAM
@pass_invocation
def sync_init(cli: Invocation, place: str, passphrase_file: str | None, name: str, team: bool) -> None:
    """Begin a sync at an empty folder or git repository, and put all memory there, encrypted."""
    secret = _passphrase(VARIABLE, passphrase_file, "Passphrase for the other machines", confirm=True)
    done = cli.memory.sync.init(place, secret, name=name, team=team)
    cli.emit(_begun(cli, done), _first(cli, done, "the other machines join with the same passphrase"))


@sync.command("join", examples=("lukasa sync join ~/Sync/memory --name laptop",))
@click.argument("place", metavar="DIR|GIT-URL")
@_PASSPHRASE
@_NAME
@_TEAM
@pass_invocation
def sync_join(cli: Invocation, place: str, passphrase_file: str | None, name: str, team: bool) -> None:
    """Join the sync that another machine has begun; memory of both becomes one.

    Compare the fingerprints: the other machine shows this one at its next sync.
    """
    secret = _passphrase(VARIABLE, passphrase_file, "Passphrase")
    done = cli.memory.sync.join(place, secret, name=name, team=team)
    cli.emit(_begun(cli, done), _first(cli, done, "compare them with what `lukasa sync members` shows there"))


def _begun(cli: Invocation, done: Synced) -> dict[str, Any]:
    status = cli.memory.sync.status()
    return {**_data(done), "name": status.name, "fingerprint": status.fingerprint, "memory": status.memory}


def _first(cli: Invocation, done: Synced, advice: str) -> Iterator[Line]:
    status = cli.memory.sync.status()
    yield line(good("syncs "), f"with {status.remote} as {status.name}")
    for one in status.machines:
        yield line(dim("  fingerprint  "), one.fingerprint, dim(f"  {one.name}{' (this)' * (one.standing == 'this')}"))
    yield line(dim(f"  {advice}"))
    yield from _synced(done)


@sync.command("status", examples=("lukasa sync status", "lukasa sync status --json"))
@pass_invocation
def sync_status(cli: Invocation) -> None:
    """Show the machines, when each was seen, what waits, and the digest of this memory."""
    status = cli.memory.sync.status()
    cli.emit(plain(status), _status(status))


@sync.command("members", examples=("lukasa sync members",))
@pass_invocation
def sync_members(cli: Invocation) -> None:
    """List the machines with their fingerprints, and how much their statements count here."""
    status = cli.memory.sync.status()
    cli.emit({"machines": plain(status.machines)}, _members(status))


@sync.command("trust", examples=("lukasa sync trust laptop own", "lukasa sync trust 'Ann’s desk' agent"))
@click.argument("machine", metavar="MACHINE")
@click.argument("level", metavar="own|TRUST")
@pass_invocation
def sync_trust(cli: Invocation, machine: str, level: str) -> None:
    """Say how much a machine's statements count here, from its next bundle on.

    `own` takes them as yours. A trust (author, agent, imported or untrusted) is the most that a statement of another
    person keeps, and their preferences and procedures wait in the inbox.
    """
    cli.memory.sync.trust(machine, level)
    cli.emit({"machine": machine, "trust": level}, [line(good("trusted "), f"{machine}: {level}")])


@sync.command("remove", examples=("lukasa sync remove laptop", "lukasa sync remove laptop --no-passphrase"))
@click.argument("machine", metavar="MACHINE")
@click.option(
    "--passphrase-file", metavar="FILE", help=f"Read the new passphrase; {NEW_VARIABLE} or a prompt otherwise."
)
@click.option("--no-passphrase", is_flag=True, help="Let no machine join until `lukasa sync passphrase` sets one.")
@pass_invocation
def sync_remove(cli: Invocation, machine: str, passphrase_file: str | None, no_passphrase: bool) -> None:
    """Remove a machine: its later bundles are refused, and it cannot read what comes after.

    What it said stays, and so does what it has. The new passphrase is for machines that join later; those that are in
    need none. MACHINE is a name, or the start of a fingerprint.
    """
    secret = None if no_passphrase else _passphrase(NEW_VARIABLE, passphrase_file, "New passphrase", confirm=True)
    done = cli.memory.sync.remove(machine, secret)
    cli.emit(_data(done), _synced(done))


@sync.command("passphrase", examples=("lukasa sync passphrase",))
@click.option(
    "--passphrase-file", metavar="FILE", help=f"Read the new passphrase; {NEW_VARIABLE} or a prompt otherwise."
)
@pass_invocation
def sync_passphrase(cli: Invocation, passphrase_file: str | None) -> None:
    """Change the passphrase with which machines join; those that are in stay in."""
    done = cli.memory.sync.passphrase(_passphrase(NEW_VARIABLE, passphrase_file, "New passphrase", confirm=True))
    cli.emit(_data(done), _synced(done))


@sync.command("leave", examples=("lukasa sync leave",))
@pass_invocation
def sync_leave(cli: Invocation) -> None:
    """Forget the keys of the sync. Memory stays here, and what this machine told stays with the others."""
    place = cli.memory.sync.leave()
    advice = (
        "  `lukasa sync remove` on another machine changes the key, so that a copy of this one's reads nothing more"
    )
    cli.emit({"left": place}, [line(good("left "), place), line(dim(advice))])


def _passphrase(variable: str, file: str | None, label: str, *, confirm: bool = False) -> str:
    """Return the passphrase of a file, the environment or the terminal; never of an argument, which others can see."""
    if file is not None:
        return read_text(file).strip("\n")
    if os.environ.get(variable):
        return os.environ[variable]
    if not sys.stdin.isatty():
        raise InvalidInput("no passphrase was given", fix=f"set {variable}, or give --passphrase-file FILE")
    told = f"{label} (at least {SHORTEST} characters)" if confirm else label
    asked: str = click.prompt(told, hide_input=True, confirmation_prompt=confirm, err=True)
    return asked


def _data(done: Synced) -> dict[str, Any]:
    return {**plain(done), "rivals": done.rivals}


def _synced(done: Synced) -> Iterator[Line]:
    came = ", ".join(f"{count:,} from {name}" for name, count in done.taken.items() if count)
    sent = f"sent {_count(done.sent, 'change')}" if done.sent else "sent nothing"
    yield line(good("synced  "), f"{sent}, took {came or 'nothing'}", dim(f"  {done.remote}"))
    for one in done.joined:
        yield line(title("  new machine  "), f"{one.name}  {fingerprint(one.machine)}")
    for name in done.removed:
        yield line(warn("  removed  "), name)
    if done.rivals:
        yield line(warn("  ! "), f"{_count(done.rivals, 'text')} of two machines differ: `lukasa review` shows both")
    if done.held:
        yield line(dim("  held  "), f"{done.held:,} of another person's wait in `lukasa review`")
    if done.emptied:
        yield line(dim(f"  erased words were taken out of {_count(done.emptied, 'bundle')}"))
    if done.waiting:
        yield line(dim(f"  {_count(done.waiting, 'change')} to show once others have come"))
    yield from (line(warn("  refused  "), told) for told in done.refused)
    yield from (line(dim("  waits    "), told) for told in done.waits)


def _status(status: SyncStatus) -> Iterator[Line]:
    yield line(title(status.name), dim(f"  syncs with {status.remote}"))
    if status.ended:
        yield line(warn("  ! "), status.ended)
    told = when(status.synced_at) if status.synced_at is not None else "never"
    yield line(dim("  last sync  "), told, dim(f"  {_count(status.waiting, 'change')} to tell"))
    yield line(dim("  digest     "), status.state[:16] or "none yet")
    rows = (
        (one.name, _standing(one), when(one.seen_at) if one.seen_at is not None else "not yet", _behind(one))
        for one in status.machines
        if one.standing != "this"
    )
    if len(status.machines) > 1:
        yield from table(("machine", "", "seen", "reads"), rows)
    for trouble in status.troubles:
        yield line(warn("  ! "), trouble)
    for receipt, names in status.unconfirmed.items():
        yield line(warn("  ! "), f"erasure {receipt} is not confirmed by {', '.join(names)}")


def _standing(one: MachineNow) -> str:
    return "not a member" if one.standing == "outside" else one.standing


def _count(number: int, word: str) -> str:
    return f"{number:,} {word}{'' if number == 1 else 's'}"


def _behind(one: MachineNow) -> str:
    if one.standing == "removed":
        return ""
    if one.behind:
        return f"{_count(one.behind, 'bundle')} behind"
    return "the same memory" if one.same else "all that was told"


def _members(status: SyncStatus) -> Iterator[Line]:
    rows = ((one.name, _standing(one), "own" if one.own else one.trust, one.fingerprint) for one in status.machines)
    yield from table(("machine", "", "trust", "fingerprint"), rows)
