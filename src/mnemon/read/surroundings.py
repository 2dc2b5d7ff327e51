"""What stands beside an entry. An episode is understood from what came before and after it: "Yes, last Tuesday!"
answers the question that somebody asked a line earlier. A fact or a rule stands by itself."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta

from mnemon.model.entry import Entry
from mnemon.model.values import Kind
from mnemon.read.signals import Signal, leaning

LENDERS = 20  # only the strongest candidates lend: what hardly matches has nothing to give
REACH = 2  # entries before and after
AFTER, BEFORE = 0.5, 0.3  # what is lent to an entry that came after the match, and to one that came before it
TOGETHER = timedelta(minutes=30)  # where no conversation is named, what was written within this is of one occasion


def lenders(strengths: Mapping[str, float], entries: Mapping[str, Entry]) -> list[str]:
    """The candidates whose neighbours are worth looking at: matching episodes, the best first."""
    matching = [id for id, entry in entries.items() if _is_episode(entry) and strengths.get(id, 0.0) > 0]
    return sorted(matching, key=lambda id: (-strengths[id], id))[:LENDERS]


def context(
    strengths: Mapping[str, float], beside: Mapping[str, Mapping[str, int]], entries: Mapping[str, Entry]
) -> Signal:
    """What each entry borrows from the matches beside it. `beside` gives steps: positive, written after the match."""
    scores: dict[str, float] = {}
    for lender, others in beside.items():
        for id, steps in others.items():
            if id in entries and lender in entries and _together(entries[lender], entries[id]):
                lent = (AFTER if steps > 0 else BEFORE) * strengths[lender] * leaning(entries[id])
                scores[id] = scores.get(id, 0.0) + lent
    return Signal("context", {id: score for id, score in scores.items() if score > 0}, own_scale=True)


def _is_episode(entry: Entry) -> bool:
    return entry.kind is Kind.EPISODIC and entry.path is None


def _together(a: Entry, b: Entry) -> bool:
    if not _is_episode(b):
        return False
    return a.conversation is not None or abs(a.created_at - b.created_at) <= TOGETHER
