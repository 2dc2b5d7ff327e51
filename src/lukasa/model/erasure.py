"""Erasure: the words that are to be gone, found and taken out in every text and in every encoding that holds them."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any

from msgspec import Struct
from msgspec import json as msgspec_json
from msgspec.structs import replace

from lukasa.model.text import fold

ERASED = "[erased]"
_BETWEEN = r"(?:[\s_\-]|\\[nrt])+"  # between two words of a name: also in a file name, or in a text within JSON
_UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_ENCODE = msgspec_json.Encoder(enc_hook=lambda value: None).encode
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
        try:
            return self.may_be_in(_ENCODE(value).decode()) and self._found_within(value)
        except UnicodeEncodeError:  # half a surrogate pair has no encoding
            return self._found_within(value)

    def may_be_in(self, text: str) -> bool:
        """Whether a text can hold one of them, also as JSON: no answer for certain, but a fast one for most texts."""
        hint = _hint(self.forms)
        if hint is None:
            return True
        needles, pattern = hint
        if needles and text.isascii():
            small = text.lower()
            return any(needle in small for needle in needles)
        return pattern.search(text) is not None

    def may_be_in_row(self, row: Sequence[Any]) -> bool:
        """Whether a row of a table can hold one of them: a fast answer before the row is decoded."""
        return self.may_be_in("\n".join([one for one in row if type(one) is str]))

    def _found_within(self, value: Any) -> bool:
        if type(value) is str:
            return bool(value) and _pattern(self.forms).search(value) is not None
        if isinstance(value, Struct):
            return any(self._found_within(getattr(value, name)) for name in value.__struct_fields__)
        if isinstance(value, dict):
            return any(self._found_within(key) or self._found_within(part) for key, part in value.items())
        if isinstance(value, list | tuple | set | frozenset):
            return any(map(self._found_within, value))
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
        if needles := _needles(self.forms):
            small = data.lower()
            if not any(needle in small for needle in needles):
                return 0
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


@lru_cache(maxsize=64)
def _hint(forms: tuple[str, ...]) -> tuple[tuple[str, ...], re.Pattern[str]] | None:
    """Return a part of each spelling that no encoding as JSON changes: its longest run of letters; None if none is.

    A text without any of these has no form. They come in small letters for texts of ASCII, and as a pattern.
    """
    runs = {max(re.findall(r"\w+", text), key=len, default="") for form in forms for text in _spellings(form)}
    if not all(runs):
        return None
    small = tuple(run.lower() for run in runs if run.isascii())
    return small, re.compile("|".join(sorted(runs, key=len, reverse=True)) or r"(?!)", re.IGNORECASE)


@lru_cache(maxsize=64)
def _needles(forms: tuple[str, ...]) -> tuple[bytes, ...]:
    """Return what the bytes of a file hold, in small letters, if they hold a form; nothing if a form is not ASCII."""
    runs = {max(re.findall(r"[a-z0-9]+", form.lower()), key=len, default="") for form in forms}
    if not all(runs) or not all(form.isascii() for form in forms):
        return ()
    return tuple(run.encode(code) for run in runs for code in ("ascii", "utf-16-le", "utf-16-be"))


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
