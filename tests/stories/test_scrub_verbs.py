"""Scrubbing through the table of verbs: planning by grant, executing by the owner alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from lukasa import Lukasa
from lukasa.model.errors import Conflict, Forbidden, LukasaError, NotFound
from lukasa.model.grant import Capability
from lukasa.service.admin.access import Credential
from lukasa.surfaces.api.admin_verbs import ManifestOut, ScrubbedOut
from lukasa.surfaces.api.table import BY_NAME
from lukasa.surfaces.api.verb import perform

SCRUBS = (Capability.SCRUB_FULL, Capability.SCRUB_KEEP_NAMED, Capability.SCRUB_PURGE_THREAD)


@pytest.fixture
def memory(tmp_path: Path) -> Lukasa:
    opened = Lukasa.open(tmp_path / "data", embedder="none")
    opened.workspace("novel").put("workspace", "The lantern is lit every evening at nine")
    return opened


def call(memory: Lukasa, given: Credential, verb: str, workspace: str = "novel", **fields: Any) -> Any:
    asked = BY_NAME[verb].input.model_validate(fields)
    return perform(BY_NAME[verb], memory.access, given, workspace, asked)


def granted(memory: Lukasa, *can: Capability, **how: Any) -> Credential:
    issued = memory.access.create("helper", workspaces=["novel"], can=can, **how)
    return memory.access.admit(issued.token, surface="http", transport="loopback")


def test_the_owner_plans_and_executes(memory: Lukasa) -> None:
    """H1, U4: the digest of the plan, and then it is gone; every mode."""
    owner = memory.access.owner("web", "loopback")
    for mode in ("keep_named", "full"):
        plan: ManifestOut = call(memory, owner, "memory_scrub_plan", mode=mode, tier="workspace")
        with pytest.raises(Conflict):
            call(memory, owner, "memory_scrub_execute", mode=mode, tier="workspace", confirm="f" * 12)
        done: ScrubbedOut = call(
            memory, owner, "memory_scrub_execute", mode=mode, tier="workspace", confirm=plan.digest[:12]
        )
        assert done.manifest == plan
    talk = memory.workspace("novel").start()
    plan = call(memory, owner, "memory_scrub_plan", mode="purge_thread", conversation=talk.ref_code)
    call(
        memory,
        owner,
        "memory_scrub_execute",
        mode="purge_thread",
        conversation=talk.ref_code,
        confirm=plan.digest,
    )
    world = memory.workspace("novel")
    assert world.entries("workspace", everything=True) == []
    assert world.verify() == []
    assert {e.actor.surface for e in world.events(action="scrub.executed")} == {"web"}


def test_no_grant_executes(memory: Lukasa) -> None:
    """H3, T42: planning is a capability; executing is refused to every grant, whatever it includes and knows."""
    digest = memory.workspace("novel").scrub_plan("workspace").digest
    for can in ((Capability.READ,), (Capability.SCRUB_PLAN,), (Capability.SCRUB_PLAN, *SCRUBS)):
        held = granted(memory, *can)
        with pytest.raises(Forbidden):
            call(memory, held, "memory_scrub_execute", mode="full", tier="workspace", confirm=digest)
    with pytest.raises(Forbidden):
        call(memory, granted(memory, Capability.READ), "memory_scrub_plan", mode="full", tier="workspace")
    planned = call(memory, granted(memory, Capability.SCRUB_PLAN), "memory_scrub_plan", mode="full", tier="workspace")
    assert planned.digest == digest
    assert len(memory.workspace("novel").entries("workspace")) == 1


@pytest.mark.parametrize("mode", ["full", "keep_named"])
def test_each_mode_is_its_own_capability(memory: Lukasa, mode: str) -> None:
    """H3: a program that acts as the owner scrubs in the ways that it was let, and in no other."""
    digest = memory.workspace("novel").scrub_plan("workspace", mode=mode).digest
    others = [one for one in Capability if one != f"scrub_{mode}"]
    asked: dict[str, Any] = {"mode": mode, "tier": "workspace", "confirm": digest}
    with pytest.raises(Forbidden, match=f"does not include 'scrub_{mode}'"):
        call(memory, memory.access.owner("mcp", "stdio", can=others), "memory_scrub_execute", **asked)
    call(memory, memory.access.owner("mcp", "stdio", can=[f"scrub_{mode}"]), "memory_scrub_execute", **asked)
    assert memory.workspace("novel").entries("workspace", everything=True) == []


def test_a_grant_plans_no_further_than_it_reaches(memory: Lukasa) -> None:
    """X4, T45: the account, another's conversation and another workspace are not there for it."""
    held = granted(memory, Capability.SCRUB_PLAN)
    talk = memory.workspace("novel").start()
    for fields in (
        {"mode": "full", "tier": "account"},
        {"mode": "purge_thread", "conversation": talk.ref_code},
        {"mode": "full", "tier": "conversation", "conversation": talk.ref_code},
    ):
        with pytest.raises(LukasaError):
            call(memory, held, "memory_scrub_plan", **fields)
    memory.workspace("other")
    with pytest.raises(NotFound):
        call(memory, held, "memory_scrub_plan", workspace="other", mode="full", tier="workspace")


NOTHING: tuple[Any, ...] = (None, "", " ", "\t\n", "*", "%", "?", "work*", "%space", ".", "/", [], {}, 0, True)


@pytest.mark.parametrize("scope", NOTHING, ids=repr)
def test_a_scope_that_means_everything_is_refused(memory: Lukasa, scope: Any) -> None:
    """T42: empty, blank, missing or a pattern: refused by every way to scrub, and nothing goes."""
    world, owner = memory.workspace("novel"), memory.access.owner("web", "loopback")
    digest = world.scrub_plan("workspace").digest
    with pytest.raises(LukasaError):
        world.scrub_execute(scope, confirm=digest)
    with pytest.raises(LukasaError):
        world.purge_execute(scope, confirm=digest)
    with pytest.raises(LukasaError):
        world.scrub_execute("workspace", confirm=digest, mode=scope)
    for fields in ({"mode": "full", "tier": scope}, {"mode": "purge_thread", "conversation": scope}, {"mode": scope}):
        with pytest.raises((LukasaError, ValidationError)):
            call(memory, owner, "memory_scrub_execute", confirm=digest, **fields)
    assert len(world.entries("workspace")) == 1
