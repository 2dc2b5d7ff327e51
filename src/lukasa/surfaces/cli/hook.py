"""Verbs for harnesses: each is called at a moment of a session, reads the event on stdin, prints what to inject.

Nothing that goes wrong here may stand in the way of the session. A hook ends with code 0 whatever happens, prints
nothing but what is to be injected, and says on stderr why it had nothing to say. (Code 2 would block the prompt.)
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any

import click

from lukasa.app import Lukasa
from lukasa.service.workspace import Workspace
from lukasa.surfaces.cli.options import Choices, CliCommand, CliGroup, uncollected
from lukasa.surfaces.cli.output import describe, encode, safe
from lukasa.surfaces.hooks import claude_code_hooks as claude_code
from lukasa.surfaces.hooks.harness import MOST_BYTES, Payload, Pushed, project, read_event, workspace_name
from lukasa.surfaces.hooks.harness_sessions import Talk, bound, talk

FORMATS = (claude_code.NAME, "text")
# Where each moment is dealt with. Only the one that is called is loaded: every prompt waits for this.
_HOMES = {
    "session-start": "injection",
    "prompt": "injection",
    "tool-failure": "injection",
    "pre-compact": "session_end",
    "session-end": "session_end",
}


class _Unblocking(click.Command):
    """A wrong call is told with code 1: a harness takes the usual 2 as a refusal of what its user did."""

    def make_context(self, info_name: str | None, args: list[str], *rest: Any, **extra: Any) -> click.Context:
        asks_for_help = not args
        try:
            return super().make_context(info_name, args, *rest, **extra)
        except click.UsageError as error:
            if asks_for_help:
                raise
            raise click.ClickException(error.format_message()) from error


class _Hook(_Unblocking, CliCommand):
    pass


class _Hooks(_Unblocking, CliGroup):
    command_class = _Hook

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            raise click.ClickException(error.format_message()) from error


@click.group(cls=_Hooks, examples=("lukasa install claude-code", "lukasa hook session-start < event.json"))
def hook() -> None:
    """Answer a harness's events from memory."""


def _moment(name: str) -> Callable[[Callable[..., None]], click.Command]:
    """A command for one moment: all of them are called alike."""

    def made(f: Callable[..., None]) -> click.Command:
        form = click.option(
            "--format",
            "form",
            type=click.Choice(FORMATS),
            default=FORMATS[0],
            show_default=True,
            help="What to print: Claude Code's JSON, or the text itself for any other harness.",
        )
        return hook.command(name, examples=(f"lukasa hook {name} --format text < event.json",))(form(f))

    return made


@_moment("session-start")
def session_start(form: str) -> None:
    """Start a session: print the pages, the rules and what stands highest.

    The session gets a conversation of its own, which a resumed session finds again.
    """
    _run("session-start", form)


@_moment("prompt")
def prompt(form: str) -> None:
    """Print what memory has for a prompt and this session was not given yet."""
    _run("prompt", form)


@_moment("tool-failure")
def tool_failure(form: str) -> None:
    """Print what memory knows about a tool call that failed."""
    _run("tool-failure", form)


@_moment("pre-compact")
def pre_compact(form: str) -> None:
    """Have a session observed before its context is compacted, by a worker in the background. Prints nothing."""
    _run("pre-compact", form)


@_moment("session-end")
def session_end(form: str) -> None:
    """End a session: have its transcript observed by a worker in the background, and end its conversation.

    LUKASA_WORKER=off starts no worker; the next one does it then, or the server. For an event after which the
    session goes on (Stop, PreCompact), only the transcript is noted. Prints nothing.
    """
    _run("session-end", form)


@hook.command("workspace", examples=("lukasa hook workspace", 'lukasa -w "$(lukasa hook workspace)" list'))
@click.argument("folder", required=False)
def workspace(folder: str | None) -> None:
    """Print the workspace that a project folder has, the current folder's by default."""
    choices = click.get_current_context().ensure_object(Choices)
    chosen = choices.workspace or workspace_name(folder or project("", os.environ))
    click.echo(encode({"workspace": chosen}) if choices.json else safe(chosen))


def _run(moment: str, form: str) -> None:
    choices = click.get_current_context().ensure_object(Choices)
    try:
        with uncollected():
            said = _said(moment, form, choices)
    except Exception as error:  # noqa: BLE001 - the last handler: whatever it is, the session goes on
        said = _told(error, choices)
    sys.stdout.write(said)


def _said(moment: str, form: str, choices: Choices) -> str:
    event = read_event(sys.stdin.buffer.read(MOST_BYTES + 1))
    with Lukasa.open(choices.data, embedder=choices.embedder, surface="hook", transport=form) as memory:
        here = _talk(_world(memory, event, form, choices), event, choices)
        pushed: Pushed = _load(moment, moment)(here, event)
        data = _data(here, event, pushed) if choices.json else None
    if pushed.queued and os.environ.get("LUKASA_WORKER") != "off":
        _load(moment, "work")(_options(choices))
    if data is not None:
        return encode(data) + "\n"
    return claude_code.answer(moment, event.event, pushed.text) if form == claude_code.NAME else pushed.text


def _load(moment: str, name: str) -> Callable[..., Any]:
    module = import_module(f"lukasa.surfaces.hooks.{_HOMES[moment]}")
    found: Callable[..., Any] = getattr(module, name.replace("-", "_"))
    return found


def _options(choices: Choices) -> list[str]:
    """What the worker must be told to find the same memory; the rest it takes from the environment, as this did."""
    told = {"--data": choices.data, "--embedder": choices.embedder}
    return [word for option, value in told.items() if value is not None for word in (option, str(value))]


def _world(memory: Lukasa, event: Payload, form: str, choices: Choices) -> Workspace:
    """The workspace that is named, or else the project folder's, made on first use; as the agent of this harness."""
    world = memory.workspace(choices.workspace or workspace_name(project(event.cwd, os.environ)))
    if choices.scope:
        world = world.at(**choices.scope)
    return world.acting(agent=choices.agent or (form if form == claude_code.NAME else "agent"))


def _talk(world: Workspace, event: Payload, choices: Choices) -> Talk:
    if choices.conversation is not None:
        return bound(world, world.conversation(choices.conversation), listener=event.agent)
    return talk(world, event.session, listener=event.agent, channel=choices.channel)


def _data(here: Talk, event: Payload, pushed: Pushed) -> dict[str, Any]:
    ref = here.conversation.ref_code if here.conversation else None
    return {
        "workspace": here.world.name,
        "conversation": ref,
        "event": event.event,
        "injected": list(pushed.ids),
        "text": pushed.text,
    }


def _told(error: Exception, choices: Choices) -> str:
    """Say on stderr why there is nothing to inject; as a document on stdout only for whoever asked for one."""
    code, message, fix = describe(error)
    click.echo(f"lukasa hook: {safe(message)}" + (f" ({safe(fix)})" if fix else ""), err=True)
    if os.environ.get("LUKASA_DEBUG"):
        import_module("traceback").print_exception(error, file=sys.stderr)
    return encode({"error": {"code": code, "message": message, "fix": fix}}) + "\n" if choices.json else ""
