"""Split documents into passages: when they are saved, and later those that an earlier version stored."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from lukasa.model.corpus import ParsedDocument, Part, Passage
from lukasa.model.entry import Document
from lukasa.model.errors import UnreadableDocument
from lukasa.service.call import CallContext
from lukasa.storage.operations import SavePassages
from lukasa.write.check import category_scores

MARKDOWN = "text/markdown"
_TAGS = 3  # categories that one passage is tagged with, at most
_TOGETHER = 20  # documents that are split in one transaction


def split(ctx: CallContext, document: ParsedDocument, tags: Iterable[str] = ()) -> tuple[Passage, ...] | None:
    """Return the passages of a document with its tags and those of the taxonomy; None if nothing here can split it."""
    if ctx.splitter is None:
        return None
    given = tuple(tags)
    return tuple(replace(one, tags=_tags(ctx, one, given)) for one in ctx.splitter(document))


def _tags(ctx: CallContext, passage: Passage, given: tuple[str, ...]) -> tuple[str, ...]:
    scores = category_scores(passage.text, ctx.taxonomy)
    best = sorted(scores, key=lambda name: (-scores[name], name))[:_TAGS]
    return tuple(dict.fromkeys((*given, *best)))


def parse_text(ctx: CallContext, body: str, title: str) -> ParsedDocument:
    """Return a text that somebody wrote as a document: its headings are those of markdown."""
    if ctx.parser is not None:
        try:
            return ctx.parser().parse(body.encode(), name=f"{title}.md", media_type=MARKDOWN)
        except UnreadableDocument:
            pass  # it is kept as it is all the same
    return ParsedDocument(title, MARKDOWN, (Part(body),))


def of_text(ctx: CallContext, document: Document, tags: Iterable[str] = ()) -> tuple[Passage, ...] | None:
    """Return the passages of a document that is a text."""
    if document.removed or ctx.splitter is None:
        return None
    return split(ctx, parse_text(ctx, document.body, document.title), tags)


def settle(ctx: CallContext, limit: int) -> int:
    """Split up to so many documents that have no passages yet, and return how many.

    It changes only what is derived from the documents, so a search may do it, whoever asks.
    """
    done = 0
    while ctx.splitter is not None and done < limit:
        waiting = ctx.local.unsplit_documents(min(_TOGETHER, limit - done))
        if not waiting:
            break
        found = [one for one in ctx.local.documents(waiting).values() if not one.damaged]
        operations = [SavePassages(one.id, one.version, of_text(ctx, one) or ()) for one in found]
        if not operations:
            break  # only the owner can mend these: `lukasa doctor` names them
        ctx.apply(ctx.local, *operations)
        done += len(operations)
    return done
