"""Read a stretch of a document: around a passage, from a section, a page or a line, or from the beginning."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec import Struct

from lukasa.model.corpus import Passage
from lukasa.model.entry import DocumentHead, SourceLink
from lukasa.model.errors import InvalidInput, NotFound
from lukasa.service import inputs
from lukasa.service.call import CallContext
from lukasa.service.corpus import passages
from lukasa.service.corpus.search import link_to, place_of, section_of

MOST = 50_000  # characters of a stretch
USUAL = 6_000
_AROUND = 20  # passages before and after one, at most
_REPEATED = 600  # characters that a passage may repeat from the end of the one before
_NAMED = 8  # sections that an error names


class Stretch(Struct, frozen=True):
    """A stretch of a document as it is now, with its place and the document's standing.

    `next` is the number of the passage with which the text goes on; None at the end of the document.
    """

    document: str
    version: int
    title: str
    collection: str
    origin: str
    lifecycle: str
    weight: float
    standing: str
    text: str
    section: str
    page: int | None
    line: int | None
    first: int
    last: int
    passages: int
    next: int | None
    link: SourceLink

    @property
    def place(self) -> str:
        """Where it begins, in words: section, page or line."""
        return place_of(self.section, self.page, self.line)


def read(
    ctx: CallContext,
    document: str,
    *,
    passage: int | None = None,
    around: int = 1,
    section: str | None = None,
    page: int | None = None,
    line: int | None = None,
    start: int | None = None,
    limit: int = USUAL,
) -> Stretch:
    """Return a stretch of a document of at most `limit` characters.

    A `passage` comes with so many `around` it; a section, page or line is read from where it begins, and `start` goes
    on from a passage. Without any of these it is read from the beginning.
    """
    ways = {"passage": passage, "section": section, "page": page, "line": line, "start": start}
    if len(given := [name for name, value in ways.items() if value is not None]) > 1:
        raise InvalidInput(f"{' and '.join(given)} are two places", fix="name one place to read from")
    most = inputs.limit(limit, MOST)
    head = _head(ctx, document)
    passages.settle_one(ctx, head.id)
    known = ctx.local.passages(head.id)
    if not known:
        raise NotFound(f"document {head.id[:60]!r} has no text that can be read here", fix="`lukasa doctor` looks why")
    first, last = _range(known, passage, around, section, page, line, start)
    text, end = _joined(known[first : last + 1], most)
    at = known[first]
    following = first + end
    return Stretch(
        document=head.id,
        version=head.version,
        title=head.title,
        collection=head.collection,
        origin=head.origin,
        lifecycle=head.lifecycle,
        weight=head.weight,
        standing=head.standing,
        text=ctx.passed_text(text),
        section=section_of(at),
        page=at.page,
        line=at.line,
        first=at.number,
        last=known[following - 1].number,
        passages=len(known),
        next=known[following].number if following < len(known) else None,
        link=link_to(at),
    )


def _head(ctx: CallContext, document: str) -> DocumentHead:
    key = inputs.label(document, "document id")
    found = ctx.local.document_heads([key]).get(key)
    if found is None or found.removed:
        raise NotFound(f"no document {key[:60]!r} in this workspace", fix="`lukasa corpus list` shows the ids")
    return found


def _range(
    known: Sequence[Passage],
    passage: int | None,
    around: int,
    section: str | None,
    page: int | None,
    line: int | None,
    start: int | None,
) -> tuple[int, int]:
    """Return the first and the last passage that may be read."""
    end = len(known) - 1
    if passage is not None:
        at, beside = inputs.position(passage, "passage"), min(inputs.position(around, "around"), _AROUND)
        _require(at <= end, f"passage {at}", f"it has passages 0 to {end}")
        return max(0, at - beside), min(end, at + beside)
    if section is not None:
        return _section(known, inputs.label(section, "section"))
    if page is not None:
        pages = [one.page for one in known if one.page is not None]
        _require(bool(pages), f"page {page}", "it has no pages")
        _require(page in pages, f"page {page}", f"it has text on pages {min(pages)} to {max(pages)}")
        return next(at for at, one in enumerate(known) if one.page == page), end
    if line is not None:
        inputs.position(line, "line")
        lines = [at for at, one in enumerate(known) if one.line is not None and one.line <= max(line, 1)]
        if not lines and any(one.line is not None for one in known):
            return 0, end
        _require(bool(lines), f"line {line}", "it has no lines")
        return lines[-1], end
    at = inputs.position(start, "start") if start is not None else 0
    _require(at <= end, f"passage {at}", f"it has passages 0 to {end}")
    return at, end


def _require(there: bool, place: str, known: str) -> None:
    if not there:
        raise NotFound(f"the document has no {place}", fix=known)


def _section(known: Sequence[Passage], wanted: str) -> tuple[int, int]:
    """Return the passages of a section: of one with that very heading, or else of one whose heading holds the words."""
    low = " ".join(wanted.lower().split())
    same: tuple[Callable[[str], bool], ...] = (lambda heading: heading == low, lambda heading: low in heading)
    for fits in same:
        for at, one in enumerate(known):
            depth = next((d for d, heading in enumerate(one.headings, 1) if fits(heading.lower())), 0)
            if depth or fits(section_of(one).lower()):
                path = one.headings[: depth or len(one.headings)]
                last = at
                while last + 1 < len(known) and known[last + 1].headings[: len(path)] == path:
                    last += 1
                return at, last
    names = list(dict.fromkeys(section_of(one) for one in known if one.headings))[:_NAMED]
    raise NotFound(
        f"the document has no section {wanted[:60]!r}",
        fix=f"it has: {'; '.join(names)[:500]}" if names else "it has no sections",
    )


def _joined(some: Sequence[Passage], most: int) -> tuple[str, int]:
    """Return the text of passages that follow one another, without what each repeats, and how many fit."""
    text, count = "", 0
    for one in some:
        own = one.text
        if count:
            before = some[count - 1]
            if one.headings == before.headings and one.page == before.page:
                own = own[_repeated(text, own) :]
                piece = own if len(own) < len(one.text) else f"\n\n{own}"
            else:
                named = _new_headings(before, one)
                piece = f"\n\n{named}\n\n{own}" if named else f"\n\n{own}"
        else:
            piece = own
        if count and len(text) + len(piece) > most:
            break
        text += piece
        count += 1
    return text[:most], count


def _new_headings(before: Passage, one: Passage) -> str:
    """Return the headings of a passage that the one before was not under."""
    return "\n".join(
        heading for at, heading in enumerate(one.headings) if one.headings[: at + 1] != before.headings[: at + 1]
    )


def _repeated(text: str, following: str) -> int:
    """Return how many characters at the beginning of a text are the end of the one before."""
    for size in range(min(len(text), len(following), _REPEATED), 0, -1):
        if text.endswith(following[:size]):
            return size if size > 3 else 0
    return 0
