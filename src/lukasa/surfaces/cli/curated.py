"""Verbs about the curated document."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click

from lukasa.app import open_curated_file
from lukasa.model.errors import Refused
from lukasa.service.curation.curated_document import Synced
from lukasa.surfaces.cli.data import plain
from lukasa.surfaces.cli.lines import joined, when
from lukasa.surfaces.cli.options import Family
from lukasa.surfaces.cli.output import Line, block, dim, good, line, table, warn
from lukasa.surfaces.cli.session import Session, pass_session, read_text


@click.group(cls=Family, examples=("lukasa curated show", "lukasa curated history"))
def curated() -> None:
    """Show, export, rebuild and take back the curated document.

    It is the page MEMORY, loaded in every context: what was proposed by reflection and approved by triage or by you.
    """


@curated.command("show", examples=("lukasa curated show",))
@pass_session
def curated_show(session: Session) -> None:
    """Print the document."""
    found = session.workspace().curated
    data = {"text": found.text, "lines": plain(found.lines()), "warning": found.warning}
    session.emit(data, _shown(found.text, found.warning))


def _shown(text: str, warning: str) -> Iterator[Line]:
    if not text.strip():
        yield line("Nothing is curated here yet.")
        yield line(dim("  `lukasa reflect` proposes lines for it, `lukasa review` shows what waits for you"))
        return
    yield from block(text)
    if warning:
        yield line(warn(warning))


@curated.command("path", examples=("lukasa curated path",))
@pass_session
def curated_path(session: Session) -> None:
    """Print where MEMORY.md is, for specs that keep it under git."""
    path = session.workspace().curated.path
    if path is None:
        raise Refused(
            "this workspace keeps its curated document in the database alone", fix="`lukasa curated export --dir DIR`"
        )
    session.emit({"path": str(path)}, [line(str(path))])


@curated.command("history", examples=("lukasa curated history",))
@pass_session
def curated_history(session: Session) -> None:
    """List the versions of the document, oldest first."""
    found = session.workspace().curated.history()
    rows = (
        (str(v.version), when(v.edited_at), v.editor, str(v.body.count("\n- (") + v.body.startswith("- (")))
        for v in found
    )
    session.emit({"versions": plain(found)}, table(("version", "at", "by", "lines"), rows))


@curated.command("export", examples=("lukasa curated export", "lukasa curated export --dir memory-backup"))
@click.option("--dir", "folder", metavar="DIR", help="A folder of its own, instead of the workspace's.")
@pass_session
def curated_export(session: Session, folder: str | None) -> None:
    """Write MEMORY.md and a commit for each version that has none.

    If the repository was lost, it is made anew from the database's history. An edit of the file is taken in first.
    """
    file = open_curated_file(Path(folder)) if folder is not None else None
    found = session.workspace().curated
    synced = found.export(file)
    path = file.path if file is not None else found.path
    session.emit({"path": str(path), **plain(synced)}, _synced(synced, str(path)))


def _synced(synced: Synced, path: str) -> Iterator[Line]:
    if not synced.version:
        yield line("There is no curated document yet.")
        return
    if synced.taken_in:
        yield line(good("taken in "), "your edit of the file")
    yield line(
        good("written "), path, dim(f"  {joined(f'version {synced.version}', f'{synced.committed} commits made')}")
    )
    if synced.trouble:
        yield line(warn(f"  no commit: {synced.trouble}"))


@curated.command(
    "rebuild",
    examples=("lukasa curated rebuild --from-file curated/MEMORY.md", "… | lukasa curated rebuild --from-file -"),
)
@click.option("--from-file", "file", required=True, metavar="FILE", help="A MEMORY.md; - reads it from stdin.")
@pass_session
def curated_rebuild(session: Session, file: str) -> None:
    """Make the document from a file, as after losing the database.

    Each of its lines becomes an entry too, unless one says the same; as imports, they are evidence and no authority.
    """
    made = session.workspace().curated.rebuild(read_text(file))
    told = ", ".join(f"{count} {outcome}" for outcome, count in made.outcomes.items()) or "no lines"
    did = "rebuilt " if made.changed else "unchanged "
    session.emit(plain(made), [line(good(did), dim(f"version {made.page.version}; entries: {told}"))])


@curated.command("undo", examples=("lukasa curated undo", "lukasa curated undo 7"))
@click.argument("version", type=int, required=False)
@pass_session
def curated_undo(session: Session, version: int | None) -> None:
    """Take back what a version changed, the last one by default.

    What came after it stays. A proposal that it had promoted waits for review again.
    """
    made = session.workspace().curated.undo(version)
    session.emit(plain(made), [line(good("taken back"), dim(f"  the document is at version {made.version}"))])
