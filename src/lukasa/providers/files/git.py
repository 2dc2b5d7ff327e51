"""MEMORY.md in a folder under git.

Commits are made with git's plumbing commands: they touch no file of the folder, run no hooks, use no signatures and no
settings of the user, and move the branch only if no other process has moved it meanwhile.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path, PurePosixPath

from msgspec import Struct

from lukasa.model.erasure import ERASED, Words
from lukasa.model.errors import GitError, GitMissing, InvalidContent
from lukasa.ports import Committed
from lukasa.providers.files.safe_write import locked, make_folder, os_errors, put_whole
from lukasa.providers.folders import remove_tree

FILE = "MEMORY.md"
TRAILER = "Lukasa-Version"
SECONDS = 20.0
MOST_BYTES = 1_000_000
EMAIL = "lukasa@localhost.invalid"
_SETTINGS = ("core.hooksPath=/dev/null", "core.autocrlf=false", "gc.auto=0", "core.fsync=committed")


class GitFile(Struct, frozen=True):
    """The file MEMORY.md, and the git repository around it."""

    folder: Path
    program: str = "git"

    @property
    def path(self) -> Path:
        return self.folder / FILE

    @contextmanager
    def locked(self) -> Iterator[None]:
        make_folder(self.folder)
        with locked(self.folder / ".lock"):
            yield

    # The file

    def read(self) -> str | None:
        with os_errors(self.path):
            try:
                with self.path.open("rb") as stream:
                    data = stream.read(MOST_BYTES + 1)
            except FileNotFoundError:
                return None
        return _body(data, str(self.path))

    def write(self, body: str, *, instead_of: str | None) -> bool:
        if self.read() != instead_of:
            return False
        if body != instead_of:
            put_whole(self.path, f"{body}\n".encode())
        return True

    # Commits

    def commits(self) -> Iterator[Committed]:
        if not self._exists() or self._head() is None:
            return
        listed = self._git("log", f"--format=%H %(trailers:key={TRAILER},valueonly,separator=%x20)", "--", FILE)
        for row in listed.decode("utf-8", "replace").splitlines():
            id, _, version = row.strip().partition(" ")
            if self._git("ls-tree", id, "--", FILE):  # skip a commit that removed the file
                number = int(version) if re.fullmatch(r"\d{1,9}", version, re.ASCII) else None
                yield Committed(id, number, _body(self._git("cat-file", "blob", f"{id}:{FILE}"), id))

    def commit(self, body: str, *, version: int, message: str, author: str, at: datetime) -> str:
        self._make()
        blobs = {FILE: self._blob(f"{body}\n".encode())}
        return self._record(blobs, f"{message.strip()}\n\n{TRAILER}: {version}\n", author, at)

    def keep(self, patterns: Sequence[str], *, author: str, at: datetime) -> int:
        lying = sorted({path for pattern in patterns for path in self.folder.glob(pattern) if path.is_file()})
        if not lying:
            return 0
        self._make()
        head = self._head()
        with os_errors(self.folder):
            blobs = {str(path.relative_to(self.folder)): self._blob(path.read_bytes()) for path in lying}
        known = self._listed(head)
        changed = {name: blob for name, blob in blobs.items() if known.get(name) != blob}
        if changed:
            names = ", ".join(list(changed)[:3]) + (f" and {len(changed) - 3} more" if len(changed) > 3 else "")
            self._record(changed, f"Keep {names}\n", author, at)
        return len(changed)

    def kept(self, patterns: Sequence[str]) -> Mapping[str, bytes]:
        if not self._exists():
            return {}
        found = {name: blob for name, blob in self._listed(self._head()).items() if _matches(name, patterns)}
        return {name: self._git("cat-file", "blob", blob) for name, blob in found.items()}

    def put_back(self, name: str, data: bytes) -> bool:
        path = self.folder / name
        if path.exists():
            return False
        make_folder(self.folder)
        make_folder(path.parent)
        put_whole(path, data)
        return True

    # Erasing

    def holding(self, words: Words) -> int:
        """Return how many objects of the repository hold some words: texts, messages, and names of files."""
        if not self._exists():
            return 0
        listed = self._git("cat-file", "--batch-all-objects", "--batch-check=%(objectname) %(objecttype)")
        kinds = [line.split(b" ") for line in listed.splitlines()]
        return sum(words.count(self._git("cat-file", kind.decode(), id.decode())) > 0 for id, kind in kinds)

    def erase(self, words: Words) -> int:
        """Write the whole history again without some words, and return how many of its objects held them.

        The new repository replaces the old one at once, and nothing of the old one is left. Whoever has a copy of the
        repository keeps the words.
        """
        held = self.holding(words)
        if held:
            fresh, old = self.folder / ".git.new", self.folder / ".git.old"
            for left in (fresh, old):
                remove_tree(left)
            stream = self._git("fast-export", "--all", "--signed-tags=strip", "--tag-of-filtered-object=drop")
            head = (self.folder / ".git" / "HEAD").read_text("utf-8")
            subprocess.run(
                [self.program, "init", "--quiet", "--bare", "--template=", str(fresh)],
                check=True,
                capture_output=True,
                timeout=SECONDS,
                env=_plain_environment(),
            )
            subprocess.run(
                [self.program, f"--git-dir={fresh}", "fast-import", "--quiet", "--force"],
                input=_without(stream, words),
                check=True,
                capture_output=True,
                timeout=SECONDS,
                env=_plain_environment(),
            )
            (fresh / "HEAD").write_text(head, "utf-8")
            (fresh / "config").write_text("[core]\n\trepositoryformatversion = 0\n\tbare = false\n", "utf-8")
            (self.folder / ".git").rename(old)
            fresh.rename(self.folder / ".git")
            remove_tree(old)
            self._git("read-tree", "HEAD", check=False)
        return held

    def recover(self) -> None:
        """Finish an exchange of repositories that was cut off."""
        fresh, old = self.folder / ".git.new", self.folder / ".git.old"
        if old.is_dir() and not (self.folder / ".git").exists():
            (fresh if (fresh / "config").exists() else old).rename(self.folder / ".git")
        for left in (fresh, old):
            remove_tree(left)

    def remotes(self) -> list[str]:
        """Return the names of the repositories that this one was sent to or came from."""
        return self._git("remote").decode().split() if self._exists() else []

    def _make(self) -> None:
        if not self._exists():
            make_folder(self.folder)
            self._git("init", "--quiet", "--template=", "--initial-branch=main")

    def _blob(self, data: bytes) -> str:
        return self._git("hash-object", "-w", "--stdin", "--no-filters", given=data).decode().strip()

    def _listed(self, head: str | None) -> dict[str, str]:
        """Return the blobs of a commit by their path."""
        if head is None:
            return {}
        rows = self._git("ls-tree", "-r", "-z", head).decode("utf-8", "surrogateescape").split("\0")
        parted = (row.partition("\t") for row in rows if row)
        return {name: about.split(" ")[2] for about, _, name in parted if about.split(" ")[1] == "blob"}

    def _record(self, blobs: Mapping[str, str], text: str, author: str, at: datetime) -> str:
        """Commit files on top of the last commit, and move the branch there."""
        head = self._head()
        tree = self._tree(head, blobs)
        who = re.sub(r"[<>\n\x00]", " ", author).strip() or "lukasa"
        stamp = f"{int(at.timestamp())} +0000"
        identity = {
            f"GIT_{role}_{part}": value
            for role in ("AUTHOR", "COMMITTER")
            for part, value in (("NAME", who), ("EMAIL", EMAIL), ("DATE", stamp))
        }
        parents = ("-p", head) if head is not None else ()
        made = self._git("commit-tree", tree, *parents, given=text.encode(), env=identity).decode().strip()
        self._git("update-ref", "-m", "lukasa", "HEAD", made, head or "0" * 40)
        self._git("update-index", "--add", *_cached(blobs))
        return made

    def _tree(self, head: str | None, blobs: Mapping[str, str]) -> str:
        """Write a tree: the last commit's, with these files. A separate index leaves alone what a person has staged."""
        index = {"GIT_INDEX_FILE": str(self.folder / ".git" / "lukasa-index")}
        self._git("read-tree", *((head,) if head is not None else ("--empty",)), env=index)
        self._git("update-index", "--add", *_cached(blobs), env=index)
        return self._git("write-tree", env=index).decode().strip()

    def _exists(self) -> bool:
        return (self.folder / ".git" / "HEAD").is_file()

    def _head(self) -> str | None:
        found = self._git("rev-parse", "--quiet", "--verify", "HEAD", check=False).decode().strip()
        return found or None

    def _git(self, *args: str, given: bytes = b"", env: Mapping[str, str] | None = None, check: bool = True) -> bytes:
        kept = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
        own = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1", "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}
        settings = (word for setting in _SETTINGS for word in ("-c", setting))
        place = (f"--git-dir={self.folder / '.git'}", f"--work-tree={self.folder}")
        try:
            done = subprocess.run(
                [self.program, *settings, *place, *args],
                input=given,
                capture_output=True,
                env={**kept, **own, **(env or {})},
                cwd=self.folder,
                timeout=SECONDS,
                check=False,
            )
        except FileNotFoundError:
            raise GitMissing(
                "git is not installed on this machine", fix="install git, then run `lukasa curated export`"
            ) from None
        except (OSError, subprocess.TimeoutExpired) as error:
            raise GitError(
                f"git {args[0]} could not run to its end: {type(error).__name__}", fix="try again"
            ) from error
        if check and done.returncode != 0:
            said = done.stderr.decode("utf-8", "replace").strip().splitlines()
            why = said[-1][:200] if said else f"exit code {done.returncode}"
            raise GitError(f"git {args[0]} failed in {self.folder}: {why}", fix="repair the repository, then try again")
        return done.stdout


