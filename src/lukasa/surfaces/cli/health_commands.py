"""Commands about the state of memory: events, doctor, stats, reports, scrub."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

import click

from lukasa.app import EarlierFolders, Settings, earlier_folders
from lukasa.app import take_over as move_earlier
from lukasa.model.disclosure import TokenUse
from lukasa.model.errors import StoreDamaged, StoreForeign, StoreMissing
from lukasa.model.events import Event, is_emptied
from lukasa.model.telemetry import TelemetryEvent
from lukasa.service.admin.admin_methods import log_faults
from lukasa.service.admin.bookmarks import named
from lukasa.service.admin.shown import OFTEN, Unused
from lukasa.service.admin.stats import Stats
from lukasa.storage.port import Finding, Store
from lukasa.surfaces.cli import lines
from lukasa.surfaces.cli.data import plain
from lukasa.surfaces.cli.invocation import TAKE_OVER, Invocation, pass_invocation
from lukasa.surfaces.cli.lines import when
from lukasa.surfaces.cli.options import CliCommand, CliGroup
from lukasa.surfaces.cli.output import Line, bad, brief, dim, good, line, many, table, title, warn
from lukasa.surfaces.cli.shown_commands import token_lines, unused_lines
from lukasa.upkeep.scrub_plan import SHORTEST, Manifest

DAMAGED = 3


@click.group(cls=CliGroup, invoke_without_command=True, examples=("lukasa events", "lukasa events verify"))
@click.pass_context
def events(ctx: click.Context) -> None:
    """List the events of the log, or verify the log.

    Every change of memory is an event, chained to the one before by its digest. Without a subcommand, the latest events
    are listed.
    """
    if ctx.invoked_subcommand is None:
        ctx.invoke(events_list)


def _store(cli: Invocation, account: bool) -> Store:
    return cli.memory.account if account else cli.workspace().ctx.local


@events.command("list", examples=("lukasa events list --limit 20", "lukasa events list --action entry.discarded"))
@click.option(
    "--after",
    type=click.IntRange(0, (1 << 63) - 1),
    metavar="SEQ",
    help="Only events after this number [default: the latest].",
)
@click.option("--since", metavar="NAME", help="Only events after this bookmark.")
@click.option("--limit", type=click.IntRange(1, 100_000), default=50, show_default=True, help="At most this many.")
@click.option("--action", metavar="NAME", help="Only this action, such as entry.put or entry.discarded.")
@click.option("--account", is_flag=True, help="The account's log instead of the workspace's.")
@pass_invocation
def events_list(
    cli: Invocation,
    after: int | None = None,
    since: str | None = None,
    limit: int = 50,
    action: str | None = None,
    account: bool = False,
) -> None:
    """List events, oldest first; the latest ones unless --after or --since says otherwise."""
    if since is not None and account:
        raise click.UsageError("--since names a bookmark of the workspace's log; leave out --account")
    if since is not None:
        after = max(after or 0, named(cli.workspace().ctx, since).seq)
    store = _store(cli, account)
    if after is not None:
        found = store.events(after=after, limit=limit, action=action)
    elif action is None:
        found = store.events(after=max(0, store.head()[0] - limit), limit=limit)
    else:
        found = store.events(limit=store.head()[0] + 1, action=action)[-limit:]
    cli.emit({"events": plain(found)}, _events(found))


def _events(found: Sequence[Event]) -> Iterator[Line]:
    if not found:
        yield line("No such event.")
        return
    heads = ("seq", "at", "action", "by", "subject", "cause")
    rows = ((str(e.seq), when(e.at), e.action, str(e.actor), e.subject, _cause(e)) for e in found)
    yield from table(heads, rows)


def _cause(event: Event) -> str:
    if is_emptied(event):
        return "(scrubbed)"
    return brief(str(event.detail.get("cause") or json.dumps(event.detail, ensure_ascii=False)), 60)


@events.command("bookmark", examples=("lukasa events bookmark before-import --note 'the old notes are complete'",))
@click.argument("name")
@click.option("--note", default="", metavar="TEXT", help="What the position is good for.")
@pass_invocation
def events_bookmark(cli: Invocation, name: str, note: str) -> None:
    """Name the present end of the workspace's log.

    `lukasa events list --since NAME` lists what changed since then; `lukasa read --as-of NAME` reads memory as of then.
    """
    made = cli.workspace().bookmark(name, note)
    cli.emit(plain(made), [line(good("marked "), f"{made.name} at event {made.seq}")])


@events.command("bookmarks", examples=("lukasa events bookmarks",))
@pass_invocation
def events_bookmarks(cli: Invocation) -> None:
    """List the bookmarks of the workspace's log."""
    found = cli.workspace().bookmarks()
    rows = ((one.name, str(one.seq), when(one.at), one.by, brief(one.note, 60)) for one in found)
    told = table(("name", "seq", "at", "by", "note"), rows) if found else [line("No bookmark.")]
    cli.emit({"bookmarks": plain(found)}, told)


