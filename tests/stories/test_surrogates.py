"""Half of a surrogate pair is no text: on every surface it gets an answer, and is never stored."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from lukasa import Lukasa
from lukasa.anthropic import MemoryTool
from lukasa.langgraph import LukasaStore, memory_tools
from lukasa.model.errors import InvalidInput, LukasaError
from tests.helpers.cli import COMMAND, Shell
from tests.helpers.server import running

HALF = "half \ud800 of a pair"
START = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}


@contextmanager
def piped(shell: Shell) -> Iterator[subprocess.Popen[bytes]]:
    command, pipe = [*COMMAND, "mcp"], subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, env=shell.environment(), bufsize=0) as process:
        asked(process, {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": START})
        yield process
        assert process.stdin is not None
        process.stdin.close()
        assert process.wait(30) == 0


def asked(process: subprocess.Popen[bytes], message: object) -> Any:
    """The answer to one line; without one, this waits until the test's time is over."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(message if isinstance(message, bytes) else json.dumps(message).encode() + b"\n")
    return json.loads(process.stdout.readline())


def call(number: int, tool: str, **arguments: object) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": {"name": tool, "arguments": arguments}}


def test_over_a_pipe_every_message_has_an_answer(tmp_path: Path) -> None:
    """A lone surrogate, a method that is no text and a line that is no JSON are answered, and the next call works."""
    with piped(Shell(tmp_path)) as process:
        for number, field in enumerate(("content", "kind", "tier", HALF), 1):
            answer = asked(process, call(number, "memory_put", **{"content": "text", field: HALF}))
            assert answer["id"] == number
            assert "lone surrogate" in answer["error"]["message"]
            assert "fix: " in answer["error"]["message"]
        assert asked(process, {"jsonrpc": "2.0", "id": 7, "method": 42})["id"] == 7
        assert asked(process, {"jsonrpc": "2.0", "id": HALF, "method": "tools/list"})["id"] is None
        assert asked(process, b"no JSON at all\n")["error"]["code"] == -32700
        assert asked(process, b'{"a":' * 4000 + b"\n")["error"]["code"] == -32700
        long = asked(process, {"jsonrpc": "2.0", "id": 8, "method": "x" * 500_000})
        assert len(json.dumps(long)) < 2_000
        stored = asked(process, call(9, "memory_put", content="The archive has four floors"))
        assert "stored" in stored["result"]["content"][0]["text"]


def test_over_http_the_answer_says_what_is_wrong(tmp_path: Path) -> None:
    """MCP over HTTP answers with the id of the call; the API answers with a problem, wherever the half pair was."""
    with Lukasa.open(tmp_path, embedder="none") as memory:
        memory.workspace("novel")
        with running(memory) as house:
            client = house.granted("read", "write", "conversations")
            before = house.heads()["novel"]
            message = json.dumps(call(5, "memory_put", content=HALF)).encode()
            answer = client.post("/mcp/", message, accept="application/json, text/event-stream")
            assert (answer.status, answer.json["id"]) == (400, 5)
            assert "lone surrogate" in answer.json["error"]["message"]
            entries = "/v1/workspaces/novel/entries"
            for body in (
                {"content": HALF},
                {"content": "text", "tags": [HALF]},
                {"content": "x", "metadata": {HALF: 1}},
            ):
                assert client.post(entries, body).status == 422
            assert client.post(entries, {"content": "text", HALF: 1}).status == 422
            assert client.post("/v1/workspaces/novel/read", {"query": HALF}).status == 422
            assert house.heads()["novel"] == before


def test_on_the_command_line_and_in_hooks(tmp_path: Path) -> None:
    """Bytes that are no text are an error with a code, not a traceback; a hook ends well."""
    shell = Shell(tmp_path)
    done = shell.process("put", b"bytes \xff".decode("utf-8", "surrogateescape"), "--json")
    assert done.returncode == 2
    assert json.loads(done.stdout)["error"]["code"] == "invalid-content"
    event = {"session_id": HALF, "hook_event_name": "UserPromptSubmit", "cwd": "/tmp", "prompt": HALF}
    for moment in ("session-start", "prompt", "session-end"):
        done = shell.process("hook", moment, input=json.dumps(event).encode())
        assert done.returncode == 0
        assert b"Traceback" not in done.stderr
        assert b"unexpected" not in done.stderr


def test_in_langgraph(tmp_path: Path) -> None:
    """The store refuses it in namespaces, keys and values with a ValueError; a tool answers the model with an error."""
    with Lukasa.open(tmp_path, embedder="none") as memory:
        world = memory.workspace("novel")
        store = LukasaStore(world)
        for namespace, key, value in (((HALF,), "key", "text"), (("a",), HALF, "text"), (("a",), "key", HALF)):
            with pytest.raises(ValueError, match=r"surrogate|control character|text"):
                store.put(namespace, key, {"text": value})
        with pytest.raises(ValueError, match="surrogate"):
            store.get(("a",), HALF)
        assert store.search(("a",), query=HALF) == []
        put = next(tool for tool in memory_tools(world) if tool.name == "memory_put")
        assert json.loads(put.invoke({"content": HALF}))["error"]["code"].startswith("invalid")
        assert world.entries("workspace") == []


def test_in_anthropics_tool(tmp_path: Path) -> None:
    """The memory tool answers the model with an error, and makes no file."""
    with Lukasa.open(tmp_path, embedder="none") as memory:
        tool = MemoryTool(memory.workspace("novel"))
        for path, text in (("/memories/notes.md", HALF), (f"/memories/{HALF}.md", "text")):
            said = tool.call({"command": "create", "path": path, "file_text": text})
            assert said.startswith("Error")
            said.encode()


def test_in_the_library(tmp_path: Path) -> None:
    """Every verb that stores text refuses it by type, with a message that can be printed."""
    with Lukasa.open(tmp_path, embedder="none") as memory:
        world = memory.workspace("novel")
        for attempt in (
            lambda: world.put("workspace", HALF),
            lambda: world.put("workspace", "text", source=HALF),
            lambda: world.edit_named("VOICE", HALF),
            lambda: world.save_document("guide", HALF),
            lambda: world.create_channel(HALF),
            lambda: world.get(HALF),
            lambda: memory.workspace(HALF),
        ):
            with pytest.raises(LukasaError) as caught:
                attempt()
            assert isinstance(caught.value, InvalidInput | LookupError)
            str(caught.value).encode()
        assert world.read(HALF).hits == ()
        with pytest.raises(LukasaError):
            world.undo("9" * 40)
