"""Reflection on demand: what was remembered since the last one, turned into proposals and triaged."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import click

from lukasa.model.amendment import Amendment
from lukasa.service.jobs.queue import Round, reflect_now
from lukasa.surfaces.cli.data import plain
from lukasa.surfaces.cli.lines import joined
from lukasa.surfaces.cli.options import Verb
from lukasa.surfaces.cli.output import Line, bad, dim, good, line, warn
from lukasa.surfaces.cli.session import Session, pass_session

OFFLINE = "offline"
_STYLES = {"promoted": good, "merged": good, "rejected": dim, "review": warn, "pending": warn}


@click.command(cls=Verb, examples=("lukasa reflect", "lukasa reflect --rules --json"))
@click.option("--rules", is_flag=True, help="By rules alone, also if a language model is set.")
@pass_session
def reflect(session: Session, rules: bool) -> None:
    """Propose lines for the curated document, and triage them.

    Reads what was remembered since the last reflection. Each proposal is promoted, merged, rejected or left to you,
    with the reason; `lukasa review` shows what is left to you.
    """
    chat = session.memory.chat()
    model = None if rules or chat.name == OFFLINE else chat
    done = reflect_now(session.workspace().ctx, chat=model, budget=session.memory.settings.budget)
    session.emit(plain(done), _lines(done))


def _lines(done: Round) -> Iterator[Line]:
    for error in done.errors:
        yield line(bad("failed "), error)
    yield line(f"{done.observations} observations, {len(done.proposals)} proposals.")
    yield from _proposals(done.proposals)


def _proposals(found: Sequence[Amendment]) -> Iterator[Line]:
    for a in found:
        yield line(_STYLES[str(a.state)](f"{a.state:<9}"), a.line or a.change)
        yield line(dim(f"          {joined(a.section, f'confidence {a.confidence:.2f}', a.decided_by, a.reason)}"))
    if any(str(a.state) == "review" for a in found):
        yield line(dim("  `lukasa review` lets you decide"))
