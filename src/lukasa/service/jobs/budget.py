"""The budget of background work: the tokens and cost allowed in a day, and the prices of models."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from msgspec import Struct, field

from lukasa.model.errors import InvalidInput
from lukasa.model.telemetry import Spending

MILLION = 1_000_000


class Price(Struct, frozen=True):
    """The price of a million tokens, in the currency of the budget."""

    prompt: float
    completion: float


class Budget(Struct, frozen=True):
    """The most that background work may use in a day (UTC). None is no limit."""

    tokens: int | None = None
    cost: float | None = None
    prices: Mapping[str, Price] = field(default_factory=dict)

    @classmethod
    def read(cls, env: Mapping[str, str]) -> Budget:
        """Read LUKASA_BUDGET_TOKENS, LUKASA_BUDGET_COST and LUKASA_PRICES, as in `gpt-x=0.25/2, claude-y=3/15`."""
        tokens, cost = (_amount(env, name) for name in ("LUKASA_BUDGET_TOKENS", "LUKASA_BUDGET_COST"))
        listed = [part.strip() for part in env.get("LUKASA_PRICES", "").split(",") if part.strip()]
        return cls(None if tokens is None else int(tokens), cost, dict(_priced(part) for part in listed))

    def price(self, model: str) -> Price | None:
        """Look up a price by the model's whole name, or by the part after the provider."""
        return self.prices.get(model) or self.prices.get(model.partition(":")[2])

    def exceeded(self, spent: Sequence[Spending]) -> str:
        """Say which limit is reached; empty if none is."""
        tokens = sum(s.prompt + s.completion for s in spent)
        cost = sum(s.cost for s in spent)
        if self.tokens is not None and tokens >= self.tokens:
            return f"the day's budget of {self.tokens:,} tokens is spent"
        if self.cost is not None and cost >= self.cost:
            return f"the day's budget of {self.cost:g} is spent"
        return ""


def _amount(env: Mapping[str, str], name: str) -> float | None:
    text = env.get(name, "").strip().replace("_", "")
    if not text:
        return None
    return _number(text, f"{name}={text[:60]}")


def _priced(part: str) -> tuple[str, Price]:
    model, _, prices = part.rpartition("=")
    prompt, _, completion = prices.partition("/")
    if not model.strip():
        raise InvalidInput(
            f"LUKASA_PRICES holds {part[:60]!r}, which names no model",
            fix="write MODEL=PROMPT/COMPLETION, per million tokens",
        )
    return model.strip(), Price(
        _number(prompt, f"the price {part[:60]!r}"), _number(completion, f"the price {part[:60]!r}")
    )


def _number(text: str, what: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number) or number < 0:
        raise InvalidInput(f"{what} is not a number from 0", fix="write a number, such as 200000 or 1.50")
    return number
