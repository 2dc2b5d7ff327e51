"""Change single values in the text of a JSON document. All other text stays: formatting, line ends, comments.

respelled('{"a": 1, // mine\n "b": 2}', {"a": 1, "b": 3})      '{"a": 1, // mine\n "b": 3}'
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from json.decoder import scanstring  # type: ignore[attr-defined]
from typing import Any

from msgspec import Struct, field

_BLANK = re.compile(r"(?:[ \t\r\n]++|//[^\n]*+|/\*.*?\*/)*+", re.DOTALL)
_STRICT_BLANK = re.compile(r"[ \t\r\n]*")
_SCALAR = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null")
_INDENT = re.compile(r"^([ \t]+)\S", re.MULTILINE)
_DEEPEST = 200


class Node(Struct):
    """A value with its place in the text; the members of an object have the place of their key too."""

    value: Any
    start: int
    end: int
    keys: dict[str, int] = field(default_factory=dict)
    members: dict[str, Node] = field(default_factory=dict)
    items: list[Node] = field(default_factory=list)


def parsed(text: str, *, comments: bool = False) -> Node:
    """Parse a document. With `comments`, it may hold comments and commas before a closing bracket.

    Raise ValueError for anything else, and for an object that holds a key twice.
    """
    reader = _Reader(text, comments)
    try:
        node = reader.value(reader.skip(0), 0)
    except IndexError:
        raise ValueError("it ends too early") from None
    end = reader.skip(node.end)
    if end < len(text):
        raise ValueError(f"there is more after its end, in line {_line(text, end)}")
    return node


def _line(text: str, at: int) -> int:
    return text.count("\n", 0, at) + 1


class _Reader:
    def __init__(self, text: str, loose: bool) -> None:
        self._text, self._loose = text, loose

    def skip(self, at: int) -> int:
        found = _BLANK.match(self._text, at) if self._loose else _STRICT_BLANK.match(self._text, at)
        return found.end() if found else at

    def _fault(self, at: int) -> ValueError:
        return ValueError(f"line {_line(self._text, at)} holds what JSON does not have there")

    def value(self, at: int, depth: int) -> Node:
        if depth > _DEEPEST:
            raise ValueError("it is nested too deep")
        first = self._text[at]
        if first == "{":
            return self._object(at, depth)
        if first == "[":
            return self._array(at, depth)
        if first == '"':
            found, end = scanstring(self._text, at + 1, True)
            return Node(found, at, end)
        scalar = _SCALAR.match(self._text, at)
        if scalar is None:
            raise self._fault(at)
        return Node(json.loads(scalar[0]), at, scalar.end())

    def _object(self, start: int, depth: int) -> Node:
        node = Node({}, start, start)
        for at in self._parts(start, "}", node):
            if self._text[at] != '"':
                raise self._fault(at)
            key, end = scanstring(self._text, at + 1, True)
            if key in node.members:
                raise ValueError(f"an object holds the same key twice, in line {_line(self._text, at)}")
            colon = self.skip(end)
            if self._text[colon] != ":":
                raise self._fault(colon)
            member = self.value(self.skip(colon + 1), depth + 1)
            node.keys[key], node.members[key], node.value[key] = at, member, member.value
            node.end = member.end
        return node

    def _array(self, start: int, depth: int) -> Node:
        node = Node([], start, start)
        for at in self._parts(start, "]", node):
            item = self.value(at, depth + 1)
            node.items.append(item)
            node.value.append(item.value)
            node.end = item.end
        return node

    def _parts(self, start: int, close: str, node: Node) -> Iterator[int]:
        """Yield where each part begins. The caller sets the node's end to the end of the part."""
        at = self.skip(start + 1)
        while self._text[at] != close:
            yield at
            at = self.skip(node.end)
            if self._text[at] == ",":
                comma, at = at, self.skip(at + 1)
                if self._text[at] == close and not self._loose:
                    raise self._fault(comma)
            elif self._text[at] != close:
                raise self._fault(at)
        node.end = at + 1


# Changing

Edit = tuple[int, int, str]


