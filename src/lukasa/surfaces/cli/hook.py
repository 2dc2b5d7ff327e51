"""Commands for harnesses: each reads an event of a session from stdin and prints the text to inject.

No failure may disturb the session. A hook always ends with code 0, prints only the text to inject, and reports
errors on stderr. (Code 2 would block the prompt.) Inside a program that Lukasa runs as a language model, hooks do
nothing: Lukasa must not observe its own questions.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any

import click

from lukasa.app import Lukasa, Settings
from lukasa.ports import INSIDE
from lukasa.service.workspace import Workspace
from lukasa.surfaces.cli.options import Choices, CliCommand, CliGroup, uncollected
from lukasa.surfaces.cli.output import describe, encode, safe
from lukasa.surfaces.hooks import hosts
from lukasa.surfaces.hooks.harness import MOST_BYTES, HarnessEvent, HookResult, project, read_event
from lukasa.surfaces.hooks.harness_sessions import HookSession, bind, open_session, unended

FORMATS = (*hosts.HOSTS, "text")
# The module of each hook. Only one is imported, because every prompt waits for it.
_HOMES = {
    "session-start": "injection",
    "prompt": "injection",
    "tool-failure": "injection",
    "subagent-start": "injection",
    "stop": "harness_sessions",
    "pre-compact": "session_end",
    "session-end": "session_end",
}

_NOTHING: dict[str, Any] = {"workspace": None, "conversation": None, "event": "", "injected": [], "text": ""}


class _Unblocking(click.Command):
    """Report a wrong call with code 1: for a harness, the usual code 2 means that the user's action is refused."""

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
            # An event of a newer host, or of newer settings: it is reported, and it is no failure of the session.
            click.echo(f"lukasa hook: {safe(error.format_message())}", err=True)
            ctx.exit(0)


@click.group(cls=_Hooks, examples=("lukasa install claude-code", "lukasa hook session-start < event.json"))
def hook() -> None:
    """Answer a harness's events from memory."""


def _moment(name: str) -> Callable[[Callable[..., None]], click.Command]:
    """Make the command of one hook; all take the same options."""

    def made(f: Callable[..., None]) -> click.Command:
        form = click.option(
            "--format",
            "form",
            type=click.Choice(FORMATS),
            default=FORMATS[0],
            show_default=True,
            help="The program that calls the hook, whose JSON it prints; or plain text for any other.",
        )
        return hook.command(name, examples=(f"lukasa hook {name} --format text < event.json",))(form(f))

    return made


@_moment("session-start")
def session_start(form: str) -> None:
    """Start a session: print the named pages, the standing rules and the most relevant entries.

    The session gets a conversation of its own; a resumed session gets the same one. If an earlier session of the
    workspace ended without its end event, as in a crash, a background worker observes it.
    """
    _run("session-start", form)


@_moment("prompt")
def prompt(form: str) -> None:
    """Print entries for a prompt that this session was not given yet."""
    _run("prompt", form)


@_moment("tool-failure")
def tool_failure(form: str) -> None:
    """Print entries about a tool call that failed."""
    _run("tool-failure", form)


@_moment("subagent-start")
def subagent_start(form: str) -> None:
    """Start a subagent: print what a session gets at its start, because a subagent has seen nothing of it."""
    _run("subagent-start", form)


@_moment("stop")
def stop(form: str) -> None:
    """Note where the transcript of a session is, when the agent has answered. Prints nothing.

    If the session then ends without a word, as in a crash, the next start observes it.
    """
    _run("stop", form)


@_moment("pre-compact")
def pre_compact(form: str) -> None:
    """Start a background worker that observes a session before its context is compacted. Prints nothing."""
    _run("pre-compact", form)


@_moment("session-end")
def session_end(form: str) -> None:
    """End a session: start a background worker that observes its transcript, and end its conversation.

    With LUKASA_WORKER=off no worker is started; the next worker or the server observes the transcript. After an event
    that does not end the session (Stop, PreCompact), only the transcript's path is noted. Prints nothing.
    """
    _run("session-end", form)


@hook.command("workspace", examples=("lukasa hook workspace", 'lukasa -w "$(lukasa hook workspace)" list'))
@click.argument("folder", required=False)
def workspace(folder: str | None) -> None:
    """Print the workspace of a project folder, by default of the current one."""
    choices = click.get_current_context().ensure_object(Choices)
    chosen = choices.workspace or _found(choices, folder or project("", os.environ))
    click.echo(encode({"workspace": chosen}) if choices.json else safe(chosen))


