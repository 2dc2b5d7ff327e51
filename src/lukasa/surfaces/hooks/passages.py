"""What of a document is worth injecting: only what is new to its reader, and as much as a harness passes on. Pure."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence

from msgspec.structs import replace

from lukasa.model.text import content_hash, terms
from lukasa.read.context import Document, Item, Pinned, Slice, in_part, item
from lukasa.read.question import query_terms
from lukasa.read.rank import Hit

# Words that most failures have in common, whatever failed: on their own they connect nothing.
_COMMONPLACE = """error errors failed failure failing fail exit exited code status command line file files directory
path found cannot unable unknown invalid exception traceback recent call last stdout stderr output message warning fatal
bash shell tool usage true false none null undefined"""
SHARED_WORDS = 2
MOST_TERMS, MOST_TOKENS = 200, 400  # terms of a failure that are looked at, and what one hit may take of an answer


def marks(document: Document) -> Iterator[str]:
    """A name for each passage as it now reads: once it is edited, it is another passage."""
    for page in document.pinned:
        yield _page_mark(page)
    for entry in items(document):
        yield _item_mark(entry)


def _page_mark(page: Pinned) -> str:
    return f"{page.tier}/{page.name}#{content_hash(page.body)[:8]}"


def _item_mark(entry: Item) -> str:
    return f"{entry.id}#{content_hash(entry.content)[:8]}"


def items(document: Document) -> Iterator[Item]:
    yield from document.standing
    for part in document.recalled:
        yield from part.items


def news(document: Document, given: Container[str]) -> Document:
    """The passages that were not given before."""
    slices = [Slice(part.tier, _unseen(part.items, given)) for part in document.recalled]
    return replace(
        document,
        pinned=tuple(page for page in document.pinned if _page_mark(page) not in given),
        standing=_unseen(document.standing, given),
        recalled=tuple(part for part in slices if part.items),
    )


def _unseen(entries: Iterable[Item], given: Container[str]) -> tuple[Item, ...]:
    return tuple(entry for entry in entries if _item_mark(entry) not in given)


def empty(document: Document) -> bool:
    return not (document.pinned or document.standing or document.recalled)


def shorter(document: Document) -> Document | None:
    """The document without its last passage; none if only the author's pages are left, which nothing displaces."""
    if document.recalled:
        *rest, last = document.recalled
        kept = Slice(last.tier, last.items[:-1])
        return replace(document, recalled=(*rest, kept) if kept.items else tuple(rest))
    if document.standing:
        return replace(document, standing=document.standing[:-1])
    return None


def about_failure(hits: Iterable[Hit], failure: str) -> list[Hit]:
    """Hits that name what this failure names: two of its words, or one if they are close in meaning as well.

    Closeness alone says little here, for all messages of machines sound alike.
    """
    asked = _telling(failure)
    return [hit for hit in hits if len(asked.intersection(terms(hit.content))) + _close(hit) >= SHARED_WORDS]


def _telling(failure: str) -> set[str]:
    """The terms of a failure that not every failure has."""
    return set(query_terms(failure, MOST_TERMS)) - set(terms(_COMMONPLACE))


def _close(hit: Hit) -> bool:
    return any(c.signal == "vector" and c.rank is not None for c in hit.score.match.contributions)


def recalled(workspace: str, hits: Sequence[Hit], tiers: Sequence[str], failure: str) -> Document:
    """A document of hits alone, by tier, in the order of the tiers; of a long one, what this failure is about."""
    asked = _telling(failure)
    found = [in_part(item(hit.entry, hit.provenance), MOST_TOKENS, asked) for hit in hits]
    slices = (Slice(tier, tuple(entry for entry in found if entry.tier == tier)) for tier in tiers)
    return Document(workspace, (), (), tuple(part for part in slices if part.items))
