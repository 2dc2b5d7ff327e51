"""The columns of an entry that ranking needs.

A question has hundreds of candidates and returns a few entries. Only these few are read whole.
"""

from __future__ import annotations

from typing import NamedTuple

from lukasa.model.entry import Entry, Scope
from lukasa.model.text import speaks
from lukasa.model.timestamps import micros, micros_or_none
from lukasa.model.values import VISIBILITY, Kind, State, Trust, Visibility


class Candidate(NamedTuple):
    """An entry without its text. Times are in microseconds since 1970."""

    id: str
    scope: Scope
    kind: Kind
    state: State
    source: str
    tags: tuple[str, ...]
    category: str | None
    conversation: str | None
    importance: float
    created_at: int
    confirmed_at: int
    valid_at: int | None
    invalid_at: int | None
    chars: int  # of its text; 0 for a blank text
    filed: bool
    exempt: bool
    said: bool  # a line of a talk, whose meaning depends on its adjacent lines
    version: int
    trust: Trust

    def holds_at(self, at: int) -> bool:
        return (self.valid_at is None or self.valid_at <= at) and (self.invalid_at is None or at < self.invalid_at)

    @property
    def retired(self) -> bool:
        return VISIBILITY[self.state] is Visibility.HISTORY


def chars(content: str) -> int:
    """The length of a text; 0 for a blank one."""
    return 0 if content.isspace() else len(content)


def is_said(entry: Entry) -> bool:
    """Whether an entry is a line of a talk: an episode, or a text worded as direct speech, whatever its kind is."""
    return entry.path is None and (entry.kind is Kind.EPISODIC or speaks(entry.content))


def candidate_of(entry: Entry) -> Candidate:
    return Candidate(
        entry.id,
        entry.scope,
        entry.kind,
        entry.state,
        entry.source,
        entry.tags,
        entry.category.name if entry.category else None,
        entry.conversation,
        entry.importance,
        micros(entry.created_at),
        micros(entry.confirmed_at),
        micros_or_none(entry.valid_at),
        micros_or_none(entry.invalid_at),
        chars(entry.content),
        entry.path is not None,
        entry.exempt,
        is_said(entry),
        entry.version,
        entry.trust,
    )
