"""A spec in sentences, for people who look at their memory and not at its file."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from lukasa.model.values import Kind
from lukasa.spec.types import (
    Behaviour,
    ByRule,
    ConflictRule,
    Decay,
    DecayModel,
    LifecyclePolicy,
    MemorySpec,
    Tier,
    WriteMode,
)

_KINDS = {Kind.SEMANTIC: "facts", Kind.EPISODIC: "events", Kind.PROCEDURAL: "rules"}


class TierWords(Struct, frozen=True):
    """What a spec says of one tier: what it is for, and a sentence for each thing that holds for its entries."""

    name: str
    about: str
    sentences: tuple[str, ...]


class SpecWords(Struct, frozen=True):
    name: str
    title: str
    about: str
    tiers: tuple[TierWords, ...]
    sentences: tuple[str, ...]


def in_words(spec: MemorySpec) -> SpecWords:
    """Say in sentences what a spec decides, the broadest tier first."""
    tiers = tuple(TierWords(tier.name, tier.description, tuple(_tier(spec, tier))) for tier in reversed(spec.tiers))
    return SpecWords(spec.name, spec.title, spec.description, tiers, tuple(_whole(spec)))


def _whole(spec: MemorySpec) -> Iterator[str]:
    signals = ", ".join(spec.retrieval.signals)
    yield f"A read finds memories by {signals}."
    yield f"A context for a prompt has at most {spec.context_budget:,} tokens, besides the pages that are always in it."
    if spec.disclosure.record:
        yield f"What agents were shown is noted for {spec.disclosure.keep_days} days, as ids and numbers."
    else:
        yield "What agents were shown is not noted."
    for gate in spec.sanitization:
        to = f"to {gate.to}" if gate.to else f"into {gate.into or 'every tier'}"
        yield f"On the way {to}: {', '.join(name.replace('_', ' ') for name in gate.transforms)}."


def _tier(spec: MemorySpec, tier: Tier) -> Iterator[str]:
    if tier.home == "account":
        yield "It belongs to the account: every workspace sees it."
    else:
        yield "It belongs to this workspace."
    if not tier.persistent:
        yield f"It ends with its {tier.boundary.event.removesuffix('_end').replace('_', ' ')}."
    readers = spec.readers(tier.name)
    yield {
        "shared": "Every agent of the workspace reads it.",
        "participants": "Only agents that take part in it read it.",
        "owner": "Each agent reads only its own.",
    }[readers.agents]
    kinds: dict[str, list[str]] = {}
    for kind in tier.typology:
        for sentence in _behaviour(spec.behaviour(tier.name, kind)):
            kinds.setdefault(sentence, []).append(_KINDS[kind])
    for sentence, those in kinds.items():
        who = "Everything here" if len(those) == len(tier.typology) else " and ".join(those).capitalize()
        yield f"{who}: {sentence}."


def _behaviour(behaviour: Behaviour) -> Iterator[str]:
    yield {
        WriteMode.AUTO: "kept as it is observed",
        WriteMode.EXPLICIT: "kept only if somebody decides to",
        WriteMode.PROMOTION: "what agents and observers write waits until it is promoted",
        WriteMode.MIXED: "kept if somebody decides to, or if an observer is sure",
    }[behaviour.write.mode]
    yield _decay(behaviour.decay)
    if behaviour.lifecycle.policy is LifecyclePolicy.DROP:
        yield "goes with its scope, unless it is promoted"
    if behaviour.promotion.to:
        yield f"may be promoted to {behaviour.promotion.to}"
    if behaviour.conflict.by_rule is ByRule.RETIRE and behaviour.conflict.rule is not ConflictRule.NOOP:
        yield "a newer statement retires the older one by rule"
    else:
        yield "two statements that differ both stay, the later one first"
    often = f"{behaviour.injection.budget:,} tokens"
    always = behaviour.injection.mode == "always"
    yield (
        f"always in the prompt, up to {often}" if always else f"in the prompt when it fits the question, up to {often}"
    )


def _decay(decay: Decay) -> str:
    half = "fades while nobody uses it"
    if decay.model in (DecayModel.NONE, DecayModel.EXEMPT):
        return "never fades"
    if decay.model is DecayModel.VALIDITY:
        return f"stays fresh for {decay.window_days:g} days after it was last confirmed, then fades"
    if decay.model is DecayModel.SCOPE_CLOSE:
        return "fades once its scope is closed"
    if decay.model is DecayModel.FORCING:
        return f"{half}, and waits for a decision when little is left"
    return half if decay.model is DecayModel.HOURLY else "fades day by day"
