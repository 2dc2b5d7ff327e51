"""When a failed job is tried again: later each time, never all at once, and no sooner than the provider asks."""

from __future__ import annotations

from datetime import timedelta

FIRST = 30.0  # seconds
LONGEST = 3600.0
LONGEST_ASKED = 86_400.0  # a provider that asks for more than a day is asked again tomorrow


def pause(attempt: int, dice: float, asked: float | None = None) -> timedelta:
    """The pause after the `attempt`-th failure. `dice` in [0, 1) spreads jobs that failed together."""
    doubled = min(FIRST * 2.0 ** min(attempt - 1, 30), LONGEST)
    seconds = doubled * (0.5 + 0.5 * dice)
    if asked is not None:
        seconds = max(seconds, min(asked, LONGEST_ASKED) * (1.0 + 0.1 * dice))
    return timedelta(seconds=seconds)
