"""The curated document: a small page of markdown, sections by category, each line with its date.

    ## Rules and conventions

    - (2026-11-16) Migrations are additive.
    - (2026-11-17) Deploys need an approval. (×3)

Lukasa adds, merges and removes only lines of this form. Everything else on the page is a person's, and stays byte for
byte: every function here takes the text and returns it with one change.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from datetime import date

from msgspec import Struct

from lukasa.model.statements import replaces, says_the_same
from lukasa.model.text import content_key, fold
from lukasa.spec.taxonomy import Taxonomy

NAME = "MEMORY"
LARGE = 200  # dated lines; a longer page should be pruned
OTHER = "Other"
_LINE = re.compile(r"- \((\d{4}-\d{2}-\d{2})\) (\S.*?)(?: \(×(\d{1,6})\))?")
_HEADING = re.compile(r"## +(\S.*)")
_COUNT = re.compile(r"\(×\d{1,6}\)")


class Dated(Struct, frozen=True):
    """A dated line: `row` is its line on the page, from 0; `count` says how often it was stated."""

    section: str
    day: str
    text: str
    count: int
    row: int

    def rendered(self) -> str:
        return line(self.day, self.text, self.count)

    @property
    def key(self) -> tuple[str, str, str, int]:
        """The key of a line, the same on every version of the page."""
        return fold(self.section), self.day, self.text, self.count


def one_line(text: str) -> str:
    """A statement on one line. A count at its end is removed, because it would read as ours."""
    flat = " ".join(text.split())
    end = len(flat)
    while (start := flat.rfind("(", max(0, end - 9), end)) >= 0 and _COUNT.fullmatch(flat, start, end):
        end = start - (flat[start - 1 : start] == " ")
    return flat[:end] or flat.replace("×", "x")


def line(day: str, text: str, count: int = 1) -> str:
    return f"- ({day}) {text}" + (f" (×{count})" if count > 1 else "")


def lines(body: str) -> list[Dated]:
    """The dated lines of a page in order. A line before the first heading has no section."""
    found: list[Dated] = []
    section, fenced = "", False
    for row, raw in enumerate(body.split("\n")):
        if raw.startswith("```"):
            fenced = not fenced
        elif not fenced and (heading := _heading(raw)):
            section = heading
        elif not fenced and (dated := _LINE.fullmatch(raw)):
            found.append(Dated(section, dated[1], dated[2], int(dated[3] or 1), row))
    return found


def section_title(category: str, taxonomy: Taxonomy) -> str:
    """The title of a category's section: its label, or "Other" for no category."""
    concept = taxonomy.concept(category)
    return concept.label if concept is not None else OTHER


def category_of(title: str, taxonomy: Taxonomy) -> str:
    """The category of a section; empty for a person's own section."""
    wanted = fold(title)
    return next((c.id for c in taxonomy.concepts if wanted in (fold(c.label), c.id)), "")


# Changing


def with_line(body: str, section: str, day: date | str, text: str, count: int = 1) -> str:
    """The page with a line added at the end of its section; a missing section is added at the end."""
    made = line(str(day), one_line(text), count)
    rows = body.split("\n") if body else []
    if sum(row.startswith("```") for row in rows) % 2:
        rows.append("```")  # an open fence would enclose the new line
    start = next((n for n, title in _headings(rows) if fold(title) == fold(section)), None)
    if start is None:
        if rows and rows[-1].strip():
            rows.append("")
        return "\n".join((*rows, f"## {section}", "", made))
    end = next((n for n, _ in _headings(rows) if n > start), len(rows))
    last = max((n for n in range(start, end) if rows[n].strip()), default=start)
    added = ["", made] if last == start else [made]
    return "\n".join((*rows[: last + 1], *added, *rows[last + 1 :]))


def _headings(rows: Sequence[str]) -> list[tuple[int, str]]:
    found, fenced = [], False
    for row, raw in enumerate(rows):
        if raw.startswith("```"):
            fenced = not fenced
        elif not fenced and (heading := _heading(raw)):
            found.append((row, heading))
    return found


def _heading(raw: str) -> str:
    """The title of a heading without closing marks; empty for another line."""
    found = _HEADING.fullmatch(raw)
    return found[1][0] + found[1][1:].rstrip(" ").rstrip("#").rstrip(" ") if found else ""


def with_change(body: str, old: Dated, new: str | None) -> str:
    """The page with a line replaced in its position, or removed."""
    rows = body.split("\n")
    return "\n".join((*rows[: old.row], *(() if new is None else (new,)), *rows[old.row + 1 :]))


def carried(before: str, after: str, present: str) -> str:
    """Apply the change between two versions to a third: its added and removed dated lines.

    So a person's edit of the file and a promotion at the same time both hold, and so a version is undone.
    """
    if present == before:
        return after
    if present == after or before == after:
        return present
    gone = list((Counter(d.key for d in lines(before)) - Counter(d.key for d in lines(after))).elements())
    come = _added(before, after)
    for key in gone:
        old = next((d for d in lines(present) if d.key == key), None)
        new = next((d for d in come if fold(d.section) == key[0]), None)
        if old is not None:
            present = with_change(present, old, new.rendered() if new is not None else None)
            come = [d for d in come if d is not new]
    there = {(fold(d.section), content_key(d.text)) for d in lines(present)}
    for d in come:
        if (fold(d.section), content_key(d.text)) not in there:
            present = with_line(present, d.section or OTHER, d.day, d.text, d.count)
    return present


def _added(before: str, after: str) -> list[Dated]:
    left = Counter(d.key for d in lines(before))
    out = []
    for d in lines(after):
        if left[d.key]:
            left[d.key] -= 1
        else:
            out.append(d)
    return out


# Promoting


class Edit(Struct, frozen=True):
    """A page after a promotion: the new line, and the line that it was merged with or replaced."""

    body: str
    text: str
    merged: bool
    instead_of: str = ""


def twin(body: str, text: str) -> Dated | None:
    """The line with exactly this text, except for case and spacing."""
    key = content_key(one_line(text))
    return next((d for d in lines(body) if content_key(d.text) == key), None)


def contradicted(body: str, text: str) -> Dated | None:
    """A line that contradicts this text."""
    return next((d for d in lines(body) if replaces(text, d.text)), None)


def similar(body: str, text: str) -> Dated | None:
    """A line that says no more than the text, or the other way round."""
    return next((d for d in lines(body) if says_the_same(text, d.text) or says_the_same(d.text, text)), None)


def promoted(body: str, section: str, text: str, day: date) -> Edit:
    """The page with a statement added: as a new line, or in place of the line that it contradicts."""
    flat = one_line(text)
    old = contradicted(body, flat)
    if old is not None:
        return Edit(with_change(body, old, line(str(day), flat)), flat, False, old.text)
    return Edit(with_line(body, section, day, flat), flat, False)


def merged(body: str, old: Dated, text: str, day: date) -> Edit:
    """The page with a statement merged into a line that says the same: the fuller text of both, counted once more."""
    flat = one_line(text)
    fuller = flat if len(flat) > len(old.text) and says_the_same(old.text, flat) else old.text
    return Edit(with_change(body, old, line(str(day), fuller, old.count + 1)), fuller, True, old.text)


def warning(body: str) -> str:
    """A warning for a page that is too long; otherwise empty."""
    count = len(lines(body))
    if count <= LARGE:
        return ""
    return f"{NAME} has {count} lines, more than the {LARGE} that are worth loading every time: remove some"
