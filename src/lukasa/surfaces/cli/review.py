"""The review inbox: list what waits, and decide, one by one on a terminal or by id."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence

import click

from lukasa.model.errors import LukasaError
from lukasa.service.admin.overview import EvidenceQuote
from lukasa.service.curation.review import Decided, HeldEntry, Inbox, OpenProposal
from lukasa.service.workspace import Workspace
from lukasa.surfaces.cli.data import plain
from lukasa.surfaces.cli.lines import joined, when
from lukasa.surfaces.cli.options import Family
from lukasa.surfaces.cli.output import Line, block, brief, dim, good, line, safe, title, warn, write
from lukasa.surfaces.cli.session import Session, pass_session, text_or_stdin

Item = HeldEntry | OpenProposal
QUESTION = "[a]pprove, [e]dit, [r]eject, [s]kip, [q]uit"


@click.group(
    cls=Family,
    invoke_without_command=True,
    examples=(
        "lukasa review",
        "lukasa review list --json",
        "lukasa review approve 0197f2c1-7c1e-7d53-9c4b-1f6d3a2b8e90",
    ),
)
@click.pass_context
def review(ctx: click.Context) -> None:
    """Decide what waits: held entries, and lines proposed for the curated document.

    Nothing here is recalled before you approve it. On a terminal you are asked about one after the other; elsewhere
    they are listed.
    """
    if ctx.invoked_subcommand is None:
        ctx.invoke(review_ask if sys.stdin.isatty() and sys.stdout.isatty() else review_list)


@review.command("list", examples=("lukasa review list", "lukasa review list --json"))
@click.option(
    "--limit", type=click.IntRange(1, 1000), default=100, show_default=True, help="At most this many of each."
)
@pass_session
def review_list(session: Session, limit: int = 100) -> None:
    """List what waits, with why, and the words it came from."""
    found = session.workspace().inbox(limit=limit)
    session.emit(plain(found), _inbox(found))


@review.command("ask", examples=("lukasa review ask",))
@pass_session
def review_ask(session: Session) -> None:
    """Go through what waits, one by one: approve, edit, reject, skip or quit."""
    world = session.workspace()
    found = world.inbox(limit=1000)
    waiting: list[Item] = [*found.proposals, *found.entries]
    decided: list[Decided] = []
    for place, item in enumerate(waiting, 1):
        write([line(), line(dim(f"{place} of {len(waiting)}")), *_item(item)], no_color=session.choices.no_color)
        answer = click.prompt(QUESTION, type=click.Choice(list("aersq")), show_choices=False, default="s")
        if answer == "q":
            break
        try:
            made = _decide(world, item, answer)
        except LukasaError as error:  # one that cannot be decided now must not end the round
            write([line(warn(f"  {error}"))], no_color=session.choices.no_color)
            continue
        if made is not None:
            decided.append(made)
            write(_decided(made), no_color=session.choices.no_color)
    left = len(waiting) - len(decided)
    session.emit({"decided": plain(decided), "left": left}, [line(f"{len(decided)} decided, {left} left.")])


def _decide(world: Workspace, item: Item, answer: str) -> Decided | None:
    id, text = _what(item)
    if answer == "a":
        return world.approve(id)
    if answer == "e":
        return world.approve(id, text=click.prompt("Text", default=safe(text)))
    if answer == "r":
        return world.reject(id, click.prompt("Why", default="rejected by the author"))
    return None


def _what(item: Item) -> tuple[str, str]:
    if isinstance(item, HeldEntry):
        return item.entry.id, item.entry.content
    return item.amendment.id, item.amendment.change


@review.command("approve", examples=("lukasa review approve 0197f2c1-7c1e-7d53-9c4b-1f6d3a2b8e90",))
@click.argument("id")
@click.option("--reason", default="approved by the author", show_default=True, help="Why; kept with it.")
@pass_session
def review_approve(session: Session, id: str, reason: str) -> None:
    """Let a held entry in, or put a proposal on the curated document.

    A held entry retires what it contradicts. A proposal that was rejected can be approved after all.
    """
    made = session.workspace().approve(id, reason=reason)
    session.emit(plain(made), _decided(made))


@review.command("edit", examples=('lukasa review edit 0197f2c1-7c1e-7d53-9c4b-1f6d3a2b8e90 --text "In my words"',))
@click.argument("id")
@click.option("--text", required=True, metavar="TEXT", help="What it should say; - reads it from stdin.")
@click.option("--reason", default="edited and approved by the author", show_default=True, help="Why; kept with it.")
@pass_session
def review_edit(session: Session, id: str, text: str, reason: str) -> None:
    """Approve in other words."""
    made = session.workspace().approve(id, text=text_or_stdin(text), reason=reason)
    session.emit(plain(made), _decided(made))


@review.command("reject", examples=('lukasa review reject 0197f2c1-7c1e-7d53-9c4b-1f6d3a2b8e90 --reason "not so"',))
@click.argument("id")
@click.option("--reason", default="rejected by the author", show_default=True, help="Why; kept with it.")
@pass_session
def review_reject(session: Session, id: str, reason: str) -> None:
    """Set a held entry aside, or turn a proposal down.

    Neither is lost: `lukasa restore` brings the entry back to wait again, `lukasa review approve` takes the proposal.
    """
    made = session.workspace().reject(id, reason)
    session.emit(plain(made), _decided(made))


# Lines


def _inbox(found: Inbox) -> Iterator[Line]:
    if not len(found):
        yield line("Nothing waits for you.")
        return
    waiting: list[Item] = [*found.proposals, *found.entries]
    for item in waiting:
        yield from _item(item)
        yield line()
    yield line(dim("  `lukasa review approve|edit|reject ID` decides"))


def _item(item: Item) -> Iterator[Line]:
    if isinstance(item, HeldEntry):
        entry = item.entry
        yield from block(entry.content, style="title")
        yield line(
            dim("  held entry  "), joined(entry.id, entry.scope.tier, str(entry.kind), f"by {entry.origin.principal}")
        )
        yield line(dim("  since       "), when(entry.created_at))
    else:
        a = item.amendment
        yield line(title(a.change))
        yield line(dim("  proposal    "), joined(a.id, a.section, f"confidence {a.confidence:.2f}"))
        for source in item.sources:
            yield line(dim("  rests on    "), joined(source.id, brief(source.content, 80)))
    yield line(dim("  why         "), item.why)
    yield from _quotes(item.quotes)


def _quotes(quotes: Sequence[EvidenceQuote]) -> Iterator[Line]:
    for quote in [quote for quote in quotes if quote.text][:3]:
        yield line(dim("  said        "), f"“{brief(quote.text, 200)}”", dim(f"  {joined(quote.role, quote.title)}"))


def _decided(made: Decided) -> Iterator[Line]:
    yield line(good(f"{made.outcome} "), made.id)
    if made.amendment is not None and made.amendment.line:
        yield line(dim(f"  {made.amendment.line}"))
    if made.replaces:
        yield line(f"  it replaces {', '.join(made.replaces)}")
    if made.outcome == "forgotten":
        yield line(dim(f"  `lukasa restore {made.id}` brings it back to wait again"))
