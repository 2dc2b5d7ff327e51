"""Commands about the corpus: add documents, look things up in them, and follow folders."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import Any

import click

from lukasa.model.corpus import AddedFile, AddedFiles, Watch
from lukasa.model.entry import DocumentHead
from lukasa.service.corpus.documents import DocumentAbout
from lukasa.service.corpus.reading import MOST, USUAL, Stretch
from lukasa.service.corpus.search import Hit
from lukasa.service.workspace import Workspace
from lukasa.surfaces.cli import submission_commands
from lukasa.surfaces.cli.data import plain
from lukasa.surfaces.cli.invocation import Invocation, pass_invocation
from lukasa.surfaces.cli.lines import joined, when
from lukasa.surfaces.cli.options import ID, CliGroup
from lukasa.surfaces.cli.output import (
    FAILED,
    Line,
    bad,
    block,
    brief,
    colourful,
    dim,
    good,
    line,
    many,
    table,
    title,
    warn,
)

_SHOWN = 20  # files of one outcome that are listed
_NOTED = {"added": good, "changed": good, "removed": warn, "gone": warn, "failed": bad}
EMPTY = ("No documents yet.", "  add some: lukasa corpus add PATH")


@click.group(
    cls=CliGroup,
    examples=(
        "lukasa corpus add docs",
        'lukasa corpus search "how do we deploy on Fridays?"',
        "lukasa corpus read docs/deploys.md --section Fridays",
        "lukasa corpus watch docs",
    ),
)
def corpus() -> None:
    """Add documents, and look things up in them.

    Documents are searched apart from memory: a read never finds them, and this search never finds an entry. Only the
    owner adds; agents may search and read.
    """


corpus.add_command(submission_commands.submit)
corpus.add_command(submission_commands.submissions)


def _shelf(f: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that say where documents belong and what they are worth."""
    for option in (
        click.option("--standing", metavar="TEXT", help="What it is worth, such as canonical [default: reference]."),
        click.option("--weight", type=float, help="Its weight, from 0 to 1 [default: 1]."),
        click.option("--lifecycle", metavar="TEXT", help="Its stage, such as draft or current [default: current]."),
        click.option("--origin", metavar="TEXT", help="Where it comes from [default: file, or web for an address]."),
        click.option("--tag", "tags", multiple=True, metavar="TAG", help="A tag for its passages. Repeatable."),
        click.option("--collection", metavar="NAME", help="Its collection [default: documents]."),
    ):
        f = option(f)
    return f


def _given(shelf: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in shelf.items() if value is not None and value != ()}


@corpus.command(
    "add",
    examples=(
        "lukasa corpus add handbook.pdf --tag handbook",
        "lukasa corpus add docs src --collection project",
        "lukasa corpus add docs --prune",
        "lukasa corpus add ~/books --dry-run --json",
    ),
)
@click.argument("locations", nargs=-1, required=True, metavar="PATH|URL...")
@_shelf
@click.option("--prune", is_flag=True, help="Remove the documents whose files are gone from a folder.")
@click.option("--dry-run", is_flag=True, help="Read the files, say what would happen, and change nothing.")
@pass_invocation
def corpus_add(cli: Invocation, /, locations: Sequence[str], prune: bool, dry_run: bool, **shelf: Any) -> None:
    """Add files and whole folders: markdown, text, HTML, PDF, EPUB, source code.

    A folder under git gives the files that git does not ignore; another gives all but hidden and generated ones. Files
    that have not changed are skipped, so you can stop at any time and run it again. A file that cannot be read is
    listed, the others are added, and the exit code is 1.
    """
    workspace = cli.workspace()
    with _bar(cli) as tell:
        done = workspace.add_to_corpus(*locations, prune=prune, dry_run=dry_run, tell=tell, **_given(shelf))
    data = {
        "files": plain([one for one in done.files if one.outcome != "unchanged"]),
        "counts": done.counts,
        "skipped": dict(done.skipped),
        "dry_run": done.dry_run,
    }
    cli.emit(data, [*_added(done), *_vectors(workspace)])
    if done.of("failed"):
        click.get_current_context().exit(FAILED)


