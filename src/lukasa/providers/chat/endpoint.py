"""Where requests go: a URL that a key may be sent to, the key, and how hard to try."""

from __future__ import annotations

import contextlib
import ipaddress
import re
from collections.abc import Mapping
from urllib.parse import urlsplit

from msgspec import Struct, field

from lukasa.model.errors import ChatRefused, InvalidInput


class Limits(Struct, frozen=True):
    """How hard to try. `size` is the most bytes of one answer."""

    attempts: int = 3
    backoff: float = 0.4
    longest_backoff: float = 8.0
    connect: float = 10.0
    size: int = 4 * 1024 * 1024


DEFAULT_LIMITS = Limits()


class Endpoint(Struct, frozen=True):
    """Where requests go and with what right. The key is in no representation of it."""

    url: str
    key: str = ""
    key_header: str = "Authorization"
    key_prefix: str = "Bearer "
    headers: Mapping[str, str] = field(default_factory=dict)
    limits: Limits = DEFAULT_LIMITS

    def __repr__(self) -> str:
        """Leave the key out: a representation may end in a log."""
        return f"Endpoint({self.url!r})"

    def __post_init__(self) -> None:
        # A header that cannot be sent is quoted in the client's error, key and all; so it is never made.
        if not re.fullmatch(r"[\x21-\x7e]*", self.key):
            raise ChatRefused("the API key has characters that no key has", fix="set the key again, without blanks")

    @property
    def host(self) -> str:
        return urlsplit(self.url).netloc

    def all_headers(self) -> dict[str, str]:
        own = {"Content-Type": "application/json", "Accept-Encoding": "identity", "User-Agent": "lukasa"}
        key = {self.key_header: self.key_prefix + self.key} if self.key else {}
        return {**own, **self.headers, **key}


def checked_url(url: str, *, insecure: bool = False) -> str:
    """A base URL that a key and a conversation may be sent to, without its last slash."""
    try:
        parts = urlsplit(url.strip())
        host, port = parts.hostname or "", parts.port
    except ValueError:
        raise InvalidInput("the model provider's URL cannot be read", fix="write it as https://host/path") from None
    if parts.scheme not in ("http", "https") or not _is_host(host) or not re.fullmatch(r"[\w.~%/+-]*", parts.path):
        raise InvalidInput("the model provider's URL cannot be read", fix="write it as https://host/path")
    if parts.username is not None or parts.query or parts.fragment:
        raise InvalidInput(
            f"the URL of the model provider at {host} may hold no user, query or fragment",
            fix="write it as https://host/path, and the key into its own variable",
        )
    if parts.scheme == "http" and not insecure and not _is_loopback(host):
        raise InvalidInput(
            f"{host} would be sent the key and the conversation in the clear",
            fix="use https, or set LUKASA_CHAT_INSECURE=1 if the network is yours",
        )
    shown = f"[{host}]" if ":" in host else host
    return f"{parts.scheme}://{shown}{f':{port}' if port else ''}{parts.path.rstrip('/')}"


def _is_host(host: str) -> bool:
    if ":" in host:
        with contextlib.suppress(ValueError):
            return bool(ipaddress.IPv6Address(host))
    return re.fullmatch(r"[a-zA-Z0-9_]([a-zA-Z0-9._-]*)", host) is not None


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
