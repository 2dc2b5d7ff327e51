"""Split documents into passages: when they are saved, and later those that an earlier version stored."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from lukasa.model.corpus import DocumentSource, ParsedDocument, Part, Passage
from lukasa.model.entry import Document
from lukasa.model.errors import UnreadableDocument
from lukasa.service.call import CallContext
from lukasa.storage.operations import SavePassages
from lukasa.write.check import category_scores

MARKDOWN = "text/markdown"
AS_IT_IS = ("text/markdown", "text/plain", "text/x-rst", "text/x-source")  # formats whose document has the file's text
_TAGS = 3  # categories that one passage is tagged with, at most
_TOGETHER = 20  # documents that are split in one transaction


def split(ctx: CallContext, document: ParsedDocument, tags: Iterable[str] = ()) -> tuple[Passage, ...] | None:
    """Return the passages of a document with its tags and those of the taxonomy; None if nothing here can split it."""
    if ctx.splitter is None:
        return None
    given = tuple(tags)
    return tuple(
        replace(one, tags=tuple(dict.fromkeys((*given, *taxonomy_tags(ctx, one))))) for one in ctx.splitter(document)
    )


def taxonomy_tags(ctx: CallContext, passage: Passage) -> tuple[str, ...]:
    """Return the categories of the taxonomy that a passage is tagged with, the best first."""
    scores = category_scores(passage.text, ctx.taxonomy)
    return tuple(sorted(scores, key=lambda name: (-scores[name], name))[:_TAGS])


def parse_text(ctx: CallContext, body: str, name: str, media_type: str = MARKDOWN) -> ParsedDocument:
    """Return a text as a document: its headings are those of markdown, unless it is of another format."""
    if ctx.parser is not None:
        try:
            return ctx.parser().parse(body.encode(), name=name, media_type=media_type)
        except UnreadableDocument:
            pass  # it is kept as it is all the same
    return ParsedDocument(name, MARKDOWN, (Part(body),))


def of_text(
    ctx: CallContext, document: Document, tags: Iterable[str] = (), source: DocumentSource | None = None
) -> tuple[Passage, ...] | None:
    """Return the passages of a document by its text. What had pages is text under headings by then."""
    if document.removed or ctx.splitter is None:
        return None
    if source is not None and source.media_type in AS_IT_IS:
        return split(ctx, parse_text(ctx, document.body, source.location, source.media_type), tags)
    return split(ctx, parse_text(ctx, document.body, f"{document.title}.md"), tags)


def settle(ctx: CallContext, limit: int) -> int:
    """Split up to so many documents that have no passages yet, and return how many.

    It changes only what is derived from the documents, so a search may do it, whoever asks.
    """
    done = 0
    while ctx.splitter is not None and done < limit:
        waiting = ctx.local.unsplit_documents(min(_TOGETHER, limit - done))
        if not waiting:
            break
        split_now = _split_now(ctx, waiting)
        if not split_now:
            break  # only the owner can mend these: `lukasa doctor` names them
        done += split_now
    return done


def settle_one(ctx: CallContext, id: str) -> None:
    """Split a document that has no passages yet, before somebody reads it."""
    if ctx.splitter is not None and not ctx.local.passages(id, limit=1):
        _split_now(ctx, [id])


def _split_now(ctx: CallContext, ids: list[str]) -> int:
    found = [one for one in ctx.local.documents(ids).values() if not (one.damaged or one.removed)]
    sources = ctx.local.document_sources(ids)
    operations = [
        SavePassages(one.id, one.version, of_text(ctx, one, source=sources.get(one.id)) or ()) for one in found
    ]
    if operations:
        ctx.apply(ctx.local, *operations)
    return len(operations)
