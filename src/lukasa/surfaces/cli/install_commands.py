"""The command `install`: write Lukasa into a harness's settings, and remove it again."""

from __future__ import annotations

import difflib
import json
import os
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource
from msgspec import Struct
from platformdirs import user_config_path

from lukasa.model import database_url
from lukasa.model.errors import InvalidInput
from lukasa.surfaces.cli.options import Choices, CliGroup
from lukasa.surfaces.cli.output import Line, dim, encode, good, line, warn, write
from lukasa.surfaces.hooks import claude_code_hooks as claude_code
from lukasa.surfaces.hooks import settings_file
from lukasa.surfaces.hooks.settings_file import SettingsFile
from lukasa.surfaces.mcp import clients

SCOPES = {"user": "settings.json", "project": "settings.json", "local": "settings.local.json"}

OBSERVER = "command:claude"
OFFER = (
    "Your own Claude Code can find what is worth remembering in a session; otherwise rules do it.\n"
    "When a session ends or is compacted, Lukasa then sends its text to `claude -p`, one call for every 24,000\n"
    "characters: about 7,000 tokens and Claude Code's own prompt, which your plan or your API key pays for."
)


@click.group(cls=CliGroup, examples=("lukasa install claude-code", "lukasa install claude-desktop --undo"))
def install() -> None:
    """Write Lukasa into a harness's settings, or remove it."""


def _write_options(f: Callable[..., None]) -> Callable[..., None]:
    """Add the options of every install command."""
    for option in (
        click.option("--print", "only_show", is_flag=True, help="Show the change, and write nothing."),
        click.option("--undo", is_flag=True, help="Remove what this command wrote, and nothing else."),
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
@click.option("--mcp", "as_server", is_flag=True, help="Install the MCP server instead of the hooks.")
@_write_options
def install_claude_code(scope: str, as_server: bool, **how: bool) -> None:
    """Write the hooks into Claude Code's settings, after showing the change.

    The hooks inject memory when a session starts, at each prompt, and after a failed tool call. With --mcp, Claude Code
    gets tools to read and write memory instead, in the same workspace. Options such as --workspace or --embedder are
    written into the settings.

    On a terminal the command also asks whether `claude -p` shall observe ended sessions, if there is a `claude`. The
    answer is no unless you say yes.
    """
    ctx = click.get_current_context()
    choices = ctx.ensure_object(Choices)
    if as_server:
        options = [*carried(ctx, choices), "mcp", "--project"]  # a named workspace takes precedence over --project
        path, where = _claude_code_servers(scope)
        plan = _server(claude_code.NAME, scope, path, options, choices, where, undo_with="claude-code --mcp")
    else:
        path = _claude_code_settings(scope)
        chat = OBSERVER if not any(how.values()) and _wants_observer(path, choices) else ""
        plan = SettingsChange(
            harness=claude_code.NAME,
            scope=scope,
            path=path,
            what="hooks",
            put=lambda settings: claude_code.installed(settings, program(), carried(ctx, choices), chat),
            take=claude_code.removed,
            undo_with="lukasa install claude-code",
        )
    carry_out(plan, choices, **how)


@install.command("claude-desktop", examples=("lukasa install claude-desktop", "lukasa install claude-desktop --undo"))
@_write_options
def install_claude_desktop(**how: bool) -> None:
    """Write the MCP server into Claude Desktop's settings, after showing the change.

    Claude Desktop is then an agent of that name in one workspace, `main` unless --workspace names another.
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
@_write_options
def install_cursor(scope: str, **how: bool) -> None:
    """Write the MCP server into Cursor's settings, after showing the change.

    Cursor is then an agent of that name in one workspace, `main` unless --workspace names another.
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
) -> SettingsChange:
    named = [] if choices.agent else ["--agent", harness]
    wanted: dict[str, Any] = clients.entry(program(), [*options, *named])
    return SettingsChange(
        harness=harness,
        scope=scope,
        path=path,
        what="MCP server",
        put=partial(clients.installed, wanted=wanted, where=where),
        take=partial(clients.removed, where=where),
        undo_with=f"lukasa install {undo_with or harness}",
    )


def _wants_observer(path: Path, choices: Choices) -> bool:
    """Ask whether `claude -p` shall observe sessions, unless nobody can answer, it cannot, or the settings say so."""
    if choices.json or not sys.stdin.isatty() or shutil.which("claude") is None:
        return False
    if claude_code.chat_setting(settings_file.read(path).settings):
        return False
    click.echo(OFFER, err=True)
    return click.confirm("Let `claude -p` observe your sessions?", default=False, err=True)


def _claude_code_settings(scope: str) -> Path:
    if scope == "user":
        return (_claude_folder() or Path.home() / ".claude") / SCOPES[scope]
    return Path.cwd() / ".claude" / SCOPES[scope]


def _claude_code_servers(scope: str) -> tuple[Path, tuple[str, ...]]:
    """Return the file with Claude Code's MCP servers, and the keys that lead to them in it."""
    if scope == "project":
        return Path.cwd() / ".mcp.json", ()
    state = (_claude_folder() or Path.home()) / ".claude.json"
    return state, () if scope == "user" else ("projects", os.getcwd())


def _claude_folder() -> Path | None:
    chosen = os.environ.get("CLAUDE_CONFIG_DIR")
    return Path(chosen).expanduser() if chosen else None


