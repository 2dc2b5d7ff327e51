"""The files of projects on this machine, read and never written, and never one outside of a project.

A path is resolved with all its links, and must then be below the project's root. Only regular files are opened, without
waiting (a FIFO has nobody at its other end), without following a link that came up meanwhile, and up to a size. What
git knows is asked of git without the working tree, so no filter, hook or monitor of a repository runs. The names of a
project are read from git's own files, since a hook waits for them.
"""

from __future__ import annotations

import json
import os
import re
import stat
import time
from collections.abc import Iterator
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import Protocol

from lukasa.model import system
from lukasa.model.errors import LukasaError, OutsideProject, UnreadableFile
from lukasa.model.source_text import SourceText
from lukasa.ports import ProjectFiles
from lukasa.providers.files.git_questions import ask_git
from lukasa.providers.files.safe_write import locked, make_folder, put_whole

MOST_BYTES = 2_000_000
MOST_LOOKED = 5_000  # files of a project without git that are looked through for a renamed one
MOST_TRIED = 200  # of these, files that are opened
KEPT = 512  # files whose text a process keeps
GIT_SECONDS, MOST_SECONDS = 2.0, 30.0
BRIEF, REST = 1.0, 30.0  # seconds: less than that is a read's budget; so long a slow git is left alone by reads
RENAMES = 8  # one after the other
FILE = "projects.json"
COMMITS = "project-commits.json"
MOST_KNOWN = 500
_SKIPPED = frozenset({"node_modules", "__pycache__", "venv", "target", "build", "dist"})
_Stamp = tuple[int, int, int]


class ProjectNotes(Protocol):
    """What this machine notes about projects, in files of the data folder; each is a text by its name."""

    def recall(self, file: str, name: str) -> str: ...
    def note(self, file: str, name: str, value: str) -> None: ...


