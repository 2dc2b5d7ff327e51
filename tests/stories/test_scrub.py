"""An operator scrubs: a plan that removes nothing, a confirmation, and then nothing is left, not even in the files."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import apsw
import pytest

from lukasa import Lukasa, Trust, Workspace
from lukasa.model.errors import Conflict, InvalidInput, InvalidScope, NotFound, Refused
from lukasa.model.events import SCRUBBED, chain_faults
from lukasa.model.scrub import Extent, Mode, manifest_digest
from lukasa.model.selection import Selection
from lukasa.providers.chat.offline import OfflineChat
from lukasa.spec import preset_text
from lukasa.storage.operations import SaveChannel, Scrub
from lukasa.storage.sqlite import SqliteStore
from lukasa.storage.sqlite.store_files import MEMORY
from lukasa.surfaces.langgraph.graph import Agent, Making
from tests.fakes import FakeEmbedder
from tests.helpers.cli import Shell
from tests.helpers.processes import TORTURE, Tripwire, finish, fork
from tests.helpers.stores import WORK, channel, commit, entry, put

CANARY = "quibbleflorp"


def holding(folder: Path, words: str = CANARY) -> list[str]:
    """The files below a folder that hold some words, in any of the forms a database might keep them in."""
    forms = [words.encode(), words.encode("utf-16-le"), words[4:].encode()]
    files = [path for path in folder.rglob("*") if path.is_file()]
    return [path.name for path in files if any(form in path.read_bytes() for form in forms)]


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Lukasa]:
    with Lukasa.open(tmp_path / "data", embedder=FakeEmbedder()) as opened:
        yield opened


@pytest.fixture
def world(memory: Lukasa) -> Workspace:
    return memory.workspace("novel")


def furnish(world: Workspace, words: str = CANARY, facts: int = 40) -> str:
    """Spread some words over everything that a workspace's memory is made of; the answer is an entry's id."""
    first = world.put("workspace", f"The {words} sleeps under the bridge", tags=[words]).entry
    assert first is not None
    world.put_many("workspace", [f"Fact {n} about the {words}, which eats {n} fish a day" for n in range(facts)])
    world.update(first.id, content=f"The {words} sleeps in the tower")
    gone = world.put("workspace", f"A {words} was seen at sea").entry
    assert gone is not None
    world.forget(gone.id, f"the {words} was a seal")
    world.edit_named("PLACES", f"Where the {words} sleeps.", tier="workspace")
    world.read(words)
    return first.id


def test_a_plan_removes_nothing_and_says_all(world: Workspace) -> None:
    """H1: a dry run by default: scope, mode, counts by kind, a capped sample of ids, what else goes, a digest."""
    furnish(world)
    before = world.census()
    plan = world.scrub_plan("workspace")
    assert world.census() == before
    assert plan.scope == {"place": world.id, "tier": "workspace", "workspace": world.id}
    assert plan.mode is Mode.FULL
    assert plan.counts["entries"] == 42
    assert plan.counts["versions"] == 44
    assert plan.counts["vectors"] == 42
    assert plan.counts["named"] == 2  # PLACES, and the spec's own VOICE
    assert len(plan.sample) == 20
    assert len(plan.digest) == 64
    assert world.scrub_plan("workspace").digest == plan.digest
    assert world.scrub_plan("workspace", mode="keep_named").digest != plan.digest


def test_what_an_action_rests_on_survives(world: Workspace) -> None:
    """S4, X1: the universal posture: the plan, the result and the log name the row and its action; the rest goes."""
    kept, gone = furnish(world), world.put("workspace", "Nobody acted on this one").id
    world.link_action("deploy-7", [kept], "Moved it to the tower")
    plan = world.scrub_plan("workspace")
    assert plan.warnings[0] == "1 entry stays, because an action rests on each of them: deploy-7"
    assert [(row.id, row.actions) for row in plan.kept] == [(kept, ("deploy-7",))]
    done = world.scrub_execute("workspace", confirm=plan.digest)
    assert done.manifest.kept == plan.kept
    assert [entry.id for entry in world.entries("workspace", everything=True)] == [kept]
    assert [version.action for version in world.history(kept)] == ["entry.put", "entry.updated"]
    assert world.events(action=SCRUBBED)[-1].detail["kept"] == {kept: ["deploy-7"]}
    assert (str(world.grounds(kept).retention), str(world.grounds(gone).retention)) == ("referenced", "tombstoned")
    assert (world.verify(), world.check()) == ([], [])


def test_an_exempt_spec_scrubs_what_actions_rest_on(memory: Lukasa) -> None:
    """P4: the exemption `keep-action-linked`, with its reason, lets a scrub take these rows as well."""
    rule = '[{ rule = "keep-action-linked", reason = "Tests only." }]'
    world = memory.workspace("exempt", spec=preset_text("default").replace("exemptions = []", f"exemptions = {rule}"))
    id = world.put("workspace", "Somebody acted on this one").id
    world.link_action("deploy-7", [id])
    plan = world.scrub_plan("workspace")
    assert (plan.kept, plan.warnings[0]) == ((), "an action rests on 1 of these entries, and will rest on nothing")
    world.scrub_execute("workspace", confirm=plan.digest)
    assert world.entries("workspace", everything=True) == []


def test_a_scrub_brings_back_what_the_removed_had_replaced(world: Workspace) -> None:
    """B21: a row that stays, and that a row which goes had replaced, holds again."""
    old = world.put("workspace", "The bridge opens at nine", kind="semantic").id
    world.link_action("plan-1", [old])
    world.put("workspace", "The bridge opens at ten", kind="semantic", supersedes=old)
    assert str(world.get(old).state) == "invalidated"
    world.scrub_execute("workspace", confirm=world.scrub_plan("workspace").digest)
    assert str(world.get(old).state) == "active"
    assert [hit.id for hit in world.read("when does the bridge open?")] == [old]


def test_execution_needs_the_digest_of_what_is_there(world: Workspace) -> None:
    """H1: no digest, a short one, another's or an old one: refused, and nothing is removed."""
    id = furnish(world)
    plan = world.scrub_plan("workspace")
    for wrong in ("", " ", "*", plan.digest[:11], None):
        with pytest.raises(InvalidInput):
            world.scrub_execute("workspace", confirm=wrong)  # type: ignore[arg-type]
    for wrong in ("f" * 12, plan.digest[1:], plan.digest + "0", world.scrub_plan("account").digest):
        with pytest.raises(Conflict):
            world.scrub_execute("workspace", confirm=wrong)
    world.update(id, importance=0.9)
    with pytest.raises(Conflict):
        world.scrub_execute("workspace", confirm=plan.digest)
    assert len(world.entries("workspace", everything=True)) == 42
    world.scrub_execute("workspace", confirm=world.scrub_plan("workspace").digest[:12])
    assert world.entries("workspace", everything=True) == []


