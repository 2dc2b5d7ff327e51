"""The URL of a PostgreSQL database: its form, and how it is shown without its password."""

from __future__ import annotations

import re

from lukasa.model.errors import InvalidInput

EXAMPLE = "postgresql://lukasa@localhost/lukasa"
_POSTGRESQL = re.compile(r"postgres(ql)?://", re.IGNORECASE)
# Up to the last @: a password with a character that should have been escaped must not be shown by half.
_USER = re.compile(r"(?s)^(\s*[\w+.-]*://)?+([^:@/?#]*):.*@")
_SECRET = re.compile(r"(?is)\b(password|sslpassword|passwd|pwd)(\s*=\s*)('(?:\\.|[^'])*'?|[^&\s]*)")
_HIDDEN = "***"


def masked(url: str) -> str:
    """Return the URL with stars in the place of every password; a text that is no URL loses its passwords too."""
    without = _USER.sub(rf"\g<1>\g<2>:{_HIDDEN}@", url)
    return _SECRET.sub(rf"\g<1>\g<2>{_HIDDEN}", without)


def has_password(url: str) -> bool:
    """Say whether a URL holds a password."""
    return masked(url) != url


def check(url: str) -> None:
    """Raise InvalidInput if a text is not the URL of a PostgreSQL database."""
    if not _POSTGRESQL.match(url) or not url.isprintable():
        raise InvalidInput(
            f"{masked(url)[:200]!r} is not the URL of a PostgreSQL database", fix=f"write it as {EXAMPLE}"
        )