class FolderProject:
    """One project: a folder, mostly the top of a git repository."""

    def __init__(self, root: Path, program: str = "git", notes: ProjectNotes | None = None) -> None:
        self._root = os.path.realpath(root)
        self._program = program
        self._texts: dict[str, tuple[_Stamp, SourceText]] = {}
        self._renames: dict[str, tuple[object, dict[str, str]]] = {}
        self._went: dict[tuple[str, str], tuple[object, str | None]] = {}
        self._notes = notes
        self._known_firsts: frozenset[str] | None = None
        self._slow_until = 0.0  # git was too slow for a read: until then, none waits for it again

    @property
    def root(self) -> Path:
        return Path(self._root)

    # Names

    @cached_property
    def _git_folder(self) -> Path | None:
        """The folder with the repository's own files; a worktree has only a file that names another folder."""
        place = Path(self._root, ".git")
        if place.is_dir():
            return place
        with suppress(OSError, ValueError):
            word, _, named = place.read_text("utf-8")[:4096].strip().partition(": ")
            if word == "gitdir":
                return Path(self._root, named)
        return None

    @cached_property
    def _common(self) -> Path | None:
        """The folder that all worktrees of the repository share."""
        own = self._git_folder
        with suppress(OSError, ValueError):
            if own is not None:
                return own / (own / "commondir").read_text("utf-8")[:4096].strip()
        return own

    @cached_property
    def _remotes(self) -> list[str]:
        """The remote repositories, `origin` first, in one spelling and without user names or passwords."""
        found: dict[str, str] = {}
        try:
            text = (self._common / "config").read_text("utf-8", "replace")[:200_000] if self._common else ""
        except OSError:
            return []
        name = ""
        for line in text.splitlines():
            if heading := re.match(r'\s*\[remote "([^"]+)"\]', line):
                name = heading[1]
            elif line.lstrip().startswith("["):
                name = ""
            elif name and (url := re.match(r"\s*url\s*=\s*(\S+)", line)):
                found.setdefault(name, remote_name(url[1]))
        return [found[name] for name in sorted(found, key=lambda name: (name != "origin", name)) if found[name]]

    @cached_property
    def _first_commit(self) -> str:
        if self._common is None or (self._common / "shallow").exists():
            return ""
        with suppress(OSError, TimeoutError):
            listed = self._ask("rev-list", "--max-parents=0", "HEAD", until=time.monotonic() + GIT_SECONDS)
            return min(listed.decode().split(), default="")
        return ""

    @property
    def identity(self) -> str:
        if self._remotes:
            return f"git:{self._remotes[0]}"
        return f"commit:{self._first_commit}" if self._first_commit else f"folder:{os.path.basename(self._root)}"

    def is_called(self, identity: str) -> bool:
        kind, _, name = identity.partition(":")
        if kind == "git":
            return name in self._remotes
        if kind == "commit":
            return bool(name) and name == self._first_commit
        return bool(name) and name == os.path.basename(self._root)

    # The workspace of a project: what a repository from somewhere else cannot claim

    def claimed(self, deep: int = 0) -> str:
        common = self._own_folder
        if common is None:
            return ""
        if self._remotes:
            name = re.split(r"[?#]", self._remotes[0])[0]
            if not (name.startswith((".", "/")) or os.path.isabs(name)):
                return f"git:{name.lower()}"
            place = os.path.realpath(os.path.join(self._root, name))
            if deep == 0 and place != self._root and os.path.isdir(os.path.join(place, ".git")):
                return FolderProject(Path(place), self._program).claimed(1)  # a clone of a folder is the same project
            return f"git:{place}"
        return f"commit:{found}" if (found := self.first_commit()) else ""

    def first_commit(self) -> str:
        return min(self._firsts(), default="")

    def descends_from(self, commit: str) -> bool:
        return bool(commit) and commit in self._firsts()

    @cached_property
    def _own_folder(self) -> Path | None:
        """Return the folder of git's files if it is this project's own, and not that of another one that is pointed to.

        A worktree's `.git` names a folder that names this one in turn; so does a submodule's. A link never counts.
        """
        place = Path(self._root, ".git")
        with suppress(OSError, ValueError):
            if place.is_symlink():
                return None
            if place.is_dir():
                return place if _is_plain(place, "commondir", absent=True) else None
            own, common = self._git_folder, self._common
            if own is None or common is None or not own.is_dir():
                return None
            back = (own / "gitdir").read_text("utf-8")[:4096].strip() if (own / "gitdir").exists() else ""
            if back and os.path.realpath(os.path.join(own, back)) == os.path.realpath(place):
                return common if os.path.realpath(own.parent.parent) == os.path.realpath(common) else None
            tree = re.search(r"^[ \t]*worktree[ \t]*=(.*)$", (own / "config").read_text("utf-8"), re.MULTILINE)
            if tree and os.path.realpath(os.path.join(own, tree[1].strip())) == self._root:
                return own
        return None

    def _firsts(self) -> frozenset[str]:
        """Return the first commits of what is checked out, or of what the worktree's repository has checked out."""
        if self._known_firsts is None:
            stamp = self._stamp
            noted = self._notes.recall(COMMITS, self._root) if self._notes is not None and stamp else ""
            if noted.startswith(f"{stamp} "):
                self._known_firsts = frozenset(noted.removeprefix(stamp).split())
            else:
                self._known_firsts, told = self._find_firsts()
                if self._notes is not None and told:
                    self._notes.note(COMMITS, self._root, " ".join((stamp, *sorted(self._known_firsts), "")))
        return self._known_firsts

    def _find_firsts(self) -> tuple[frozenset[str], bool]:
        """Return the first commits, and whether that is worth noting: also that git takes too long to tell."""
        folder = self._own_folder
        if folder is None or (folder / "shallow").exists():
            return frozenset(), False
        starts = {head for place in (folder, self._git_folder) if place is not None and (head := _head(place, folder))}
        try:
            asked = ("rev-list", "--max-parents=0", *starts)
            listed = self._ask(*asked, until=time.monotonic() + GIT_SECONDS) if starts else b""
        except TimeoutError:
            return frozenset(), True
        return frozenset(listed.decode().split()), bool(listed)

    @property
    def _stamp(self) -> str:
        """Return what tells this repository from another one in the same folder.

        A folder that is made anew may get the inode of the one before it, so the time counts when git made a file that
        it never changes. Nobody can set that time.
        """
        folder = self._own_folder
        with suppress(OSError):
            if folder is not None:
                known = ("description", "info/exclude")
                lasting = next((name for name in known if (folder / name).exists()), "objects")
                return f"{os.stat(folder).st_ino}-{os.lstat(folder / lasting).st_ctime_ns}"
        return ""

    def revision(self) -> str:
        own, common = self._git_folder, self._common
        if own is None or common is None:
            return ""
        with suppress(OSError, ValueError):
            head = (own / "HEAD").read_text("utf-8")[:4096].strip()
            if not head.startswith("ref: "):
                return head if re.fullmatch(r"[0-9a-f]{40,64}", head) else ""
            return self._reference(common, head.removeprefix("ref: "))
        return ""

    def _reference(self, common: Path, name: str) -> str:
        if not re.fullmatch(r"refs/[\w./+@-]+", name) or ".." in name:
            return ""
        with suppress(OSError):
            found = (common / name).read_text("utf-8")[:100].strip()
            if re.fullmatch(r"[0-9a-f]{40,64}", found):
                return found
        with suppress(OSError):
            packed = (common / "packed-refs").read_text("utf-8", "replace")
            if match := re.search(rf"^([0-9a-f]{{40,64}}) {re.escape(name)}$", packed, re.MULTILINE):
                return match[1]
        return ""

    # Files

    def relative(self, path: str) -> str | None:
        try:
            real = self._inside(path)
            if not stat.S_ISREG(os.lstat(real).st_mode):
                return None
        except (OSError, ValueError, OutsideProject):
            return None
        return os.path.relpath(real, self._root).replace(os.sep, "/")

    def _inside(self, path: str) -> str:
        """Return the real path of a path of the project. What git keeps for itself is not of the project."""
        if "\0" in path or not path.strip():
            raise OutsideProject(f"{path[:60]!r} is not a path", fix="name a file of the project")
        real = os.path.realpath(os.path.join(self._root, path))
        below = real.startswith(self._root.rstrip(os.sep) + os.sep)
        if not below or ".git" in os.path.relpath(real, self._root).split(os.sep):
            raise OutsideProject(
                f"{path[:200]!r} is outside of the project in {self._root}",
                fix="cite a file of the project at hand; its paths are relative to that folder",
            )
        return real

    def read(self, path: str) -> SourceText | None:
        try:
            real = self._inside(path)
            about = os.lstat(real)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except (OSError, ValueError) as error:
            raise UnreadableFile(f"{path[:200]!r} cannot be read: {type(error).__name__}", fix="cite another") from None
        stamp = (about.st_mtime_ns, about.st_size, about.st_ino)
        kept = self._texts.get(real)
        if kept is not None and kept[0] == stamp:
            return kept[1]
        text = SourceText(_bytes_of(real, path, about))
        if len(self._texts) >= KEPT:
            self._texts.clear()
        self._texts[real] = stamp, text
        return text

    # Renamed files

    def renamed(self, path: str, since: str, until: float) -> str | None:
        if self._git_folder is None:
            return None
        state = self._state()
        known = self._went.get((path, since))
        if known is None or known[0] != state:
            if len(self._went) >= MOST_LOOKED:
                self._went.clear()
            known = self._went[path, since] = state, self._followed(path, since, until)
        return known[1] if known[1] is not None and self.relative(known[1]) is not None else None

    def _state(self) -> tuple[str, int]:
        """What git knows changes with the commit that is checked out and with the index."""
        try:
            return self.revision(), os.stat(self._git_folder / "index").st_mtime_ns if self._git_folder else 0
        except OSError:
            return self.revision(), 0

    def _followed(self, path: str, since: str, until: float) -> str | None:
        """Return where a path went: between the two ends, or else from one commit that removed it to the next."""
        found, at = self._renames_since(since, until).get(path), path
        for _ in range(RENAMES if found is None else 0):
            gone_in = self._ask("log", "-1", "--diff-filter=D", "--format=%H", "--", at, until=until).decode().strip()
            after = self._renames_in(gone_in, until).get(at) if gone_in else None
            if after is None or after == at:
                break
            found = at = after
        return found

    def _renames_since(self, since: str, until: float) -> dict[str, str]:
        """Return the renames between a commit and the index: those that were committed since, and those staged."""
        if not re.fullmatch(r"[0-9a-f]{40,64}", since):
            return {}
        state = self._state()
        known = self._renames.get(since)
        if known is None or known[0] != state:
            listed = self._ask("diff", "--cached", "-z", *_RENAMES, since, until=until)
            known = self._renames[since] = (state, _pairs(listed))
        return known[1]

    def _renames_in(self, commit: str, until: float) -> dict[str, str]:
        known = self._renames.get(f"in {commit}")
        if known is None:
            listed = self._ask("show", "-z", "--format=", *_RENAMES, commit, until=until)
            known = self._renames[f"in {commit}"] = (None, _pairs(listed))
        return known[1]

    def candidates(self, path: str, until: float) -> Iterator[str]:
        name, ending = os.path.basename(path), os.path.splitext(path)[1]
        found = [one for one in self._unknown_to_git(until) if os.path.splitext(one)[1] == ending and one != path]
        yield from sorted(found, key=lambda one: (os.path.basename(one) != name, one))[:MOST_TRIED]

    def mentions(self, word: str, ending: str, until: float) -> list[str]:
        if self._git_folder is None or not re.fullmatch(r"[\w.+-]{1,20}", ending):
            return []
        asked = ("-z", "-l", "-w", "-F", "--untracked", "--no-textconv", "-e", word, "--", f"*{ending}")
        return self._ask("grep", *asked, until=until).decode("utf-8", "surrogateescape").split("\0")[:-1][:MOST_TRIED]

    def _unknown_to_git(self, until: float) -> Iterator[str]:
        if self._git_folder is not None:
            listed = self._ask("ls-files", "-z", "--others", "--exclude-standard", until=until)
            yield from listed.decode("utf-8", "surrogateescape").split("\0")[:MOST_LOOKED]
            return
        left = MOST_LOOKED
        for folder, folders, files in os.walk(self._root):
            folders[:] = sorted(one for one in folders if not one.startswith(".") and one not in _SKIPPED)
            for file in sorted(files):
                yield os.path.relpath(os.path.join(folder, file), self._root).replace(os.sep, "/")
            left -= len(files)
            if time.monotonic() > until:
                raise TimeoutError
            if left <= 0:
                return

    def _ask(self, *words: str, until: float) -> bytes:
        """Run git on the repository alone; nothing if it cannot answer."""
        left = until - time.monotonic()
        brief = left < BRIEF
        if left <= 0 or (brief and time.monotonic() < self._slow_until):
            raise TimeoutError
        try:
            said = ask_git(self._root, *words, seconds=min(left, MOST_SECONDS), program=self._program)
        except TimeoutError:
            self._slow_until = time.monotonic() + REST if brief else 0.0
            raise
        return said or b""


