"""Verbs about decision records, which are files of a project and need no memory at all."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar

import click

from lukasa.app import open_decisions
from lukasa.curated.adr import Decision, Fault
from lukasa.service.curation.decision_records import Decisions
from lukasa.surfaces.cli.data import plain
from lukasa.surfaces.cli.lines import joined
from lukasa.surfaces.cli.options import Family
from lukasa.surfaces.cli.output import Line, bad, block, dim, good, line, table
from lukasa.surfaces.cli.session import Session, pass_session

R = TypeVar("R")
FOLDER = "docs/decisions"
FAULTY = 3


@click.group(cls=Family, examples=('lukasa adr new "One writer for each file"', "lukasa adr list", "lukasa adr check"))
def adr() -> None:
    """Keep decision records: numbered, with a status, cross-checked.

    They are markdown files in docs/decisions of the folder you are in, or in --dir.
    """


def _in_folder(f: Callable[..., R]) -> Callable[..., R]:
    """The records of `--dir`, given to the command in its place."""

    @click.option("--dir", "folder", default=FOLDER, show_default=True, metavar="DIR", help="Where the records are.")
    @wraps(f)
    def call(*args: Any, folder: str, **kwargs: Any) -> R:
        return f(*args, records=open_decisions(Path(folder)), **kwargs)

    return call


@adr.command(
    "new",
    examples=('lukasa adr new "One writer for each file" --decider ada', 'lukasa adr new "Two writers" --supersedes 7'),
)
@click.argument("title")
@click.option("--status", default="proposed", show_default=True, metavar="WORD", help="Its status to begin with.")
@click.option("--decider", "deciders", multiple=True, metavar="NAME", help="Who decides. Repeatable.")
@click.option("--tag", "tags", multiple=True, metavar="TAG", help="What it is about. Repeatable.")
@click.option("--supersedes", type=int, multiple=True, metavar="N", help="A record that it replaces. Repeatable.")
@_in_folder
@pass_session
def adr_new(session: Session, /, title: str, records: Decisions, **fields: Any) -> None:
    """Make a record with the next number; no number is ever given twice, also after a record was deleted."""
    made = records.new(title, **fields)
    session.emit(_data(records, made), [line(good("made "), str(records.folder.path / made.file))])


def _data(records: Decisions, decision: Decision) -> dict[str, Any]:
    return {**plain(decision), "path": str(records.folder.path / decision.file)}


@adr.command("list", examples=("lukasa adr list", "lukasa adr list --dir decisions --status accepted"))
@click.option("--status", metavar="WORD", help="Only those with this status.")
@_in_folder
@pass_session
def adr_list(session: Session, status: str | None, records: Decisions) -> None:
    """List the records by number."""
    found = [d for d in records.all() if status in (None, d.status)]
    session.emit({"decisions": [_data(records, d) for d in found]}, _listed(found))


def _listed(found: Sequence[Decision]) -> Iterator[Line]:
    if not found:
        yield line("No decision here yet.")
        yield line(dim("  `lukasa adr new TITLE` makes one"))
        return
    rows = ((f"{d.number:04d}", d.status, d.date, d.title, _by(d)) for d in found)
    yield from table(("no.", "status", "date", "title", ""), rows)


def _by(d: Decision) -> str:
    return f"superseded by {', '.join(f'{n:04d}' for n in d.superseded_by)}" if d.superseded_by else ""


@adr.command("show", examples=("lukasa adr show 7",))
@click.argument("number", type=int)
@_in_folder
@pass_session
def adr_show(session: Session, number: int, records: Decisions) -> None:
    """Print a record."""
    decision, text = records.get(number)
    session.emit({**_data(records, decision), "text": text}, block(text))


@adr.command("status", examples=("lukasa adr status 7 accepted", "lukasa adr status 3 superseded --by 7"))
@click.argument("number", type=int)
@click.argument("status")
@click.option("--by", type=int, metavar="N", help="The record that supersedes it; both then say so.")
@_in_folder
@pass_session
def adr_status(session: Session, number: int, status: str, by: int | None, records: Decisions) -> None:
    """Set a record's status: proposed, accepted, shipped, superseded, deprecated or rejected."""
    changed = records.set_status(number, status, by=by)
    told = line(good(f"{changed.number:04d} "), joined(changed.status, _by(changed), changed.title))
    session.emit(_data(records, changed), [told])


@adr.command("check", examples=("lukasa adr check", "lukasa adr check decisions"))
@click.argument("folder", default=FOLDER, metavar="[DIR]")
@click.pass_context
@pass_session
def adr_check(session: Session, ctx: click.Context, folder: str) -> None:
    """Check names, numbers, front matter and cross references. Exit code 3 if something is wrong."""
    found = open_decisions(Path(folder)).check()
    session.emit({"fits": not found, "faults": plain(found)}, _faults(found))
    if found:
        ctx.exit(FAULTY)


def _faults(found: Sequence[Fault]) -> Iterator[Line]:
    if not found:
        yield line(good("✓ "), "every record can be read, and they fit together")
    for fault in found:
        yield line(bad("✗ "), f"{fault.file}: {fault.what}")
        yield line(dim(f"    {fault.fix}"))
