"""Discoveries: pages and repositories of the web that somebody pointed to, and the feeds that are followed."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from msgspec import Struct

COLLECTION = "discoveries"  # the collection of the corpus that they are kept in
ORIGIN = "web"
STANDING = "unverified"


class FeedLink(Struct, frozen=True):
    """A feed that a page names as its own."""

    url: str
    title: str = ""


class FeedItem(Struct, frozen=True):
    """An item of a feed, as plain text."""

    id: str
    title: str
    url: str = ""
    summary: str = ""
    published: str = ""


class Feed(Struct, frozen=True):
    """A feed as it was read: its items in the order of the feed, usually the newest first."""

    title: str
    items: tuple[FeedItem, ...]


class RepositoryFile(Struct, frozen=True):
    """A file of a repository with its text."""

    path: str
    data: bytes


class Repository(Struct, frozen=True):
    """The present state of a repository: its tree, and the texts of its README and of some of its documents."""

    url: str
    commit: str
    paths: tuple[tuple[str, int], ...]
    """Every file with its size in bytes."""
    documents: tuple[RepositoryFile, ...]
    left_out: int = 0
    """Documents for which there was no room."""


class Relevance(Struct, frozen=True):
    """How near a page is to what is remembered and to the word of context, from 0 to 1, and what that rests on."""

    score: float
    context_share: float | None = None
    """The share of the words of the context that the page has; None without a context."""
    memory_share: float = 0.0
    """The share of the page's main words that are remembered."""
    words: tuple[str, ...] = ()
    """The main words of the page that are remembered."""
    entries: tuple[str, ...] = ()
    """The entries that have them, the best match first."""

    @property
    def reason(self) -> str:
        """The parts of the score in words."""
        memory = f"{self.memory_share:.0%} of its main words are in what is remembered"
        if self.context_share is None:
            return memory
        return f"it has {self.context_share:.0%} of the words of the context; {memory}"


Outcome = Literal["added", "changed", "unchanged"]
Kind = Literal["page", "repository", "item"]


class Discovery(Struct, frozen=True):
    """A discovery as it is kept: a document of the corpus, and what is known of it."""

    document: str
    version: int
    title: str
    url: str
    kind: Kind
    context: str
    tags: tuple[str, ...]
    relevance: float
    note: str
    """The note of a model, or an excerpt."""
    by: str
    """The model that wrote the note; empty for an excerpt."""
    read_at: datetime
    origin: str = ORIGIN
    lifecycle: str = "current"
    weight: float = 0.5
    standing: str = STANDING
    notes: tuple[str, ...] = ()


class Discovered(Struct, frozen=True):
    """The answer to a call: the discovery, what became of it, and what only the caller is told."""

    discovery: Discovery
    outcome: Outcome
    relevance: Relevance | None = None
    feeds: tuple[FeedLink, ...] = ()
    """Feeds that the page names: worth following, if more of its kind is wanted."""
    followed: str = ""
    """The id of the feed that is followed since this call, or was before."""
