"""Find the canonical texts that a text may repeat: pages, and the passages of documents that share its words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from lukasa.curated.document import NAME
from lukasa.model.corpus import PassageFilters
from lukasa.model.text import terms
from lukasa.service.call import CallContext
from lukasa.write.plan import Canonical

NAMED_ENTRIES = "named entries"  # the name in a spec's non-mirror list; other names there are collections of documents
_HITS = 5  # passages that are compared with one stretch of a text
_STRETCH, _STRETCHES = 60, 8  # terms of a text that are looked up together, and how often
_PASSAGE = 600  # characters of a short passage: a text may repeat several that follow one another
_UNSPLIT = 200  # documents without passages that are compared whole


def canonical(ctx: CallContext, texts: Iterable[str]) -> tuple[Canonical, ...]:
    """Return the canonical texts that the spec forbids entries to repeat, and that these texts may repeat."""
    wanted = set(ctx.spec.reference_only.non_mirror)
    found: list[Canonical] = []
    if NAMED_ENTRIES in wanted:
        for store in (ctx.local, ctx.account):
            # The curated page is made from entries: they cannot be copies of it.
            pages = (n for n in store.named() if n.name != NAME and not n.damaged)
            found.extend(Canonical(n.name, NAMED_ENTRIES, n.body) for n in pages)
    collections = tuple(sorted(wanted - {NAMED_ENTRIES}))
    if collections:
        found.extend(_unsplit(ctx, collections))
        found.extend(_near(ctx, collections, dict.fromkeys(texts)))
    return tuple(found)


def _unsplit(ctx: CallContext, collections: Sequence[str]) -> Iterator[Canonical]:
    waiting = ctx.local.unsplit_documents(_UNSPLIT)
    for one in ctx.local.documents(waiting).values() if waiting else ():
        if one.collection in collections and not one.damaged:
            yield Canonical(one.id, one.collection, one.body)


def _near(ctx: CallContext, collections: tuple[str, ...], texts: Iterable[str]) -> Iterator[Canonical]:
    """Give the passages with the words of these texts, each with as many around it as the text may repeat."""
    windows: dict[tuple[str, int, int], None] = {}
    for text in texts:
        around = 1 + len(text) // _PASSAGE
        for asked in _stretches(terms(text)):
            for hit in ctx.local.find_passages(asked, _HITS, PassageFilters(collections)):
                start = max(0, hit.passage.number - around)
                windows[hit.passage.document, start, hit.passage.number + around + 1 - start] = None
    heads = ctx.local.document_heads({document for document, _, _ in windows}) if windows else {}
    for document, start, count in windows:
        some = ctx.local.passages(document, start=start, limit=count)
        yield Canonical(document, heads[document].collection, "\n".join(one.text for one in some))


def _stretches(found: Sequence[str]) -> Iterator[Sequence[str]]:
    """Give the terms of a text in stretches; of a very long text, stretches from all over it."""
    step = max(_STRETCH, len(found) // _STRETCHES)
    for start in range(0, len(found), step):
        yield found[start : start + _STRETCH]