@contextmanager
def _bar(cli: Invocation) -> Iterator[Callable[[int, int, str], None] | None]:
    """Show a progress bar at a terminal; yield the function that is told of each file."""
    if cli.choices.json or not colourful(cli.choices.no_color):
        yield None
        return
    with import_module("lukasa.surfaces.cli.terminal").Bar("adding", None) as bar:
        seen = 0

        def tell(done: int, total: int, name: str) -> None:
            nonlocal seen
            bar.expect(total)
            bar.advance(done - seen)
            seen = done

        yield tell


def _vectors(workspace: Workspace) -> Iterator[Line]:
    """Say if passages wait for their vectors: few get them at once, and many later."""
    ctx = workspace.ctx
    if ctx.embedder is not None and ctx.local.unembedded_passages(ctx.embedder.model, 1):
        yield line(dim("  found by words; the worker adds vectors in time, and `lukasa embed` does it now"))


def _added(done: AddedFiles) -> Iterator[Line]:
    for outcome, style in _NOTED.items():
        found = [one for one in done.files if one.outcome == outcome]
        for one in found[:_SHOWN]:
            yield from _one(one, style, dry=done.dry_run)
        if len(found) > _SHOWN:
            yield line(dim(f"  … and {len(found) - _SHOWN:,} more {outcome}"))
    counts = ", ".join(f"{count:,} {outcome}" for outcome, count in done.counts.items()) or "no documents there"
    yield line(title("would be: " if done.dry_run else "done: "), counts)
    if done.skipped:
        yield line(dim(f"  left out: {', '.join(f'{count:,} {reason}' for reason, count in done.skipped.items())}"))
    if done.of("gone"):
        yield line(dim("  documents whose files are gone are still here; --prune removes them"))


def _one(one: AddedFile, style: Callable[[str], Any], *, dry: bool) -> Iterator[Line]:
    if one.outcome == "failed":
        yield line(style("failed "), one.location, f": {one.error}")
        yield line(dim(f"    {one.fix}"))
        return
    version = f"version {one.version}" if one.version else ""
    size = many(one.passages, "passage") if one.passages else ""
    yield line(style(f"{one.outcome} "), one.document, dim(f"  {joined(version, size)}"))
    for note in one.notes:
        yield line(dim(f"    {note}"))


@corpus.command(
    "search",
    examples=(
        'lukasa corpus search "who may deploy on a Friday?"',
        'lukasa corpus search "retry policy" --collection project --limit 3 --json',
    ),
)
@click.argument("query")
@click.option("--collection", "collections", multiple=True, metavar="NAME", help="Only this collection. Repeatable.")
@click.option("--tag", "tags", multiple=True, metavar="TAG", help="Only passages with this tag. Repeatable.")
@click.option("--document", "documents", multiple=True, metavar="ID", type=ID, help="Only this document. Repeatable.")
@click.option("--limit", type=click.IntRange(1, 100), default=5, show_default=True, help="At most so many passages.")
@pass_invocation
def corpus_search(cli: Invocation, /, query: str, limit: int, **filters: Any) -> None:
    """Find passages of documents, best first, with the place that each is from."""
    workspace = cli.workspace()
    found = workspace.search_corpus(query, limit=limit, **filters)
    hits = [{**plain(hit), "place": hit.place} for hit in found]
    cli.emit({"query": query, "hits": hits}, _hits(found, empty=not found and not workspace.collections()))


def _hits(found: Sequence[Hit], *, empty: bool) -> Iterator[Line]:
    if empty:
        yield from map(line, EMPTY)
    elif not found:
        yield line("No passage has these words.")
    for number, hit in enumerate(found):
        if number:
            yield line()
        yield _headline(hit.title, hit.place)
        yield from block(hit.text, "  ")
        worth = joined(hit.origin, hit.lifecycle, f"weight {hit.weight:g}", hit.standing)
        yield line(dim(f"  {hit.document}#{hit.number} version {hit.version}  {worth}"))


