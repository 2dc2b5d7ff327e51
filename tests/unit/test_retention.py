"""Which backups stay."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lukasa.model.errors import InvalidInput
from lukasa.upkeep.retention import Retention

NOW = datetime(2026, 11, 19, 12, tzinfo=UTC)
HOURLY = [NOW - timedelta(hours=n) for n in range(24 * 30)]


def test_without_a_rule_all_stay() -> None:
    """H4: nothing goes that nobody asked to remove."""
    assert Retention.read().going(HOURLY) == []


def test_the_last_n_stay() -> None:
    assert Retention.read(last=3).going(HOURLY) == HOURLY[3:]


def test_the_newest_of_each_period_stays() -> None:
    """H4: one of each of the last days, and of each of the last weeks, both the newest of theirs."""
    going = set(Retention.read("3d/2w").going(HOURLY))
    kept = [at for at in HOURLY if at not in going]
    assert kept == [NOW, NOW.replace(day=18, hour=23), NOW.replace(day=17, hour=23), NOW.replace(day=15, hour=23)]


def test_days_without_a_backup_do_not_count() -> None:
    """H4: if nobody made backups for a month, those of before stay."""
    times = [NOW, NOW - timedelta(days=40), NOW - timedelta(days=41)]
    assert Retention.read("3d").going(times) == []


@given(st.lists(st.datetimes(timezones=st.just(UTC)), min_size=1, max_size=40), st.sampled_from(["1h", "2d/1w", "1y"]))
def test_the_newest_never_goes(times: list[datetime], rule: str) -> None:
    going = Retention.read(rule).going(times)
    assert max(times) not in going
    assert set(going) <= set(times)


@pytest.mark.parametrize("rule", ["7", "d", "0d", "7d,4w", "-1d", "7x", "7d//4w"])
def test_a_rule_that_means_nothing_is_refused(rule: str) -> None:
    with pytest.raises(InvalidInput, match="does not say what to keep"):
        Retention.read(rule)
