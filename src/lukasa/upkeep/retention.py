"""Which backups to keep: a pure function of their times."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import datetime

from msgspec import Struct

from lukasa.model.errors import InvalidInput

_RULE = re.compile(r"([1-9]\d{0,3})([hdwmy])", re.ASCII)
_PERIODS: dict[str, Callable[[datetime], tuple[int, ...]]] = {
    "h": lambda at: (at.year, at.month, at.day, at.hour),
    "d": lambda at: (at.year, at.month, at.day),
    "w": lambda at: tuple(at.isocalendar())[:2],
    "m": lambda at: (at.year, at.month),
    "y": lambda at: (at.year,),
}


class Retention(Struct, frozen=True):
    """Keep the newest `last` backups, and the newest of each of the last n hours, days, weeks, months or years that
    have one. Without any rule, all are kept."""

    last: int = 0
    periods: tuple[tuple[int, str], ...] = ()

    @classmethod
    def read(cls, keep: str = "", last: int | None = None) -> Retention:
        """Read `7d/4w/12m`, and how many to keep in any case."""
        if last is not None and (isinstance(last, bool) or not isinstance(last, int) or not 1 <= last <= 100_000):
            raise InvalidInput(f"{str(last)[:20]} backups cannot be kept", fix="keep at least the last 1")
        found = [_RULE.fullmatch(word.strip()) for word in keep.split("/")] if keep else []
        if any(one is None for one in found):
            raise InvalidInput(
                f"{keep[:60]!r} does not say what to keep",
                fix="write numbers of hours, days, weeks, months or years, as in 7d/4w/12m",
            )
        return cls(last or 0, tuple((int(one[1]), one[2]) for one in found if one))

    def going(self, times: Sequence[datetime]) -> list[datetime]:
        """Return the times of the backups that no rule keeps. The newest one always stays."""
        if not self.last and not self.periods:
            return []
        newest = sorted(times, reverse=True)
        kept = set(newest[: max(self.last, 1)])
        for count, unit in self.periods:
            periods: dict[tuple[int, ...], datetime] = {}
            for at in newest:
                periods.setdefault(_PERIODS[unit](at), at)
            kept.update(list(periods.values())[:count])
        return [at for at in newest if at not in kept]
