"""`lukasa mcp`: memory for the MCP client that starts it, over stdin and stdout."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

import click

from lukasa.app import DEFAULT_WORKSPACE, Lukasa
from lukasa.model.errors import InvalidInput
from lukasa.model.grant import FOR_GOOD, OWNERS_ALONE, Capability
from lukasa.service.admin.access import Credential
from lukasa.surfaces.cli.options import Verb
from lukasa.surfaces.cli.session import Session, pass_session
from lukasa.surfaces.hooks.place import project, workspace_name

AGENT = "mcp"  # who a client is that was given no name
CAN = "read,write,forget,conversations"
_USUAL = f"{CAN}; as the owner all but to scrub"
_ALL = ", ".join(one for one in Capability if one not in OWNERS_ALONE)


@click.command(
    cls=Verb,
    examples=(
        "lukasa mcp --agent claude-desktop",
        "lukasa -w novel mcp --agent editor --can read",
        "lukasa mcp --token-env LUKASA_TOKEN",
        "lukasa mcp --as owner --can read,scrub_plan,scrub_full",
    ),
)
@click.option("--can", metavar="LIST", help=f"What it may do [default: {_USUAL}]. Among: {_ALL}.")
@click.option("--tier", "tiers", multiple=True, metavar="LIST", help="Only these tiers [default: the workspace's own].")
@click.option("--token-env", metavar="VAR", help="Act with the grant whose token is in this environment variable.")
@click.option(
    "--as",
    "role",
    type=click.Choice(["agent", "owner"]),
    default="agent",
    show_default=True,
    help="An agent's trust, or your own: then what the client does counts as done by you.",
)
@click.option("--project", "by_folder", is_flag=True, help="Use the workspace of this folder, as the hooks do.")
@pass_session
def mcp(
    session: Session, can: str | None, tiers: Sequence[str], token_env: str | None, role: str, by_folder: bool
) -> None:
    """Serve this memory to an MCP client over stdin and stdout.

    A client's settings start it, as `lukasa install claude-desktop` writes them. The client acts as an agent, in one
    workspace: what it writes has an agent's trust, the account's tiers are closed unless --tier names them, and it can
    remove nothing for good. As the owner it can, if --can names the ways to scrub; without --can it cannot.
    """
    server = _server()
    memory = _opened(session)
    if token_env is not None:
        if role == "owner" or can or tiers or session.choices.agent:
            raise click.UsageError("--token-env takes everything from its grant: leave the other options out")
        identify, home = _by_token(memory, token_env), session.choices.workspace
    else:
        home = _home(session, memory, by_folder)
        given = _given(session, memory, home, role, _listed([can]) if can is not None else None, _listed(tiers))

        def identify(ctx: object) -> Credential:
            return given

    server.serve_stdio(server.build(server.Dispatcher(memory.access, identify, home)))


def _server() -> Any:
    try:
        return import_module("lukasa.surfaces.mcp.server")
    except ModuleNotFoundError as missing:
        if (missing.name or "").partition(".")[0] == "lukasa":
            raise
        raise InvalidInput(
            f"an MCP server needs the package {missing.name!r}", fix="pip install 'lukasa[server]'"
        ) from None


def _opened(session: Session) -> Lukasa:
    if session.choices.scope:
        raise click.UsageError("--scope cannot be given here: a client names channel and conversation with each call")
    return session.memory


def _home(session: Session, memory: Lukasa, by_folder: bool) -> str:
    """The workspace it is for. A mistyped name must not become a new, empty memory."""
    choices = session.choices
    if choices.workspace is None and by_folder:
        return memory.workspace(workspace_name(project("", os.environ))).name
    choices.workspace = choices.workspace or DEFAULT_WORKSPACE
    return session.workspace().name


def _given(
    session: Session, memory: Lukasa, home: str, role: str, can: list[str] | None, tiers: Sequence[str]
) -> Credential:
    choices = session.choices
    if role == "owner":
        if choices.agent or tiers:
            raise click.UsageError("--as owner sees all tiers and is no agent: leave --agent and --tier out")
        let = can if can is not None else [one for one in Capability if one not in FOR_GOOD]
        return memory.access.owner("mcp", "stdio", can=let)
    return memory.access.lend(
        choices.agent or AGENT,
        workspaces=[home],
        can=can if can is not None else _listed([CAN]),
        tiers=tiers,
        channels=[choices.channel] if choices.channel else [],
        conversations=[choices.conversation] if choices.conversation else [],
        surface="mcp",
        transport="stdio",
    )


def _by_token(memory: Lukasa, variable: str) -> Callable[[object], Credential]:
    """The grant of a token, asked for anew each time: it may have been revoked."""
    token = os.environ.get(variable, "")
    if not token:
        raise InvalidInput(f"the environment variable {variable[:60]} is empty", fix="put a grant's token there")
    memory.access.admit(token, surface="mcp", transport="stdio")  # a wrong one is said at once
    return lambda ctx: memory.access.admit(token, surface="mcp", transport="stdio")


def _listed(given: Sequence[str]) -> list[str]:
    return [part.strip() for one in given for part in one.split(",") if part.strip()]
