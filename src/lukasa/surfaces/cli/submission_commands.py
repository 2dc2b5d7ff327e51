"""Commands about the submit boundary: submit a change of a document, and list what was submitted."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import click

from lukasa.model.submission import How, Run, Submission
from lukasa.service.corpus.submitting import OpenSubmission
from lukasa.surfaces.cli import lines
from lukasa.surfaces.cli.data import plain
from lukasa.surfaces.cli.invocation import Invocation, pass_invocation, read_text, text_or_stdin
from lukasa.surfaces.cli.lines import joined, when
from lukasa.surfaces.cli.options import ID, CliCommand
from lukasa.surfaces.cli.output import Line, StyledText, bad, block, brief, dim, good, line, table, title, warn

EVERY = "all"
_STATES = ("open", "accepted", "rejected", "removed")


@click.command(
    cls=CliCommand,
    examples=(
        'lukasa corpus submit deploys --text "The port is 8443." --under Staging --memory 0197f2c1-…',
        "lukasa corpus submit deploys --memory 0197f2c1-… --derivable all",
        'lukasa corpus submit deploys --replaces "The port is 80." --text "The port is 8443." --memory 0197f2c1-…',
    ),
)
@click.argument("document")
@click.option(
    "--memory",
    "memories",
    multiple=True,
    required=True,
    metavar="ID",
    type=ID,
    help="An entry that it rests on. Repeatable.",
)
@click.option("--text", default="", metavar="TEXT", help="The text; - reads stdin [default: the memories' own words].")
@click.option("--file", metavar="FILE", help="A file with the text.")
@click.option("--under", default="", metavar="HEADING", help="Under this heading instead of the end.")
@click.option("--replaces", default="", metavar="PASSAGE", help="In place of this passage, quoted from the document.")
@click.option("--whole", is_flag=True, help="The text is the whole document.")
@click.option(
    "--derivable",
    multiple=True,
    metavar="ID",
    type=ID,
    help="A memory that nobody needs any more then; all for each. Repeatable.",
)
@click.option("--title", "named", default="", metavar="TEXT", help="Title of a new document.")
@click.option("--collection", default="documents", show_default=True, help="Collection of a new document.")
@click.option("--note", default="", metavar="TEXT", help="Why, for the person who decides.")
@pass_invocation
def submit(
    cli: Invocation,
    /,
    document: str,
    memories: Sequence[str],
    text: str,
    file: str | None,
    under: str,
    replaces: str,
    whole: bool,
    derivable: Sequence[str],
    named: str,
    collection: str,
    note: str,
) -> None:
    """Submit a change of a document, or a new one, that rests on memories.

    Nothing in the corpus changes until you accept it: `lukasa review` shows the change and asks you. Accepted, it is a
    new version of the document, and the memories that the document makes unnecessary are retired.
    """
    if text and file is not None:
        raise click.UsageError("give either --text or --file")
    said = read_text(file) if file is not None else text_or_stdin(text)
    made = cli.workspace().submit(
        document,
        said,
        memories=memories,
        whole=whole,
        under=under,
        replaces=replaces,
        derivable=memories if EVERY in derivable else derivable,
        title=named,
        collection=collection,
        note=note,
    )
    told = [line(good("submitted "), made.id, dim(f"  {_place(made)}"))]
    cli.emit(plain(made), [*told, line(dim("  `lukasa review` shows the change; only you decide about it"))])


def _place(made: Submission) -> str:
    target = f"document {made.document}" + (f" at version {made.base}" if made.base else ", a new one")
    place = brief(made.change.place, 60)
    where = {
        How.WHOLE: "the whole of ",
        How.END: "at the end of ",
        How.UNDER: f"under “{place}” in ",
        How.REPLACE: f"in place of “{place}” in ",
    }[made.change.how]
    return f"{where if made.base else ''}{target}"


@click.command(
    cls=CliCommand,
    examples=(
        "lukasa corpus submissions",
        "lukasa corpus submissions --document deploys --state accepted --json",
        "lukasa corpus submissions 0197f2c1-7c1e-7d53-9c4b-1f6d3a2b8e90",
    ),
)
@click.argument("id", type=ID, required=False)
@click.option("--document", metavar="ID", type=ID, help="Only those for this document.")
@click.option("--memory", metavar="ID", type=ID, help="Only those that rest on this entry.")
@click.option("--state", type=click.Choice(_STATES), help="Only in this state.")
@click.option("--limit", type=click.IntRange(1, 1000), default=100, show_default=True, help="At most this many.")
@pass_invocation
def submissions(
    cli: Invocation, /, id: str | None, document: str | None, memory: str | None, state: str | None, limit: int
) -> None:
    """List what was submitted to the corpus, the oldest first, or show one submission in full."""
    world = cli.workspace()
    if id is not None:
        made = world.get_submission(id)
        cli.emit(plain(made), _one(made))
        return
    found = world.submissions(document=document, memory=memory, state=state, limit=limit)
    cli.emit({"submissions": plain(found)}, _listed(found))


def _listed(found: Sequence[Submission]) -> Iterator[Line]:
    if not found:
        yield line("Nothing was submitted.")
        return
    heads = ("id", "at", "state", "document", "by", "text")
    yield from table(
        heads,
        (
            (s.id, when(s.created_at), _became(s), s.document, s.origin.principal, brief(s.change.text, 50) or "—")
            for s in found
        ),
    )


def _became(made: Submission) -> str:
    return f"version {made.accepted}" if made.accepted else str(made.state)


def _one(made: Submission) -> Iterator[Line]:
    yield line(title(_place(made)), dim(f"  {made.id}"))
    yield line(f"  by {made.origin.principal}, {when(made.created_at)}", dim(f"  {_became(made)}"))
    if made.decided_by:
        yield line(
            dim("  decided     "), joined(made.decided_by, made.reason, "with another text" if made.edited else "")
        )
    for id in made.memories:
        yield line(dim("  rests on    "), id, dim("  retired" if id in made.retired else ""))
    if made.wordless:
        yield line(dim("  its words were removed with a memory on which it rested"))
    yield from block(made.change.text, "  ")


# In the review inbox


def waiting(item: OpenSubmission) -> Iterator[Line]:
    """Give the lines of a submission that waits: the change by words, and what it rests on."""
    made = item.submission
    yield line(title(_place(made)))
    yield line(dim("  submission  "), joined(made.id, f"by {made.origin.principal}", when(made.created_at)))
    if item.document is not None:
        d = item.document
        yield line(dim("  document    "), joined(d.title, d.origin, d.lifecycle, f"weight {d.weight:g}", d.standing))
    if made.keys:
        keys = ", ".join(f"{key}={value}" for key, value in made.keys.items())
        yield line(dim("  made in     "), warn(f"{keys}: all of this workspace will read it"))
    if item.source:
        yield line(
            dim("  read from   "), item.source, dim("  its next version replaces this text: change it there too")
        )
    spared = {one.id: one.reason for one in item.kept}
    for entry in item.memories:
        retires = " (retired with it)" if entry.id in item.retires else ""
        yield line(dim("  rests on    "), joined(entry.id, lines.listed(entry) + retires))
        if entry.unverified:
            yield line(dim("  trust       "), warn(lines.UNVERIFIED))
    for id, reason in spared.items():
        yield line(dim("  but         "), warn(f"{id} {reason}"))
    if item.since:
        yield line(dim("  since       "), warn("the document has changed:"))
        yield from _difference(item.since)
    if item.trouble:
        yield line(dim("  trouble     "), warn(item.trouble))
    if item.changes:
        yield line(dim("  change"))
        yield from _difference(item.changes)


def _difference(runs: Sequence[Run]) -> Iterator[Line]:
    """Give a difference as lines; marks and colours say what goes and what comes."""
    marks: dict[str, tuple[str, str, Callable[[str], str | StyledText]]] = {
        "same": ("", "", str),
        "removed": ("[-", "-]", bad),
        "added": ("{+", "+}", good),
        "cut": ("[", "]", dim),
    }
    row: list[str | StyledText] = ["    "]
    for run in runs:
        before, after, style = marks[run.kind]
        first, *rest = run.text.split("\n")
        row += [style(before), *([style(first)] if first else [])]
        for part in rest:
            yield line(*row)
            row = ["    ", *([style(part)] if part else [])]
        row.append(style(after))
    yield line(*row)


def accepted(made: Submission) -> Iterator[Line]:
    """Give the lines about what an accepted submission did."""
    yield line(f"  document {made.document} is at version {made.accepted}")
    for id in made.retired:
        yield line(dim("  retired     "), id)
