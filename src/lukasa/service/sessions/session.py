"""The life of a session: Orient → Work → Persist.

    begin     start or resume a conversation, and mark it as open
    orient    compose the context, and count its entries as retrieved, once
    record    keep each message as a raw note before anybody answers it
    recall    read while working, without counting again the entries that the context has shown
    persist   write missed facts, then the summary for the channel, then end the conversation

Persist comes before anything is cleared. If it fails, an error event says so, all raw notes stay, and it can run again:
it writes nothing twice. `resume_pending` finds a dead session by its mark, and persists it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from lukasa.model.conversation import SUMMARY_TAG, Conversation, Status
from lukasa.model.entry import Entry, Scope
from lukasa.model.errors import InvalidInput, InvalidScope, InvalidTransition, LukasaError, Refused, StoreError
from lukasa.model.events import EventDraft
from lukasa.model.ids import new_id
from lukasa.model.secrets import redact
from lukasa.model.selection import Filters, Selection
from lukasa.model.statements import says_the_same
from lukasa.model.text import content_key, terms
from lukasa.model.values import SHARED, VISIBILITY, Kind, Lifetime, Trust, Visibility
from lukasa.service import inputs, retrieval
from lukasa.service.call import CallContext
from lukasa.service.entries.put import Memo, Written
from lukasa.service.sessions import closing, conversations
from lukasa.service.sessions.closing import Ended, ScopeEnded
from lukasa.service.sessions.distill import UNQUOTED, Distil, Distilled, Fact, Turn, by_rules_with
from lukasa.service.workspace import Workspace
from lukasa.spec.types import Tier, WriteMode
from lukasa.storage.operations import Record

if TYPE_CHECKING:
    from lukasa.read.context import Context
    from lukasa.service.retrieval.read import Recall
    from lukasa.service.sessions.refine import Refine

SOURCE = "persist"
SUMMARY = SUMMARY_TAG
RESERVED = "session:"
_MARK, _TURN = "session:open", "session:turn:"
_SHOWN, _CUT = 5, 120


class Persisted(Struct, frozen=True):
    """The result of persisting a session: missed facts, the summary, the ended conversation, and refused texts."""

    conversation: Conversation
    facts: tuple[Written, ...]
    summary: Entry | None
    ended: Ended
    refused: tuple[RefusedText, ...] = ()


class RefusedText(Struct, frozen=True):
    """A fact or a summary that the write path refused, with the code and the message of the refusal."""

    text: str
    code: str
    reason: str


# Orient and Work


def begin(world: Workspace, conversation: str | None = None) -> Workspace:
    """Return the workspace bound to a new or open conversation; a mark stays until `leave` or `persist`."""
    found = open_conversation(world, conversation)
    here = world.at(conversation=found.id)
    here.write_note(found.id, _MARK, {"agent": world.ctx.agent, "since": world.ctx.now.isoformat()})
    return here


def open_conversation(world: Workspace, conversation: str | None = None) -> Conversation:
    """Return an open conversation, or a new one in the bound channel."""
    found = world.conversation(conversation) if conversation else world.start()
    if found.status is not Status.ACTIVE:
        raise InvalidTransition(f"conversation {found.ref_code} is {found.status}", fix="start a new conversation")
    return found


def leave(world: Workspace) -> None:
    """Stop without ending the conversation: it stays open and can be resumed."""
    world.clear_notes(current(world).id, _MARK)


def current(world: Workspace) -> Conversation:
    """Return the conversation that this workspace is bound to."""
    key = world.ctx.keys.get("conversation")
    if key is None:
        raise InvalidInput("no conversation is bound", fix="begin one, or bind one with `at(conversation=…)`")
    return world.conversation(key)


def orient(
    world: Workspace,
    query: str = "",
    *,
    tiers: Sequence[str] | None = None,
    budget: int | None = None,
    refine: Refine | None = None,
) -> Context:
    """Return the context for a turn. The entries that remain after the refinement gate count as retrieved, once."""
    asked = query[: inputs.MAX_QUERY]
    context = world.context(asked, tiers=tiers, budget=budget, count=False, record=False)
    if refine is not None:
        context = refine(asked, context)
    if context.hits:
        retrieval.read.counted(world.ctx, list(context.hits.values()), world.ctx.now)
    retrieval.disclosing.disclose_context(world.ctx, "memory_context", context)
    return context


def recall(
    world: Workspace, query: str, *, tier: str | None = None, limit: int | None = None, seen: Collection[str] = ()
) -> Recall:
    """Read during a turn. Hits that the turn has seen already are returned, and not counted again."""
    found = world.read(query, tier=tier, limit=limit, count=False, sensitive=False)
    new = [hit for hit in found.hits if hit.id not in seen]
    fresh = {hit.id: hit for hit in retrieval.read.counted(world.ctx, new, world.ctx.now)} if new else {}
    return replace(found, hits=tuple(fresh.get(hit.id, hit) for hit in found.hits))


def record(world: Workspace, turn: Turn) -> None:
    """Keep a message verbatim until Persist has seen it. A repeated message is kept once."""
    said = turns(world)
    if turn.id and any(other.id == turn.id for other in said):
        return
    key = f"{_TURN}{len(said) + 1:06}"
    value = {"role": turn.role, "text": turn.text, "id": turn.id or new_id(), "at": world.ctx.now.isoformat()}
    world.write_note(current(world).id, key, value)


def turns(world: Workspace) -> list[Turn]:
    """Return the recorded messages, in order."""
    return _turns_of(world, current(world))


def _turns_of(world: Workspace, conversation: Conversation) -> list[Turn]:
    notes = [note for note in world.notes(conversation.id) if note.key.startswith(_TURN)]
    ordered = sorted(notes, key=lambda note: note.key)
    return [
        Turn(n.value["role"], n.value["text"], datetime.fromisoformat(n.value["at"]), n.value["id"]) for n in ordered
    ]


# Persist


def persist(world: Workspace, said: Sequence[Turn] | None = None, *, distil: Distil | None = None) -> Persisted:
    """Write missed facts and the summary, then end the conversation. If a step fails, raise and end nothing.

    Without `distil`, rules find the facts, and understand requests with the embedder of the workspace.
    The refusal of one text stops neither the others nor the end; the result lists it.
    """
    return _persist(world, current(world), said, distil)


def end(ctx: CallContext, id_or_ref: str) -> Ended:
    """End a conversation as `persist` does: with its missed facts, if its messages were recorded, and its summary."""
    ctx.require_agent("end a conversation")
    found = conversations.conversation(ctx, id_or_ref)
    if found.status is Status.ARCHIVED:
        return closing.end(ctx, found.id)  # raises: it is over
    world = Workspace(closing.context(ctx, found))
    ended = _persist(world, found, None, None).ended
    seen = ended.summary is None or ctx.admits(ended.summary.scope)
    return ended if seen else replace(ended, summary=None)


def end_scope(ctx: CallContext, name: str) -> list[ScopeEnded]:
    """End the bound scope of a tier, named by the tier or by the event that ends it; conversations inside end first.

    The scope of a lifecycle tier ends for good. One that ends by a change of scope is consolidated, and can be used
    again. One that ends by escalation ends entry by entry, when each is promoted.
    """
    ctx.require_agent("end a scope")
    asked = inputs.label(name, "a tier or its event")
    tiers = [tier for tier in ctx.spec.tiers if asked in (tier.name, tier.boundary.event)]
    if not tiers:
        known = ", ".join(f"{tier.name} ({tier.boundary.event})" for tier in ctx.spec.tiers)
        raise InvalidScope(f"no tier or event {asked[:60]!r} in spec {ctx.spec.name!r}", fix=f"use one of: {known}")
    if all(tier.boundary.type == "escalation" for tier in tiers):
        raise InvalidTransition(
            f"tier {tiers[0].name!r} ends by escalation: each entry leaves it when it is promoted",
            fix="promote the entries, or archive them",
        )
    scopes = [(tier, ctx.scope(tier.name)) for tier in tiers if tier.boundary.type != "escalation"]
    return [_end_scope(ctx, tier, scope) for tier, scope in scopes]


def _end_scope(ctx: CallContext, tier: Tier, scope: Scope) -> ScopeEnded:
    talk = scope.value("conversation")
    if talk is not None:
        ended = end(ctx, talk)
        done = (ended.dropped, ended.archived, ended.carried, (ended.conversation.ref_code,))
        return ScopeEnded(tier.name, dict(scope.anchor), tier.boundary.event, True, *done)
    found = []
    if tier.boundary.type == "lifecycle":
        for inner in closing.inside(ctx, scope):
            narrower = ctx.spec.tier(inner.tier)
            talk = inner.value("conversation")
            known = ctx.local.conversation(talk) if talk is not None else None
            if known is not None and known.status is Status.ACTIVE:
                found.append(end(ctx, known.id).conversation.ref_code)
            elif talk is None and narrower.boundary.type == "lifecycle" and not ctx.local.closed([inner]):
                closing.close(ctx, narrower, inner)
    return replace(closing.close(ctx, tier, scope), conversations=tuple(found))


def _persist(
    world: Workspace, conversation: Conversation, said: Sequence[Turn] | None, distil: Distil | None
) -> Persisted:
    heard = tuple(_turns_of(world, conversation) if said is None else said)
    refused: list[RefusedText] = []
    try:
        distilled = (distil or by_rules_with(world.ctx.embedder))(heard) if heard else Distilled(())
        facts = tuple(write_facts(world, conversation.started_at, distilled.facts, refused))
        summary = _write_summary(world, conversation, heard, distilled, refused)
    except Exception as error:
        _record_failure(world, conversation, error)
        raise
    ended = replace(closing.end(world.ctx, conversation.id), summary=summary)
    world.clear_notes(conversation.id, _MARK)
    return Persisted(ended.conversation, facts, summary, ended, tuple(refused))


def resume_pending(
    world: Workspace,
    *,
    alive: Callable[[Conversation], bool] = lambda conversation: False,
    distil: Distil | None = None,
) -> list[Persisted]:
    """Persist conversations of dead sessions. One that fails again stays as it is, with its error event."""
    done = []
    for conversation in world.conversations():
        here = world.at(conversation=conversation.id)
        mark = next((note.value for note in here.notes(conversation.id) if note.key == _MARK), None)
        if mark is None or alive(conversation):
            continue
        agent = mark.get("agent")
        with suppress(LukasaError):
            done.append(persist(here.acting(agent=agent) if agent else here, distil=distil))
    return done


def durable_tier(world: Workspace) -> str:
    """Return the tier for facts that name none."""
    return world.ctx.observed_tier()


def _summary_tier(world: Workspace) -> str | None:
    """Return the narrowest tier that outlives the conversation: the next conversation reads the summary there."""
    lasting: list[Tier] = [tier for tier in world.ctx.reachable() if tier.persistent]
    return lasting[0].name if lasting else None


def write_facts(
    world: Workspace, since: datetime, facts: Sequence[Fact], refused: list[RefusedText]
) -> Iterator[Written]:
    """Write the missed facts, each tier in one commit. A refused fact is listed, and does not stop the others.

    A fact is missed if memory does not hold it, and nobody has retired it `since`.
    """
    reachable = {tier.name for tier in world.ctx.reachable()}
    batches: dict[tuple[str, Trust], list[Fact]] = {}
    for fact in facts:
        try:
            tier = fact.tier if fact.tier in reachable else durable_tier(world)
            if not known(world, since, fact.text):
                batches.setdefault((tier, fact.trust), []).append(fact)
        except (Refused, InvalidInput) as error:
            refused.append(RefusedText(fact.text, error.code, error.message))
    for (tier, trust), missed in batches.items():
        writer = world.acting(trust=trust)
        yield from write_each(writer, tier, [_memo(world, fact) for fact in missed], refused)


def write_each(world: Workspace, tier: str, memos: Sequence[Memo], refused: list[RefusedText]) -> Iterator[Written]:
    """Write texts in one commit, or, if one of them is refused, each that is not."""
    try:
        yield from world.put_many(tier, memos)
    except (Refused, InvalidInput):
        for memo in memos:
            try:
                yield from world.put_many(tier, [memo])
            except (Refused, InvalidInput) as error:
                refused.append(RefusedText(memo.content, error.code, error.message))


def _memo(world: Workspace, fact: Fact) -> Memo:
    owner = world.ctx.agent if fact.private and world.ctx.agent else SHARED
    return Memo(
        fact.text,
        importance=fact.importance,
        lifetime=fact.lifetime,
        owner=owner,
        source=SOURCE,
        gate=fact.gate,
        metadata={UNQUOTED: list(fact.unquoted)} if fact.unquoted else {},
        observed=fact.observed,
    )


def known(world: Workspace, since: datetime, text: str) -> bool:
    """Say whether a text is remembered, or somebody retired it `since`: it must not be brought back."""
    asked = text[: inputs.MAX_QUERY]
    found = world.read(asked, limit=10, held=True, history=True, count=False, rewrite=False, sensitive=True)
    return any(
        _says(redact(hit.entry.content)[0], text)
        and (VISIBILITY[hit.entry.state] is not Visibility.HISTORY or hit.entry.updated_at >= since)
        for hit in found.hits
        if SUMMARY not in hit.entry.tags
    )


def _says(stored: str, text: str) -> bool:
    same = content_key(stored) == content_key(text) or says_the_same(text, stored)
    return same or set(terms(text)) <= set(terms(stored))


def retell(world: Workspace, conversation: Conversation, said: Sequence[Turn]) -> Entry | None:
    """Write the summary of a conversation again, after an observation has stored what was said in it."""
    return _write_summary(world, conversation, said, Distilled(()), [])


def _write_summary(
    world: Workspace, conversation: Conversation, said: Sequence[Turn], distilled: Distilled, refused: list[RefusedText]
) -> Entry | None:
    """Write one summary for a conversation, or none if it would be empty; a second pass may change it.

    It is the conversation's own: it goes to its channel, also if a grant that cannot read the channel ends it.
    """
    home = Workspace(closing.context(replace(world.ctx, reach=None), conversation))
    tier = _summary_tier(home)
    if tier is None:
        return None
    before = next(iter(_written(home, tier, conversation, Filters(tags=frozenset({SUMMARY})))), None)
    if before is not None and not said:
        return before  # it was written when the messages were known
    content = _summary(world, conversation, said, distilled.summary, tier)
    writer = home.acting(trust=distilled.trust) if distilled.summary else home
    if not content:
        return None
    try:
        if before is not None:
            return before if before.content == content else writer.update(before.id, content=content).entry
        return writer.put(tier, content, kind=Kind.EPISODIC, importance=0.4, tags=[SUMMARY], source=SOURCE).entry
    except (Refused, InvalidInput) as error:
        refused.append(RefusedText(content, error.code, error.message))
        return before


def _summary(world: Workspace, conversation: Conversation, said: Sequence[Turn], text: str, tier: str) -> str:
    """Return the summary; empty if nobody remembered or asked anything, for the next session has no use for it.

    Where the spec writes on a decision alone, it tells only what somebody decided to keep.
    """
    kept = [redact(entry.content)[0] for entry in _kept(world, conversation)]
    decided = world.spec.behaviour(tier, Kind.EPISODIC).write.mode is WriteMode.EXPLICIT
    exchanges = sum(turn.role == "user" for turn in said)
    counted = f", {_number(exchanges, 'exchange')}" if said else ""
    head = f"{conversation.started_at:%Y-%m-%d}, conversation {conversation.ref_code}{counted}"
    if text and (kept or not decided):
        return f"{head}: {text}"
    asked = [turn.text for turn in said if turn.role == "user" and turn.text.rstrip().endswith("?")]
    asked = [] if decided else asked
    parts = [f"{name}: {_list(texts)}." for name, texts in (("Remembered", kept), ("Asked", asked)) if texts]
    return f"{head}. {' '.join(parts)}" if parts else ""


def _kept(world: Workspace, conversation: Conversation) -> list[Entry]:
    """Return the conversation's entries that outlive it and everybody in the channel may see, oldest first."""
    lasting = Filters(lifetimes=frozenset({Lifetime.LONG_TERM, Lifetime.SHORT_TERM}))
    found = [e for tier in world.ctx.reachable() for e in _written(world, tier.name, conversation, lasting)]
    shown = [e for e in found if SUMMARY not in e.tags and VISIBILITY[e.state] is Visibility.OPEN]
    return sorted(shown, key=lambda e: (e.created_at, e.id))


