"""Verbs about conversations and their working notes."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

import click

from lukasa.model.conversation import Conversation, Note
from lukasa.service.workspace import Workspace
from lukasa.surfaces.cli.data import plain
from lukasa.surfaces.cli.lines import when
from lukasa.surfaces.cli.options import Family
from lukasa.surfaces.cli.output import Line, brief, dim, good, line, table, title
from lukasa.surfaces.cli.session import Session, pass_session, text_or_stdin


@click.group(cls=Family, examples=("lukasa conversation start", "lukasa conversation end REF"))
def conversation() -> None:
    """Start, list, end and archive conversations."""


@conversation.command("start", examples=("lukasa conversation start", "lukasa conversation start --channel research"))
@pass_session
def conversation_start(session: Session) -> None:
    """Start a conversation, in the default channel unless --channel names one."""
    made = session.workspace().start(session.choices.channel)
    told = [
        line(good("started "), title(made.ref_code)),
        line(dim(f'  work in it with `lukasa --conversation {made.ref_code} put "…" --tier conversation`')),
    ]
    session.emit(plain(made), told)


@conversation.command("list", examples=("lukasa conversation list", "lukasa conversation list --archived"))
@click.option("--archived", is_flag=True, help="Also the archived ones.")
@pass_session
def conversation_list(session: Session, archived: bool) -> None:
    """List conversations, of one channel if --channel names it."""
    workspace = session.workspace()
    found = workspace.conversations(archived=archived, channel=session.choices.channel)
    session.emit({"conversations": plain(found)}, _conversations(found, workspace))


def _conversations(found: Sequence[Conversation], workspace: Workspace) -> Iterator[Line]:
    if not found:
        yield line("No conversation here yet.")
        yield line(dim("  `lukasa conversation start` begins one; `--archived` also lists the archived ones"))
        return
    names = {channel.id: channel.name for channel in workspace.channels()}
    heads = ("ref", "status", "channel", "started", "ended")
    rows = ((c.ref_code, str(c.status), names.get(c.channel, c.channel), c) for c in found)
    yield from table(heads, ((*row, when(c.started_at), when(c.ended_at)) for *row, c in rows))


@conversation.command("show", examples=("lukasa conversation show REF",))
@click.argument("ref")
@pass_session
def conversation_show(session: Session, ref: str) -> None:
    """Show a conversation and its notes."""
    workspace = session.workspace()
    found, notes = workspace.conversation(ref), workspace.notes(ref)
    session.emit({"conversation": plain(found), "notes": plain(notes)}, _conversation(found, notes))


def _conversation(found: Conversation, notes: Sequence[Note]) -> Iterator[Line]:
    ended = f", ended {when(found.ended_at)}" if found.ended_at else ""
    yield line(title(found.ref_code), f"  {found.status}", dim(f"  started {when(found.started_at)}{ended}"))
    yield line(dim(f"  id {found.id}, channel {found.channel}"))
    for note in notes:
        yield line(f"  {note.key} = ", brief(_shown(note.value)))


@conversation.command("idle", examples=("lukasa conversation idle REF",))
@click.argument("ref")
@pass_session
def conversation_idle(session: Session, ref: str) -> None:
    """Mark a conversation as idle; nothing is cleared."""
    _moved(session, session.workspace().idle(ref))


@conversation.command("archive", examples=("lukasa conversation archive REF",))
@click.argument("ref")
@pass_session
def conversation_archive(session: Session, ref: str) -> None:
    """Archive a conversation; default lists leave it out from then on."""
    _moved(session, session.workspace().archive(ref))


def _moved(session: Session, found: Conversation) -> None:
    session.emit(plain(found), [line(good(f"{found.status} "), found.ref_code)])


@conversation.command("end", examples=("lukasa conversation end REF",))
@click.argument("ref")
@pass_session
def conversation_end(session: Session, ref: str) -> None:
    """End a conversation: what lives only in it goes, as the spec says."""
    ended = session.workspace().end(ref)
    told = f": {ended.dropped} entries went with it, {ended.archived} were archived"
    session.emit(plain(ended), [line(good("ended "), ended.conversation.ref_code, told)])


@click.group(cls=Family, examples=("lukasa --conversation REF note set total 42",))
def note() -> None:
    """Keep a conversation's working notes.

    Notes are an agent's scratchpad, not memory: no read finds them. Name the conversation with --conversation.
    """


def _value(text: str) -> Any:
    """JSON if it is JSON, else the text itself."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


@note.command("set", examples=("lukasa --conversation REF note set total 42", "… note set plan - < plan.json"))
@click.argument("key")
@click.argument("value")
@click.option("--text", "as_text", is_flag=True, help="Keep the value as text, even if it reads as JSON.")
@pass_session
def note_set(session: Session, key: str, value: str, as_text: bool) -> None:
    """Write a note. VALUE is JSON, or else text; - reads it from stdin."""
    ref = session.conversation()
    given = text_or_stdin(value)
    made = session.workspace().write_note(ref, key, given if as_text else _value(given))
    session.emit(plain(made), [line(good("noted "), f"{made.key} = ", brief(_shown(made.value)))])


@note.command("get", examples=("lukasa --conversation REF note get total",))
@click.argument("key")
@pass_session
def note_get(session: Session, key: str) -> None:
    """Print a note's value."""
    found = session.workspace().read_note(session.conversation(), key)
    session.emit(plain(found), [line(part) for part in _shown(found.value).split("\n")])


@note.command("list", examples=("lukasa --conversation REF note list",))
@pass_session
def note_list(session: Session) -> None:
    """List a conversation's notes."""
    found = session.workspace().notes(session.conversation())
    session.emit({"notes": plain(found)}, _notes(found))


def _notes(found: Sequence[Note]) -> Iterator[Line]:
    if not found:
        yield line("No note in this conversation.")
        yield line(dim("  `lukasa --conversation REF note set KEY VALUE` writes one"))
        return
    yield from table(("key", "updated", "value"), ((n.key, when(n.updated_at), brief(_shown(n.value))) for n in found))


@note.command("clear", examples=("lukasa --conversation REF note clear", "lukasa --conversation REF note clear total"))
@click.argument("key", required=False)
@pass_session
def note_clear(session: Session, key: str | None) -> None:
    """Remove one note, or all of them."""
    count = session.workspace().clear_notes(session.conversation(), key)
    session.emit({"cleared": count}, [line(good("cleared "), f"{count} notes")])
