"""A replica: the memory of this machine as one of several that hold the same revisions."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime

from msgspec import Struct
from msgspec.structs import replace

from lukasa.model.conversation import WorkspaceInfo
from lukasa.model.events import Actor, canonical_json
from lukasa.model.sync import Erasure, KeptRevision, Revision, Stage
from lukasa.ports import Clock, SystemClock
from lukasa.service import admin
from lukasa.service.call import CallContext, retry_on_conflict
from lukasa.service.sync import absorbing, capturing
from lukasa.service.sync.absorbing import Absorbed, Member
from lukasa.service.sync.capturing import Desk
from lukasa.service.sync.known import Known
from lukasa.storage.operations import KeepRevisions, Transaction
from lukasa.storage.port import Store
from lukasa.write import revisions
from lukasa.write.things import FIELDS, KINDS

__all__ = ["Absorbed", "Member", "Replica", "Rooms"]

ACCOUNT = ""  # the name of the account's store in a revision
_PAGE = 500


class Rooms(Struct, frozen=True):
    """The stores of an account.

    `context` opens a workspace that is registered, and furnishes it; `bare` opens its store as it is, and makes it
    empty if it is not there, so that what comes from elsewhere furnishes it.
    """

    account: Store
    infos: Callable[[], Sequence[WorkspaceInfo]]
    context: Callable[[WorkspaceInfo], CallContext]
    bare: Callable[[WorkspaceInfo], Store]
    clock: Clock = SystemClock()
    actor: Actor = Actor("lukasa", "sync", "in-process")

    @property
    def now(self) -> datetime:
        """The present time."""
        return self.clock.now()


class Replica:
    """The memory of this machine. `machine` is the name that its own revisions carry."""

    def __init__(self, rooms: Rooms, machine: str) -> None:
        self._rooms, self._machine = rooms, machine

    # Telling

    def collect(self) -> list[Revision]:
        """Return the revisions that were made here and did not go out yet, after noting what changed since.

        One that was erased before it went out has no body. Each stands behind those that it was made from.
        """
        found: list[Revision] = []
        for desk in self._desks():
            retry_on_conflict(lambda desk=desk: capturing.capture(desk))  # type: ignore[misc]
            rows = desk.store.revisions("told", [False])
            found += revisions.ordered(one.revision for one in rows if one.revision.machine == self._machine)
        return found

    def everything(self) -> list[Revision]:
        """Return all revisions that are known here, whoever made them: for a place that may have none of them."""
        mine = self.collect()
        have = {one.digest for one in mine}
        found: list[Revision] = []
        for desk in self._desks():
            rows = [one.revision for one in desk.store.revisions("kind", [*KINDS, FIELDS])]
            found += revisions.ordered(one for one in rows if one.store == desk.store_id and one.digest not in have)
        return [*found, *mine]

    def told(self, digests: Iterable[str]) -> None:
        """Note that these revisions are in a bundle of this machine. Telling twice does no harm."""
        wanted = list(digests)
        for desk in self._desks():
            for start in range(0, len(wanted), _PAGE):
                rows = desk.store.revisions("digest", wanted[start : start + _PAGE])
                new = tuple(replace(one, told=True) for one in rows if not one.told)
                if new:
                    desk.store.apply(Transaction(desk.actor, desk.now, (KeepRevisions(new),)))

    def erased(self) -> frozenset[str]:
        """Return the digests of the revisions whose words were erased, also of ones that have not come yet."""
        found: set[str] = set()
        for desk in self._desks():
            retry_on_conflict(lambda desk=desk: capturing.capture(desk))  # type: ignore[misc]
            rows = desk.store.revisions("erasure", [Erasure.FRESH, Erasure.TOLD])
            found |= {one.revision.digest for one in rows}
            for one in desk.store.revisions("kind", [*KINDS, FIELDS]):
                if revisions.is_erasure(one.revision) and one.revision.body is not None:
                    found |= set(one.revision.body["erased"])
        return frozenset(found)

    # Taking in

    def absorb(self, given: Iterable[Revision], member: Member) -> Absorbed:
        """Take in what another machine made. Revisions that are known are passed over; some may have to wait.

        Whoever was killed on the way absorbs again, the same or nothing, and goes on.
        """
        done, by_store = Absorbed(), defaultdict[str, list[Revision]](list)
        for one in given:
            by_store[one.store].append(one)
        for desk in self._desks():
            retry_on_conflict(lambda desk=desk: capturing.capture(desk))  # type: ignore[misc]
        absorbing.keep(self._desk(ACCOUNT, self._rooms.account), by_store.pop(ACCOUNT, []), member, done)
        self._settle(self._desk(ACCOUNT, self._rooms.account), done)
        known = {info.id: info for info in self._rooms.infos()}
        for id, some in by_store.items():
            if id in known:
                absorbing.keep(self._desk(id, self._rooms.bare(known[id])), some, member, done)
            else:  # its workspace has not come yet
                absorbing.keep(self._desk(ACCOUNT, self._rooms.account), some, member, done)
        self._move_in(known, done)
        for info in known.values():
            self._settle(self._desk(info.id, self._rooms.bare(info)), done)
        return done

    def _move_in(self, known: Mapping[str, WorkspaceInfo], done: Absorbed) -> None:
        """Bring revisions that waited in the account for their workspace into its store, now that it is here."""
        account = self._desk(ACCOUNT, self._rooms.account)
        by_store = defaultdict[str, list[KeptRevision]](list)
        for one in account.store.revisions("stage", [Stage.WAITING, Stage.READY]):
            if one.revision.store != ACCOUNT:
                by_store[one.revision.store].append(one)
        for id, rows in by_store.items():
            if id not in known:
                done.waiting += len(rows)
                continue
            desk = self._desk(id, self._rooms.bare(known[id]))
            here = {one.revision.digest for one in desk.store.revisions("digest", [r.revision.digest for r in rows])}
            new = tuple(one for one in rows if one.revision.digest not in here)
            desk.store.apply(Transaction(desk.actor, desk.now, (KeepRevisions(new),)))
            gone = tuple(one.revision.digest for one in rows)
            account.store.apply(Transaction(desk.actor, desk.now, (KeepRevisions(drop=gone),)))

    def _settle(self, desk: Desk, done: Absorbed) -> None:
        done.waiting += absorbing.promote(desk)
        self._follow(desk, done)
        absorbing.settle(desk, done)

    def _follow(self, desk: Desk, done: Absorbed) -> None:
        """Erase here what others erased: first wherever its texts are, then in the revisions."""
        going = absorbing.going(desk)
        if going.entries or going.texts:
            rooms = [self._rooms.context(info) for info in self._rooms.infos()]
            if rooms:
                admin.erasing.follow(rooms, desk.store, going.entries, going.texts)
        absorbing.emptied(desk, going.rows)
        if going.rows:
            desk.store.purge_files()
        done.erased += len(going.rows)

    # State

    def digests(self) -> Mapping[str, str]:
        """Return a digest of each store, by workspace and empty for the account: equal where replicas are equal.

        It covers every thing that syncs as all machines see it, and every revision that is known.
        """
        found: dict[str, str] = {}
        for desk in self._desks():
            retry_on_conflict(lambda desk=desk: capturing.capture(desk))  # type: ignore[misc]
            told = hashlib.sha256()
            for line in sorted(self._lines(desk)):
                told.update(line.encode())
            found[desk.store_id] = told.hexdigest()
        return found

    def _lines(self, desk: Desk) -> Iterator[str]:
        rows = desk.store.revisions("kind", [*KINDS, FIELDS])
        known = Known(desk.store, {Stage.DONE})
        pairs = {(one.revision.kind, one.revision.thing) for one in rows if one.revision.kind != FIELDS}
        for one in rows:
            if one.stage is Stage.DONE:
                yield one.revision.digest
        for kind, thing in pairs:
            for seen in known.seen(kind, thing):
                if seen.plain is not None:
                    yield canonical_json(
                        [kind, seen.spot, list(seen.plain.name), seen.plain.text, seen.plain.rest, seen.plain.fields]
                    )

    # Stores

    def _desks(self) -> Iterator[Desk]:
        yield self._desk(ACCOUNT, self._rooms.account)
        for info in self._rooms.infos():
            yield self._desk(info.id, self._rooms.bare(info))

    def _desk(self, id: str, store: Store) -> Desk:
        return Desk(id, store, self._machine, self._rooms.actor, self._rooms.now)
