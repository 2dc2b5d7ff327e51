"""The rule: a spec key changes behaviour in a way that a test shows, or it is refused as unknown (P1–P6)."""

from __future__ import annotations

import tomllib

import pytest

from lukasa.spec import check, preset_names, preset_text
from tests.helpers.nodes import ROOT, exists
from tests.helpers.spec_keys import decoded

EFFECTS = tomllib.loads((ROOT / "tests" / "spec_effects.toml").read_text("utf-8"))
KEYS: dict[str, str] = EFFECTS["keys"]
WORDS: dict[str, str] = EFFECTS["words"]


def test_every_key_and_word_has_a_story() -> None:
    """P1–P6: no key that the decoder reads, and no word that a key takes, is without a test of its effect."""
    missing = []
    for key, words in decoded().items():
        if key in KEYS:
            continue
        missing += [f"{key}={word}" for word in words if f"{key}={word}" not in WORDS] if words else [key]
    assert missing == []


@pytest.mark.parametrize(("what", "node"), [*KEYS.items(), *WORDS.items()])
def test_the_story_is_there(what: str, node: str) -> None:
    """P1–P6: the table names tests that exist."""
    assert exists(node), what


def test_no_story_is_about_a_key_that_is_gone() -> None:
    """P1–P6: the table follows the decoder."""
    known = decoded()
    assert [key for key in KEYS if key not in known] == []
    pairs = [pair.partition("=") for pair in WORDS]
    assert [f"{key}={word}" for key, _, word in pairs if word not in known.get(key, ())] == []


@pytest.mark.parametrize("name", preset_names())
def test_a_preset_has_no_key_that_the_decoder_does_not_read(name: str) -> None:
    """P5: a key that nothing reads is refused, in every table of every preset."""
    text = preset_text(name)
    assert check(text) == []
    lines = text.splitlines()
    for number, line in enumerate(lines):
        if line.startswith("["):
            spoiled = "\n".join([*lines[: number + 1], "surprise = 1", *lines[number + 1 :]])
            assert any("surprise" in problem.key for problem in check(spoiled)), line
