"""Commands about workspaces, channels, conversations and their notes."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

import click

from lukasa.model.conversation import Conversation, Note, WorkspaceInfo
from lukasa.service.sessions.closing import Ended, ScopeEnded
from lukasa.service.workspace import Workspace
from lukasa.storage.port import Census
from lukasa.surfaces.cli.data import plain
from lukasa.surfaces.cli.invocation import Invocation, pass_invocation, read_text, text_or_stdin
from lukasa.surfaces.cli.lines import joined, when
from lukasa.surfaces.cli.options import CliGroup
from lukasa.surfaces.cli.output import Line, block, brief, dim, good, line, many, table, title
from lukasa.surfaces.cli.removal_commands import workspace_merge, workspace_remove, workspace_rename


@click.group(cls=CliGroup, examples=("lukasa workspace create novel", "lukasa -w novel put …"))
def workspace() -> None:
    """List, create, show, rename, merge and remove workspaces."""


for _command in (workspace_rename, workspace_merge, workspace_remove):
    workspace.add_command(_command)


@workspace.command("list", examples=("lukasa workspace list",))
@pass_invocation
def workspace_list(cli: Invocation) -> None:
    """List the workspaces of this account."""
    found = cli.memory.workspaces()
    cli.emit({"workspaces": plain(found)}, _workspaces(found))


def _workspaces(found: Sequence[WorkspaceInfo]) -> Iterator[Line]:
    if not found:
        yield line("No workspace yet.")
        yield line(dim("  `lukasa put …` creates the workspace main; `lukasa workspace create NAME` creates others"))
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
@pass_invocation
def workspace_create(cli: Invocation, name: str, preset: str | None, file: str | None) -> None:
    """Create a workspace with a memory spec."""
    if preset is not None and file is not None:
        raise click.UsageError("give --preset or --spec, not both")
    text = read_text(file) if file is not None else None
    made = cli.memory.create_workspace(name, preset=preset, spec=text)
    told = [
        line(good("created "), made.name, dim(f"  spec {made.spec.name}, id {made.id}")),
        line(dim(f"  use it with `lukasa -w {made.name} …`")),
    ]
    cli.emit(plain(made.ctx.info), told)


@workspace.command("show", examples=("lukasa workspace show", "lukasa workspace show novel --spec"))
@click.argument("name", required=False)
@click.option("--spec", "as_spec", is_flag=True, help="Print its spec file.")
@pass_invocation
def workspace_show(cli: Invocation, name: str | None, as_spec: bool) -> None:
    """Show the contents of a workspace, tier by tier.

    This includes the account's tiers, which every workspace shares.
    """
    if name is not None:
        cli.choices.workspace = name
    found = cli.workspace()
    text = found.ctx.info.spec_toml
    data = {
        "workspace": plain(found.ctx.info),
        "tiers": [{"name": t.name, "counts": counts(found.census(), t.name)} for t in found.spec.tiers],
        "channels": plain(found.channels()),
        "named": [entry.name for entry in found.named()],
        "conversations": len(found.conversations()),
        "spec": text,
    }
    cli.emit(data, block(text) if as_spec else _holdings(found))


def counts(census: Sequence[Census], tier: str) -> dict[str, int]:
    """Count the entries of a tier by state, over all its scopes."""
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


@click.group(cls=CliGroup, examples=("lukasa channel create research", "lukasa channel list"))
def channel() -> None:
    """List and create channels."""


@channel.command("list", examples=("lukasa channel list",))
@pass_invocation
def channel_list(cli: Invocation) -> None:
    """List the channels of a workspace."""
    found = cli.workspace().channels()
    rows = ((c.name, "default" if c.is_default else "", when(c.created_at), c.id, brief(c.description)) for c in found)
    cli.emit({"channels": plain(found)}, table(("name", "", "created", "id", "description"), rows))


@channel.command("create", examples=('lukasa channel create research --description "Sources and notes"',))
@click.argument("name")
@click.option("--description", default="", metavar="TEXT", help="Its subject.")
@pass_invocation
def channel_create(cli: Invocation, name: str, description: str) -> None:
    """Create a channel."""
    made = cli.workspace().create_channel(name, description)
    told = [
        line(good("created "), joined(made.name, made.id)),
        line(dim(f"  use it with `lukasa --channel {made.name} …`")),
    ]
    cli.emit(plain(made), told)


@click.group(cls=CliGroup, examples=("lukasa conversation start", "lukasa conversation end REF"))
def conversation() -> None:
    """Start, list, end and archive conversations."""


@conversation.command("start", examples=("lukasa conversation start", "lukasa conversation start --channel research"))
@pass_invocation
def conversation_start(cli: Invocation) -> None:
    """Start a conversation, in the default channel unless --channel names one."""
    made = cli.workspace().start(cli.choices.channel)
    told = [
        line(good("started "), title(made.ref_code)),
        line(dim(f'  work in it with `lukasa --conversation {made.ref_code} put "…" --tier conversation`')),
    ]
    cli.emit(plain(made), told)


@conversation.command("list", examples=("lukasa conversation list", "lukasa conversation list --archived"))
@click.option("--archived", is_flag=True, help="Also list archived ones.")
@pass_invocation
def conversation_list(cli: Invocation, archived: bool) -> None:
    """List conversations, of one channel if --channel names it."""
    workspace = cli.workspace()
    found = workspace.conversations(archived=archived, channel=cli.choices.channel)
    cli.emit({"conversations": plain(found)}, _conversations(found, workspace))


def _conversations(found: Sequence[Conversation], workspace: Workspace) -> Iterator[Line]:
    if not found:
        yield line("No conversation here yet.")
        yield line(dim("  `lukasa conversation start` starts one; `--archived` also lists archived ones"))
        return
    names = {channel.id: channel.name for channel in workspace.channels()}
    heads = ("ref", "status", "channel", "started", "ended")
    rows = ((c.ref_code, str(c.status), names.get(c.channel, c.channel), c) for c in found)
    yield from table(heads, ((*row, when(c.started_at), when(c.ended_at)) for *row, c in rows))


@conversation.command("show", examples=("lukasa conversation show REF",))
@click.argument("ref")
@pass_invocation
def conversation_show(cli: Invocation, ref: str) -> None:
    """Show a conversation and its notes."""
    workspace = cli.workspace()
    found, notes = workspace.conversation(ref), workspace.notes(ref)
    cli.emit({"conversation": plain(found), "notes": plain(notes)}, _conversation(found, notes))


def _conversation(found: Conversation, notes: Sequence[Note]) -> Iterator[Line]:
    ended = f", ended {when(found.ended_at)}" if found.ended_at else ""
    yield line(title(found.ref_code), f"  {found.status}", dim(f"  started {when(found.started_at)}{ended}"))
    yield line(dim(f"  id {found.id}, channel {found.channel}"))
    for note in notes:
        yield line(f"  {note.key} = ", brief(_shown(note.value)))


@conversation.command("idle", examples=("lukasa conversation idle REF",))
@click.argument("ref")
@pass_invocation
def conversation_idle(cli: Invocation, ref: str) -> None:
    """Mark a conversation as idle; nothing is removed."""
    _moved(cli, cli.workspace().idle(ref))


@conversation.command("archive", examples=("lukasa conversation archive REF",))
@click.argument("ref")
@pass_invocation
def conversation_archive(cli: Invocation, ref: str) -> None:
    """Archive a conversation; lists then leave it out by default."""
    _moved(cli, cli.workspace().archive(ref))


def _moved(cli: Invocation, found: Conversation) -> None:
    cli.emit(plain(found), [line(good(f"{found.status} "), found.ref_code)])


@conversation.command("end", examples=("lukasa conversation end REF",))
@click.argument("ref")
@pass_invocation
def conversation_end(cli: Invocation, ref: str) -> None:
    """End a conversation: write its summary, and carry on, remove or archive its own entries, as the spec says."""
    ended = cli.workspace().end(ref)
    told = [line(good("ended "), ended.conversation.ref_code, _left(ended))]
    if ended.summary is not None:
        told.append(line(dim(f"  {brief(ended.summary.content)}")))
    cli.emit(plain(ended), told)


def _left(ended: Ended | ScopeEnded) -> str:
    return f": {many(ended.carried, 'entry')} carried on, {ended.dropped} removed, {ended.archived} archived"


@click.group(cls=CliGroup, examples=("lukasa --scope session=s1 scope end session",))
def scope() -> None:
    """End sessions and other scopes."""


@scope.command("end", examples=("lukasa scope end session --scope session=s1", "lukasa scope end channel_change"))
@click.argument("name")
@pass_invocation
def scope_end(cli: Invocation, name: str) -> None:
    """End the bound scope of a tier. NAME is the tier, or the event that ends it.

    Conversations inside it end first. What the spec keeps goes to the next tier, and the rest is removed or archived.
    Later writes into the scope are refused. A tier that ends by a change of scope is only consolidated.
    """
    ended = cli.workspace().end_scope(name)
    told = (line(good("ended " if one.closed else "left "), one.tier, _left(one)) for one in ended)
    cli.emit({"ended": plain(ended)}, told)


@click.group(cls=CliGroup, examples=("lukasa --conversation REF note set total 42",))
def note() -> None:
    """Read and write the working notes of a conversation.

    Notes are an agent's scratchpad: reads do not find them. Name the conversation with --conversation.
    """


def _value(text: str) -> Any:
    """Parse JSON; return other text as it is."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


