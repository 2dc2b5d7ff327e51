"""Which format a file has: by its first bytes, then by what the server said, then by its name."""

from __future__ import annotations

import re
from typing import Literal, NoReturn

from msgspec import Struct

from lukasa.model.errors import UnreadableDocument

Kind = Literal["markdown", "text", "restructuredtext", "code", "notebook", "html", "pdf", "epub"]

MEDIA_TYPES: dict[Kind, str] = {
    "markdown": "text/markdown",
    "text": "text/plain",
    "restructuredtext": "text/x-rst",
    "code": "text/x-source",
    "notebook": "application/x-ipynb+json",
    "html": "text/html",
    "pdf": "application/pdf",
    "epub": "application/epub+zip",
}
_KINDS: dict[str, Kind] = {media: kind for kind, media in MEDIA_TYPES.items()} | {
    "application/xhtml+xml": "html",
    "text/x-markdown": "markdown",
    "text/prs.fallenstein.rst": "restructuredtext",
    "application/x-pdf": "pdf",
}
_ENDINGS: dict[str, Kind] = {
    **dict.fromkeys(("md", "markdown", "mdown", "mkd", "mdx", "qmd", "rmd"), "markdown"),
    **dict.fromkeys(("txt", "text", "log", "adoc", "asciidoc", "org", "srt", "vtt"), "text"),
    **dict.fromkeys(("rst", "rest"), "restructuredtext"),
    **dict.fromkeys(("html", "htm", "xhtml", "xht"), "html"),
    "pdf": "pdf",
    "epub": "epub",
    "ipynb": "notebook",
}
_LANGUAGES = {
    ending: language
    for language, endings in {
        "python": "py pyi pyw",
        "javascript": "js mjs cjs jsx",
        "typescript": "ts mts cts tsx",
        "java": "java",
        "kotlin": "kt kts",
        "scala": "scala sc",
        "groovy": "groovy gradle",
        "c": "c h",
        "cpp": "cc cpp cxx hh hpp hxx ino",
        "csharp": "cs",
        "go": "go",
        "rust": "rs",
        "swift": "swift",
        "objective-c": "m mm",
        "ruby": "rb rake gemspec",
        "php": "php",
        "perl": "pl pm",
        "lua": "lua",
        "r": "r",
        "julia": "jl",
        "dart": "dart",
        "elixir": "ex exs",
        "erlang": "erl hrl",
        "haskell": "hs",
        "ocaml": "ml mli",
        "clojure": "clj cljs cljc edn",
        "zig": "zig",
        "nim": "nim",
        "shell": "sh bash zsh fish",
        "powershell": "ps1 psm1",
        "sql": "sql",
        "css": "css scss sass less",
        "vue": "vue",
        "svelte": "svelte",
        "proto": "proto",
        "graphql": "graphql gql",
        "terraform": "tf hcl",
        "nix": "nix",
        "tex": "tex sty bib",
        "json": "json jsonl ndjson geojson",
        "yaml": "yaml yml",
        "toml": "toml",
        "ini": "ini cfg conf properties env",
        "xml": "xml xsd xsl svg plist",
        "csv": "csv tsv",
        "diff": "diff patch",
        "batch": "bat cmd",
        "vim": "vim",
        "cmake": "cmake",
    }.items()
    for ending in endings.split()
}
_NAMES = {
    "makefile": "make",
    "gnumakefile": "make",
    "dockerfile": "docker",
    "cmakelists.txt": "cmake",
    "justfile": "make",
}

# First bytes of what is no document, by the name that a person knows it by.
_BINARIES = (
    (b"\x89PNG\r\n", "a PNG image"),
    (b"\xff\xd8\xff", "a JPEG image"),
    (b"GIF8", "a GIF image"),
    (b"RIFF", "a sound, video or WebP file"),
    (b"\x7fELF", "a program"),
    (b"MZ\x90\x00", "a program"),
    (b"\xcf\xfa\xed\xfe", "a program"),
    (b"\xca\xfe\xba\xbe", "a compiled class or program"),
    (b"\x1f\x8b", "a gzip archive"),
    (b"BZh", "a bzip2 archive"),
    (b"\xfd7zXZ\x00", "an xz archive"),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive"),
    (b"Rar!\x1a\x07", "a RAR archive"),
    (b"(\xb5/\xfd", "a Zstandard archive"),
    (b"SQLite format 3\0", "a SQLite database"),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "an old Office document"),
    (b"OggS", "a sound or video file"),
    (b"ID3", "an MP3 file"),
    (b"fLaC", "a sound file"),
    (b"\0asm", "a WebAssembly program"),
    (b"wOFF", "a font"),
    (b"wOF2", "a font"),
)
_MARKUP = ((b"{\\rtf", "an RTF document"), (b"%!PS", "a PostScript document"))
_ZIP = b"PK\x03\x04"
_PDF_WITHIN = 1024  # bytes in which readers look for the mark
_PAGE = re.compile(
    r"\s*(?:<\?xml[^>]{0,200}\?>\s*)?(?:<!--.{0,2000}?-->\s*)?(?:<!doctype\s+html|<html[\s>])", re.I | re.S
)
_PAGE_WITHIN = 4096  # bytes
_ABSTRACT = ("application/octet-stream", "binary/octet-stream", "text/plain", "application/force-download", "")


