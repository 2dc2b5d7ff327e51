"""One call of the command line: open memory as the shared options say, and print the answer."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Sequence
from functools import wraps
from pathlib import Path
from shlex import quote
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, TypeVar

import click

from lukasa.app import DEFAULT_WORKSPACE, Lukasa, Settings, earlier_folders
from lukasa.model.errors import InvalidInput, NotFound
from lukasa.service.workspace import Workspace
from lukasa.surfaces.cli.options import Choices, IdType, close
from lukasa.surfaces.cli.output import FAILED, Lines, brief, encode, safe, write

P = ParamSpec("P")
R = TypeVar("R")

_BEGINS = re.compile(r"(?=.*[0-9])[0-9a-fA-F]{4,8}(?:-?[0-9a-fA-F]*){0,4}")  # of an id, and shorter than one
_WHOLE = 36
MOST_INPUT = 32_000_000
LONGEST_REASON = 500
TAKE_OVER = "{} holds memory from before this program was renamed; run `lukasa doctor --take-over` to move it"


class Invocation:
    """The options of a call, and its memory, which is opened on first use and closed at the end."""

    def __init__(self, choices: Choices) -> None:
        self.choices = choices
        self.announces = not choices.json  # whether to note on stderr a data folder of the earlier name
        self.folder: str | None = None  # of the project at hand; an empty one for a surface that has none
        self._memory: Lukasa | None = None

    def __enter__(self) -> Invocation:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._memory is not None:
            self._memory.close()

    @property
    def settings(self) -> Settings:
        """The settings of the options and the environment; reading them opens nothing."""
        return Settings.resolve(
            data=self.choices.data,
            database=self.choices.database,
            account=self.choices.account_name,
            embedder=self.choices.embedder,
        )

    @property
    def memory(self) -> Lukasa:
        if self._memory is None:
            passed_over = self._passed_over()
            self._memory = Lukasa.open(
                self.choices.data,
                database=self.choices.database,
                account=self.choices.account_name,
                embedder=self.choices.embedder,
                surface="cli",
                transport="terminal",
                project=self.project,
            )
            if passed_over is not None and self.announces:
                click.echo(f"note: {safe(TAKE_OVER.format(passed_over))}", err=True)
        return self._memory

    @property
    def project(self) -> str:
        """The folder whose project is at hand: LUKASA_PROJECT, or the working directory."""
        if self.folder is not None:
            return self.folder
        return os.environ.get("LUKASA_PROJECT") or "."

    def _passed_over(self) -> Path | None:
        """Return the data folder of the earlier name, if opening memory will now create a new one beside it.

        A person at a terminal is told while it exists: a hook may have created the new folder without a word.
        """
        if self.choices.data or self.choices.database or (Settings.resolve().data.exists() and not sys.stderr.isatty()):
            return None
        return earlier_folders().data

    def workspace(self) -> Workspace:
        """Return the chosen workspace with the scope keys of the options bound.

        Only the default workspace is created here: a mistyped name must not become a new, empty memory.
        """
        return self.bound(self._chosen())

    def owner(self) -> Workspace:
        """Return the chosen workspace as its owner, for commands that look for an agent or a conversation."""
        return self._chosen().at(**self.choices.scope)

    def _chosen(self) -> Workspace:
        name = self.choices.workspace or DEFAULT_WORKSPACE
        if name == DEFAULT_WORKSPACE:
            return self.memory.workspace(name)
        if all(info.name != name for info in self.memory.workspaces()):
            near = close(name, [info.name for info in self.memory.workspaces()])
            raise NotFound(
                f"no workspace {name[:60]!r}" + (f"; did you mean {near!r}?" if near else ""),
                fix=f"create it with `lukasa workspace create {name[:60]}`, or see `lukasa workspace list`",
            )
        return self.memory.existing(name)

    def fail(self, reasons: Sequence[str]) -> None:
        """End the command with exit code 1 if there are reasons, and print them on stderr."""
        for reason in reasons:
            click.echo(f"error: {safe(brief(reason, LONGEST_REASON))}", err=True)
        if reasons:
            click.get_current_context().exit(FAILED)

    def bound(self, workspace: Workspace) -> Workspace:
        """Bind the channel, the conversation, other scope keys and the agent of the options."""
        keys = dict(self.choices.scope)
        for name in ("channel", "conversation"):
            value = getattr(self.choices, name)
            if value is not None:
                keys[name] = self.whole(value)
        if keys:
            workspace = workspace.at(**keys)
        return workspace if self.choices.agent is None else workspace.acting(agent=self.choices.agent)

    def whole(self, given: Any, *, last: bool = False) -> Any:
        """Return ids in full, given by their beginnings; everything else stays as it is. `last` means the last one."""
        if isinstance(given, tuple | list):
            return tuple(one if last and one is not given[-1] else self.whole(one) for one in given)
        begins = isinstance(given, str) and len(given) < _WHOLE and _BEGINS.fullmatch(given) is not None
        return self._chosen().full_id(given) if begins else given

    def again(self, command: str) -> str:
        """Return a command to suggest, with the workspace and the scope keys that this one was given."""
        names = {"-w": "workspace", "--channel": "channel", "--conversation": "conversation"}
        chosen = [(option, getattr(self.choices, name)) for option, name in names.items()]
        given = [(option, value) for option, value in chosen if value is not None]
        given += [("--scope", f"{key}={value}") for key, value in self.choices.scope.items()]
        return " ".join(["lukasa", *(f"{option} {quote(value)}" for option, value in given), command])

    def conversation(self) -> str:
        """Return the value of `--conversation`, for commands that need one."""
        if self.choices.conversation is None:
            raise click.UsageError(
                "no conversation is named; add --conversation REF (`lukasa conversation start` prints one)"
            )
        return self.choices.conversation

    def emit(self, data: Any, lines: Lines) -> None:
        """Print `data` as JSON with --json, else `lines`. A generator of lines only runs if it is printed."""
        if self.choices.json:
            sys.stdout.write(encode(data) + "\n")
        else:
            write(lines, no_color=self.choices.no_color)


def pass_invocation(f: Callable[Concatenate[Invocation, P], R]) -> Callable[P, R]:
    """Pass an `Invocation` to a command, and close it when the command ends."""

    @wraps(f)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        ctx = click.get_current_context()
        choices = ctx.ensure_object(Choices)
        with Invocation(choices) as cli:
            for param in ctx.command.params:
                if isinstance(param.type, IdType) and param.name in kwargs:
                    kwargs[param.name] = cli.whole(kwargs[param.name], last=param.type.last)
            return f(cli, *args, **kwargs)

    return call


def read_text(source: str) -> str:
    """Return the text of a file, or of stdin for `-`, without one line break at its end."""
    try:
        raw = sys.stdin.buffer.read(MOST_INPUT + 1) if source == "-" else _read_file(Path(source))
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not a path"
        raise InvalidInput(f"{source[:200]!r} cannot be read: {why}", fix="name a readable file") from error
    if len(raw) > MOST_INPUT:
        raise InvalidInput(f"the input is larger than {MOST_INPUT:,} bytes", fix="split it")
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        where = "stdin" if source == "-" else source[:200]
        raise InvalidInput(f"{where} is not UTF-8 text ({error.reason})", fix="convert it to UTF-8 first") from error
    return text.replace("\r\n", "\n").removesuffix("\n")


def _read_file(path: Path) -> bytes:
    with path.open("rb") as stream:
        return stream.read(MOST_INPUT + 1)


def text_or_stdin(value: str) -> str:
    """Return an argument, or the text of stdin for `-`."""
    return read_text("-") if value == "-" else value
