"""Items: JSON values under a namespace and a key, stored for graphs exactly as given.

An item is not a memory: it is not checked, merged or ranked. Only its changes are in the event log.
"""

from __future__ import annotations

import json
import operator
import re
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any

from msgspec import Struct
from msgspec.structs import force_setattr

from lukasa.model.errors import InvalidInput, InvalidQuery
from lukasa.model.events import canonical_json
from lukasa.model.text import commitment

_MAX_DEPTH = 100
_MAX_TTL = 100 * 365 * 24 * 60.0


class ItemAddress(Struct, frozen=True):
    """The address of an item. Namespaces are compared label by label, by equality; no character is special."""

    namespace: tuple[str, ...]
    key: str

    def __post_init__(self) -> None:
        if not isinstance(self.key, str):
            raise InvalidInput("the key of an item must be text", fix="use a string")
        force_setattr(self, "namespace", checked_namespace(self.namespace))


class Item(Struct, frozen=True):
    """A value with its times. `ttl` is in minutes; from `expires_at` on, the item has expired.

    `id` names it in the event log: the store sets it, and an item that is put again after a deletion gets a new one.
    """

    place: ItemAddress
    value: dict[str, Any]
    created_at: datetime
    updated_at: datetime
    expires_at: datetime | None = None
    ttl: float | None = None
    id: str = ""

    def expired(self, at: datetime) -> bool:
        return self.expires_at is not None and self.expires_at <= at


def checked_namespace(labels: Any) -> tuple[str, ...]:
    if isinstance(labels, str) or not all(isinstance(label, str) for label in labels):
        raise InvalidInput("a namespace is a sequence of strings", fix='write it as ("users", "ada")')
    return tuple(labels)


def path_text(namespace: tuple[str, ...]) -> str:
    """A namespace as text; two different namespaces never have the same text."""
    return canonical_json(list(namespace))


def namespace_of(path: str) -> tuple[str, ...]:
    """The namespace that has this text."""
    return tuple(json.loads(path))


def beginnings(namespace: tuple[str, ...]) -> list[str]:
    """The text of every beginning of a namespace, from the empty one to itself."""
    return [path_text(namespace[:depth]) for depth in range(len(namespace) + 1)]


def value_text(value: Mapping[str, Any]) -> str:
    """A value as it is stored, keys in their order. Refuses a value that JSON would not return unchanged."""
    if not isinstance(value, Mapping):
        raise InvalidInput("the value of an item must be a mapping", fix='wrap it, as in {"value": …}')
    _check_json(value, 0)
    try:
        return json.dumps(dict(value), ensure_ascii=False, separators=(",", ":"))
    except (TypeError, ValueError) as error:
        raise InvalidInput(f"not a JSON value: {error}", fix="use strings, numbers, lists and dicts") from None


def whole_text(value: Mapping[str, Any]) -> str:
    """A whole value as text, with sorted keys, as LangGraph writes it."""
    return json.dumps(dict(value), sort_keys=True, ensure_ascii=False)


def _check_json(value: Any, depth: int) -> None:
    if depth > _MAX_DEPTH:
        raise InvalidInput(f"nested more than {_MAX_DEPTH} deep", fix="flatten the value")
    if isinstance(value, Mapping):
        if not all(isinstance(key, str) for key in value):
            raise InvalidInput("the keys of a value must be strings", fix="write numbers as text")
        for part in value.values():
            _check_json(part, depth + 1)
    elif isinstance(value, list | tuple):
        for part in value:
            _check_json(part, depth + 1)


def item_id(salt: bytes, address: ItemAddress) -> str:
    """An item's name in the log. Salted, so that nobody can guess the namespace or key from a log that was kept."""
    return "item-" + commitment(salt, canonical_json([list(address.namespace), address.key]))[:32]


def lifetime(ttl: float | None) -> timedelta | None:
    """Minutes as a time span."""
    if ttl is None:
        return None
    if isinstance(ttl, bool) or not isinstance(ttl, int | float) or not 0 <= ttl <= _MAX_TTL:
        raise InvalidInput(f"not a time to live: {str(ttl)[:60]}", fix="give minutes, up to a hundred years")
    return timedelta(minutes=ttl)


# Filters

