"""Changes of a document's text: apply one, and tell the difference of two texts by words. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from typing import NamedTuple

from lukasa.model.errors import InvalidInput
from lukasa.model.submission import Change, How, Run

_HEADING = re.compile(r" {0,3}(#{1,6})[ \t]+(\S.*)")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_UNDERLINE = re.compile(r" {0,3}(=+|-{2,})[ \t]*")
_BETWEEN = " › "
_NAMED = 12  # headings that an error names
_QUOTED = 80
_MOST_STEPS = 1_000_000  # comparisons of words; beyond, whole lines are compared
_AROUND = 240  # characters of an unchanged stretch that are kept on each of its sides


class _Heading(NamedTuple):
    path: tuple[str, ...]
    level: int
    starts: int  # the line of the heading
    begins: int  # the first line under it


def applied(body: str, change: Change) -> str:
    """Return a text with a change. InvalidInput if its place is not there, or is there more than once."""
    match change.how:
        case How.WHOLE:
            return change.text
        case How.END:
            return _joined(body, change.text, "")
        case How.UNDER:
            return _under(body, change)
        case How.REPLACE:
            start, end = _passage(body, change.place)
            return body[:start] + change.text + body[end:]


def _joined(before: str, text: str, after: str) -> str:
    parts = [part for part in (before.rstrip(), text.strip("\n"), after.lstrip("\n")) if part.strip()]
    joined = "\n\n".join(parts)
    return joined if joined.endswith("\n") else joined + "\n"


def _under(body: str, change: Change) -> str:
    lines = body.splitlines(keepends=True)
    headings = list(_headings(lines))
    wanted = tuple(part.strip().lstrip("#").strip().casefold() for part in change.place.split(_BETWEEN.strip()))
    found = [n for n, one in enumerate(headings) if tuple(map(str.casefold, one.path[-len(wanted) :])) == wanted]
    if not found:
        known = ", ".join(f"“{_BETWEEN.join(one.path)}”" for one in headings[:_NAMED])
        fix = f"the headings are: {known}" if known else "the document has no headings: put the text at its end"
        raise InvalidInput(f"no heading “{change.place[:_QUOTED]}” in the document", fix=fix)
    if len(found) > 1:
        paths = ", ".join(f"“{_BETWEEN.join(headings[n].path)}”" for n in found[:_NAMED])
        raise InvalidInput(
            f"{len(found)} headings are called “{change.place[:_QUOTED]}”",
            fix=f"name one with the headings above it: {paths}",
        )
    at = found[0]
    end = headings[at + 1].starts if at + 1 < len(headings) else len(lines)
    return _joined("".join(lines[:end]), change.text, "".join(lines[end:]))


def _headings(lines: Sequence[str]) -> Iterator[_Heading]:
    """Give the headings of markdown in order, each with those above it; lines of code are none."""
    above: list[tuple[int, str]] = []
    fence = ""
    for n, line in enumerate(lines):
        mark = _FENCE.match(line)
        if mark is not None and (not fence or mark[1].startswith(fence)):
            fence = "" if fence else mark[1]
            continue
        found = None if fence else _heading(lines, n)
        if found is None:
            continue
        level, text, begins = found
        above = [*((depth, name) for depth, name in above if depth < level), (level, text)]
        yield _Heading(tuple(name for _, name in above), level, n, begins)


def _heading(lines: Sequence[str], n: int) -> tuple[int, str, int] | None:
    line = lines[n].rstrip()
    match = _HEADING.fullmatch(line)
    if match is not None:
        return len(match[1]), match[2].rstrip("#").rstrip(), n + 1
    below = _UNDERLINE.fullmatch(lines[n + 1].rstrip("\r\n")) if n + 1 < len(lines) else None
    alone = n == 0 or not lines[n - 1].strip()
    if below is None or not alone or not line.strip() or line.startswith(("    ", "\t", ">", "-", "|")):
        return None
    return (1 if below[1].startswith("=") else 2), line.strip(), n + 2


def _passage(body: str, quoted: str) -> tuple[int, int]:
    """Return where a quoted passage is; spaces and line ends may differ."""
    words = quoted.split()
    if not words:
        raise InvalidInput("the passage to replace is empty", fix="quote it as it is in the document")
    found = [match.span() for match in re.finditer(r"\s+".join(map(re.escape, words)), body)]
    if len(found) == 1:
        return found[0]
    said = f"“{quoted[:_QUOTED]}{'…' if len(quoted) > _QUOTED else ''}”"
    if not found:
        raise InvalidInput(f"the document does not hold {said}", fix="quote the passage as it is in the document")
    raise InvalidInput(f"the document holds {said} {len(found)} times", fix="quote more of the passage")


# The difference of two texts


def difference(before: str, after: str) -> tuple[Run, ...]:
    """Return the difference of two texts by words; of very different long texts, by lines. Unchanged stretches far
    from a change are left out."""
    if before == after:
        return ()
    a, b = _words(before), _words(after)
    start = _common(a, b)
    end = _common(a[: start - 1 if start else None : -1], b[: start - 1 if start else None : -1])
    inner_a, inner_b = a[start : len(a) - end], b[start : len(b) - end]
    runs = [("same", "".join(a[:start])), *_between(inner_a, inner_b), ("same", "".join(a[len(a) - end :]))]
    return tuple(_shortened(_merged(runs)))


def _words(text: str) -> list[str]:
    return re.findall(r"\s+|[^\s]+", text)


def _common(a: Sequence[str], b: Sequence[str]) -> int:
    most = min(len(a), len(b))
    return next((n for n in range(most) if a[n] != b[n]), most)


def _between(a: Sequence[str], b: Sequence[str]) -> list[tuple[str, str]]:
    if len(a) * len(b) > _MOST_STEPS:
        a, b = ("".join(part).splitlines(keepends=True) for part in (a, b))
    if len(a) * len(b) > _MOST_STEPS:
        return [("removed", "".join(a)), ("added", "".join(b))]
    found: list[tuple[str, str]] = []
    for tag, i, j, k, m in SequenceMatcher(None, a, b, autojunk=False).get_opcodes():
        if tag == "equal":
            found.append(("same", "".join(a[i:j])))
        else:
            found += [("removed", "".join(a[i:j])), ("added", "".join(b[k:m]))]
    return found


def _merged(runs: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """Join neighbours of one kind; a space between two changes is part of both."""
    found: list[tuple[str, str]] = []
    for n, (kind, text) in enumerate(runs):
        if not text:
            continue
        between = kind == "same" and not text.strip() and 0 < n < len(runs) - 1 and "\n" not in text
        for part in ("removed", "added") if between else (kind,):
            place = _last(found, part)
            if place is None:
                found.append((part, text))
            else:
                found[place] = (part, found[place][1] + text)
    return found


def _last(found: Sequence[tuple[str, str]], kind: str) -> int | None:
    """Return the run of this kind that ends here: the last one, or the one before it if both are changes."""
    for back in (1, 2):
        if len(found) < back:
            return None
        other = found[-back][0]
        if other == kind:
            return len(found) - back
        if kind == "same" or other == "same":
            return None
    return None


def _shortened(runs: Sequence[tuple[str, str]]) -> Iterator[Run]:
    for n, (kind, text) in enumerate(runs):
        if kind != "same" or len(text) <= 3 * _AROUND:
            yield Run(kind, text)  # type: ignore[arg-type]
            continue
        if n:
            yield Run("same", text[:_AROUND])
        yield Run("cut", f"{len(text) - _AROUND * ((n > 0) + (n < len(runs) - 1)):,} characters that stay")
        if n < len(runs) - 1:
            yield Run("same", text[-_AROUND:])


def in_one_text(runs: Sequence[Run]) -> str:
    """Return a difference as one text: [-what goes-]{+what comes+}."""
    marks = {"same": "{}", "removed": "[-{}-]", "added": "{{+{}+}}", "cut": " […] "}
    return "".join(marks[run.kind].format(run.text) for run in runs)
