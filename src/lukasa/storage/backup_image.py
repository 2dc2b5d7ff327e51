"""The image of a store in a backup: its rows as a move gives them, cut into pieces where the content says so.

A piece ends behind a row whose key has a certain hash. So a row that is added, changed or removed changes one or two
pieces, and all others are the ones that an earlier backup has.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from itertools import chain, islice
from typing import Any

import msgspec

from lukasa.storage import tables, transfer
from lukasa.storage.backup_folder import BackupFolder, PartImage, StoreImage
from lukasa.storage.port import Finding
from lukasa.storage.transfer import PARTS, About, Given, Part, Row, Tell

_MOST, _LEAST = 1 << 20, 1 << 14  # bytes of a piece: it never grows beyond one, and only ends by hash beyond the other
_ENDS = 0x3F  # one row in 64 ends a piece
_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(list[tuple[Any, ...]])
_SEQ, _DIGEST = (tables.EVENTS.positions[name] for name in ("seq", "digest"))


def taken(given: Given, folder: BackupFolder, name: str, tell: Tell) -> StoreImage:
    """Cut a store that is held at one moment."""
    about = given.about
    parts = {part: chain.from_iterable(transfer.each_page(given, part)) for part in PARTS}
    return cut(about, parts, folder, name, tell, head=about.head)


def cut(
    about: About,
    parts: Mapping[Part, Iterable[Row]],
    folder: BackupFolder,
    name: str,
    tell: Tell,
    *,
    head: tuple[int, str],
) -> StoreImage:
    """Write rows, each with its order in front, as pieces; return the image of the store that has them."""
    images = {}
    for part, rows in parts.items():
        image = _cut(part, rows, folder, tell)
        if image.rows:
            images[part.name] = image
    made = (about.secret, about.tokenizer, about.created_at, about.last_entry)
    return StoreImage(about.id, about.role, name, *made, head, about.head, images)


def _cut(part: Part, rows: Iterable[Row], folder: BackupFolder, tell: Tell) -> PartImage:
    pieces, held, size, count = list[str](), list[bytes](), 0, 0
    for row in rows:
        spelled = _ENCODER.encode(row)
        held.append(spelled)
        size += len(spelled)
        ends = zlib.crc32(_ENCODER.encode(row[: len(part.order)])) & _ENDS == 0
        if size >= _MOST or (ends and size >= _LEAST):
            pieces.append(folder.put(_listed(held)))
            count += len(held)
            tell(len(held))
            held, size = [], 0
    if held:
        pieces.append(folder.put(_listed(held)))
        tell(len(held))
    return PartImage(count + len(held), tuple(pieces))


def _listed(rows: Sequence[bytes]) -> bytes:
    """Return rows as one list of MessagePack."""
    return b"\xdd" + len(rows).to_bytes(4, "big") + b"".join(rows)


class ImageStore:
    """Implements `lukasa.storage.transfer.Given` for the image of a store."""

    def __init__(self, folder: BackupFolder, image: StoreImage, findings: Sequence[Finding] = ()) -> None:
        self.image = image
        self._folder, self._findings = folder, findings
        self._open: dict[str, Iterator[Row]] = {}

    @property
    def about(self) -> About:
        return self.image.about

    def snapshot(self) -> AbstractContextManager[object]:
        return nullcontext()

    def counts(self) -> list[int]:
        return [self.image.parts[part.name].rows if part.name in self.image.parts else 0 for part in PARTS]

    def ordered(self, part: Part) -> Iterator[Row]:
        """Return all rows of a part, each with its order in front of its columns."""
        image = self.image.parts.get(part.name)
        for piece in image.pieces if image is not None else ():
            yield from _DECODER.decode(self._folder.get(piece))

    def values(self, part: Part) -> Iterator[Row]:
        """Return all rows of a part."""
        return (row[len(part.order) :] for row in self.ordered(part))

    def rows(self, part: Part, *, after: Row = (), skip: int = 0) -> Sequence[Row]:
        """Return a page of rows. Pages are asked for one after the other, so `after` is where the last one ended."""
        if not after:
            self._open[part.name] = islice(self.ordered(part), skip, None)
        return list(islice(self._open[part.name], part.page))

    def digest_of(self, seq: int) -> str | None:
        return next((str(row[_DIGEST]) for row in self.values(transfer.EVENTS) if row[_SEQ] == seq), None)

    def check(self) -> list[Finding]:
        """Return the faults that the memory itself had: a copy of it is as sound as it was."""
        return list(self._findings)