@note.command("set", examples=("lukasa --conversation REF note set total 42", "… note set plan - < plan.json"))
@click.argument("key")
@click.argument("value")
@click.option("--text", "as_text", is_flag=True, help="Store the value as text, even if it is JSON.")
@pass_invocation
def note_set(cli: Invocation, key: str, value: str, as_text: bool) -> None:
    """Write a note. VALUE is JSON or text; - reads it from stdin."""
    ref = cli.conversation()
    given = text_or_stdin(value)
    made = cli.workspace().write_note(ref, key, given if as_text else _value(given))
    cli.emit(plain(made), [line(good("noted "), f"{made.key} = ", brief(_shown(made.value)))])


@note.command("get", examples=("lukasa --conversation REF note get total",))
@click.argument("key")
@pass_invocation
def note_get(cli: Invocation, key: str) -> None:
    """Print a note's value."""
    found = cli.workspace().read_note(cli.conversation(), key)
    cli.emit(plain(found), [line(part) for part in _shown(found.value).split("\n")])


@note.command("list", examples=("lukasa --conversation REF note list",))
@pass_invocation
def note_list(cli: Invocation) -> None:
    """List a conversation's notes."""
    found = cli.workspace().notes(cli.conversation())
    cli.emit({"notes": plain(found)}, _notes(found))


def _notes(found: Sequence[Note]) -> Iterator[Line]:
    if not found:
        yield line("No note in this conversation.")
        yield line(dim("  `lukasa --conversation REF note set KEY VALUE` writes one"))
        return
    yield from table(("key", "updated", "value"), ((n.key, when(n.updated_at), brief(_shown(n.value))) for n in found))


@note.command("clear", examples=("lukasa --conversation REF note clear", "lukasa --conversation REF note clear total"))
@click.argument("key", required=False)
@pass_invocation
def note_clear(cli: Invocation, key: str | None) -> None:
    """Remove one note, or all of them."""
    count = cli.workspace().clear_notes(cli.conversation(), key)
    cli.emit({"cleared": count}, [line(good("cleared "), f"{count} notes")])
