"""The files that machines exchange: cards, notes, bundles and new keys; made here, and judged before use.

A bundle is a chain of parts, each with its length before it:

    magic · header · signature · index · record … · emptied · signature · "end"

The header is in clear and signed. It commits to the index, which is sealed and has the digest of each record and a
check of its text. So a record can be emptied later and the signature still holds; which ones were emptied is signed
anew, or anybody who holds the file could empty one.
"""

from __future__ import annotations

import hashlib
import os
import zlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any, TypeVar

import msgspec
from msgspec import Struct

from lukasa.model.errors import BundleRefused, BundleUnfinished, NotAMember, SyncNewer
from lukasa.model.machines import (
    MOST_MACHINES,
    Card,
    Header,
    Hex,
    Hex16,
    Hex32,
    Hex64,
    Note,
    Opened,
    Rekey,
    Removal,
    Secrets,
    SharedKey,
    machine_id,
)
from lukasa.model.sync import Bundle, Sealed
from lukasa.providers.sync import ciphers
from lukasa.providers.sync.ciphers import Unopened

VERSION = 1
MOST_BYTES = 64_000_000  # of a bundle, and of all of its texts
MOST_RECORDS = 5_000
MOST_TEXT = 32_000_000  # bytes of one record
MOST_STATEMENT = 100_000  # bytes of a card or a note
_MOST_HEADER, _MOST_INDEX = 1_000_000, 4_000_000
_END, _SIGNATURE, _SALT = b"end\n", 64, 16
_PACKED_FROM = 200  # bytes; a shorter text is not compressed

T = TypeVar("T")


class _Index(Struct, frozen=True):
    at: datetime
    records: tuple[tuple[Hex64, Hex64, str], ...]  # of each: its digest, the check of its text, what stays of it


class _Statement(Struct, frozen=True):
    memory: Hex32
    machine: Hex32
    key: Hex16
    box: Hex


class _Parts(Struct, frozen=True):
    head: bytes
    signature: bytes
    index: bytes
    records: tuple[bytes, ...]
    emptied: bytes
    emptied_signature: bytes


