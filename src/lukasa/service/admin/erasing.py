"""Erase an entry, a source or a person with all that was derived from it, prove it, and keep a receipt.

The plan removes nothing. Execution repeats its digest, as a scrub does, and goes by the same way: a `Scrub` whose
extent lists entries and words. Files come first, then each store in one transaction, then the rewriting of files, the
proof, and the receipt. A run that was killed is finished by giving the same command again, with the same digest.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import Any, Literal

from msgspec import Struct
from msgspec.structs import replace

from lukasa.model.disclosure import DisclosureQuery
from lukasa.model.entry import Entry
from lukasa.model.erasure import Words
from lukasa.model.errors import InvalidInput, NotFound, Refused
from lukasa.model.events import SCRUBBED, EventDraft, canonical_json
from lukasa.model.ids import parse_id
from lukasa.model.scrub import Extent, Holdings, Mode, manifest_digest
from lukasa.model.selection import Selection
from lukasa.model.text import commitment, fold
from lukasa.model.values import Visibility
from lukasa.service import upkeep
from lukasa.service.admin import scrubbing
from lukasa.service.call import CallContext
from lukasa.storage.operations import Record, Scrub
from lukasa.storage.port import ItemQuery, Store, twin_key
from lukasa.upkeep.erase_plan import Group, groups, known_people, others_in
from lukasa.upkeep.scrub_plan import ACCOUNT, SHORTEST, Line, confirmed, manifest
from lukasa.upkeep.scrub_plan import one as one_name

RECEIPT = "erasure.proved"
Kind = Literal["entry", "source", "person"]
Shared = Literal["redact", "remove"]
_PAGE = 500
_MOST_TEXTS = 200  # texts that are searched for word by word; of a source with more, ids alone tell
_SHORTEST_TEXT = 12  # characters of a text that is searched for by itself
_EMBEDDED = 100_000


class Request(Struct, frozen=True):
    """What is to be erased. `aliases` replace the other names that memory knows; `group` says which person is meant."""

    kind: Kind
    name: str
    aliases: tuple[str, ...] | None = None
    group: tuple[str, ...] = ()
    shared: Shared = "redact"


class SharedEntry(Struct, frozen=True):
    """An entry that names other people too."""

    id: str
    others: tuple[str, ...]
    outcome: Literal["redact", "remove"]


class Recipient(Struct, frozen=True):
    """Somebody who was shown what goes: an agent, on which surface, how often, and when first and last."""

    principal: str
    surface: str
    times: int
    first: datetime
    last: datetime


class ErasurePlan(Struct, frozen=True):
    """What an erasure would remove. Nothing has been removed.

    With several `groups` and none chosen, `digest` is empty: choose first.
    """

    kind: Kind
    name: str
    names: tuple[str, ...]
    groups: tuple[Group, ...]
    lines: tuple[Line, ...]
    removed: tuple[str, ...]
    derived: tuple[str, ...]
    shared: tuple[SharedEntry, ...]
    kept: dict[str, tuple[str, ...]]
    recipients: tuple[Recipient, ...]
    files: dict[str, int]
    chats: int
    warnings: tuple[str, ...]
    unreachable: tuple[str, ...]
    digest: str


class Receipt(Struct, frozen=True):
    """What an erasure removed, and what the search of all files found afterwards. It holds none of the words.

    `mark` is a keyed commitment to what was asked for. `left` says where words are still; nowhere if it is empty.
    `unconfirmed` are the machines of a sync that have not said yet that they erased it too.
    """

    id: str
    at: datetime
    kind: str
    mark: str
    counts: dict[str, int]
    recipients: tuple[dict[str, Any], ...]
    kept: dict[str, Any]
    left: dict[str, int]
    searched: bool
    swept: bool
    unreachable: tuple[str, ...]
    operator: str
    unconfirmed: tuple[str, ...] = ()

    @property
    def clean(self) -> bool:
        """Whether the words were searched for everywhere, and found nowhere."""
        return self.searched and self.swept and not self.left


class _Room(Struct, frozen=True):
    """A store that an erasure reaches, and the context that acts on it."""

    ctx: CallContext
    store: Store
    place: str

    @property
    def is_local(self) -> bool:
        return self.place != ACCOUNT


class _Part(Struct, frozen=True):
    """What goes in one store."""

    room: _Room
    extent: Extent
    restated: tuple[Entry, ...]
    removed: tuple[str, ...]
    derived: tuple[str, ...]
    shared: tuple[SharedEntry, ...]
    held: Holdings = Holdings()

    @property
    def digest(self) -> str:
        return manifest_digest(self.extent, self.held)


def plan(rooms: Sequence[CallContext], request: Request, *, account: bool = False) -> ErasurePlan:
    """List all that an erasure would remove."""
    shown = _planned(_rooms(rooms, request, account), request)[0]
    _require_found(shown)
    return shown


def _require_found(shown: ErasurePlan) -> None:
    if shown.kind == "entry" and not shown.removed:
        raise NotFound(f"no entry {parse_id(shown.name)} here", fix="`lukasa list --all` shows the ids")


def request_of(
    entry: str | None,
    source: str | None,
    person: str | None,
    *,
    aliases: Sequence[str] | None = None,
    group: Sequence[str] = (),
    shared: str = "redact",
) -> Request:
    """Return the request for exactly one entry, source or person."""
    given: list[tuple[Kind, str]] = []
    for kind, name in (("entry", entry), ("source", source), ("person", person)):
        if name is not None:
            given.append((kind, name))  # type: ignore[arg-type]
    if len(given) != 1:
        raise InvalidInput("an erasure is of exactly one thing", fix="name one entry, one source or one person")
    if shared not in ("redact", "remove"):
        raise InvalidInput(f"no such choice: {shared[:60]!r}", fix="use redact or remove")
    ((kind, name),) = given
    others = None if aliases is None else tuple(one.strip() for one in aliases if one.strip())
    return Request(kind, one_name(name, f"the {kind} to erase").strip(), others, tuple(group), shared)  # type: ignore[arg-type]


def execute(rooms: Sequence[CallContext], request: Request, confirm: object, *, account: bool = False) -> Receipt:
    """Erase what the plan lists, search for the words everywhere, and return the receipt."""
    reached = _rooms(rooms, request, account)
    first, mark = reached[0], _mark(reached[0], request)
    begun = _begun(reached, mark, confirm)
    shown, parts, words = _planned(reached, request)
    if begun is None:
        _require_found(shown)
        if not shown.digest:
            raise Refused(
                "several people are named like that", fix="choose with --group NAME, one or more, then plan again"
            )
        confirmed(shown, confirm)
    id = begun or shown.digest
    about = _about(first, shown, parts, words, id)
    for room in reached:
        _erase_files(room, words)
    for part in parts:
        counts = part.held.counts
        told = {**about, "kind": request.kind, "counts": {**counts, "entries": len(part.removed) + len(part.derived)}}
        reopened = scrubbing.reopened(part.room.ctx, part.room.store, part.held)
        scrub = Scrub(part.extent, part.digest, told, restated=part.restated)
        part.room.ctx.apply(part.room.store, scrub, *reopened)
    swept = True
    for room in reached:
        upkeep.backfill.backfill(room.ctx, _EMBEDDED)
        swept = room.store.purge_files() and scrubbing.finish(room.store, room.ctx.threads) and swept
    left = {} if not words.forms else _left(reached, words)
    proof = {"erasure": id, "mark": mark, "left": left, "searched": bool(words.forms), "swept": swept}
    first.ctx.apply(first.store, Record(EventDraft(RECEIPT, id[:16], proof)))
    return next(receipt for receipt in receipts(rooms) if receipt.id == id[:16])


def follow(rooms: Sequence[CallContext], store: Store, ids: Sequence[str], texts: Sequence[str]) -> None:
    """Erase here what another machine erased: entries of a store, what was derived from them, and texts everywhere.

    The store of the entries comes last: as long as it has them, somebody who was killed on the way can begin again. An
    action that rests on an entry here does not keep it: the owner decided where nothing rested on it, or said so.
    """
    every = [*(_Room(ctx, ctx.local, ctx.info.id) for ctx in rooms), _Room(rooms[0], rooms[0].account, ACCOUNT)]
    reached = sorted(every, key=lambda room: room.store is store)
    words, first = Words(tuple(texts)), reached[-1]
    id = hashlib.sha256(canonical_json([sorted(ids), commitment(first.store.secret(), canonical_json(texts))]).encode())
    erasure, mark = id.hexdigest(), commitment(first.store.secret(), canonical_json(texts))[:32]
    for room in reached:
        _erase_files(room, words)
    for room in reached:
        here = list(ids) if room.store is store else []
        derived = _derived(room.store, ids, set(here))
        gone = tuple(sorted({*here, *derived}))
        extent = Extent(room.place, Mode.ERASE, linked=True, ids=gone, words=words, mark=mark)
        held = room.store.holdings(extent)
        if not (held.entries or any(held.counts.get(kind) for kind in (*_COUNTED, "confirmations", "revisions"))):
            continue
        about = {"erasure": erasure, "asked": mark, "kind": "sync", "counts": {**held.counts, "entries": len(gone)}}
        room.ctx.apply(room.store, Scrub(extent, manifest_digest(extent, held), about))
    swept = True
    for room in reached:
        swept = room.store.purge_files() and scrubbing.finish(room.store, room.ctx.threads) and swept
    left = _left(reached, words) if words.forms else {}
    proof = {"erasure": erasure, "mark": mark, "left": left, "searched": bool(words.forms), "swept": swept}
    first.ctx.apply(first.store, Record(EventDraft(RECEIPT, erasure[:16], proof)))


def receipts(rooms: Sequence[CallContext]) -> list[Receipt]:
    """Return the receipts of erasures, the newest first."""
    rooms[0].require_author("see the receipts of erasures")
    stores = [room.local for room in rooms] + [rooms[0].account]
    proofs, begun = dict[str, Any](), dict[str, list[Any]]()
    for store in stores:
        for event in store.events(action=RECEIPT, limit=max(1, store.head()[0])):
            if event.detail:
                proofs[event.detail["erasure"]] = event
        for event in store.events(action=SCRUBBED, limit=max(1, store.head()[0])):
            if event.detail.get("mode") == Mode.ERASE:
                begun.setdefault(event.detail["erasure"], []).append(event)
    waiting = rooms[0].unconfirmed
    made = [_receipt(id, proof, begun.get(id, []), waiting(id[:16])) for id, proof in proofs.items()]
    return sorted(made, key=lambda one: one.at, reverse=True)


def _receipt(id: str, proof: Any, done: Sequence[Any], unconfirmed: tuple[str, ...]) -> Receipt:
    counts: Counter[str] = Counter()
    kept: dict[str, Any] = {}
    for event in done:
        counts.update(event.detail["counts"])
        kept.update(event.detail.get("kept", {}))
    about = done[0].detail if done else {}
    return Receipt(
        id=id[:16],
        at=proof.at,
        kind=about.get("kind", ""),
        mark=proof.detail["mark"],
        counts={kind: count for kind, count in counts.items() if count},
        recipients=tuple(about.get("recipients", ())),
        kept=kept,
        left=proof.detail["left"],
        searched=proof.detail["searched"],
        swept=proof.detail["swept"],
        unreachable=tuple(about.get("unreachable", ())),
        operator=str(proof.actor),
        unconfirmed=unconfirmed,
    )


# Planning


def _rooms(contexts: Sequence[CallContext], request: Request, account: bool) -> list[_Room]:
    for ctx in contexts:
        ctx.require_author("erase memory")
        if ctx.tenancy:
            raise Refused("an erasure is for all scopes of a workspace", fix="leave the scope keys out")
    rooms = [_Room(ctx, ctx.local, ctx.info.id) for ctx in contexts]
    if request.kind == "entry":
        key = parse_id(request.name)
        account = account or not contexts[0].local.entries([key], damaged=True)
    return [*rooms, _Room(contexts[0], contexts[0].account, ACCOUNT)] if account else rooms


def _mark(room: _Room, request: Request) -> str:
    return commitment(room.store.secret(), canonical_json([request.kind, fold(request.name)]))[:32]


def _planned(rooms: Sequence[_Room], request: Request) -> tuple[ErasurePlan, list[_Part], Words]:
    every = {room.place: list(_entries(room.store)) for room in rooms}
    found, words = _meant(rooms, request, every)
    chosen = bool(words.forms) or request.kind == "source"
    parts = [_part(room, request, words, every[room.place]) for room in rooms] if chosen else []
    if request.kind != "person" and parts:
        words = _texts(parts, request)
        parts = [replace(part, extent=replace(part.extent, words=words)) for part in parts]
        parts = [replace(part, held=part.room.store.holdings(part.extent)) for part in parts]
    lines, warnings, kept = _lines(parts)
    if len(found) > 1 and not request.group:
        warnings.append("several people are named like that: choose which of the groups is meant")
    if request.kind == "person" and all(room.is_local for room in rooms) and chosen:
        elsewhere = sum(words.found_in(entry) for entry in _entries(rooms[0].ctx.account))
        if elsewhere:
            warnings.append(f"{elsewhere} entries of the account mention them too, and stay: --account reaches them")
    digest = _digest(rooms[0], parts, words) if parts else ""
    removed = tuple(id for part in parts for id in part.removed)
    derived = tuple(id for part in parts for id in part.derived)
    return (
        ErasurePlan(
            kind=request.kind,
            name=request.name,
            names=words.forms if request.kind == "person" else (request.name,),
            groups=tuple(found),
            lines=tuple(lines),
            removed=removed,
            derived=derived,
            shared=tuple(one for part in parts for one in part.shared),
            kept=kept,
            recipients=tuple(_recipients(parts)),
            files=_files(rooms, words),
            chats=sum(len(_chats(room, words)) for room in rooms),
            warnings=tuple(warnings),
            unreachable=tuple(_unreachable(rooms)),
            digest=digest,
        ),
        parts,
        words,
    )


def _entries(store: Store) -> Iterator[Entry]:
    selection = Selection(tuple(count.scope for count in store.census()), frozenset(Visibility), None)
    after = None
    while page := store.find(selection, limit=_PAGE, after=after, damaged=True):
        yield from page
        after = page[-1].id


def _meant(rooms: Sequence[_Room], request: Request, every: dict[str, list[Entry]]) -> tuple[list[Group], Words]:
    """Return the people that may be meant, and the words of those that are; no words if nobody chose."""
    if request.kind == "entry":
        return [], Words((request.name,))
    if request.kind == "source":
        return [], Words(())
    texts = [text for entries in every.values() for entry in entries for text in _said(entry)]
    texts += [text for room in rooms for text in _other_texts(room.store)]
    found = groups(request.name, texts)
    if not found:
        found = [Group(request.name, (request.name,), (), 0)]
    wanted = {fold(name) for name in request.group}
    if unknown := wanted - {fold(one.name) for one in found}:
        raise NotFound(f"there is no group {sorted(unknown)[0]!r}", fix="plan without --group, and choose from it")
    meant = [one for one in found if fold(one.name) in wanted] if wanted else found
    if len(meant) > 1 and not wanted:
        return found, Words(())
    names = [form for one in meant for form in one.forms]
    names += request.aliases if request.aliases is not None else [a for one in meant for a in one.aliases]
    return found, Words(tuple(dict.fromkeys(names)))


def _said(entry: Entry) -> list[str]:
    return [entry.content, entry.source, *entry.tags]


def _other_texts(store: Store) -> Iterator[str]:
    for transcript in store.transcripts(limit=100_000):
        yield from (utterance.text for utterance in store.utterances(transcript.id))
    for page in store.named():
        yield page.body
    for head in store.list_documents(limit=100_000):
        for document in store.documents([head.id]).values():
            yield document.body


def _part(room: _Room, request: Request, words: Words, entries: Sequence[Entry]) -> _Part:
    documents: list[str] = []
    if request.kind == "entry":
        key = parse_id(request.name)
        hit = [entry for entry in entries if entry.id == key]
    elif request.kind == "source":
        documents = _documents(room.store, request.name)
        linked = {link.entry for link in room.store.links_to(documents)} if documents else set()
        hit = [entry for entry in entries if fold(entry.source) == fold(request.name) or entry.id in linked]
    else:
        hit = [entry for entry in entries if words.found_in(entry) or _was_about(room.store, entry, words)]
    known = known_people((text for entry in entries for text in (entry.content,)), (e.speaker for e in entries))
    about: dict[str, tuple[str, ...]] = {}
    if request.kind == "person":
        about = {e.id: names for e in hit if (names := others_in(e.content, words, known))}
    linked_to = room.store.linked([entry.id for entry in hit])
    edits = [e for e in hit if e.id in about and request.shared == "redact" and e.id not in linked_to and not e.damaged]
    restated = _restated(room.store, edits, words, {entry.id for entry in hit})
    stays = {entry.id for entry in restated}
    removed = [entry.id for entry in hit if entry.id not in stays]
    derived = _derived(room.store, removed, {entry.id for entry in hit})
    shared = tuple(
        SharedEntry(e.id, about[e.id], "redact" if e.id in stays else "remove") for e in hit if e.id in about
    )
    items = [
        one.item.place
        for one in room.store.find_items(ItemQuery(()))
        if request.kind == "person" and words.found_in(one)
    ]
    extent = Extent(
        room.place,
        Mode.ERASE,
        linked=scrubbing.takes_linked(room.ctx),
        ids=tuple(sorted({*removed, *derived, *stays})),
        documents=tuple(documents),
        items=tuple(items),
        words=words,
        mark=_mark(room, request),
    )
    part = _Part(room, extent, restated, tuple(removed), tuple(derived), shared)
    return replace(part, held=room.store.holdings(extent)) if request.kind == "person" else part


_COUNTED = ("named", "documents", "passages", "utterances", "notes", "jobs", "items", "amendments", "submissions")


def _digest(room: _Room, parts: Sequence[_Part], words: Words) -> str:
    """Return the digest of a plan: of what goes in each store, what stays without the words, and the words, keyed."""
    listed: list[Any] = [commitment(room.store.secret(), canonical_json(words.forms))]
    for part in parts:
        counts = part.held.counts
        stay = [entry.id for entry in part.restated]
        listed.append([part.digest, stay, [counts.get(kind, 0) for kind in _COUNTED]])
    return hashlib.sha256(canonical_json(listed).encode()).hexdigest()


def _was_about(store: Store, entry: Entry, words: Words) -> bool:
    """Whether an earlier version of an entry mentions them."""
    return entry.version > 1 and any(words.found_in(version) for version in store.versions(entry.id))


def _documents(store: Store, name: str) -> list[str]:
    found = [head.id for head in store.document_heads([name]).values()]
    return sorted({*found, *(source.document for source in store.sources_at(name))})


def _restated(store: Store, entries: Sequence[Entry], words: Words, going: set[str]) -> tuple[Entry, ...]:
    """Return entries without the words. One that then repeats another text is left out: that text stays."""
    made, taken = list[Entry](), set[tuple[Any, ...]]()
    for entry in entries:
        new = replace(words.taken_out(entry), id=entry.id, scope=entry.scope, version=1, evidence=())
        key = (new.scope, new.owner, twin_key(new))
        twin = store.twin(*key)
        if key in taken or (twin is not None and twin.id not in going) or words.found_in(new):
            continue
        taken.add(key)
        made.append(new)
    return tuple(made)


def _derived(store: Store, removed: Sequence[str], hit: set[str]) -> list[str]:
    """Return what was concluded from what goes, at any remove."""
    found, new = list[str](), list(removed)
    while new:
        new = [one.entry for one in store.derived_from(new) if one.entry not in hit and one.entry not in found]
        new = [id for id in dict.fromkeys(new) if id in store.entries([id], damaged=True)]
        found += new
    return found


def _texts(parts: Sequence[_Part], request: Request) -> Words:
    """Return the texts of entries that go: every version, and the words of the messages that they were taken from."""
    found: dict[str, None] = {}
    for part in parts:
        ids = [*part.removed, *part.derived]
        for id in ids[:_MOST_TEXTS]:
            for version in part.room.store.versions(id):
                found[version.entry.content] = None
                for quote in version.entry.evidence:
                    said = part.room.ctx.local.utterance(quote.transcript, quote.message)
                    if said is not None:
                        found[said.text[quote.start : quote.end]] = None
    if request.kind == "source" and fold(request.name) not in ("user", "observer", "agent"):
        found[request.name] = None
    return Words(tuple(text for text in found if len(text) >= _SHORTEST_TEXT or text == request.name))


def _lines(parts: Sequence[_Part]) -> tuple[list[Line], list[str], dict[str, tuple[str, ...]]]:
    total: dict[str, Line] = {}
    warnings: list[str] = []
    kept: dict[str, tuple[str, ...]] = {}
    for part in parts:
        held = part.held
        shown = manifest(part.extent, held, visible=[row.id for row in held.kept])
        for line in shown.lines:
            before = total.get(line.kind)
            total[line.kind] = replace(line, count=line.count + before.count) if before else line
        warnings += [warning for warning in shown.warnings if warning not in warnings]
        kept |= {row.id: row.actions for row in held.kept}
    return list(total.values()), warnings, kept


def _recipients(parts: Iterable[_Part]) -> list[Recipient]:
    found: dict[tuple[str, str], list[datetime]] = {}
    for part in parts:
        ids = set(part.extent.ids)
        for one in part.room.store.disclosures(DisclosureQuery()):
            if any(item.id in ids and not item.page for item in one.items):
                found.setdefault((one.principal, one.surface), []).append(one.at)
    made = [Recipient(*who, len(times), min(times), max(times)) for who, times in found.items()]
    return sorted(made, key=lambda one: (one.principal, one.surface))


def _files(rooms: Sequence[_Room], words: Words) -> dict[str, int]:
    found: dict[str, int] = {}
    for room in rooms:
        if words.forms and room.is_local and room.ctx.kept_files is not None:
            found |= room.ctx.kept_files().holding(words)
    return found


def _chats(room: _Room, words: Words) -> list[str]:
    if not words.forms or not room.is_local or room.ctx.threads is None:
        return []
    return room.ctx.threads.holding(words)


def _unreachable(rooms: Sequence[_Room]) -> Iterator[str]:
    yield "prompts that were sent already, and what the models' providers keep of them"
    yield "backups until `lukasa backup DIR --purge`, exports, and copies of the files elsewhere"
    yield "what a disk or a database server keeps beside its files: snapshots, a write-ahead log until it is replaced"
    for room in rooms:
        if room.is_local and room.ctx.kept_files is not None and (known := room.ctx.kept_files().elsewhere()):
            yield f"the curated document's history in git repositories elsewhere: {', '.join(known)}"


# Executing


def _begun(rooms: Sequence[_Room], mark: str, typed: object) -> str | None:
    """Return the digest of an erasure of the same thing that was killed on its way, if `typed` repeats it."""
    given = typed.strip().lower() if isinstance(typed, str) else ""
    if len(given) < SHORTEST:
        return None
    for room in rooms:
        for event in room.store.events(action=SCRUBBED, limit=max(1, room.store.head()[0])):
            known = str(event.detail.get("erasure", ""))
            if known.startswith(given) and event.detail.get("asked") == mark:
                return known
    return None


def _about(room: _Room, shown: ErasurePlan, parts: Sequence[_Part], words: Words, id: str) -> dict[str, Any]:
    """The part of the event that is the receipt: numbers, ids and who was shown it, and none of the words."""
    told = [
        [one.principal, one.surface, one.times, one.first.isoformat(), one.last.isoformat()] for one in shown.recipients
    ]
    keys = ("principal", "surface", "times", "first", "last")
    about: dict[str, Any] = {
        "erasure": id,
        "asked": _mark(room, Request(shown.kind, shown.name)),
        "recipients": [dict(zip(keys, words.taken_out(row), strict=True)) for row in told],
        "kept": {id: words.taken_out(list(actions)) for id, actions in shown.kept.items()},
        "unreachable": list(shown.unreachable),
        "operator": words.taken_out(str(room.ctx.actor)),
    }
    return about


def _erase_files(room: _Room, words: Words) -> None:
    if not room.is_local or not words.forms:
        return
    for thread in _chats(room, words):
        conversation = room.store.conversation(thread)
        if conversation is not None and room.ctx.threads is not None and room.ctx.threads.led(conversation):
            raise Refused(
                f"a process has conversation {conversation.ref_code} open", fix="end it there, then try again"
            )
    for thread in _chats(room, words):
        if room.ctx.threads is not None:
            room.ctx.threads.purge(thread)
    if room.ctx.kept_files is not None:
        room.ctx.kept_files().erase(words)


def _left(rooms: Sequence[_Room], words: Words) -> dict[str, int]:
    """Search every file and table for the words, and say where they are still."""
    found: dict[str, int] = {}
    for room in rooms:
        where = "account" if not room.is_local else f"workspace {room.place}"
        found |= {f"{where}: {name}": count for name, count in room.store.traces(words).items()}
        found |= {f"{where}: {name}": count for name, count in _files([room], words).items()}
        if chats := _chats(room, words):
            found[f"{where}: chats"] = len(chats)
    return found
