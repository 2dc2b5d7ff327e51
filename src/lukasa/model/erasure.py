"""Erasure: the words that are to be gone, found and taken out in every text and in every encoding that holds them."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from lukasa.model.text import fold

ERASED = "[erased]"
_BETWEEN = r"(?:[\s_\-]|\\[nrt])+"  # between two words of a name: also in a file name, or in a text within JSON
_UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_SENTENCE = re.compile(r"[^.!?\n。！？]*[.!?\n。！？]*")


class Words(Struct, frozen=True):
    """Names, or whole texts, that an erasure removes.

    A name is found as a whole word, whatever its case and accents.
    """

    forms: tuple[str, ...]

    def found_in(self, value: Any) -> bool:
        """Whether a text, or a text inside a list, mapping or struct, holds one of them."""
        if type(value) is str:
            return bool(value) and _pattern(self.forms).search(value) is not None
        if isinstance(value, Struct):
            return any(self.found_in(getattr(value, name)) for name in value.__struct_fields__)
        if isinstance(value, dict):
            return any(self.found_in(key) or self.found_in(part) for key, part in value.items())
        if isinstance(value, list | tuple | set | frozenset):
            return any(map(self.found_in, value))
        return False

    def taken_out(self, value: Any) -> Any:
        """Return a value with a mark in place of each of them, in every text inside it."""
        if type(value) is str:
            return _pattern(self.forms).sub(ERASED, value)
        if isinstance(value, Struct):
            fields = value.__struct_fields__
            return replace(
                value, **{n: new for n in fields if (new := self.taken_out(old := getattr(value, n))) != old}
            )
        if isinstance(value, dict):
            return {self.taken_out(key): self.taken_out(part) for key, part in value.items()}
        if type(value) in (list, tuple):
            return type(value)(map(self.taken_out, value))
        return value

    def sentences_out(self, text: str) -> str:
        """Return a text without the sentences that hold one of them, as long as before: quotes keep their places."""
        spans = [match.span() for match in _pattern(self.forms).finditer(text)]
        done, out = 0, ""
        for sentence in _SENTENCE.finditer(text):
            start, end = sentence.span()
            if start < end and any(a < end and start < b for a, b in spans):
                out += text[done:start] + _as_long(end - start)
                done = end
        return out + text[done:]

    def lines_out(self, data: bytes) -> bytes:
        """Return the bytes of a file with as many bytes in place of each of them."""
        return _bytes(self.forms).sub(lambda match: _as_long(len(match[0])).encode(), data)

    def count(self, data: bytes) -> int:
        """How often the bytes of a file hold one of them, in any encoding."""
        return sum(1 for _ in _bytes(self.forms).finditer(data))


def _as_long(length: int) -> str:
    return ERASED.ljust(length)[:length]


def variants(form: str) -> tuple[str, ...]:
    """Return the spellings of a form: as it is, composed, decomposed, and without case and accents."""
    texts = (form, *(unicodedata.normalize(how, form) for how in ("NFC", "NFD", "NFKC")), fold(form))
    return tuple(dict.fromkeys(" ".join(text.split()) for text in texts if text.strip()))


@lru_cache(maxsize=64)
def _pattern(forms: tuple[str, ...]) -> re.Pattern[str]:
    """Match every spelling of some forms, the longest one first."""
    every = sorted({one for form in forms for one in _spellings(form)}, key=len, reverse=True)
    return re.compile("|".join(map(_whole, every)) or r"(?!)", re.IGNORECASE)


def _spellings(form: str) -> Iterable[str]:
    for text in variants(form):
        yield text
        escaped = json.dumps(text)[1:-1]
        if escaped != text:
            yield escaped
            yield json.dumps(text, ensure_ascii=False)[1:-1]


def _whole(text: str) -> str:
    """Match a text as whole words; scripts without spaces have no ends of words."""
    body = _BETWEEN.join(map(re.escape, text.split()))
    before = r"(?<!\w)" if re.match(rf"\w(?<![{_UNSPACED}])", text) else ""
    after = r"(?!\w)" if re.search(rf"\w(?<![{_UNSPACED}])$", text) else ""
    return f"{before}{body}{after}"


@lru_cache(maxsize=64)
def _bytes(forms: tuple[str, ...]) -> re.Pattern[bytes]:
    """Match them in the bytes of a file: UTF-8, UTF-16, and escaped as in JSON, in the usual cases."""
    found: set[bytes] = set()
    for form in forms:
        for text in _spellings(form):
            for cased in {text, text.lower(), text.upper(), text.title(), text.casefold()}:
                parts = cased.split()
                found.add(rb"(?:[\s_\-]|\\[nrt])+".join(re.escape(part.encode()) for part in parts))
                found.update(re.escape(cased.encode(code)) for code in ("utf-16-le", "utf-16-be"))
    every = sorted(found, key=len, reverse=True)
    return re.compile(rb"(?<![A-Za-z0-9])(?:" + b"|".join(every) + rb")(?![A-Za-z0-9])" if every else rb"(?!)", re.I)
