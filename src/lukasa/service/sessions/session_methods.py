"""The methods of a workspace about conversations, notes and recorded sessions."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from lukasa.model.conversation import Channel, Conversation, Note
from lukasa.service import sessions
from lukasa.service.call import Bound
from lukasa.service.instrument import verb

if TYPE_CHECKING:
    from lukasa.model.transcript import Progress, Transcript, Utterance
    from lukasa.service.sessions.closing import Ended, ScopeEnded
    from lukasa.service.sessions.learned import Sentence
    from lukasa.service.sessions.transcripts import Taken
    from lukasa.storage.port import FoundUtterance


class SessionMethods(Bound, frozen=True):
    """Lead conversations, keep notes, and take in recorded sessions."""

    def channels(self) -> list[Channel]:
        """Return the channels of this workspace."""
        return sessions.conversations.channels(self.ctx)

    @verb("channel", "create")
    def create_channel(self, name: str, description: str = "") -> Channel:
        """Create a channel."""
        return sessions.conversations.create_channel(self.ctx, name, description)

    @verb("conversation", "start")
    def start(self, channel: str | None = None) -> Conversation:
        """Start a conversation in a channel: the named one, the bound one, or the default one.

        `at(conversation=…)` then works in it.
        """
        return sessions.conversations.start(self.ctx, channel)

    def conversations(self, *, archived: bool = False, channel: str | None = None) -> list[Conversation]:
        """Return the conversations of a channel or of all, with archived ones on request."""
        chosen = sessions.conversations.channel(self.ctx, channel).id if channel is not None else None
        return sessions.conversations.conversations(self.ctx, archived=archived, channel=chosen)

    def conversation(self, id_or_ref: str) -> Conversation:
        """Return one conversation."""
        return sessions.conversations.conversation(self.ctx, id_or_ref)

    @verb("conversation", "idle")
    def idle(self, id_or_ref: str) -> Conversation:
        """Mark a conversation as idle."""
        return sessions.conversations.idle(self.ctx, id_or_ref)

    @verb("conversation", "archive")
    def archive(self, id_or_ref: str) -> Conversation:
        """Archive a conversation."""
        return sessions.conversations.archive(self.ctx, id_or_ref)

    @verb("conversation", "end")
    def end(self, id_or_ref: str) -> Ended:
        """End a conversation: write its summary, carry on what its boundary keeps, and clear the rest of its memory."""
        return sessions.session.end(self.ctx, id_or_ref)

    @verb("scope", "end")
    def end_scope(self, name: str) -> list[ScopeEnded]:
        """End the bound scope of a tier, named by the tier or by its event: `at(session="s1").end_scope("session")`.

        Conversations inside it end first. The scope of a lifecycle tier takes no more entries afterwards.
        """
        return sessions.session.end_scope(self.ctx, name)

    @verb("note", "write")
    def write_note(self, conversation: str, key: str, value: object) -> Note:
        """Write a note on the scratchpad of a conversation."""
        return sessions.conversations.write_note(self.ctx, conversation, key, value)

    def read_note(self, conversation: str, key: str) -> Note:
        """Return one note of a conversation."""
        return sessions.conversations.read_note(self.ctx, conversation, key)

    def notes(self, conversation: str) -> list[Note]:
        """Return all notes of a conversation."""
        return self.ctx.local.notes(sessions.conversations.conversation(self.ctx, conversation).id)

    @verb("note", "clear")
    def clear_notes(self, conversation: str, key: str | None = None) -> int:
        """Delete one note or all notes of a conversation; return how many."""
        return sessions.conversations.clear_notes(self.ctx, conversation, key)

    @verb("observe", "hand-in")
    def observe(self, path: str | Path, *, tier: str | None = None) -> Taken:
        """Keep a session file, make it searchable at once, and queue a job that observes it.

        For a file that was kept before, this adds the new messages. Facts go into `tier`, in the scope that is bound
        here; without it into the narrowest lasting tier that a bound key belongs to.
        """
        self.ctx.require_agent("take in transcripts")
        return sessions.transcripts.take_in(self.ctx, str(path), tier=tier)

    @verb("observe", "again")
    def observe_by_rules(self, id_or_key: str) -> Transcript:
        """Queue the rest of a transcript to be observed by rules, for instance after the model failed for good."""
        return sessions.transcripts.again(self.ctx, id_or_key)

    def transcripts(
        self, *, progress: Progress | str | None = None, limit: int = 100, after: str | None = None
    ) -> list[Transcript]:
        """Return the kept sessions, the newest first."""
        return sessions.transcripts.transcripts(self.ctx, progress=progress, limit=limit, after=after)

    def transcript(self, id_or_key: str) -> Transcript:
        """Return one kept session."""
        return sessions.transcripts.transcript(self.ctx, id_or_key)

    def imported_from(self, id_or_key: str) -> dict[str, str]:
        """Return the format and the file that a transcript was imported from; empty if it was not imported."""
        return sessions.transcripts.imported_from(self.ctx, sessions.transcripts.transcript(self.ctx, id_or_key).id)

    def said(self, id_or_key: str, *, start: int = 0, limit: int | None = None) -> list[Utterance]:
        """Return the messages of a transcript, in order."""
        return sessions.transcripts.said(self.ctx, id_or_key, start=start, limit=limit)

    def learned(self, id_or_key: str) -> list[Sentence]:
        """Return the sentences of a session that were looked at, and what became of each. Only the author may."""
        return sessions.learned.learned(self.ctx, id_or_key)

    def learned_in(self, found: Sequence[Transcript]) -> dict[str, dict[str, int]]:
        """Count the entries that sessions led to, by id: kept, held and retired. Only the author may."""
        return sessions.learned.counts(self.ctx, found)

    def search_transcripts(self, words: str, limit: int = 20) -> list[FoundUtterance]:
        """Return messages with any of these words, the best match first, of all kept sessions."""
        return sessions.transcripts.search(self.ctx, words, limit)
