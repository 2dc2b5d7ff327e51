"""The shape of an answer, read from the example that a prompt ends with: as JSON Schema, for a model that can be held
to one. Our prompts, and those that replace them, end with the JSON object they want; a word that the prompt lists among
others, as in `allow`, `hold` or `discard`, may be any of these."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from msgspec import Struct

_WORD = re.compile(r"`([a-z_]+)`")
_LISTED = re.compile(r"^- `([a-z_]+)`", re.MULTILINE)


class Bounds(Struct, frozen=True):
    """How long an answer may be: a small model, left alone, may not find an end."""

    text: int = 1000
    items: int = 20


USUAL = Bounds()


def schema(prompt: str, bounds: Bounds = USUAL) -> dict[str, Any] | None:
    """What an answer to a prompt must look like; None if it shows no example."""
    example = _example(prompt)
    return None if example is None else _of(example, prompt, "", bounds)


def _example(prompt: str) -> Mapping[str, Any] | None:
    """The last line that is a JSON object."""
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
    """What may stand for a word: those of the line that explains its key, or of the list it begins a line of."""
    said = re.search(rf"`{re.escape(key)}`:(.*)", prompt)
    for words in (_WORD.findall(said[1]) if said else [], _LISTED.findall(prompt)):
        if word in words:
            return list(dict.fromkeys(words))
    return []
