"""Commands about background work: worker, jobs, consolidate, maintain."""

from __future__ import annotations

import os
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import click

from lukasa.model.job import Job, JobState
from lukasa.service.jobs import queue
from lukasa.surfaces.cli.data import plain
from lukasa.surfaces.cli.invocation import Invocation, pass_invocation
from lukasa.surfaces.cli.lines import when
from lukasa.surfaces.cli.options import ID, CliCommand, CliGroup
from lukasa.surfaces.cli.output import (
    Line,
    StyledText,
    bad,
    brief,
    dim,
    encode,
    good,
    line,
    many,
    safe,
    table,
    title,
    warn,
    write,
)

_MARKS = {"done": good, "failed": warn, "dead": bad, "postponed": dim, "lost": warn}


@click.command(
    cls=CliCommand,
    examples=("lukasa worker --once", "lukasa worker --threads 2", "lukasa worker --json >> worker.jsonl"),
)
@click.option("--once", "--drain", "once", is_flag=True, help="Run the jobs that are due in all workspaces, and stop.")
@click.option(
    "--threads",
    type=click.IntRange(1, 32),
    default=1,
    show_default=True,
    help="Number of jobs at the same time; --once runs one by one.",
)
@pass_invocation
def worker(cli: Invocation, once: bool, threads: int) -> None:
    """Run the background jobs that are due, once or continuously.

    The worker runs the queued jobs of all workspaces, and the jobs that their specs' triggers ask for.

    With --once the exit code is 1 if a job failed; the worker tries it again later.

    It runs until Ctrl-C or SIGTERM: then it finishes the current job, or puts it back after a few seconds; a second
    signal does not wait. Any number of workers may run at once. If a worker is killed, another continues its job at the
    step where it stopped.
    """
    teller = _Teller(cli)
    if once:
        # SIGTERM is handled as Ctrl-C is: the current job is put back.
        before = signal.signal(signal.SIGTERM, signal.default_int_handler)
        try:
            done = cli.memory.worker(tell=teller).drain()
        finally:
            signal.signal(signal.SIGTERM, before)
        if not done and not cli.choices.json:
            write([line("Nothing is due.")], no_color=cli.choices.no_color)
        cli.fail([f"{run.workspace}: {run.job.kind}: {run.error}" for run in done if run.outcome in ("failed", "dead")])
        return
    _serve(cli, threads, teller)


def _serve(cli: Invocation, threads: int, teller: _Teller) -> None:
    stop, hurry = threading.Event(), threading.Event()
    crew = cli.memory.crew(threads, tell=teller)
    with _stop_signals(stop, hurry):
        if not cli.choices.json:
            write([line(dim("working; Ctrl-C stops"))], no_color=cli.choices.no_color)
            sys.stdout.flush()
        if not crew.serve(stop, hurry):
            # A thread is still busy. Its job was put back, so end the process with it.
            sys.stdout.flush()
            os._exit(0)


