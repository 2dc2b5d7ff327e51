"""Commands about what entries cite: cite and verify."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence

import click

from lukasa.model import system
from lukasa.model.citation import Cited, CitedNow
from lukasa.model.errors import InvalidInput
from lukasa.service.citations.citing import FORMS, Cite
from lukasa.service.citations.verifying import Verification
from lukasa.service.workspace import Workspace
from lukasa.surfaces.cli import lines
from lukasa.surfaces.cli.data import plain
from lukasa.surfaces.cli.invocation import Invocation, pass_invocation, read_text
from lukasa.surfaces.cli.options import ID, CliCommand
from lukasa.surfaces.cli.output import FAILED, brief, dim, good, line, safe

COMMAND_SECONDS = 60
MOST_OUTPUT = 1_000_000


@click.command(
    cls=CliCommand,
    examples=(
        "lukasa cite 0197f2c1-7c1e-7d53-9c4b-1f6d3a2b8e90 src/auth.py:10-20",
        "lukasa cite 0197f2c1-7c1e-7d53-9c4b-1f6d3a2b8e90 --again",
        "python --version | lukasa cite 0197f2c1-7c1e-7d53-9c4b-1f6d3a2b8e90 'command:python --version' --output -",
    ),
)
@click.argument("id", type=ID)
@click.argument("what", nargs=-1)
@click.option("--again", is_flag=True, help="Pin everything that the entry cites as it is now.")
@click.option("--drop", multiple=True, metavar="WHAT", help="A citation to take away. Repeatable.")
@click.option("--output", metavar="FILE", help="What the cited command printed, or the URL's text; - reads stdin.")
@pass_invocation
def cite(cli: Invocation, id: str, what: Sequence[str], again: bool, drop: Sequence[str], output: str | None) -> None:
    """Pin what an entry is about, so that reads can check it.

    Without WHAT it shows what the entry cites. WHAT is a file of the project at hand, with lines or without
    (src/auth.py:10-20), symbol:src/auth.py:Settings, url:https://…, command:…, memory:ID or document:ID#12. --again
    says that you looked, and that the entry still holds.
    """
    if output is not None and len(what) != 1:
        raise InvalidInput("--output is of one citation", fix="cite one command or one URL with it")
    seen = read_text(output) if output is not None else None
    world = cli.workspace()
    asked = bool(what or drop or again)
    done = world.cite(id, *(Cite(one, seen) for one in what), again=again, drop=drop) if asked else world.citations(id)
    told = [*([line(good("pinned "), done.entry.id)] if asked else []), *lines.citations(done)]
    if not (done.citations or done.documents):
        told.append(line("It cites nothing."))
        told.append(line(dim(f"  write one of: {FORMS}")))
    cli.emit(plain(done), told)


@click.command(
    cls=CliCommand,
    examples=(
        "lukasa verify",
        "lukasa verify 0197f2c1-7c1e-7d53-9c4b-1f6d3a2b8e90",
        "lukasa verify --all --json",
        "lukasa verify --all --run",
    ),
)
@click.argument("ids", type=ID, nargs=-1, metavar="[ID]...")
@click.option("--all", "everything", is_flag=True, help="Check every entry that cites anything, of every project.")
@click.option("--run", "run", is_flag=True, help="Run the cited commands too; each is shown and asked for first.")
@click.option("--yes", is_flag=True, help="Do not ask before a cited command runs.")
@pass_invocation
def verify(cli: Invocation, ids: Sequence[str], everything: bool, run: bool, yes: bool) -> None:
    """Check what entries cite, and list what no longer holds.

    Without an ID it checks the entries that cite the project at hand: that of LUKASA_PROJECT or of the working
    directory. Other projects are looked for in the folder where they last were on this machine. Verdicts are verified,
    moved, changed, gone and unchecked. The exit code is 1 if anything is changed or gone.
    """
    if yes and not run:
        raise click.UsageError("--yes is for --run")
    world = cli.workspace()
    found = world.verify_citations(*ids, everything=everything)
    if run and (outputs := _outputs(cli, world, found, yes)):
        found = world.verify_citations(*ids, everything=everything, outputs=outputs)
    data = {"counts": found.counts, "entries": plain(found.entries), "unlooked": found.unlooked}
    cli.emit(data, lines.verification(found, everything=everything or bool(ids)))
    if found.amiss:
        click.get_current_context().exit(FAILED)


def _outputs(cli: Invocation, world: Workspace, found: Verification, yes: bool) -> dict[str, str | None]:
    """Return what the cited commands print, by citation. A person sees each command before it runs."""
    outputs: dict[str, str | None] = {}
    ran: dict[str, str | None] = {}
    for entry in found.entries:
        for one in entry.citations:
            if one.citation.kind is not Cited.COMMAND:
                continue
            command = one.citation.target
            if command not in ran:
                ran[command] = _run(command, cli.project) if _wanted(one, entry.entry.content, yes) else ""
            if ran[command] != "":
                outputs[one.citation.id] = ran[command]
    return outputs


def _wanted(one: CitedNow, content: str, yes: bool) -> bool:
    click.echo(f"an entry cites a command: {safe(brief(content, 100))}\n  {safe(one.citation.target)}", err=True)
    return yes or click.confirm("Run it?", default=False, err=True)


def _run(command: str, folder: str) -> str | None:
    """Return what a command prints; nothing to compare if it cannot run to its end."""
    try:
        done = subprocess.run(
            system.shell(command),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            cwd=folder,
            timeout=COMMAND_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        click.echo(f"it did not end: {type(error).__name__}", err=True)
        return ""
    if done.returncode in (127, 9009):
        return None  # there is no such command any more
    return (done.stdout + done.stderr)[:MOST_OUTPUT].decode("utf-8", "replace") or "\n"
