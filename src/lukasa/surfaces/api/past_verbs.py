"""Verbs that bring in what other programs remember. Only the owner has them: what comes in is imported by them."""

from __future__ import annotations

import base64
import binascii
import re
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory

from pydantic import Field

from lukasa.model.errors import InvalidInput
from lukasa.model.grant import Capability
from lukasa.service.past.importing import Brought
from lukasa.surfaces.api.verb import Call, Moment, Verb, VerbInput, VerbOutput

MOST_NAME = 200  # characters
_PLAIN = re.compile(r"[^\w. -]+")


class PastIn(VerbInput):
    name: str = Field(min_length=1, max_length=200, description="The name of the file, such as memory.jsonl.")
    data: str = Field(description="The file, in base64: a single file, or a zip as downloaded.")
    format: str = Field("", description="Its format; recognised by default.")
    dry_run: bool = Field(False, description="Only say what would come in, with samples.")
    since: Moment | None = Field(None, description="Leave out what was said before.")
    tier: str | None = Field(None, description="The tier for memories and facts.")
    mine: bool = Field(False, description="Count the rules of the file as the owner's own words.")


class PastSampleOut(VerbOutput):
    what: str
    text: str
    file: str
    item: str
    said_at: datetime | None


class PastSkippedOut(VerbOutput):
    file: str
    reason: str


class PastOut(VerbOutput):
    """What an import found, and what became of it: counts by outcome, and samples."""

    dry_run: bool
    format: str
    path: str
    memories: dict[str, int]
    conversations: dict[str, int]
    messages: dict[str, int]
    earlier: int
    secrets: int
    skipped: list[PastSkippedOut] = Field(description="Some of what was passed over, and why.")
    passed_over: int
    samples: list[PastSampleOut]


def file_name(given: str) -> str:
    """Return the name of a file that was sent, without a folder and without signs that a file system may not take."""
    plain = _PLAIN.sub("-", given.replace("\\", "/").rsplit("/", 1)[-1])[:MOST_NAME].strip(" -") or "file"
    return {"..": "file", ".": "file"}.get(plain, plain)


def memory_import(call: Call, given: PastIn) -> PastOut:
    try:
        data = base64.b64decode(given.data, validate=True)
    except (binascii.Error, ValueError):
        raise InvalidInput("data is not base64", fix="encode the bytes of the file as base64") from None
    named = file_name(given.name)
    workspace = call.workspace
    with TemporaryDirectory(prefix="lukasa-") as folder:  # only its owner can enter it, and it goes with the call
        path = Path(folder, named)
        path.write_bytes(data)
        done = workspace.import_past(
            path,
            format=given.format,
            since=given.since,
            tier=given.tier,
            mine=given.mine,
            dry_run=given.dry_run,
            called=named,
        )
    return past_out(done)


def past_out(done: Brought) -> PastOut:
    return PastOut.of({name: getattr(done, name) for name in PastOut.model_fields})


VERBS = (
    Verb(
        "memory_import",
        "Import what another program remembers from one file: its format is recognised, memories are kept word for "
        "word, and conversations are stored for a worker to observe. A second import of the same file changes nothing.",
        Capability.WRITE,
        "POST",
        "/workspaces/{workspace}/past",
        PastIn,
        PastOut,
        memory_import,
        mutates=True,
        owner_only=True,
        tool=False,
    ),
)
