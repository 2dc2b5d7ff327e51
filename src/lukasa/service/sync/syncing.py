"""The sync of one machine: begin it, join it, do a round, see who takes part, remove a machine, leave."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from lukasa.model.errors import (
    BundleRefused,
    Conflict,
    InvalidInput,
    NotAMember,
    NotFound,
    SyncError,
    SyncNewer,
    WrongPassphrase,
)
from lukasa.model.machines import (
    MOST_NAME,
    Card,
    Hex32,
    Known,
    Rekey,
    Removal,
    Secrets,
    SharedKey,
    SyncState,
    fingerprint,
    machine_id,
)
from lukasa.model.sync import Bundle
from lukasa.model.values import Trust
from lukasa.ports import Clock, Sealing, SyncParts, SyncRemote
from lukasa.service.sync.exchanging import CARD, MOST_BYTES, MOST_STATEMENT, Merging, Round, Synced

VERSION = 1
SHORTEST = 12  # characters of a passphrase
MOST_TRIED = 8  # keys that a passphrase is tried on; each costs some tenths of a second
DEFAULT = "own"


class MachineNow(Struct, frozen=True):
    """A machine that takes part, or did. `behind` is how many bundles of this machine it has not read yet."""

    name: str
    machine: str
    fingerprint: str
    standing: str  # this, member, removed, outside
    own: bool
    trust: str
    bundles: int
    seen_at: datetime | None
    behind: int
    same: bool
    trouble: str = ""


class SyncStatus(Struct, frozen=True):
    """How a machine stands. `waiting` is how many changes of it nobody has heard of yet."""

    remote: str
    memory: str
    name: str
    fingerprint: str
    synced_at: datetime | None
    waiting: int
    state: str
    machines: tuple[MachineNow, ...]
    troubles: tuple[str, ...]
    ended: str
    unconfirmed: dict[str, tuple[str, ...]]


class _Mark(Struct, frozen=True):
    memory: Hex32
    format: str = "lukasa-sync"
    version: int = VERSION


class Sync:
    """Two or more machines with one memory, and no server. Only the owner may use it."""

    def __init__(
        self,
        parts: SyncParts,
        replica: Callable[[str], Merging],
        receipts: Callable[[], Sequence[str]],
        clock: Clock,
        require_author: Callable[[str], None],
    ) -> None:
        self._parts, self._replica, self._receipts, self._clock = parts, replica, receipts, clock
        self._require_author = require_author
        self._place = parts.place()

    @property
    def configured(self) -> bool:
        """Whether this machine takes part in a sync."""
        state = self._place.load()
        return state is not None and not state.ended

    # Beginning and joining

    def init(self, address: str, passphrase: str, *, name: str = "", team: bool = False) -> Synced:
        """Begin a sync at an empty place, and put all memory there, encrypted."""
        self._require_author("sync")
        _require_strong(passphrase)
        with self._place.held():
            self._require_free()
            remote = self._parts.remote(address)
            memory = os.urandom(16).hex()
            card, secrets = self._machine(name)
            sealing = self._parts.sealing(memory)
            key, rekey = sealing.new_key(1, [card], passphrase=passphrase)
            state = SyncState(
                memory=memory,
                remote=remote.name,
                card=replace(card, key=key.id),
                secrets=secrets,
                keys={key.id: key},
                members={key.id: [card.machine]},
                own_by_default=not team,
                founder=True,
                lock=rekey,
            )
            first = Bundle(card.machine, 1, "", self._clock.now(), ())
            self._place.clear()
            self._place.keep(1, sealing.pack(first, secrets, key, rekey))
            self._claim(state, remote)
            return self._round(state, remote).run(self._receipts)

    def _claim(self, state: SyncState, remote: SyncRemote) -> None:
        """Claim a place for the memory that begins; the state is kept first, so that a killed process can go on."""
        self._place.save(state)
        try:
            remote.put_mark(msgspec.json.encode(_Mark(state.memory)))
        except Conflict:
            self._place.clear()
            raise

    def join(self, address: str, passphrase: str, *, name: str = "", team: bool = False) -> Synced:
        """Join the sync at a place that another machine has begun, and take what is there."""
        self._require_author("sync")
        with self._place.held():
            self._require_free()
            remote = self._parts.remote(address)
            remote.refresh()
            memory = _memory_of(remote)
            found = self._opened_keys(remote, self._parts.sealing(memory), passphrase)
            before = self._place.load()
            if before is not None and before.memory == memory and before.card.machine not in before.removed:
                state = before  # the key was changed while this machine was away: it stays the same machine
                state.remote, state.ended, state.noted_at = remote.name, "", None
            else:
                card, secrets = self._machine(name)
                self._place.clear()
                remote.refresh()
                state = SyncState(memory, remote.name, card, secrets, {}, {}, own_by_default=not team)
            for key in found.keys:
                state.keys.setdefault(key.id, key)
            state.members.setdefault(found.keys[-1].id, sorted(found.members))
            state.removed.update({one.machine: one for one in found.removed})
            state.card = replace(state.card, key=state.current.id)
            self._place.save(state)
            return self._round(state, remote).run(self._receipts)

    def run(self, *, quiet: bool = False) -> Synced:
        """Do a round: tell the others what changed here, and take what they told."""
        self._require_author("sync")
        with self._place.held():
            round_ = self._ready()
            return round_.run(self._receipts, quiet=quiet)

    def leave(self) -> str:
        """Forget the keys of the sync, and return its place. Memory stays, and so does what the others were told."""
        self._require_author("sync")
        with self._place.held():
            state = self._state()
            self._place.clear()
            return state.remote

    # Who takes part

    def status(self) -> SyncStatus:
        """Return how this machine stands, from what it knows; nobody else is asked."""
        self._require_author("see the sync")
        state = self._state()
        machines = tuple(self._machines(state))
        return SyncStatus(
            remote=state.remote,
            memory=state.memory,
            name=state.card.name,
            fingerprint=fingerprint(state.card.machine),
            synced_at=state.synced_at,
            waiting=len(self._replica(state.card.machine).collect()),
            state=state.state,
            machines=machines,
            troubles=tuple(one.trouble for one in machines if one.trouble),
            ended=state.ended,
            unconfirmed={receipt: names for receipt in state.erasures if (names := _unconfirmed(state, receipt))},
        )

    def unconfirmed(self, receipt: str) -> tuple[str, ...]:
        """Return the machines that have not confirmed an erasure yet; none without a sync."""
        state = self._place.load()
        return () if state is None else _unconfirmed(state, receipt)

    def trust(self, machine: str, level: str) -> None:
        """Say how much a machine's statements count here: `own`, or the most trust that they keep."""
        self._require_author("trust a machine")
        if level != DEFAULT and level.upper() not in Trust.__members__:
            known = ", ".join((DEFAULT, *(one.name.lower() for one in Trust)))
            raise InvalidInput(f"there is no trust {level[:60]!r}", fix=f"use one of: {known}")
        with self._place.held():
            state = self._state()
            known_one = _found(state, machine)
            known_one.own = level == DEFAULT
            known_one.trust = "author" if known_one.own else level
            self._place.save(state)

    def remove(self, machine: str, passphrase: str | None) -> Synced:
        """Remove a machine. Its later bundles are refused, and what the others say from now on, it cannot read.

        The passphrase is the new one, for machines that join later; without one, no machine can join.
        """
        self._require_author("remove a machine")
        if passphrase is not None:
            _require_strong(passphrase)
        with self._place.held():
            round_ = self._ready()
            known = _found(round_.state, machine)
            self._require_new(round_.state, passphrase)
            round_.run(self._receipts)
            id = known.card.machine
            round_.state.removed[id] = Removal(id, known.number, known.digest)
            round_.rekey(passphrase)
            round_.done.removed.append(known.card.name)
            return round_.finish()

    def passphrase(self, passphrase: str) -> Synced:
        """Change the passphrase that lets machines join; those that are in stay in."""
        self._require_author("change the passphrase")
        _require_strong(passphrase)
        with self._place.held():
            round_ = self._ready()
            self._require_new(round_.state, passphrase)
            round_.run(self._receipts)
            round_.rekey(passphrase)
            return round_.finish()

    # Parts

    def _state(self) -> SyncState:
        state = self._place.load()
        if state is None:
            raise NotFound("this memory does not sync", fix="`lukasa sync init DIR` or `lukasa sync join DIR`")
        return state

    def _require_free(self) -> None:
        state = self._place.load()
        if state is not None and not state.ended:
            raise Conflict(f"this memory syncs with {state.remote} already", fix="`lukasa sync leave` first")

    def _require_new(self, state: SyncState, passphrase: str | None) -> None:
        """Refuse the passphrase that counts now: whoever is to stay out knows it."""
        if passphrase is None or state.lock is None:
            return
        if self._parts.sealing(state.memory).unlocked(state.lock, passphrase, "the key") is not None:
            raise InvalidInput("the new passphrase is the one that counts now", fix="choose another one")

    def _ready(self) -> Round:
        state = self._state()
        if state.ended:
            raise NotAMember(state.ended, fix="`lukasa sync join` again, or `lukasa sync leave`")
        remote = self._parts.remote(state.remote)
        remote.refresh()
        if state.founder and remote.mark() is None:
            self._claim(state, remote)
        found = _memory_of(remote)
        if found != state.memory:
            raise SyncError(f"{remote.name} holds another memory now", fix="`lukasa sync leave`, then join that one")
        return self._round(state, remote)

    def _round(self, state: SyncState, remote: SyncRemote) -> Round:
        sealing, replica = self._parts.sealing(state.memory), self._replica(state.card.machine)
        return Round(state, self._place, remote, sealing, replica, self._clock)

    def _machine(self, name: str) -> tuple[Card, Secrets]:
        secrets, sign, agree = self._parts.new_machine()
        given = " ".join((name or socket.gethostname() or "machine").split())[:MOST_NAME]
        if not given or not given.isprintable():
            raise InvalidInput(f"{name[:60]!r} is no name for a machine", fix="give a short name, as in --name laptop")
        return Card(machine_id(sign, agree), given, sign, agree, self._clock.now()), secrets

    def _opened_keys(self, remote: SyncRemote, sealing: Sealing, passphrase: str) -> _Found:
        """Return the keys that a passphrase opens, from the newest key that it fits."""
        locked = sorted(_rekeys(remote, sealing), key=lambda one: (one[0].number, one[0].id), reverse=True)
        tried = [one for one in locked if one[0].lock is not None][:MOST_TRIED]
        for rekey, machine, data in tried:
            where = f"the key of machine {machine[:8]}"
            keys = sealing.unlocked(rekey, passphrase, where)
            if keys is None:
                continue
            by_id = {key.id: key for key in keys}
            said = remote.read(machine, CARD, MOST_STATEMENT)
            card = (
                None if said is None else sealing.open_card(said, machine, by_id, f"the card of machine {machine[:8]}")
            )
            if card is None:
                raise BundleRefused(
                    f"{where} is refused: its machine has no card", fix="sync that machine, then try again"
                )
            sealing.header(data, card, where)
            return _Found(tuple(keys), tuple(rekey.wraps), rekey.removed)
        if not locked:
            raise NotFound(f"{remote.name} holds no bundle yet", fix="sync the first machine, then try again")
        raise WrongPassphrase(
            f"the passphrase opens no key of the memory at {remote.name}",
            fix="check it; after a machine was removed, the new one counts. `lukasa sync passphrase` sets another",
        )

    def _machines(self, state: SyncState) -> Iterator[MachineNow]:
        mine = state.card
        yield MachineNow(
            mine.name, mine.machine, fingerprint(mine.machine), "this", True, "author", state.number,
            state.synced_at, 0, True, state.ended,
        )  # fmt: skip
        for id, known in state.known.items():
            removed, note = id in state.removed, known.note
            standing = "removed" if removed else ("member" if state.takes_part(id) else "outside")
            yield MachineNow(
                name=known.card.name,
                machine=id,
                fingerprint=fingerprint(id),
                standing=standing,
                own=known.own,
                trust=known.trust,
                bundles=known.number,
                seen_at=note.at if note is not None else None,
                behind=0 if removed else state.number - (note.seen.get(mine.machine, 0) if note is not None else 0),
                same=note is not None and note.state == state.state,
                trouble=known.refused or known.waits,
            )


