"""Files that a person writes for agents to follow, and the notes that agents keep beside them.

    CLAUDE.md, CLAUDE.local.md, AGENTS.md, AGENTS.override.md, .cursorrules, .cursor/rules/*.mdc      rules
    MEMORY.md and the files that it links to (Claude Code's auto-memory), Codex's memories            notes of an agent

A line such as `@docs/style.md` includes another file. It is not followed: the file may be anywhere.
"""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Iterator, Sequence

from lukasa.model.past import PastStatement
from lukasa.model.values import Kind
from lukasa.providers.past.bundle import Bundle
from lukasa.providers.past.markdown import MOST_WHOLE, Said, page, sections, statements, tag

NAME = "rules"
TITLE = "files with rules for agents: CLAUDE.md, AGENTS.md, .cursorrules, .cursor/rules/*.mdc"
MEMORY_NAME = "auto-memory"
MEMORY_TITLE = "Claude Code's auto-memory: MEMORY.md, or its folder"
RULES = ("CLAUDE.md", "CLAUDE.local.md", "AGENTS.md", "AGENTS.override.md", ".cursorrules")
MEMORY = "MEMORY.md"
_LINKED = re.compile(r"\]\(<?(?P<name>[\w./ -]+\.md)>?\)")


def rules_in(bundle: Bundle) -> list[str]:
    """Return the files with rules."""
    found = bundle.called(*RULES)
    return [*found, *(name for name in bundle.ending(".mdc") if name not in found)]


def fits(bundle: Bundle) -> bool:
    return bool(rules_in(bundle))


def read(bundle: Bundle) -> Iterator[PastStatement]:
    folder = project_of(bundle)
    for name in rules_in(bundle):
        yield from rules(bundle, name, folder=folder)


def project_of(bundle: Bundle) -> str:
    """Return the folder of the project that rules are of, if it is under git; an agent's own folder is none."""
    folder = bundle.path if bundle.is_folder else os.path.dirname(bundle.path)
    if bundle.is_archive or set(folder.split(os.sep)) & {".claude", ".codex"}:
        return ""
    top = folder
    while not os.path.lexists(os.path.join(top, ".git")):
        if os.path.dirname(top) == top:
            return ""
        top = os.path.dirname(top)
    return top


def rules(bundle: Bundle, name: str, format: str = NAME, folder: str = "") -> Iterator[PastStatement]:
    """Yield the rules of one file."""
    at, made = bundle.modified(name), page(bundle.text(name))
    about = {key: value for key in ("description", "globs") if (value := made.word(key))}
    for said in statements(made.body, made.first):
        yield PastStatement(
            format,
            said.text,
            bundle.place(name),
            f"line {said.line}",
            at,
            kind=Kind.PROCEDURAL,
            rule=True,
            tags=_tags(said.headings),
            folder=folder,
            about={**about, **_section(said)},
        )


def fits_memory(bundle: Bundle) -> bool:
    return bool(bundle.called(MEMORY)) and all(name.lower().endswith(".md") for name in bundle.names)


def read_memory(bundle: Bundle) -> Iterator[PastStatement]:
    yield from memories(bundle, bundle.ending(".md"), MEMORY_NAME, by="claude-code")


def memories(
    bundle: Bundle, names: Sequence[str], format: str, *, by: str, folder: str = ""
) -> Iterator[PastStatement]:
    """Yield what an agent noted: each statement of an index, and each page that it links to, whole if it is short."""
    present = set(names)
    for name in names:
        made, at = page(bundle.text(name)), bundle.modified(name)
        beside = posixpath.dirname(name)
        index = posixpath.basename(name) == MEMORY
        title = made.word("name") or made.word("title")
        whole = not index and (bool(made.front) or len(made.body) <= MOST_WHOLE)
        for said in sections(made.body, first=made.first) if whole else statements(made.body, made.first):
            linked = _LINKED.search(said.text)
            if index and linked and posixpath.normpath(posixpath.join(beside, linked["name"])) in present:
                continue  # the page itself is imported
            about = {key: value for key in ("description", "type") if (value := made.word(key))}
            yield PastStatement(
                format,
                said.text,
                bundle.place(name),
                f"line {said.line}",
                at,
                by=by,
                tags=_tags(said.headings),
                folder=folder,
                about={**about, **({"name": title} if title else {}), **_section(said)},
            )


def _tags(headings: Sequence[str]) -> tuple[str, ...]:
    """Return the nearest heading as a tag; the title of a page is none."""
    last = tag(headings[-1]) if len(headings) > 1 else ""
    return (last,) if last else ()


def _section(said: Said) -> dict[str, str]:
    above = [*said.headings, *([said.lead] if said.lead else [])]
    return {"section": " › ".join(above)[:300]} if above else {}
