"""One route for each verb: authenticate, read the input, run the verb in a thread, answer.

A POST may carry an idempotency key: the server does a request that arrives twice under one key once, and gives the same
answer both times. It takes the key before the work and keeps the answer after it, both in the database of the
workspace. Work that fails frees the key. If the process dies in between, the key is free again after a minute.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, get_args
from urllib.parse import parse_qsl, urlencode

from pydantic.fields import FieldInfo
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from lukasa.model.answer import Answer
from lukasa.model.errors import Conflict
from lukasa.service.admin.access import Credential
from lukasa.service.call import CallContext
from lukasa.service.jobs.handlers import KEEP_ANSWERS
from lukasa.storage.operations import DropAnswer, ForgetAnswers, SaveAnswer
from lukasa.surfaces.api.disclosing import disclose_output
from lukasa.surfaces.api.shapes import PageOut
from lukasa.surfaces.api.verb import Call, Verb, VerbInput, VerbOutput, prepare
from lukasa.surfaces.http.authentication import Authenticator
from lukasa.surfaces.http.field_rules import MOST_KEY
from lukasa.surfaces.http.problems import Problem, safely
from lukasa.surfaces.offload import offload

ROOT = "/v1"
_WHOLE = re.compile(r"-?(?:0|[1-9][0-9]{0,30})")
_ETAG = re.compile(r'"(\d{1,9})"')


@dataclass(frozen=True)
class VerbRequest:
    """The parts of a request that the answer depends on."""

    verb: Verb
    credential: Credential
    workspace: str | None
    path: str
    input: VerbInput
    key: str | None
    scope: dict[str, str]


def route(verb: Verb, authenticator: Authenticator) -> Route:
    async def endpoint(request: Request) -> Response:
        credential = await offload(authenticator.credential, request)
        verb.require(credential)
        asked = VerbRequest(
            verb=verb,
            credential=credential,
            workspace=request.path_params.get("workspace"),
            path=request.url.path,
            input=await read_input(verb, request),
            key=_idempotency_key(verb, request),
            scope=scope_of(request),
        )
        return await offload(_answer, authenticator, asked)

    return Route(ROOT + verb.path, safely(endpoint), methods=[verb.method], name=verb.name)


def _answer(authenticator: Authenticator, asked: VerbRequest) -> Response:
    verb = asked.verb
    call = prepare(verb, authenticator.access, asked.credential, asked.workspace, asked.scope)
    if asked.key is not None:
        key = key_of(asked.credential, verb.method, asked.path, asked.key)
        status, body, again = once(
            call.workspace.ctx,
            key,
            asked.input.model_dump_json() + (json.dumps(asked.scope, sort_keys=True) if asked.scope else ""),
            lambda: (verb.status, verb.run(call, asked.input).model_dump_json()),
        )
        output: VerbOutput = verb.output.model_validate_json(body)
        return _response(asked, output, status, {"Idempotency-Replayed": "true"} if again else {}, body)
    try:
        output = verb.run(call, asked.input)
    except Conflict as conflict:
        raise _version_changed(call, asked, conflict) from None
    body = output.model_dump_json()
    disclose_output(call, verb, asked.input, output, body)
    return _response(asked, output, verb.status, {}, body)


def _version_changed(call: Call, asked: VerbRequest, conflict: Conflict) -> Exception:
    """Return a 412 with the current version if another version than the expected one is the reason."""
    expected = getattr(asked.input, "expected_version", None)
    if asked.verb.version_of is None or expected is None:
        return conflict
    current = asked.verb.version_of(call, asked.input)
    if current == expected:
        return conflict
    fix = "read it again, and decide on the new version"
    return Problem(412, "version-changed", conflict.message, fix=fix, version=current)


def _response(asked: VerbRequest, output: VerbOutput, status: int, headers: dict[str, str], body: str) -> Response:
    tag = output.tag()
    if tag is not None:
        headers["ETag"] = f'"{tag}"'
    if isinstance(output, PageOut) and output.next is not None:
        query = asked.input.model_dump(mode="json", exclude_unset=True, include=set(asked.verb.other_fields))
        more = urlencode({**query, "after": output.next})
        headers["Link"] = f'<{asked.path}?{more}>; rel="next"'
    return Response(body, status, headers, media_type="application/json")


# The input: path, query or body, and the version in If-Match


async def read_input(verb: Verb, request: Request) -> VerbInput:
    data = _query(verb, request) if verb.method in ("GET", "DELETE") else await read_body(request)
    for name in ("expected_version", *verb.path_fields):
        if name in data:
            where = "If-Match header" if name == "expected_version" else "path"
            raise Problem(422, "invalid-input", f"{name} belongs in the {where}", fix=f"leave {name} out here")
    data |= {name: request.path_params[name] for name in verb.path_fields}
    if verb.version_of is not None:
        data["expected_version"] = expected_version(request)
    return verb.input.model_validate_json(json.dumps(data), strict=True)


def _query(verb: Verb, request: Request) -> dict[str, Any]:
    given = request.query_params.multi_items()
    data = dict(given)
    if len(data) != len(given):
        raise Problem(422, "invalid-input", "a parameter is given twice", fix="give each parameter once")
    return {name: _meant(text, verb.input.model_fields.get(name)) for name, text in data.items()}


def _meant(text: str, field: FieldInfo | None) -> str | int | bool:
    """Return the number or the truth value that a text in a query stands for, where its field holds one."""
    kinds = set() if field is None else {field.annotation, *get_args(field.annotation)}
    if int in kinds and _WHOLE.fullmatch(text):
        return int(text)
    if bool in kinds and text in ("true", "false"):
        return text == "true"
    return text


async def read_body(request: Request) -> dict[str, Any]:
    """Return the body, one JSON object. A missing body is an empty object, for verbs that need no input."""
    try:
        raw = await request.body()
    except ClientDisconnect:
        raise Problem(408, "cut-off", "the body did not arrive", fix="send it again") from None
    if not raw:
        return {}
    media = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media != "application/json":
        raise Problem(415, "not-json", "a body must be JSON", fix="send Content-Type: application/json")
    try:
        data = json.loads(raw.decode("utf-8"), object_pairs_hook=_unique_names, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        detail = str(error) if isinstance(error, _RepeatedName) else "the body is not valid JSON"
        raise Problem(400, "not-json", detail, fix="send one JSON object, encoded as UTF-8") from None
    if not isinstance(data, dict):
        raise Problem(422, "invalid-input", "the body must be a JSON object", fix="send {…}")
    return data


class _RepeatedName(ValueError):
    """Parsers disagree on which value of a repeated name counts."""


def _unique_names(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    data = dict(pairs)
    if len(data) != len(pairs):
        raise _RepeatedName("an object of the body has the same name twice")
    return data


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def expected_version(request: Request) -> int | None:
    """Return the version that the caller has read: a number; 0 if the thing must be new; None for If-Match: *."""
    wanted, unwanted = request.headers.get("if-match"), request.headers.get("if-none-match")
    if wanted is None and unwanted is None:
        fix = 'send If-Match with the ETag you read, such as "3"; * overwrites any version'
        raise Problem(428, "version-needed", "a change must say which version it changes", fix=fix)
    if wanted is None:
        if unwanted != "*":
            raise Problem(422, "invalid-input", "If-None-Match can only be *", fix="send If-Match with a version")
        return 0
    if wanted.strip() == "*":
        return None
    match = _ETAG.fullmatch(wanted.strip())
    if match is None:
        fix = 'send the ETag as the server gave it, such as "3"'
        raise Problem(422, "invalid-input", "If-Match is not an ETag of this server", fix=fix)
    return int(match[1])


# Scope keys

SCOPE = "lukasa-scope"


def scope_of(request: Request) -> dict[str, str]:
    """Return the scope keys that the header binds, written like a query: org_id=acme&domain_id=billing."""
    given = request.headers.getlist(SCOPE)
    if not given:
        return {}
    try:
        pairs = parse_qsl(given[0], strict_parsing=True, keep_blank_values=True, encoding="utf-8", errors="strict")
    except ValueError:
        pairs = []
    if len(given) > 1 or not pairs or len(dict(pairs)) != len(pairs):
        fix = "send one header like `Lukasa-Scope: org_id=acme&domain_id=billing`, each key once"
        raise Problem(422, "invalid-input", "the Lukasa-Scope header binds no scope keys", fix=fix)
    return dict(pairs)


# Idempotency keys

ABANDONED = timedelta(minutes=1)


def _idempotency_key(verb: Verb, request: Request) -> str | None:
    key = request.headers.get("idempotency-key")
    if key is None or not (verb.method == "POST" and verb.mutates):
        return None
    if not verb.keyed:
        fix = "send the request without a key"
        raise Problem(422, "invalid-input", "the answer is a secret, which is not kept for a key", fix=fix)
    if not 1 <= len(key) <= MOST_KEY or not key.isprintable() or not key.isascii():
        detail = f"an idempotency key has 1 to {MOST_KEY} printable ASCII characters"
        raise Problem(422, "invalid-input", detail, fix="use a UUID")
    return key


def key_of(credential: Credential, method: str, path: str, key: str) -> str:
    """Return the key to store: two callers, or two paths, never share one."""
    return _digest("\n".join((credential.holder, method, path, key)))


def once(ctx: CallContext, key: str, request: str, work: Callable[[], tuple[int, str]]) -> tuple[int, str, bool]:
    """Return status and body, and whether they are from an earlier call. `request` holds the whole input."""
    digest, store, now = _digest(request), ctx.local, ctx.now
    before = store.answer(key)
    if before is None or not before.status:
        try:
            ctx.apply(store, ForgetAnswers(now - KEEP_ANSWERS), SaveAnswer(Answer(key, digest, now), now - ABANDONED))
        except Conflict:
            before = store.answer(key)
        else:
            return (*_work_and_keep(ctx, Answer(key, digest, now), work), False)
    if before is None or (before.request == digest and not before.status):
        raise Problem(409, "in-progress", "a request with this key is in progress", fix="ask again in a moment")
    if before.request != digest:
        raise Problem(422, "key-reused", "this key belongs to another request", fix="use a new key for each request")
    return before.status, before.body, True


def _work_and_keep(ctx: CallContext, taken: Answer, work: Callable[[], tuple[int, str]]) -> tuple[int, str]:
    try:
        status, body = work()
    except BaseException:
        ctx.apply(ctx.local, DropAnswer(taken.key))
        raise
    ctx.apply(ctx.local, SaveAnswer(Answer(taken.key, taken.request, taken.at, status, body)))
    return status, body


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
