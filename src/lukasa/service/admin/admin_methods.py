"""The methods of a workspace for its operator: counts, telemetry, removal for good, the event log, repair."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from lukasa.model.errors import UNREADABLE, StoreBusy, StoreError
from lukasa.model.events import Event, chain_faults
from lukasa.model.scrub import Mode
from lukasa.model.telemetry import TelemetryEvent, TelemetryQuery
from lukasa.service import admin, inputs, upkeep
from lukasa.service.call import Bound
from lukasa.service.instrument import verb
from lukasa.storage.port import Census, Finding, Store

if TYPE_CHECKING:
    from lukasa.model.disclosure import TokenUse
    from lukasa.read.expected import Outcome
    from lukasa.service.admin.activity import Happening
    from lukasa.service.admin.board import Board, Timeline
    from lukasa.service.admin.bookmarks import Bookmark
    from lukasa.service.admin.erasing import ErasurePlan, Receipt
    from lukasa.service.admin.home import Home
    from lukasa.service.admin.looking import NameMap, Table
    from lukasa.service.admin.overview import EvidenceQuote, Survey
    from lukasa.service.admin.scrubbing import Scrubbed
    from lukasa.service.admin.shown import Sent, Unused
    from lukasa.service.admin.stats import Stats
    from lukasa.spec.expectations import Expectations
    from lukasa.upkeep.scrub_plan import Manifest


def log_faults(store: Store) -> list[str]:
    """Return the faults of a store's event chain; what cannot be read at all is one of them."""
    try:
        return chain_faults(store.event_stream(), head=store.head())
    except StoreBusy:
        raise
    except StoreError as error:
        return [f"the log cannot be read: {error.message}"]
    except UNREADABLE as error:
        return [f"the log cannot be read: {type(error).__name__} in one of its events"]


