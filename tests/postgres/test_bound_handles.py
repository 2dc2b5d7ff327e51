"""Handles of tenants on PostgreSQL: their transactions are bound, and none of their values is part of a statement."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from lukasa import Lukasa, Memo, Trust, Workspace
from lukasa.langgraph import LukasaStore
from lukasa.model.errors import LukasaError, NotFound
from lukasa.model.selection import Selection
from lukasa.model.values import State
from lukasa.service.jobs.task import job_context
from lukasa.service.sight import Sight
from lukasa.storage.operations import DropEntry, Transaction
from tests.fakes import FakeEmbedder
from tests.helpers.making import FixedClock
from tests.helpers.postgres import alone

FACT = "The invoice limit of the north plant is 40,000 euro"


@pytest.fixture
def memory(tmp_path: Path, database_url: str, clock: FixedClock) -> Iterator[Lukasa]:
    with Lukasa.open(tmp_path / "data", database=database_url, embedder=FakeEmbedder(256), clock=clock) as opened:
        yield opened


@pytest.fixture
def desk(memory: Lukasa) -> Workspace:
    return memory.workspace("desk", preset="anchored")


def of(desk: Workspace, org: str) -> Workspace:
    return desk.at(org_id=org, domain_id="billing")


def admit_everything(patch: pytest.MonkeyPatch) -> None:
    """A double of the service's rule that lets everybody see everything."""
    for name in ("admits", "_admits", "sees", "owns", "_owned", "may_bind", "takes_part"):
        patch.setattr(Sight, name, lambda *asked: True)


def asked(world: Workspace, id: str) -> list[str]:
    """What a handle is shown of an entry, by id and by every search, without regard to the rule of its scope."""
    shown = []
    for call in (world.get, world.history, world.standing, world.grounds, world.evidence, world.ledger):
        try:
            shown.append(str(call(id)))
        except LukasaError as error:
            shown.append(error.message.replace(id, "ID"))
    try:
        shown.append(str(world.why("invoice limit", id)))
    except LukasaError as error:
        shown.append(error.message.replace(id, "ID"))
    theirs = of(world, "acme").ctx.scope("persistent")
    store = world.ctx.local
    shown += [str(store.entries([id])), str(store.texts([id])), str(store.census()), str(store.versions(id))]
    return [one for one in shown if FACT in one or str(theirs) in one or "acme" in one]


@pytest.mark.parametrize("who", ["owner", "agent", "untrusted"])
def test_a_bound_handle_sees_no_other_tenant_even_if_the_rule_admits_it(
    desk: Workspace, monkeypatch: pytest.MonkeyPatch, who: str
) -> None:
    """S4: with the service's rule replaced by one that admits everything, the database still shows no other tenant."""
    id = of(desk, "acme").put("persistent", FACT).id
    evil = of(desk, "evil")
    handle = {"owner": evil, "agent": evil.acting(agent="bo"), "untrusted": evil.acting(trust=Trust.UNTRUSTED)}[who]
    admit_everything(monkeypatch)
    assert asked(handle, id) == []
    with pytest.raises(NotFound):
        handle.forget(id)
    assert desk.ctx.local.entries([id])[id].state is State.ACTIVE


def test_the_double_would_show_other_tenants_in_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The test above can fail: in SQLite, which has no such belt, the same double shows the other tenant's entry."""
    with Lukasa.open(tmp_path, database="", embedder="none") as memory:
        desk = memory.workspace("desk", preset="anchored")
        id = of(desk, "acme").put("persistent", FACT).id
        admit_everything(monkeypatch)
        assert FACT in str(of(desk, "evil").acting(agent="bo").get(id))


