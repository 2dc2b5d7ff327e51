"""A small typed reader for TOML tables that collects every problem instead of stopping at the first.

Each method returns a usable value even after a problem, so that the rest of the file is read too. A spec is built only
from a file without problems.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from importlib import import_module
from typing import TypeVar

from lukasa.model.errors import SpecError

T = TypeVar("T", bound=str)

NAME = re.compile(r"[a-z][a-z0-9_-]{0,59}")
BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")


def quoted(text: str) -> str:
    """A TOML basic string. JSON escapes the same characters, except that TOML needs DEL escaped too."""
    out = []
    for c in text:
        if c in '"\\':
            out.append("\\" + c)
        elif c == "\n":
            out.append("\\n")
        elif c < " " or c == "\x7f":
            out.append(f"\\u{ord(c):04x}")
        else:
            out.append(c)
    return '"' + "".join(out) + '"'


def literal(value: object) -> str:
    """A value as TOML, on one line."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return quoted(str(value))
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, Mapping):
        inner = ", ".join(f"{bare_or_quoted(str(k))} = {literal(v)}" for k, v in value.items())
        return f"{{ {inner} }}" if inner else "{}"
    if isinstance(value, Iterable):
        return "[" + ", ".join(literal(item) for item in value) + "]"
    raise TypeError(f"no TOML form for {type(value).__name__}")


def bare_or_quoted(key: str) -> str:
    return key if BARE_KEY.fullmatch(key) else quoted(key)


def nearest(word: str, known: Iterable[str]) -> str:
    """The known word that is most similar to a misspelt one, or ""."""
    # Loaded only after an error: most specs have none.
    close: list[str] = import_module("difflib").get_close_matches(word, list(known), n=1, cutoff=0.6)
    return next(iter(close), "")


class Problems:
    """The problems of one file, in order; a repeated problem is listed once."""

    def __init__(self, file: str, error: type[SpecError] = SpecError) -> None:
        self.file, self._error = file, error
        self._found: dict[tuple[str, str], SpecError] = {}

    def add(self, key: str, message: str, fix: str) -> None:
        self._found.setdefault((key, message), self._error(message, file=self.file, key=key, fix=fix))

    @property
    def found(self) -> list[SpecError]:
        return list(self._found.values())


