"""Verb: install, which puts Lukasa into a harness's settings, as hooks or as an MCP server, and takes it out again."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import click
from platformdirs import user_config_path

from lukasa.surfaces.cli.installing import Plan, carried, carry_out, program
from lukasa.surfaces.cli.options import Choices, Family
from lukasa.surfaces.hooks import claude_code
from lukasa.surfaces.mcp import clients

SCOPES = {"user": "settings.json", "project": "settings.json", "local": "settings.local.json"}


@click.group(cls=Family, examples=("lukasa install claude-code", "lukasa install claude-desktop --undo"))
def install() -> None:
    """Let a harness use this memory by itself, or stop it."""


def _agreed(f: Callable[..., None]) -> Callable[..., None]:
    """The options of every command here."""
    for option in (
        click.option("--print", "only_show", is_flag=True, help="Only show what would be written."),
        click.option("--undo", is_flag=True, help="Take out what was put in, and nothing else."),
        click.option("--yes", is_flag=True, help="Write without asking."),
    ):
        f = option(f)
    return f


@install.command(
    "claude-code",
    examples=(
        "lukasa install claude-code",
        "lukasa install claude-code --mcp --scope project --yes",
        "lukasa install claude-code --undo",
    ),
)
@click.option(
    "--scope",
    type=click.Choice(list(SCOPES)),
    default="user",
    show_default=True,
    help="Whose settings: yours, this folder's for everybody, or this folder's for you.",
)
@click.option("--mcp", "as_server", is_flag=True, help="The MCP server, instead of the hooks.")
@_agreed
def install_claude_code(scope: str, as_server: bool, **how: bool) -> None:
    """Put the hooks into Claude Code's settings, after showing the change.

    Memory is then injected when a session starts, when something is asked, and after a tool has failed. With --mcp it
    gets tools to read and write memory by itself, in the same workspace. Options such as --workspace or --embedder that
    are given here are written down with it.
    """
    ctx = click.get_current_context()
    choices = ctx.ensure_object(Choices)
    if as_server:
        options = [*carried(ctx, choices), "mcp", "--project"]  # which gives way to a workspace that is named
        path, where = _claude_code_servers(scope)
        plan = _server(claude_code.NAME, scope, path, options, choices, where, undo_with="claude-code --mcp")
    else:
        plan = Plan(
            harness=claude_code.NAME,
            scope=scope,
            path=_claude_code_settings(scope),
            what="hooks",
            put=lambda settings: claude_code.installed(settings, program(), carried(ctx, choices)),
            take=claude_code.removed,
            undo_with="lukasa install claude-code",
        )
    carry_out(plan, choices, **how)


@install.command("claude-desktop", examples=("lukasa install claude-desktop", "lukasa install claude-desktop --undo"))
@_agreed
def install_claude_desktop(**how: bool) -> None:
    """Put the MCP server into Claude Desktop's settings, after showing the change.

    It is then an agent of that name in one workspace, `main` unless --workspace says another.
    """
    ctx = click.get_current_context()
    choices = ctx.ensure_object(Choices)
    path = user_config_path("Claude", appauthor=False, roaming=True) / "claude_desktop_config.json"
    options = [*carried(ctx, choices, environment=True), "mcp"]
    carry_out(_server("claude-desktop", "user", path, options, choices), choices, **how)


@install.command("cursor", examples=("lukasa install cursor", "lukasa -w novel install cursor --scope project"))
@click.option(
    "--scope",
    type=click.Choice(["user", "project"]),
    default="user",
    show_default=True,
    help="Whose settings: yours, or this folder's for everybody.",
)
@_agreed
def install_cursor(scope: str, **how: bool) -> None:
    """Put the MCP server into Cursor's settings, after showing the change.

    It is then an agent of that name in one workspace, `main` unless --workspace says another.
    """
    ctx = click.get_current_context()
    choices = ctx.ensure_object(Choices)
    path = (Path.home() if scope == "user" else Path.cwd()) / ".cursor" / "mcp.json"
    options = [*carried(ctx, choices, environment=scope == "user"), "mcp"]
    carry_out(_server("cursor", scope, path, options, choices), choices, **how)


def _server(
    harness: str,
    scope: str,
    path: Path,
    options: Sequence[str],
    choices: Choices,
    where: Sequence[str] = (),
    undo_with: str | None = None,
) -> Plan:
    named = [] if choices.agent else ["--agent", harness]
    wanted: dict[str, Any] = clients.entry(program(), [*options, *named])
    return Plan(
        harness=harness,
        scope=scope,
        path=path,
        what="MCP server",
        put=partial(clients.installed, wanted=wanted, where=where),
        take=partial(clients.removed, where=where),
        undo_with=f"lukasa install {undo_with or harness}",
    )


def _claude_code_settings(scope: str) -> Path:
    if scope == "user":
        return (_claude_folder() or Path.home() / ".claude") / SCOPES[scope]
    return Path.cwd() / ".claude" / SCOPES[scope]


def _claude_code_servers(scope: str) -> tuple[Path, tuple[str, ...]]:
    """Where Claude Code has its servers: a file of its own for all, and its state, by folder, for one person."""
    if scope == "project":
        return Path.cwd() / ".mcp.json", ()
    state = (_claude_folder() or Path.home()) / ".claude.json"
    return state, () if scope == "user" else ("projects", os.getcwd())


def _claude_folder() -> Path | None:
    chosen = os.environ.get("CLAUDE_CONFIG_DIR")
    return Path(chosen).expanduser() if chosen else None
