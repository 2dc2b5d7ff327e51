"""Verbs about settings: which models are in use, a trial of one, and what the spec of a workspace decides."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from lukasa.model.grant import Capability
from lukasa.spec.in_words import in_words
from lukasa.surfaces.api.verb import Call, NoInput, Verb, VerbInput, VerbOutput


class TrialOut(VerbOutput):
    """Whether a model can be used, or what came of one question to it."""

    name: str
    works: bool
    took_ms: float
    said: str
    reason: str
    fix: str
    host: str


class ModelsOut(VerbOutput):
    """The models that the environment names, and where memory is. Keys are never part of it."""

    chat_setting: str
    chat: TrialOut
    embedder_setting: str
    embedder: TrialOut
    tokens_a_day: int | None = None
    cost_a_day: float | None = None
    data: str
    database: str


class TryIn(VerbInput):
    what: Literal["chat", "embedder"] = Field(description="The language model, or the model for search by meaning.")
    setting: str | None = Field(None, max_length=300, description="A setting to try; the present one if left out.")


class TierWordsOut(VerbOutput):
    name: str
    about: str
    sentences: list[str]


class SpecWordsOut(VerbOutput):
    """What a spec decides, in sentences."""

    name: str
    title: str
    about: str
    tiers: list[TierWordsOut]
    sentences: list[str]


def models(call: Call, given: NoInput) -> ModelsOut:
    return ModelsOut.of(call.access.memory.models())


def try_model(call: Call, given: TryIn) -> TrialOut:
    return TrialOut.of(call.access.memory.try_model(given.what, given.setting))


def spec(call: Call, given: NoInput) -> SpecWordsOut:
    return SpecWordsOut.of(in_words(call.workspace.spec))


VERBS = (
    Verb(
        "settings_show",
        "Show which models the settings name and whether they can be used, and where memory is. No key is shown.",
        Capability.GRANTS,
        "GET",
        "/settings",
        NoInput,
        ModelsOut,
        models,
        owner_only=True,
        tool=False,
    ),
    Verb(
        "settings_try",
        "Ask a model once and say what came of it. The question goes to the model's provider; nothing is kept.",
        Capability.GRANTS,
        "POST",
        "/settings/try",
        TryIn,
        TrialOut,
        try_model,
        owner_only=True,
        tool=False,
    ),
    Verb(
        "workspace_spec",
        "Show what the spec of a workspace decides, in sentences.",
        Capability.READ,
        "GET",
        "/workspaces/{workspace}/spec",
        NoInput,
        SpecWordsOut,
        spec,
        owner_only=True,
        tool=False,
    ),
)