class Sealing:
    """What machines of one memory seal and sign."""

    def __init__(self, memory: str) -> None:
        self.memory = memory

    # Keys

    def new_key(
        self,
        number: int,
        cards: Sequence[Card],
        *,
        removed: Sequence[Removal] = (),
        passphrase: str | None = None,
        ring: Sequence[SharedKey] = (),
    ) -> tuple[SharedKey, Rekey]:
        """Make a shared key for these machines, and perhaps for all who know a passphrase."""
        key = SharedKey(os.urandom(8).hex(), number, os.urandom(32).hex())
        secret, about = bytes.fromhex(key.secret), f"key {self.memory} {key.id} {number}"
        rekey = Rekey(
            id=key.id,
            number=number,
            removed=tuple(removed),
            wraps={card.machine: ciphers.wrap(card.agree, about, secret).hex() for card in cards},
            lock=None if passphrase is None else ciphers.lock(passphrase, about, secret),
            ring=ciphers.box(secret, f"ring {about}", msgspec.json.encode(list(ring))).hex(),
        )
        return key, rekey

    def taken(self, rekey: Rekey, machine: str, secrets: Secrets, where: str) -> list[SharedKey]:
        """Return the keys that a new key brings to this machine, itself at the end; NotAMember if it brings none."""
        wrapped = rekey.wraps.get(machine)
        if wrapped is None:
            raise NotAMember(
                f"{where} brings a new key, and none for this machine",
                fix="ask for the new passphrase, then `lukasa sync join` again",
            )
        with _judged(where):
            secret = ciphers.unwrap(secrets, self._about(rekey), bytes.fromhex(wrapped))
            return self._ring(rekey, secret)

    def unlocked(self, rekey: Rekey, passphrase: str, where: str) -> list[SharedKey] | None:
        """Return the keys that a passphrase opens, the new one at the end; None if it opens none."""
        if rekey.lock is None:
            return None
        try:
            secret = ciphers.unlock(passphrase, self._about(rekey), rekey.lock)
        except Unopened:
            return None
        with _judged(where):
            return self._ring(rekey, secret)

    def _about(self, rekey: Rekey) -> str:
        return f"key {self.memory} {rekey.id} {rekey.number}"

    def _ring(self, rekey: Rekey, secret: bytes) -> list[SharedKey]:
        ring = ciphers.unbox(secret, f"ring {self._about(rekey)}", bytes.fromhex(rekey.ring))
        found = msgspec.json.decode(ring, type=list[SharedKey])
        return [*found, SharedKey(rekey.id, rekey.number, secret.hex())]

    # Cards and notes

    def card(self, card: Card, secrets: Secrets, key: SharedKey) -> bytes:
        return self._statement("card", card.machine, card, secrets, key)

    def open_card(self, data: bytes, machine: str, keys: Mapping[str, SharedKey], where: str) -> Card | None:
        """Return the card of a machine; None if it is sealed with a key that this machine does not have."""
        said = self._said("card", data, machine, where)
        if said.key not in keys:
            return None
        with _judged(where):
            card = msgspec.json.decode(self._body("card", said, keys[said.key]), type=Card)
            if card.machine != machine or machine_id(card.sign, card.agree) != machine:
                raise Unopened("it is the card of another machine")
            self._prove(data, card)
        return msgspec.structs.replace(card, key=said.key)

    def note(self, note: Note, secrets: Secrets, key: SharedKey) -> bytes:
        return self._statement("note", note.machine, note, secrets, key)

    def open_note(self, data: bytes, card: Card, keys: Mapping[str, SharedKey], where: str) -> Note | None:
        said = self._said("note", data, card.machine, where)
        if said.key not in keys:
            return None
        with _judged(where):
            self._prove(data, card)
            note = msgspec.json.decode(self._body("note", said, keys[said.key]), type=Note)
            if note.machine != card.machine or len(note.seen) > 4 * MOST_MACHINES:
                raise Unopened("it is the note of another machine")
        return note

    def _statement(self, kind: str, machine: str, what: Struct, secrets: Secrets, key: SharedKey) -> bytes:
        sealed = ciphers.box(key.secret, f"{kind} {self.memory} {machine}", msgspec.json.encode(what))
        said = msgspec.json.encode(_Statement(self.memory, machine, key.id, sealed.hex()))
        head = f"lukasa-{kind} {VERSION}\n".encode() + said
        return head + b"\n" + ciphers.sign(secrets, head).hex().encode() + b"\n"

    def _said(self, kind: str, data: bytes, machine: str, where: str) -> _Statement:
        _magic(data, kind, where)
        with _judged(where):
            if data.count(b"\n") != 3 or not data.endswith(b"\n"):
                raise BundleUnfinished(f"{where} is not whole", fix="the next sync looks again")
            said = msgspec.json.decode(data.split(b"\n")[1], type=_Statement)
            if said.memory != self.memory:
                raise Unopened("it belongs to another memory")
            if said.machine != machine:
                raise Unopened("it belongs to another machine")
        return said

    def _body(self, kind: str, said: _Statement, key: SharedKey) -> bytes:
        return ciphers.unbox(key.secret, f"{kind} {self.memory} {said.machine}", bytes.fromhex(said.box))

    def _prove(self, data: bytes, card: Card) -> None:
        head, _, signature = data.removesuffix(b"\n").rpartition(b"\n")
        ciphers.verify(card.sign, bytes.fromhex(signature.decode("ascii")), head)

    # Bundles

    def pack(self, bundle: Bundle, secrets: Secrets, key: SharedKey, rekey: Rekey | None = None) -> bytes:
        """Return the bytes of a bundle, whose records all have their texts."""
        salt = os.urandom(_SALT)
        own, about = self._bundle_key(key, salt, bundle.machine, bundle.number)
        records, checks = list[bytes](), list[tuple[str, str, str]]()
        for place, one in enumerate(bundle.records, 1):
            text, grain = (one.text or "").encode(), os.urandom(_SALT)
            checks.append((one.digest, hashlib.sha256(grain + text).hexdigest(), one.about))
            records.append(ciphers.seal(own, place, about, grain + _packed(text)))
        index = ciphers.seal(own, 0, about, _packed(msgspec.json.encode(_Index(bundle.at, tuple(checks)))))
        header = Header(
            memory=self.memory,
            machine=bundle.machine,
            number=bundle.number,
            previous=bundle.previous,
            key=key.id,
            salt=salt.hex(),
            index=hashlib.sha256(index).hexdigest(),
            count=len(records),
            rekey=rekey,
        )
        head = msgspec.json.encode(header)
        return _written(_Parts(head, ciphers.sign(secrets, _signed(head)), index, tuple(records), b"", b""))

    def header(self, data: bytes, card: Card, where: str) -> Header:
        """Return the header of a bundle once its signature is proved to be that of the machine with this card."""
        return self._proved(data, card, where)[0]

    def claimed(self, data: bytes, where: str) -> Header:
        """Return what a bundle says of itself. Nothing of it is proved."""
        parts = _read(data, where)
        with _judged(where):
            return msgspec.json.decode(parts.head, type=Header)

    def unpack(self, data: bytes, card: Card, key: SharedKey, where: str) -> Opened:
        """Return what a bundle says, proved part by part."""
        header, parts = self._proved(data, card, where)
        with _judged(where):
            emptied = self._emptied(parts, card)
            own, about = self._bundle_key(key, bytes.fromhex(header.salt), header.machine, header.number)
            index = self._index(parts, own, about)
            if len(index.records) != header.count or emptied - set(range(header.count)):
                raise Unopened("its index does not fit its records")
            left, records = MOST_BYTES, list[Sealed]()
            for place, ((digest, check, about_it), sealed) in enumerate(zip(index.records, parts.records, strict=True)):
                if (place in emptied) != (not sealed):
                    raise Unopened("a record was taken out of it, and not by its machine")
                text = None if place in emptied else _text(ciphers.unseal(own, place + 1, about, sealed), check, left)
                left -= len(text or "")
                records.append(Sealed(digest, text, about_it))
        bundle = Bundle(header.machine, header.number, header.previous, index.at, tuple(records))
        return Opened(header, hashlib.sha256(parts.head).hexdigest(), bundle)

    def without(self, data: bytes, digests: Collection[str], secrets: Secrets, key: SharedKey) -> bytes | None:
        """Return a bundle of this machine without the texts of some records; None if it has none of them."""
        where = "a bundle of this machine"
        parts = _read(data, where)
        header = msgspec.json.decode(parts.head, type=Header)
        with _judged(where):
            own, about = self._bundle_key(key, bytes.fromhex(header.salt), header.machine, header.number)
            index = self._index(parts, own, about)
        gone = {
            place for place, (digest, _, _) in enumerate(index.records) if digest in digests and parts.records[place]
        }
        if not gone:
            return None
        kept = tuple(b"" if place in gone else one for place, one in enumerate(parts.records))
        emptied = msgspec.json.encode([place for place, one in enumerate(kept) if not one])
        signature = ciphers.sign(secrets, _signed_emptied(parts.head, emptied))
        return _written(_Parts(parts.head, parts.signature, parts.index, kept, emptied, signature))

    def _proved(self, data: bytes, card: Card, where: str) -> tuple[Header, _Parts]:
        parts = _read(data, where)
        with _judged(where):
            ciphers.verify(card.sign, parts.signature, _signed(parts.head))
            header = msgspec.json.decode(parts.head, type=Header)
            if header.memory != self.memory:
                raise Unopened("it belongs to another memory")
            if header.machine != card.machine:
                raise Unopened("it belongs to another machine")
            if header.count != len(parts.records):
                raise Unopened("it has other records than its header says")
            if hashlib.sha256(parts.index).hexdigest() != header.index:
                raise Unopened("its index is not the one that was signed")
            if header.rekey is not None and len(header.rekey.wraps) > MOST_MACHINES:
                raise Unopened(f"it names more than {MOST_MACHINES} machines")
        return header, parts

    def _index(self, parts: _Parts, own: bytes, about: bytes) -> _Index:
        return msgspec.json.decode(_unpacked(ciphers.unseal(own, 0, about, parts.index), _MOST_INDEX), type=_Index)

    def _emptied(self, parts: _Parts, card: Card) -> set[int]:
        if not parts.emptied:
            if parts.emptied_signature:
                raise Unopened("it has a part too many")
            return set()
        ciphers.verify(card.sign, parts.emptied_signature, _signed_emptied(parts.head, parts.emptied))
        return set(msgspec.json.decode(parts.emptied, type=list[int]))

    def _bundle_key(self, key: SharedKey, salt: bytes, machine: str, number: int) -> tuple[bytes, bytes]:
        about = f"bundle {self.memory} {machine} {number}"
        return ciphers.derived(key.secret, salt, about), about.encode()


