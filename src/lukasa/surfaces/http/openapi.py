"""The OpenAPI document, from the verb table: every input and output of every verb, with its schema."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from pydantic.json_schema import models_json_schema

from lukasa import __version__
from lukasa.surfaces.api.verb import Verb, VerbInput, VerbOutput
from lukasa.surfaces.http.field_rules import IDEMPOTENCY_KEY, IF_MATCH, ruled

_REF = "#/components/schemas/{model}"
_SCOPE = "Scope keys to bind, like a query: org_id=acme&domain_id=billing. They narrow what a grant binds."
_KEY = "The server does a request that arrives twice under one key once."


def document(verbs: Sequence[Verb]) -> dict[str, Any]:
    schemas = _schemas(verbs)
    paths: dict[str, dict[str, Any]] = {}
    for verb in verbs:
        paths.setdefault(f"/v1{verb.path}", {})[verb.method.lower()] = _operation(verb, schemas)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Lukasa",
            "version": __version__,
            "description": "Memory for AI agents. A request carries a token, as `Authorization: Bearer …`; only this "
            "document, /live and /ready need none.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "/"}],
        "security": [{"bearer": []}],
        "tags": [{"name": name} for name in dict.fromkeys(_tag(verb) for verb in verbs)],
        "paths": paths,
        "components": {
            "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer"}},
            "schemas": {**schemas, "Problem": _PROBLEM},
            "responses": {
                "problem": {
                    "description": "The request was refused, or failed; `fix` says what to change.",
                    "content": {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}},
                }
            },
        },
    }


def _schemas(verbs: Sequence[Verb]) -> dict[str, Any]:
    inputs = {verb.input: None for verb in verbs}
    outputs = {verb.output: None for verb in verbs}
    wanted: list[tuple[type[VerbInput] | type[VerbOutput], Any]] = [(model, "validation") for model in inputs]
    wanted += [(model, "serialization") for model in outputs]
    _, made = models_json_schema(wanted, ref_template=_REF)
    found: dict[str, Any] = made["$defs"]
    # The path, the query and headers describe their own fields; the body describes the rest.
    for verb in verbs:
        if verb.method in ("POST", "PUT", "PATCH"):
            found[_body_name(verb)] = _body(found[verb.input.__name__], verb)
    for name in {name for name in found if name.endswith("In")} - {model.__name__ for model in inputs}:
        fields = {field: ruled("", field, one) for field, one in found[name].get("properties", {}).items()}
        found[name] = {**found[name], "properties": fields}
    bodies = {_body_name(verb) for verb in verbs if verb.method in ("POST", "PUT", "PATCH")}
    unused = {model.__name__ for model in inputs} - bodies
    return {name: schema for name, schema in sorted(found.items()) if name not in unused}


def _body_name(verb: Verb) -> str:
    """Name the schema of the body: the input's own, or one for this verb if path or header hold part of the input."""
    whole = set(verb.other_fields) == set(verb.input.model_fields)
    return verb.input.__name__ if whole else "".join(part.title() for part in verb.name.split("_")) + "Body"


def _body(schema: dict[str, Any], verb: Verb) -> dict[str, Any]:
    kept = {name: ruled(verb.name, name, schema["properties"][name]) for name in verb.other_fields}
    needed = [name for name in schema.get("required", ()) if name in kept]
    body = {**schema, "properties": kept, "title": _body_name(verb)}
    body.pop("required", None)
    return {**body, "required": needed} if needed else body


