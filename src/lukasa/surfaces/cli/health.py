"""Verbs about the log and the stores: events, doctor."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

import click

from lukasa.app import EarlierFolders, earlier_folders
from lukasa.app import take_over as move_earlier
from lukasa.model.errors import LukasaError, StoreDamaged, StoreForeign, StoreMissing
from lukasa.model.events import Event, chain_faults, is_emptied
from lukasa.storage.port import Finding, Store
from lukasa.surfaces.cli import lines
from lukasa.surfaces.cli.data import plain
from lukasa.surfaces.cli.lines import when
from lukasa.surfaces.cli.options import Family, Verb
from lukasa.surfaces.cli.output import Line, bad, brief, dim, good, line, table, warn
from lukasa.surfaces.cli.session import TAKE_OVER, Session, pass_session

DAMAGED = 3


@click.group(cls=Family, invoke_without_command=True, examples=("lukasa events", "lukasa events verify"))
@click.pass_context
def events(ctx: click.Context) -> None:
    """Look into the event log, or verify it.

    Every change of memory is an event, sealed to the one before it. Without a subcommand the latest are listed.
    """
    if ctx.invoked_subcommand is None:
        ctx.invoke(events_list)


def _store(session: Session, account: bool) -> Store:
    return session.memory.account if account else session.workspace().ctx.local


@events.command("list", examples=("lukasa events list --limit 20", "lukasa events list --action entry.discarded"))
@click.option("--after", type=int, metavar="SEQ", help="Only events after this number [default: the latest].")
@click.option("--limit", type=click.IntRange(1, 100_000), default=50, show_default=True, help="At most this many.")
@click.option("--action", metavar="NAME", help="Only this action, such as entry.put or entry.discarded.")
@click.option("--account", is_flag=True, help="The account's log instead of the workspace's.")
@pass_session
def events_list(
    session: Session, after: int | None = None, limit: int = 50, action: str | None = None, account: bool = False
) -> None:
    """List events, oldest first; the latest ones unless --after says otherwise."""
    store = _store(session, account)
    if after is not None:
        found = store.events(after=after, limit=limit, action=action)
    elif action is None:
        found = store.events(after=max(0, store.head()[0] - limit), limit=limit)
    else:
        found = store.events(limit=store.head()[0] + 1, action=action)[-limit:]
    session.emit({"events": plain(found)}, _events(found))


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


@events.command("verify", examples=("lukasa events verify",))
@click.pass_context
@pass_session
def events_verify(session: Session, ctx: click.Context) -> None:
    """Recompute every seal of the workspace's log and of the account's."""
    found = {"workspace": session.workspace().verify(), "account": _chain(session.memory.account)}
    told = (part for name, faults in found.items() for part in lines.faults(faults, f"the {name}'s log is whole"))
    session.emit({"whole": not any(found.values()), "faults": found}, told)
    if any(found.values()):
        ctx.exit(DAMAGED)


def _chain(store: Store) -> list[str]:
    return chain_faults(store.event_stream(), head=store.head())


@events.command("head", examples=("lukasa events head > head.txt",))
@click.option("--account", is_flag=True, help="The account's log instead of the workspace's.")
@pass_session
def events_head(session: Session, account: bool) -> None:
    """Print the last event's number and digest, to keep elsewhere as a witness."""
    seq, digest = _store(session, account).head()
    session.emit({"seq": seq, "digest": digest}, [line(f"{seq} {digest}")])


@click.command(cls=Verb, examples=("lukasa doctor", "lukasa -w novel doctor --repair", "lukasa doctor --take-over"))
@click.option("--repair", is_flag=True, help="Rebuild derived data, such as indexes; memory itself is not touched.")
@click.option(
    "--take-over",
    is_flag=True,
    help="First move the data folder that this program had under its earlier name to its present place.",
)
@click.pass_context
@pass_session
def doctor(session: Session, ctx: click.Context, repair: bool, take_over: bool) -> None:
    """Check the stores, and repair derived data.

    Checks the workspace and the account: files, hashes, indexes against rows, the event chain. Exits with code 3 if
    something is wrong.
    """
    session.announces = False  # the answer itself tells of it
    earlier = _earlier(session, take_over)
    found = {name: _examine(session, name, repair) for name in ("account", "workspace")}
    left = [finding for findings, _ in found.values() for finding in findings]
    data = {name: {"findings": plain(findings), "repaired": fixed} for name, (findings, fixed) in found.items()}
    told = (*_told_earlier(earlier, take_over), *_diagnosis(found))
    session.emit({"healthy": not left, **data, "earlier_folders": {**plain(earlier), "taken_over": take_over}}, told)
    if left:
        ctx.exit(DAMAGED)


def _earlier(session: Session, take_over: bool) -> EarlierFolders:
    """The folders of the earlier name that exist, or that were moved just now; none if the call names a folder."""
    if not session.choices.data:
        return move_earlier() if take_over else earlier_folders()
    if take_over:
        raise click.UsageError("--take-over moves memory to the default data folder; leave out --data and LUKASA_DATA")
    return EarlierFolders()


def _told_earlier(earlier: EarlierFolders, taken_over: bool) -> Iterator[Line]:
    moved = [str(folder) for folder in (earlier.data, earlier.cache) if folder is not None]
    if taken_over and moved:
        yield line(good("✓ "), f"taken over: {' and '.join(moved)}")
    elif taken_over:
        yield line("Nothing to take over: there is no data folder of the earlier name.")
    elif earlier.data is not None:
        yield line(warn("! "), TAKE_OVER.format(earlier.data))


def _examine(session: Session, name: str, repair: bool) -> tuple[list[Finding], int]:
    """What is wrong with a store in the end, and how much was repaired on the way."""
    try:
        store = _store(session, account=name == "account")
        before = store.check()
        if not (repair and any(finding.derived for finding in before)):
            return before, 0
        store.rebuild()
        after = store.check()
    except (StoreDamaged, StoreForeign, StoreMissing) as error:
        return [_unreadable(error)], 0
    return after, len(before) - len(after)


def _unreadable(error: LukasaError) -> Finding:
    return Finding(error.code, "store", str(error), derived=False)


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
            yield line(dim("    `lukasa doctor --repair` rebuilds what is derived"))
