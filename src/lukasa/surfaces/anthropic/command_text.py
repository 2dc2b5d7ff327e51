"""Read the fields of a command, and compose its answers in the words of Anthropic's documentation.

Pure functions. A command that cannot be done raises `ToolRefusal`, whose text is the answer.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec import Struct

MAX_LINES = 999_999
_UNITS = "BKMG"
_SNIPPET = 2  # lines shown before and after a change


class ToolRefusal(Exception):
    """A command that cannot be done; the model gets the message as its answer."""


class Command(Struct, frozen=True):
    """The fields of a command: the input of a tool_use block, or a command object of the SDK."""

    given: object

    def get(self, name: str) -> object:
        return self.given.get(name) if isinstance(self.given, Mapping) else getattr(self.given, name, None)

    def text(self, name: str) -> str:
        value = self.get(name)
        if value is None:
            raise ToolRefusal(f"Error: Missing required parameter `{name}`")
        if not isinstance(value, str):
            raise ToolRefusal(f"Error: Invalid `{name}` parameter: it should be text, not {type(value).__name__}")
        return value

    def number(self, name: str) -> int:
        value = self.get(name)
        if value is None:
            raise ToolRefusal(f"Error: Missing required parameter `{name}`")
        if isinstance(value, bool) or not isinstance(value, int):
            raise ToolRefusal(f"Error: Invalid `{name}` parameter: it should be a whole number")
        return value

    def lines(self) -> tuple[int, int] | None:
        """Return `view_range`, if it is given."""
        value = self.get("view_range")
        if value is None:
            return None
        if isinstance(value, list | tuple) and len(value) == 2:
            first, last = value
            if type(first) is int and type(last) is int:
                return first, last
        raise ToolRefusal(
            "Error: Invalid `view_range` parameter: it should be [start_line, end_line], with -1 for the end"
        )


def shown(value: object, most: int = 200) -> str:
    """Return a caller's value, short and printable, for an error message."""
    text = value if isinstance(value, str) else "nothing" if value is None else type(value).__name__
    plain = (c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text[:most])
    return "".join(plain) + ("…" if len(text) > most else "")


def numbered(path: str, text: str, lines: tuple[int, int] | None) -> str:
    """Return a file as `view` shows it: a header, and the exact text with line numbers."""
    every = text.split("\n")
    if len(every) > MAX_LINES:
        raise ToolRefusal(f"File {path} exceeds maximum line limit of 999,999 lines.")
    asked = lines or (1, -1)
    first, last = max(asked[0], 1), len(every) if asked[1] == -1 else min(asked[1], len(every))
    if first > last:
        raise ToolRefusal(
            f"Error: Invalid `view_range` parameter: {list(asked)}. "
            f"It should be within the range of lines of the file: [1, {len(every)}]"
        )
    return f"Here's the content of {path} with line numbers:\n" + _with_numbers(every, first, last)


def _with_numbers(lines: list[str], first: int, last: int) -> str:
    return "\n".join(f"{number:6d}\t{lines[number - 1]}" for number in range(first, last + 1))


def replaced(path: str, text: str, old: str, new: str) -> tuple[str, int]:
    """Return the text with its one `old` replaced, and the line number of the change."""
    if not old:
        raise ToolRefusal("No replacement was performed. old_str is empty. Please ensure it is unique")
    count = text.count(old)
    if not count:
        raise ToolRefusal(f"No replacement was performed, old_str `{old}` did not appear verbatim in {path}.")
    if count > 1:
        raise ToolRefusal(
            f"No replacement was performed. Multiple occurrences of old_str `{old}` in lines: "
            f"{', '.join(map(str, _occurrences(text, old)))}. Please ensure it is unique"
        )
    return text.replace(old, new), text[: text.index(old)].count("\n") + 1


def _occurrences(text: str, old: str) -> Iterable[int]:
    at = text.find(old)
    while at != -1:
        yield text.count("\n", 0, at) + 1
        at = text.find(old, at + len(old))


def edited(text: str, line: int, added: str) -> str:
    """Return the answer of `str_replace`: the lines around the change, as they are now."""
    lines = text.split("\n")
    first, last = max(1, line - _SNIPPET), min(len(lines), line + added.count("\n") + _SNIPPET)
    header = "The memory file has been edited. Here is the snippet showing the change (with line numbers):\n"
    return header + _with_numbers(lines, first, last)


def inserted(text: str, line: int, added: str) -> str:
    """Return the text with whole lines added after a line."""
    lines = _lines(text)
    if not 0 <= line <= len(lines):
        raise ToolRefusal(
            f"Error: Invalid `insert_line` parameter: {line}. "
            f"It should be within the range of lines of the file: [0, {len(lines)}]"
        )
    before, after = "".join(lines[:line]), "".join(lines[line:])
    return _closed(before) + (_closed(added) or "\n") + after


def _lines(text: str) -> list[str]:
    """Split into lines with their ends. Only a newline ends a line, as in `view`."""
    found = [f"{line}\n" for line in text.split("\n")]
    found[-1] = found[-1][:-1]
    return found if found[-1] else found[:-1]


def _closed(text: str) -> str:
    return text if not text or text.endswith("\n") else f"{text}\n"


class Leaf(Struct, frozen=True):
    """A file in a listing: the names of its path, and its size in bytes."""

    names: tuple[str, ...]
    size: int


def listing(path: str, folder: tuple[str, ...], leaves: Iterable[Leaf], folders: Iterable[tuple[str, ...]]) -> str:
    """Return a directory as `view` shows it: two levels, no hidden items, the size of a folder is that of its files.

    `folders` are shown even if they are empty.
    """
    depth, total = len(folder), 0
    sizes: dict[tuple[tuple[str, ...], bool], int] = {}
    for names in folders:
        if names[:depth] == folder and depth < len(names) <= depth + 2 and not _hidden(names[depth:]):
            sizes[names, True] = 0
    for leaf in leaves:
        inner = leaf.names[depth:]
        if leaf.names[:depth] != folder or not inner or _hidden(inner):
            continue
        total += leaf.size
        for level in range(1, min(len(inner), 2) + 1):
            key = leaf.names[: depth + level], level < len(inner)
            sizes[key] = sizes.get(key, 0) + leaf.size
    lines = [f"{_size(total)}\t{path}"]
    for (names, is_folder), size in sorted(sizes.items()):
        lines.append(f"{_size(size)}\t{path}/{'/'.join(names[depth:])}{'/' if is_folder else ''}")
    header = (
        f"Here're the files and directories up to 2 levels deep in {path}, excluding hidden items and node_modules:"
    )
    return "\n".join([header, *lines])


def _hidden(names: tuple[str, ...]) -> bool:
    return any(name.startswith(".") or name == "node_modules" for name in names)


def _size(count: int) -> str:
    """Format a number of bytes: 0B, 512B, 1.5K, 2M."""
    unit = min(max(count.bit_length() - 1, 0) // 10, len(_UNITS) - 1)
    size = count / 1024**unit
    return f"{size:.0f}{_UNITS[unit]}" if size == int(size) else f"{size:.1f}{_UNITS[unit]}"
