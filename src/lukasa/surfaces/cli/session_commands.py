"""Commands about recorded sessions: observe, backfill, transcripts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

import click

from lukasa.model.errors import InvalidInput
from lukasa.model.transcript import Progress, Transcript, Utterance
from lukasa.service.sessions.transcripts import KIND, Taken, known
from lukasa.service.workspace import Workspace
from lukasa.storage.port import FoundUtterance
from lukasa.surfaces.cli.data import plain
from lukasa.surfaces.cli.invocation import Invocation, pass_invocation
from lukasa.surfaces.cli.lines import when
from lukasa.surfaces.cli.options import CliCommand, CliGroup
from lukasa.surfaces.cli.output import Line, bad, block, brief, colourful, dim, good, line, many, table, title, warn

PATTERNS = ("*.jsonl", "*.json", "*.txt", "*.log")
_TIER = click.option(
    "--tier", metavar="NAME", help="Tier for the facts [default: the narrowest lasting one that --scope binds]."
)
_COUNTS = ("observations_extracted", "allowed", "held", "discarded", "deduped", "malformed")


@dataclass(slots=True)
class Report:
    """The results for all files, for the answer at the end."""

    taken: list[Taken] = field(default_factory=list)
    refused: list[tuple[str, str]] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    stripped: Counter[str] = field(default_factory=Counter)
    how: str = ""
    failed: list[str] = field(default_factory=list)

    def add(self, taken: Taken) -> None:
        self.taken.append(taken)
        self.stripped.update(taken.stripped)

    @property
    def new(self) -> int:
        return sum(taken.new for taken in self.taken)

    @property
    def broken(self) -> int:
        return sum(taken.broken for taken in self.taken)


@click.command(
    cls=CliCommand,
    examples=(
        "lukasa observe session.jsonl",
        "lukasa observe --queue-only *.jsonl",
        "lukasa observe --rules claude-code:SESSION",
        "lukasa observe session.jsonl --scope org_id=acme --scope domain_id=billing",
    ),
)
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option("--queue-only", is_flag=True, help="Store the messages and leave the observation to a worker.")
@click.option("--rules", is_flag=True, help="Use no model; FILE may also be the key of a transcript that failed.")
@_TIER
@pass_invocation
def observe(cli: Invocation, files: tuple[str, ...], queue_only: bool, rules: bool, tier: str | None) -> None:
    """Store the messages of recorded sessions, and extract facts from them.

    Reads session files of Claude Code and Codex, lists of chat messages, and chat logs. The messages are stored and can
    be searched at once; then the language model that is set, or rules, extract facts. Reading the same file again
    changes nothing; a file that has grown adds its new messages.
    """
    workspace, report = cli.workspace(), Report()
    workspace.ctx.observed_tier()  # raise for a scope without a lasting tier before anything is stored
    for file in files:
        if rules and (found := known(workspace.ctx, file)) is not None:
            workspace.observe_by_rules(found.id)
        else:
            report.add(workspace.observe(file, tier=tier))
    if not queue_only:
        _working(cli, workspace, report, rules=rules)()
    _answer(cli, workspace, report, queue_only)


@click.command(
    cls=CliCommand,
    examples=("lukasa backfill ~/.claude/projects", "lukasa backfill old-chats --glob '*.md' --queue-only --json"),
)
@click.argument("folder")
@click.option("--glob", "globs", multiple=True, metavar="PATTERN", help="Only files that match. Repeatable.")
@click.option("--queue-only", is_flag=True, help="Store the messages and leave the observation to a worker.")
@click.option("--rules", is_flag=True, help="Use no model.")
@_TIER
@pass_invocation
def backfill(
    cli: Invocation, folder: str, globs: tuple[str, ...], queue_only: bool, rules: bool, tier: str | None
) -> None:
    """Observe a folder of old sessions.

    Reads the folder and its subfolders, the oldest sessions first. You can stop it at any time and run it again: stored
    messages are not stored twice. Files that are not sessions are skipped, and listed at the end.
    """
    workspace, report = cli.workspace(), Report()
    ctx = workspace.ctx
    ctx.default_tier()
    if ctx.transcripts is None:
        raise InvalidInput("this memory cannot read session files", fix="open memory from a folder")
    found = ctx.transcripts().walk(folder, globs or PATTERNS)
    work = None if queue_only else _working(cli, workspace, report, rules=rules)
    for file in _with_progress_bar(cli, found):
        try:
            report.add(workspace.observe(file, tier=tier))
        except InvalidInput as error:
            report.refused.append((file, error.message))
            continue
        if work is not None:
            work()
    _answer(cli, workspace, report, queue_only)


def _with_progress_bar(cli: Invocation, files: Sequence[str]) -> Iterator[str]:
    """Yield the files, with a progress bar on a terminal."""
    if cli.choices.json or not colourful(cli.choices.no_color):
        yield from files
        return
    with import_module("lukasa.surfaces.cli.terminal").Bar("observing", len(files)) as bar:
        for file in files:
            yield file
            bar.advance(1)


def _working(cli: Invocation, workspace: Workspace, report: Report, *, rules: bool) -> Callable[[], None]:
    """Return a function that runs the observation jobs that are due."""
    worker = cli.memory.worker(chat="none" if rules else None, workspace=workspace, kinds=(KIND,))

    def work() -> None:
        for run in worker.drain():
            if run.outcome == "done":
                report.counts.update({name: int(run.result.get(name, 0)) for name in _COUNTS})
                report.how = str(run.result.get("how", "")) or report.how
            elif run.outcome != "lost":
                report.failed.append(run.error)

    return work


def _answer(cli: Invocation, workspace: Workspace, report: Report, queue_only: bool) -> None:
    ids = dict.fromkeys(taken.transcript.id for taken in report.taken)
    now = [workspace.transcript(id) for id in ids]
    pending = [t for t in now if t.progress is not Progress.OBSERVED]
    waiting = [f"{t.key}: {t.detail}" for t in pending if t.detail and not queue_only]  # it has failed before
    data: dict[str, Any] = {
        "transcripts": [{"id": t.id, "key": t.key, "progress": str(t.progress), "detail": t.detail} for t in now],
        "files": len(report.taken),
        "messages": report.new,
        "broken_lines": report.broken,
        "stripped": dict(report.stripped),
        "how": report.how,
        **{name: report.counts[name] for name in _COUNTS},
        "failed": report.failed or waiting,
        "refused": [{"file": file, "reason": reason} for file, reason in report.refused],
        "pending": len(pending),
    }
    cli.emit(data, _lines(report, pending, queue_only))
    cli.fail(report.failed or waiting)


def _lines(report: Report, pending: Sequence[Transcript], queue_only: bool) -> Iterator[Line]:
    new = report.new
    known = sum(not taken.new for taken in report.taken)
    kept = f"{new} new messages of {many(len(report.taken), 'file')}" + (f" ({known} had nothing new)" if known else "")
    yield line(good("stored "), kept)
    if report.stripped:
        yield line(dim(f"  left out: {', '.join(f'{count} {name}' for name, count in report.stripped.items())}"))
    if report.broken:
        yield line(warn(f"  {many(report.broken, 'line')} could not be read"))
    if report.how:
        c = report.counts
        yield line(
            good("observed "),
            f"by {report.how}: {c['observations_extracted']} found, {c['allowed']} stored, {c['held']} held, "
            f"{c['deduped']} known already, {c['discarded']} discarded",
        )
        if c["malformed"]:
            yield line(warn(f"  {c['malformed']} pieces of the model's answer could not be read"))
    for reason in report.failed:
        yield line(bad("failed: "), brief(reason))
    for transcript in pending:
        yield line(warn(f"{transcript.progress} "), title(transcript.key), dim(f"  {transcript.detail}"))
    if report.failed:
        yield line(dim("  the messages are stored and can be searched; `lukasa observe --rules KEY` needs no model"))
    elif queue_only and pending:
        yield line(dim("  `lukasa worker` observes them"))
    for file, why in report.refused:
        yield line(warn("skipped "), file, dim(f"  {brief(why)}"))


@click.group(
    cls=CliGroup,
    examples=("lukasa transcripts list", 'lukasa transcripts search "staging host"', "lukasa transcripts show KEY"),
)
def transcripts() -> None:
    """List, show and search the stored sessions."""


@transcripts.command("list", examples=("lukasa transcripts list", "lukasa transcripts list --progress failed"))
@click.option("--progress", type=click.Choice([str(p) for p in Progress]), help="Only sessions with this progress.")
@click.option("--limit", type=int, default=50, show_default=True, metavar="N", help="At most so many.")
@pass_invocation
def transcripts_list(cli: Invocation, progress: str | None, limit: int) -> None:
    """List sessions, the latest first, with the progress of their observation."""
    found = cli.workspace().transcripts(progress=progress, limit=limit)
    cli.emit({"transcripts": plain(found)}, _listed(found))


def _listed(found: Sequence[Transcript]) -> Iterator[Line]:
    if not found:
        yield line("No session is stored here.")
        yield line(dim("  `lukasa observe FILE` stores one, `lukasa backfill DIR` a whole folder"))
        return
    heads = ("key", "progress", "messages", "by", "updated", "title")
    rows = (
        (t.key, str(t.progress), f"{t.observed}/{t.kept}", t.how, when(t.updated_at), brief(t.title, 50)) for t in found
    )
    yield from table(heads, rows)
    for transcript in found:
        if transcript.detail:
            yield line(warn(f"{transcript.key}: "), transcript.detail)


@transcripts.command(
    "show", examples=("lukasa transcripts show KEY", "lukasa transcripts show KEY --from 20 --limit 10")
)
@click.argument("key")
@click.option("--from", "start", type=click.IntRange(0), default=0, metavar="N", help="Start at this message.")
@click.option("--limit", type=click.IntRange(1), metavar="N", help="At most so many messages.")
@pass_invocation
def transcripts_show(cli: Invocation, key: str, start: int, limit: int | None) -> None:
    """Show the messages of a session, as they are stored. KEY is its key or its id."""
    workspace = cli.workspace()
    found, said = workspace.transcript(key), workspace.said(key, start=start, limit=limit)
    origin = workspace.imported_from(found.id)
    data = {"transcript": plain(found), "messages": plain(said), **({"imported": origin} if origin else {})}
    cli.emit(data, _transcript(found, said, origin))


def _transcript(found: Transcript, said: Sequence[Utterance], origin: Mapping[str, str]) -> Iterator[Line]:
    yield line(title(found.key), f"  {found.progress}", dim(f"  {found.observed} of {found.kept} messages observed"))
    if found.detail:
        yield line(warn(found.detail))
    if origin:
        yield line(dim(f"imported from {origin.get('file', '')}"))
    for utterance in said:
        yield line()
        yield line(dim(f"{utterance.place}  {utterance.role}  {when(utterance.at)}".rstrip()))
        yield from block(utterance.text)


@transcripts.command("search", examples=('lukasa transcripts search "staging host"',))
@click.argument("words")
@click.option("--limit", type=int, default=10, show_default=True, metavar="N", help="At most so many messages.")
@pass_invocation
def transcripts_search(cli: Invocation, words: str, limit: int) -> None:
    """Find messages of any session, also of sessions that were not observed yet."""
    workspace = cli.workspace()
    found = workspace.search_transcripts(words, limit)
    names = {said.transcript: workspace.transcript(said.transcript).key for said in found}
    cli.emit({"messages": [{**plain(said), "key": names[said.transcript]} for said in found]}, _found(found, names))


def _found(found: Sequence[FoundUtterance], names: Mapping[str, str]) -> Iterator[Line]:
    if not found:
        yield line("No stored session holds these words.")
    for said in found:
        u = said.utterance
        yield line(title(brief(u.text, 160)))
        yield line(dim(f"  {u.role}, message {u.place} of {names[said.transcript]}  {when(u.at)}".rstrip()))