_RENAMES = ("--name-status", "--find-renames", "--diff-filter=R", "--no-ext-diff", "--no-textconv")


def _pairs(listed: bytes) -> dict[str, str]:
    """Return old and new paths of `git diff --name-status -z`."""
    words = listed.decode("utf-8", "surrogateescape").split("\0")
    return {words[at + 1]: words[at + 2] for at in range(0, len(words) - 2, 3)}


def _bytes_of(real: str, path: str, about: os.stat_result) -> bytes:
    """Return the bytes of a regular file, which must still be the one that was looked at."""
    if not stat.S_ISREG(about.st_mode):
        raise UnreadableFile(f"{path[:200]!r} is not a regular file", fix="cite a file with text")
    if about.st_size > MOST_BYTES:
        raise UnreadableFile(
            f"{path[:200]!r} has {about.st_size:,} bytes, more than the {MOST_BYTES:,} that a check reads",
            fix="cite a smaller file",
        )
    try:
        handle = system.open_file(real, os.O_RDONLY | system.NONBLOCK | system.NOCTTY)
    except OSError as error:
        raise UnreadableFile(f"{path[:200]!r} cannot be read: {error.strerror}", fix="cite another file") from None
    with os.fdopen(handle, "rb") as stream:
        opened = os.fstat(handle)
        if (opened.st_dev, opened.st_ino) != (about.st_dev, about.st_ino) or not stat.S_ISREG(opened.st_mode):
            raise UnreadableFile(f"{path[:200]!r} became another file meanwhile", fix="try again")
        data = stream.read(MOST_BYTES + 1)
    if len(data) > MOST_BYTES:
        raise UnreadableFile(f"{path[:200]!r} grew beyond {MOST_BYTES:,} bytes", fix="cite a smaller file")
    return data


