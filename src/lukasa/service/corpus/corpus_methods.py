"""The methods of a workspace that are about the corpus: documents, and the search for what is in them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from lukasa.model.entry import Document, DocumentHead
from lukasa.service import corpus
from lukasa.service.call import Bound
from lukasa.service.instrument import verb

if TYPE_CHECKING:
    from lukasa.model.submission import Submission
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

    @verb("document", "remove")
    def remove_document(self, id: str) -> Document:
        """Remove a document, and return it."""
        return corpus.documents.remove(self.ctx, id)

    def get_document(self, id: str, version: int | None = None) -> Document:
        """Return one document, or one version of it."""
        return corpus.documents.get(self.ctx, id, version)

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

    @verb("corpus", "submit")
    def submit(
        self,
        document: str,
        text: str = "",
        *,
        memories: Sequence[str],
        whole: bool = False,
        under: str = "",
        replaces: str = "",
        derivable: Sequence[str] = (),
        title: str = "",
        collection: str = "documents",
        note: str = "",
    ) -> Submission:
        """Submit a change of a document, or a new one, that rests on memories. A person accepts it with `approve`.

        The text goes to the end of the document, `under` a heading, in place of a passage that it `replaces`, or is the
        `whole` document. `derivable` names the memories that the document then makes unnecessary.
        """
        target = corpus.submitting.Target(document, whole, under, replaces, title, collection)
        return corpus.submitting.submit(self.ctx, target, text, memories, derivable, note)

    def submissions(
        self, *, document: str | None = None, memory: str | None = None, state: str | None = None, limit: int = 100
    ) -> list[Submission]:
        """Return submissions, oldest first: all, of one document, resting on one memory, or in one state."""
        return corpus.submitting.find(self.ctx, document=document, memory=memory, state=state, limit=limit)

    def get_submission(self, id: str) -> Submission:
        """Return one submission."""
        return corpus.submitting.get(self.ctx, id)
