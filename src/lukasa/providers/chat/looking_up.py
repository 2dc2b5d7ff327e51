"""Understand "look up X in Y" and "what does Y say about X", and quote the passages that a search found.

Pure rules in English and German. A message that names no document, but a person ("what does Ines say about …"), is a
question to memory: only the search tells, so `quoted` says whether any passage is of a document of that name.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from lukasa.model.text import STOP_WORDS, terms

ENOUGH = 0.5  # share of the content words asked for that a passage must hold
QUOTED = 3
_LONGEST = 500  # characters of a quotation
_POLITE = r"\s*(?:(?:please|kindly|hey|ok|okay|can you|could you|would you|bitte|kannst du)[\s,]+)*"
_ASKED = tuple(
    re.compile(rf"{_POLITE}{form}[\s.?!]*$", re.IGNORECASE | re.DOTALL)
    for form in (
        r"look\s+(?P<topic>(?:it|that|this))\s+up(?:\s+in\s+(?P<place>.{1,200}?))?",
        r"look\s+up\s+(?P<topic>.{1,2000}?)(?:\s+in\s+(?P<place>.{1,200}?))?",
        r"look\s+(?!at\b|for\b|like\b|how\b)(?P<topic>.{1,200}?)\s+up\s+in\s+(?P<place>.{1,200}?)",
        r"(?:search|consult)\s+(?P<place>.{1,200}?)\s+(?:for|about)\s+(?P<topic>.{1,2000}?)",
        r"(?:schlag|schlage|schau|sieh)\s+(?:mal\s+)?(?P<topic>.{1,2000}?)\s+(?:in|im)\s+(?P<place>.{1,200}?)\s+nach",
        r"(?:such|suche)\s+(?:in|im)\s+(?P<place>.{1,200}?)\s+nach\s+(?P<topic>.{1,2000}?)",
    )
)
_SAYS = re.compile(
    rf"{_POLITE}(?:what\s+(?:does|do|did)\s+(?P<place>.{{1,200}}?)\s+say\s+(?:about|on)\s+(?P<topic>.{{1,2000}}?)"
    r"|was\s+(?:sagt|sagen|steht\s+in|steht\s+im)\s+(?P<wo>.{1,200}?)\s+(?:über|zu|zum|zur)\s+(?P<was>.{1,2000}?))[\s.?!]*$",
    re.IGNORECASE | re.DOTALL,
)
_ANY = frozenset(
    terms(
        """the my our your all any some document documents doc docs documentation corpus library libraries book books
        file files folder text texts note notes source sources added there it them die der das den dem meine meinen
        unsere dokument dokumente dokumenten unterlagen bibliothek buch bücher büchern datei dateien"""
    )
)
_DOCUMENTS = frozenset(
    terms(
        """document documents doc docs documentation corpus library book books file files text texts source sources
        dokument dokumente dokumenten unterlagen bibliothek buch bücher büchern datei dateien"""
    )
)
_IT = frozenset(("it", "that", "this"))

NO_DOCUMENTS = "There are no documents to look things up in yet: `lukasa corpus add PATH` adds some."


class Lookup(Struct, frozen=True):
    """What to look up, and in which document; an empty `place` is any. `certain` is false for a mere question."""

    topic: str
    place: str = ""
    certain: bool = True

    @property
    def refers(self) -> bool:
        """Whether the topic is what was said before."""
        return self.topic.lower() in _IT


def lookup(said: str) -> Lookup | None:
    """Return what a message wants looked up in documents; None if it wants nothing of the kind."""
    for form in _ASKED:
        if found := form.match(said):
            return Lookup(_plain(found["topic"]), _named(found["place"] or ""))
    found = _SAYS.match(said)
    if found is None:
        return None
    place, topic = found["place"] or found["wo"], found["topic"] or found["was"]
    return Lookup(_plain(topic), _named(place), certain=not _DOCUMENTS.isdisjoint(terms(place)))


def _plain(text: str) -> str:
    return text.strip().strip("“”\"'‘’„").strip()


def _named(place: str) -> str:
    """Return the name of a document, or nothing for "the documents"."""
    return "" if set(terms(place)) <= _ANY else _plain(re.sub(r"(?i)^(?:the|my|our|die|der|das|dem|den)\s+", "", place))


def quoted(asked: Lookup, hits: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return quotations of the passages that answer, from documents of the name that was asked for."""
    about = {term for term in terms(asked.topic) if term not in STOP_WORDS}
    place = set(terms(asked.place)) - _ANY
    told = []
    for hit in hits:
        called = set(terms(f"{hit.get('title', '')} {hit.get('document', '')}"))
        held = set(terms(f"{hit.get('text', '')} {hit.get('place', '')}"))
        if place <= called and (not about or len(about & held) / len(about) >= ENOUGH):
            told.append(_quotation(hit, about))
    return told[:QUOTED]


def _quotation(hit: Mapping[str, Any], about: set[str]) -> str:
    worth = " · ".join(str(hit.get(name, "")) for name in ("origin", "lifecycle", "standing"))
    title, place = str(hit.get("title", "")), str(hit.get("place", ""))
    where = place if place.startswith(title) else ", ".join(part for part in (title, place) if part)
    of = f"{hit.get('document')}, version {hit.get('version')}; {worth}"
    return f"“{_part(str(hit.get('text', '')), about)}”\n— {where} ({of})"


def _part(text: str, about: set[str]) -> str:
    """Return the part of a passage that has the most of the words asked for, with what follows it."""
    pieces = [piece.strip() for piece in re.split(r"\n\s*\n|(?<=[.!?])\s+", text) if piece.strip()]
    if not pieces:
        return text[:_LONGEST]
    best = max(range(len(pieces)), key=lambda at: (len(about & set(terms(pieces[at]))), -at))
    taken = " ".join(pieces[best].split())
    for piece in pieces[best + 1 :]:
        if len(taken) + len(piece) > _LONGEST:
            break
        taken = f"{taken} {' '.join(piece.split())}"
    return taken if len(taken) <= _LONGEST else f"{taken[: _LONGEST - 1]}…"


def count(result: Mapping[str, Any]) -> int:
    """Return how many documents there are, as a search tells."""
    found = result.get("documents")
    return found if isinstance(found, int) else 0


def passages(result: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the passages of a search's answer."""
    found = result.get("passages")
    return [hit for hit in found if isinstance(hit, Mapping)] if isinstance(found, list) else []