def _plain_environment() -> dict[str, str]:
    kept = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
    return {**kept, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1", "LC_ALL": "C"}


def _without(stream: bytes, words: Words) -> bytes:
    """Return an export of a repository without some words: in texts, in messages, and in names of files and people."""
    out, place = list[bytes](), 0
    while place < len(stream):
        end = stream.find(b"\n", place)
        end = len(stream) if end < 0 else end
        row = stream[place:end]
        place = end + 1
        if row.startswith(b"data "):
            size = int(row[5:])
            text = words.lines_out(stream[place : place + size])
            out += [b"data %d\n" % len(text), text]
            place += size
        elif row.startswith((b"M ", b"D ")):
            out += [words.lines_out(row).replace(ERASED.encode(), b"erased--"), b"\n"]
        elif row.startswith((b"author ", b"committer ", b"tagger ")):
            out += [words.lines_out(row), b"\n"]
        else:
            out += [row, b"\n"]
    return b"".join(out)


def _cached(blobs: Mapping[str, str]) -> list[str]:
    return [word for name, blob in blobs.items() for word in ("--cacheinfo", f"100644,{blob},{name}")]


def _matches(name: str, patterns: Sequence[str]) -> bool:
    if name == FILE or ".." in PurePosixPath(name).parts:
        return False
    return any(name.count("/") == p.count("/") and PurePosixPath(name).match(p) for p in patterns)


def _body(data: bytes, where: str) -> str:
    """Return the text of a file without the line break at its end."""
    if len(data) > MOST_BYTES:
        raise InvalidContent(f"{where} has more than {MOST_BYTES:,} bytes", fix="shorten it")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidContent(f"{where} is not UTF-8 text ({error.reason})", fix="save it as UTF-8") from error
    return text.replace("\r\n", "\n").removesuffix("\n")
