"""Gather: all of something, dated and grouped; reads in the order of time; and saying that nothing was found."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from lukasa import Lukasa, Workspace
from lukasa.model.errors import InvalidQuery
from lukasa.model.values import Relation
from lukasa.spec import preset_text
from tests.fakes import FakeEmbedder
from tests.helpers.cli import Shell
from tests.helpers.making import FixedClock

MOVES = {
    "2026-02-03": "We moved the ledger service to the new cluster",
    "2026-01-15": "We moved the mail service to the new cluster",
    "2026-05-20": "We moved the search service to the new cluster",
    "2026-03-09": "We moved the billing service to the new cluster",
}
ELSE = ("The office plants need water on Fridays", "Ilse likes her tea without sugar", "The printer is on floor two")


@pytest.fixture
def moved(world: Workspace) -> Workspace:
    for day, text in MOVES.items():
        world.put("workspace", text, valid_at=f"{day}T09:00:00+00:00")
    for text in ELSE:
        world.put("workspace", text)
    return world


def test_a_sequence_comes_in_its_order(moved: Workspace) -> None:
    """R2: "in which order" gets every step, dated, in the order of time, and nothing that is about something else."""
    found = moved.gather("in which order did we move each service to the new cluster?")
    assert found.wanted == "sequence"
    assert [hit.content for hit in found.hits] == [MOVES[day] for day in sorted(MOVES)]
    assert [group.title for group in found.groups] == ["2026-01", "2026-02", "2026-03", "2026-05"]
    assert found.tokens <= found.budget
    assert found.beyond == 0
    by_day = moved.gather("in which order did we move each service to the new cluster?", by="day")
    assert [group.title for group in by_day.groups] == sorted(MOVES)


def test_a_budget_keeps_the_best_and_counts_the_rest(moved: Workspace) -> None:
    """C2: what does not fit is counted, and the best match is what a small budget holds."""
    asked = "when did we move the billing service to the new cluster?"
    small = moved.gather(asked, budget=25)
    assert [hit.content for hit in small.hits] == [MOVES["2026-03-09"]]
    assert small.tokens <= 25
    assert small.beyond >= 3
    with pytest.raises(InvalidQuery, match="use one of: day, month, source, tier"):
        moved.gather(asked, by="colour")  # type: ignore[arg-type]


def test_a_replaced_statement_stays_under_the_one_that_holds(world: Workspace) -> None:
    """W4: gathering folds as reading does: two values of one thing are one line with the earlier one under it."""
    first = world.put("workspace", "The standup of the team is at nine")
    world.put("workspace", "The standup of the team is at ten", corrects=first.id)
    found = world.gather("what are all the meetings of the team, such as the standup?")
    (hit,) = found.hits
    assert hit.content.endswith("ten")
    assert [(one.id, one.relation) for one in hit.earlier] == [(first.id, Relation.UPDATE)]


def test_a_read_in_the_order_of_time(moved: Workspace) -> None:
    """R2: the same hits as by match, in the order in which they were said."""
    asked = "which services did we move to the new cluster?"
    best, dated = moved.read(asked, limit=4), moved.read(asked, limit=4, order="time")
    assert {hit.id for hit in best} == {hit.id for hit in dated}
    assert [hit.content for hit in dated] == [MOVES[day] for day in sorted(MOVES)]
    with pytest.raises(InvalidQuery, match="use one of: match, time"):
        moved.read(asked, order="size")  # type: ignore[arg-type]


def test_a_set_is_asked_for_deeply(moved: Workspace) -> None:
    """R6: `auto` reads a question that wants all of something deeply, and one for a single fact as before."""
    assert moved.read("which services have moved to the cluster?").profile == "deep"
    assert moved.read("where do the office plants stand?").profile == "balanced"


def test_the_command_line_prints_groups(tmp_path: Path) -> None:
    """U2: groups with dates, who said it, how much fits; the same as JSON."""
    shell = Shell(tmp_path)
    for text in (*MOVES.values(), *ELSE):
        shell.run("put", text)
    told = shell.run("gather", "which services were moved to the cluster?", "--budget", "40")
    assert re.search(r"^\d{4}-\d\d-\d\d$", told, re.MULTILINE)
    assert "did not fit, a larger --budget shows them" in told
    data = shell.json("gather", "which services were moved to the cluster?")
    assert {hit["entry"]["content"] for group in data["groups"] for hit in group["hits"]} == set(MOVES.values())


# Nothing is an answer


@pytest.fixture
def strict(tmp_path: Path, clock: FixedClock) -> Iterator[Workspace]:
    """A workspace whose spec asks for more than a shared word."""
    text = preset_text("default").replace("floor = 0.12", "floor = 0.5", 1)
    with Lukasa.open(tmp_path / "data", embedder="none", clock=clock) as memory:
        yield memory.workspace("novel", spec=text)


def test_a_read_says_that_nothing_answers(strict: Workspace) -> None:
    """R8: with the evidence a read is sure, without it the read says so, and still shows what is nearest."""
    kept = strict.put("workspace", "The villain of the novel is called Malachar")
    strict.put("workspace", "The novel is told by a lighthouse keeper")
    sure = strict.read("what is the villain of the novel called?")
    assert not sure.nothing_found
    assert (sure.confidence or 0) > 0.5
    strict.forget(kept.id)
    unsure = strict.read("what is the villain of the novel called?")
    assert unsure.nothing_found
    assert (unsure.confidence or 1) < (sure.confidence or 0)
    assert [hit.content for hit in unsure] == ["The novel is told by a lighthouse keeper"]
    assert any(note.startswith("nothing found") for note in unsure.notes)


def test_a_context_spares_the_prompt_what_does_not_answer(strict: Workspace) -> None:
    """C1: below the floor of the spec a question brings nothing into the prompt; a task does, since it asks nothing."""
    strict.put("workspace", "The novel is told by a lighthouse keeper")
    asked = strict.context("what is the name of the novel's second publisher in Norway?")
    assert "lighthouse" not in str(asked)
    assert any("nothing in the workspace tier" in note for note in asked.notes)
    assert "lighthouse" in str(strict.context("continue the novel's second part about Norway"))


def test_an_empty_memory_is_sure_of_nothing(world: Workspace) -> None:
    """R8: without any entry the confidence is 0, and an empty query, which asks nothing, has none."""
    assert world.read("who is the villain?").confidence == 0
    assert world.read("").confidence is None


def test_confidence_is_the_same_over_two_engines(tmp_path: Path, database_url: str) -> None:
    """B23: SQLite and PostgreSQL estimate alike; with an embedder the nearness of meanings counts."""
    told = []
    for place, database in (("files", None), ("database", database_url)):
        with Lukasa.open(tmp_path / place, database=database, embedder=FakeEmbedder(64), clock=FixedClock()) as memory:
            world = memory.workspace("novel")
            for text in MOVES.values():
                world.put("workspace", text)
            told.append(world.read("which service was moved to the new cluster?").confidence)
    assert told[0] == pytest.approx(told[1], abs=1e-4)


# Why, in a person's words


def test_a_sentence_and_shares_that_add_up(moved: Workspace) -> None:
    """R8: every hit says why it was found in one sentence without a number, and its shares are 100 % together."""
    found = moved.read("when did we move the billing service?")
    for hit in found:
        told = found.because(hit)
        assert told.endswith(".")
        assert not re.search(r"\d", told)
        assert told[0].isupper()
    first = found.because(found[0])
    assert "“billing”" in first
    assert "“service”" in first


def test_shares_in_the_answer_of_the_command_line(tmp_path: Path) -> None:
    """R8: `--json` gives the percent of each signal; those of a hit add up to 100."""
    shell = Shell(tmp_path)
    for text in MOVES.values():
        shell.run("put", text)
    data = shell.json("read", "when did we move the billing service?")
    assert {sum(one["percent"] for one in hit["matched"]) for hit in data["hits"]} <= {0, 100}
    assert data["hits"][0]["because"].startswith("It has “move”")
    assert "It has " in shell.run("read", "when did we move the billing service?")


def test_times_of_other_zones_are_put_in_order(world: Workspace) -> None:
    """R2: the order is that of the moments, wherever on Earth they were written down."""
    early = datetime.fromisoformat("2026-05-01T01:00:00+09:00")
    world.put("workspace", "The release train left late", valid_at=early + timedelta(hours=1))
    world.put("workspace", "The release train left early", valid_at=early)
    found = world.gather("what do we know about the release train?")
    assert [hit.content.rsplit(" ", 1)[1] for hit in found.hits] == ["early", "late"]
    assert [group.title for group in found.groups] == ["2026-04-30"]
