"""Put, read, update, forget through the public API, on a real database, with an embedder and without."""

from __future__ import annotations

import math
import threading
from datetime import timedelta
from pathlib import Path

import pytest

from lukasa import Lukasa, LukasaError, Memo, Relation, State, Trust, Workspace
from lukasa.model.errors import (
    Conflict,
    InvalidContent,
    InvalidImportance,
    InvalidInput,
    InvalidQuery,
    InvalidScope,
    InvalidTransition,
    NotFound,
    Refused,
)
from lukasa.spec import preset_text
from tests.fakes import FakeEmbedder
from tests.helpers.making import FixedClock

MALACHAR = "The villain is called Malachar"


def contents(world: Workspace, query: str, **options: object) -> list[str]:
    return [hit.content for hit in world.read(query, **options)]  # type: ignore[arg-type]


def test_what_is_put_is_found(world: Workspace) -> None:
    """W1, R1: put, then read by its words."""
    written = world.put("workspace", MALACHAR, importance=0.8)
    (hit,) = world.read("what is the villain called?")
    assert (written.outcome, hit.id, hit.content) == ("stored", written.id, MALACHAR)


def test_an_entry_carries_everything(world: Workspace, clock: FixedClock) -> None:
    """M2: tier, scope, kind, lifetime, curator, source, owner, importance, times, tags, gate, validity, state."""
    entry = world.get(world.put("workspace", MALACHAR, importance=0.8, tags=["cast"], source="chat").id)
    assert entry.scope.value("workspace") == world.id
    assert (entry.kind, entry.lifetime, entry.curator, entry.source) == ("semantic", "long_term", "author", "chat")
    assert (entry.owner, entry.importance, entry.tags, entry.state) == ("shared", 0.8, ("cast",), "active")
    assert entry.created_at == entry.valid_at == clock.now()
    assert entry.gate is not None
    assert (entry.merged_count, entry.version, entry.invalid_at, entry.superseded_by) == (1, 1, None, None)


def test_meaning_finds_what_words_do_not(tmp_path: Path) -> None:
    """R1: with an embedder, a question in other words finds the entry."""
    embedder = FakeEmbedder(256, synonyms={"antagonist": "villain"})
    with Lukasa.open(tmp_path, embedder=embedder) as memory:
        world = memory.workspace()
        world.put("workspace", MALACHAR)
        (hit,) = world.read("who is the antagonist?")
    by_name = {c.signal: c for c in hit.score.match.contributions}
    assert by_name["keyword"].rank is None
    assert by_name["vector"].rank == 1


def test_exact_facts_are_found_alike_with_and_without_vectors(tmp_path: Path) -> None:
    """R1: without an embedder the same exact facts come back."""
    facts = ["The villain is called Malachar", "The harbour has three lighthouses", "Maro keeps the eldest light"]
    found = []
    for embedder in (FakeEmbedder(256), "none"):
        with Lukasa.open(tmp_path / str(embedder)[:5], embedder=embedder) as memory:
            world = memory.workspace()
            world.put_many("workspace", facts)
            found.append([contents(world, q)[0] for q in ("villain Malachar", "three lighthouses", "eldest light")])
    assert found[0] == found[1] == facts


def test_a_read_of_one_tier_is_that_tier_alone(world: Workspace) -> None:
    """M1: tiers do not inherit."""
    world.put("account", "The author likes villains with a cause")
    world.put("workspace", MALACHAR)
    assert contents(world, "villain", tier="workspace") == [MALACHAR]


def test_an_unbound_read_widens(world: Workspace) -> None:
    """R3: without a tier, conversation, channel, workspace and account are searched together."""
    here = world.at(conversation=world.start().id)
    texts = {
        tier: here.put(tier, f"A villain noted in the {tier} tier").entry.content  # type: ignore[union-attr]
        for tier in ("conversation", "channel", "workspace", "account")
    }
    assert set(contents(here, "villain noted", profile="deep")) == set(texts.values())


