"""Decision records in a folder: write new ones, change their status, and check that they fit together."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from msgspec import Struct

from lukasa.curated import adr
from lukasa.curated.adr import Decision, Fault
from lukasa.model.errors import Conflict, InvalidDecision, InvalidInput, NotFound
from lukasa.ports import Clock, DecisionFolder
from lukasa.service import inputs

_WORD = re.compile(r"[\w.@-]+(?: [\w.@-]+)*")


class Decisions(Struct, frozen=True):
    """The decision records of a folder. No number is used twice, not even after a record was deleted."""

    folder: DecisionFolder
    clock: Clock
    changed: Callable[[], None] = lambda: None  # called after each change

    def all(self) -> list[Decision]:
        """Return all records by number; InvalidDecision for the first unreadable one."""
        found = [adr.parse(name, self.folder.read(name)) for name in self.folder.names() if adr.NAME.fullmatch(name)]
        return sorted(found, key=lambda d: d.number)

    def get(self, number: int) -> tuple[Decision, str]:
        """Return a record and its text."""
        for name in self.folder.names():
            named = adr.NAME.fullmatch(name)
            if named is not None and int(named[1]) == number:
                text = self.folder.read(name)
                return adr.parse(name, text), text
        raise NotFound(f"no decision {number:04d} in {self.folder.path}", fix="`lukasa adr list` shows them")

    def new(
        self,
        title: str,
        *,
        status: str = "proposed",
        deciders: Sequence[str] = (),
        tags: Sequence[str] = (),
        supersedes: Sequence[int] = (),
    ) -> Decision:
        """Write a new record with the next unused number, and mark the records that it supersedes."""
        title = inputs.text(title, "title", adr.MOST_TITLE * 2)
        if status == "superseded":
            raise InvalidInput("a new decision cannot be superseded already", fix="use another status")
        for word in (*deciders, *tags):
            if not isinstance(word, str) or not _WORD.fullmatch(word):
                raise InvalidInput(f"front matter cannot hold {str(word)[:60]!r}", fix="use plain words")
        with self.folder.locked():
            old = [self.get(number)[0] for number in dict.fromkeys(supersedes)]
            number = self._highest() + 1
            fields = {"deciders": deciders, "tags": tags, "supersedes": [f"{d.number:04d}" for d in old]}
            text = adr.compose(number, title, status, self.clock.now().date(), fields)
            name = adr.file_name(number, title)
            made = adr.parse(name, text)
            self.folder.reserve(number)
            self.folder.create(name, text)
            for d in old:
                self._mark_superseded(d, number)
        self.changed()
        return made

    def _highest(self) -> int:
        """Return the highest number of the counter file and of all file names, readable records or not."""
        named = (adr.NAME.fullmatch(name) for name in self.folder.names())
        return max((self.folder.highest(), *(int(match[1]) for match in named if match is not None)), default=0)

    def _mark_superseded(self, d: Decision, by: int) -> None:
        text = adr.with_field(d.file, self.folder.read(d.file), "status", ["superseded"])
        numbers = [f"{n:04d}" for n in dict.fromkeys((*d.superseded_by, by))]
        self.folder.replace(d.file, adr.with_field(d.file, text, "superseded-by", numbers))

    def set_status(self, number: int, status: str, *, by: int | None = None) -> Decision:
        """Change a record's status. `superseded` needs `by`, the superseding record, which then names this one."""
        if status not in adr.STATUSES:
            raise InvalidInput(f"unknown status {status[:40]!r}", fix=f"use one of: {', '.join(adr.STATUSES)}")
        if (status == "superseded") != (by is not None):
            raise InvalidInput("superseded and --by go together", fix=f"`lukasa adr status {number} superseded --by N`")
        if by == number:
            raise InvalidInput(f"decision {number:04d} cannot supersede itself", fix="name another decision")
        with self.folder.locked():
            d, text = self.get(number)
            if d.superseded_by and by is None:
                raise Conflict(
                    f"{d.file} is superseded by {d.superseded_by[0]:04d}",
                    fix="write a new decision instead",
                )
            if by is None:
                self.folder.replace(d.file, adr.with_field(d.file, text, "status", [status]))
            else:
                newer, its_text = self.get(by)
                numbers = [f"{n:04d}" for n in dict.fromkeys((*newer.supersedes, number))]
                self.folder.replace(newer.file, adr.with_field(newer.file, its_text, "supersedes", numbers))
                self._mark_superseded(d, by)
        self.changed()
        return self.get(number)[0]

    def check(self) -> list[Fault]:
        """Return all faults of the folder; empty if there are none."""
        read: list[Decision] = []
        found: list[Fault] = []
        for name in (
            name for name in self.folder.names() if name[0].isdigit()
        ):  # other files, such as an index, are no records
            try:
                read.append(adr.parse(name, self.folder.read(name)))
            except InvalidDecision as fault:
                found.append(Fault(name, fault.message.removeprefix(f"{name}: "), fault.fix))
        return found + list(adr.faults(read))
