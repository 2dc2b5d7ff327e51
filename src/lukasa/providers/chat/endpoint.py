"""The address of a provider: its URL, the key, and the limits of a request."""

from __future__ import annotations

import contextlib
import ipaddress
import re
from collections.abc import Mapping
from urllib.parse import urlsplit

from msgspec import Struct, field

from lukasa.model.errors import ChatRefused, InvalidInput


class Limits(Struct, frozen=True):
    """Limits of one request: attempts, pauses and connect time in seconds, and the bytes of an answer (`size`)."""

    attempts: int = 3
    backoff: float = 0.4
    longest_backoff: float = 8.0
    connect: float = 10.0
    size: int = 4 * 1024 * 1024


DEFAULT_LIMITS = Limits()


class Endpoint(Struct, frozen=True):
    """A URL and its key. `repr` leaves the key out."""

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
        # The HTTP client quotes a header that it cannot send, with the key; so refuse such a key here.
        if not re.fullmatch(r"[\x21-\x7e]*", self.key):
            raise ChatRefused(
                "the API key holds blanks or characters outside ASCII", fix="set the key again, without blanks"
            )

    @property
    def host(self) -> str:
        return urlsplit(self.url).netloc

    def all_headers(self) -> dict[str, str]:
        own = {"Content-Type": "application/json", "Accept-Encoding": "identity", "User-Agent": "lukasa"}
        key = {self.key_header: self.key_prefix + self.key} if self.key else {}
        return {**own, **self.headers, **key}


def checked_url(url: str, *, insecure: bool = False) -> str:
    """Return a base URL without its last slash; refuse a malformed one, or one that would send the key unencrypted."""
    try:
        parts = urlsplit(url.strip())
        host, port = parts.hostname or "", parts.port
    except ValueError:
        raise InvalidInput("the model provider's URL cannot be read", fix="write it as https://host/path") from None
    if parts.scheme not in ("http", "https") or not _is_host(host) or not re.fullmatch(r"[\w.~%/+-]*", parts.path):
        raise InvalidInput("the model provider's URL cannot be read", fix="write it as https://host/path")
    if parts.username is not None or parts.query or parts.fragment:
        raise InvalidInput(
            f"the URL of the model provider at {host} holds a user, a query or a fragment",
            fix="write it as https://host/path, and set the key in its own variable",
        )
    if parts.scheme == "http" and not insecure and not _is_loopback(host):
        raise InvalidInput(
            f"the key and the conversation would go to {host} unencrypted",
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
