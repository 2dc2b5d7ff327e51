"""What a memory is, as data: the spec file, its presets, its typology defaults and its taxonomy."""

from __future__ import annotations

from mnemon.spec.dump import dump
from mnemon.spec.load import InvalidSpec, check, load_preset, load_spec, parse_spec, preset_names, preset_text
from mnemon.spec.questions import QUESTIONS, WALK, Question, compose
from mnemon.spec.show import Difference, Row, diff, explain, render_show, show
from mnemon.spec.taxonomy import Concept, Taxonomy, load_taxonomy
from mnemon.spec.types import MemorySpec
from mnemon.spec.typology import default_behaviour

__all__ = [
    "QUESTIONS",
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
    "load_preset",
    "load_spec",
    "load_taxonomy",
    "parse_spec",
    "preset_names",
    "preset_text",
    "render_show",
    "show",
]