def test_channels_do_not_mix(world: Workspace) -> None:
    """R3: channel results come only from the active channel."""
    world.create_channel("research")
    world.at(channel="research").put("channel", "The villain was a scholar once")
    assert contents(world.at(channel="general"), "villain scholar") == []
    assert contents(world.at(channel="research"), "villain scholar") == ["The villain was a scholar once"]


def test_workspaces_are_apart(memory: Lukasa, tmp_path: Path) -> None:
    """X3: a workspace sees nothing of another; each has a file of its own."""
    novel, thesis = memory.workspace("novel"), memory.workspace("thesis")
    written = novel.put("workspace", MALACHAR)
    assert contents(thesis, "villain Malachar") == []
    with pytest.raises(NotFound):
        thesis.get(written.id)
    files = {p.parent.name for p in (tmp_path / "data" / "workspaces").rglob("memory.db")}
    assert files == {novel.id, thesis.id}


def test_account_entries_cross_workspaces(memory: Lukasa) -> None:
    """M1: what is known at account level is found in every workspace."""
    memory.workspace("novel").put("account", "The author prefers dark themes in fiction")
    assert contents(memory.workspace("thesis"), "dark themes") == ["The author prefers dark themes in fiction"]


def test_foreign_ids_answer_like_missing_ones(memory: Lukasa) -> None:
    """X3, W9: an id of another workspace gets the very answer of one that never existed."""
    id = memory.workspace("novel").put("workspace", MALACHAR).id
    unknown = "00000000-0000-7000-8000-000000000000"
    answers = []
    for asked in (id, unknown):
        with pytest.raises(NotFound) as error:
            memory.workspace("thesis").forget(asked)
        answers.append(str(error.value).replace(asked, "ID"))
    assert answers[0] == answers[1]


def test_private_entries_stay_with_their_agent(world: Workspace) -> None:
    """M4: an agent's own entry is returned to that agent only; shared ones to all."""
    researcher, writer = world.acting(agent="researcher"), world.acting(agent="writer")
    private = researcher.put("workspace", "The archive in Veyra burned in 1780", owner="researcher")
    assert contents(researcher, "archive Veyra") == ["The archive in Veyra burned in 1780"]
    assert contents(writer, "archive Veyra") == contents(world, "archive Veyra") == []
    with pytest.raises(NotFound):
        writer.get(private.id)


def test_an_agent_cannot_write_for_another(world: Workspace) -> None:
    """M4, W9: ownership is the agent's own or shared."""
    with pytest.raises(InvalidInput):
        world.acting(agent="writer").put("workspace", "Something for the researcher", owner="researcher")


def test_each_read_counts_once(world: Workspace, clock: FixedClock) -> None:
    """D6: a retrieval raises the count by one and sets the time; the answer already has it."""
    world.put("workspace", MALACHAR)
    clock.time += timedelta(hours=5)
    counts = [world.read("villain")[0].access for _ in range(3)]
    assert [(a.count, a.at) for a in counts if a] == [(n, clock.now()) for n in (1, 2, 3)]