@events.command("verify", examples=("lukasa events verify",))
@click.pass_context
@pass_invocation
def events_verify(cli: Invocation, ctx: click.Context) -> None:
    """Recompute every digest of the workspace's log and of the account's log."""
    account = cli.memory.account
    found = {
        "workspace": cli.workspace().verify(),
        "account": log_faults(account),
    }
    told = (part for name, faults in found.items() for part in lines.faults(faults, f"the {name}'s log is intact"))
    cli.emit({"whole": not any(found.values()), "faults": found}, told)
    if any(found.values()):
        ctx.exit(DAMAGED)


@events.command("head", examples=("lukasa events head > head.txt",))
@click.option("--account", is_flag=True, help="The account's log instead of the workspace's.")
@pass_invocation
def events_head(cli: Invocation, account: bool) -> None:
    """Print the last event's number and digest, to keep elsewhere as evidence."""
    seq, digest = _store(cli, account).head()
    cli.emit({"seq": seq, "digest": digest}, [line(f"{seq} {digest}")])


@click.command(
    cls=CliCommand, examples=("lukasa doctor", "lukasa -w novel doctor --repair", "lukasa doctor --take-over")
)
@click.option(
    "--repair",
    is_flag=True,
    help="Rebuild derived data, such as indexes, and put back texts of which the history holds a sound copy.",
)
@click.option(
    "--take-over",
    is_flag=True,
    help="First move the default data folder of this program's earlier name to the present one.",
)
@click.pass_context
@pass_invocation
def doctor(cli: Invocation, ctx: click.Context, repair: bool, take_over: bool) -> None:
    """Check the stores, and repair what can be repaired.

    Checks the files, hashes, indexes and event chain of the workspace and of the account. Exits with code 3 if
    something is wrong.
    """
    cli.announces = False  # the answer itself names the earlier folder
    earlier = _earlier(cli, take_over)
    found = {name: _examine(cli, name, repair) for name in ("account", "workspace")}
    left = [finding for findings, _ in found.values() for finding in findings]
    data = {name: {"findings": plain(findings), "repaired": fixed} for name, (findings, fixed) in found.items()}
    told = (*_told_earlier(earlier, take_over), *lines.database_lines(cli.settings), *_diagnosis(found))
    where = cli.settings.shown_database or None
    cli.emit(
        {
            "healthy": not left,
            "database": where,
            **data,
            "earlier_folders": {**plain(earlier), "taken_over": take_over},
        },
        told,
    )
    if left:
        ctx.exit(DAMAGED)


def _earlier(cli: Invocation, take_over: bool) -> EarlierFolders:
    """Return the folders of the earlier name that exist or were moved now; none if the call names a data folder."""
    if not cli.choices.data:
        return move_earlier() if take_over else earlier_folders()
    if take_over:
        raise click.UsageError("--take-over moves memory to the default data folder; remove --data and LUKASA_DATA")
    return EarlierFolders()


def _told_earlier(earlier: EarlierFolders, taken_over: bool) -> Iterator[Line]:
    moved = [str(folder) for folder in (earlier.data, earlier.cache) if folder is not None]
    if taken_over and moved:
        yield line(
            good("✓ "), f"taken over: {' and '.join(moved)}", dim(f"  memory is now in {Settings.resolve().data}")
        )
    elif taken_over:
        yield line("Nothing to take over: there is no data folder of the earlier name.")
    elif earlier.data is not None:
        yield line(warn("! "), TAKE_OVER.format(earlier.data))


def _examine(cli: Invocation, name: str, repair: bool) -> tuple[list[Finding], int]:
    """Return the findings that are left in a store, and the number of repaired ones."""
    try:
        store = _store(cli, account=name == "account")
        before = store.check()
        if not (repair and any(finding.derived for finding in before)):
            return before, 0
        store.rebuild()
        after = store.check()
    except (StoreDamaged, StoreForeign, StoreMissing) as error:
        return [Finding(error.code, "store", str(error), derived=False)], 0
    return after, len(before) - len(after)


def _diagnosis(found: dict[str, tuple[list[Finding], int]]) -> Iterator[Line]:
    for name, (findings, repaired) in found.items():
        if repaired:
            yield line(good("✓ "), f"{name}: {repaired} repaired")
        if not findings:
            yield line(good("✓ "), f"{name}: nothing wrong")
        for finding in findings:
            yield line((warn if finding.derived else bad)("✗ "), f"{name}: {finding.what} {finding.subject}")
            yield line(dim(f"    {finding.detail}"))
        if any(finding.derived for finding in findings):
            yield line(dim("    `lukasa doctor --repair` mends what can be mended"))


