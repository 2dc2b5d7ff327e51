"""Maintenance and the workspace preset's pipeline: every move recoverable, and twice as once."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from msgspec.structs import replace

from lukasa import Lifetime, Lukasa, Memo, Relation, State, Workspace
from lukasa.model.ids import new_id
from lukasa.model.telemetry import TelemetryQuery
from lukasa.spec import preset_text
from lukasa.storage.operations import Embedding, SaveEntry
from tests.fakes import FakeEmbedder
from tests.helpers.cli import Shell
from tests.helpers.making import RETIRE, FixedClock
from tests.helpers.upkeep import run, same


@pytest.fixture
def observer(memory: Lukasa) -> Workspace:
    return memory.workspace("watched", preset="observer")


@pytest.fixture
def tidy(memory: Lukasa) -> Workspace:
    return memory.workspace("project", preset="workspace")


@pytest.fixture
def embedded(tmp_path: Path, clock: FixedClock) -> Iterator[Lukasa]:
    with Lukasa.open(tmp_path / "data", embedder=FakeEmbedder(256), clock=clock) as opened:
        yield opened


def test_the_never_recalled_grow_stale_and_are_forgotten(observer: Workspace, clock: FixedClock) -> None:
    """O7: stale after 90 days without a recall, forgotten after 180; what was recalled stays."""
    quiet = observer.put("workspace", "The lantern stands in the attic", lifetime="short_term").id
    used = observer.put("workspace", "The harbour freezes in January", lifetime="short_term").id
    observer.read("when does the harbour freeze?", limit=1)
    clock.time += timedelta(days=91)
    assert run(observer, "maintain").result["stale"] == 1
    assert (observer.get(quiet).state, observer.get(used).state) == (State.STALE, State.ACTIVE)
    clock.time += timedelta(days=90)
    assert run(observer, "maintain").result["forgotten"] == 1
    assert (observer.get(quiet).state, observer.get(used).state) == (State.FORGOTTEN, State.ACTIVE)
    observer.restore(quiet)
    assert observer.get(quiet).state is State.ACTIVE


def test_observed_memory_is_what_maintenance_forgets(observer: Workspace, clock: FixedClock) -> None:
    """O7, S2, S3: an observed fact that nobody recalls is forgotten; one that somebody put on purpose never is."""
    (seen,) = observer.put_many("workspace", [Memo("The mill wheel turns on Tuesdays", observed=True)])
    meant = observer.put("workspace", "The lantern stands in the attic").id
    for _ in range(3):
        clock.time += timedelta(days=100)
        run(observer, "maintain")
    assert observer.get(seen.id).state is State.FORGOTTEN
    assert observer.get(meant).state is State.STALE
    assert [hit.id for hit in observer.read("where is the lantern?")] == [meant]


def test_use_takes_staleness_back(observer: Workspace, clock: FixedClock) -> None:
    """O7: a stale entry that is recalled after all is active again with the next run."""
    id = observer.put("workspace", "The lantern stands in the attic").id
    clock.time += timedelta(days=91)
    run(observer, "maintain")
    observer.read("where is the lantern?")
    run(observer, "maintain")
    assert observer.get(id).state is State.ACTIVE


@pytest.mark.parametrize("kind", ["maintain", "consolidate"])
def test_twice_is_as_once(memory: Lukasa, clock: FixedClock, kind: str) -> None:
    """O7: a second run changes nothing: the log has no further event."""
    for preset in ("observer", "workspace", "default"):
        world = memory.workspace(preset, preset=preset)
        for number in range(12):
            world.put("workspace", f"Note {number} tells of lantern {number * 7} in the attic", kind="episodic")
        clock.time += timedelta(days=91)
        run(world, kind)
        head = world.ctx.local.head()
        again = run(world, kind)
        assert world.ctx.local.head() == head
        assert {k: v for k, v in again.result.items() if not k.startswith("entries_")} == {}


def test_what_a_run_did_is_undone_in_one_step(observer: Workspace, clock: FixedClock) -> None:
    """B3: by the job's id; everything is as it was before the run."""
    ids = [observer.put("workspace", f"Lantern {n} stands in attic {n}").id for n in range(5)]
    before = [same(observer.get(id)) for id in ids]
    clock.time += timedelta(days=91)
    job = run(observer, "maintain")
    assert {observer.get(id).state for id in ids} == {State.STALE}
    assert len(observer.undo(job.id).entries) == 5
    assert [same(observer.get(id)) for id in ids] == before


def test_statistics_are_emitted(observer: Workspace) -> None:
    """O7, T1: a run tells how much there is, as telemetry."""
    observer.put("workspace", "The lantern stands in the attic")
    run(observer, "maintain")
    (point,) = observer.ctx.local.points(TelemetryQuery(action="maintain.completed"))
    assert point.metadata["entries_open"] == 1


