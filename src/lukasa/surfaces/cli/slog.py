"""Verbs about the structured log. Its JSON answers carry the commands that lead on from there."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from typing import Any

import click

from lukasa.curated.slog import LogPage
from lukasa.surfaces.cli.data import plain
from lukasa.surfaces.cli.lines import when
from lukasa.surfaces.cli.options import Choices, Family
from lukasa.surfaces.cli.output import Line, brief, dim, good, line, table, warn
from lukasa.surfaces.cli.session import Session, pass_session, text_or_stdin


@click.group(
    cls=Family, examples=('lukasa slog write deploy gateway "v1.4 on both hosts"', "lukasa slog query --tool gateway")
)
def slog() -> None:
    """Keep a structured log of what was done and why.

    One JSON object a line, in log.jsonl of the workspace's folder. It is only ever added to.
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
@pass_session
def slog_write(session: Session, action: str, tool: str, detail: str, reason: str) -> None:
    """Add an entry.

    ACTION is a verb (install, deploy, fix), TOOL the noun it was done to, DETAIL what was done; - reads it from stdin.
    """
    made = session.workspace().slog.write(action, tool, text_or_stdin(detail), reason=reason)
    links = {
        "self": _call(session, "query", action=action, tool=tool, limit=1),
        "tool": _call(session, "query", tool=tool),
        "tail": _call(session, "tail"),
    }
    entry = {key: value for key, value in plain(made).items() if key != "number"}
    session.emit({"entry": entry, "links": links}, [line(good("logged "), f"{action} {tool}")])


@slog.command(
    "query",
    examples=("lukasa slog query --tool gateway --since 2026-11-01", 'lukasa slog query --grep "retry" --json'),
)
@click.option("--action", metavar="VERB", help="Only this action.")
@click.option("--tool", metavar="NOUN", help="Only this tool.")
@click.option("--since", metavar="TIME", help="Not before this time, such as 2026-11-15 or 2026-11-15T09:30.")
@click.option("--until", metavar="TIME", help="Before this time.")
@click.option("--grep", metavar="TEXT", help="Only with this text in the detail or the reason, in any case.")
@click.option("--before", type=int, metavar="NUMBER", help="Only entries before this one: the next page.")
@click.option("--limit", type=click.IntRange(1, 1000), default=20, show_default=True, help="At most this many.")
@pass_session
def slog_query(session: Session, /, **conditions: Any) -> None:
    """Find entries, newest first."""
    _answer(session, "query", conditions)


@slog.command("tail", examples=("lukasa slog tail", "lukasa slog tail --limit 50"))
@click.option("--limit", type=click.IntRange(1, 1000), default=10, show_default=True, help="At most this many.")
@pass_session
def slog_tail(session: Session, limit: int) -> None:
    """Show the latest entries."""
    _answer(session, "tail", {"limit": limit})


def _answer(session: Session, verb: str, conditions: dict[str, Any]) -> None:
    page = session.workspace().slog.query(**conditions)
    links = {"self": _call(session, verb, **conditions)}
    if page.more:
        links["next"] = _call(session, "query", **{**conditions, "before": page.entries[-1].number})
    links["write"] = _call(session, "write") + " ACTION TOOL DETAIL --reason TEXT"
    data = {"entries": plain(page.entries), "count": len(page.entries), "skipped": list(page.skipped), "links": links}
    session.emit(data, _lines(page, links))


def _call(session: Session, verb: str, **options: Any) -> str:
    """A command that can be run as it stands, wherever this one was run from."""
    words = ["lukasa", *_place(session.choices), "slog", verb]
    for name, value in options.items():
        if value is not None:
            words += [f"--{name}", str(value)]
    return " ".join(shlex.quote(word) for word in (*words, "--json"))


def _place(choices: Choices) -> list[str]:
    named = (("--data", choices.data), ("--workspace", choices.workspace))
    return [word for option, value in named if value for word in (option, value)]


def _lines(page: LogPage, links: dict[str, str]) -> Iterator[Line]:
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
        yield line(warn(f"  {len(page.skipped)} lines hold no whole entry and were passed over: {told}"))
