"""Say in a person's words why a hit was found: one sentence, and shares in percent that add up to 100."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lukasa.model.text import STOP_WORDS, terms, words
from lukasa.read.fuse import Contribution

MOST_WORDS = 4
_SAID: Mapping[str, str] = {
    "vector": "its meaning is near to what you ask",
    "structured": "its labels are named in the question",
    "time": "it is from the time that you ask about",
    "answer": "it names a time or a number, which you ask for",
    "context": "it stands beside another match in the same talk",
    "recency": "it is among the newest",
}
_FOLDED = "it was said later than another match, about the same thing"
_ELSE = "it fits the question"


def shares(contributions: Sequence[Contribution]) -> dict[str, int]:
    """Return what each signal gave for a hit, in percent of all that spoke for it; together exactly 100.

    A signal that spoke against the hit has no share.
    """
    given = {one.signal: one.share for one in contributions if one.rank is not None and one.share > 0}
    whole = sum(given.values())
    if whole <= 0:
        return {}
    exact = {name: 100 * share / whole for name, share in given.items()}
    found = {name: int(share) for name, share in exact.items()}
    by_rest = sorted(exact, key=lambda name: (found[name] - exact[name], name))
    for name in by_rest[: 100 - sum(found.values())]:
        found[name] += 1
    return {name: found[name] for name in sorted(found, key=lambda name: (-found[name], name)) if found[name]}


def because(content: str, source: str, query: str, contributions: Sequence[Contribution]) -> str:
    """Return one sentence without numbers that says why a text was found, the strongest reason first."""
    shared = _shared(content, query)
    parts = []
    for name in shares(contributions):
        if name == "keyword":
            parts.append(_words(shared) if shared else "it shares words with the question")
        elif name == "speaker":
            parts.append(f"{source} said it, about whom you ask" if source and source != "user" else "you said it")
        else:
            parts.append(_SAID.get(name, _ELSE))
    if not parts:
        parts = [_words(shared)] if shared else [_FOLDED if not _found(contributions) else _ELSE]
    sentence = _joined(list(dict.fromkeys(parts)))
    return f"{sentence[:1].upper()}{sentence[1:]}."


def _found(contributions: Sequence[Contribution]) -> bool:
    return any(one.rank is not None for one in contributions)


def _shared(content: str, query: str) -> list[str]:
    """Return the question's words that the text has, as the question spells them."""
    held = set(terms(content))
    found = (word for word in words(query) if word not in STOP_WORDS and held.intersection(terms(word)))
    return list(dict.fromkeys(found))


def _words(shared: Sequence[str]) -> str:
    named = [f"“{word}”" for word in shared[:MOST_WORDS]]
    return f"it has {_joined(named)}"


def _joined(parts: Sequence[str]) -> str:
    return " and ".join([", ".join(parts[:-1]), parts[-1]]) if len(parts) > 1 else parts[0]
