"""An owner erases an entry, a source or a person: a plan first, then nothing is left of it, and nobody else loses."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from lukasa import Lukasa, Trust
from lukasa.model.disclosure import Disclosure, Shown
from lukasa.model.errors import Conflict, InvalidInput, NotFound, Refused
from lukasa.model.events import SCRUBBED
from lukasa.storage.operations import SaveEntry
from tests.fakes import FakeEmbedder
from tests.helpers.cli import Shell
from tests.helpers.curating import promote, work
from tests.helpers.erasing import holding
from tests.helpers.processes import TORTURE, Tripwire, finish, fork
from tests.helpers.stores import entry as made_entry

NAME = "Zorbina Quaxwell"


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Lukasa]:
    with Lukasa.open(tmp_path / "data", embedder=FakeEmbedder()) as opened:
        yield opened


def test_the_curated_document_loses_the_name_in_every_commit(memory: Lukasa) -> None:
    """B5: the page, its versions, the file and git's history; commits, authors and other lines stay."""
    world = memory.workspace("desk", preset="observer")
    promote(world, f"{NAME} keeps the keys.", "The gate opens at nine.")
    work(world)
    file = world.ctx.curated_file
    assert file is not None
    before = [(commit.version, commit.body.replace(NAME, "[erased]")) for commit in file.commits()]
    assert holding(file.path.parent, NAME)
    plan = world.erase_plan(person=NAME)
    assert plan.files
    assert world.erase(person=NAME, confirm=plan.digest).clean
    folder = memory.folder(world)
    assert folder is not None
    assert holding(folder, NAME) == []
    after = [(commit.version, " ".join(commit.body.split())) for commit in file.commits()]
    assert after == [(version, " ".join(body.split())) for version, body in before]
    promote(world, "The gate closes at six.")
    work(world)
    assert "The gate closes at six." in (file.read() or "")
    assert world.check() == []


def test_an_entry_goes_with_what_was_concluded_from_it(memory: Lukasa) -> None:
    """B5: its versions, what rests on it, and the same words elsewhere; the receipt names who was shown it."""
    world = memory.workspace("novel")
    one = world.put("workspace", "The bakery moved to Harbour Street last spring").entry
    other = world.put("workspace", "The library is open on Sundays").entry
    assert one is not None
    assert other is not None
    drawn = made_entry("Bread is now bought near the sea", scope=one.scope, derived_from=(one.id,))
    world.ctx.apply(world.ctx.local, SaveEntry(drawn, 0, "entry.put", "concluded"))
    shown = Disclosure(world.ctx.now, "scribe", "mcp", "stdio", "", "", "memory_read", 9, (Shown(one.id, 1, 9),))
    world.ctx.local.disclose(shown)
    plan = world.erase_plan(entry=one.id)
    assert (plan.removed, plan.derived) == ((one.id,), (drawn.id,))
    assert [(told.principal, told.times) for told in plan.recipients] == [("scribe", 1)]
    receipt = world.erase(entry=one.id, confirm=plan.digest)
    assert receipt.clean
    assert [told["principal"] for told in receipt.recipients] == ["scribe"]
    assert [e.id for e in world.entries("workspace", everything=True)] == [other.id]
    with pytest.raises(NotFound):
        world.erase_plan(entry=one.id)


def test_a_source_goes_with_its_document(memory: Lukasa) -> None:
    """B5: a document by its id, with its passages and the entries that link to it; other documents stay."""
    world = memory.workspace("novel")
    world.save_document("diary", "Rain fell on the orchard for nine days.\n")
    world.save_document("atlas", "Rivers run to the sea.\n")
    plan = world.erase_plan(source="diary")
    assert plan.digest
    world.erase(source="diary", confirm=plan.digest)
    assert [head.id for head in world.ctx.local.list_documents()] == ["atlas"]
    assert world.check() == []


def test_two_people_of_one_name_are_two_groups(memory: Lukasa) -> None:
    """B5: the owner chooses; the other one stays as it is, and a bare first name is nobody's."""
    world = memory.workspace("novel")
    for text in ("Ada Lovelace likes tea", "Ada Byron likes coffee", "Ada sent a letter"):
        world.put("workspace", text)
    plan = world.erase_plan(person="Ada")
    assert ({group.name for group in plan.groups}, plan.digest) == ({"Ada Lovelace", "Ada Byron", "Ada"}, "")
    with pytest.raises(Refused):
        world.erase(person="Ada", confirm="0" * 64)
    with pytest.raises(NotFound):
        world.erase_plan(person="Ada", group=["Ada Nobody"])
    chosen = world.erase_plan(person="Ada", group=["Ada Lovelace"])
    assert world.erase(person="Ada", group=["Ada Lovelace"], confirm=chosen.digest).clean
    left = sorted(e.content for e in world.entries("workspace", everything=True))
    assert left == ["Ada Byron likes coffee", "Ada sent a letter"]


