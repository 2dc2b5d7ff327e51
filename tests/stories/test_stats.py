"""Statistics, and upkeep from the command line."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from lukasa import Memo, Workspace
from lukasa.model.errors import InvalidQuery, Refused
from tests.helpers.cli import Shell, strict
from tests.helpers.making import FixedClock
from tests.helpers.upkeep import run


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path)


def test_stats_count_what_is_there_and_what_happened(world: Workspace, clock: FixedClock) -> None:
    """T2: entries by tier and state, what was written and discarded since a time, jobs and how the work went."""
    world.put("workspace", "The harbour freezes in January", source="page")
    clock.time += timedelta(days=8)
    gone = world.put("workspace", "The lantern stands in the attic").id
    world.put("account", "Prefers metric units in all tables")
    world.forget(gone)
    world.put_many("workspace", [Memo("ok", observed=True)])
    run(world, "maintain")
    found = world.stats()
    assert (found.total(), found.total(tier="workspace", state="active"), found.total(source="page")) == (3, 1, 1)
    assert (found.added, found.events["entry.discarded"]) == (2, 1)
    assert world.stats("1h").events.get("entry.put", 0) == 1
    assert [t.count for t in found.work if t.action == "maintain.completed"] == [1]
    assert found.jobs["done"] == 1  # type: ignore[index]
    assert {w.entry.content for w in found.fading} == {e.content for e in world.entries("workspace")} | {
        e.content for e in world.entries("account")
    }


def test_stats_are_the_authors(world: Workspace) -> None:
    """B2, W9: an agent does not see how much others keep; a time that is none is refused."""
    with pytest.raises(Refused):
        world.acting(agent="helper").stats()
    with pytest.raises(InvalidQuery):
        world.stats("a while")


def test_stats_for_people(shell: Shell) -> None:
    """T2, U2: an empty memory says what to do; then counts, and the same as data."""
    assert "No entries here yet" in shell.run("stats")
    strict(shell)
    shell.put("The harbour freezes in January")
    shell.json("put", "ok")
    told = shell.run("stats", "--since", "24h")
    assert "1 entry" in told
    assert "entry.discarded  1" in told
    data = shell.json("stats")
    assert (data["added"], data["events"]["entry.put"]) == (1, 1)


def test_how_many_were_discarded_and_how_long_reflecting_takes(shell: Shell) -> None:
    """T2: both are answered by `lukasa stats`, for people and as data."""
    strict(shell)
    for text in ("ok", "no", "The harbour freezes in January"):
        shell.json("put", text)
    shell.json("reflect")
    told = shell.run("stats", "--since", "7d")
    assert "stored 1, discarded 2" in told
    assert "reflect job.done" in told
    data = shell.json("stats")
    assert data["outcomes"] == {"stored": 1, "discarded": 2}
    work = {f"{tally['component']} {tally['action']}": tally for tally in data["work"]}
    assert work["reflect job.done"]["mean_ms"] > 0
    assert work["memory put"]["count"] == 3


def test_reports_are_searched(shell: Shell) -> None:
    """T1: by what they are of, and those that failed; with counts, and no word of what is remembered."""
    assert "No such telemetry event." in shell.run("reports", "--component", "reflect")
    shell.put("The harbour freezes in January")
    shell.run("read", "when does the harbour freeze?")
    shell.fails("forget", "01a00000-0000-7000-8000-000000000000", code=1)
    told = shell.run("reports")
    assert "memory put" in told
    assert "stored 1" in told
    assert "harbour" not in told
    (put,) = shell.json("reports", "--component", "memory", "--action", "put")["reports"]
    assert (put["success"], put["metadata"]["stored"]) == (True, 1)
    failed = shell.json("reports", "--failed")["reports"]
    assert {(report["action"], report["level"]) for report in failed} == {("forget", "error")}
    assert len(shell.json("reports", "--limit", "1")["reports"]) == 1
    assert shell.fails("reports", "--since", "a while", code=2)["code"] == "invalid-query"
    assert shell.fails("reports", "--agent", "scout", code=1)["code"] == "refused"


def test_upkeep_from_the_command_line(shell: Shell) -> None:
    """O5, O7, U2: a dry run changes nothing; a run is a job that can be undone; the answer is also data."""
    assert "Nothing to do" in shell.run("maintain", "--dry-run")
    for number in range(3):
        shell.put(f"Goose {number} sat on pond {number * 7}", "--kind", "episodic")
    assert shell.json("consolidate", "--dry-run")["result"] == {}
    done = shell.json("consolidate", "--tier", "workspace")
    assert (done["job"]["state"], done["result"]) == ("done", {})
    assert shell.json("maintain")["result"]["entries_open"] == 3
    shell.fails("consolidate", "--tier", "attic", code=2)


def test_dispositions_from_the_command_line(shell: Shell) -> None:
    """D3, U2: the queue says what it is for when it is empty."""
    assert "No entry needs a decision" in shell.run("disposition", "list")
    assert shell.json("disposition", "list") == {"waiting": []}
    id = shell.put("Goose 4 sat on pond 28", "--kind", "semantic")
    for how in ("promote", "exempt", "archive"):
        shell.fails("disposition", how, id, code=1)
