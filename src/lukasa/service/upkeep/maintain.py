"""Maintenance: copies folded, the never recalled grown stale, the stale forgotten, and what there is counted.

Twice is as once: a second run finds nothing to do and writes no event.
"""

from __future__ import annotations

from typing import Any

from lukasa.model.values import VISIBILITY, Kind, State, Visibility
from lukasa.service.call import CallContext
from lukasa.service.jobs.task import Task
from lukasa.service.upkeep.merge import merge
from lukasa.service.upkeep.scope import COMPLETED, Place, Tell, Upkeep, active, places, silent, vectors, weighed
from lukasa.upkeep.promotion import aged


def maintain(
    ctx: CallContext, task: Task | None, *, tell: Tell = silent, tiers: list[str] | None = None
) -> dict[str, Any]:
    """O7. Without a task nothing is changed: the answer says what would be."""
    chosen = tiers if task is None else task.job.payload.get("tiers")
    if task is not None and task.journaled(COMPLETED):
        return dict(task.output(COMPLETED))
    up = Upkeep(ctx, task, tell)
    for place in places(ctx, chosen):
        _maintain(up, place)
    return up.finish(**_statistics(ctx))


def _maintain(up: Upkeep, place: Place) -> None:
    ctx = up.ctx
    rules = {kind: ctx.spec.behaviour(place.tier, kind).consolidation for kind in Kind}
    if not any(rule.style == "merge" or rule.stale_after_days or rule.forget_after_days for rule in rules.values()):
        return
    found = weighed(ctx, place)
    up.say(f"{place.tier}: {len(found):,} entries")
    near = vectors(ctx, place, found)
    for kind, rule in rules.items():
        mine = [w for w in found if w.entry.kind is kind]
        if rule.style == "merge":
            fresh = active(mine)
            left = merge(up, place, fresh, near, rule)
            mine = left + [w for w in mine if w.entry.state is State.STALE]
        moves = aged(mine, rule, ctx.now)
        for what in ("entry.stale", "entry.forgotten", "entry.restored"):
            up.move(place.store, what.removeprefix("entry."), [m for m in moves if m.action == what])


def _statistics(ctx: CallContext) -> dict[str, int]:
    """How much there is, by how far it can be seen."""
    totals = dict.fromkeys(Visibility, 0)
    for count in ctx.local.census():
        for state, number in count.states.items():
            totals[VISIBILITY[state]] += number
    return {f"entries_{visibility}": number for visibility, number in totals.items()}
