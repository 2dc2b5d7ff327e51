"""Find secrets in a text: keys, tokens, passwords, PINs, card numbers. The one detector of the package.

`lukasa.model.gitleaks` knows the keys of services, `lukasa.model.secret_forms` the beginnings and words that give a
secret away. Most texts hold no long token and no such word: one search says so, and neither module is loaded.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from lukasa import model

MARK = "[secret]"
DETECTOR = 1  # raise it when the detector finds more: workers then look again at the texts that are stored already
MOST_LINE = 4_000  # characters of a line that are searched at once; a longer line is cut into pieces
MOST_REMEMBERED = 500  # characters of a text whose result is remembered for a while
_OVERLAP = 400  # characters that two pieces of a cut line share

# The rest of a token that a piece or the bound of a pattern cuts.
_REST = re.compile(r"(?<=[\w+/-])[A-Za-z0-9_+/=-]+")

Span = tuple[int, int]


class Found(NamedTuple):
    """A secret: its place in the text, and the name of the rule that found it."""

    start: int
    end: int
    rule: str


def redact(text: str) -> tuple[str, int]:
    """Return a text with each secret replaced by a mark, and the number of secrets."""
    found = find_secrets(text)
    for start, end, _ in reversed(found):
        text = f"{text[:start]}{MARK}{text[end:]}"
    return text, len(found)


class Masked(Struct, frozen=True):
    """A text with a mark for each of its secrets, which still knows the text that it was made from."""

    text: str
    original: str
    spans: tuple[tuple[int, int, int, int], ...]  # of each mark: start and end here, start and end in the original

    def unmasked(self, part: str) -> str | None:
        """Return the original words of a part with a mark; None if this text does not hold it as it stands."""
        start = self.text.find(part) if MARK in part else -1
        if start < 0:
            return None
        end = start + len(part)
        if any(a < start < b or a < end < b for a, b, _, _ in self.spans):
            return None
        return self.original[self._before(start) : self._before(end)]

    def _before(self, position: int) -> int:
        """Return the place in the original of a place here that no mark holds."""
        passed = [span for span in self.spans if span[1] <= position]
        return position + passed[-1][3] - passed[-1][1] if passed else position


def mask(text: str) -> Masked:
    """Return a text with each secret replaced by a mark, from which the owner's own words can be found again."""
    out, spans, done = "", list[tuple[int, int, int, int]](), 0
    for start, end, _ in find_secrets(text):
        out += text[done:start]
        spans.append((len(out), len(out) + len(MARK), start, end))
        out, done = out + MARK, end
    return Masked(out + text[done:], text, tuple(spans))


def holds_secret(value: Any) -> bool:
    """Whether a text, or a text inside a list or mapping, holds a secret."""
    return bool(find_secrets(value)) if type(value) is str else redact_all(value) != value


def redact_all(value: Any) -> Any:
    """Return a value without secrets: each text inside lists, mappings and structs is redacted."""
    if type(value) is str:
        return redact(value)[0]
    if type(value) in (list, tuple):
        return type(value)(redact_all(part) for part in value)
    if isinstance(value, dict):
        return {key: _redact_named(key, part) for key, part in value.items()}
    if isinstance(value, Struct):
        changes = {n: new for n in value.__struct_fields__ if (new := redact_all(old := getattr(value, n))) != old}
        return replace(value, **changes) if changes else value
    return value


def _redact_named(key: Any, value: Any) -> Any:
    """Redact the value of a key; the key may be the only word that says what the value is."""
    if type(value) is str and type(key) is str and _NAMING.search(key) and model.secret_forms.is_value(value.strip()):
        return MARK
    return redact_all(value)


def find_secrets(text: str) -> tuple[Found, ...]:
    """Return the secrets of a text in order; none overlaps another."""
    return _found(text) if len(text) > MOST_REMEMBERED else _remembered(text)


def _found(text: str) -> tuple[Found, ...]:
    if not _is_suspect(text):
        return ()
    found = [Found(m.start(), m.end(), "private-key") for m in model.secret_forms.PRIVATE_KEY.finditer(text)]
    whole = (0, 0)  # the part of the text that the last rest fills
    for start, end in _pieces(text):
        for one in model.secret_forms.in_line(text[start:end]):
            stop = start + one.end
            if whole[0] <= stop <= whole[1]:
                stop = whole[1]
            elif rest := _REST.match(text, stop):
                whole = stop, rest.end()
                stop = rest.end()
            found.append(Found(start + one.start, stop, one.rule))
    return _apart(found)


_remembered = lru_cache(maxsize=2048)(_found)  # a write looks at the same text at two steps


def _apart(found: list[Found]) -> tuple[Found, ...]:
    """Join overlapping secrets to one."""
    joined: list[Found] = []
    for one in sorted(found):
        if joined and one.start < joined[-1].end:
            joined[-1] = joined[-1]._replace(end=max(one.end, joined[-1].end))
        elif one.start < one.end:
            joined.append(one)
    return tuple(joined)


def _pieces(text: str) -> Iterator[Span]:
    """Cut a text into lines, and long lines into pieces that share a few hundred characters."""
    start = 0
    while start < len(text):
        end = text.find("\n", start)
        end = len(text) if end < 0 else end
        while end - start > MOST_LINE:
            yield start, start + MOST_LINE
            start += MOST_LINE - _OVERLAP
        yield start, end
        start = end + 1


def _is_suspect(text: str) -> bool:
    """Whether a text holds a long token, a long number, or a word for a secret; without these it holds no secret."""
    lower = text.lower()
    if any(cue in lower for cue in _CUES) or (_COUNTED.search(lower) and any(cue in lower for cue in _NUMBER_CUES)):
        return True
    return _LONG.search(text) is not None and _LONG.search(_ID.sub(" ", text)) is not None


_LONG = re.compile(r"(?=\S{0,15}?(?:[0-9A-Z_=@]|://))\S{16}|\d{4}[ -]\d{4}|\d{13}")
# Ids, times and paths, which the engine stores with every write.
_ID = re.compile(
    r"(?<![\w-])[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}(?![\w-])|#[0-9a-f]{8}(?!\w)|"
    r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[\d.]{0,7}[+\d:Z]{0,6}|(?<!\S)/(?:[\w.-]{1,31}/){1,20}[\w.-]{0,31}(?!\S)"
)
_COUNTED = re.compile(r"[\s\d]")  # a number, or words that may spell one
_NUMBER_CUES = "pin code zahl combination kombination cvv cvc otp puk ssn social".split()
_CUES = (
    " -p",
    " tan ",
    "pw ",
    "log in",
    "sign in",
    *(
        "pass pwd pw: pw= kennwort losung geheim secret cred zugang token key schl auth wifi wi-fi wlan wpa psk phrase "
        "mnemonic contrase clave senha wachtwoord hasło haslo парол 密码 密碼 口令 パスワード 비밀번호 login anmeld "
        "curl mysql redis-cli :p:"
    ).split(),
)
# Names of values that are secrets.
_NAMING = re.compile(
    r"(?i)pass(?:word|wort|wd|phrase|code)|^pwd?$|kennwort|secret|credential|api[ _-]?key|private[ _-]?key|"
    r"(?:access|auth|refresh|bearer|session|bot|id)[ _-]?token|^token$|^pin$|contrase|mot.de.passe|密码|パスワード"
)
