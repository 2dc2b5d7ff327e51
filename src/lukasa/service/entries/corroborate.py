"""Checks of entries: somebody confirms one or fails to, and documents change under it.

A confirmation is one more statement of the entry, made against what its documents say now. Failed checks add up until
somebody confirms; enough of them archive the entry, as the spec says for its kind. So does a document that changes or
vanishes. An entry that is archived brings back what it had replaced.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from lukasa.index.matches import Neighbour
from lukasa.model.corroboration import counts_for, failures
from lukasa.model.entry import Confirmation, Document, Entry, SourceLink
from lukasa.model.errors import InvalidTransition
from lukasa.model.values import VISIBILITY, Outcome, State, Visibility
from lukasa.service import inputs
from lukasa.service.call import CallContext, retry_on_conflict
from lukasa.service.citations import citing
from lukasa.service.corpus.canonical import canonical
from lukasa.service.entries.put import Written, neighbours
from lukasa.service.entries.revise import Reopened, commit, corrected, final
from lukasa.service.retrieval import grounds
from lukasa.spec.types import SourceRule
from lukasa.storage.operations import Operation, SaveConfirmation, SaveEntry, Verdict
from lukasa.storage.port import Store
from lukasa.write.corroborate import redrafted, risen
from lukasa.write.plan import Setting

CONFIRMED, DOUBTED, ARCHIVED = "entry.confirmed", "entry.doubted", "entry.archived"


def corroborate(ctx: CallContext, id: str, outcome: Outcome | str, cause: str) -> Written:
    """Record that somebody checked an entry, and do what follows from it."""
    found = inputs.choice(outcome, Outcome, "outcome")

    def attempt() -> Written:
        store, entry = ctx.entry(id)
        if VISIBILITY[entry.state] is Visibility.HISTORY:
            raise InvalidTransition(
                f"entry {entry.id} is {entry.state}: nobody reads it any more",
                fix=f"`lukasa restore {entry.id}` first, if it holds",
            )
        said = store.confirmations([entry.id])
        note = _note(ctx, entry, found)
        if found is Outcome.CONFIRMED:
            return _confirm(ctx, store, entry, [*said, note], cause)
        ctx.require_trust(entry, "dispute")
        return _doubt(ctx, store, entry, [*said, note], cause)

    return final(lambda: retry_on_conflict(attempt))


def _note(ctx: CallContext, entry: Entry, outcome: Outcome) -> Confirmation:
    who, conversation = ctx.origin.principal, ctx.keys.get("conversation") or ""
    speaker = ctx.agent or "user"
    return Confirmation(entry.id, ctx.now, who, speaker, conversation, entry.content, (), ctx.origin.trust, outcome)


def _confirm(ctx: CallContext, store: Store, entry: Entry, said: Sequence[Confirmation], cause: str) -> Written:
    """Renew an entry, and let it rise if it now has the observations for that. A less trusted voice renews nothing."""
    confirmed = replace(entry, merged_count=entry.merged_count + 1, updated_at=ctx.now, version=entry.version + 1)
    cited: list[Operation] = []
    if ctx.origin.trust >= counts_for(entry):
        documents = ctx.local.documents([link.source for link in entry.links]) if entry.links else {}
        confirmed = replace(confirmed, confirmed_at=ctx.now, links=_against(entry, documents))
        cited = citing.vouched(ctx, store, entry)
        if ctx.is_author and (gone := grounds.withdrawn(ctx, [entry]).get(entry.id)):
            # The owner says that it holds all the same: it no longer rests on what was withdrawn.
            left = {one.source for one in gone}
            confirmed = replace(confirmed, derived_from=tuple(id for id in entry.derived_from if id not in left))
        if entry.state is State.STALE:
            confirmed = confirmed.moved(State.ACTIVE, at=ctx.now, cause=cause, actor=str(ctx.actor))
    verdict = Verdict("corroborate", str(Outcome.CONFIRMED), cause)
    save = SaveEntry(confirmed, entry.version, CONFIRMED, cause, (verdict,))
    setting = Setting(ctx.spec, ctx.taxonomy, ctx.now, canonical(ctx, [confirmed.content]), _around(store, confirmed))
    rise = risen(confirmed, said, setting, str(ctx.actor))
    if rise is None:
        commit(ctx, store, confirmed, save, SaveConfirmation(said[-1]), *cited)
        return Written("confirmed", entry.id, confirmed, (verdict,))
    commit(ctx, store, rise.entry, save, SaveConfirmation(said[-1]), *cited, *rise.operations)
    return Written("confirmed", entry.id, rise.entry, (verdict, rise.verdict))


def _against(entry: Entry, documents: Mapping[str, Document]) -> tuple[SourceLink, ...]:
    """The links of an entry, confirmed against what their documents are now."""
    now = {id: document.version for id, document in documents.items() if not document.removed}
    return tuple(replace(link, checked=now.get(link.source, link.checked)) for link in entry.links)


def _around(store: Store, entry: Entry) -> tuple[Neighbour, ...]:
    return tuple(neighbours(store, redrafted(entry, entry.kind), None))


def _doubt(ctx: CallContext, store: Store, entry: Entry, said: Sequence[Confirmation], cause: str) -> Written:
    """Note a failed check, and archive an entry that has failed often enough, or whose documents have moved on."""
    rule, count = ctx.spec.behaviour(entry.scope.tier, entry.kind).lifecycle, failures(said)
    note = SaveConfirmation(said[-1])
    moved_on = grounds.awaits_check(ctx, entry)
    if moved_on or (rule.max_failures and count >= rule.max_failures):
        why = f"{cause}; its sources have changed" if moved_on else f"{cause}; {count} checks in a row failed"
        save, back = archived(ctx, entry, why)
        commit(ctx, store, save.entry, save, note, *back.of(store))
        verdict = Verdict("corroborate", "archived", why)
        return Written("archived", entry.id, save.entry, (verdict,), reopened=back.ids)
    left = f", of {rule.max_failures} that archive it" if rule.max_failures else ""
    verdict = Verdict("corroborate", str(Outcome.FAILED), f"{cause}; failed checks in a row: {count}{left}")
    doubted = replace(entry, updated_at=ctx.now, version=entry.version + 1)
    commit(ctx, store, doubted, SaveEntry(doubted, entry.version, DOUBTED, cause, (verdict,)), note)
    return Written("doubted", entry.id, doubted, (verdict,))


def archived(ctx: CallContext, entry: Entry, cause: str) -> tuple[SaveEntry, Reopened]:
    """Return the change that archives an entry which no longer holds, and the entries that come back."""
    ends = min(entry.invalid_at or ctx.now, ctx.now)
    moved = entry.moved(State.ARCHIVED, at=ctx.now, cause=cause, actor=str(ctx.actor), invalid_at=ends)
    save = SaveEntry(replace(moved, version=entry.version + 1), entry.version, ARCHIVED, cause)
    return save, corrected(ctx, entry, "archived")


def shaken(ctx: CallContext, after: Document) -> list[Operation]:
    """Return what a new version of a document, or its removal, does to the entries that rest on it."""
    ids = dict.fromkeys(link.entry for link in ctx.local.links_to([after.id]))
    found = [e for e in ctx.local.entries(ids).values() if VISIBILITY[e.state] is not Visibility.HISTORY]
    operations: list[Operation] = []
    coming: set[str] = set()
    for entry in found:
        if _rule(ctx, entry, after) != "archive" or (after.removed and _still_stands(ctx, entry, after.id)):
            continue
        what = "is gone" if after.removed else f"is another one now (version {after.version})"
        save, back = archived(ctx, entry, f"document {after.id}, on which it rests, {what}")
        operations.append(save)
        operations += [one for one in back.of(ctx.local) if one.entry.id not in coming]
        coming |= set(back.ids)
    return operations


def _rule(ctx: CallContext, entry: Entry, after: Document) -> SourceRule:
    rule = ctx.spec.behaviour(entry.scope.tier, entry.kind).lifecycle
    if after.removed:
        return rule.source_vanished
    return "keep" if entry.meta else rule.source_changed


def _still_stands(ctx: CallContext, entry: Entry, gone: str) -> bool:
    """Say whether an entry links to another document that is still there."""
    others = {link.source for link in entry.links} - {gone}
    return any(not document.removed for document in ctx.local.documents(others).values()) if others else False
