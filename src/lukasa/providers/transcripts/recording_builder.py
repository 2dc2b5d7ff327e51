"""Build a recording from the records of a session file; all formats share these functions for texts, times and ids."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from lukasa.model.secrets import redact
from lukasa.model.text import storable
from lukasa.model.transcript import Role
from lukasa.ports import Aside, Piece, Recording

MOST_TEXT = 200_000  # characters of one message
MOST_OUTPUT = 2000  # characters of a tool's output; longer outputs are not used
MOST_PIECES = 200_000
MOST_LABEL = 150
MOST_TITLED = 4000  # characters of a message that its title is taken from


@dataclass(slots=True)
class RecordingBuilder:
    """Collects the pieces of one session file and returns them as a `Recording`."""

    format: str = ""
    session: str = ""
    title: str = ""
    folder: str = ""
    started_at: datetime | None = None
    pieces: list[Piece] = field(default_factory=list)
    broken: list[int] = field(default_factory=list)
    _chain: str = ""

    def add(
        self,
        role: Role,
        text: str,
        *,
        id: str = "",
        at: datetime | None = None,
        aside: Aside = "",
        failed: bool = False,
    ) -> None:
        """Add a piece. A piece without an id gets a digest of itself and of all such pieces before it."""
        if len(self.pieces) >= MOST_PIECES:
            return
        said = storable(text[:MOST_TEXT])
        if not id:
            chained = "\x1f".join((self._chain, role, said))
            self._chain = id = hashlib.sha256(chained.encode("utf-8", "replace")).hexdigest()[:24]
        if self.started_at is None:
            self.started_at = at
        self.pieces.append(Piece(id[:MOST_LABEL], role, said, at, aside, failed))

    def recording(self) -> Recording:
        title = self.title or next((p.text for p in self.pieces if p.role == "user" and not p.aside), "")
        return Recording(
            self.format,
            storable(self.session)[:MOST_LABEL],
            " ".join(redact(title[:MOST_TITLED])[0].split())[:MOST_LABEL],  # cut last: half a secret looks like none
            self.started_at,
            tuple(self.pieces),
            tuple(self.broken),
            storable(self.folder),
        )


def texts(content: object, kinds: tuple[str, ...] = ("text", "input_text", "output_text")) -> str:
    """Return the text of a message: the content itself, or the texts of its parts."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    found = (part.get("text") if isinstance(part, Mapping) and part.get("type") in kinds else part for part in content)
    return "\n".join(part for part in found if isinstance(part, str))


def brief(value: object) -> str:
    """Return the start of a tool's input or output as text."""
    if isinstance(value, str):
        return value[:MOST_OUTPUT]
    if text := texts(value):
        return text[:MOST_OUTPUT]
    try:
        return json.dumps(value, ensure_ascii=False)[:MOST_OUTPUT]
    except (ValueError, RecursionError):
        return ""


def label(record: Mapping[str, Any], *keys: str) -> str:
    """Return the first of these fields that holds text or a number, as text."""
    found = (record.get(key) for key in keys)
    return next((str(value)[:MOST_LABEL] for value in found if isinstance(value, str | int) and value), "")


def parse_time(value: object) -> datetime | None:
    """Parse a time: ISO 8601, or seconds or milliseconds since 1970. None if it is neither."""
    try:
        if isinstance(value, str):
            found = datetime.fromisoformat(value)
            return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)
        if isinstance(value, int | float) and not isinstance(value, bool) and value > 0:
            return datetime.fromtimestamp(value / 1000 if value > 1e11 else value, UTC)
    except (ValueError, OverflowError, OSError):
        return None
    return None
