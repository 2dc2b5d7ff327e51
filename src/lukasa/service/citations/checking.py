"""Check citations: compare what was pinned with what is there now, within a budget of time.

Reads look only at the project at hand, and at the memory that the reader may see. They run no command, fetch no URL and
write nothing: `verifying` keeps outcomes. A citation that nobody could look at says so, with what the last check found.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct, field
from msgspec.structs import replace

from lukasa.model.citation import (
    HOLDS,
    NOT_THERE,
    Citation,
    CitationCheck,
    CitationVerdict,
    Cited,
    CitedNow,
    placed,
    text_pin,
)
from lukasa.model.definitions import definition
from lukasa.model.entry import Entry
from lukasa.model.errors import LukasaError, NotFound, OutsideProject, UnreadableFile
from lukasa.model.source_text import SourceText
from lukasa.model.values import VISIBILITY, Trust, Visibility
from lukasa.ports import ProjectFiles
from lukasa.service.call import CallContext
from lukasa.service.retrieval.grounds import removed
from lukasa.write.transforms import through

FOREVER = float("inf")
MOST_PASSAGES = 5_000  # of a document in which a passage is looked for
LONGEST = 10.0  # seconds for one citation, where there is no other bound
_V = CitationVerdict


class Seen(Struct, frozen=True):
    """What a look found: the place of what has moved, or the reason why nobody could look."""

    verdict: CitationVerdict
    path: str = ""
    line: int = 0
    why: str = ""


class Look(Struct, frozen=True):
    """What looks at citations share: the reader, the last outcomes, and how far a look may go.

    `until` is a moment of the monotonic clock. With `known`, projects that are not at hand are looked for in their last
    folder on this machine. `outputs` has what commands printed and URLs gave, for those that somebody ran or fetched.
    """

    ctx: CallContext
    stored: Mapping[str, CitationCheck] = {}
    until: float = FOREVER
    known: bool = False
    outputs: Mapping[str, str | None] = {}
    projects: dict[str, ProjectFiles | None] = field(default_factory=dict)
    places: dict[tuple[str, str, str], list[tuple[str, bool]]] = field(default_factory=dict)

    @property
    def hasty(self) -> bool:
        """Whether somebody waits for a read: what the last check found is then as good as looking everywhere again."""
        return self.until != FOREVER

    def project_of(self, citation: Citation) -> ProjectFiles | None:
        """Return the project of a citation, if it is at hand or may be looked for."""
        name = citation.project
        if name not in self.projects:
            here, found = self.ctx.project, None
            if here is not None and here.is_called(name):
                found = here
            elif self.known and self.ctx.projects is not None:
                found = self.ctx.projects.known(name)
            self.projects[name] = found
        return self.projects[name]

    @property
    def end(self) -> float:
        """The moment until which a look may ask git, or go through files."""
        return min(self.until, time.monotonic() + LONGEST)


def cited(ctx: CallContext, entries: Sequence[Entry], milliseconds: int) -> dict[str, tuple[CitedNow, ...]]:
    """Return by entry what it cites, with the verdicts of now; entries that cite nothing are absent."""
    until = time.monotonic() + milliseconds / 1000
    shared: dict[str, ProjectFiles | None] = {}
    found: dict[str, tuple[CitedNow, ...]] = {}
    open_ = [entry for entry in entries if not entry.damaged and (ctx.is_author or not entry.sensitive)]
    for store in (ctx.local, ctx.account):
        ids = [entry.id for entry in open_ if ctx.store(entry.scope.tier) is store]
        citations = store.citations(ids) if ids else []
        if not citations:
            continue
        checks = {check.citation: check for check in store.citation_checks(list({c.entry for c in citations}))}
        looks = Look(ctx, checks, until, projects=shared)
        for citation in citations:
            found[citation.entry] = (*found.get(citation.entry, ()), passed(ctx, now(looks, citation)))
    return found


def now(looks: Look, citation: Citation) -> CitedNow:
    """Return a citation with its verdict. If nobody can look now, what the last check found amiss still counts."""
    if time.monotonic() < looks.until:
        seen = look(looks, citation)
    else:
        seen = Seen(_V.UNCHECKED, why="the time for checks was over")
    return told(looks, citation, seen)


def told(looks: Look, citation: Citation, seen: Seen) -> CitedNow:
    """Return what a look found, as a reader gets it."""
    last = looks.stored.get(citation.id)
    verified = (last.verified_at if last is not None else None) or (citation.at if citation.hash else None)
    if seen.verdict in HOLDS:
        verified = looks.ctx.now
    elif seen.verdict is _V.UNCHECKED and last is not None and last.verdict not in (_V.VERIFIED, _V.UNCHECKED):
        seen = Seen(last.verdict, last.path, last.line, f"when it was last checked, {last.at:%Y-%m-%d}; {seen.why}")
    return CitedNow(citation, seen.verdict, _where(citation, seen), seen.why, verified)


def _where(citation: Citation, seen: Seen) -> str:
    if not seen.path and not seen.line:
        return ""
    path, lines = seen.path or citation.target, citation.last - citation.first
    last = seen.line + lines if citation.kind is Cited.FILE else 0
    return placed(path, seen.line, last)


def passed(ctx: CallContext, found: CitedNow) -> CitedNow:
    """Return a citation as it leaves through the spec's gates, like the text of its entry."""
    if not ctx.gates:
        return found
    target, where = (through(ctx.gates, text, Trust.AUTHOR)[0] for text in (found.citation.target, found.where))
    return replace(found, citation=replace(found.citation, target=target), where=where)


