"""Commands that give others access: serve, link, mcp, grant."""

from __future__ import annotations

import os
import re
import signal
import sys
import webbrowser
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from datetime import timedelta
from importlib import import_module
from pathlib import Path
from typing import Any

import click

from lukasa.app import DEFAULT_WORKSPACE, Lukasa
from lukasa.model.errors import InvalidInput, NotFound
from lukasa.model.grant import ONLY_NAMED, OWNERS_ALONE, Capability, Grant
from lukasa.model.values import Trust
from lukasa.ports import INSIDE
from lukasa.service.admin.access import Credential, Issued
from lukasa.surfaces.cli.data import plain
from lukasa.surfaces.cli.invocation import Invocation, pass_invocation
from lukasa.surfaces.cli.lines import database_lines, when
from lukasa.surfaces.cli.options import ID, CliCommand, CliGroup
from lukasa.surfaces.cli.output import Line, dim, good, line, table, title, warn
from lukasa.surfaces.hooks.harness import project
from lukasa.surfaces.http import links

DEFAULT_PORT = 7437


@click.command(
    cls=CliCommand,
    examples=("lukasa serve", "lukasa serve --port 8080 --no-open", "lukasa -w novel serve"),
)
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=DEFAULT_PORT,
    show_default=True,
    help="Port to listen on; 0 takes a free one.",
)
@click.option("--open/--no-open", "browse", default=None, help="Open the page in a browser [default: on a terminal].")
@click.option("--host", default="127.0.0.1", show_default=True, metavar="ADDRESS", help="Address to listen on.")
@click.option("--behind-tls", "public", metavar="NAME", help="Host name of a TLS proxy in front of the server.")
@click.option(
    "--connections",
    type=click.IntRange(4, 100_000),
    default=256,
    show_default=True,
    metavar="N",
    help="Connections at a time; when all are taken, one without a request in progress makes room.",
)
@click.option(
    "--patience",
    type=click.FloatRange(0.1, 3600),
    default=10.0,
    show_default=True,
    metavar="SECONDS",
    help="Time to send the head of a request; its body has six times as long.",
)
@click.option("--worker/--no-worker", "work", default=True, show_default=True, help="Run background jobs too.")
@click.option(
    "--drain",
    type=click.FloatRange(0, 3600),
    default=0.0,
    show_default=True,
    metavar="SECONDS",
    help="Time to go on serving after SIGTERM, while /ready says that the server stops.",
)
@click.option(
    "--log",
    type=click.Choice(["json", "text", "none"]),
    default="none",
    show_default=True,
    envvar="LUKASA_LOG",
    help="Write a line for each request to stderr.",
)
@click.option("--project", metavar="DIR", help="Folder of a project whose files clients may cite [default: none].")
@pass_invocation
def serve(
    cli: Invocation,
    port: int,
    browse: bool | None,
    host: str,
    public: str | None,
    connections: int,
    patience: float,
    work: bool,
    drain: float,
    log: str,
    project: str | None,
) -> None:
    """Serve the page, the HTTP API, MCP and the worker on this machine.

    It prints a link that opens the page once; `lukasa link` prints another. Clients need a token from `lukasa grant
    create`. The server runs until Ctrl-C or SIGTERM, and then finishes the requests and the job in progress; a second
    signal does not wait for them.
    """
    serving = _server_module()
    cli.folder = project or ""
    memory = cli.memory
    cli.choices.workspace = cli.choices.workspace or DEFAULT_WORKSPACE
    cli.workspace()
    bound = serving.listen(serving.Address(host, port, public), memory)
    limits = serving.Limits(connections, patience, 6 * patience)
    server = serving.Server(
        memory, bound, public=public, links=memory.settings.account, limits=limits, drain=drain, log=log
    )
    link = server.link()
    told = [
        line(good("serving "), link),
        *database_lines(memory.settings),
        line(dim("  the link opens once, `lukasa link` prints another; Ctrl-C stops")),
    ]
    where = memory.settings.shown_database or None
    cli.emit({"url": f"http://127.0.0.1:{server.port}", "link": link, "database": where}, told)
    sys.stdout.flush()
    with ExitStack() as stack:
        if browse if browse is not None else sys.stdout.isatty():
            stack.enter_context(_opened_in_browser(link, memory.settings.data / "enter.html"))
        if work:
            stack.enter_context(serving.working(memory, server, lambda said: click.echo(said, err=True)))
        finished = server.run(signals=(signal.SIGINT, signal.SIGTERM))
    if not finished:
        # A thread still works on a request that was given up. Nothing is left to wait for, so end the process with it.
        sys.stdout.flush()
        os._exit(0)


