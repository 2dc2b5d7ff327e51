"""Every key that the decoder of specs reads, and every word that it takes for one: the decoder itself tells."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from lukasa.spec import parse_spec, preset_names, preset_text
from lukasa.spec.decode import TomlTable
from lukasa.spec.types import BEHAVIOURS

# A spec with one table of each sort, so that the decoder reads all of them.
WHOLE = preset_text("anchored").replace(
    "exemptions = []", 'exemptions = [{ rule = "soft-supersession", reason = "…" }]'
) + "".join(f'\n[behaviour.{primitive}]\nreason = "…"\n' for primitive in BEHAVIOURS)
FILE = "a spec"
# Keys whose words are names that the spec itself chooses.
CHOSEN = frozenset({"retrieval.recency_tiers", "sanitization.into", "named.tier"})
_NAMED = {  # paths whose parts are names that a spec chooses, or one of a few
    r"anchor\.keys\.[^.]+": "anchor.keys.KEY",
    r"typology\.[^.]+": "typology.TIER",
    r"visibility\.[^.]+": "visibility.TIER",
    r"profiles\.[^.]+": "profiles.PROFILE",
    r"retrieval\.weights\.[^.]+": "retrieval.weights.SIGNAL",
    r"retrieval\.tier_weights\.[^.]+": "retrieval.tier_weights.TIER",
    r"behaviour\.([a-z]+)(?:\.[^.]+)*\.([a-z_]+)": r"behaviour.\1.\2",
}


def _general(path: str) -> str:
    """A path without the names that a spec chooses: `visibility.account.agents` is `visibility.TIER.agents`."""
    path = re.sub(r"\[\d+\]", "", path)
    for pattern, name in _NAMED.items():
        path = re.sub(rf"^{pattern}", name, path)
    return path


@contextmanager
def _told(seen: dict[str, set[str]]) -> Iterator[None]:
    """Note each key that a table is asked for, and the words that may answer."""
    missing, take, choice, choices = TomlTable.missing, TomlTable.take, TomlTable.choice, TomlTable.choices

    def note(table: TomlTable, key: str, words: Any = ()) -> None:
        if table.problems.file != FILE:  # the typology's defaults and the taxonomy are read, too
            return
        if isinstance(table.data.get(key), dict) and not words:  # a table, whose keys are asked for in turn
            return
        seen.setdefault(_general(table.at(key)), set()).update(str(word) for word in words if word)

    def noting_missing(self: TomlTable, key: str, *rest: Any) -> Any:
        note(self, key)
        return missing(self, key, *rest)

    def noting_take(self: TomlTable, key: str) -> Any:
        note(self, key)
        return take(self, key)

    def noting_choice(self: TomlTable, key: str, options: Any, *rest: Any, **more: Any) -> Any:
        note(self, key, options)
        return choice(self, key, options, *rest, **more)

    def noting_choices(self: TomlTable, key: str, options: Any, *rest: Any, **more: Any) -> Any:
        note(self, key, options)
        return choices(self, key, options, *rest, **more)

    with (
        patch.object(TomlTable, "missing", noting_missing),
        patch.object(TomlTable, "take", noting_take),
        patch.object(TomlTable, "choice", noting_choice),
        patch.object(TomlTable, "choices", noting_choices),
    ):
        yield


def decoded() -> dict[str, set[str]]:
    """Every key that the decoder reads from the presets and from a spec with a table of each sort, with its words."""
    seen: dict[str, set[str]] = {}
    with _told(seen):
        for text in (*map(preset_text, preset_names()), WHOLE):
            parse_spec(text, file=FILE)
    tables = {path for path in seen if any(other.startswith(f"{path}.") for other in seen)}
    return {path: set() if path in CHOSEN else words for path, words in seen.items() if path not in tables}
