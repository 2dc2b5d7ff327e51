"""Decay: the documented figures, and what restores."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from lukasa.model.entry import Access, Entry
from lukasa.model.timestamps import micros
from lukasa.model.values import Kind, State
from lukasa.read.decay import awaits_disposition, decay_factor, frequency, relevance
from lukasa.spec import load_preset
from lukasa.spec.types import Decay, DecayModel, Lifecycle, LifecyclePolicy
from tests.helpers.making import make_entry

NOW = datetime(2026, 11, 15, tzinfo=UTC)


def aged(hours: float, **changes: object) -> Entry:
    made = NOW - timedelta(hours=hours)
    return replace(make_entry(at=made), **changes)


@pytest.mark.parametrize(("hours", "left"), [(24, 0.886), (168, 0.431), (720, 0.027)])
def test_check_values(hours: float, left: float) -> None:
    """D1: 0.995 an hour leaves 0.886 after a day, 0.431 after a week, 0.027 after thirty days."""
    assert decay_factor(Decay(DecayModel.HOURLY, 0.995), aged(hours), None, NOW) == pytest.approx(left, abs=1e-3)


@pytest.mark.parametrize(("tier", "left"), [("channel", 0.185), ("workspace", 0.431), ("account", 0.714)])
def test_workspace_preset_keeps_by_tier(tier: str, left: float) -> None:
    """D1: after a week unread, the `workspace` preset keeps about 18, 43 and 71 percent by tier."""
    decay = load_preset("workspace").behaviour(tier, Kind.SEMANTIC).decay
    assert decay_factor(decay, aged(168), None, NOW) == pytest.approx(left, abs=5e-3)


def test_conversation_does_not_decay_in_the_workspace_preset() -> None:
    """D1: conversation entries have no decay there."""
    decay = load_preset("workspace").behaviour("conversation", Kind.EPISODIC).decay
    assert decay_factor(decay, aged(10_000), None, NOW) == 1.0


def test_relevance_formula() -> None:
    """D1: relevance = importance × decay × (1 + ln(1 + accesses))."""
    assert relevance(0.5, 0.8, frequency(Access(1, micros(NOW)))) == pytest.approx(0.5 * 0.8 * 1.6931, abs=1e-4)


def test_reading_restores() -> None:
    """D1, D4: hours count from the last access, so a read restores."""
    decay = Decay(DecayModel.HOURLY, 0.995)
    assert decay_factor(decay, aged(720), Access(1, micros(NOW)), NOW) == 1.0


def test_restating_restores() -> None:
    """D4: stating the same again restores as reading does."""
    decay = Decay(DecayModel.HOURLY, 0.995)
    assert decay_factor(decay, aged(720, confirmed_at=NOW), None, NOW) == 1.0


def test_observer_preset_halves_in_seventy_days() -> None:
    """D2: exp(−0.01 × days) leaves half after about seventy days."""
    decay = load_preset("observer").behaviour("workspace", Kind.SEMANTIC).decay
    assert decay_factor(decay, aged(70 * 24), None, NOW) == pytest.approx(0.497, abs=1e-3)


def test_stale_counts_half_again() -> None:
    """D2: a stale entry weighs half of what its age alone leaves."""
    decay = load_preset("observer").behaviour("workspace", Kind.SEMANTIC).decay
    fresh, stale = aged(240), aged(240, state=State.STALE)
    assert decay_factor(decay, stale, None, NOW) == pytest.approx(decay_factor(decay, fresh, None, NOW) / 2)


def test_validity_window_is_full_then_fades_and_corroboration_extends_it() -> None:
    """D3: inside its window a fact is whole; beyond it fades; stating it again moves the window."""
    decay = Decay(DecayModel.VALIDITY, rate=0.99, window_days=30)
    inside, beyond = aged(29 * 24), aged(40 * 24)
    assert decay_factor(decay, inside, None, NOW) == 1.0
    assert decay_factor(decay, beyond, None, NOW) < 0.1
    assert decay_factor(decay, replace(beyond, confirmed_at=NOW), None, NOW) == 1.0


def test_procedural_memory_is_exempt_in_the_anchored_preset() -> None:
    """D3: procedures do not decay."""
    decay = load_preset("anchored").behaviour("persistent", Kind.PROCEDURAL).decay
    assert decay_factor(decay, aged(100_000), None, NOW) == 1.0


def test_forcing_function_asks_for_a_disposition() -> None:
    """D3: an old unread episode of the persistent tier ends up waiting to be promoted, exempted or archived."""
    rules, entry = load_preset("anchored").behaviour("persistent", Kind.EPISODIC), aged(365 * 24)
    old = relevance(0.5, decay_factor(rules.decay, entry, None, NOW), 1.0)
    assert awaits_disposition(rules, entry, old)
    assert not awaits_disposition(rules, entry, relevance(0.5, 1.0, 1.0))
    indefinite = replace(rules, lifecycle=Lifecycle(LifecyclePolicy.INDEFINITE))
    assert not awaits_disposition(indefinite, entry, old)


def test_conversation_fades_only_once_it_has_closed() -> None:
    """D4: in the `tiered` preset a conversation's entries keep their weight until it closes."""
    decay = load_preset("tiered").behaviour("conversation", Kind.EPISODIC).decay
    entry = aged(500)
    assert decay_factor(decay, entry, None, NOW, None) == 1.0
    assert decay_factor(decay, entry, None, NOW, NOW - timedelta(hours=400)) < 1.0


@given(
    st.sampled_from(list(DecayModel)),
    st.floats(0.01, 1.0),
    st.floats(-1e6, 1e6),
    st.integers(0, 10**9),
)
def test_decay_stays_in_bounds(model: DecayModel, rate: float, hours: float, count: int) -> None:
    """D1–D4: no clock, age or count takes a factor out of (0, 1]."""
    factor = decay_factor(Decay(model, rate, window_days=1), aged(hours), Access(count, micros(NOW)), NOW, NOW)
    assert 0 < factor <= 1
