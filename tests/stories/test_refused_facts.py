"""A refused fact stops neither the other facts nor the end: at the end of a session and in an observation (L1, W9)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from lukasa import Lukasa, Workspace
from lukasa.model.telemetry import TelemetryQuery
from lukasa.model.transcript import Progress
from lukasa.service.jobs import handlers
from lukasa.service.sessions import observe, session
from lukasa.service.sessions.distill import Distilled, Fact, Turn
from lukasa.spec import preset_text
from tests.helpers import sessions
from tests.helpers.talk import facts

SHORT = "We decided to paint the boat green."
LONG = "We decided to moor the boat at the north pier from the first of May until the last day of October."


@pytest.fixture
def world(tmp_path: Path) -> Iterator[Workspace]:
    """A memory whose entries have at most 60 characters."""
    spec = preset_text("observer").replace("max_chars = 20000", "max_chars = 60")
    with Lukasa.open(tmp_path / "data", embedder="none") as memory:
        yield memory.workspace("harbour", spec=spec)


def test_an_observation_goes_on_after_a_refusal(world: Workspace, tmp_path: Path) -> None:
    """W9: the fact that is too long is told with its reason; the other is stored, and the session is observed."""
    world.observe(sessions.claude(tmp_path / "s.jsonl", [("user", LONG), ("user", SHORT)]))
    while handlers.run_next(world.ctx, handlers={"observe": observe.observe}) is not None:
        pass
    assert [entry.content for entry in facts(world)] == [SHORT]
    assert world.transcripts()[0].progress is Progress.OBSERVED
    (point,) = world.ctx.local.points(TelemetryQuery(action="observe.refused"))
    assert point.metadata["error"] == "invalid-content"
    assert "60" in point.metadata["reason"]


def test_a_session_ends_after_a_refusal(world: Workspace) -> None:
    """L1: too long, too long to look for, of the wrong importance: each is listed, the others are stored."""
    wrong = (Fact(LONG), Fact("x" * 30_000), Fact("The boat has two masts", importance=7.0))
    here = session.begin(world.acting(agent="assistant"))
    session.record(here, Turn("user", "The boat"))
    done = session.persist(here, distil=lambda said: Distilled((*wrong, Fact(SHORT))))
    assert [entry.content for entry in facts(world)] == [SHORT]
    assert {(refused.text, refused.code) for refused in done.refused if refused.text in {f.text for f in wrong}} == {
        (LONG, "invalid-content"), ("x" * 30_000, "invalid-content"), ("The boat has two masts", "invalid-importance"),
    }  # fmt: skip
    assert done.conversation.status == "idle"
    assert world.events(action="session.persist_failed") == []
