"""Statistics on the command line."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

import click

from lukasa.model.telemetry import TelemetryEvent
from lukasa.service.admin.stats import Stats
from lukasa.surfaces.cli.data import plain
from lukasa.surfaces.cli.lines import when
from lukasa.surfaces.cli.options import Verb
from lukasa.surfaces.cli.output import Line, brief, dim, line, table, title
from lukasa.surfaces.cli.session import Session, pass_session


@click.command(cls=Verb, examples=("lukasa stats", "lukasa stats --since 24h --json"))
@click.option("--since", default="7d", show_default=True, metavar="TIME", help="A time, or how long ago: 24h, 7d, 2w.")
@pass_session
def stats(session: Session, since: str) -> None:
    """Count what is remembered, what happened to it, and how the work went.

    What is remembered by tier, state, category and source; what was written, discarded or retired since a time; what
    fades next; background jobs, how long each kind of work took, and what language models cost.
    """
    found = session.workspace().stats(since)
    session.emit(plain(found) | {"added": found.added}, _told(found))


@click.command(cls=Verb, examples=("lukasa reports --failed", "lukasa reports --component reflect --since 7d --json"))
@click.option("--since", default="24h", show_default=True, metavar="TIME", help="A time, or how long ago: 24h, 7d, 2w.")
@click.option("--component", metavar="NAME", help="Only of this part, such as memory, observe or reflect.")
@click.option("--action", metavar="NAME", help="Only of this step, such as put, read or job.done.")
@click.option("--failed", is_flag=True, help="Only what failed or was refused.")
@click.option("--limit", type=click.IntRange(1, 1000), default=50, show_default=True, help="At most this many.")
@pass_session
def reports(session: Session, since: str, component: str | None, action: str | None, failed: bool, limit: int) -> None:
    """List what single steps reported of themselves, the newest first.

    Every verb and every step of background work leaves a report: when, how long, whether it failed, and what it
    counted. `lukasa stats` adds them up. No report holds a word of what is remembered.
    """
    found = session.workspace().reports(since, component=component, action=action, failed=failed, limit=limit)
    session.emit({"reports": plain(found)}, _reports(found))


def _reports(found: Sequence[TelemetryEvent]) -> Iterator[Line]:
    if not found:
        yield line("No such report.")
        return
    heads = ("at", "level", "from", "step", "ms", "counted")
    rows = (
        (when(p.at), p.level, p.source, f"{p.component} {p.action}", f"{p.duration_ms:,.1f}", _counted(p))
        for p in found
    )
    yield from table(heads, rows)


def _counted(point: TelemetryEvent) -> str:
    return brief(", ".join(f"{name} {value}" for name, value in point.metadata.items()), 80)


def _told(found: Stats) -> Iterator[Line]:
    then = f"{found.since:%Y-%m-%d %H:%M}"
    if not found.entries:
        yield line("Nothing is remembered here yet.")
        yield line(dim('  `lukasa put "…"` remembers something; `lukasa tour` shows how it all works'))
    else:
        yield line(title(f"{found.total():,} entries"), f", {found.added:,} written since {then}")
        for name in ("tier", "state", "category", "source"):
            yield line(f"  by {name:<9}", _shares(found, name))
    if found.outcomes:
        yield line(title("Written"), "  ", ", ".join(f"{what} {count:,}" for what, count in found.outcomes.items()))
    if found.events:
        yield line(title(f"Since {then}"))
        yield from table(("event", "times"), ((action, f"{count:,}") for action, count in found.events.items()))
    if found.fading:
        yield line(title("Fading next"))
        rows = ((w.id, f"{w.relevance:.4f}", brief(w.entry.content, 60)) for w in found.fading)
        yield from table(("id", "relevance", "text"), rows)
    if found.awaiting:
        yield line(f"{found.awaiting:,} wait for a decision: `lukasa disposition list`")
    yield from _work(found)


def _shares(found: Stats, name: str) -> str:
    counts: Counter[str] = Counter()
    for share in found.entries:
        counts[str(getattr(share, name)) or "none"] += share.count
    return ", ".join(f"{what} {count:,}" for what, count in counts.most_common(12))


def _work(found: Stats) -> Iterator[Line]:
    if found.jobs:
        yield line(title("Jobs"), "  ", ", ".join(f"{state} {count:,}" for state, count in found.jobs.items()))
    if found.work:
        yield line(title("Work"))
        heads = ("work", "times", "failed", "mean ms", "longest ms")
        rows = (
            (f"{t.component} {t.action}", f"{t.count:,}", f"{t.failures:,}", f"{t.mean_ms:,.1f}", f"{t.max_ms:,.1f}")
            for t in found.work
        )
        yield from table(heads, rows)
    if found.spending:
        yield line(title("Language models"))
        costs = ("day", "model", "calls", "prompt", "completion", "cost")
        spent = (
            (s.day, s.model, f"{s.calls:,}", f"{s.prompt:,}", f"{s.completion:,}", f"{s.cost:.4f}")
            for s in found.spending
        )
        yield from table(costs, spent)
