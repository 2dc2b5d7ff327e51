"""Documents: the owner writes them; agents may only read them or link to them."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct
from msgspec.structs import replace

from lukasa.model.corpus import DocumentSource, Passage
from lukasa.model.entry import Document, DocumentHead, Entry
from lukasa.model.errors import Damaged, NotFound
from lukasa.model.secrets import redact
from lukasa.service import inputs
from lukasa.service.call import CallContext, retry_on_conflict
from lukasa.service.corpus import passages
from lukasa.service.entries import corroborate
from lukasa.storage.operations import Operation, SaveDocument

DOCUMENT_LIMIT = 5_000_000


def save(
    ctx: CallContext,
    id: str,
    body: str,
    *,
    title: str = "",
    collection: str = "documents",
    origin: str = "author",
    lifecycle: str = "current",
    weight: float = 1.0,
    standing: str = "canonical",
    tags: Iterable[str] = (),
) -> Document:
    """Add a document that entries may link to, or a new version of it."""
    ctx.require_author("write documents")
    ctx.require_whole("write documents")
    key = inputs.label(id, "document id")
    new = Document(
        id=key,
        title=inputs.one_line(title, "title") if title else key,
        body=inputs.text(body, "body", DOCUMENT_LIMIT),
        origin=inputs.one_line(origin, "origin"),
        lifecycle=inputs.one_line(lifecycle, "lifecycle"),
        weight=inputs.importance(weight, "weight"),
        standing=inputs.one_line(standing, "standing"),
        version=0,
        updated_at=ctx.now,
        collection=inputs.one_line(collection, "collection"),
    )
    split = passages.of_text(ctx, new, inputs.tags(tags))

    def attempt() -> Document:
        before = ctx.local.document_heads([key]).get(key)
        if before is None:
            inputs.one_line(key, "document id")
        saved, operations = next_version(ctx, new, before.version if before else 0, split)
        ctx.apply(ctx.local, *operations)
        return saved

    return retry_on_conflict(attempt)


def next_version(
    ctx: CallContext,
    document: Document,
    expect: int,
    split: tuple[Passage, ...] | None,
    source: DocumentSource | None = None,
) -> tuple[Document, list[Operation]]:
    """Return the next version of a document, and the operations that store it with what follows for the entries that
    rest on it."""
    saved = replace(document, version=expect + 1, updated_at=ctx.now)
    shaken = corroborate.shaken(ctx, saved) if expect else []
    return saved, [SaveDocument(saved, expect, split, source), *shaken]


def remove(ctx: CallContext, id: str) -> Document:
    """Remove a document; links to it then show that it is gone."""
    ctx.require_author("remove documents")
    ctx.require_whole("remove documents")

    def attempt() -> Document:
        before = _document(ctx, id)
        gone, operations = next_version(ctx, replace(before, removed=True, body=""), before.version, ())
        ctx.apply(ctx.local, *operations)
        return gone

    return retry_on_conflict(attempt)


def get(ctx: CallContext, id: str, version: int | None = None) -> Document:
    """Return one document, or one version of it, whose text is marked where it holds secrets of the owner.

    Damaged if its text is not the one that was written.
    """
    found = _document(ctx, id) if version is None else ctx.local.document_version(inputs.label(id, "id"), version)
    if found is None:
        raise NotFound(f"no version {version} of document {id[:60]!r}", fix="`lukasa corpus history ID` lists them")
    if found.damaged:
        raise Damaged(f"document {found.id[:60]!r}")
    return found if ctx.is_author else replace(found, body=redact(found.body)[0])


def _document(ctx: CallContext, id: str) -> Document:
    key = inputs.label(id, "document id")
    found = ctx.local.documents([key]).get(key)
    if found is None or found.removed:
        raise NotFound(f"no document {key[:60]!r} in this workspace", fix="`lukasa corpus list` shows the ids")
    return found


class DocumentAbout(Struct, frozen=True):
    """A document with what is known of it: its source, its size, and the entries that rest on it."""

    head: DocumentHead
    versions: tuple[DocumentHead, ...]
    passages: int
    source: DocumentSource | None = None
    entries: tuple[Entry, ...] = ()


def about(ctx: CallContext, id: str) -> DocumentAbout:
    """Return what is known of a document, with the entries within sight that rest on it."""
    key = inputs.label(id, "document id")
    head = ctx.local.document_heads([key]).get(key)
    if head is None or head.removed:
        raise NotFound(f"no document {key[:60]!r} in this workspace", fix="`lukasa corpus list` shows the ids")
    linked = dict.fromkeys(link.entry for link in ctx.local.links_to([key]))
    resting = [entry for entry in ctx.local.entries(linked).values() if ctx.sees(entry)]
    # Where a file of the owner's lies is nobody else's business.
    source = ctx.local.document_sources([key]).get(key) if ctx.is_author else None
    return DocumentAbout(
        head,
        tuple(ctx.local.document_history(key)),
        ctx.local.passage_count(key),
        source,
        tuple(ctx.shown(entry) for entry in resting),
    )


def heads(ctx: CallContext, *, collection: str | None = None, after: str = "", limit: int = 100) -> list[DocumentHead]:
    """Return a page of the documents without their texts, ordered by id, behind the id `after`."""
    if collection is not None:
        collection = inputs.label(collection, "collection")
    behind = inputs.label(after, "after") if after else ""
    return ctx.local.list_documents(collection=collection, after=behind, limit=inputs.limit(limit))


def history(ctx: CallContext, id: str) -> list[DocumentHead]:
    """Return every version of a document without its text, oldest first; also of one that was removed."""
    found = ctx.local.document_history(inputs.label(id, "document id"))
    if not found:
        raise NotFound(f"no document {id[:60]!r} in this workspace", fix="`lukasa corpus list` shows the ids")
    return found
