"""`lukasa worker` and `lukasa jobs` as somebody at a terminal meets them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lukasa import Lukasa
from lukasa.model.job import JobDraft
from lukasa.storage.operations import Enqueue
from tests.helpers.cli import Shell


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path, {"LUKASA_EMBEDDER": "none", "LUKASA_CHAT": "none"})


def ask_for(shell: Shell, *kinds: str) -> None:
    with Lukasa.open(shell.data, embedder="none") as memory:
        ctx = memory.workspace().ctx
        ctx.apply(ctx.local, *(Enqueue(JobDraft(kind, f"{kind}:1", {"n": 1})) for kind in kinds))


def test_nothing_to_do_is_said(shell: Shell) -> None:
    """U2: an empty queue says so, and what to do next; for programs it is an empty list."""
    assert "No background jobs yet." in shell.run("jobs")
    assert "No such job." in shell.run("jobs", "list", "--state", "dead")
    assert shell.json("jobs") == {"jobs": []}
    assert shell.run("worker", "--once") == "Nothing is due.\n"


def test_a_pass_tells_each_job(shell: Shell) -> None:
    """O2, U2: a line a job for people, a line of JSON a job for programs."""
    ask_for(shell, "tidy", "unknown")
    assert shell.run("worker", "--drain").startswith("done  main  tidy")
    ask_for(shell, "backfill")
    (told,) = shell.run("worker", "--once", "--json").splitlines()
    found = json.loads(told)
    assert (found["kind"], found["outcome"], found["result"], found["attempt"]) == (
        "backfill",
        "done",
        {"embedded": 0},
        1,
    )
    assert [job["kind"] for job in shell.json("jobs", "list", "--state", "queued")["jobs"]] == ["unknown"]
    assert [job["state"] for job in shell.json("jobs", "list", "--kind", "tidy")["jobs"]] == ["done"]


def test_a_job_is_shown_cancelled_and_retried(shell: Shell) -> None:
    """T06, U2: by id or key; a wrong one is an error with its fix."""
    ask_for(shell, "unknown")
    shown = shell.run("jobs", "show", "unknown:1")
    assert "unknown queued" in shown
    assert "0 of 5" in shown
    data = shell.json("jobs", "show", "unknown:1")
    assert (data["job"]["payload"], data["steps"]) == ({"n": 1}, {})
    id = data["job"]["id"]
    assert shell.run("jobs", "cancel", id, "--reason", "wrong file") == f"cancelled {id}\n"
    assert "wrong file" in shell.run("jobs")
    assert shell.fails("jobs", "cancel", id, code=1)["code"] == "invalid-transition"
    assert shell.run("jobs", "retry", id).startswith(f"queued {id}")
    assert shell.fails("jobs", "show", "nobody", code=1)["code"] == "not-found"
    assert shell.fails("jobs", "--agent", "scout", code=1)["code"] == "refused"
    assert [e["action"] for e in shell.json("events")["events"] if e["action"].startswith("job.")] == [
        "job.cancelled",
        "job.retried",
    ]


def test_a_wrong_budget_is_an_error(shell: Shell) -> None:
    """T06: a typo in a limit is not no limit."""
    shell.env["LUKASA_BUDGET_TOKENS"] = "plenty"
    assert "LUKASA_BUDGET_TOKENS=plenty" in shell.fails("worker", "--once", code=2)["message"]