def test_a_run_tells_what_there_is(tmp_path: Path) -> None:
    """O7, T1, T2: categories, merged and stale totals, in the answer, for people, in telemetry and in `stats`."""
    shell = Shell(tmp_path / "data")
    shell.run("workspace", "create", "w", "--preset", "observer")
    shell.env["LUKASA_WORKSPACE"] = "w"
    for text in (
        "Deploys of the quay are paused",
        "Deploys of the quay are paused",
        "I prefer tea to coffee",
        "Blue moss",
    ):
        shell.put(text)
    result = shell.json("maintain")["result"]
    assert (result["entries_open"], result["entries_stale"], result["entries_merged"]) == (3, 0, 1)
    assert result["entries_by_category"] == {"operations": 1, "other": 1, "preferences": 1}
    told = shell.run("maintain")
    assert "3 entries in recall, 0 of them stale, 1 repetition merged into them" in told
    assert "preferences 1" in told
    (report, *_) = shell.json("reports", "--action", "maintain.completed")["reports"]
    assert report["metadata"]["entries_by_category"] == result["entries_by_category"]
    totals = shell.json("stats")["totals"]
    assert totals == {"recalled": 3, "stale": 0, "merged": 1, "categories": result["entries_by_category"]}
    assert "1 repetition merged" in shell.run("stats")


def test_stale_entries_are_counted(observer: Workspace, clock: FixedClock) -> None:
    """O7, T2: what maintenance has made stale is in its report and in the statistics."""
    observer.put("workspace", "The lantern stands in the attic")
    clock.time += timedelta(days=91)
    assert run(observer, "maintain").result["entries_stale"] == 1
    assert observer.stats().totals.stale == 1


def test_copies_are_one_hit(embedded: Lukasa, clock: FixedClock) -> None:
    """O7, W3: copies that the write path could not see become one hit with every wording under it."""
    world = embedded.workspace("watched", preset="observer")
    kept = world.put("workspace", "The blue lantern stands in the north attic", importance=0.9).id
    copy = _copied(world, kept, "The blue lantern stands in the north attic now")
    clock.time += timedelta(hours=1)
    run(world, "maintain")
    (hit,) = world.read("where is the blue lantern?")
    assert {hit.id, *(one.id for one in hit.earlier)} == {kept, copy}
    assert [(other.entry.id, other.relation) for other in world.related(kept).rivals] == [(copy, Relation.SAME)]


def test_copies_are_superseded(embedded: Lukasa, clock: FixedClock) -> None:
    """O7, W3: where the rules may retire, copies fold into the best supported one, and come back by undo."""
    world = embedded.workspace("watched", spec=preset_text("observer") + RETIRE)
    kept = world.put("workspace", "The blue lantern stands in the north attic", importance=0.9).id
    copy = _copied(world, kept, "The blue lantern stands in the north attic now")
    before = [same(world.get(id)) for id in (kept, copy)]
    clock.time += timedelta(hours=1)
    job = run(world, "maintain")
    assert (world.get(copy).state, world.get(copy).superseded_by) == (State.SUPERSEDED, kept)
    assert world.get(kept).merged_count == 2
    world.undo(job.id)
    assert [same(world.get(id)) for id in (kept, copy)] == before


def _copied(world: Workspace, id: str, text: str) -> str:
    """A second entry beside the first, as an import of another store leaves it."""
    ctx = world.ctx
    assert ctx.embedder is not None
    other = replace(world.get(id), id=new_id(), content=text, importance=0.5)
    vector = Embedding(ctx.embedder.model, ctx.embedder.embed_memories([text])[0])
    ctx.apply(ctx.local, SaveEntry(other, 0, "entry.put", "imported", embedding=vector))
    return other.id


def test_the_trivial_is_pruned_and_the_important_stays(tidy: Workspace, clock: FixedClock) -> None:
    """O6, D1: below a relevance of 0.01 an entry is pruned, a state that can be taken back."""
    trivial = tidy.put("workspace", "The kettle boiled twice on Tuesday", importance=0.05, lifetime="short_term").id
    vital = tidy.put("workspace", "Deploys run from the release branch", importance=1.0).id
    clock.time += timedelta(days=15)
    assert run(tidy, "consolidate").result == {"pruned": 1}
    assert (tidy.get(trivial).state, tidy.get(vital).state) == (State.PRUNED, State.ACTIVE)
    tidy.restore(trivial)
    assert tidy.get(trivial).state is State.ACTIVE


def test_what_is_long_term_is_never_pruned(tidy: Workspace, clock: FixedClock) -> None:
    """S3, O6: a year unread takes no long-term entry, however low its relevance; a short-term one beside it goes."""
    kept = tidy.put("workspace", "The kettle boiled twice on Tuesday", importance=0.05).id
    brief = tidy.put("workspace", "The gate squeaked on Monday", importance=0.05, lifetime="short_term").id
    clock.time += timedelta(days=365)
    assert run(tidy, "consolidate").result == {"pruned": 1}
    assert (tidy.get(kept).state, tidy.get(brief).state) == (State.ACTIVE, State.PRUNED)


