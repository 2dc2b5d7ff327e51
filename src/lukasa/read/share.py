"""Shares: the places of an answer that text of less trust may take while text of more trust matches as well.

Somebody who can write much could otherwise fill every answer, and the author's own words would drop out of it. Nothing
is lost by it: where nothing more trusted matches, less trusted text has all places.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate
from typing import NamedTuple

from lukasa.model.values import Trust

LOOK = 3  # times the limit: the best matches among which other origins are looked for
_BELOW = (Trust.UNTRUSTED, Trust.IMPORTED, Trust.AGENT)


class Shares(NamedTuple):
    """The limit of an answer, and by trust how many of its places texts of at most that trust may take.

    `one` says how many of these places one origin may take if others match as well.
    """

    limit: int
    most: tuple[int, ...]
    one: tuple[int, ...]

    def said(self, trust: Trust) -> str:
        """Why an entry of this trust waits behind more trusted ones."""
        return (
            f"text of no more trust than {trust.name.lower()} has {self.most[trust]} of {self.limit} places while more "
            "trusted text matches, and others have them; `shares` in the spec decides it"
        )


def shares_of(spec: Mapping[str, float], limit: int) -> Shares:
    """The shares of a spec, in places. The author's entries may take all."""
    parts = [spec.get(trust.name.lower(), 1.0) for trust in _BELOW]
    most = [_rounded(part, limit) for part in parts]
    one = [max(1, _rounded(part, places)) for part, places in zip(parts, most, strict=True)]
    return Shares(limit, (*most, limit), (*one, limit))


def _rounded(part: float, places: int) -> int:
    return int(part * places + 0.5)


def arranged(trusts: Sequence[Trust], shares: Shares, origins: Mapping[int, str] | None = None) -> list[int]:
    """The positions in a new order: texts over their share wait behind all that are trusted more.

    `origins` names the origin of some of the first positions. Of these, one origin that has its part of a share waits
    behind the others of the same trust.
    """
    order = list(range(len(trusts)))
    if len(set(trusts)) > 1 or len(set((origins or {}).values())) > 1:
        _take_turns(order, trusts, shares, origins or {})
        order = _within_shares(order, trusts, shares)
    return order


def _within_shares(order: Sequence[int], trusts: Sequence[Trust], shares: Shares) -> list[int]:
    """A share binds as long as something of more trust waits, so each round places the most trusted that are left."""
    taken = [0] * len(Trust)
    placed: list[int] = []
    waiting = list(order)
    while waiting:
        binding = [level for level in _BELOW if level < max(trusts[position] for position in waiting)]
        later: list[int] = []
        for position in waiting:
            trust, so_far = trusts[position], list(accumulate(taken))
            if any(so_far[level] >= shares.most[level] for level in binding if level >= trust):
                later.append(position)
            else:
                taken[trust] += 1
                placed.append(position)
        waiting = later
    return placed


def _take_turns(order: list[int], trusts: Sequence[Trust], shares: Shares, origins: Mapping[int, str]) -> None:
    """Move an origin that has its part behind others of the same trust. Each trust keeps its positions."""
    for trust in _BELOW:
        held = [position for position in origins if trusts[position] is trust]
        if len({origins[position] for position in held}) < 2:
            continue
        counts = Counter[str]()
        first: list[int] = []
        later: list[int] = []
        for position in held:
            counts[origins[position]] += 1
            (first if counts[origins[position]] <= shares.one[trust] else later).append(position)
        for place, position in zip(held, [*first, *later], strict=True):
            order[place] = position


def crowded_out(trusts: Iterable[Trust], wanted: int) -> list[Trust]:
    """The trusts, highest first, from which on a full search brought fewer entries than wanted, among others.

    Less trusted text may have crowded more trusted text out of the candidates, so it is worth asking for it alone.
    """
    counts = Counter(trusts)
    total, above = sum(counts.values()), 0
    asked: list[Trust] = []
    for trust in (Trust.AUTHOR, Trust.AGENT, Trust.IMPORTED):
        above += counts[trust]
        if above >= wanted or above == total:
            break
        asked.append(trust)
    return asked