def _signed(head: bytes) -> bytes:
    return b"lukasa-bundle header\n" + head


def _signed_emptied(head: bytes, emptied: bytes) -> bytes:
    return b"lukasa-bundle emptied\n" + hashlib.sha256(head).digest() + emptied


def _magic(data: bytes, kind: str, where: str) -> bytes:
    """Check the first line of a file; return it."""
    line, end, _ = data[:40].partition(b"\n")
    name, _, version = line.partition(b" ")
    if not end and f"lukasa-{kind} {VERSION}\n".encode().startswith(data):
        raise BundleUnfinished(f"{where} is not whole", fix="the next sync looks again")
    if name != f"lukasa-{kind}".encode() or not version.isdigit() or version == b"0":
        raise BundleRefused(f"{where} is refused: it is no {kind} of Lukasa", fix=_FIX)
    if int(version) > VERSION:
        raise SyncNewer(f"{where} has version {version.decode()} of the format", fix="upgrade Lukasa on this machine")
    return line + end


_FIX = "look at that machine: its next sync writes its files again if they were damaged on the way"


@contextmanager
def _judged(where: str) -> Iterator[None]:
    """Refuse what does not prove itself, with the file and the machine in the sentence."""
    try:
        yield
    except Unopened as error:
        raise BundleRefused(f"{where} is refused: {error}", fix=_FIX) from None
    except (ValueError, TypeError, RecursionError, OverflowError) as error:
        what = "it holds something else than it should"
        raise BundleRefused(f"{where} is refused: {what}", fix=_FIX) from error


