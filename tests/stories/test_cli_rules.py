"""Rules for every command, kept by looking at all of them (U2)."""

from __future__ import annotations

from collections.abc import Iterator

import click
import pytest

from lukasa.surfaces.cli.main import COMMANDS, cli
from lukasa.surfaces.cli.options import CliCommand, CliGroup, Shared
from tests.helpers.cli import ROOT

PAGE = (ROOT / "docs" / "reference" / "cli.md").read_text("utf-8")


def commands(group: click.Group, path: tuple[str, ...] = ()) -> Iterator[tuple[str, click.Command]]:
    with click.Context(group, info_name="lukasa") as ctx:
        for name in group.list_commands(ctx):
            command = group.get_command(ctx, name)
            assert command is not None
            yield " ".join((*path, name)), command
            if isinstance(command, click.Group):
                yield from commands(command, (*path, name))


ALL = dict(commands(cli))


@pytest.mark.parametrize("name", ALL)
def test_a_command_explains_itself(name: str) -> None:
    """U2: a help text, an example, and help for every option."""
    command = ALL[name]
    assert isinstance(command, CliCommand | CliGroup)
    assert command.help
    assert command.examples
    for param in command.params:
        if isinstance(param, click.Option):
            assert param.help, f"{name} {param.opts}"


@pytest.mark.parametrize("name", ALL)
def test_a_command_is_documented(name: str) -> None:
    """U2: every command and every option of its own is in docs/reference/cli.md."""
    command = ALL[name]
    assert f"lukasa {name}" in PAGE
    section = PAGE.partition(f"`lukasa {name}")[2].partition("\n\n")[0]
    for param in command.params:
        if isinstance(param, click.Option) and not isinstance(param, Shared):
            assert f"`{max(param.opts, key=len)}" in section, f"{name} {param.opts}"


def test_the_shared_options_are_documented() -> None:
    for param in cli.params:
        assert f"`{max(param.opts, key=len)}" in PAGE, param.opts


@pytest.mark.parametrize("name", COMMANDS)
def test_the_index_says_what_the_command_says(name: str) -> None:
    """The help that is listed without an import is the command's own first line."""
    assert (ALL[name].help or "").split("\n")[0] == COMMANDS[name].help


@pytest.mark.parametrize("name", [name for name, command in ALL.items() if not isinstance(command, CliGroup)])
def test_a_command_takes_the_shared_options(name: str) -> None:
    """U2: --json and the rest may follow any command."""
    taken = {option for param in ALL[name].params for option in param.opts}
    assert {"--json", "--data", "--workspace", "--no-color", "--embedder", "--agent"} <= taken


@pytest.mark.parametrize("name", ALL)
def test_help_shows_the_examples(name: str) -> None:
    command = ALL[name]
    with click.Context(command, info_name=name) as ctx:
        text = command.get_help(ctx)
    assert "Examples:" in text
    assert "Shared options:" in text
