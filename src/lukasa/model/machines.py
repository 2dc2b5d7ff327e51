"""Machines that share a memory by sync: their cards, the keys that they share, and what they say of one another."""

from __future__ import annotations

import hashlib
from datetime import datetime
from typing import Annotated

from msgspec import Meta, Struct

from lukasa.model.sync import Bundle

MOST_MACHINES = 64
MOST_NAME = 60

Hex16 = Annotated[str, Meta(pattern="^[0-9a-f]{16}$")]
Hex32 = Annotated[str, Meta(pattern="^[0-9a-f]{32}$")]
Hex64 = Annotated[str, Meta(pattern="^[0-9a-f]{64}$")]
Hex = Annotated[str, Meta(pattern="^([0-9a-f]{2})*$", max_length=200_000)]
Number = Annotated[int, Meta(ge=1, le=99_999_999)]
Name = Annotated[str, Meta(min_length=1, max_length=MOST_NAME)]


def machine_id(sign: str, agree: str) -> str:
    """Return the id of a machine, which is a digest of its public keys: nobody else can have it."""
    return hashlib.sha256(f"{sign}:{agree}".encode()).hexdigest()[:32]


def fingerprint(id: str) -> str:
    """Return the id of a machine as people compare it."""
    return " ".join(id[place : place + 4] for place in range(0, len(id), 4))


class Secrets(Struct, frozen=True):
    """The private keys of a machine: one signs, the other receives keys."""

    sign: Hex64
    agree: Hex64


class Card(Struct, frozen=True):
    """A machine's name and public keys, as it shows them to the others. `key` is the shared key that it had then."""

    machine: Hex32
    name: Name
    sign: Hex64
    agree: Hex64
    at: datetime
    key: Hex16 = "0" * 16


class SharedKey(Struct, frozen=True):
    """A key that the members have in common. The newest is the one with the highest number, then the highest id."""

    id: Hex16
    number: Number
    secret: Hex64

    @property
    def order(self) -> tuple[int, str]:
        return self.number, self.id


class Lock(Struct, frozen=True):
    """A shared key under a passphrase, with the parameters of scrypt."""

    n: int
    r: int
    p: int
    salt: Hex32
    box: Hex


class Removal(Struct, frozen=True):
    """A machine that was removed, and the last of its bundles that still counts, with its digest."""

    machine: Hex32
    last: Annotated[int, Meta(ge=0, le=99_999_999)]
    digest: str


class Rekey(Struct, frozen=True):
    """A new shared key, wrapped for each member and perhaps under a passphrase; its ring holds the keys before it."""

    id: Hex16
    number: Number
    removed: tuple[Removal, ...]
    wraps: dict[Hex32, Hex]
    lock: Lock | None
    ring: Hex


class Header(Struct, frozen=True):
    """What a bundle says in clear, under the signature of its machine. It commits to the sealed index."""

    memory: Hex32
    machine: Hex32
    number: Number
    previous: Annotated[str, Meta(pattern="^([0-9a-f]{64})?$")]
    key: Hex16
    salt: Hex32
    index: Hex64
    count: Annotated[int, Meta(ge=0)]
    rekey: Rekey | None = None


class Opened(Struct, frozen=True):
    """A bundle that proved to be its machine's, with the digest by which the next one names it."""

    header: Header
    digest: str
    bundle: Bundle


class Note(Struct, frozen=True):
    """What a machine last said of itself: how far it has read, what it refused, and the digest of its memory.

    `seen` is the number of the last bundle that it took from each machine, with all erasures in it carried out.
    """

    machine: Hex32
    at: datetime
    seen: dict[Hex32, int]
    refused: dict[Hex32, int]
    state: str
    version: str = ""


class Known(Struct):
    """Another machine as this one knows it: how far it was read, and how much it is trusted.

    `refused` says why its next bundle was refused, and `waits` why it has to wait; both are empty if all is well.
    """

    card: Card
    number: int = 0
    digest: str = ""
    own: bool = True
    trust: str = "author"
    admitted_at: datetime | None = None
    note: Note | None = None
    refused: str = ""
    waits: str = ""


class SyncState(Struct):
    """All that a machine knows of the sync that it takes part in, its private keys included.

    `members` says for each shared key which machines got it. `erasures` are receipts, with the number of the bundle
    that tells the others. `ended` says why this machine takes part no more.
    """

    memory: Hex32
    remote: str
    card: Card
    secrets: Secrets
    keys: dict[Hex16, SharedKey]
    members: dict[Hex16, list[Hex32]]
    known: dict[Hex32, Known] = {}
    removed: dict[Hex32, Removal] = {}
    number: int = 0
    digest: str = ""
    own_by_default: bool = True
    founder: bool = False
    told_all: bool = False
    lock: Rekey | None = None  # the newest key that a passphrase opens
    erasures: dict[str, int] = {}
    erased_mark: str = ""
    noted_at: datetime | None = None
    note_mark: str = ""
    synced_at: datetime | None = None
    state: str = ""
    ended: str = ""
    version: int = 1

    @property
    def current(self) -> SharedKey:
        """The key that counts now."""
        return max(self.keys.values(), key=lambda key: key.order)

    def takes_part(self, machine: str) -> bool:
        """Say whether a machine is a member now: it got the current key, or its card was made with it."""
        if machine in self.removed:
            return False
        if machine == self.card.machine:
            return True
        known = self.known.get(machine)
        current = self.current.id
        return machine in self.members.get(current, ()) or (known is not None and known.card.key == current)
