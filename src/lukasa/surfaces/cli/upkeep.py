"""Upkeep on request: consolidate and maintain, each a job that is done while one waits."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import click

from lukasa.model.job import Job, JobState
from lukasa.service.jobs import queue
from lukasa.surfaces.cli.data import plain
from lukasa.surfaces.cli.options import Verb
from lukasa.surfaces.cli.output import Line, dim, good, line, safe, warn
from lukasa.surfaces.cli.session import Session, pass_session


def _options(f: Callable[..., None]) -> Callable[..., None]:
    for option in (
        click.option("--dry-run", is_flag=True, help="Say what would be done, by rules alone, and change nothing."),
        click.option("--tier", "tiers", multiple=True, metavar="NAME", help="Only this tier. Repeatable."),
    ):
        f = option(f)
    return f


@click.command(cls=Verb, examples=("lukasa consolidate --dry-run", "lukasa consolidate --tier workspace"))
@_options
@pass_session
def consolidate(session: Session, tiers: Sequence[str], dry_run: bool) -> None:
    """Make few entries out of many, as the spec says, now.

    Promotes what has earned it, prunes what has sunk below the spec's floor, makes one entry out of several that belong
    together, and keeps a scope below its cap. With a language model, it writes the new entries; without one, rules
    do. Everything can be taken back: `lukasa undo` with the id of the job, or of a new entry.
    """
    _upkeep(session, "consolidate", tiers, dry_run)


@click.command(cls=Verb, examples=("lukasa maintain", "lukasa maintain --tier workspace --dry-run"))
@_options
@pass_session
def maintain(session: Session, tiers: Sequence[str], dry_run: bool) -> None:
    """Fold copies, mark the never recalled stale, forget the stale, now.

    Which ages count is the spec's choice. Nothing is removed, and a second run finds nothing to do.
    """
    _upkeep(session, "maintain", tiers, dry_run)


def _upkeep(session: Session, kind: str, tiers: Sequence[str], dry_run: bool) -> None:
    ctx = session.workspace().ctx
    if dry_run:
        found = queue.preview(ctx, kind, tiers)
        session.emit({"dry_run": True, "result": found}, _counted(found, "would be "))
        return
    job = queue.ask(ctx, kind, tiers)
    chat = session.memory.chat() if kind == "consolidate" else None
    job = queue.work(ctx, job, chat=None if chat is None or chat.name == "offline" else chat, tell=_progress)
    session.emit({"dry_run": False, "job": plain(job), "result": plain(job.result)}, _done(job))


def _progress(text: str) -> None:
    """To people who watch, and not into what a program reads."""
    if sys.stderr.isatty():
        sys.stderr.write(f"  {safe(text)}\n")


def _done(job: Job) -> Iterator[Line]:
    match job.state:
        case JobState.DONE:
            yield from _counted(job.result, "")
            if any(not name.startswith("entries_") for name in job.result):
                yield line(dim(f"  `lukasa undo {job.id}` takes all of it back"))
        case JobState.RUNNING:
            yield line(f"another worker is at it: job {job.id}")
        case _:
            yield line(warn(f"{job.state}: "), job.error or "it waits to be tried again", dim(f"  job {job.id}"))


def _counted(found: Mapping[str, Any], would: str) -> Iterator[Line]:
    changes = {name: count for name, count in found.items() if not name.startswith("entries_")}
    if not changes:
        yield line("Nothing to do.")
    for name, count in changes.items():
        yield line(good("✓ "), f"{count:,} {would}{_WORDS.get(name, name)}")


_WORDS = {"consolidated": "made of others", "dropped": "left alone, because something speaks against it"}
