"""What stands beside an entry. A line of a talk is understood from what came before and after it: "Yes, last Tuesday!"
answers the question that somebody asked a line earlier. A fact or a rule stands by itself, unless it was said in
a talk: it is worded as one speaks to another, or stands in a conversation beside what is."""

from __future__ import annotations

from collections.abc import Mapping

from lukasa.model.candidate import Candidate
from lukasa.model.moments import HOUR
from lukasa.read.signals import SHORT, Signal, leaning

LENDERS = 12  # only the strongest candidates lend: what hardly matches has nothing to give
REACH = 2  # entries before and after
AFTER, BEFORE = 0.5, 0.3  # what is lent to an entry that came after the match, and to one that came before it
TOGETHER = HOUR // 2  # where no conversation is named, what was written within this is of one occasion


def lenders(strengths: Mapping[str, float], candidates: Mapping[str, Candidate]) -> list[str]:
    """The candidates whose neighbours are worth looking at: matching lines of talks, the best first."""
    strong = [
        (-strength, id)
        for id, strength in strengths.items()
        if strength > 0 and (candidate := candidates.get(id)) is not None and candidate.said
    ]
    return [id for _, id in sorted(strong)[:LENDERS]]


def context(
    strengths: Mapping[str, float], beside: Mapping[str, Mapping[str, int]], candidates: Mapping[str, Candidate]
) -> Signal:
    """What each entry borrows from the matches beside it. `beside` gives steps: positive, written after the match."""
    scores: dict[str, float] = {}
    for lender, others in beside.items():
        candidate = candidates.get(lender)
        if candidate is None:
            continue
        after, before = AFTER * strengths[lender], BEFORE * strengths[lender]
        talk, early, late = (
            candidate.conversation is not None,
            candidate.created_at - TOGETHER,
            candidate.created_at + TOGETHER,
        )
        for id, steps in others.items():
            other = candidates.get(id)
            if other is None or other.filed:
                continue
            if talk or (other.said and early <= other.created_at <= late):
                lent = after if steps > 0 else before
                scores[id] = scores.get(id, 0.0) + (lent if other.chars <= SHORT else lent * leaning(other))
    return Signal("context", {id: score for id, score in scores.items() if score > 0}, own_scale=True)