def _found(choices: Choices, folder: str) -> str:
    """Return the name of the workspace of a folder's project; neither it nor a data folder is created."""
    data, database, account = choices.data, choices.database, choices.account_name
    settings = Settings.resolve(data=data, database=database, account=account)
    new = not settings.database and not settings.data.exists()
    with Lukasa.open(data, database=database, account=account, embedder="none", surface="cli", in_memory=new) as memory:
        return memory.projects.at(folder).workspace


def _run(moment: str, form: str) -> None:
    choices = click.get_current_context().ensure_object(Choices)
    if os.environ.get(INSIDE):
        sys.stdout.write(encode(_NOTHING) + "\n" if choices.json else "")
        return
    try:
        with uncollected():
            said = _answer(moment, form, choices)
    except Exception as error:  # noqa: BLE001 - the last handler: no error may stop the session
        said = _report(error, choices)
    sys.stdout.write(said)


def _answer(moment: str, form: str, choices: Choices) -> str:
    event = read_event(sys.stdin.buffer.read(MOST_BYTES + 1))
    with Lukasa.open(
        choices.data,
        database=choices.database,
        account=choices.account_name,
        embedder=choices.embedder,
        surface="hook",
        transport=form,
        project=os.environ.get("LUKASA_PROJECT") or project(event.cwd, os.environ),
    ) as memory:
        session = _session(_workspace(memory, event, form, choices), event, choices)
        if moment == "session-start" and not choices.workspace:
            _say_why_apart(memory, project(event.cwd, os.environ))
        result: HookResult = _load(moment, moment)(session, event)
        left = unended(session) if moment == "session-start" else []
        queued = result.queued or (bool(left) and _load("session-end", "observe_left")(session, left))
        data = _data(session, event, result) if choices.json else None
    if queued and os.environ.get("LUKASA_WORKER") != "off":
        _load(moment, "start_worker")(_environment(choices))
    if data is not None:
        return encode(data) + "\n"
    host = hosts.HOSTS.get(form)
    return result.text if host is None else hosts.answer(host, moment, event.name, result.text)


def _load(moment: str, name: str) -> Callable[..., Any]:
    module = import_module(f"lukasa.surfaces.hooks.{_HOMES[moment]}")
    found: Callable[..., Any] = getattr(module, name.replace("-", "_"))
    return found


def _environment(choices: Choices) -> dict[str, str]:
    """Return the settings with which the worker finds the same memory. Its options would be in the process list."""
    told = {
        "LUKASA_DATA": choices.data,
        "LUKASA_DATABASE": choices.database,
        "LUKASA_ACCOUNT": choices.account_name,
        "LUKASA_EMBEDDER": choices.embedder,
    }
    return {name: value for name, value in told.items() if value is not None}


def _workspace(memory: Lukasa, event: HarnessEvent, form: str, choices: Choices) -> Workspace:
    """Return the named workspace, or the project folder's, created on first use; acting as the harness's agent."""
    folder = project(event.cwd, os.environ)
    workspace = memory.workspace(choices.workspace) if choices.workspace else memory.project_workspace(folder)
    if choices.scope:
        workspace = workspace.at(**choices.scope)
    return workspace.acting(agent=choices.agent or (form if form in hosts.HOSTS else "agent"))


def _say_why_apart(memory: Lukasa, folder: str) -> None:
    """Say on stderr that a folder does not get the workspace of the project that it says it is."""
    found = memory.projects.at(folder)
    if found.why:
        told = f"{found.folder} says it is {found.identity}, but {found.why}: it has a workspace of its own"
        click.echo(f"lukasa hook: {safe(told)} (`lukasa project set` joins it, if you trust it)", err=True)


def _session(workspace: Workspace, event: HarnessEvent, choices: Choices) -> HookSession:
    if choices.conversation is not None:
        return bind(workspace, workspace.conversation(choices.conversation), listener=event.agent)
    return open_session(workspace, event.session, listener=event.agent, channel=choices.channel)


def _data(session: HookSession, event: HarnessEvent, result: HookResult) -> dict[str, Any]:
    ref = session.conversation.ref_code if session.conversation else None
    return {
        "workspace": session.workspace.name,
        "conversation": ref,
        "event": event.name,
        "injected": list(result.ids),
        "text": result.text,
    }


def _report(error: Exception, choices: Choices) -> str:
    """Report an error on stderr; with --json also return it as a document for stdout."""
    code, message, fix = describe(error)
    click.echo(f"lukasa hook: {safe(message)}" + (f" ({safe(fix)})" if fix else ""), err=True)
    if os.environ.get("LUKASA_DEBUG"):
        import_module("traceback").print_exception(error, file=sys.stderr)
    return encode({"error": {"code": code, "message": message, "fix": fix}}) + "\n" if choices.json else ""
