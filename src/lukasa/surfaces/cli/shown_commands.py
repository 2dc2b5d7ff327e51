"""The command `shown`: read the disclosure ledger, and what memory cost in tokens."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import click

from lukasa.model.disclosure import TokenUse
from lukasa.model.errors import NotFound
from lukasa.service.admin.shown import OFTEN, Sent, Unused
from lukasa.service.workspace import Workspace
from lukasa.surfaces.cli.data import plain
from lukasa.surfaces.cli.invocation import Invocation, pass_invocation
from lukasa.surfaces.cli.lines import when
from lukasa.surfaces.cli.options import ID, CliCommand
from lukasa.surfaces.cli.output import Line, brief, dim, line, many, table, title
from lukasa.surfaces.hooks.harness_sessions import conversation_of


@click.command(
    cls=CliCommand,
    examples=(
        "lukasa shown",
        "lukasa shown 0197f2c1-7c1e-7d53-9c4b-1f6d3a2b8e90",
        "lukasa shown --conversation kX3 --json",
        "lukasa shown --agent claude-code --since 7d",
        "lukasa shown --unused",
    ),
)
@click.argument("item", type=ID, required=False, metavar="[ID|PAGE]")
@click.option("--since", metavar="TIME", help="Only since this time, or for so long: 24h, 7d, 2w.")
@click.option("--limit", type=click.IntRange(1, 1000), default=50, show_default=True, help="At most this many.")
@click.option("--unused", is_flag=True, help="List entries that were shown again and again and never used.")
@click.option(
    "--times", type=click.IntRange(1), default=OFTEN, show_default=True, metavar="N", help="With --unused: how often."
)
@pass_invocation
def shown(cli: Invocation, item: str | None, since: str | None, limit: int, unused: bool, times: int) -> None:
    """Show which entries and pages went into which prompt, newest first.

    Lists every context, every answer to an agent and every hook injection: when, to whom, on which surface, in which
    conversation, and for how many tokens. With ID or PAGE it lists those that held this entry or page; --conversation
    and --agent choose one conversation (also by the session id of a harness) or one agent.

    With --unused it lists entries that were shown at least --times times [default: in 30 days] and that nothing shows
    to be of use: no agent read them by id, nobody confirmed or corrected them, nothing rests on them, and the assistant
    said none of their distinctive words later in the same conversation. What the owner looks at is in no prompt, so it
    is not listed.
    """
    workspace = cli.owner()
    if unused:
        if item is not None or cli.choices.agent or cli.choices.conversation:
            raise click.UsageError("--unused looks at all entries; leave out the id, --agent and --conversation")
        never = workspace.unused(since or "30d", times=times)
        cli.emit({"unused": plain(never), "tokens": sum(one.tokens for one in never)}, unused_lines(never, times))
        return
    talk = cli.choices.conversation
    found = workspace.shown(
        item,
        conversation=_conversation(workspace, talk) if talk is not None else None,
        agent=cli.choices.agent,
        since=since,
        limit=limit,
    )
    cli.emit({"shown": plain(found)}, _lines(found, item))


def _conversation(workspace: Workspace, named: str) -> str:
    """Return a conversation by its ref code or id, or by the id of a harness's session."""
    try:
        return workspace.conversation(named).id
    except NotFound:
        talk = conversation_of(workspace, named)
        if talk is None:
            raise
        return talk.id


def _lines(found: Sequence[Sent], item: str | None) -> Iterator[Line]:
    if not found:
        yield line("Nothing of this was shown to an agent, as far as the ledger goes back.")
        return
    heads = ("at", "to", "on", "conversation", "by", "tokens", "held")
    yield from table(heads, (_row(one, item) for one in found))


def _row(one: Sent, item: str | None) -> tuple[str, ...]:
    where = f"{one.surface} {one.transport}" if one.transport != one.surface else one.surface
    mine = [part for part in one.items if item is not None and part.id == item]
    tokens = f"{sum(part.tokens for part in mine):,} of {one.tokens:,}" if mine else f"{one.tokens:,}"
    pages = [part.id for part in one.items if part.page]
    entries = len(one.items) - len(pages)
    held = f"version {mine[0].version}" if mine else ", ".join([*pages, *([many(entries, "entry")] if entries else [])])
    return when(one.at), one.principal, where, one.ref or one.conversation[:8], one.verb, tokens, brief(held, 60)


def unused_lines(found: Sequence[Unused], times: int) -> Iterator[Line]:
    """Yield the entries that nobody used, with what they cost."""
    if not found:
        yield line(f"Every entry that was shown {times} times or more was used, or was shown less often.")
        return
    cost = sum(one.tokens for one in found)
    yield line(title(f"{many(len(found), 'entry')} shown and never used"), f", for {cost:,} tokens")
    for one in found:
        yield line(f"  {one.times:>4} times {one.tokens:>7,} tokens  ", brief(one.entry.content, 70))
        yield line(dim(f"       {one.entry.id}  last {when(one.last)}"))


def token_lines(use: TokenUse) -> Iterator[Line]:
    """Yield what memory cost in tokens."""
    if not use.texts:
        yield line(f"No text of memory went to an agent since {when(use.since)}.")
        return
    yield line(title(f"{use.tokens:,} tokens"), f" in {many(use.texts, 'text')} to agents since {when(use.since)}")
    groups: tuple[tuple[str, Mapping[str, Any]], ...] = (
        ("agent", use.by_agent),
        ("surface", use.by_surface),
        ("call", use.by_verb),
        ("day", use.by_day),
    )
    for name, sums in groups:
        yield line(f"  by {name:<9}", ", ".join(f"{key} {tokens:,}" for key, tokens in sums.items()))
