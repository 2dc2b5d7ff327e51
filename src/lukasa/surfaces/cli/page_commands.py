"""Commands about pages and documents: named, document, action."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import Any

import click

from lukasa.model.entry import DocumentHead, NamedEntry
from lukasa.model.errors import InvalidInput, NotFound
from lukasa.service.workspace import Workspace
from lukasa.surfaces.cli.data import plain
from lukasa.surfaces.cli.invocation import Invocation, pass_invocation, read_text
from lukasa.surfaces.cli.lines import joined, when
from lukasa.surfaces.cli.options import ID, CliGroup
from lukasa.surfaces.cli.output import Line, block, brief, dim, good, line, many, table, title


@click.group(cls=CliGroup, examples=("lukasa named show VOICE", "lukasa named edit VOICE"))
def named() -> None:
    """Show and edit named entries: the pages that every context loads, such as VOICE and SOUL."""


@named.command("list", examples=("lukasa named list",))
@pass_invocation
def named_list(cli: Invocation) -> None:
    """List the named entries of this workspace and of the account."""
    found = cli.workspace().named()
    rows = ((n.name, n.tier, str(n.version), when(n.edited_at), brief(n.body, 60)) for n in found)
    cli.emit({"named": plain(found)}, table(("name", "tier", "version", "edited", "text"), rows))


@named.command("show", examples=("lukasa named show SOUL",))
@click.argument("name")
@pass_invocation
def named_show(cli: Invocation, name: str) -> None:
    """Print a named entry."""
    found = cli.workspace().get_named(name)
    cli.emit(plain(found), block(found.body))


@named.command(
    "edit",
    examples=(
        "lukasa named edit VOICE",
        "lukasa named edit STYLE --file style.md",
        "… | lukasa named edit SOUL --file -",
    ),
)
@click.argument("name")
@click.option("--file", metavar="FILE", help="Take the text from a file; - reads it from stdin [default: $EDITOR].")
@click.option("--tier", metavar="NAME", help="Tier of a new page: workspace or account.")
@click.option(
    "--expect", type=int, metavar="VERSION", help="Edit only if the page is still at this version (0: if it is new)."
)
@pass_invocation
def named_edit(cli: Invocation, name: str, file: str | None, tier: str | None, expect: int | None) -> None:
    """Write a named entry, or create one; every earlier text is kept.

    Only you can edit these pages: agents read them, and are refused here.
    """
    workspace = cli.workspace()
    before = _before(workspace, name)
    if file is not None:
        body: str | None = read_text(file)
    else:
        body, expect = _from_editor(before), expect if expect is not None else before.version if before else 0
    if body is None or (before is not None and body == before.body):
        cli.emit({"changed": False, "named": plain(before)}, [line("Nothing changed.")])
        return
    made = workspace.edit_named(name, body, tier=tier, expect=expect)
    told = line(good("saved "), made.name, dim(f"  {joined(made.tier, f'version {made.version}')}"))
    cli.emit({"changed": True, "named": plain(made)}, [told])


def _before(workspace: Workspace, name: str) -> NamedEntry | None:
    try:
        return workspace.get_named(name)
    except NotFound:
        return None


def _from_editor(before: NamedEntry | None) -> str | None:
    if not sys.stdin.isatty():
        raise InvalidInput(
            "there is no terminal for an editor", fix="give the text with --file FILE, or --file - for stdin"
        )
    edited = click.edit(f"{before.body}\n" if before else "", extension=".md")
    return edited.removesuffix("\n") if edited is not None else None


@named.command("history", examples=("lukasa named history VOICE",))
@click.argument("name")
@pass_invocation
def named_history(cli: Invocation, name: str) -> None:
    """Show every text of a named entry."""
    found = cli.workspace().named_history(name)
    cli.emit({"versions": plain(found)}, _named_versions(found))


def _named_versions(found: Sequence[NamedEntry]) -> Iterator[Line]:
    for version in found:
        yield line(title(f"version {version.version}"), dim(f"  {joined(when(version.edited_at), version.editor)}"))
        yield from block(version.body, "  ")


@click.group(cls=CliGroup, examples=("lukasa document add style-guide guide.md", 'lukasa put "…" --link style-guide'))
def document() -> None:
    """Add, list, show and remove documents that entries can link to.

    An entry that is based on a document links to it; a read shows the document's present status.
    """


@document.command(
    "add",
    examples=("lukasa document add style-guide guide.md --title 'Style guide'", "… | lukasa document add notes -"),
)
@click.argument("id")
@click.argument("file")
@click.option("--collection", metavar="NAME", help="Its collection, which a spec's non-mirror list may name.")
@click.option("--title", metavar="TEXT", help="Its title [default: its id].")
@click.option("--origin", metavar="TEXT", help="Its origin [default: author].")
@click.option("--lifecycle", metavar="TEXT", help="Its stage, such as draft or current [default: current].")
@click.option("--weight", type=float, help="Its weight, from 0 to 1 [default: 1].")
@click.option("--standing", metavar="TEXT", help="Its standing, such as canonical [default: canonical].")
@pass_invocation
def document_add(cli: Invocation, /, id: str, file: str, **axes: Any) -> None:
    """Add a document, or a new version of it. FILE may be - for stdin."""
    given = {name: value for name, value in axes.items() if value is not None}
    made = cli.workspace().save_document(id, read_text(file), **given)
    cli.emit(plain(made), [line(good("saved "), made.id, dim(f"  version {made.version}"))])


@document.command("list", examples=("lukasa document list",))
@pass_invocation
def document_list(cli: Invocation) -> None:
    """List the documents of a workspace."""
    found = cli.workspace().documents(limit=1000)
    cli.emit({"documents": plain(found)}, _documents(found))


def _documents(found: Sequence[DocumentHead]) -> Iterator[Line]:
    if not found:
        yield line("No document here yet.")
        yield line(dim("  `lukasa document add ID FILE` adds one"))
        return
    heads = ("id", "version", "origin", "lifecycle", "standing", "title")
    yield from table(heads, ((d.id, str(d.version), d.origin, d.lifecycle, d.standing, d.title) for d in found))


@document.command("show", examples=("lukasa document show style-guide",))
@click.argument("id", type=ID)
@pass_invocation
def document_show(cli: Invocation, id: str) -> None:
    """Print a document."""
    found = cli.workspace().get_document(id)
    cli.emit(plain(found), block(found.body))


@document.command("remove", examples=("lukasa document remove style-guide",))
@click.argument("id", type=ID)
@pass_invocation
def document_remove(cli: Invocation, id: str) -> None:
    """Remove a document; entries that link to it then show that it is gone."""
    gone = cli.workspace().remove_document(id)
    cli.emit(plain(gone), [line(good("removed "), gone.id)])


@click.group(cls=CliGroup, examples=("lukasa action link release-1.4 ID",))
def action() -> None:
    """Link an action to the entries that it rests on."""


@action.command("link", examples=('lukasa action link release-1.4 ID ID --description "shipped on this advice"',))
@click.argument("name", metavar="ACTION")
@click.argument("ids", type=ID, nargs=-1, required=True, metavar="ID...")
@click.option("--description", default="", metavar="TEXT", help="The action in words.")
@pass_invocation
def action_link(cli: Invocation, name: str, ids: Sequence[str], description: str) -> None:
    """Link an action to the entries it rests on; their rows can no longer be removed."""
    cli.workspace().link_action(name, ids, description)
    cli.emit({"action": name, "entries": list(ids)}, [line(good("linked "), f"{name} to {many(len(ids), 'entry')}")])
