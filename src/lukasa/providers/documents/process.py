"""The parent's side of the process that parses: start it, give it a file, and end it when it takes too long."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading

import msgspec

from lukasa.model.corpus import ParsedDocument
from lukasa.model.errors import UnreadableDocument
from lukasa.providers.documents.formats import Format
from lukasa.providers.documents.limits import Limits
from lukasa.providers.documents.reading import Reply, Request
from lukasa.providers.documents.worker import SIZE

# `-I -S` keeps out the environment and all that installs itself at a start, so the folders of modules are given.
_START = (
    "import runpy, sys; sys.path[:] = sys.argv[1:]; "
    "runpy.run_module('lukasa.providers.documents.worker', run_name='__main__')"
)
_KEPT_IN_ENVIRONMENT = (
    "SYSTEMROOT",
    "LD_LIBRARY_PATH",
    "DYLD_LIBRARY_PATH",
)  # without these some interpreters do not start
_ANSWER_BYTES = 6  # of each character of text, and as much for headings
_FIX = "split the file or save it in another format; a higher limit `{limit}` lets it through if it is only large"


class Gone(Exception):
    """The process ended between two files; nothing was lost."""


class ParserProcess:
    """One process. It serves a file at a time, and is not used again after a failure."""

    def __init__(self) -> None:
        paths = [os.path.abspath(path) for path in sys.path if path]
        environment = {name: value for name in _KEPT_IN_ENVIRONMENT if (value := os.environ.get(name))}
        self.owner = os.getpid()
        self._served = 0
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", _START, *paths],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment,
        )

    @property
    def usable(self) -> bool:
        """Whether another file may be given to it, by this process: a fork shares pipes, and must not."""
        return self.owner == os.getpid() and self._process.poll() is None

    def parse(self, data: bytes, name: str, form: Format, limits: Limits) -> ParsedDocument:
        late = threading.Event()
        timer = threading.Timer(limits.seconds, self._end, args=(late,))
        timer.daemon = True
        timer.start()
        try:
            reply = self._exchange(data, Request(name, form, limits, len(data)), limits)
        except (OSError, EOFError) as error:
            raise self._failure(late.is_set(), limits) from error
        finally:
            timer.cancel()
        self._served += 1
        if reply.document is None:
            raise UnreadableDocument(reply.error, fix=reply.fix)
        return reply.document

    def _exchange(self, data: bytes, request: Request, limits: Limits) -> Reply:
        given, answers = self._process.stdin, self._process.stdout
        assert given
        assert answers
        head = msgspec.msgpack.encode(request)
        given.write(SIZE.pack(len(head)) + head)
        given.write(data)
        given.flush()
        said = answers.read(SIZE.size)
        if len(said) < SIZE.size:
            raise EOFError
        size = SIZE.unpack(said)[0]
        if size > 2 * _ANSWER_BYTES * limits.characters + 2**20:
            raise EOFError
        packed = answers.read(size)
        if len(packed) < size:
            raise EOFError
        try:
            return msgspec.msgpack.decode(packed, type=Reply)
        except msgspec.MsgspecError as error:
            raise EOFError from error

    def _end(self, late: threading.Event) -> None:
        late.set()
        self._process.kill()

    def _failure(self, late: bool, limits: Limits) -> Exception:
        """Say why there is no answer, and end the process."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(1)  # it may be on its way out, and says why
        self.close()
        code = self._process.returncode
        if late:
            said, limit = f"it could not be read in {limits.seconds:g} seconds", "seconds"
        elif code == -getattr(signal, "SIGXCPU", 0) and code:
            said, limit = f"it could not be read in {limits.cpu_seconds:,} seconds of CPU time", "cpu_seconds"
        elif code == 0 and self._served:
            return Gone()
        else:
            said, limit = f"it breaks the parser, or needs more than {limits.memory // 2**20:,} MB of memory", "memory"
        return UnreadableDocument(said, fix=_FIX.format(limit=limit))

    def close(self) -> None:
        if self.owner != os.getpid():
            return
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            if stream:
                with contextlib.suppress(OSError):
                    stream.close()
