"""How relevance fades with time, and how a read or a restatement restores it. Decay ranks; it never deletes."""

from __future__ import annotations

import math
from datetime import datetime
from functools import lru_cache
from typing import NamedTuple

from lukasa.model.candidate import Candidate, candidate_of
from lukasa.model.entry import Access, Entry
from lukasa.model.timestamps import HOUR, micros, micros_or_none
from lukasa.model.values import State
from lukasa.spec.types import Behaviour, Decay, DecayModel, LifecyclePolicy


class DecayCurve(NamedTuple):
    """A decay rule ready for use: the factor of each hour, and the time from which hours count."""

    hourly: float
    by_reading: bool = False  # hours count from the last read, if that is later
    window: int = 0  # microseconds during which nothing fades
    at_close: bool = False  # nothing fades before the conversation has ended
    stale: float = 1.0

    def of(self, candidate: Candidate, access: Access | None, now: int, closed_at: int | None) -> float:
        """The factor that is left for an entry, in (0, 1]. A clock that was set back must not strengthen a memory."""
        if candidate.exempt:
            return 1.0
        left, hourly = 1.0, self.hourly
        if hourly != 1.0 and not (self.at_close and closed_at is None):
            since = candidate.confirmed_at + self.window
            if access is not None and access.micros > since and self.by_reading:
                since = access.micros
            if closed_at is not None and self.at_close and closed_at > since:
                since = closed_at
            if now > since:
                left = hourly ** ((now - since) / HOUR) or 1e-300  # an underflow must not become zero
        return left * self.stale if candidate.state is State.STALE else left


@lru_cache(maxsize=256)
def decay_curve(decay: Decay) -> DecayCurve:
    match decay.model:
        case DecayModel.NONE | DecayModel.EXEMPT:
            return DecayCurve(1.0, stale=decay.stale_factor)
        case DecayModel.HOURLY | DecayModel.FORCING:
            return DecayCurve(decay.rate, by_reading=True, stale=decay.stale_factor)
        case DecayModel.DAILY:
            return DecayCurve(math.exp(-decay.rate / 24), stale=decay.stale_factor)
        case DecayModel.VALIDITY:
            return DecayCurve(decay.rate, window=round(decay.window_days * 24 * HOUR), stale=decay.stale_factor)
        case DecayModel.SCOPE_CLOSE:
            return DecayCurve(decay.rate, by_reading=True, at_close=True, stale=decay.stale_factor)


def last_seen(entry: Entry, access: Access | None) -> datetime:
    """The last time that an entry was read or stated again; both restore it."""
    return max(entry.confirmed_at, access.at) if access else entry.confirmed_at


def decay_factor(
    decay: Decay, entry: Entry, access: Access | None, now: datetime, closed_at: datetime | None = None
) -> float:
    """The factor that time has left for an entry, in (0, 1]."""
    return decay_curve(decay).of(candidate_of(entry), access, micros(now), micros_or_none(closed_at))


def frequency(access: Access | None) -> float:
    return often(access.count if access else 0)


def often(reads: int) -> float:
    return 1.0 + math.log1p(reads)


def relevance(importance: float, factor: float, frequency: float) -> float:
    """importance × decay × frequency: the relevance of an entry now, before any question is asked."""
    return importance * factor * frequency


def awaits_disposition(behaviour: Behaviour, entry: Entry, value: float) -> bool:
    """Whether an entry has faded so far that it must be promoted, exempted or archived, as its lifecycle asks."""
    waits = behaviour.lifecycle.policy is LifecyclePolicy.DISPOSE and not entry.exempt
    return waits and value < behaviour.decay.threshold
