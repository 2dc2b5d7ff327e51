"""Which URLs may be asked: http(s), a plain host, a usual port, and addresses that are public or that the owner allows.

A name is resolved once. All its addresses are checked, and a connection goes to one of them, so a second answer of the
name server changes nothing.
"""

from __future__ import annotations

import ipaddress
import queue
import re
import socket
import threading
from collections.abc import Callable, Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network
from urllib.parse import quote, urlsplit

from msgspec import Struct

from lukasa.model.errors import AddressRefused, FetchFailed, InvalidInput

ALLOW = "LUKASA_FETCH_ALLOW"
PORTS = frozenset({80, 443, 8000, 8080, 8443})
LONGEST = 4_096  # characters of a URL
_WIDEST = {4: 8, 6: 7}  # the shortest prefix that an owner may allow
_MOST_ADDRESSES = 32
_PLAIN_HOST = re.compile(r"[a-z0-9_-]{1,63}(\.[a-z0-9_-]{1,63})*")
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")
_KEPT = "/?:@!$&'()*+,;=-._~%[]"  # characters of a path and a query that stay as they are

Address = IPv4Address | IPv6Address
# Turns a name and a port into addresses, or raises OSError.
Resolver = Callable[[str, int], Sequence[str]]

# Beside what `ipaddress` calls private: relays, documentation, and the metadata address of a cloud that looks public.
_CLOSED_4 = tuple(
    IPv4Network(net)
    for net in """0.0.0.0/8 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 168.63.129.16/32 169.254.0.0/16 172.16.0.0/12
    192.0.0.0/24 192.0.2.0/24 192.88.99.0/24 192.168.0.0/16 198.18.0.0/15 198.51.100.0/24 203.0.113.0/24 224.0.0.0/4
    240.0.0.0/4""".split()
)
_OPEN_6 = IPv6Network("2000::/3")  # all that is given out; IPv4 in IPv6, NAT64, local and multicast are outside of it
_CLOSED_6 = tuple(IPv6Network(net) for net in "2001::/23 2001:db8::/32 2002::/16 3fff::/20".split())


def is_public(address: Address) -> bool:
    """Say whether an address is one of the public internet, and stands for no other address."""
    if isinstance(address, IPv4Address):
        return address.is_global and not any(address in net for net in _CLOSED_4)
    if address.scope_id is not None or address not in _OPEN_6:
        return False
    return address.is_global and not any(address in net for net in _CLOSED_6)


class Allowed(Struct, frozen=True):
    """A network that the owner allows besides public addresses: for one port, or for the usual ones."""

    network: IPv4Network | IPv6Network
    port: int | None = None

    def covers(self, address: Address, port: int) -> bool:
        if address.version != self.network.version or address not in self.network:
            return False
        return port in PORTS if self.port is None else port == self.port


def read_allowed(setting: str) -> tuple[Allowed, ...]:
    """Read networks such as `10.1.0.0/16, 127.0.0.1:8123, [fd00::1]:80`; InvalidInput if one cannot be read."""
    return tuple(_allowed(part) for part in setting.replace(",", " ").split())


def _allowed(part: str) -> Allowed:
    fix = f"write {ALLOW} as addresses or networks, each with a port if it is another than the usual ones: "
    example = "10.1.0.0/16, 127.0.0.1:8123, [fd00::1]:80"
    found = re.fullmatch(r"\[([0-9a-fA-F:./]+)\](?::(\d{1,5}))?|([0-9./]+)(?::(\d{1,5}))?|([0-9a-fA-F:./]+)", part)
    try:
        if found is None:
            raise ValueError
        network = ipaddress.ip_network(found[1] or found[3] or found[5])
        port = found[2] or found[4]
    except ValueError:
        raise InvalidInput(f"{ALLOW} holds {part[:60]!r}, which is no network", fix=fix + example) from None
    if network.prefixlen < _WIDEST[network.version]:
        raise InvalidInput(f"{ALLOW} holds {part[:60]!r}, which is too wide", fix="name the networks that are yours")
    if port is not None and not 0 < int(port) < 65_536:
        raise InvalidInput(f"{ALLOW} holds {part[:60]!r}, which has no valid port", fix=fix + example)
    return Allowed(network, int(port) if port is not None else None)