def respelled(text: str, new: Any, *, comments: bool = False) -> str:
    """Return a document's text with another value, changed in as few places as possible."""
    old = parsed(text, comments=comments)
    newline = "\r\n" if "\r\n" in text else "\n"
    indent = _INDENT.search(text)
    writer = _Writer(text, indent[1] if indent else "  ", newline)
    edits = sorted(writer.changes(old, new), reverse=True)
    for start, end, replacement in edits:
        text = text[:start] + replacement + text[end:]
    if json.dumps(parsed(text, comments=comments).value) != json.dumps(new):
        raise ValueError("it cannot be changed in place")
    return text


class _Writer:
    def __init__(self, text: str, indent: str, newline: str) -> None:
        self._text, self._indent, self._newline = text, indent, newline

    def changes(self, node: Node, new: Any) -> Iterator[Edit]:
        if json.dumps(node.value) == json.dumps(new):
            return
        if isinstance(node.value, dict) and isinstance(new, dict):
            yield from self._object_changes(node, new)
        elif isinstance(node.value, list) and isinstance(new, list):
            yield from self._array_changes(node, new)
        else:
            yield node.start, node.end, self._spelled(new, self._margin(node.start))

    def _object_changes(self, node: Node, new: dict[str, Any]) -> Iterator[Edit]:
        spans = {key: (node.keys[key], member.end) for key, member in node.members.items()}
        gone = [key for key in node.members if key not in new]
        yield from self._removals(node, list(spans.values()), [spans[key] for key in gone])
        for key, member in node.members.items():
            if key in new:
                yield from self.changes(member, new[key])
        added = [f"{json.dumps(key, ensure_ascii=False)}: " for key in new if key not in node.members]
        values = [new[key] for key in new if key not in node.members]
        kept = [span for key, span in spans.items() if key in new]
        yield from self._additions(node, kept, added, values)

    def _array_changes(self, node: Node, new: list[Any]) -> Iterator[Edit]:
        spans = [(item.start, item.end) for item in node.items]
        gone, at = [], 0
        for place, item in enumerate(node.items):
            left = new[at:]
            if item.value in left[:1]:
                at += 1
            elif (
                left
                and (len(new) == len(node.items) or item.value not in left)
                and len(node.items) - place == len(left)
            ):
                yield from self.changes(item, left[0])
                at += 1
            else:
                gone.append(spans[place])
        yield from self._removals(node, spans, gone)
        kept = [span for span in spans if span not in gone]
        yield from self._additions(node, kept, [""] * len(new[at:]), new[at:])

    def _removals(
        self, node: Node, spans: Sequence[tuple[int, int]], gone: Sequence[tuple[int, int]]
    ) -> Iterator[Edit]:
        if not gone:
            return
        if len(gone) == len(spans):
            yield node.start + 1, node.end - 1, ""
            return
        first = next(place for place, span in enumerate(spans) if span not in gone)
        if first:
            yield spans[0][0], spans[first][0], ""
        for before, span in zip(spans[first:], spans[first + 1 :], strict=False):
            if span in gone:
                yield before[1], span[1], ""

    def _additions(
        self, node: Node, kept: Sequence[tuple[int, int]], names: Sequence[str], values: Sequence[Any]
    ) -> Iterator[Edit]:
        if not values:
            return
        outer = self._margin(node.start)
        if not kept:
            inner = outer + self._indent
            parts = [f"{name}{self._spelled(value, inner)}" for name, value in zip(names, values, strict=True)]
            body = f",{self._newline}{inner}".join(parts)
            yield node.start + 1, node.end - 1, f"{self._newline}{inner}{body}{self._newline}{outer}"
            return
        first, last = kept[0][0], kept[-1][1]
        before = self._text[node.start + 1 : first]
        inner = self._margin(first)
        gap = f"{self._newline}{inner}" if "\n" in before else " "
        parts = [f"{name}{self._spelled(value, inner)}" for name, value in zip(names, values, strict=True)]
        # A comma behind the last part, as comments allow it, stays behind the new last part.
        yield last, last, "".join(f",{gap}{part}" for part in parts)

    def _margin(self, at: int) -> str:
        """Return the blanks at the beginning of the line."""
        line = self._text[self._text.rfind("\n", 0, at) + 1 : at]
        return line[: len(line) - len(line.lstrip())]

    def _spelled(self, value: Any, margin: str) -> str:
        text = json.dumps(value, ensure_ascii=False, indent=self._indent)
        return text.replace("\n", f"{self._newline}{margin}")
