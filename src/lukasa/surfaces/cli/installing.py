"""How anything gets into somebody else's settings: shown first, written if they agree, and taken out again exactly."""

from __future__ import annotations

import difflib
import json
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource
from msgspec import Struct

from lukasa.model.errors import InvalidInput
from lukasa.surfaces.cli.options import Choices
from lukasa.surfaces.cli.output import Line, dim, encode, good, line, warn, write
from lukasa.surfaces.hooks import settings_file
from lukasa.surfaces.hooks.settings_file import SettingsFile

Settings = dict[str, Any]
# Options that the harness must give each time, if they were given here.
_CARRIED = ("data", "workspace", "channel", "agent", "embedder")


class Plan(Struct, frozen=True):
    """What to put into which file. `take` takes out what `put` puts in, and nothing else."""

    harness: str
    scope: str
    path: Path
    what: str
    put: Callable[[Settings], Settings]
    take: Callable[[Settings], Settings]
    undo_with: str


def carry_out(plan: Plan, choices: Choices, *, yes: bool, undo: bool, only_show: bool) -> None:
    file = settings_file.read(plan.path)
    content = _before(plan, file) if undo else _after(plan, file)
    diff = list(_diff(file, content))
    if diff and not choices.json:
        write((line(part) for part in diff), no_color=choices.no_color)
    written = bool(diff) and not only_show and (yes or _asked(file, choices))
    if written:
        settings_file.write(file, content, keep=not undo)
    if choices.json:
        click.echo(encode(_data(plan, file, undo, diff, written)))
    else:
        write(_told(plan, file, undo, bool(diff), written), no_color=choices.no_color)


def program() -> list[str]:
    """How to call this very `lukasa` from anywhere: by its own path, or through its interpreter."""
    called = Path(sys.argv[0])
    if called.stem == "lukasa":
        found = shutil.which(sys.argv[0])
        if found is not None:
            return [os.path.abspath(found)]
    # -P: the folder that a hook happens to run in must not be where Python looks for modules.
    return [sys.executable, "-P", "-m", "lukasa.surfaces.cli.main"]


def carried(ctx: click.Context, choices: Choices, *, environment: bool = False) -> list[str]:
    """The shared options that stood on this command line. What came from the environment stays there, unless the
    harness is one that does not have it."""
    sources = {ParameterSource.COMMANDLINE} | ({ParameterSource.ENVIRONMENT} if environment else set())
    out: list[str] = []
    for name in _CARRIED:
        if any(c.get_parameter_source(name) in sources for c in (ctx, *_parents(ctx))):
            value = str(getattr(choices, name))
            out += [f"--{name}", os.path.abspath(Path(value).expanduser()) if name == "data" else value]
    return out


def _parents(ctx: click.Context) -> Iterator[click.Context]:
    while ctx.parent is not None:
        ctx = ctx.parent
        yield ctx


def _after(plan: Plan, file: SettingsFile) -> bytes | None:
    changed = plan.put(file.settings)
    return file.raw if _same(changed, file.settings) else file.spelled(changed)


def _before(plan: Plan, file: SettingsFile) -> bytes | None:
    """What the file was without ours: the very bytes, if nothing else was changed since."""
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


def _data(plan: Plan, file: SettingsFile, undo: bool, diff: list[str], written: bool) -> dict[str, object]:
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


def _told(plan: Plan, file: SettingsFile, undo: bool, changes: bool, written: bool) -> Iterator[Line]:
    if not changes:
        yield line(good("nothing to do: "), f"{file.path} {'has none of' if undo else 'already has'} our {plan.what}")
    elif not written:
        yield line(warn("nothing was written"))
    elif undo:
        yield line(good("removed "), f"our {plan.what} from {file.path}")
    else:
        yield line(good("written "), str(file.path))
        yield line(dim(f"  sessions that start from now on use it; `{plan.undo_with} --undo` takes it out"))