def look(looks: Look, citation: Citation) -> Seen:
    """Compare what a citation pinned with what is there now."""
    match citation.kind:
        case Cited.FILE | Cited.SYMBOL:
            return _in_project(looks, citation)
        case Cited.MEMORY:
            return _memory(looks.ctx, citation)
        case Cited.PASSAGE:
            return _passage(looks.ctx, citation)
        case _:
            return _outside(looks, citation)


# Files and symbols


def _in_project(looks: Look, citation: Citation) -> Seen:
    project = looks.project_of(citation)
    if project is None:
        why = "another project is at hand" if looks.ctx.project is not None else "no project is at hand"
        return Seen(_V.UNCHECKED, why=why)
    try:
        text = project.read(citation.target)
        if text is None:
            return _elsewhere(looks, project, citation)
        seen = compared(citation, citation.target, text)
        if seen.verdict is _V.GONE and citation.kind is Cited.SYMBOL:
            return _symbol_elsewhere(looks, project, citation)
        return seen
    except TimeoutError:
        return Seen(_V.UNCHECKED, why=NOT_THERE)
    except (OutsideProject, UnreadableFile) as error:
        return Seen(_V.UNCHECKED, why=error.message)


def compared(citation: Citation, path: str, text: SourceText) -> Seen:
    """Compare a citation with a file that may be the one it cites, at its path or at another one."""
    other = path if path != citation.target else ""
    if citation.kind is Cited.SYMBOL:
        first, last = citation.first, citation.last
        if last <= len(text) and text.pin_lines(first, last) == citation.hash:
            return _held(other, first if other else 0)
        place = definition(path, text, citation.name)
        if place is None:
            return Seen(_V.GONE, why="the file does not define it any more")
        same = text.pin_lines(*place) == citation.hash
        return _held(other, place[0] if other else 0) if same else Seen(_V.CHANGED, other, place[0])
    if not citation.first:
        return _held(other, 0) if text.pin == citation.hash else Seen(_V.CHANGED, other)
    found = text.find(citation.first, citation.last, citation.hash, citation.around)
    if found is None:
        return Seen(_V.CHANGED, other)
    return _held(other, found.first if other or found.first != citation.first else 0)


def _held(path: str, line: int) -> Seen:
    return Seen(_V.MOVED if path or line else _V.VERIFIED, path, line)


def _elsewhere(looks: Look, project: ProjectFiles, citation: Citation) -> Seen:
    """Look for a file that is not at its path: where the last check found it, where git says, then by its content."""
    changed: Seen | None = None
    last = looks.stored.get(citation.id)
    for path, likely in _places(looks, project, citation, last):
        try:
            text = project.read(path)
        except (OutsideProject, UnreadableFile):
            continue
        if text is None:
            continue
        seen = compared(citation, path, text)
        if seen.verdict is _V.MOVED:
            return seen
        if likely and changed is None and seen.verdict is _V.CHANGED:
            changed = seen
        if likely and seen.verdict is _V.CHANGED and looks.hasty and last is not None and last.path == path:
            return seen
    return changed or Seen(_V.GONE)


