"""Commands that keep records of work: the structured log (slog) and decision records (adr)."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Sequence
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar

import click

from lukasa.app import open_decisions
from lukasa.curated.adr import Decision, Fault
from lukasa.curated.slog import LogPage
from lukasa.model.database_url import masked
from lukasa.service.curation.decision_records import Decisions
from lukasa.surfaces.cli.data import plain
from lukasa.surfaces.cli.invocation import Invocation, pass_invocation, text_or_stdin
from lukasa.surfaces.cli.lines import joined, when
from lukasa.surfaces.cli.options import Choices, CliGroup
from lukasa.surfaces.cli.output import Line, bad, block, brief, dim, good, line, table, warn


@click.group(
    cls=CliGroup, examples=('lukasa slog write deploy gateway "v1.4 on both hosts"', "lukasa slog query --tool gateway")
)
def slog() -> None:
    """Write and query a structured log of work.

    The log is the file log.jsonl in the workspace's folder, with one JSON object a line. Entries are only added. A spec
    can keep it in the repository of the curated document.
    """


@slog.command(
    "write",
    examples=(
        'lukasa slog write deploy gateway "v1.4 on both hosts" --reason "fixes the retry storm"',
        "… | lukasa slog write debug worker -",
    ),
)
@click.argument("action")
@click.argument("tool")
@click.argument("detail")
@click.option("--reason", default="", metavar="TEXT", help="Why it was done.")
@pass_invocation
def slog_write(cli: Invocation, action: str, tool: str, detail: str, reason: str) -> None:
    """Add an entry.

    ACTION is a verb (install, deploy, fix), TOOL the thing it was done to, DETAIL a description; - reads it from stdin.
    """
    made = cli.workspace().slog.write(action, tool, text_or_stdin(detail), reason=reason)
    links = {
        "self": _follow_up(cli, "query", action=action, tool=tool, limit=1),
        "tool": _follow_up(cli, "query", tool=tool),
        "tail": _follow_up(cli, "tail"),
    }
    entry = {key: value for key, value in plain(made).items() if key != "number"}
    cli.emit({"entry": entry, "links": links}, [line(good("logged "), f"{action} {tool}")])


@slog.command(
    "query",
    examples=("lukasa slog query --tool gateway --since 2026-11-01", 'lukasa slog query --grep "retry" --json'),
)
@click.option("--action", metavar="VERB", help="Only this action.")
@click.option("--tool", metavar="NOUN", help="Only this tool.")
@click.option("--since", metavar="TIME", help="Only at or after this time, such as 2026-11-15 or 2026-11-15T09:30.")
@click.option("--until", metavar="TIME", help="Only before this time.")
@click.option("--grep", metavar="TEXT", help="Only with this text in the detail or the reason, ignoring case.")
@click.option("--before", type=int, metavar="NUMBER", help="Only entries before this number, for the next page.")
@click.option("--limit", type=click.IntRange(1, 1000), default=20, show_default=True, help="At most this many.")
@pass_invocation
def slog_query(cli: Invocation, /, **conditions: Any) -> None:
    """Find entries, newest first."""
    _log_answer(cli, "query", conditions)


@slog.command("tail", examples=("lukasa slog tail", "lukasa slog tail --limit 50"))
@click.option("--limit", type=click.IntRange(1, 1000), default=10, show_default=True, help="At most this many.")
@pass_invocation
def slog_tail(cli: Invocation, limit: int) -> None:
    """Show the latest entries."""
    _log_answer(cli, "tail", {"limit": limit})


def _log_answer(cli: Invocation, verb: str, conditions: dict[str, Any]) -> None:
    page = cli.workspace().slog.query(**conditions)
    links = {"self": _follow_up(cli, verb, **conditions)}
    if page.more:
        links["next"] = _follow_up(cli, "query", **{**conditions, "before": page.entries[-1].number})
    links["write"] = _follow_up(cli, "write") + " ACTION TOOL DETAIL --reason TEXT"
    data = {"entries": plain(page.entries), "count": len(page.entries), "skipped": list(page.skipped), "links": links}
    cli.emit(data, _log_lines(page, links))


def _follow_up(cli: Invocation, verb: str, **options: Any) -> str:
    """Return a complete command that works in the same memory."""
    words = ["lukasa", *_memory_options(cli.choices), "slog", verb]
    for name, value in options.items():
        if value is not None:
            words += [f"--{name}", str(value)]
    return " ".join(shlex.quote(word) for word in (*words, "--json"))


def _memory_options(choices: Choices) -> list[str]:
    named = (
        ("--data", choices.data),
        ("--database", masked(choices.database or "")),
        ("--account-name", choices.account_name),
        ("--workspace", choices.workspace),
    )
    return [word for option, value in named if value for word in (option, value)]


def _log_lines(page: LogPage, links: dict[str, str]) -> Iterator[Line]:
    if not page.entries:
        yield line("No such entry.")
    else:
        rows = (
            (str(e.number), when(e.timestamp), e.action, e.tool, brief(e.detail, 80), brief(e.reason, 60))
            for e in page.entries
        )
        yield from table(("no.", "at", "action", "tool", "detail", "reason"), rows)
    if page.more:
        yield line(dim(f"  older ones: {links['next'].removesuffix(' --json')}"))
    if page.skipped:
        told = ", ".join(str(number) for number in page.skipped[:10])
        yield line(warn(f"  {len(page.skipped)} lines are not valid entries and were skipped: {told}"))


R = TypeVar("R")
FOLDER = "docs/decisions"
FAULTY = 3


@click.group(
    cls=CliGroup, examples=('lukasa adr new "One writer for each file"', "lukasa adr list", "lukasa adr check")
)
def adr() -> None:
    """Write, list and check decision records.

    They are markdown files in docs/decisions of the current folder, or in --dir. With --workspace, they are those that
    the workspace keeps beside its curated document, if its spec says so.
    """


def _in_folder(f: Callable[..., R]) -> Callable[..., R]:
    """Add `--dir`, and pass its records to the command, which gets the invocation first."""

    @pass_invocation
    @click.option("--dir", "folder", metavar="DIR", help=f"Folder of the records, by default {FOLDER}.")
    @wraps(f)
    def call(cli: Invocation, /, *args: Any, folder: str | None, **kwargs: Any) -> R:
        return f(cli, *args, records=_records(cli, folder), **kwargs)

    return call


def _records(cli: Invocation, folder: str | None) -> Decisions:
    """Return the records of a folder; without one, those that the chosen workspace keeps, or of the usual folder."""
    if folder is None and cli.choices.workspace is not None:
        world = cli.workspace()
        if world.ctx.decisions is not None:
            return world.decisions
    return open_decisions(Path(folder if folder is not None else FOLDER))


@adr.command(
    "new",
    examples=('lukasa adr new "One writer for each file" --decider ada', 'lukasa adr new "Two writers" --supersedes 7'),
)
@click.argument("title")
@click.option("--status", default="proposed", show_default=True, metavar="WORD", help="Its first status.")
@click.option("--decider", "deciders", multiple=True, metavar="NAME", help="A person who decides. Repeatable.")
@click.option("--tag", "tags", multiple=True, metavar="TAG", help="A tag. Repeatable.")
@click.option("--supersedes", type=int, multiple=True, metavar="N", help="A record that it replaces. Repeatable.")
@_in_folder
def adr_new(cli: Invocation, /, title: str, records: Decisions, **fields: Any) -> None:
    """Create a record with the next number; numbers of deleted records are not used again."""
    made = records.new(title, **fields)
    cli.emit(_decision_data(records, made), [line(good("made "), str(records.folder.path / made.file))])


def _decision_data(records: Decisions, decision: Decision) -> dict[str, Any]:
    return {**plain(decision), "path": str(records.folder.path / decision.file)}


@adr.command("list", examples=("lukasa adr list", "lukasa adr list --dir decisions --status accepted"))
@click.option("--status", metavar="WORD", help="Only records with this status.")
@_in_folder
def adr_list(cli: Invocation, status: str | None, records: Decisions) -> None:
    """List the records by number."""
    found = [d for d in records.all() if status in (None, d.status)]
    cli.emit({"decisions": [_decision_data(records, d) for d in found]}, _decisions(found))


def _decisions(found: Sequence[Decision]) -> Iterator[Line]:
    if not found:
        yield line("No decision here yet.")
        yield line(dim("  `lukasa adr new TITLE` makes one"))
        return
    rows = ((f"{d.number:04d}", d.status, d.date, d.title, _superseded_by(d)) for d in found)
    yield from table(("no.", "status", "date", "title", ""), rows)


def _superseded_by(d: Decision) -> str:
    return f"superseded by {', '.join(f'{n:04d}' for n in d.superseded_by)}" if d.superseded_by else ""


@adr.command("show", examples=("lukasa adr show 7",))
@click.argument("number", type=int)
@_in_folder
def adr_show(cli: Invocation, number: int, records: Decisions) -> None:
    """Print a record."""
    decision, text = records.get(number)
    cli.emit({**_decision_data(records, decision), "text": text}, block(text))


@adr.command("status", examples=("lukasa adr status 7 accepted", "lukasa adr status 3 superseded --by 7"))
@click.argument("number", type=int)
@click.argument("status")
@click.option("--by", type=int, metavar="N", help="The record that supersedes it; both records then name each other.")
@_in_folder
def adr_status(cli: Invocation, number: int, status: str, by: int | None, records: Decisions) -> None:
    """Set a record's status: proposed, accepted, shipped, superseded, deprecated or rejected."""
    changed = records.set_status(number, status, by=by)
    told = line(good(f"{changed.number:04d} "), joined(changed.status, _superseded_by(changed), changed.title))
    cli.emit(_decision_data(records, changed), [told])


@adr.command("check", examples=("lukasa adr check", "lukasa adr check decisions"))
@click.argument("folder", required=False, metavar="[DIR]")
@click.pass_context
@pass_invocation
def adr_check(cli: Invocation, ctx: click.Context, folder: str | None) -> None:
    """Check names, numbers, front matter and cross references. Exit code 3 if something is wrong."""
    found = _records(cli, folder).check()
    cli.emit({"fits": not found, "faults": plain(found)}, _decision_faults(found))
    if found:
        ctx.exit(FAULTY)


def _decision_faults(found: Sequence[Fault]) -> Iterator[Line]:
    if not found:
        yield line(good("✓ "), "every record is valid, and all references match")
    for fault in found:
        yield line(bad("✗ "), f"{fault.file}: {fault.what}")
        yield line(dim(f"    {fault.fix}"))
