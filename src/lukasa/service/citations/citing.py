"""Pin what an entry cites: read a citation's spelling, look at the world as it is now, and plan the change.

A writer names what to cite. Rules add the files and symbols that the text names, if the project at hand has them; they
change no text, and never look outside of the project.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence

from msgspec import Struct
from msgspec.structs import replace

from lukasa.model.citation import (
    HOLDS,
    MOST_CITATIONS,
    MOST_TARGET,
    Citation,
    CitationVerdict,
    Cited,
    placed,
    text_pin,
)
from lukasa.model.definitions import definition
from lukasa.model.entry import Entry, SourceLink
from lukasa.model.errors import InvalidInput, NotFound, OutsideProject, UnreadableFile
from lukasa.model.ids import is_part_of_id, new_id, parse_id
from lukasa.model.source_text import SourceText
from lukasa.ports import ProjectFiles
from lukasa.service import corpus, inputs
from lukasa.service.call import CallContext
from lukasa.service.citations.checking import Look, look
from lukasa.storage.operations import Operation, SaveCitations
from lukasa.storage.port import Store
from lukasa.write.named_files import NamedSymbol, named

FORMS = (
    "src/auth.py, src/auth.py:10-20, symbol:src/auth.py:Settings, url:https://…, command:…, memory:ID, document:ID, "
    "document:ID#12"
)
DOCUMENT = "document"
_KINDS = tuple(str(kind) for kind in Cited if kind is not Cited.PASSAGE)
_UNSPLIT = 1_000  # documents without passages that are split before a passage is cited
_PASSAGE = re.compile(r"(.+)#(\d{1,7})")
_LINES = re.compile(r"(.+?):(\d{1,7})(?:-(\d{1,7}))?")
_URL = re.compile(r"https?://[^\s/]+\S*", re.IGNORECASE)


class Cite(Struct, frozen=True):
    """Something to cite, in its spelling. `output` is what the command printed, or the text of the URL."""

    spelling: str
    output: str | None = None


class Wanted(Struct, frozen=True):
    """A citation that was read from its spelling, before anybody looks at what it names."""

    kind: Cited | None  # None for a document
    target: str
    name: str = ""
    first: int = 0
    last: int = 0
    output: str | None = None


def read(given: Cite | str) -> Wanted:
    """Read one spelling of a citation."""
    cite = Cite(given) if isinstance(given, str) else given
    if not isinstance(cite, Cite):
        raise InvalidInput(f"a citation must be text, not {type(given).__name__}", fix=f"write one of: {FORMS}")
    spelling = cite.spelling.strip() if isinstance(cite.spelling, str) else ""
    if not spelling or len(spelling) > MOST_TARGET or not inputs.is_one_line(spelling):
        raise InvalidInput(
            f"a citation is one line of 1 to {MOST_TARGET} plain characters, not {spelling[:60]!r}",
            fix=f"write one of: {FORMS}",
        )
    prefix, colon, rest = spelling.partition(":")
    kind = prefix if colon and prefix in (*_KINDS, DOCUMENT) else "url" if _URL.fullmatch(spelling) else "file"
    target = rest.strip() if prefix == kind and colon else spelling
    wanted = _READERS[kind](target)
    if cite.output is not None and wanted.kind not in (Cited.COMMAND, Cited.URL):
        raise InvalidInput(f"{spelling[:60]!r} has no output", fix="give output for a command or a URL alone")
    return replace(wanted, output=cite.output)


def _file(target: str) -> Wanted:
    lines = _LINES.fullmatch(target)
    path, first, last = (lines[1], int(lines[2]), int(lines[3] or lines[2])) if lines else (target, 0, 0)
    if lines and not 1 <= first <= last:
        raise InvalidInput(f"{target[:60]!r} names no lines", fix="write them as src/auth.py:10-20, counted from 1")
    return Wanted(Cited.FILE, path, first=first, last=last)


def _symbol(target: str) -> Wanted:
    path, colon, name = target.rpartition(":")
    if not colon or not path.rstrip(":") or not re.fullmatch(r"[A-Za-z_$][\w.$#]*", name):
        raise InvalidInput(
            f"{target[:60]!r} names no symbol of a file", fix="write it as symbol:src/auth.py:Settings.load"
        )
    return Wanted(Cited.SYMBOL, path.rstrip(":"), name=name)


def _url(target: str) -> Wanted:
    if not _URL.fullmatch(target):
        raise InvalidInput(f"{target[:60]!r} is no URL", fix="write it as url:https://example.org/page")
    return Wanted(Cited.URL, target)


def _command(target: str) -> Wanted:
    if not target:
        raise InvalidInput("a command is empty", fix="write it as command:python --version")
    return Wanted(Cited.COMMAND, target)


_READERS: dict[str, Callable[[str], Wanted]] = {
    "file": _file,
    "symbol": _symbol,
    "url": _url,
    "command": _command,
    "memory": lambda target: Wanted(Cited.MEMORY, target if is_part_of_id(target) else parse_id(target)),
    DOCUMENT: lambda target: Wanted(
        Cited.PASSAGE if _PASSAGE.fullmatch(target) else None, inputs.label(target, "document id")
    ),
}


class Pins(Struct, frozen=True):
    """What a text cites, pinned, before it has an entry; and the documents, which become links."""

    citations: tuple[Citation, ...] = ()
    links: tuple[str, ...] = ()


NONE = Pins()


def pins(ctx: CallContext, cites: Iterable[Cite | str]) -> Pins:
    """Pin what a writer names. An error says which one cannot be cited, and why."""
    given = inputs.several(cites, "cites")
    if not given:
        return NONE
    if len(given) > MOST_CITATIONS:
        raise InvalidInput(f"{len(given)} citations are too many", fix=f"name at most {MOST_CITATIONS}")
    wanted = [_document(ctx, read(one)) for one in given]
    found = {c.key: c for one in wanted if one.kind is not None for c in [_pinned(ctx, one)]}
    return Pins(tuple(found.values()), tuple(one.target for one in wanted if one.kind is None))


def _document(ctx: CallContext, wanted: Wanted) -> Wanted:
    """Return the document of that very id instead of a passage, if there is one."""
    if wanted.kind is Cited.PASSAGE and wanted.target in ctx.local.document_heads([wanted.target]):
        return replace(wanted, kind=None)
    return wanted


def _passage(ctx: CallContext, target: str) -> Citation:
    """Pin a passage of a document as it is now."""
    document, number = passage_of(target)
    head = ctx.local.document_heads([document]).get(document)
    if head is None or head.removed:
        raise NotFound(f"no document {document[:60]!r} to cite", fix="`lukasa corpus search` shows what can be cited")
    corpus.passages.settle(ctx, _UNSPLIT)
    there = ctx.local.passages(document, start=number, limit=1)
    if not there or there[0].number != number:
        count = ctx.local.passage_count(document)
        raise NotFound(f"document {document[:60]!r} has no passage {number}", fix=f"it has {count}, counted from 0")
    pin, version = text_pin(there[0].text), str(head.version)
    return Citation(new_id(), "", Cited.PASSAGE, target, ctx.now, hash=pin, revision=version)


def passage_of(target: str) -> tuple[str, int]:
    """Return the document and the number that a cited passage names."""
    document, _, number = target.rpartition("#")
    return document, int(number)


def _pinned(ctx: CallContext, wanted: Wanted) -> Citation:
    match wanted.kind:
        case Cited.PASSAGE:
            return _passage(ctx, wanted.target)
        case Cited.FILE | Cited.SYMBOL:
            return pin_file(_at_hand(ctx, wanted), wanted, ctx)
        case Cited.MEMORY:
            entry = ctx.entry(wanted.target)[1]
            version = str(entry.version)
            return Citation(
                new_id(), "", Cited.MEMORY, entry.id, ctx.now, hash=text_pin(entry.content), revision=version
            )
        case kind:
            seen = text_pin(wanted.output) if wanted.output is not None else ""
            return Citation(new_id(), "", kind or Cited.URL, wanted.target, ctx.now, hash=seen)


def _at_hand(ctx: CallContext, wanted: Wanted) -> ProjectFiles:
    if ctx.project is None:
        raise InvalidInput(
            f"{wanted.target[:100]!r} cannot be cited: no project is at hand",
            fix="work in the project's folder, or name it with LUKASA_PROJECT",
        )
    return ctx.project


def pin_file(project: ProjectFiles, wanted: Wanted, ctx: CallContext) -> Citation:
    """Pin a file, some of its lines, or a symbol in it, as they are now."""
    text = project.read(wanted.target)
    path = project.relative(wanted.target)
    if text is None or path is None:
        raise NotFound(
            f"the project in {project.root} has no file {wanted.target[:200]!r}",
            fix="give the path of a file, relative to that folder",
        )
    whole = Citation(
        new_id(),
        "",
        wanted.kind or Cited.FILE,
        path,
        ctx.now,
        name=wanted.name,
        hash=text.pin,
        revision=project.revision(),
        project=project.identity,
    )
    return _closer(whole, text, wanted)


def _closer(whole: Citation, text: SourceText, wanted: Wanted) -> Citation:
    """Return the citation of a file as one of a symbol or of lines in it, if that is wanted."""
    path = whole.target
    if wanted.kind is Cited.SYMBOL:
        place = definition(path, text, wanted.name)
        if place is None:
            raise NotFound(f"{path} defines no {wanted.name!r}", fix="give the name as Class.method, or cite lines")
        return replace(whole, hash=text.pin_lines(*place), first=place[0], last=place[1])
    if not wanted.first:
        return whole
    if text.binary or wanted.last > len(text):
        has = "is not text" if text.binary else f"has {len(text)} lines"
        raise InvalidInput(
            f"{placed(path, wanted.first, wanted.last)} cannot be cited: the file {has}", fix="cite lines that it has"
        )
    first, last = wanted.first, wanted.last
    around = text.around(first, last)
    return replace(whole, hash=text.pin_lines(first, last), around=around, first=first, last=last)


# By rules


def by_rules(ctx: CallContext, text: str) -> tuple[Citation, ...]:
    """Pin the files and Python symbols that a text names and the project at hand has."""
    names = named(text)
    project = ctx.project if names else None
    if project is None:
        return ()
    found: dict[tuple[str, ...], Citation] = {}
    for one in names:
        places = (
            [Wanted(Cited.SYMBOL, path, name=name) for path, name in one.places()]
            if isinstance(one, NamedSymbol)
            else _named_places(one.path, one.first, one.last, one.symbol)
        )
        if (cited := _first(ctx, project, places)) is not None:
            found.setdefault(cited.key, replace(cited, by="rule"))
    closer = {c.target for c in found.values() if c.first}
    return tuple(c for c in found.values() if c.first or c.target not in closer)


def _named_places(path: str, first: int, last: int, symbol: str) -> list[Wanted]:
    closer = [Wanted(Cited.SYMBOL, path, name=symbol)] if symbol else []
    closer += [Wanted(Cited.FILE, path, first=first, last=last)] if first else []
    return [*closer, Wanted(Cited.FILE, path)]


def _first(ctx: CallContext, project: ProjectFiles, places: Sequence[Wanted]) -> Citation | None:
    for wanted in places:
        if len(wanted.target) > MOST_TARGET or project.relative(wanted.target) is None:
            continue
        try:
            return pin_file(project, wanted, ctx)
        except (InvalidInput, NotFound, OutsideProject, UnreadableFile):
            continue
    return None


def remember(ctx: CallContext) -> None:
    """Note the folder of the project at hand on this machine, for checks that begin elsewhere."""
    if ctx.projects is not None and ctx.project is not None:
        ctx.projects.remember(ctx.project)


# What follows for an entry


def added(entry: str, new: Sequence[Citation], before: Sequence[Citation] = ()) -> list[Operation]:
    """Return the change that adds citations to those of an entry. One of the same thing takes the place of the old."""
    if not new:
        return []
    known = {c.key: c for c in before}
    fresh = [c for c in new if c.key not in known or (known[c.key].hash, known[c.key].by) != (c.hash, c.by)]
    fresh = [c for c in fresh if c.by == "writer" or c.key not in known or known[c.key].by == "rule"]
    if not fresh:
        return []
    kept = [c for c in before if c.key not in {one.key for one in fresh}]
    room = max(0, MOST_CITATIONS - len(kept))
    return saved(entry, [*kept, *fresh[:room]], before)


def saved(entry: str, citations: Sequence[Citation], before: Sequence[Citation]) -> list[Operation]:
    """Return the change that gives an entry these citations in place of those it had."""
    own = tuple(replace(c, entry=entry) for c in citations)
    return [] if own == tuple(before) else [SaveCitations(entry, own, tuple(c.id for c in before))]


def for_text(ctx: CallContext, store: Store, entry: Entry, text: str) -> list[Operation]:
    """Return the change for an entry with a new text: the rules look again, and the writer's citations stay."""
    before = store.citations([entry.id])
    if entry.path is not None or (ctx.project is None and not any(c.by == "rule" for c in before)):
        return []
    new = by_rules(ctx, text)
    kept = [c for c in before if c.by == "writer"] + _kept_by_rule(ctx, before, text)
    known = {c.key for c in kept}
    return saved(entry.id, [*kept, *(c for c in new if c.key not in known)][:MOST_CITATIONS], before)


