"""Anthropic's own SDK drives the memory tool: its tool runners against a server that speaks the Messages API."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from anthropic import Anthropic, AsyncAnthropic
from anthropic.lib.tools import BetaAbstractMemoryTool

from lukasa import Workspace
from lukasa.anthropic import AsyncRunnerMemoryTool, RunnerMemoryTool
from lukasa.ports import Reply, ToolCall
from tests.helpers.chat_server import Asked, ChatServer

PLAN = "/memories/plan.md"
COMMANDS: tuple[dict[str, Any], ...] = (
    {"command": "view", "path": "/memories"},
    {"command": "create", "path": PLAN, "file_text": "We ship in March.\nAnna decides.\n"},
    {"command": "str_replace", "path": PLAN, "old_str": "March", "new_str": "April"},
    {"command": "insert", "path": PLAN, "insert_line": 1, "insert_text": "The tests come first.\n"},
    {"command": "view", "path": PLAN, "view_range": [1, 2]},
    {"command": "rename", "old_path": PLAN, "new_path": "/memories/release/plan.md"},
    {"command": "create", "path": "/memories/draft.md", "file_text": "Nothing yet.\n"},
    {"command": "delete", "path": "/memories/draft.md"},
)
ANSWERS = (
    "Here're the files and directories up to 2 levels deep in /memories",
    f"File created successfully at: {PLAN}",
    "The memory file has been edited. Here is the snippet showing the change (with line numbers):\n"
    "     1\tWe ship in April.",
    f"The file {PLAN} has been edited.",
    f"Here's the content of {PLAN} with line numbers:\n     1\tWe ship in April.\n     2\tThe tests come first.",
    f"Successfully renamed {PLAN} to /memories/release/plan.md",
    "File created successfully at: /memories/draft.md",
    "Successfully deleted /memories/draft.md",
)


def claude(*commands: dict[str, Any]) -> Callable[[Asked], Reply]:
    """A model that gives one command after another, then ends."""

    def model(asked: Asked) -> Reply:
        done = sum(message.role == "tool" for message in asked.messages)
        if done == len(commands):
            return Reply("Done.")
        return Reply("", (ToolCall(f"toolu_{done}", "memory", commands[done]),))

    return model


def results(server: ChatServer) -> Iterator[dict[str, Any]]:
    """The tool_result blocks of a whole run, as they went over the wire."""
    for message in server.asked[-1].body["messages"]:
        blocks = message["content"] if isinstance(message["content"], list) else []
        yield from (block for block in blocks if block["type"] == "tool_result")


def asking(server: ChatServer) -> dict[str, Any]:
    """How a client reaches the server."""
    return {"api_key": "none", "base_url": server.url, "max_retries": 0}


def run(server: ChatServer, tool: RunnerMemoryTool, **options: Any) -> Any:
    """A run of the SDK's runner to its end."""
    with Anthropic(**asking(server)) as client:
        question: Any = [{"role": "user", "content": "Where were we?"}]
        runner: Any = client.beta.messages.tool_runner(
            model="fake", max_tokens=1000, messages=question, tools=[tool], **options
        )
        return runner.until_done()


@pytest.mark.parametrize("options", [{}, {"stream": True}, {"thread": False}], ids=["thread", "stream", "whole"])
def test_the_tool_runner(world: Workspace, options: dict[str, Any]) -> None:
    """B11: all six commands through the SDK's tool runner, and the file is memory like everything else."""
    with ChatServer(claude(*COMMANDS)) as server:
        last = run(server, RunnerMemoryTool(world.acting(agent="claude")), **options)
        assert last.content[0].text == "Done."
        for block, answer in zip(results(server), ANSWERS, strict=True):
            assert block["content"].startswith(answer)
            assert not block.get("is_error")
        assert server.asked[0].body["tools"] == [{"type": "memory_20250818", "name": "memory"}]
    hit = world.read("when do we ship?")[0]
    assert (hit.entry.path, hit.content) == (
        "release/plan.md",
        "We ship in April.\nThe tests come first.\nAnna decides.\n",
    )


def test_the_async_tool_runner(world: Workspace) -> None:
    """B11: the same on an event loop, which goes on while memory works."""

    async def main(server: ChatServer) -> Any:
        async with AsyncAnthropic(**asking(server)) as client:
            runner = client.beta.messages.tool_runner(
                model="fake",
                max_tokens=1000,
                messages=[{"role": "user", "content": "Where were we?"}],
                tools=[AsyncRunnerMemoryTool(world.acting(agent="claude"))],
            )
            return await runner.until_done()

    with ChatServer(claude(*COMMANDS)) as server:
        assert asyncio.run(main(server)).content[0].text == "Done."
        for block, answer in zip(results(server), ANSWERS, strict=True):
            assert block["content"].startswith(answer)


@pytest.mark.parametrize(
    ("command", "answer"),
    [
        ({"command": "view", "path": "/memories/none.md"}, "The path /memories/none.md does not exist."),
        ({"command": "create", "path": "/memories/../x", "file_text": ""}, "Error: Path /memories/../x would escape"),
        ({"command": "str_replace", "path": "/memories/named/VOICE.md", "old_str": "a", "new_str": "b"}, "Error: "),
        ({"command": "burn", "path": "/memories"}, "Error: Unknown command: burn."),
        ({}, "Error: Unknown command: nothing."),
    ],
)
def test_what_cannot_be_done_is_marked(world: Workspace, command: dict[str, Any], answer: str) -> None:
    """B11: a refusal is a result marked as an error, in our words, and the run goes on."""
    with ChatServer(claude(command)) as server:
        assert run(server, RunnerMemoryTool(world)).content[0].text == "Done."
        (block,) = results(server)
    assert block["is_error"] is True
    assert block["content"].startswith(answer)


def test_a_base_class_of_the_sdk(world: Workspace) -> None:
    """B11: it is one of the SDK's memory tools, with its command objects and its cache mark."""
    tool = RunnerMemoryTool(world, cache_control={"type": "ephemeral"})
    assert isinstance(tool, BetaAbstractMemoryTool)
    assert tool.to_dict() == {"type": "memory_20250818", "name": "memory", "cache_control": {"type": "ephemeral"}}
    with ChatServer(claude()) as server:
        run(server, tool)
        assert server.asked[0].body["tools"] == [tool.to_dict()]


def test_the_plain_tool_does_not_load_the_sdk(tmp_path: Path) -> None:
    """B11: without the SDK, or before it is wanted, the plain tool works."""
    code = "import sys; from lukasa import Lukasa; from lukasa.anthropic import MemoryTool\n"
    code += "tool = MemoryTool(Lukasa.open(sys.argv[1], embedder='none').workspace())\n"
    code += "print(tool.call({'command': 'view', 'path': '/memories/x'}), 'anthropic' in sys.modules)"
    ran = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=True)
    assert ran.stdout == "The path /memories/x does not exist. Please provide a valid path. False\n"
