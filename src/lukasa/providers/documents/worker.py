"""The process that parses files which nobody trusts. It reads requests from stdin and writes replies to stdout.

    python -I -S -c "…" worker

It has no environment, and its modules are loaded before the first file. Then it gives up what a parser never needs:
it can open no file and no connection, start no process and write nothing but its answers. Memory and CPU are bounded
by the operating system, where it can.
"""

from __future__ import annotations

import contextlib
import os
import select
import struct
import sys
from importlib import import_module
from importlib.util import find_spec
from typing import Any, BinaryIO

import msgspec

from lukasa.model.errors import UnreadableDocument
from lukasa.providers.documents import pdf
from lukasa.providers.documents.decoding import ENCODINGS
from lukasa.providers.documents.limits import Limits
from lukasa.providers.documents.reading import Reply, Request, read

SIZE = struct.Struct(">Q")
_IDLE = 60.0  # seconds without work after which the process ends
_MOST_REQUEST = 1_000_000
_LATE = (
    "encodings.utf_16_le",
    "encodings.utf_32_le",
    "encodings.cp1252",
    "html.entities",
    "zlib",
    "xml.etree.ElementTree",
)


def main() -> None:
    given, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    # A library that prints must not write into an answer.
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nowhere, stream)
    os.close(nowhere)
    _load()
    bounded = False
    while (request := _next(given)) is not None:
        data = _exactly(given, request.size)
        if not bounded:
            _give_up(request.limits)
            bounded = True
        _bound_cpu(request.limits)
        try:
            reply = Reply(read(data, request.name, request.format, request.limits))
        except UnreadableDocument as error:
            reply = Reply(error=error.message, fix=error.fix)
        except (MemoryError, RecursionError):
            sys.exit(3)  # nobody knows what state the libraries are in
        packed = msgspec.msgpack.encode(reply)
        answers.write(SIZE.pack(len(packed)) + packed)
        answers.flush()


def _load() -> None:
    """Load what is loaded on first use, while files can still be opened."""
    for name in _LATE:
        import_module(name)
    for encoding in ENCODINGS:
        "".encode(encoding)
    if find_spec(pdf.PACKAGE):
        import_module(pdf.PACKAGE)


def _next(given: BinaryIO) -> Request | None:
    """Wait for a file. There is none any more when the parent is gone, or has had none for a while."""
    with contextlib.suppress(OSError, ValueError):  # Windows cannot wait for a pipe with a deadline
        if not select.select([given], [], [], _IDLE)[0]:
            return None
    head = given.read(SIZE.size)
    if len(head) < SIZE.size:
        return None
    size = SIZE.unpack(head)[0]
    return msgspec.msgpack.decode(_exactly(given, size), type=Request) if size <= _MOST_REQUEST else None


def _exactly(given: BinaryIO, size: int) -> bytes:
    data = given.read(size)
    if len(data) < size:
        sys.exit(0)
    return data


def _give_up(limits: Limits) -> None:
    """Take from this process what a parser never needs."""
    with contextlib.suppress(ImportError):
        resource: Any = import_module("resource")
        for what, most in (
            (resource.RLIMIT_CORE, 0),
            (resource.RLIMIT_FSIZE, 0),
            (resource.RLIMIT_NOFILE, 0),
            (getattr(resource, "RLIMIT_NPROC", None), 0),
            (resource.RLIMIT_AS, limits.memory),
        ):
            with contextlib.suppress(ValueError, OSError, TypeError):  # a system that has no such bound
                resource.setrlimit(what, (most, most))


def _bound_cpu(limits: Limits) -> None:
    """Let the operating system end this process when this file has cost too much."""
    with contextlib.suppress(ImportError, ValueError, OSError):
        resource: Any = import_module("resource")
        used = resource.getrusage(resource.RUSAGE_SELF)
        _, hard = resource.getrlimit(resource.RLIMIT_CPU)
        resource.setrlimit(resource.RLIMIT_CPU, (int(used.ru_utime + used.ru_stime) + limits.cpu_seconds + 1, hard))


if __name__ == "__main__":
    main()
