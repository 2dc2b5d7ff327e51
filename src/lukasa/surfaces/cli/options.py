"""The options that every command shares, and the command classes that carry them.

A shared option may stand before the subcommand or after it; the later one wins, and `--scope` adds up.
"""

from __future__ import annotations

import gc
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any

import click

HELP = {"help_option_names": ["-h", "--help"], "max_content_width": 110}


@contextmanager
def uncollected() -> Iterator[None]:
    """Switch garbage collection off for a short piece of work."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


def close(word: str, known: Iterable[str]) -> str:
    """Return the known word that somebody probably meant, or nothing."""
    found: list[str] = import_module("difflib").get_close_matches(word, list(known), n=1, cutoff=0.6)
    return found[0] if found else ""


@dataclass(slots=True)
class Choices:
    """The values of the shared options, collected while the command line is parsed."""

    data: str | None = None
    database: str | None = None
    account_name: str | None = None
    workspace: str | None = None
    channel: str | None = None
    conversation: str | None = None
    agent: str | None = None
    embedder: str | None = None
    json: bool = False
    no_color: bool = False
    scope: dict[str, str] = field(default_factory=dict)


if TYPE_CHECKING:
    _Type = click.ParamType[Any]
else:
    _Type = click.ParamType  # older versions of click have no type argument


class IdType(_Type):
    """An id, of which the beginning is enough: `pass_invocation` completes it. `last` completes only the last."""

    name = "ID"

    def __init__(self, *, last: bool = False) -> None:
        self.last = last

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        return value


ID, LAST_ID = IdType(), IdType(last=True)


class Shared(click.Option):
    """A shared option. Its value goes to the `Choices`, not to the command."""


def _choose(ctx: click.Context, param: click.Parameter, value: Any) -> None:
    choices = ctx.ensure_object(Choices)
    if value and param.name is not None:
        setattr(choices, param.name, value)


def _bind(ctx: click.Context, param: click.Parameter, value: Sequence[str]) -> None:
    choices = ctx.ensure_object(Choices)
    for pair in value:
        key, equals, bound = pair.partition("=")
        if not (key and equals and bound):
            raise click.BadParameter(f"{pair!r} is not key=value, as in --scope org_id=acme", ctx, param)
        choices.scope[key] = bound


def _shared(*names: str, help: str, callback: Any = _choose, **more: Any) -> Shared:
    return Shared(names, help=help, callback=callback, expose_value=False, **more)


def shared(*, top: bool = False) -> list[Shared]:
    """Return the shared options; only those of the topmost group read the environment."""

    def env(name: str) -> dict[str, Any]:
        return {"envvar": name, "show_envvar": True} if top else {}

    return [
        _shared("--data", metavar="DIR", help="Folder that holds all memory.", **env("LUKASA_DATA")),
        _shared(
            "--database",
            metavar="URL",
            help="PostgreSQL database that holds memory, as in postgresql://user@host/name.",
            **env("LUKASA_DATABASE"),
        ),
        _shared(
            "--account-name",
            metavar="NAME",
            help="Account in that database [default: default].",
            **env("LUKASA_ACCOUNT"),
        ),
        _shared("-w", "--workspace", metavar="NAME", help="Workspace [default: main].", **env("LUKASA_WORKSPACE")),
        _shared("--channel", metavar="NAME", help="Channel to work in, by name or id."),
        _shared("--conversation", metavar="REF", help="Conversation to work in, by ref code or id."),
        _shared("--agent", metavar="NAME", help="Act as this agent, with its private entries and an agent's trust."),
        _shared(
            "--scope",
            metavar="KEY=VALUE",
            multiple=True,
            callback=_bind,
            help="Bind another scope key, such as org_id=acme. Repeatable.",
            **env("LUKASA_SCOPE"),
        ),
        _shared(
            "--embedder",
            metavar="SETTING",
            help="Embedding model: auto, none, default, folder:/path or fastembed:NAME.",
            **env("LUKASA_EMBEDDER"),
        ),
        _shared("--json", is_flag=True, is_eager=True, help="Print one JSON document."),
        _shared("--no-color", is_flag=True, is_eager=True, help="No colour, as with NO_COLOR=1."),
    ]


class _Helpful(click.Command):
    """A command whose help lists the shared options apart from its own, and ends with examples."""

    examples: tuple[str, ...] = ()
    shared_title = "Shared options"

    def _share(self, *, top: bool = False) -> None:
        taken = {name for param in self.params for name in param.opts}
        self.params.extend(option for option in shared(top=top) if not taken & set(option.opts))

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        params = self.get_params(ctx)
        own = [param for param in params if isinstance(param, click.Option) and not isinstance(param, Shared)]
        common = [param for param in params if isinstance(param, Shared)]
        for title, group in (("Options", own), (self.shared_title, common)):
            records = [record for param in group if (record := param.get_help_record(ctx)) is not None]
            if records:
                with formatter.section(title):
                    formatter.write_dl(records)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        if self.examples:
            with formatter.section("Examples"):
                for example in self.examples:
                    formatter.write(f"{'':{formatter.current_indent}}{example}\n")


class CliCommand(_Helpful):
    """One command."""

    def __init__(self, *args: Any, examples: Sequence[str] = (), **attrs: Any) -> None:
        attrs.setdefault("context_settings", HELP)
        super().__init__(*args, **attrs)
        self.examples = tuple(examples)
        self._share()


class CliGroup(_Helpful, click.Group):
    """Commands about one thing, as in `lukasa channel list`."""

    command_class = CliCommand

    def __init__(self, *args: Any, examples: Sequence[str] = (), **attrs: Any) -> None:
        attrs.setdefault("context_settings", HELP)
        super().__init__(*args, **attrs)
        self.examples = tuple(examples)
        self._share()

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if not args and not self.invoke_without_command:  # a group alone is a question, and no mistake
            click.echo(self.get_help(ctx))
            ctx.exit()
        return super().parse_args(ctx, args)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            near = close(args[0], self.list_commands(ctx)) if args else ""
            if near:
                asked = " ".join(part for part in (ctx.command_path, near) if part)
                raise click.UsageError(f"{error.message.rstrip('.')}; did you mean `{asked}`?", ctx) from None
            raise

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        self.format_commands(ctx, formatter)
        super().format_options(ctx, formatter)


class ShortGroup(CliGroup):
    """A group whose commonest command may be left out: `lukasa backup DIR` is `lukasa backup make DIR`."""

    def __init__(self, *args: Any, short: str = "", **attrs: Any) -> None:
        super().__init__(*args, **attrs)
        self.short = short

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        options = args[: args.index("--")] if "--" in args else args
        words = [word for word in options if not word.startswith("-")]
        named = bool(words) and words[0] in self.commands
        if args and not named and (words or options != args) and not {"-h", "--help"}.intersection(options):
            args = [self.short, *args]
        return super().parse_args(ctx, args)