def _places(
    looks: Look, project: ProjectFiles, citation: Citation, last: CitationCheck | None
) -> Iterator[tuple[str, bool]]:
    """Yield where a file may be now; the flag says whether it is the same file also with another content."""
    if last is not None and last.path:
        yield last.path, looks.hasty and last.verdict is _V.CHANGED
    if looks.hasty and last is not None and last.verdict is _V.GONE:
        return
    key = (str(project.root), citation.target, citation.revision)
    if key not in looks.places:
        renamed = project.renamed(citation.target, citation.revision, looks.end)
        unknown = project.candidates(citation.target, looks.end)
        looks.places[key] = [*([(renamed, True)] if renamed is not None else []), *((path, False) for path in unknown)]
    yield from looks.places[key]


def _symbol_elsewhere(looks: Look, project: ProjectFiles, citation: Citation) -> Seen:
    """Look for a symbol that its file does not define any more in other files of the same sort."""
    last, ending = looks.stored.get(citation.id), os.path.splitext(citation.target)[1]
    if looks.hasty and last is not None and last.verdict is _V.GONE:
        return Seen(_V.GONE, why=last.why)
    for path in project.mentions(citation.name.rpartition(".")[2], ending, looks.end):
        text = project.read(path) if path != citation.target else None
        if text is not None and (seen := compared(citation, path, text)).verdict is _V.MOVED:
            return seen
    return Seen(_V.GONE, why="the file does not define it any more")


# Memory, commands and URLs


def _memory(ctx: CallContext, citation: Citation) -> Seen:
    try:
        _, entry = ctx.row(citation.target)
    except NotFound:
        gone = removed(ctx, citation.target)
        return Seen(_V.GONE, why="it was removed") if gone else Seen(_V.UNCHECKED, why="it is not yours to see")
    except LukasaError as error:
        return Seen(_V.UNCHECKED, why=error.message)
    if entry.damaged:
        return Seen(_V.UNCHECKED, why="its text is damaged")
    if entry.superseded_by:
        return Seen(_V.CHANGED, entry.superseded_by, why="another entry has replaced it")
    if VISIBILITY[entry.state] is Visibility.HISTORY:
        return Seen(_V.GONE, why=f"it is {entry.state}")
    if entry.ended_by(ctx.now):
        return Seen(_V.CHANGED, why="its validity has ended")
    return Seen(_V.VERIFIED if text_pin(entry.content) == citation.hash else _V.CHANGED)


def _passage(ctx: CallContext, citation: Citation) -> Seen:
    """Compare a passage of the corpus: at its number, then anywhere in its document."""
    document, _, number = citation.target.rpartition("#")
    head = ctx.local.document_heads([document]).get(document)
    if head is None:
        return Seen(_V.UNCHECKED, why="its document is not in this workspace")
    if head.removed:
        return Seen(_V.GONE, why="its document was removed")
    if str(head.version) == citation.revision:
        return Seen(_V.VERIFIED)
    there = ctx.local.passages(document, limit=MOST_PASSAGES)
    if not there:
        return Seen(_V.UNCHECKED, why="its document is not split into passages yet")
    same = [one.number for one in there if text_pin(one.text) == citation.hash]
    if int(number) in same:
        return Seen(_V.VERIFIED)
    return Seen(_V.MOVED, f"{document}#{same[0]}") if same else Seen(_V.CHANGED)


def _outside(looks: Look, citation: Citation) -> Seen:
    """Compare a command's output or a URL's text, if somebody ran or fetched it."""
    what = "fetched" if citation.kind is Cited.URL else "run"
    if citation.id not in looks.outputs:
        return Seen(_V.UNCHECKED, why=f"it is not {what} unless you ask")
    output = looks.outputs[citation.id]
    if output is None:
        return Seen(_V.GONE)
    if not citation.hash:
        return Seen(_V.UNCHECKED, why=f"it was {what}, and nobody had pinned what to compare")
    return Seen(_V.VERIFIED if text_pin(output) == citation.hash else _V.CHANGED)
