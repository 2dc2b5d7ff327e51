"""The command `install`: connect Lukasa with a host, show what is connected, and disconnect it again."""

from __future__ import annotations

import difflib
import os
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource
from msgspec import Struct

from lukasa.model import database_url
from lukasa.model.errors import InvalidInput
from lukasa.surfaces.cli.options import Choices, CliGroup
from lukasa.surfaces.cli.output import Line, dim, encode, good, line, table, warn, write
from lukasa.surfaces.hooks import hosts, settings_file
from lukasa.surfaces.hooks.settings_file import SettingsFile
from lukasa.surfaces.hooks.targets import TARGETS, FileChange, Target, Wanted, merged

OBSERVER = "command:claude"
OFFER = (
    "Your own Claude Code can find what is worth remembering in a session; otherwise rules do it.\n"
    "When a session ends or is compacted, Lukasa then sends its text to `claude -p`, one call for every 24,000\n"
    "characters: about 7,000 tokens and Claude Code's own prompt, which your plan or your API key pays for."
)


@click.group(
    cls=CliGroup,
    invoke_without_command=True,
    examples=("lukasa install --list", "lukasa install claude-code", "lukasa install cursor --undo"),
)
@click.option("--list", "listed", is_flag=True, help="Show which hosts are on this machine, and which are connected.")
@click.pass_context
def install(ctx: click.Context, listed: bool) -> None:
    """Connect Lukasa with a host such as Claude Code or Cursor, or disconnect it.

    Each command shows the change of the host's settings, asks, and writes it. --undo takes it out again.
    """
    if ctx.invoked_subcommand is None:
        if not listed:
            click.echo(ctx.get_help())
            return
        choices = ctx.ensure_object(Choices)
        found = [_state(target) for target in TARGETS.values()]
        if choices.json:
            click.echo(encode({"hosts": found}))
        else:
            write(_listed(found), no_color=choices.no_color)


def _state(target: Target) -> dict[str, Any]:
    """Return whether a host is here, and the files in which Lukasa is connected with it."""
    connected, unreadable = [], []
    for scope in target.scopes:
        for change in target.files(scope, Wanted()):
            try:
                file = settings_file.read(change.path)
                if change.take(file.text) != file.text:
                    connected.append(str(file.path))
            except InvalidInput as error:
                unreadable.append(error.message)
    return {
        "host": target.name,
        "found": target.found,
        "connected": list(dict.fromkeys(connected)),
        "unreadable": unreadable,
    }


def _listed(found: Sequence[dict[str, Any]]) -> Iterator[Line]:
    def cells(one: dict[str, Any]) -> tuple[str, str, str]:
        files = ", ".join([*one["connected"], *one["unreadable"]])
        return one["host"], "yes" if one["found"] else "no", files or "no"

    yield from table(("host", "found", "connected"), [cells(one) for one in found])


def _write_options(f: Callable[..., None]) -> Callable[..., None]:
    """Add the options of every install command."""
    for option in (
        click.option("--print", "--dry-run", "only_show", is_flag=True, help="Show the change, and write nothing."),
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
    type=click.Choice(TARGETS["claude-code"].scopes),
    default="user",
    show_default=True,
    help="Whose settings: yours, this folder's for everybody, or this folder's for you.",
)
@click.option("--mcp", "as_server", is_flag=True, help="Install the MCP server instead of the hooks.")
@_write_options
def install_claude_code(scope: str, as_server: bool, **how: bool) -> None:
    """Write the hooks into Claude Code's settings, after showing the change.

    The hooks inject memory when a session or a subagent starts, at each prompt, and after a failed tool call. With
    --mcp, Claude Code gets tools to read and write memory instead, in the same workspace. Options such as --workspace
    or --embedder are written into the settings.

    On a terminal the command also asks whether `claude -p` shall observe ended sessions, if there is a `claude`. The
    answer is no unless you say yes.
    """
    ctx = click.get_current_context()
    choices = ctx.ensure_object(Choices)
    target = TARGETS["claude-code"]
    hooks, server = target.files(scope, _wanted(ctx, choices, target, scope))
    if not as_server and not any(how.values()) and _wants_observer(hooks.path, choices):
        hooks, _ = target.files(scope, _wanted(ctx, choices, target, scope, chat=OBSERVER))
    change = server if as_server else hooks
    undo_with = "claude-code --mcp" if as_server else "claude-code"
    carry_out(SettingsChange(target.name, scope, [change], undo_with), choices, **how)


