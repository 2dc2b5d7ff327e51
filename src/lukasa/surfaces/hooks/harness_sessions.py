"""A harness's session as a conversation, with the passages that the session was already given.

The conversation's id is computed from the session's id, so that a resumed session, and two hooks that run at the same
moment, use the same conversation without a search.
"""

from __future__ import annotations

import hashlib
import os
import stat
import uuid
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from msgspec import Struct

from lukasa.model.conversation import Conversation, Status
from lukasa.model.errors import InvalidTransition
from lukasa.model.ids import BASE62, REF_CODE_LENGTH
from lukasa.service.call import CallContext
from lukasa.service.sessions import conversations
from lukasa.service.workspace import Workspace
from lukasa.surfaces.hooks.harness import HarnessEvent, HookResult

if TYPE_CHECKING:
    from lukasa.read.context import ContextDocument

GIVEN = "injected"
MOST_GIVEN = 1500
MOST_RESTARTS = 100
MOST_NOTED = 200
MOST_LOOKED_AT = 20  # conversations among which a start looks for sessions that never ended


class LeftSession(Struct, frozen=True):
    """A session that did not say that it ended: its conversation, its id, its transcript and its folder."""

    conversation: Conversation
    id: str
    transcript: str
    folder: str


class HookSession(Struct, frozen=True):
    """A workspace with a session's conversation bound; without a session id, the workspace alone."""

    workspace: Workspace
    conversation: Conversation | None = None
    listener: str = ""

    def claim(
        self,
        choose: Callable[[frozenset[str]], ContextDocument],
        marks_of: Callable[[ContextDocument], Iterable[str]],
        *,
        from_start: bool = False,
    ) -> ContextDocument:
        """Choose a document, given the marks of the passages this session has, and note the new document's marks.

        If two hooks run at the same moment, the second chooses again, so that no passage is injected twice.
        """
        if self.conversation is None:
            return choose(frozenset())
        chosen: list[ContextDocument] = []

        def change(value: object) -> list[str] | None:
            known = [] if from_start else _marks(value)
            chosen.append(choose(frozenset(known)))
            marks = [mark for mark in marks_of(chosen[-1]) if mark not in known]
            return [*known, *marks][-MOST_GIVEN:] if marks or from_start else None

        conversations.change_note(self.workspace.ctx, self.conversation.id, self._key, change)
        return chosen[-1]

    def write(self, key: str, value: object) -> None:
        if self.conversation is not None:
            self.workspace.write_note(self.conversation.id, key, value)

    @property
    def _key(self) -> str:
        """The note's key. A subagent has its own, because it has not seen its parent's passages."""
        return f"{GIVEN}.{self.listener}" if self.listener else GIVEN


def _marks(value: object) -> list[str]:
    """Return the marks in a note's value; any other value counts as none."""
    return [mark for mark in value if isinstance(mark, str)] if isinstance(value, list) else []


def open_session(workspace: Workspace, session: str, *, listener: str = "", channel: str | None = None) -> HookSession:
    """Return a session with its conversation, which is started if it does not exist."""
    if not session:
        return HookSession(workspace)
    conversation = _open(workspace, session, channel)
    return bind(workspace, conversation, listener=listener)


def bind(workspace: Workspace, conversation: Conversation, *, listener: str = "") -> HookSession:
    """Bind a conversation. A spec without conversation keys still has notes of the conversation."""
    known = {key.name for key in workspace.spec.anchor}
    here = workspace.at(conversation=conversation.id) if "conversation" in known else workspace
    return HookSession(here, conversation, hashlib.sha256(listener.encode()).hexdigest()[:12] if listener else "")


def note_session(session: HookSession, event: HarnessEvent, **more: str) -> bool:
    """Note the session's id and its transcript's path, for the worker that observes it later.

    Return whether the transcript can be read. It must be a regular file: reading a pipe could block for ever.
    """
    session.write("session", {"id": event.session[:MOST_NOTED], "folder": event.cwd, **more})
    try:
        found = os.stat(event.transcript)
    except (OSError, ValueError):
        if event.transcript and not more:  # a host names the file before it writes it
            session.write("transcript", {"path": event.transcript})
        return False
    if not stat.S_ISREG(found.st_mode) or not os.access(event.transcript, os.R_OK):
        return False
    modified = datetime.fromtimestamp(found.st_mtime, UTC).isoformat()
    session.write("transcript", {"path": event.transcript, "size": found.st_size, "modified": modified})
    return True


def stop(session: HookSession, event: HarnessEvent) -> HookResult:
    """Note the transcript. The session continues, and may end without a word."""
    note_session(session, event)
    return HookResult()


def unended(session: HookSession) -> list[LeftSession]:
    """Return other sessions whose end event never came, and which have a transcript: the newest few."""
    if session.conversation is None:
        return []
    ctx, found = session.workspace.ctx, list[LeftSession]()
    for talk in ctx.local.conversations()[:MOST_LOOKED_AT]:
        if talk.id == session.conversation.id or talk.status is not Status.ACTIVE:
            continue
        notes = {note.key: note.value for note in ctx.local.notes(talk.id) if note.key in ("session", "transcript")}
        about, file = notes.get("session"), notes.get("transcript")
        if not isinstance(about, dict) or not isinstance(file, dict) or "ended" in about:
            continue
        id, path = about.get("id"), file.get("path")
        if isinstance(id, str) and id and isinstance(path, str) and os.path.isfile(path):
            found.append(LeftSession(talk, id, path, str(about.get("folder", ""))))
    return found


def _open(workspace: Workspace, session: str, channel: str | None) -> Conversation:
    ctx = workspace.ctx
    for restart in range(MOST_RESTARTS):
        found = conversations.join(ctx, *_conversation_ids(_place(ctx), session, restart), channel)
        if found.status is not Status.ARCHIVED:
            return found
    raise InvalidTransition("every conversation of this session is archived", fix="start a new session in the harness")


def conversation_of(workspace: Workspace, session: str) -> Conversation | None:
    """Return the latest conversation of a harness's session in this workspace, without starting one."""
    ctx, found = workspace.ctx, None
    for restart in range(MOST_RESTARTS):
        id, _ = _conversation_ids(_place(ctx), session, restart)
        known = ctx.local.conversation(id)
        if known is None:
            break
        found = known
    return found


def _place(ctx: CallContext) -> str:
    return "\n".join((ctx.info.id, *(f"{key}={value}" for key, value in ctx.tenancy.items())))


def _conversation_ids(place: str, session: str, restart: int) -> tuple[str, str]:
    """Return the id and the ref code of a session's conversation in a workspace and the scope keys bound in it.

    `restart` counts archived ones.
    """
    digest = hashlib.sha256(f"{place}\n{session}\n{restart}".encode()).digest()
    number = int.from_bytes(digest[16:], "big")
    code = ""
    for _ in range(REF_CODE_LENGTH):
        number, digit = divmod(number, len(BASE62))
        code += BASE62[digit]
    return str(uuid.UUID(bytes=digest[:16], version=5)), code
