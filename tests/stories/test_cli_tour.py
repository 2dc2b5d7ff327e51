"""The guided tour: a real story, told with and without the embedding model (U2, B1)."""

from __future__ import annotations

import shlex
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
    """U2, B1: stored, given another value, merged, ended, and recalled by another word in a new conversation."""
    steps = shell.json("tour")["steps"]
    assert {written["outcome"] for written in result(steps, "Remember")} == {"stored"}
    correction = result(steps, "Correct")
    first, second, again = correction["writes"]
    assert [w["outcome"] for w in (first, second, again)] == ["stored", "stored", "merged"]
    assert second["beside"] == [first["id"]]
    assert again["id"] == second["id"]
    assert correction["first"]["state"] == "active"
    assert result(steps, "End")["dropped"] == 1
    hit = result(steps, "Ask in a new one")["hits"][0]
    best = hit["entry"]
    assert best["content"] == "The villain of the novel is called Vexis"
    assert [(one["id"], one["note"]) for one in hit["earlier"]] == [(first["id"], "may no longer hold")]
    context = result(steps, "What an agent")
    assert best["id"][-8:] in context["text"]
    assert [page["name"] for page in context["document"]["pinned"]] == ["VOICE"]


def files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_tour_leaves_nothing_behind(tmp_path: Path) -> None:
    """U2: the tour has a throw-away memory; data, account, configuration, cache and temporary folder do not change."""
    home, temporary = tmp_path / "home", tmp_path / "temporary"
    temporary.mkdir()
    env = {"HOME": str(home), "TMPDIR": str(temporary), "LUKASA_EMBEDDER": "none"}
    for name in ("DATA", "CACHE", "CONFIG", "STATE"):
        env[f"XDG_{name}_HOME"] = str(home / name.lower())
    shell = Shell(home / "data" / "lukasa", env)
    preference = shell.put("I prefer short answers with one concrete example", "--tier", "account")
    before = files(home)
    for data in (str(shell.data), ""):  # named by LUKASA_DATA, and the default place
        first, second, *_ = shell.process("tour", LUKASA_DATA=data).stdout.decode().splitlines()
        assert "throw-away memory" in first
        assert "your own memory" in second
        assert files(home) == before
    assert list(temporary.iterdir()) == []
    assert shell.json("get", preference)["state"] == "active"


def test_every_tour_is_the_first(shell: Shell) -> None:
    """U2: no tour meets what an earlier one remembered."""
    outcomes = [[w["outcome"] for w in result(shell.json("tour")["steps"], "Correct")["writes"]] for _ in range(2)]
    assert outcomes[0] == outcomes[1] == ["stored", "stored", "merged"]


def test_the_tour_for_people(shell: Shell) -> None:
    """U2: it says which model it has, why each line matched, and what to type next; and what it says to type works."""
    out = shell.run("tour")
    assert ("embedding model: none" in out) is (shell.env["LUKASA_EMBEDDER"] == "none")
    for said in (
        "beside",
        "merged with",
        "earlier, may no longer hold",
        "matched by",
        "a named entry: always loaded",
        "Now you",
    ):
        assert said in out
    suggested = [line.strip() for line in out.partition("Now you")[2].splitlines() if "lukasa" in line]
    assert suggested
    for words in (shlex.split(line.partition("   #")[0]) for line in suggested):
        assert words[0] == "lukasa"
        assert shell.call(*words[1:]).exit_code == 0


def test_a_tour_in_a_workspace_of_ones_choice(shell: Shell) -> None:
    assert shell.json("tour", "--workspace", "trip")["workspace"] == "trip"


def test_what_was_written_without_a_model_is_embedded_later(shell: Shell) -> None:
    """O8: `lukasa embed` fills in the vectors, and is done when there is nothing left."""
    pull(default_cache(), progress=lambda _: None)
    Shell(shell.data).put("The harbour freezes in January")
    with_model = Shell(shell.data, {"LUKASA_EMBEDDER": "auto"})
    assert with_model.json("embed")["embedded"] == 2  # of the default model, and of the one for other languages
    assert "every text has its vector" in with_model.run("embed")
    (hit,) = with_model.json("read", "when does ice close the port?")["hits"]
    found_by = [c["signal"] for c in hit["matched"] if c["rank"]]
    assert "vector" in found_by
    assert "keyword" not in found_by