def test_other_names_are_shown_and_erased(memory: Lukasa) -> None:
    """B5: what memory says somebody is also called goes too, unless the owner names the aliases."""
    world = memory.workspace("novel")
    world.put("workspace", "Mirabel Quist, also known as Birdie, plays the flute")
    world.put("workspace", "Birdie lost her keys on the ferry")
    assert set(world.erase_plan(person="Mirabel Quist").names) == {"Mirabel Quist", "Birdie"}
    assert world.erase_plan(person="Mirabel Quist", aliases=["MQ"]).names == ("Mirabel Quist", "MQ")
    plan = world.erase_plan(person="Mirabel Quist")
    assert world.erase(person="Mirabel Quist", confirm=plan.digest).clean
    assert world.entries("workspace", everything=True) == []


@pytest.mark.parametrize(("shared", "left"), [("redact", ["[erased] and Bob rowed home"]), ("remove", [])])
def test_an_entry_about_two_is_the_owners_choice(memory: Lukasa, shared: str, left: list[str]) -> None:
    """B5: the name is taken out, or the entry goes; the plan shows such entries apart."""
    world = memory.workspace("novel")
    id = world.put("workspace", f"{NAME} and Bob rowed home").id
    plan = world.erase_plan(person=NAME, shared=shared)
    assert [(one.id, one.others, one.outcome) for one in plan.shared] == [(id, ("Bob",), shared)]
    assert world.erase(person=NAME, shared=shared, confirm=plan.digest).clean
    assert [e.content for e in world.entries("workspace", everything=True)] == left
    assert world.check() == []


def test_what_an_action_rests_on_stays_and_the_receipt_says_so(memory: Lukasa) -> None:
    """S4: the audit posture decides; the plan names the entry, and the receipt where the words are still."""
    world = memory.workspace("novel")
    id = world.put("workspace", f"{NAME} approved the release").id
    world.link_action("deploy-7", [id])
    plan = world.erase_plan(person=NAME)
    assert plan.kept == {id: ("deploy-7",)}
    receipt = world.erase(person=NAME, confirm=plan.digest)
    assert not receipt.clean
    assert receipt.kept == {id: ["deploy-7"]}
    assert any("memory.db" in place for place in receipt.left)


def test_the_receipt_holds_none_of_the_words(memory: Lukasa) -> None:
    """B5: in no event, no receipt and no plan of the same again."""
    world = memory.workspace("novel")
    world.put("workspace", f"{NAME} owns a mill")
    receipt = world.erase(person=NAME, confirm=world.erase_plan(person=NAME).digest)
    assert "quaxwell" not in repr(receipt).lower()
    assert "quaxwell" not in repr(list(world.ctx.local.event_stream())).lower()
    assert world.erasures() == [receipt]


def test_only_the_owner_erases_and_only_what_was_shown(memory: Lukasa) -> None:
    """B5, T42: no agent; no digest, a wrong one, an old one: refused, and all is as it was."""
    world = memory.workspace("novel")
    world.put("workspace", f"{NAME} owns a mill")
    agent = world.acting(agent="scribe", trust=Trust.AGENT)
    for call in (lambda: agent.erase_plan(person=NAME), agent.erasures):
        with pytest.raises(Refused):
            call()
    for given in ({}, {"person": NAME, "source": "x"}, {"person": NAME, "shared": "perhaps"}):
        with pytest.raises(InvalidInput):
            world.erase_plan(**given)
    plan = world.erase_plan(person=NAME)
    with pytest.raises(InvalidInput):
        world.erase(person=NAME, confirm="")
    with pytest.raises(Conflict):
        world.erase(person=NAME, confirm="f" * 64)
    with pytest.raises(Conflict):
        world.erase(person=NAME, shared="remove", confirm="e" * 12)
    world.put("workspace", f"{NAME} sold the mill")
    with pytest.raises(Conflict):
        world.erase(person=NAME, confirm=plan.digest)
    assert len(world.entries("workspace", everything=True)) == 2


