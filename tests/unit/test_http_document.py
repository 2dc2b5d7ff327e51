"""The OpenAPI document and the reference page say what the table says."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from lukasa.surfaces.api.table import VERBS
from lukasa.surfaces.api.verb import Verb
from lukasa.surfaces.http.openapi import document
from lukasa.surfaces.reference import http_reference

ROOT = Path(__file__).parents[2]
DOCUMENT = document(VERBS)


def refs(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        if "$ref" in value:
            yield value["$ref"]
        for inner in value.values():
            yield from refs(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from refs(inner)


def test_the_reference_page_is_the_table() -> None:
    """U4: docs/reference/http.md is what `python -m lukasa.surfaces.reference http` prints."""
    assert (ROOT / "docs" / "reference" / "http.md").read_text("utf-8") == http_reference()


def test_every_reference_leads_somewhere() -> None:
    """U4: no schema is named that is not there, and none is there that nobody names."""
    named = set(refs(DOCUMENT))
    for ref in named:
        place: Any = DOCUMENT
        for part in ref.removeprefix("#/").split("/"):
            place = place[part]
    assert {f"#/components/schemas/{name}" for name in DOCUMENT["components"]["schemas"]} <= named


def test_models_have_names_of_their_own() -> None:
    """U4: two models of one name would be one schema."""
    models = {model for verb in VERBS for model in (verb.input, verb.output)}
    assert len({model.__name__ for model in models}) == len(models)


def test_every_schema_is_one() -> None:
    """U4: OpenAPI 3.1 takes JSON Schema 2020-12 as it is."""
    for schema in DOCUMENT["components"]["schemas"].values():
        Draft202012Validator.check_schema(schema)


@pytest.mark.parametrize("verb", VERBS, ids=lambda verb: verb.name)
def test_every_verb_is_described(verb: Verb) -> None:
    """U4: path, method, capability, parameters and answer of each; every field of its input stands in one place."""
    operation = DOCUMENT["paths"][f"/v1{verb.path}"][verb.method.lower()]
    assert operation["operationId"] == verb.name
    assert operation["x-capabilities"] == [verb.capability, *verb.also]
    assert str(verb.status) in operation["responses"]
    assert {"401", "403", "404", "422", "500", "503"} <= set(operation["responses"])
    places = {p["name"]: p["in"] for p in operation["parameters"]}
    assert {name for name, where in places.items() if where == "path"} == set(verb.path_fields) | (
        {"workspace"} if verb.in_workspace else set()
    )
    assert ("If-Match" in places) is (verb.version_of is not None)
    in_query = {name for name, where in places.items() if where == "query"}
    if verb.method in ("GET", "DELETE"):
        assert in_query == set(verb.other_fields)
        assert "requestBody" not in operation
    else:
        ref = operation["requestBody"]["content"]["application/json"]["schema"]["$ref"]
        body = DOCUMENT["components"]["schemas"][ref.rpartition("/")[2]]
        assert set(body.get("properties", {})) == set(verb.other_fields)
        assert body["additionalProperties"] is False


def test_descriptions_are_for_a_reader() -> None:
    """U4: a verb says in full sentences what it is for."""
    assert [verb.name for verb in VERBS if not verb.description.endswith(".") or len(verb.description) < 30] == []