def _operation(verb: Verb, schemas: dict[str, Any]) -> dict[str, Any]:
    operation: dict[str, Any] = {
        "operationId": verb.name,
        "summary": _sentence(verb.description),
        "description": f"{verb.description}\n\nNeeds the capability {verb.needs}."
        + (" Only the owner may use it." if verb.owner_only else ""),
        "tags": [_tag(verb)],
        "parameters": _parameters(verb),
        "responses": {str(verb.status): _answer(verb), **{str(status): _PROBLEM_REF for status in refusals(verb)}},
        "x-capabilities": [str(one) for one in verb.capabilities],
    }
    if verb.method in ("POST", "PUT", "PATCH"):
        schema = {"$ref": f"#/components/schemas/{_body_name(verb)}"}
        needed = bool(schemas[_body_name(verb)].get("required"))
        operation["requestBody"] = {"required": needed, "content": {"application/json": {"schema": schema}}}
    return operation


def refusals(verb: Verb) -> list[int]:
    """Return the statuses of problems that a verb can answer with."""
    found = {401, 403, 404, 421, 422, 500, 503}
    if verb.method in ("POST", "PUT", "PATCH"):
        found |= {400, 408, 413, 415}
    if verb.mutates:
        found |= {409, 507}
    if verb.version_of is not None:
        found |= {412, 428}
    if verb.name in _ASKS_A_MODEL:
        found.add(502)
    return sorted(found)


def _sentence(text: str) -> str:
    return re.split(r"(?<=[.:])\s", text, maxsplit=1)[0].rstrip(".:")


def _tag(verb: Verb) -> str:
    return verb.name.partition("_")[0]


def _answer(verb: Verb) -> dict[str, Any]:
    schema = {"$ref": f"#/components/schemas/{verb.output.__name__}"}
    return {"description": "Done.", "content": {"application/json": {"schema": schema}}}


def _parameters(verb: Verb) -> list[dict[str, Any]]:
    fields = verb.input.model_json_schema()["properties"] if verb.input.model_fields else {}
    found: list[dict[str, Any]] = []
    if verb.in_workspace:
        about = "Name or id of a workspace."
        found.append({"name": "workspace", "in": "path", "required": True, "description": about, **_TEXT})
    fields = {name: ruled(verb.name, name, field) for name, field in fields.items()}
    found += [_parameter(name, "path", fields[name], required=True) for name in verb.path_fields]
    if verb.method in ("GET", "DELETE"):
        needed = {name for name, field in verb.input.model_fields.items() if field.is_required()}
        found += [_parameter(name, "query", fields[name], required=name in needed) for name in verb.other_fields]
    if verb.in_workspace:
        found.append({"name": "Lukasa-Scope", "in": "header", "description": _SCOPE, **_TEXT})
    if verb.version_of is not None:
        about = 'The ETag that you read, such as "3"; `*` for any version. Without it the answer is 428.'
        found.append({"name": "If-Match", "in": "header", "description": about, "schema": IF_MATCH})
    if verb.method == "POST" and verb.mutates and verb.keyed:
        found.append({"name": "Idempotency-Key", "in": "header", "description": _KEY, "schema": IDEMPOTENCY_KEY})
    return found


def _parameter(name: str, where: str, field: dict[str, Any], *, required: bool) -> dict[str, Any]:
    schema = {key: value for key, value in field.items() if key not in ("description", "title")}
    made = {"name": name, "in": where, "required": required, "schema": schema}
    return {**made, "description": field["description"]} if "description" in field else made


_PROBLEM_REF = {"$ref": "#/components/responses/problem"}
_ASKS_A_MODEL = frozenset({"corpus_discover", "feed_poll"})
_TEXT = {"schema": {"type": "string"}}
_PROBLEM = {
    "title": "Problem",
    "type": "object",
    "required": ["type", "title", "status", "detail", "fix"],
    "properties": {
        "type": {"type": "string", "description": "A stable code of the error, such as not-found."},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string"},
        "fix": {"type": "string", "description": "The change that makes the request work."},
        "request_id": {"type": "string", "description": "The id of the request, as in the log of the server."},
        "version": {"type": "integer", "description": "With 412: the current version."},
        "errors": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"field": {"type": "string"}, "message": {"type": "string"}},
            },
        },
    },
}
