"""Commands for a person's decisions: the curated document, reflection, review and disposition."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import click

from lukasa.app import open_curated_file
from lukasa.model.amendment import Amendment
from lukasa.model.errors import LukasaError, Refused
from lukasa.service.corpus.submitting import OpenSubmission
from lukasa.service.curation.curated_document import Synced
from lukasa.service.curation.review import Decided, DoubtfulEntry, HeldEntry, Inbox, OpenProposal, OpenRivals
from lukasa.service.jobs.queue import Round, reflect_now
from lukasa.service.upkeep.dispose import Waiting
from lukasa.service.workspace import Workspace
from lukasa.surfaces.cli import lines, submission_commands
from lukasa.surfaces.cli.data import plain
from lukasa.surfaces.cli.invocation import Invocation, pass_invocation, read_text, text_or_stdin
from lukasa.surfaces.cli.lines import joined, when
from lukasa.surfaces.cli.options import ID, CliCommand, CliGroup
from lukasa.surfaces.cli.output import Line, bad, block, dim, good, line, many, safe, table, title, warn, write


@click.group(cls=CliGroup, examples=("lukasa curated show", "lukasa curated history"))
def curated() -> None:
    """Show, export, rebuild and undo the curated document.

    The document is the page MEMORY, which every context loads. Reflection proposes its lines; triage or you approve
    them.
    """


@curated.command("show", examples=("lukasa curated show",))
@pass_invocation
def curated_show(cli: Invocation) -> None:
    """Print the document."""
    found = cli.workspace().curated
    data = {"text": found.text, "lines": plain(found.lines()), "warning": found.warning}
    cli.emit(data, _document(found.text, found.warning))


def _document(text: str, warning: str) -> Iterator[Line]:
    if not text.strip():
        yield line("Nothing is curated here yet.")
        yield line(dim("  `lukasa reflect` proposes lines, `lukasa review` lists what you can approve"))
        return
    yield from block(text)
    if warning:
        yield line(warn(warning))


@curated.command("path", examples=("lukasa curated path",))
@pass_invocation
def curated_path(cli: Invocation) -> None:
    """Print the path of MEMORY.md, for specs that keep it under git."""
    path = cli.workspace().curated.path
    if path is None:
        raise Refused(
            "this workspace keeps its curated document in the database alone",
            fix="write a copy with `lukasa curated export --dir DIR`",
        )
    cli.emit({"path": str(path)}, [line(str(path))])


@curated.command("history", examples=("lukasa curated history",))
@pass_invocation
def curated_history(cli: Invocation) -> None:
    """List the versions of the document, oldest first."""
    found = cli.workspace().curated.history()
    rows = (
        (str(v.version), when(v.edited_at), v.editor, str(v.body.count("\n- (") + v.body.startswith("- (")))
        for v in found
    )
    cli.emit({"versions": plain(found)}, table(("version", "at", "by", "lines"), rows))


@curated.command("export", examples=("lukasa curated export", "lukasa curated export --dir memory-backup"))
@click.option("--dir", "folder", metavar="DIR", help="Write to this folder instead of the workspace's.")
@pass_invocation
def curated_export(cli: Invocation, folder: str | None) -> None:
    """Write MEMORY.md and a commit for each version that has none.

    If the repository is missing, it is made again from the database's history. Your edits of the file are imported
    first.
    """
    file = open_curated_file(Path(folder)) if folder is not None else None
    found = cli.workspace().curated
    synced = found.export(file)
    path = file.path if file is not None else found.path
    cli.emit({"path": str(path), **plain(synced)}, _exported(synced, str(path)))


def _exported(synced: Synced, path: str) -> Iterator[Line]:
    if not synced.version:
        yield line("There is no curated document yet.")
        return
    if synced.taken_in:
        yield line(good("imported "), "your edit of the file")
    yield line(
        good("written "), path, dim(f"  {joined(f'version {synced.version}', f'{synced.committed} commits made')}")
    )
    if synced.trouble:
        yield line(warn(f"  no commit: {synced.trouble}"))


@curated.command(
    "rebuild",
    examples=("lukasa curated rebuild --from-file curated/MEMORY.md", "… | lukasa curated rebuild --from-file -"),
)
@click.option("--from-file", "file", metavar="FILE", help="A MEMORY.md; - reads it from stdin.")
@click.option("--from-repo", "repo", metavar="DIR", help="A repository: its document, log and decision records.")
@pass_invocation
def curated_rebuild(cli: Invocation, file: str | None, repo: str | None) -> None:
    """Make the document from a file or a repository, for example after the database was lost.

    Each line also becomes an entry, unless an entry says the same. The entries are imports: evidence without authority.
    """
    if (file is None) == (repo is None):
        raise click.UsageError("give either --from-file FILE or --from-repo DIR")
    page = cli.workspace().curated
    made = page.rebuild(read_text(file)) if file is not None else page.rebuild_from(open_curated_file(Path(repo or "")))
    told = ", ".join(f"{count} {outcome}" for outcome, count in made.outcomes.items()) or "no lines"
    did = "rebuilt " if made.changed else "unchanged "
    shown = [line(good(did), dim(f"version {made.page.version}; entries: {told}"))]
    cli.emit(plain(made), [*shown, *(line(good("restored "), name) for name in made.records)])


@curated.command("undo", examples=("lukasa curated undo", "lukasa curated undo 7"))
@click.argument("version", type=int, required=False)
@pass_invocation
def curated_undo(cli: Invocation, version: int | None) -> None:
    """Undo the changes of a version, by default of the last one.

    Later changes stay. A proposal that the version had promoted returns to review.
    """
    made = cli.workspace().curated.undo(version)
    cli.emit(plain(made), [line(good("undone"), dim(f"  the document is at version {made.version}"))])


OFFLINE = "offline"
_STYLES = {"promoted": good, "merged": good, "rejected": dim, "review": warn, "pending": warn}


@click.command(cls=CliCommand, examples=("lukasa reflect", "lukasa reflect --rules --json"))
@click.option("--rules", is_flag=True, help="Use rules alone, even if a language model is set.")
@pass_invocation
def reflect(cli: Invocation, rules: bool) -> None:
    """Propose lines for the curated document, and triage them.

    Reads the entries since the last reflection. Each proposal is promoted, merged, rejected or left to you, with the
    reason; `lukasa review` lists what is left to you. If a step fails, the exit code is 1, and a worker tries it again.
    """
    chat = cli.memory.chat()
    model = None if rules or chat.name == OFFLINE else chat
    done = reflect_now(cli.workspace().ctx, chat=model, budget=cli.memory.settings.budget)
    cli.emit(plain(done), _round(done))
    cli.fail(done.errors)


def _round(done: Round) -> Iterator[Line]:
    for error in done.errors:
        yield line(bad("failed "), error)
    yield line(f"{many(done.observations, 'observation')}, {many(len(done.proposals), 'proposal')}.")
    if done.left_over:
        yield line(dim(f"  {done.left_over} had no room; the next reflection reads them"))
    yield from _proposals(done.proposals)


def _proposals(found: Sequence[Amendment]) -> Iterator[Line]:
    for a in found:
        yield line(_STYLES[str(a.state)](f"{a.state:<9}"), a.line or a.change)
        yield line(dim(f"          {joined(a.section, f'confidence {a.confidence:.2f}', a.decided_by, a.reason)}"))
    if any(str(a.state) == "review" for a in found):
        yield line(dim("  `lukasa review` lets you decide"))


ReviewItem = HeldEntry | OpenProposal | OpenRivals | DoubtfulEntry | OpenSubmission
QUESTION = "[a]pprove, [e]dit, [r]eject, [s]kip, [q]uit"
WHICH = "Keep the [o]ld, use the [n]ew, [b]oth are true, [s]kip, [q]uit"


@click.group(
    cls=CliGroup,
    invoke_without_command=True,
    examples=(
        "lukasa review",
        "lukasa review list --json",
        "lukasa review approve 0197f2c1-7c1e-7d53-9c4b-1f6d3a2b8e90",
    ),
)
@click.pass_context
def review(ctx: click.Context) -> None:
    """Approve, edit or reject what waits for you: held entries, proposals, and changes submitted to documents.

    Reads find nothing held before you approve. On a terminal the command asks you about one item after the other;
    elsewhere it lists them.
    """
    if ctx.invoked_subcommand is None:
        ctx.invoke(review_ask if sys.stdin.isatty() and sys.stdout.isatty() else review_list)


@review.command("list", examples=("lukasa review list", "lukasa review list --json"))
@click.option(
    "--limit", type=click.IntRange(1, 1000), default=100, show_default=True, help="At most this many of each."
)
@pass_invocation
def review_list(cli: Invocation, limit: int = 100) -> None:
    """List all that waits for you, with the reason and the original words."""
    found = cli.workspace().inbox(limit=limit)
    cli.emit(plain(found), _inbox(found))


@review.command("ask", examples=("lukasa review ask",))
@pass_invocation
def review_ask(cli: Invocation) -> None:
    """Go through what waits, one by one."""
    world = cli.workspace()
    found = world.inbox(limit=1000)
    waiting = _waiting_items(found)
    decided: list[Decided] = []
    for place, item in enumerate(waiting, 1):
        write([line(), line(dim(f"{place} of {len(waiting)}")), *_item(item)], no_color=cli.choices.no_color)
        question, answers = (WHICH, "onbsq") if _contested(item) else (QUESTION, "aersq")
        answer = click.prompt(question, type=click.Choice(list(answers)), show_choices=False, default="s")
        if answer == "q":
            break
        try:
            made = _decide_item(world, item, answer)
        except LukasaError as error:  # an item that cannot be decided now must not end the loop
            write([line(warn(f"  {error}"))], no_color=cli.choices.no_color)
            continue
        if made is not None:
            decided.append(made)
            write(_decided(made), no_color=cli.choices.no_color)
    left = len(waiting) - len(decided)
    cli.emit({"decided": plain(decided), "left": left}, [line(f"{len(decided)} decided, {left} left.")])


def _waiting_items(found: Inbox) -> list[ReviewItem]:
    return [*found.proposals, *found.submissions, *found.entries, *found.rivals, *found.doubtful]


def _contested(item: ReviewItem) -> bool:
    return isinstance(item, OpenRivals) or (isinstance(item, HeldEntry) and bool(item.against))


def _decide_item(world: Workspace, item: ReviewItem, answer: str) -> Decided | None:
    keep = {"o": "old", "n": "new", "b": "both"}.get(answer)
    if isinstance(item, OpenRivals):
        return world.settle(item.later.id, item.earlier.id, keep) if keep is not None else None
    if keep is not None:
        against = item.against if isinstance(item, HeldEntry) else ()
        return world.settle(item.entry.id, against[0].id, keep) if isinstance(item, HeldEntry) and against else None
    id, text = _id_and_text(item)
    onto = None
    if isinstance(item, OpenSubmission) and item.since and item.document is not None:
        onto = item.document.version  # the person has just seen what changed since
    if answer == "a":
        return world.approve(id, onto=onto)
    if answer == "e":
        return world.approve(id, text=click.prompt("Text", default=safe(text)), onto=onto)
    if answer == "r":
        return world.reject(id, click.prompt("Why", default="rejected by the author"))
    return None


def _id_and_text(item: HeldEntry | OpenProposal | DoubtfulEntry | OpenSubmission) -> tuple[str, str]:
    if isinstance(item, OpenSubmission):
        return item.submission.id, item.submission.change.text
    if isinstance(item, HeldEntry | DoubtfulEntry):
        return item.entry.id, item.entry.content
    return item.amendment.id, item.amendment.change


def _about_submissions(f: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that say what an accepted submission does."""
    for option in (
        click.option("--keep-all", is_flag=True, help="Of a submission: retire none of its memories."),
        click.option(
            "--retire",
            multiple=True,
            metavar="ID",
            type=ID,
            help="Of a submission: a memory to retire, instead of those that it names as derivable. Repeatable.",
        ),
        click.option(
            "--onto", type=int, metavar="VERSION", help="Of a submission: the version of the document you looked at."
        ),
    ):
        f = option(f)
    return f