Settings = dict[str, Any]
# Options that are written into the harness's settings, if they were given.
_CARRIED = ("data", "database", "account_name", "workspace", "channel", "agent", "embedder")


class SettingsChange(Struct, frozen=True):
    """A change of a settings file. `take` removes what `put` adds, and nothing else."""

    harness: str
    scope: str
    path: Path
    what: str
    put: Callable[[Settings], Settings]
    take: Callable[[Settings], Settings]
    undo_with: str


def carry_out(plan: SettingsChange, choices: Choices, *, yes: bool, undo: bool, only_show: bool) -> None:
    file = settings_file.read(plan.path)
    content = _without_ours(plan, file) if undo else _with_ours(plan, file)
    diff = list(_diff(file, content))
    if diff and not choices.json:
        write((line(part) for part in diff), no_color=choices.no_color)
    written = bool(diff) and not only_show and (yes or _confirmed(file, choices))
    if written:
        settings_file.write(file, content, keep=not undo)
    if choices.json:
        click.echo(encode(_outcome_data(plan, file, undo, diff, written)))
    else:
        write(_outcome(plan, file, undo, bool(diff), written), no_color=choices.no_color)


def program() -> list[str]:
    """Return the command that starts this `lukasa` from any folder: its own path, or its interpreter and module."""
    called = Path(sys.argv[0])
    if called.stem == "lukasa":
        found = shutil.which(sys.argv[0])
        if found is not None:
            return [os.path.abspath(found)]
    # -P: Python must not look for modules in the folder that a hook runs in.
    return [sys.executable, "-P", "-m", "lukasa.surfaces.cli.main"]


def carried(ctx: click.Context, choices: Choices, *, environment: bool = False) -> list[str]:
    """Return the shared options of this command line; with `environment` also those of the environment.

    A harness that is started from a desktop does not have the environment of the shell.
    """
    sources = {ParameterSource.COMMANDLINE} | ({ParameterSource.ENVIRONMENT} if environment else set())
    out: list[str] = []
    for name in _CARRIED:
        if any(c.get_parameter_source(name) in sources for c in (ctx, *_parents(ctx))):
            value = str(getattr(choices, name))
            if name == "database":
                _require_no_password(value)
            option = f"--{name.replace('_', '-')}"
            out += [option, os.path.abspath(Path(value).expanduser()) if name == "data" else value]
    return out


def _require_no_password(url: str) -> None:
    """Raise if settings would hold a password: other users and programs may read them."""
    database_url.check(url)
    if database_url.has_password(url):
        raise InvalidInput(
            f"the settings of a harness are no place for the password of {database_url.masked(url)}",
            fix="leave the password out of the URL and write it into ~/.pgpass; nothing was written",
        )


def _parents(ctx: click.Context) -> Iterator[click.Context]:
    while ctx.parent is not None:
        ctx = ctx.parent
        yield ctx


def _with_ours(plan: SettingsChange, file: SettingsFile) -> bytes | None:
    changed = plan.put(file.settings)
    return file.raw if _same(changed, file.settings) else file.spelled(changed)


def _without_ours(plan: SettingsChange, file: SettingsFile) -> bytes | None:
    """Return the file without our part: the original bytes, if nothing else has changed since."""
    left = plan.take(file.settings)
    if _same(left, file.settings):
        return file.raw
    try:
        kept = settings_file.read(file.backup)
    except InvalidInput:
        return file.spelled(left)
    if kept.raw is None:
        return file.spelled(left) if left else None
    return kept.raw if _same(left, plan.take(plan.put(kept.settings))) else file.spelled(left)


def _same(one: Settings, other: Settings) -> bool:
    """Return whether two settings are equal, with their keys in the same order."""
    return json.dumps(one) == json.dumps(other)


def _diff(file: SettingsFile, content: bytes | None) -> Iterator[str]:
    if content == file.raw:
        return iter(())
    after = "" if content is None else content.decode("utf-8")
    name = str(file.path)
    return difflib.unified_diff(file.text.splitlines(), after.splitlines(), name, name, lineterm="")


def _confirmed(file: SettingsFile, choices: Choices) -> bool:
    if choices.json or not sys.stdin.isatty():
        raise click.UsageError("nothing was written; add --yes to write, or --print to show the change")
    return click.confirm(f"Write this to {file.path}?", err=True)


def _outcome_data(
    plan: SettingsChange, file: SettingsFile, undo: bool, diff: list[str], written: bool
) -> dict[str, object]:
    return {
        "harness": plan.harness,
        "file": str(file.path),
        "scope": plan.scope,
        "action": "undo" if undo else "install",
        "changes": bool(diff),
        "written": written,
        "backup": str(file.backup) if file.backup.exists() else None,
        "diff": diff,
    }


def _outcome(plan: SettingsChange, file: SettingsFile, undo: bool, changes: bool, written: bool) -> Iterator[Line]:
    if not changes:
        yield line(good("nothing to do: "), f"{file.path} {'has none of' if undo else 'already has'} our {plan.what}")
    elif not written:
        yield line(warn("nothing was written"))
    elif undo:
        yield line(good("removed "), f"our {plan.what} from {file.path}")
    else:
        yield line(good("written "), str(file.path))
        yield line(dim(f"  sessions that start from now on use it; `{plan.undo_with} --undo` removes it"))
