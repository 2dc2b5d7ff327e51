"""Commands that write and inspect entries: put, get, update, forget, restore, accept, undo, history, standing."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from itertools import chain
from typing import Any

import click

from lukasa.app import is_backup_folder
from lukasa.model.errors import InvalidInput
from lukasa.model.values import SHARED, Curator, Kind, Lifetime
from lukasa.service.citations.citing import FORMS
from lukasa.service.entries.put import Written
from lukasa.service.entries.undo import Undone
from lukasa.surfaces.cli import lines
from lukasa.surfaces.cli.data import plain
from lukasa.surfaces.cli.invocation import Invocation, pass_invocation, text_or_stdin
from lukasa.surfaces.cli.options import ID, CliCommand
from lukasa.surfaces.cli.output import Line, brief, dim, good, line, warn

KINDS = ", ".join(Kind)
LIFETIMES = ", ".join(Lifetime)


def metadata(given: str | None) -> dict[str, Any] | None:
    """Parse the JSON object of `--metadata`."""
    if given is None:
        return None
    try:
        value = json.loads(given)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise InvalidInput(
            f"the metadata {given[:60]!r} is not a JSON object", fix="""write it as '{"key": "value"}'"""
        )
    return value


def _memo_options(f: Callable[..., None]) -> Callable[..., None]:
    """Add the options that `put` and `update` share."""
    for option in (
        click.option("--metadata", "meta", metavar="JSON", help="A JSON object with data of your own."),
        click.option(
            "--valid-at", metavar="TIME", help="When it becomes valid, past or future, as in 2026-11-15T09:30."
        ),
        click.option("--tag", "tags", multiple=True, metavar="TAG", help="A tag. Repeatable."),
        click.option("--lifetime", metavar="NAME", help=f"Lifetime: {LIFETIMES}."),
        click.option("--kind", metavar="NAME", help=f"Kind of memory: {KINDS}."),
    ):
        f = option(f)
    return f


@click.command(
    cls=CliCommand,
    examples=(
        'lukasa put "The villain is called Malachar" --importance 0.8',
        'lukasa put "Prefers metric units" --tier account --kind procedural',
        'lukasa put "Tokens expire after an hour" --cite src/auth.py:10-20',
        "git log -1 --format=%B | lukasa put - --kind episodic --tag release",
    ),
)
@click.argument("text")
@click.option("--tier", metavar="NAME", help="Tier to store it in [default: workspace, or the broadest lasting one].")
@click.option("--importance", type=float, default=0.5, show_default=True, help="From 0 (trivial) to 1 (vital).")
@click.option("--owner", default=SHARED, show_default=True, metavar="AGENT", help="The only agent that sees it.")
@click.option("--source", default="", metavar="TEXT", help="Where it comes from.")
@click.option("--curator", metavar="NAME", help=f"Its curator: {', '.join(Curator)} [default: the writer].")
@click.option("--link", "links", multiple=True, metavar="DOC", help="A document it rests on. Repeatable.")
@click.option(
    "--derived-from", multiple=True, metavar="ID", type=ID, help="An entry it was concluded from. Repeatable."
)
@click.option("--cite", "cites", multiple=True, metavar="WHAT", help=f"What it is about: {FORMS}. Repeatable.")
@click.option("--supersedes", metavar="ID", type=ID, help="The entry it replaces and retires.")
@click.option("--corrects", metavar="ID", type=ID, help="The entry it corrects, which stays and is shown under it.")
@_memo_options
@pass_invocation
def put(cli: Invocation, /, text: str, tier: str | None, tags: Sequence[str], meta: str | None, **options: Any) -> None:
    """Store a text in memory.

    TEXT is the text to store, word for word; - reads it from stdin. The answer tells the outcome and its reason:
    stored, merged with an entry of the same text, or held for a person. It also names entries about the same thing:
    all stay, and a read shows the latest first. Files of the project at hand that TEXT names are cited too: reads check
    them, and `lukasa verify` checks all.
    """
    workspace = cli.workspace()
    result = workspace.put(
        tier or workspace.ctx.default_tier(), text_or_stdin(text), tags=tags, metadata=metadata(meta), **options
    )
    cli.emit(plain(result), lines.written(result))


@click.command(cls=CliCommand, examples=("lukasa get 0197f2c1-7c1e-7d53-9c4b-1f6d3a2b8e90",))
@click.argument("id", type=ID)
@pass_invocation
def get(cli: Invocation, id: str) -> None:
    """Show one entry in full, with what it rests on now, what rests on it, and why its row is kept."""
    world = cli.workspace()
    entry = world.get(id)
    quotes, grounds, cited = world.evidence(entry.id), world.grounds(entry.id), world.citations(entry.id)
    data = plain(entry) | {"quotes": plain(quotes), "grounds": plain(grounds), "citations": plain(cited.citations)}
    shown = (lines.entry(entry), lines.quotes(quotes, f"{'said':<13}"), lines.grounds(grounds), lines.citations(cited))
    cli.emit(data, chain.from_iterable(shown))


@click.command(
    cls=CliCommand,
    examples=(
        "lukasa update 0197f2c1-7c1e-7d53-9c4b-1f6d3a2b8e90 --importance 0.9 --tag plot",
        "lukasa update 0197f2c1-7c1e-7d53-9c4b-1f6d3a2b8e90 --content - --expect 2 < new.txt",
    ),
)
@click.argument("id", type=ID)
@click.option("--content", metavar="TEXT", help="The new text; - reads it from stdin.")
@click.option("--importance", type=float, help="From 0 (trivial) to 1 (vital).")
@click.option("--expect", type=int, metavar="VERSION", help="Change the entry only if it is still at this version.")
@_memo_options
@pass_invocation
def update(
    cli: Invocation,
    /,
    id: str,
    content: str | None,
    expect: int | None,
    tags: Sequence[str],
    meta: str | None,
    **rest: Any,
) -> None:
    """Change an entry; earlier versions are kept.

    Only the given options change. --tag replaces all tags. The answer names other entries about the same thing.
    """
    patch = {name: value for name, value in rest.items() if value is not None}
    if content is not None:
        patch["content"] = text_or_stdin(content)
    if tags:
        patch["tags"] = list(tags)
    if meta is not None:
        patch["metadata"] = metadata(meta)
    result = cli.workspace().update(id, expect=expect, **patch)
    cli.emit(plain(result), lines.written(result))


@click.command(
    cls=CliCommand, examples=('lukasa forget 0197f2c1-7c1e-7d53-9c4b-1f6d3a2b8e90 --reason "no longer true"',)
)
@click.argument("id", type=ID)
@click.option("--reason", default="forgotten on request", show_default=True, help="Why; kept with the entry.")
@pass_invocation
def forget(cli: Invocation, id: str, reason: str) -> None:
    """Take an entry out of recall; its row and history stay."""
    done = cli.workspace().forget(id, reason)
    told = [line(good("forgotten "), done.id), line(dim(f"  `lukasa restore {done.id}` brings it back"))]
    cli.emit(_revised(done), [*told, *lines.consequences(done)])


@click.command(
    cls=CliCommand,
    examples=(
        "lukasa corroborate 0197f2c1-7c1e-7d53-9c4b-1f6d3a2b8e90",
        'lukasa corroborate 0197f2c1-7c1e-7d53-9c4b-1f6d3a2b8e90 --failed --reason "the guide says three"',
    ),
)
@click.argument("id", type=ID)
@click.option("--failed", is_flag=True, help="The check failed: what the entry says could not be confirmed.")
@click.option("--reason", default="", metavar="TEXT", help="What you checked it against; kept with the entry.")
@pass_invocation
def corroborate(cli: Invocation, id: str, failed: bool, reason: str) -> None:
    """Record that you checked an entry: it still holds, or the check failed.

    A confirmation renews the entry, also against the present versions of its documents. Failed checks in a row archive
    a fact, as the spec says; of a fact whose document has changed, the first one does.
    """
    done = cli.workspace().corroborate(id, "failed" if failed else "confirmed", reason)
    cli.emit(_revised(done) | {"outcome": done.outcome}, [*lines.checked(done), *lines.consequences(done)])


@click.command(
    cls=CliCommand,
    examples=(
        "lukasa restore 0197f2c1-7c1e-7d53-9c4b-1f6d3a2b8e90",
        "lukasa --data ~/memory restore /mnt/backups --at 2026-11-18",
    ),
)
@click.argument("id", type=ID, metavar="ID|DIR")
@click.option("--reason", default="restored on request", show_default=True, help="Why; kept with the entry.")
@click.option("--at", default=None, metavar="TIME", help="Of a folder of backups: the newest one that is not later.")
@pass_invocation
def restore(cli: Invocation, id: str, reason: str, at: str | None) -> None:
    """Bring a retired entry back, or all memory from a folder of backups.

    An entry counts as said now, so reads show it before other entries about the same thing. For a held entry use
    `lukasa accept`. With a folder, this is `lukasa backup restore`.
    """
    if is_backup_folder(id):
        import_module("lukasa.surfaces.cli.backup_commands").brought_back(cli, id, at, dry_run=False)
        return
    if at is not None:
        raise click.UsageError(f"{id!r} is no folder of backups, and --at is for one")
    done = cli.workspace().restore(id, reason)
    cli.emit(_revised(done), [line(good("active again "), done.id), *lines.consequences(done)])


@click.command(cls=CliCommand, examples=("lukasa accept 0197f2c1-7c1e-7d53-9c4b-1f6d3a2b8e90",))
@click.argument("id", type=ID)
@click.option("--reason", default="accepted by the author", show_default=True, help="Why; kept with the entry.")
@pass_invocation
def accept(cli: Invocation, id: str, reason: str) -> None:
    """Accept a held entry, so that reads find it.

    Text of unknown authorship then counts as imported. Only the author may accept, not an agent. `lukasa list --state
    held` lists held entries; `lukasa forget` rejects one.
    """
    done = cli.workspace().accept(id, reason)
    cli.emit(_revised(done), [line(good("accepted "), done.id), *lines.consequences(done)])


def _revised(done: Written) -> dict[str, Any]:
    """Return the entry as data, with the effects of its change on other entries."""
    entry: dict[str, Any] = plain(done.entry)
    return entry | {"replaces": list(done.replaces), "reopened": list(done.reopened), "beside": list(done.beside)}


@click.command(cls=CliCommand, examples=("lukasa history 0197f2c1-7c1e-7d53-9c4b-1f6d3a2b8e90",))
@click.argument("id", type=ID)
@pass_invocation
def history(cli: Invocation, id: str) -> None:
    """Show every version of an entry, who stated it again, and other entries about the same thing."""
    world = cli.workspace()
    found, related = world.history(id), world.related(id)
    told = {"confirmations": plain(related.confirmations), "rivals": plain(related.rivals)}
    cli.emit({"versions": plain(found), **told}, [*lines.versions(found), *lines.related(related)])


@click.command(cls=CliCommand, examples=("lukasa standing 0197f2c1-7c1e-7d53-9c4b-1f6d3a2b8e90",))
@click.argument("id", type=ID)
@pass_invocation
def standing(cli: Invocation, id: str) -> None:
    """Show an entry's relevance now, factor by factor."""
    found = cli.workspace().standing(id)
    cli.emit(plain(found), lines.standing(found))


