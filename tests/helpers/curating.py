"""A workspace that curates, for tests: proposals made by hand, jobs run one by one, git looked at with git."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

from lukasa import Workspace
from lukasa.model.amendment import Amendment, AmendmentState
from lukasa.model.ids import new_id
from lukasa.ports import Chat
from lukasa.service.jobs.handlers import run_next
from lukasa.service.jobs.worker import Run
from lukasa.storage.operations import SaveAmendment


def propose(world: Workspace, change: str, **fields: Any) -> str:
    """A proposal as reflection leaves it."""
    now = world.ctx.now
    given: dict[str, Any] = {"section": "operations", "confidence": 0.6, "sources": (), **fields}
    amendment = Amendment(id=new_id(), change=change, created_at=now, updated_at=now, **given)
    world.ctx.apply(world.ctx.local, SaveAmendment(amendment, 0))
    return amendment.id


def proposal(world: Workspace, id: str) -> Amendment:
    return world.ctx.local.amendments([id])[0]


def promote(world: Workspace, *changes: str) -> list[str]:
    """Lines put on the page by a person, each a version."""
    ids = [propose(world, change, state=AmendmentState.REVIEW) for change in changes]
    for id in ids:
        world.approve(id)
    return ids


def work(world: Workspace, chat: Chat | None = None) -> list[Run]:
    """Run every job that is due."""
    done: list[Run] = []
    while (run := run_next(world.ctx, chat=chat)) is not None:
        assert run.outcome == "done", run
        done.append(run)
    return done


def git(folder: Path, *args: str) -> str:
    run = subprocess.run(["git", "-C", str(folder), *args], capture_output=True, text=True, check=True, timeout=60)
    return run.stdout


def subjects(folder: Path) -> list[str]:
    """The subjects of the commits, oldest first."""
    return git(folder, "log", "--reverse", "--format=%s").splitlines()
