"""The owner's page: a code from the link is exchanged, once, for a session. Kept in this process and nowhere else."""

from __future__ import annotations

import hashlib
import hmac
import secrets
import threading
from dataclasses import dataclass
from datetime import datetime, timedelta

from lukasa.ports import Clock

CODE_LASTS = timedelta(minutes=15)
SESSION_LASTS = timedelta(days=7)
MOST_SESSIONS = 64


@dataclass(frozen=True)
class Session:
    """`csrf` is what the page sends with every change: another page has the cookie sent for it, but not this."""

    csrf: str
    ends: datetime

    def vouches(self, token: str) -> bool:
        return hmac.compare_digest(self.csrf.encode(), token.encode("utf-8", "replace"))


class Sessions:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._codes: dict[str, datetime] = {}
        self._sessions: dict[str, Session] = {}

    def new_code(self) -> str:
        """A code for one entry, for a while. It stands in the fragment of a link, which no browser sends anywhere."""
        code, now = secrets.token_urlsafe(24), self._clock.now()
        with self._lock:
            self._codes = {key: ends for key, ends in self._codes.items() if ends > now}
            self._codes[_digest(code)] = now + CODE_LASTS
        return code

    def exchange(self, code: str) -> tuple[str, Session] | None:
        """The secret of a cookie and its session; None if the code is not good, or was used."""
        now = self._clock.now()
        with self._lock:
            ends = self._codes.pop(_digest(code), None)
            if ends is None or ends <= now:
                return None
            self._sessions = {key: kept for key, kept in self._sessions.items() if kept.ends > now}
            while len(self._sessions) >= MOST_SESSIONS:
                self._sessions.pop(next(iter(self._sessions)))
            cookie = secrets.token_urlsafe(32)
            session = Session(secrets.token_urlsafe(32), now + SESSION_LASTS)
            self._sessions[_digest(cookie)] = session
        return cookie, session

    def find(self, cookie: str) -> Session | None:
        session = self._sessions.get(_digest(cookie))
        return session if session is not None and session.ends > self._clock.now() else None

    def end(self, cookie: str) -> None:
        with self._lock:
            self._sessions.pop(_digest(cookie), None)


def _digest(secret: str) -> str:
    # Looked up by digest, so that how long a look takes says nothing about the secret.
    return hashlib.sha256(secret.encode("utf-8", "replace")).hexdigest()
