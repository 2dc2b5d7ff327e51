"""The `lukasa` command: the table of commands, and the one place that turns errors into exit codes.

A command's module is imported when the command is called. `--version` and `--help` import neither the engine nor a
database.

    0  done          1  refused, not found, failed          2  the call or a spec is wrong
    3  damage found by `doctor` or `events verify`          130  interrupted
"""

from __future__ import annotations

import gc
import os
import sys
import warnings
from collections.abc import Sequence
from importlib import import_module
from typing import Any, NamedTuple

import click

from lukasa import __version__
from lukasa.surfaces.cli.options import CliGroup, uncollected

INTERRUPTED = 130


class CommandEntry(NamedTuple):
    """A command's module and its help in one line, so that listing the command needs no import.

    A named tuple, so that `--version` and `--help` do not wait for the import of msgspec.
    """

    module: str
    help: str
    attribute: str = ""  # the command's name in its module, if that is another name


GROUPS: dict[str, dict[str, CommandEntry]] = {
    "Remember and recall": {
        "put": CommandEntry("memory_commands", "Store a text in memory."),
        "read": CommandEntry("recall_commands", "Find entries, best match first."),
        "gather": CommandEntry(
            "recall_commands", "Gather all that memory holds about something, in groups and in the order of time."
        ),
        "context": CommandEntry("recall_commands", "Compose the context that an agent needs for a task."),
        "chat": CommandEntry("chat", "Talk with an agent that uses this memory."),
        "get": CommandEntry(
            "memory_commands",
            "Show one entry in full, with what it rests on now, what rests on it, and why its row is kept.",
        ),
        "list": CommandEntry("recall_commands", "List the entries of a tier, newest first.", "list_entries"),
        "update": CommandEntry("memory_commands", "Change an entry; earlier versions are kept."),
        "forget": CommandEntry("memory_commands", "Take an entry out of recall; its row and history stay."),
        "corroborate": CommandEntry(
            "memory_commands", "Record that you checked an entry: it still holds, or the check failed."
        ),
        "cite": CommandEntry("citation_commands", "Pin what an entry is about, so that reads can check it."),
        "verify": CommandEntry("citation_commands", "Check what entries cite, and list what no longer holds."),
        "restore": CommandEntry(
            "memory_commands", "Bring a retired entry back, or all memory from a folder of backups."
        ),
        "accept": CommandEntry("memory_commands", "Accept a held entry, so that reads find it."),
        "undo": CommandEntry(
            "memory_commands", "Undo the last change of an entry, the change of an event, or a whole job."
        ),
    },
    "Ask why": {
        "why": CommandEntry(
            "recall_commands", "Explain why a read returned an entry or not, or show the events of an entry."
        ),
        "history": CommandEntry(
            "memory_commands",
            "Show every version of an entry, who stated it again, and other entries about the same thing.",
        ),
        "standing": CommandEntry("memory_commands", "Show an entry's relevance now, factor by factor."),
        "shown": CommandEntry("shown_commands", "Show which entries and pages went into which prompt, newest first."),
        "assert": CommandEntry(
            "assert_commands", "Check what this memory must know, and what it must never say.", "assert_"
        ),
        "events": CommandEntry("health_commands", "List the events of the log, or verify the log."),
    },
    "Workspaces, conversations and pages": {
        "workspace": CommandEntry("workspace_commands", "List, create, show, rename, merge and remove workspaces."),
        "project": CommandEntry("project_commands", "Show, set and forget the workspace of a project's folder."),
        "channel": CommandEntry("workspace_commands", "List and create channels."),
        "conversation": CommandEntry("workspace_commands", "Start, list, end and archive conversations."),
        "scope": CommandEntry("workspace_commands", "End sessions and other scopes."),
        "note": CommandEntry("workspace_commands", "Read and write the working notes of a conversation."),
        "named": CommandEntry(
            "page_commands", "Show and edit named entries: the pages that every context loads, such as VOICE and SOUL."
        ),
        "document": CommandEntry("page_commands", "Add, list, show and remove documents that entries can link to."),
        "action": CommandEntry("page_commands", "Link an action to the entries that it rests on."),
    },
    "Look things up": {
        "corpus": CommandEntry("corpus_commands", "Add documents, and look things up in them."),
        "discover": CommandEntry("discover_commands", "Fetch a page or clone a repository, and keep a note about it."),
        "feed": CommandEntry("discover_commands", "Follow feeds: the worker takes their new items as discoveries."),
    },
    "Learn from sessions": {
        "observe": CommandEntry(
            "session_commands", "Store the messages of recorded sessions, and extract facts from them."
        ),
        "backfill": CommandEntry("session_commands", "Observe a folder of old sessions."),
        "import": CommandEntry(
            "import_command",
            "Import an export of Lukasa, or what other programs remember.",
            "import_",
        ),
        "transcripts": CommandEntry("session_commands", "List, show and search the stored sessions."),
    },
    "Review and curate": {
        "review": CommandEntry(
            "curation_commands",
            "Approve, edit or reject what waits for you: held entries, proposals, and changes submitted to documents.",
        ),
        "reflect": CommandEntry("curation_commands", "Propose lines for the curated document, and triage them."),
        "curated": CommandEntry("curation_commands", "Show, export, rebuild and undo the curated document."),
        "disposition": CommandEntry("curation_commands", "Promote, exempt or archive faded entries."),
    },
    "Keep a record": {
        "slog": CommandEntry("record_commands", "Write and query a structured log of work."),
        "adr": CommandEntry("record_commands", "Write, list and check decision records."),
    },
    "Work in the background": {
        "worker": CommandEntry("work_commands", "Run the background jobs that are due, once or continuously."),
        "jobs": CommandEntry("work_commands", "List background jobs, and retry or cancel them."),
        "consolidate": CommandEntry("work_commands", "Promote, prune and merge entries now, as the spec says."),
        "maintain": CommandEntry("work_commands", "Note copies and retire stale entries now."),
    },
    "Set up and check": {
        "serve": CommandEntry("server_commands", "Serve the page, the HTTP API, MCP and the worker on this machine."),
        "link": CommandEntry("server_commands", "Print another link to the page of the running server."),
        "grant": CommandEntry("server_commands", "Create, list and revoke the access of other clients."),
        "install": CommandEntry(
            "install_commands", "Connect Lukasa with a host such as Claude Code or Cursor, or disconnect it."
        ),
        "mcp": CommandEntry("server_commands", "Serve this memory to an MCP client over stdin and stdout."),
        "hook": CommandEntry("hook", "Answer a harness's events from memory."),
        "tour": CommandEntry("tour", "Show how memory works, in a throw-away memory."),
        "spec": CommandEntry("setup_commands", "List, show, make, check and compare memory specs."),
        "model": CommandEntry("setup_commands", "Show the models, and download the embedding model."),
        "embed": CommandEntry("setup_commands", "Compute the vectors that are missing."),
        "move": CommandEntry(
            "move_command", "Move all memory of an account between a data folder and a PostgreSQL database."
        ),
        "export": CommandEntry("export_commands", "Write a workspace, or all memory, to a file."),
        "backup": CommandEntry(
            "backup_commands", "Back up all memory while it is in use; list, check and restore backups."
        ),
        "sync": CommandEntry(
            "sync_commands", "Keep the memory of several machines the same, through a folder or a git repository."
        ),
        "account": CommandEntry("removal_commands", "Remove the account with everything in it."),
        "stats": CommandEntry("health_commands", "Count entries, events, jobs and the cost of models."),
        "reports": CommandEntry("health_commands", "List telemetry events, newest first."),
        "doctor": CommandEntry("health_commands", "Check the stores, and repair what can be repaired."),
        "erase": CommandEntry(
            "erase_command",
            "Erase an entry, a source or a person for good, with all that was derived from it, and prove it.",
        ),
        "erasures": CommandEntry(
            "erase_command",
            "List the receipts of erasures in the workspace and the account, newest first; none holds the words.",
        ),
        "scrub": CommandEntry(
            "health_commands", "Remove the contents of a tier or a conversation for good, in two steps."
        ),
    },
}
COMMANDS = {name: entry for group in GROUPS.values() for name, entry in group.items()}

