"""Export and import over HTTP, for the owner alone: a download, a dry run of an upload, and its acceptance.

These are no verbs, because what they carry is a file and no JSON object. An export is written to a file without a name
first, so that it is of one moment however slowly it is read, and an upload is kept in one while it is verified.
"""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator
from typing import BinaryIO, cast

from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from lukasa.model.errors import InvalidInput
from lukasa.model.values import Trust
from lukasa.service.admin.portable import ImportPlan, What
from lukasa.storage.export_file import ExportFile, packed
from lukasa.surfaces.cli.data import plain
from lukasa.surfaces.http.authentication import Authenticator
from lukasa.surfaces.http.problems import Problem, safely
from lukasa.surfaces.http.verb_routes import ROOT
from lukasa.surfaces.offload import offload

_PIECE = 1 << 16  # bytes that are sent at a time
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
            try:
                async for piece in request.stream():
                    await offload(file.write, piece)
            except ClientDisconnect:
                raise Problem(408, "cut-off", "the body did not arrive", fix="send it again") from None
            file.seek(0)
            asked = query.get("into", ""), _TRUSTS[trust], query.get("confirm", "")
            done = await offload(_taken, authenticator, cast("BinaryIO", file), *asked)
        return JSONResponse(plain(done))

    return [
        Route(f"{ROOT}/export", safely(export), methods=["GET"], name="export"),
        Route(f"{ROOT}/workspaces/{{workspace}}/export", safely(export), methods=["GET"], name="export_workspace"),
        Route(f"{ROOT}/import", safely(import_), methods=["POST"], name="import"),
    ]


async def _require_owner(authenticator: Authenticator, request: Request, what: str) -> None:
    credential = await offload(authenticator.credential, request)
    credential.require_owner(what)


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
