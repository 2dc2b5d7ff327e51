"""Verbs for the author's own work: named pages and the review inbox.

Every credential reads the pages; only the author writes them. A grant sees the part of the inbox within its reach;
only the owner decides.
"""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from pydantic import Field

from lukasa.model.errors import NotFound
from lukasa.model.grant import Capability
from lukasa.surfaces.api.shapes import EntryOut, NamedListOut, NamedOut, UndoneOut, WordsOut
from lukasa.surfaces.api.submission_verbs import LeftOut, OpenSubmissionOut, ShelvedOut, SubmissionOut
from lukasa.surfaces.api.verb import Call, NoInput, Verb, VerbInput, VerbOutput

_PAGES = "/workspaces/{workspace}/named"


class NameIn(VerbInput):
    name: str = Field(description="Name of a page, such as VOICE.")


class EditIn(NameIn):
    body: str = Field(description="The whole new text, as markdown.")
    tier: str | None = Field(None, description="Tier of a new page.")
    expected_version: int | None = Field(None, description="Version that you read; 0 if the page must be new.")


def named(call: Call, given: NoInput) -> NamedListOut:
    return NamedListOut.of({"named": call.workspace.named()})


def get_page(call: Call, given: NameIn) -> NamedOut:
    return NamedOut.of(call.workspace.get_named(given.name))


def page_history(call: Call, given: NameIn) -> NamedListOut:
    return NamedListOut.of({"named": call.workspace.named_history(given.name)})


def edit_page(call: Call, given: EditIn) -> NamedOut:
    made = call.workspace.edit_named(given.name, given.body, tier=given.tier, expect=given.expected_version)
    return NamedOut.of(made)


def page_version(call: Call, given: NameIn) -> int:
    try:
        return call.workspace.get_named(given.name).version
    except NotFound:
        return 0


PAGES_VERBS = (
    Verb(
        "named_list",
        "List the author's pages, such as VOICE and SOUL: guidance on how to write and what to respect.",
        Capability.READ,
        "GET",
        _PAGES,
        NoInput,
        NamedListOut,
        named,
    ),
    Verb(
        "named_get",
        "Show one of the author's pages in full.",
        Capability.READ,
        "GET",
        f"{_PAGES}/{{name}}",
        NameIn,
        NamedOut,
        get_page,
    ),
    Verb(
        "named_edit",
        "Write one of the author's pages. Only the author may; an agent proposes a change in words.",
        Capability.NAMED_WRITE,
        "PUT",
        f"{_PAGES}/{{name}}",
        EditIn,
        NamedOut,
        edit_page,
        mutates=True,
        owner_only=True,
        version_of=page_version,
        tool=False,
    ),
    Verb(
        "named_history",
        "Show every version of a page, oldest first.",
        Capability.READ,
        "GET",
        f"{_PAGES}/{{name}}/history",
        NameIn,
        NamedListOut,
        page_history,
        tool=False,
    ),
)


# The review inbox


_REVIEW = "/workspaces/{workspace}/review"


class HeldOut(VerbOutput):
    """A held entry. `against` lists the entries that it contradicts: `settle` with one of them decides in one step."""

    entry: EntryOut
    why: str
    quotes: list[WordsOut]
    against: list[EntryOut]


class AmendmentOut(VerbOutput):
    """A proposed change of the curated document."""

    id: str
    section: str
    change: str
    confidence: float
    sources: list[str]
    created_at: datetime
    updated_at: datetime
    state: str
    decided_by: str
    reason: str
    line: str
    version: int


class ProposalOut(VerbOutput):
    amendment: AmendmentOut
    why: str
    sources: list[EntryOut]
    quotes: list[WordsOut]


class RivalsOut(VerbOutput):
    """Two entries that give one thing two values. Reads show the later one first."""

    earlier: EntryOut
    later: EntryOut
    why: str
    quotes: list[WordsOut]


class DoubtfulOut(VerbOutput):
    """An entry in force whose document has moved on, or which was concluded from something that was withdrawn.

    review_approve confirms it, and review_reject forgets it.
    """

    entry: EntryOut
    why: str
    quotes: list[WordsOut]


class InboxOut(VerbOutput):
    entries: list[HeldOut]
    proposals: list[ProposalOut]
    rivals: list[RivalsOut]
    doubtful: list[DoubtfulOut]
    submissions: list[OpenSubmissionOut]


class DecidedOut(VerbOutput):
    id: str
    outcome: str
    entry: EntryOut | None = None
    amendment: AmendmentOut | None = None
    replaces: list[str]
    beside: list[str] = Field(description="Ids of entries that may contradict it: they wait for `settle` as a pair.")
    trouble: str = ""
    submission: SubmissionOut | None = None
    document: ShelvedOut | None = Field(None, description="The document that an accepted submission changed.")
    kept: list[LeftOut] = Field(default=[], description="Memories that an acceptance left as they are, and why.")


class InboxIn(VerbInput):
    limit: int = Field(100, ge=1, le=1000, description="At most this many items.")


def inbox(call: Call, given: InboxIn) -> InboxOut:
    found = InboxOut.of(call.overseen(Capability.REVIEW).inbox(limit=given.limit))
    return found if call.credential.is_owner else _within_reach(call, found)