def test_after_a_scrub_the_words_are_in_no_file(memory: Lukasa, world: Workspace) -> None:
    """H1, H2: rows, versions, index, log, write-ahead log: not a byte of it, while the store is still open."""
    id = furnish(world)
    folder = memory.folder(world)
    assert folder is not None
    assert holding(folder)
    done = world.scrub_execute("workspace", confirm=world.scrub_plan("workspace").digest)
    assert done.swept
    assert holding(folder) == []
    assert world.read("who sleeps under the bridge?").hits == ()
    with pytest.raises(NotFound):
        world.get(id)
    assert world.verify() == []
    assert world.check() == []
    (event,) = world.events(action=SCRUBBED)
    assert (event.seq, event.detail["counts"]["entries"]) == (done.event, 42)
    assert event.detail["operator"].endswith("@library")
    assert event.detail["digest"] == done.manifest.digest


def test_named_entries_survive_keep_named(world: Workspace) -> None:
    """H1: pages that people wrote stay, with their history; the rest goes."""
    furnish(world)
    world.edit_named("MEMORY", "What is known.", tier="workspace")
    world.scrub_execute("workspace", confirm=world.scrub_plan("workspace", mode="keep_named").digest, mode="keep_named")
    assert {"MEMORY", "PLACES"} <= {page.name for page in world.named()}
    assert len(world.named_history("PLACES")) == 1
    assert world.entries("workspace", everything=True) == []
    assert world.check() == []


def test_a_page_that_is_in_a_file_is_not_removed_to_come_back(memory: Lukasa) -> None:
    """H1: files are not a scrub's to remove; the curated page goes when its file has, and stays with keep_named."""
    world = memory.workspace("desk", preset="observer")
    world.edit_named("MEMORY", f"- the {CANARY} sleeps", tier="workspace")
    file = world.ctx.curated_file
    assert file is not None
    with file.locked():
        file.write(f"- the {CANARY} sleeps", instead_of=None)
    with pytest.raises(Refused):
        world.scrub_execute("workspace", confirm=world.scrub_plan("workspace").digest)
    world.scrub_execute("workspace", confirm=world.scrub_plan("workspace", mode="keep_named").digest, mode="keep_named")
    file.path.unlink()
    world.scrub_execute("workspace", confirm=world.scrub_plan("workspace").digest)
    assert "MEMORY" not in {page.name for page in world.named()}
    assert world.check() == []


