"""The JSON Schema of an export, made from the declarations that write and read it."""

from __future__ import annotations

from typing import Any

from lukasa.storage.export_file import END, FORMAT, HEADER, STORE, VERSION, WORKSPACE
from lukasa.storage.export_records import KINDS, RAW, Field, Shape, fields_of

_SHAPES: dict[Shape, dict[str, Any]] = {
    "text": {"type": "string"},
    "integer": {"type": "integer"},
    "number": {"type": "number"},
    "flag": {"type": "boolean"},
    "time": {"anyOf": [{"type": "string", "format": "date-time"}, {"type": "integer"}]},
    "json": {"description": f"JSON; {{{RAW!r}: text}} holds a text that is spelled in another way."},
    "bytes": {"type": "string", "contentEncoding": "base64"},
}
_SUM = {"type": "string", "pattern": "^[0-9a-f]{16}$"}
_COUNT = {"type": "integer", "minimum": 0}
_TEXT = {"type": "string"}


def schema() -> dict[str, Any]:
    """Return the schema of one line: each kind of record has its own fields, and no others."""
    head = {"type": "object", "properties": {"seq": _COUNT, "digest": _TEXT}, "required": ["seq", "digest"]}
    made_at = {"made_at": _SHAPES["time"], "made_by": _TEXT, "what": {"enum": ["workspace", "account", "all"]}}
    own: dict[str, dict[str, Any]] = {
        HEADER: {"format": {"const": FORMAT}, "version": {"const": VERSION}, "vectors": {"type": "boolean"}, **made_at},
        STORE: {
            "id": _TEXT,
            "role": {"enum": ["account", "workspace"]},
            "created_at": _SHAPES["time"],
            "head": head,
            "secret": _SHAPES["bytes"],
        },
        WORKSPACE: {"id": _TEXT, "name": _TEXT, "preset": _TEXT, "spec": _TEXT, "created_at": _SHAPES["time"]},
        END: {"lines": _COUNT, "counts": {"type": "object", "additionalProperties": _COUNT}, "sha256": _TEXT},
    }
    rows = {name: {field.name: _field(field) for field in fields_of(part)} for name, part in KINDS.items()}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"A line of {FORMAT}, version {VERSION}",
        "oneOf": [_record(name, fields) for name, fields in (own | rows).items()],
    }


def _field(field: Field) -> dict[str, Any]:
    shape = _SHAPES[field.shape]
    return {"anyOf": [shape, {"type": "null"}]} if field.empty else shape


def _record(name: str, fields: dict[str, Any]) -> dict[str, Any]:
    every = {"record": {"const": name}, **fields, "sum": _SUM}
    return {"type": "object", "properties": every, "required": list(every), "additionalProperties": False}
