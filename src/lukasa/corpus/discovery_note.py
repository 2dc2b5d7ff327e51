"""The text of a discovery: what a model is given and may answer, the excerpt where none is, and the summary of a tree.

A page is data. Whatever it says, the note about it is a text of the corpus, from the web and unverified.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any

from msgspec import Struct

from lukasa.model.corpus import ParsedDocument, Part
from lukasa.model.discovery import Relevance, Repository
from lukasa.model.errors import InvalidInput
from lukasa.model.text import escape_controls, terms

SHOWN_TO_MODEL = 12_000  # characters of a page
EXCERPT = 700
_LONGEST_NOTE, _LONGEST_TITLE, _MOST_TAGS = 1_500, 200, 5
_FOLDERS = 12
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
_ADDRESS = re.compile(r"\b[a-z][a-z0-9+.-]{1,20}://\S+|\bwww\.\S+", re.IGNORECASE)
_TAG = re.compile(r"[a-z0-9][a-z0-9 _+#.-]{1,39}")
_LANGUAGES = {
    ".py": "Python", ".pyi": "Python", ".js": "JavaScript", ".mjs": "JavaScript", ".jsx": "JavaScript",
    ".ts": "TypeScript", ".tsx": "TypeScript", ".go": "Go", ".rs": "Rust", ".c": "C", ".h": "C", ".cc": "C++",
    ".cpp": "C++", ".hpp": "C++", ".java": "Java", ".kt": "Kotlin", ".swift": "Swift", ".rb": "Ruby", ".php": "PHP",
    ".cs": "C#", ".scala": "Scala", ".ex": "Elixir", ".exs": "Elixir", ".erl": "Erlang", ".hs": "Haskell",
    ".clj": "Clojure", ".lua": "Lua", ".pl": "Perl", ".r": "R", ".jl": "Julia", ".dart": "Dart", ".zig": "Zig",
    ".sh": "Shell", ".sql": "SQL", ".html": "HTML", ".css": "CSS", ".vue": "Vue", ".tf": "Terraform", ".nix": "Nix",
}  # fmt: skip


class Written(Struct, frozen=True):
    """A note as a model wrote it, checked."""

    title: str
    note: str
    tags: tuple[str, ...]


def briefing(url: str, context: str, parsed: ParsedDocument, relevance: Relevance, categories: Sequence[str]) -> str:
    """Return what a model is given about a page: data, as JSON."""
    given = {
        "url": url,
        "context": context,
        "words_already_remembered": list(relevance.words),
        "categories": list(categories),
        "title": parsed.title,
        "text": parsed.body[:SHOWN_TO_MODEL],
    }
    return json.dumps(given, ensure_ascii=False)


def read_note(data: Mapping[str, Any], parsed: ParsedDocument, context: str, categories: Sequence[str]) -> Written:
    """Return the note of a model; InvalidInput for one that says what the page does not, or leads elsewhere."""
    title, note, tags = data.get("title"), data.get("note"), data.get("tags", [])
    if not isinstance(title, str) or not isinstance(note, str) or not note.strip():
        raise InvalidInput("the answer has no title or no note")
    if len(note) > _LONGEST_NOTE:
        raise InvalidInput(f"the note has more than {_LONGEST_NOTE:,} characters")
    if _ADDRESS.search(note) or "](" in note:
        raise InvalidInput("the note holds an address: leave it out")
    source = f"{parsed.title}\n{parsed.body}\n{context}"
    known = set(_NUMBER.findall(source))
    invented = [number for number in _NUMBER.findall(note) if number not in known]
    if invented:
        raise InvalidInput(f"the note has the number {invented[0]}, which the page does not have")
    here = set(terms(source[: 10 * SHOWN_TO_MODEL]))
    listed = [tag.strip().lower() for tag in tags if isinstance(tag, str)] if isinstance(tags, list) else []
    kept = [tag for tag in listed if _TAG.fullmatch(tag) and (tag in categories or here.issuperset(terms(tag)))]
    return Written(
        one_line(title)[:_LONGEST_TITLE], escape_controls(note.strip()), tuple(dict.fromkeys(kept))[:_MOST_TAGS]
    )


def one_line(text: str) -> str:
    return " ".join(text.split())


def opening(parsed: ParsedDocument) -> str:
    """Return an excerpt of a document without a context: its first paragraphs."""
    return "\n\n".join(part.text for part in parsed.parts)[: 20 * EXCERPT]


def document(
    title: str, note: str, facts: Iterable[tuple[str, str]], parsed: ParsedDocument, most: int
) -> ParsedDocument:
    """Return the document that is kept: the note with what is known, then the text of the page below its title."""
    listed = "\n".join(f"- {name}: {one_line(value)}" for name, value in facts if value)
    parts = [Part(f"{note}\n\n{listed}", (title,))]
    room = most - len(note) - len(listed) - 1_000
    for part in parsed.parts:
        headings = tuple(heading for heading in part.headings if heading != title)
        room -= len(part.text) + sum(map(len, headings)) + 20
        if room < 0:
            break
        parts.append(Part(part.text, (title, *headings), part.page, part.line))
    return ParsedDocument(title, parsed.media_type, tuple(parts), parsed.language, parsed.notes)


def languages(repository: Repository) -> list[tuple[str, float]]:
    """Return the languages of a repository with their share of its bytes, the largest first."""
    sizes: Counter[str] = Counter()
    for path, size in repository.paths:
        name = _LANGUAGES.get(PurePosixPath(path).suffix.lower())
        if name is not None:
            sizes[name] += size
    total = sum(sizes.values())
    return [(name, size / total) for name, size in sizes.most_common(6) if total and size / total >= 0.01]


def tree(repository: Repository) -> str:
    """Return a summary of the files of a repository: how many there are, in which languages and folders."""
    shares = ", ".join(f"{name} {share:.0%}" for name, share in languages(repository)) or "none that is known"
    folders: Counter[str] = Counter(
        path.partition("/")[0] + "/" if "/" in path else "(top)" for path, _ in repository.paths
    )
    listed = [
        f"- {name}: {count:,} {'file' if count == 1 else 'files'}" for name, count in folders.most_common(_FOLDERS)
    ]
    more = len(folders) - _FOLDERS
    total = sum(size for _, size in repository.paths)
    lines = [
        f"{len(repository.paths):,} files, {total:,} bytes, at commit {repository.commit[:12]}.",
        f"Languages: {shares}.",
        "",
        *listed,
        *([f"- and {more:,} more folders"] if more > 0 else []),
    ]
    return "\n".join(escape_controls(line) for line in lines)