_KEY = re.compile(r"[\w.-]+")


class ItemFilter(Struct, frozen=True):
    """Conditions on a value, all of which must hold.

    A dotted key goes into nested values, unless the value has that key itself.
    """

    conditions: tuple[tuple[str, Any], ...] = ()

    @classmethod
    def of(cls, given: Mapping[str, Any] | None) -> ItemFilter:
        """Make a filter of a mapping from keys to values, or to operators as in `{"$gte": 3}`.

        Anything else is an error.
        """
        for key, wanted in (given or {}).items():
            # Not `match` with a `$`: that would let a trailing newline through.
            if not isinstance(key, str) or not _KEY.fullmatch(key):
                raise InvalidQuery(f"unusable filter key {str(key)[:60]!r}", fix="use letters, digits, '_', '-', '.'")
            _check_wanted(wanted, 0)
        return cls(tuple((given or {}).items()))

    def admits(self, value: Mapping[str, Any]) -> bool:
        return all(_matches(_at(value, key), wanted) for key, wanted in self.conditions)


def _check_wanted(wanted: Any, depth: int) -> None:
    if depth > _MAX_DEPTH:
        raise InvalidQuery(f"a filter nested more than {_MAX_DEPTH} deep", fix="name the field by its dotted path")
    if isinstance(wanted, Mapping):
        if not all(isinstance(key, str) for key in wanted):
            raise InvalidQuery("the keys of a filter must be strings", fix="write numbers as text")
        if _is_operators(wanted) and not wanted.keys() <= _OPERATORS.keys():
            unknown = next(iter(wanted.keys() - _OPERATORS.keys()))
            raise InvalidQuery(f"unknown filter operator {unknown[:60]!r}", fix=f"use {', '.join(_OPERATORS)}")
    parts = wanted.values() if isinstance(wanted, Mapping) else wanted if isinstance(wanted, list | tuple) else ()
    for part in parts:
        _check_wanted(part, depth + 1)


def _is_operators(wanted: Mapping[str, Any]) -> bool:
    return any(key.startswith("$") for key in wanted)


def _at(value: Any, key: str) -> Any:
    if isinstance(value, Mapping) and key in value:
        return value[key]
    for label in key.split("."):
        if not isinstance(value, Mapping):
            return None
        value = value.get(label)
    return value


def _matches(value: Any, wanted: Any) -> bool:
    """Equality, except that a mapping compares only the keys it names: the value may hold more."""
    if isinstance(wanted, Mapping):
        if _is_operators(wanted):
            return all(_OPERATORS[name](value, operand) for name, operand in wanted.items())
        return isinstance(value, Mapping) and all(_matches(value.get(key), part) for key, part in wanted.items())
    if isinstance(wanted, list | tuple):
        return (
            isinstance(value, list)
            and len(value) == len(wanted)
            and all(_matches(mine, part) for mine, part in zip(value, wanted, strict=True))
        )
    return bool(value == wanted)


def _equal(value: Any, operand: Any) -> bool:
    return bool(value == _listed(operand))


def _listed(operand: Any) -> Any:
    """The operand as JSON would return it: a tuple becomes a list."""
    if isinstance(operand, list | tuple):
        return [_listed(part) for part in operand]
    if isinstance(operand, Mapping):
        return {key: _listed(part) for key, part in operand.items()}
    return operand


def _ordered(compare: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool]:
    def holds(value: Any, operand: Any) -> bool:
        if isinstance(value, str) and isinstance(operand, str):
            return compare(value, operand)
        mine, theirs = _number(value), _number(operand)
        return mine is not None and theirs is not None and compare(mine, theirs)

    return holds


def _number(value: Any) -> int | float | None:
    """A number as it is. Integers stay integers, because some are larger than any float."""
    if isinstance(value, int | float):
        return value
    try:
        return float(value) if isinstance(value, str) else None
    except ValueError:
        return None


_OPERATORS: Mapping[str, Callable[[Any, Any], bool]] = {
    "$eq": _equal,
    "$ne": lambda value, operand: not _equal(value, operand),
    "$gt": _ordered(operator.gt),
    "$gte": _ordered(operator.ge),
    "$lt": _ordered(operator.lt),
    "$lte": _ordered(operator.le),
}
