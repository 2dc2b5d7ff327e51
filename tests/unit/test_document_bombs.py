"""Files made to harm: each is refused with a typed error, within bounds, and the next file is read as usual."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
import zlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from io import BytesIO

import psutil
import pytest

from lukasa.model.errors import UnreadableDocument
from lukasa.providers.documents import FileParser, Limits
from tests.helpers.documents import CONTAINER, archive, epub, page, pdf, pdf_of, stream

MEGABYTE = 2**20
TIGHT = Limits(
    file_bytes=8 * MEGABYTE,
    characters=2_000_000,
    pages=50,
    parts=2_000,
    nesting=1_000,
    entries=100,
    unpacked_bytes=8 * MEGABYTE,
    seconds=20.0,
    cpu_seconds=2,
    memory=300 * MEGABYTE,
)
GOOD = page("<p>still here</p>").encode()


@pytest.fixture(scope="module")
def parser() -> Iterator[FileParser]:
    parser = FileParser(TIGHT)
    yield parser
    parser.close()


def lies(book: bytes, size: int) -> bytes:
    """Return an archive whose directory says that its last file is small."""
    at = book.rfind(b"PK\x01\x02")
    return book[: at + 24] + size.to_bytes(4, "little") + book[at + 28 :]


def twice() -> bytes:
    out = BytesIO()
    with zipfile.ZipFile(out, "w") as packed:
        packed.writestr("mimetype", "application/epub+zip")
        packed.writestr("META-INF/container.xml", CONTAINER)
        with pytest.warns(UserWarning, match="Duplicate"):
            packed.writestr("META-INF/container.xml", CONTAINER)
    return out.getvalue()


def entities(body: str) -> bytes:
    return archive({"META-INF/container.xml": body}, mimetype=True)


LAUGHS = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 12))
PAGE_TREE = [
    b"<< /Type /Catalog /Pages 2 0 R >>",
    b"<< /Type /Pages /Kids [2 0 R 2 0 R] /Count 2 >>",
]
DEEP = b"[" * 50_000 + b"]" * 50_000


def one_page(contents: bytes) -> bytes:
    tree = b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>"
    font = b"<< /Font << /F1 << /Type /Font /Subtype /Type1 /BaseFont /Helvetica >> >> >>"
    only = b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 9 9] /Resources %s /Contents 4 0 R >>" % font
    return pdf_of([PAGE_TREE[0], tree, only, contents])


def nested_flate(layers: int, size: int) -> bytes:
    content = zlib.compress(bytes(size))
    for _ in range(layers - 1):
        content = zlib.compress(content)
    filters = b"/Filter [%s]" % (b"/FlateDecode " * layers)
    return b"<< /Length %d %s >>\nstream\n%s\nendstream" % (len(content), filters, content)


BOMBS: dict[str, tuple[bytes, str]] = {
    "large.txt": (b"x" * (9 * MEGABYTE), "8,388,608"),
    "wide.txt": (("ä" * 2_100_000).encode(), "2,000,000 characters"),
    "parts.md": (b"# a\nb\n" * 2_100, "more than 2,000 sections"),
    "parts.html": (b"<h1>a</h1>b" * 2_100, "more than 2,000 sections"),
    "nested.html": (b"<div>" * 5_000 + b"x", "nest deeper than 1,000"),
    "pages.pdf": (pdf([["x"]] * 60), "60 pages, more than 50"),
    "claimed.pdf": (pdf([["x"]]).replace(b"/Count 1", b"/Count 900000"), "pages, more than 50|damaged|no page"),
    "circle.pdf": (pdf_of(PAGE_TREE), "damaged|no page|no text"),
    "deep.pdf": (
        pdf_of([PAGE_TREE[0], b"<< /Type /Pages /Kids %s /Count 1 >>" % DEEP]),
        "damaged|no page|no text|breaks",
    ),
    "text.pdf": (
        one_page(stream(b"BT /F1 1 Tf " + (b"(" + b"x" * 30_000 + b") Tj ") * 100 + b"ET")),
        "characters|CPU|memory",
    ),
    "ratio.epub": (epub({"a.xhtml": page("x" * 2_000_000)}), "grows more than 200-fold"),
    "total.epub": (epub({f"{n}.xhtml": page(os.urandom(MEGABYTE).hex()) for n in range(5)}), "8,388,608 bytes"),
    "lying.epub": (lies(epub({}, extra={"META-INF/x": "x" * 9 * MEGABYTE}), 10), "no text|damaged"),
    "entries.epub": (archive({f"f{n}": "" for n in range(150)} | {"META-INF/container.xml": ""}), "150|151 files"),
    "outside.epub": (epub({"a.xhtml": page("x")}, extra={"../../etc/cron.d/x": "x"}), "points out of it"),
    "twice.epub": (twice(), "two files of one name"),
    "laughs.epub": (entities(f'<!DOCTYPE c [<!ENTITY l0 "ha">{LAUGHS}]><c>&l11;</c>'), "declares entities"),
    "outer.epub": (entities('<!DOCTYPE c [<!ENTITY x SYSTEM "file:///etc/passwd">]><c>&x;</c>'), "declares entities"),
    "parameter.epub": (
        entities('<!DOCTYPE c [<!ENTITY % x SYSTEM "http://127.0.0.1:9/x"> %x;]><c/>'),
        "declares entities",
    ),
    "nested.epub": (entities("<a>" * 5_000 + "</a>" * 5_000), "nests deeper than 200"),
    "notebook.ipynb": (b'{"cells": ' + b"[" * 100_000, "none of version 4"),
}


@pytest.mark.parametrize("name", BOMBS)
def test_a_bomb_is_refused(parser: FileParser, name: str) -> None:
    """K4: bounded time and memory, a typed error with a fix, and the next file is read."""
    data, said = BOMBS[name]
    with pytest.raises(UnreadableDocument, match=said) as refused:
        parser.parse(data, name=name)
    assert refused.value.fix
    assert parser.parse(GOOD, name="good.html").parts[0].text == "still here"


def test_a_stream_that_unpacks_to_more_than_memory(parser: FileParser) -> None:
    """K4: a page of a kilobyte that unpacks to more than the process may have is refused, and costs no more."""
    bomb = one_page(nested_flate(2, TIGHT.memory + MEGABYTE))
    assert len(bomb) < 20_000
    with pytest.raises(UnreadableDocument):
        parser.parse(bomb, name="stream.pdf")
    assert parser.parse(GOOD, name="good.html").parts


def test_nesting_alone_is_no_bomb(parser: FileParser) -> None:
    """K4: nothing recurses, so a page may nest as deep as the limit, and forget to close its elements."""
    assert parser.parse(b"<div>" * 900 + b"x", name="a.html").parts[0].text == "x"
    assert len(parser.parse(b"<p>x<li>y" * 10_000, name="a.html").parts) == 1


def test_a_page_that_never_ends_costs_its_seconds() -> None:
    """K4: the operating system ends a parser that computes for too long, and the clock ends one that waits."""
    slow = b"<p>x</p>" * 1_500_000
    with pytest.raises(UnreadableDocument, match="in 1 seconds of CPU time"):
        FileParser(Limits(cpu_seconds=1)).parse(slow, name="slow.html")
    with pytest.raises(UnreadableDocument, match=r"could not be read in 0\.3 seconds"):
        FileParser(Limits(seconds=0.3)).parse(slow, name="slow.html")


def alive() -> list[psutil.Process]:
    """The children of this process, without those of other tests that ended and were not waited for."""
    return [child for child in psutil.Process().children() if child.status() != psutil.STATUS_ZOMBIE]


def test_a_process_that_dies_is_replaced(parser: FileParser) -> None:
    """K4: a parser that was killed between two files is replaced without a word."""
    parser.parse(GOOD, name="a.html")
    for child in alive():
        if "lukasa.providers.documents.worker" in " ".join(child.cmdline()):
            child.kill()
            child.wait()
    assert parser.parse(GOOD, name="b.html").parts


def test_threads_parse_at_once(parser: FileParser) -> None:
    """K4: threads share a parser, and each gets the document of its own file."""

    def text(number: int) -> str:
        return parser.parse(page(f"<p>number {number}</p>").encode(), name=f"{number}.html").parts[0].text

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(text, range(40))) == [f"number {n}" for n in range(40)]


def test_no_process_is_left() -> None:
    """K4: a parser that is closed, or forgotten, leaves no process."""
    for close in (True, False):
        before = {child.pid for child in psutil.Process().children()}
        parser = FileParser()
        parser.parse(GOOD, name="a.html")
        (started,) = [child for child in psutil.Process().children() if child.pid not in before]
        if close:
            parser.close()
        else:
            del parser
        assert not started.is_running()


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such limits")
def test_the_parser_can_open_nothing() -> None:
    """K4: after its first file, the process opens no file and no socket, and knows nothing of the environment."""
    code = (
        "import os, socket\n"
        "from lukasa.providers.documents import worker\n"
        "from lukasa.providers.documents.limits import Limits\n"
        "worker._give_up(Limits())\n"
        "for attempt in (lambda: open('/etc/passwd'), socket.socket, lambda: os.pipe()):\n"
        "    try:\n        attempt()\n"
        "    except OSError as error:\n        print(error.errno)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.split() == ["24", "24", "24"]


def test_the_parser_gets_no_environment(parser: FileParser, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_KEY", "s3cret")
    own = FileParser()
    own.parse(GOOD, name="a.html")
    (child,) = [one for one in alive() if "SOME" not in str(one.environ())][-1:]
    assert "SOME_KEY" not in child.environ()
    own.close()
