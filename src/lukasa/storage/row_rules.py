"""Rules that every store applies alike: which changes of a row are allowed, and how values are kept."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from typing import Any

from msgspec.structs import replace

from lukasa.model.answer import Answer
from lukasa.model.arrays import np
from lukasa.model.conversation import Conversation, Note
from lukasa.model.entry import Entry
from lukasa.model.errors import Conflict, InvalidInput, InvalidTransition, LostClaim, NotFound, Refused
from lukasa.model.events import Spelled, canonical_json
from lukasa.model.job import FINISHED, JobState
from lukasa.model.selection import Selection
from lukasa.model.telemetry import TelemetryEvent
from lukasa.model.values import VISIBILITY, State
from lukasa.ports import Vector
from lukasa.storage.operations import Embedding, SaveNote

TWIN_STATES = frozenset({State.ACTIVE, State.HELD})


def sees(selection: Selection, entry: Entry) -> bool:
    """Whether an entry is in one of the partitions of a selection: a scope, a visibility and an owner."""
    return (
        entry.scope in selection.scopes
        and VISIBILITY[entry.state] in selection.visibilities
        and (selection.owners is None or entry.owner in selection.owners)
    )


def side_by_side(a: Entry, b: Entry) -> bool:
    """Whether two entries are in one partition and of one conversation."""
    same_partition = a.scope == b.scope and a.owner == b.owner and VISIBILITY[a.state] is VISIBILITY[b.state]
    return same_partition and a.conversation == b.conversation


def check_version(what: str, id: str, current: int | None, expect: int) -> None:
    """Refuse a change whose expected version is not the current one.

    `current` is None if there is no row; `expect` 0 means that there must be none.
    """
    if current is None and expect:
        raise missing(what, id)
    if (current or 0) != expect:
        raise Conflict(
            f"{what} {id} is at version {current}, not {expect}" if expect else f"{what} {id} exists already",
            fix="read it again, then decide",
        )


def check_revision(before: Entry, after: Entry) -> None:
    """Refuse a revision that moves an entry to another scope, or that rewrites its origin or time of creation."""
    for name in ("scope", "origin", "created_at"):
        if getattr(before, name) != getattr(after, name):
            raise Refused(f"the {name} of entry {before.id} is fixed when it is written", fix="write a new entry")


def check_conversation(before: Conversation, after: Conversation) -> None:
    for name in ("ref_code", "channel", "started_at"):
        if getattr(before, name) != getattr(after, name):
            raise Refused(f"the {name} of conversation {before.id} is fixed", fix="start a new conversation")


def checked_vectors(embeddings: Sequence[Embedding]) -> list[bytes]:
    """The bytes of many vectors, each as `checked_vector` has it; those of one model are looked at together."""
    if len({embedding.model for embedding in embeddings}) == 1:
        dimensions = embeddings[0].model.dimensions
        with suppress(ValueError):  # of different lengths: one of them is wrong, and below it is said which
            rows = np.array([embedding.vector for embedding in embeddings], dtype="<f4")
            if rows.shape == (len(embeddings), dimensions) and np.isfinite(rows).all():
                return [row.tobytes() for row in rows]
    return [checked_vector(embedding).tobytes() for embedding in embeddings]


def checked_vector(embedding: Embedding) -> Vector:
    """The vector as little-endian float32, a copy of our own; refused if it is not one of its model."""
    vector = np.array(embedding.vector, dtype="<f4")
    if vector.shape != (embedding.model.dimensions,) or not np.isfinite(vector).all():
        raise InvalidInput(
            f"not a finite vector of {embedding.model.dimensions} numbers", fix="embed the text again with this model"
        )
    return vector


def stored(entry: Entry, version: int) -> Entry:
    """The entry as a store keeps it: its new version, and metadata nobody else holds a reference to."""
    return replace(entry, version=version, metadata=plain_json(entry.metadata))


def plain_json(value: Any) -> Any:
    if isinstance(value, Spelled):
        return value.read()
    try:
        return json.loads(json.dumps(value))
    except (TypeError, ValueError) as error:
        raise _not_json(error) from None


def plain_text(value: Any) -> str:
    """A value's canonical spelling as it will be read back: a tuple is a list then, and a number as a key is text."""
    if isinstance(value, Spelled):
        return value.text
    try:
        text = canonical_json(value)
        return text if not _ODD_KEY.search(text) or _keyed_by_text(value) else canonical_json(plain_json(value))
    except (TypeError, ValueError) as error:
        raise _not_json(error) from None


