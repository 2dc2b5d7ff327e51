"""The `lukasa` command: what there is to say, and the one place where errors become exit codes.

Commands are loaded when they are called. `--version` and `--help` load neither the engine nor a database.

    0  done          1  refused, not found, failed          2  the call or a spec is wrong
    3  damage found by `doctor` or `events verify`          130  interrupted
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any

import click
from msgspec import Struct

from lukasa import __version__
from lukasa.surfaces.cli.options import Family, uncollected

INTERRUPTED = 130


class Entry(Struct, frozen=True):
    """Where a command is, and its help in a line, so that listing it needs no import."""

    module: str
    attribute: str
    help: str


GROUPS: dict[str, dict[str, Entry]] = {
    "Remember and recall": {
        "put": Entry("memory", "put", "Remember something."),
        "read": Entry("recall", "read", "Find what is remembered, best first."),
        "context": Entry("context", "context", "Compose what an agent should know before it starts."),
        "chat": Entry("chat", "chat", "Talk with an agent that has this memory."),
        "get": Entry("memory", "get", "Show one entry in full."),
        "list": Entry("recall", "list_entries", "List the entries of a tier, newest first."),
        "update": Entry("memory", "update", "Change an entry; its former forms are kept."),
        "forget": Entry("memory", "forget", "Take an entry out of memory; its row and history stay."),
        "restore": Entry("memory", "restore", "Bring an entry back from history."),
        "accept": Entry("memory", "accept", "Let a held entry in."),
        "undo": Entry("undo", "undo", "Take back a change: of an entry, of an event, or all that a job did."),
    },
    "Ask why": {
        "why": Entry("recall", "why", "Explain a read, or the life of an entry."),
        "history": Entry("memory", "history", "Show every form an entry has had."),
        "standing": Entry("memory", "standing", "Show an entry's present relevance, factor by factor."),
        "events": Entry("health", "events", "Look into the event log, or verify it."),
    },
    "Places and pages": {
        "workspace": Entry("places", "workspace", "List, create and show workspaces."),
        "channel": Entry("places", "channel", "List and create channels."),
        "conversation": Entry("talks", "conversation", "Start, list, end and archive conversations."),
        "note": Entry("talks", "note", "Keep a conversation's working notes."),
        "named": Entry("pages", "named", "Show and edit the pages that are always loaded, such as VOICE and SOUL."),
        "document": Entry("pages", "document", "Keep canonical documents that memory may point at."),
        "action": Entry("pages", "action", "Record what an action rests on."),
    },
    "Learn from sessions": {
        "observe": Entry("observe", "observe", "Remember what was said in a recorded session."),
        "backfill": Entry("observe", "backfill", "Observe a folder of old sessions."),
        "transcripts": Entry("transcripts", "transcripts", "List, show and search the sessions that were taken in."),
    },
    "Review and curate": {
        "review": Entry(
            "review", "review", "Decide what waits: held entries, and lines proposed for the curated document."
        ),
        "reflect": Entry("reflect", "reflect", "Propose lines for the curated document, and triage them."),
        "curated": Entry("curated", "curated", "Show, export, rebuild and take back the curated document."),
    },
    "Keep a record": {
        "slog": Entry("slog", "slog", "Keep a structured log of what was done and why."),
        "adr": Entry("adr", "adr", "Keep decision records: numbered, with a status, cross-checked."),
    },
    "Work in the background": {
        "worker": Entry("work", "worker", "Do the background work that is due, or go on doing it."),
        "jobs": Entry("work", "jobs", "Look at background work, and have it tried again or given up."),
    },
    "Set up and keep well": {
        "serve": Entry("serve", "serve", "Serve the page, the HTTP API and the worker on this machine."),
        "link": Entry("link", "link", "Print another link to the page of the server that runs."),
        "grant": Entry("grant", "grant", "Let other clients use this memory, and stop them."),
        "install": Entry("install", "install", "Let a harness use this memory by itself, or stop it."),
        "mcp": Entry("mcp", "mcp", "Serve this memory to an MCP client over stdin and stdout."),
        "hook": Entry("hook", "hook", "Answer a harness's events with what memory has for them."),
        "tour": Entry("tour", "tour", "Show how memory works, in a throw-away memory."),
        "spec": Entry("spec", "spec", "Show, make, check and compare memory specs."),
        "model": Entry("model", "model", "See and fetch the embedding model."),
        "embed": Entry("model", "embed", "Compute the vectors that are still missing."),
        "consolidate": Entry("upkeep", "consolidate", "Make few entries out of many, as the spec says, now."),
        "maintain": Entry("upkeep", "maintain", "Fold copies, mark the never recalled stale, forget the stale, now."),
        "disposition": Entry("disposition", "disposition", "Decide about what has faded: promote, exempt or archive."),
        "stats": Entry("stats", "stats", "Count what is remembered, what happened to it, and how the work went."),
        "reports": Entry("stats", "reports", "List what single steps reported of themselves, the newest first."),
        "doctor": Entry("health", "doctor", "Check the stores, and repair derived data."),
        "scrub": Entry("scrub", "scrub", "Remove a tier's contents or a conversation for good, in two steps."),
    },
}
COMMANDS = {name: entry for group in GROUPS.values() for name, entry in group.items()}

QUICK_START = (
    'lukasa put "The villain is called Malachar" --importance 0.8',
    'lukasa read "who is the villain?"',
    'lukasa context "continue chapter three"',
)


def _load(module: str) -> Any:
    """A module of ours. What is loaded is no garbage: to look for some meanwhile takes a tenth of the time."""
    with uncollected():
        return import_module(f"lukasa.surfaces.cli.{module}")


class Cli(Family):
    """The top of the tree: finds commands by name, and turns every failure into a message and an exit code."""

    shared_title = "Options of every command"

    def _share(self, *, top: bool = False) -> None:
        super()._share(top=True)

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        entry = COMMANDS.get(cmd_name)
        if entry is None:
            return None
        command = getattr(_load(entry.module), entry.attribute)
        return command if isinstance(command, click.Command) else None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Quick start"):
            for line in QUICK_START:
                formatter.write(f"{'':{formatter.current_indent}}{line}\n")
        width = max(map(len, COMMANDS))
        for title, commands in GROUPS.items():
            with formatter.section(title):
                formatter.write_dl([(name.ljust(width), entry.help) for name, entry in commands.items()])

    def main(self, args: Sequence[str] | None = None, *rest: Any, **extra: Any) -> Any:
        given = list(sys.argv[1:] if args is None else args)
        as_json = "--json" in given[: given.index("--")] if "--" in given else "--json" in given
        extra["standalone_mode"] = False
        extra.setdefault("prog_name", "lukasa")
        for stream in (sys.stdout, sys.stderr):
            if hasattr(stream, "reconfigure"):
                stream.reconfigure(errors="backslashreplace")
        try:
            code = super().main(given, *rest, **extra)
            sys.stdout.flush()
        except BrokenPipeError:
            _silence()
            code = 1
        except click.Abort:
            code = INTERRUPTED
        except Exception as error:  # noqa: BLE001 - the last handler: whatever it is, the user gets one message
            code = _load("failing").report(error, as_json=as_json)
        sys.exit(code if isinstance(code, int) else 0)


def _silence() -> None:
    """Whoever read our output has gone; the interpreter's own last flush must not complain about it."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _version(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    if value and not ctx.resilient_parsing:
        click.echo(f"lukasa {__version__}")
        ctx.exit()


@click.group(cls=Cli, invoke_without_command=True, subcommand_metavar="COMMAND [ARGS]...")
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_version,
    help="Print the version and stop.",
)
@click.pass_context
def cli(ctx: click.Context) -> None:
    """Memory for AI agents: remembers on purpose, finds what matters, and shows you all of it."""
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


def main() -> None:
    try:
        cli.main()
    finally:
        gc.freeze()  # the process ends, and with it everything: nobody need look which of it is garbage


if __name__ == "__main__":
    main()
