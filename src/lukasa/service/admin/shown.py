"""The disclosure ledger, as its owner reads it: who was shown what, what it cost in tokens, and what nobody used."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from functools import cached_property
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from lukasa.model.disclosure import Disclosure, DisclosureQuery, Shown, TokenUse, call_of, token_use
from lukasa.model.entry import Entry
from lukasa.model.errors import NotFound
from lukasa.model.ids import parse_id
from lukasa.model.transcript import Utterance
from lukasa.model.values import VISIBILITY, Outcome, Visibility
from lukasa.read.used import taken_up
from lukasa.service.call import CallContext
from lukasa.storage.port import Store

OFTEN = 3  # times that an entry was shown, from which on it is worth asking whether anybody used it
# Calls by which an agent asks for one entry: it read that entry on purpose.
ON_PURPOSE = frozenset({"memory_get", "memory_history", "memory_standing", "view"})
_READ = "see the disclosure ledger"
_PAGE_OF_ROWS = 1000


class Sent(Struct, frozen=True):
    """A text of memory that went to an agent: who got it, where and when, its tokens, and what was in it.

    `ref` is the ref code of the conversation, if it is known here; `workspace` is the name of the workspace that it
    was sent from, or its id if that workspace is gone.
    """

    at: datetime
    principal: str
    surface: str
    transport: str
    conversation: str
    ref: str
    workspace: str
    verb: str
    tokens: int
    items: tuple[Shown, ...]


class Unused(Struct, frozen=True):
    """An entry that was shown again and again and never used: how often, when, and for how many tokens."""

    entry: Entry
    times: int
    tokens: int
    first: datetime
    last: datetime


def sent(
    ctx: CallContext,
    *,
    item: str | None = None,
    conversation: str | None = None,
    agent: str | None = None,
    since: datetime | None = None,
    limit: int = 100,
) -> list[Sent]:
    """Return texts that went to agents, the newest first: with an entry or a page, in a conversation, to one agent."""
    _owned(ctx)
    what = None if item is None else _item(ctx, item)
    talk = None if conversation is None else _conversation(ctx, conversation)
    query = DisclosureQuery(since, talk, agent, what)
    asked = _asked(ctx, query, limit, everywhere=what is not None)
    if what is not None and asked:  # the other store may hold another part of the same texts
        calls = {call_of(one) for one in asked}
        near = _asked(ctx, DisclosureQuery(times=tuple({one.at for one in asked})), None, everywhere=True)
        asked = [one for one in near if call_of(one) in calls]
    found = _together(asked)[:limit]
    refs = {one.conversation for one in found if one.conversation}
    known = {id: one.ref_code for id in refs if (one := ctx.local.conversation(id)) is not None}
    names = {info.id: info.name for info in ctx.account.workspaces()} if found else {}
    return [_sent(ctx, one, known, names) for one in found]


def tokens(ctx: CallContext, since: datetime) -> TokenUse:
    """Return what memory cost in tokens since a time, in this workspace."""
    _owned(ctx)
    return token_use(since, _asked(ctx, DisclosureQuery(since), None))


def unused(ctx: CallContext, since: datetime, *, times: int = OFTEN) -> list[Unused]:
    """Return the entries that were shown so often since a time and never used, the most tokens first.

    An entry was used if, since it was first shown: an agent read it by its id, somebody confirmed or corrected it, an
    action or another entry rests on it, or the assistant said two of its distinctive words in the same conversation,
    as far as its transcript was observed (`read.used`). Entries that no longer are in recall are left out.
    """
    _owned(ctx)
    found = _asked(ctx, DisclosureQuery(since), None)
    shown: dict[str, list[tuple[Disclosure, Shown]]] = {}
    for one in found:
        for item in one.items:
            if not item.page:
                shown.setdefault(item.id, []).append((one, item))
    often = {id: rows for id, rows in shown.items() if len(rows) >= times}
    use = _Use(ctx)
    listed = []
    for store in (ctx.local, ctx.account):
        entries = store.entries(often)
        kept = {id: one for id, one in entries.items() if VISIBILITY[one.state] is Visibility.OPEN}
        for id in use.none_of(store, kept, often):
            rows = often[id]
            when = [one.at for one, _ in rows]
            listed.append(Unused(kept[id], len(rows), sum(item.tokens for _, item in rows), min(when), max(when)))
    return sorted(listed, key=lambda one: (-one.tokens, one.entry.id))


def _owned(ctx: CallContext) -> None:
    """Refuse anybody but the owner, and a handle that is bound to a tenant: the ledger tells what others were shown."""
    ctx.require_author(_READ)
    ctx.require_whole(_READ)


def _item(ctx: CallContext, named: str) -> Shown:
    """Return what to look for: the page of that name, or the entry of that id, which may be gone."""
    if any(page.name == named for store in (ctx.local, ctx.account) for page in store.named()):
        return Shown(named, 0, 0, page=True)
    return Shown(parse_id(named), 0, 0)


def _conversation(ctx: CallContext, named: str) -> str:
    found = ctx.local.conversation(named)
    if found is None:
        raise NotFound(f"no conversation {named[:60]!r}", fix="`lukasa conversation list --all` shows them")
    return found.id


def _asked(
    ctx: CallContext, query: DisclosureQuery, limit: int | None, *, everywhere: bool = False
) -> list[Disclosure]:
    """Return the disclosures of this workspace; of something in the account, also those of other workspaces."""
    theirs = ctx.account.disclosures(query, limit=limit if everywhere else None)
    mine = [one for one in theirs if everywhere or one.workspace == ctx.info.id]
    return sorted([*ctx.local.disclosures(query, limit=limit), *mine], key=lambda one: one.at, reverse=True)


def _together(found: Iterable[Disclosure]) -> list[Disclosure]:
    """Put the parts of one text together that two stores have noted."""
    calls: dict[tuple[object, ...], Disclosure] = {}
    for one in found:
        key = call_of(one)
        if (before := calls.get(key)) is not None and bool(before.workspace) is not bool(one.workspace):
            whole, part = (before, one) if not before.workspace else (one, before)
            one = replace(whole, tokens=whole.tokens + part.tokens, items=(*whole.items, *part.items))
        elif before is not None:
            key = (*key, len(calls))
        calls[key] = one
    return list(calls.values())


def _sent(ctx: CallContext, one: Disclosure, refs: Mapping[str, str], names: Mapping[str, str]) -> Sent:
    where = names.get(one.workspace, one.workspace) or ctx.info.name
    who = (one.principal, one.surface, one.transport, one.conversation, refs.get(one.conversation, ""))
    return Sent(one.at, *who, where, one.verb, one.tokens, one.items)


class _Use:
    """The evidence that entries were used, read from the stores once."""

    def __init__(self, ctx: CallContext) -> None:
        self._ctx = ctx
        self._said: dict[str, Sequence[Utterance]] = {}

    def none_of(
        self, store: Store, entries: Mapping[str, Entry], shown: Mapping[str, Sequence[tuple[Disclosure, Shown]]]
    ) -> list[str]:
        """Return the ids of entries that nothing shows to have been used."""
        first = {id: min(one.at for one, _ in shown[id]) for id in entries}
        used = set(store.linked(entries)) | {one.source for one in self._derived(list(entries))}
        checked = [one for one in store.confirmations(set(entries)) if one.outcome is Outcome.CONFIRMED]
        used |= {one.entry for one in checked if one.at > first[one.entry]}
        used |= {id for id, one in entries.items() if one.confirmed_at > first[id]}
        used |= {id for id, one in entries.items() if id not in used and self._corrected(store, one, first[id])}
        left = [id for id in entries if id not in used]
        return [id for id in left if not self._read(shown[id]) and not self._said_again(entries[id], shown[id])]

    def _derived(self, ids: Sequence[str]) -> list[Any]:
        return [one for store in (self._ctx.local, self._ctx.account) for one in store.derived_from(ids)]

    @staticmethod
    def _corrected(store: Store, entry: Entry, since: datetime) -> bool:
        if entry.version == 1 or entry.updated_at <= since:
            return False
        return any(one.action == "entry.updated" and one.at > since for one in store.versions(entry.id))

    @staticmethod
    def _read(rows: Sequence[tuple[Disclosure, Shown]]) -> bool:
        return any(one.verb in ON_PURPOSE for one, _ in rows)

    def _said_again(self, entry: Entry, rows: Sequence[tuple[Disclosure, Shown]]) -> bool:
        talks: dict[str, datetime] = {}
        for one, _ in rows:
            if one.conversation:
                talks[one.conversation] = min(one.at, talks.get(one.conversation, one.at))
        return any(taken_up(entry.content, at, self._messages(talk)) for talk, at in talks.items())

    def _messages(self, conversation: str) -> Sequence[Utterance]:
        if conversation not in self._said:
            notes = {note.key: note.value for note in self._ctx.local.notes(conversation)}
            session = notes.get("session")
            id = self._transcripts.get(str(session.get("id"))) if isinstance(session, dict) else None
            self._said[conversation] = self._ctx.local.utterances(id) if id is not None else ()
        return self._said[conversation]

    @cached_property
    def _transcripts(self) -> dict[str, str]:
        """The ids of transcripts by the id of their session."""
        found: dict[str, str] = {}
        after: str | None = None
        while page := self._ctx.local.transcripts(limit=_PAGE_OF_ROWS, after=after):
            found |= {one.key.partition(":")[2].partition("@")[0]: one.id for one in page}
            after = page[-1].id
        return found
