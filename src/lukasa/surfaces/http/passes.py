"""From a request's credential to a pass: a bearer token is a grant's, the page's cookie is the owner's."""

from __future__ import annotations

from starlette.requests import Request

from lukasa.model.errors import Unauthenticated
from lukasa.service.admin.access import Access, Credential
from lukasa.surfaces.http.problems import Problem
from lukasa.surfaces.http.sessions import Session, Sessions

CSRF = "x-csrf-token"
SAFE = frozenset({"GET", "HEAD"})


class Doorkeeper:
    def __init__(self, access: Access, sessions: Sessions, *, cookie: str, secure: bool = False) -> None:
        self.access = access
        self.sessions = sessions
        self.cookie = cookie
        self.secure = secure

    def admit(self, request: Request, surface: str = "http") -> Credential:
        """The pass of a request; reads the database, so not for the event loop's own thread."""
        credentials = request.headers.getlist("authorization")
        if credentials:
            scheme, _, token = credentials[0].partition(" ")
            if len(credentials) > 1 or scheme.lower() != "bearer":
                raise Unauthenticated("no valid token", fix="send `Authorization: Bearer …` with one token")
            return self.access.admit(token, surface=surface, transport="http")
        session = self.session(request)
        if session is None:
            raise Unauthenticated(
                "no pass",
                fix="send `Authorization: Bearer …`, or open the page by a link, as of `lukasa link`",
            )
        if request.method not in SAFE and not session.vouches(request.headers.get(CSRF, "")):
            raise Problem(403, "csrf", "a change from the page needs its token", fix=f"send the {CSRF} header")
        return self.access.owner("web", "http")

    def session(self, request: Request) -> Session | None:
        return self.sessions.find(request.cookies.get(self.cookie, ""))
