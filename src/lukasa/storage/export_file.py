"""The file of an export: JSON Lines, one record a line, with a digest in each line that covers all lines before it.

The first line is the header. Lines of stores follow, each store's behind a line that says which it is, and the last
line says how many lines there are. `write` makes these lines. `ExportFile` reads them: once through to verify and
number everything, and then part by part, as a move reads a store.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import re
import tempfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from datetime import datetime
from importlib import import_module
from itertools import islice
from pathlib import Path
from types import TracebackType
from typing import IO, Any, BinaryIO, cast

from msgspec import Struct, field
from msgspec.structs import replace

from lukasa.model.conversation import WorkspaceInfo
from lukasa.model.entry import SENSITIVE
from lukasa.model.errors import UNREADABLE, Damaged, InvalidInput, MissingExtra, UnreadableExport
from lukasa.model.events import GENESIS
from lukasa.model.ids import parse_id
from lukasa.model.text import TOKENIZER_VERSION
from lukasa.storage import tables, transfer
from lukasa.storage.export_records import KINDS, NUMBERED, VECTORS, Record, RowsIn, RowsOut, plain, refuse
from lukasa.storage.port import Finding
from lukasa.storage.transfer import PARTS, THE_ACCOUNT, About, Given, Part, Role, Row

FORMAT, VERSION = "lukasa-export", 1
HEADER, STORE, WORKSPACE, END = "header", "store", "workspace", "end"
MOST_LINE = 64_000_000  # bytes of a line
_SUM = re.compile(rb',"sum":"([0-9a-f]{16})"}\n')
_TAIL = len(',"sum":"0123456789abcdef"}\n')
_RATIO, _FREE = 200, 1_000_000_000  # a file may unpack to this many times its size, and to this many bytes in any case
_ENOUGH = 1_000  # lines between two calls that tell of progress

Tell = Callable[[int], None]


class Written(Struct, frozen=True):
    """An export that was written: lines by kind, over all stores."""

    lines: int
    stores: int
    counts: dict[str, int]
    sensitive: int  # entries that the owner marked as secret, whose texts are in the file


class Exported(Struct, frozen=True):
    """A store to export, and the workspace that it belongs to; None for the account's."""

    store: Given
    workspace: WorkspaceInfo | None = None


# Writing


class _Lines:
    """Spells lines, each with a digest that covers the lines before it but for the header."""

    def __init__(self) -> None:
        self.count, self._before = 0, GENESIS.encode("ascii")
        self.total = hashlib.sha256()

    def line(self, record: Record) -> bytes:
        body = spelled(record)[:-1]
        self._before = linked(self._before, body)
        self.total.update(body)
        self.count += 1
        return body + b',"sum":"' + self._before[:16] + b'"}\n'


