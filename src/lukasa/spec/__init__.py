"""The spec of a memory as data: the spec file, its presets, its typology defaults and its taxonomy."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lukasa.spec.behaviours import default_behaviour
    from lukasa.spec.canonical import dump
    from lukasa.spec.load import InvalidSpec, check, load_preset, load_spec, parse_spec, preset_names, preset_text
    from lukasa.spec.questions import WALK, Question, compose, interview, list_questions
    from lukasa.spec.report import Difference, Row, diff, explain, render_show, show
    from lukasa.spec.taxonomy import Concept, Taxonomy, load_taxonomy
    from lukasa.spec.types import MemorySpec

# Loaded on first use: opening a memory reads a spec, but does not show it or ask questions about it.
_HOMES = {
    "dump": "canonical",
    "InvalidSpec": "load",
    "check": "load",
    "load_preset": "load",
    "load_spec": "load",
    "parse_spec": "load",
    "preset_names": "load",
    "preset_text": "load",
    "WALK": "questions",
    "Question": "questions",
    "compose": "questions",
    "interview": "questions",
    "list_questions": "questions",
    "Difference": "report",
    "Row": "report",
    "diff": "report",
    "explain": "report",
    "render_show": "report",
    "show": "report",
    "Concept": "taxonomy",
    "Taxonomy": "taxonomy",
    "load_taxonomy": "taxonomy",
    "MemorySpec": "types",
    "default_behaviour": "behaviours",
}

__all__ = [
    "WALK",
    "Concept",
    "Difference",
    "InvalidSpec",
    "MemorySpec",
    "Question",
    "Row",
    "Taxonomy",
    "check",
    "compose",
    "default_behaviour",
    "diff",
    "dump",
    "explain",
    "interview",
    "list_questions",
    "load_preset",
    "load_spec",
    "load_taxonomy",
    "parse_spec",
    "preset_names",
    "preset_text",
    "render_show",
    "show",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'lukasa.spec' has no attribute {name!r}")
    return getattr(import_module(f"lukasa.spec.{_HOMES[name]}"), name)
