"""A file system that fails on request: the k-th write or sync from when it is armed."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import apsw

Fault = Literal["full", "write", "sync", "crammed"]


class FaultyVFS(apsw.VFS):
    """Passes everything on to the default one, but for the one call it was armed for; then all later ones too.

    A disk that is full stays full until it is mended. A crammed one has no room even for SQLite's side files, until
    a file that fills it gets shorter.
    """

    def __init__(self, name: str) -> None:
        super().__init__(name, "")
        self.fault: Fault | None = None
        self.left = 0
        self.hits = 0
        self.filler: Path | None = None
        self.filled = 0

    def cram(self, filler: Path) -> None:
        """There is no room for another file until this one is shorter than now."""
        self.fault, self.filler, self.filled = "crammed", filler, filler.stat().st_size

    @property
    def crammed(self) -> bool:
        filler = self.filler if self.fault == "crammed" else None
        return filler is not None and filler.exists() and filler.stat().st_size >= self.filled

    def arm(self, fault: Fault, at: int) -> None:
        self.fault, self.left, self.hits = fault, at, 0

    def mend(self) -> None:
        self.fault = None

    def strikes(self, call: Literal["write", "sync"]) -> bool:
        concerned = self.fault == call or (self.fault == "full" and call == "write")
        if concerned:
            self.left -= 1
        struck = concerned and self.left <= 0
        self.hits += struck
        return struck

    def xOpen(self, name: str | apsw.URIFilename | None, flags: list[int]) -> apsw.VFSFile:
        if self.crammed and flags[0] & apsw.SQLITE_OPEN_WAL:
            raise apsw.FullError("no room for another file")
        return _FaultyFile(self, name, flags)


class _FaultyFile(apsw.VFSFile):
    def __init__(self, vfs: FaultyVFS, name: str | apsw.URIFilename | None, flags: list[int]) -> None:
        super().__init__("", name, flags)
        self._vfs = vfs

    def xWrite(self, data: bytes, offset: int) -> None:
        if self._vfs.strikes("write"):
            raise apsw.FullError("full") if self._vfs.fault == "full" else apsw.IOError("write failed")
        super().xWrite(data, offset)

    def xSync(self, flags: int) -> None:
        if self._vfs.strikes("sync"):
            raise apsw.IOError("sync failed")
        super().xSync(flags)