def spelled(record: Record) -> bytes:
    return json.dumps(record, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode("utf-8")


def linked(before: bytes, body: bytes) -> bytes:
    """Return the digest of a line behind the digest of the line before it."""
    return hashlib.sha256(before + body).hexdigest().encode("ascii")


def header(at: datetime, what: str, *, vectors: bool, program: str) -> Record:
    """Return the first line of an export. Nothing else in a file depends on when and where it was made."""
    about = {"record": HEADER, "format": FORMAT, "version": VERSION, "what": what, "vectors": vectors}
    return about | {"made_at": at.isoformat(), "made_by": program}


def lines(head: Record, stores: Iterator[Exported], told: Callable[[Written], None], tell: Tell) -> Iterator[bytes]:
    """Return the lines of an export. `told` gets the counts at the end, and `tell` the lines that were just made."""
    yield _Lines().line(head)
    out, counts, sensitive, found = _Lines(), Counter[str](), 0, 0
    for one in stores:
        found += 1
        for record in _store_lines(one):
            yield out.line(record)
        rows = RowsOut()
        for part in PARTS:
            if part in VECTORS and not head["vectors"]:
                continue
            for record in _records(one.store, part, rows):
                yield out.line({"record": part.name, **record})
                counts[part.name] += 1
                if not out.count % _ENOUGH:
                    tell(_ENOUGH)
        sensitive += rows.sensitive
    sums: Record = {"record": END, "lines": out.count, "counts": dict(counts), "sha256": out.total.hexdigest()}
    yield out.line(sums)
    told(Written(out.count, found, dict(counts), sensitive))


def _store_lines(one: Exported) -> Iterator[Record]:
    about = one.store.about
    seq, digest = about.head
    head = {"seq": seq, "digest": digest}
    secret = base64.b64encode(about.secret).decode("ascii")
    made = {"role": about.role, "created_at": about.created_at, "head": head, "secret": secret}
    yield {"record": STORE, "id": about.id, **made}
    if one.workspace is not None:
        info = one.workspace
        named = {"name": info.name, "preset": info.preset, "spec": info.spec_toml}
        yield {"record": WORKSPACE, "id": info.id, **named, "created_at": info.created_at.isoformat()}


def _records(store: Given, part: Part, rows: RowsOut) -> Iterator[Record]:
    page = store.rows(part)
    while page:
        yield from rows.records(part, [row[len(part.order) :] for row in page])
        page = store.rows(part, after=page[-1][: len(part.order)]) if len(page) == part.page else ()


def records(store: Given, parts: Sequence[Part]) -> Iterator[tuple[Part, Record]]:
    """Return the records of some parts of a store that is here, as an export would have them."""
    rows = RowsOut()
    for part in PARTS:
        if part in parts or part in NUMBERED:
            for record in _records(store, part, rows):
                yield part, record


def packed(file: BinaryIO, name: str) -> AbstractContextManager[IO[bytes]]:
    """Return a stream that packs what is written as the ending of a name says: .gz, .zst, or not at all."""
    if name.endswith(".gz"):
        return cast("AbstractContextManager[IO[bytes]]", gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=0))
    if name.endswith(".zst"):
        opened: AbstractContextManager[IO[bytes]] = _zstd().open(file, "wb")
        return opened
    return nullcontext(file)


def unpacked(file: BinaryIO) -> IO[bytes]:
    """Return a stream that unpacks a file, by its first bytes."""
    first = file.read(4)
    file.seek(0)
    if first[:2] == b"\x1f\x8b":
        return cast("IO[bytes]", gzip.GzipFile(fileobj=file))
    if first == b"\x28\xb5\x2f\xfd":
        opened: IO[bytes] = _zstd().open(file, "rb")
        return opened
    return file


def _zstd() -> Any:
    for name in ("compression.zstd", "zstandard"):
        try:
            return import_module(name)
        except ModuleNotFoundError:
            continue
    raise MissingExtra(
        "zstd needs Python 3.14 or the package 'zstandard', and neither is here",
        fix="pip install zstandard, or use a name that ends in .gz",
    )


# Reading


class _Place(Struct, frozen=True):
    """Where the lines of a part begin, in bytes and in lines, and how many there are."""

    offset: int
    line: int
    count: int