def test_concurrent_reads_are_all_counted(world: Workspace) -> None:
    """D6: eight threads reading at once lose no count."""
    id = world.put("workspace", MALACHAR).id
    threads = [threading.Thread(target=lambda: [world.read("villain") for _ in range(10)]) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    access = world.standing(id).access
    assert access is not None
    assert access.count == 80


def test_a_read_without_counting_changes_nothing(world: Workspace) -> None:
    """D6: looking for oneself, as a person does, need not count."""
    id = world.put("workspace", MALACHAR).id
    world.read("villain", count=False)
    assert world.standing(id).access is None


def test_what_differs_in_one_word_is_not_lost(tmp_path: Path) -> None:
    """W3, R4: to a model that takes opposites for the same, one word apart is still another fact: each is stored, one
    by one or in a batch, and each is found."""
    said = ["Bob sold the house in Lisbon", "Bob bought the house in Lisbon", "Bob bought the house near Lisbon"]
    embedder = FakeEmbedder(256, synonyms={"sold": "trade", "bought": "trade", "near": "in"})
    for name, batch in (("one by one", False), ("at once", True)):
        with Lukasa.open(tmp_path / name, embedder=embedder) as memory:
            world = memory.workspace()
            memos = [Memo(text) for text in said]
            written = world.put_many("workspace", memos) if batch else [world.put("workspace", t) for t in said]
            assert [one.outcome for one in written] == ["stored"] * 3
            hits = world.read("what about the house in Lisbon?")
            assert {text for hit in hits for text in (hit.content, *(e.content for e in hit.earlier))} == set(said)


def test_duplicates_are_merged(world: Workspace) -> None:
    """W3: the same text again confirms the entry."""
    first = world.put("workspace", MALACHAR)
    again = world.put("workspace", "the villain is called  Malachar.")
    assert (again.outcome, again.id) == ("merged", first.id)
    assert world.get(first.id).merged_count == 2


def test_members_of_a_batch_see_each_other(world: Workspace) -> None:
    """W3, W4: duplicates and contradictions inside one batch are settled as if put one by one."""
    outcomes = [w.outcome for w in world.put_many("workspace", [MALACHAR, MALACHAR, "The villain is called Vexis"])]
    assert outcomes == ["stored", "merged", "stored"]
    assert contents(world, "villain called") == ["The villain is called Vexis"]


def test_a_batch_is_all_or_nothing(world: Workspace) -> None:
    """W9: one bad member leaves nothing of the batch."""
    with pytest.raises(InvalidImportance):
        world.put_many("workspace", [Memo(MALACHAR), Memo("The harbour has three lighthouses", importance=7)])
    assert world.entries("workspace") == []


def test_a_correction_is_shown_before_the_old_fact(world: Workspace, clock: FixedClock) -> None:
    """W4, R7: both stay active; a read returns the one said last, with the earlier one under it."""
    old = world.put("workspace", MALACHAR)
    before = clock.now()
    clock.time += timedelta(days=1)
    new = world.put("workspace", "The villain is called Vexis")
    assert (new.outcome, new.beside, world.get(old.id)) == ("stored", (old.id,), old.entry)
    (hit,) = world.read("what is the villain called?")
    assert (hit.id, [(e.id, e.relation) for e in hit.earlier]) == (new.id, [(old.id, Relation.UPDATE)])
    assert contents(world, "villain called", as_of=before) == [MALACHAR]
    clock.time += timedelta(days=1)
    world.put("workspace", MALACHAR)
    assert [hit.id for hit in world.read("what is the villain called?")] == [old.id]


def test_a_question_that_names_the_earlier_one_finds_it(world: Workspace) -> None:
    """W4: what is folded is not hidden: asked for by its own words it is a hit, below the later one."""
    world.put("workspace", MALACHAR)
    world.put("workspace", "The villain is called Vexis")
    assert contents(world, "is the villain called Malachar?") == ["The villain is called Vexis", MALACHAR]


def test_two_speakers_keep_their_own_words(world: Workspace) -> None:
    """W3, W4: the same sentence of two people is two entries, and both are found."""
    for name in ("Ines", "Omar"):
        assert world.put("workspace", "I keep bees on the roof", source=name).outcome == "stored"
    assert world.put("workspace", "I keep bees on the roof", source="ines").outcome == "merged"
    world.put("workspace", "I live in Bari", source="Ines")
    assert world.put("workspace", "I live in Kotor now", source="Omar").beside == ()
    assert {hit.entry.source for hit in world.read("who keeps bees?")} == {"Ines", "Omar"}


def test_a_correction_by_id_retires_the_old_fact(world: Workspace, clock: FixedClock) -> None:
    """W4, R7: the newer fact holds; the older stays in history and in what was valid before."""
    old = world.put("workspace", MALACHAR).id
    before = clock.now()
    clock.time += timedelta(days=1)
    new = world.put("workspace", "The villain is called Vexis", supersedes=old)
    retired = world.get(old)
    assert (new.outcome, new.replaces) == ("replaced", (old,))
    assert (retired.state, retired.superseded_by) == (State.INVALIDATED, new.id)
    assert contents(world, "villain called") == ["The villain is called Vexis"]
    assert contents(world, "villain called", as_of=before) == [MALACHAR]
    assert set(contents(world, "villain called", history=True)) == {MALACHAR, "The villain is called Vexis"}


def test_as_of_shows_the_text_of_that_time(world: Workspace, clock: FixedClock) -> None:
    """R7: an edited entry reads as it was."""
    id = world.put("workspace", "The harbour has three lighthouses").id
    before = clock.now()
    clock.time += timedelta(days=1)
    world.update(id, content="The harbour has four lighthouses")
    assert contents(world, "harbour lighthouses") == ["The harbour has four lighthouses"]
    assert contents(world, "harbour lighthouses", as_of=before) == ["The harbour has three lighthouses"]


def test_forgetting_keeps_the_row(world: Workspace) -> None:
    """M3, W1: forget is a state with time, cause and actor; the row and its history stay."""
    id = world.put("workspace", MALACHAR).id
    world.forget(id, "retconned")
    entry = world.get(id)
    assert entry.state is State.FORGOTTEN
    assert entry.transition is not None
    assert entry.transition.cause == "retconned"
    assert contents(world, "villain") == []
    assert [v.entry.state for v in world.history(id)] == [State.ACTIVE, State.FORGOTTEN]


def test_restore_brings_back(world: Workspace) -> None:
    """M3: a forgotten entry can be restored and is found again."""
    id = world.put("workspace", MALACHAR).id
    world.forget(id)
    world.restore(id)
    assert contents(world, "villain") == [MALACHAR]


def test_restoring_a_twin_is_refused(world: Workspace) -> None:
    """M3: two active entries never hold one text."""
    first = world.put("workspace", MALACHAR).id
    world.forget(first)
    world.put("workspace", MALACHAR)
    with pytest.raises(Conflict):
        world.restore(first)


def test_forgetting_twice_is_an_error(world: Workspace) -> None:
    """M3, T39: an answer never claims what did not happen."""
    id = world.put("workspace", MALACHAR).id
    world.forget(id)
    with pytest.raises(InvalidTransition):
        world.forget(id)


def test_update_changes_what_is_found(world: Workspace) -> None:
    """W1: the new text is found, the old is not, and both are in the history."""
    id = world.put("workspace", "The harbour has three lighthouses").id
    world.update(id, content="The citadel has seven gates", importance=0.9)
    assert contents(world, "citadel gates", tier="workspace") == ["The citadel has seven gates"]
    assert world.history(id)[0].entry.content == "The harbour has three lighthouses"


def test_update_with_an_old_version_is_refused(world: Workspace) -> None:
    """W1: with `expect`, a change made meanwhile is never overwritten."""
    id = world.put("workspace", MALACHAR).id
    world.update(id, importance=0.9)
    with pytest.raises(Conflict):
        world.update(id, importance=0.1, expect=1)
    assert world.get(id).importance == 0.9


def test_held_entries_only_on_request(world: Workspace) -> None:
    """R7, W2: held is stored, out of default reads, and there when asked for."""
    page = world.acting(principal="web", trust=Trust.UNTRUSTED)
    written = page.put("workspace", "The user prefers that invoices go to Acme")
    assert written.outcome == "held"
    assert contents(world, "invoices Acme") == []
    assert contents(world, "invoices Acme", held=True) == ["The user prefers that invoices go to Acme"]


def test_discarded_text_is_traceable(world: Workspace) -> None:
    """W2, R8: a discarded write is not stored, but its ledger says why."""
    (written,) = world.put_many("workspace", [Memo("ok then", observed=True)])
    assert (written.outcome, written.entry) == ("discarded", None)
    (event,) = world.ledger(written.id)
    assert event.action == "entry.discarded"
    assert event.detail["cause"] == "shorter than 12 characters"
    assert "ok then" not in repr(event)


def test_origin_is_stamped_and_kept(world: Workspace) -> None:
    """B2: origin comes from the surface; an edit by another does not change it, and trust only falls."""
    id = world.put("workspace", MALACHAR).id
    before = world.get(id)
    world.acting(agent="editor").update(id, content="The villain is called Malachar the Grey")
    after = world.get(id)
    assert after.origin == before.origin
    assert (before.trust, after.trust) == (Trust.AUTHOR, Trust.AGENT)


def test_trust_cannot_be_claimed(world: Workspace) -> None:
    """B2, T45: acting for somebody else never raises trust, and curator cannot be made up."""
    page = world.acting(principal="web", trust=Trust.UNTRUSTED).acting(agent="helper", trust=Trust.AUTHOR)
    assert page.ctx.origin.trust is Trust.UNTRUSTED
    with pytest.raises(Refused):
        page.put("workspace", "The harbour has three lighthouses", curator="author")


def test_derived_entries_are_trusted_as_their_least_source(world: Workspace) -> None:
    """B2, T47: a summary of untrusted text by the author is untrusted."""
    page = world.acting(principal="web", trust=Trust.UNTRUSTED)
    source = page.put("workspace", "The harbour has three lighthouses").id
    summary = world.put("workspace", "A summary: lighthouses stand in the harbour", derived_from=[source])
    assert summary.entry is not None
    assert (summary.entry.trust, summary.entry.authority) == (Trust.UNTRUSTED, "none")


def test_links_show_their_source(world: Workspace) -> None:
    """M9: a hit shows its source's standing now; when the source changes or goes, the hit says so."""
    world.save_document("ch1", "In the beginning there was a harbour.", title="Chapter 1", standing="canonical")
    world.put("workspace", "Chapter one sets the scene at sea", links=["ch1"])
    statuses = []
    for change in (
        lambda: None,
        lambda: world.save_document("ch1", "Rewritten."),
        lambda: world.remove_document("ch1"),
    ):
        change()
        (shown,) = world.read("scene at sea")[0].provenance
        statuses.append((shown.status, shown.standing))
    assert statuses == [("current", "canonical"), ("changed", "canonical"), ("vanished", "")]


def test_links_need_a_document(world: Workspace) -> None:
    """M9, W9: a link to nothing is refused and nothing is written."""
    with pytest.raises(NotFound):
        world.put("workspace", "Chapter one sets the scene at sea", links=["nope"])
    assert world.entries("workspace") == []


def test_filters_narrow_before_the_limit(world: Workspace) -> None:
    """R1: structured conditions hold before anything is cut."""
    world.put_many("workspace", [f"The harbour has a lighthouse numbered {n}" for n in range(30)])
    world.put("workspace", "The harbour has a tavern by the lighthouse", tags=["place"], kind="episodic")
    assert contents(world, "harbour lighthouse", tags=["place"], limit=1) == [
        "The harbour has a tavern by the lighthouse"
    ]
    assert len(contents(world, "harbour lighthouse", kind="episodic", limit=5)) == 1


AWKWARD = ["multi-agent", "title:sec", "AND OR NOT", '"', "(((", "*", "NEAR(a b)", "a^2", "don't", "GB/s", "'; DROP"]
AWKWARD += ["\x00", "", "🦑", "\ud800", "%_", "-1", "col:*", "a" * 5000]


@pytest.mark.parametrize("query", AWKWARD)
def test_any_query_is_safe(world: Workspace, query: str) -> None:
    """R1, T54: no query string raises, and none finds another tier's rows."""
    world.put("account", "Somebody likes multi-agent systems and GB/s don't matter")
    world.put("workspace", "A multi-agent system moves 12 GB/s and don't forget it")
    found = contents(world, query, tier="workspace")
    assert set(found) <= {"A multi-agent system moves 12 GB/s and don't forget it"}
    if query in ("multi-agent", "GB/s", "don't"):
        assert found


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("東京タワーに登りました。とても高い", "東京タワー"),
        ("Elarindë est née à Évreux", "elarinde evreux"),
        ("ผู้ใช้ชอบดื่มกาแฟดำทุกเช้า", "กาแฟ"),
    ],
)
def test_any_language(world: Workspace, text: str, query: str) -> None:
    """B14: text without spaces and with accents is found by keyword."""
    world.put("workspace", text)
    assert contents(world, query) == [text]


