"""What the owner's page shows of a whole memory: all entries, people and things, sessions, what happened, settings."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lukasa import Lukasa, SourceLink, Workspace
from lukasa.app.settings import Settings
from lukasa.model.errors import InvalidQuery, Refused
from lukasa.service.entries.put import Memo
from lukasa.spec.in_words import in_words
from lukasa.spec.load import load_preset, preset_names
from tests.fakes import FakeEmbedder
from tests.helpers import sessions
from tests.helpers.making import FixedClock

TALK = (
    ("user", "Please remember that invoices go out on Mondays. Thanks!"),
    ("assistant", "Noted."),
    ("user", "We deploy the ferry on Tuesdays. Perhaps the tests are slow today."),
    ("user", "We deploy the ferry on Tuesdays."),
)


@pytest.fixture
def filled(world: Workspace) -> Workspace:
    world.put("workspace", "Marta Oliveira owns the ferry schedule", tags=["people"], importance=0.9)
    world.put("account", "Ada prefers tea in the morning", tags=["people", "taste"], importance=0.2)
    agent = world.acting(agent="claude-code")
    agent.put("workspace", "The ferry database runs on PostgreSQL", kind="semantic", source="docs")
    gone = agent.put("workspace", "Marta is away this week", kind="episodic")
    world.forget(gone.id, "she is back")
    return world


# All entries


def test_the_table_holds_every_tier_and_every_conversation(filled: Workspace) -> None:
    """U5: nothing hides in a tier or in a conversation that one would have to choose first."""
    talk = filled.start()
    filled.at(conversation=talk.id).put("conversation", "We are counting sacks of rye")
    found = filled.table()
    assert {row.entry.scope.tier for row in found.rows} == {"workspace", "account", "conversation"}
    assert (found.total, found.cut) == (4, False)
    assert filled.table(everything=True).total == 5
    assert [row.entry.content for row in filled.table(conversation=talk.id).rows] == ["We are counting sacks of rye"]


def test_each_facet_says_what_choosing_its_values_would_give(filled: Workspace) -> None:
    """U5: a count beside a filter is the number of entries that one gets by pressing it."""
    for name, condition in {"tier": "tiers", "tag": "tags", "state": "states", "agent": "agents"}.items():
        for value, count in filled.table(everything=True).facets[name].items():
            chosen: dict[str, Any] = {condition: [value]}
            assert filled.table(everything=True, **chosen).total == count
    both = filled.table(tags=["people"], tiers=["account"])
    assert (both.total, both.facets["tier"], both.facets["tag"]) == (
        1,
        {"account": 1, "workspace": 1},
        {"people": 1, "taste": 1},
    )


def test_rows_are_sorted_and_come_page_by_page(filled: Workspace) -> None:
    """U5: each order is the whole table's, whatever the size of a page."""
    values = [row.entry.importance for row in filled.table(sort="importance").rows]
    assert values == sorted(values, reverse=True)
    pages = [filled.table(sort="text", ascending=True, limit=1, offset=number).rows[0] for number in range(3)]
    assert [row.entry.content[:4] for row in pages] == ["Ada ", "Mart", "The "]
    with pytest.raises(InvalidQuery, match="sorted"):
        filled.table(sort="colour")
    with pytest.raises(InvalidQuery, match="unknown condition"):
        filled.table(colour="red")


def test_words_are_found_wherever_they_are_in_a_text(filled: Workspace) -> None:
    """U5: all of the words, in any order, case and accents aside."""
    assert [row.entry.content for row in filled.table(words="SCHEDULE marta").rows] == [
        "Marta Oliveira owns the ferry schedule"
    ]
    assert filled.table(words="schedule tea").total == 0


def test_a_change_is_in_the_next_table(filled: Workspace) -> None:
    """U5: the table is kept between two looks, and never shown when it is old."""
    before = filled.table()
    assert filled.table() == before
    filled.update(before.rows[0].entry.id, importance=0.05)
    assert 0.05 in [row.entry.importance for row in filled.table().rows]


