"""The methods of a workspace with which an author decides: review, dispositions, the curated document, the log."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from lukasa.model.errors import InvalidInput, Refused
from lukasa.model.submission import Decision
from lukasa.service import curation, inputs, upkeep
from lukasa.service.call import Bound
from lukasa.service.instrument import verb

if TYPE_CHECKING:
    from lukasa.service.curation.curated_document import Curated
    from lukasa.service.curation.decision_records import Decisions
    from lukasa.service.curation.review import Decided, Inbox
    from lukasa.service.curation.slog_file import Slog
    from lukasa.service.entries.put import Written
    from lukasa.upkeep.weighed import Weighed


class CurationMethods(Bound, frozen=True):
    """Review proposals, decide about faded entries, and keep the curated document and the log."""

    def inbox(self, *, limit: int = 100) -> Inbox:
        """Return what waits for the author: held entries, proposals and rivals, each with its reason and evidence."""
        return curation.review.inbox(self.ctx, inputs.limit(limit))

    @verb("review", "approve")
    def approve(
        self,
        id: str,
        *,
        text: str | None = None,
        reason: str = "approved by the author",
        whole: bool = False,
        retire: Sequence[str] | None = None,
        onto: int | None = None,
    ) -> Decided:
        """Let a held entry into recall, put a proposal on the curated page, or write a submission into its document.

        `text` replaces its words. For a submission, `whole` says that the text is the whole document, `retire` names
        the memories to retire, and `onto` is the version of the document that you looked at.
        """
        confirmed = None if retire is None else tuple(inputs.several(retire, "retire"))
        given = Decision(inputs.label(reason, "reason"), text, whole, confirmed, onto)
        return curation.review.approve(self.ctx, id, given)

    @verb("review", "reject")
    def reject(self, id: str, reason: str = "rejected by the author") -> Decided:
        """Set a held entry aside, or turn a proposal or a submission down; all stay in history."""
        return curation.review.reject(self.ctx, id, reason=inputs.label(reason, "reason"))

    @verb("review", "settle")
    def settle(self, id: str, other: str, keep: str, reason: str = "decided by the author") -> Decided:
        """Decide about two entries that give one thing two values: `keep` the "old" one, the "new" one, or "both"."""
        chosen = inputs.choice(keep, curation.review.Keep, "keep")
        return curation.review.settle(self.ctx, id, other, chosen, reason=inputs.label(reason, "reason"))

    @property
    def curated(self) -> Curated:
        """The curated document: its text, history and file."""
        return curation.curated_document.Curated(self.ctx)

    @property
    def slog(self) -> Slog:
        """The structured log: an append-only file of actions, with their subjects and reasons."""
        return curation.slog_file.Slog(self.ctx)

    @property
    def decisions(self) -> Decisions:
        """The decision records in the repository of the curated document, if the spec keeps them there."""
        ctx = self.ctx
        if ctx.decisions is None:
            raise Refused(
                "this workspace keeps no decision records",
                fix='name a folder with --dir, or use a spec with keep = ["decisions"] under [curated]',
            )
        ctx.require_author("change decision records")
        changed = partial(curation.kept_records.commit_now, ctx)
        return curation.decision_records.Decisions(ctx.decisions, ctx.clock, changed)

    def dispositions(self) -> list[Weighed]:
        """Return the faded entries that wait for a decision, the most faded first. Only the author may."""
        return upkeep.dispose.waiting(self.ctx)

    @verb("memory", "dispose")
    def dispose(self, id: str, how: str, reason: str = "decided by the author") -> Written:
        """Decide about a faded entry: `promote` it to a fact, `exempt` it from decay, or `archive` it."""
        verbs = ("promote", "exempt", "archive")
        if how not in verbs:
            raise InvalidInput(f"{str(how)[:60]!r} is no disposition", fix=f"use one of: {', '.join(verbs)}")
        done: Written = getattr(upkeep.dispose, how)(self.ctx, id, inputs.label(reason, "reason"))
        return done
