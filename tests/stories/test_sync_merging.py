"""Several machines with one memory: whatever each changed, and however the news travels, all end up with the same."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from lukasa import Lukasa
from lukasa.model.entry import Entry
from lukasa.model.errors import InvalidInput
from lukasa.model.events import EventDraft, canonical_json
from lukasa.model.sync import Revision
from lukasa.model.values import Curator, State, Trust
from lukasa.service.sync.replica import Member
from lukasa.service.workspace import Workspace
from lukasa.storage.operations import Record
from lukasa.write import revisions
from lukasa.write.things import TEXTS
from tests.helpers.edits import EDITS, edit, erase, erase_word
from tests.helpers.making import FixedClock
from tests.helpers.processes import TORTURE
from tests.helpers.replicas import Machine, exchange, shown

RUNS = 2500 if TORTURE else 60


def machines(names: str = "abc", *, folder: Path | None = None) -> list[Machine]:
    """Return machines that have the memory of the first one."""
    clock = FixedClock()
    made = []
    for name in names:
        place: dict[str, Any] = {"in_memory": True} if folder is None else {"data": folder / name}
        memory = Lukasa.open(embedder="none", clock=clock, principal="ada", **place)
        made.append(Machine(name, memory, clock))
    made[0].workspace()
    exchange(*made)
    return made


@pytest.fixture
def three() -> Iterator[list[Machine]]:
    made = machines()
    yield made
    for machine in made:
        machine.memory.close()


def require_same(*some: Machine) -> None:
    """Every machine shows the same things, and every store is sound."""
    first, *others = (shown(machine) for machine in some)
    for other in others:
        assert other.keys() == first.keys()
        assert [key for key in first if not first[key].same(other[key])] == []
    assert all(machine.replica.digests() == some[0].replica.digests() for machine in some)
    for machine in some:
        assert machine.memory.account.check() == []
        assert machine.workspace().check() == []


def require_nothing_lost(some: list[Machine]) -> None:
    """Each text that nobody replaced, took away or erased is shown, or in the history of its page."""
    every = {one.digest: one for machine in some for one in machine.log}
    gone = {digest for machine in some for digest in machine.replica.erased()}
    parents = {parent for one in every.values() for parent in one.parents}
    texts = {
        digest: (one.kind, canonical_json(text)) for digest, one in every.items() if (text := text_of(one)) is not None
    }
    replaced = {said for digest, said in texts.items() if digest in parents}
    ends = {said for digest, said in texts.items() if digest not in parents | gone}
    for machine in some:
        kept = {(kind, canonical_json(view.text)) for (_, kind, _), view in shown(machine).items() if kind in TEXTS}
        for page in machine.workspace().named():
            past = machine.workspace().named_history(page.name)
            kept |= {("page", canonical_json({"tier": one.tier, "body": one.body})) for one in past}
        assert ends - replaced - kept == set()


def text_of(one: Revision) -> Any:
    """Return the text that a revision has; None for fields, and for what was taken away."""
    text = one.body.get("text") if one.kind in TEXTS and one.body is not None else None
    return None if text is None or text.get("body") == "" else text


def step(machine: Machine) -> Workspace:
    """Return the workspace of a machine, some time later."""
    machine.clock.time += timedelta(seconds=1)
    return machine.workspace()


def put(machine: Machine, text: str, **more: Any) -> str:
    """Remember a text on a machine, some time later, and return its id."""
    entry = step(machine).put("workspace", text, **more).entry
    assert entry is not None
    return entry.id


def local(machine: Machine, *ids: str) -> dict[str, Entry]:
    """Return entries of the workspace as the store has them."""
    return machine.workspace().ctx.local.entries(ids)


def found(machine: Machine, words: str) -> set[str]:
    """Return the texts that a search brings."""
    return {hit.entry.content for hit in machine.workspace().read(words)}


def play(chance: random.Random, steps: int) -> list[Machine]:
    """Let three machines change what they like, and hear of each other in any order, twice or late."""
    made = machines()
    *near, far = made
    for _ in range(steps):
        machine, what = chance.choice(made), chance.random()
        if what < 0.7:
            edit(machine, chance.choice(EDITS), chance.randrange(1000))
        elif what < 0.78:
            machine.tell()
        elif what < 0.8:
            edit(machine, chance.choice((erase, erase_word)), chance.randrange(1000))
        elif machine is not far:
            other = chance.choice([one for one in near if one is not machine])
            machine.take(chance.sample(other.log, chance.randrange(len(other.log) + 1)))
    for machine in made:
        machine.read = {}
    exchange(*made, rounds=8)
    return made


@settings(max_examples=RUNS, deadline=None, phases=(Phase.generate,), suppress_health_check=list(HealthCheck))
@given(st.integers(0, 2**32), st.integers(5, 60))
def test_machines_end_up_with_the_same(seed: int, steps: int) -> None:
    """27: edits of every kind of thing in any order, told in any order and again, one machine away for long."""
    made = play(random.Random(seed), steps)
    require_same(*made)
    require_nothing_lost(made)
    for machine in made:
        machine.memory.close()


def test_two_texts_of_an_entry_are_rivals(three: list[Machine]) -> None:
    """27: both are there everywhere, under the same ids; the earlier change keeps the id, and a person decides."""
    a, b, _c = three
    id = put(a, "The boat is moored at the north quay")
    exchange(*three)
    step(a).update(id, content="The boat is moored at the south quay")
    step(b).update(id, content="The boat is moored at the east quay")
    exchange(*three)
    require_same(*three)
    for machine in three:
        (pair,) = machine.workspace().inbox().rivals
        assert {pair.earlier.content[-10:], pair.later.content[-10:]} == {"south quay", " east quay"}
        assert machine.workspace().get(id).content.endswith("south quay")
    pair = b.workspace().inbox().rivals[0]
    b.workspace().settle(pair.later.id, pair.earlier.id, "new")
    exchange(*three)
    require_same(*three)
    assert all(not machine.workspace().inbox().rivals for machine in three)


def test_fields_that_were_changed_apart_are_merged(three: list[Machine]) -> None:
    """27: tags of both, the importance of one, and a retraction that an edit of another machine does not undo."""
    a, b, c = three
    id = put(a, "The lamp is lit at dusk", tags=("lamp",))
    exchange(*three)
    a.workspace().update(id, tags=("lamp", "dusk"))
    b.workspace().update(id, importance=0.9)
    c.workspace().forget(id)
    exchange(*three)
    require_same(*three)
    one = local(a, id)[id]
    assert (set(one.tags), one.importance, one.state) == ({"lamp", "dusk"}, 0.9, State.FORGOTTEN)


def test_the_same_text_from_two_machines_is_one_statement(three: list[Machine]) -> None:
    """27: one is in force, the other superseded by it; forgetting it does not bring the other one back."""
    a, b, _ = three
    for machine in (a, b):
        put(machine, "The quay is closed on Fridays")
    exchange(*three)
    require_same(*three)
    (hit,) = [one.entry for one in a.workspace().read("quay Fridays") if "Fridays" in one.entry.content]
    a.workspace().forget(hit.id)
    exchange(*three)
    require_same(*three)
    assert found(b, "quay Fridays") == set()


def test_a_page_keeps_the_text_that_lost_in_its_history(three: list[Machine]) -> None:
    """27: on every machine."""
    a, b, _ = three
    step(a).edit_named("VOICE", "Speak plainly.")
    step(b).edit_named("VOICE", "Speak softly.")
    exchange(*three)
    require_same(*three)
    for machine in three:
        assert machine.workspace().get_named("VOICE").body == "Speak plainly."
        assert "Speak softly." in [one.body for one in machine.workspace().named_history("VOICE")]


def test_known_and_early_revisions(three: list[Machine]) -> None:
    """27: what is known is passed over; what came before its parents waits, and shows when they come."""
    a, b, _ = three
    id = put(a, "The mill grinds at dawn")
    a.tell()
    a.workspace().update(id, content="The mill grinds at noon")
    late, early = a.tell()[-1], a.log[-2]
    assert b.take([late]).waiting == 1
    assert local(b, id) == {}
    assert b.take([late]).known == 1
    assert b.take([early]).waiting == 0
    assert b.workspace().get(id).content == "The mill grinds at noon"


def test_a_revision_that_is_not_what_its_digest_says_is_refused(three: list[Machine]) -> None:
    """27: nobody can put words into a revision of another machine."""
    a, b, _ = three
    a.workspace().put("workspace", "The mill grinds at dawn")
    (told,) = a.tell()
    assert told.body is not None
    forged = replace(told, body={**told.body, "name": ["x"]})
    with pytest.raises(InvalidInput, match="not what its digest says"):
        b.take([forged])


def test_what_was_absorbed_is_not_told_again(three: list[Machine]) -> None:
    """27: taking in changes the store, and makes no revision."""
    a, b, _ = three
    for n in range(30):
        edit(a, EDITS[n], n)
    b.take(a.tell())
    assert b.replica.collect() == []
    assert a.replica.collect() == []


# Erasure


def test_an_erasure_travels(tmp_path: Path) -> None:
    """27: the words are nowhere in the files of any machine, with what was derived from them there alone."""
    three = machines(folder=tmp_path)
    a, b, c = three
    id = put(a, "Malachar hides the brass key under the ninth stone")
    a.workspace().put("workspace", "The lamp is lit at dusk")
    exchange(*three)
    b.workspace().put("workspace", "The brass key of Malachar explains the theft", derived_from=[id])
    c.workspace().update(id, content="Malachar hides the brass key under the tenth stone")
    put(c, "The ferry leaves at nine")
    a.workspace().erase(entry=id, confirm=a.workspace().erase_plan(entry=id).digest)
    exchange(*three)
    require_same(*three)
    for machine in three:
        assert {"The lamp is lit at dusk", "The ferry leaves at nine"} <= found(machine, "lamp ferry")
        machine.memory.close()
    left = [
        (path, word)
        for path in tmp_path.rglob("*")
        if path.is_file()
        for word in (b"Malachar", b"brass key", b"tenth stone", b"ninth stone")
        if word in path.read_bytes()
    ]
    assert left == []


def test_a_person_is_erased_everywhere(tmp_path: Path) -> None:
    """27: from entries, pages, notes, documents and messages; what others say stays."""
    three = machines(folder=tmp_path)
    a, _, _ = three
    work = a.workspace()
    work.put("workspace", "Zebulon Quist owns the northern warehouse")
    work.put("workspace", "The southern warehouse belongs to the harbour")
    work.edit_named("VOICE", "Speak plainly. Zebulon Quist dislikes jargon.")
    work.save_document("guide", "The harbour has two warehouses. Zebulon Quist has one key. The office has the other.")
    talk = work.start()
    work.write_note(talk.ref_code, "call", "ask Zebulon Quist about the warehouse")
    exchange(*three)
    work.erase(person="Zebulon Quist", confirm=work.erase_plan(person="Zebulon Quist").digest)
    exchange(*three)
    require_same(*three)
    for machine in three:
        assert "harbour" in str(found(machine, "warehouse"))
        assert "The office has the other." in machine.workspace().get_document("guide").body
        assert machine.workspace().get_named("VOICE").body.startswith("Speak plainly.")
        machine.memory.close()
    left = [p for p in tmp_path.rglob("*") if p.is_file() and b"Zebulon" in p.read_bytes()]
    assert left == []


def test_an_edit_that_comes_after_the_erasure_stays_erased(three: list[Machine]) -> None:
    """27: also if the machine that made it was away, and if the erasure came before the entry itself."""
    a, b, c = three
    id = put(a, "Malachar hides the brass key under the ninth stone")
    first = a.tell()
    b.take(first)
    b.workspace().update(id, content="Malachar hides the brass key under the tenth stone")
    late = b.tell()
    a.workspace().erase(entry=id, confirm=a.workspace().erase_plan(entry=id).digest)
    erased = a.tell()
    c.take(erased)
    c.take(late)
    assert [row.revision.body for row in c.workspace().ctx.local.revisions("thing", [id])][:1]
    c.take(first)
    for row in c.workspace().ctx.local.revisions("thing", [id]):
        assert row.revision.body is None or revisions.is_erasure(row.revision)
    assert {one.digest for one in (*first, *late) if one.thing == id} <= c.replica.erased()
    exchange(*three)
    require_same(*three)


# Other people


def test_statements_of_other_people_are_trusted_as_agreed_and_procedures_wait(three: list[Machine]) -> None:
    """27: their origin names them; what is accepted here is accepted here alone."""
    a, b, c = three
    ben = Member("ben", Trust.AGENT, own=False)
    fact = put(a, "The deploy needs two reviews")
    way = put(a, "Always rebase before you merge", kind="procedural")
    told = a.tell()
    absorbed = b.take(told, ben)
    assert absorbed.held == 1
    here = local(b, fact, way)
    assert (here[fact].trust, here[fact].origin.principal, here[fact].origin.trust) == (
        Trust.AGENT, "ben", Trust.AGENT,
    )  # fmt: skip
    assert here[way].state is State.HELD
    assert [one.entry.id for one in b.workspace().inbox().entries] == [way]
    b.workspace().accept(way)
    assert b.tell() == []
    assert local(b, way)[way].state is State.ACTIVE
    b.workspace().update(fact, content="The deploy needs three reviews")
    a.take(b.tell(), Member("ada", Trust.AGENT, own=False))
    assert a.workspace().get(fact).content == "The deploy needs three reviews"
    assert a.workspace().get(fact).trust is Trust.AUTHOR
    c.take(told)
    assert local(c, way)[way].state is State.ACTIVE
    assert c.workspace().get(fact).curator is Curator.AUTHOR


def test_two_workspaces_of_one_project_become_one_choice() -> None:
    """27: both machines made one before they met: the project has the older one from then on, and neither is lost."""
    clock = FixedClock()
    both = [Machine(n, Lukasa.open(in_memory=True, embedder="none", clock=clock, principal="ada"), clock) for n in "ab"]
    ids = []
    for machine in both:
        clock.time += timedelta(seconds=1)
        work = machine.memory.workspace("harbour")
        work.put("workspace", f"The quay of machine {machine.name} is closed on Fridays")
        said = {"workspace": work.ctx.info.id, "commit": "c0ffee", "how": "identity"}
        work.ctx.apply(machine.memory.account, Record(EventDraft("project.bound", "example.org/harbour", said)))
        ids.append(work.ctx.info.id)
    exchange(*both)
    for machine in both:
        assert {info.id for info in machine.memory.workspaces()} == set(ids)
        assert [one.workspace for one in machine.memory.projects.bindings()] == [min(ids)]
    (named,) = {machine.memory.workspace("harbour").ctx.info.id for machine in both}  # the same one on both machines
    (other,) = [info.name for info in both[1].memory.workspaces() if info.id != named]
    both[1].memory.merge_workspaces(other, "harbour")
    exchange(*both)
    for machine in both:
        assert len(machine.memory.workspace("harbour").read("quay Fridays")) == 2
    assert both[0].replica.digests() == both[1].replica.digests()
