"""Loaded by the interpreter at its start: Lukasa gets a system that lacks what Windows lacks, so the fallbacks work.

`lukasa.model.system` is the only module that asks for these means (`tests/architecture/test_portability.py`), so it
alone is loaded without them, and other packages keep them. The locks of byte ranges, which Windows has instead, are
made from this system's.
"""

import asyncio
import asyncio.unix_events
import fcntl
import importlib.abc
import os
import struct
import sys
import types

GONE = """
    O_CLOEXEC O_NOFOLLOW O_NONBLOCK O_NOCTTY O_DIRECTORY fchmod pread pwrite statvfs getuid register_at_fork killpg
    posix_spawn POSIX_SPAWN_OPEN
""".split()


def _locking(descriptor: int, mode: int, size: int) -> None:
    first = os.lseek(descriptor, 0, os.SEEK_CUR)
    # Locks of this kind belong to open files, as on Windows, and not to processes.
    fcntl.fcntl(descriptor, 37, struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, first, size, 0))  # F_OFD_SETLK


class _NoLocks(importlib.abc.MetaPathFinder):
    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        if name == "fcntl":
            raise ModuleNotFoundError("No module named 'fcntl'", name="fcntl")


def _load() -> None:
    msvcrt, bare, hidden = types.ModuleType("msvcrt"), types.ModuleType("os"), _NoLocks()
    vars(msvcrt).update(LK_NBLCK=2, locking=_locking)
    vars(bare).update({name: value for name, value in vars(os).items() if name not in GONE})
    sys.modules["msvcrt"], sys.modules["os"] = msvcrt, bare
    del sys.modules["fcntl"]
    sys.meta_path.insert(0, hidden)
    try:
        import lukasa.model.system as system
    finally:
        sys.meta_path.remove(hidden)
        sys.modules["os"], sys.modules["fcntl"] = os, fcntl
    system.sockets_are_files = system.waits_for_pipes = lambda: False


_load()
setattr(asyncio.unix_events._UnixSelectorEventLoop, "add_signal_handler", asyncio.AbstractEventLoop.add_signal_handler)
