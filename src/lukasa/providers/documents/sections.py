"""Text under headings, gathered in the order of the document into parts."""

from __future__ import annotations

from lukasa.model.corpus import Part
from lukasa.providers.documents.limits import Limits, beyond

_LONGEST_HEADING = 300  # characters; a longer one is a paragraph in disguise


class Sections:
    """Builds the parts of a document.

    The text of a part does not hold its own heading, except where there is no other text.
    """

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._parts: list[Part] = []
        self._characters = 0
        self._above: list[tuple[int, str]] = []
        self._text: list[str] = []
        self._line: int | None = None
        self._page: int | None = None
        self._bare = False  # the last heading has no text yet
        self._bare_line: int | None = None

    def heading(self, level: int, text: str, line: int | None = None) -> None:
        """Begin a section. A heading ends the sections of its own level and of those below."""
        text = " ".join(text.split())
        if not text:
            return
        self._flush()
        if self._bare and self._above and self._above[-1][0] >= level:
            self._put_bare()
        while self._above and self._above[-1][0] >= level:
            self._above.pop()
        self._above.append((level, text[:_LONGEST_HEADING]))
        self._bare, self._bare_line = True, line

    def page(self, number: int) -> None:
        """Begin a page: no part spans two pages."""
        self._flush()
        self._page = number

    def add(self, text: str, line: int | None = None) -> None:
        """Add text to the section. It is joined to the text before as it is."""
        self._characters += len(text)
        if self._characters > self._limits.characters:
            beyond(f"it has more than {self._limits.characters:,} characters of text", "characters")
        if not self._text:
            self._line = line
        self._text.append(text)

    def parts(self) -> tuple[Part, ...]:
        self._flush()
        if self._bare:
            self._put_bare()
        return tuple(self._parts)

    def _flush(self) -> None:
        text, self._text = "".join(self._text), []
        body = text.lstrip("\n") if text.strip() else ""
        if not body:
            return
        while not body.partition("\n")[0].strip():
            body = body.partition("\n")[2]
        line = None if self._line is None else self._line + text[: len(text) - len(body)].count("\n")
        self._put(Part(body.rstrip(), tuple(heading for _, heading in self._above), self._page, line))
        self._bare = False

    def _put_bare(self) -> None:
        *above, (_, own) = self._above
        self._bare = False
        self._put(Part(own, tuple(heading for _, heading in above), self._page, self._bare_line))

    def _put(self, part: Part) -> None:
        if len(self._parts) >= self._limits.parts:
            beyond(f"it has more than {self._limits.parts:,} sections", "parts")
        self._parts.append(part)