def _kept_by_rule(ctx: CallContext, before: Sequence[Citation], text: str) -> list[Citation]:
    """Return citations of another project that the new text still names: nobody here can look at them."""
    project = ctx.project
    away = [c for c in before if c.by == "rule" and (project is None or not project.is_called(c.project))]
    return [c for c in away if c.target in text or (c.name and c.name in text)]


def again(ctx: CallContext, store: Store, entry: Entry) -> tuple[list[Operation], list[Citation]]:
    """Return the change that pins what an entry cites as it is now, and the citations that nobody can pin again."""
    before = store.citations([entry.id])
    checks = {c.citation: c for c in store.citation_checks([entry.id])} if before else {}
    looked = Look(ctx, checks, known=ctx.is_author)
    now: list[Citation] = []
    left: list[Citation] = []
    for citation in before:
        fresh = _again(ctx, looked, citation)
        now.append(fresh or citation)
        if fresh is None:
            left.append(citation)
    unique = list({c.key: c for c in now}.values())
    return saved(entry.id, unique, before), left


def vouched(ctx: CallContext, store: Store, entry: Entry) -> list[Operation]:
    """Return the change with which a confirmation pins what can be looked at here.

    What cannot be keeps its pin, and loses the outcome of its last check: somebody says that the entry holds.
    """
    before = store.citations([entry.id])
    if not before:
        return []
    operations, left = again(ctx, store, entry)
    if not left:
        return operations
    now = next((o.citations for o in operations if isinstance(o, SaveCitations)), tuple(before))
    old = {c.id for c in left}
    return saved(entry.id, [replace(c, id=new_id()) if c.id in old else c for c in now], before)