def _headline(called: str, place: str) -> Line:
    """Return the title of a document with a place in it; most places begin with the title."""
    rest = place.removeprefix(called).removeprefix(" › ").removeprefix(", ") if place.startswith(called) else place
    return line(title(called), f"  {rest}" if rest else "")


@corpus.command(
    "read",
    examples=(
        "lukasa corpus read docs/deploys.md",
        "lukasa corpus read docs/deploys.md --passage 12 --around 2",
        "lukasa corpus read handbook.pdf --page 7",
        "lukasa corpus read src/auth.py --line 40 --limit 2000",
    ),
)
@click.argument("document")
@click.option("--passage", type=click.IntRange(0), metavar="N", help="This passage, as a search numbers it (ID#N).")
@click.option(
    "--around", type=click.IntRange(0), default=1, show_default=True, help="With --passage: so many beside it."
)
@click.option("--section", metavar="HEADING", help="The section with this heading.")
@click.option("--page", type=click.IntRange(1), metavar="N", help="From this page on.")
@click.option("--line", "line_number", type=click.IntRange(1), metavar="N", help="From this line on.")
@click.option("--start", type=click.IntRange(0), metavar="N", help="From this passage on, to read further.")
@click.option(
    "--limit", type=click.IntRange(1, MOST), default=USUAL, show_default=True, help="At most so many characters."
)
@pass_invocation
def corpus_read(cli: Invocation, /, document: str, line_number: int | None, **where: Any) -> None:
    """Print a stretch of a document: from its beginning, or from a passage, section, page or line."""
    found = cli.workspace().read_document(document, line=line_number, **where)
    cli.emit({**plain(found), "place": found.place}, _stretch(found))


def _stretch(found: Stretch) -> Iterator[Line]:
    yield _headline(found.title, found.place)
    yield from block(found.text)
    worth = joined(found.origin, found.lifecycle, f"weight {found.weight:g}", found.standing)
    yield line(dim(f"  {found.document} version {found.version}  {worth}"))
    if found.next is not None:
        yield line(dim(f"  it goes on: --start {found.next}"))


@corpus.command("list", examples=("lukasa corpus list", "lukasa corpus list --collection project --json"))
@click.option("--collection", metavar="NAME", help="Only this collection.")
@click.option("--after", default="", metavar="ID", type=ID, help="Only documents behind this id, for the next page.")
@click.option("--limit", type=click.IntRange(1, 1000), default=100, show_default=True, help="At most this many.")
@pass_invocation
def corpus_list(cli: Invocation, collection: str | None, after: str, limit: int) -> None:
    """List the documents by id."""
    workspace = cli.workspace()
    found = workspace.documents(collection=collection, after=after, limit=limit)
    counts = workspace.collections()
    cli.emit({"documents": plain(found), "collections": counts}, _documents(found, counts, full=len(found) == limit))


def _documents(found: Sequence[DocumentHead], counts: dict[str, int], *, full: bool) -> Iterator[Line]:
    if not found and not counts:
        yield from map(line, EMPTY)
        return
    heads = ("id", "version", "collection", "origin", "lifecycle", "weight", "standing", "title")
    yield from table(
        heads,
        (
            (d.id, str(d.version), d.collection, d.origin, d.lifecycle, f"{d.weight:g}", d.standing, brief(d.title, 50))
            for d in found
        ),
    )
    yield line(dim(f"  {', '.join(f'{count:,} in {name}' for name, count in counts.items())}"))
    if full:
        yield line(dim(f"  more: --after {found[-1].id}"))


@corpus.command("show", examples=("lukasa corpus show docs/deploys.md",))
@click.argument("document")
@pass_invocation
def corpus_show(cli: Invocation, document: str) -> None:
    """Show what is known of a document: its source, its versions, and the entries that rest on it."""
    found = cli.workspace().about_document(document)
    cli.emit(plain(found), _about(found))