@contextmanager
def _opened_in_browser(link: str, file: Path) -> Iterator[None]:
    """Open a link through a private file: as an argument, other users could read its code in the process list."""
    file.unlink(missing_ok=True)
    with open(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as made:
        made.write(f'<!doctype html><meta http-equiv="refresh" content="0; url={link}"><title>Lukasa</title>\n')
    webbrowser.open(file.absolute().as_uri())
    try:
        yield
    finally:
        file.unlink(missing_ok=True)


def _server_module() -> Any:
    try:
        return import_module("lukasa.surfaces.http.serving")
    except ModuleNotFoundError as missing:
        if (missing.name or "").partition(".")[0] == "lukasa":
            raise
        raise InvalidInput(
            f"the server needs the package {missing.name!r}", fix="pip install 'lukasa[serve]'"
        ) from None


@click.command(cls=CliCommand, examples=("lukasa link", "lukasa link --port 8080", "lukasa link --json"))
@click.option(
    "--port", type=click.IntRange(1, 65535), help="Port of the server [default: that of the only running one]."
)
@pass_invocation
def link(cli: Invocation, port: int | None) -> None:
    """Print another link to the page of the running server.

    The link opens the page once, within 15 minutes. Only the owner of the data folder can get one.
    """
    found = links.ask(cli.settings.account, port)
    if not found:
        where = "" if port is None else f" on port {port}"
        raise NotFound(f"no server runs on this memory{where}", fix="start one with `lukasa serve`; it prints a link")
    if len(found) > 1:
        ports = ", ".join(map(str, found))
        raise InvalidInput(f"{len(found)} servers run on this memory", fix=f"choose one with --port: {ports}")
    ((at, made),) = found.items()
    told = [line(made), line(dim("  the link opens once, within 15 minutes"))]
    cli.emit({"url": f"http://127.0.0.1:{at}", "link": made}, told)


AGENT = "mcp"  # the agent of a client without a name
CAN = "read,write,forget,conversations"
_USUAL = f"{CAN}; as the owner all but scrubbing and discovering"
_ALL = ", ".join(one for one in Capability if one not in OWNERS_ALONE)


@click.command(
    cls=CliCommand,
    examples=(
        "lukasa mcp --agent claude-desktop",
        "lukasa -w novel mcp --agent editor --can read",
        "lukasa mcp --token-env LUKASA_TOKEN",
        "lukasa mcp --as owner --can read,scrub_plan,scrub_full",
    ),
)
@click.option("--can", metavar="LIST", help=f"Capabilities of the client [default: {_USUAL}]. Among: {_ALL}.")
@click.option("--tier", "tiers", multiple=True, metavar="LIST", help="Only these tiers [default: the workspace's own].")
@click.option("--token-env", metavar="VAR", help="Use the grant whose token is in this environment variable.")
@click.option(
    "--as",
    "role",
    type=click.Choice(["agent", "owner"]),
    default="agent",
    show_default=True,
    help="Trust of the client: an agent's, or your own, so that its actions count as yours.",
)
@click.option("--project", "by_folder", is_flag=True, help="Use the workspace of this folder, as the hooks do.")
@click.option(
    "--tools",
    type=click.Choice(["few", "all"]),
    default="few",
    show_default=True,
    help="List the tools of every day and one that leads to the others, or all of them.",
)
@pass_invocation
def mcp(
    cli: Invocation,
    can: str | None,
    tiers: Sequence[str],
    token_env: str | None,
    role: str,
    by_folder: bool,
    tools: str,
) -> None:
    """Serve this memory to an MCP client over stdin and stdout.

    A client starts this command from its settings, which `lukasa install claude-desktop` writes. The client acts as
    an agent in one workspace: its entries have an agent's trust, the account's tiers are closed unless --tier names
    them, it sees no other values of the keys that --scope binds, and it cannot scrub. With --as owner it can scrub
    if --can names the ways to scrub.
    """
    if os.environ.get(INSIDE):
        # Its prompt holds other people's text, which must not reach the tools that write.
        raise InvalidInput(
            f"a program that Lukasa runs gets no memory ({INSIDE} is set)", fix=f"unset {INSIDE} if it is not so"
        )
    server = _mcp_server()
    memory = cli.memory
    if token_env is not None:
        if role == "owner" or can or tiers or cli.choices.agent or cli.choices.scope:
            raise click.UsageError(
                "--token-env takes everything from its grant; remove --as, --can, --tier, --scope and --agent"
            )
        identify, home = _by_token(memory, token_env), cli.choices.workspace
    else:
        home = _home(cli, memory, by_folder)
        given = _given(cli, memory, home, role, _listed([can]) if can is not None else None, _listed(tiers))

        def identify(ctx: object) -> Credential:
            return given

    scope = cli.choices.scope if role == "owner" else {}
    every = tools == "all"
    server.serve_stdio(server.build(server.Dispatcher(memory.access, identify, home, scope=scope, every=every)))


def _mcp_server() -> Any:
    try:
        return import_module("lukasa.surfaces.mcp.server")
    except ModuleNotFoundError as missing:
        if (missing.name or "").partition(".")[0] == "lukasa":
            raise
        raise InvalidInput(
            f"an MCP server needs the package {missing.name!r}", fix="pip install 'lukasa[serve]'"
        ) from None


def _home(cli: Invocation, memory: Lukasa, by_folder: bool) -> str:
    """Return the client's workspace. A mistyped name must not become a new, empty memory."""
    choices = cli.choices
    if choices.workspace is None and by_folder:
        folder = project("", os.environ)  # a host may leave a variable in it unreplaced
        return memory.project_workspace(folder if os.path.isdir(folder) else os.getcwd()).name
    choices.workspace = choices.workspace or DEFAULT_WORKSPACE
    return cli.workspace().name


def _given(
    cli: Invocation, memory: Lukasa, home: str, role: str, can: list[str] | None, tiers: Sequence[str]
) -> Credential:
    choices = cli.choices
    if role == "owner":
        if choices.agent or tiers:
            raise click.UsageError("--as owner sees all tiers and is not an agent; remove --agent and --tier")
        let = can if can is not None else [one for one in Capability if one not in ONLY_NAMED]
        return memory.access.owner("mcp", "stdio", can=let)
    return memory.access.lend(
        choices.agent or AGENT,
        workspaces=[home],
        can=can if can is not None else _listed([CAN]),
        tiers=tiers,
        channels=[choices.channel] if choices.channel else [],
        conversations=[choices.conversation] if choices.conversation else [],
        scope=choices.scope,
        surface="mcp",
        transport="stdio",
    )


def _by_token(memory: Lukasa, variable: str) -> Callable[[object], Credential]:
    """Return a function that checks the token at each call, because its grant may have been revoked."""
    token = os.environ.get(variable, "")
    if not token:
        raise InvalidInput(f"the environment variable {variable[:60]} is empty", fix="set it to the token of a grant")
    memory.access.admit(token, surface="mcp", transport="stdio")  # report a wrong token at once
    return lambda ctx: memory.access.admit(token, surface="mcp", transport="stdio")


_UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_CAN = ", ".join(one for one in Capability if one not in OWNERS_ALONE)


@click.group(cls=CliGroup, examples=("lukasa grant create claude --can read,write", "lukasa grant revoke claude"))
def grant() -> None:
    """Create, list and revoke the access of other clients."""


@grant.command(
    "create",
    examples=(
        "lukasa grant create claude --can read,write,conversations",
        "lukasa grant create reviewer --workspace novel --can read --expires 30d",
        "lukasa grant create scraper --can write --untrusted",
        "lukasa grant create desk --can read,write --scope org_id=acme",
    ),
)
@click.argument("name")
@click.option(
    "--workspace", "-w", "workspaces", multiple=True, metavar="NAME", help="Workspace of the grant. Repeatable."
)
@click.option("--can", default="read", show_default=True, metavar="LIST", help=f"Capabilities, among: {_CAN}.")
@click.option("--tier", "tiers", multiple=True, metavar="LIST", help="Only these tiers [default: the workspace's own].")
@click.option("--channel", "channels", multiple=True, metavar="NAME", help="Channel that it opens. Repeatable.")
@click.option("--conversation", "talks", multiple=True, metavar="REF", help="Conversation that it opens. Repeatable.")
@click.option("--agent", metavar="NAME", help="The agent it acts as [default: the grant's name].")
@click.option("--untrusted", is_flag=True, help="Entries of this client count as text of unknown authorship.")
@click.option("--expires", metavar="TIME", help="When it ends: 12h, 30d, 8w [default: when revoked].")
@pass_invocation
def grant_create(
    cli: Invocation,
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
    """Give another client access, and print its token, which is shown only once.

    Without --can it may only read. --scope binds it to one value of a scope key that the spec adds, such as a
    tenant. Put the token into the client's settings and nowhere else: anybody with the token has its access.
    """
    places = workspaces or [cli.choices.workspace or DEFAULT_WORKSPACE]
    if DEFAULT_WORKSPACE in places:
        cli.memory.workspace(DEFAULT_WORKSPACE)
    issued = cli.memory.access.create(
        name,
        workspaces=places,
        can=_listed([can]),
        tiers=_listed(tiers),
        channels=channels,
        conversations=talks,
        scope=cli.choices.scope,
        agent=agent,
        trust=Trust.UNTRUSTED if untrusted else Trust.AGENT,
        expires=_time_span(expires) if expires is not None else None,
    )
    cli.emit({"grant": shown(issued.grant), "token": issued.token}, _issued(cli, issued))


def _listed(given: Sequence[str]) -> list[str]:
    return [part.strip() for one in given for part in one.split(",") if part.strip()]


def _time_span(text: str) -> timedelta:
    match = re.fullmatch(r"(\d{1,5})([mhdw])", text.strip())
    if match is None:
        raise InvalidInput(f"{text[:40]!r} is not a time span", fix="write 90m, 12h, 30d or 8w")
    return timedelta(**{_UNITS[match[2]]: int(match[1])})


def shown(grant: Grant) -> dict[str, object]:
    """Return a grant as data, without the digest of its token."""
    return {key: value for key, value in plain(grant).items() if key != "digest"}


def _issued(cli: Invocation, issued: Issued) -> Iterator[Line]:
    yield line(good("granted "), issued.grant.name, dim(f"  id {issued.grant.id}"))
    yield from _grant_lines(cli, issued.grant)
    yield line("")
    yield line(issued.token)
    yield line(
        dim("  This is its token. It is shown only once and stored nowhere; "), warn("anybody with it has this access.")
    )
    yield line(dim(f"  `lukasa grant revoke {issued.grant.name}` ends it at once"))


@grant.command("list", examples=("lukasa grant list",))
@click.option("--all", "everything", is_flag=True, help="Also list ended grants.")
@pass_invocation
def grant_list(cli: Invocation, everything: bool) -> None:
    """List the grants of other clients."""
    now = cli.memory.access.clock.now()
    found = [one for one in cli.memory.access.grants() if everything or one.live(now)]
    cli.emit({"grants": [shown(one) for one in found]}, _listing(cli, found))


def _listing(cli: Invocation, found: Sequence[Grant]) -> Iterator[Line]:
    if not found:
        yield line("No other client has access.")
        yield line(dim("  `lukasa grant create NAME` lets a client read; --can read,write lets it write too"))
        return
    rows = ((g.name, ", ".join(g.capabilities), _places(cli, g), _state(cli, g), g.id) for g in found)
    yield from table(("name", "can", "workspaces", "until", "id"), rows)


@grant.command("show", examples=("lukasa grant show claude",))
@click.argument("name", type=ID)
@pass_invocation
def grant_show(cli: Invocation, name: str) -> None:
    """Show a grant's capabilities, by its name or id."""
    found = cli.memory.access.get(name)
    cli.emit(shown(found), [line(title(found.name), dim(f"  id {found.id}")), *_grant_lines(cli, found)])


@grant.command("revoke", examples=("lukasa grant revoke claude",))
@click.argument("name", type=ID)
@pass_invocation
def grant_revoke(cli: Invocation, name: str) -> None:
    """End a grant, by its name or id. Its token is refused from the next request on."""
    ended = cli.memory.access.revoke(name)
    cli.emit(shown(ended), [line(good("revoked "), ended.name, dim(f"  id {ended.id}"))])


def _grant_lines(cli: Invocation, grant: Grant) -> Iterator[Line]:
    yield line(dim("  can          "), ", ".join(grant.capabilities))
    yield line(dim("  workspaces   "), _places(cli, grant))
    yield line(dim("  tiers        "), ", ".join(grant.reach.tiers) or "the workspace's own; the account is closed")
    for what, ids in (("channels", grant.reach.channels), ("conversations", grant.reach.conversations)):
        if ids:
            yield line(dim(f"  {what:<13}"), ", ".join(ids))
    if grant.reach.scope:
        yield line(dim("  scope        "), ", ".join(f"{key}={value}" for key, value in grant.reach.scope.items()))
    yield line(dim("  acts as      "), f"agent {grant.agent}", dim(f", trusted as {grant.trust.name.lower()}"))
    yield line(dim("  until        "), _state(cli, grant))


def _places(cli: Invocation, grant: Grant) -> str:
    names = {info.id: info.name for info in cli.memory.workspaces()}
    return ", ".join(names.get(id, id) for id in grant.workspaces)


def _state(cli: Invocation, grant: Grant) -> str:
    if grant.revoked_at is not None:
        return f"revoked {when(grant.revoked_at)}"
    if grant.expires_at is None:
        return "revoked"
    over = not grant.live(cli.memory.access.clock.now())
    return f"{'ended ' if over else ''}{when(grant.expires_at)}"