def _written(world: Workspace, tier: str, conversation: Conversation, filters: Filters) -> list[Entry]:
    """Return the entries of a tier that came from this conversation, in any state: those that its readers share."""
    wanted = replace(filters, conversations=frozenset({conversation.id}))
    alone = world.spec.readers(tier).agents == "owner"  # there every entry is its agent's
    owners = world.ctx.owners if alone else (SHARED,)
    selection = Selection((world.ctx.scope(tier),), frozenset(Visibility), owners, wanted)
    return world.ctx.store(tier).find(selection, limit=100)


def _list(texts: Sequence[str]) -> str:
    flat = [" ".join(text.split()).rstrip(".") for text in texts[:_SHOWN]]
    shown = "; ".join(f"“{text if len(text) <= _CUT else text[: _CUT - 1] + '…'}”" for text in flat)
    return f"{shown} and {len(texts) - _SHOWN} more" if len(texts) > _SHOWN else shown


def _number(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


def _record_failure(world: Workspace, conversation: Conversation, error: Exception) -> None:
    """Log that Persist failed. If the log cannot be written either, the caller still gets the first error."""
    code = error.code if isinstance(error, LukasaError) else type(error).__name__
    message = error.message if isinstance(error, LukasaError) else ""
    draft = EventDraft("session.persist_failed", conversation.id, {"error": code, "message": message[:200]})
    with suppress(StoreError):
        world.ctx.apply(world.ctx.local, Record(draft))
