"""What holds between the sections of a spec: each is well-formed alone, these are about how they meet."""

from __future__ import annotations

from lukasa.spec.decode import Problems, literal
from lukasa.spec.types import DecayModel, MemorySpec

# Keys that name something inside one workspace; the account's store is shared by all of them.
INSIDE_WORKSPACE = frozenset({"workspace", "channel", "conversation", "session", "thread"})


def cross_check(spec: MemorySpec, problems: Problems) -> None:
    for one in (_tiers, _homes, _promotions, _decays, _maintenance, _signals):
        one(spec, problems)


def _tiers(spec: MemorySpec, problems: Problems) -> None:
    names = [tier.name for tier in spec.tiers]
    for n, name in enumerate(names, 1):
        if name and name in names[: n - 1]:
            problems.add(f"tiers[{n}].name", f"{name!r} is named twice", f'write: name = "{name}-2"')
    if not any(tier.persistent for tier in spec.tiers):
        problems.add(
            f"tiers[{len(names)}].persistent",
            "no tier is persistent: nothing would outlive its scope",
            "write: persistent = true",
        )


def _homes(spec: MemorySpec, problems: Problems) -> None:
    seen_account = False
    for n, tier in enumerate(spec.tiers, 1):
        if tier.home == "account":
            seen_account = True
            inside = [key.name for key in tier.anchor if key.name in INSIDE_WORKSPACE]
            if inside:
                problems.add(
                    f"tiers[{n}].anchor",
                    f"a tier at home in the account cannot be scoped by {', '.join(inside)}, which a workspace holds",
                    'write: anchor = ["account"], or home = "workspace"',
                )
        elif seen_account:
            problems.add(
                f"tiers[{n}]",
                f"{tier.name!r} comes after an account tier; tiers go from the narrowest to the broadest",
                f"move [[tiers]] {tier.name} before the account tier",
            )


def _promotions(spec: MemorySpec, problems: Problems) -> None:
    order = [tier.name for tier in spec.tiers]
    for (tier, kind), behaviour in spec.behaviours.items():
        to = behaviour.promotion.to
        key = f"behaviour.promotion.{tier}.{kind.value}.to"
        allowed = order[order.index(tier) :]
        if to and to not in order:
            problems.add(key, f"unknown tier {to[:60]!r}", f'write: to = "next", or one of {", ".join(allowed)}')
        elif to and to not in allowed:
            problems.add(
                key, f"{to!r} is narrower than {tier!r}: promotion rises", f"write: to = {literal(allowed[-1])}"
            )


def _decays(spec: MemorySpec, problems: Problems) -> None:
    for (tier, kind), behaviour in spec.behaviours.items():
        decay = behaviour.decay
        if decay.model is DecayModel.VALIDITY and decay.window_days <= 0:
            problems.add(
                f"behaviour.decay.{tier}.{kind.value}.window_days",
                "a validity window must be longer than nothing",
                "write: window_days = 90.0",
            )


def _maintenance(spec: MemorySpec, problems: Problems) -> None:
    for (tier, kind), behaviour in spec.behaviours.items():
        stale, forget = behaviour.consolidation.stale_after_days, behaviour.consolidation.forget_after_days
        if forget and not 0 < stale <= forget:
            problems.add(
                f"behaviour.consolidation.{tier}.{kind.value}.forget_after_days",
                "an entry is forgotten only after it has been stale",
                f"write: stale_after_days = {forget / 2}",
            )


def _signals(spec: MemorySpec, problems: Problems) -> None:
    if spec.backend.embedder == "none" and spec.retrieval.signals == ("vector",):
        problems.add(
            "retrieval.signals",
            "only vectors are searched, and there is no embedder to make them",
            'write under [retrieval]: signals = ["keyword", "vector"]',
        )