def _retire(retire: Sequence[str], keep_all: bool) -> tuple[str, ...] | None:
    if retire and keep_all:
        raise click.UsageError("give either --retire or --keep-all")
    return tuple(retire) if retire or keep_all else None


@review.command(
    "approve",
    examples=(
        "lukasa review approve 0197f2c1-7c1e-7d53-9c4b-1f6d3a2b8e90",
        "lukasa review approve 0197f2c1-7c1e-7d53-9c4b-1f6d3a2b8e90 --keep-all",
    ),
)
@click.argument("id", type=ID)
@click.option("--reason", default="approved by the author", show_default=True, help="Why; kept with it.")
@_about_submissions
@pass_invocation
def review_approve(
    cli: Invocation, id: str, reason: str, onto: int | None, retire: Sequence[str], keep_all: bool
) -> None:
    """Accept a held entry, add a proposal to the curated document, write a submission, or confirm an entry in doubt.

    A rejected proposal or submission can still be approved.
    """
    made = cli.workspace().approve(id, reason=reason, onto=onto, retire=_retire(retire, keep_all))
    cli.emit(plain(made), _decided(made))


@review.command("edit", examples=('lukasa review edit 0197f2c1-7c1e-7d53-9c4b-1f6d3a2b8e90 --text "In my words"',))
@click.argument("id", type=ID)
@click.option("--text", required=True, metavar="TEXT", help="The new text; - reads it from stdin.")
@click.option("--reason", default="edited and approved by the author", show_default=True, help="Why; kept with it.")
@click.option("--whole", is_flag=True, help="Of a submission: the text is the whole document.")
@_about_submissions
@pass_invocation
def review_edit(
    cli: Invocation,
    /,
    id: str,
    text: str,
    reason: str,
    whole: bool,
    onto: int | None,
    retire: Sequence[str],
    keep_all: bool,
) -> None:
    """Approve an item with another text. A submission whose document has changed since needs --onto."""
    chosen = _retire(retire, keep_all)
    made = cli.workspace().approve(id, text=text_or_stdin(text), reason=reason, whole=whole, onto=onto, retire=chosen)
    cli.emit(plain(made), _decided(made))


