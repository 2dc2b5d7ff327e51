"""Decide whom an erasure means: the people who are named alike, their other names, and who else a text is about."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence

from msgspec import Struct

from lukasa.model.erasure import Words
from lukasa.model.names import CAPITAL, NO_NAMES, OTHER_NAME, RUN
from lukasa.model.text import STOP_WORDS, fold

_JOINED = (
    re.compile(rf"\b(?:and|und|et|y|with|mit|met) ({CAPITAL})"),
    re.compile(rf"({CAPITAL}),? (?:and|und|et|y|met) "),
)


class Group(Struct, frozen=True):
    """One person as texts name them: the fullest name, every form of it, other names, and how many texts have one."""

    name: str
    forms: tuple[str, ...]
    aliases: tuple[str, ...]
    texts: int


def groups(name: str, texts: Iterable[str]) -> list[Group]:
    """Return the people whose names hold this one, the one in most texts first.

    If the texts know only one full name, the name alone means that person. If they know several, the name alone is a
    group of its own: nobody can say whom those texts mean.
    """
    wanted, found = Words((name,)), Counter[str]()
    aliases: dict[str, set[str]] = {}
    spelled: dict[str, str] = {}
    for text in texts:
        if not wanted.found_in(text):
            continue
        full = _full_names(name, text) or {name}
        for one in full:
            found[fold(one)] += 1
            spelled.setdefault(fold(one), one)
            others = {match[1] for match in OTHER_NAME.finditer(text)} if len(full) == 1 else set()
            aliases.setdefault(fold(one), set()).update(o for o in others if fold(o) not in (fold(one), fold(name)))
    bare = fold(name)
    full_names = [key for key in found if key != bare]
    if len(full_names) == 1:
        found[full_names[0]] += found.pop(bare, 0)
        aliases[full_names[0]] |= aliases.pop(bare, set())
    made = []
    for key, count in found.most_common():
        forms = (spelled[key],) if len(full_names) > 1 else tuple(dict.fromkeys((spelled[key], name)))
        made.append(Group(spelled[key], forms, tuple(sorted(aliases[key])), count))
    return made


def _full_names(name: str, text: str) -> set[str]:
    """Return the names in a text that hold this one and more words."""
    wanted, size, found = Words((name,)), len(name.split()), set[str]()
    for run in RUN.finditer(text):
        parts = [part.removesuffix("'s").removesuffix("’s") for part in run[0].split()]
        while parts and (fold(parts[0]) in STOP_WORDS | NO_NAMES):
            parts = parts[1:]
        while parts and (fold(parts[-1]) in STOP_WORDS | NO_NAMES):
            parts = parts[:-1]
        if len(parts) > size and wanted.found_in(" ".join(parts)) and not _begins_a_sentence(name, parts, text, run):
            found.add(" ".join(parts))
    return found


def _begins_a_sentence(name: str, parts: Sequence[str], text: str, run: re.Match[str]) -> bool:
    """Whether the words before the name are there because a sentence begins with them, as in "Yesterday Ada left"."""
    starts = run.start() == 0 or text[: run.start()].rstrip()[-1:] in ".!?:\n"
    return starts and len(name.split()) > 1 and fold(" ".join(parts)).endswith(fold(name))


def known_people(texts: Iterable[str], speakers: Iterable[str]) -> frozenset[str]:
    """Return the folded names of people: who spoke, and who is named by two words or more."""
    found = {fold(one) for one in speakers if one}
    for text in texts:
        for run in RUN.finditer(text):
            parts = [part for part in run[0].split() if fold(part) not in STOP_WORDS | NO_NAMES]
            if len(parts) > 1:
                found.add(fold(" ".join(parts)))
    return frozenset(found)


def others_in(text: str, words: Words, known: frozenset[str]) -> tuple[str, ...]:
    """Return the people that a text names besides those that the words name."""
    found = []
    for run in RUN.finditer(text):
        one = run[0].removesuffix("'s").removesuffix("’s")
        if not words.found_in(one) and fold(one) in known:
            found.append(one)
    if words.found_in(text):
        beside = (match[1] for joined in _JOINED for match in joined.finditer(text))
        found += [one for one in beside if _is_name(one, words)]
    return tuple(dict.fromkeys(found))


def _is_name(one: str, words: Words) -> bool:
    return fold(one) not in STOP_WORDS | NO_NAMES and not any(fold(one) in fold(form).split() for form in words.forms)
