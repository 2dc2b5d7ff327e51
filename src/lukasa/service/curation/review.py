"""The review inbox: what waits for a person, each with its reason and evidence; and the decisions.

A text in the inbox is neither recalled nor on the curated page until a person approves it. Every decision leaves an
event and can be taken back: `restore` lets a rejected entry wait again, and a rejected proposal can still be approved.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

from msgspec import Struct
from msgspec.structs import replace

from lukasa.model.amendment import OPEN_AMENDMENTS, Amendment, AmendmentState
from lukasa.model.entry import DocumentHead, Entry, Rivalry
from lukasa.model.errors import InvalidInput, InvalidTransition, NotFound
from lukasa.model.ids import parse_id
from lukasa.model.selection import Selection
from lukasa.model.submission import Decision, Submission
from lukasa.model.values import Outcome, Relation, State, Trust, Visibility
from lukasa.read.fold import in_time
from lukasa.service import inputs
from lukasa.service.admin.overview import EvidenceQuote, evidence
from lukasa.service.call import CallContext, retry_on_conflict
from lukasa.service.citations import verifying
from lukasa.service.corpus import submitting
from lukasa.service.corpus.submitting import OpenSubmission
from lukasa.service.curation import curated_document
from lukasa.service.entries import revise
from lukasa.service.entries.corroborate import corroborate
from lukasa.service.entries.revise import LeftAlone
from lukasa.service.retrieval.grounds import doubtful, in_doubt
from lukasa.storage.operations import SaveAmendment, SaveEntry, SaveRivalry
from lukasa.storage.port import Store
from lukasa.write.plan import Setting, retire

_DECIDED = (AmendmentState.PROMOTED, AmendmentState.MERGED)


class HeldEntry(Struct, frozen=True):
    """A held entry, with the reason and the quotes that it rests on.

    `against` holds the entries in force that it contradicts: `settle` decides between them in one step.
    """

    entry: Entry
    why: str
    quotes: tuple[EvidenceQuote, ...]
    against: tuple[Entry, ...] = ()


class OpenProposal(Struct, frozen=True):
    """A change proposed to the curated document, and the entries that it rests on."""

    amendment: Amendment
    why: str
    sources: tuple[Entry, ...]
    quotes: tuple[EvidenceQuote, ...]


class OpenRivals(Struct, frozen=True):
    """Two active entries that give one thing two values, and the quotes that they rest on."""

    earlier: Entry
    later: Entry
    why: str
    quotes: tuple[EvidenceQuote, ...]


class DoubtfulEntry(Struct, frozen=True):
    """An entry in force that may not hold: its document has moved on, it was concluded from something that was
    withdrawn, or the last check found that something it cites has changed or is gone."""

    entry: Entry
    why: str
    quotes: tuple[EvidenceQuote, ...]


class Inbox(Struct, frozen=True):
    """Everything that waits for a decision of the author."""

    entries: tuple[HeldEntry, ...]
    proposals: tuple[OpenProposal, ...]
    rivals: tuple[OpenRivals, ...] = ()
    doubtful: tuple[DoubtfulEntry, ...] = ()
    submissions: tuple[OpenSubmission, ...] = ()

    def __len__(self) -> int:
        return sum(map(len, (self.entries, self.proposals, self.rivals, self.doubtful, self.submissions)))


class Keep(StrEnum):
    """The decision about two rivals."""

    OLD = "old"  # the earlier one holds, and the later one is retired
    NEW = "new"  # the later one holds, and the earlier one is retired
    BOTH = "both"  # both hold, and nobody is asked again
    OPEN = "open"  # undecided after all: the pair waits again


class Decided(Struct, frozen=True):
    """A decision, and the new state of its entry or proposal.

    `beside` has the ids of entries that may contradict an accepted one: each pair waits for `settle`. `document` is the
    one that an accepted submission changed, and `kept` names memories that it did not retire.
    """

    id: str
    outcome: str
    entry: Entry | None = None
    amendment: Amendment | None = None
    replaces: tuple[str, ...] = ()
    beside: tuple[str, ...] = ()
    trouble: str = ""  # why the curated file has no commit of the decision yet; a worker tries again
    submission: Submission | None = None
    document: DocumentHead | None = None
    kept: tuple[LeftAlone, ...] = ()


def inbox(ctx: CallContext, limit: int) -> Inbox:
    """Return what waits, oldest first: held entries of every scope and owner, and proposals left by triage."""
    ctx.require_author("look into the review inbox")
    held = [item for store in (ctx.local, ctx.account) for item in _held(ctx, store, limit)]
    # The curated page is the whole workspace's, and so are proposals for it.
    found = [] if ctx.tenancy else ctx.local.amendments(states={AmendmentState.REVIEW}, limit=limit)
    rivals = [pair for store in (ctx.local, ctx.account) for pair in _open_rivals(ctx, store, limit)]
    return Inbox(
        tuple(sorted(held, key=lambda item: (item.entry.created_at, item.entry.id))[:limit]),
        tuple(_proposal(ctx, amendment) for amendment in found),
        tuple(rivals[:limit]),
        tuple(_doubtful(ctx, limit)),
        tuple(submitting.waiting(ctx, limit)),
    )


def _doubtful(ctx: CallContext, limit: int) -> list[DoubtfulEntry]:
    found = {e.id: (e, why, "it rests on something that is not what it was") for e, why in doubtful(ctx, limit)}
    for entry, why in verifying.amiss(ctx, limit):
        _, others, what = found.get(entry.id, (entry, (), "what it cites is not what it was"))
        found[entry.id] = entry, (*others, *why), what
    return [DoubtfulEntry(e, f"{what}: {'; '.join(why)}", _said(ctx, e)) for e, why, what in found.values()][:limit]


def _said(ctx: CallContext, entry: Entry) -> tuple[EvidenceQuote, ...]:
    return tuple(evidence(ctx, entry.id))


def _open_rivals(ctx: CallContext, store: Store, limit: int) -> Iterable[OpenRivals]:
    """Pairs that nobody has judged, of which both hold now; the newest first."""
    found = store.open_rivals(Relation.UPDATE, limit=curated_document.EVERY if ctx.tenancy else limit * 2)
    entries = store.entries(dict.fromkeys(id for pair in found for id in (pair.entry, pair.other)))
    open_now = {id: e for id, e in entries.items() if e.state is State.ACTIVE and e.holds_at(ctx.now) and ctx.sees(e)}
    for pair in found:
        if pair.entry in open_now and pair.other in open_now:
            earlier, later = in_time(pair, open_now)
            said = tuple(quote for entry in (earlier, later) for quote in evidence(ctx, entry.id))
            yield OpenRivals(earlier, later, pair.reason, said)


def settle(ctx: CallContext, id: str, other: str, keep: Keep, *, reason: str) -> Decided:
    """Decide about two rivals, or a held entry and one that it contradicts: retire one of them, or let both hold."""
    ctx.require_author("decide between two entries")

    def attempt() -> Decided:
        store, entry = ctx.entry(parse_id(id))
        pair, both = _pair(ctx, store, entry, parse_id(other, "other"))
        earlier, later = in_time(pair, both)
        if keep is Keep.OPEN:
            ctx.apply(store, SaveRivalry(replace(pair, relation=Relation.UPDATE, reason=reason, decided_by="")))
            return Decided(later.id, "open", entry=later)
        if keep is Keep.BOTH:
            judged = replace(pair, relation=Relation.BOTH, reason=reason, decided_by=str(ctx.actor))
            admitted = _admitted(ctx, later, reason) or _admitted(ctx, earlier, reason)
            ctx.apply(store, *admitted, SaveRivalry(judged))
            return Decided(later.id, "both", entry=store.entries([later.id])[later.id])
        stays, goes = (later, earlier) if keep is Keep.NEW else (earlier, later)
        ctx.apply(store, _retired(ctx, goes, stays, reason), *_admitted(ctx, stays, reason))
        return Decided(stays.id, "kept", entry=store.entries([stays.id])[stays.id], replaces=(goes.id,))

    return retry_on_conflict(attempt)


def _pair(ctx: CallContext, store: Store, entry: Entry, other: str) -> tuple[Rivalry, dict[str, Entry]]:
    """Return the pair to decide about, and its entries: both in force, or one that is held against the other."""
    both = {id: one for id, one in store.entries([entry.id, other], damaged=True).items() if ctx.sees(one)}
    held = next((one for one in both.values() if one.state is State.HELD), None)
    pair = next((pair for pair in store.rivals([entry.id]) if pair.beside(entry.id) == other), None)
    if held is not None and len(both) > 1:
        beside = other if held.id == entry.id else entry.id
        if beside in [one.id for one in revise.against(ctx, held)]:
            pair = Rivalry(held.id, beside, Relation.UPDATE, _why(held), ctx.now)
    if pair is None or len(both) < 2:
        raise NotFound("these two entries wait for no decision", fix="`lukasa review` shows what waits, with its ids")
    gone = next((one for one in both.values() if one.state not in (State.ACTIVE, State.HELD)), None)
    if gone is not None:
        raise InvalidTransition(
            f"“{gone.content[: revise.QUOTED]}” is {gone.state} already",
            fix=f"`lukasa restore {gone.id}` brings it back first",
        )
    return pair, both


def _admitted(ctx: CallContext, entry: Entry, reason: str) -> tuple[SaveEntry, ...]:
    """Return the change that lets a held entry in, as `accept` does; none if it is in force."""
    if entry.state is not State.HELD:
        return ()
    moved = entry.moved(State.ACTIVE, at=ctx.now, cause=reason, actor=str(ctx.actor), version=entry.version + 1)
    moved = replace(moved, trust=max(entry.trust, Trust.IMPORTED))
    return (SaveEntry(moved, entry.version, "entry.accepted", reason),)


def _retired(ctx: CallContext, goes: Entry, stays: Entry, reason: str) -> SaveEntry:
    if goes.state is State.HELD:
        moved = goes.moved(State.FORGOTTEN, at=ctx.now, cause=reason, actor=str(ctx.actor), version=goes.version + 1)
        return SaveEntry(moved, goes.version, "entry.forgotten", reason)
    return retire(goes, stays, Setting(ctx.spec, ctx.taxonomy, ctx.now), reason, str(ctx.actor))


def _held(ctx: CallContext, store: Store, limit: int) -> Iterable[HeldEntry]:
    held = (count.scope for count in store.census() if count.states.get(State.HELD))
    scopes = tuple(scope for scope in held if ctx.admits(scope))
    if not scopes:
        return
    for entry in store.find(Selection(scopes, frozenset({Visibility.HELD}), None), limit=limit, damaged=True):
        yield HeldEntry(entry, _why(entry), tuple(evidence(ctx, entry.id)), revise.against(ctx, entry))


def _why(entry: Entry) -> str:
    if entry.gate is not None and entry.gate.reason:
        return entry.gate.reason
    return entry.transition.cause if entry.transition is not None else "it was held when it was written"


def _proposal(ctx: CallContext, amendment: Amendment) -> OpenProposal:
    entries = tuple(ctx.local.entries(amendment.sources).values())
    said = tuple(quote for entry in entries for quote in evidence(ctx, entry.id))
    return OpenProposal(amendment, amendment.reason, entries, said)


def approve(ctx: CallContext, id: str, given: Decision) -> Decided:
    """Let a held entry into recall, put a proposal on the page, accept a submission, or confirm an entry in doubt.

    A text replaces its words.
    """
    ctx.require_author("approve what waits for review")
    key, text, reason = parse_id(id), given.text, given.reason
    if submitting.one_of(ctx, key) is not None:
        made = submitting.accept(ctx, key, given)
        more = {"document": made.document, "kept": made.kept, "trouble": made.warning}
        return Decided(key, "accepted", submission=made.submission, **more)  # type: ignore[arg-type]
    if given.whole or given.retire is not None or given.onto is not None:
        raise InvalidInput(
            f"{id} is no submission, so whole, retire and onto say nothing about it", fix="leave them out"
        )
    if text is not None:
        inputs.text(text, "text", ctx.spec.reference_only.max_chars)
    if _amendment(ctx, key) is not None:
        decided = retry_on_conflict(lambda: _promote(ctx, key, text, reason))
        return replace(decided, trouble=curated_document.commit_now(ctx))
    waiting = _waiting(ctx, key)
    if text is not None:
        revise.update(ctx, key, {"content": text})
    if waiting.state is not State.HELD:
        return Decided(key, "confirmed", entry=corroborate(ctx, key, Outcome.CONFIRMED, reason).entry)
    written = revise.accept(ctx, key, reason)
    return Decided(key, "accepted", entry=written.entry, replaces=written.replaces, beside=written.beside)


def _amendment(ctx: CallContext, id: str) -> Amendment | None:
    return None if ctx.tenancy else next(iter(ctx.local.amendments([id])), None)


def _waiting(ctx: CallContext, id: str) -> Entry:
    try:
        _, entry = ctx.entry(id)
    except NotFound:
        raise NotFound(f"nothing with the id {id} waits for review", fix="`lukasa review` shows what does") from None
    if entry.state is not State.HELD and not (in_doubt(ctx, entry) or verifying.in_doubt(ctx, entry)):
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
    if submitting.one_of(ctx, key) is not None:
        return Decided(key, "rejected", submission=submitting.reject(ctx, key, reason))
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