@pytest.mark.parametrize(
    ("error", "arguments"),
    [
        (InvalidContent, {"content": ""}),
        (InvalidContent, {"content": "   \n"}),
        (InvalidContent, {"content": 42}),
        (InvalidContent, {"content": "x" * 10_000_000}),
        (InvalidContent, {"content": "The villain\x00 is here"}),
        (InvalidContent, {"content": "The villain \ud800 is here"}),
        (InvalidImportance, {"importance": 1.1}),
        (InvalidImportance, {"importance": -0.1}),
        (InvalidImportance, {"importance": math.nan}),
        (InvalidImportance, {"importance": "high"}),
        (InvalidImportance, {"importance": True}),
        (InvalidScope, {"tier": "galaxy"}),
        (InvalidScope, {"tier": "channel"}),
        (InvalidInput, {"kind": "magical"}),
        (InvalidInput, {"lifetime": "forever"}),
        (InvalidInput, {"tags": "one text"}),
        (InvalidInput, {"tags": [f"t{n}" for n in range(100)]}),
        (InvalidInput, {"metadata": {"x": object()}}),
        (InvalidInput, {"metadata": {"x": math.inf}}),
        (InvalidInput, {"supersedes": "not-a-uuid"}),
        (NotFound, {"supersedes": "00000000-0000-7000-8000-000000000000"}),
        (NotFound, {"derived_from": ["00000000-0000-7000-8000-000000000000"]}),
        (InvalidQuery, {"valid_at": "yesterday-ish"}),
    ],
)
def test_bad_input_is_refused_and_nothing_written(
    world: Workspace, error: type[LukasaError], arguments: dict[str, object]
) -> None:
    """W9, M2, T37: a typed error that says what to change; no entry and no event."""
    head = world.ctx.local.head()
    given = {"tier": "workspace", "content": MALACHAR, **arguments}
    with pytest.raises(error) as refusal:
        world.put(**given)  # type: ignore[arg-type]
    assert refusal.value.fix
    assert world.ctx.local.head() == head


