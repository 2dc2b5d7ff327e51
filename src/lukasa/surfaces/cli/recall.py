"""Verbs that find: read, list, why."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import click

from lukasa.model.errors import InvalidInput, NotFound
from lukasa.model.ids import parse_id
from lukasa.model.values import Curator, Kind, State
from lukasa.surfaces.cli import lines
from lukasa.surfaces.cli.data import plain
from lukasa.surfaces.cli.options import Verb
from lukasa.surfaces.cli.output import Line, line
from lukasa.surfaces.cli.session import Session, pass_session


def _conditions(f: Callable[..., None]) -> Callable[..., None]:
    """Structured conditions; all that are given must hold."""
    for option in (
        click.option("--until", metavar="TIME", help="Only entries created before this time."),
        click.option("--since", metavar="TIME", help="Only entries created at or after this time."),
        click.option("--curator", metavar="NAME", help=f"Only this curator: {', '.join(Curator)}."),
        click.option("--source", metavar="TEXT", help="Only this source."),
        click.option("--tag", "tags", multiple=True, metavar="TAG", help="Only entries with this tag. Repeatable."),
        click.option("--category", metavar="NAME", help="Only this category."),
        click.option("--kind", metavar="NAME", help=f"Only this kind: {', '.join(Kind)}."),
    ):
        f = option(f)
    return f


def _reading(f: Callable[..., None]) -> Callable[..., None]:
    """Where a read looks and what it admits."""
    for option in (
        click.option("--as-of", metavar="TIME", help="What was held true at this time."),
        click.option("--history", is_flag=True, help="Also what was retired: forgotten, superseded, archived."),
        click.option("--held", is_flag=True, help="Also what is held for a person to decide."),
        click.option("--limit", type=int, metavar="N", help="At most this many [default: as the profile says]."),
        click.option(
            "--profile", default="auto", show_default=True, metavar="NAME", help="auto, lean, balanced or deep."
        ),
        click.option("--tier", "tiers", multiple=True, metavar="NAME", help="Only this tier. Repeatable."),
    ):
        f = option(f)
    return f


def _given(conditions: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in conditions.items() if value not in (None, ())}


@click.command(
    cls=Verb,
    examples=(
        'lukasa read "who is the villain?"',
        "lukasa read deadlines --tier workspace --kind episodic --since 2026-11-01 --explain",
        'lukasa read "where does Mara live" --as-of 2026-01-31 --json',
    ),
)
@click.argument("query")
@_reading
@_conditions
@click.option("--explain", is_flag=True, help="Show every factor of every score.")
@click.option("--no-count", is_flag=True, help="Do not count this as a retrieval.")
@pass_session
def read(
    session: Session, /, query: str, tiers: Sequence[str], explain: bool, no_count: bool, limit: int | None, **rest: Any
) -> None:
    """Find what is remembered, best first.

    Without --tier it widens over every tier that is bound: conversation, channel, workspace, account. Each hit
    says why it matched and how far to believe it.
    """
    found = session.workspace().read(query, tier=tiers or None, limit=limit, count=not no_count, **_given(rest))
    session.emit(plain(found), lines.recall(found, explain=explain))


@click.command(
    "list",
    cls=Verb,
    examples=("lukasa list", "lukasa list --tier account --all", "lukasa list --state held --json"),
)
@click.option("--tier", metavar="NAME", help="Which tier [default: workspace, or the broadest lasting one].")
@_conditions
@click.option("--state", metavar="NAME", help=f"Only this state: {', '.join(State)}.")
@click.option("--all", "everything", is_flag=True, help="Also what is held or retired.")
@click.option("--limit", type=int, default=100, show_default=True, metavar="N", help="At most this many.")
@click.option("--after", metavar="ID", help="Continue after this entry, the last of the page before.")
@pass_session
def list_entries(session: Session, /, tier: str | None, limit: int, everything: bool, **rest: Any) -> None:
    """List the entries of a tier, newest first."""
    workspace = session.workspace()
    chosen = tier or workspace.ctx.default_tier()
    found = workspace.entries(chosen, limit=limit, everything=everything, **_given(rest))
    session.emit({"tier": chosen, "entries": plain(found)}, lines.entries(found, chosen))


@click.command(
    cls=Verb,
    examples=(
        'lukasa why "who is the villain?" 0197f2c1-7c1e-7d53-9c4b-1f6d3a2b8e90',
        "lukasa why 0197f2c1-7c1e-7d53-9c4b-1f6d3a2b8e90",
    ),
)
@click.argument("query_and_id", nargs=-1, required=True, metavar="[QUERY] ID")
@_reading
@_conditions
@pass_session
def why(session: Session, /, query_and_id: Sequence[str], tiers: Sequence[str], limit: int | None, **rest: Any) -> None:
    """Explain a read, or the life of an entry.

    With QUERY and ID it follows one entry through every stage of that read: why it is among the hits, or why not.
    With an ID alone it shows every event about it, also of a write that was discarded or refused.
    """
    if len(query_and_id) == 1:
        _life(session, query_and_id[0])
        return
    if len(query_and_id) > 2:
        raise click.UsageError("give a query and an id, or an id alone; put a query of several words in quotes")
    query, id = query_and_id
    trail = session.workspace().why(query, id, tier=tiers or None, limit=limit, **_given(rest))
    outcome = "returned" if trail[-1].outcome == "returned" else "not returned"
    told: list[Line] = [*lines.verdicts(trail), line(f"So it was {outcome}.")]
    session.emit({"query": query, "id": id, "returned": outcome == "returned", "stages": plain(trail)}, told)


def _life(session: Session, id: str) -> None:
    try:
        key = parse_id(id)
    except InvalidInput as error:
        raise InvalidInput(error.message, fix='to trace a read, give both: lukasa why "QUERY" ID') from error
    found = session.workspace().ledger(key)
    if not found:
        raise NotFound(f"nothing is known of {key} in this workspace", fix="`lukasa list --all` shows ids")
    session.emit({"id": key, "events": plain(found)}, lines.ledger(found))
