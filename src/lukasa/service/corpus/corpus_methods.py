"""The methods of a workspace that are about the corpus: documents, and the search for what is in them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from lukasa.model.entry import Document, DocumentHead
from lukasa.service import corpus
from lukasa.service.call import Bound
from lukasa.service.instrument import verb

if TYPE_CHECKING:
    from lukasa.model.corpus import AddedFile, AddedFiles, Watch
    from lukasa.model.discovery import Discovered, Discovery
    from lukasa.service.corpus.adding import Tell
    from lukasa.service.corpus.documents import DocumentAbout
    from lukasa.service.corpus.reading import Stretch
    from lukasa.service.corpus.search import Hit


class CorpusMethods(Bound, frozen=True):
    """Keep documents, and look things up in them."""

    @verb("document", "save")
    def save_document(
        self,
        id: str,
        body: str,
        *,
        title: str = "",
        collection: str = "documents",
        origin: str = "author",
        lifecycle: str = "current",
        weight: float = 1.0,
        standing: str = "canonical",
        tags: Sequence[str] = (),
    ) -> Document:
        """Add or revise a document, with its standing in the world."""
        return corpus.documents.save(
            self.ctx,
            id,
            body,
            title=title,
            collection=collection,
            origin=origin,
            lifecycle=lifecycle,
            weight=weight,
            standing=standing,
            tags=tags,
        )

    @verb("corpus", "add")
    def add_to_corpus(
        self,
        *locations: str,
        collection: str | None = None,
        tags: Sequence[str] | None = None,
        origin: str | None = None,
        lifecycle: str | None = None,
        weight: float | None = None,
        standing: str | None = None,
        prune: bool = False,
        dry_run: bool = False,
        tell: Tell | None = None,
    ) -> AddedFiles:
        """Add files, folders and addresses to the corpus, and say what became of each.

        Unchanged files are left alone. What is not given stays as a document has it. With `prune`, documents whose
        files are gone from a folder are removed. `tell` is told of each file before it is read.
        """
        adding = corpus.adding
        shelf = adding.Shelf.checked(collection, tags, origin, lifecycle, weight, standing)
        return adding.add(self.ctx, locations, shelf, prune=prune, dry_run=dry_run, tell=tell or adding.silent)

    @verb("corpus", "upload")
    def add_upload(
        self,
        name: str,
        data: bytes,
        *,
        media_type: str = "",
        collection: str | None = None,
        tags: Sequence[str] | None = None,
        origin: str | None = None,
        lifecycle: str | None = None,
        weight: float | None = None,
        standing: str | None = None,
    ) -> AddedFile:
        """Add the bytes of a file under a name. The same name is the next version of the same document."""
        shelf = corpus.adding.Shelf.checked(collection, tags, origin, lifecycle, weight, standing)
        return corpus.adding.add_bytes(self.ctx, name, data, media_type, shelf)

    @verb("corpus", "discover")
    def discover(
        self,
        url: str,
        context: str = "",
        *,
        kind: str = "auto",
        tags: Sequence[str] = (),
        follow: bool = False,
        local: bool = False,
    ) -> Discovered:
        """Fetch a page or clone a repository, and keep a note about it in the corpus; `context` says why.

        `kind` is auto, page or repository. With `follow`, the feed that the page names is followed. With `local`, a
        file:// URL may name a repository of this machine.
        """
        request = corpus.discovering.checked(url, context, kind, tags, local=local)
        if not follow:
            return corpus.discovering.discover(self.ctx, request, corpus.discovering.asker(self.ctx))
        self.ctx.require_author("follow feeds")
        found = corpus.discovering.discover(self.ctx, replace(request, whole=True), corpus.discovering.asker(self.ctx))
        if not found.feeds:
            return found
        return replace(found, followed=corpus.feeds.follow(self.ctx, found.feeds[0].url).id)

    def discoveries(self, *, limit: int = 20) -> list[Discovery]:
        """Return what was discovered, newest first."""
        return corpus.discovering.kept(self.ctx, limit)

    @verb("feed", "follow")
    def follow_feed(self, url: str) -> Watch:
        """Follow a feed, by its address or by that of a page that names it. The worker takes new items as
        discoveries."""
        return corpus.feeds.follow(self.ctx, url)

    def feeds(self) -> list[Watch]:
        """Return the feeds that are followed, the oldest first."""
        return corpus.feeds.followed(self.ctx)

    @verb("feed", "unfollow")
    def unfollow_feed(self, which: str) -> Watch:
        """Follow a feed no longer, by its address or id. What was discovered stays."""
        return corpus.feeds.unfollow(self.ctx, which)

    @verb("feed", "poll")
    def poll_feeds(self, which: str | None = None) -> dict[str, int]:
        """Ask a feed, or all of them, now; return how many items were new."""
        return corpus.feeds.poll(self.ctx, which)

    @verb("corpus", "watch")
    def watch_folder(
        self, folder: str, *, collection: str | None = None, tell: Tell | None = None
    ) -> tuple[Watch, AddedFiles]:
        """Add a folder and follow it: the worker takes over what changes, comes and goes in it."""
        return corpus.watching.watch(self.ctx, folder, collection, tell or corpus.adding.silent)

    @verb("corpus", "unwatch")
    def unwatch(self, folder: str) -> Watch:
        """Follow a folder no longer, by its path or the id of its watch. Its documents stay."""
        return corpus.watching.unwatch(self.ctx, folder)

    def watches(self) -> list[Watch]:
        """Return what the worker follows, with what it last found wrong."""
        return corpus.watching.watches(self.ctx)

    @verb("document", "remove")
    def remove_document(self, id: str) -> Document:
        """Remove a document, and return it."""
        return corpus.documents.remove(self.ctx, id)

    def get_document(self, id: str, version: int | None = None) -> Document:
        """Return one document, or one version of it."""
        return corpus.documents.get(self.ctx, id, version)

    def about_document(self, id: str) -> DocumentAbout:
        """Return what is known of a document: its versions, its source, and the entries that rest on it."""
        return corpus.documents.about(self.ctx, id)

    def collections(self) -> dict[str, int]:
        """Return how many documents each collection has."""
        return self.ctx.local.collections()

    def documents(self, *, collection: str | None = None, after: str = "", limit: int = 100) -> list[DocumentHead]:
        """Return a page of the documents without their texts, ordered by id, behind the id `after`."""
        return corpus.documents.heads(self.ctx, collection=collection, after=after, limit=limit)

    def document_history(self, id: str) -> list[DocumentHead]:
        """Return every version of a document without its text, oldest first."""
        return corpus.documents.history(self.ctx, id)

    @verb("corpus", "search")
    def search_corpus(
        self,
        query: str,
        *,
        limit: int = 10,
        collections: Sequence[str] = (),
        tags: Sequence[str] = (),
        documents: Sequence[str] = (),
    ) -> list[Hit]:
        """Return the passages of documents that answer a query, best first. Entries are never among them."""
        return corpus.search.search(
            self.ctx, query, limit=limit, collections=collections, tags=tags, documents=documents
        )

    @verb("corpus", "read")
    def read_document(
        self,
        document: str,
        *,
        passage: int | None = None,
        around: int = 1,
        section: str | None = None,
        page: int | None = None,
        line: int | None = None,
        start: int | None = None,
        limit: int = 6_000,
    ) -> Stretch:
        """Return a stretch of a document: a passage with those around it, or from a section, a page or a line on.

        `start` goes on from a passage: `next` of the stretch before. At most `limit` characters are returned.
        """
        return corpus.reading.read(
            self.ctx,
            document,
            passage=passage,
            around=around,
            section=section,
            page=page,
            line=line,
            start=start,
            limit=limit,
        )
