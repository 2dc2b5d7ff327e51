"""Verbs that remove for good: a plan first, then its execution by the plan's digest."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import click

from lukasa.surfaces.cli.data import plain
from lukasa.surfaces.cli.options import Family
from lukasa.surfaces.cli.output import Line, dim, good, line, title, warn
from lukasa.surfaces.cli.session import Session, pass_session
from lukasa.upkeep.scrub import SHORTEST, Manifest

F = TypeVar("F", bound=Callable[..., Any])


@click.group(
    cls=Family,
    examples=("lukasa scrub plan --tier workspace", "lukasa scrub execute --tier workspace --confirm 3f1c9a…"),
)
def scrub() -> None:
    """Remove a tier's contents or a conversation for good, in two steps.

    `plan` shows what would go and removes nothing; `execute` needs the digest of that plan. There is no undo.
    """


def _what(f: F) -> F:
    """The options that say what is meant."""
    for option in (
        click.option("--thread", metavar="REF", help="Instead of a tier: all of one conversation, checkpoints too."),
        click.option(
            "--mode",
            type=click.Choice(["full", "keep_named"]),
            help="Everything of the tier, or all but the named entries [default: full].",
        ),
        click.option("--tier", metavar="NAME", help="The tier whose contents go, in the scope that is bound."),
    ):
        f = option(f)
    return f


@scrub.command(
    "plan",
    examples=(
        "lukasa scrub plan --tier workspace",
        "lukasa scrub plan --tier account --mode keep_named",
        "lukasa --channel research scrub plan --tier channel",
        "lukasa scrub plan --thread 3kTMd9PqX2v",
    ),
)
@_what
@pass_session
def scrub_plan(session: Session, tier: str | None, mode: str | None, thread: str | None) -> None:
    """Show what a scrub would remove, and the digest to confirm it with. Nothing is removed."""
    _one_of(tier, mode, thread)
    world = session.workspace()
    shown = world.purge_plan(thread) if thread is not None else world.scrub_plan(tier or "", mode=mode or "full")
    session.emit(_data(shown), _shown(shown, tier, mode, thread))


@scrub.command(
    "execute",
    examples=(
        "lukasa scrub execute --tier workspace --confirm 3f1c9a0b77de",
        "lukasa scrub execute --thread 3kTMd9PqX2v --confirm 9d04e1c2aa51",
    ),
)
@_what
@click.option("--confirm", required=True, metavar="DIGEST", help="The plan's digest, or its first 12 characters.")
@pass_session
def scrub_execute(session: Session, tier: str | None, mode: str | None, thread: str | None, confirm: str) -> None:
    """Remove for good what a plan has shown; refused if anything of it has changed since."""
    _one_of(tier, mode, thread)
    world = session.workspace()
    if thread is not None:
        done = world.purge_execute(thread, confirm=confirm)
    else:
        done = world.scrub_execute(tier or "", confirm=confirm, mode=mode or "full")
    told = [line(good("removed "), f"{sum(done.manifest.counts.values())} things", dim(f"  event {done.event}"))]
    if not done.swept:
        told.append(line(warn("! "), "another process reads these files: their words leave them at the next opening"))
    session.emit({**_data(done.manifest), "event": done.event, "swept": done.swept}, told)


def _one_of(tier: str | None, mode: str | None, thread: str | None) -> None:
    if (tier is None) == (thread is None):
        raise click.UsageError("say what to scrub: --tier NAME or --thread REF, one of them")
    if thread is not None and mode is not None:
        raise click.UsageError("--mode is for tiers; a thread goes whole")


def _data(shown: Manifest) -> dict[str, Any]:
    return {**plain(shown), "counts": shown.counts}


def _shown(shown: Manifest, tier: str | None, mode: str | None, thread: str | None) -> Iterator[Line]:
    where = ", ".join(f"{key} {value}" for key, value in shown.scope.items())
    yield line(title("would be removed"), dim(f"  {shown.mode}: {where}"))
    for part in shown.lines:
        yield line(f"  {part.count:>7,}  ", part.what)
    if not shown.lines:
        yield line("  nothing")
    for told in shown.warnings:
        yield line(warn("  ! "), told)
    if shown.sample:
        yield line(dim("  such as "), ", ".join(shown.sample[:3]))
    what = f"--thread {thread}" if thread is not None else f"--tier {tier}" + (f" --mode {mode}" if mode else "")
    yield line(dim(f"  digest {shown.digest}"))
    yield line(dim(f"  `lukasa scrub execute {what} --confirm {shown.digest[:SHORTEST]}` does it; there is no undo"))
