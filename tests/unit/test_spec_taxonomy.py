"""The categories of memory are data."""

from __future__ import annotations

import pytest

from lukasa.model.errors import SpecError
from lukasa.model.text import words
from lukasa.spec import load_preset, load_taxonomy, preset_names
from lukasa.spec.taxonomy import parse_taxonomy

SEVEN = (
    "preferences",
    "rules-conventions",
    "system-architecture",
    "operations",
    "memory-system",
    "projects",
    "people-relationships",
)


def test_seven_categories() -> None:
    """W7: the seven, under a version of their own."""
    taxonomy = load_taxonomy("v1")
    assert taxonomy.version == "v1"
    assert tuple(concept.id for concept in taxonomy.concepts) == SEVEN


def test_generous_alternates() -> None:
    """W7: each has many words and some phrases, and a word points at one category only."""
    concepts = load_taxonomy().concepts
    words = [word for concept in concepts for word in concept.alternates]
    assert len(words) == len(set(words))
    for concept in concepts:
        assert len(concept.alternates) >= 40
        assert any(" " in word for word in concept.alternates)


def test_alternates_can_match() -> None:
    """W7: an alternate is written as the tokeniser would give it, or it could never be found in a text."""
    for concept in load_taxonomy().concepts:
        assert [" ".join(words(alternate)) for alternate in concept.alternates] == list(concept.alternates)


def test_presets_name_a_taxonomy() -> None:
    """W7: every preset's taxonomy exists."""
    for name in preset_names():
        assert load_taxonomy(load_preset(name).taxonomy).concepts


def test_lookup() -> None:
    """W7: a category is found by its id; an unknown one is none."""
    taxonomy = load_taxonomy()
    found = taxonomy.concept("operations")
    assert found is not None
    assert found.label == "Operations"
    assert taxonomy.concept("astrology") is None


def test_evolving() -> None:
    """W7: another version may nest its concepts."""
    taxonomy = parse_taxonomy(
        'version = "v2"\n[[concepts]]\nid = "work"\nlabel = "Work"\n'
        '[[concepts]]\nid = "ops"\nlabel = "Ops"\nbroader = "work"'
    )
    assert taxonomy.concepts[1].broader == "work"


@pytest.mark.parametrize(
    "text",
    [
        "version = 1",
        "= broken",
        'version = "v2"\n[[concepts]]\nid = "a"\nlabel = "A"\nbroader = "b"',
        'version = "v2"\n[[concepts]]\nid = "a"\nlabel = "A"\nalternates = ["Upper"]',
        'version = "v2"\n[[concepts]]\nid = "a"\nlabel = "A"\n[[concepts]]\nid = "a"\nlabel = "A"',
    ],
)
def test_broken_taxonomy(text: str) -> None:
    """W7: a broken taxonomy is a SpecError."""
    with pytest.raises(SpecError):
        parse_taxonomy(text)


def test_unknown_taxonomy() -> None:
    """W7: an unknown version names the known ones."""
    with pytest.raises(SpecError, match="v1"):
        load_taxonomy("v0")
