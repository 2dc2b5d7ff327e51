"""One round of sync: tell the others what changed here, take what they told, carry out erasures, say how far it got.

    round     recover → tell → read → rekey → empty → deliver → note → publish

Each step can be repeated, and what a killed process has left is finished by the next round. A bundle is kept in the
data folder before anybody hears of it, so its number is never used twice.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Protocol

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from lukasa.model.errors import BundleRefused, BundleUnfinished, NotAMember, SyncError, SyncNewer
from lukasa.model.machines import MOST_MACHINES, Header, Known, Note, Opened, Rekey, SyncState
from lukasa.model.sync import Bundle, Revision, Sealed, revision_digest
from lukasa.model.values import Trust
from lukasa.ports import Clock, Sealing, SyncPlace, SyncRemote
from lukasa.service.sync.replica import Absorbed, Member

CARD, NOTE = "card", "note"
MOST_BYTES, MOST_STATEMENT = 64_000_000, 100_000
RECORDS, BYTES = 1_000, 4_000_000  # of a bundle that this machine writes; a larger record goes alone
NOTED = timedelta(minutes=15)  # how often a machine that has nothing to say shows that it is there
_FIX = "look at that machine: its next sync writes its files again if they were damaged on the way"


class Merging(Protocol):
    """The memory of this machine as a replica."""

    def collect(self) -> list[Revision]: ...
    def everything(self) -> list[Revision]: ...
    def told(self, digests: Iterable[str]) -> None: ...
    def absorb(self, revisions: Iterable[Revision], member: Member) -> Absorbed: ...
    def erased(self) -> frozenset[str]: ...
    def digests(self) -> dict[str, str]: ...


class Joined(Struct, frozen=True):
    """A machine that came in."""

    name: str
    machine: str


class Synced(Struct):
    """What came and went in one round. `refused` and `waits` are sentences that name file and machine."""

    at: datetime
    remote: str
    sent: int = 0
    bundles: int = 0
    taken: dict[str, int] = field(default_factory=dict)  # changes, by machine
    changes: dict[str, dict[str, int]] = field(default_factory=dict)
    held: int = 0
    waiting: int = 0
    emptied: int = 0  # bundles of this machine that lost erased words
    joined: list[Joined] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    waits: list[str] = field(default_factory=list)
    state: str = ""

    @property
    def rivals(self) -> int:
        return sum(by.get("rival", 0) for by in self.changes.values())


def bundle_name(number: int) -> str:
    return f"{number:08}.bundle"


class Round:
    """The steps of one round, on the state of this machine."""

    def __init__(
        self, state: SyncState, place: SyncPlace, remote: SyncRemote, sealing: Sealing, replica: Merging, clock: Clock
    ) -> None:
        self.state, self.place, self.remote, self.sealing, self.replica = state, place, remote, sealing, replica
        self.clock = clock
        self.done = Synced(clock.now(), remote.name)
        self._anew = False

    @property
    def me(self) -> str:
        return self.state.card.machine

    def run(self, receipts: Callable[[], Sequence[str]], *, quiet: bool = False) -> Synced:
        """Do a whole round. With `quiet`, a round without news leaves no trace for a while."""
        told = receipts()  # first, so that what they erased is in what is collected
        self.recover()
        self._tell()
        self._map(told)
        self._read()
        self._mend_key()
        self._empty()
        return self.finish(quiet=quiet)

    def finish(self, *, quiet: bool = False) -> Synced:
        """Let the others see what was written, and say how far this machine got."""
        self._deliver()
        self._note(quiet)
        self.remote.publish(self.me, anew=self._anew)
        self.state.synced_at, self.state.founder = self.done.at, False
        self.place.save(self.state)
        return self.done

    # Telling

    def recover(self) -> None:
        """Take up bundles that a killed process kept and did not count."""
        while (data := self.place.bundle(self.state.number + 1)) is not None:
            where = f"own bundle {self.state.number + 1}"
            header = self.sealing.header(data, self.state.card, where)
            if header.rekey is not None:
                self.accept(header.rekey, self.state.card.name)
            opened = self.sealing.unpack(data, self.state.card, self.state.keys[header.key], where)
            self._count(opened)

    def _tell(self) -> None:
        """Write bundles of what changed here; the first time, of all that is known, which the place may not have."""
        new = self.replica.collect() if self.state.told_all else self.replica.everything()
        for records in _chunks(new):
            self.write(records)
            self.done.sent += len(records)
        self.state.told_all = True

    def write(self, records: tuple[Sealed, ...], rekey: Rekey | None = None) -> None:
        """Write the next bundle of this machine."""
        bundle = Bundle(self.me, self.state.number + 1, self.state.digest, self.clock.now(), records)
        key = self.state.current if rekey is None else self.state.keys[rekey.id]
        data = self.sealing.pack(bundle, self.state.secrets, key, rekey)
        self.place.keep(bundle.number, data)
        self._count(self.sealing.unpack(data, self.state.card, key, "own bundle"))
        self.done.bundles += 1

    def _count(self, opened: Opened) -> None:
        self.replica.told(record.digest for record in opened.bundle.records)
        self.state.number, self.state.digest = opened.header.number, opened.digest
        self.place.save(self.state)

    def _deliver(self) -> None:
        """Make the files of this machine at the place equal to those that are kept here."""
        there, sizes = self.remote.files(self.me), self.place.sizes()
        doubted = {known.note.refused.get(self.me, 0) for known in self.state.known.values() if known.note is not None}
        doubted |= self._require_alone(there)
        if CARD not in there or self.state.noted_at is None:
            key = self.state.keys.get(self.state.card.key, self.state.current)
            self.remote.put(self.me, CARD, self.sealing.card(self.state.card, self.state.secrets, key))
        for number in range(1, self.state.number + 1):
            name = bundle_name(number)
            if number not in sizes:
                raise SyncError(
                    f"bundle {number} is missing in the data folder", fix="`lukasa sync leave`, then join again"
                )
            if there.get(name) == sizes[number] and number not in doubted:
                continue
            data = self.place.bundle(number)
            if data is None or (name in there and self.remote.read(self.me, name, MOST_BYTES) == data):
                continue
            self._anew = self._anew or name in there
            self.remote.put(self.me, name, data)

    def _require_alone(self, there: Mapping[str, int]) -> set[int]:
        """Raise if somebody else writes as this machine: a copy of its data folder, or an older state of it.

        Return the numbers of bundles that were damaged on their way.
        """
        last, damaged = self.state.number, set[int]()
        alone = bundle_name(last + 1) not in there
        if alone and bundle_name(last) in there:
            data = self.remote.read(self.me, bundle_name(last), MOST_BYTES) or b""
            try:
                header = self.sealing.header(data, self.state.card, "own bundle")
                key = self.state.keys.get(header.key)
                opened = None if key is None else self.sealing.unpack(data, self.state.card, key, "own bundle")
                alone = opened is not None and opened.digest == self.state.digest
            except SyncError:
                damaged.add(last)
        if not alone:
            raise SyncError(
                f"{self.remote.name} holds bundles of this machine that it does not know: its data folder was copied, "
                "or an older state of it was brought back",
                fix="`lukasa sync leave` here, then `lukasa sync join` as a machine of its own",
            )
        return damaged

    # Reading

    def _read(self) -> None:
        """Read on in every machine's bundles until nothing more comes; those who are in come before newcomers."""
        stuck: set[str] = set()
        moved = True
        while moved:
            found = [one for one in self.remote.machines() if one != self.me]
            old = [one for one in found if one in self.state.known]
            moved = sum(self._read_on(one, stuck) for one in old) > 0
            if not moved:
                moved = sum(self._admit(one, stuck) for one in found if one not in old or not self._may(one)) > 0
        for machine, known in self.state.known.items():
            self._hear(machine, known)
            self.done.refused += [known.refused] if known.refused else []
            self.done.waits += [known.waits] if known.waits else []

    def _may(self, machine: str) -> bool:
        return self.state.takes_part(machine) or machine in self.state.removed

    def _admit(self, machine: str, stuck: set[str]) -> bool:
        """Look at the card of a machine that is not in, and let it in if the card says that it may; say if so."""
        where = f"the card of machine {machine[:8]} ({machine}/{CARD})"
        if machine in stuck:
            return False
        stuck.add(machine)
        known = self.state.known.get(machine)
        if len(self.state.known) >= 4 * MOST_MACHINES and known is None:
            self.done.refused.append(f"{where} is refused: there are too many machines already")
            return False
        try:
            data = self.remote.read(machine, CARD, MOST_STATEMENT)
            card = None if data is None else self.sealing.open_card(data, machine, self.state.keys, where)
        except BundleUnfinished as error:
            self.done.waits.append(error.message)
            return False
        except (BundleRefused, SyncNewer) as error:
            self.done.refused.append(error.message)
            return False
        vouched = machine in self.state.members.get(self.state.current.id, ()) or machine in self.state.removed
        if card is None:
            if data is not None:
                self.done.waits.append(f"{where} is sealed with a key that this machine does not have")
            return False
        if not vouched and card.key != self.state.current.id:
            if known is None:
                self.done.refused.append(f"{where} is refused: the machine is not a member, its key is no longer used")
            return False
        stuck.discard(machine)
        if known is not None:
            known.card = card
        else:
            own = self.state.own_by_default
            self.state.known[machine] = Known(card, own=own, admitted_at=self.clock.now())
            if machine not in self.state.removed:
                self.done.joined.append(Joined(card.name, machine))
        self.place.save(self.state)
        return True

    def _read_on(self, machine: str, stuck: set[str]) -> bool:
        """Take the next bundles of a machine; say whether any came."""
        known, moved = self.state.known[machine], False
        while machine not in stuck:
            number = known.number + 1
            removed = self.state.removed.get(machine)
            if removed is not None and number > removed.last:
                known.refused = known.waits = ""
                if number > removed.last and self._has(machine, number):
                    self.done.waits.append(
                        f"bundles of {known.card.name} after {removed.last} do not count: it was removed"
                    )
                stuck.add(machine)
                break
            where = f"bundle {number} of {known.card.name} ({machine}/{bundle_name(number)})"
            known.refused = known.waits = ""
            try:
                data = self.remote.read(machine, bundle_name(number), MOST_BYTES)
                if data is None:
                    break
                opened = self._opened(known, number, data, where)
                if opened is not None:
                    self._take(known, *opened)
            except BundleUnfinished as error:
                known.waits = error.message
            except NotAMember as error:
                self.state.ended = error.message
                self.place.save(self.state)
                raise
            except (BundleRefused, SyncNewer) as error:
                known.refused = error.message
            else:
                if opened is not None:
                    moved = True
                    continue
                known.waits = f"{where} is sealed with a key that has not come yet"
                break
            stuck.add(machine)
        return moved

    def _has(self, machine: str, number: int) -> bool:
        return bundle_name(number) in self.remote.files(machine)

    def _opened(self, known: Known, number: int, data: bytes, where: str) -> tuple[Opened, list[Revision]] | None:
        """Return the next bundle of a machine, proved, and what is in it; None if its key has not come yet."""
        header = self.sealing.header(data, known.card, where)
        self._require_next(known, header, number, where)
        if header.rekey is not None:
            self.accept(header.rekey, known.card.name, where)
        if header.key not in self.state.keys:
            return None
        if not self._may(known.card.machine):
            raise BundleRefused(f"{where} is refused: the machine is not a member any more", fix="it has to join again")
        opened = self.sealing.unpack(data, known.card, self.state.keys[header.key], where)
        removed = self.state.removed.get(known.card.machine)
        if removed is not None and number == removed.last and removed.digest not in ("", opened.digest):
            raise BundleRefused(f"{where} is refused: it is not the one that the others know", fix=_FIX)
        try:
            return opened, list(_revisions(opened.bundle))
        except ValueError as error:
            raise BundleRefused(f"{where} is refused: {error}", fix=_FIX) from None

    def _require_next(self, known: Known, header: Header, number: int, where: str) -> None:
        if header.number != number:
            raise BundleRefused(f"{where} is refused: it says that it is number {header.number}", fix=_FIX)
        if header.previous != known.digest:
            raise BundleRefused(f"{where} is refused: it does not follow the one before it", fix=_FIX)

    def _take(self, known: Known, opened: Opened, revisions: list[Revision]) -> None:
        """Absorb a bundle, then note that it was read: after a crash it is absorbed again, which changes nothing."""
        absorbed = self.replica.absorb(revisions, Member(known.card.name, Trust[known.trust.upper()], known.own))
        known.number, known.digest = opened.header.number, opened.digest
        self.place.save(self.state)
        self.done.taken[known.card.name] = self.done.taken.get(known.card.name, 0) + len(revisions) - absorbed.known
        for kind, counts in absorbed.changes.items():
            self.done.changes[kind] = dict(Counter(self.done.changes.get(kind, {})) + Counter(counts))
        self.done.held += absorbed.held
        self.done.waiting = absorbed.waiting  # those that wait now, also from before

    def accept(self, rekey: Rekey, name: str, where: str = "") -> None:
        """Take a new key that a member made, and who is out by it."""
        if rekey.id not in self.state.keys:
            if any(one.machine == self.me for one in rekey.removed) or self.me in self.state.removed:
                self.state.removed.update({one.machine: one for one in rekey.removed})
                raise NotAMember(
                    f"{name} has removed this machine from the sync of {self.remote.name}",
                    fix="what is here stays here; `lukasa sync leave` forgets the keys",
                )
            for key in self.sealing.taken(rekey, self.me, self.state.secrets, where):
                self.state.keys.setdefault(key.id, key)
        self.state.members[rekey.id] = sorted(rekey.wraps)
        self._remember_lock(rekey)
        for one in rekey.removed:
            before = self.state.removed.get(one.machine)
            if one.machine != self.me and (before is None or before.last < one.last):
                self.state.removed[one.machine] = one
                if before is None and one.machine in self.state.known:
                    self.done.removed.append(self.state.known[one.machine].card.name)
        self.place.save(self.state)

    def _hear(self, machine: str, known: Known) -> None:
        """Read what a machine last said of itself. A note that cannot be read tells nothing, and does no harm."""
        if not self.state.takes_part(machine):
            return
        where = f"the note of {known.card.name} ({machine}/{NOTE})"
        try:
            data = self.remote.read(machine, NOTE, MOST_STATEMENT)
            note = None if data is None else self.sealing.open_note(data, known.card, self.state.keys, where)
        except BundleUnfinished:
            return
        except (BundleRefused, SyncNewer) as error:
            self.done.refused.append(error.message)
            return
        if note is not None and (known.note is None or note.at >= known.note.at):
            known.note = note

    # Keys, erasures, and what is said of oneself

    def _mend_key(self) -> None:
        """Make a new key if the current one went to a machine that somebody else removed at the same time."""
        if set(self.state.members.get(self.state.current.id, ())) & set(self.state.removed):
            self.rekey(None)

    def rekey(self, passphrase: str | None) -> None:
        """Make a new shared key for all members but those who are removed, and tell them."""
        cards = [self.state.card, *(one.card for id, one in self.state.known.items() if self.state.takes_part(id))]
        number = max(key.number for key in self.state.keys.values()) + 1
        removed = tuple(self.state.removed.values())
        ring = sorted(self.state.keys.values(), key=lambda key: key.order)
        key, rekey = self.sealing.new_key(number, cards, removed=removed, passphrase=passphrase, ring=ring)
        self.state.keys[key.id] = key
        self.state.members[key.id] = sorted(rekey.wraps)
        self._remember_lock(rekey)
        self.place.save(self.state)
        self.write((), rekey)

    def _remember_lock(self, rekey: Rekey) -> None:
        before = self.state.lock
        if rekey.lock is not None and (before is None or before.number <= rekey.number):
            self.state.lock = rekey

    def _empty(self) -> None:
        """Take erased words out of what this machine has told."""
        erased = self.replica.erased()
        mark = hashlib.sha256("\n".join(sorted(erased)).encode()).hexdigest()
        if not erased or mark == self.state.erased_mark:
            return
        for number in range(1, self.state.number + 1):
            data = self.place.bundle(number)
            header = None if data is None else self.sealing.claimed(data, f"own bundle {number}")
            if data is None or header is None:
                continue
            rest = self.sealing.without(data, erased, self.state.secrets, self.state.keys[header.key])
            if rest is not None:
                self.place.keep(number, rest)
                self.done.emptied += 1
        self.state.erased_mark = mark
        self.place.save(self.state)

    def _map(self, receipts: Sequence[str]) -> None:
        """Note by which bundle the others hear of each erasure."""
        for receipt in receipts:
            self.state.erasures.setdefault(receipt, self.state.number)

    def _note(self, quiet: bool) -> None:
        every = sorted(self.replica.digests().items())
        self.state.state = self.done.state = hashlib.sha256(msgspec.json.encode(every)).hexdigest()
        seen = {machine: known.number for machine, known in self.state.known.items()}
        refused = {machine: known.number + 1 for machine, known in self.state.known.items() if known.refused}
        note = Note(self.me, self.clock.now(), seen, refused, self.state.state)
        print_ = hashlib.sha256(msgspec.json.encode(replace(note, at=datetime.min))).hexdigest()
        recent = self.state.noted_at is not None and note.at - self.state.noted_at < NOTED
        if quiet and recent and print_ == self.state.note_mark:
            return
        self.remote.put(self.me, NOTE, self.sealing.note(note, self.state.secrets, self.state.current))
        self.state.noted_at, self.state.note_mark = note.at, print_


