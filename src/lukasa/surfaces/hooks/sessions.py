"""A harness's session as a conversation: found again by the session's id alone, with what it has been given so far.

The conversation's id is worked out from the session's, so that a resumed session, and two hooks that run at the same
moment, come to the same conversation without looking for it.
"""

from __future__ import annotations

import hashlib
import os
import stat
import uuid
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from msgspec import Struct

from lukasa.model.conversation import Conversation, Status
from lukasa.model.errors import InvalidTransition
from lukasa.model.ids import BASE62, REF_CODE_LENGTH
from lukasa.service.sessions import conversations
from lukasa.service.workspace import Workspace
from lukasa.surfaces import hooks
from lukasa.surfaces.hooks.payload import Payload

if TYPE_CHECKING:
    from lukasa.read.context import Document

GIVEN = "injected"
MOST_GIVEN = 1500
MOST_RESTARTS = 100
MOST_NOTED = 200


class Talk(Struct, frozen=True):
    """A workspace with a session's conversation bound in it; without a session, the workspace alone."""

    world: Workspace
    conversation: Conversation | None = None
    listener: str = ""

    def claim(self, choose: Callable[[frozenset[str]], Document], *, anew: bool = False) -> Document:
        """What is chosen, seeing what this session has had so far (as `passages.marks` names it), and noted as had.

        Of two hooks at the same moment one is first, and the other chooses again: no passage is claimed twice.
        """
        if self.conversation is None:
            return choose(frozenset())
        chosen: list[Document] = []

        def change(value: object) -> list[str] | None:
            known = [] if anew else _marks(value)
            chosen.append(choose(frozenset(known)))
            marks = [mark for mark in hooks.passages.marks(chosen[-1]) if mark not in known]
            return [*known, *marks][-MOST_GIVEN:] if marks or anew else None

        conversations.change_note(self.world.ctx, self.conversation.id, self._key, change)
        return chosen[-1]

    def write(self, key: str, value: object) -> None:
        if self.conversation is not None:
            self.world.write_note(self.conversation.id, key, value)

    @property
    def _key(self) -> str:
        """A subagent listens for itself: what its parent was given, it has not seen."""
        return f"{GIVEN}.{self.listener}" if self.listener else GIVEN


def _marks(value: object) -> list[str]:
    """What the note holds; somebody else's value under its key counts as nothing."""
    return [mark for mark in value if isinstance(mark, str)] if isinstance(value, list) else []


def talk(world: Workspace, session: str, *, listener: str = "", channel: str | None = None) -> Talk:
    """The conversation of a session, opened if this is the first that is heard of it."""
    if not session:
        return Talk(world)
    conversation = _open(world, session, channel)
    return bound(world, conversation, listener=listener)


def bound(world: Workspace, conversation: Conversation, *, listener: str = "") -> Talk:
    """A conversation as a talk. A spec without conversations in its anchor still keeps the notes of one."""
    known = {key.name for key in world.spec.anchor}
    here = world.at(conversation=conversation.id) if "conversation" in known else world
    return Talk(here, conversation, _short(listener) if listener else "")


def point(talk: Talk, payload: Payload, **more: str) -> bool:
    """Note which session this is and where its transcript was last seen, for whoever observes it later.

    Whether there is a transcript to read: only a file can be, for a pipe would wait for ever.
    """
    talk.write("session", {"id": payload.session[:MOST_NOTED], "folder": payload.cwd, **more})
    try:
        found = os.stat(payload.transcript)
    except (OSError, ValueError):
        return False
    if not stat.S_ISREG(found.st_mode) or not os.access(payload.transcript, os.R_OK):
        return False
    modified = datetime.fromtimestamp(found.st_mtime, UTC).isoformat()
    talk.write("transcript", {"path": payload.transcript, "size": found.st_size, "modified": modified})
    return True


def _open(world: Workspace, session: str, channel: str | None) -> Conversation:
    ctx = world.ctx
    for restart in range(MOST_RESTARTS):
        found = conversations.join(ctx, *_names(ctx.info.id, session, restart), channel)
        if found.status is not Status.ARCHIVED:
            return found
    raise InvalidTransition("every conversation of this session is archived", fix="start a new session in the harness")


def _names(workspace: str, session: str, restart: int) -> tuple[str, str]:
    """The id and the ref code of a session's conversation; a new one if the last was archived."""
    digest = hashlib.sha256(f"{workspace}\n{session}\n{restart}".encode()).digest()
    number = int.from_bytes(digest[16:], "big")
    code = ""
    for _ in range(REF_CODE_LENGTH):
        number, place = divmod(number, len(BASE62))
        code += BASE62[place]
    return str(uuid.UUID(bytes=digest[:16], version=5)), code


def _short(name: str) -> str:
    return hashlib.sha256(name.encode()).hexdigest()[:12]
