"""The models of the settings, and a trial of one: ask it once, and say what came of it. No key is shown."""

from __future__ import annotations

import os
import time
from importlib import import_module

from lukasa.app.outside import shared_embedder
from lukasa.app.settings import Settings
from lukasa.model.errors import InvalidInput, LukasaError
from lukasa.ports import Message, ModelsInUse, ModelTrial

_QUESTION = "Answer with one short sentence: are you there?"
_TEXTS = ("The deploys go out on Tuesdays.", "When do we release?", "Bananas are yellow.")
_MOST_SAID = 400
_TIMEOUT = 30.0
_NAMED_PROGRAMS = ("claude", "codex", "gemini", "ollama")


def in_use(settings: Settings) -> ModelsInUse:
    """Return the models of the settings, without calling them; no key is part of it."""
    chat, embedder, budget = settings.chat_status(), settings.embedder_status(), settings.budget
    return ModelsInUse(
        chat_setting=settings.chat.partition(" ")[0],  # the arguments of a program may hold anything
        chat=ModelTrial(chat.name, chat.available, 0.0, "", chat.reason, chat.fix, chat.host),
        embedder_setting=settings.embedder,
        embedder=ModelTrial(embedder.name, embedder.available, 0.0, "", embedder.reason, embedder.fix),
        tokens_a_day=budget.tokens,
        cost_a_day=budget.cost,
        data=str(settings.data),
        database=settings.shown_database,
    )


def try_chat(settings: Settings, setting: str | None = None) -> ModelTrial:
    """Ask the language model of a setting one question; of the present setting without one."""
    chats, began = import_module("lukasa.providers.chat"), time.perf_counter()
    name, host = (setting or settings.chat).strip()[:60], ""
    try:
        chosen = settings.chat if setting is None else _harmless(setting)
        status = chats.chat_status(chosen, os.environ)
        name, host = status.name, status.host
        if not status.available:
            return ModelTrial(name, False, 0.0, "", status.reason, status.fix, host)
        reply = chats.open_chat(chosen, os.environ).reply([Message("user", _QUESTION)], timeout=_TIMEOUT)
    except LukasaError as error:
        return ModelTrial(name, False, _since(began), "", error.message, error.fix, host)
    return ModelTrial(name, True, _since(began), reply.text.strip()[:_MOST_SAID], host=host)


def _harmless(setting: str) -> str:
    """Return a setting that names no program by its path: the page tries models, it runs no commands."""
    given = setting.strip()
    kind, _, program = given.partition(":")
    if kind == "command" and program.partition(":")[0] not in _NAMED_PROGRAMS:
        raise InvalidInput(
            f"the page does not run {program[:60]!r}", fix="set LUKASA_CHAT in a terminal, and start the server again"
        )
    return given


def try_embedder(settings: Settings, setting: str | None = None) -> ModelTrial:
    """Embed three sentences with the model of a setting, and say whether the two that belong together are nearer."""
    began, name = time.perf_counter(), (setting or settings.embedder).strip()[:60]
    try:
        chosen = settings if setting is None else Settings.resolve(data=settings.data, embedder=setting.strip())
        status = chosen.embedder_status()
        name = status.name
        if not status.available:
            return ModelTrial(name, False, 0.0, "", status.reason, status.fix)
        embedder = shared_embedder(chosen.embedder, settings.models)
        if embedder is None:
            return ModelTrial(name, False, 0.0, "", "the setting asks for no model", "use auto")
        rows = embedder.embed_memories(_TEXTS)
    except LukasaError as error:
        return ModelTrial(name, False, _since(began), "", error.message, error.fix)
    near, far = float(rows[0] @ rows[1]), float(rows[0] @ rows[2])
    said = f"“{_TEXTS[0]}” and “{_TEXTS[1]}”: {near:.2f}; and “{_TEXTS[2]}”: {far:.2f}. Nearer is higher."
    return ModelTrial(name, True, _since(began), said)


def _since(began: float) -> float:
    return (time.perf_counter() - began) * 1000