@pytest.mark.parametrize(
    "options",
    [{"profile": "gigantic"}, {"limit": 0}, {"limit": 10**9}, {"as_of": "soon"}, {"colour": "red"}, {"tier": "galaxy"}],
)
def test_bad_questions_are_refused(world: Workspace, options: dict[str, object]) -> None:
    """W9: an unusable option is a typed error, never ignored."""
    with pytest.raises((InvalidInput, NotFound)) as refusal:
        world.read("villain", **options)  # type: ignore[arg-type]
    assert refusal.value.fix


def test_a_bad_id_is_refused(world: Workspace) -> None:
    """W9: an id that is no UUID says so."""
    with pytest.raises(InvalidInput):
        world.get("42; DROP TABLE entries")


def test_a_failing_embedder_loses_nothing(tmp_path: Path) -> None:
    """T05: if the embedder fails, the text is kept and found by keyword; its vector comes later."""
    embedder = FakeEmbedder(64)
    with Lukasa.open(tmp_path, embedder=embedder) as memory:
        world = memory.workspace()
        embedder.fail = True
        world.put("workspace", MALACHAR)
        recall = world.read("villain Malachar")
        assert [hit.content for hit in recall] == [MALACHAR]
        assert "keyword only" in recall.notes[0]
        embedder.fail = False
        assert world.backfill() == 1
        assert world.backfill() == 0
        assert world.read("villain Malachar").notes == ()


