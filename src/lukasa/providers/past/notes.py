"""Folders of markdown: Obsidian's vaults, basic-memory's projects, and any other.

    Obsidian         a folder with .obsidian; a note is named by its file
    basic-memory     notes with front matter (title, type, permalink, tags) and lists of observations and relations:
                     `- [category] words #tag (context)` and `- relation [[Other note]]`

A short note is one statement; a long one is cut at its headings. The words stay as they are, under the note's title:
without it, few notes say what they are about.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Sequence
from datetime import datetime

from lukasa.model.past import PastStatement, moment_of
from lukasa.providers.past.bundle import Bundle
from lukasa.providers.past.markdown import MOST_WHOLE, Page, Said, page, sections, tag

OBSIDIAN, BASIC, MARKDOWN = "obsidian", "basic-memory", "markdown"
OBSIDIAN_TITLE = "an Obsidian vault: its folder"
BASIC_TITLE = "a basic-memory project: its folder of markdown"
MARKDOWN_TITLE = "a folder of markdown, or one markdown file"
_HIDDEN = re.compile(r"(?:^|/)\.")
_OBSERVED = re.compile(r"^\s*[-*]\s+\[(?P<category>[^\]\n\[]{2,60})\]\s+(?P<said>\S.*)$")
_TAGGED = re.compile(r"(?:^|\s)#(?P<tag>[\w/-]{1,60})")
_LOOKED_AT = 200
_DATES = ("updated", "modified", "date", "created", "created_at", "updated_at")


def _pages(bundle: Bundle) -> list[str]:
    return [name for name in bundle.ending(".md", ".markdown") if not _HIDDEN.search(name)]


def fits_basic(bundle: Bundle) -> bool:
    return any(b"\npermalink:" in bundle.head(name, 4096) for name in _pages(bundle)[:_LOOKED_AT])


def fits_obsidian(bundle: Bundle) -> bool:
    return any("/.obsidian/" in f"/{name}" for name in bundle.names) and bool(_pages(bundle))


def fits_markdown(bundle: Bundle) -> bool:
    return bool(_pages(bundle))


def read_obsidian(bundle: Bundle) -> Iterator[PastStatement]:
    for name in _pages(bundle):
        yield from _note(bundle, name, OBSIDIAN)


def read_markdown(bundle: Bundle) -> Iterator[PastStatement]:
    for name in _pages(bundle):
        yield from _note(bundle, name, MARKDOWN)


def read_basic(bundle: Bundle) -> Iterator[PastStatement]:
    for name in _pages(bundle):
        yield from _graph_note(bundle, name)


def _title(made: Page, name: str) -> str:
    return made.word("title") or posixpath.basename(name).rsplit(".", 1)[0]


def _tags(made: Page, *more: str) -> tuple[str, ...]:
    given = (tag(one.lstrip("#")) for one in (*made.words("tags"), *more))
    return tuple(dict.fromkeys(one for one in given if one))[:20]


def _when(bundle: Bundle, name: str, made: Page) -> datetime | None:
    """Return when a note was last changed: as it says, or as its file does."""
    return next((at for key in _DATES if (at := moment_of(made.word(key)))), None) or bundle.modified(name)


def _note(bundle: Bundle, name: str, format: str) -> Iterator[PastStatement]:
    made = page(bundle.text(name))
    title, at = _title(made, name), _when(bundle, name, made)
    inline = tuple(found["tag"] for found in _TAGGED.finditer(made.body[: 20 * MOST_WHOLE]))
    for said in filter(_says, sections(made.body, first=made.first)):
        about = {"title": title, **({"section": said.headings[-1][:300]} if said.headings else {})}
        item = f"line {said.line}"
        text = _under(title, said.text)
        yield PastStatement(format, text, bundle.place(name), item, at, tags=_tags(made, *inline), about=about)


def _under(title: str, text: str) -> str:
    """Return words under their title, unless they begin with it."""
    first = text.split("\n", 1)[0].lstrip("# ").strip().lower()
    return text if first == title.lower() else f"{title}\n\n{text}"


def _graph_note(bundle: Bundle, name: str) -> Iterator[PastStatement]:
    """Yield the observations and relations of a note, and the rest of it as sections."""
    made = page(bundle.text(name))
    title, at, place = _title(made, name), _when(bundle, name, made), bundle.place(name)
    about = {"title": title, **({"permalink": link} if (link := made.word("permalink")) else {})}
    rest: list[str] = []
    for number, line in enumerate(made.body.split("\n"), made.first):
        observed, related = _OBSERVED.match(line), _relation(line)
        item = f"line {number}"
        if observed is not None:
            said = observed["said"].strip()
            named = said if title.lower() in said.lower() else f"{title} — {said}"
            tags = _tags(made, observed["category"], *(found["tag"] for found in _TAGGED.finditer(said)))
            more = {**about, "category": observed["category"]}
            yield PastStatement(BASIC, named, place, item, at, tags=tags, about=more)
        elif related is not None:
            kind, other = related
            yield PastStatement(BASIC, f"{title} {kind} {other}", place, item, at, tags=_tags(made), about=about)
        else:
            rest.append(line)
            continue
        rest.append("")
    yield from _prose(rest, made, title, place, at, about)


def _relation(line: str) -> tuple[str, str] | None:
    """Return the kind and the other note of a list item such as `- relates_to [[Beans]]`."""
    before, found, rest = line.strip().partition("[[")
    other, closed, _ = rest.partition("]]")
    if not (found and closed and before[:1] in ("-", "*")) or "[" in before or len(before) > 80:
        return None
    named = other.partition("|")[0].strip()
    return (" ".join(before[1:].replace("_", " ").split()) or "relates to", named) if named else None


def _prose(
    lines: Sequence[str], made: Page, title: str, place: str, at: datetime | None, about: dict[str, str]
) -> Iterator[PastStatement]:
    for said in filter(_says, sections("\n".join(lines), first=made.first)):
        yield PastStatement(
            BASIC, _under(title, said.text), place, f"line {said.line}", at, tags=_tags(made), about=about
        )


def _says(said: Said) -> bool:
    """Whether a section has more than headings."""
    return any(line.strip() and not line.lstrip().startswith("#") for line in said.text.split("\n"))