@contextmanager
def _stop_signals(stop: threading.Event, hurry: threading.Event) -> Iterator[None]:
    """Set `stop` at the first SIGTERM or SIGINT, and `hurry` at any further one.

    A thread reads the signals from a socket: a signal handler interrupts the main thread, and would wait for ever for a
    lock that the main thread holds, such as that of an event.
    """
    numbers = (signal.SIGTERM, signal.SIGINT)
    out, into = socket.socketpair()  # a pipe would do, but Windows wakes nobody through one
    into.setblocking(False)

    def listen() -> None:
        while heard := out.recv(1):
            if heard[0] in numbers:
                (hurry if stop.is_set() else stop).set()
        out.close()

    threading.Thread(target=listen, name="lukasa-signals", daemon=True).start()
    woken = signal.set_wakeup_fd(into.fileno(), warn_on_full_buffer=False)
    before = {number: signal.signal(number, lambda *_: None) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(woken)
        into.close()


class _Teller:
    """Prints a line for each finished job; several threads may call it."""

    def __init__(self, cli: Invocation) -> None:
        self._session = cli
        self._lock = threading.Lock()

    def __call__(self, what: Any) -> None:
        with self._lock:
            if self._session.choices.json:
                sys.stdout.write(encode(_run_data(what), indent=None) + "\n")
            else:
                write([_run_line(what)], no_color=self._session.choices.no_color)
            sys.stdout.flush()


def _run_data(what: Any) -> dict[str, Any]:
    if not hasattr(what, "job"):
        return {"workspace": what.workspace, "outcome": "trouble", "error": what.error}
    job = {"id": what.job.id, "kind": what.job.kind, "key": what.job.key, "attempt": what.job.attempts}
    end = {"outcome": what.outcome, "duration_ms": round(what.duration_ms, 1), "result": plain(what.result)}
    return {"workspace": what.workspace, **job, **end, "error": what.error, "next_run": plain(what.next_run)}


def _run_line(what: Any) -> Line:
    if not hasattr(what, "job"):
        return line(bad("trouble"), f"  {what.workspace or 'the account'}: {what.error}")
    counts = ", ".join(f"{key} {value}" for key, value in what.result.items())
    again = f", again {when(what.next_run)}" if what.next_run else ""
    about = brief(f"{counts or what.error}{again}", 200)
    place = f"  {what.workspace}  {what.job.kind}  "
    return line(_MARKS[what.outcome](what.outcome), place, about, dim(f"  {what.duration_ms:.0f} ms"))


# Looking at jobs


@click.group(
    cls=CliGroup,
    invoke_without_command=True,
    examples=("lukasa jobs", "lukasa jobs list --state dead", "lukasa jobs retry ID"),
)
@click.pass_context
def jobs(ctx: click.Context) -> None:
    """List background jobs, and retry or cancel them."""
    if ctx.invoked_subcommand is None:
        ctx.invoke(jobs_list)


@jobs.command("list", examples=("lukasa jobs list", "lukasa jobs list --state dead", "lukasa jobs list --kind observe"))
@click.option("--state", type=click.Choice([str(state) for state in JobState]), help="Only jobs in this state.")
@click.option("--kind", help="Only jobs of this kind.")
@click.option("--limit", type=int, default=50, show_default=True, help="At most this many.")
@pass_invocation
def jobs_list(cli: Invocation, state: str | None = None, kind: str | None = None, limit: int = 50) -> None:
    """List jobs, the latest change first."""
    found = cli.workspace().jobs(state=state, kind=kind, limit=limit)
    cli.emit({"jobs": plain(found)}, _jobs(found, filtered=bool(state or kind)))


def _jobs(found: Sequence[Job], *, filtered: bool) -> Iterator[Line]:
    if not found:
        yield line("No such job." if filtered else "No background jobs yet.")
        yield line(dim("  `lukasa worker --once` runs the jobs that the workspace's triggers ask for"))
        return
    heads = ("id", "state", "kind", "tries", "due", "about")
    rows = ((j.id, str(j.state), j.kind, f"{j.attempts}/{j.max_attempts}", _due(j), _about(j)) for j in found)
    yield from table(heads, rows)
    if any(job.state is JobState.DEAD for job in found):
        yield line(dim("  `lukasa jobs retry ID` queues a dead job again"))


def _due(job: Job) -> str:
    if job.state is JobState.QUEUED:
        return when(job.run_after)
    return f"until {when(job.lease_until)}" if job.state is JobState.RUNNING else ""


def _about(job: Job) -> str:
    return brief(job.error or ", ".join(f"{key} {value}" for key, value in job.result.items()) or job.key, 80)


@jobs.command("show", examples=("lukasa jobs show ID",))
@click.argument("id", type=ID)
@pass_invocation
def jobs_show(cli: Invocation, id: str) -> None:
    """Show one job: its state, its attempts, and its finished steps."""
    workspace = cli.workspace()
    found, steps = workspace.job(id), workspace.job_steps(id)
    cli.emit({"job": plain(found), "steps": plain(steps)}, _job(found, steps))


def _job(job: Job, steps: Mapping[str, Any]) -> Iterator[Line]:
    yield line(title(f"{job.kind} "), _state(job), dim(f"  {job.id}"))
    fields = {
        "key": job.key,
        "attempts": f"{job.attempts} of {job.max_attempts}",
        "asked for": when(job.created_at),
        "due": _due(job),
        "touched": when(job.updated_at),
        "worker": job.worker,
        "error": job.error,
        "payload": ", ".join(f"{key}={value!r}" for key, value in job.payload.items()),
        "result": ", ".join(f"{key}={value!r}" for key, value in job.result.items()),
        "steps done": ", ".join(steps),
    }
    for key, text in fields.items():
        if text:
            yield line(dim(f"  {key:<11}"), brief(text, 300))


def _state(job: Job) -> StyledText:
    marks = {JobState.DONE: good, JobState.DEAD: bad, JobState.CANCELLED: warn}
    return marks.get(job.state, StyledText)(str(job.state))


@jobs.command("retry", examples=("lukasa jobs retry ID",))
@click.argument("id", type=ID)
@pass_invocation
def jobs_retry(cli: Invocation, id: str) -> None:
    """Queue a dead or cancelled job again; finished steps are not repeated."""
    found = cli.workspace().retry_job(id)
    cli.emit(plain(found), [line(good("queued "), found.id, dim("  `lukasa worker --once` runs it now"))])


@jobs.command("cancel", examples=("lukasa jobs cancel ID", 'lukasa jobs cancel ID --reason "wrong file"'))
@click.argument("id", type=ID)
@click.option("--reason", default="cancelled on request", help="Why, for the log.")
@pass_invocation
def jobs_cancel(cli: Invocation, id: str, reason: str) -> None:
    """Cancel a job that is not finished."""
    found = cli.workspace().cancel_job(id, reason)
    cli.emit(plain(found), [line(warn("cancelled "), found.id)])


def _upkeep_options(f: Callable[..., None]) -> Callable[..., None]:
    for option in (
        click.option("--dry-run", is_flag=True, help="Show what would be done, by rules alone, and change nothing."),
        click.option("--tier", "tiers", multiple=True, metavar="NAME", help="Only this tier. Repeatable."),
    ):
        f = option(f)
    return f


@click.command(cls=CliCommand, examples=("lukasa consolidate --dry-run", "lukasa consolidate --tier workspace"))
@_upkeep_options
@pass_invocation
def consolidate(cli: Invocation, tiers: Sequence[str], dry_run: bool) -> None:
    """Promote, prune and merge entries now, as the spec says.

    Promotes entries that meet the spec's conditions, prunes entries below its relevance floor, makes one entry of
    several that belong together, and keeps each scope below its cap. A language model writes the new entries; without
    one, rules do. `lukasa undo` with the id of the job, or of a new entry, undoes it.
    """
    _upkeep(cli, "consolidate", tiers, dry_run)


@click.command(cls=CliCommand, examples=("lukasa maintain", "lukasa maintain --tier workspace --dry-run"))
@_upkeep_options
@pass_invocation
def maintain(cli: Invocation, tiers: Sequence[str], dry_run: bool) -> None:
    """Note copies and retire stale entries now.

    Reads show copies as one hit. The spec sets the ages. No row is removed, and a second run finds nothing to do.
    """
    _upkeep(cli, "maintain", tiers, dry_run)


def _upkeep(cli: Invocation, kind: str, tiers: Sequence[str], dry_run: bool) -> None:
    ctx = cli.workspace().ctx
    if dry_run:
        found = queue.preview(ctx, kind, tiers)
        cli.emit({"dry_run": True, "result": found}, _counts(found, "would be "))
        return
    job = queue.ask(ctx, kind, tiers)
    chat = cli.memory.chat() if kind == "consolidate" else None
    job = queue.work(ctx, job, chat=None if chat is None or chat.name == "offline" else chat, tell=_tell_progress)
    cli.emit({"dry_run": False, "job": plain(job), "result": plain(job.result)}, _upkeep_result(job))
    if job.state not in (JobState.DONE, JobState.RUNNING):
        cli.fail([f"{kind}: {job.error or 'the job waits for its next attempt'}"])


def _tell_progress(text: str) -> None:
    """Print progress on stderr, if it is a terminal."""
    if sys.stderr.isatty():
        sys.stderr.write(f"  {safe(text)}\n")


def _upkeep_result(job: Job) -> Iterator[Line]:
    match job.state:
        case JobState.DONE:
            yield from _counts(job.result, "")
            if any(not name.startswith("entries_") for name in job.result):
                yield line(dim(f"  `lukasa undo {job.id}` undoes all of it"))
        case JobState.RUNNING:
            yield line(f"another worker runs it: job {job.id}")
        case _:
            yield line(
                warn(f"{job.state}: "), job.error or "the job waits for its next attempt", dim(f"  job {job.id}")
            )


def _counts(found: Mapping[str, Any], would: str) -> Iterator[Line]:
    changes = {name: count for name, count in found.items() if not name.startswith("entries_")}
    if not changes:
        yield line("Nothing to do.")
    for name, count in changes.items():
        yield line(good("✓ "), f"{count:,} {would}{_COUNT_WORDS.get(name, name)}")
    if "entries_by_category" in found:
        recall, merged, stale = (found[f"entries_{name}"] for name in ("open", "merged", "stale"))
        yield line(
            f"{recall:,} entries in recall, {stale:,} of them stale, {many(merged, 'repetition')} merged into them"
        )
        listed = found["entries_by_category"].items()
        yield line(dim("  by category "), ", ".join(f"{name} {count:,}" for name, count in listed) or "none")


_COUNT_WORDS = {"consolidated": "made of others", "dropped": "left unchanged, because a check refused the change"}
