"""Commands that find entries and explain what they found: read, list, why, context."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import click

from lukasa.model.errors import InvalidInput, NotFound
from lukasa.model.ids import parse_id
from lukasa.model.values import Curator, Kind, State
from lukasa.read.context import Context, ContextItem
from lukasa.service.workspace import Workspace
from lukasa.surfaces.cli import lines
from lukasa.surfaces.cli.data import plain
from lukasa.surfaces.cli.invocation import Invocation, pass_invocation
from lukasa.surfaces.cli.lines import joined, matched
from lukasa.surfaces.cli.options import ID, LAST_ID, CliCommand
from lukasa.surfaces.cli.output import Line, block, brief, dim, line, title, warn


def _conditions(f: Callable[..., None]) -> Callable[..., None]:
    """Add the filter options; an entry must pass all of them."""
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
    """Add the options of a read: its tiers, and which entries it may return."""
    for option in (
        click.option("--as-of", metavar="TIME", help="Read entries that were valid at this time, or at this bookmark."),
        click.option("--history", is_flag=True, help="Also return retired entries: forgotten, superseded, archived."),
        click.option(
            "--sensitive/--no-sensitive", default=None, help="Return entries with secrets [default: to the owner]."
        ),
        click.option("--held", is_flag=True, help="Also return held entries."),
        click.option("--limit", type=int, metavar="N", help="At most this many [default: set by the profile]."),
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
    cls=CliCommand,
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
@click.option("--discoveries", is_flag=True, help="Also show passages of discovered pages.")
@click.option("--order", default="match", show_default=True, metavar="NAME", help="match (best first) or time.")
@click.option("--no-count", is_flag=True, help="Do not count this read in the access counts.")
@pass_invocation
def read(
    cli: Invocation, /, query: str, tiers: Sequence[str], explain: bool, no_count: bool, limit: int | None, **rest: Any
) -> None:
    """Find entries, best match first.

    Without --tier it searches every bound tier: conversation, channel, workspace, account. Each hit shows the signals
    that found it, and its trust.
    """
    workspace = cli.workspace()
    found = workspace.read(query, tier=tiers or None, limit=limit, count=not no_count, **_given(rest))
    if workspace.ctx.agent is not None:  # what the owner looks at is in no prompt
        workspace.disclose(found)
    cli.emit(plain(found), lines.recall(found, explain=explain))


@click.command(
    cls=CliCommand,
    examples=(
        'lukasa gather "what are all the allergies in our family?"',
        'lukasa gather "in which order did we move the services?" --budget 1000 --by month',
        'lukasa gather "sum up what we know about Marta" --json',
    ),
)
@click.argument("query")
@click.option("--budget", type=int, default=2000, show_default=True, metavar="TOKENS", help="At most so much text.")
@click.option("--by", metavar="NAME", help="Group by day, month, source or tier [default: day, or month if long].")
@_reading
@_conditions
@pass_invocation
def gather(
    cli: Invocation, /, query: str, tiers: Sequence[str], budget: int, by: Any, profile: str, **rest: Any
) -> None:
    """Gather all that memory holds about something, in groups and in the order of time.

    For a set, a sequence or a summary, where the few best hits of a read are not enough. It takes what belongs to the
    best hits, the best first, up to the budget. --profile has no effect here.
    """
    workspace = cli.workspace()
    found = workspace.gather(query, budget=budget, by=by, tier=tiers or None, **_given(rest))
    if workspace.ctx.agent is not None:
        workspace.disclose(found, "memory_gather")
    cli.emit(plain(found), lines.gathered(found))


@click.command(
    "list",
    cls=CliCommand,
    examples=("lukasa list", "lukasa list --tier account --all", "lukasa list --state held --json"),
)
@click.option("--tier", metavar="NAME", help="The tier [default: workspace, or the broadest lasting one].")
@_conditions
@click.option("--state", metavar="NAME", help=f"Only this state: {', '.join(State)}.")
@click.option("--all", "everything", is_flag=True, help="Also list held and retired entries.")
@click.option("--limit", type=int, default=100, show_default=True, metavar="N", help="At most this many.")
@click.option("--after", metavar="ID", type=ID, help="Continue after this entry, the last one of the previous page.")
@pass_invocation
def list_entries(cli: Invocation, /, tier: str | None, limit: int, everything: bool, **rest: Any) -> None:
    """List the entries of a tier, newest first.

    The column "kept" says why a row is there: active; referenced, if an action or another entry rests on it; orphaned,
    if its scope or all of its sources are gone.
    """
    workspace = cli.workspace()
    chosen = tier or workspace.ctx.default_tier()
    found = workspace.entries(chosen, limit=limit, everything=everything, **_given(rest))
    kept = workspace.grounds_of(found)
    listed = [plain(entry) | {"retention": str(kept[entry.id].retention)} for entry in found]
    cli.emit({"tier": chosen, "entries": listed}, lines.entries(found, chosen, kept))


@click.command(
    cls=CliCommand,
    examples=(
        'lukasa why "who is the villain?" 0197f2c1-7c1e-7d53-9c4b-1f6d3a2b8e90',
        "lukasa why 0197f2c1-7c1e-7d53-9c4b-1f6d3a2b8e90",
    ),
)
@click.argument("query_and_id", type=LAST_ID, nargs=-1, required=True, metavar="[QUERY] ID")
@_reading
@_conditions
@pass_invocation
def why(cli: Invocation, /, query_and_id: Sequence[str], tiers: Sequence[str], limit: int | None, **rest: Any) -> None:
    """Explain why a read returned an entry or not, or show the events of an entry.

    With QUERY and ID it follows one entry through every stage of that read, and says why the entry is among the hits or
    not. With an ID alone it shows every event about it, also of a discarded or refused write.
    """
    if len(query_and_id) == 1:
        _life(cli, query_and_id[0])
        return
    if len(query_and_id) > 2:
        raise click.UsageError("give a query and an id, or an id alone; put a query of several words in quotes")
    query, id = query_and_id
    trail = cli.workspace().why(query, id, tier=tiers or None, limit=limit, **_given(rest))
    outcome = "returned" if trail[-1].outcome == "returned" else "not returned"
    told: list[Line] = [*lines.verdicts(trail), line(f"So it was {outcome}.")]
    cli.emit({"query": query, "id": id, "returned": outcome == "returned", "stages": plain(trail)}, told)


def _life(cli: Invocation, id: str) -> None:
    try:
        key = parse_id(id)
    except InvalidInput as error:
        raise InvalidInput(error.message, fix='to explain a read, give both: lukasa why "QUERY" ID') from error
    found = cli.workspace().ledger(key)
    if not found:
        raise NotFound(f"there is no event about {key} in this workspace", fix="`lukasa list --all` shows ids")
    cli.emit({"id": key, "events": plain(found)}, lines.ledger(found))


def reasons(found: Context, workspace: Workspace) -> Iterator[tuple[str, str, str]]:
    """Yield the tier, the text and the reason of each line of a context."""
    for page in found.document.pinned:
        yield page.tier, page.name, "a named entry: always loaded, in full"
    least = workspace.spec.standing_importance
    for item in found.document.standing:
        yield item.tier, item.content, f"a standing rule: procedural, and its importance reaches {least:g}"
    for part in found.document.recalled:
        for item in part.items:
            yield part.tier, item.content, _recalled(found, item)


def _recalled(found: Context, item: ContextItem) -> str:
    hit = found.hits[item.id]
    if any(c.signal == "recency" and c.rank is not None for c in hit.score.match.contributions):
        return "recent in a tier that is shown without a query"
    return joined(f"matched by {matched(hit)}", f"characters {item.part} of it" if item.part else "")


def why_lines(found: Context, workspace: Workspace) -> Iterator[Line]:
    yield line(title(f"Why: {found.tokens} tokens, budget {found.budget}"))
    for tier, what, reason in reasons(found, workspace):
        yield line(f"  {tier}: ", brief(what, 60), dim(f"  {reason}"))
    for gone in found.evicted:
        yield line(warn("  left out: "), brief(workspace.get(gone.id).content, 60), dim(f"  {gone.reason}"))
    for note in found.notes:
        yield line(dim(f"  {note}"))


@click.command(
    cls=CliCommand,
    examples=(
        'lukasa context "continue chapter three"',
        "lukasa context --tiers workspace,account --budget 800 --why",
    ),
)
@click.argument("query", default="")
@click.option("--tiers", metavar="A,B", help="Only these tiers, separated by commas [default: all that are bound].")
@click.option("--budget", type=int, metavar="TOKENS", help="Size limit in tokens [default: set by the spec].")
@click.option(
    "--profile",
    default="balanced",
    show_default=True,
    metavar="NAME",
    help="How much of each tier: lean, balanced, deep.",
)
@click.option("--sensitive", is_flag=True, help="Include entries and pages with their secrets.")
@click.option("--count", is_flag=True, help="Count the shown entries as read.")
@click.option("--why", is_flag=True, help="Explain each line, and list what was left out.")
@pass_invocation
def context(cli: Invocation, /, query: str, tiers: str | None, why: bool, **options: Any) -> None:
    """Compose the context that an agent needs for a task.

    The context holds the whole named entries, then standing rules, then the entries of each tier for QUERY. The same
    memory and query give the same text.
    """
    workspace = cli.workspace()
    chosen = [name.strip() for name in tiers.split(",") if name.strip()] if tiers is not None else None
    found = workspace.context(query, tiers=chosen, **options)
    data = plain(found)
    data["why"] = [{"tier": t, "what": brief(w), "reason": r} for t, w, r in reasons(found, workspace)]
    cli.emit(data, _text_lines(found, workspace, why))


def _text_lines(found: Context, workspace: Workspace, why: bool) -> Iterator[Line]:
    yield from block(str(found))
    if why:
        yield line()
        yield from why_lines(found, workspace)
