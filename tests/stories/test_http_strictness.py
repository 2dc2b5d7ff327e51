"""The OpenAPI document is as strict as the server: a request that it allows is never called invalid, and one that it
forbids is never carried out. Each request is a good one with one field changed."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from copy import deepcopy
from typing import Any
from urllib.parse import quote, urlencode

import pytest
from jsonschema import Draft202012Validator

from lukasa import Lukasa
from lukasa.surfaces.api.table import VERBS
from lukasa.surfaces.api.verb import Verb
from lukasa.surfaces.http.openapi import document
from tests.helpers.making import FixedClock
from tests.helpers.server import Answer, Client, Running, running
from tests.helpers.web import any_web
from tests.stories.test_http_matrix import EXAMPLES, Things, filled

DOCUMENT = document(VERBS)
UUID = "7e0f7a3e-1d6b-4c0e-9d55-0d9c5f3b7a11"
TEXTS = ["", " ", "x", "true", "12", "a\nb", "nul\x00", "x" * 201, "x" * 20_001, "2026-11-15T09:30:00Z", "7d", UUID]
NUMBERS = [-1, 0, 1, 7, 0.5, 2, 2**31, 2**53 + 1, 2**63, 1.5]
OTHERS: list[Any] = [None, True, False, [], {}, [""], ["x"], [UUID], [1], ["x"] * 300, {"x": "y"}, {"x": {"y": [1]}}]
POOL: list[Any] = [*TEXTS, *NUMBERS, *OTHERS]

# Rules between two fields, and rules of the workspace that a request goes to: no schema of one field can state them.
DEPENDS = re.compile(
    "unknown tier|no tier |unknown profile|no scope key|characters, more than the 20,000|is in the workspace tier"
    "|the owner sees every entry|cannot be cited: no project|does not cite|a location, or a name|takes no prune"
    "|is no submission|among the memories|name a tier, or for purge_thread|name one entry, one source"
    "|the grant would expire|is in no format"
    "|there is no format|it is empty|is not a path|File name too long|must be one name|value holds a NUL"
)


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with Lukasa.open(tmp_path_factory.mktemp("strict"), embedder="none", clock=FixedClock()) as memory:
        memory.workspace("novel")
        memory.workspace("other")
        with running(memory) as house, any_web():
            yield house


def whole(schema: Any) -> Any:
    """A schema with the schemas of the document that it may name."""
    return {**schema, "components": DOCUMENT["components"]}


def meant(text: str, schema: dict[str, Any]) -> Any:
    """The value that a text in a query is, by the type that the document names."""
    types = {schema.get("type")} | {one.get("type") for one in schema.get("anyOf", ())}
    if "integer" in types and re.fullmatch(r"-?(0|[1-9]\d*)", text):
        return int(text)
    if "boolean" in types and text in ("true", "false"):
        return text == "true"
    return text


def requests(verb: Verb) -> Iterator[tuple[str, str, Any, bool]]:
    """Each place and field of a verb, with a value for it, and whether the document allows the value."""
    operation = DOCUMENT["paths"][f"/v1{verb.path}"][verb.method.lower()]
    for parameter in operation["parameters"]:
        schema, name = parameter["schema"], parameter["name"]
        if parameter["in"] == "header" or name == "workspace":
            continue
        validator = Draft202012Validator(whole(schema))
        for text in [*TEXTS, *map(str, NUMBERS)]:
            if parameter["in"] == "query" or text.strip():
                yield parameter["in"], name, text, validator.is_valid(meant(text, schema))
    body = operation.get("requestBody")
    if body is not None:
        ref = body["content"]["application/json"]["schema"]["$ref"].rpartition("/")[2]
        schema = DOCUMENT["components"]["schemas"][ref]
        for name, field in schema.get("properties", {}).items():
            validator = Draft202012Validator(whole(field))
            for value in POOL:
                yield "body", name, value, validator.is_valid(value)


def send(client: Client, verb: Verb, things: Things, where: str, name: str, value: Any) -> Answer:
    places, said = deepcopy(EXAMPLES[verb.name])
    places, said = filled(places, things), filled(said, things)
    (places if where == "path" else said)[name] = value
    workspace = things["doomed"] if verb.name in ("workspace_remove", "workspace_rename") else "novel"
    parts = {key: quote(one, safe="") for key, one in {**places, "workspace": workspace}.items()}
    path = "/v1" + verb.path.format(**parts)
    headers = {"if_match": "*"} if verb.version_of is not None else {}
    if verb.method in ("GET", "DELETE"):
        return client.ask(verb.method, f"{path}?{urlencode(said)}" if said else path, **headers)
    return client.ask(verb.method, path, json.dumps(said).encode(), **headers)


@pytest.mark.parametrize("verb", VERBS, ids=lambda verb: verb.name)
def test_the_document_is_as_strict_as_the_server(house: Running, verb: Verb) -> None:
    """U4: allowed by the document and called invalid, or forbidden and done: neither happens for any field."""
    client, wrong = house.owner(), []
    named = DOCUMENT["paths"][f"/v1{verb.path}"][verb.method.lower()]["responses"]
    things = Things(house.memory)
    for where, name, value, allowed in requests(verb):
        answer = send(client, verb, things, where, name, value)
        shown = f"{where} {name}={json.dumps(value)[:60]} -> {answer.status} {answer.body[:160]!r}"
        if answer.status >= 500 and answer.status != 507:
            wrong.append(f"crash: {shown}")
        elif str(answer.status) not in named:
            wrong.append(f"unnamed: {shown}")
        elif allowed and answer.status in (400, 422) and not DEPENDS.search(answer.json["detail"]):
            wrong.append(f"looser: {shown}")
        elif not allowed and answer.status < 400:
            wrong.append(f"stricter: {shown}")
        if answer.status < 400 and verb.mutates:
            things = Things(house.memory)
    assert not wrong, "\n".join(wrong)


def test_a_number_beyond_the_database_is_wrong_input(house: Running) -> None:
    """U4: it was a 500, for the log and for the messages of a session."""
    client = house.owner()
    for path in ("events", "transcripts/none"):
        answer = client.get(f"/v1/workspaces/novel/{path}?after={2**63}")
        assert (answer.status, answer.json["type"]) == (422, "invalid-input")
    assert client.get(f"/v1/workspaces/novel/events?after={2**63 - 1}").json["events"] == []


@pytest.mark.parametrize(
    ("path", "allow"),
    [
        ("/v1/workspaces/novel/entries", "GET, HEAD, POST"),
        ("/v1/workspaces/novel/entries/x", "DELETE, GET, HEAD, PATCH"),
        ("/v1/workspaces", "GET, HEAD, POST"),
        ("/session", "DELETE, GET, HEAD, POST"),
    ],
)
def test_a_wrong_method_is_told_the_right_ones(house: Running, path: str, allow: str) -> None:
    """U4: a 405 carries `Allow` with the methods of every route at the path, as HTTP asks."""
    answer = house.owner().ask("PUT", path, {})
    assert (answer.status, answer.headers["allow"]) == (405, allow)


@pytest.mark.parametrize("key", ["", " ", "x" * 201, "k\u00e9y", "good-key_1"])
def test_the_headers_of_a_request_are_described(house: Running, key: str) -> None:
    """U4: the document says which idempotency keys there are."""
    operation = DOCUMENT["paths"]["/v1/workspaces/{workspace}/entries"]["post"]
    (header,) = [one for one in operation["parameters"] if one["name"] == "Idempotency-Key"]
    allowed = Draft202012Validator(header["schema"]).is_valid(key)
    client = house.granted(name=f"keys {len(key)} {ord(key[-1:] or ' ')}")
    headers = {"idempotency_key": key.encode().decode("latin-1")}
    answer = client.post("/v1/workspaces/novel/entries", {"content": "The key is here"}, **headers)
    assert (answer.status == 201) is allowed
