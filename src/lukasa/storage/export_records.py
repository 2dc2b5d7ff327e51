"""The records of an export: each row of a store as a JSON object that anybody can read, and the same row out of it.

`transfer.PARTS` says what a store holds. A record has the columns of its part by name, with times as ISO 8601, JSON as
JSON and bytes in base64. Numbers that an engine gives its rows are resolved: an entry says its scope, a version its
entry, an item its namespace. What an engine derives from the text is left out, and made again when the row is read.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import cache
from typing import Any, Literal, NamedTuple, TypeAlias, get_args, get_type_hints

from lukasa.model.entry import Entry
from lukasa.model.errors import UNREADABLE
from lukasa.model.events import canonical_json
from lukasa.model.item import namespace_of, path_text
from lukasa.model.timestamps import micros, moment
from lukasa.model.values import VISIBILITY
from lukasa.storage import tables, transfer
from lukasa.storage.codec import CANONICAL, FLAG, JSON, REAL, TEXTS, TIME, TIME_OR_NONE, Column, Table
from lukasa.storage.entry_codec import COLUMNS, RESTS, entry_columns, entry_of, entry_of_snapshot
from lukasa.storage.transfer import PARTS, Part, Row

Record: TypeAlias = "dict[str, Any]"
Shape = Literal["text", "integer", "number", "flag", "time", "json", "bytes"]
RAW = "$text"  # marks a JSON column whose text is not what an encoder would write: it is kept as it is
NUMBERED = (transfer.SCOPES, transfer.PARTITIONS, transfer.ITEM_SPACES)  # resolved in other records
VECTORS = (transfer.MODELS, transfer.VECTORS, transfer.ITEM_VECTORS, transfer.PASSAGE_VECTORS)  # left out by default
OF_THE_PLACE = (transfer.PURGED,)  # what the files of one place still have to lose, which no other place has
KINDS = {part.name: part for part in PARTS if part not in (*NUMBERED, *OF_THE_PLACE)}


class Field(NamedTuple):
    """A member of a record: its name, what it holds, and whether it may be null."""

    name: str
    shape: Shape
    empty: bool = False
    dump: Callable[[Any], str] = canonical_json  # how the column spells JSON


def _compact(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _fields(text: str, dump: Callable[[Any], str] = canonical_json) -> tuple[Field, ...]:
    """Fields written as `name:shape`, with a question mark behind what may be null."""
    found = []
    for word in text.split():
        name, _, shape = word.partition(":")
        found.append(Field(name, shape.rstrip("?") or "text", shape.endswith("?"), dump))  # type: ignore[arg-type]
    return tuple(found)


_ENTRY = (
    *_fields("id tier anchor:json owner state kind category:text? source curator lifetime conversation:text?"),
    *_fields("importance:number created_at:time updated_at:time confirmed_at:time valid_at:time? invalid_at:time?"),
    *_fields("superseded_by:text? version:integer"),
    Field("tags", "json", dump=json.dumps),
    *_fields("content rest:json"),
)
_MODEL = _fields("model dimensions:integer model_digest")
_OWN: Mapping[Part, tuple[Field, ...]] = {
    transfer.ENTRIES: (*_ENTRY, *_fields("content_version:integer content_hash salt:bytes rests:flag")),
    transfer.VERSIONS: (*_fields("entry version:integer action cause actor at:time"), *_fields("snapshot:json")),
    transfer.VECTORS: (*_fields("entry"), *_MODEL, *_fields("checksum vector:bytes")),
    transfer.MODELS: _fields("name dimensions:integer digest"),
    transfer.RETIRED: _fields("id"),
    transfer.ACTION_LINKS: _fields("action entry"),
    transfer.ITEMS: (
        *_fields("namespace:json key created_at:time updated_at:time expires_at:time? ttl:number? value_hash"),
        *_fields("salt:bytes value:json texts:json indexer", _compact),
    ),
    transfer.ITEM_VECTORS: (*_fields("namespace:json key"), *_MODEL, *_fields("field checksum vector:bytes")),
    transfer.PASSAGE_VECTORS: (*_fields("document number:integer"), *_MODEL, *_fields("checksum vector:bytes")),
    transfer.REDACTIONS: _fields("first:integer last:integer scrub:integer"),
    transfer.ACCESS: _fields("id count:integer at:time"),
}
_SNAPSHOT = _ENTRY  # a version of an entry has these fields
_SHAPES: dict[Any, Shape] = {FLAG: "flag", REAL: "number", TIME: "time", TIME_OR_NONE: "time"}
_SPELLINGS: dict[Any, Callable[[Any], str]] = {JSON: json.dumps, TEXTS: json.dumps, CANONICAL: canonical_json}
_JSON: dict[tuple[str, str], Callable[[Any], str]] = {  # columns with a codec of their own that is JSON all the same
    ("grants", "capabilities"): json.dumps,
    ("confirmations", "quotes"): json.dumps,
    ("disclosures", "items"): _compact,
    ("closed_scopes", "scope"): canonical_json,
}
WITHOUT_SECRETS = {("grants", "digest")}  # the digest of a token is not exported, and not taken from a file


@cache
def fields_of(part: Part) -> tuple[Field, ...]:
    """Return the fields of a part's records, in their order."""
    if part in _OWN:
        return _OWN[part]
    table = _table(part)
    found = tuple(_field(table, column) for column in table.columns.values())
    return tuple(one for one in found if (part.name, one.name) not in WITHOUT_SECRETS)


