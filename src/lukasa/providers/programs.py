"""Run a program of the user's with a deadline and bounded output, and end all that it leaves behind."""

from __future__ import annotations

import contextlib
import os
import selectors
import subprocess
import threading
import time
from collections.abc import Iterator
from typing import IO

from lukasa.model import system

_MOST_COMPLAINT = 65_536  # bytes of stderr; the last ones
_PIECE = 65_536
_POLL = 0.1  # seconds until we look again whether the program has ended, if it writes nothing


class TooLong(Exception):
    """The program wrote more than it may."""


@contextlib.contextmanager
def ended(process: subprocess.Popen[bytes]) -> Iterator[None]:
    """Kill the process group at the end, whatever happens: the program may have left processes, or still run."""
    try:
        yield
    finally:
        system.end_group(process)
        process.wait()
        for stream in (process.stdin, process.stdout, process.stderr):
            if stream is not None:
                stream.close()


def exchange(process: subprocess.Popen[bytes], given: bytes, ends: float, most: int) -> tuple[bytes, bytes]:
    """Write what the program is given, read stdout and the end of stderr, and wait for the program to end."""
    assert process.stdin
    assert process.stdout
    assert process.stderr
    if not system.waits_for_pipes():
        return _exchange_by_threads(process, given, ends, most)
    streams: tuple[IO[bytes], ...] = (process.stdin, process.stdout, process.stderr)
    for stream in streams:
        os.set_blocking(stream.fileno(), False)
    rest, out, complaint = memoryview(given), bytearray(), bytearray()
    with selectors.DefaultSelector() as waiting:
        waiting.register(process.stdin, selectors.EVENT_WRITE)
        waiting.register(process.stdout, selectors.EVENT_READ)
        waiting.register(process.stderr, selectors.EVENT_READ)
        while any(stream in waiting.get_map() for stream in streams[1:]):
            ended = process.poll() is not None  # before the select, so that its last words are still read
            ready = waiting.select(0 if ended else min(_POLL, _left(ends)))
            if ended and not ready:
                break  # a process that it left behind holds the streams
            for key, _ in ready:
                if key.fileobj is process.stdin:
                    rest = rest[_written(process.stdin, rest) :]
                    if not rest:
                        waiting.unregister(process.stdin)
                        process.stdin.close()
                    continue
                piece = os.read(key.fd, _PIECE)
                if not piece:
                    waiting.unregister(key.fileobj)
                elif key.fileobj is process.stdout:
                    out += piece
                    if len(out) > most:
                        raise TooLong
                else:
                    complaint = (complaint + piece)[-_MOST_COMPLAINT:]
            _left(ends)
    try:
        process.wait(_left(ends))
    except subprocess.TimeoutExpired:
        raise TimeoutError from None
    return bytes(out), bytes(complaint)


def _exchange_by_threads(process: subprocess.Popen[bytes], given: bytes, ends: float, most: int) -> tuple[bytes, bytes]:
    """Do the same where nobody can wait for several pipes at once: a thread writes, and one reads each stream."""
    assert process.stdin
    assert process.stdout
    assert process.stderr
    out, complaint, too_long = bytearray(), bytearray(), threading.Event()

    def write(into: IO[bytes]) -> None:
        with contextlib.suppress(OSError, ValueError):
            into.write(given)
            into.close()

    def read(stream: IO[bytes], into: bytearray, bound: int) -> None:
        with contextlib.suppress(OSError, ValueError):
            while piece := os.read(stream.fileno(), _PIECE):
                into += piece
                if len(into) > bound and into is out:
                    too_long.set()
                    return
                del into[: max(0, len(into) - bound)]

    threads = [
        threading.Thread(target=write, args=(process.stdin,), daemon=True),
        threading.Thread(target=read, args=(process.stdout, out, most), daemon=True),
        threading.Thread(target=read, args=(process.stderr, complaint, _MOST_COMPLAINT), daemon=True),
    ]
    for thread in threads:
        thread.start()
    while process.poll() is None and not too_long.is_set():
        threads[1].join(min(_POLL, _left(ends)))
    for thread in threads[1:]:
        thread.join(0 if too_long.is_set() else _POLL)  # a process that it left behind may hold the streams
    if too_long.is_set():
        raise TooLong
    return bytes(out), bytes(complaint)


def _left(ends: float) -> float:
    left = ends - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left


def _written(stream: IO[bytes], rest: memoryview) -> int:
    """Write a piece and return its length; the whole rest counts as written if the program reads no more."""
    try:
        return os.write(stream.fileno(), rest[:_PIECE])
    except BlockingIOError:
        return 0
    except BrokenPipeError:
        return len(rest)
