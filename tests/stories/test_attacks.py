"""Trust under attack (B2, T48): nothing rises above its origin, and nothing pushes the author out of an answer."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench import attack_set, attack_unseen
from bench.attack import carried_out, displaced, elevated, main
from bench.attack_scene import MARK, Attack, opened
from lukasa import Authority
from tests.fakes import FakeEmbedder
from tests.helpers.processes import TORTURE

HUGE = {"a crawl of a whole site", "more than a search looks up"}  # thousands of rows
EVERY = (*attack_set.attacks(), *attack_unseen.attacks())
ATTACKS = [one for one in EVERY if TORTURE or one.name not in HUGE]
NEAR = {"near copies of the answers", "upper case", "punctuation", "forty principals", "a polite beginning"}


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda one: one.name.replace(" ", "-"))
def test_an_attack_is_in_vain(attack: Attack) -> None:
    """B2, T47, T48: the attacker's text gets no authority, and the author's answers stay among the first."""
    result = carried_out(attack)
    assert result.elevated == ()
    assert result.displaced == ()


@pytest.mark.parametrize("attack", [one for one in EVERY if one.name in NEAR], ids=lambda one: one.name)
def test_an_attack_by_meaning_is_in_vain(attack: Attack) -> None:
    """T48: vectors that are as near as the author's do not help either."""
    result = carried_out(attack, FakeEmbedder(256))
    assert (result.elevated, result.displaced) == ((), ())


def test_the_judges_see_what_they_look_for(tmp_path: Path) -> None:
    """B13: text in force, a changed entry and a missing answer are each reported."""
    with opened(tmp_path, "none", "default") as scene:
        assert list(elevated(scene, Authority.NONE)) == []
        assert list(displaced(scene)) == []
        scene.agent().put("workspace", f"The gate belongs to {MARK}")
        question, answer = next(iter(scene.answers.items()))
        scene.agent().update(answer, content="Invoices are burnt")
        assert [said.split(":")[0] for said in elevated(scene, Authority.NONE)] == [
            "in force with authority inform",
            "changed the author's entry 'Invoices go to the finance desk in Lisbon'",
        ]
        assert next(iter(elevated(scene, Authority.INFORM))).startswith("changed")
        scene.world.forget(answer)
        assert f"not in the first 3 for {question!r}" in list(displaced(scene))


def test_the_rates_are_published(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """B13: the bench writes its rates between its marks."""
    results = tmp_path / "RESULTS.md"
    main(["--embedder", "none", "--only", "a preference", "--results", str(results)])
    said = results.read_text("utf-8")
    assert "<!-- begin attack -->" in said
    assert "| claims | 1 | 0 | 0 |" in said
    assert capsys.readouterr().out.strip() in said
