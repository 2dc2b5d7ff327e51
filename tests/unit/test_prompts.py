"""Prompts: shipped as files, replaced by a person's own."""

from __future__ import annotations

from pathlib import Path

import pytest

from lukasa.model.errors import SpecError
from lukasa.spec.prompts import MOST_CHARS, own_prompts, prompt, prompt_names


@pytest.mark.parametrize("name", prompt_names())
def test_every_shipped_prompt_can_be_used(name: str) -> None:
    """A prompt has a text, and says that what it is given is data."""
    text = prompt(name)
    assert len(text) > 200
    assert "data" in text


def test_values_are_filled_in_and_other_braces_stay() -> None:
    """Only the names that are given are replaced: a prompt shows JSON."""
    text = prompt("observer", categories="people, places")
    assert "one of people, places" in text
    assert '{"segments": [' in text


def test_a_persons_own_prompt_takes_the_place_of_the_shipped_one(tmp_path: Path) -> None:
    """An override counts from the next call on, and only for its name."""
    assert prompt("observer", tmp_path) == prompt("observer")
    (tmp_path / "observer.md").write_text("Look for {categories}.\n", "utf-8")
    assert prompt("observer", tmp_path, categories="names") == "Look for names."
    assert own_prompts(tmp_path) == ("observer",)
    assert own_prompts(tmp_path / "missing") == ()


def test_an_override_that_cannot_be_used_says_so(tmp_path: Path) -> None:
    """Empty, endless, no text at all, or a name that replaces nothing: each is an error that names the file."""
    for body in (b"", b"x" * (MOST_CHARS + 1), b"\xff\xfe\xff"):
        (tmp_path / "observer.md").write_bytes(body)
        with pytest.raises(SpecError, match=r"observer\.md"):
            prompt("observer", tmp_path)
    (tmp_path / "obsrver.md").write_text("Hello", "utf-8")
    with pytest.raises(SpecError, match=r"obsrver\.md"):
        own_prompts(tmp_path)


def test_an_unknown_prompt_is_refused() -> None:
    """The names that exist are in the answer."""
    with pytest.raises(SpecError, match="observer"):
        prompt("observr")
