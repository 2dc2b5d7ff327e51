"""Reading documents: real files of every format, made here, become titles, headings, pages, lines and text."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from lukasa.model.corpus import ParsedDocument
from lukasa.model.errors import MissingExtra, UnreadableDocument
from lukasa.providers import documents
from lukasa.providers.documents import FileParser
from tests.helpers.documents import archive, epub, page, pdf, pdf_of, protected_pdf


@pytest.fixture(scope="module")
def parser() -> Iterator[FileParser]:
    """One parser for all tests of this file, as a program has one: its process serves many files."""
    parser = FileParser()
    yield parser
    parser.close()


def sections(document: ParsedDocument) -> list[tuple[tuple[str, ...], str]]:
    return [(part.headings, part.text) for part in document.parts]


def test_markdown(parser: FileParser) -> None:
    """K4: markdown has its title, its headings of both forms and its lines, and loses its markup."""
    text = (
        "# Guide\n\nSee **the** [manual](https://e.org/a_(b)) and `x * y * z`.\n\nSetup\n-----\n"
        "<!-- hidden\nstill --> 1. do *this*\n\n"
        "```sh\n# no heading\nrun [a](b)\n```\n### Last ###\n| a | b |\n| --- | --- |\n"
    )
    read = parser.parse(text.encode(), name="guide.md")
    assert (read.title, read.media_type) == ("Guide", "text/markdown")
    assert sections(read) == [
        (("Guide",), "See the manual and `x * y * z`."),
        (("Guide", "Setup"), " 1. do this\n\n```sh\n# no heading\nrun [a](b)\n```"),
        (("Guide", "Setup", "Last"), "| a | b |\n| --- | --- |"),
    ]
    assert [part.line for part in read.parts] == [3, 8, 15]


def test_front_matter_gives_the_title(parser: FileParser) -> None:
    read = parser.parse(b'---\ntitle: "Field notes"\ntags: [a]\n---\nText.\n', name="n.md")
    assert (read.title, sections(read), read.parts[0].line) == ("Field notes", [((), "Text.")], 5)


def test_a_heading_without_text_is_not_lost(parser: FileParser) -> None:
    """K4: a section that is only a heading can still be found by it."""
    read = parser.parse(b"# A\n## Empty one\n## Full\ntext\n## Last\n", name="a.md")
    assert sections(read) == [(("A",), "Empty one"), (("A", "Full"), "text"), (("A",), "Last")]


@pytest.mark.parametrize(
    ("data", "noted"),
    [
        ("naïve — Ωmega".encode(), False),
        ("\ufeffnaïve — Ωmega".encode(), False),
        ("\ufeffnaïve — Ωmega".encode("utf-16-le"), False),
        ("\ufeffnaïve — Ωmega".encode("utf-16-be"), False),
        ("\ufeffnaïve — Ωmega".encode("utf-32-le"), False),
        ("naïve — Ωmega, in latin letters".encode("utf-16-le"), False),
        ("naïve — café".encode("cp1252"), True),
    ],
)
def test_encodings(parser: FileParser, data: bytes, noted: bool) -> None:
    """K4: text is read in the encoding that its bytes have, and a guess is told."""
    read = parser.parse(data, name="a.txt")
    assert read.parts[0].text.startswith("naïve — ")
    assert ("Ωmega" in read.parts[0].text or "café" in read.parts[0].text) is True
    assert bool(read.notes) is noted


def test_a_declared_encoding(parser: FileParser) -> None:
    """K4: a page may name its encoding, or its server; a name that is no encoding of text is passed over."""
    body = page("<p>Привет мир</p>", head='<meta charset="windows-1251">').encode("cp1251")
    assert parser.parse(body, name="a.html").parts[0].text == "Привет мир"
    body = page("<p>Привет мир</p>").encode("koi8-r")
    assert parser.parse(body, name="a", media_type="text/html; charset=KOI8-R").parts[0].text == "Привет мир"
    body = page("<p>plain</p>", head='<meta charset="unicode_escape">').encode()
    assert parser.parse(body, name="a.html").parts[0].text == "plain"


def test_pages_of_a_text(parser: FileParser) -> None:
    read = parser.parse(b"one\ntwo\n\fthree\n", name="rfc.txt")
    assert [(part.text, part.page, part.line) for part in read.parts] == [("one\ntwo", 1, 1), ("three", 2, 3)]


def test_a_page(parser: FileParser) -> None:
    """K4: of a web page, the main content is read: no script, style, menu, header or footer."""
    body = (
        "<header><a href=/>Brand</a><nav><ul><li><a href=/a>Home</a></ul></nav></header>"
        "<script>alert('x')</script><style>p{}</style><noscript>enable</noscript>"
        "<main><h1>Lanterns &amp; oil</h1><p>First&nbsp;para<br>second line.<p>Third <b>para</b>."
        "<h2>Steps</h2><ol><li>Fill<li>Light<ul><li>carefully</ul></ol>"
        "<table><tr><th>Oil<th>Hours<tr><td>Olive<td>6</table><pre>a  = 1\n  b</pre>"
        f"<img src='http://127.0.0.1:9/x.png' alt='A lamp'><p>{'More words here. ' * 12}</p></main>"
        "<aside>Buy now</aside><div class='sidebar x'>Side</div><footer>Imprint</footer>"
    )
    read = parser.parse(page(body, title=" Lanterns\n today ").encode(), name="x.html")
    text = "\n".join(part.text for part in read.parts)
    assert read.title == "Lanterns today"
    assert [part.headings for part in read.parts] == [("Lanterns & oil",), ("Lanterns & oil", "Steps")]
    assert read.parts[0].text == "First para\nsecond line.\n\nThird para."
    assert (
        "1. Fill\n2. Light\n  - carefully\n\n| Oil | Hours |\n| Olive | 6 |\n\n```\na  = 1\n  b\n```\n\nA lamp" in text
    )
    for left_out in "Brand Home alert p{} enable Buy Side Imprint".split():
        assert left_out not in text


def test_a_page_without_a_main_element(parser: FileParser) -> None:
    """K4: a menu is known by its links, also where nothing marks it."""
    menu = "".join(f"<li><a href=/{n}>Topic {n}</a></li>" for n in range(6))
    read = parser.parse(
        page(f"<ul>{menu}</ul><h1>Story</h1><div>It began.</div><div>It ended.</div>").encode(), name="x.htm"
    )
    assert sections(read) == [(("Story",), "It began.\n\nIt ended.")]
    assert read.title == "Story"


def test_a_page_that_a_program_fills(parser: FileParser) -> None:
    with pytest.raises(UnreadableDocument, match=r"app\.html: the page has no text of its own"):
        parser.parse(page('<div id="root"></div><script>go()</script>').encode(), name="app.html")


def test_a_pdf(parser: FileParser) -> None:
    """K4: a PDF has its pages, the sections of its outline, its title and no running titles."""
    pages = [
        [f"The Keeper's Book {n}", *lines, str(n)]
        for n, lines in enumerate(
            (["1 Lamps", "Trim the wick."], ["Fill the oil.", "2 Fog", "Sound the horn."], ["x"], ["y"]), 1
        )
    ]
    outline = [("Lamps", 1), ("Fog", 2), ("Elsewhere", 4)]
    read = parser.parse(
        pdf(pages, title="The Keeper's Book", outline=outline), name="book.pdf", media_type="application/pdf"
    )
    assert (read.title, read.media_type) == ("The Keeper's Book", "application/pdf")
    assert [(part.page, part.headings, part.text) for part in read.parts] == [
        (1, ("Lamps",), "Trim the wick."),
        (2, ("Lamps",), "Fill the oil."),
        (2, ("Fog",), "Sound the horn."),
        (3, ("Fog",), "x"),
        (4, ("Elsewhere",), "y"),
    ]


def test_a_pdf_with_pictures_for_pages(parser: FileParser) -> None:
    """K4: pages without text are named; a PDF without any says what to do."""
    assert parser.parse(pdf([["text"], [], [], ["more"]]), name="a.pdf").notes == ("no text on pages 2–3",)
    with pytest.raises(UnreadableDocument, match="2 pages and no text") as refused:
        parser.parse(pdf([[], []]), name="scan.pdf")
    assert "OCR" in refused.value.fix


def test_a_pdf_with_a_password(parser: FileParser) -> None:
    with pytest.raises(UnreadableDocument, match=r"s\.pdf: the PDF is protected by a password"):
        parser.parse(protected_pdf(), name="s.pdf")


def test_a_pdf_without_its_package(parser: FileParser, monkeypatch: pytest.MonkeyPatch) -> None:
    """K4: a format whose package is missing says which command installs it; others still work."""
    monkeypatch.setattr(documents, "find_spec", lambda name: None)
    with pytest.raises(MissingExtra) as refused:
        parser.parse(pdf([["x"]]), name="a.pdf")
    assert refused.value.fix == "pip install 'lukasa[corpus]'"
    assert parser.parse(page("<p>x</p>").encode(), name="a.html").parts


CHAPTERS = {
    "text/one.xhtml": page("<h1>One</h1><p>It was night.</p>"),
    "two%20b.xhtml": page("<p>It was day.</p><h2>Noon</h2><p>Hot.</p>"),
}


@pytest.mark.parametrize("ncx", [False, True])
def test_a_book(parser: FileParser, ncx: bool) -> None:
    """K4: a book is read in its order, under the titles of its table of contents, old form or new."""
    files = {"two b.xhtml" if "%20" in path else path: text for path, text in CHAPTERS.items()}
    book = epub(files, title="Night &amp; Day", contents={"text/one.xhtml": "One", "two%20b.xhtml#top": "Two"}, ncx=ncx)
    read = parser.parse(book, name="b.epub")
    assert (read.title, read.media_type, read.notes) == ("Night & Day", "application/epub+zip", ())
    assert sections(read) == [(("One",), "It was night."), (("Two",), "It was day."), (("Two", "Noon"), "Hot.")]


def test_a_book_that_misses_a_chapter(parser: FileParser) -> None:
    book = epub({"a.xhtml": page("<p>kept</p>"), "b.xhtml": page("<p>x</p>")}).replace(
        b"OEBPS/b.xhtml", b"OEBPS/z.xhtml"
    )
    read = parser.parse(book, name="b.epub")
    assert sections(read) == [((), "kept")]
    assert read.notes == ("chapters that the book names and does not hold: b.xhtml",)


def test_a_protected_book(parser: FileParser) -> None:
    """K4: a book with DRM says so; one that only hides its fonts is read."""

    def encrypted(uri: str, way: str) -> dict[str, str | bytes]:
        inner = f'<EncryptionMethod Algorithm="{way}"/><CipherData><CipherReference URI="{uri}"/></CipherData>'
        return {"META-INF/encryption.xml": f"<encryption><EncryptedData>{inner}</EncryptedData></encryption>"}

    chapters = {"a.xhtml": page("<p>kept</p>")}
    fonts = epub(chapters, extra=encrypted("OEBPS/f.otf", "http://www.idpf.org/2008/embedding"))
    assert parser.parse(fonts, name="b.epub").parts
    with pytest.raises(UnreadableDocument, match="protected"):
        parser.parse(epub(chapters, extra=encrypted("OEBPS/a.xhtml", "aes")), name="b.epub")


PYTHON = '''"""Doc
def not_one(): inside a string
"""
import os


# About f.
@cache
def f(x):
    return x


class C:
    """A class."""

    @property
    def m(self):
        return 1

    async def n(self):
        return 2
'''


def test_source_code(parser: FileParser) -> None:
    """K4: code is cut at its definitions, with their decorators and comments, and keeps its lines."""
    read = parser.parse(PYTHON.encode(), name="src/thing.py")
    assert (read.title, read.language) == ("thing.py", "python")
    assert [(part.headings, part.line) for part in read.parts] == [
        ((), 1),
        (("def f(x)",), 7),
        (("class C",), 13),
        (("class C", "def m(self)"), 16),
        (("class C", "async def n(self)"), 20),
    ]
    assert read.parts[1].text == "# About f.\n@cache\ndef f(x):\n    return x"


@pytest.mark.parametrize(
    ("name", "code", "names"),
    [
        (
            "a.ts",
            "export class A {\n  run() {}\n}\nexport const go = async () => {\n}\n",
            ["export class A", "export const go"],
        ),
        (
            "a.go",
            "package a\n\nfunc (s *S) Run() error {\n}\ntype S struct {\n}\n",
            ["package a", "func (s *S) Run() error", "type S struct"],
        ),
        (
            "a.rs",
            "pub(crate) fn go() {\n}\nimpl S {\n    fn m(&self) {}\n}\n",
            ["pub(crate) fn go()", "impl S", "fn m(&self)"],
        ),
        ("a.c", "#include <a.h>\nstatic int go(int a)\n{\n}\n", ["static int go(int a)"]),
        ("A.java", "public final class A {\n    public void go() {\n    }\n}\n", ["public final class A"]),
        ("a.sh", "go() {\n  ls\n}\n", ["go()"]),
    ],
)
def test_definitions_of_other_languages(parser: FileParser, name: str, code: str, names: list[str]) -> None:
    read = parser.parse(code.encode(), name=name)
    assert [part.headings[-1] for part in read.parts if part.headings] == names


def test_a_notebook(parser: FileParser) -> None:
    cells = [
        {"cell_type": "markdown", "source": ["# Fit\n", "Text"]},
        {"cell_type": "code", "source": "x = 1", "outputs": [{"text": "shown"}]},
    ]
    book = {"nbformat": 4, "metadata": {"kernelspec": {"language": "python"}}, "cells": cells}
    read = parser.parse(json.dumps(book).encode(), name="a.ipynb")
    assert (read.title, sections(read)) == ("Fit", [(("Fit",), "Text\n\n```python\nx = 1\n```")])
    with pytest.raises(UnreadableDocument, match="notebook"):
        parser.parse(b'{"worksheets": []}', name="a.ipynb")


def test_restructuredtext(parser: FileParser) -> None:
    text = b"=====\nTitle\n=====\n\nIntro.\n\nPart\n----\n\nText.\n\n.. _label:\n"
    read = parser.parse(text, name="a.rst")
    assert (read.title, sections(read)) == ("Title", [(("Title",), "Intro."), (("Title", "Part"), "Text.")])


@pytest.mark.parametrize(
    ("name", "data", "media_type"),
    [
        ("report.txt", pdf([["hello"]]), "application/pdf"),
        ("report.epub", pdf([["hello"]]), "application/pdf"),
        ("report.pdf", page("<p>hello</p>").encode(), "text/html"),
        ("report.md", epub({"a.xhtml": page("<p>hello</p>")}), "application/epub+zip"),
    ],
)
def test_a_name_that_lies_is_noticed(parser: FileParser, name: str, data: bytes, media_type: str) -> None:
    """K4: the bytes decide how a file is read, and the document says that its name is wrong."""
    read = parser.parse(data, name=name)
    assert read.media_type == media_type
    assert read.parts[0].text == "hello"
    assert read.notes[0].startswith("it is called ")


def test_a_media_type_says_what_no_name_says(parser: FileParser) -> None:
    assert parser.parse(b"# T\nx", name="https://e.org/readme?x=1", media_type="text/markdown").title == "T"
    assert parser.parse(page("<p>x</p>").encode(), name="https://e.org/", media_type="").media_type == "text/html"


@pytest.mark.parametrize(
    ("name", "data", "said"),
    [
        ("empty.md", b"", "it is empty"),
        ("blank.txt", b" \n\t\n", "it is empty"),
        ("a.png", b"\x89PNG\r\n\x1a\n" + bytes(100), "a PNG image"),
        ("a.md", b"\x7fELF" + bytes(100), "a program"),
        ("a.bin", bytes(range(256)) * 20, "binary data"),
        ("a.docx", archive({"word/document.xml": "<x/>"}), "an Office document"),
        ("a.zip", archive({"a.txt": "x"}), "a ZIP archive"),
        ("a.rtf", b"{\\rtf1 x}", "an RTF document"),
        ("a.pdf", b"just text", "called a PDF, and its bytes are not one"),
        ("a.epub", b"just text", "called an EPUB, and its bytes are not one"),
        ("cut.pdf", pdf([["x" * 500]])[:300], "damaged or only part of one"),
        ("cut.epub", epub({"a.xhtml": page("x" * 500)})[:400], "damaged or only part of one"),
        ("none.pdf", pdf_of([b"<< /Type /Catalog >>"]), "damaged or only part of one|no page"),
    ],
)
def test_what_is_no_document_is_refused(parser: FileParser, name: str, data: bytes, said: str) -> None:
    """K4: the refusal names the file, says what it is, and what to do."""
    with pytest.raises(UnreadableDocument, match=said) as refused:
        parser.parse(data, name=name)
    assert refused.value.message.startswith(f"{name}: ")
    assert refused.value.fix
