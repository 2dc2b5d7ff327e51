"""Verify: check what entries cite, keep the outcomes, and tell what no longer holds.

An outcome changes no memory, so it leaves no event; a verdict that differs from the last one does. Reads never wait for
this: they look for themselves, and write nothing.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from lukasa.model.citation import (
    AMISS,
    CHECKED,
    HOLDS,
    MOST_CITATIONS,
    Citation,
    CitationCheck,
    CitationVerdict,
    Cited,
    CitedNow,
    placed,
)
from lukasa.model.entry import Entry
from lukasa.model.errors import InvalidInput
from lukasa.model.events import EventDraft
from lukasa.model.values import VISIBILITY, Trust, Visibility
from lukasa.read.rank import Provenance
from lukasa.service import inputs
from lukasa.service.call import CallContext, retry_on_conflict
from lukasa.service.citations import citing
from lukasa.service.citations.checking import Look, Seen, look, passed, told
from lukasa.service.jobs.task import Task
from lukasa.service.retrieval.grounds import resting
from lukasa.storage.operations import Operation, Record, SaveChecks
from lukasa.storage.port import Store

PAGE = 500
SECONDS = 120.0
MOST_WHY = 200


class EntryCitations(Struct, frozen=True):
    """What an entry cites, with the verdicts of now; its documents are beside it, as they are now."""

    entry: Entry
    citations: tuple[CitedNow, ...]
    documents: tuple[Provenance, ...] = ()

    @property
    def amiss(self) -> bool:
        """Whether something that the entry cites has changed or is gone."""
        return any(one.verdict in AMISS for one in self.citations) or any(
            one.status != "current" for one in self.documents
        )


class Verification(Struct, frozen=True):
    """What a verification found. `unlooked` counts entries that were left when the time was over."""

    entries: tuple[EntryCitations, ...]
    unlooked: int = 0

    @property
    def counts(self) -> dict[str, int]:
        found = Counter(str(one.verdict) for entry in self.entries for one in entry.citations)
        found.update(DOCUMENT_STATUS[one.status] for entry in self.entries for one in entry.documents)
        return {str(verdict): found[verdict] for verdict in CitationVerdict}

    @property
    def amiss(self) -> tuple[EntryCitations, ...]:
        return tuple(one for one in self.entries if one.amiss)


DOCUMENT_STATUS = {
    "current": CitationVerdict.VERIFIED,
    "changed": CitationVerdict.CHANGED,
    "vanished": CitationVerdict.GONE,
}


# Citing


def cite(ctx: CallContext, id: str, cites: Sequence[citing.Cite | str], drop: Sequence[str]) -> EntryCitations:
    """Add citations to an entry, and take others away. A document becomes a link of the entry."""
    pinned = citing.pins(ctx, cites)
    if pinned.links:
        raise InvalidInput(
            f"document {pinned.links[0][:60]!r} is linked when an entry is written",
            fix="put the entry with `--cite document:ID`, or `--link ID`",
        )

    def attempt() -> EntryCitations:
        store, entry = ctx.entry(id)
        ctx.require_trust(entry, "cite for")
        before = store.citations([entry.id])
        going = {_found(before, spelling).key for spelling in drop}
        left = [c for c in before if c.key not in going]
        fresh = {c.key: c for c in pinned.citations}
        kept = [c for c in left if c.key not in fresh]
        if len(kept) + len(fresh) > MOST_CITATIONS:
            raise InvalidInput(
                f"entry {entry.id} would have {len(kept) + len(fresh)} citations",
                fix=f"keep at most {MOST_CITATIONS}; `--drop` takes one away",
            )
        operations = citing.saved(entry.id, [*kept, *fresh.values()], before)
        if operations:
            ctx.apply(store, *operations)
        return of_entries(ctx, [entry])[0]

    done = retry_on_conflict(attempt)
    if any(one.project for one in pinned.citations):
        citing.remember(ctx)
    return done


def _found(before: Sequence[Citation], spelling: str) -> Citation:
    for one in before:
        if spelling in (one.id, one.spelling, one.label):
            return one
    there = ", ".join(c.spelling for c in before[:8]) or "nothing"
    raise InvalidInput(f"the entry does not cite {spelling[:100]!r}", fix=f"it cites {there}")


def cite_again(ctx: CallContext, id: str) -> EntryCitations:
    """Pin everything that an entry cites as it is now: somebody has looked, and the entry still holds."""

    def attempt() -> EntryCitations:
        store, entry = ctx.entry(id)
        ctx.require_trust(entry, "cite for")
        operations, left = citing.again(ctx, store, entry)
        if not operations and left:
            raise InvalidInput(
                f"nobody can look at {left[0].spelling[:100]} here, or it is gone",
                fix="work in its project's folder; cite something else, and take it away with --drop",
            )
        if operations:
            ctx.apply(store, *operations)
        return of_entries(ctx, [entry])[0]

    return retry_on_conflict(attempt)


# Verifying


def of_entries(ctx: CallContext, entries: Sequence[Entry], looks: Look | None = None) -> list[EntryCitations]:
    """Return what entries cite with the verdicts of now, in their order; nothing is kept."""
    found = []
    shared = looks or Look(ctx)
    documents = resting(ctx, entries)
    for entry, citations, checks in _with_checks(ctx, entries):
        each = replace(shared, stored=checks)
        seen = tuple(passed(ctx, told(each, c, look(each, c))) for c in citations)
        about = documents.get(entry.id)
        found.append(EntryCitations(ctx.shown(entry), seen, about.provenance if about is not None else ()))
    return found


def _with_checks(
    ctx: CallContext, entries: Sequence[Entry]
) -> Iterator[tuple[Entry, list[Citation], dict[str, CitationCheck]]]:
    for store in (ctx.local, ctx.account):
        here = [entry for entry in entries if ctx.store(entry.scope.tier) is store]
        ids = [entry.id for entry in here]
        citations = store.citations(ids) if ids else []
        checks = store.citation_checks(list({c.entry for c in citations})) if citations else []
        for entry in here:
            mine = [c for c in citations if c.entry == entry.id]
            yield entry, mine, {c.citation: c for c in checks if c.entry == entry.id}


def verify(
    ctx: CallContext,
    ids: Sequence[str],
    *,
    everything: bool = False,
    known: bool = True,
    outputs: Mapping[str, str | None] | None = None,
    seconds: float = SECONDS,
) -> Verification:
    """Check what entries cite, and keep the outcomes: the named ones, else all that cite the project at hand.

    With `everything`, all that cite anything. With `known`, projects that are not at hand are looked for where they
    were last on this machine.
    """
    until = time.monotonic() + seconds
    looks = Look(ctx, known=known, outputs=outputs or {})
    found: list[EntryCitations] = []
    unlooked = 0
    for store, entries in _asked(ctx, ids):
        if time.monotonic() > until:
            unlooked += len(entries)
            continue
        for one in _verified(ctx, store, entries, looks, everything=everything or bool(ids)):
            found.append(one)
    if any(_is_here(ctx, c.citation) for one in found for c in one.citations):
        citing.remember(ctx)
    ctx.note(entries=len(found), amiss=sum(one.amiss for one in found))
    return Verification(tuple(found), unlooked)


def _asked(ctx: CallContext, ids: Sequence[str]) -> Iterator[tuple[Store, list[Entry]]]:
    """Yield the entries to verify by store, page by page; nobody reads what is retired, so it is left out."""
    if ids:
        for id in dict.fromkeys(inputs.several(ids, "ids")):
            store, entry = ctx.entry(id)
            yield store, [entry]
        return
    for store in (ctx.local, ctx.account):
        seen: set[str] = set()
        after: str | None = None
        while page := store.newest_citations(limit=PAGE, after=after):
            after = page[-1].id
            new = [id for id in dict.fromkeys(c.entry for c in page) if id not in seen]
            seen.update(new)
            entries = store.entries(new).values()
            mine = [e for e in entries if ctx.sees(e) and VISIBILITY[e.state] is not Visibility.HISTORY]
            yield store, mine


def _verified(
    ctx: CallContext, store: Store, entries: Sequence[Entry], looks: Look, *, everything: bool
) -> list[EntryCitations]:
    out, kept = [], list[Operation]()
    documents = resting(ctx, entries)
    for entry, citations, checks in _with_checks(ctx, entries):
        about = documents.get(entry.id)
        links = about.provenance if about is not None else ()
        if not everything and not any(_is_here(ctx, c) for c in citations):
            continue
        each = replace(looks, stored=checks)
        seen = [(c, look(each, c)) for c in citations]
        kept += outcomes(ctx, seen, checks)
        now = tuple(passed(ctx, told(each, c, one)) for c, one in seen)
        out.append(EntryCitations(ctx.shown(entry), now, links))
    if kept and ctx.origin.trust >= Trust.AGENT:
        ctx.apply(store, *kept)
    return out


def _is_here(ctx: CallContext, citation: Citation) -> bool:
    return ctx.project is not None and bool(citation.project) and ctx.project.is_called(citation.project)


def outcomes(
    ctx: CallContext, seen: Iterable[tuple[Citation, Seen]], before: Mapping[str, CitationCheck]
) -> list[Operation]:
    """Return the operations that keep what looks found, with an event for each verdict that is another one now."""
    checks, events = [], list[Operation]()
    for citation, one in seen:
        if one.verdict is CitationVerdict.UNCHECKED:
            continue
        last = before.get(citation.id)
        held = one.verdict in HOLDS
        verified = ctx.now if held else last.verified_at if last is not None else citation.at if citation.hash else None
        place = (one.path, one.line, one.why[:MOST_WHY])
        checks.append(CitationCheck(citation.id, citation.entry, one.verdict, ctx.now, *place, verified))
        was = last.verdict if last is not None else CitationVerdict.VERIFIED
        if was is not one.verdict:
            about = {"citation": citation.id, "verdict": str(one.verdict), "was": str(was)}
            events.append(Record(EventDraft(CHECKED, citation.entry, about)))
    return [SaveChecks(tuple(checks)), *events] if checks else []


def job(ctx: CallContext, task: Task) -> dict[str, Any]:
    """Verify everything in the background, in the folders where its projects were last on this machine."""
    if not task.journaled("verified"):
        done = verify(ctx, (), everything=True)
        counts = {**done.counts, "entries": len(done.entries), "unlooked": done.unlooked}
        task.commit("verified", counts, task.telemetry("verify.completed", metadata=counts))
    return dict(task.output("verified"))


# What no longer holds


def amiss(ctx: CallContext, limit: int) -> list[tuple[Entry, tuple[str, ...]]]:
    """Return entries in force of which the last check found something changed or gone, each with what that is."""
    found: dict[str, tuple[Entry, tuple[str, ...]]] = {}
    for store in (ctx.local, ctx.account):
        checks = {check.citation: check for check in store.checks_that_say(AMISS, limit=4 * limit)}
        ids = list(dict.fromkeys(check.entry for check in checks.values()))
        entries = store.entries(ids) if ids else {}
        for citation in store.citations(list(entries)) if entries else ():
            entry, check = entries[citation.entry], checks.get(citation.id)
            if check is None or not ctx.sees(entry) or VISIBILITY[entry.state] is not Visibility.OPEN:
                continue
            said = found.get(entry.id, (entry, ()))[1]
            found[entry.id] = entry, (*said, said_of(citation, check))
    return list(found.values())[:limit]


def said_of(citation: Citation, check: CitationCheck) -> str:
    """Say in words what a check found amiss."""
    what = "has changed" if check.verdict is CitationVerdict.CHANGED else "is gone"
    now = f", now {placed(check.path, check.line)}" if check.path and citation.kind is not Cited.MEMORY else ""
    return f"{citation.label} {what}{now} (checked {check.at:%Y-%m-%d})"


def in_doubt(ctx: CallContext, entry: Entry) -> bool:
    """Say whether the last check found something that an entry cites changed or gone."""
    checks = ctx.store(entry.scope.tier).citation_checks([entry.id])
    return any(check.verdict in AMISS for check in checks)
