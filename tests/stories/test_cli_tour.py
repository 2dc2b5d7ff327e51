"""The guided tour: a real story, told with and without the embedding model (U2, B1)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lukasa.providers.embed.cached import default_cache
from lukasa.providers.embed.pull import pull
from tests.helpers.cli import Shell


@pytest.fixture(params=["none", "auto"])
def shell(request: pytest.FixtureRequest, tmp_path: Path) -> Shell:
    if request.param == "auto":
        pull(default_cache(), progress=lambda _: None)
    return Shell(tmp_path / "data", {"LUKASA_EMBEDDER": request.param})


def result(steps: list[dict[str, Any]], start: str) -> Any:
    return next(step["result"] for step in steps if step["step"].startswith(start))


def test_the_first_tour(shell: Shell) -> None:
    """U2, B1: stored, corrected, merged, discarded, ended, and recalled by another word in a new conversation."""
    steps = shell.json("tour")["steps"]
    assert {written["outcome"] for written in result(steps, "Remember")} == {"stored"}
    correction = result(steps, "Correct")
    assert [w["outcome"] for w in correction["writes"]] == ["stored", "replaced", "merged", "discarded"]
    assert correction["retired"]["state"] == "invalidated"
    assert result(steps, "End")["dropped"] == 1
    best = result(steps, "Ask in a new one")["hits"][0]["entry"]
    assert best["content"] == "The villain of the novel is called Vexis"
    context = result(steps, "What an agent")
    assert best["id"] in context["text"]
    assert [page["name"] for page in context["document"]["pinned"]] == ["SOUL", "VOICE"]


def test_a_second_tour_merges(shell: Shell) -> None:
    """U2: run again, it confirms instead of storing twice, and the correction is not undone."""
    first = shell.json("tour")["steps"]
    again = shell.json("tour")["steps"]
    lasting = [w for w in result(again, "Remember") if w["entry"]["tier"] != "conversation"]
    assert {written["outcome"] for written in lasting} == {"merged"}
    assert [w["outcome"] for w in result(again, "Correct")["writes"]] == ["merged", "merged", "discarded"]
    best = [result(steps, "Ask in a new one")["hits"][0]["entry"]["id"] for steps in (first, again)]
    assert best[0] == best[1]
    assert len(shell.json("-w", "tour", "list")["entries"]) == 4


def test_a_fresh_tour_forgets_the_one_before(shell: Shell) -> None:
    """M3: --fresh forgets what the tour remembered, and nothing of the user's own."""
    shell.run("tour")
    own = shell.put("My own fact about the harbour", "-w", "tour")
    steps = shell.json("tour", "--fresh")["steps"]
    assert len(result(steps, "Forget")) == 6  # with the fact that the end of its correction brought back
    assert [w["outcome"] for w in result(steps, "Correct")["writes"]][:2] == ["stored", "replaced"]
    assert shell.json("-w", "tour", "get", own)["state"] == "active"


def test_the_tour_for_people(shell: Shell) -> None:
    """U2: it says which model it has, why each line matched, and what to type next; and what it says to type works."""
    out = shell.run("tour")
    assert ("embedding model: none" in out) is (shell.env["LUKASA_EMBEDDER"] == "none")
    for said in (
        "it replaces",
        "merged with",
        "discarded: shorter",
        "matched by",
        "a named entry: always loaded",
        "Now you",
    ):
        assert said in out
    suggested = next(line for line in out.splitlines() if "why" in line and "antagonist" in line)
    id = suggested.split()[-1]
    assert "So it was returned." in shell.run("-w", "tour", "why", "who is the antagonist?", id)
    assert "conversation start" in shell.run("-w", "tour", "conversation", "list")


def test_a_tour_in_a_workspace_of_ones_choice(shell: Shell) -> None:
    assert shell.json("tour", "--workspace", "trip")["workspace"] == "trip"


def test_what_was_written_without_a_model_is_embedded_later(shell: Shell) -> None:
    """O8: `lukasa embed` fills in the vectors, and is done when there is nothing left."""
    pull(default_cache(), progress=lambda _: None)
    Shell(shell.data).put("The harbour freezes in January")
    with_model = Shell(shell.data, {"LUKASA_EMBEDDER": "auto"})
    assert with_model.json("embed")["embedded"] == 1
    assert "every text has its vector" in with_model.run("embed")
    (hit,) = with_model.json("read", "when does ice close the port?")["hits"]
    found_by = [c["signal"] for c in hit["matched"] if c["rank"]]
    assert "vector" in found_by
    assert "keyword" not in found_by
