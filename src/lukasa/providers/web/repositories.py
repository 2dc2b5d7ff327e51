"""Clone a repository to look at it: its newest commit, without a working tree, within bounds of size and time.

git runs without settings, credentials, hooks, submodules and proxies. Its connections go to addresses that were checked
before, and it follows no redirect: we find out where the repository is by a request of our own.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path
from urllib.parse import unquote, urlsplit

from msgspec import Struct

from lukasa.model import system
from lukasa.model.discovery import Repository, RepositoryFile
from lukasa.model.errors import AddressRefused, FetchFailed, GitError, GitMissing, InvalidInput
from lukasa.providers.programs import ended
from lukasa.providers.web.addresses import AddressGuard, Target, read_url

MOST_FILES = 50_000
DOCUMENTS, DOCUMENT_BYTES = 12, 256 * 1024
_ALL_BYTES = 1024 * 1024
_POLL = 0.05  # seconds between two looks at the size
_OLD = 3600.0  # seconds after which a folder was left by a process that was killed
_PREFIX = "lukasa-clone-"
_PINNING = (2, 37)  # the first git that can be told the address of a name
_README = re.compile(r"readme(\.(md|markdown|rst|txt|org|adoc))?", re.IGNORECASE)
_DOCUMENT = re.compile(r"(docs?/.*|[^/]*)\.(md|markdown|rst)", re.IGNORECASE)
_SETTINGS = (
    ("core.hooksPath", os.devnull),
    ("core.fsmonitor", "false"),
    ("core.symlinks", "false"),
    ("credential.helper", ""),
    ("http.proxy", ""),
    ("http.followRedirects", "false"),
    ("http.lowSpeedLimit", "1000"),
    ("http.lowSpeedTime", "20"),
    ("protocol.allow", "never"),
    ("transfer.bundleURI", "false"),
    ("gc.auto", "0"),
    ("submodule.recurse", "false"),
)
_KEPT = ("PATH", "TMPDIR", "SSL_CERT_FILE", "SSL_CERT_DIR", "SYSTEMROOT")


class CloneLimits(Struct, frozen=True, kw_only=True):
    """Bounds on one clone."""

    seconds: float = 120.0
    bytes: int = 256 * 2**20
    """Of all that git writes."""


def local_path(url: str) -> str:
    """Return the path of a file:// URL; InvalidInput for one that names a host."""
    parts = urlsplit(url)
    path = unquote(parts.path)
    if parts.netloc not in ("", "localhost") or not path.startswith("/") or not path.isprintable():
        raise InvalidInput(f"{url[:120]!r} names no folder of this machine", fix="write file:///path/of/the/repository")
    return path


def clone_local(url: str, limits: CloneLimits) -> Repository:
    """Return a repository of this machine."""
    return _looked_at(url, f"file://{local_path(url)}", "file", (), limits, shallow=True)


def clone_web(
    found: str, guard: AddressGuard, limits: CloneLimits, *, smart: bool, public_only: bool, url: str
) -> Repository:
    """Return the repository at an address that a request found. A `smart` server sends the newest commit alone."""
    target = read_url(found)
    pins = _pins(target, guard, public_only)
    return _looked_at(url, target.url.rstrip("/"), target.scheme, pins, limits, shallow=smart)


def _pins(target: Target, guard: AddressGuard, public_only: bool) -> tuple[str, ...]:
    addresses = guard.addresses(target, 20.0, public_only=public_only)
    if target.literal is not None:
        return ()
    if _version() < _PINNING:
        raise GitError(
            "this git cannot be held to an address that was checked",
            fix=f"install git {'.'.join(map(str, _PINNING))} or newer",
        )
    listed = ",".join(f"[{one}]" if one.version == 6 else str(one) for one in addresses)
    return ("-c", f"http.curloptResolve={target.host}:{target.port}:{listed}")


def _version() -> tuple[int, ...]:
    program = shutil.which("git")
    if program is None:
        raise GitMissing("git is not installed on this machine", fix="install git, or give the URL of a page")
    said = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=20, check=False).stdout
    found = re.match(r"git version (\d{1,5})\.(\d{1,5})", said)
    return (int(found[1]), int(found[2])) if found else (0, 0)


def _looked_at(
    url: str, address: str, protocol: str, pins: Sequence[str], limits: CloneLimits, *, shallow: bool
) -> Repository:
    with _folder() as folder:
        git = _Git(folder, protocol, pins, limits)
        depth = ("--depth=1",) if shallow else ()
        options = ("--bare", "--quiet", "--no-tags", "--single-branch", "--template=", "--no-local", *depth)
        git.run("clone", *options, "--", address, str(folder / "repository"))
        try:
            commit = git.read("rev-parse", "--verify", "HEAD^{commit}").decode("ascii", "replace").strip()
        except GitError:
            raise FetchFailed(f"{url[:120]!r} is an empty repository", fix="give one that has a commit") from None
        paths = _tree(git.read("ls-tree", "-r", "-l", "-z", "--full-tree", commit))
        documents, left_out = _documents(git, commit, paths)
        return Repository(url, commit, tuple((path, size) for path, size in paths), documents, left_out)


@contextlib.contextmanager
def _folder() -> Iterator[Path]:
    """Make a folder for a clone, and remove it afterwards, as well as those that killed processes left."""
    for old in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        with contextlib.suppress(OSError):
            about = old.lstat()
            if system.is_mine(about) and time.time() - about.st_mtime > _OLD:
                shutil.rmtree(old, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix=_PREFIX, ignore_cleanup_errors=True) as made:
        yield Path(made)