# Keys that were no text look like this in JSON; so do some that were.
_ODD_KEY = re.compile(r'[{,]"(?:-?[0-9]|true"|false"|null"|NaN"|-?Infinity")')


def _keyed_by_text(value: Any) -> bool:
    if isinstance(value, dict):
        for key, part in value.items():
            if type(key) is not str or (type(part) is not str and not _keyed_by_text(part)):
                return False
    elif isinstance(value, list | tuple):
        for part in value:
            if type(part) is not str and not _keyed_by_text(part):
                return False
    return True


def _not_json(error: Exception) -> InvalidInput:
    return InvalidInput(f"not a JSON value: {error}", fix="use strings, numbers, lists and dicts")


def check_note(operation: SaveNote, before: Note | None) -> None:
    """Refuse a note if the stored one is not the one that the writer has read, if the writer says which that was."""
    read = operation.onto
    if read == "anything" or (before is None and read is None):
        return
    if before is None or not isinstance(read, Note) or plain_json(read.value) != plain_json(before.value):
        raise Conflict(f"note {operation.note.key} was written at the same moment", fix="read it again, then decide")


def check_answer(before: Answer | None, new: Answer, stale: datetime | None) -> None:
    """Refuse a key that belongs to another request, that a client is working on, or that has its answer already."""
    if before is None:
        return
    if before.request != new.request:
        raise Conflict("the key belongs to another request", fix="use a new key for each request")
    abandoned = not before.status and stale is not None and before.at < stale
    if before.status or not (new.status or abandoned):
        raise Conflict("a request with this key is there already", fix="wait for its answer")


def check_manifest(found: str, expect: str) -> None:
    if found != expect:
        raise Conflict("what would be scrubbed has changed since the plan", fix="plan again, and confirm that")


def check_idle(running: int) -> None:
    """Refuse a scrub while jobs run: a running job has read what is removed, and would write about it afterwards."""
    if running:
        raise Refused(
            f"{running} of this workspace's jobs {'is' if running == 1 else 'are'} running",
            fix="stop the worker or wait, then plan again",
        )


def missing(what: str, id: str) -> NotFound:
    return NotFound(f"no {what} {id} here", fix=f"look the {what} up again")


def twin_conflict(entry: Entry) -> Conflict:
    what = "text" if entry.path is None else "path"
    return Conflict(f"the {what} of entry {entry.id} is already in its scope", fix="update the entry that holds it")


def linked_refusal(id: str) -> Refused:
    return Refused(f"an action rests on entry {id}", fix="forget it instead: the row stays, unread by default")


def lost_claim(job: str) -> LostClaim:
    return LostClaim(f"job {job} is no longer held by this worker", fix="leave it to the worker that holds it")


def check_revivable(job: str, state: JobState) -> None:
    if state not in (JobState.DEAD, JobState.CANCELLED):
        raise InvalidTransition(f"job {job} is {state}; only a dead or cancelled one can be retried", fix="wait for it")


def buried(at: datetime, job: str, kind: str, attempts: int, error: str) -> TelemetryEvent:
    """The telemetry event of a job whose last worker stopped without one."""
    about = {"job": job, "attempt": attempts, "error": error}
    return TelemetryEvent(at, "error", "worker", kind, f"job.{JobState.DEAD}", False, 0.0, about)


def check_cancellable(job: str, state: JobState) -> None:
    if state in FINISHED:
        raise InvalidTransition(f"job {job} is {state} and cannot be cancelled", fix="`lukasa jobs` shows what waits")


def unique_conflict(what: str, id: str) -> Conflict:
    return Conflict(f"{what} {id} or its name is taken", fix="choose another name")


@contextmanager
def only_encodable() -> Iterator[None]:
    """Turn an encoding error into InvalidInput: text that UTF-8 cannot hold is the caller's mistake."""
    try:
        yield
    except UnicodeEncodeError:
        raise InvalidInput("text with lone surrogates cannot be stored", fix="decode the text properly") from None


def unique(ids: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(ids))
