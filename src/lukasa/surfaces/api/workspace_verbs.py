"""Verbs about whole workspaces: create, rename, merge and remove. They are the owner's, and no tools of agents."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from lukasa.model.errors import InvalidInput
from lukasa.model.grant import Capability
from lukasa.spec import preset_names
from lukasa.surfaces.api.shapes import WorkspaceOut
from lukasa.surfaces.api.verb import Call, NoInput, Verb, VerbInput, VerbOutput
from lukasa.upkeep.scrub_plan import SHORTEST

_WORKSPACE = "/workspaces/{workspace}"


class CreateIn(VerbInput):
    name: str = Field(description="The name of the project.")
    preset: str | None = Field(None, description="A shipped memory spec; the default one if left out.")


class RenameIn(VerbInput):
    name: str = Field(description="The new name.")


class MergePlanIn(VerbInput):
    into: str = Field(description="Name of the workspace that takes all of this one in.")


class MergeIn(MergePlanIn):
    confirm: str = Field(min_length=64, max_length=64, description="Digest of the plan.")


class StorePlanOut(VerbOutput):
    id: str
    name: str
    way: str = Field(description="merge")
    counts: dict[str, dict[str, int]] = Field(description="For each kind, counts of new, both, left and known.")
    samples: list[dict[str, Any]] = Field(description="Some things of each outcome.")


class MergePlanOut(VerbOutput):
    stores: list[StorePlanOut]
    trusts: dict[str, int] = Field(description="Entries by trust.")
    sensitive: int
    digest: str
    done: bool


class RemoveIn(VerbInput):
    confirm: str = Field(
        min_length=SHORTEST, max_length=64, description="Digest of the plan, or its first 12 characters."
    )


class RemovalOut(VerbOutput):
    what: str
    name: str
    rows: dict[str, int]
    workspaces: list[str]
    grants: list[str] = Field(description="Grants that lose this workspace.")
    files: int
    digest: str


class RemovedOut(VerbOutput):
    removal: RemovalOut
    swept: bool = Field(description="Whether the files of the database were rewritten as well.")


def create(call: Call, given: CreateIn) -> WorkspaceOut:
    if given.preset is not None and given.preset not in preset_names():
        raise InvalidInput(f"no preset {given.preset[:60]!r}", fix=f"use one of: {', '.join(preset_names())}")
    return WorkspaceOut.of(call.access.memory.create_workspace(given.name, preset=given.preset).ctx.info)


def rename(call: Call, given: RenameIn) -> WorkspaceOut:
    return WorkspaceOut.of(call.access.memory.rename_workspace(call.workspace.name, given.name))


def merge_plan(call: Call, given: MergePlanIn) -> MergePlanOut:
    return MergePlanOut.of(call.access.memory.merge_plan(call.workspace.name, given.into))


def merge(call: Call, given: MergeIn) -> MergePlanOut:
    done = call.access.memory.merge_workspaces(call.workspace.name, given.into, confirm=given.confirm)
    return MergePlanOut.of(done)


def removal_plan(call: Call, given: NoInput) -> RemovalOut:
    return RemovalOut.of(call.access.memory.removal_plan(call.workspace.name))


def remove(call: Call, given: RemoveIn) -> RemovedOut:
    return RemovedOut.of(call.access.memory.remove_workspace(call.workspace.name, confirm=given.confirm))


VERBS = (
    Verb(
        "workspace_create",
        "Create a workspace: the memory of one project, apart from all others.",
        Capability.GRANTS,
        "POST",
        "/workspaces",
        CreateIn,
        WorkspaceOut,
        create,
        mutates=True,
        owner_only=True,
        status=201,
        tool=False,
        keyed=False,  # a repetition meets the name
    ),
    Verb(
        "workspace_rename",
        "Give a workspace another name. Its id, its memory and its grants stay.",
        Capability.GRANTS,
        "POST",
        f"{_WORKSPACE}/rename",
        RenameIn,
        WorkspaceOut,
        rename,
        mutates=True,
        owner_only=True,
        tool=False,
    ),
    Verb(
        "workspace_merge_plan",
        "Show what a merge of this workspace into another would do. It changes nothing.",
        Capability.GRANTS,
        "POST",
        f"{_WORKSPACE}/merge/plan",
        MergePlanIn,
        MergePlanOut,
        merge_plan,
        owner_only=True,
        tool=False,
    ),
    Verb(
        "workspace_merge",
        "Merge all of this workspace into another, as planned. Of two different texts both are kept; this workspace "
        "stays as it is.",
        Capability.GRANTS,
        "POST",
        f"{_WORKSPACE}/merge",
        MergeIn,
        MergePlanOut,
        merge,
        mutates=True,
        owner_only=True,
        tool=False,
    ),
    Verb(
        "workspace_removal_plan",
        "Show what a removal of this workspace would take. It removes nothing.",
        Capability.SCRUB_PLAN,
        "POST",
        f"{_WORKSPACE}/remove/plan",
        NoInput,
        RemovalOut,
        removal_plan,
        owner_only=True,
        tool=False,
    ),
    Verb(
        "workspace_remove",
        "Remove this workspace for good, with its memory, its files and the state of its chats, confirmed by the "
        "digest of the plan. There is no undo.",
        Capability.SCRUB_FULL,
        "POST",
        f"{_WORKSPACE}/remove",
        RemoveIn,
        RemovedOut,
        remove,
        mutates=True,
        owner_only=True,
        tool=False,
        keyed=False,
    ),
)