def test_tiers_and_channels_are_scrubbed_apart(memory: Lukasa, world: Workspace) -> None:
    """H1: one channel, one conversation, the account: each its own scope, and nothing else's."""
    world.create_channel("research")
    talk = world.start()
    places = {
        "research": (world.at(channel="research"), "channel"),
        "general": (world.at(channel="general"), "channel"),
        "talk": (world.at(conversation=talk.ref_code), "conversation"),
        "here": (world, "workspace"),
        "me": (world, "account"),
    }
    for name, (place, tier) in places.items():
        place.put(tier, f"The lantern of {name} is lit every evening at nine")
    for name in ("research", "talk", "me", "here"):
        place, tier = places.pop(name)
        place.scrub_execute(tier, confirm=place.scrub_plan(tier).digest)
        assert place.entries(tier, everything=True) == []
        assert all(len(other.entries(t)) == 1 for other, t in places.values())
    assert chain_faults(memory.account.event_stream(), head=memory.account.head()) == []
    assert {page.name for page in memory.workspace("other").named()} == {"SOUL", "VOICE"}  # the spec's, anew


def test_scopes_of_other_presets_are_scrubbed_too(memory: Lukasa) -> None:
    """H1, P1: any tier of any spec, by the scope that is bound; an unbound one is refused."""
    world = memory.workspace("ops", preset="anchored")
    acme, other = (world.at(org_id=org, domain_id="ops") for org in ("acme", "acme2"))
    for place in (acme, other):
        place.put("persistent", "Deploys happen on Mondays")
    with pytest.raises(InvalidScope):
        world.scrub_plan("persistent")
    acme.scrub_execute("persistent", confirm=acme.scrub_plan("persistent").digest)
    assert acme.entries("persistent") == []
    assert len(other.entries("persistent")) == 1


# Threads


def test_a_thread_is_purged_with_its_checkpoints(memory: Lukasa, world: Workspace) -> None:
    """H1: entries, notes, checkpoints and events of one conversation, which is over then; another's stay."""
    folder = memory.folder(world)
    assert folder is not None
    refs = []
    for words in (CANARY, "marrowgrind"):
        with Agent(world.acting(agent="assistant"), Making(OfflineChat()), threads=memory.threads(world)) as agent:
            agent.turn(f"Keep track of this: the {words} has 3 tails")
            agent.leave()
            refs.append(agent.conversation.ref_code)
        world.at(conversation=refs[-1]).put("conversation", f"The {words} was mentioned")
        world.write_note(refs[-1], f"about-{words}", {"seen": words})
    assert "checkpoints.db" in holding(folder)
    plan = world.purge_plan(refs[0])
    assert min(plan.counts[kind] for kind in ("entries", "notes", "checkpoints", "events")) > 0
    done = world.purge_execute(refs[0], confirm=plan.digest)
    assert done.swept
    left = set(holding(folder))
    for kept in world.entries("workspace", everything=True):  # what was learnt from it for good is the workspace's
        if CANARY in kept.content:
            left -= {MEMORY, f"{MEMORY}-wal"}
    assert left == set()
    assert holding(folder, "marrowgrind")
    assert world.notes(refs[0]) == []
    assert str(world.conversation(refs[0]).status) == "archived"
    assert world.purge_plan(refs[0]).lines == ()
    assert world.verify() == []
    assert world.check() == []


def test_a_thread_that_is_led_is_not_purged(memory: Lukasa, world: Workspace) -> None:
    """H1: a living chat would write on; it is refused until that has ended."""
    with Agent(world.acting(agent="assistant"), Making(OfflineChat()), threads=memory.threads(world)) as agent:
        agent.turn("hello")
        ref = agent.conversation.ref_code
        with pytest.raises(Refused):
            world.purge_execute(ref, confirm=world.purge_plan(ref).digest)
        agent.leave()


# Kill and tamper