def test_every_way_to_a_handle_binds_it(memory: Lukasa, desk: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    """S4: by `at`, by another agent before or after, by a subagent's limit, by a grant, by another value.

    A handle without such keys is bound to nothing, nor is work in the background.
    """
    id = of(desk, "acme").put("persistent", FACT).id
    lent = memory.access.lend(
        "bo", workspaces=["desk"], can=["read"], scope={"org_id": "evil"}, surface="http", transport="tcp"
    )
    evil = desk.at(org_id="evil")
    bound = {
        "at": evil,
        "agent after": evil.acting(agent="bo"),
        "agent before": desk.acting(agent="bo").at(org_id="evil"),
        "limit": evil.limited("persistent"),
        "rebound": of(desk, "acme").at(org_id="evil"),
        "grant": memory.access.enter(lent, "desk"),
    }
    assert [name for name, handle in bound.items() if handle.ctx.local.entries([id])] == []
    whole = (desk, desk.acting(agent="bo"), Workspace(job_context(evil.ctx, "maintain")))
    assert [list(handle.ctx.local.entries([id])) for handle in whole] == [[id]] * 3


def test_bound_writers_keep_the_store_whole(desk: Workspace) -> None:
    """S4: words that wait for the index, counts and numbers are of all tenants, whoever's write brings them forward."""
    texts = {org: [f"{org} keeps lantern number {n} in the tower" for n in range(12)] for org in ("a", "b", "c")}
    for turn in range(12):
        for org, said in texts.items():
            of(desk, org).put("persistent", said[turn])

    def write(org: str) -> int:
        agent = of(desk, org).acting(agent=f"agent of {org}")
        return len(agent.put_many("persistent", [f"{org} and the harbour at {n} o'clock" for n in range(12)]))

    with ThreadPoolExecutor(3) as pool:
        assert list(pool.map(write, texts)) == [12, 12, 12]
    assert desk.check() == []
    for org, said in texts.items():
        where = Selection((of(desk, org).ctx.scope("persistent"),))
        found = of(desk, org).ctx.local.keyword(where, ["lantern"], 50).rows
        assert set(of(desk, org).ctx.local.texts([row.id for row in found]).values()) == set(said)
    of(desk, "a").ctx.local.rebuild()
    assert desk.check() == []


def test_reads_of_tenants_are_counted_beside_each_other(desk: Workspace) -> None:
    """S4: a tenant that removes an entry of its own takes no count of another tenant's reads away."""
    ids = {org: of(desk, org).put("persistent", f"{org}: {FACT}").id for org in ("a", "b")}
    for org in ids:
        assert of(desk, org).read("invoice limit", tier="persistent")
    for org, id in ids.items():
        of(desk, org).ctx.local.touch([id], desk.ctx.now)
    a = of(desk, "a").ctx.local
    version = a.entries([ids["a"]])[ids["a"]].version
    a.apply(Transaction(desk.ctx.actor, desk.ctx.now, (DropEntry(ids["a"], version, "test"),)))
    assert desk.ctx.local.access([ids["b"]])[ids["b"]].count == 2


EVIL = "zqx'\"$$;--%s\\{0}zqx"


def test_no_value_becomes_part_of_a_statement(tmp_path: Path, clock: FixedClock) -> None:
    """X3: whatever a caller gives as id, text, query, filter, key, name or namespace, PostgreSQL gets it as a value.

    Its log has the text of every statement, and no value.
    """
    with alone(log_statement="all", log_parameter_max_length="0", log_parameter_max_length_on_error="0") as server:
        with Lukasa.open(tmp_path, database=server.cluster.url(), embedder=FakeEmbedder(256), clock=clock) as memory:
            calls = list(_calls(memory))
            refused = sum(map(_refused, calls))
        said = server.cluster.log.read_text("utf-8", "replace")
    assert refused < len(calls) // 2
    assert said.count("execute") > 200
    assert [line for line in said.splitlines() if "zqx" in line] == []


def _refused(call: Callable[[], Any]) -> bool:
    try:
        call()
    except LukasaError:
        return True
    return False


def _calls(memory: Lukasa) -> Iterator[Callable[[], Any]]:
    desk = memory.workspace(EVIL, preset="anchored")
    world = desk.at(org_id=EVIL, domain_id=EVIL)
    items = LukasaStore(desk)
    yield from (
        lambda: world.put("persistent", EVIL, tags=[EVIL], metadata={EVIL: EVIL}),
        lambda: world.put_many("persistent", [Memo(f"{EVIL} {n}") for n in range(20)]),
        lambda: world.put(EVIL, "x"),
        lambda: world.read(EVIL, tier="persistent"),
        lambda: world.read("zqx", tags=[EVIL]),
        lambda: world.context(EVIL),
        lambda: world.get(EVIL),
        lambda: world.entries("persistent", everything=True),
        lambda: world.acting(agent=EVIL).put("persistent", f"of an agent {EVIL}"),
        lambda: world.acting(principal=EVIL).put("persistent", f"of somebody {EVIL}"),
        lambda: desk.edit_named("PLACES", EVIL, tier="persistent"),
        lambda: desk.named_history(EVIL),
        lambda: desk.save_document(EVIL, EVIL),
        lambda: desk.create_channel(EVIL),
        lambda: desk.conversation(EVIL),
        lambda: desk.write_note(desk.start().ref_code, EVIL, EVIL),
        lambda: desk.link_action(EVIL, [], EVIL),
        lambda: desk.jobs(kind=EVIL),
        lambda: desk.events(action=EVIL),
        lambda: desk.search_transcripts(EVIL),
        lambda: desk.bookmark(EVIL),
        lambda: items.put((EVIL, EVIL), EVIL, {EVIL: EVIL}),
        lambda: items.search((EVIL,), filter={EVIL: {"$gt": EVIL}}, query=EVIL),
        lambda: items.search((EVIL,), filter={EVIL: EVIL}),
        lambda: items.list_namespaces(prefix=(EVIL,)),
        lambda: memory.workspace(f"{EVIL} two", preset=EVIL),
        lambda: memory.access.create(EVIL, workspaces=[EVIL], can=["read"], scope={"org_id": EVIL}),
    )