@install.command("claude-desktop", examples=("lukasa install claude-desktop", "lukasa install claude-desktop --undo"))
@_write_options
def install_claude_desktop(**how: bool) -> None:
    """Write the MCP server into Claude Desktop's settings, after showing the change.

    Claude Desktop is then an agent of that name in one workspace, `main` unless --workspace names another.
    """
    _connect("claude-desktop", "user", None, how)


def _coding_agent(name: str, about: str) -> None:
    """Add the command that connects a coding agent: hooks, and the MCP server beside them."""
    target = TARGETS[name]

    @install.command(name, examples=(f"lukasa install {name}", f"lukasa install {name} --undo"))
    @click.option(
        "--scope",
        type=click.Choice(target.scopes),
        default="user",
        show_default=True,
        help="Whose settings: yours, or this folder's for everybody.",
    )
    @click.option("--only", type=click.Choice(["hooks", "mcp"]), help="Write only the hooks, or only the MCP server.")
    @_write_options
    def command(scope: str, only: str | None, **how: bool) -> None:
        _connect(name, scope, only, how)

    command.help = about


_coding_agent(
    "codex",
    """Write hooks and the MCP server into Codex's settings, after showing the change.

    The hooks inject memory when a session or a subagent starts and at each prompt. Codex runs them after you have
    trusted them once, with /hooks. A session that has ended is observed when the next one starts.
    """,
)
_coding_agent(
    "cursor",
    """Write hooks and the MCP server into Cursor's settings, after showing the change.

    The hooks inject memory when a session starts and observe it when it ends. With the tools of the MCP server, Cursor
    reads and writes memory in between.
    """,
)
_coding_agent(
    "gemini",
    """Write hooks and the MCP server into Gemini CLI's settings, after showing the change.

    The hooks inject memory when a session starts and at each prompt, and observe the session when it ends.
    """,
)
_coding_agent(
    "opencode",
    """Write a plugin and the MCP server into OpenCode's settings, after showing the change.

    The plugin injects memory when a session starts and at each prompt, and observes the session.
    """,
)


def _connect(name: str, scope: str, only: str | None, how: dict[str, bool]) -> None:
    ctx = click.get_current_context()
    choices = ctx.ensure_object(Choices)
    target = TARGETS[name]
    wanted = _wanted(ctx, choices, target, scope)
    changes = target.files(scope, wanted) if only is None else target.only(only, scope, wanted)
    carry_out(SettingsChange(name, scope, merged(changes), name), choices, **how)


def _wanted(ctx: click.Context, choices: Choices, target: Target, scope: str, chat: str = "") -> Wanted:
    """Return what to write: hooks take their workspace from the folder, and so does the server of a coding agent."""
    desktop = target.name == "claude-desktop"
    shared = carried(ctx, choices, environment=desktop)
    by_folder = [] if desktop else ["--project"]  # a named workspace takes precedence over --project
    named = [] if choices.agent else ["--agent", target.name]
    return Wanted(program(), carried(ctx, choices), [*shared, "mcp", *by_folder, *named], chat)


def _wants_observer(path: Path, choices: Choices) -> bool:
    """Ask whether `claude -p` shall observe sessions, unless nobody can answer, it cannot, or the settings say so."""
    if choices.json or not sys.stdin.isatty() or shutil.which("claude") is None:
        return False
    if hosts.chat_setting(settings_file.json_settings(settings_file.read(path).text, path)):
        return False
    click.echo(OFFER, err=True)
    return click.confirm("Let `claude -p` observe your sessions?", default=False, err=True)


