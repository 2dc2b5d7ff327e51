"""What `lukasa` alone says: what is here, and what to do next, in five lines."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from lukasa import __version__
from lukasa.app import DEFAULT_WORKSPACE
from lukasa.model.values import State
from lukasa.surfaces.cli.data import plain
from lukasa.surfaces.cli.invocation import Invocation
from lukasa.surfaces.cli.output import Line, dim, line, title
from lukasa.surfaces.http import links

_WIDE = 18
_MOST = 100


class Here(Struct, frozen=True):
    """The state of a memory: where it is, how much there is, what waits for a person, and the servers that run."""

    version: str
    data: str
    exists: bool
    workspaces: int = 0
    workspace: str = ""
    entries: int = 0
    waiting: int = 0
    servers: tuple[int, ...] = ()


def tell(cli: Invocation) -> None:
    """Print the state of the chosen memory. Where there is none, none is created."""
    found = _here(cli)
    cli.emit(plain(found), _told(found))


def _here(cli: Invocation) -> Here:
    settings = cli.settings
    where = settings.shown_database or str(settings.data)
    if not settings.database and not settings.account.is_dir():
        return Here(__version__, where, exists=False)
    names = [info.name for info in cli.memory.workspaces()]
    chosen = cli.choices.workspace or (DEFAULT_WORKSPACE if DEFAULT_WORKSPACE in names else next(iter(names), ""))
    servers = tuple(links.ask(settings.account)) if settings.account.is_dir() else ()
    if chosen not in names:
        return Here(__version__, where, exists=bool(names), workspaces=len(names), servers=servers)
    world = cli.memory.existing(chosen)
    entries = world.stats().total(state=str(State.ACTIVE))
    waiting = len(world.inbox(limit=_MOST))
    return Here(__version__, where, True, len(names), chosen, entries, waiting, servers)


def _told(found: Here) -> Iterator[Line]:
    yield line(title(f"Lukasa {found.version}"), f": {_summary(found)}")
    if not found.exists:
        yield _next("connect an agent", "lukasa install claude-code", "shows the change and asks first")
        yield _next("see how it works", "lukasa tour", "in a throw-away memory")
        yield _next("store a text", 'lukasa put "The villain is called Malachar"')
    else:
        more = "" if found.waiting < _MOST else " or more"
        waiting = f"{found.waiting}{more} wait for your decision: lukasa review" if found.waiting else ""
        yield _next("find something", 'lukasa read "…"', waiting)
        if found.servers:
            page = ", ".join(f"http://127.0.0.1:{port}" for port in found.servers)
            yield _next("open the page", "lukasa link", f"the server runs at {page}")
        else:
            yield _next("open the page", "lukasa serve")
        yield _next("connect an agent", "lukasa install claude-code", "shows the change and asks first")
    yield _next("everything else", "lukasa --help")


def _summary(found: Here) -> str:
    if not found.exists:
        return f"a memory for AI agents, in files of your own. There is none yet; it would be in {found.data}"
    counted = "1 workspace" if found.workspaces == 1 else f"{found.workspaces:,} workspaces"
    held = f"{found.entries:,} {'entry' if found.entries == 1 else 'entries'} in {found.workspace}"
    return f"{counted}, {held} · {found.data}" if found.workspace else f"{counted} · {found.data}"


def _next(what: str, command: str, more: str = "") -> Line:
    return line(f"  {what:<{_WIDE}}", command, dim(f"   {more}") if more else "")
