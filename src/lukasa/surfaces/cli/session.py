"""One call of the command line: memory opened where the options say, and answers given as they ask."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, TypeVar

import click

from lukasa.app import DEFAULT_WORKSPACE, Lukasa, Settings, earlier_folders
from lukasa.model.errors import InvalidInput, NotFound
from lukasa.service.workspace import Workspace
from lukasa.surfaces.cli.options import Choices
from lukasa.surfaces.cli.output import Lines, encode, safe, write

P = ParamSpec("P")
R = TypeVar("R")

MOST_INPUT = 32_000_000
TAKE_OVER = "{} holds memory from before this program was renamed; `lukasa doctor --take-over` moves it here"


class Session:
    """What a command holds. Memory is opened on first need and closed with the session."""

    def __init__(self, choices: Choices) -> None:
        self.choices = choices
        self.announces = True  # whether to tell of a data folder of the earlier name that is passed over
        self._memory: Lukasa | None = None

    def __enter__(self) -> Session:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._memory is not None:
            self._memory.close()

    @property
    def memory(self) -> Lukasa:
        if self._memory is None:
            passed_over = self._passed_over()
            self._memory = Lukasa.open(
                self.choices.data, embedder=self.choices.embedder, surface="cli", transport="terminal"
            )
            if passed_over is not None and self.announces:
                click.echo(f"note: {safe(TAKE_OVER.format(passed_over))}", err=True)
        return self._memory

    def _passed_over(self) -> Path | None:
        """The data folder of the earlier name, if opening memory will now create a new one beside it."""
        if self.choices.data or Settings.resolve().data.exists():
            return None
        return earlier_folders().data

    def workspace(self) -> Workspace:
        """The chosen workspace with everything bound that the options bind.

        Only the default one springs into being: a mistyped name must not become a new, empty memory.
        """
        name = self.choices.workspace or DEFAULT_WORKSPACE
        if name == DEFAULT_WORKSPACE:
            return self.bound(self.memory.workspace(name))
        if all(info.name != name for info in self.memory.workspaces()):
            raise NotFound(
                f"no workspace {name[:60]!r}", fix=f"`lukasa workspace create {name[:60]}`, or see `… workspace list`"
            )
        return self.bound(self.memory.existing(name))

    def bound(self, workspace: Workspace) -> Workspace:
        keys = dict(self.choices.scope)
        for name in ("channel", "conversation"):
            value = getattr(self.choices, name)
            if value is not None:
                keys[name] = value
        if keys:
            workspace = workspace.at(**keys)
        return workspace if self.choices.agent is None else workspace.acting(agent=self.choices.agent)

    def conversation(self) -> str:
        """The conversation that `--conversation` names, for commands that make no sense without one."""
        if self.choices.conversation is None:
            raise click.UsageError(
                "which conversation? Name it with --conversation REF; `lukasa conversation start` gives you one"
            )
        return self.choices.conversation

    def emit(self, data: Any, lines: Lines) -> None:
        """Answer: `data` for programs, `lines` for people. Lines may be a generator; it only runs if it is shown."""
        if self.choices.json:
            sys.stdout.write(encode(data) + "\n")
        else:
            write(lines, no_color=self.choices.no_color)


def pass_session(f: Callable[Concatenate[Session, P], R]) -> Callable[P, R]:
    """Give a command its session, and close it however the command ends."""

    @wraps(f)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        choices = click.get_current_context().ensure_object(Choices)
        with Session(choices) as session:
            return f(session, *args, **kwargs)

    return call


def read_text(source: str) -> str:
    """The text of a file, or of stdin for `-`. One closing line break is the file's, not the text's."""
    try:
        raw = sys.stdin.buffer.read(MOST_INPUT + 1) if source == "-" else _read_file(Path(source))
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else "that is not a path"
        raise InvalidInput(f"{source[:200]!r} cannot be read: {why}", fix="name a readable file") from error
    if len(raw) > MOST_INPUT:
        raise InvalidInput(f"the input is larger than {MOST_INPUT:,} bytes", fix="give less at a time")
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
    """An argument as it stands; `-` means stdin."""
    return read_text("-") if value == "-" else value
