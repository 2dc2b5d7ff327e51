"""One request to one checked address: no proxy, no cookie, and bounds on time, headers and body."""

from __future__ import annotations

import contextlib
import http.client
import io
import socket
import ssl
import time
import zlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct

from lukasa.model.errors import FetchFailed
from lukasa.providers.web.addresses import Address, Target

_PIECE = 65_536
_FIX = "try again later, or check the URL in a browser"


class WebLimits(Struct, frozen=True, kw_only=True):
    """Bounds on one fetch, all its redirects together."""

    seconds: float = 60.0
    silence: float = 20.0
    """Seconds without a single byte."""
    header_bytes: int = 65_536
    body_bytes: int = 32 * 2**20
    """As it arrives, and also after it is unpacked."""
    redirects: int = 5


class Answer(Struct, frozen=True):
    """What a server said. The headers are those of its last line of that name, in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


def exchange(
    target: Target,
    addresses: Sequence[Address],
    headers: Mapping[str, str],
    limits: WebLimits,
    ends: float,
    trust: ssl.SSLContext | None = None,
) -> Answer:
    """Send a GET to the first of these addresses that takes a connection, and return the answer."""
    try:
        with _connected(target, addresses, limits, ends, trust) as connected:
            return _answer(target, _Wire(connected, limits, ends), headers, limits)
    except ssl.SSLCertVerificationError as error:
        raise FetchFailed(f"the certificate of {target.host} is not valid: {error.verify_message}", fix=_FIX) from None
    except TimeoutError:
        raise FetchFailed(
            f"{target.host} did not answer whole within {limits.seconds:g} s, or was silent for {limits.silence:g} s",
            fix=_FIX,
        ) from None
    except (http.client.HTTPException, ValueError, OSError, zlib.error) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else type(error).__name__
        raise FetchFailed(f"{target.host} gave no answer that can be read ({reason})", fix=_FIX) from None


@contextlib.contextmanager
def _connected(
    target: Target, addresses: Sequence[Address], limits: WebLimits, ends: float, trust: ssl.SSLContext | None
) -> Iterator[socket.socket]:
    plain = _connect(target, addresses, limits, ends)
    with contextlib.closing(plain):
        if not target.secure:
            yield plain
            return
        plain.settimeout(_left(ends, limits.silence))
        secured = (trust or ssl.create_default_context()).wrap_socket(plain, server_hostname=target.host)
        with contextlib.closing(secured):
            yield secured


def _connect(target: Target, addresses: Sequence[Address], limits: WebLimits, ends: float) -> socket.socket:
    refused: OSError | None = None
    for address in addresses:
        try:
            return socket.create_connection((str(address), target.port), _left(ends, limits.silence / 2))
        except TimeoutError:
            refused = refused or TimeoutError()
            _left(ends, limits.silence)
        except OSError as error:
            refused = error
    raise refused or OSError("no address")


def _left(ends: float, most: float) -> float:
    left = ends - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return min(left, most)


class _Wire(io.RawIOBase):
    """A connection as a file that is read within bounds of time and size."""

    def __init__(self, connected: socket.socket, limits: WebLimits, ends: float) -> None:
        self._socket, self._limits, self._ends = connected, limits, ends
        self.rest = limits.header_bytes

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if self.rest <= 0:
            raise _TooLarge
        self._socket.settimeout(_left(self._ends, self._limits.silence))
        count = self._socket.recv_into(buffer)
        self.rest -= count
        return count

    def send(self, data: bytes) -> None:
        self._socket.settimeout(_left(self._ends, self._limits.silence))
        self._socket.sendall(data)


class _Socket:
    """What `http.client` needs of a socket. It closes this before it reads the body, and the file stays open."""

    def __init__(self, wire: _Wire) -> None:
        self._wire = wire
        self.sendall = wire.send

    def makefile(self, mode: str) -> io.BufferedReader:
        return io.BufferedReader(self._wire)

    def close(self) -> None:
        """Leave the connection to the block that opened it."""


class _Connection(http.client.HTTPConnection):
    """A connection that is open already: opening it again would resolve the name again."""

    def __init__(self, target: Target, wire: _Wire) -> None:
        super().__init__(target.host, target.port)
        self._wire = wire

    def connect(self) -> None:
        self.sock: Any = _Socket(self._wire)


class _TooLarge(ValueError):
    """The answer is larger than it may be."""


def _answer(target: Target, wire: _Wire, headers: Mapping[str, str], limits: WebLimits) -> Answer:
    connection = _Connection(target, wire)
    try:
        connection.request("GET", target.path, headers={"Host": target.authority, **headers})
        response = connection.getresponse()
        said = {name.lower(): value.strip() for name, value in response.getheaders()}
        length = said.get("content-length", "")
        if length.isdigit() and int(length) > limits.body_bytes:
            raise _TooLarge
        wire.rest = limits.body_bytes + limits.header_bytes
        body = b"" if response.status // 100 == 3 else _body(response, said.get("content-encoding", ""), limits)
    except _TooLarge:
        raise FetchFailed(
            f"the answer of {target.host} is larger than {limits.body_bytes:,} bytes, or its headers are larger "
            f"than {limits.header_bytes:,}",
            fix="get the file yourself, and give its path",
        ) from None
    return Answer(response.status, said, body)


def _body(response: http.client.HTTPResponse, encoding: str, limits: WebLimits) -> bytes:
    unpack = _unpacker(encoding)
    found = bytearray()
    while piece := response.read(_PIECE):
        found += piece if unpack is None else unpack.decompress(piece, limits.body_bytes + 1 - len(found))
        if len(found) > limits.body_bytes:
            raise _TooLarge
        if unpack is not None and unpack.eof:
            break
    if unpack is not None and not unpack.eof and found:
        raise http.client.IncompleteRead(b"")
    if (unpack is None or not unpack.eof) and response.length:
        raise http.client.IncompleteRead(b"")
    return bytes(found)


def _unpacker(encoding: str) -> Any:
    """Return what unpacks a body; None if it is as it is."""
    if encoding.lower() in ("", "identity"):
        return None
    if encoding.lower() in ("gzip", "x-gzip"):
        return zlib.decompressobj(16 + zlib.MAX_WBITS)
    raise http.client.UnknownTransferEncoding(encoding)
