"""Commands about projects and their workspaces: show, set, forget, list."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

import click

from lukasa.service.admin.projects import APART, BY_FOLDER, FOLDER, IDENTITY, NEW, OWNER, Binding, ProjectPlace
from lukasa.surfaces.cli.data import plain
from lukasa.surfaces.cli.invocation import Invocation, pass_invocation
from lukasa.surfaces.cli.lines import when
from lukasa.surfaces.cli.options import CliGroup
from lukasa.surfaces.cli.output import Line, dim, good, line, table, title, warn
from lukasa.surfaces.hooks.harness import project as folder_of

_HOW = {
    OWNER: "you set it",
    IDENTITY: "all folders of this project have it",
    BY_FOLDER: "it is named after the folder",
    NEW: "the next session creates it",
    APART: "it is of this folder alone",
}


@click.group(
    cls=CliGroup,
    examples=("lukasa project show", "lukasa project set novel", "lukasa project list"),
)
def project() -> None:
    """Show, set and forget the workspace of a project's folder.

    A project is known by its remote repository, else by its first commit, else by its folder. So its worktrees, its
    clones and a renamed folder have one memory.
    """


def _folder(given: str | None) -> str:
    return os.path.abspath(os.path.expanduser(given)) if given else folder_of("", os.environ)


@project.command("show", examples=("lukasa project show", "lukasa project show ~/src/harbour --json"))
@click.argument("folder", required=False)
@pass_invocation
def show(cli: Invocation, folder: str | None) -> None:
    """Show the workspace of a folder, by default of the current one, and why it is that one. Creates none."""
    found = cli.memory.projects.at(_folder(folder))
    cli.emit(plain(found), _shown(found))


def _shown(found: ProjectPlace) -> Iterator[Line]:
    yield line(title(found.workspace), dim("" if found.exists else "  (not created yet)"))
    yield line(f"  folder    {found.folder}")
    yield line(f"  project   {found.identity or 'none: the folder is not a git repository of its own with a history'}")
    yield line(f"  why       {_HOW[found.how]}")
    if found.why:
        yield line(warn("! "), f"the folder does not get the memory of {found.identity}: {found.why}")
        yield line(dim("  `lukasa project set NAME` gives it that memory, if you trust what is in the folder"))


@project.command("set", examples=("lukasa project set novel", "lukasa project set novel ~/src/novel --folder-only"))
@click.argument("name", metavar="WORKSPACE")
@click.argument("folder", required=False)
@click.option("--folder-only", is_flag=True, help="Only for this folder, not for other clones of the project.")
@pass_invocation
def set_(cli: Invocation, name: str, folder: str | None, folder_only: bool) -> None:
    """Set the workspace of a project, by a folder of it, by default the current one.

    WORKSPACE is the name of one that exists. The workspace from before stays as it is.
    """
    found = cli.memory.projects.set(_folder(folder), name, folder_only=folder_only)
    cli.emit(plain(found), [line(good("set "), f"{found.folder} has workspace {found.workspace}")])


@project.command("forget", examples=("lukasa project forget", "lukasa project forget ~/src/harbour"))
@click.argument("folder", required=False)
@pass_invocation
def forget(cli: Invocation, folder: str | None) -> None:
    """Forget which workspace a project has. The workspace stays; the next session in the project gets a new one."""
    found = cli.memory.projects.forget(_folder(folder))
    told = [
        line(good("forgotten "), found.identity or found.folder),
        line(dim(f"  workspace {found.workspace} is as it was; `lukasa project set {found.workspace}` brings it back")),
    ]
    cli.emit(plain(found), told)


@project.command("list", examples=("lukasa project list",))
@pass_invocation
def list_(cli: Invocation) -> None:
    """List the projects and folders whose workspace is noted."""
    names = {info.id: info.name for info in cli.memory.workspaces()}
    found = cli.memory.projects.bindings()
    data = [plain(one) | {"name": names.get(one.workspace)} for one in found]
    cli.emit({"projects": data}, _listed(found, names))


def _listed(found: Sequence[Binding], names: dict[str, str]) -> Iterator[Line]:
    if not found:
        yield line("No project is noted.")
        return
    rows = (
        (
            one.identity.removeprefix(FOLDER),
            names.get(one.workspace, "(removed)"),
            one.how,
            when(one.at),
            one.commit[:12],
        )
        for one in found
    )
    yield from table(("project", "workspace", "how", "since", "first commit"), rows)
