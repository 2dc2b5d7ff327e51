"""Export and import over HTTP, for the owner alone: a download, a dry run of an upload, and its acceptance.

An upload is an export of Lukasa, or a file of another program; the import of the latter tells how far it is.

These are no verbs, because what they carry is a file and no JSON object. An export is written to a file without a name
first, so that it is of one moment however slowly it is read, and an upload is kept in one while it is verified.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from threading import Thread
from typing import Any, BinaryIO, cast

from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from lukasa.model.errors import InvalidInput, LukasaError
from lukasa.model.values import Trust
from lukasa.service.admin.portable import ImportPlan, What
from lukasa.service.past.importing import Brought
from lukasa.storage.export_file import ExportFile, packed
from lukasa.surfaces.api.past_verbs import file_name, past_out
from lukasa.surfaces.cli.data import plain
from lukasa.surfaces.http.authentication import Authenticator
from lukasa.surfaces.http.problems import Problem, safely
from lukasa.surfaces.http.verb_routes import ROOT
from lukasa.surfaces.offload import offload

_PIECE = 1 << 16  # bytes that are sent at a time
_STEP = 20  # things between two lines about how far an import is
_TRUSTS = {trust.name.lower(): trust for trust in Trust}


def portable_routes(authenticator: Authenticator) -> list[Route]:
    async def export(request: Request) -> Response:
        await _require_owner(authenticator, request, "export memory")
        workspace = request.path_params.get("workspace")
        what = "workspace" if workspace is not None else request.query_params.get("what", "all")
        vectors = request.query_params.get("vectors", "false") == "true"
        file = await offload(_written, authenticator, what, workspace or "", vectors)
        name = f"lukasa-{what}.jsonl.gz"
        headers = {"Content-Disposition": f'attachment; filename="{name}"', "Content-Length": str(_size(file))}
        return StreamingResponse(_pieces(file), media_type="application/gzip", headers=headers)

    async def import_(request: Request) -> Response:
        """Show what an upload would bring in; with `confirm`, bring in exactly what that showed."""
        await _require_owner(authenticator, request, "import memory")
        query = request.query_params
        trust = query.get("trust", "author")
        if trust not in _TRUSTS:
            raise InvalidInput(f"there is no trust {trust[:60]!r}", fix=f"use one of: {', '.join(_TRUSTS)}")
        with tempfile.TemporaryFile() as file:
            await _received(request, cast("BinaryIO", file))
            file.seek(0)
            asked = query.get("into", ""), _TRUSTS[trust], query.get("confirm", "")
            done = await offload(_taken, authenticator, cast("BinaryIO", file), *asked)
        return JSONResponse(plain(done))

    async def past(request: Request) -> Response:
        """Show what a file of another program would bring in; without `dry_run`, bring it in, line by line of JSON."""
        await _require_owner(authenticator, request, "import memory")
        query = request.query_params
        workspace = await offload(authenticator.access.memory.existing, request.path_params["workspace"])
        with ExitStack() as stack:  # only its owner can enter the folder, and it goes with the import
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="lukasa-"))
            path = Path(folder, file_name(query.get("name", "")))
            with path.open("wb") as file:
                await _received(request, file)
            take = partial(workspace.import_past, path, format=query.get("format", ""), called=path.name)
            planned = await offload(take, dry_run=True)  # what cannot be read is a problem, and no line of an answer
            if query.get("dry_run", "false") == "true":
                return JSONResponse(_shown(planned))
            end = stack.pop_all().close
        return StreamingResponse(_told(take, end), media_type="application/x-ndjson")

    return [
        Route(f"{ROOT}/workspaces/{{workspace}}/past/file", safely(past), methods=["POST"], name="import_past"),
        Route(f"{ROOT}/export", safely(export), methods=["GET"], name="export"),
        Route(f"{ROOT}/workspaces/{{workspace}}/export", safely(export), methods=["GET"], name="export_workspace"),
        Route(f"{ROOT}/import", safely(import_), methods=["POST"], name="import"),
    ]


async def _require_owner(authenticator: Authenticator, request: Request, what: str) -> None:
    credential = await offload(authenticator.credential, request)
    credential.require_owner(what)


async def _received(request: Request, file: BinaryIO) -> None:
    try:
        async for piece in request.stream():
            await offload(file.write, piece)
    except ClientDisconnect:
        raise Problem(408, "cut-off", "the body did not arrive", fix="send it again") from None


def _told(take: Callable[..., Brought], end: Callable[[], None]) -> Iterator[str]:
    """Import a file, and give a line of JSON now and then: how many things are through, and at the end what came in.

    The import goes on to its end, whoever still listens.
    """
    said = SimpleQueue[tuple[int, int] | str]()

    def watch(through: int, of: int) -> None:
        if through % _STEP == 0 or through == of:
            said.put((through, of))

    def run() -> None:
        fix = "the server's log says why; import it again"
        answer: dict[str, Any] = {"problem": {"detail": "the import stopped", "fix": fix}}
        try:
            answer = {"done": _shown(take(watch=watch))}
        except LukasaError as error:
            answer = {"problem": {"detail": error.message, "fix": error.fix, "code": error.code}}
        finally:
            end()
            said.put(json.dumps(answer))

    Thread(target=run, name="lukasa-import").start()
    while not isinstance(one := said.get(), str):
        yield json.dumps({"through": one[0], "of": one[1]}) + "\n"
    yield one + "\n"


def _shown(done: Brought) -> dict[str, Any]:
    return past_out(done).model_dump(mode="json")


def _written(authenticator: Authenticator, what: str, workspace: str, vectors: bool) -> BinaryIO:
    file = cast("BinaryIO", tempfile.TemporaryFile())  # noqa: SIM115 - it is closed when all of it was sent
    try:
        portable = authenticator.access.memory.portable
        with packed(file, ".gz") as stream:
            portable.write(cast("BinaryIO", stream), what=cast("What", what), workspace=workspace, vectors=vectors)
    except BaseException:
        file.close()
        raise
    return file


def _size(file: BinaryIO) -> int:
    size = file.seek(0, 2)
    file.seek(0)
    return size


async def _pieces(file: BinaryIO) -> AsyncIterator[bytes]:
    with file:
        while piece := await offload(file.read, _PIECE):
            yield piece


def _taken(authenticator: Authenticator, file: BinaryIO, into: str, trust: Trust, confirm: str) -> ImportPlan:
    portable = authenticator.access.memory.portable
    with ExportFile(file, "the upload") as found:
        if confirm:
            return portable.run(found, into=into, trust=trust, confirm=confirm)
        return portable.plan(found, into=into, trust=trust)