def test_other_workspaces_and_the_account_only_if_asked(engine: str, tmp_path: Path) -> None:
    """B5: a workspace alone, and the plan says what the account holds; with the account, everything."""
    with Lukasa.open(tmp_path / "data", embedder=FakeEmbedder()) as memory:
        here, there = memory.workspace("here"), memory.workspace("there")
        for place, tier in ((here, "workspace"), (there, "workspace"), (here, "account")):
            place.put(tier, f"{NAME} came to the {tier} of {place.name}")
        plan = here.erase_plan(person=NAME)
        assert any("--account" in warning for warning in plan.warnings)
        assert here.erase(person=NAME, confirm=plan.digest).clean
        assert len(there.entries("workspace")) == len(here.entries("account")) == 1
        receipt = memory.erase(person=NAME, confirm=memory.erase_plan(person=NAME).digest)
        assert receipt.clean
        assert there.entries("workspace") == here.entries("account") == []
        assert holding(tmp_path / "data", NAME) == []


def test_a_shell_plans_erases_and_lists_receipts(tmp_path: Path) -> None:
    """B5: the same on the command line; the last exit code says whether the words are gone."""
    shell = Shell(tmp_path / "data")
    shell.run("put", f"{NAME} owns a mill")
    told = shell.run("erase", "--person", NAME)
    assert "nothing is removed yet" in told
    digest = shell.json("erase", "--person", NAME)["digest"]
    shell.fails("erase", "--person", NAME, "--confirm", "f" * 12, code=1)
    done = shell.json("erase", "--person", NAME, "--confirm", digest[:12])
    assert (done["clean"], done["left"]) == (True, {})
    assert [one["id"] for one in shell.json("erasures")["receipts"]] == [done["id"]]
    assert "the words are nowhere" in shell.run("erasures")
    assert holding(shell.data, NAME) == []


def test_a_workspace_or_the_account_alone_is_removed(tmp_path: Path) -> None:
    """B5: `erase --workspace W` and `erase --account` plan and do what the commands for removal do."""
    shell = Shell(tmp_path / "data")
    shell.run("put", "The harbour stays")
    shell.run("workspace", "create", "drafts")
    shell.run("-w", "drafts", "put", f"{NAME} owns a mill")
    shown = shell.json("erase", "--workspace", "drafts")
    assert (shown["what"], shown["name"]) == ("workspace", "drafts")
    shell.run("erase", "--workspace", "drafts", "--confirm", shown["digest"])
    assert [one["name"] for one in shell.json("workspace", "list")["workspaces"]] == ["main"]
    assert holding(shell.data, NAME) == []
    assert "exactly one thing" in shell.fails("erase", code=2)["message"]
    gone = shell.json("erase", "--account")
    assert gone["what"] == "account"
    shell.run("erase", "--account", "--confirm", gone["digest"])
    assert holding(shell.data, "harbour") == []


# Interruptions


def erase_until_killed(folder: Path, at: int) -> None:
    wire = Tripwire(at)
    wire.install()
    with Lukasa.open(folder, embedder="none") as memory:
        world = memory.workspace("desk")
        plan = world.erase_plan(person=NAME)
        wire.armed = True
        world.erase(person=NAME, confirm=plan.digest)
    os._exit(7)


def test_a_killed_erasure_is_finished_by_the_same_command(tmp_path: Path) -> None:
    """B5: killed anywhere, the same call with the same digest ends in the same state, with one receipt."""
    with Lukasa.open(tmp_path / "made", embedder="none") as memory:
        world = memory.workspace("desk", preset="observer")
        promote(world, f"{NAME} keeps the keys.")
        work(world)
        world.put_many("workspace", [f"{NAME} owns mill {n}" for n in range(3)])
        world.put("workspace", "The gate opens at nine")
        digest = world.erase_plan(person=NAME).digest
    at, done = 1, False
    while not done:
        folder = tmp_path / str(at)
        shutil.copytree(tmp_path / "made", folder)
        done = finish(fork(partial(erase_until_killed, folder, at))) == 7
        with Lukasa.open(folder, embedder="none") as memory:
            world = memory.workspace("desk")
            receipt = world.erase(person=NAME, confirm=digest)
            assert receipt.clean
            assert [e.content for e in world.entries("workspace", everything=True)] == ["The gate opens at nine"]
            assert len(world.erasures()) == 1
            assert len(world.events(action=SCRUBBED)) >= 1
            assert world.check() == []
        assert holding(folder, NAME) == []
        shutil.rmtree(folder)
        at += 1 if TORTURE else 1 + at // 2
