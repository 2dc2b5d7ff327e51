"""Search the corpus by words and by meaning. Memory is never searched here, and a read of memory never comes here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from lukasa.model.corpus import FoundPassage, Passage, PassageFilters
from lukasa.model.entry import DocumentHead, SourceLink
from lukasa.model.errors import EmbedderError
from lukasa.model.text import terms
from lukasa.ports import EmbeddingModel, Vector
from lukasa.read.fuse import fuse
from lukasa.read.signals import Signal
from lukasa.service import inputs
from lukasa.service.call import CallContext
from lukasa.service.corpus import passages

POOL = 50  # passages that each index brings, at least
_UNSPLIT = 1_000  # documents without passages that a search splits first
_MOST = 100  # hits


class Hit(Struct, frozen=True):
    """A passage that answers, with the place that it is from and the document's standing as it is now.

    `link` is ready for an entry that rests on the passage.
    """

    document: str
    version: int
    number: int
    text: str
    section: str
    page: int | None
    line: int | None
    tags: tuple[str, ...]
    title: str
    collection: str
    origin: str
    lifecycle: str
    weight: float
    standing: str
    score: float
    link: SourceLink

    @property
    def place(self) -> str:
        """The place in words: section, page or line."""
        return place_of(self.section, self.page, self.line)


def place_of(section: str, page: int | None, line: int | None) -> str:
    """A place in a document in words: section, page or line."""
    where = [section] if section else []
    if page is not None:
        where.append(f"p. {page}")
    elif line is not None:
        where.append(f"line {line}")
    return ", ".join(where)


def section_of(passage: Passage) -> str:
    """The headings above a passage, the broadest first."""
    return " › ".join(passage.headings)


def link_to(passage: Passage) -> SourceLink:
    """The link of an entry that rests on a passage. Its locator is the number of the passage, such as `#12`."""
    return SourceLink(passage.document, passage.version, f"#{passage.number}")


def search(
    ctx: CallContext,
    query: str,
    *,
    limit: int = 10,
    collections: Sequence[str] = (),
    tags: Sequence[str] = (),
    documents: Sequence[str] = (),
) -> list[Hit]:
    """Return the passages that answer a query, best first."""
    asked, many = inputs.query(query), inputs.limit(limit, _MOST)
    filters = PassageFilters(
        tuple(inputs.label(one, "collection") for one in inputs.several(collections, "collections")),
        inputs.tags(tags, inputs.label),
        tuple(inputs.label(one, "document id") for one in inputs.several(documents, "documents")),
    )
    passages.settle(ctx, _UNSPLIT)
    pool = max(POOL, 5 * many)
    with ctx.local.snapshot() as store:
        words = terms(asked)
        found = [("keyword", store.find_passages(words, pool, filters) if words else [])]
        vector = _vector(ctx, asked)
        if vector is not None:
            found.append(("vector", store.nearest_passages(*vector, pool, filters)))
        best = _fused(ctx, found)[:many]
        heads = store.document_heads({passage.document for passage, _ in best}) if best else {}
    return [_hit(ctx, passage, score, heads) for passage, score in best]


def _vector(ctx: CallContext, asked: str) -> tuple[EmbeddingModel, Vector] | None:
    if ctx.embedder is None or not asked.strip():
        return None
    try:
        return ctx.embedder.model, ctx.embedder.embed_query(asked)
    except EmbedderError:
        return None


def _fused(ctx: CallContext, found: Sequence[tuple[str, Sequence[FoundPassage]]]) -> list[tuple[Passage, float]]:
    """Return passages with their match in (0, 1], fused as the spec fuses the signals of entries."""
    known = {_key(one.passage): one.passage for _, some in found for one in some}
    signals = [
        Signal(name, {_key(one.passage): one.score for one in some}, least=_least(name, some)) for name, some in found
    ]
    matches = fuse(signals, ctx.spec.retrieval)
    return [(known[key], round(matches.value(key), 6)) for key in matches.best_first()]


def _key(passage: Passage) -> str:
    return f"{passage.document}#{passage.number:08}"


def _least(name: str, some: Sequence[FoundPassage]) -> float:
    """The score that a passage has at most which an index did not bring."""
    return some[-1].score if name == "vector" and some else 0.0


def _hit(ctx: CallContext, passage: Passage, score: float, heads: Mapping[str, DocumentHead]) -> Hit:
    head = heads[passage.document]
    return Hit(
        document=passage.document,
        version=passage.version,
        number=passage.number,
        text=ctx.passed_text(passage.text),
        section=section_of(passage),
        page=passage.page,
        line=passage.line,
        tags=passage.tags,
        title=head.title,
        collection=head.collection,
        origin=head.origin,
        lifecycle=head.lifecycle,
        weight=head.weight,
        standing=head.standing,
        score=score,
        link=link_to(passage),
    )
