"""The commands that write all memory to a file, and bring such a file in."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any, BinaryIO, cast

import click

from lukasa.app import DEFAULT_WORKSPACE, clear_whole, import_whole, open_export
from lukasa.model.errors import InvalidInput
from lukasa.model.values import Trust
from lukasa.service.admin.portable import ImportPlan, StorePlan, What, Whole
from lukasa.storage.export_file import ExportFile, Written
from lukasa.surfaces.cli.data import plain
from lukasa.surfaces.cli.invocation import Invocation, pass_invocation
from lukasa.surfaces.cli.options import CliCommand
from lukasa.surfaces.cli.output import Line, colourful, dim, encode, good, line, many, table, title, warn

TRUSTS = {trust.name.lower(): trust for trust in Trust}
_SECTIONS = {"new": "new", "both": "both kept", "left": "left out", "known": "here already"}


@click.command(
    cls=CliCommand,
    examples=(
        "lukasa export --all memory.jsonl.gz",
        "lukasa -w novel export novel.jsonl",
        "lukasa export --all - | gzip > memory.jsonl.gz",
        "lukasa -w novel export --as markdown novel-pages",
        "lukasa export --schema",
    ),
)
@click.argument("file", required=False)
@click.option(
    "--account", is_flag=True, help="Only what the account's own store holds: its tiers, workspaces and grants."
)
@click.option("--all", "everything", is_flag=True, help="The account and all workspaces.")
@click.option("--vectors", is_flag=True, help="Vectors too; without them, they are computed again after an import.")
@click.option("--as", "form", type=click.Choice(["jsonl", "markdown"]), default="jsonl", help="The form of the export.")
@click.option("--sensitive", is_flag=True, help="With --as markdown, show the texts of sensitive entries too.")
@click.option("--schema", is_flag=True, help="Print the JSON Schema of the format, and export nothing.")
@pass_invocation
def export(
    cli: Invocation,
    file: str | None,
    account: bool,
    everything: bool,
    vectors: bool,
    form: str,
    sensitive: bool,
    schema: bool,
) -> None:
    """Write a workspace, or all memory, to a file.

    The form is JSON Lines, with every version, the event log and the documents; docs/reference/export-format.md
    describes it. A name that ends in .gz or .zst packs it, - is stdout. Only its owner can read the file: it holds
    sensitive texts as they are. With --as markdown, FILE is a folder of pages to read.
    """
    if schema:
        made = import_module("lukasa.storage.export_schema").schema()
        sys.stdout.write(encode(made) + "\n")
        return
    if file is None:
        raise click.UsageError("name the file to write, or - for stdout")
    if account and everything:
        raise click.UsageError("give --account or --all, not both")
    what: What = "all" if everything else "account" if account else "workspace"
    name = "" if what != "workspace" else (cli.choices.workspace or DEFAULT_WORKSPACE)
    if form == "markdown":
        if what != "workspace" or vectors:
            raise click.UsageError("--as markdown writes the pages of one workspace; leave the other options out")
        pages = cli.memory.portable.pages(Path(file).expanduser(), name, sensitive=sensitive)
        cli.emit(
            plain(pages),
            [line(good("wrote "), f"{many(pages.pages, 'page')} of {many(pages.entries, 'entry')} to {pages.folder}")],
        )
        return
    portable = cli.memory.portable
    if file == "-":
        portable.write(cast("BinaryIO", sys.stdout.buffer), what=what, workspace=name, vectors=vectors)
        return
    with _bar(cli, "exporting", None) as tell:
        done = portable.save(Path(file).expanduser(), what=what, workspace=name, vectors=vectors, tell=tell)
    cli.emit({"file": file, **plain(done)}, _written(file, done))


def _written(file: str, done: Written) -> Iterator[Line]:
    entries, events = done.counts.get("entries", 0), done.counts.get("events", 0)
    yield line(good("wrote "), file, dim(f"  {many(done.lines, 'line')} of {many(done.stores, 'store')}"))
    yield line(dim(f"  {many(entries, 'entry')} and {many(events, 'event')}; only you can read the file"))
    if done.sensitive:
        yield line(warn("! "), f"{done.sensitive:,} sensitive texts are in it as they are: keep the file safe")


def import_export(cli: Invocation, file: str, dry_run: bool, into: str, trust: str, confirm: str) -> None:
    """Bring in a file of `lukasa export`.

    A place without memory gets all of it as it was, with its event log. In memory that is in use, workspaces that are
    not here come in whole, and others are merged: what is here already stays, and of two different texts both are kept.
    An import that was interrupted goes on when it is given again.
    """
    with _opened(cli, file) as found:
        if not (into or dry_run or confirm) and trust == "author":
            with _bar(cli, "importing", 2 * found.survey.lines) as tell:
                whole = import_whole(cli.settings, found, tell)
            if whole is not None:
                cli.emit(_whole_data(found, whole), _whole(found, whole))
                return
        portable, most = cli.memory.portable, TRUSTS[trust]
        with _bar(cli, "reading" if dry_run else "importing", None) as tell:
            if dry_run:
                done = portable.plan(found, into=into, trust=most, tell=tell)
            else:
                done = portable.run(found, into=into, trust=most, confirm=confirm, tell=tell)
        cli.emit(plain(done), told(done))


def clear_import(cli: Invocation, file: str) -> None:
    """Remove what an interrupted import of an export has left, and import nothing."""
    with _opened(cli, file) as found:
        names = ["all memory"] if clear_whole(cli.settings, found) else cli.memory.portable.clear(found)
    said = f"removed what an interrupted import has left of {', '.join(names)}"
    cli.emit({"cleared": names}, [line(said if names else "no interrupted import has left anything")])


@contextmanager
def _opened(cli: Invocation, file: str) -> Iterator[ExportFile]:
    if file == "-":
        raise InvalidInput("an import reads its file twice, and stdin can be read once", fix="name a file")
    path = Path(file).expanduser()
    size = path.stat().st_size if path.is_file() else None
    told = 0
    with _bar(cli, "verifying", size) as advance:

        def tell(offset: int) -> None:
            nonlocal told
            advance(offset - told)
            told = offset

        opened = open_export(path, tell)
    with opened:
        yield opened


@contextmanager
def _bar(cli: Invocation, label: str, total: int | None) -> Iterator[Callable[[int], None]]:
    """Show a progress bar on a terminal; yield the function that advances it."""
    if cli.choices.json or not (sys.stderr.isatty() and colourful(cli.choices.no_color)):
        yield lambda steps: None
        return
    with import_module("lukasa.surfaces.cli.terminal").Bar(label, total) as bar:
        yield bar.advance


def _whole_data(found: ExportFile, whole: Whole) -> dict[str, Any]:
    survey = found.survey
    return {"file": found.name, "way": "whole", "rows": whole.rows, "resumed": whole.resumed, "counts": survey.counts}


def _whole(found: ExportFile, whole: Whole) -> Iterator[Line]:
    entries, events = found.survey.counts.get("entries", 0), found.survey.counts.get("events", 0)
    yield line(good("imported "), f"{many(whole.rows, 'row')} of {many(len(found.stores), 'store')}, as they were")
    yield line(dim(f"  {many(entries, 'entry')} and {many(events, 'event')}; the logs end with the same digests"))
    if whole.resumed:
        yield line(dim(f"  {whole.resumed:,} rows were there from an earlier attempt"))
    if found.survey.counts.get("grants"):
        yield line(
            dim("  grants came without their credentials: nobody can use them; `lukasa grant create` makes new ones")
        )
    yield from _follows(found.survey.counts.get("watches", 0))
    if not found.vectors and entries:
        yield line(dim("  `lukasa embed` computes the vectors"))


def _follows(count: int) -> Iterator[Line]:
    """Say that folders and feeds are followed from now on, because a file says so."""
    if count:
        yield line(
            warn("! "), f"{count:,} folders or feeds of the file are followed here: `lukasa corpus watches` lists them"
        )


def told(plan: ImportPlan) -> Iterator[Line]:
    """Tell what an import did, or would do."""
    yield line(title("imported" if plan.done else "would be imported"), f"  from {plan.file}, made {plan.made_at[:19]}")
    for store in plan.stores:
        yield from _store(store)
    trusts = ", ".join(f"{count:,} {name}" for name, count in plan.trusts.items())
    if trusts:
        yield line(dim(f"  trust of the entries in the file: {trusts}"))
    if plan.sensitive:
        yield line(warn("! "), f"sensitive in the file: {many(plan.sensitive, 'entry')}")
    if not plan.done:
        yield line(dim("  accept exactly this with "), f"--confirm {plan.digest}")
    elif plan.total("new", "both"):
        yield line(dim("  `lukasa embed` computes the vectors that are missing"))


def _store(store: StorePlan) -> Iterator[Line]:
    how = "comes in whole, with its event log" if store.way == "whole" else "is merged"
    yield line(good(store.name), f"  {how}")
    if store.way == "whole":
        yield from table(("rows", "of"), ((f"{of.get('new', 0):,}", kind) for kind, of in store.counts.items()))
        yield from _follows(store.counts.get("watches", {}).get("new", 0))
        return
    rows = ((kind, *(f"{of.get(key, 0):,}" for key in _SECTIONS)) for kind, of in store.counts.items())  # type: ignore[call-overload]
    yield from table(("of", *_SECTIONS.values()), rows)
    for sample in store.samples:
        why = f" ({sample.why})" if sample.why else ""
        yield line(dim(f"  {_SECTIONS[sample.outcome]}: "), f"{sample.kind}, line {sample.line}: {sample.what}{why}")
