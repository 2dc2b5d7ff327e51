"""What became of the sentences of a session: kept, held, merged, changed since, or discarded, each with its reason.

Entries and confirmations know the words that they come from. A discarded sentence left no row, only an event without
its text; the journal of the job that observed the session has the sentence, and a commitment ties the two together.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, Literal

from msgspec import Struct

from lukasa.model.entry import Entry
from lukasa.model.errors import InvalidInput
from lukasa.model.job import Job
from lukasa.model.text import commitment
from lukasa.model.transcript import Transcript
from lukasa.model.values import VISIBILITY, Gate, State, Visibility
from lukasa.observe import observation
from lukasa.observe.observation import Observation
from lukasa.service.admin import looking
from lukasa.service.call import CallContext
from lukasa.service.sessions import transcripts
from lukasa.storage.port import Store

Became = Literal["kept", "held", "merged", "retired", "discarded"]
_EVENTS = 100_000


class Sentence(Struct, frozen=True):
    """A sentence of a message, by its span, and what became of it. `entry` and `content` are empty if it was discarded.

    `retired` says that it was an entry once; `state` says how it ended.
    """

    message: str
    start: int
    end: int
    became: Became
    reason: str
    entry: str = ""
    content: str = ""
    state: str = ""
    tier: str = ""


def learned(ctx: CallContext, id_or_key: str) -> list[Sentence]:
    """Return the sentences of a session that were looked at, in the order in which they were said."""
    ctx.require_author("see what became of a session")
    found = transcripts.transcript(ctx, id_or_key)
    places = {one.id: one.place for one in ctx.local.utterances(found.id)}
    made = [*_entries(ctx, found)]
    made += _merged(ctx, found, {(one.message, one.start, one.end) for one in made})
    made += _discarded(ctx, found, {(one.message, one.start, one.end) for one in made})
    return sorted(made, key=lambda one: (places.get(one.message, len(places)), one.start, one.end, one.entry))


def counts(ctx: CallContext, sessions: Sequence[Transcript]) -> dict[str, dict[str, int]]:
    """Count the entries that each session led to: kept, held and retired."""
    ctx.require_author("see what became of sessions")
    wanted = {one.id for one in sessions}
    found: dict[str, Counter[str]] = {id: Counter() for id in wanted}
    for _, entry in _observed(ctx):
        for id in {quote.transcript for quote in entry.evidence} & wanted:
            found[id][_became(entry)] += 1
    return {id: dict(counter) for id, counter in found.items()}


def _observed(ctx: CallContext) -> Iterator[tuple[Store, Entry]]:
    """Give the entries of the workspace and of the account that were observed in a session."""
    for store in (ctx.local, ctx.account):
        for entry in looking.entries_of(store):
            if entry.evidence and not entry.damaged:
                yield store, entry


def _became(entry: Entry) -> Became:
    if entry.state is State.HELD:
        return "held"
    return "kept" if VISIBILITY[entry.state] is Visibility.OPEN else "retired"


def _entries(ctx: CallContext, found: Transcript) -> Iterator[Sentence]:
    for _, entry in _observed(ctx):
        for quote in entry.evidence:
            if quote.transcript == found.id and quote.end > quote.start:
                yield _of(entry, quote.message, quote.start, quote.end, _became(entry), _reason(entry))


def _reason(entry: Entry) -> str:
    if entry.transition is not None:
        return entry.transition.cause
    return entry.gate.reason if entry.gate is not None else ""


def _of(entry: Entry, message: str, start: int, end: int, became: Became, reason: str) -> Sentence:
    state, tier = str(entry.state), entry.scope.tier
    return Sentence(message, start, end, became, reason, entry.id, entry.content, state, tier)


def _merged(ctx: CallContext, found: Transcript, known: set[tuple[str, int, int]]) -> Iterator[Sentence]:
    """Give the sentences that repeated an entry, which counts them as confirmations."""
    for store in (ctx.local, ctx.account):
        entries = {entry.id: entry for entry in looking.entries_of(store) if entry.merged_count > 1}
        for one in store.confirmations(list(entries)) if entries else ():
            for quote in one.quotes:
                span = (quote.message, quote.start, quote.end)
                if quote.transcript == found.id and span not in known:
                    known.add(span)
                    yield _of(entries[one.entry], *span, "merged", "memory already had this statement")


def _discarded(ctx: CallContext, found: Transcript, known: set[tuple[str, int, int]]) -> Iterator[Sentence]:
    secret, reasons = ctx.local.secret(), _reasons(ctx)
    for fact in _facts(ctx, found):
        span = (fact.message, fact.start, fact.end)
        if span in known or fact.end <= fact.start:
            continue
        known.add(span)
        reason = reasons.get(commitment(secret, fact.text), "")
        if reason or fact.gate is Gate.DISCARD:
            yield Sentence(*span, "discarded", reason or fact.reason or "the observer discarded it")


def _reasons(ctx: CallContext) -> dict[str, str]:
    events = ctx.local.events(action="entry.discarded", limit=_EVENTS)
    return {str(one.detail.get("commitment")): str(one.detail.get("cause", "")) for one in events if one.detail}


def _facts(ctx: CallContext, found: Transcript) -> Iterator[Observation]:
    """Give what observers proposed, from the journals of their jobs; what cannot be read any more is left out."""
    for job in _jobs(ctx, found):
        said = ctx.local.utterances(found.id, start=int(job.payload.get("start", 0)))
        for step, answer in ctx.local.steps(job.id).items():
            if step.startswith("rules:"):
                yield from (Observation.of(one) for one in answer)
            elif step.startswith("ask:"):
                yield from _answered(answer, said)


def _jobs(ctx: CallContext, found: Transcript) -> list[Job]:
    observed = ctx.local.jobs(kind=transcripts.KIND, limit=10_000)
    return [job for job in observed if job.payload.get("transcript") == found.id]


def _answered(answer: Any, said: Sequence[Any]) -> Sequence[Observation]:
    try:
        return observation.read(answer, said, ()).facts
    except InvalidInput:
        return ()