@pytest.mark.parametrize(("policy", "state"), [("corroborate", State.PRUNED), ("indefinite", State.ACTIVE)])
def test_upkeep_takes_nothing_indefinite(memory: Lukasa, clock: FixedClock, policy: str, state: State) -> None:
    """S4: where the lifecycle is `indefinite`, neither relevance nor the cap takes an entry out of recall."""
    text = _small('policy = "corroborate"', f'policy = "{policy}"').replace("cap = 10000", "cap = 1")
    world = memory.workspace("kept", spec=text)
    ids = [world.put("workspace", f"Lantern {n} in attic {n * 7}", lifetime="short_term").id for n in range(3)]
    clock.time += timedelta(days=365)
    run(world, "consolidate")
    assert {world.get(id).state for id in ids} == {state}


@pytest.mark.parametrize(("policy", "state"), [("corroborate", State.FORGOTTEN), ("indefinite", State.ACTIVE)])
def test_age_takes_nothing_indefinite(memory: Lukasa, clock: FixedClock, policy: str, state: State) -> None:
    """S4: where the lifecycle is `indefinite`, maintenance neither marks an entry stale nor forgets it."""
    text = preset_text("observer").replace('policy = "corroborate"', f'policy = "{policy}"')
    world = memory.workspace("kept", spec=text)
    id = world.put("workspace", "The lantern stands in the attic", lifetime="short_term").id
    for _ in range(3):
        clock.time += timedelta(days=100)
        run(world, "maintain")
    assert world.get(id).state is state


def test_what_must_be_disposed_of_waits(memory: Lukasa, clock: FixedClock) -> None:
    """S4: where the lifecycle is `dispose`, a faded entry waits for a person: it is listed, not pruned."""
    text = _small('policy = "corroborate"', 'policy = "dispose"')
    world = memory.workspace("waiting", spec=text.replace("rate = 0.995", "rate = 0.995\nthreshold = 0.1"))
    id = world.put("workspace", "The gate squeaked on Monday", lifetime="short_term").id
    assert world.dispositions() == []
    clock.time += timedelta(days=365)
    run(world, "consolidate")
    assert [w.id for w in world.dispositions()] == [id]
    world.dispose(id, "exempt", "it still squeaks")
    assert world.dispositions() == []
    assert world.standing(id).decay == 1.0


def test_use_earns_a_long_life(tidy: Workspace) -> None:
    """O6, W8: short-term becomes long-term with a relevance above 0.7 and more than three reads."""
    used = tidy.put("workspace", "Deploys run from the release branch", importance=0.9, lifetime="short_term").id
    idle = tidy.put("workspace", "The kettle boiled twice on Tuesday", importance=0.9, lifetime="short_term").id
    for _ in range(4):
        tidy.read("where do deploys run from?", limit=1)
    assert run(tidy, "consolidate").result == {"promoted": 1}
    assert (tidy.get(used).lifetime, tidy.get(idle).lifetime) == (Lifetime.LONG_TERM, Lifetime.SHORT_TERM)
    assert tidy.ledger(used)[-1].action == "entry.promoted"


def test_a_scope_is_capped(memory: Lukasa) -> None:
    """O6, S3: beyond the cap the least relevant short-term entries are pruned; long-term ones count and stay."""
    world = memory.workspace("small", spec=_small("cap = 10000", "cap = 5"))
    for number in range(9):
        importance, life = 0.1 + number / 10, "long_term" if number == 0 else "short_term"
        text = f"Lantern {number * 13} stands in attic {number}"
        world.put("workspace", text, importance=importance, lifetime=life)
    assert run(world, "consolidate").result == {"pruned": 4}
    left = sorted(entry.importance for entry in world.entries("workspace"))
    assert left == pytest.approx([0.1, 0.6, 0.7, 0.8, 0.9])


def _small(old: str, new: str) -> str:
    text = preset_text("workspace")
    assert old in text
    return text.replace(old, new)


def test_files_are_left_alone(tidy: Workspace, clock: FixedClock) -> None:
    """O6: what Anthropic's memory tool keeps as files is no note to be tidied away."""
    (file,) = tidy.put_many("workspace", [Memo("plain words", path="project/a.md", importance=0.01)])
    clock.time += timedelta(days=400)
    run(tidy, "consolidate")
    run(tidy, "maintain")
    assert tidy.get(file.id).state is State.ACTIVE


def test_private_entries_keep_their_owner(embedded: Lukasa, clock: FixedClock) -> None:
    """M4: what two owners keep is never folded into one."""
    world = embedded.workspace("watched", preset="observer")
    shared = world.put("workspace", "The blue lantern stands in the north attic").id
    own = world.acting(agent="helper").put("workspace", "The blue lantern stands in the north attic", owner="helper").id
    run(world, "maintain")
    assert {world.get(shared).state, world.get(own).state} == {State.ACTIVE}
