"""Copies folded into the statement that is kept, and contradictions that were never put side by side settled."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from lukasa.model.entry import Entry
from lukasa.model.values import State
from lukasa.service.call import CallContext
from lukasa.service.upkeep.scope import Place, Upkeep, without
from lukasa.spec.types import Consolidation
from lukasa.storage.operations import SaveEntry, Verdict
from lukasa.upkeep.weighed import Copies, Weighed, copies, outdated, recency, support
from lukasa.write.plan import MOST_EVIDENCE, Setting, retire

if TYPE_CHECKING:
    from lukasa.ports import Vector


def merge(
    up: Upkeep, place: Place, found: Sequence[Weighed], near: Mapping[str, Vector], rule: Consolidation
) -> list[Weighed]:
    """Each group of copies is one commit; the answer is what is left."""
    order = recency if rule.style == "supersession" else support
    gone: set[str] = set()
    for group in copies(found, near, rule.merge_cosine, order):
        saves = _fold(up.ctx, group)
        if up.commit(place.store, "merged", saves, main=group.kept.id):
            gone |= {w.id for w in group.copies} | {group.kept.id}
    # The one that was kept has a new version: this run leaves it alone from here on.
    return without(found, gone)


def _fold(ctx: CallContext, group: Copies) -> list[SaveEntry]:
    kept, now = group.kept.entry, ctx.now
    cause = f"says the same as {kept.id}"
    gone = [_superseded(ctx, w.entry, kept, cause) for w in group.copies]
    members = [kept, *(w.entry for w in group.copies)]
    evidence = tuple(dict.fromkeys(quote for e in members for quote in e.evidence))[:MOST_EVIDENCE]
    trusted = [e for e in members if e.trust >= kept.trust]  # a less trusted voice lends neither weight nor labels
    fuller = replace(
        kept,
        merged_count=sum(e.merged_count for e in members),
        confirmed_at=max(e.confirmed_at for e in members),
        importance=max(e.importance for e in trusted),
        tags=tuple(dict.fromkeys(tag for e in trusted for tag in e.tags)),
        evidence=evidence,
        updated_at=now,
        version=kept.version + 1,
    )
    ledger = (
        Verdict("merge", "kept", "best supported of those that say the same", {"targets": [s.entry.id for s in gone]}),
    )
    return [*gone, SaveEntry(fuller, kept.version, "entry.merged", f"{len(gone)} copies folded in", ledger)]


def _superseded(ctx: CallContext, entry: Entry, by: Entry, cause: str) -> SaveEntry:
    moved = entry.moved(State.SUPERSEDED, at=ctx.now, cause=cause, actor=str(ctx.actor), superseded_by=by.id)
    return SaveEntry(replace(moved, version=entry.version + 1), entry.version, "entry.superseded", cause)


def settle(up: Upkeep, place: Place, found: Sequence[Weighed], near: Mapping[str, Vector]) -> list[Weighed]:
    """The latest of contradicting statements holds; what is less trusted never overrules what is more."""
    setting = Setting(up.ctx.spec, up.ctx.taxonomy, up.ctx.now)
    gone: set[str] = set()
    for old, new, why in outdated(found, near):
        save = retire(old.entry, new.entry, setting, f"{why}; the later one holds", str(up.ctx.actor))
        if up.commit(place.store, "superseded", [save]):
            gone.add(old.id)
    return without(found, gone)
