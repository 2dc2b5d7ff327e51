"""Gather: all that memory holds about a question, in groups and in the order of time, within a budget of tokens."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from msgspec import Struct
from msgspec.structs import replace

from lukasa.model.errors import InvalidQuery
from lukasa.model.text import estimate_tokens
from lukasa.read import reasons
from lukasa.read.coverage import GROUPINGS, Coverage, Grouping, grouped, related, wanted_coverage
from lukasa.read.rank import Hit
from lukasa.service import inputs
from lukasa.service.call import CallContext
from lukasa.service.retrieval.read import (
    NOTHING_FOUND,
    ReadRequest,
    counted,
    is_nothing,
    outgoing,
    search,
    with_grounds,
)

MOST = 200  # hits that are looked at; a question about more of them is a question about everything
BUDGET = 2_000
FRAME = 8  # tokens of the date and the source of a line


class Gathering(Struct, frozen=True):
    """Hits that belong together: of a day or month, of a source, or of a tier; in the order of time."""

    title: str
    since: datetime
    until: datetime
    hits: tuple[Hit, ...]


class Gathered(Struct, frozen=True):
    """What memory holds about a question: groups in the order of time, the tokens of their texts, and what was left.

    `wanted` is how the question was understood: a set, a sequence or a summary; empty if it asks for one answer.
    `beyond` counts related hits that the budget had no room for.
    """

    query: str
    wanted: Coverage | str
    groups: tuple[Gathering, ...]
    tokens: int
    budget: int
    beyond: int
    confidence: float | None
    notes: tuple[str, ...] = ()

    @property
    def hits(self) -> tuple[Hit, ...]:
        """All hits, in the order of the groups."""
        return tuple(hit for group in self.groups for hit in group.hits)

    def because(self, hit: Hit) -> str:
        """Say in one sentence why a hit was found."""
        return reasons.because(hit.content, hit.entry.source, self.query, hit.score.match.contributions)

    def __len__(self) -> int:
        return sum(len(group.hits) for group in self.groups)


def gather(ctx: CallContext, question: ReadRequest, *, budget: int = BUDGET, by: Grouping | None = None) -> Gathered:
    """Return what belongs to the best answers, up to the budget, grouped and dated.

    The best ones are taken first, so a small budget still holds them; then time decides the order. Without `by` they
    are grouped by day, or by month if they span more than sixty days.
    """
    inputs.limit(budget, 1_000_000)
    if by is not None and by not in GROUPINGS:
        raise InvalidQuery(f"unknown grouping {str(by)[:60]!r}", fix=f"use one of: {', '.join(GROUPINGS)}")
    notes: list[str] = []
    with ctx.local.snapshot() as local:
        here = replace(ctx, local=local)
        found = search(here, replace(question, limit=question.limit or MOST, profile="deep"))
        belonging = [found.kept[at] for at in related([hit.score.match.value for hit in found.kept])]
        chosen, tokens = _within(belonging, budget)
        hits = outgoing(here, with_grounds(here, counted(ctx, chosen, ctx.now) if chosen else []), notes)
    groups = _groups(hits, by or _grouping(hits))
    nothing = is_nothing(ctx, found)
    told = (*([NOTHING_FOUND] if nothing and hits else []), *notes, *found.notes)
    ctx.note(hits=len(hits), candidates=found.looked_at, tokens=tokens, budget=budget)
    query, wanted = found.question.query, wanted_coverage(found.question.query) or ""
    return Gathered(query, wanted, groups, tokens, budget, len(belonging) - len(hits), found.confidence, told)


def _within(hits: Sequence[Hit], budget: int) -> tuple[list[Hit], int]:
    """Return the hits that fit, best first, and their tokens. One that does not fit leaves its room to later ones."""
    chosen, used = [], 0
    for hit in hits:
        cost = FRAME + estimate_tokens(hit.content) + sum(FRAME + estimate_tokens(one.content) for one in hit.earlier)
        if used + cost <= budget:
            chosen.append(hit)
            used += cost
    return chosen, used


def said_at(hit: Hit) -> datetime:
    """Return the time that an entry is about: since when it holds, or when it was written."""
    return (hit.entry.valid_at or hit.entry.created_at).astimezone(UTC)


def _grouping(hits: Sequence[Hit]) -> Grouping:
    times = [said_at(hit) for hit in hits]
    return "month" if times and (max(times) - min(times)).days > 60 else "day"


def _groups(hits: Sequence[Hit], by: Grouping) -> tuple[Gathering, ...]:
    def title(hit: Hit) -> tuple[str, datetime]:
        at = said_at(hit)
        named = {
            "day": f"{at:%Y-%m-%d}",
            "month": f"{at:%Y-%m}",
            "source": hit.entry.source,
            "tier": hit.entry.scope.tier,
        }
        return named[by] or "unknown", at

    return tuple(
        Gathering(group.title, group.since, group.until, tuple(hits[at] for at in group.members))
        for group in grouped(hits, title)
    )
