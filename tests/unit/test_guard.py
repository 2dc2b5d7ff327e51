"""What holds a worker back from a model: a breaker that opens, and a budget that is spent."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from lukasa.model.errors import ChatMalformed, ChatRefused, ChatUnavailable, InvalidInput
from lukasa.model.telemetry import Spending
from lukasa.ports import Usage
from lukasa.service.jobs.allowance import FAILURES, FIRST, LONGEST, PROBE, ModelGuard, NotNow
from lukasa.service.jobs.budget import Budget, Price
from tests.helpers.making import FixedClock
from tests.unit.test_task import Scripted

DOWN = ChatUnavailable("no connection")


class Watched:
    """A guard, its clock, and a model."""

    def __init__(self, budget: Budget | None = None, spent: list[Spending] | None = None) -> None:
        self.clock = FixedClock()
        self.model = Scripted([], name="openai:gpt-x")
        self.guard = ModelGuard(self.clock, budget or Budget(), lambda day: [s for s in spent or [] if s.day >= day])

    def later(self, pause: timedelta) -> None:
        self.clock.time += pause

    def refused_until(self) -> datetime | None:
        try:
            self.guard.check(self.model)
        except NotNow as later:
            return later.until
        return None

    def fail(self, times: int = FAILURES) -> None:
        for _ in range(times):
            self.guard.check(self.model)
            self.guard.failed(self.model, DOWN)


def test_a_breaker_opens_after_failures_in_a_row() -> None:
    """T06: some failures are let pass, and a success starts the count anew."""
    w = Watched()
    w.fail(FAILURES - 1)
    w.guard.succeeded(w.model)
    w.fail(FAILURES - 1)
    assert w.refused_until() is None
    w.guard.failed(w.model, DOWN)
    assert w.refused_until() == w.clock.now() + FIRST


def test_one_probe_decides() -> None:
    """T06: after the pause one call goes through: failing, it doubles the pause; answered, it closes the breaker."""
    w = Watched()
    w.fail()
    pause = FIRST
    while pause < LONGEST:
        w.later(pause)
        assert w.refused_until() is None
        assert w.refused_until() is not None  # somebody is asking already
        w.guard.failed(w.model, DOWN)
        pause = min(pause * 2, LONGEST)
        assert w.refused_until() == w.clock.now() + pause
    w.later(pause)
    w.guard.check(w.model)
    w.guard.succeeded(w.model)
    w.fail(FAILURES - 1)
    assert w.refused_until() is None


def test_a_probe_that_died_is_replaced() -> None:
    """T06: its worker was killed while it asked; the breaker does not stay open for ever."""
    w = Watched()
    w.fail()
    w.later(FIRST)
    w.guard.check(w.model)
    w.later(PROBE)
    assert w.refused_until() is None


def test_a_providers_pause_opens_at_once() -> None:
    """T05: 429 with Retry-After holds for all jobs, not only for the one that heard it."""
    w = Watched()
    w.guard.failed(w.model, ChatUnavailable("429", retry_after=90.0))
    assert w.refused_until() == w.clock.now() + timedelta(seconds=90)
    w.later(timedelta(seconds=90))
    assert w.refused_until() is None


def test_a_refusal_counts_and_a_bad_answer_does_not() -> None:
    """T06: a wrong key fails for everybody; an answer that cannot be used is the job's own trouble."""
    w = Watched()
    for _ in range(FAILURES * 2):
        w.guard.failed(w.model, ChatMalformed("not JSON"))
    assert w.refused_until() is None
    for _ in range(FAILURES):
        w.guard.failed(w.model, ChatRefused("401"))
    assert w.refused_until() is not None


def test_models_have_breakers_of_their_own() -> None:
    """T06: one provider's trouble does not stop another's work."""
    w = Watched()
    w.fail()
    w.guard.check(Scripted([], name="anthropic:claude-y"))


def test_a_spent_budget_waits_for_tomorrow() -> None:
    """T06: by tokens or by cost, over all that was spent today, whoever spent it; yesterday's does not count."""
    today = Spending("2026-11-15", "openai:gpt-x", 3, 900, 100, 0.75)
    midnight = datetime.fromisoformat("2026-11-16T00:00:00+00:00")
    assert Watched(Budget(tokens=1001), [today]).refused_until() is None
    assert Watched(Budget(tokens=1000), [today]).refused_until() == midnight
    assert Watched(Budget(cost=0.75), [today]).refused_until() == midnight
    w = Watched(Budget(tokens=1000), [today])
    w.clock.time = midnight
    assert w.refused_until() is None


def test_tokens_have_a_price() -> None:
    """T1: per million, by the model's whole name or without its provider; nothing where none is set."""
    w = Watched(Budget(prices={"gpt-x": Price(0.25, 2.0)}))
    assert w.guard.cost(w.model, Usage(1_000_000, 500_000)) == 1.25
    assert w.guard.cost(Scripted([], name="local"), Usage(10, 10)) == 0.0


def test_the_budget_is_read_from_the_environment() -> None:
    """B1: nothing needs to be set; what is set wrongly is said with what to write."""
    assert Budget.read({}) == Budget()
    env = {
        "LUKASA_BUDGET_TOKENS": "200_000",
        "LUKASA_BUDGET_COST": "1.5",
        "LUKASA_PRICES": "openai:gpt-x=0.25/2, y=3/15",
    }
    prices = {"openai:gpt-x": Price(0.25, 2.0), "y": Price(3.0, 15.0)}
    assert Budget.read(env) == Budget(200_000, 1.5, prices)


@pytest.mark.parametrize(
    "env",
    [
        {"LUKASA_BUDGET_TOKENS": "many"},
        {"LUKASA_BUDGET_TOKENS": "-1"},
        {"LUKASA_BUDGET_COST": "nan"},
        {"LUKASA_PRICES": "gpt-x"},
        {"LUKASA_PRICES": "gpt-x=1"},
        {"LUKASA_PRICES": "=1/2"},
    ],
)
def test_a_wrong_budget_is_refused(env: dict[str, str]) -> None:
    """B1: a typo must not become no limit at all."""
    with pytest.raises(InvalidInput) as refused:
        Budget.read(env)
    assert refused.value.fix
