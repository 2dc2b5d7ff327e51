"""The review inbox: held entries and proposals that wait for a person, with their evidence, and the decisions.

A text in the inbox is neither recalled nor on the curated page until a person approves it. Every decision leaves an
event and can be taken back: `restore` lets a rejected entry wait again, and a rejected proposal can still be approved.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct
from msgspec.structs import replace

from lukasa.model.amendment import OPEN_AMENDMENTS, Amendment, AmendmentState
from lukasa.model.entry import Entry
from lukasa.model.errors import InvalidTransition, NotFound
from lukasa.model.ids import parse_id
from lukasa.model.selection import Selection
from lukasa.model.values import State, Visibility
from lukasa.service import inputs
from lukasa.service.admin.overview import EvidenceQuote, evidence
from lukasa.service.call import CallContext, retry_on_conflict
from lukasa.service.curation import curated_document
from lukasa.service.entries import revise
from lukasa.storage.operations import SaveAmendment
from lukasa.storage.port import Store

_DECIDED = (AmendmentState.PROMOTED, AmendmentState.MERGED)


class HeldEntry(Struct, frozen=True):
    """A held entry, with the reason and the quotes that it rests on."""

    entry: Entry
    why: str
    quotes: tuple[EvidenceQuote, ...]


class OpenProposal(Struct, frozen=True):
    """A change proposed to the curated document, and the entries that it rests on."""

    amendment: Amendment
    why: str
    sources: tuple[Entry, ...]
    quotes: tuple[EvidenceQuote, ...]


class Inbox(Struct, frozen=True):
    """Everything that waits for a decision of the author."""

    entries: tuple[HeldEntry, ...]
    proposals: tuple[OpenProposal, ...]

    def __len__(self) -> int:
        return len(self.entries) + len(self.proposals)


class Decided(Struct, frozen=True):
    """A decision, and the new state of its entry or proposal."""

    id: str
    outcome: str
    entry: Entry | None = None
    amendment: Amendment | None = None
    replaces: tuple[str, ...] = ()


def inbox(ctx: CallContext, limit: int) -> Inbox:
    """Return what waits, oldest first: held entries of every scope and owner, and proposals left by triage."""
    ctx.require_author("look into the review inbox")
    held = [item for store in (ctx.local, ctx.account) for item in _held(ctx, store, limit)]
    found = ctx.local.amendments(states={AmendmentState.REVIEW}, limit=limit)
    return Inbox(
        tuple(sorted(held, key=lambda item: (item.entry.created_at, item.entry.id))[:limit]),
        tuple(_proposal(ctx, amendment) for amendment in found),
    )


def _held(ctx: CallContext, store: Store, limit: int) -> Iterable[HeldEntry]:
    scopes = tuple(census.scope for census in store.census() if census.states.get(State.HELD))
    if not scopes:
        return
    for entry in store.find(Selection(scopes, frozenset({Visibility.HELD}), None), limit=limit):
        yield HeldEntry(entry, _why(entry), tuple(evidence(ctx, entry.id)))


def _why(entry: Entry) -> str:
    if entry.gate is not None and entry.gate.reason:
        return entry.gate.reason
    return entry.transition.cause if entry.transition is not None else "it was held when it was written"


def _proposal(ctx: CallContext, amendment: Amendment) -> OpenProposal:
    entries = tuple(ctx.local.entries(amendment.sources).values())
    said = tuple(quote for entry in entries for quote in evidence(ctx, entry.id))
    return OpenProposal(amendment, amendment.reason, entries, said)


def approve(ctx: CallContext, id: str, *, text: str | None, reason: str) -> Decided:
    """Let a held entry into recall, or put a proposal on the page; `text` replaces its words."""
    ctx.require_author("approve what waits for review")
    key = parse_id(id)
    if text is not None:
        inputs.text(text, "text", ctx.spec.reference_only.max_chars)
    if _amendment(ctx, key) is not None:
        return retry_on_conflict(lambda: _promote(ctx, key, text, reason))
    _waiting(ctx, key)
    if text is not None:
        revise.update(ctx, key, {"content": text})
    written = revise.accept(ctx, key, reason)
    return Decided(key, "accepted", entry=written.entry, replaces=written.replaces)


def _amendment(ctx: CallContext, id: str) -> Amendment | None:
    return next(iter(ctx.local.amendments([id])), None)


def _waiting(ctx: CallContext, id: str) -> Entry:
    try:
        _, entry = ctx.entry(id)
    except NotFound:
        raise NotFound(f"nothing with the id {id} waits for review", fix="`lukasa review` shows what does") from None
    if entry.state is not State.HELD:
        raise InvalidTransition(f"entry {entry.id} is {entry.state}, not held", fix="`lukasa review` shows what waits")
    return entry


def _promote(ctx: CallContext, id: str, text: str | None, reason: str) -> Decided:
    curated_document.take_in(ctx)
    amendment = _open(ctx, id, also=AmendmentState.REJECTED)
    decided, operations = curated_document.promotion(
        ctx, amendment, text if text is not None else amendment.change, decided_by=str(ctx.actor), reason=reason
    )
    ctx.apply(ctx.local, *operations)
    return Decided(id, str(decided.state), amendment=replace(decided, version=amendment.version + 1))


def _open(ctx: CallContext, id: str, also: AmendmentState | None = None) -> Amendment:
    amendment = _amendment(ctx, id)
    if amendment is None:
        raise NotFound(f"no proposal {id}", fix="`lukasa review` shows what waits")
    if amendment.state not in OPEN_AMENDMENTS and amendment.state is not also:
        fix = "`lukasa curated undo` takes a promotion back" if amendment.state in _DECIDED else "approve it instead"
        raise InvalidTransition(f"proposal {id} is {amendment.state} already", fix=fix)
    return amendment


def reject(ctx: CallContext, id: str, *, reason: str) -> Decided:
    """Set a held entry aside, or turn a proposal down. Both stay, and can be brought back."""
    ctx.require_author("reject what waits for review")
    key = parse_id(id)
    if _amendment(ctx, key) is not None:
        return retry_on_conflict(lambda: _turn_down(ctx, key, reason))
    _waiting(ctx, key)
    written = revise.forget(ctx, key, reason)
    return Decided(key, "forgotten", entry=written.entry)


def _turn_down(ctx: CallContext, id: str, reason: str) -> Decided:
    amendment = _open(ctx, id)
    decided = replace(
        amendment, state=AmendmentState.REJECTED, decided_by=str(ctx.actor), reason=reason, updated_at=ctx.now
    )
    ctx.apply(ctx.local, SaveAmendment(decided, amendment.version))
    return Decided(id, "rejected", amendment=replace(decided, version=amendment.version + 1))
