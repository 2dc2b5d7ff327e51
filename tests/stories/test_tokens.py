"""What memory costs in a model's own tokens: the tools that a client lists, an answer, and a context (U3, B21)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from mcp.client import Client

from lukasa import Lukasa, Workspace
from lukasa.surfaces.mcp.server import INSTRUCTIONS
from tests.helpers.cli import Shell
from tests.helpers.making import FixedClock
from tests.helpers.mcp import beside, lent, piped, session, told, words
from tests.helpers.tokens import count_tokens

MOST_FOR_TOOLS, MOST_FOR_SEVEN = 2_500, 500
SEVEN = (
    "The greenhouse sensors report over LoRa every fifteen minutes, and Tamsin owns the gateway.",
    "Seedlings in bay 3 wilted in June because the vents stuck open overnight.",
    "The greenhouse controller firmware is built with Zephyr 3.7, not with the vendor's toolchain.",
    "Humidity alarms for the greenhouse go to the garden channel and to nobody's phone.",
    "Tamsin wants greenhouse charts in local time, even though the database holds UTC.",
    "The greenhouse budget for next spring is 4,200 euros, of which 900 are for glass.",
    "Never water bay 1 from the greenhouse controller: its valve leaks into the meter box.",
)


@pytest.fixture
def memory(tmp_path: Path, clock: FixedClock) -> Any:
    with Lukasa.open(tmp_path / "data", embedder="none", clock=clock, principal="ada") as opened:
        opened.workspace("novel")
        yield opened


@pytest.fixture
def world(memory: Lukasa) -> Workspace:
    agent = memory.workspace("novel").acting(agent="claude")
    agent.put_many("workspace", SEVEN)
    return agent


def test_the_tools_that_an_agent_lists(tmp_path: Path) -> None:
    """U3: `lukasa mcp` as an installed client starts it: its tools as JSON, and its instructions."""

    async def ask(client: Client) -> str:
        tools = (await client.list_tools()).tools
        return json.dumps([tool.model_dump(mode="json", by_alias=True, exclude_none=True) for tool in tools])

    listed = session(lambda: piped(Shell(tmp_path / "data"), "--agent", "cursor"), ask)
    assert "memory_read" in listed
    assert count_tokens(listed) + count_tokens(INSTRUCTIONS) <= MOST_FOR_TOOLS


def test_seven_hits_of_one_line(memory: Lukasa, world: Workspace) -> None:
    """U3: the seven texts, what is unusual about each, and an id for each; scores and provenance only on request."""

    async def ask(client: Client) -> tuple[str, str]:
        text = await told(client, "memory_read", query="what is there to know about the greenhouse and its seedlings?")
        whole = await client.call_tool("memory_read", {"query": "greenhouse seedlings", "detail": True})
        return text, words(whole)

    text, whole = session(lambda: beside(memory, lent(memory)), ask)
    assert all(f"> {line}" in text for line in SEVEN)
    assert count_tokens(text) <= MOST_FOR_SEVEN
    assert "score" not in text
    assert "score" in whole


def test_the_frame_of_an_item_is_about_as_long_as_its_text(world: Workspace) -> None:
    """C2, C3: seven memories of one line in a context cost at most 2.1 times their own tokens, whatever their ids."""
    text = str(world.context("what is there to know about the greenhouse and its seedlings?"))
    shown = text[text.index("## Recalled from") :].split("\n", 1)[1]
    assert all(f"> {line}" in shown for line in SEVEN)
    assert count_tokens(shown) <= 2.1 * sum(map(count_tokens, SEVEN))
