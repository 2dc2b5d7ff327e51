"""Verbs about grants: who else may use this memory, and what for."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import timedelta

import click

from lukasa.app import DEFAULT_WORKSPACE
from lukasa.model.errors import InvalidInput
from lukasa.model.grant import OWNERS_ALONE, Capability, Grant
from lukasa.model.values import Trust
from lukasa.service.admin.access import Issued
from lukasa.surfaces.cli.data import plain
from lukasa.surfaces.cli.lines import when
from lukasa.surfaces.cli.options import Family
from lukasa.surfaces.cli.output import Line, dim, good, line, table, title, warn
from lukasa.surfaces.cli.session import Session, pass_session

_UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_CAN = ", ".join(one for one in Capability if one not in OWNERS_ALONE)


@click.group(cls=Family, examples=("lukasa grant create claude --can read,write", "lukasa grant revoke claude"))
def grant() -> None:
    """Let other clients use this memory, and stop them."""


@grant.command(
    "create",
    examples=(
        "lukasa grant create claude --can read,write,conversations",
        "lukasa grant create reviewer --workspace novel --can read --expires 30d",
        "lukasa grant create scraper --can write --untrusted",
    ),
)
@click.argument("name")
@click.option("--workspace", "-w", "workspaces", multiple=True, metavar="NAME", help="Workspace it is for. Repeatable.")
@click.option("--can", default="read,write", show_default=True, metavar="LIST", help=f"Among: {_CAN}.")
@click.option("--tier", "tiers", multiple=True, metavar="LIST", help="Only these tiers [default: the workspace's own].")
@click.option("--channel", "channels", multiple=True, metavar="NAME", help="Channel it takes part in. Repeatable.")
@click.option(
    "--conversation", "talks", multiple=True, metavar="REF", help="Conversation it takes part in. Repeatable."
)
@click.option("--agent", metavar="NAME", help="The agent it acts as [default: the grant's name].")
@click.option("--untrusted", is_flag=True, help="What it writes counts as text of unknown authorship.")
@click.option("--expires", metavar="TIME", help="When it ends: 12h, 30d, 8w [default: when revoked].")
@pass_session
def grant_create(
    session: Session,
    name: str,
    workspaces: Sequence[str],
    can: str,
    tiers: Sequence[str],
    channels: Sequence[str],
    talks: Sequence[str],
    agent: str | None,
    untrusted: bool,
    expires: str | None,
) -> None:
    """Let another client in. Its token is shown this once.

    Put the token where the client reads its settings, and nowhere else: whoever has it is that client.
    """
    places = workspaces or [session.choices.workspace or DEFAULT_WORKSPACE]
    if DEFAULT_WORKSPACE in places:
        session.memory.workspace(DEFAULT_WORKSPACE)
    issued = session.memory.access.create(
        name,
        workspaces=places,
        can=_listed([can]),
        tiers=_listed(tiers),
        channels=channels,
        conversations=talks,
        agent=agent,
        trust=Trust.UNTRUSTED if untrusted else Trust.AGENT,
        expires=_span(expires) if expires is not None else None,
    )
    session.emit({"grant": shown(issued.grant), "token": issued.token}, _issued(session, issued))


def _listed(given: Sequence[str]) -> list[str]:
    return [part.strip() for one in given for part in one.split(",") if part.strip()]


def _span(text: str) -> timedelta:
    match = re.fullmatch(r"(\d{1,5})([mhdw])", text.strip())
    if match is None:
        raise InvalidInput(f"{text[:40]!r} is not a time span", fix="write 90m, 12h, 30d or 8w")
    return timedelta(**{_UNITS[match[2]]: int(match[1])})


def shown(grant: Grant) -> dict[str, object]:
    """A grant as data, without the digest, which is nobody's business."""
    return {key: value for key, value in plain(grant).items() if key != "digest"}


def _issued(session: Session, issued: Issued) -> Iterator[Line]:
    yield line(good("granted "), issued.grant.name, dim(f"  id {issued.grant.id}"))
    yield from _facts(session, issued.grant)
    yield line("")
    yield line(issued.token)
    yield line(
        dim("  This is its token. It is shown this once and kept nowhere; "), warn("whoever has it is this client.")
    )
    yield line(dim(f"  `lukasa grant revoke {issued.grant.name}` ends it at once"))


@grant.command("list", examples=("lukasa grant list",))
@click.option("--all", "everything", is_flag=True, help="Also those that are over.")
@pass_session
def grant_list(session: Session, everything: bool) -> None:
    """List who may use this memory."""
    now = session.memory.access.clock.now()
    found = [one for one in session.memory.access.grants() if everything or one.live(now)]
    session.emit({"grants": [shown(one) for one in found]}, _listing(session, found))


def _listing(session: Session, found: Sequence[Grant]) -> Iterator[Line]:
    if not found:
        yield line("Nobody but you.")
        yield line(dim("  `lukasa grant create NAME --can read,write` lets a client in"))
        return
    rows = ((g.name, ", ".join(g.capabilities), _places(session, g), _state(session, g), g.id) for g in found)
    yield from table(("name", "can", "workspaces", "until", "id"), rows)


@grant.command("show", examples=("lukasa grant show claude",))
@click.argument("name")
@pass_session
def grant_show(session: Session, name: str) -> None:
    """Show what a grant may do, by its name or id."""
    found = session.memory.access.get(name)
    session.emit(shown(found), [line(title(found.name), dim(f"  id {found.id}")), *_facts(session, found)])


@grant.command("revoke", examples=("lukasa grant revoke claude",))
@click.argument("name")
@pass_session
def grant_revoke(session: Session, name: str) -> None:
    """End a grant, by its name or id. From the next request on its token opens nothing."""
    ended = session.memory.access.revoke(name)
    session.emit(shown(ended), [line(good("revoked "), ended.name, dim(f"  id {ended.id}"))])


def _facts(session: Session, grant: Grant) -> Iterator[Line]:
    yield line(dim("  can          "), ", ".join(grant.capabilities))
    yield line(dim("  workspaces   "), _places(session, grant))
    yield line(dim("  tiers        "), ", ".join(grant.reach.tiers) or "the workspace's own; the account is closed")
    for what, ids in (("channels", grant.reach.channels), ("conversations", grant.reach.conversations)):
        if ids:
            yield line(dim(f"  {what:<13}"), ", ".join(ids))
    yield line(dim("  acts as      "), f"agent {grant.agent}", dim(f", trusted as {grant.trust.name.lower()}"))
    yield line(dim("  until        "), _state(session, grant))


def _places(session: Session, grant: Grant) -> str:
    names = {info.id: info.name for info in session.memory.workspaces()}
    return ", ".join(names.get(id, id) for id in grant.workspaces)


def _state(session: Session, grant: Grant) -> str:
    if grant.revoked_at is not None:
        return f"revoked {when(grant.revoked_at)}"
    if grant.expires_at is None:
        return "revoked"
    over = not grant.live(session.memory.access.clock.now())
    return f"{'ended ' if over else ''}{when(grant.expires_at)}"
