"""Loaded by the interpreter at its start, before anything else: notes every attempt to reach beyond this machine.

It listens to Python's own audit events, which no import and no library written in Python can go around.
"""

import os
import sys

WATCHED = {
    "socket.connect",
    "socket.sendto",
    "socket.sendmsg",
    "socket.getaddrinfo",
    "socket.gethostbyname",
    "socket.gethostbyaddr",
}
HERE = ("127.", "::1", "localhost", "0.0.0.0", "::")
_log = os.open(os.environ["OFFLINE_LOG"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)


def _guard(event: str, args: tuple[object, ...]) -> None:
    if event not in WATCHED:
        return
    target = args[1] if event in ("socket.connect", "socket.sendto", "socket.sendmsg") else args[0]
    host = target[0] if isinstance(target, tuple) else target
    if host is None or (isinstance(host, str | bytes) and _is_here(host, isinstance(target, tuple))):
        return
    os.write(_log, f"{event} {host!r}\n".encode("utf-8", "replace"))
    raise OSError(101, f"kept from the network: {event} {host!r}")


def _is_here(host: str | bytes, is_address: bool) -> bool:
    name = host.decode("utf-8", "replace") if isinstance(host, bytes) else host
    return name.startswith(HERE) or (not is_address and "." not in name)  # the latter: a socket that is a file


sys.addaudithook(_guard)
