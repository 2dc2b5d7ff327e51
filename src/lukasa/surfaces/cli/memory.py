"""Verbs about entries: put, get, update, forget, restore, accept, history, standing."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

import click

from lukasa.model.errors import InvalidInput
from lukasa.model.values import SHARED, Curator, Kind, Lifetime
from lukasa.service.entries.put import Written
from lukasa.surfaces.cli import lines
from lukasa.surfaces.cli.data import plain
from lukasa.surfaces.cli.options import Verb
from lukasa.surfaces.cli.output import dim, good, line
from lukasa.surfaces.cli.session import Session, pass_session, text_or_stdin

KINDS = ", ".join(Kind)
LIFETIMES = ", ".join(Lifetime)


def metadata(given: str | None) -> dict[str, Any] | None:
    """The object that `--metadata` holds."""
    if given is None:
        return None
    try:
        value = json.loads(given)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise InvalidInput("metadata must be a JSON object", fix="""write it as '{"key": "value"}'""")
    return value


def _memo_options(f: Callable[..., None]) -> Callable[..., None]:
    """The properties that both a new entry and a changed one may name."""
    for option in (
        click.option("--metadata", "meta", metavar="JSON", help="A small JSON object of your own."),
        click.option(
            "--valid-at", metavar="TIME", help="When it begins to hold, past or future, as in 2026-11-15T09:30."
        ),
        click.option("--tag", "tags", multiple=True, metavar="TAG", help="A tag. Repeatable."),
        click.option("--lifetime", metavar="NAME", help=f"How long it lives: {LIFETIMES}."),
        click.option("--kind", metavar="NAME", help=f"What sort of memory: {KINDS}."),
    ):
        f = option(f)
    return f


@click.command(
    cls=Verb,
    examples=(
        'lukasa put "The villain is called Malachar" --importance 0.8',
        'lukasa put "Prefers metric units" --tier account --kind procedural',
        "git log -1 --format=%B | lukasa put - --kind episodic --tag release",
    ),
)
@click.argument("text")
@click.option(
    "--tier", metavar="NAME", help="Tier to remember it in [default: workspace, or the broadest lasting one]."
)
@click.option("--importance", type=float, default=0.5, show_default=True, help="From 0 (trivial) to 1 (vital).")
@click.option("--owner", default=SHARED, show_default=True, metavar="AGENT", help="The one agent that may see it.")
@click.option("--source", default="", metavar="TEXT", help="Where it comes from, in a word.")
@click.option("--curator", metavar="NAME", help=f"Who curates it: {', '.join(Curator)} [default: whoever writes].")
@click.option("--link", "links", multiple=True, metavar="DOC", help="A document it rests on. Repeatable.")
@click.option("--derived-from", multiple=True, metavar="ID", help="An entry it was concluded from. Repeatable.")
@click.option("--supersedes", metavar="ID", help="The entry it replaces.")
@_memo_options
@pass_session
def put(
    session: Session, /, text: str, tier: str | None, tags: Sequence[str], meta: str | None, **options: Any
) -> None:
    """Remember something.

    TEXT is what to remember; - reads it from stdin. The answer says what became of it: stored, merged with what
    says the same, held for a person, or discarded, each with its reason; and what it replaces, if it contradicts
    something.
    """
    workspace = session.workspace()
    result = workspace.put(
        tier or workspace.ctx.default_tier(), text_or_stdin(text), tags=tags, metadata=metadata(meta), **options
    )
    session.emit(plain(result), lines.written(result))


@click.command(cls=Verb, examples=("lukasa get 0197f2c1-7c1e-7d53-9c4b-1f6d3a2b8e90",))
@click.argument("id")
@pass_session
def get(session: Session, id: str) -> None:
    """Show one entry in full."""
    entry = session.workspace().get(id)
    session.emit(plain(entry), lines.entry(entry))


@click.command(
    cls=Verb,
    examples=(
        "lukasa update 0197f2c1-7c1e-7d53-9c4b-1f6d3a2b8e90 --importance 0.9 --tag plot",
        "lukasa update 0197f2c1-7c1e-7d53-9c4b-1f6d3a2b8e90 --content - --expect 2 < new.txt",
    ),
)
@click.argument("id")
@click.option("--content", metavar="TEXT", help="The new text; - reads it from stdin.")
@click.option("--importance", type=float, help="From 0 (trivial) to 1 (vital).")
@click.option("--expect", type=int, metavar="VERSION", help="Change it only if it is still at this version.")
@_memo_options
@pass_session
def update(
    session: Session,
    /,
    id: str,
    content: str | None,
    expect: int | None,
    tags: Sequence[str],
    meta: str | None,
    **rest: Any,
) -> None:
    """Change an entry; its former forms are kept.

    Only what is named changes. Tags are replaced as a whole. What contradicts the new text is retired.
    """
    patch = {name: value for name, value in rest.items() if value is not None}
    if content is not None:
        patch["content"] = text_or_stdin(content)
    if tags:
        patch["tags"] = list(tags)
    if meta is not None:
        patch["metadata"] = metadata(meta)
    result = session.workspace().update(id, expect=expect, **patch)
    session.emit(plain(result), lines.written(result))


@click.command(cls=Verb, examples=('lukasa forget 0197f2c1-7c1e-7d53-9c4b-1f6d3a2b8e90 --reason "no longer true"',))
@click.argument("id")
@click.option("--reason", default="forgotten on request", show_default=True, help="Why; kept with the entry.")
@pass_session
def forget(session: Session, id: str, reason: str) -> None:
    """Take an entry out of memory; its row and history stay."""
    done = session.workspace().forget(id, reason)
    told = [line(good("forgotten "), done.id), line(dim(f"  `lukasa restore {done.id}` brings it back"))]
    session.emit(_revised(done), [*told, *lines.consequences(done)])


@click.command(cls=Verb, examples=("lukasa restore 0197f2c1-7c1e-7d53-9c4b-1f6d3a2b8e90",))
@click.argument("id")
@click.option("--reason", default="restored on request", show_default=True, help="Why; kept with the entry.")
@pass_session
def restore(session: Session, id: str, reason: str) -> None:
    """Bring an entry back from history.

    What contradicts it now is retired. An entry that is held is let in with `lukasa accept`.
    """
    done = session.workspace().restore(id, reason)
    session.emit(_revised(done), [line(good("active again "), done.id), *lines.consequences(done)])


@click.command(cls=Verb, examples=("lukasa accept 0197f2c1-7c1e-7d53-9c4b-1f6d3a2b8e90",))
@click.argument("id")
@click.option("--reason", default="accepted by the author", show_default=True, help="Why; kept with the entry.")
@pass_session
def accept(session: Session, id: str, reason: str) -> None:
    """Let a held entry in.

    From then on it is recalled, and text of unknown authorship counts as imported. Only the author may, not an
    agent. `lukasa list --state held` shows what waits; `lukasa forget` sets an entry aside instead.
    """
    done = session.workspace().accept(id, reason)
    session.emit(_revised(done), [line(good("accepted "), done.id), *lines.consequences(done)])


def _revised(done: Written) -> dict[str, Any]:
    """The entry as it is now, and what its change did to others."""
    entry: dict[str, Any] = plain(done.entry)
    return entry | {"replaces": list(done.replaces), "reopened": list(done.reopened)}


@click.command(cls=Verb, examples=("lukasa history 0197f2c1-7c1e-7d53-9c4b-1f6d3a2b8e90",))
@click.argument("id")
@pass_session
def history(session: Session, id: str) -> None:
    """Show every form an entry has had."""
    found = session.workspace().history(id)
    session.emit({"versions": plain(found)}, lines.versions(found))


@click.command(cls=Verb, examples=("lukasa standing 0197f2c1-7c1e-7d53-9c4b-1f6d3a2b8e90",))
@click.argument("id")
@pass_session
def standing(session: Session, id: str) -> None:
    """Show an entry's present relevance, factor by factor."""
    found = session.workspace().standing(id)
    session.emit(plain(found), lines.standing(found))
