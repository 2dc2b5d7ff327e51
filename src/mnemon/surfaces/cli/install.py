"""Verb: install, which puts Mnemon's hooks into a harness's settings, and takes them out again."""

from __future__ import annotations

import difflib
import json
import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import click
from click.core import ParameterSource

from mnemon.model.errors import InvalidInput
from mnemon.surfaces.cli.options import Choices, Family
from mnemon.surfaces.cli.output import Line, dim, encode, good, line, warn, write
from mnemon.surfaces.hooks import claude_code, settings_file
from mnemon.surfaces.hooks.settings_file import SettingsFile

SCOPES = {"user": "settings.json", "project": "settings.json", "local": "settings.local.json"}
# Options that a hook must be given each time, if they were given here.
_CARRIED = ("data", "workspace", "channel", "agent", "embedder")


@click.group(cls=Family, examples=("mnemon install claude-code", "mnemon install claude-code --undo"))
def install() -> None:
    """Let a harness use this memory by itself, or stop it."""


@install.command(
    "claude-code",
    examples=(
        "mnemon install claude-code",
        "mnemon install claude-code --scope project --yes",
        "mnemon install claude-code --undo",
    ),
)
@click.option(
    "--scope",
    type=click.Choice(list(SCOPES)),
    default="user",
    show_default=True,
    help="Whose settings: yours, this folder's for everybody, or this folder's for you.",
)
@click.option("--yes", is_flag=True, help="Write without asking.")
@click.option("--undo", is_flag=True, help="Take out what was put in, and nothing else.")
@click.option("--print", "only_show", is_flag=True, help="Only show what would be written.")
def install_claude_code(scope: str, yes: bool, undo: bool, only_show: bool) -> None:
    """Put the hooks into Claude Code's settings, after showing the change.

    Memory is then injected when a session starts, when something is asked, and after a tool has failed. Options such
    as --workspace or --embedder that are given here are written into the hooks.
    """
    ctx = click.get_current_context()
    choices = ctx.ensure_object(Choices)
    file = settings_file.read(_place(scope))
    content = _before(file) if undo else _with_hooks(file, carried(ctx, choices))
    diff = list(_diff(file, content))
    if diff and not choices.json:
        write((line(part) for part in diff), no_color=choices.no_color)
    written = bool(diff) and not only_show and (yes or _asked(file, choices))
    if written:
        settings_file.write(file, content, keep=not undo)
    if choices.json:
        click.echo(encode(_data(file, scope, undo, diff, written)))
    else:
        write(_told(file, undo, bool(diff), written), no_color=choices.no_color)


def _place(scope: str) -> Path:
    """The settings file of a scope."""
    if scope == "user":
        chosen = os.environ.get("CLAUDE_CONFIG_DIR")
        return (Path(chosen).expanduser() if chosen else Path.home() / ".claude") / SCOPES[scope]
    return Path.cwd() / ".claude" / SCOPES[scope]


def program() -> list[str]:
    """How to call this very `mnemon` from anywhere: by its own path, or through its interpreter."""
    called = Path(sys.argv[0])
    if called.stem == "mnemon":
        found = shutil.which(sys.argv[0])
        if found is not None:
            return [os.path.abspath(found)]
    # -P: the folder that a hook happens to run in must not be where Python looks for modules.
    return [sys.executable, "-P", "-m", "mnemon.surfaces.cli.main"]


def carried(ctx: click.Context, choices: Choices) -> list[str]:
    """The shared options that stood on this command line. What came from the environment stays there."""
    out: list[str] = []
    for name in _CARRIED:
        if any(c.get_parameter_source(name) is ParameterSource.COMMANDLINE for c in (ctx, *_parents(ctx))):
            value = str(getattr(choices, name))
            out += [f"--{name}", os.path.abspath(Path(value).expanduser()) if name == "data" else value]
    return out


def _parents(ctx: click.Context) -> Iterator[click.Context]:
    while ctx.parent is not None:
        ctx = ctx.parent
        yield ctx


def _with_hooks(file: SettingsFile, options: list[str]) -> bytes | None:
    changed = claude_code.installed(file.settings, program(), options)
    return file.raw if _same(changed, file.settings) else file.spelled(changed)


def _before(file: SettingsFile) -> bytes | None:
    """What the file was without our hooks: the very bytes, if nothing else was changed since."""
    left = claude_code.removed(file.settings)
    if _same(left, file.settings):
        return file.raw
    try:
        kept = settings_file.read(file.backup)
    except InvalidInput:
        return file.spelled(left)
    if kept.raw is None:
        return file.spelled(left) if left else None
    as_kept = claude_code.removed(claude_code.installed(kept.settings, program()))
    return kept.raw if _same(left, as_kept) else file.spelled(left)


def _same(one: claude_code.Settings, other: claude_code.Settings) -> bool:
    """Whether two settings say the same in the same order."""
    return json.dumps(one) == json.dumps(other)


def _diff(file: SettingsFile, content: bytes | None) -> Iterator[str]:
    if content == file.raw:
        return iter(())
    after = "" if content is None else content.decode("utf-8")
    name = str(file.path)
    return difflib.unified_diff(file.text.splitlines(), after.splitlines(), name, name, lineterm="")


def _asked(file: SettingsFile, choices: Choices) -> bool:
    if choices.json or not sys.stdin.isatty():
        raise click.UsageError("nothing was written: add --yes to write it, or --print to only look")
    return click.confirm(f"Write this to {file.path}?", err=True)


def _data(file: SettingsFile, scope: str, undo: bool, diff: list[str], written: bool) -> dict[str, object]:
    return {
        "harness": claude_code.NAME,
        "file": str(file.path),
        "scope": scope,
        "action": "undo" if undo else "install",
        "changes": bool(diff),
        "written": written,
        "backup": str(file.backup) if file.backup.exists() else None,
        "diff": diff,
    }


def _told(file: SettingsFile, undo: bool, changes: bool, written: bool) -> Iterator[Line]:
    if not changes:
        yield line(
            good("nothing to do: "), f"{file.path} {'has none of our hooks' if undo else 'has our hooks already'}"
        )
    elif not written:
        yield line(warn("nothing was written"))
    elif undo:
        yield line(good("removed "), f"our hooks from {file.path}")
    else:
        yield line(good("written "), str(file.path))
        yield line(dim("  sessions that start from now on use it; `mnemon install claude-code --undo` takes it out"))
