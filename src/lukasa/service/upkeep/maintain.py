"""Maintenance: merge copies, mark entries that nobody retrieves as stale, forget stale ones, and count the rest.

A second run finds nothing to do and writes no event.
"""

from __future__ import annotations

from typing import Any

from lukasa.model.values import VISIBILITY, Kind, State, Visibility
from lukasa.service.admin.stats import totals
from lukasa.service.call import CallContext
from lukasa.service.jobs.task import Task
from lukasa.service.upkeep.consolidate import merge
from lukasa.service.upkeep.run import COMPLETED, Target, Tell, Upkeep, active, silent, targets, vectors, weighed
from lukasa.upkeep.promotion import aged


def maintain(
    ctx: CallContext, task: Task | None, *, tell: Tell = silent, tiers: list[str] | None = None
) -> dict[str, Any]:
    """O7: maintain tiers. Without a task, change nothing and count what would change."""
    chosen = tiers if task is None else task.job.payload.get("tiers")
    if task is not None and task.journaled(COMPLETED):
        return dict(task.output(COMPLETED))
    up = Upkeep(ctx, task, tell)
    for target in targets(ctx, chosen):
        _maintain(up, target)
    return up.finish(**_statistics(ctx))


def _maintain(up: Upkeep, target: Target) -> None:
    ctx = up.ctx
    behaviours = {kind: ctx.spec.behaviour(target.tier, kind) for kind in Kind}
    rules = {kind: behaviour.consolidation for kind, behaviour in behaviours.items()}
    if not any(rule.style == "merge" or rule.stale_after_days or rule.forget_after_days for rule in rules.values()):
        return
    found = weighed(ctx, target)
    up.say(f"{target.tier}: {len(found):,} entries")
    near = vectors(ctx, target, found)
    for kind, rule in rules.items():
        mine = [w for w in found if w.entry.kind is kind]
        if rule.style == "merge":
            fresh = active(mine)
            left = merge(up, target, fresh, near, rule)
            mine = left + [w for w in mine if w.entry.state is State.STALE]
        moves = aged(mine, rule, behaviours[kind].lifecycle.policy, ctx.now)
        for what in ("entry.stale", "entry.forgotten", "entry.restored"):
            up.move(target.store, what.removeprefix("entry."), [m for m in moves if m.action == what])


def _statistics(ctx: CallContext) -> dict[str, Any]:
    """Count all entries by visibility; of those in recall the stale ones, merged repetitions and categories."""
    shares = ctx.local.shares(ctx.now)
    seen = dict.fromkeys(Visibility, 0)
    for share in shares:
        seen[VISIBILITY[share.state]] += share.count
    found = totals(shares)
    about = {"stale": found.stale, "merged": found.merged, "by_category": dict(found.categories)}
    return {**{f"entries_{name}": n for name, n in seen.items()}, **{f"entries_{name}": n for name, n in about.items()}}
