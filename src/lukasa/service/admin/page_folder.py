"""A workspace as a folder of Markdown pages that a person or Obsidian can read; nothing reads it back.

Each entry has a page, with what is known of it in front matter. The index leads to it by tier, category and person.
Text that is not the owner's stands in a fenced block, so that no viewer runs or loads anything that it names.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from msgspec import Struct

from lukasa.model.entry import SENSITIVE
from lukasa.model.errors import Conflict, InvalidInput
from lukasa.model.secrets import MARK, redact
from lukasa.model.text import content_hash
from lukasa.model.values import VISIBILITY, State, Trust, Visibility
from lukasa.storage import transfer
from lukasa.storage.export_file import records
from lukasa.storage.export_records import Record, plain
from lukasa.storage.transfer import Given

_LONGEST = 60  # characters of a name
_RESERVED = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)(\..*)?", re.IGNORECASE)
_ODD = re.compile(r"[^\w\- ]+")
_SHOWN = (
    *("id", "tier", "kind", "state", "category", "source", "importance", "owner", "tags"),
    *("created_at", "updated_at", "confirmed_at", "valid_at", "invalid_at"),
)
_LINKED = str.maketrans({c: f"\\{c}" for c in "\\[]<>`*_|#!"})


class Pages(Struct, frozen=True):
    """A folder of pages that was written."""

    folder: str
    pages: int
    entries: int
    masked: int  # sensitive entries whose secrets are not in it


class _Page(Struct, frozen=True):
    """An entry and the file of its page."""

    path: str
    title: str
    entry: Record

    @property
    def link(self) -> str:
        return f"- [{self.title.translate(_LINKED)}](<../{self.path}>)"


def write(folder: Path, name: str, stores: Sequence[Given], *, sensitive: bool) -> Pages:
    """Write the pages into a new folder, which is there whole or not."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise Conflict(f"{folder} is there already", fix="name a folder that does not exist, or an empty one")
    made = _Folder(name, sensitive)
    for store in stores:
        made.read(store)
    temporary = folder.with_name(f".{folder.name}.part")
    try:
        shutil.rmtree(temporary, ignore_errors=True)
        temporary.mkdir(mode=0o700, parents=True)
        for path, text in made.files():
            target = temporary / path
            target.parent.mkdir(mode=0o700, exist_ok=True)
            target.write_text(text, "utf-8")
        with suppress(FileNotFoundError):
            folder.rmdir()
        temporary.rename(folder)
    except OSError as error:
        shutil.rmtree(temporary, ignore_errors=True)
        raise InvalidInput(f"{folder} cannot be written: {error.strerror}", fix="choose another folder") from error
    return Pages(str(folder), made.count, len(made.entries), made.masked)


class _Folder:
    def __init__(self, name: str, sensitive: bool) -> None:
        self._name, self._sensitive = name, sensitive
        self.entries: list[_Page] = []
        self._named: list[Record] = []
        self._documents: list[Record] = []
        self.masked = self.count = 0

    def read(self, store: Given) -> None:
        for part, record in records(store, (transfer.ENTRIES, transfer.NAMED, transfer.DOCUMENTS)):
            if part is transfer.ENTRIES:
                self.entries.append(self._page(record | {"rest": plain(record["rest"])}))
            elif part is transfer.NAMED:
                self._named.append(record)
            elif not record["removed"]:
                self._documents.append(record)

    def _page(self, entry: Record) -> _Page:
        if entry["rest"].get("metadata", {}).get(SENSITIVE) is True and not self._sensitive:
            content, found = redact(entry["content"])
            entry = {**entry, "content": content if found else MARK, "tags": []}
            self.masked += 1
        title = " ".join(entry["content"].split())[:_LONGEST] or entry["id"]
        group = "history" if VISIBILITY[State(entry["state"])] is Visibility.HISTORY else "entries"
        day, short = str(entry["created_at"])[:10], entry["id"].replace("-", "")[-12:]
        return _Page(f"{group}/{day} {safe_name(title)} {short}.md", title, entry)

    def files(self) -> Iterator[tuple[str, str]]:
        for path, text in self._files():
            self.count += 1
            yield path, text

    def _files(self) -> Iterator[tuple[str, str]]:
        for page in self.entries:
            yield page.path, _entry_text(page)
        shown = [page for page in self.entries if page.path.startswith("entries/")]
        lists: dict[str, dict[str, list[_Page]]] = {
            "tiers": _by(shown, lambda entry: entry["tier"]),
            "categories": _by(shown, lambda entry: entry["category"] or "without a category"),
            "people": _by(shown, lambda entry: entry["source"] or "unknown"),
        }
        index = [f"# {self._name.translate(_LINKED)}", "", f"{len(shown):,} entries, as memory held them.", ""]
        for kind, groups in lists.items():
            index += [f"## {kind.capitalize()}", ""]
            for value, pages in sorted(groups.items()):
                path = f"{kind}/{safe_name(value, unique=True)}.md"
                index.append(f"- [{value.translate(_LINKED)}](<{path}>) ({len(pages):,})")
                yield path, "\n".join([f"# {value.translate(_LINKED)}", "", *(page.link for page in pages), ""])
            index.append("")
        for title, kind, every, key in (
            ("Pages", "pages", self._named, "name"),
            ("Documents", "documents", self._documents, "id"),
        ):
            index += [f"## {title}", ""] if every else []
            for one in every:
                path = f"{kind}/{safe_name(one[key], unique=True)}.md"
                index.append(f"- [{one[key].translate(_LINKED)}](<{path}>)")
                body = _fenced(one["body"]) if one.get("origin", "author") != "author" else one["body"]
                yield path, _matter({k: v for k, v in one.items() if k != "body"}) + body + "\n"
            index += [""] if every else []
        yield "index.md", "\n".join(index)


def _by(pages: Iterable[_Page], key: Any) -> dict[str, list[_Page]]:
    found: dict[str, list[_Page]] = {}
    for page in pages:
        found.setdefault(key(page.entry), []).append(page)
    return found


def _entry_text(page: _Page) -> str:
    entry, rest = page.entry, page.entry["rest"]
    trust = Trust(rest["trust"])
    principal, surface, *_ = rest["origin"]
    about = {name: entry[name] for name in _SHOWN if entry[name] not in (None, [], "")}
    about |= {"trust": trust.name.lower(), "origin": f"{principal}@{surface}", "version": entry["version"]}
    text = entry["content"] if trust is Trust.AUTHOR else _fenced(entry["content"])
    return f"{_matter(about)}{text}\n"


def _matter(about: dict[str, Any]) -> str:
    """Return front matter. JSON is YAML, so nothing in a value can end it."""
    lines = (f"{name}: {json.dumps(value, ensure_ascii=True)}" for name, value in about.items())
    return "\n".join(["---", *lines, "---", "", ""])


def _fenced(text: str) -> str:
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}text\n{text}\n{fence}"


def safe_name(text: str, *, unique: bool = False) -> str:
    """Return a name for a file that every file system takes; with `unique`, another text never gets the same name."""
    name = " ".join(_ODD.sub(" ", text).split())[:_LONGEST].strip()
    while len(name.encode("utf-8")) > 2 * _LONGEST:
        name = name[:-1]
    if not name or _RESERVED.fullmatch(name):
        name = f"{name}_"
    return f"{name} {content_hash(text)[:8]}" if unique and name.lower() != text else name