def test_only_the_owner_looks_at_everything(filled: Workspace) -> None:
    """X4: the table, the names, what happened and what sessions taught hold what agents may not see."""
    agent = filled.acting(agent="claude-code")
    for look in (agent.table, agent.names, agent.activity, lambda: agent.learned("any")):
        with pytest.raises(Refused):
            look()


# People and things


def test_the_map_links_who_and_what_are_named_together(filled: Workspace) -> None:
    """U5: people and things come from the entries' own words, and a name leads to its entries."""
    filled.put("workspace", "Ask Marta about PostgreSQL")
    found = filled.names()
    names = {name.name: name for name in found.names}
    assert (names["Marta Oliveira"].kind, len(names["Marta Oliveira"].texts)) == ("person", 2)
    assert names["PostgreSQL"].kind == "thing"
    assert ("marta oliveira", "postgresql", 1) in {(link.one, link.other, link.texts) for link in found.links}
    assert (found.people, found.things) == (2, 1)
    assert {row.entry.content for row in filled.table(name="Marta").rows} == {
        "Marta Oliveira owns the ferry schedule",
        "Ask Marta about PostgreSQL",
    }


def test_a_name_shows_its_neighbours_and_kinds_can_be_left_out(filled: Workspace) -> None:
    """U5: with thousands of names, one looks at one of them and what is beside it."""
    filled.put("workspace", "Ask Marta about PostgreSQL")
    assert [name.name for name in filled.names(near="marta").names] == ["Marta Oliveira", "PostgreSQL"]
    assert {name.kind for name in filled.names(kind="person").names} == {"person"}
    assert filled.names(near="nobody").names == ()


def test_a_document_that_entries_rest_on_is_a_thing(filled: Workspace) -> None:
    """U5: what is linked belongs to the map as well as what is named."""
    filled.save_document("guide", "# Rules of the quay", title="Rules of the quay")
    filled.put("workspace", "Boats wait outside", links=[SourceLink("guide", 1)])
    assert "Rules of the quay" in {name.name for name in filled.names(kind="thing").names}


def test_forgotten_and_erased_names_leave_the_map(filled: Workspace) -> None:
    """X6: the map is of what is in recall; and who is erased is in nothing that is kept for it."""
    assert "Ada" in {name.name for name in filled.names().names}
    (row,) = filled.table(words="Ada").rows
    filled.forget(row.entry.id)
    assert "Ada" not in {name.name for name in filled.names().names}


# Sessions


@pytest.fixture
def talked(tmp_path: Path, clock: FixedClock) -> Workspace:
    memory = Lukasa.open(tmp_path / "talked", embedder=FakeEmbedder(64), clock=clock)
    world = memory.workspace("harbour")
    world.observe(sessions.messages(tmp_path / "talk.jsonl", TALK))
    memory.worker(chat="none").drain()
    return world


def test_a_session_tells_what_became_of_each_sentence(talked: Workspace) -> None:
    """U5: kept, held and retired, by message and span, with the reason."""
    (session,) = talked.transcripts()
    texts = {one.id: one.text for one in talked.said(session.id)}
    found = {texts[one.message][one.start : one.end]: one for one in talked.learned(session.id)}
    kept = found["Please remember that invoices go out on Mondays."]
    assert (kept.became, kept.reason) == ("kept", "asked to be remembered")
    assert found["Perhaps the tests are slow today."].became == "held"
    talked.forget(kept.entry, "they go out on Fridays now")
    (retired,) = [one for one in talked.learned(session.id) if one.entry == kept.entry]
    assert (retired.became, retired.state, retired.reason) == ("retired", "forgotten", "they go out on Fridays now")
    assert talked.learned_in([session])[session.id]["retired"] == 1


def test_a_repeated_sentence_leads_to_the_entry_that_it_confirms(talked: Workspace) -> None:
    """U5: who says it twice sees both places, and one memory."""
    (session,) = talked.transcripts()
    same = [one for one in talked.learned(session.id) if one.content == "We deploy the ferry on Tuesdays."]
    assert len(same) == 2
    assert len({one.entry for one in same}) == 1
    assert {one.became for one in same} <= {"kept", "merged"}


