"""Small writers of documents, so that tests make the files that they read: PDF, EPUB and pages."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Mapping, Sequence
from io import BytesIO

CONTAINER = (
    '<?xml version="1.0"?><container version="1.0" xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles>'
    '<rootfile full-path="OEBPS/book.opf" media-type="application/oebps-package+xml"/></rootfiles></container>'
)


def pdf_of(objects: Sequence[bytes], trailer: bytes = b"") -> bytes:
    """Return a PDF of these objects, numbered from 1. The first is the catalogue."""
    out = BytesIO()
    out.write(b"%PDF-1.5\n")
    places = []
    for number, body in enumerate(objects, 1):
        places.append(out.tell())
        out.write(b"%d 0 obj\n%s\nendobj\n" % (number, body))
    table = out.tell()
    out.write(b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1))
    out.write(b"".join(b"%010d 00000 n \n" % place for place in places))
    out.write(b"trailer\n<< /Size %d /Root 1 0 R %s >>\nstartxref\n%d\n%%%%EOF\n" % (len(objects) + 1, trailer, table))
    return out.getvalue()


def stream(content: bytes, about: bytes = b"", packed: bool = True) -> bytes:
    content = zlib.compress(content) if packed else content
    how = b"/Filter /FlateDecode" if packed else b""
    return b"<< /Length %d %s %s >>\nstream\n%s\nendstream" % (len(content), how, about, content)


def pdf(pages: Sequence[Sequence[str]], title: str = "", outline: Sequence[tuple[str, int]] = ()) -> bytes:
    """Return a PDF with these lines on its pages. The outline has titles and pages from 1."""
    first = 5  # of the pages: 1 catalogue, 2 page tree, 3 font, 4 information
    marks = first + 2 * len(pages)
    kids = b" ".join(b"%d 0 R" % (first + 2 * at) for at in range(len(pages)))
    outlines = b"/Outlines %d 0 R" % marks if outline else b""
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R %s >>" % outlines,
        b"<< /Type /Pages /Kids [%s] /Count %d >>" % (kids, len(pages)),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>",
        b"<< /Title (%s) >>" % _escaped(title),
    ]
    for at, lines in enumerate(pages):
        shown = b"".join(b"(%s) Tj T*\n" % _escaped(line) for line in lines)
        objects.append(
            b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Resources << /Font << /F1 3 0 R >> >> "
            b"/Contents %d 0 R >>" % (first + 2 * at + 1)
        )
        objects.append(stream(b"BT /F1 11 Tf 14 TL 60 780 Td\n" + shown + b"ET"))
    if outline:
        last = marks + len(outline)
        objects.append(b"<< /Type /Outlines /First %d 0 R /Last %d 0 R /Count %d >>" % (marks + 1, last, len(outline)))
        for at, (said, page) in enumerate(outline, marks + 1):
            around = (b"/Next %d 0 R " % (at + 1) if at < last else b"") + (
                b"/Prev %d 0 R " % (at - 1) if at > marks + 1 else b""
            )
            leads = b"/Dest [%d 0 R /Fit]" % (first + 2 * (page - 1))
            objects.append(b"<< /Title (%s) /Parent %d 0 R %s%s >>" % (_escaped(said), marks, around, leads))
    return pdf_of(objects, b"/Info 4 0 R")


def _escaped(text: str) -> bytes:
    return text.replace("\\", r"\\").replace("(", r"\(").replace(")", r"\)").encode("cp1252")


def protected_pdf() -> bytes:
    """Return a PDF that asks for a password. Its keys fit no password, so none opens it."""
    data = pdf([["secret"]])
    encrypt = b"/Encrypt << /Filter /Standard /V 1 /R 2 /P -4 /O <%s> /U <%s> >> /ID [<00><00>]" % (
        b"11" * 32,
        b"22" * 32,
    )
    return data.replace(b"/Info 4 0 R", b"/Info 4 0 R " + encrypt)


def epub(
    chapters: Mapping[str, str],
    title: str = "A book",
    contents: Mapping[str, str] | None = None,
    ncx: bool = False,
    extra: Mapping[str, str | bytes] | None = None,
) -> bytes:
    """Return a book with these files, and a table of contents of titles by file: a navigation document or an NCX."""
    items = [f'<item id="c{at}" href="{path}" media-type="application/xhtml+xml"/>' for at, path in enumerate(chapters)]
    refs = "".join(f'<itemref idref="c{at}"/>' for at in range(len(chapters)))
    listed = contents or {}
    if ncx:
        items.append('<item id="toc" href="toc.ncx" media-type="application/x-dtbncx+xml"/>')
        points = "".join(
            f'<navPoint id="p{at}"><navLabel><text>{said}</text></navLabel><content src="{path}"/></navPoint>'
            for at, (path, said) in enumerate(listed.items(), 1)
        )
        toc = (
            '<?xml version="1.0"?><!DOCTYPE ncx PUBLIC "-//NISO//DTD ncx 2005-1//EN" "http://127.0.0.1:9/ncx.dtd">'
            f'<ncx xmlns="http://www.daisy.org/z3986/2005/ncx/" version="2005-1"><navMap>{points}</navMap></ncx>'
        )
    else:
        items.append('<item id="toc" href="nav.xhtml" media-type="application/xhtml+xml" properties="nav"/>')
        rows = "".join(f'<li><a href="{path}">{said}</a></li>' for path, said in listed.items())
        toc = (
            '<html xmlns="http://www.w3.org/1999/xhtml" xmlns:epub="http://www.idpf.org/2007/ops"><body>'
            f'<nav epub:type="toc"><ol>{rows}</ol></nav></body></html>'
        )
    package = (
        '<?xml version="1.0"?><package xmlns="http://www.idpf.org/2007/opf" version="3.0"><metadata '
        f'xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:title>{title}</dc:title></metadata>'
        f'<manifest>{"".join(items)}</manifest><spine toc="toc">{refs}</spine></package>'
    )
    files: dict[str, str | bytes] = {
        "META-INF/container.xml": CONTAINER,
        "OEBPS/book.opf": package,
        f"OEBPS/{'toc.ncx' if ncx else 'nav.xhtml'}": toc,
        **{f"OEBPS/{path}": text for path, text in chapters.items()},
        **(extra or {}),
    }
    return archive(files, mimetype=True)


def archive(files: Mapping[str, str | bytes], mimetype: bool = False) -> bytes:
    out = BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as packed:
        if mimetype:
            packed.writestr(zipfile.ZipInfo("mimetype"), "application/epub+zip")
        for path, content in files.items():
            packed.writestr(path, content)
    return out.getvalue()


def page(body: str, title: str = "", head: str = "") -> str:
    return f"<!DOCTYPE html><html><head><title>{title}</title>{head}</head><body>{body}</body></html>"
