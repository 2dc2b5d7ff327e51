"""Verb: context, what enters a prompt, and why each line of it does."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import click

from lukasa.read.context import Context, Item
from lukasa.service.workspace import Workspace
from lukasa.surfaces.cli.data import plain
from lukasa.surfaces.cli.lines import joined, matched
from lukasa.surfaces.cli.options import Verb
from lukasa.surfaces.cli.output import Line, block, brief, dim, line, title, warn
from lukasa.surfaces.cli.session import Session, pass_session


def reasons(found: Context, workspace: Workspace) -> Iterator[tuple[str, str, str]]:
    """For each line of the document: where it stands, what it is, and why it is there."""
    for page in found.document.pinned:
        yield page.tier, page.name, "a named entry: always loaded, in full"
    least = workspace.spec.standing_importance
    for item in found.document.standing:
        yield item.tier, item.content, f"a standing rule: procedural, and its importance reaches {least:g}"
    for part in found.document.recalled:
        for item in part.items:
            yield part.tier, item.content, _recalled(found, item)


def _recalled(found: Context, item: Item) -> str:
    hit = found.hits[item.id]
    if any(c.signal == "recency" and c.rank is not None for c in hit.score.match.contributions):
        return "recent in a tier that is shown without a question"
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
    cls=Verb,
    examples=(
        'lukasa context "continue chapter three"',
        "lukasa context --tiers workspace,account --budget 800 --why",
    ),
)
@click.argument("query", default="")
@click.option("--tiers", metavar="A,B", help="Only these tiers, separated by commas [default: all that are bound].")
@click.option("--budget", type=int, metavar="TOKENS", help="How many tokens it may take [default: as the spec says].")
@click.option(
    "--profile",
    default="balanced",
    show_default=True,
    metavar="NAME",
    help="How much of each tier: lean, balanced, deep.",
)
@click.option("--count", is_flag=True, help="Count what is shown as retrieved.")
@click.option("--why", is_flag=True, help="Show why each line is in it, and what was left out.")
@pass_session
def context(session: Session, /, query: str, tiers: str | None, why: bool, **options: Any) -> None:
    """Compose what an agent should know before it starts.

    Named entries come first and whole, then standing rules, then what each tier has for QUERY. The same memory and
    question give the same text.
    """
    workspace = session.workspace()
    chosen = [name.strip() for name in tiers.split(",") if name.strip()] if tiers is not None else None
    found = workspace.context(query, tiers=chosen, **options)
    data = plain(found)
    data["why"] = [{"tier": t, "what": brief(w), "reason": r} for t, w, r in reasons(found, workspace)]
    session.emit(data, _text_lines(found, workspace, why))


def _text_lines(found: Context, workspace: Workspace, why: bool) -> Iterator[Line]:
    yield from block(str(found))
    if why:
        yield line()
        yield from why_lines(found, workspace)
