"""Finding by who, when, and what stands beside: through the API, as a user would."""

from __future__ import annotations

from datetime import timedelta

import pytest

from lukasa import Lukasa, Memo, Workspace
from tests.helpers.making import FixedClock

FILLER = [f"Somebody counted {n} crates of apples on the quay" for n in range(12)]


def talk(world: Workspace, *lines: tuple[str, str]) -> list[str]:
    """A conversation whose turns are kept in the workspace, as a transcript is."""
    at = world.at(conversation=world.start().id)
    memos = [Memo(text, kind="episodic", source=source) for source, text in lines]
    return [written.id for written in at.put_many("workspace", memos)]


def factor(world: Workspace, query: str, id: str, signal: str) -> float:
    (hit,) = [hit for hit in world.read(query, limit=20, count=False) if hit.id == id]
    (found,) = [c for c in hit.score.match.contributions if c.signal == signal]
    return found.share


def borrowed(world: Workspace, query: str, id: str) -> float:
    """What an entry owes to its neighbours; nothing, too, if it was not found at all."""
    hits = [hit for hit in world.read(query, limit=20, count=False) if hit.id == id]
    return sum(c.share for hit in hits for c in hit.score.match.contributions if c.signal == "context")


def test_an_answer_is_found_by_the_question_before_it(world: Workspace) -> None:
    """R1, R8: a turn with no word of the query is found beside the turn that has them, and says so."""
    talk(world, *(("Tom", line) for line in FILLER))
    _, reply, _ = talk(
        world, ("Tom", "Where did you buy the telescope?"), ("Ada", "Down in Lisbon, years ago"), ("Tom", "Lovely!")
    )
    found = [hit.id for hit in world.read("telescope purchase", limit=5)]
    assert reply in found
    assert factor(world, "telescope purchase", reply, "context") > 0
    (verdict,) = [v for v in world.why("telescope purchase", reply) if v.step == "context"]
    assert verdict.outcome == "found"


@pytest.mark.parametrize("bound", [True, False])
def test_turns_are_found_alike_though_nobody_said_what_they_are(world: Workspace, bound: bool) -> None:
    """R1, R8: put without a kind, inside a conversation or just one after the other, an answer is still found."""
    at = world.at(conversation=world.start().id) if bound else world
    at.put_many("workspace", [Memo(line, source="Tom") for line in FILLER])
    lines = [("Tom", "Where did you buy the telescope?"), ("Ada", "We found it in Lisbon"), ("Tom", "Lovely!")]
    _, reply, _ = at.put_many("workspace", [Memo(text, source=source) for source, text in lines])
    assert borrowed(world, "telescope purchase", reply.id) > 0
    assert reply.id in [hit.id for hit in world.read("telescope purchase", limit=5)]


@pytest.mark.parametrize(
    ("memo", "source"),
    [
        (Memo("Ada: I keep bees"), "Ada"),
        (Memo("[8 May 2023] Ada: I keep bees"), "Ada"),
        (Memo("Human: I keep bees"), "user"),
        (Memo("Ada: bees, since spring", kind="episodic"), "Ada"),
        (Memo("Ada: I keep bees", source="chat"), "chat"),
        (Memo("Ada: bees, since spring"), "planner"),
        (Memo("Reminder: I have to feed the bees"), "planner"),
        (Memo("I keep bees in the garden"), "planner"),
    ],
)
def test_who_says_a_line_is_its_source(world: Workspace, memo: Memo, source: str) -> None:
    """M2, R1: where nobody says from whom it is, and a line of a talk does. It is kept as it was put."""
    (written,) = world.acting(agent="planner").put_many("workspace", [memo])
    assert written.entry is not None
    assert (written.entry.source, written.entry.content) == (source, memo.content)
    assert written.entry.origin.principal == "planner"


def test_a_file_has_no_speaker(world: Workspace) -> None:
    """M2: a file is what its author wrote, whatever it begins with."""
    (written,) = world.put_many("workspace", [Memo("Ada: I keep bees", path="notes/bees.txt")])
    assert written.entry is not None
    assert written.entry.source == "user"


def test_a_log_of_a_talk_is_found_by_who_spoke(world: Workspace) -> None:
    """R1: the line that somebody said is above the one that calls them by their name."""
    lines = ["Tom: Ada, I saw honey on the quay!", "Ada: I sell it, my bees make plenty", *FILLER]
    said = [written.id for written in world.put_many("workspace", lines)]
    assert world.read("what does Ada sell?", limit=3, count=False)[0].id == said[1]
    assert factor(world, "what does Ada sell?", said[1], "speaker") > 0
    assert {hit.id for hit in world.read("honey", source="Tom", limit=5, count=False)} == {said[0]}


def test_facts_lend_one_another_nothing(world: Workspace) -> None:
    """R1: what is told of the world stands by itself, though it was written down on one occasion."""
    facts = ["The telescope stands in the attic", "Ada lives in Rome", "The deploy runs on Fridays"]
    _, rome, deploy = world.put_many("workspace", [Memo(fact) for fact in facts])
    assert borrowed(world, "telescope", rome.id) == borrowed(world, "telescope", deploy.id) == 0


def test_neighbours_of_another_conversation_lend_nothing(world: Workspace) -> None:
    """R1: the end of one conversation does not explain the beginning of the next."""
    talk(world, ("Tom", "Where did you buy the telescope?"))
    (other,) = talk(world, ("Ada", "Down in Lisbon, years ago"))
    assert borrowed(world, "telescope", other) == 0


