"""The labelled lines of the observer by rules: what one of them says, and how a file lists them.

    == en                    a part of the training set: its language
    == codex en title        a session of the test set: its format, its language
    u f I live in Porto.     role (u user, a assistant, t tool, + the same message as before), label, sentence
    f I live in Porto.       in the training set there is no role

The labels are f (a lasting statement), d (a doubtful one) and j (neither). In a training line, \\n is a line break.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

DATA = Path(__file__).parent / "data"
TRAINING = DATA / "observer_train.txt"
TEST = DATA / "observer_test.txt"
LABELS = ("f", "d", "j")
ROLES = {"u": "user", "a": "assistant", "t": "tool"}


@dataclass(frozen=True)
class Line:
    """One labelled sentence."""

    label: str
    text: str
    language: str


@dataclass
class Message:
    """The sentences that one speaker says at a time."""

    role: str
    lines: list[Line] = field(default_factory=list)

    @property
    def text(self) -> str:
        return " ".join(line.text for line in self.lines)

    def spans(self) -> Iterator[tuple[int, int, Line]]:
        """Yield the position of each sentence in the message."""
        at = 0
        for line in self.lines:
            yield at, at + len(line.text), line
            at += len(line.text) + 1


@dataclass
class Session:
    """A conversation in one format and one language."""

    format: str
    language: str
    title: str
    messages: list[Message] = field(default_factory=list)


def _rows(path: Path) -> Iterator[str]:
    for row in path.read_text("utf-8").splitlines():
        if row and not row.startswith("#"):
            yield row


def training(path: Path = TRAINING) -> list[Line]:
    """Return the training lines."""
    found, language = [], ""
    for row in _rows(path):
        if row.startswith("== "):
            language = row[3:]
        else:
            found.append(Line(row[0], row[2:].replace("\\n", "\n"), language))
    return found


def sessions(path: Path = TEST) -> list[Session]:
    """Return the sessions of the test set."""
    found: list[Session] = []
    for row in _rows(path):
        if row.startswith("== "):
            form, language, title = row[3:].split(maxsplit=2)
            found.append(Session(form, language, title))
            continue
        here = found[-1]
        if row[0] != "+":
            here.messages.append(Message(ROLES[row[0]]))
        here.messages[-1].lines.append(Line(row[2], row[4:], here.language))
    return found