class TomlTable:
    """One TOML table. `close` refuses every key that no method has read."""

    def __init__(self, data: Mapping[str, object], path: str, problems: Problems) -> None:
        self.data = data
        self.path = path
        self.problems = problems
        self._known: set[str] = set()

    def __contains__(self, key: str) -> bool:
        return key in self.data

    def at(self, key: str) -> str:
        return f"{self.path}.{key}" if self.path else key

    def write(self, key: str, example: object) -> str:
        """The line to write, and the header it belongs under."""
        line = f"{bare_or_quoted(key)} = {literal(example)}"
        return f"write under [{self.path}]: {line}" if self.path and "[" not in self.path else f"write: {line}"

    def wrong(self, key: str, message: str, example: object) -> None:
        self.problems.add(self.at(key), message, self.write(key, example))

    def take(self, key: str) -> object:
        self._known.add(key)
        return self.data.get(key)

    def missing(self, key: str, default: object, example: object) -> bool:
        """Whether the key is absent; reported only if there is no default."""
        self._known.add(key)
        if key in self.data:
            return False
        if default is None:
            self.wrong(key, "missing", example)
        return True

    def text(self, key: str, default: str | None = None, *, example: str = "…", blank: bool = False) -> str:
        if self.missing(key, default, example):
            return default or ""
        value = self.take(key)
        if not isinstance(value, str):
            self.wrong(key, f"expected text, found {described(value)}", example)
            return ""
        if not blank and not value.strip():
            self.wrong(key, "must not be empty", example)
        return value

    def name(self, key: str, default: str | None = None, *, example: str) -> str:
        value = self.text(key, default, example=example)
        if value and not NAME.fullmatch(value):
            self.wrong(key, f"{value[:60]!r} is not a name: lower-case letters, digits, - and _", example)
        return value

    def flag(self, key: str, default: bool | None = None, *, example: bool = True) -> bool:
        if self.missing(key, default, example):
            return bool(default)
        value = self.take(key)
        if not isinstance(value, bool):
            self.wrong(key, f"expected true or false, found {described(value)}", example)
            return False
        return value

    def choice(self, key: str, options: tuple[T, ...], default: T | None = None, *, example: T | None = None) -> T:
        shown = example or default or options[0]
        if self.missing(key, default, str(shown)):
            return shown if default is None else default
        value = self.take(key)
        for option in options:
            if isinstance(value, str) and value == option:
                return option
        meant = nearest(value, options) if isinstance(value, str) else ""
        listing = ", ".join(options)
        self.wrong(key, f"expected one of {listing}; found {described(value)}", meant or str(shown))
        return shown

    def number(
        self,
        key: str,
        default: float | None = None,
        *,
        low: float = 0.0,
        high: float = math.inf,
        above: bool = False,
        example: float | None = None,
    ) -> float:
        """A finite number in [low, high], or in (low, high] with `above`."""
        shown = example if example is not None else default if default is not None else low
        if self.missing(key, default, shown):
            return float(shown if default is None else default)
        value = self.take(key)
        if isinstance(value, bool) or not isinstance(value, int | float):
            self.wrong(key, f"expected a number, found {described(value)}", shown)
            return float(shown)
        if not _inside(value, low, high, above=above):
            self.wrong(key, f"{_short(value)} is not {_range(low, high, above=above)}", shown)
            return float(shown)
        return float(value)

    def whole(self, key: str, default: int | None = None, *, low: int = 0, example: int | None = None) -> int:
        shown = example if example is not None else default if default is not None else low
        if self.missing(key, default, shown):
            return shown if default is None else default
        value = self.take(key)
        if isinstance(value, bool) or not isinstance(value, int):
            self.wrong(key, f"expected a whole number, found {described(value)}", shown)
            return shown
        if not low <= value < 2**53:
            self.wrong(key, f"{_short(value)} is not {_range(low, 2**53, above=False)}", shown)
            return shown
        return value

    def texts(
        self, key: str, default: tuple[str, ...] | None = None, *, example: tuple[str, ...] = ()
    ) -> tuple[str, ...]:
        if self.missing(key, default, example):
            return default or ()
        value = self.take(key)
        if not isinstance(value, list) or not all(isinstance(item, str) and item.strip() for item in value):
            self.wrong(key, f"expected a list of texts, found {described(value)}", example)
            return ()
        if len(set(value)) < len(value):
            self.wrong(key, "a name is listed twice", tuple(dict.fromkeys(value)))
        return tuple(value)

    def choices(
        self, key: str, options: tuple[T, ...], default: tuple[T, ...] | None = None, *, example: tuple[T, ...] = ()
    ) -> tuple[T, ...]:
        known = {str(option): option for option in options}
        given = self.texts(key, default, example=example)
        for item in given:
            if item not in known:
                meant = nearest(item, known)
                hint = f"; did you mean {meant!r}?" if meant else ""
                self.wrong(key, f"unknown {item[:60]!r}, not one of {', '.join(known)}{hint}", example)
        return tuple(known[item] for item in given if item in known)

    def table(self, key: str) -> TomlTable:
        """A sub-table; an absent one is read as empty."""
        value = self.take(key)
        if key in self.data and not isinstance(value, dict):
            self.problems.add(
                self.at(key), f"expected a table, found {described(value)}", f"write a header: [{self.at(key)}]"
            )
        return TomlTable(value if isinstance(value, dict) else {}, self.at(key), self.problems)

    def tables(self, key: str) -> list[TomlTable]:
        """An array of tables; the path of each includes its position, counted from one."""
        value = self.take(key)
        if value is None:
            return []
        if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
            self.problems.add(
                self.at(key),
                f"expected a list of tables, found {described(value)}",
                f"start each with a header: [[{self.at(key)}]]",
            )
            return []
        return [TomlTable(item, f"{self.at(key)}[{n}]", self.problems) for n, item in enumerate(value, 1)]

    def close(self) -> None:
        for key in self.data:
            if key in self._known:
                continue
            meant = nearest(key, self._known)
            if meant:
                value = self.data[key]
                several = isinstance(value, list) and value and isinstance(value[0], dict)
                new = f"[{self.at(meant)}]" if isinstance(value, dict) else f"{meant} = …"
                new = f"[[{self.at(meant)}]]" if several else new
                self.problems.add(self.at(key), f"unknown key; did you mean {meant!r}?", f"rename it to: {new}")
            else:
                self.problems.add(
                    self.at(key), "unknown key", f"remove it; known here: {', '.join(sorted(self._known))}"
                )


def described(value: object) -> str:
    """A short description of a value in the file, which may be anything."""
    if isinstance(value, dict):
        return "a table"
    if isinstance(value, list):
        return "a list of something else" if value else "an empty list"
    if isinstance(value, str):
        return repr(value[:60])
    return _short(value) if isinstance(value, int | float) else f"a {type(value).__name__}"


def _short(value: float) -> str:
    # Python refuses to print an int of more than 4,300 digits, and TOML's hexadecimal can hold one.
    return "a huge number" if 2**53 < abs(value) < math.inf else str(value).lower()


def _inside(value: float, low: float, high: float, *, above: bool) -> bool:
    # NaN fails every comparison, so it is refused.
    return abs(value) <= 2**53 and (value > low if above else value >= low) and value <= high


def _range(low: float, high: float, *, above: bool) -> str:
    start = f"above {low:g}" if above else f"at least {low:g}"
    return start if high in (math.inf, 2**53) else f"{start} and at most {high:g}"
