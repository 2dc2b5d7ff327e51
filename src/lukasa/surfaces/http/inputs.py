"""A request's parts as the input of a verb: path, query or body, and the version in If-Match."""

from __future__ import annotations

import json
import re
from typing import Any

from starlette.requests import Request

from lukasa.surfaces.api.verb import Verb, VerbInput
from lukasa.surfaces.http.problems import Problem

_TAG = re.compile(r'"(\d{1,9})"')


async def read_input(verb: Verb, request: Request) -> VerbInput:
    data = _query(request) if verb.method in ("GET", "DELETE") else await read_body(request)
    for name in ("expected_version", *verb.path_fields):
        if name in data:
            where = "If-Match" if name == "expected_version" else "path"
            raise Problem(422, "invalid-input", f"{name} stands in the {where}", fix="leave it out here")
    data |= {name: request.path_params[name] for name in verb.path_fields}
    if verb.version_of is not None:
        data["expected_version"] = expected_version(request)
    return verb.input.model_validate(data)


def _query(request: Request) -> dict[str, Any]:
    given = request.query_params.multi_items()
    data = dict(given)
    if len(data) != len(given):
        raise Problem(422, "invalid-input", "a parameter is given twice", fix="give each once")
    return data


async def read_body(request: Request) -> dict[str, Any]:
    """One JSON object. No body is an empty one, for verbs that need nothing said."""
    raw = await request.body()
    if not raw:
        return {}
    media = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media != "application/json":
        raise Problem(415, "not-json", "a body must be JSON", fix="send Content-Type: application/json")
    try:
        data = json.loads(raw.decode("utf-8"), object_pairs_hook=_once, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        told = str(error) if isinstance(error, _Twice) else "the body is not valid JSON"
        raise Problem(400, "not-json", told, fix="send one JSON object, encoded as UTF-8") from None
    if not isinstance(data, dict):
        raise Problem(422, "invalid-input", "the body must be a JSON object", fix="send {…}")
    return data


class _Twice(ValueError):
    """A name that stands twice means one thing to us and another to somebody else."""


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    data = dict(pairs)
    if len(data) != len(pairs):
        raise _Twice("a name stands twice in one object")
    return data


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def expected_version(request: Request) -> int | None:
    """Which version the caller has read: a number; 0 if it must be new; None for whatever is there, said out loud."""
    wanted, unwanted = request.headers.get("if-match"), request.headers.get("if-none-match")
    if wanted is None and unwanted is None:
        fix = 'send If-Match with the ETag you read, such as "3"; * overwrites whatever is there'
        raise Problem(428, "version-needed", "a change must say which version it changes", fix=fix)
    if wanted is None:
        if unwanted != "*":
            raise Problem(422, "invalid-input", "If-None-Match can only be *", fix="send If-Match with a version")
        return 0
    if wanted.strip() == "*":
        return None
    match = _TAG.fullmatch(wanted.strip())
    if match is None:
        raise Problem(
            422, "invalid-input", "If-Match is not an ETag of this server", fix='send it as it was given: "3"'
        )
    return int(match[1])
