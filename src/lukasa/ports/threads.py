"""What a chat keeps of its conversations outside memory: a checkpointer's rows, by thread."""

from __future__ import annotations

from typing import Protocol

from lukasa.model.conversation import Conversation

CHECKPOINTS = "checkpoints.db"


def lock_name(conversation: Conversation) -> str:
    """The file that a process locks while it leads a conversation."""
    return f"chat-{conversation.ref_code}.lock"


class Threads(Protocol):
    """A thread is a conversation's id."""

    def kept(self, thread: str) -> int:
        """How many rows there are of a thread."""
        ...

    def led(self, conversation: Conversation) -> bool:
        """Whether a living process leads this conversation now."""
        ...

    def purge(self, thread: str) -> None:
        """Remove a thread's rows, and their words from the file."""
        ...