class _Found(Struct, frozen=True):
    keys: tuple[SharedKey, ...]
    members: tuple[str, ...]
    removed: tuple[Removal, ...]


def _rekeys(remote: SyncRemote, sealing: Sealing) -> Iterator[tuple[Rekey, str, bytes]]:
    """Return the bundles that bring a key. Nothing of them is proved."""
    for machine in remote.machines():
        for name in sorted(remote.files(machine)):
            if not name.endswith(".bundle"):
                continue
            try:
                data = remote.read(machine, name, MOST_BYTES) or b""
                header = sealing.claimed(data, f"{machine}/{name}")
            except SyncError:
                continue
            if header.rekey is not None:
                yield header.rekey, machine, data


def _memory_of(remote: SyncRemote) -> str:
    data = remote.mark()
    if data is None:
        raise NotFound(f"{remote.name} holds no memory", fix="`lukasa sync init` on the first machine begins it")
    try:
        mark = msgspec.json.decode(data, type=_Mark)
    except ValueError:
        raise BundleRefused(f"{remote.name} does not say which memory it holds", fix="name the right place") from None
    if mark.version > VERSION:
        raise SyncNewer(f"{remote.name} is of version {mark.version}", fix="upgrade Lukasa on this machine")
    return mark.memory


def _found(state: SyncState, name: str) -> Known:
    """Return the machine of a name, or whose fingerprint begins so."""
    wanted = name.strip().casefold()
    start = wanted.replace(" ", "")
    found = [
        known
        for id, known in state.known.items()
        if known.card.name.casefold() == wanted or (len(start) >= 4 and id.startswith(start))
    ]
    if len(found) > 1:
        raise InvalidInput(f"several machines are called {name[:60]!r}", fix="give the start of its fingerprint")
    if not found:
        raise NotFound(f"no machine {name[:60]!r} takes part", fix="`lukasa sync members` lists them")
    return found[0]


def _unconfirmed(state: SyncState, receipt: str) -> tuple[str, ...]:
    number = state.erasures.get(receipt)

    def confirmed(known: Known) -> bool:
        return number is not None and known.note is not None and known.note.seen.get(state.card.machine, 0) >= number

    waits = [known.card.name for id, known in state.known.items() if state.takes_part(id) and not confirmed(known)]
    gone = [f"{known.card.name} (removed)" for id, known in state.known.items() if id in state.removed]
    return (*waits, *gone)


def _require_strong(passphrase: str) -> None:
    if len(passphrase) < SHORTEST:
        raise InvalidInput(
            f"the passphrase has {len(passphrase)} characters", fix=f"use at least {SHORTEST}, as in five random words"
        )