@review.command("reject", examples=('lukasa review reject 0197f2c1-7c1e-7d53-9c4b-1f6d3a2b8e90 --reason "not so"',))
@click.argument("id", type=ID)
@click.option("--reason", default="rejected by the author", show_default=True, help="Why; kept with it.")
@pass_invocation
def review_reject(cli: Invocation, id: str, reason: str) -> None:
    """Forget a held entry or an entry in doubt, or reject a proposal or a submission.

    None is lost: `lukasa restore` holds the entry again, `lukasa review approve` accepts what was rejected.
    """
    made = cli.workspace().reject(id, reason)
    cli.emit(plain(made), _decided(made))


@review.command("settle", examples=("lukasa review settle ID OTHER --keep both",))
@click.argument("id", type=ID)
@click.argument("other", type=ID)
@click.option("--keep", type=click.Choice(["old", "new", "both"]), required=True, help="Which entry holds.")
@click.option("--reason", default="decided by the author", show_default=True, help="Why; kept with it.")
@pass_invocation
def review_settle(cli: Invocation, id: str, other: str, keep: str, reason: str) -> None:
    """Decide about two entries that give one thing two values; one of them may be held.

    The one that no longer holds is retired, and `lukasa restore` brings it back. If both hold, nobody asks again.
    """
    made = cli.workspace().settle(id, other, keep, reason)
    cli.emit(plain(made), _decided(made))


