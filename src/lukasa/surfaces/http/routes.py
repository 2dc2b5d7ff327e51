"""A route for each verb: admit, read the input, perform in a thread, answer with its ETag and the next page's link."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from lukasa.model.errors import Conflict
from lukasa.service.admin.access import Credential
from lukasa.surfaces.api.shapes import PageOut
from lukasa.surfaces.api.verb import Verb, VerbInput, VerbOutput, prepare
from lukasa.surfaces.http import keys
from lukasa.surfaces.http.inputs import read_input
from lukasa.surfaces.http.passes import Doorkeeper
from lukasa.surfaces.http.problems import Problem, safely
from lukasa.surfaces.offload import offload

ROOT = "/v1"
KEY = "idempotency-key"


@dataclass(frozen=True)
class Asked:
    """All of a request that the answer may depend on."""

    verb: Verb
    given: Credential
    workspace: str | None
    path: str
    input: VerbInput
    key: str | None


def route(verb: Verb, doorkeeper: Doorkeeper) -> Route:
    async def endpoint(request: Request) -> Response:
        given = await offload(doorkeeper.admit, request)
        verb.require(given)
        asked = Asked(
            verb=verb,
            given=given,
            workspace=request.path_params.get("workspace"),
            path=request.url.path,
            input=await read_input(verb, request),
            key=_key(verb, request),
        )
        return await offload(_answer, doorkeeper, asked)

    return Route(ROOT + verb.path, safely(endpoint), methods=[verb.method], name=verb.name)


def _key(verb: Verb, request: Request) -> str | None:
    key = request.headers.get(KEY)
    if key is None or not (verb.method == "POST" and verb.mutates):
        return None
    if not verb.keyed:
        fix = "send it without a key"
        raise Problem(422, "invalid-input", "what this answers with is a secret, and not kept for a key", fix=fix)
    return keys.checked_key(key)


def _answer(doorkeeper: Doorkeeper, asked: Asked) -> Response:
    verb = asked.verb
    call = prepare(verb, doorkeeper.access, asked.given, asked.workspace)
    if asked.key is not None:
        key = keys.key_of(asked.given, verb.method, asked.path, asked.key)
        request = asked.input.model_dump_json()
        status, body, again = keys.once(
            call.workspace.ctx, key, request, lambda: (verb.status, verb.run(call, asked.input).model_dump_json())
        )
        told: VerbOutput = verb.output.model_validate_json(body)
        return _respond(asked, told, status, {"Idempotency-Replayed": "true"} if again else {}, body)
    try:
        told = verb.run(call, asked.input)
    except Conflict as conflict:
        expected = getattr(asked.input, "expected_version", None)
        if verb.version_of is None or expected is None:
            raise
        current = verb.version_of(call, asked.input)
        if current == expected:
            raise
        fix = "read it again, and decide anew"
        raise Problem(412, "version-changed", conflict.message, fix=fix, version=current) from None
    return _respond(asked, told, verb.status, {}, told.model_dump_json())


def _respond(asked: Asked, told: VerbOutput, status: int, headers: dict[str, str], body: str) -> Response:
    tag = told.tag()
    if tag is not None:
        headers["ETag"] = f'"{tag}"'
    if isinstance(told, PageOut) and told.next is not None:
        query = asked.input.model_dump(mode="json", exclude_unset=True, include=set(asked.verb.other_fields))
        more = urlencode({**query, "after": told.next})
        headers["Link"] = f'<{asked.path}?{more}>; rel="next"'
    return Response(body, status, headers, media_type="application/json")
