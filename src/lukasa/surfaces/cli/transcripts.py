"""Verbs that look at the sessions that were taken in."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import click

from lukasa.model.transcript import Progress, Transcript, Utterance
from lukasa.storage.port import FoundUtterance
from lukasa.surfaces.cli.data import plain
from lukasa.surfaces.cli.lines import when
from lukasa.surfaces.cli.options import Family
from lukasa.surfaces.cli.output import Line, block, brief, dim, line, table, title, warn
from lukasa.surfaces.cli.session import Session, pass_session


@click.group(
    cls=Family,
    examples=("lukasa transcripts list", 'lukasa transcripts search "staging host"', "lukasa transcripts show KEY"),
)
def transcripts() -> None:
    """List, show and search the sessions that were taken in."""


@transcripts.command("list", examples=("lukasa transcripts list", "lukasa transcripts list --progress failed"))
@click.option("--progress", type=click.Choice([str(p) for p in Progress]), help="Only those that are this far.")
@click.option("--limit", type=int, default=50, show_default=True, metavar="N", help="At most so many.")
@pass_session
def transcripts_list(session: Session, progress: str | None, limit: int) -> None:
    """List sessions, the last taken in first, and how far each has been observed."""
    found = session.workspace().transcripts(progress=progress, limit=limit)
    session.emit({"transcripts": plain(found)}, _listed(found))


def _listed(found: Sequence[Transcript]) -> Iterator[Line]:
    if not found:
        yield line("No session was taken in here.")
        yield line(dim("  `lukasa observe FILE` takes one in; `lukasa backfill DIR` a whole folder"))
        return
    heads = ("key", "progress", "messages", "by", "updated", "title")
    rows = (
        (t.key, str(t.progress), f"{t.observed}/{t.kept}", t.how, when(t.updated_at), brief(t.title, 50)) for t in found
    )
    yield from table(heads, rows)
    for transcript in found:
        if transcript.detail:
            yield line(warn(f"{transcript.key}: "), transcript.detail)


@transcripts.command(
    "show", examples=("lukasa transcripts show KEY", "lukasa transcripts show KEY --from 20 --limit 10")
)
@click.argument("key")
@click.option("--from", "start", type=click.IntRange(0), default=0, metavar="N", help="Begin at this message.")
@click.option("--limit", type=click.IntRange(1), metavar="N", help="At most so many messages.")
@pass_session
def transcripts_show(session: Session, key: str, start: int, limit: int | None) -> None:
    """Show what was said in a session, as it was kept. KEY is its key or its id."""
    workspace = session.workspace()
    found, said = workspace.transcript(key), workspace.said(key, start=start, limit=limit)
    session.emit({"transcript": plain(found), "messages": plain(said)}, _shown(found, said))


def _shown(found: Transcript, said: Sequence[Utterance]) -> Iterator[Line]:
    yield line(title(found.key), f"  {found.progress}", dim(f"  {found.observed} of {found.kept} messages observed"))
    if found.detail:
        yield line(warn(found.detail))
    for utterance in said:
        yield line()
        yield line(dim(f"{utterance.place}  {utterance.role}  {when(utterance.at)}".rstrip()))
        yield from block(utterance.text)


@transcripts.command("search", examples=('lukasa transcripts search "staging host"',))
@click.argument("words")
@click.option("--limit", type=int, default=10, show_default=True, metavar="N", help="At most so many messages.")
@pass_session
def transcripts_search(session: Session, words: str, limit: int) -> None:
    """Find what was said in any session, also where nothing was observed yet."""
    workspace = session.workspace()
    found = workspace.search_transcripts(words, limit)
    names = {said.transcript: workspace.transcript(said.transcript).key for said in found}
    session.emit({"messages": [{**plain(said), "key": names[said.transcript]} for said in found]}, _found(found, names))


def _found(found: Sequence[FoundUtterance], names: Mapping[str, str]) -> Iterator[Line]:
    if not found:
        yield line("Nothing was said about that in the sessions that were taken in.")
    for said in found:
        u = said.utterance
        yield line(title(brief(u.text, 160)))
        yield line(dim(f"  {u.role}, message {u.place} of {names[said.transcript]}  {when(u.at)}".rstrip()))
