"""Corroboration: which statements are independent of one another, and how often checks have failed.

An observation is one voice in one place. Repetition adds none: whoever says a thing again in the same place has said it
once. In one conversation all agents are one voice, because each of them may be a copy of another one and hears what
the others say. A recorded session is one observation, whoever speaks in it. People whom the owner names are voices of
their own; a speaker that an agent names is only the agent's word.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from lukasa.model.entry import Confirmation, Entry, speaker_name
from lukasa.model.transcript import Quote
from lukasa.model.values import Outcome, Trust

Observation = tuple[str, ...]


def counts_for(entry: Entry) -> Trust:
    """The least trust of a statement that corroborates an entry: the entry's own, or an agent's.

    Less trusted repetitions change nothing, so no entry gets more support than its sources can give.
    """
    return min(entry.trust, Trust.AGENT)


def observations(entries: Iterable[Entry], said: Iterable[Confirmation]) -> set[Observation]:
    """The independent observations of entries that say the same, and of the statements that repeat them."""
    found: set[Observation] = set()
    floors = {}
    for entry in entries:
        floors[entry.id] = counts_for(entry)
        origin = entry.origin
        found |= set(_seen(origin.principal, entry.source, entry.conversation or "", entry.evidence, entry.trust))
    for again in said:
        if again.outcome is Outcome.CONFIRMED and again.trust >= floors.get(again.entry, Trust.AUTHOR):
            found |= set(_seen(again.principal, again.speaker, again.conversation, again.quotes, again.trust))
    return found


def _seen(
    principal: str, speaker: str, conversation: str, quotes: Collection[Quote], trust: Trust
) -> Iterator[Observation]:
    if quotes:
        yield from (("session", quote.transcript) for quote in quotes)
    elif trust is Trust.AUTHOR:
        yield "person", principal, speaker_name(speaker, principal), conversation
    elif conversation:
        yield "agents", conversation
    else:
        yield "agent", principal


def failures(said: Iterable[Confirmation]) -> int:
    """How many checks have failed since somebody last confirmed the entry."""
    count = 0
    for one in said:
        count = count + 1 if one.outcome is Outcome.FAILED else 0
    return count