class Target(Struct, frozen=True):
    """A URL in its parts, in the one spelling that is sent."""

    scheme: str
    host: str
    port: int
    path: str
    """The path with the query."""
    literal: Address | None = None
    """The address, if the host is one."""

    @property
    def secure(self) -> bool:
        return self.scheme == "https"

    @property
    def authority(self) -> str:
        """The host and the port as a URL and the header Host have them."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == (443 if self.secure else 80) else f"{host}:{self.port}"

    @property
    def url(self) -> str:
        return f"{self.scheme}://{self.authority}{self.path}"


def read_url(url: str) -> Target:
    """Return the parts of a URL; AddressRefused for anything but a plain http or https URL."""
    fix = "give a URL such as https://example.org/page"
    shown = repr(url[:120])
    if len(url) > LONGEST:
        raise AddressRefused(f"the URL has more than {LONGEST:,} characters", fix=fix)
    if not url.isprintable() or " " in url or "\\" in url:
        raise AddressRefused(f"{shown} has spaces, backslashes or control characters", fix=fix)
    try:
        parts = urlsplit(url)
        host, port, userinfo = parts.hostname or "", parts.port, "@" in parts.netloc
    except ValueError:
        raise AddressRefused(f"{shown} cannot be read as a URL", fix=fix) from None
    if parts.scheme not in ("http", "https"):
        raise AddressRefused(f"{shown} is no http or https URL", fix=fix)
    if userinfo:
        raise AddressRefused("the URL holds a name or password before its host", fix="give the URL without them")
    if not host or parts.netloc.endswith(":"):
        raise AddressRefused(f"{shown} names no host", fix=fix)
    name, literal = _host(host, shown)
    path = quote(parts.path or "/", safe=_KEPT) + (f"?{quote(parts.query, safe=_KEPT)}" if parts.query else "")
    return Target(parts.scheme, name, port or (443 if parts.scheme == "https" else 80), path, literal)


def _host(host: str, shown: str) -> tuple[str, Address | None]:
    """Return a host in its one spelling, and the address if it is one."""
    fix = "write the address in its usual form, as in 93.184.215.14, or a host's name"
    if ":" in host:
        try:
            address = IPv6Address(host)
        except ValueError:
            raise AddressRefused(f"{shown} has no valid IPv6 address", fix=fix) from None
        if address.scope_id is not None:
            raise AddressRefused(f"{shown} names a network interface", fix=fix)
        return address.compressed, address
    try:
        name = host.removesuffix(".").encode("idna").decode("ascii").lower() if not host.isascii() else host.lower()
    except UnicodeError:
        raise AddressRefused(f"{shown} has a host that is no name", fix=fix) from None
    name = name.removesuffix(".")
    if len(name) > 253 or not _PLAIN_HOST.fullmatch(name):
        raise AddressRefused(f"{shown} has a host that is no name", fix=fix)
    if not _NUMBER.fullmatch(name.rpartition(".")[2]):
        return name, None
    # Programs read 2130706433, 0x7f.1 and 0177.0.0.1 as addresses, and not all of them as the same one.
    try:
        return name, IPv4Address(name)
    except ValueError:
        raise AddressRefused(f"{shown} writes an address in an unusual form", fix=fix) from None


class AddressGuard:
    """Decides where a connection may go."""

    def __init__(self, allowed: Sequence[Allowed] = (), resolver: Resolver | None = None) -> None:
        self._allowed = tuple(allowed)
        self._resolver = resolver or resolve

    def addresses(self, target: Target, seconds: float, *, public_only: bool = False) -> tuple[Address, ...]:
        """Return the addresses of a target, all of which may be asked; AddressRefused if one of them may not.

        With `public_only`, the networks that the owner allows do not count.
        """
        found = (target.literal,) if target.literal is not None else self._resolved(target, seconds)
        for address in found:
            self._check(target, address, public_only)
        return found

    def _check(self, target: Target, address: Address, public_only: bool) -> None:
        covered = [one for one in self._allowed if one.covers(address, target.port)]
        if covered and not public_only:
            return
        where = target.host if target.literal is not None else f"{target.host} ({address})"
        if not is_public(address):
            raise AddressRefused(
                f"{where} is no public address" + (", and a public page or feed led to it" if covered else ""),
                fix="ask for it by its own URL" if covered else f"the owner may allow its network with {ALLOW}",
            )
        if target.port not in PORTS:
            usual = ", ".join(str(port) for port in sorted(PORTS))
            raise AddressRefused(
                f"port {target.port} of {target.host} is not one of {usual}",
                fix=f"use one of these, or let the owner allow it with {ALLOW}",
            )

    def _resolved(self, target: Target, seconds: float) -> tuple[Address, ...]:
        fix = "check the host's name, and the network of this machine"
        answers: queue.Queue[Sequence[str] | OSError | UnicodeError] = queue.Queue()

        def ask() -> None:
            try:
                answers.put(self._resolver(target.host, target.port))
            except (OSError, UnicodeError) as error:
                answers.put(error)

        # A name server that does not answer holds its thread, and not the caller.
        threading.Thread(target=ask, name="lukasa-resolve", daemon=True).start()
        try:
            answer = answers.get(timeout=max(0.0, seconds))
        except queue.Empty:
            raise FetchFailed(f"no name server answers for {target.host}", fix=fix) from None
        if isinstance(answer, Exception) or not answer:
            raise FetchFailed(f"{target.host} has no address", fix=fix)
        found = tuple(dict.fromkeys(ipaddress.ip_address(one) for one in answer))
        if len(found) > _MOST_ADDRESSES:
            raise FetchFailed(f"{target.host} has more than {_MOST_ADDRESSES} addresses", fix=fix)
        return found


def resolve(host: str, port: int) -> Sequence[str]:
    """Return the addresses of a name, as the system knows them."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [str(where[0]) for family, _, _, _, where in found if family in (socket.AF_INET, socket.AF_INET6)]