def _about(found: DocumentAbout) -> Iterator[Line]:
    head = found.head
    yield line(title(head.title), dim(f"  {head.id}"))
    worth = joined(head.origin, head.lifecycle, f"weight {head.weight:g}", head.standing)
    yield line(f"  {worth}  in {head.collection}")
    yield line(f"  version {head.version}, {many(found.passages, 'passage')}, {when(head.updated_at)}")
    if found.source is not None:
        yield line(f"  read from {found.source.location}", dim(f"  {found.source.media_type}"))
        for note in found.source.notes:
            yield line(dim(f"    {note}"))
    for entry in found.entries:
        yield line("  rests on it: ", brief(entry.content, 70), dim(f"  {entry.id}"))


@corpus.command("history", examples=("lukasa corpus history docs/deploys.md",))
@click.argument("document")
@pass_invocation
def corpus_history(cli: Invocation, document: str) -> None:
    """List every version of a document, also of one that was removed."""
    workspace = cli.workspace()
    found = workspace.document_history(document)
    submitted = {one.accepted: one for one in workspace.submissions(document=document, state="accepted")}
    rows = (
        (
            str(d.version),
            when(d.updated_at),
            "removed" if d.removed else d.lifecycle,
            f"submission {submitted[d.version].id}" if d.version in submitted else "",
            brief(d.title, 60),
        )
        for d in found
    )
    data = {"versions": plain(found), "submissions": plain(list(submitted.values()))}
    cli.emit(data, table(("version", "at", "stage", "from", "title"), rows))


@corpus.command("remove", examples=("lukasa corpus remove docs/deploys.md",))
@click.argument("documents", type=ID, nargs=-1, required=True, metavar="ID...")
@pass_invocation
def corpus_remove(cli: Invocation, documents: Sequence[str]) -> None:
    """Remove documents; entries that rest on one then show that it is gone. Their versions stay."""
    workspace = cli.workspace()
    gone = [workspace.remove_document(id) for id in documents]
    cli.emit({"removed": [one.id for one in gone]}, [line(good("removed "), one.id) for one in gone])


@corpus.command("watch", examples=("lukasa corpus watch docs", "lukasa corpus watch ~/notes --collection notes"))
@click.argument("folder")
@click.option("--collection", metavar="NAME", help="Collection of its new documents [default: documents].")
@pass_invocation
def corpus_watch(cli: Invocation, folder: str, collection: str | None) -> None:
    """Add a folder, and have the worker follow it.

    The worker looks every 5 minutes, and takes over what changed, came and went. A folder that is not there, or is
    empty all at once, keeps its documents: `lukasa corpus watches` then says what is wrong.
    """
    workspace = cli.workspace()
    with _bar(cli) as tell:
        begun, done = workspace.watch_folder(folder, collection=collection, tell=tell)
    told = [*_added(done), *_vectors(workspace), line(good("watching "), begun.location, dim("  while a worker runs"))]
    cli.emit({"watch": plain(begun), "counts": done.counts, "failed": plain(done.of("failed"))}, told)
    if done.of("failed"):
        click.get_current_context().exit(FAILED)


@corpus.command("unwatch", examples=("lukasa corpus unwatch docs",))
@click.argument("folder", type=ID, metavar="FOLDER|ID")
@pass_invocation
def corpus_unwatch(cli: Invocation, folder: str) -> None:
    """Follow a folder no longer. Its documents stay."""
    ended = cli.workspace().unwatch(folder)
    cli.emit(plain(ended), [line(good("no longer watching "), ended.location)])


@corpus.command("watches", examples=("lukasa corpus watches", "lukasa corpus watches --json"))
@pass_invocation
def corpus_watches(cli: Invocation) -> None:
    """List what the worker follows, when it last looked, and what is wrong."""
    found = cli.workspace().watches()
    cli.emit({"watches": plain(found)}, _watches(found))


def _watches(found: Sequence[Watch]) -> Iterator[Line]:
    if not found:
        yield line("Nothing is followed.")
        yield line(dim("  follow a folder: lukasa corpus watch FOLDER"))
        return
    heads = ("what", "kind", "collection", "looked at", "next")
    yield from table(
        heads, ((one.location, one.kind, one.collection, when(one.checked_at), when(one.due_at)) for one in found)
    )
    for one in found:
        if one.error:
            often = f" ({one.failures} times in a row)" if one.failures > 1 else ""
            yield line(warn(f"  {one.location}: "), f"{one.error}{often}")