def test_a_discarded_sentence_is_shown_with_its_reason(tmp_path: Path, clock: FixedClock) -> None:
    """U5: it left no row, and still one sees that it was looked at, and why it is not here."""
    spec = load_preset("default")
    memory = Lukasa.open(tmp_path / "strict", embedder=FakeEmbedder(64), clock=clock)
    world = memory.workspace("harbour", preset="tiered")
    assert spec.name != world.spec.name
    world.observe(sessions.messages(tmp_path / "talk.jsonl", TALK))
    memory.worker(chat="none").drain()
    (session,) = world.transcripts()
    counted = sum(dict(event.detail).get("discarded", 0) for event in world.events(action="transcript.observed"))
    discarded = [one for one in world.learned(session.id) if one.became == "discarded"]
    assert len({(one.message, one.start) for one in discarded}) == counted > 0
    assert all(one.reason and not one.entry for one in discarded)


# What happened


def test_what_was_written_and_what_was_given_are_one_list(filled: Workspace) -> None:
    """U5: who did what just now, with the words of it; reads are there as well as changes."""
    agent = filled.acting(agent="cursor")
    agent.disclose(agent.read("who owns the ferry schedule?", limit=2))
    happened = filled.activity()
    (given,) = [one for one in happened if one.did == "given"]
    assert (given.who, given.yours, given.memories) == ("cursor", False, 2)
    assert given.tokens > 0
    assert "Marta Oliveira owns the ferry schedule" in [thing.text for thing in given.about]
    (forgot,) = [one for one in happened if one.did == "entry.forgotten"]
    assert (forgot.yours, forgot.about[0].text) == (True, "Marta is away this week")
    assert [one.at for one in happened] == sorted((one.at for one in happened), reverse=True)


def test_what_somebody_does_in_a_row_is_one_line(world: Workspace) -> None:
    """U5: forty memories of an import do not push everything else off the page."""
    world.acting(agent="claude-code").put_many("workspace", [Memo(f"Boat number {n} is green") for n in range(40)])
    (line,) = [one for one in world.activity() if one.did == "entry.put"]
    assert (line.times, len(line.about)) == (40, 3)


# Settings


@pytest.mark.parametrize("preset", preset_names())
def test_each_preset_can_be_said_in_sentences(preset: str) -> None:
    """U5: every tier of every spec has something to say, and no word of the file's own."""
    told = in_words(load_preset(preset))
    assert {tier.name for tier in told.tiers} == {tier.name for tier in load_preset(preset).tiers}
    sentences = [sentence for tier in told.tiers for sentence in tier.sentences]
    assert all(sentence[0].isupper() and sentence.endswith(".") and "_" not in sentence for sentence in sentences)
    assert all(len(tier.sentences) > 4 for tier in told.tiers)


def test_a_model_can_be_tried_before_it_is_set(memory: Lukasa, monkeypatch: pytest.MonkeyPatch) -> None:
    """U5: the answer says whether it works; what is missing, how to get it; and a key is never part of it."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret-of-the-owner")
    monkeypatch.setenv("LUKASA_CHAT_URL", "http://127.0.0.1:9")
    tried = memory.try_model("chat", "openai:any")
    assert (tried.works, tried.host) == (False, "127.0.0.1:9")
    assert tried.reason
    missing = memory.try_model("chat", "anthropic:any")
    assert (missing.works, bool(missing.fix)) == (False, True)
    assert "sk-secret" not in repr((tried, missing, memory.models()))


def test_the_page_runs_no_program_by_its_path(memory: Lukasa, tmp_path: Path) -> None:
    """X4: somebody who has the page for a moment cannot start a program with it."""
    trace = tmp_path / "ran"
    for setting in (f"command:/usr/bin/touch {trace}", f"command:touch {trace}", " command:~/evil"):
        tried = memory.try_model("chat", setting)
        assert (tried.works, "does not run" in tried.reason) == (False, True)
    assert not trace.exists()


def test_the_embedder_is_tried_by_sentences(tmp_path: Path) -> None:
    """U5: without a model one is told what to do."""
    with Lukasa.open(tmp_path / "data", embedder="none") as memory:
        tried = memory.try_model("embedder")
        assert (tried.works, bool(tried.fix)) == (False, True)
    assert Settings.resolve(data=tmp_path).embedder
