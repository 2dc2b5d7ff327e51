"""Text from bytes: byte order marks, UTF-16 without a mark, a declared encoding, UTF-8, and Windows' Latin at last."""

from __future__ import annotations

import codecs
import re

from lukasa.model.errors import UnreadableDocument

_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),  # begins like UTF-16's, so it comes first
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
# Python also calls compression and escapes encodings. A file may only name what is one; archives use cp437.
ENCODINGS = frozenset(
    """ascii utf-8 utf-16 utf-16-le utf-16-be utf-32-le utf-32-be latin-1
    cp437 cp866 cp874 cp932 cp949 cp950 cp1250 cp1251
    cp1252 cp1253 cp1254 cp1255 cp1256 cp1257 cp1258 iso8859-2 iso8859-3 iso8859-4 iso8859-5 iso8859-6 iso8859-7
    iso8859-8 iso8859-9 iso8859-10 iso8859-11 iso8859-13 iso8859-14 iso8859-15 iso8859-16 koi8-r koi8-u shift_jis euc-jp
    euc-kr iso2022-jp gb2312 gbk gb18030 big5 big5hkscs mac-roman tis-620""".split()
)
_NAMED_ELSE = {"x-sjis": "shift_jis", "sjis": "shift_jis", "macintosh": "mac-roman", "iso-2022-jp": "iso2022-jp"}
_BROWSERS = frozenset(("ascii", "us-ascii", "latin1", "latin-1", "iso8859-1"))  # all of them read as Windows' Latin
_SAMPLE = 4096  # bytes that tell UTF-16 without a mark
_CONTROLS = re.compile(r"[\x00-\x08\x0e-\x1a\x1c-\x1f]")
_MOST_CONTROLS = 0.01  # of the characters; a terminal's log has some


def declarable(encoding: str) -> str:
    """Return the encoding that a file names, or nothing if it is none that a file may name."""
    name = encoding.strip().strip("\"'").lower()
    name = _NAMED_ELSE.get(
        name, name.replace("iso-8859", "iso8859").replace("windows-", "cp").replace("-hkscs", "hkscs")
    )
    name = {"utf8": "utf-8", "utf16": "utf-16", "utf-16le": "utf-16-le", "utf-16be": "utf-16-be"}.get(name, name)
    return "cp1252" if name in _BROWSERS else name if name in ENCODINGS else ""


def decoded(data: bytes, declared: str = "") -> tuple[str, str]:
    """Return the text, with newlines only as line ends, and a note if characters had to be guessed or replaced."""
    text, note = _decoded(data, declarable(declared))
    controls = len(_CONTROLS.findall(text))
    if controls > len(text) * _MOST_CONTROLS:
        raise UnreadableDocument(
            "it holds binary data and not text", fix="give a document: markdown, text, HTML, PDF, EPUB or source code"
        )
    if controls:
        text = _CONTROLS.sub(" ", text)
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    return text, note


def _decoded(data: bytes, declared: str) -> tuple[str, str]:
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            return _surely(data[len(mark) :], encoding)
    if wide := _utf16(data[:_SAMPLE]):
        return _surely(data, wide)
    if declared:
        try:
            return data.decode(declared), ""
        except (UnicodeError, LookupError):
            pass  # the declaration is wrong: go on as if there were none
    try:
        return data.decode("utf-8"), ""
    except UnicodeDecodeError:
        pass
    try:
        return data.decode("cp1252"), "the text is not UTF-8; it was read as Windows-1252"
    except UnicodeDecodeError:
        return data.decode("latin-1"), "the text is not UTF-8; it was read as Latin-1"


def _surely(data: bytes, encoding: str) -> tuple[str, str]:
    text = data.decode(encoding, "replace")
    return text, "characters that could not be decoded were replaced" if "\ufffd" in text else ""


def _utf16(sample: bytes) -> str:
    """Tell UTF-16 without a mark: in most scripts one byte of every two is zero now and then, and the other never."""
    if len(sample) < 4 or b"\0" not in sample:
        return ""
    even, odd = sample[0::2].count(0), sample[1::2].count(0)
    if odd > len(sample) // 8 and even == 0:
        return "utf-16-le"
    if even > len(sample) // 8 and odd == 0:
        return "utf-16-be"
    return ""
