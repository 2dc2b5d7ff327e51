"""The disposition queue on the command line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import click

from lukasa.service.upkeep.dispose import Waiting
from lukasa.surfaces.cli import lines
from lukasa.surfaces.cli.data import plain
from lukasa.surfaces.cli.options import Family
from lukasa.surfaces.cli.output import Line, brief, dim, good, line, table
from lukasa.surfaces.cli.session import Session, pass_session


@click.group(cls=Family, examples=("lukasa disposition list", "lukasa disposition archive ID"))
def disposition() -> None:
    """Decide about what has faded: promote, exempt or archive.

    Where a spec lets memory fade as a forcing function, what has sunk below its threshold waits here. It is still
    found, and nothing happens to it until somebody decides.
    """


@disposition.command("list", examples=("lukasa disposition list --scope org_id=acme --scope domain_id=ops",))
@pass_session
def list_waiting(session: Session) -> None:
    """List what waits, the most faded first."""
    found = session.workspace().dispositions()
    data = [{"relevance": w.relevance, "reads": w.reads, "entry": plain(w.entry)} for w in found]
    session.emit({"waiting": data}, _waiting(found))


def _waiting(found: Sequence[Waiting]) -> Iterator[Line]:
    if not found:
        yield line("Nothing waits for a decision.")
        yield line(
            dim("  entries come here where the spec's decay is `forcing`; `lukasa spec show` says where that is")
        )
        return
    rows = ((w.id, f"{w.relevance:.3f}", f"{w.entry.created_at:%Y-%m-%d}", brief(w.entry.content, 70)) for w in found)
    yield from table(("id", "relevance", "written", "text"), rows)
    yield line(dim("  `lukasa disposition promote|exempt|archive ID` decides"))


def _decide(session: Session, id: str, how: str, reason: str) -> None:
    done = session.workspace().dispose(id, how, reason)
    session.emit(plain(done), [line(good(f"{done.outcome} "), done.id), *lines.consequences(done)])


@disposition.command("promote", examples=("lukasa disposition promote 0197f2c1-7c1e-7d53-9c4b-1f6d3a2b8e90",))
@click.argument("id")
@click.option("--reason", default="decided by the author", show_default=True, help="Why; kept with the entry.")
@pass_session
def promote(session: Session, id: str, reason: str) -> None:
    """It has proven true: it becomes a fact."""
    _decide(session, id, "promote", reason)


@disposition.command("exempt", examples=("lukasa disposition exempt 0197f2c1-7c1e-7d53-9c4b-1f6d3a2b8e90",))
@click.argument("id")
@click.option("--reason", default="decided by the author", show_default=True, help="Why; kept with the entry.")
@pass_session
def exempt(session: Session, id: str, reason: str) -> None:
    """It stays as it is, and fades no more."""
    _decide(session, id, "exempt", reason)


@disposition.command("archive", examples=("lukasa disposition archive 0197f2c1-7c1e-7d53-9c4b-1f6d3a2b8e90",))
@click.argument("id")
@click.option("--reason", default="decided by the author", show_default=True, help="Why; kept with the entry.")
@pass_session
def archive(session: Session, id: str, reason: str) -> None:
    """It has served its time: out of reads, into history."""
    _decide(session, id, "archive", reason)
