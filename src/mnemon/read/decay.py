"""How relevance fades, and what restores it. Decay ranks; it never deletes."""

from __future__ import annotations

import math
from datetime import datetime, timedelta

from mnemon.model.entry import Access, Entry
from mnemon.model.values import State
from mnemon.spec.types import Decay, DecayModel


def hours_between(earlier: datetime, later: datetime) -> float:
    """Never negative: a clock set back must not make a memory stronger than it was."""
    return max(0.0, (later - earlier).total_seconds() / 3600)


def last_seen(entry: Entry, access: Access | None) -> datetime:
    """The last time an entry was read or stated again; both restore it."""
    return max(entry.confirmed_at, access.at) if access else entry.confirmed_at


def decay_factor(
    decay: Decay, entry: Entry, access: Access | None, now: datetime, closed_at: datetime | None = None
) -> float:
    """What time has left of an entry, in (0, 1]."""
    if entry.exempt:
        return 1.0
    factor = _by_model(decay, entry, access, now, closed_at)
    return factor * decay.stale_factor if entry.state is State.STALE else factor


def _by_model(decay: Decay, entry: Entry, access: Access | None, now: datetime, closed_at: datetime | None) -> float:
    match decay.model:
        case DecayModel.NONE | DecayModel.EXEMPT:
            return 1.0
        case DecayModel.HOURLY | DecayModel.FORCING:
            return _power(decay.rate, hours_between(last_seen(entry, access), now))
        case DecayModel.DAILY:
            return _power(math.exp(-decay.rate), hours_between(entry.confirmed_at, now) / 24)
        case DecayModel.VALIDITY:
            end = entry.confirmed_at + timedelta(days=decay.window_days)
            return _power(decay.rate, hours_between(end, now))
        case DecayModel.SCOPE_CLOSE:
            since = max(closed_at, last_seen(entry, access)) if closed_at else now
            return _power(decay.rate, hours_between(since, now))


def _power(rate: float, time: float) -> float:
    return max(math.pow(rate, time), 1e-300)  # an age that underflows must still be told from nothing


def frequency(access: Access | None) -> float:
    return 1.0 + math.log1p(access.count if access else 0)


def relevance(importance: float, factor: float, frequency: float) -> float:
    """importance × decay × frequency: the standing of an entry before any question is asked."""
    return importance * factor * frequency


def awaits_disposition(decay: Decay, value: float) -> bool:
    """True if an entry under a forcing function has sunk so far that it must be promoted, exempted or archived."""
    return decay.model is DecayModel.FORCING and value < decay.threshold
