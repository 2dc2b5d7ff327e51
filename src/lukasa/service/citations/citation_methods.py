"""The methods of a workspace about citations: cite, verify, and the project at hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from lukasa.service import citations
from lukasa.service.call import Bound
from lukasa.service.instrument import verb

if TYPE_CHECKING:
    from lukasa.service.citations.citing import Cite
    from lukasa.service.citations.verifying import EntryCitations, Verification


class CitationMethods(Bound, frozen=True):
    """Pin what entries cite, and check it before use."""

    @verb("memory", "cite")
    def cite(self, id: str, *cites: Cite | str, again: bool = False, drop: Sequence[str] = ()) -> EntryCitations:
        """Let an entry cite more, `drop` citations, or with `again` pin all that it cites as it is now."""
        if again:
            done = citations.verifying.cite_again(self.ctx, id)
            if not cites and not drop:
                return done
        return citations.verifying.cite(self.ctx, id, cites, drop)

    def citations(self, id: str) -> EntryCitations:
        """Return what an entry cites, with the verdicts of now. Nothing is kept."""
        return citations.verifying.of_entries(self.ctx, [self.ctx.entry(id)[1]])[0]

    @verb("memory", "verify")
    def verify_citations(
        self,
        *ids: str,
        everything: bool = False,
        known: bool = True,
        outputs: Mapping[str, str | None] | None = None,
    ) -> Verification:
        """Check what entries cite, and keep the outcomes: the named ones, else those that cite the project at hand.

        With `everything`, all that cite anything; with `known`, also in projects that were at hand here before.
        `outputs` has what a cited command printed or a URL gave, by the id of the citation; None if it is gone.
        """
        return citations.verifying.verify(self.ctx, ids, everything=everything, known=known, outputs=outputs)
