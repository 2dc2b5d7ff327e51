"""The methods of a workspace that are about the submit boundary: what goes from memory into the corpus."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from lukasa.service import corpus
from lukasa.service.call import Bound
from lukasa.service.instrument import verb

if TYPE_CHECKING:
    from lukasa.model.submission import Submission


class SubmissionMethods(Bound, frozen=True):
    """Submit changes of documents. A person decides with `approve` and `reject`."""

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