@click.command(cls=CliCommand, examples=("lukasa stats", "lukasa stats --since 24h --json", "lukasa stats --tokens"))
@click.option("--since", default="7d", show_default=True, metavar="TIME", help="A time, or how long ago: 24h, 7d, 2w.")
@click.option("--tokens", is_flag=True, help="What memory cost in tokens instead, and what was shown and never used.")
@pass_invocation
def stats(cli: Invocation, since: str, tokens: bool) -> None:
    """Count entries, events, jobs and the cost of models.

    Counts entries by tier, state, category and source, and writes, discards and retirements since a time; lists the
    entries that fade next, background jobs, the duration of each kind of work, and the cost of language models.

    With --tokens it adds up the texts of memory that went to agents, by agent, surface, call and day, and lists the
    entries among them that nobody used (`lukasa shown --unused` says what that means).
    """
    if tokens:
        use, never = cli.workspace().token_use(since), cli.workspace().unused(since)
        cli.emit(plain(use) | {"unused": plain(never)}, _tokens(use, never))
        return
    found = cli.workspace().stats(since)
    cli.emit(plain(found) | {"added": found.added}, _stats(found))


@click.command(
    cls=CliCommand, examples=("lukasa reports --failed", "lukasa reports --component reflect --since 7d --json")
)
@click.option("--since", default="24h", show_default=True, metavar="TIME", help="A time, or how long ago: 24h, 7d, 2w.")
@click.option("--component", metavar="NAME", help="Only this component, such as memory, observe or reflect.")
@click.option("--action", metavar="NAME", help="Only this step, such as put, read or job.done.")
@click.option("--failed", is_flag=True, help="Only failures and refusals.")
@click.option("--limit", type=click.IntRange(1, 1000), default=50, show_default=True, help="At most this many.")
@pass_invocation
def reports(cli: Invocation, since: str, component: str | None, action: str | None, failed: bool, limit: int) -> None:
    """List telemetry events, newest first.

    Every call and every step of background work writes a telemetry event: its time, its duration, whether it failed,
    and its counts. `lukasa stats` adds them up. No telemetry event holds text of an entry.
    """
    found = cli.workspace().reports(since, component=component, action=action, failed=failed, limit=limit)
    cli.emit({"reports": plain(found)}, _reports(found))


def _reports(found: Sequence[TelemetryEvent]) -> Iterator[Line]:
    if not found:
        yield line("No such telemetry event.")
        return
    heads = ("at", "level", "from", "step", "ms", "counted")
    rows = (
        (when(p.at), p.level, p.source, f"{p.component} {p.action}", f"{p.duration_ms:,.1f}", _counted(p))
        for p in found
    )
    yield from table(heads, rows)


def _counted(point: TelemetryEvent) -> str:
    return brief(", ".join(f"{name} {value}" for name, value in point.metadata.items()), 80)


def _tokens(use: TokenUse, never: Sequence[Unused]) -> Iterator[Line]:
    yield from token_lines(use)
    if use.texts:
        yield from unused_lines(never, OFTEN)


def _stats(found: Stats) -> Iterator[Line]:
    then = f"{found.since:%Y-%m-%d %H:%M}"
    if not found.entries:
        yield line("No entries here yet.")
        yield line(dim('  `lukasa put "…"` stores an entry; `lukasa tour` shows how memory works'))
    else:
        yield line(title(many(found.total(), "entry")), f", {found.added:,} written since {then}")
        for name in ("tier", "state", "category", "source"):
            yield line(f"  by {name:<9}", _shares(found, name))
        yield line(
            f"  {found.totals.stale:,} stale, {many(found.totals.merged, 'repetition')} merged into entries in recall"
        )
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
        yield line(f"{found.awaiting:,} entries need a decision: `lukasa disposition list`")
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


F = TypeVar("F", bound=Callable[..., Any])


@click.group(
    cls=CliGroup,
    examples=("lukasa scrub plan --tier workspace", "lukasa scrub execute --tier workspace --confirm 3f1c9a…"),
)
def scrub() -> None:
    """Remove the contents of a tier or a conversation for good, in two steps.

    `plan` shows what would be removed, and removes nothing; `execute` needs the digest of that plan. There is no undo.
    """