@cache
def _table(part: Part) -> Table[Any]:
    return next(table for table in tables.tables() if table.name == part.name)


def _field(table: Table[Any], column: Column) -> Field:
    codec = column.codec
    if (table.name, column.name) in _JSON:
        return Field(column.name, "json", False, _JSON[table.name, column.name])
    if codec in _SHAPES:
        return Field(column.name, _SHAPES[codec], codec is TIME_OR_NONE)
    if codec in _SPELLINGS:
        return Field(column.name, "json", False, _SPELLINGS[codec])
    if codec.store is int:
        return Field(column.name, "integer")
    if column.derive:
        return Field(column.name, "text")
    hint = _hint(table, column.path)
    if codec.store is not None:
        return Field(column.name, "text", type(None) in get_args(hint))
    return Field(column.name, "integer" if int in (hint, *get_args(hint)) else "text", type(None) in get_args(hint))


def _hint(table: Table[Any], path: str) -> Any:
    """Return the type of the field that a column holds."""
    *into, name = path.split(".")
    return get_type_hints(table.parts[".".join(into)] if into else table.kind)[name]


# One value, out and in


def _out(field: Field, value: Any) -> Any:
    if value is None:
        return None
    match field.shape:
        case "time":
            try:
                return moment(value).isoformat()
            except OverflowError:
                return value
        case "flag":
            return bool(value)
        case "bytes":
            return base64.b64encode(value).decode("ascii")
        case "json":
            return _parsed(field, value)
        case _:
            return value


def _parsed(field: Field, text: str) -> Any:
    """Return the value of a JSON text, or the text itself under a mark if it is spelled in another way."""
    try:
        value = json.loads(text, parse_constant=refuse)
        if field.dump(value) == text and not (isinstance(value, dict) and RAW in value):
            return value
    except UNREADABLE:
        pass
    return {RAW: text}


def plain(value: Any) -> Any:
    """Return the value of a JSON field, however its text is spelled."""
    return json.loads(value[RAW]) if isinstance(value, dict) and isinstance(value.get(RAW), str) else value


def refuse(name: str) -> Any:
    """Refuse what Python reads as a number and JSON does not know."""
    raise ValueError(name)


_TYPES: dict[Shape, tuple[type, ...]] = {
    "text": (str,),
    "integer": (int,),
    "number": (int, float),
    "flag": (bool,),
    "time": (str, int),
    "bytes": (str,),
}


def _in(field: Field, value: Any) -> Any:
    """Return a value as the column has it; a ValueError that names the field if it is of another shape."""
    if value is None and field.empty:
        return None
    if field.shape == "json":
        return value[RAW] if isinstance(value, dict) and isinstance(value.get(RAW), str) else field.dump(value)
    if not isinstance(value, _TYPES[field.shape]) or (isinstance(value, bool) and field.shape != "flag"):
        raise ValueError(f"{field.name} is not {_SAID[field.shape]}")
    return _stored(field, value)


