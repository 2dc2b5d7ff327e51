"""Whether an assistant took up a memory: its distinctive words in what was said after it was shown, without a model."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from lukasa.model.text import terms
from lukasa.model.transcript import Utterance

LEAST = 4  # characters of a word that may tell one entry from another; a number may be shorter
ENOUGH = 2  # of them in one message; one is enough for an entry that has no other


def taken_up(content: str, shown_at: datetime, said: Sequence[Utterance]) -> bool:
    """Return whether a message of the assistant after that time has two distinctive words of an entry.

    A word that a user said anywhere in the session before that message is not distinctive: the assistant may have it
    from there.
    """
    own = {term for term in terms(content) if len(term) >= LEAST or term.isdigit()}
    for message in said:
        words = set(terms(message.text))
        if message.role == "user":
            own -= words
            if not own:
                return False
        elif message.role == "assistant" and message.at is not None and message.at >= shown_at:
            taken = len(own & words)
            if taken and taken >= min(ENOUGH, len(own)):
                return True
    return False
