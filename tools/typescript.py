"""The types and routes of the TypeScript client, from the same document that the server shows.

python -m tools.typescript > clients/typescript/src/api.ts
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from lukasa.surfaces.api.table import VERBS
from lukasa.surfaces.http.openapi import document

Schema = Mapping[str, Any]

_HEAD = """// Made by `python -m tools.typescript` from the OpenAPI document. Change the verb table instead.
"""
_PLAIN = {"string": "string", "integer": "number", "number": "number", "boolean": "boolean", "null": "null"}
_NAME = re.compile(r"[A-Za-z_$][\w$]*")


def typescript() -> str:
    """Return the source of api.ts."""
    described = document(VERBS)
    operations = [
        (method, path, operation) for path, found in described["paths"].items() for method, operation in found.items()
    ]
    schemas = described["components"]["schemas"]
    return "\n".join([_HEAD, *_models(schemas), *_operations(operations, schemas), *_routes(operations)])


def _models(schemas: Mapping[str, Schema]) -> Iterator[str]:
    for name, schema in schemas.items():
        yield from _doc(schema.get("description"), "")
        if schema.get("type") == "object" and "properties" in schema:
            yield f"export interface {name} {{"
            yield from _fields(schema, answer=not name.endswith(("In", "Body")))
            yield "}\n"
        else:
            yield f"export type {name} = {_type(schema)};\n"


def _fields(schema: Schema, *, answer: bool) -> Iterator[str]:
    needed = set(schema.get("required", ()))
    for name, field in schema["properties"].items():
        yield from _doc(field.get("description"), "  ")
        # The server leaves out no field of an answer, also where the schema gives it a default.
        mark = "" if answer or name in needed else "?"
        yield f"  {_key(name)}{mark}: {_type(field)};"


def _doc(text: str | None, indent: str) -> Iterator[str]:
    if text:
        yield f"{indent}/** {' '.join(text.split()).replace('*/', '* /')} */"


def _key(name: str) -> str:
    return name if _NAME.fullmatch(name) else json.dumps(name)


def _type(schema: Schema) -> str:
    if "$ref" in schema:
        return str(schema["$ref"]).rpartition("/")[2]
    if "const" in schema:
        return json.dumps(schema["const"])
    if "enum" in schema:
        return " | ".join(json.dumps(value) for value in schema["enum"])
    options = schema.get("anyOf") or schema.get("oneOf") or schema.get("allOf")
    if options:
        return " | ".join(dict.fromkeys(_type(option) for option in options))
    kind = schema.get("type")
    if kind == "array":
        return f"Array<{_type(schema['items'])}>" if "items" in schema else "unknown[]"
    if kind == "object":
        inner = schema.get("additionalProperties")
        return f"Record<string, {_type(inner) if isinstance(inner, Mapping) else 'unknown'}>"
    return _PLAIN.get(str(kind), "unknown")


def _operations(operations: list[tuple[str, str, Any]], schemas: Mapping[str, Schema]) -> Iterator[str]:
    """Give the input and the output of each operation: the input holds the fields of path, query and body alike."""
    yield "export interface Operations {"
    for _, _, operation in operations:
        yield from _doc(operation["description"], "  ")
        yield f"  {operation['operationId']}: {{"
        yield "    input: {"
        for parameter in operation["parameters"]:
            if parameter["in"] in ("path", "query"):
                yield from _doc(parameter.get("description"), "      ")
                mark = "" if parameter["required"] else "?"
                yield f"      {_key(parameter['name'])}{mark}: {_type(parameter['schema'])};"
        body = operation.get("requestBody")
        name = body["content"]["application/json"]["schema"]["$ref"].rpartition("/")[2] if body else ""
        yield "    };" if not schemas.get(name, {}).get("properties") else f"    }} & {name};"
        answer = next(status for status in operation["responses"] if status.startswith("2"))
        yield f"    output: {_type(operation['responses'][answer]['content']['application/json']['schema'])};"
        yield "  };"
    yield "}\n"


def _routes(operations: list[tuple[str, str, Any]]) -> Iterator[str]:
    yield "/** Method, path, and whether the operation changes something that has a version. */"
    yield "export const ROUTES: { readonly [name in keyof Operations]: readonly [string, string, boolean] } = {"
    for method, path, operation in operations:
        versioned = any(one["name"] == "If-Match" for one in operation["parameters"])
        yield f"  {operation['operationId']}: [{method.upper()!r}, {path!r}, {str(versioned).lower()}],"
    yield "};\n"


if __name__ == "__main__":
    print(typescript(), end="")
