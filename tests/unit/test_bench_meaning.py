"""B13: what is said of sentences that a memory keeps is counted on a folder of sentences."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bench.meaning import JUDGES, Score, main, measure, report
from lukasa import Lukasa
from tests.helpers.cli import STRICT

SET = {
    "statements": [{"id": "t1", "text": "Halal"}, {"id": "t2", "text": "Put the post above the shelf"}],
    "keeps": [{"id": "k1", "a": "Otto has a kayak", "b": "The mill runs", "question_a": "kayak", "question_b": "mill"}],
    "speakers": [
        {
            "id": "s1",
            "speaker_a": "Uma",
            "a": "The tent is Uma's",
            "speaker_b": "Lev",
            "b": "A stove belongs to Lev",
            "question_a": "tent",
            "question_b": "stove",
        }
    ],
    "updates": [{"id": "u1", "old": "The gate code is 4410", "new": "The gate code is 9921", "question": "gate code"}],
}  # fmt: skip


def folder(path: Path) -> Path:
    for name, rows in SET.items():
        (path / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def test_every_file_of_the_folder_is_counted(tmp_path: Path) -> None:
    """B13: each row is judged once, and a memory that keeps everything has no miss."""
    score = measure(folder(tmp_path), embedder="none")
    assert {name: score.counts[name] for name in JUDGES} == {"statements": 2, "keeps": 1, "speakers": 1, "updates": 1}
    assert (score.counts["keeps asked"], score.counts["speakers asked"]) == (2, 2)
    assert score.misses == []
    assert score.counts["updates, new above old"] == 1


def test_losses_are_counted(tmp_path: Path) -> None:
    """B13: a discarded statement, a lost pair and an update below its old statement are misses."""
    score = Score()
    with Lukasa.open(tmp_path, embedder="none") as memory:
        JUDGES["statements"](memory.workspace("t", spec=STRICT), {"id": "t", "text": "Halal"}, score)
        same = {
            "id": "k",
            "a": "Otto owns a kayak",
            "b": "otto owns a kayak.",
            "question_a": "kayak",
            "question_b": "kayak",
        }
        JUDGES["keeps"](memory.workspace("k"), same, score)
        old_only = {"id": "u", "old": "The ferry leaves at nine", "new": "Ten it is", "question": "when is the ferry?"}
        JUDGES["updates"](memory.workspace("u"), old_only, score)
    lost = [("statements discarded", "t"), ("keeps lost", "k"), ("keeps not found", "k")]
    assert score.misses == [*lost, ("updates, new not above old", "u")]


def test_the_section_is_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """B13: the command prints the table and writes it between its marks; a folder without a set is refused."""
    results = tmp_path / "RESULTS.md"
    main(["--data", str(folder(tmp_path)), "--embedder", "none", "--results", str(results)])
    assert report(measure(tmp_path, embedder="none")) in results.read_text("utf-8")
    assert "<!-- begin meaning -->" in results.read_text("utf-8")
    assert "embedder none" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        main(["--data", str(tmp_path / "elsewhere")])
