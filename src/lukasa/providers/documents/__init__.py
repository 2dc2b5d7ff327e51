"""Read documents: markdown, text, HTML, PDF, EPUB, source code. Nobody trusts these files.

Small texts are parsed here, by rules that take a line at a time. Everything else goes through a process of its own,
which is bounded in time and memory, opens nothing and is replaced after a failure. Nothing that a file links to is
fetched.
"""

from __future__ import annotations

import contextlib
import os
import threading
import weakref
from importlib.util import find_spec

from lukasa.model.corpus import ParsedDocument
from lukasa.model.errors import MissingExtra, UnreadableDocument, brief
from lukasa.providers.documents import pdf
from lukasa.providers.documents.formats import Format, detect
from lukasa.providers.documents.limits import Limits
from lukasa.providers.documents.process import Gone, ParserProcess
from lukasa.providers.documents.reading import read

__all__ = ["FileParser", "Limits"]

_HERE = frozenset(("markdown", "text", "restructuredtext", "code", "notebook"))
_MOST_HERE = 2 * 2**20  # bytes of a text that is parsed in this process
_LONGEST_NAME = 200


class FileParser:
    """Parses files, from any number of threads. Close it to end its processes; they also end with the program."""

    def __init__(self, limits: Limits | None = None) -> None:
        self.limits = limits or Limits()
        self._idle: list[ParserProcess] = []
        self._most = os.cpu_count() or 1
        self._turn = threading.BoundedSemaphore(self._most)
        self._ended = weakref.finalize(self, _close, self._idle)

    def parse(self, data: bytes, *, name: str, media_type: str = "") -> ParsedDocument:
        """Return the document in these bytes; see `DocumentParser`."""
        try:
            return self._parse(data, name, media_type)
        except UnreadableDocument as error:
            shown = brief(name, _LONGEST_NAME)
            raise UnreadableDocument(f"{shown}: {error.message}" if shown else error.message, fix=error.fix) from error

    def _parse(self, data: bytes, name: str, media_type: str) -> ParsedDocument:
        if len(data) > self.limits.file_bytes:
            raise UnreadableDocument(
                f"it has {len(data):,} bytes, more than {self.limits.file_bytes:,}",
                fix="split the file, or read it with a higher limit `file_bytes`",
            )
        if not data.strip(b" \t\r\n\0"):
            raise UnreadableDocument("it is empty", fix="give a file that holds text")
        form = detect(data, name, media_type)
        if form.kind == "pdf" and find_spec(pdf.PACKAGE) is None:
            raise MissingExtra(
                f"{brief(name, _LONGEST_NAME)}: to read a PDF, Lukasa needs the package {pdf.PACKAGE}",
                fix="pip install 'lukasa[corpus]'",
            )
        if form.kind in _HERE and len(data) <= _MOST_HERE:
            return read(data, name, form, self.limits)
        with self._turn:
            return self._apart(data, name, form)

    def _apart(self, data: bytes, name: str, form: Format) -> ParsedDocument:
        """Parse in another process: one that waits, or a new one."""
        process = self._waiting() or ParserProcess()
        try:
            document = process.parse(data, name, form, self.limits)
        except Gone:
            process = ParserProcess()
            document = process.parse(data, name, form, self.limits)
        finally:
            if process.usable:
                self._idle.append(process)
            else:
                process.close()
        return document

    def _waiting(self) -> ParserProcess | None:
        with contextlib.suppress(IndexError):
            while True:
                process = self._idle.pop()
                if process.usable:
                    return process
                process.close()
        return None

    def close(self) -> None:
        """End the processes that wait for files. The next file starts a new one."""
        _close(self._idle)


def _close(idle: list[ParserProcess]) -> None:
    with contextlib.suppress(IndexError):
        while True:
            idle.pop().close()
