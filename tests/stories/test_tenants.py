"""Tenants: the values of a spec's own anchor keys separate what is remembered, on every surface and by every verb."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from lukasa import Lukasa, Trust, Workspace
from lukasa.model.errors import LukasaError
from lukasa.model.ids import new_id

pytestmark = pytest.mark.usefixtures("engine")

FACT = "The invoice limit of the north plant is 40,000 euro"


@pytest.fixture
def desk(memory: Lukasa) -> Workspace:
    return memory.workspace("desk", preset="anchored")


def of(desk: Workspace, org: str) -> Workspace:
    return desk.at(org_id=org, domain_id="billing")


BY_ID: dict[str, Callable[[Workspace, str], Any]] = {
    "get": lambda w, id: w.get(id),
    "history": lambda w, id: w.history(id),
    "related": lambda w, id: w.related(id),
    "standing": lambda w, id: w.standing(id),
    "ledger": lambda w, id: w.ledger(id),
    "evidence": lambda w, id: w.evidence(id),
    "why": lambda w, id: w.why("invoice limit", id),
    "update": lambda w, id: w.update(id, importance=0.9),
    "forget": lambda w, id: w.forget(id),
    "restore": lambda w, id: w.restore(id),
    "accept": lambda w, id: w.accept(id),
    "undo": lambda w, id: w.undo(id),
    "link": lambda w, id: w.link_action("pay", [id]),
    "supersedes": lambda w, id: w.put("persistent", "The limit is 1 euro now", supersedes=id),
    "derived_from": lambda w, id: w.put("persistent", "The limit seems to be low", derived_from=[id]),
    "dispose": lambda w, id: w.dispose(id, "archive", "old"),
    "approve": lambda w, id: w.approve(id),
    "reject": lambda w, id: w.reject(id),
    "settle": lambda w, id: w.settle(id, new_id(), "both"),
}


def told(call: Callable[[Workspace, str], Any], world: Workspace, id: str) -> list[str]:
    with pytest.raises(LukasaError) as refused:
        call(world, id)
    error = refused.value
    return [type(error).__name__, error.message.replace(id, "ID"), error.fix.replace(id, "ID")]


@pytest.mark.parametrize("name", BY_ID)
@pytest.mark.parametrize("state", ["active", "forgotten", "held"])
def test_an_id_of_another_tenant_is_no_id(desk: Workspace, name: str, state: str) -> None:
    """S4, X3: whatever its state, an entry of another tenant answers like an id that never was, and stays as it is."""
    acme = of(desk, "acme")
    writer = acme.acting(trust=Trust.UNTRUSTED) if state == "held" else acme
    kind = "procedural" if state == "held" else None
    id = writer.put("persistent", FACT, kind=kind).id
    if state == "forgotten":
        acme.forget(id)
    before = acme.history(id)
    assert str(before[-1].entry.state) == state
    for stranger in (of(desk, "evil"), desk.at(org_id="evil"), of(desk, "acme").at(domain_id="sales")):
        assert told(BY_ID[name], stranger, id) == told(BY_ID[name], stranger, new_id())
    assert acme.history(id) == before
