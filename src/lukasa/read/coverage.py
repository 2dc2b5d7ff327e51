"""Questions that want all of something: a set, a sequence, a summary; and how much of what was found belongs there."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import cache
from typing import Literal, TypeVar

from msgspec import Struct

Coverage = Literal["set", "sequence", "summary"]
Grouping = Literal["day", "month", "source", "tier"]
GROUPINGS: tuple[Grouping, ...] = ("day", "month", "source", "tier")

_SEQUENCE = (
    r"\b(?:in (?:what|which) (?:order|sequence)|chronological(?:ly)?|time ?line|step by step|one after (?:the )?other"
    r"|in welcher reihenfolge|der reihe nach|chronologisch|zeitstrahl|nacheinander)\b"
)
_SUMMARY = (
    r"\b(?:sum(?:mar(?:y|ies)|mari[sz]e[sd]?|mari[sz]ing)|sum (?:\w+ )?up|overview|recap|everything|all (?:\w+ )?about"
    r"|zusammenfassung|zusammenfassen|fass\w* .{0,40}zusammen|überblick|alles (?:\w+ )?(?:über|zu))\b"
)
# "what are all …", "list the …", "which books has Ann read": the noun after the question word is a plural, and
# somebody did or has it. "which is", "what does" ask for one thing.
_VERB = r"(?:is|was|are|were|do|does|did|has|have|had|will|would|can|could|might|may|should|must)\b"
_SET = (
    r"\b(?:list|enumerate|name all|all (?:of )?(?:the|my|our|your|his|her|their|its)|every(?:one|body)? (?:who|that)"
    r"|each of|how many|who are (?:all )?the|nenne|liste|alle|sämtliche|wie viele)\b"
    rf"|\b(?:what|which)(?: (?:kinds?|sorts?|types?) of)?(?: (?!{_VERB})[\w'’-]+){{0,2}}"
    rf" (?:(?!{_VERB})[\w'’-]{{2,}}[^\Wsui]s|people|children|men|women)\b"
    r".*\b(?:has|have|had|do|does|did|are|were|uses?|\w+ed)\b"
    r"|\bwelche[nr]? (?:[\w-]+ ){0,2}[\w-]+(?:en|er|e|s)\b.*\b(?:hat|habe|haben|hatte|hatten|sind|waren|gibt)\b"
)
_DROP = 2.5  # a match so much weaker than the best one, in standard deviations, is no longer about the same thing
_FEWEST = 3
LONGEST = 400  # characters of a question that are looked at

Value = TypeVar("Value")


@cache
def _patterns() -> tuple[tuple[Coverage, re.Pattern[str]], ...]:
    """Compile at the first question: most commands ask none."""
    wanted: tuple[tuple[Coverage, str], ...] = (("sequence", _SEQUENCE), ("summary", _SUMMARY), ("set", _SET))
    return tuple((name, re.compile(pattern, re.IGNORECASE)) for name, pattern in wanted)


def wanted_coverage(query: str) -> Coverage | None:
    """Return which kind of "all of it" a question wants; None if one answer will do."""
    asked = query[:LONGEST]
    return next((name for name, pattern in _patterns() if pattern.search(asked)), None)


def related(matches: Sequence[float]) -> list[int]:
    """Return the positions of the hits that belong to the best match, by how far their own match drops from it.

    `matches` are as fusion makes them: the exponential of the distance from the best, or a share of it. The first few
    hits always belong: something else than their match has put them there.
    """
    least = max(matches, default=0.0) * math.exp(-_DROP)
    return [at for at, match in enumerate(matches) if at < _FEWEST or match >= least]


class Group(Struct, frozen=True):
    """A part of what was gathered: its title, its first and last time, and the positions of its members in order."""

    title: str
    since: datetime
    until: datetime
    members: tuple[int, ...]


def grouped(values: Sequence[Value], by: Callable[[Value], tuple[str, datetime]]) -> tuple[Group, ...]:
    """Group values by title, in the order of time; inside a group in the order of time too.

    `by` gives the title and the time of a value.
    """
    groups: dict[str, list[tuple[datetime, int]]] = {}
    for position, value in enumerate(values):
        title, at = by(value)
        groups.setdefault(title, []).append((at.astimezone(UTC), position))
    found = []
    for title, members in groups.items():
        ordered = sorted(members)
        found.append(Group(title, ordered[0][0], ordered[-1][0], tuple(position for _, position in ordered)))
    return tuple(sorted(found, key=lambda group: (group.since, group.title)))