class _Git:
    """git in a clean environment, for one clone."""

    def __init__(self, folder: Path, protocol: str, pins: Sequence[str], limits: CloneLimits) -> None:
        program = shutil.which("git")
        if program is None:
            raise GitMissing("git is not installed on this machine", fix="install git, or give the URL of a page")
        words = [word for name, value in _SETTINGS for word in ("-c", f"{name}={value}")]
        self._start = [program, *words, "-c", f"protocol.{protocol}.allow=always", *pins]
        self._folder, self._limits = folder, limits
        self._ends = time.monotonic() + limits.seconds
        self._env = {name: os.environ[name] for name in _KEPT if name in os.environ} | {
            "HOME": str(folder),
            "XDG_CONFIG_HOME": str(folder),
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_TERMINAL_PROMPT": "0",
            "GIT_ASKPASS": "",
            "SSH_ASKPASS": "",
            "GIT_ALLOW_PROTOCOL": protocol,
            "GIT_PROTOCOL_FROM_USER": "0",
            "GIT_NO_LAZY_FETCH": "1",
            "GIT_OPTIONAL_LOCKS": "0",
            "GIT_CEILING_DIRECTORIES": str(folder),
            "LC_ALL": "C",
        }

    def run(self, *words: str) -> None:
        """Run git, and end it when it takes too long or writes too much."""
        said = self._folder / "said"
        with said.open("wb") as errors:
            process = subprocess.Popen(
                [*self._start, *words],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=errors,
                env=self._env,
                cwd=self._folder,
                start_new_session=True,
            )
            with ended(process):
                _limit(process.pid, self._limits)
                while True:
                    try:
                        process.wait(_POLL)
                        break
                    except subprocess.TimeoutExpired:
                        self._within_bounds()
        self._within_bounds()
        if process.returncode:
            raise FetchFailed(f"git cannot clone it: {_reason(said)}", fix="check the address with `git ls-remote`")

    def _within_bounds(self) -> None:
        if time.monotonic() > self._ends:
            raise self._too_slow()
        if _size(self._folder) > self._limits.bytes:
            most = f"{self._limits.bytes:,} bytes"
            raise FetchFailed(f"the repository is larger than {most}", fix="give the URL of its README")

    def _too_slow(self) -> FetchFailed:
        most = f"{self._limits.seconds:g} s"
        return FetchFailed(f"the clone took longer than {most}", fix="give the URL of its README")

    def read(self, *words: str) -> bytes:
        """Return what git prints about the clone."""
        try:
            done = subprocess.run(
                [*self._start, "--git-dir", str(self._folder / "repository"), *words],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                env=self._env,
                cwd=self._folder,
                timeout=max(0.1, self._ends - time.monotonic()),
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise self._too_slow() from None
        if done.returncode:
            raise GitError(f"git cannot {words[0]}", fix="check the repository with `git fsck`")
        return done.stdout


def _limit(process: int, most: CloneLimits) -> None:
    """Let the system bound git too, in case this process is killed and cannot end it."""
    with contextlib.suppress(ImportError, AttributeError, OSError, ValueError):
        limits = import_module("resource")
        limits.prlimit(process, limits.RLIMIT_FSIZE, (most.bytes, most.bytes))
        limits.prlimit(process, limits.RLIMIT_CPU, (int(most.seconds) + 1, int(most.seconds) + 1))


def _reason(said: Path) -> str:
    """Return the last words of git, in one line that can be printed."""
    lines = said.read_bytes()[-2_000:].decode("utf-8", "replace").split("\n")
    told = [line for line in lines if line.strip()]
    return "".join(c for c in (told[-1] if told else "it gave no reason") if c.isprintable())[:300]


def _size(folder: Path) -> int:
    total = 0
    for where, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(OSError):
                total += os.lstat(os.path.join(where, name)).st_size
    return total


def _tree(listed: bytes) -> list[tuple[str, int]]:
    """Read `ls-tree`: regular files alone, without links and submodules."""
    found = []
    for line in listed.split(b"\0")[: MOST_FILES + 1]:
        about, _, path = line.partition(b"\t")
        words = about.split()
        if len(words) == 4 and words[0] in (b"100644", b"100755") and words[3].isdigit():
            found.append((path.decode("utf-8", "replace"), int(words[3])))
    return found[:MOST_FILES]


def _documents(git: _Git, commit: str, paths: Sequence[tuple[str, int]]) -> tuple[tuple[RepositoryFile, ...], int]:
    """Read the README and some documents, those nearest to the top first."""
    readmes = [one for one in paths if _README.fullmatch(one[0])]
    others = [one for one in paths if _DOCUMENT.fullmatch(one[0]) and one not in readmes]
    wanted = [*readmes[:1], *sorted(others, key=lambda one: (one[0].count("/"), one[0]))]
    room = _ALL_BYTES
    read: list[RepositoryFile] = []
    for path, size in wanted:
        if len(read) >= DOCUMENTS or size > min(room, DOCUMENT_BYTES) or not size:
            continue
        room -= size
        with contextlib.suppress(GitError):
            read.append(RepositoryFile(path, git.read("cat-file", "blob", f"{commit}:{path}")))
    return tuple(read), len(wanted) - len(read)


def refuse_other(url: str) -> None:
    """Refuse addresses that git knows and that are not looked at: ssh, its own protocol, helpers, options."""
    if re.match(r"[\w.+-]+@[\w.-]+:", url) or urlsplit(url).scheme in ("ssh", "git", "git+ssh", "ext", "fd"):
        raise AddressRefused(
            f"{url[:120]!r} is an address for git that is not looked at", fix="give the https URL of the repository"
        )