def remote_name(url: str) -> str:
    """Return the name of a remote repository: host and path, the same for https, ssh and git, without credentials."""
    if (match := re.fullmatch(r"(?:[a-z+]+://)(?:[^@/]*@)?([^/:]*)(?::\d+)?(/.*)", url, re.IGNORECASE)) or (
        match := re.fullmatch(r"(?:[^@/]*@)?([\w.-]+):(?!/)(.+)", url)
    ):
        host, path = match[1], match[2]
    else:
        host, path = "", url
    name = f"{host.lower()}/{path.strip('/')}" if host else path.rstrip("/")
    return name.removesuffix(".git")


def _head(place: Path, common: Path) -> str:
    """Return the commit that is checked out, by plain files alone: none of them may be a link to another repository."""
    with suppress(OSError, ValueError):
        if not _is_plain(place, "HEAD"):
            return ""
        head = (place / "HEAD").read_text("utf-8")[:4096].strip()
        name = head.removeprefix("ref: ")
        if name != head:
            if not re.fullmatch(r"refs/[\w./+@-]+", name) or ".." in name:
                return ""
            if _is_plain(common, name):
                head = (common / name).read_text("utf-8")[:100].strip()
            elif _is_plain(common, "packed-refs") and not os.path.lexists(common / name):
                packed = (common / "packed-refs").read_text("utf-8", "replace")
                found = re.search(rf"^([0-9a-f]{{40,64}}) {re.escape(name)}$", packed, re.MULTILINE)
                head = found[1] if found else ""
        return head if re.fullmatch(r"[0-9a-f]{40,64}", head) else ""
    return ""


