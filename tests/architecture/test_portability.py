"""What systems do differently is in one module, so that a fallback that is missing is seen there."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.architecture.test_layers import FILES, ROOT, imports

SYSTEM = ROOT / "src" / "lukasa" / "model" / "system.py"
MODULES = {"fcntl", "msvcrt", "pwd", "grp", "termios", "tty", "pty", "syslog", "crypt", "posix", "nt", "winreg"}
# Of `os`, `socket` and `signal`: what at least one of Linux, macOS and Windows does not have.
NAMES = set(
    """
    O_CLOEXEC O_NOFOLLOW O_NONBLOCK O_NOCTTY O_DIRECTORY O_DIRECT O_PATH O_TMPFILE O_BINARY fchmod fchown chown lchown
    pread pwrite statvfs fstatvfs posix_fallocate posix_fadvise getuid geteuid getgid getpgid getppid uname nice
    sched_getaffinity getloadavg fork forkpty register_at_fork killpg kill setsid setpgid posix_spawn wait4 mkfifo
    memfd_create sendfile copy_file_range eventfd pidfd_open set_blocking fdatasync sync AF_UNIX SIGKILL SIGHUP SIGUSR1
    SIGUSR2 SIGALRM SIGQUIT setitimer alarm pause
    """.split()
)
FOLDERS = ("/proc", "/sys/", "/etc/", "/bin/", "/usr/", "/var/", "/dev/shm")
# Each with the reason why it is no trouble elsewhere.
ALLOWED = {
    ("providers/programs.py", "set_blocking"): "only where one thread can wait for several pipes",
    ("surfaces/http/links.py", "AF_UNIX"): "only where sockets are files",
}


@pytest.mark.parametrize("path", [path for path in FILES if path != SYSTEM], ids=lambda p: p.stem)
def test_only_one_module_knows_the_system(path: Path) -> None:
    """Portability: no other module imports, names or opens what a system may not have."""
    tree, here = FILES[path], path.relative_to(ROOT / "src" / "lukasa").as_posix()
    assert not {module.split(".")[0] for module, _, _ in imports(tree)} & MODULES
    named = {
        node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in MODULES_OF_NAMES
    }
    assert {name for name in named & NAMES if (here, name) not in ALLOWED} == set()
    texts = {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    assert [text for text in texts if text.startswith(FOLDERS) and " " not in text] == []


MODULES_OF_NAMES = {"os", "socket", "signal", "time"}


def test_replacing_is_not_renaming() -> None:
    """Portability: a rename onto a file that is there fails on Windows; `replace` does not."""
    renamed = [
        f"{path.name}:{node.lineno}"
        for path, tree in FILES.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and node.attr == "rename" and isinstance(node.value, ast.Name)
        if node.value.id in ("temporary", "scratch", "fresh_file", "partial")
    ]
    # A folder to a name that is free, and a mark that must not replace another one.
    assert {place.partition(":")[0] for place in renamed} == {"page_folder.py", "folder.py"}