def _stored(field: Field, value: Any) -> Any:
    match field.shape:
        case "time" if isinstance(value, str):
            return micros(datetime.fromisoformat(value))
        case "flag":
            return int(value)
        case "number" if math.isfinite(value):
            return float(value)
        case "number":
            raise ValueError(f"{field.name} is no finite number")
        case "bytes":
            return base64.b64decode(value, validate=True)
        case "integer" | "time" if not -(2**63) <= value < 2**63:
            raise ValueError(f"{field.name} is too large")
        case _:
            return value


_SAID: dict[Shape, str] = {
    "text": "a text",
    "integer": "a whole number",
    "number": "a number",
    "flag": "true or false",
    "time": "a time",
    "json": "JSON",
    "bytes": "base64",
}


def _read(fields: Sequence[Field], record: Record) -> dict[str, Any]:
    if record.keys() != {field.name for field in fields}:
        odd = sorted(record.keys() ^ {field.name for field in fields})
        raise ValueError(f"the fields {', '.join(odd)[:200]} are missing, or not known")
    return {field.name: _in(field, record[field.name]) for field in fields}


# Rows out


class RowsOut:
    """Turns the rows of one store into records. It must see the parts in the order of `PARTS`."""

    def __init__(self) -> None:
        self._scopes: dict[int, tuple[str, str]] = {}
        self._models: dict[int, tuple[str, int, str]] = {}
        self._spaces: dict[int, str] = {}
        self._entries: dict[int, str] = {}
        self.sensitive = 0  # entries that the owner marked as secret, so far

    def records(self, part: Part, rows: Iterable[Row]) -> Iterator[Record]:
        """Return the records of a part, of rows without their order in front; none of a part that is resolved."""
        fields, names = fields_of(part) if part.name in KINDS else (), part.columns
        for row in rows:
            values = dict(zip(names, row, strict=True))
            if part in NUMBERED or part is transfer.MODELS:
                self._learn(part, values)
            if part.name in KINDS:
                self._resolve(part, values)
                yield {field.name: _out(field, values[field.name]) for field in fields}

    def _learn(self, part: Part, values: dict[str, Any]) -> None:
        match part.name:
            case "scopes":
                self._scopes[values["id"]] = values["tier"], values["anchor"]
            case "models":
                self._models[values["id"]] = values["name"], values["dimensions"], values["digest"]
            case "item_spaces":
                self._spaces[values["id"]] = values["path"]

    def _resolve(self, part: Part, values: dict[str, Any]) -> None:
        """Put what a record says in place of the numbers of rows."""
        if part is transfer.ENTRIES:
            self._entries[values["rowid"]] = values["id"]
            values["tier"], values["anchor"] = self._scopes[values["scope_id"]]
            values["rests"] = values["marks"] & RESTS
            self.sensitive += '"sensitive":true' in values["rest"]
        elif part in (transfer.VERSIONS, transfer.VECTORS, transfer.ACTION_LINKS):
            values["entry"] = self._entries[values["entry"]]
        if part is transfer.VERSIONS:
            values["snapshot"] = _snapshot_out(values["snapshot"])
        if "model_id" in values:
            values["model"], values["dimensions"], values["model_digest"] = self._models[values["model_id"]]
        if "space" in values:
            values["namespace"] = self._spaces[values["space"]]


def _snapshot_out(text: str) -> str:
    """Return a version's list of columns as the text of an object that names them."""
    try:
        columns = dict(zip(COLUMNS, json.loads(text), strict=True))
        return canonical_json({field.name: _out(field, columns[field.name]) for field in _SNAPSHOT})
    except UNREADABLE:
        return text


def _snapshot_in(text: str) -> str:
    value = json.loads(text)
    if not isinstance(value, dict):
        return text
    columns = _read(_SNAPSHOT, value)
    made = canonical_json([columns[name] for name in COLUMNS])
    entry_of_snapshot(made)  # refuse what no version of an entry can be
    return made