def _extent_options(f: F) -> F:
    """Add the options that choose what to scrub."""
    for option in (
        click.option("--thread", metavar="REF", help="Instead of a tier: one whole conversation with its checkpoints."),
        click.option(
            "--mode",
            type=click.Choice(["full", "keep_named"]),
            help="The whole tier, or all but the named entries [default: full].",
        ),
        click.option("--tier", metavar="NAME", help="The tier to empty, in the bound scope."),
    ):
        f = option(f)
    return f


@scrub.command(
    "plan",
    examples=(
        "lukasa scrub plan --tier workspace",
        "lukasa scrub plan --tier account --mode keep_named",
        "lukasa --channel research scrub plan --tier channel",
        "lukasa scrub plan --thread 3kTMd9PqX2v",
    ),
)
@_extent_options
@pass_invocation
def scrub_plan(cli: Invocation, tier: str | None, mode: str | None, thread: str | None) -> None:
    """Show what a scrub would remove, and the digest to confirm it with. Nothing is removed."""
    _require_one(tier, mode, thread)
    world = cli.workspace()
    shown = world.purge_plan(thread) if thread is not None else world.scrub_plan(tier or "", mode=mode or "full")
    cli.emit(_manifest_data(shown), _manifest(cli, shown, tier, mode, thread))


@scrub.command(
    "execute",
    examples=(
        "lukasa scrub execute --tier workspace --confirm 3f1c9a0b77de",
        "lukasa scrub execute --thread 3kTMd9PqX2v --confirm 9d04e1c2aa51",
    ),
)
@_extent_options
@click.option("--confirm", required=True, metavar="DIGEST", help="The plan's digest, or its first 12 characters.")
@pass_invocation
def scrub_execute(cli: Invocation, tier: str | None, mode: str | None, thread: str | None, confirm: str) -> None:
    """Remove the contents of a plan for good; refused if they have changed since."""
    _require_one(tier, mode, thread)
    world = cli.workspace()
    if thread is not None:
        done = world.purge_execute(thread, confirm=confirm)
    else:
        done = world.scrub_execute(tier or "", confirm=confirm, mode=mode or "full")
    told = [line(good("removed "), many(sum(done.manifest.counts.values()), "row"), dim(f"  event {done.event}"))]
    if not done.swept:
        told.append(
            line(
                warn("! "),
                "the files still hold the removed text: somebody reads them, or they are in a large database; "
                "`lukasa scrub files` rewrites them",
            )
        )
    cli.emit({**_manifest_data(done.manifest), "event": done.event, "swept": done.swept}, told)


@scrub.command("files", examples=("lukasa scrub files",))
@click.pass_context
@pass_invocation
def scrub_files(cli: Invocation, ctx: click.Context) -> None:
    """Rewrite the files that may still hold what was scrubbed.

    A scrub does this itself, unless somebody reads the files, or the database is a large one on PostgreSQL. There, all
    workspaces of all accounts wait until its tables are written. Exits with code 1 if others are in the way.
    """
    cleared = cli.workspace().scrub_files()
    told = (
        line(good("✓ "), "no file holds what was scrubbed")
        if cleared
        else line(warn("! "), "not done: others use the files, or this user does not own the tables")
    )
    cli.emit({"swept": cleared}, [told])
    if not cleared:
        ctx.exit(1)


def _require_one(tier: str | None, mode: str | None, thread: str | None) -> None:
    if (tier is None) == (thread is None):
        raise click.UsageError("give either --tier NAME or --thread REF")
    if thread is not None and mode is not None:
        raise click.UsageError("--mode is for tiers; a conversation is always removed as a whole")


def _manifest_data(shown: Manifest) -> dict[str, Any]:
    return {**plain(shown), "counts": shown.counts}


def _manifest(
    cli: Invocation, shown: Manifest, tier: str | None, mode: str | None, thread: str | None
) -> Iterator[Line]:
    where = ", ".join(f"{key} {value}" for key, value in shown.scope.items())
    yield line(title("would be removed"), dim(f"  {shown.mode}: {where}"))
    for part in shown.lines:
        yield line(f"  {part.count:>7,}  ", part.what)
    if not shown.lines:
        yield line("  nothing")
    for told in shown.warnings:
        yield line(warn("  ! "), told)
    for row in shown.kept:
        yield line(dim("  stays    "), f"{row.id}: {', '.join(row.actions)} rests on it")
    if shown.sample:
        yield line(dim("  such as "), ", ".join(shown.sample[:3]))
    what = f"--thread {thread}" if thread is not None else f"--tier {tier}" + (f" --mode {mode}" if mode else "")
    yield line(dim(f"  digest {shown.digest}"))
    command = cli.again(f"scrub execute {what} --confirm {shown.digest[:SHORTEST]}")
    yield line(dim(f"  `{command}` does it; there is no undo"))