class FileStore:
    """Implements `lukasa.storage.transfer.Given` for one store of an export."""

    def __init__(self, file: ExportFile, about: About, workspace: WorkspaceInfo | None) -> None:
        self._file, self._about, self.workspace = file, about, workspace
        self.numbers = RowsIn()
        self.places: dict[str, _Place] = {}
        self._open: dict[str, Iterator[Row]] = {}

    @property
    def about(self) -> About:
        return replace(self._about, last_entry=len(self.numbers.entries))

    @property
    def source(self) -> str:
        """What an event says of where something came from."""
        return f"an export of {self.about.id}, {self._file.survey.digest[:12]}"

    def snapshot(self) -> AbstractContextManager[object]:
        return nullcontext()

    def count(self, part: Part) -> int:
        if part in NUMBERED:
            return len(self.numbers.numbered(part))
        return self.places[part.name].count if part.name in self.places else 0

    def counts(self) -> list[int]:
        return [self.count(part) for part in PARTS]

    def rows(self, part: Part, *, after: Row = (), skip: int = 0) -> Sequence[Row]:
        """Return a page of rows. Pages are asked for one after the other, so `after` is where the last one ended."""
        if not after:
            every = iter(self.numbers.numbered(part)) if part in NUMBERED else self.values(part)
            self._open[part.name] = islice(enumerate(every, 1), skip, None)
        found = cast("list[tuple[int, Row]]", list(islice(self._open[part.name], part.page)))
        return [(*_order(part, number, row), *row) for number, row in found]

    def values(self, part: Part) -> Iterator[Row]:
        """Return all rows of a part."""
        for _, record in self.records(part):
            yield self.numbers.row(part, record)

    def records(self, part: Part) -> Iterator[tuple[int, Record]]:
        """Return all records of a part, each with the number of its line."""
        place = self.places.get(part.name)
        if place is not None:
            yield from self._file.records(place)

    def digest_of(self, seq: int) -> str | None:
        positions = tables.EVENTS.positions
        found = (row for row in self.values(transfer.EVENTS) if row[positions["seq"]] == seq)
        return next((str(row[positions["digest"]]) for row in found), None)

    def check(self) -> list[Finding]:
        return []


def _order(part: Part, number: int, row: Row) -> Row:
    """Return the order of a row: its own columns where they say it, and otherwise its number."""
    known = dict(zip(part.columns, row, strict=True))
    return tuple(known.get(name, number) for name in part.order) if part.order[-1] != "rowid" else (number,)


class Survey(Struct):
    """What is in an export: lines by kind, and what an owner wants to know before it is brought in."""

    header: dict[str, Any] = field(default_factory=dict)
    lines: int = 0
    counts: dict[str, int] = field(default_factory=dict)
    trusts: dict[str, int] = field(default_factory=dict)
    sensitive: int = 0
    digest: str = ""


