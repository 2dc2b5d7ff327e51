"""Verbs about places: workspaces and channels."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import click

from lukasa.model.conversation import Channel, WorkspaceInfo
from lukasa.model.errors import Conflict
from lukasa.service.workspace import Workspace
from lukasa.storage.port import Census
from lukasa.surfaces.cli.data import plain
from lukasa.surfaces.cli.lines import joined, when
from lukasa.surfaces.cli.options import Family
from lukasa.surfaces.cli.output import Line, block, brief, dim, good, line, table, title
from lukasa.surfaces.cli.session import Session, pass_session, read_text


@click.group(cls=Family, examples=("lukasa workspace create novel", "lukasa -w novel put …"))
def workspace() -> None:
    """List, create and show workspaces."""


@workspace.command("list", examples=("lukasa workspace list",))
@pass_session
def workspace_list(session: Session) -> None:
    """List the workspaces of this account."""
    found = session.memory.workspaces()
    session.emit({"workspaces": plain(found)}, _workspaces(found))


def _workspaces(found: Sequence[WorkspaceInfo]) -> Iterator[Line]:
    if not found:
        yield line("No workspace yet.")
        yield line(dim("  `lukasa put …` makes the one called main; `lukasa workspace create NAME` makes others"))
        return
    yield from table(("name", "spec", "created", "id"), ((w.name, w.preset, when(w.created_at), w.id) for w in found))


@workspace.command(
    "create",
    examples=(
        "lukasa workspace create novel",
        "lukasa workspace create desk --preset observer",
        "lukasa workspace create support --spec support.toml",
    ),
)
@click.argument("name")
@click.option("--preset", metavar="NAME", help="A shipped spec; `lukasa spec list` names them [default: default].")
@click.option("--spec", "file", metavar="FILE", help="A spec file of your own; - reads it from stdin.")
@pass_session
def workspace_create(session: Session, name: str, preset: str | None, file: str | None) -> None:
    """Create a workspace with a memory spec."""
    if preset is not None and file is not None:
        raise click.UsageError("give --preset or --spec, not both")
    text = read_text(file) if file is not None else None
    if any(info.name == name for info in session.memory.workspaces()):
        raise Conflict(f"there is already a workspace {name[:60]!r}", fix="use it with -w, or choose another name")
    made = session.memory.workspace(name, preset=preset, spec=text)
    told = [
        line(good("created "), made.name, dim(f"  spec {made.spec.name}, id {made.id}")),
        line(dim(f"  use it with `lukasa -w {made.name} …`")),
    ]
    session.emit(plain(made.ctx.info), told)


@workspace.command("show", examples=("lukasa workspace show", "lukasa workspace show novel --spec"))
@click.argument("name", required=False)
@click.option("--spec", "as_spec", is_flag=True, help="Print its spec file.")
@pass_session
def workspace_show(session: Session, name: str | None, as_spec: bool) -> None:
    """Show what a workspace holds, tier by tier.

    The account's tiers are shown too: they belong to every workspace.
    """
    if name is not None:
        session.choices.workspace = name
    found = session.workspace()
    text = found.ctx.info.spec_toml
    data = {
        "workspace": plain(found.ctx.info),
        "tiers": [{"name": t.name, "counts": counts(found.census(), t.name)} for t in found.spec.tiers],
        "channels": plain(found.channels()),
        "named": [entry.name for entry in found.named()],
        "conversations": len(found.conversations()),
        "spec": text,
    }
    session.emit(data, block(text) if as_spec else _holdings(found))


def counts(census: Sequence[Census], tier: str) -> dict[str, int]:
    """How many entries of a tier are in each state, over all its scopes."""
    total: dict[str, int] = {}
    for part in census:
        if part.scope.tier == tier:
            for state, count in part.states.items():
                total[str(state)] = total.get(str(state), 0) + count
    return total


def _holdings(found: Workspace) -> Iterator[Line]:
    info, census = found.ctx.info, found.census()
    yield line(title(info.name), dim(f"  spec {info.preset}, created {when(info.created_at)}, id {info.id}"))
    for tier in reversed(found.spec.tiers):
        held = counts(census, tier.name)
        told = ", ".join(f"{count} {state}" for state, count in held.items()) or "empty"
        yield line(f"  {tier.name:<14}", told, dim(f"  {brief(tier.description, 70)}"))
    yield line(dim("  named         "), ", ".join(entry.name for entry in found.named()))
    yield line(dim("  channels      "), ", ".join(channel.name for channel in found.channels()))
    yield line(dim("  conversations "), f"{len(found.conversations())} open")


@click.group(cls=Family, examples=("lukasa channel create research", "lukasa channel list"))
def channel() -> None:
    """List and create channels."""


@channel.command("list", examples=("lukasa channel list",))
@pass_session
def channel_list(session: Session) -> None:
    """List the channels of a workspace."""
    found = session.workspace().channels()
    rows = ((c.name, "default" if c.is_default else "", when(c.created_at), c.id, brief(c.description)) for c in found)
    session.emit({"channels": plain(found)}, table(("name", "", "created", "id", "description"), rows))


@channel.command("create", examples=('lukasa channel create research --description "Sources and notes"',))
@click.argument("name")
@click.option("--description", default="", metavar="TEXT", help="What it is about.")
@pass_session
def channel_create(session: Session, name: str, description: str) -> None:
    """Create a channel."""
    made = session.workspace().create_channel(name, description)
    session.emit(plain(made), _channel(made))


def _channel(made: Channel) -> Iterator[Line]:
    yield line(good("created "), joined(made.name, made.id))
    yield line(dim(f"  use it with `lukasa --channel {made.name} …`"))
