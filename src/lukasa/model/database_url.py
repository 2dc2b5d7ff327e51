"""The URL of a PostgreSQL database: its form, and how it is shown without its password."""

from __future__ import annotations

import re

from lukasa.model.errors import InvalidInput

EXAMPLE = "postgresql://lukasa@localhost/lukasa"
_HOST = r"(\[[^\]@]*\]|[^\[\]:,@/?#]*)(:\d*)?"
# A password with an @ or a / in it is read as a part of the host, and an error about the host would then show it.
_FORM = re.compile(rf"postgres(ql)?://([^@/?#]*@)?{_HOST}(,{_HOST})*(/[^@/?#]*)?(\?([\w.]+=[^&#]*(&|$))*)?")
_USER = re.compile(r"^(\w+://)([^:@/?#]*):[^@/?#]*@")
# Up to the last @: in what is no URL, no part of a password may be shown.
_ANY_USER = re.compile(r"(?s)^(\s*[\w+.-]*://)?+([^:@/?#]*):.*@")
_SECRET = re.compile(r"(?is)\b(password|sslpassword|passwd|pwd)(\s*=\s*)('(?:\\.|[^'])*'?|[^&\s]*)")
_HIDDEN = "***"


def masked(url: str) -> str:
    """Return the URL with stars in the place of every password; a text that is no URL loses its passwords too."""
    user = _USER if _FORM.fullmatch(url) else _ANY_USER
    without = user.sub(rf"\g<1>\g<2>:{_HIDDEN}@", url)
    return _SECRET.sub(rf"\g<1>\g<2>{_HIDDEN}", without)


def has_password(url: str) -> bool:
    """Say whether a URL holds a password."""
    return masked(url) != url


def check(url: str) -> None:
    """Raise InvalidInput if a text is not the URL of a PostgreSQL database."""
    if not re.match(r"postgres(ql)?://", url):
        raise InvalidInput(
            f"{masked(url)[:200]!r} is not the URL of a PostgreSQL database", fix=f"write it as {EXAMPLE}"
        )
    if not _FORM.fullmatch(url) or not url.isprintable():
        raise InvalidInput(
            f"the URL of the database cannot be read: {masked(url)[:200]!r}",
            fix=f"write it as {EXAMPLE}, and the characters @ : / ? # % of a password as %40 %3A %2F %3F %23 %25",
        )
