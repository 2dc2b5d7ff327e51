"""Tables and queries declared once. The declaration makes the SQL, the encoder of a value and the decoder of a row.

A backend gives a `Dialect` and gets its statements; it never lists a column itself. All statements come from constants
of this program: values are bound, never written into the text.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from operator import attrgetter
from typing import Any, Generic, NamedTuple, TypeVar

from msgspec import Struct

from lukasa.model.errors import UNREADABLE, Damaged
from lukasa.model.timestamps import micros, micros_or_none, moment, moment_or_none
from lukasa.storage import row_rules

Value = TypeVar("Value")
Row = tuple[Any, ...]
Skipped = frozenset[int]
NOTHING: Skipped = frozenset()


class Codec(Struct, frozen=True):
    """How a column stores a field, and reads it back; None keeps the value as it is.

    `part` gives the text that stands for one of several values in a column, which the test `holds` looks for.
    """

    store: Callable[[Any], Any] | None = None
    load: Callable[[Any], Any] | None = None
    part: Callable[[Any], str] | None = None


def _json(value: Any) -> str:
    return json.dumps(row_rules.plain_json(value))


def _texts(values: Iterable[Any]) -> str:
    return json.dumps([str(value) for value in values])


def _object(text: str) -> dict[str, Any]:
    return {**json.loads(text)}  # a TypeError for anything but an object


def enum(kind: Callable[[Any], Any]) -> Codec:
    return Codec(str, kind)


PLAIN = Codec()
FLAG = Codec(int, bool)
REAL = Codec(float)
TIME = Codec(micros, moment)
TIME_OR_NONE = Codec(micros_or_none, moment_or_none)
ISO_TIME = Codec(datetime.isoformat, datetime.fromisoformat)
JSON = Codec(_json, json.loads)
CANONICAL = Codec(lambda value: row_rules.plain_text(dict(value)), _object)
TEXTS = Codec(_texts, lambda text: tuple(json.loads(text)))


class Column(Struct, frozen=True):
    """One column. `field` is the attribute that it holds, by default of the same name; a dot leads into a part.

    A `fixed` column keeps its first value when a row is saved again. With `derive`, the column is computed from the
    whole value; when a row is read, it tells whether the row is what was written.
    """

    name: str
    codec: Codec = PLAIN
    field: str = ""
    fixed: bool = False
    derive: Callable[[Any], Any] | None = None

    @property
    def path(self) -> str:
        return self.field or self.name


class Table(Generic[Value]):
    """A table of values of one type, found by `key`. The order of insertion is called `place` in queries.

    `parts` names the types of those fields that columns lead into. With `clock`, a column of time numbers the rows:
    `place` is that time in microseconds, or the next free number if that is taken or past.
    """

    def __init__(
        self,
        name: str,
        kind: type[Value],
        columns: Sequence[Column],
        key: tuple[str, ...],
        *,
        parts: Mapping[str, type[Any]] | None = None,
        clock: str = "",
    ) -> None:
        self.name, self.key, self.clock = name, key, clock
        self.kind, self.parts = kind, dict(parts or {})
        self.columns = {column.name: column for column in columns}
        self.positions = {column: position for position, column in enumerate(self.columns)}
        self.one = Query(self, *(f"{name} =" for name in key))
        self._stored = [(c.derive or attrgetter(c.path), None if c.derive else c.codec.store) for c in columns]
        self._seals = [(position, c.derive) for position, c in enumerate(columns) if c.derive]
        self._plan = _plan(kind, "", columns, dict(parts or {}))

    def __repr__(self) -> str:
        return f"<table {self.name}>"

    def encode(self, value: Value) -> Row:
        return tuple([get(value) if store is None else store(get(value)) for get, store in self._stored])

    def decode(self, row: Row) -> Value:
        """The value of a row; Damaged if the row cannot be read, or holds another value than the one written."""
        try:
            made: Value = _made(self._plan, row)
            sound = all(derive(made) == row[position] for position, derive in self._seals)
        except UNREADABLE:
            sound = False
        if not sound:
            raise Damaged(f"a row of {self.name} ({', '.join(str(part)[:60] for part in self.key_of(row))})")
        return made

    def key_of(self, row: Row) -> Row:
        return tuple([row[self.positions[name]] for name in self.key])


class TextTable(Table[Value]):
    """A table whose rows are found by the words of their texts. Rows are numbered by `rowid`, a newer one higher.

    `text` is what the keyword index holds of a value; `row` is what the index calls a row of this table.
    """

    def __init__(
        self,
        name: str,
        kind: type[Value],
        columns: Sequence[Column],
        key: tuple[str, ...],
        *,
        parts: Mapping[str, type[Any]] | None = None,
        text: Callable[[Value], str],
        row: str,
    ) -> None:
        super().__init__(name, kind, columns, key, parts=parts)
        self.text, self.row = text, row


class _Plan(NamedTuple):
    """How to make a value: its type, and for each of its fields in order a position and a loader, or another plan."""

    kind: Any
    fields: list[tuple[int, Callable[[Any], Any] | None, _Plan | None]]


def _plan(kind: Any, prefix: str, columns: Sequence[Column], parts: Mapping[str, type[Any]]) -> _Plan:
    held = {c.path: (n, c.codec.load) for n, c in enumerate(columns) if c.derive is None}
    fields: list[tuple[int, Callable[[Any], Any] | None, _Plan | None]] = []
    for name in kind.__struct_fields__:
        path = prefix + name
        part = parts.get(path)
        fields.append((-1, None, _plan(part, f"{path}.", columns, parts)) if part else (*held[path], None))
    return _Plan(kind, fields)


def _made(plan: _Plan, row: Row) -> Any:
    kind, fields = plan
    return kind(
        *[
            _made(part, row) if part is not None else row[position] if load is None else load(row[position])
            for position, load, part in fields
        ]
    )


class Condition(Struct, frozen=True):
    """A test of one column against a bound value. An `optional` one does not filter if its value is None."""

    column: str
    test: str
    optional: bool = False


class Query(Generic[Value]):
    """Some rows of a table, in order. Conditions are written `"column test"` or `"column test optional"`.

    Tests are = <> < <= > >=, `in`, which takes a list, `holds`, which takes a part of the column's text, and `ended`,
    which a time passes that is empty or not after the value. `order` names columns; a minus turns one around, and
    `place` is the order of insertion. With `paged`, a page begins behind a key in the order of `place`.
    """

    def __init__(self, table: Table[Value], *where: str, order: str = "", paged: bool = False) -> None:
        self.table, self.paged = table, paged
        self.given = table
        self.where = tuple(_condition(text) for text in where)
        self.order = tuple((name.lstrip("-"), name.startswith("-")) for name in order.split())

    def __repr__(self) -> str:
        return f"<query of {self.table.name}: {', '.join(f'{c.column} {c.test}' for c in self.where)}>"

    def bind(self, values: Sequence[Any]) -> list[Any]:
        """The values as the columns store them; lists stay lists."""
        bound: list[Any] = []
        for condition, value in zip(self.where, values, strict=True):
            codec = self.table.columns[condition.column].codec
            store = codec.part if condition.test == "holds" else codec.store
            if store is None or value is None:
                bound.append(list(value) if condition.test == "in" and value is not None else value)
            else:
                bound.append([store(one) for one in value] if condition.test == "in" else store(value))
        return bound


class PartQuery(Query[Value]):
    """Some rows of a table, read as values of another type that has only some of the columns."""

    def __init__(
        self, table: Table[Any], kind: type[Value], columns: Sequence[Column], *where: str, order: str = ""
    ) -> None:
        super().__init__(table, *where, order=order)
        self.given = Table(table.name, kind, columns, table.key)


def _condition(text: str) -> Condition:
    column, test, *rest = text.split()
    return Condition(column, test, rest == ["optional"])


class Dialect(Struct, frozen=True):
    """The differences between engines, by default those of SQLite.

    `mark` is the placeholder of a numbered value, `among` a test for one of a bound list, `holds` one
    for a part of a text, `greatest` the function
    that gives the larger of two numbers, and `no_limit` the value that stands for all rows. Where one database holds
    many stores, `tenant` is the column that says whose a row is: its value is bound first, in every statement. With
    `clocked`, the statement numbers the rows of a table with a clock; otherwise the table does so itself.
    """

    mark: str = "?{number}"
    among: str = "{column} IN (SELECT value FROM json_each({mark}))"
    holds: str = "instr({column}, {mark}) > 0"
    greatest: str = "max"
    no_limit: int | None = -1
    tenant: str = ""
    clocked: bool = True

    def select(self, query: Query[Any], skipped: Skipped = NOTHING, *, behind: bool = True) -> str:
        """The last two bound values are the key that a page begins behind (only if `paged`) and the limit.

        Optional conditions whose places are `skipped` are left out with their values, and without `behind` so is the
        key that a page begins behind.
        """
        table, number = query.table, len(query.where)
        clauses = self._clauses(query, skipped)
        if query.paged and behind:
            number += 1
            mark = self.mark.format(number=number)
            (key,) = table.key
            test = "<" if ("place", True) in query.order else ">"
            whose = f"{self.tenant} = {table.name}.{self.tenant} AND " if self.tenant else ""
            last = f"(SELECT place FROM {table.name} AS last WHERE {whose}{key} = {mark})"
            clauses.append(f"place {test} {last}" if self.tenant else f"({mark} IS NULL OR place {test} {last})")
        order = ", ".join(name + " DESC" * down for name, down in query.order)
        parts = [f"SELECT {', '.join(query.given.columns)} FROM {table.name}", _where(clauses)]
        parts += [f"ORDER BY {order}" if order else "", f"LIMIT {self.mark.format(number=number + 1)}"]
        return " ".join(part for part in parts if part)

    def count(self, query: Query[Any], skipped: Skipped = NOTHING) -> str:
        return f"SELECT count(*) FROM {query.table.name} {_where(self._clauses(query, skipped))}".rstrip()

    def count_by(self, query: Query[Any], column: str, skipped: Skipped = NOTHING) -> str:
        parts = [f"SELECT {column}, count(*) FROM {query.table.name}", _where(self._clauses(query, skipped))]
        return " ".join(part for part in parts if part) + f" GROUP BY {column} ORDER BY {column}"

    def delete(self, query: Query[Any], skipped: Skipped = NOTHING) -> str:
        return f"DELETE FROM {query.table.name} {_where(self._clauses(query, skipped))}".rstrip()

    def numbers(self, query: Query[Any], skipped: Skipped = NOTHING) -> str:
        """The row numbers of a query of texts."""
        return f"SELECT rowid FROM {query.table.name} {_where(self._clauses(query, skipped))}".rstrip()

    def insert(self, table: Table[Any]) -> str:
        names = list(table.columns)
        values = [self.mark.format(number=number) for number in range(1, len(names) + 1)]
        if table.clock and self.clocked:
            next_free = f"1 + coalesce((SELECT max(place) FROM {table.name}), 0)"
            values = [f"{self.greatest}({values[table.positions[table.clock]]}, {next_free})", *values]
            names = ["place", *names]
        if self.tenant:
            values, names = [self.mark.format(number=0), *values], [self.tenant, *names]
        return f"INSERT INTO {table.name} ({', '.join(names)}) VALUES ({', '.join(values)})"

    def save(self, table: Table[Any]) -> str:
        """Insert, or replace all but the fixed columns of the row with that key."""
        changed = [c.name for c in table.columns.values() if not c.fixed and c.name not in table.key]
        sets = ", ".join(f"{name} = excluded.{name}" for name in changed)
        action = f"DO UPDATE SET {sets}" if sets else "DO NOTHING"
        key = (self.tenant, *table.key) if self.tenant else table.key
        return f"{self.insert(table)} ON CONFLICT ({', '.join(key)}) {action}"

    def _clauses(self, query: Query[Any], skipped: Skipped) -> list[str]:
        clauses = [f"{self.tenant} = {self.mark.format(number=0)}"] if self.tenant else []
        for number, condition in enumerate(query.where, 1):
            if number - 1 in skipped:
                continue
            column, mark = condition.column, self.mark.format(number=number)
            match condition.test:
                case "in":
                    text = self.among.format(column=column, mark=mark)
                case "holds":
                    text = self.holds.format(column=column, mark=mark)
                case "ended":
                    text = f"({column} IS NULL OR {column} <= {mark})"
                case test:
                    text = f"{column} {test} {mark}"
            clauses.append(f"({mark} IS NULL OR {text})" if condition.optional and not self.tenant else text)
        return clauses


def _where(clauses: Sequence[str]) -> str:
    return f"WHERE {' AND '.join(clauses)}" if clauses else ""