def _is_plain(folder: Path, name: str, *, absent: bool = False) -> bool:
    """Say whether a file of git is there without a link on the way to it; with `absent`, whether it is not there."""
    if absent:
        return not os.path.lexists(folder / name)
    at = folder
    for part in name.split("/"):
        at = at / part
        if at.is_symlink():
            return False
    return at.is_file()


class LocalProjects:
    """The projects of this machine. A file of the data folder says which folder each was last in; memory does not."""

    def __init__(self, data: Path | None) -> None:
        self._data = data
        self._open: dict[str, FolderProject] = {}

    def at(self, folder: str, *, in_git: bool = False) -> ProjectFiles | None:
        if not folder or "\0" in folder:
            return None
        start = os.path.realpath(os.path.expanduser(folder))
        if not os.path.isdir(start):
            return None
        top, found = start, ""
        while not found:
            if os.path.exists(os.path.join(top, ".git")):
                found = top
            elif os.path.dirname(top) == top:
                break
            top = os.path.dirname(top)
        root = found or ("" if in_git else start)
        if not root or root in (os.path.realpath(os.path.expanduser("~")), os.path.abspath(os.sep)):
            return None
        if root not in self._open:
            self._open[root] = FolderProject(Path(root), notes=self)
        return self._open[root]

    def known(self, identity: str) -> ProjectFiles | None:
        folder = self._read().get(identity, "")
        found = self.at(folder)
        return found if found is not None and str(found.root) == folder and found.is_called(identity) else None

    def remember(self, project: ProjectFiles) -> None:
        """Note the folder; a file that cannot be written is no reason to stop what the user asked for."""
        self.note(FILE, project.identity, str(project.root))

    def recall(self, file: str, name: str) -> str:
        return self._read(file).get(name, "")

    def note(self, file: str, name: str, value: str) -> None:
        if self._data is None or self._read(file).get(name) == value:
            return
        with suppress(OSError, LukasaError):
            make_folder(self._data)
            with locked(self._data / f".{file}.lock"):
                known = {**self._read(file), name: value}
                newest = dict(list(known.items())[-MOST_KNOWN:])
                put_whole(self._data / file, (json.dumps(newest, indent=1, ensure_ascii=False) + "\n").encode())

    def _read(self, file: str = FILE) -> dict[str, str]:
        if self._data is None:
            return {}
        with suppress(OSError, ValueError, AttributeError):
            found = json.loads((self._data / file).read_text("utf-8")[:1_000_000])
            return {str(name): str(folder) for name, folder in found.items()}
        return {}
