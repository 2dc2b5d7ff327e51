"""Recognise that a message corrects what was remembered: "Actually, March 12." after "The launch is on March 10."

A correction in a full sentence stands for itself. One that says only the other value is put after the statement that it
corrects, both word for word: a value without its subject means nothing later.
"""

from __future__ import annotations

import re

from lukasa.model import wordings
from lukasa.model.statements import statement
from lukasa.model.text import terms, words
from lukasa.ports import Embedder

# Words with which a correction begins; with an embedder, labelled examples count too.
_CUE = re.compile(
    r"\s*(?:(?:oh|ah|hm+|well|but|ach|äh)\b[\s,.!…—–-]*)*"
    r"(?:(?:(?:no|nope|wait|sorry|oops|nein|doch|moment|quatsch)(?=\s*[,.!:;…—–-])"
    r"|actually|correction|rather|i meant|i mean|make (?:that|it)|scratch that|(?:it|that) should be|my mistake"
    r"|eigentlich|korrektur|entschuldigung|vielmehr|ich meinte|ich meine|besser gesagt)\b[\s,.:;!…—–-]*)+",
    re.IGNORECASE,
)
_SHORT = 4  # words; a longer message that refers to nothing in the statement is about something else
# With these begins a statement of its own.
_POSSESSIVE = frozenset("my our mein meine unser unsere".split())
_SPEAKERS = frozenset("i we im ive ich wir".split())
_PRONOUNS = frozenset("it its he his she her they their that this es er sie das".split())
_SIGNS = frozenset(
    """his her their wrong mistake mistaken mixed confused meant correct correction precise instead right misspoke
    changed now not falsch richtig gemeint verwechselt geirrt stattdessen nicht jetzt""".split()
)
_NAMING = frozenset(terms("called named name heisst"))
_ENDS = ".!?…"


def _specifics(text: str) -> frozenset[str]:
    """Return the names and numbers of a text; a word before it makes the capital of its first word count."""
    return statement(f"x {text}").specifics - {"i"}


def corrected(said: str, noted: str, embedder: Embedder | None) -> str | None:
    """Return the text to store if a message corrects what was noted; None if it does not."""
    cue = _CUE.match(said)
    rest = said[cue.end() :] if cue is not None else said
    spoken, named = words(rest), _specifics(noted)
    if not spoken or said.rstrip().endswith("?") or (named and _specifics(rest) <= named):
        return None
    if cue is None and wordings.label("replies", said, embedder, "ordinary") != "correction":
        return None
    known, new = terms(noted), terms(rest)
    if known and known[0] in new and spoken[0] not in _PRONOUNS:
        return said.strip()  # it names the subject itself
    if spoken[0] in _POSSESSIVE or (cue is not None and spoken[0] in _SPEAKERS):
        return None
    refers = (
        bool(set(known) & set(new) - _NAMING) or not _SIGNS.isdisjoint(spoken) or not _PRONOUNS.isdisjoint(spoken[:2])
    )
    if not refers and (cue is None or len(spoken) > _SHORT):
        return None
    body = noted.rstrip()
    return f"{body}{'' if body.endswith(tuple(_ENDS)) else '.'} {said.strip()}"
