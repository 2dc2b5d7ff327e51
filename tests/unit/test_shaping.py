"""The shape of an answer, read from a prompt: every prompt that is shipped says what it wants."""

from __future__ import annotations

import json

import jsonschema
import pytest

from lukasa.providers.chat.local import Bounds, schema
from lukasa.spec.prompts import prompt, prompt_names

SHAPES = {name: schema(prompt(name, categories="operations, people", most="500")) for name in prompt_names()}


@pytest.mark.parametrize("name", prompt_names())
def test_every_prompt_shows_what_it_wants(name: str) -> None:
    """O1, O3: its own example fits the shape, and an object without its keys does not."""
    shape = SHAPES[name]
    assert shape is not None
    example = json.loads(prompt(name, categories="operations, people", most="500").splitlines()[-1])
    jsonschema.Draft202012Validator.check_schema(shape)
    if name != "triage":  # whose second verdict goes without a text
        jsonschema.validate(example, shape)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"something": "else"}, shape)


def test_words_that_a_prompt_lists_are_the_only_ones() -> None:
    """O1: what is explained with its alternatives may be any of them, and nothing else."""
    observer, resolve, triage = (str(SHAPES[name]) for name in ("observer", "resolve", "triage"))
    assert "{'enum': ['high', 'medium', 'low']}" in observer
    assert "{'enum': ['allow', 'hold', 'discard']}" in observer
    assert "{'enum': ['add', 'update', 'delete', 'noop']}" in resolve
    assert "{'enum': ['promote', 'reject', 'review']}" in triage


def test_a_prompt_without_an_example_asks_for_nothing() -> None:
    """O1: then the model says what it likes."""
    assert schema("Say something kind.") is None
    assert schema("Answer with {this}\n{not json}") is None


def test_an_answer_has_bounds() -> None:
    """B9: a small model, left alone, may not find an end."""
    shape = schema('{"a": ["…"], "b": true, "c": 1, "d": 0.5, "e": []}', Bounds(text=7, items=2))
    assert shape is not None
    assert shape["properties"] == {
        "a": {"type": "array", "items": {"type": "string", "maxLength": 7}, "maxItems": 2},
        "b": {"type": "boolean"},
        "c": {"type": "integer"},
        "d": {"type": "number"},
        "e": {"type": "array", "items": {"type": "string", "maxLength": 7}, "maxItems": 2},
    }