# Lines


def _inbox(found: Inbox) -> Iterator[Line]:
    if not len(found):
        yield line("Nothing to review.")
        return
    for item in _waiting_items(found):
        yield from _item(item)
        yield line()
    if found.proposals or found.entries or found.submissions:
        yield line(dim("  `lukasa review approve|edit|reject ID` decides"))
    if found.doubtful:
        yield line(dim("  `lukasa review approve ID` confirms an entry in doubt, `lukasa review reject ID` forgets it"))
    if found.rivals or any(held.against for held in found.entries):
        yield line(dim("  `lukasa review settle ID OTHER --keep old|new|both` decides between two entries"))


def _item(item: ReviewItem) -> Iterator[Line]:
    if isinstance(item, HeldEntry | DoubtfulEntry):
        entry = item.entry
        yield from block(entry.content, style="title")
        yield line(
            dim("  held entry  " if isinstance(item, HeldEntry) else "  in doubt    "),
            joined(entry.id, entry.scope.tier, str(entry.kind), f"by {entry.origin.principal}"),
        )
        yield line(dim("  since       "), when(entry.created_at))
        if entry.unverified:
            yield line(dim("  trust       "), warn(lines.UNVERIFIED))
        for other in item.against if isinstance(item, HeldEntry) else ():
            yield line(dim("  contradicts "), lines.listed(other), dim(f"  {other.id}"))
    elif isinstance(item, OpenRivals):
        yield from block(item.later.content, style="title")
        yield line(dim("  later       "), joined(item.later.id, when(item.later.confirmed_at)))
        if item.later.unverified:
            yield line(dim("  trust       "), warn(lines.UNVERIFIED))
        yield line(dim("  earlier     "), joined(item.earlier.id, when(item.earlier.confirmed_at)))
        if item.earlier.unverified:
            yield line(dim("  trust       "), warn(lines.UNVERIFIED))
        yield from block(item.earlier.content, "              ")
    elif isinstance(item, OpenSubmission):
        yield from submission_commands.waiting(item)
    else:
        a = item.amendment
        yield line(title(a.change))
        yield line(dim("  proposal    "), joined(a.id, a.section, f"confidence {a.confidence:.2f}"))
        for source in item.sources:
            yield line(dim("  rests on    "), joined(source.id, lines.listed(source)))
    yield line(dim("  why         "), item.why)
    yield from lines.quotes(item.quotes, "  said        ")