class _Stays(Struct, frozen=True):
    """What stays of a revision whose words were erased: its place in the graph."""

    store: str
    kind: str
    thing: str
    parents: tuple[str, ...]
    at: datetime
    machine: str


def _chunks(revisions: Sequence[Revision]) -> Iterator[tuple[Sealed, ...]]:
    """Divide revisions into what fits a bundle each."""
    part, size = list[Sealed](), 0
    for one in revisions:
        stays = _Stays(one.store, one.kind, one.thing, one.parents, one.at, one.machine)
        # Without its body, a revision's salt would only let others guess the words.
        text = msgspec.json.encode(one if one.body is not None else replace(one, salt="")).decode()
        if part and (len(part) >= RECORDS or size + len(text) > BYTES):
            yield tuple(part)
            part, size = [], 0
        part.append(Sealed(one.digest, text, msgspec.json.encode(stays).decode()))
        size += len(text)
    if part:
        yield tuple(part)


def _revisions(bundle: Bundle) -> Iterator[Revision]:
    """Return the revisions of a bundle; ValueError if one is not what its digest says."""
    for record in bundle.records:
        if record.text is None:
            was = msgspec.json.decode(record.about, type=_Stays)
            yield Revision(was.store, was.kind, was.thing, was.parents, None, was.at, was.machine, "", record.digest)
            continue
        one = msgspec.json.decode(record.text, type=Revision)
        if one.digest != record.digest:
            raise ValueError("a record has another digest than the index says")
        if one.body is not None:
            made = revision_digest(one.store, one.kind, one.thing, one.parents, one.body, one.at, one.machine, one.salt)
            if made != one.digest:
                raise ValueError("a record is not what its digest says")
        yield one