def _again(ctx: CallContext, looked: Look, citation: Citation) -> Citation | None:
    """Return a citation with the present pin; None if nobody can look at it, or it is gone."""
    seen = look(looked, citation)
    if seen.verdict is CitationVerdict.VERIFIED and not seen.why:
        return replace(citation, id=new_id(), at=ctx.now)
    if seen.verdict in (CitationVerdict.GONE, CitationVerdict.UNCHECKED):
        return None
    if citation.kind in (Cited.MEMORY, Cited.PASSAGE):
        try:
            return _pinned(ctx, Wanted(citation.kind, seen.path or citation.target))
        except NotFound:
            return None
    project = looked.project_of(citation)
    if project is None:
        return None
    path, size = seen.path or citation.target, citation.last - citation.first
    first = seen.line if seen.verdict in HOLDS else citation.first
    text = project.read(path)
    if text is not None and citation.kind is Cited.FILE and first:
        first = max(1, min(first, len(text) - size))
        last = max(first, min(first + size, len(text)))
    else:
        first = last = 0
    try:
        fresh = pin_file(project, Wanted(citation.kind, path, citation.name, first, last), ctx)
    except (InvalidInput, NotFound, OutsideProject):
        return None
    return replace(fresh, entry=citation.entry, by=citation.by)


def documents(links: Sequence[SourceLink | str], pinned: Pins) -> list[SourceLink | str]:
    """Return the links of a text: those that it names as links, and the documents that it cites."""
    known = {link if isinstance(link, str) else link.source for link in links}
    return [*links, *(id for id in dict.fromkeys(pinned.links) if id not in known)]