def _decided(made: Decided) -> Iterator[Line]:
    yield line(good(f"{made.outcome} "), made.id)
    if made.submission is not None and made.submission.accepted:
        yield from submission_commands.accepted(made.submission)
        yield from (line(warn("  left        "), one.id, f": {one.reason}") for one in made.kept)
    if made.trouble:
        yield line(warn(f"  {made.trouble}" if made.submission is not None else f"  no commit yet: {made.trouble}"))
    if made.amendment is not None and made.amendment.line:
        yield line(dim(f"  {made.amendment.line}"))
    if made.replaces:
        yield line(f"  it replaces {', '.join(made.replaces)}")
    if made.beside:
        yield line(f"  it may contradict {', '.join(made.beside)}: both stay, and `lukasa review` decides")
    if made.outcome == "forgotten":
        yield line(dim(f"  `lukasa restore {made.id}` holds it again"))


@click.group(cls=CliGroup, examples=("lukasa disposition list", "lukasa disposition archive ID"))
def disposition() -> None:
    """Promote, exempt or archive faded entries.

    If a spec's lifecycle is `dispose`, entries whose relevance falls below the threshold are listed here. Reads still
    find them, and nothing happens to them until you decide.
    """


@disposition.command("list", examples=("lukasa disposition list --scope org_id=acme --scope domain_id=ops",))
@pass_invocation
def list_waiting(cli: Invocation) -> None:
    """List the entries that need a decision, the most faded first."""
    found = cli.workspace().dispositions()
    data = [{"relevance": w.relevance, "reads": w.reads, "entry": plain(w.entry)} for w in found]
    cli.emit({"waiting": data}, _waiting(cli, found))


def _waiting(cli: Invocation, found: Sequence[Waiting]) -> Iterator[Line]:
    if not found:
        yield line("No entry needs a decision.")
        yield line(dim("  entries are listed here if their spec's lifecycle is `dispose`; `lukasa spec show` shows it"))
        return
    rows = ((w.id, f"{w.relevance:.3f}", f"{w.entry.created_at:%Y-%m-%d}", lines.listed(w.entry, 70)) for w in found)
    yield from table(("id", "relevance", "written", "text"), rows)
    example = cli.again(f"disposition archive {found[0].id}")
    yield line(dim(f"  `{example}` decides about the first one; `promote` and `exempt` keep an entry"))


def _dispose(cli: Invocation, id: str, how: str, reason: str) -> None:
    done = cli.workspace().dispose(id, how, reason)
    cli.emit(plain(done), [line(good(f"{done.outcome} "), done.id), *lines.consequences(done)])


@disposition.command("promote", examples=("lukasa disposition promote 0197f2c1-7c1e-7d53-9c4b-1f6d3a2b8e90",))
@click.argument("id", type=ID)
@click.option("--reason", default="decided by the author", show_default=True, help="Why; kept with the entry.")
@pass_invocation
def promote(cli: Invocation, id: str, reason: str) -> None:
    """Make an entry a lasting fact, because it has proven true."""
    _dispose(cli, id, "promote", reason)


@disposition.command("exempt", examples=("lukasa disposition exempt 0197f2c1-7c1e-7d53-9c4b-1f6d3a2b8e90",))
@click.argument("id", type=ID)
@click.option("--reason", default="decided by the author", show_default=True, help="Why; kept with the entry.")
@pass_invocation
def exempt(cli: Invocation, id: str, reason: str) -> None:
    """Keep an entry as it is; it fades no more."""
    _dispose(cli, id, "exempt", reason)


@disposition.command("archive", examples=("lukasa disposition archive 0197f2c1-7c1e-7d53-9c4b-1f6d3a2b8e90",))
@click.argument("id", type=ID)
@click.option("--reason", default="decided by the author", show_default=True, help="Why; kept with the entry.")
@pass_invocation
def archive(cli: Invocation, id: str, reason: str) -> None:
    """Take an entry out of reads; its history stays."""
    _dispose(cli, id, "archive", reason)
