"""The observer by rules: what people say outright, and what only looks like it."""

from __future__ import annotations

import pytest

from bench.write import DATA, measure
from lukasa.model.transcript import Utterance
from lukasa.model.values import Gate
from lukasa.observe.rules import look, observe


def found(text: str) -> list[str]:
    return [o.text for o in look(text) if o.gate is Gate.ALLOW]


def test_a_statement_has_the_span_that_says_it() -> None:
    """B4: in a message of several sentences, with listings and quotations in between."""
    listing = "```\nNever retry.\n```"
    text = f"Hello!\n> Always lie\n\nThe ferry runs on diesel. And I prefer tea.\n{listing}\nNever sail at night."
    spans = [text[o.start : o.end] for o in look(text)]
    assert spans == ["The ferry runs on diesel.", "And I prefer tea.", "Never sail at night."]
    assert found(text) == ["The ferry runs on diesel.", "I prefer tea.", "Never sail at night."]


def test_a_correction_states_what_holds() -> None:
    """O1: so that it can retire what it corrects; and it matters more."""
    said = {
        "No, actually the port is 5433, not 5432.": "The port is 5433",
        "The villain is not Malachar but Vexis.": "The villain is Vexis",
        "Correction: the deadline is Monday.": "The deadline is Monday.",
    }
    for text, holds in said.items():
        (observed,) = look(text)
        assert (observed.text, observed.priority) == (holds, "high")


@pytest.mark.parametrize(
    "text",
    [
        "No dogs are allowed in the archive.",
        "No visitor enters the vault without a guide.",
        "Right turns are forbidden on the quay.",
        "Wrong addresses are forbidden in the ledger.",
        "Great Danes are not allowed on the ferry.",
        "Generally we use the small crane.",
        "So far our policy is silence.",
    ],
)
def test_nothing_is_cut_from_the_beginning(text: str) -> None:
    """O1: a first word that may also be an interjection is one only if a mark sets it apart."""
    assert [o.text for o in look(text)] == [text]


def test_an_interjection_is_no_part_of_the_statement() -> None:
    """O1: a mark, or a new clause, ends it."""
    said = ("No, the ferry runs on diesel.", "Right. The ferry runs on diesel.", "So the ferry runs on diesel.")
    assert [found(text) for text in said] == [["The ferry runs on diesel."]] * 3


def test_doubt_is_held() -> None:
    """W2: neither believed nor lost."""
    (observed,) = look("I think the gateway runs on port 9000.")
    assert (observed.gate, observed.reason) == (Gate.HOLD, "said with doubt")


def test_a_request_is_kept_as_it_was_asked() -> None:
    """O1: with its reach and weight; what is only for this conversation is not."""
    (observed,) = look("remember for all my projects that I use metric units, this is important")
    assert observed.asked is not None
    assert (observed.asked.reach, observed.importance) == ("account", 0.9)
    assert found("keep track of the score for this conversation") == []
    assert found("forget that I like tea") == []


def test_only_the_user_is_heard() -> None:
    """B8: what an assistant says may be memory read back."""
    said = "Never sail at night."
    roles = ("user", "assistant", "tool", "system")
    spoken = [Utterance(role, role, said, n) for n, role in enumerate(roles)]  # type: ignore[arg-type]
    assert [o.message for o in observe(spoken)] == ["user"]


@pytest.mark.parametrize(
    "text", ["a " * 100_000, "not " * 50_000 + "but x", "the " * 30_000 + "is", ("```\n" * 20_000)]
)
def test_long_texts_are_no_trouble(text: str) -> None:
    """W9: whatever somebody pastes, it is gone through in one go."""
    assert list(look(text)) == []


def test_the_write_benchmark_runs_and_keeps_its_promises() -> None:
    """B13, B8: no loop and no secret in either half, and most of what was said is found."""
    scores = measure(DATA)
    assert set(scores) == {"a", "b"}
    assert sum(score.rows for score in scores.values()) >= 150
    for score in scores.values():
        assert score.how == "rules"
        assert score.counts["loops stored"] == score.counts["secrets stored"] == 0
        assert score.counts["secrets' lines stored"] == 0
        assert score.counts["duplicates stored"] == 0
        assert score.facts > 40
        assert score.counts["facts missed"] <= score.facts // 10
        assert score.counts["junk stored"] <= score.junk // 10
        assert score.counts["supersessions right"] >= score.counts["supersessions"] - 1
