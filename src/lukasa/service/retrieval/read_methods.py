"""The methods of a workspace that read: search, context, and single entries with their history."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from lukasa.model.discovery import COLLECTION
from lukasa.model.entry import Entry, Version
from lukasa.model.errors import InvalidQuery, NotFound
from lukasa.model.events import Event
from lukasa.model.ids import parse_id
from lukasa.model.selection import NO_FILTERS, Filters, Selection
from lukasa.model.values import VISIBILITY, Visibility
from lukasa.service import admin, corpus, inputs, retrieval
from lukasa.service.call import Bound
from lukasa.service.instrument import verb
from lukasa.storage.operations import Verdict

if TYPE_CHECKING:
    from lukasa.read.context import Context
    from lukasa.read.coverage import Grouping
    from lukasa.service.retrieval.explain import Related, RelevanceNow
    from lukasa.service.retrieval.gather import Gathered
    from lukasa.service.retrieval.grounds import Grounds
    from lukasa.service.retrieval.read import Order, ReadRequest, Recall

BESIDE = 5  # passages of discoveries beside the hits


class ReadMethods(Bound, frozen=True):
    """Search entries, compose a context, and look at single entries."""

    @verb("memory", "read", reads=True)
    def read(
        self,
        query: str,
        *,
        tier: str | Sequence[str] | None = None,
        profile: str = "auto",
        limit: int | None = None,
        held: bool = False,
        history: bool = False,
        as_of: datetime | str | None = None,
        count: bool = True,
        rewrite: bool | None = None,
        sensitive: bool | None = None,
        discoveries: bool = False,
        order: Order = "match",
        **conditions: Any,
    ) -> Recall:
        """Return ranked hits, each with its reasons. `tier` limits the read; without it, all bound tiers are read.

        Conditions: kind, category, tags, source, curator, state, since, until. If a language model is set, it may
        rewrite the question first, as the profile or `rewrite` says. `sensitive` says whether entries with secrets may
        be hits; by default they are for the owner, and for nobody else. `as_of` is a time, or the name of a bookmark.
        With `discoveries`, passages of discovered pages that answer the query are given beside the hits. With the order
        "time" the same hits come in the order in which they were said. `confidence` of the answer estimates whether
        one of the first hits answers at all.
        """
        question = self._question(query, tier, profile, limit, held, history, as_of, conditions, sensitive)
        question = replace(question, order=order)
        asked = question if rewrite is None else replace(question, rewrite=rewrite)
        found = retrieval.read.read(self.ctx, asked, count=count)
        if not discoveries:
            return found
        beside = corpus.search.search(self.ctx, query, limit=limit or BESIDE, collections=[COLLECTION])
        return replace(found, discoveries=tuple(beside))

    @verb("memory", "gather", reads=True)
    def gather(
        self,
        query: str,
        *,
        budget: int = 2_000,
        by: Grouping | None = None,
        tier: str | Sequence[str] | None = None,
        limit: int | None = None,
        held: bool = False,
        history: bool = False,
        as_of: datetime | str | None = None,
        sensitive: bool | None = None,
        **conditions: Any,
    ) -> Gathered:
        """Return all that belongs to a question, dated and grouped, within a budget of tokens.

        For a set, a sequence or a summary, where the nearest few hits of a read are not enough. `by` groups by day,
        month, source or tier. The conditions are those of `read`.
        """
        question = self._question(query, tier, "deep", limit, held, history, as_of, conditions, sensitive)
        return retrieval.gather.gather(self.ctx, question, budget=budget, by=by)

    def why(self, query: str, id: str, *, tier: str | Sequence[str] | None = None, **options: Any) -> list[Verdict]:
        """Say why an entry is, or is not, among the hits of a query: each stage with its reason."""
        given = {"profile": "auto", "limit": None, "held": False, "history": False, "as_of": None, "sensitive": None}
        taken = {key: options.pop(key, default) for key, default in given.items()}
        return retrieval.explain.why(self.ctx, self._question(query, tier, conditions=options, **taken), id)

    def _question(
        self,
        query: str,
        tier: str | Sequence[str] | None,
        profile: str,
        limit: int | None,
        held: bool,
        history: bool,
        as_of: datetime | str | None,
        conditions: Mapping[str, Any],
        sensitive: bool | None = None,
    ) -> ReadRequest:
        tiers = None if tier is None else (tier,) if isinstance(tier, str) else tuple(tier)
        if isinstance(as_of, str) and admin.bookmarks.is_name(as_of):
            as_of = admin.bookmarks.named(self.ctx, as_of).at
        moment = inputs.moment(as_of, "as_of") if as_of is not None else None
        filters = self._filters(conditions)
        # Asking for a state is asking to see it.
        seen = {VISIBILITY[state] for state in filters.states}
        held, history = held or Visibility.HELD in seen, history or Visibility.HISTORY in seen
        return retrieval.read.ReadRequest(
            query, tiers, profile, limit, filters, held, history, moment, sensitive=sensitive
        )

    def _filters(self, conditions: Mapping[str, Any]) -> Filters:
        if not conditions:
            return NO_FILTERS
        known = ("kind", "category", "tags", "source", "curator", "state", "since", "until")
        unknown = set(conditions) - set(known)
        if unknown:
            raise InvalidQuery(f"unknown condition {sorted(unknown)[0][:60]!r}", fix=f"use: {', '.join(known)}")
        return retrieval.read.filters(**conditions)

    @verb("memory", "context", reads=True)
    def context(
        self,
        query: str = "",
        *,
        tiers: Sequence[str] | None = None,
        budget: int | None = None,
        profile: str = "balanced",
        count: bool = False,
        sensitive: bool = False,
        record: bool = True,
    ) -> Context:
        """Return the context document for a prompt: `str()` of it is the text, `.document` the same as data.

        With `sensitive` it also holds entries and pages with secrets as they are. The disclosure ledger notes it,
        unless `record` is false: for a caller that only looks, or that notes itself what it sends.
        """
        chosen = None if tiers is None else (tiers,) if isinstance(tiers, str) else tuple(tiers)
        found = retrieval.read.context(
            self.ctx, query, tiers=chosen, budget=budget, profile=profile, count=count, sensitive=sensitive
        )
        if record:
            retrieval.disclosing.disclose_context(self.ctx, "memory_context", found)
        return found

    def disclose(self, found: Recall | Gathered | Context, verb: str = "memory_read") -> None:
        """Note in the disclosure ledger that a program puts these hits, or this context, into a prompt."""
        named = inputs.label(verb, "verb")
        if isinstance(found, retrieval.read.Recall | retrieval.gather.Gathered):
            retrieval.disclosing.disclose_hits(self.ctx, named, found.hits)
        else:
            retrieval.disclosing.disclose_context(self.ctx, named, found)

    def get(self, id: str, *, sensitive: bool | None = None) -> Entry:
        """Return one entry. Its secrets are replaced by marks for anybody but the owner, unless `sensitive` is set."""
        try:
            entry = self.ctx.entry(id)[1]
        except NotFound as missing:
            raise retrieval.grounds.tombstone(self.ctx, id) or missing from None
        return self.ctx.shown(entry, sensitive=bool(sensitive))

    def grounds(self, id: str) -> Grounds:
        """Return what an entry rests on now, what rests on it, and why its row is kept (its retention)."""
        return retrieval.grounds.grounds(self.ctx, id)

    def grounds_of(self, entries: Sequence[Entry]) -> dict[str, Grounds]:
        """Return the grounds of several entries, by id. Entries that this handle does not see are left out."""
        return retrieval.grounds.grounds_of(self.ctx, [entry for entry in entries if self.ctx.sees(entry)])

    def entries(
        self,
        tier: str,
        *,
        limit: int = 100,
        after: str | None = None,
        everything: bool = False,
        **conditions: Any,
    ) -> list[Entry]:
        """Return entries of one tier, newest first, without counting a retrieval. A damaged entry is marked as such.

        `everything` adds entries that are held or in history.
        """
        seen = frozenset(Visibility) if everything or "state" in conditions else frozenset({Visibility.OPEN})
        owners = None if self.ctx.is_author else self.ctx.owners
        selection = Selection((self.ctx.scope(tier),), seen, owners, self._filters(conditions))
        page = parse_id(after, "after") if after is not None else None
        found = self.ctx.store(tier).find(selection, limit=inputs.limit(limit), after=page, damaged=True)
        return [self.ctx.shown(entry) for entry in found]

    def standing(self, id: str) -> RelevanceNow:
        """Return the present relevance of an entry with each of its factors."""
        found = retrieval.explain.relevance_now(self.ctx, id)
        return replace(found, entry=self.ctx.shown(found.entry))

    def history(self, id: str) -> list[Version]:
        """Return every version of an entry, oldest first. A damaged version is marked as such."""
        store, entry = self.ctx.row(id)
        hidden = entry.sensitive and not self.ctx.is_author  # an earlier version may lack the mark
        found = [replace(v, entry=self.ctx.masked(v.entry)) if hidden else v for v in store.versions(entry.id)]
        return [replace(v, entry=self.ctx.passed(v.entry)[0]) for v in found]

    def related(self, id: str) -> Related:
        """Return who stated an entry again, and the entries about the same thing."""
        return retrieval.explain.related(self.ctx, id)

    def ledger(self, id: str) -> list[Event]:
        """Return every event about an id, also about a write that was discarded or refused."""
        return retrieval.explain.ledger(self.ctx, self.ctx.entry_id(id))