def scrub_until_killed(folder: Path, at: int) -> None:
    wire = Tripwire(at)
    wire.install()
    with Lukasa.open(folder, embedder="none") as memory:
        world = memory.workspace("novel")
        plan = world.scrub_plan("workspace")
        wire.armed = True
        world.scrub_execute("workspace", confirm=plan.digest)
    os._exit(7)


def test_a_kill_leaves_all_or_nothing(tmp_path: Path) -> None:
    """H1, T01: killed at any statement, either everything is there or nothing is; then the files are cleaned up."""
    with Lukasa.open(tmp_path / "made", embedder="none") as memory:
        furnish(memory.workspace("novel"), facts=5)
    ends = set()
    at, done = 2, False
    while not done:
        folder = tmp_path / str(at)
        shutil.copytree(tmp_path / "made", folder)
        done = finish(fork(partial(scrub_until_killed, folder, at))) == 7
        with Lukasa.open(folder, embedder="none") as memory:
            world = memory.workspace("novel")
            left = len(world.entries("workspace", everything=True))
            assert left in (0, 7)
            assert len(world.events(action=SCRUBBED)) == (0 if left else 1)
            assert world.check() == []
            place = memory.folder(world)
            assert place is not None
            assert bool(holding(place)) is bool(left)
        ends.add((left, done))
        at += 1 if TORTURE else max(1, at // 4)
    assert ends == {(7, False), (0, False), (0, True)}


@pytest.fixture
def scrubbed(tmp_path: Path) -> Iterator[SqliteStore]:
    store = SqliteStore(tmp_path, role="workspace", create=True)
    commit(store, SaveChannel(channel()), put(entry(f"the {CANARY} sleeps")), put(entry("it eats fish")))
    scrub(store)
    assert store.check() == []
    yield store
    store.close()


def scrub(store: SqliteStore) -> None:
    extent = Extent("w1", Mode.FULL, WORK, whole=True, copies=True)
    commit(store, Scrub(extent, manifest_digest(extent, store.holdings(extent))))


def tamper(folder: Path, statements: str) -> None:
    db = apsw.Connection(str(folder / MEMORY))
    try:
        db.execute(statements).fetchall()
    finally:
        db.close()


UNGUARDED = "DROP TRIGGER events_fixed; DROP TRIGGER events_kept; "
PRETENCES = {
    "emptied without a scrub": "UPDATE events SET subject = '', detail = '{}' WHERE action = 'channel.created'",
    "husk renamed": "UPDATE events SET action = 'entry.read' WHERE seq = :first",
    "husk of another": "UPDATE events SET principal = 'mallory' WHERE seq = :first",
    "husk at another time": "UPDATE events SET at = replace(at, '20', '19') WHERE seq = :first",
    "husk filled": "UPDATE events SET subject = 'x' WHERE seq = :first",
    "the scrub emptied": "UPDATE events SET subject = '', detail = '{}' WHERE action = 'scrub.executed'",
    "the scrub widened": "UPDATE events SET detail = json_set(detail, '$.redacted.ranges[0]', json('[1, 9]')) "
    "WHERE action = 'scrub.executed'",
    "the scrub gone": "DELETE FROM events WHERE action = 'scrub.executed'",
}


@pytest.mark.parametrize("pretence", PRETENCES)
def test_a_pretended_redaction_is_seen(scrubbed: SqliteStore, tmp_path: Path, pretence: str) -> None:
    """H2, X2, T59: only what an intact scrub vouches for may be empty, and exactly as it was left."""
    first = scrubbed.events(action=SCRUBBED)[0].detail["redacted"]["ranges"][0][0]
    tamper(tmp_path, UNGUARDED + PRETENCES[pretence].replace(":first", str(first)))
    assert chain_faults(scrubbed.event_stream(), head=scrubbed.head()) != []
    assert any(finding.what == "chain" for finding in scrubbed.check())


FORBIDDEN = {
    "an event edited": "UPDATE events SET detail = '{}' WHERE seq = 1",
    "an event emptied": "UPDATE events SET subject = '', detail = '{}' WHERE seq = 1",
    "an event deleted": "DELETE FROM events WHERE seq = 1",
    "a scrub emptied": "UPDATE events SET subject = '', detail = '{}' WHERE action = 'scrub.executed'",
    "a redaction by another event": "INSERT INTO redactions VALUES (1, 1, 2)",
    "a redaction of the scrub": "INSERT INTO redactions SELECT seq, seq, seq FROM events "
    "WHERE action = 'scrub.executed'",
    "a redaction taken back": "DELETE FROM redactions",
    "a redaction widened": "UPDATE redactions SET last = last + 1",
}


@pytest.mark.parametrize("statement", FORBIDDEN)
def test_the_log_lets_nothing_else_happen_to_it(scrubbed: SqliteStore, tmp_path: Path, statement: str) -> None:
    """H2, X2: the database itself refuses every change of the log but a scrub's emptying."""
    with pytest.raises(apsw.ConstraintError):
        tamper(tmp_path, FORBIDDEN[statement])
    assert scrubbed.check() == []


# Who may


@pytest.mark.parametrize("actor", ["agent", "untrusted"])
def test_no_agent_executes_a_scrub(world: Workspace, actor: str) -> None:
    """H3, T42: an agent may be shown a plan, with the ids it may see; it cannot execute one, whatever it knows."""
    world.put("workspace", "The lantern is lit at nine")
    secret = world.put("workspace", "The ferry leaves at noon", owner="otto").entry
    assert secret is not None
    digest = world.scrub_plan("workspace").digest
    held = world.acting(agent="eve") if actor == "agent" else world.acting(trust=Trust.UNTRUSTED)
    with pytest.raises(Refused):
        held.scrub_execute("workspace", confirm=digest)
    with pytest.raises(Refused):
        held.purge_execute(world.start().ref_code, confirm=digest)
    if actor == "agent":
        assert held.scrub_plan("workspace").counts["entries"] == 2
        assert secret.id not in held.scrub_plan("workspace").sample
    assert len(world.entries("workspace")) == 2


def test_a_reader_elsewhere_delays_the_cleaning_not_the_scrub(tmp_path: Path) -> None:
    """H1: while another process reads an older state its log must stay; the next opening cleans up."""
    store = SqliteStore(tmp_path, role="workspace", create=True, busy_timeout=0.1)
    commit(store, put(entry(f"the {CANARY} sleeps")))
    reader = apsw.Connection(str(tmp_path / MEMORY))
    reader.execute("BEGIN; SELECT count(*) FROM entries").fetchall()
    scrub(store)
    assert not store.purge_files()
    assert store.find(Selection((WORK,))) == []
    reader.close()
    SqliteStore(tmp_path, role="workspace", create=False).close()
    assert holding(tmp_path) == []
    store.close()


# On the command line


def test_the_command_plans_and_executes(tmp_path: Path) -> None:
    """U2, H1: what the plan prints is what execute needs; twelve characters are enough."""
    shell = Shell(tmp_path / "data")
    shell.run("put", f"The {CANARY} sleeps")
    plan = shell.json("scrub", "plan", "--tier", "workspace")
    assert plan["counts"]["entries"] == 1
    told = shell.run("scrub", "plan", "--tier", "workspace")
    assert f"--confirm {plan['digest'][:12]}" in told
    assert shell.json("scrub", "execute", "--tier", "workspace", "--confirm", "f" * 12, code=1)["error"]
    done = shell.json("scrub", "execute", "--tier", "workspace", "--confirm", plan["digest"][:12])
    assert done["swept"] is True
    assert shell.json("list", "--tier", "workspace")["entries"] == []
    assert shell.json("events", "verify")["whole"] is True
    assert "scrubbed" in shell.run("events", "list")


def test_the_command_clears_files_that_were_in_use(tmp_path: Path) -> None:
    """M3: what a scrub could not clear because somebody read it, `scrub files` clears afterwards, and says when not."""
    shell = Shell(tmp_path / "data")
    shell.run("put", f"The {CANARY} sleeps")
    (file,) = [path for path in (tmp_path / "data").rglob(MEMORY) if CANARY.encode() in everything_of(path)]
    digest = shell.json("scrub", "plan", "--tier", "workspace")["digest"]
    reader = apsw.Connection(str(file))
    reader.execute("BEGIN; SELECT count(*) FROM entries").fetchall()
    told = shell.run("scrub", "execute", "--tier", "workspace", "--confirm", digest)
    assert "lukasa scrub files" in told
    assert shell.json("scrub", "files", code=1) == {"swept": False}
    reader.close()
    assert shell.json("scrub", "files") == {"swept": True}
    assert CANARY.encode() not in everything_of(file)


def everything_of(file: Path) -> bytes:
    """The contents of a database with those of its log."""
    return b"".join(path.read_bytes() for path in file.parent.glob(f"{file.name}*"))
