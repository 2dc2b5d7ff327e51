"""A git repository through which machines exchange their files: the same files, on a branch for each machine.

The branch `lukasa/ID` holds the files of a machine, `lukasa/memory` says which memory it is. A machine pushes to its
own branch alone, so two machines never compete for one. Git's plumbing is used on a bare repository of ours: nothing is
checked out, so there are no filters, and no hook of a repository on this machine is run. Git uses the credentials and
the known hosts that the user has set up for it; none of them is kept here.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path

from lukasa.model.errors import BundleRefused, Conflict, GitError, GitMissing, InvalidInput, SyncError, brief
from lukasa.model.machines import MOST_MACHINES
from lukasa.providers.files.safe_write import os_errors
from lukasa.providers.sync.folder import MARK, is_machine, is_ours

SECONDS = 300.0
TRIES, PAUSE = 5, 0.2  # of a push that another one got in the way of; the pause doubles
PROTOCOLS = "file:https:ssh"
MEMORY = "memory"
_WHO = {"NAME": "lukasa", "EMAIL": "lukasa@localhost.invalid"}
_SETTINGS = (
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "gc.auto=0",
    "core.fsync=committed",
    "transfer.fsckObjects=true",
    "fetch.recurseSubmodules=false",
)
_RACES = ("non-fast-forward", "fetch first", "stale info", "cannot lock ref", "failed to lock", "reference already")


def is_git_address(where: str) -> bool:
    """Say whether a text names a git repository: a URL, an scp-like address, or a bare repository on this disk."""
    if "://" in where or "::" in where or where.endswith(".git"):
        return True
    at, colon, _ = where.partition(":")
    if colon and "@" in at and "/" not in at:
        return True
    path = Path(where).expanduser()
    return (path / "HEAD").is_file() and (path / "objects").is_dir()


def checked_address(where: str) -> str:
    """Return the address as git gets it; InvalidInput for a protocol that could run a command, or a password."""
    if where.startswith("-") or not where.isprintable():
        raise InvalidInput(f"{where[:120]!r} is no address of a git repository", fix="give a URL or a path")
    scheme, mark, rest = where.partition("://")
    if mark:
        if scheme not in ("file", "https", "ssh"):
            raise InvalidInput(f"{scheme[:20]!r} is no protocol for sync", fix="use https, ssh or a path")
        who, at, _ = rest.partition("/")[0].rpartition("@")
        if at and ":" in who:
            raise InvalidInput("the address has a password in it", fix="leave it out; git asks its credential helper")
        return where
    if "::" in where:
        raise InvalidInput(f"{where[:120]!r} asks for a remote helper", fix="use https, ssh or a path")
    at, colon, _ = where.partition(":")
    if colon and "/" not in at:
        return where  # user@host:path
    return str(Path(where).expanduser().absolute())


class GitRemote:
    """A git repository, and a bare copy of its branches in the data folder."""

    def __init__(self, url: str, folder: Path, program: str | None = None) -> None:
        self.url, self.folder = url, folder
        self._program = program or shutil.which("git") or ""
        self._changed: dict[str, str | None] = {}  # the object of each file that was put, None for one to remove

    @property
    def name(self) -> str:
        return self.url

    @property
    def keeps_old(self) -> str:
        return f"{self.url} keeps older objects, encrypted, until it is garbage-collected"

    def refresh(self) -> None:
        """Fetch the branches of all machines."""
        if not (self.folder / "HEAD").is_file():
            with os_errors(self.folder):
                self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._git("init", "--quiet", "--bare", "--template=", str(self.folder), bare=False)
        self._fetch()

    def mark(self) -> bytes | None:
        return self._blob(MEMORY, MARK, 100_000)

    def put_mark(self, data: bytes) -> None:
        """Claim the repository for a memory; Conflict if it is claimed."""
        self.refresh()
        if self.mark() is not None:
            raise Conflict(f"{self.url} is claimed by a memory", fix="join it: `lukasa sync join`, or use another one")
        self._push(MEMORY, self._commit({MARK: self._stored(data)}, None), None)

    def machines(self) -> list[str]:
        said = self._git("for-each-ref", "--format=%(refname)", "refs/remotes/lukasa/").decode("ascii", "replace")
        found = [name for name in (row.rpartition("/")[2] for row in said.split()) if is_machine(name)]
        if len(found) > 4 * MOST_MACHINES:
            raise SyncError(f"{self.url} has {len(found):,} machines", fix=f"use one with at most {MOST_MACHINES}")
        return sorted(found)

    def files(self, machine: str) -> dict[str, int]:
        return {name: size for name, (_, size) in self._tree(machine).items()}

    def read(self, machine: str, name: str, most: int) -> bytes | None:
        return self._blob(machine, name, most)

    def put(self, machine: str, name: str, data: bytes) -> None:
        self._changed[name] = self._stored(data)

    def remove(self, machine: str, name: str) -> None:
        self._changed[name] = None

    def publish(self, machine: str, *, anew: bool) -> None:
        """Push what was put. `anew` begins the branch again, so that what was taken out is in no commit of it."""
        if not self._changed:
            return
        head = self._head(machine)
        tree = {name: blob for name, (blob, _) in self._tree(machine).items()}
        for name, blob in self._changed.items():
            if blob is None:
                tree.pop(name, None)
            else:
                tree[name] = blob
        self._push(machine, self._commit(tree, None if anew else head), head)
        self._changed.clear()
        if anew:
            self._git("reflog", "expire", "--expire=now", "--all", check=False)
            self._git("gc", "--quiet", "--prune=now", check=False)  # of our copy

    def _head(self, branch: str) -> str | None:
        ref = f"refs/remotes/lukasa/{branch}"
        return (
            self._git("rev-parse", "--quiet", "--verify", ref, check=False).decode("ascii", "replace").strip() or None
        )

    def _tree(self, branch: str) -> dict[str, tuple[str, int]]:
        """Return the files of a branch: object and size by name."""
        if self._head(branch) is None:
            return {}
        said = self._git("ls-tree", "-l", "-z", f"refs/remotes/lukasa/{branch}").decode("utf-8", "replace")
        rows = (row.partition("\t") for row in said.split("\0") if row)
        parted = ((about.split(), name) for about, _, name in rows)
        return {
            name: (about[2], int(about[3]))
            for about, name in parted
            if len(about) == 4 and about[1] == "blob" and about[3].isdigit() and (is_ours(name) or name == MARK)
        }

    def _blob(self, branch: str, name: str, most: int) -> bytes | None:
        found = self._tree(branch).get(name)
        if found is None:
            return None
        if found[1] > most:
            raise BundleRefused(f"{branch}/{name} is refused: it has more than {most:,} bytes")
        return self._git("cat-file", "blob", found[0])

    def _stored(self, data: bytes) -> str:
        return self._git("hash-object", "-w", "--stdin", "--no-filters", given=data).decode().strip()

    def _commit(self, blobs: Mapping[str, str], parent: str | None) -> str:
        listed = "".join(f"100644 blob {blob}\t{name}\n" for name, blob in sorted(blobs.items()))
        tree = self._git("mktree", given=listed.encode()).decode().strip()
        who = {f"GIT_{role}_{part}": text for role in ("AUTHOR", "COMMITTER") for part, text in _WHO.items()}
        above = ("-p", parent) if parent is not None else ()
        return self._git("commit-tree", tree, *above, given=b"sync\n", env=who).decode().strip()

    def _push(self, branch: str, commit: str, expected: str | None) -> None:
        """Move a branch, if it is where we saw it; once more after others got in the way."""
        ref = f"refs/heads/lukasa/{branch}"
        for attempt in range(1, TRIES + 1):
            try:
                lease = f"--force-with-lease={ref}:{expected or ''}"
                options = ("--quiet", "--no-verify", lease, *self._there("receive-pack"))
                self._git("push", *options, "--", self.url, f"{commit}:{ref}")
            except GitError as error:
                if attempt == TRIES or not any(sign in error.message for sign in _RACES):
                    raise
                time.sleep(PAUSE * 2 ** (attempt - 1))
                self._fetch()
                if self._head(branch) == commit:
                    return  # the push had arrived, and its answer was lost
                if self._head(branch) != expected:
                    raise Conflict(
                        f"{ref} of {self.url} was moved by somebody else",
                        fix="if this machine's data folder was copied, `lukasa sync leave` and join again with one",
                    ) from None
            else:
                self._git("update-ref", f"refs/remotes/lukasa/{branch}", commit)
                return

    def _fetch(self) -> None:
        refs = "+refs/heads/lukasa/*:refs/remotes/lukasa/*"
        options = ("--quiet", "--no-tags", "--prune", "--no-write-fetch-head", "--no-auto-maintenance")
        self._git("fetch", *options, *self._there("upload-pack"), "--", self.url, refs)

    def _there(self, service: str) -> tuple[str, ...]:
        """Return what keeps a repository on this machine from running its hooks; a server decides about its own."""
        if "://" in self.url and not self.url.startswith("file://"):
            return ()
        if not Path(self.url.removeprefix("file://")).is_absolute():
            return ()
        return (f"--{service}=git -c core.hooksPath=/dev/null -c core.alternateRefsCommand=true {service}",)

    def _git(
        self,
        *words: str,
        given: bytes = b"",
        env: Mapping[str, str] | None = None,
        check: bool = True,
        bare: bool = True,
    ) -> bytes:
        if not self._program:
            raise GitMissing("git is not installed on this machine", fix="install git, or sync through a folder")
        kept = {key: value for key, value in os.environ.items() if not key.startswith("GIT_") or key in _USERS}
        own = {"GIT_TERMINAL_PROMPT": "0", "GIT_ALLOW_PROTOCOL": PROTOCOLS, "LC_ALL": "C"}
        own.setdefault("GIT_SSH_COMMAND", kept.get("GIT_SSH_COMMAND", "ssh -o BatchMode=yes"))
        settings = (word for setting in _SETTINGS for word in ("-c", setting))
        place = (f"--git-dir={self.folder}",) if bare else ()
        try:
            done = subprocess.run(
                [self._program, *settings, *place, *words],
                input=given,
                capture_output=True,
                env={**kept, **own, **(env or {})},
                timeout=SECONDS,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise GitError(
                f"git {words[0]} could not run to its end: {type(error).__name__}", fix="try again"
            ) from error
        if check and done.returncode != 0:
            why = " ".join(done.stderr.decode("utf-8", "replace").split()) or f"exit code {done.returncode}"
            raise GitError(
                f"git {words[0]} failed with {self.url}: {brief(why, 300)}",
                fix=f"try `git ls-remote {self.url}`; your own git settings and credentials are used",
            )
        return done.stdout


_USERS = ("GIT_SSH", "GIT_SSH_COMMAND", "GIT_SSL_CAINFO", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_NOSYSTEM", "GIT_ASKPASS")