def test_neighbours_obey_filters_and_owners(world: Workspace) -> None:
    """R1, M4: what stands beside a match is returned only to those who may see it and if it was asked for."""
    at = world.at(conversation=world.start().id)
    at.put("workspace", "Where did you buy the telescope?", kind="episodic", source="Tom")
    private = at.acting(agent="researcher").put(
        "workspace", "Down in Lisbon, years ago", kind="episodic", owner="researcher"
    )
    reply = at.put("workspace", "In the market, for a song", kind="episodic", source="Ada")
    everybody = world.acting(agent="writer").read("telescope", limit=20, count=False)
    assert private.id not in [hit.id for hit in everybody]
    assert reply.id in [hit.id for hit in everybody]
    only_tom = world.read("telescope", limit=20, count=False, source="Tom")
    assert {hit.entry.source for hit in only_tom} == {"Tom"}


def test_a_named_speaker_is_preferred(world: Workspace) -> None:
    """R1, R8: of two turns with the same words, that of the person asked about comes first."""
    texts = "The harbour festival was wonderful this time", "The harbour festival was wonderful as ever"
    tom, ada = talk(world, ("Tom", texts[0]), ("Ada", texts[1]))
    for name, id in (("Tom", tom), ("Ada", ada)):
        assert world.read(f"How did {name} like the harbour festival?", limit=2, count=False)[0].id == id
    assert factor(world, "How did Ada like the harbour festival?", ada, "speaker") > 0
    verdicts = {v.step: v for v in world.why("How did Ada like the harbour festival?", tom)}
    assert verdicts["speaker"].outcome == "missed"


def test_a_time_brings_what_was_recorded_then(world: Workspace, clock: FixedClock) -> None:
    """R1, R8: "last Tuesday" finds that day's entries though they share no word with the question."""
    clock.time -= timedelta(days=5)  # a Tuesday
    then = world.put("workspace", "The kettle was repaired", kind="episodic").id
    clock.time += timedelta(days=5)
    for line in FILLER:
        world.put("workspace", line, kind="episodic")
    question = "What happened last Tuesday?"
    assert world.read(question, limit=1, count=False)[0].id == then
    assert factor(world, question, then, "time") > 0


def test_a_time_is_read_as_of_the_moment_asked_about(world: Workspace, clock: FixedClock) -> None:
    """R1, R7: with `as_of`, "yesterday" is the day before that moment."""
    first = world.put("workspace", "The kettle was repaired", kind="episodic").id
    clock.time += timedelta(days=1)
    asked_at = clock.time
    clock.time += timedelta(days=30)
    world.put("workspace", "The lantern was repaired", kind="episodic")
    clock.time += timedelta(days=1)
    assert [hit.id for hit in world.read("what was done yesterday?", as_of=asked_at, count=False)] == [first]


def test_when_asks_for_a_time(world: Workspace) -> None:
    """R1, R8: of two turns about the matter, the one that holds a time answers "when"."""
    without, dated = talk(
        world,
        ("Ada", "The ferry to Tern island was painted green"),
        ("Tom", "The ferry to Tern island was painted last weekend"),
    )
    question = "When was the ferry to Tern island painted?"
    assert world.read(question, limit=2, count=False)[0].id == dated
    assert factor(world, question, dated, "answer") > factor(world, question, without, "answer")


def test_a_diary_is_no_conversation(memory: Lukasa, clock: FixedClock) -> None:
    """R1, R8: entries of one person on different days lend each other nothing, and a time in one is no answer."""
    world = memory.workspace("diary")
    at = world.at(conversation=world.start().id)
    days = [
        "I painted the ferry to Tern island",
        "I slept until ten and saw the painted ferry",
        "Rain since last weekend",
    ]
    ids = []
    for text in days:
        ids.append(at.put("workspace", text, kind="episodic", source="user").id)
        clock.time += timedelta(days=1)
    question = "When was the ferry to Tern island painted?"
    assert world.read(question, count=False)[0].id == ids[0]
    assert [borrowed(world, question, id) for id in ids] == [0, 0, 0]
    assert all(
        c.share == 0
        for h in world.read(question, count=False)
        for c in h.score.match.contributions
        if c.signal == "answer"
    )


def test_a_fact_does_not_borrow_from_its_neighbour(world: Workspace) -> None:
    """R1: facts that were written one after the other have nothing to do with one another."""
    at = world.at(conversation=world.start().id)
    at.put("workspace", "The telescope stands in the attic")
    other = at.put("workspace", "Invoices are due on the fifth")
    hits = world.read("telescope", limit=20, count=False)
    assert all(
        c.share == 0 for h in hits if h.id == other.id for c in h.score.match.contributions if c.signal == "context"
    )


@pytest.mark.parametrize("preset", ["workspace", "tiered", "observer"])
def test_other_presets_keep_their_signals(memory: Lukasa, preset: str) -> None:
    """R1: a spec that names no context gets none."""
    world = memory.workspace(preset, preset=preset)
    (asked,) = talk(world, ("Tom", "Where did you buy the telescope in the end?"))
    (hit,) = world.read("telescope", tier="workspace", count=False)
    assert hit.id == asked
    assert "context" not in {c.signal for c in hit.score.match.contributions}