class ExportFile:
    """An export that is read. It is verified whole before anything is taken out of it."""

    def __init__(self, stream: BinaryIO, name: str, tell: Tell = lambda size: None) -> None:
        self.name, self._tell = name, tell
        self._packed = stream
        self._file: IO[bytes] = _plain(stream, name)
        self.survey = Survey()
        self.stores: list[FileStore] = []
        try:
            self._read()
        except BaseException:
            if self._file is not stream:
                self._file.close()
            raise

    @classmethod
    def open(cls, path: Path, tell: Tell = lambda size: None) -> ExportFile:
        try:
            stream = path.open("rb")
        except OSError as error:
            raise InvalidInput(
                f"{path} cannot be read: {error.strerror}", fix="name a file of `lukasa export`"
            ) from error
        try:
            return cls(stream, str(path), tell)
        except BaseException:
            stream.close()
            raise

    def __enter__(self) -> ExportFile:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self._file.close()
        self._packed.close()

    @property
    def vectors(self) -> bool:
        return bool(self.survey.header["vectors"])

    def _wrong(self, number: int, what: str) -> UnreadableExport:
        return UnreadableExport(
            f"{self.name}, line {number:,}: {what}", fix="nothing was brought in; make the export again"
        )

    def _read(self) -> None:
        """Verify every line, note where parts begin, and number what rows refer to."""
        self._file.seek(0)
        before, total, number, offset = GENESIS.encode("ascii"), hashlib.sha256(), 0, 0
        ended = False
        for number, line in enumerate(self._lines(), 1):
            body, before = self._verified(line, number, before)
            record = self._parsed(body, number)
            kind = record.pop("record", None)
            if ended:
                raise self._wrong(number, "there are lines behind the end")
            try:
                if number == 1:
                    self._head(kind, record)
                    before = GENESIS.encode("ascii")
                elif kind == END:
                    self._end(record, number, total.hexdigest())
                    ended = True
                else:
                    total.update(body)
                    self._learn(kind, record, number, offset)
            except (Damaged, InvalidInput, *UNREADABLE) as error:
                if isinstance(error, UnreadableExport):
                    raise
                said = error.message if isinstance(error, Damaged | InvalidInput) else f"{error}"
                raise self._wrong(number, f"not a record of this format: {said}"[:500]) from None
            offset += len(line)
            if not number % _ENOUGH:
                self._tell(offset)
        if not ended:
            raise self._wrong(number, "the file ends here, before its last line")
        self._tell(offset)

    def _lines(self) -> Iterator[bytes]:
        number = 0
        while True:
            try:
                line = self._file.readline(MOST_LINE + 1)
            except (OSError, EOFError) as error:
                raise self._wrong(number, f"it cannot be unpacked: {error}") from None
            if not line:
                return
            number += 1
            if len(line) > MOST_LINE:
                raise self._wrong(number, f"the line is longer than {MOST_LINE:,} bytes")
            yield line

    def _verified(self, line: bytes, number: int, before: bytes) -> tuple[bytes, bytes]:
        """Return a line without its digest, and the digest; refuse a line that is not as it was written."""
        end = _SUM.fullmatch(line[-_TAIL:])
        if number == 1 and (end is None or not line.startswith(b'{"record":"header"')):
            raise UnreadableExport(f"{self.name} is not an export of Lukasa", fix="name a file of `lukasa export`")
        if not line.endswith(b"\n"):
            raise self._wrong(number, "the file ends in the middle of this line")
        body = line[:-_TAIL]
        digest = linked(before, body)
        if end is None or end[1] != digest[:16]:
            raise self._wrong(number, "this line, or one before it, is not as it was written")
        return body, digest

    def _parsed(self, body: bytes, number: int) -> Record:
        try:
            record = json.loads(body + b"}", parse_constant=refuse)
        except UNREADABLE:
            raise self._wrong(number, "it is not JSON") from None
        if not isinstance(record, dict):
            raise self._wrong(number, "it is not an object")
        return record

    def _head(self, kind: Any, record: Record) -> None:
        if record.get("format") != FORMAT or kind != HEADER:
            raise UnreadableExport(f"{self.name} is not an export of Lukasa", fix="name a file of `lukasa export`")
        if record.get("version") != VERSION:
            raise UnreadableExport(
                f"{self.name} is of version {str(record.get('version'))[:20]}, and this Lukasa reads {VERSION}",
                fix="use the version of Lukasa that made it, or a newer one",
            )
        if not isinstance(record.get("vectors"), bool):
            raise ValueError("the header does not say whether there are vectors")
        self.survey.header = record

    def _end(self, record: Record, number: int, digest: str) -> None:
        if record.get("lines") != number - 2 or record.get("sha256") != digest:
            raise ValueError("it does not belong to the lines before it")
        self.survey.lines, self.survey.digest = number - 2, digest

    def _learn(self, kind: Any, record: Record, number: int, offset: int) -> None:
        if kind == STORE:
            self._store(record)
            return
        if not self.stores:
            raise ValueError("it is of no store")
        store = self.stores[-1]
        if kind == WORKSPACE:
            store.workspace = _workspace(record, store.about.id)
            return
        part = KINDS.get(kind) if isinstance(kind, str) else None
        if part is None:
            raise ValueError(f"there is no kind {str(kind)[:60]!r}")
        if part in VECTORS and not self.survey.header["vectors"]:
            raise ValueError("the header says that there are no vectors")
        place = store.places.get(part.name)
        last = next(reversed(store.places), part.name)
        if (place and last != part.name) or PARTS.index(KINDS[last]) > PARTS.index(part):
            raise ValueError(f"{part.name} are not in their place")
        store.numbers.learn(part, record)
        found = _Place(place.offset, place.line, place.count + 1) if place else _Place(offset, number, 1)
        store.places[part.name] = found
        counts, trusts, head = self.survey.counts, self.survey.trusts, store.about.head
        counts[part.name] = counts.get(part.name, 0) + 1
        if part is transfer.ENTRIES:
            rest = plain(record["rest"])
            trust = str(rest["trust"])
            trusts[trust] = trusts.get(trust, 0) + 1
            self.survey.sensitive += rest.get("metadata", {}).get(SENSITIVE) is True
        elif part is transfer.EVENTS and (record["seq"] == head[0]) != (record["digest"] == head[1]):
            raise ValueError("the last event is not the one that the store names")

    def _store(self, record: Record) -> None:
        role, id = record["role"], record["id"]
        if role not in ("account", "workspace") or (role == "account") != (id == THE_ACCOUNT):
            raise ValueError("it is no store")
        if role == "workspace":
            id = parse_id(id)
        if any(one.about.id == id for one in self.stores):
            raise ValueError(f"store {id} is there twice")
        secret = base64.b64decode(record["secret"], validate=True)
        head, made = record["head"], datetime.fromisoformat(record["created_at"]).isoformat()
        if len(secret) != _SECRET or not isinstance(head["seq"], int) or not isinstance(head["digest"], str):
            raise ValueError("it has no secret, or no head")
        about = About(id, cast("Role", role), secret, TOKENIZER_VERSION, made, (head["seq"], head["digest"]), 0)
        self.stores.append(FileStore(self, about, None))

    def records(self, place: _Place) -> Iterator[tuple[int, Record]]:
        """Return the records of a part, which were verified."""
        offset = place.offset
        for number in range(place.line, place.line + place.count):
            self._file.seek(offset)
            line = self._file.readline()
            offset += len(line)
            record = json.loads(line[:-_TAIL] + b"}")
            del record["record"]
            yield number, record


