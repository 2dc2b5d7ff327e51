"""Undo: a change taken back."""

from __future__ import annotations

from collections.abc import Iterator

import click

from lukasa.service.entries.undo import Undone
from lukasa.surfaces.cli.data import plain
from lukasa.surfaces.cli.options import Verb
from lukasa.surfaces.cli.output import Line, brief, dim, good, line, warn
from lukasa.surfaces.cli.session import Session, pass_session


@click.command(
    cls=Verb,
    examples=(
        "lukasa undo 0197f2c1-7c1e-7d53-9c4b-1f6d3a2b8e90",
        'lukasa undo --event 41 --reason "that was a mistake"',
    ),
)
@click.argument("id", required=False)
@click.option(
    "--event", type=int, metavar="SEQ", help="Take back the change that this event of the workspace tells of."
)
@click.option("--reason", default="undone on request", show_default=True, help="Why; kept with the change.")
@pass_session
def undo(session: Session, id: str | None, event: int | None, reason: str) -> None:
    """Take back a change: of an entry, of an event, or all that a job did.

    ID is an entry's, whose last change is taken back as a new version; what that change had retired is in force again,
    so undoing a consolidated entry brings back all it was made from. Undo again to have the change after all. ID may
    also be a job's, as `lukasa jobs` shows it: what others have changed since stays as they left it.
    """
    if (id is None) == (event is None):
        raise click.UsageError("what shall be undone? Give an ID, or --event SEQ")
    done = session.workspace().undo(event if event is not None else id or "", reason)
    session.emit(plain(done), _told(done))


def _told(done: Undone) -> Iterator[Line]:
    if done.named:
        yield line(good("undone "), f"the last edit of {done.named}")
    for entry in done.entries:
        yield line(good("undone "), entry.id, f" is {entry.state}, version {entry.version}")
        yield line(dim(f"  {brief(entry.content)}"))
    if done.replaces:
        yield line(f"  it replaces {', '.join(done.replaces)}")
    for left in done.kept:
        yield line(warn("left   "), left.id, f": {left.reason}")
