"""One project, one memory: which workspace belongs to the project in a folder.

    by the owner's word         `lukasa project set` for this folder, or for the project
    by the project's identity   its remote repository, else its first commit: worktrees, renamed folders and other
                                clones share a workspace, if their history begins with the commit that was noted
    by the folder               without git; and for a workspace from before projects had identities

A repository from somewhere else may name any remote in its files. So a name alone opens nothing that exists: the
folder must also hold the history of the project that has the workspace, or the owner must say so. Otherwise it gets a
workspace of its own. Bindings are events of the account's log: nothing about them is lost, and a move takes them along.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from datetime import datetime

from msgspec import Struct

from lukasa.model.conversation import WorkspaceInfo
from lukasa.model.errors import InvalidInput, NotFound
from lukasa.model.events import Actor, EventDraft
from lukasa.model.values import Origin
from lukasa.ports import Clock, ProjectFiles, Projects
from lukasa.service.project_names import apart_name, identity_name, workspace_name
from lukasa.storage.operations import Record, Transaction
from lukasa.storage.port import Store

BOUND = "project.bound"
FOLDER = "folder:"
MOST = 10_000
OWNER, IDENTITY, BY_FOLDER, NEW, APART = "owner", "identity", "folder", "new", "apart"


class Binding(Struct, frozen=True):
    """A project's workspace. `identity` may also be a folder, as `folder:/home/ana/harbour`.

    `workspace` is an id, empty if the owner has ended the binding. `commit` is the first one of the project, `folder`
    the one where it was bound, and `claims` the identity that a folder had when its owner named a workspace for it.
    """

    identity: str
    workspace: str
    at: datetime
    commit: str = ""
    folder: str = ""
    how: str = ""
    claims: str = ""


class ProjectPlace(Struct, frozen=True):
    """The workspace of a folder: its name, whether it exists, and how it is found.

    `how` is `owner`, `identity`, `folder`, `new`, or `apart` for a folder whose identity has a workspace that it may
    not have; `why` then says what is missing.
    """

    folder: str
    identity: str
    workspace: str
    exists: bool
    how: str
    why: str = ""


class ProjectBook:
    """The workspaces of projects, by what the account's log says about them."""

    def __init__(
        self,
        account: Store,
        infos: Callable[[], Sequence[WorkspaceInfo]],
        projects: Projects,
        clock: Clock,
        origin: Origin,
    ) -> None:
        self._account = account
        self._infos = infos
        self._projects = projects
        self._clock = clock
        self._origin = origin

    # Finding

    def at(self, folder: str) -> ProjectPlace:
        """Return the workspace of the project in a folder. This changes nothing in memory."""
        return self._at(folder)[0]

    def _at(self, folder: str) -> tuple[ProjectPlace, ProjectFiles | None]:
        names = {info.name: info.id for info in self._infos()}
        by_id = {id: name for name, id in names.items()}
        project = self._projects.at(folder)
        root = str(project.root) if project is not None else os.path.realpath(folder.replace("\x00", ""))
        claimed = project.claimed() if project is not None else ""

        def place(name: str, how: str, why: str = "") -> ProjectPlace:
            return ProjectPlace(root, claimed, name, name in names, how, why)

        said = self._binding(f"{FOLDER}{root}")
        if said is not None and said.workspace in by_id and said.claims == claimed:
            return place(by_id[said.workspace], OWNER), project
        bindings = self.bindings()
        theirs = {b.workspace for b in bindings if b.identity != claimed and not b.identity.startswith(FOLDER)}
        if project is None or not claimed:
            known = next((n for n in (workspace_name(folder), workspace_name(root)) if n in names), "")
            return place(known or _was(root, bindings, by_id) or workspace_name(folder), BY_FOLDER), project
        # A workspace from before projects had identities: nobody's memory changes its place by itself.
        for name in dict.fromkeys((workspace_name(folder), workspace_name(root))):
            if name in names and names[name] not in theirs:
                return place(name, BY_FOLDER), project
        bound = self._binding(claimed)
        if bound is None:
            return self._unbound(place, bindings, by_id, project, claimed), project
        if bound.workspace not in by_id:  # the owner ended the binding, or removed the workspace
            return place(identity_name(claimed, root, self._times(claimed)), NEW), project
        if why := self._missing(project, bound):
            return place(apart_name(root, claimed), APART, why), project
        return place(by_id[bound.workspace], OWNER if bound.how == OWNER else IDENTITY), project

    def _unbound(
        self,
        place: Callable[..., ProjectPlace],
        bindings: Sequence[Binding],
        by_id: dict[str, str],
        project: ProjectFiles,
        claimed: str,
    ) -> ProjectPlace:
        """Return the workspace of an identity that nothing is known about yet."""
        # The project in this folder may have got another name: a remote was added, or renamed.
        for one in reversed(bindings):
            if one.folder == str(project.root) and one.workspace in by_id and project.descends_from(one.commit):
                return place(by_id[one.workspace], IDENTITY)
        return place(identity_name(claimed, str(project.root)), NEW)

    def _missing(self, project: ProjectFiles, bound: Binding) -> str:
        """Say why a folder may not have the workspace of the identity that it claims; empty if it may."""
        if not bound.commit:
            here = bound.folder == str(project.root)
            return "" if here else "the project had no commit yet when it got its workspace"
        if project.descends_from(bound.commit):
            return ""
        return f"its history does not begin with commit {bound.commit[:12]}, as that of the project does"

    def bindings(self) -> list[Binding]:
        """Return the present binding of each identity and folder that has one."""
        found: dict[str, Binding] = {}
        for event in self._account.events(action=BOUND, limit=MOST):
            found.pop(event.subject, None)
            found[event.subject] = _binding(event.subject, event.detail, event.at)
        return [one for one in found.values() if one.workspace]

    def _binding(self, identity: str) -> Binding | None:
        """Return the last word about an identity."""
        found = self._account.events(subject=identity, action=BOUND, limit=MOST)
        return _binding(identity, found[-1].detail, found[-1].at) if found else None

    def _times(self, identity: str) -> int:
        """Return the number of the next workspace of an identity."""
        return len({e.detail.get("workspace") for e in self._account.events(subject=identity, action=BOUND)} - {""}) + 1

    # Binding

    def take(self, folder: str, open_: Callable[[str], WorkspaceInfo]) -> ProjectPlace:
        """Return the workspace of a folder, after `open_` has opened or created it, and note whose it is."""
        found, project = self._at(folder)
        info = open_(found.workspace)
        if project is None or not found.identity or found.how == APART:
            return found
        bound = self._binding(found.identity)
        if bound is None or not bound.workspace:
            # That of a folder inside the project is its own, and what the owner says of one folder is of that one.
            whole = found.how != BY_FOLDER or found.workspace == workspace_name(found.folder)
            if whole and not (found.how == OWNER and self._binding(f"{FOLDER}{found.folder}")):
                self._bind(found.identity, info.id, project.first_commit(), found.folder, found.how)
        elif not bound.commit and bound.folder == found.folder and (commit := project.first_commit()):
            self._bind(found.identity, bound.workspace, commit, found.folder, bound.how)
        return found

    def set(self, folder: str, workspace: str, *, folder_only: bool = False) -> ProjectPlace:
        """Name the workspace of a project: the owner's word. The workspace must exist.

        It is that of all folders of the project. If this folder cannot show that it is of the project whose identity it
        claims, it is that of this folder alone.
        """
        info = next((one for one in self._infos() if one.name == workspace), None)
        if info is None:
            raise NotFound(
                f"no workspace {workspace[:60]!r}",
                fix="`lukasa workspace list` shows them; create it before you set it",
            )
        found, project = self._at(folder)
        if project is None and not os.path.isdir(found.folder):
            raise InvalidInput(f"{folder[:200]!r} is not a folder", fix="name the folder of a project")
        self._bind(f"{FOLDER}{found.folder}", info.id, "", found.folder, OWNER, claims=found.identity)
        if not folder_only and project is not None and self._may_speak(project, found):
            self._bind(found.identity, info.id, project.first_commit(), found.folder, OWNER)
        return self.at(folder)

    def _may_speak(self, project: ProjectFiles, found: ProjectPlace) -> bool:
        """Say whether a folder may change the workspace of its whole project: it must show that it is of it."""
        bound = self._binding(found.identity) if found.identity else None
        return bool(found.identity) and (bound is None or not bound.workspace or not self._missing(project, bound))

    def forget(self, folder: str) -> ProjectPlace:
        """End the bindings of a folder and of its project; the workspace stays as it is. Return what was bound.

        The next session in the project gets a new workspace.
        """
        found, project = self._at(folder)
        ended = self._end(f"{FOLDER}{found.folder}")
        if project is not None and self._may_speak(project, found):
            ended = self._end(found.identity) or ended
        if not ended:
            raise NotFound(
                f"nothing is noted about the project in {found.folder[:200]!r}",
                fix="`lukasa project show` says where its workspace comes from",
            )
        return found

    def _end(self, identity: str) -> bool:
        bound = self._binding(identity) if identity else None
        if bound is None or not bound.workspace:
            return False
        self._bind(identity, "", "", "", OWNER)
        return True

    def _bind(self, identity: str, id: str, commit: str, folder: str, how: str, *, claims: str = "") -> None:
        about = {"workspace": id, "commit": commit, "folder": folder, "how": how, "claims": claims}
        draft = EventDraft(
            BOUND, identity, {name: value for name, value in about.items() if value or name == "workspace"}
        )
        actor = Actor(self._origin.principal, self._origin.surface, self._origin.transport)
        self._account.apply(Transaction(actor, self._clock.now(), (Record(draft),)))


def _was(root: str, bindings: Sequence[Binding], by_id: dict[str, str]) -> str:
    """Return the workspace of a project that was bound in a folder which is not there any more."""
    if os.path.isdir(root):
        return ""
    return next((by_id[b.workspace] for b in reversed(bindings) if b.folder == root and b.workspace in by_id), "")


def _binding(identity: str, detail: dict[str, str], at: datetime) -> Binding:
    named = {name: str(detail.get(name, "")) for name in ("workspace", "commit", "folder", "how", "claims")}
    return Binding(identity, at=at, **named)