# Rows in


class RowsIn:
    """Turns the records of one store into rows, each without its order in front, and numbers them.

    It must see all records in their order once, by `learn`, before rows are made of them.
    """

    def __init__(self) -> None:
        self.scopes: dict[tuple[str, str], int] = {}
        self.partitions: dict[tuple[int, str, str], int] = {}
        self.models: dict[tuple[str, int, str], int] = {}
        self.spaces: dict[str, int] = {}
        self.entries: dict[str, int] = {}
        self._homes: dict[str, int] = {}  # partitions of entries, which only vectors name

    def numbered(self, part: Part) -> list[Row]:
        """Return the rows of a part that other records name."""
        match part.name:
            case "scopes":
                return [(n, *scope) for scope, n in self.scopes.items()]
            case "partitions":
                return [(n, *partition) for partition, n in self.partitions.items()]
            case _:
                return [(n, path) for path, n in self.spaces.items()]

    def learn(self, part: Part, record: Record) -> None:
        """Verify a record that is seen for the first time, and number what is new in it.

        One of the errors of UNREADABLE says what is wrong.
        """
        if part is not transfer.ENTRIES:
            self.row(part, record)
            return
        id = record.get("id")
        if not isinstance(id, str) or id in self.entries:
            raise ValueError(f"entry {str(id)[:60]} is there twice")
        self.entries[id] = len(self.entries) + 1
        self._placed(_read(fields_of(part), record))  # without what follows from its text, which takes long

    def row(self, part: Part, record: Record) -> Row:
        """Return the row of a record; one of the errors of UNREADABLE says what is wrong."""
        values = _read(fields_of(part), record)
        if part in _OWN:
            return self._own(part, values)
        if part is transfer.GRANTS:
            values["digest"] = ""
        table = _table(part)
        row = tuple([values[name] for name in table.columns])
        table.decode(row)
        return row

    def _own(self, part: Part, values: dict[str, Any]) -> Row:
        if part is transfer.ENTRIES:
            return self._entry(values)
        if part is transfer.MODELS:
            model = values["name"], values["dimensions"], values["digest"]
            return _number(self.models, model), *model
        if "entry" in values:
            id, values["entry"] = values["entry"], self._entry_number(values["entry"])
            values["partition_id"] = self._homes[id]
        if part is transfer.VERSIONS:
            values["snapshot"] = _snapshot_in(values["snapshot"])
        if "model" in values:
            model = values["model"], values["dimensions"], values["model_digest"]
            if values["dimensions"] * 4 != len(values["vector"]):
                raise ValueError("the vector has another length than its model")
            if model not in self.models:
                raise ValueError("the model of the vector is not named before it")
            values["model_id"] = self.models[model]
        if "namespace" in values:
            values["space"] = _number(self.spaces, path_text(namespace_of(values["namespace"])))
        return tuple(values[name] for name in part.columns)

    def _entry_number(self, id: str) -> int:
        if id not in self.entries:
            raise ValueError(f"entry {id[:60]} is named before it is there")
        return self.entries[id]

    def _placed(self, values: dict[str, Any]) -> tuple[Entry, int, int]:
        """Return an entry with the numbers of its scope and its partition."""
        entry = entry_of(tuple([values[name] for name in COLUMNS]))
        if not 0 <= entry.importance <= 1:
            raise ValueError("importance is not between 0 and 1")
        scope = _number(self.scopes, (values["tier"], values["anchor"]))
        partition = _number(self.partitions, (scope, str(VISIBILITY[entry.state]), values["owner"]))
        self._homes[entry.id] = partition
        return entry, scope, partition

    def _entry(self, values: dict[str, Any]) -> Row:
        entry, scope, partition = self._placed(values)
        columns = entry_columns(entry) | values
        columns["marks"] |= RESTS * bool(values["rests"])
        columns |= {"rowid": self.entries[entry.id], "scope_id": scope, "partition_id": partition}
        return tuple([columns[name] for name in transfer.ENTRIES.columns])


def _number(known: dict[Any, int], value: Any) -> int:
    return known.setdefault(value, len(known) + 1)