@click.command(
    cls=CliCommand,
    examples=(
        "lukasa undo 0197f2c1-7c1e-7d53-9c4b-1f6d3a2b8e90",
        'lukasa undo --event 41 --reason "that was a mistake"',
    ),
)
@click.argument("id", type=ID, required=False)
@click.option("--event", type=int, metavar="SEQ", help="Undo the change of this event of the workspace.")
@click.option("--reason", default="undone on request", show_default=True, help="Why; kept with the change.")
@pass_invocation
def undo(cli: Invocation, id: str | None, event: int | None, reason: str) -> None:
    """Undo the last change of an entry, the change of an event, or a whole job.

    For the ID of an entry, its last change is undone as a new version, and entries that the change had retired are
    active again; so undoing a consolidated entry restores its sources. A second undo repeats the change. For the ID of
    a job, as `lukasa jobs` lists it, all changes of the job are undone; entries that were changed since stay as they
    are. For the ID of a proposal, its line leaves the curated document, and the proposal waits for review again. For
    the ID of an accepted submission, its document has its text of before, and the retired memories are active again.
    """
    if (id is None) == (event is None):
        raise click.UsageError("give either an ID or --event SEQ")
    done = cli.workspace().undo(event if event is not None else id or "", reason)
    cli.emit(plain(done), _undone(done))


def _undone(done: Undone) -> Iterator[Line]:
    if done.document:
        yield line(good("undone "), f"the change of document {done.document}; the submission waits again")
    if done.named:
        yield line(good("undone "), f"the last edit of {done.named}")
    for entry in done.entries:
        yield line(good("undone "), entry.id, f" is {entry.state}, version {entry.version}")
        yield line(dim(f"  {brief(entry.content)}"))
    if done.replaces:
        yield line(f"  it replaces {', '.join(done.replaces)}")
    for left in done.kept:
        yield line(warn("left   "), left.id, f": {left.reason}")