_SECRET = 32  # bytes


def _workspace(record: Record, id: str) -> WorkspaceInfo:
    name, preset, spec = (record[field] for field in ("name", "preset", "spec"))
    if record["id"] != id or not all(isinstance(text, str) for text in (name, preset, spec)):
        raise ValueError("it is not the workspace of its store")
    return WorkspaceInfo(id, name, preset, spec, datetime.fromisoformat(record["created_at"]), ready=True)


def _plain(stream: BinaryIO, name: str) -> IO[bytes]:
    """Return a stream of the unpacked file in which one can go back: the file itself, or a copy that has no name."""
    try:
        unpacks, size = unpacked(stream), stream.seek(0, 2)
        stream.seek(0)
    except OSError as error:
        raise UnreadableExport(f"{name} cannot be read: {error}", fix="name a file of `lukasa export`") from error
    if unpacks is stream:
        return stream
    copy = cast("IO[bytes]", tempfile.TemporaryFile())  # noqa: SIM115 - it is closed with the export
    most, taken = max(_FREE, _RATIO * size), 0
    broken: tuple[type[Exception], ...] = (OSError, EOFError, ValueError, zlib.error, *_zstd_errors())
    while True:
        try:
            piece = unpacks.read(1 << 20)
        except broken:
            return copy  # it is cut off or altered: the lines that came out of it say where
        taken += len(piece)
        if taken > most:
            copy.close()
            raise UnreadableExport(f"{name} unpacks to more than {most:,} bytes", fix="make the export again")
        if not piece:
            return copy
        copy.write(piece)


def _zstd_errors() -> tuple[type[Exception], ...]:
    try:
        return (_zstd().ZstdError,)
    except MissingExtra:
        return ()


def merged(counts: Sequence[Mapping[str, int]]) -> dict[str, int]:
    """Return the sum of counts."""
    found: Counter[str] = Counter()
    for one in counts:
        found.update(one)
    return dict(found)