def _read(data: bytes, where: str) -> _Parts:
    """Split a bundle into its parts. Nothing is believed yet."""
    place = len(_magic(data, "bundle", where))
    if len(data) > MOST_BYTES:
        raise BundleRefused(f"{where} is refused: it has more than {MOST_BYTES:,} bytes", fix=_FIX)

    def part(most: int, *sizes: int) -> bytes:
        nonlocal place
        size = int.from_bytes(data[place : place + 4], "big")
        if len(data) >= place + 4 and (size > most or (sizes and size not in sizes)):
            raise BundleRefused(f"{where} is refused: a part of it cannot have {size:,} bytes", fix=_FIX)
        if len(data) < place + 4 + size:
            raise BundleUnfinished(f"{where} ends after {len(data):,} bytes", fix="the next sync looks again")
        place += 4 + size
        return data[place - size : place]

    head, signature, index = part(_MOST_HEADER), part(_SIGNATURE, _SIGNATURE), part(_MOST_INDEX)
    with _judged(where):
        count = msgspec.json.decode(head, type=dict[str, Any]).get("count")
        if not isinstance(count, int) or not 0 <= count <= MOST_RECORDS:
            raise Unopened(f"it cannot have {count!r:.20} records")
    records = tuple(part(MOST_TEXT) for _ in range(count))
    parts = _Parts(head, signature, index, records, part(_MOST_HEADER), part(_SIGNATURE, 0, _SIGNATURE))
    if len(data) < place + len(_END) and _END.startswith(data[place:]):
        raise BundleUnfinished(f"{where} ends after {len(data):,} bytes", fix="the next sync looks again")
    if data[place:] != _END:
        raise BundleRefused(f"{where} is refused: it goes on behind its end", fix=_FIX)
    return parts


def _written(parts: _Parts) -> bytes:
    every = (parts.head, parts.signature, parts.index, *parts.records, parts.emptied, parts.emptied_signature)
    framed = (piece for part in every for piece in (len(part).to_bytes(4, "big"), part))
    return f"lukasa-bundle {VERSION}\n".encode() + b"".join(framed) + _END


def _packed(data: bytes) -> bytes:
    smaller = zlib.compress(data, 6) if len(data) >= _PACKED_FROM else data
    return b"\x01" + smaller if len(smaller) < len(data) else b"\x00" + data


def _unpacked(data: bytes, most: int) -> bytes:
    """Expand data, and no further than to a bound: a few bytes could ask for gigabytes."""
    if data[:1] == b"\x00":
        made = data[1:]
    elif data[:1] == b"\x01":
        expanding = zlib.decompressobj()
        try:
            made = expanding.decompress(data[1:], most + 1)
        except zlib.error:
            raise Unopened("a part of it cannot be expanded") from None
        if len(made) <= most and (not expanding.eof or expanding.unused_data):
            raise Unopened("a part of it cannot be expanded")
    else:
        raise Unopened("a part of it is packed in an unknown way")
    if len(made) > most:
        raise Unopened(f"a part of it expands to more than {most:,} bytes")
    return made


def _text(opened: bytes, check: str, left: int) -> str:
    text = _unpacked(opened[_SALT:], max(0, min(MOST_TEXT, left)))
    if hashlib.sha256(opened[:_SALT] + text).hexdigest() != check:
        raise Unopened("a record of it is not the one that was signed")
    return text.decode()
