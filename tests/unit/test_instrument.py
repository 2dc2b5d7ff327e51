"""A verb runs in the context that it was called with, and reports once, whoever else is at work."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest
from msgspec.structs import asdict

from lukasa import Lukasa, Workspace
from lukasa.model.errors import InvalidContent
from lukasa.model.telemetry import TelemetryQuery
from lukasa.service.call import CallContext
from lukasa.service.instrument import verb
from tests.helpers.making import FixedClock


class LaterContext(CallContext, frozen=True):
    """A context with a field that somebody added behind all others."""

    region: str = "nowhere"


@verb("test", "look")
def look(ctx: CallContext) -> CallContext:
    return ctx


@verb("test", "copy")
def copy(ctx: CallContext, into: Workspace) -> None:
    into.put("workspace", "The lantern hangs in the hall")


@pytest.fixture
def memory() -> Iterator[Lukasa]:
    with Lukasa.open(in_memory=True, embedder="none", clock=FixedClock()) as opened:
        yield opened


def reported(world: Workspace) -> list[tuple[str, str, bool]]:
    """The telemetry events of a workspace, the oldest first."""
    found = reversed(world.ctx.local.points(TelemetryQuery(), limit=100))
    return [(event.component, event.action, event.success) for event in found]


def test_a_verb_gets_the_context_it_was_called_with(memory: Lukasa) -> None:
    """A context may grow fields: each keeps its value through a verb."""
    given = LaterContext(**asdict(memory.workspace("novel").ctx), region="north")
    seen = look(given)
    assert type(seen) is LaterContext
    assert asdict(seen) == asdict(given)


def test_a_verb_of_another_workspace_reports_there(memory: Lukasa) -> None:
    """A verb that writes into a second workspace is reported in both, each once."""
    here, there = memory.workspace("here"), memory.workspace("there")
    copy(here.ctx, there)
    assert reported(here) == [("test", "copy", True)]
    assert reported(there) == [("memory", "put", True)]


def test_after_a_refusal_the_next_verb_reports_again(memory: Lukasa) -> None:
    world = memory.workspace("novel")
    with pytest.raises(InvalidContent):
        world.put("workspace", "")
    world.put("workspace", "The lantern hangs in the hall")
    assert reported(world) == [("memory", "put", False), ("memory", "put", True)]


def test_threads_report_each_for_itself(memory: Lukasa) -> None:
    """A verb under way in one thread does not swallow the report of a verb in another."""
    world = memory.workspace("novel")

    @verb("test", "wait")
    def wait(ctx: CallContext) -> None:
        other = threading.Thread(target=world.put, args=("workspace", "The lantern hangs in the hall"))
        other.start()
        other.join()

    wait(world.ctx)
    assert sorted(reported(world)) == [("memory", "put", True), ("test", "wait", True)]