def test_another_model_is_never_compared(tmp_path: Path) -> None:
    """T27: after a change of model, old vectors are not used, and a backfill makes new ones."""
    with Lukasa.open(tmp_path, embedder=FakeEmbedder(64, name="one")) as memory:
        memory.workspace().put("workspace", MALACHAR)
    with Lukasa.open(tmp_path, embedder=FakeEmbedder(64, name="two")) as memory:
        world = memory.workspace()
        (hit,) = world.read("villain")
        assert {c.signal: c.rank for c in hit.score.match.contributions}["vector"] is None
        assert world.backfill() == 1
        (hit,) = world.read("villain")
        assert {c.signal: c.rank for c in hit.score.match.contributions}["vector"] == 1


def test_everything_survives_reopening(tmp_path: Path) -> None:
    """M2: what was acknowledged is there in the next process's eyes."""
    with Lukasa.open(tmp_path, embedder="none") as memory:
        id = memory.workspace("novel").put("workspace", MALACHAR, tags=["cast"]).id
        entry = memory.workspace("novel").get(id)
    with Lukasa.open(tmp_path, embedder="none") as memory:
        assert memory.workspace("novel").get(id) == entry


def test_a_correction_is_found_among_many_that_share_its_words(world: Workspace) -> None:
    """W4: what gives a thing another value is looked for by its beginning, too, however common its new value is."""
    joined = "is affiliated with the guild of the United River Boat Builders"
    old = world.put("workspace", "Joseph Lorne is affiliated with the guild of Painters")
    world.put_many("workspace", [f"Joseph paid toll number {n}" for n in range(40)])
    world.put_many("workspace", [f"Lorne market has stall number {n}" for n in range(40)])
    world.put_many("workspace", [f"Member{n} {joined}" for n in range(16)])
    assert world.put("workspace", f"Joseph Lorne {joined}").beside == (old.id,)


