"""Nonsense of every type to every verb, over HTTP and MCP: a short typed refusal or an answer, never a failure."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import pytest

from lukasa import Lukasa
from lukasa.model.grant import OWNERS_ALONE, Capability
from lukasa.surfaces.api.table import VERBS
from lukasa.surfaces.api.verb import Verb
from tests.helpers.cli import Shell
from tests.helpers.server import Answer, Client, Running, running

LONG = "x" * 300_000
DEEP: Any = json.loads("[" * 60 + "]" * 60)
NONSENSE: dict[str, Any] = {
    "null": None,
    "true": True,
    "negative": -1,
    "zero": 0,
    "huge": 2**80,
    "float": 1e308,
    "nan": float("nan"),
    "infinite": float("-inf"),
    "empty": "",
    "blank": " \t\n",
    "long": LONG,
    "nul": "a\x00b",
    "control": "two\nlines\x1b[2J\u202e",
    "surrogate": "half \ud800 of a pair",
    "path": "../../../../etc/passwd",
    "statement": "'); DROP TABLE entries; --",
    "list": ["x"] * 20_000,
    "deep": DEEP,
    "object": {LONG[:5000]: LONG, "\ud800": 1, "": None},
    "lists": [[], {}, None, -1, "\ud800"],
}
EACH = 10  # kinds of nonsense for one field of one verb
SHORT = 20_000  # bytes of a refusal
VERB = pytest.mark.parametrize("verb", VERBS, ids=[verb.name for verb in VERBS])


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with Lukasa.open(tmp_path_factory.mktemp("nonsense"), embedder="none") as memory:
        world = memory.workspace("novel")
        world.put("workspace", "The archive has four floors")
        with running(memory) as house:
            yield house


@pytest.fixture(scope="module")
def owner(house: Running) -> Client:
    return house.owner()


@pytest.fixture(scope="module")
def agent(house: Running) -> Client:
    can = [str(one) for one in Capability if one not in OWNERS_ALONE]
    return house.granted(*can, name="fuzz")


def inputs(verb: Verb, house: Running) -> Iterator[dict[str, Any]]:
    """Inputs that are right but for one field, that have another field, or that are wrong altogether."""
    world = house.memory.existing("novel")
    entry = world.entries("workspace", everything=True)[0].id
    right: dict[str, Any] = {"id": entry, "other": entry, "content": "A fact", "query": "archive", "name": "VOICE"}
    right |= {"mode": "universal", "workspaces": ["novel"], "memos": [{"content": "A fact"}], "kind": "consolidate"}
    fields = verb.input.model_fields
    base = {name: right.get(name, "text") for name, field in fields.items() if field.is_required()}
    dice = random.Random(verb.name)
    for name in fields:
        for kind in dice.sample(list(NONSENSE), EACH):
            yield {**base, name: NONSENSE[kind]}
    yield {**base, "no such field " + LONG[:5000]: 1}
    yield dict.fromkeys(fields, NONSENSE["deep"])


def path_of(verb: Verb, given: dict[str, Any]) -> str:
    """The path of a call; what it names by its path is written into it, whatever it is."""
    named = {"workspace": "novel"} | {name: quote(_text(given.get(name))[:2000], safe="") for name in verb.path_fields}
    return "/v1" + verb.path.format(**named)


def _text(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value)
    return text.encode("utf-8", "replace").decode() or "-"


def check(answer: Answer, *, fine: Sequence[int] = (502, 503)) -> None:
    """A refusal is typed and short; anything else is an answer. A language model may be missing."""
    assert answer.status < 500 or answer.status in fine, answer.body[:1000]
    assert b"Traceback" not in answer.body
    if answer.status >= 400:
        assert len(answer.body) < SHORT
        assert {"type", "detail", "fix"} <= set(answer.json)


@VERB
def test_http_answers_nonsense(house: Running, owner: Client, verb: Verb, capfd: pytest.CaptureFixture[str]) -> None:
    """T37: every field of every verb gets values of every kind: no 500, no trace, no echo of what was sent."""
    for given in inputs(verb, house):
        path, rest = path_of(verb, given), {k: v for k, v in given.items() if k not in verb.path_fields}
        if verb.method in ("GET", "DELETE"):
            short = {name: _text(value)[:3000] for name, value in rest.items()}
            check(owner.ask(verb.method, f"{path}?{urlencode(short)}"))
        else:
            check(owner.ask(verb.method, path, json.dumps(rest).encode(), if_match='"1"'))
    assert "Traceback" not in capfd.readouterr().err


@pytest.mark.parametrize(
    "body", [b"", b"\xff\xfe", b"[" * 100_000, b'{"a":' * 3000, b"nul", b'"text"', b"[1]", b'{"a":1,"a":2}', b"NaN"]
)
def test_bodies_that_are_no_object(house: Running, owner: Client, body: bytes) -> None:
    """T37: a body that is no JSON object is a refusal of its own."""
    check(owner.ask("POST", "/v1/workspaces/novel/read", body), fine=())


@VERB
def test_mcp_answers_nonsense(house: Running, agent: Client, verb: Verb, capfd: pytest.CaptureFixture[str]) -> None:
    """T37: the same over MCP: every message has an answer, and a wrong one says what to change in few words."""
    for number, given in enumerate(inputs(verb, house)):
        params = {"name": verb.name, "arguments": given}
        message = {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}
        answer = agent.post("/mcp/", json.dumps(message).encode(), accept="application/json, text/event-stream")
        assert answer.status in (200, 400), answer.body[:1000]
        assert b"Traceback" not in answer.body
        assert "result" in answer.json or "error" in answer.json
        assert answer.json["id"] == number or answer.status == 400
        if answer.status == 400 or "error" in answer.json or answer.json["result"].get("isError"):
            assert len(answer.body) < SHORT
            assert b"unexpected" not in answer.body, answer.body[:1000]
    assert "Traceback" not in capfd.readouterr().err


CALLS: tuple[tuple[str, ...], ...] = (
    ("put", "{}"),
    ("put", "text", "--tag", "{}"),
    ("put", "text", "--source", "{}"),
    ("put", "text", "--importance", "{}"),
    ("read", "{}"),
    ("read", "text", "--limit", "{}"),
    ("context", "{}"),
    ("get", "{}"),
    ("why", "{}"),
    ("list", "--tier", "{}"),
    ("-w", "{}", "list"),
    ("note", "write", "{}", "key", "value"),
    ("named", "show", "{}"),
    ("named", "edit", "{}", "--text", "text"),
    ("workspace", "create", "{}"),
    ("channel", "create", "{}"),
    ("grant", "create", "{}"),
    ("events", "list", "--after", "{}"),
    ("{}",),
)


@pytest.mark.parametrize("call", CALLS, ids=" ".join)
def test_the_command_line_answers_nonsense(tmp_path: Path, call: tuple[str, ...]) -> None:
    """T37: an argument that cannot be used is an error of a few lines with a code of its own."""
    shell = Shell(tmp_path)
    for value in ("", LONG, "a\nb\x1b[2J", "bytes \udcff", "-1", "1e400", "nan", "../../etc/passwd"):
        done = shell.call(*(part.format(value) for part in call))
        assert done.exit_code in (0, 1, 2), done.output[:1000]
        assert "unexpected" not in done.stderr, done.stderr[:1000]
        assert len(done.stderr) < SHORT
        answer = shell.call(*(part.format(value) for part in call), "--json")
        if answer.exit_code:
            assert len(answer.stdout) < SHORT
            assert set(json.loads(answer.stdout)["error"]) == {"code", "message", "fix"}


EVENT = {"session_id": "one", "hook_event_name": "UserPromptSubmit", "cwd": "/tmp", "prompt": "text"}


@pytest.mark.parametrize("moment", ["session-start", "prompt", "tool-failure", "pre-compact", "session-end"])
def test_hooks_survive_nonsense(tmp_path: Path, moment: str) -> None:
    """T37: whatever a harness sends, the hook ends well and says little: it must not stop a session."""
    shell = Shell(tmp_path)
    events: list[bytes] = [b"", b"\xff", b"[" * 50_000, b"null", b"[]"]
    for value in NONSENSE.values():
        events += [json.dumps({**EVENT, name: value}).encode() for name in ("session_id", "prompt", "cwd")]
    for event in events:
        done = shell.call("hook", moment, input=event)
        assert done.exit_code == 0, done.output[:1000]
        assert "unexpected" not in done.stderr, (event[:200], done.stderr[:1000])
        assert len(done.stderr) < SHORT
