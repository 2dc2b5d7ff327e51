"""The command that brings memory in: an export of Lukasa, or what other programs remember."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

import click

from lukasa.app import past_reader
from lukasa.model.transcript import Progress
from lukasa.service.past.importing import Brought, Import
from lukasa.service.sessions.transcripts import KIND
from lukasa.storage.export_file import ExportFile
from lukasa.surfaces.cli.data import plain
from lukasa.surfaces.cli.export_commands import TRUSTS, clear_import, import_export
from lukasa.surfaces.cli.invocation import Invocation, pass_invocation
from lukasa.surfaces.cli.lines import when
from lukasa.surfaces.cli.options import CliCommand
from lukasa.surfaces.cli.output import Line, bad, brief, colourful, dim, good, line, many, table, title, warn

OWN = "lukasa"
_OBSERVED = ("observations_extracted", "allowed", "held", "discarded", "deduped")
_OUTCOMES = ("new", "stored", "held", "merged", "replaced", "discarded", "refused", "known")
_MOST_SHOWN = 10


@click.command(
    "import",
    cls=CliCommand,
    examples=(
        "lukasa import ~/.claude --dry-run",
        "lukasa import ~/Downloads/chatgpt-export.zip",
        "lukasa import memory.jsonl --tier account",
        "lukasa import ~/Vault --since 2026-01-01 --workspace notes",
        "lukasa import ./AGENTS.md --mine",
        "lukasa import backup.jsonl.gz --dry-run",
        "lukasa import novel.jsonl --into drafts",
    ),
)
@click.argument("path")
@click.option("--from", "format", default="", metavar="FORMAT", help="The format [default: recognised by itself].")
@click.option("--dry-run", is_flag=True, help="Say what would come in, with samples, and change nothing.")
@click.option("--since", metavar="DATE", help="Leave out what was said before, as in 2026-03-01.")
@click.option("--mine", is_flag=True, help="Count the rules of these files as your own words, which agents may act on.")
@click.option("--tier", metavar="NAME", help="Tier for memories and facts [default: as for put and observe].")
@click.option("--queue-only", is_flag=True, help="Store conversations and leave their observation to a worker.")
@click.option("--rules", is_flag=True, help="Observe conversations without a model.")
@click.option("--into", default="", metavar="NAME", help="Of an export: merge its one workspace into this one.")
@click.option(
    "--trust",
    type=click.Choice(list(TRUSTS)),
    help="Of an export: the most trust that merged entries may keep [default: author].",
)
@click.option(
    "--clear", is_flag=True, help="Of an export: remove what an interrupted import of it has left, and import nothing."
)
@click.option("--confirm", default="", metavar="DIGEST", help="Of an export: import only what a dry run has shown.")
@pass_invocation
def import_(
    cli: Invocation,
    /,
    path: str,
    format: str,
    dry_run: bool,
    into: str,
    trust: str | None,
    clear: bool,
    confirm: str,
    since: str | None,
    tier: str | None,
    **how: bool,
) -> None:
    """Import an export of Lukasa, or what other programs remember.

    PATH is a file, a folder or a zip as downloaded; its format is recognised. An export comes in as it was: a place
    without memory gets all of it with its event log; where memory is in use, what is here stays, and of two different
    texts both are kept. Of other programs, memories, notes and rules are kept word for word, and conversations are
    stored and observed. All of that counts as imported, and as said when it was said. What belongs to a project goes to
    its workspace, all else to `main`; --workspace puts everything into one. A second run changes nothing, and an
    interrupted one goes on.
    """
    if clear:
        if dry_run or into or confirm or since or tier or any(how.values()) or format not in ("", OWN):
            raise click.UsageError("--clear imports nothing; leave the other options out")
        clear_import(cli, path)
        return
    if format == OWN or into or confirm or trust or (not format and ExportFile.begins(Path(path).expanduser())):
        if since or tier or any(how.values()) or format not in ("", OWN):
            raise click.UsageError("an export of Lukasa comes in as it was; leave the options for other programs out")
        import_export(cli, path, dry_run, into, trust or "author", confirm)
        return
    named = format or past_reader().recognise(path)  # before memory is opened, and perhaps created
    if cli.choices.workspace is not None:
        cli.workspace()  # a mistyped name must not become a new, empty memory
    work = cli.memory.importing(
        path,
        format=named,
        workspace=cli.choices.workspace,
        since=since,
        tier=tier,
        mine=how["mine"],
        bind=cli.bound,
    )
    planned = work.plan()
    if dry_run:
        cli.emit(_data(planned), _plan(planned))
        return
    with _bar(cli, planned.found) as watch:
        done = work.run(watch)
    observed, failed = Counter[str](), list[str]()
    if not how["queue_only"]:
        observed, failed = _observe(cli, work, done, how["rules"])
    pending = _pending(work, done)
    data = _data(done) | {"observed": dict(observed), "failed": failed, "pending": pending}
    cli.emit(data, _told(done, observed, failed, pending))
    cli.fail(failed)


def _observe(cli: Invocation, work: Import, done: Brought, rules: bool) -> tuple[Counter[str], list[str]]:
    """Run the observation jobs that are due in the workspaces of an import."""
    counts, failed = Counter[str](), list[str]()
    for name in done.workspaces if done.conversations else ():
        worker = cli.memory.worker(chat="none" if rules else None, workspace=work.places.made(name), kinds=(KIND,))
        for run in worker.drain():
            if run.outcome == "done":
                counts.update({one: int(run.result.get(one, 0)) for one in _OBSERVED})
            elif run.outcome != "lost":
                failed.append(run.error)
    return counts, failed


def _pending(work: Import, done: Brought) -> int:
    """Return how many conversations of these workspaces wait to be observed."""
    names = done.workspaces if done.conversations else ()
    return sum(len(work.places.made(name).transcripts(progress=Progress.PENDING, limit=10_000)) for name in names)


@contextmanager
def _bar(cli: Invocation, total: int) -> Iterator[Callable[[], None]]:
    """Show a progress bar on a terminal; yield what advances it by one."""
    if cli.choices.json or not colourful(cli.choices.no_color):
        yield lambda: None
        return
    with import_module("lukasa.surfaces.cli.terminal").Bar("importing", total) as bar:
        yield lambda: bar.advance(1)


def _data(done: Brought) -> dict[str, Any]:
    return {
        "dry_run": done.dry_run,
        "format": done.format,
        "path": done.path,
        "memories": dict(done.memories),
        "conversations": dict(done.conversations),
        "messages": dict(done.messages),
        "workspaces": dict(done.workspaces),
        "earlier": done.earlier,
        "secrets": done.secrets,
        "skipped": plain(done.skipped),
        "passed_over": done.passed_over,
        "samples": plain(done.samples),
    }


def _plan(done: Brought) -> Iterator[Line]:
    yield line(title("would be imported"), f"  {done.format} from {done.path}")
    yield from _counts(done)
    yield from table(("things", "workspace"), ((f"{count:,}", name) for name, count in done.workspaces.items()))
    if done.samples:
        yield line()
    for sample in done.samples:
        yield line(dim(f"{sample.what}  {when(sample.said_at)}".rstrip()), "  ", title(brief(sample.text, 120)))
        yield line(dim(f"  {sample.file}, {sample.item}"))
    if done.secrets:
        yield line(warn(f"{done.secrets:,} secrets in memories would be replaced by marks"))
    yield from _left_out(done)


def _told(done: Brought, observed: Counter[str], failed: list[str], pending: int) -> Iterator[Line]:
    yield line(good("imported "), f"{done.format} from {done.path}")
    yield from _counts(done)
    if done.memories["held"]:
        yield line(dim("  `lukasa review` shows what is held"))
    if done.secrets:
        yield line(warn(f"  {done.secrets:,} secrets in memories were replaced by marks"))
    if observed:
        found, allowed = observed["observations_extracted"], observed["allowed"]
        yield line(good("observed "), f"{many(found, 'fact')} found, {allowed:,} stored, {observed['held']:,} held")
    if pending:
        yield line(dim(f"  {pending:,} conversations wait to be observed: `lukasa worker` does that"))
    for reason in failed[:_MOST_SHOWN]:
        yield line(bad("failed: "), brief(reason))
    for name in done.workspaces if len(done.workspaces) > 1 or "main" not in done.workspaces else ():
        yield line(dim(f"  {done.workspaces[name]:,} in workspace {name}"))
    yield from _left_out(done)


def _counts(done: Brought) -> Iterator[Line]:
    for what, counts in (
        ("memories", done.memories),
        ("conversations", done.conversations),
        ("messages", done.messages),
    ):
        if counts:
            told = (
                f"{counts[name]:,} {'known already' if name == 'known' else name}" for name in _OUTCOMES if counts[name]
            )
            yield line(f"  {what}: {', '.join(told) or 'none'}")
    if not done.found:
        yield line("  nothing was found in it")


def _left_out(done: Brought) -> Iterator[Line]:
    if done.earlier:
        yield line(dim(f"  {done.earlier:,} from before that day are left out"))
    for one in done.skipped[:_MOST_SHOWN]:
        yield line(warn("skipped "), one.file, dim(f"  {brief(one.reason)}"))
    if done.passed_over > _MOST_SHOWN:
        yield line(dim(f"  and {done.passed_over - _MOST_SHOWN:,} more files"))