# Options that are written into the host's settings, if they were given.
_CARRIED = ("data", "database", "account_name", "workspace", "channel", "agent", "embedder")


class SettingsChange(Struct, frozen=True):
    """A change of the files of one host."""

    harness: str
    scope: str
    changes: Sequence[FileChange]
    undo_with: str


class Planned(Struct, frozen=True):
    """A file as it is, and as it shall be; None: it shall not be there."""

    change: FileChange
    file: SettingsFile
    content: bytes | None

    @property
    def diff(self) -> list[str]:
        if self.content == self.file.raw:
            return []
        after = "" if self.content is None else self.content.decode("utf-8-sig")
        name = str(self.file.path)
        return list(difflib.unified_diff(self.file.text.splitlines(), after.splitlines(), name, name, lineterm=""))

    @property
    def changes(self) -> bool:
        return self.content != self.file.raw


def carry_out(plan: SettingsChange, choices: Choices, *, yes: bool, undo: bool, only_show: bool) -> None:
    planned = [_planned(change, undo) for change in plan.changes]
    changing = [one for one in planned if one.changes]
    if not choices.json:
        write((line(part) for one in changing for part in one.diff), no_color=choices.no_color)
    written = bool(changing) and not only_show and (yes or _confirmed(changing, choices))
    if written:
        for one in changing:
            settings_file.write(one.file, one.content, keep=not undo)
    if choices.json:
        click.echo(encode(_outcome_data(plan, planned, undo, written)))
    else:
        write((part for one in planned for part in _outcome(one, undo, written)), no_color=choices.no_color)
        if written and not undo:
            undo_with = f"`lukasa install {plan.undo_with} --undo`"
            write([line(dim(f"  sessions that start from now on use it; {undo_with} removes it"))])


def _planned(change: FileChange, undo: bool) -> Planned:
    file = settings_file.read(change.path)
    return Planned(change, file, _without_ours(change, file) if undo else _with_ours(change, file))


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


def _with_ours(change: FileChange, file: SettingsFile) -> bytes | None:
    changed = change.put(file.text)
    return file.raw if changed == file.text else file.encoded(changed)


def _without_ours(change: FileChange, file: SettingsFile) -> bytes | None:
    """Return the file without our part: the original bytes, if nothing else has changed since."""
    left = change.take(file.text)
    if left == file.text:
        return file.raw
    try:
        kept = settings_file.read(file.backup)
        same = kept.raw is not None and left == change.take(change.put(kept.text))
    except InvalidInput:
        return file.encoded(left)
    if kept.raw is None:
        return None if left.strip() in ("", "{}") else file.encoded(left)
    return kept.raw if same else file.encoded(left)


def _confirmed(changing: Sequence[Planned], choices: Choices) -> bool:
    if choices.json or not sys.stdin.isatty():
        raise click.UsageError("nothing was written; add --yes to write, or --print to show the change")
    return click.confirm(f"Write this to {' and '.join(str(one.file.path) for one in changing)}?", err=True)


def _outcome_data(plan: SettingsChange, planned: Sequence[Planned], undo: bool, written: bool) -> dict[str, object]:
    files = [
        {
            "file": str(one.file.path),
            "what": one.change.what,
            "changes": one.changes,
            "backup": str(one.file.backup) if one.file.backup.exists() else None,
            "diff": one.diff,
        }
        for one in planned
    ]
    about = {
        "harness": plan.harness,
        "scope": plan.scope,
        "action": "undo" if undo else "install",
        "changes": any(one.changes for one in planned),
        "written": written,
    }
    return {**about, **files[0], **about} if len(files) == 1 else {**about, "files": files}


def _outcome(one: Planned, undo: bool, written: bool) -> Iterator[Line]:
    path, what = one.file.path, one.change.what
    if not one.changes:
        yield line(good("nothing to do: "), f"{path} {'has none of' if undo else 'already has'} our {what}")
    elif not written:
        yield line(warn("nothing was written"))
    elif undo:
        yield line(good("removed "), f"our {what} from {path}")
    else:
        yield line(good("written "), str(path))