_CALLED: dict[Kind, str] = {"pdf": "a PDF", "epub": "an EPUB", "html": "a web page", "code": "source code"}


class Format(Struct, frozen=True):
    kind: Kind
    language: str = ""
    charset: str = ""
    note: str = ""
    """What is odd about the file: its name or its server says another format than its bytes."""


def detect(data: bytes, name: str, media_type: str = "") -> Format:
    """Return the format. The bytes have the last word: a name or a server may be wrong."""
    claimed = _claimed(name, media_type)
    found = _by_bytes(data)
    if found == claimed.kind or (found == "html" and claimed.kind in ("code", "epub")):
        return claimed  # a template and XML begin like a page
    if found is None:
        if claimed.kind in ("pdf", "epub"):
            raise UnreadableDocument(
                f"it is called {_CALLED[claimed.kind]}, and its bytes are not one",
                fix="get the file again, and check that it opens in a reader",
            )
        return claimed
    if not _ending(name) and media_type.partition(";")[0].strip().lower() in _ABSTRACT:
        return Format(found, charset=claimed.charset)  # nobody said anything else
    said = _CALLED.get(claimed.kind, claimed.kind)
    return Format(found, charset=claimed.charset, note=f"it is called {said}, and its bytes are {_CALLED[found]}")


def _claimed(name: str, media_type: str) -> Format:
    """Return the format that the server names, or else the one of the name, or else text."""
    media, _, parameters = media_type.lower().partition(";")
    charset = re.search(r"charset\s*=\s*[\"']?([\w.:-]{1,40})", parameters)
    declared = charset[1] if charset else ""
    media = media.strip()
    if media not in _ABSTRACT and (kind := _KINDS.get(media)):
        return Format(kind, charset=declared)
    ending = _ending(name)
    if language := _NAMES.get(_last(name)) or _LANGUAGES.get(ending):
        return Format("code", language, declared)
    return Format(_ENDINGS.get(ending, "text"), charset=declared)


def is_known(name: str) -> bool:
    """Say whether the name of a file tells a format that is read."""
    ending = _ending(name)
    return _last(name) in _NAMES or ending in _LANGUAGES or ending in _ENDINGS


def _last(name: str) -> str:
    """Return the last piece of a path or URL, without query, in lower case."""
    return re.split(r"[/\\]", name.partition("?")[0].partition("#")[0].rstrip("/"))[-1].lower()


def _ending(name: str) -> str:
    stem, dot, ending = _last(name).rpartition(".")
    return ending if dot and stem else ""


def _by_bytes(data: bytes) -> Literal["pdf", "epub", "html"] | None:
    """Return the format that the first bytes prove, or none. Refuse what is no document."""
    if b"%PDF-" in data[:_PDF_WITHIN]:
        return "pdf"
    if data.startswith(_ZIP):
        if b"application/epub+zip" in data[:200] or b"META-INF/container.xml" in data:
            return "epub"
        office = any(part in data for part in (b"word/document", b"xl/workbook", b"ppt/presentation", b"content.xml"))
        _refuse("an Office document" if office else "a ZIP archive", office)
    for mark, called in _BINARIES:
        # A text may begin with the letters of a mark, and has no zeros.
        if data.startswith(mark) and (not mark.isascii() or b"\0" in data[:4096] or b"\0" in mark):
            _refuse(called)
    for mark, called in _MARKUP:
        if data.startswith(mark):
            _refuse(called, office=True)
    return "html" if _PAGE.match(data[:_PAGE_WITHIN].removeprefix(b"\xef\xbb\xbf").decode("latin-1")) else None


def _refuse(called: str, office: bool = False) -> NoReturn:
    fix = (
        "save it as PDF, HTML or text" if office else "give a document: markdown, text, HTML, PDF, EPUB or source code"
    )
    raise UnreadableDocument(f"it is {called}", fix=fix)