QUICK_START = (
    'lukasa put "The villain is called Malachar" --importance 0.8',
    'lukasa read "who is the villain?"',
    'lukasa context "continue chapter three"',
)


def _load(module: str) -> Any:
    """Import a module of this package, without garbage collection, which would take a tenth of the time."""
    with uncollected():
        return import_module(f"lukasa.surfaces.cli.{module}")


class Cli(CliGroup):
    """The topmost group: finds commands by name, and turns every failure into a message and an exit code."""

    shared_title = "Options of every command"

    def _share(self, *, top: bool = False) -> None:
        super()._share(top=True)

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        entry = COMMANDS.get(cmd_name)
        if entry is None:
            return None
        command = getattr(_load(entry.module), entry.attribute or cmd_name)
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
            # Send the rest of stdout nowhere: its reader has gone, and the interpreter's last flush must not fail.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            code = 1
        except click.Abort:
            code = INTERRUPTED
        except Exception as error:  # noqa: BLE001 - the last handler: the user gets one message for any error
            code = _load("output").report(error, as_json=as_json)
        sys.exit(code if isinstance(code, int) else 0)


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
    """Give AI agents a memory that you can read, correct and explain."""
    if ctx.invoked_subcommand is None:
        _load("invocation").pass_invocation(_load("here").tell)()


def _noted(message: Warning | str, category: type[Warning], filename: str, lineno: int, line: str | None = None) -> str:
    """Return a warning as one line for a person."""
    return f"note: {_load('output').safe(str(message))}\n"


def main() -> None:
    warnings.formatwarning = _noted
    try:
        cli.main()
    finally:
        gc.freeze()  # the process ends: a last collection would only cost time


if __name__ == "__main__":
    main()
