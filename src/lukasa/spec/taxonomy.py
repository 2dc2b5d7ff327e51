"""Categories of memory as data: labels, alternates and broader terms, versioned so that old rows keep their meaning."""

from __future__ import annotations

import tomllib
from functools import lru_cache
from pathlib import Path

from msgspec import Struct

from lukasa.model.errors import SpecError
from lukasa.spec.decode import Problems, TomlTable

_FOLDER = Path(__file__).parent / "taxonomies"


class Concept(Struct, frozen=True):
    """A category; `alternates` are lower-case words and phrases that indicate it."""

    id: str
    label: str
    definition: str
    alternates: tuple[str, ...]
    broader: str = ""


class Taxonomy(Struct, frozen=True):
    version: str
    title: str
    concepts: tuple[Concept, ...]

    def concept(self, id: str) -> Concept | None:
        return next((concept for concept in self.concepts if concept.id == id), None)


@lru_cache(maxsize=1)
def taxonomy_names() -> tuple[str, ...]:
    return tuple(sorted(file.stem for file in _FOLDER.glob("*.toml")))


@lru_cache(maxsize=8)
def load_taxonomy(name: str = "v1") -> Taxonomy:
    """Load a shipped taxonomy by its version name."""
    if name not in taxonomy_names():
        raise SpecError(f"no taxonomy {name[:60]!r}", fix=f"use one of: {', '.join(taxonomy_names())}")
    text = (_FOLDER / f"{name}.toml").read_text("utf-8")
    return parse_taxonomy(text, file=f"taxonomy {name}")


def parse_taxonomy(text: str, file: str = "taxonomy") -> Taxonomy:
    """Read a taxonomy from TOML. Raises SpecError for the first problem."""
    problems = Problems(file)
    try:
        data = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise SpecError(f"not valid TOML: {str(error)[:200]}", file=file, fix="correct the syntax there") from error
    root = TomlTable(data, "", problems)
    concepts = tuple(_concept(table) for table in root.tables("concepts"))
    taxonomy = Taxonomy(root.name("version", example="v1"), root.text("title", "", blank=True), concepts)
    root.close()
    _check(taxonomy, problems)
    if problems.found:
        raise problems.found[0]
    return taxonomy


def _concept(table: TomlTable) -> Concept:
    concept = Concept(
        id=table.name("id", example="preferences"),
        label=table.text("label", example="Preferences"),
        definition=table.text("definition", "", blank=True),
        alternates=table.texts("alternates", (), example=("prefers", "likes to")),
        broader=table.text("broader", "", blank=True),
    )
    table.close()
    return concept


def _check(taxonomy: Taxonomy, problems: Problems) -> None:
    ids = [concept.id for concept in taxonomy.concepts]
    for n, concept in enumerate(taxonomy.concepts, 1):
        if concept.id in ids[: n - 1]:
            problems.add(f"concepts[{n}].id", f"{concept.id!r} is defined twice", "give each concept its own id")
        if concept.broader and concept.broader not in ids:
            problems.add(f"concepts[{n}].broader", f"unknown concept {concept.broader[:60]!r}", 'write: broader = ""')
        if any(word != word.lower() for word in concept.alternates):
            problems.add(f"concepts[{n}].alternates", "an alternate is not in lower case", "write all in lower case")