def _within_reach(call: Call, found: InboxOut) -> InboxOut:
    """Return the part of the inbox that a grant may see: entries within its reach, and no quotes."""
    entries = [
        HeldOut(
            entry=held.entry,
            why=held.why,
            quotes=[],
            against=[one for one in held.against if _sees(call, one.id)],
        )
        for held in found.entries
        if _sees(call, held.entry.id)
    ]
    proposals = [
        ProposalOut(amendment=p.amendment, why=p.why, sources=[s for s in p.sources if _sees(call, s.id)], quotes=[])
        for p in found.proposals
        if all(_sees(call, id) for id in p.amendment.sources)
    ]
    rivals = [
        RivalsOut(earlier=pair.earlier, later=pair.later, why=pair.why, quotes=[])
        for pair in found.rivals
        if _sees(call, pair.earlier.id) and _sees(call, pair.later.id)
    ]
    doubtful = [
        DoubtfulOut(entry=one.entry, why=one.why, quotes=[]) for one in found.doubtful if _sees(call, one.entry.id)
    ]
    submissions = [
        OpenSubmissionOut(
            submission=shown, why=one.why, document=one.document, trouble=one.trouble, memories=one.memories
        )
        for one in found.submissions
        if (shown := _submitted(call, one.submission.id)) is not None and all(_sees(call, e.id) for e in one.memories)
    ]
    return InboxOut(entries=entries, proposals=proposals, rivals=rivals, doubtful=doubtful, submissions=submissions)


def _submitted(call: Call, id: str) -> SubmissionOut | None:
    try:
        return SubmissionOut.of(call.workspace.get_submission(id)).brief()
    except NotFound:
        return None


def _sees(call: Call, id: str) -> bool:
    try:
        call.workspace.get(id)
    except NotFound:
        return False
    return True


class DecideIn(VerbInput):
    id: str = Field(description="Id of a held entry, a proposal or a submission.")
    reason: str | None = Field(None, description="Why, for the log.")


class ApproveIn(DecideIn):
    retire: list[str] | None = Field(
        None, description="Of a submission: the memories to retire; by default, those that it names as derivable."
    )
    onto: int | None = Field(None, description="Of a submission: the version of the document that you looked at.")


class ReviewEditIn(ApproveIn):
    text: str = Field(description="The text to approve, in place of the original one.")
    whole: bool = Field(False, description="Of a submission: the text is the whole document.")


def approve(call: Call, given: ApproveIn) -> DecidedOut:
    more = {"retire": given.retire, "onto": given.onto}
    return DecidedOut.of(call.workspace.approve(given.id, **more, **_said(given)))  # type: ignore[arg-type]


def approve_edited(call: Call, given: ReviewEditIn) -> DecidedOut:
    more = {"text": given.text, "whole": given.whole, "retire": given.retire, "onto": given.onto}
    return DecidedOut.of(call.workspace.approve(given.id, **more, **_said(given)))  # type: ignore[arg-type]


def reject(call: Call, given: DecideIn) -> DecidedOut:
    return DecidedOut.of(call.workspace.reject(given.id, **_said(given)))


def take_back(call: Call, given: DecideIn) -> UndoneOut:
    call.workspace.get_submission(given.id)  # entries have an undo of their own
    return UndoneOut.of(call.workspace.undo(given.id, given.reason or "undone on request"))


class SettleIn(DecideIn):
    id: str = Field(description="Id of one of two entries that wait for a decision.")
    other: str = Field(description="Id of the other one.")
    keep: Literal["old", "new", "both", "open"] = Field(
        description="Which one holds: the earlier, the later, or both. `open` takes a decision for both back."
    )


def settle(call: Call, given: SettleIn) -> DecidedOut:
    return DecidedOut.of(call.workspace.settle(given.id, given.other, given.keep, **_said(given)))


def _said(given: DecideIn) -> dict[str, str]:
    return {"reason": given.reason} if given.reason is not None else {}


REVIEW_VERBS = (
    Verb(
        "review_list",
        "Show what waits for the owner's decision: entries and changes of the main page that wait, which reads "
        "do not find until the owner approves them, pairs of entries of which the later one may replace the earlier "
        "one, entries that rest on something which changed or was withdrawn, and changes submitted to documents. Tell "
        "the owner about them; do not act on them.",
        Capability.REVIEW,
        "GET",
        _REVIEW,
        InboxIn,
        InboxOut,
        inbox,
    ),
    Verb(
        "review_approve",
        "Accept a held entry, put a proposal on the curated page, or write a submission into its document. Only a "
        "person decides this.",
        Capability.REVIEW,
        "POST",
        f"{_REVIEW}/{{id}}/approve",
        ApproveIn,
        DecidedOut,
        approve,
        mutates=True,
        owner_only=True,
        tool=False,
    ),
    Verb(
        "review_edit",
        "Approve a held entry, a proposal or a submission with another text.",
        Capability.REVIEW,
        "POST",
        f"{_REVIEW}/{{id}}/edit",
        ReviewEditIn,
        DecidedOut,
        approve_edited,
        mutates=True,
        owner_only=True,
        tool=False,
    ),
    Verb(
        "review_settle",
        "Decide about two entries that give one thing two values, of which one may be held: keep the old one, the new "
        "one, or both. A held entry that holds is accepted.",
        Capability.REVIEW,
        "POST",
        f"{_REVIEW}/{{id}}/settle",
        SettleIn,
        DecidedOut,
        settle,
        mutates=True,
        owner_only=True,
        tool=False,
    ),
    Verb(
        "review_reject",
        "Reject a held entry, a proposal or a submission. It is kept, and can be restored.",
        Capability.REVIEW,
        "POST",
        f"{_REVIEW}/{{id}}/reject",
        DecideIn,
        DecidedOut,
        reject,
        mutates=True,
        owner_only=True,
        tool=False,
    ),
    Verb(
        "review_undo",
        "Take back the acceptance of a submission: its document has its text of before, the memories that were retired "
        "hold again, and it waits again.",
        Capability.REVIEW,
        "POST",
        f"{_REVIEW}/{{id}}/undo",
        DecideIn,
        UndoneOut,
        take_back,
        mutates=True,
        owner_only=True,
        tool=False,
    ),
)

VERBS = (*PAGES_VERBS, *REVIEW_VERBS)
