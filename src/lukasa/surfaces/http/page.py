"""The owner's page, and the session that it gets for the code in its link."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles

from lukasa.surfaces.http.inputs import read_body
from lukasa.surfaces.http.passes import CSRF, Doorkeeper
from lukasa.surfaces.http.problems import Problem, safely
from lukasa.surfaces.http.sessions import SESSION_LASTS, Session
from lukasa.surfaces.web import STATIC

_ANOTHER = "open another link, as `lukasa link` prints it"


class Code(BaseModel):
    model_config = ConfigDict(extra="forbid")

    code: str


def routes(doorkeeper: Doorkeeper) -> list[BaseRoute]:
    async def index(request: Request) -> Response:
        return FileResponse(STATIC / "index.html", media_type="text/html; charset=utf-8")

    async def enter(request: Request) -> Response:
        """Exchange the code of a link for a session. Only the page itself can send JSON here."""
        code = Code.model_validate(await read_body(request)).code
        opened = doorkeeper.sessions.exchange(code)
        if opened is None:
            raise Problem(401, "code-spent", "the code of this link was used, or is too old", fix=_ANOTHER)
        cookie, session = opened
        response = JSONResponse(_told(doorkeeper, session), 201)
        response.set_cookie(
            doorkeeper.cookie,
            cookie,
            max_age=int(SESSION_LASTS.total_seconds()),
            httponly=True,
            samesite="strict",
            secure=doorkeeper.secure,
        )
        return response

    async def show(request: Request) -> Response:
        """What the page needs after it was loaded again."""
        session = doorkeeper.session(request)
        if session is None:
            raise Problem(401, "no-session", "there is no session", fix=_ANOTHER)
        return JSONResponse(_told(doorkeeper, session))

    async def leave(request: Request) -> Response:
        session = doorkeeper.session(request)
        if session is None or not session.vouches(request.headers.get(CSRF, "")):
            raise Problem(403, "csrf", "a change from the page needs its token", fix=f"send the {CSRF} header")
        doorkeeper.sessions.end(request.cookies[doorkeeper.cookie])
        response = Response(status_code=204)
        response.delete_cookie(doorkeeper.cookie, httponly=True, samesite="strict", secure=doorkeeper.secure)
        return response

    return [
        Route("/", safely(index), methods=["GET"], name="page"),
        Route("/session", safely(enter), methods=["POST"], name="session_enter"),
        Route("/session", safely(show), methods=["GET"], name="session_show"),
        Route("/session", safely(leave), methods=["DELETE"], name="session_leave"),
        Mount("/assets", StaticFiles(directory=STATIC / "assets"), name="assets"),
    ]


def _told(doorkeeper: Doorkeeper, session: Session) -> dict[str, str]:
    principal = doorkeeper.access.origin.principal
    return {"csrf": session.csrf, "principal": principal, "expires_at": session.ends.isoformat()}
