"""Verbs that learn from recorded sessions: take them in, and have them observed at once or later."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

import click

from lukasa.model.errors import InvalidInput
from lukasa.model.transcript import Progress, Transcript
from lukasa.service.sessions import transcripts
from lukasa.service.sessions.transcripts import Taken
from lukasa.service.workspace import Workspace
from lukasa.surfaces.cli.options import Verb
from lukasa.surfaces.cli.output import Line, bad, brief, colourful, dim, good, line, title, warn
from lukasa.surfaces.cli.session import Session, pass_session

PATTERNS = ("*.jsonl", "*.json", "*.txt", "*.log")
_COUNTS = ("observations_extracted", "allowed", "held", "discarded", "deduped", "malformed")


@dataclass(slots=True)
class Report:
    """What became of files, as it is shown at the end."""

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
    cls=Verb,
    examples=(
        "lukasa observe session.jsonl",
        "lukasa observe --queue-only *.jsonl",
        "lukasa observe --rules claude-code:SESSION",
    ),
)
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option("--queue-only", is_flag=True, help="Take it in and leave the rest to a worker.")
@click.option("--rules", is_flag=True, help="Use no model: FILE may also be the key of a transcript that failed.")
@pass_session
def observe(session: Session, files: tuple[str, ...], queue_only: bool, rules: bool) -> None:
    """Remember what was said in a recorded session.

    Takes session files of Claude Code and Codex, lists of chat messages, and chat logs. What was said is kept and can
    be searched at once; then it is observed, by the language model that is set, or by rules. The same file again
    changes nothing; a file that has grown adds what is new.
    """
    workspace, report = session.workspace(), Report()
    workspace.ctx.default_tier()  # a scope in which nothing can be kept is said before anything is taken in
    for file in files:
        if rules and (known := workspace.ctx.local.transcript(file)) is not None:
            workspace.observe_by_rules(known.id)
        else:
            report.add(workspace.observe(file))
    if not queue_only:
        _working(session, workspace, report, rules=rules)()
    _answer(session, workspace, report, queue_only)


@click.command(
    cls=Verb,
    examples=("lukasa backfill ~/.claude/projects", "lukasa backfill old-chats --glob '*.md' --queue-only --json"),
)
@click.argument("folder")
@click.option("--glob", "globs", multiple=True, metavar="PATTERN", help="Only files that fit. Repeatable.")
@click.option("--queue-only", is_flag=True, help="Take them in and leave the rest to a worker.")
@click.option("--rules", is_flag=True, help="Use no model.")
@pass_session
def backfill(session: Session, folder: str, globs: tuple[str, ...], queue_only: bool, rules: bool) -> None:
    """Observe a folder of old sessions.

    Goes through the folder and those in it, the oldest files first. It can be stopped at any time and run again: what
    was taken in is known. A file that is no session is passed over, and named at the end.
    """
    workspace, report = session.workspace(), Report()
    ctx = workspace.ctx
    ctx.default_tier()
    if ctx.transcripts is None:
        raise InvalidInput("nothing here can read session files", fix="open memory from a folder")
    found = ctx.transcripts().walk(folder, globs or PATTERNS)
    work = None if queue_only else _working(session, workspace, report, rules=rules)
    for file in _shown(session, found):
        try:
            report.add(workspace.observe(file))
        except InvalidInput as error:
            report.refused.append((file, error.message))
            continue
        if work is not None:
            work()
    _answer(session, workspace, report, queue_only)


def _shown(session: Session, files: Sequence[str]) -> Iterator[str]:
    """The files, with a bar that moves where somebody is watching."""
    if session.choices.json or not colourful(session.choices.no_color):
        yield from files
        return
    with import_module("lukasa.surfaces.cli.terminal").Bar("observing", len(files)) as bar:
        for file in files:
            yield file
            bar.advance(1)


def _working(session: Session, workspace: Workspace, report: Report, *, rules: bool) -> Callable[[], None]:
    """What does the observing that is due here, each time it is called."""
    worker = session.memory.worker(chat="none" if rules else None, workspace=workspace, kinds=(transcripts.KIND,))

    def work() -> None:
        for run in worker.drain():
            if run.outcome == "done":
                report.counts.update({name: int(run.result.get(name, 0)) for name in _COUNTS})
                report.how = str(run.result.get("how", "")) or report.how
            elif run.outcome != "lost":
                report.failed.append(run.error)

    return work


def _answer(session: Session, workspace: Workspace, report: Report, queue_only: bool) -> None:
    ids = dict.fromkeys(taken.transcript.id for taken in report.taken)
    now = [workspace.transcript(id) for id in ids]
    pending = [t for t in now if t.progress is not Progress.OBSERVED]
    data: dict[str, Any] = {
        "transcripts": [{"id": t.id, "key": t.key, "progress": str(t.progress), "detail": t.detail} for t in now],
        "files": len(report.taken),
        "messages": report.new,
        "broken_lines": report.broken,
        "stripped": dict(report.stripped),
        "how": report.how,
        **{name: report.counts[name] for name in _COUNTS},
        "failed": report.failed,
        "refused": [{"file": file, "reason": reason} for file, reason in report.refused],
        "pending": len(pending),
    }
    session.emit(data, _lines(report, pending, queue_only))
    if report.failed:
        click.get_current_context().exit(1)


def _lines(report: Report, pending: Sequence[Transcript], queue_only: bool) -> Iterator[Line]:
    new = report.new
    known = sum(not taken.new for taken in report.taken)
    kept = f"{new} new messages of {len(report.taken)} files" + (f" ({known} had nothing new)" if known else "")
    yield line(good("kept "), kept)
    if report.stripped:
        yield line(dim(f"  left out: {', '.join(f'{count} {name}' for name, count in report.stripped.items())}"))
    if report.broken:
        yield line(warn(f"  {report.broken} lines could not be read"))
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
        yield line(dim("  what was said is kept and can be searched; `lukasa observe --rules KEY` needs no model"))
    elif queue_only and pending:
        yield line(dim("  `lukasa worker` observes what waits"))
    for file, why in report.refused:
        yield line(warn("passed over "), file, dim(f"  {brief(why)}"))