class AdminMethods(Bound, frozen=True):
    """Count, report, remove for good, verify and repair."""

    def stats(self, since: datetime | str = "7d") -> Stats:
        """Return counts of entries and events since a time, or for a span: 24h, 7d, 2w. Only the author may."""
        moment = inputs.since(since, "since", self.ctx.now)
        return admin.stats.stats(self.ctx, moment)

    def full_id(self, beginning: str) -> str:
        """Return the id in this workspace or the account that begins with these characters, of an entry or anything
        else that was written. Without one, return the characters. Only the author may."""
        self.ctx.require_author("look for ids")
        return admin.overview.full_id(self.ctx, beginning)

    def shown(
        self,
        item: str | None = None,
        *,
        conversation: str | None = None,
        agent: str | None = None,
        since: datetime | str | None = None,
        limit: int = 100,
    ) -> list[Sent]:
        """Return the texts of memory that went to agents, the newest first: the disclosure ledger. Only the author may.

        `item` is the id of an entry or the name of a page; of one in the account, texts of all workspaces are returned.
        """
        moment = inputs.since(since, "since", self.ctx.now) if since is not None else None
        return admin.shown.sent(
            self.ctx, item=item, conversation=conversation, agent=agent, since=moment, limit=inputs.limit(limit)
        )

    def token_use(self, since: datetime | str = "7d") -> TokenUse:
        """Return what memory cost in tokens since a time or for a span, by agent, surface, call and day.

        Only the author may.
        """
        return admin.shown.tokens(self.ctx, inputs.since(since, "since", self.ctx.now))

    def unused(self, since: datetime | str = "30d", *, times: int = 3) -> list[Unused]:
        """Return entries that were shown at least so often and that nothing shows to be of use. Only the author may."""
        moment = inputs.since(since, "since", self.ctx.now)
        return admin.shown.unused(self.ctx, moment, times=inputs.limit(times, 1_000_000))

    def expect(self, expected: Expectations) -> list[Outcome]:
        """Check expectations, as `lukasa.spec.expectations.parse` reads them from a file. A check changes nothing."""
        return admin.expecting.check(expected, admin.expecting.bound(self.ctx))

    def reports(
        self,
        since: datetime | str = "24h",
        *,
        component: str | None = None,
        action: str | None = None,
        failed: bool = False,
        limit: int = 100,
    ) -> list[TelemetryEvent]:
        """Return telemetry events since a time or for a span, the newest first. Only the author may."""
        moment = inputs.since(since, "since", self.ctx.now)
        query = TelemetryQuery(since=moment, component=component, action=action, success=False if failed else None)
        return admin.stats.reports(self.ctx, query, inputs.limit(limit))

    def census(self) -> list[Census]:
        """Count entries by scope and state, private ones included, in the scopes that this handle sees.

        Only the author may.
        """
        self.ctx.require_author("count all entries")
        found = [*self.ctx.local.census(), *self.ctx.account.census()]
        return [count for count in found if self.ctx.admits(count.scope)] if self.ctx.tenancy else found

    def survey(self) -> Survey:
        """Return an overview: counts, growth, entries that fade, work that waits. Only the author may."""
        return admin.overview.survey(self.ctx)

    def table(
        self, *, sort: str = "updated", ascending: bool = False, limit: int = 50, offset: int = 0, **conditions: Any
    ) -> Table:
        """Return a page of all entries of every tier, scope and owner, sorted, with counts of what can be chosen next.

        Only the author may. Sorted by updated, created, importance, relevance, reads or text. Conditions, of which
        several values of one are alternatives: words, tiers, kinds, states, curators, sources, categories, agents, tags
        (all of them), conversation, session (the id of a transcript), name (of a person or thing), since, until;
        `everything` adds retired entries.
        """
        wanted = admin.looking.conditions(conditions)
        size, start = inputs.limit(limit), inputs.position(offset, "offset")
        return admin.looking.table(self.ctx, wanted, sort=sort, ascending=ascending, limit=size, offset=start)

    def names(self, *, kind: str = "", near: str = "", limit: int = 60) -> NameMap:
        """Return the people and things that most entries in recall name, and which of them are named together.

        Only the author may. `kind` is person or thing; `near` returns one name and those beside it. Names are guessed
        from how texts are written, without a model.
        """
        return admin.looking.name_map(self.ctx, kind=kind, near=near, most=inputs.limit(limit))

    def activity(self, limit: int = 50) -> list[Happening]:
        """Return what was written, and what agents were given, the newest first. Only the author may."""
        return admin.activity.activity(self.ctx, limit=inputs.limit(limit))

    def home(self) -> Home:
        """Return what this workspace knows, what its last session taught it, what was used, and what fades.

        Only the author may.
        """
        return admin.home.home(self.ctx)

    def board(self) -> Board:
        """Return every entry as a bead near what it belongs to, with the days on which it was believed.

        Only the author may. Topics are found by vectors, or without an embedder by words.
        """
        return admin.board.board(self.ctx)

    def timeline(self, at: datetime | str | None = None, *, limit: int = 40) -> Timeline:
        """Return what memory believed at a time, and what changed in the two weeks before it. Only the author may."""
        moment = inputs.moment(at, "at") if at is not None else None
        return admin.board.timeline(self.ctx, moment, limit=inputs.limit(limit))

    def evidence(self, id: str) -> list[EvidenceQuote]:
        """Return the words that an entry rests on, verbatim."""
        return admin.overview.evidence(self.ctx, id)

    def scrub_plan(self, tier: str, *, mode: Mode | str = Mode.FULL) -> Manifest:
        """List all that a scrub of this tier's scope would remove; the mode `keep_named` spares its pages."""
        return admin.scrubbing.plan(self.ctx, tier, mode)

    @verb("scrub", "execute")
    def scrub_execute(self, tier: str, *, confirm: str, mode: Mode | str = Mode.FULL) -> Scrubbed:
        """Remove all that `scrub_plan` lists, for good. `confirm` repeats the plan's digest.

        Only the author may; there is no undo.
        """
        return admin.scrubbing.execute(self.ctx, tier, confirm, mode)

    def purge_plan(self, conversation: str) -> Manifest:
        """List all that a purge of one conversation would remove, with its checkpoints and events."""
        return admin.scrubbing.plan_purge(self.ctx, conversation)

    @verb("scrub", "purge")
    def purge_execute(self, conversation: str, *, confirm: str) -> Scrubbed:
        """Remove all contents of a conversation for good, and archive it. Only the author may; there is no undo."""
        return admin.scrubbing.purge(self.ctx, conversation, confirm)

    @verb("scrub", "files")
    def scrub_files(self) -> bool:
        """Rewrite the files that may still hold what was scrubbed, and return whether none does. Only the author may.

        In a database on PostgreSQL, all workspaces of all accounts wait meanwhile.
        """
        return admin.scrubbing.clear_files(self.ctx)

    def erase_plan(
        self,
        *,
        entry: str | None = None,
        source: str | None = None,
        person: str | None = None,
        aliases: Sequence[str] | None = None,
        group: Sequence[str] = (),
        shared: str = "redact",
    ) -> ErasurePlan:
        """Return what an erasure of one entry, source or person would remove from this workspace; it removes nothing.

        Only the author may. `group` says which of several people of that name is meant; `aliases` replace the other
        names that memory knows of. Entries that name other people too are left without the name, or removed
        (`shared="remove"`). `Lukasa.erase_plan` reaches all workspaces and the account.
        """
        request = admin.erasing.request_of(entry, source, person, aliases=aliases, group=group, shared=shared)
        return admin.erasing.plan([self.ctx], request)

    @verb("erase", "execute")
    def erase(
        self,
        *,
        entry: str | None = None,
        source: str | None = None,
        person: str | None = None,
        aliases: Sequence[str] | None = None,
        group: Sequence[str] = (),
        shared: str = "redact",
        confirm: str,
    ) -> Receipt:
        """Erase for good what `erase_plan` lists, search all files for it, and return the receipt.

        `confirm` repeats the plan's digest. Only the author may; there is no undo. After an interruption, the same call
        again finishes it.
        """
        request = admin.erasing.request_of(entry, source, person, aliases=aliases, group=group, shared=shared)
        return admin.erasing.execute([self.ctx], request, confirm)

    def erasures(self) -> list[Receipt]:
        """Return the receipts of erasures here, the newest first. Only the author may."""
        return admin.erasing.receipts([self.ctx])

    def events(
        self, *, after: int = 0, since: str | None = None, limit: int = 100, action: str | None = None
    ) -> list[Event]:
        """Return events of the log, oldest first, after a number or `since` a bookmark. Only the author may."""
        self.ctx.require_author("read the event log")
        self.ctx.require_whole("read the event log")
        first = inputs.position(after, "after")
        if since is not None:
            first = max(first, admin.bookmarks.named(self.ctx, since).seq)
        return self.ctx.local.events(after=first, limit=inputs.limit(limit, 100_000), action=action)

    @verb("events", "bookmark")
    def bookmark(self, name: str, note: str = "") -> Bookmark:
        """Name the present end of the event log. Reads take the name for `as_of`, and `events` for `since`."""
        return admin.bookmarks.place(self.ctx, name, note)

    def bookmarks(self) -> list[Bookmark]:
        """Return the bookmarks of the event log, the oldest first."""
        return admin.bookmarks.every(self.ctx)

    def verify(self) -> list[str]:
        """Return the faults of this workspace's event chain; empty if it verifies."""
        return log_faults(self.ctx.local)

    def check(self) -> list[Finding]:
        """Check the store, and return what is wrong with it."""
        return self.ctx.local.check()

    @verb("index", "rebuild")
    def rebuild(self) -> None:
        """Rebuild the search indexes of this workspace from its rows."""
        self.ctx.local.rebuild()

    @verb("vectors", "backfill")
    def backfill(self, limit: int = 1000) -> int:
        """Embed entries and items that have no vector of the present model; return how many."""
        return upkeep.backfill.backfill(self.ctx, inputs.limit(limit, 1_000_000))