def test_a_text_that_a_gate_empties_is_refused(memory: Lukasa) -> None:
    """W6: a put is never discarded without a word: if nothing of the text may enter, the error says what to do."""
    gate = '[[sanitization]]\nboundary = "trust"\ntransforms = ["auth_scoped_subset"]\n'
    closed = memory.workspace("closed", spec=preset_text("default").replace("sanitization = []", "") + gate)
    with pytest.raises(InvalidContent, match="no part of this text") as refusal:
        closed.put("workspace", "[private]The safe is behind the clock[/private]")
    assert refusal.value.fix
    assert closed.events(action="entry.refused")
    assert closed.entries("workspace") == []


def test_what_was_stored_without_the_model_is_compared_later(tmp_path: Path) -> None:
    """W3, W4, D8: once the vectors are there, other wordings of one thing are found too."""
    said = ("The user prefers dark mode in the editor", "In the editor the user prefers dark mode")
    with Lukasa.open(tmp_path, embedder="none") as memory:
        ids = [memory.workspace().put("workspace", text).id for text in said]
        assert memory.workspace().related(ids[0]).rivals == ()
    with Lukasa.open(tmp_path, embedder=FakeEmbedder(256)) as memory:
        memory.workspace().backfill()
        assert [one.entry.id for one in memory.workspace().related(ids[0]).rivals] == [ids[1]]
        assert len(memory.workspace().read("which mode in the editor?")) == 1


def test_an_edit_is_the_latest_word(world: Workspace, clock: FixedClock) -> None:
    """W4: an old entry that a person edits says what holds now."""
    edited = world.put("workspace", "The mill grinds rye on Mondays").id
    clock.time += timedelta(days=1)
    other = world.put("workspace", MALACHAR).id
    clock.time += timedelta(days=1)
    world.update(edited, content="The villain is called Vexis")
    (hit,) = world.read("what is the villain called?")
    assert (hit.id, [one.id for one in hit.earlier]) == (edited, [other])
