"""Memory for the frameworks' own agent loops. These tests run where the frameworks are: `make frameworks`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from lukasa import Lukasa, Workspace
from lukasa.frameworks import for_users

TAUGHT = "I am allergic to peanuts and my sister Nora brings the dessert."
ASKED = "What about the dessert with peanuts?"
REPLY = "Noted."


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Lukasa]:
    with Lukasa.open(tmp_path / "data", embedder="none") as opened:
        yield opened


@pytest.fixture
def world(memory: Lukasa) -> Workspace:
    return memory.workspace("kitchen")


@pytest.fixture
def users(memory: Lukasa) -> Callable[[str, str], Workspace]:
    return for_users(memory)


def said_by_user(world: Workspace) -> list[str]:
    """What memory holds with the authority of the user."""
    return [hit.content for hit in world.read("peanuts dessert", limit=20) if str(hit.authority) == "act"]
