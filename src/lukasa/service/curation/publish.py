"""The curated document of a workspace: the page in the database, and the file under git where the spec wants one.

The database has the truth: the named entry MEMORY with all its versions. The file follows it, a commit for each
version. What a person makes of the file is taken in as a version of theirs before anything else is done.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from lukasa.curated import document
from lukasa.curated.document import NAME, Dated
from lukasa.model.amendment import Amendment, AmendmentState
from lukasa.model.entry import NamedEntry
from lukasa.model.errors import GitMissing, Refused
from lukasa.model.events import EventDraft
from lukasa.model.frozen import dataclass
from lukasa.model.job import JobDraft
from lukasa.ports import CuratedFile
from lukasa.service import inputs
from lukasa.service.call import Room
from lukasa.service.entries.pages import BODY_LIMIT, lasting
from lukasa.service.jobs.task import Task
from lukasa.service.retry import deciding_anew
from lukasa.storage.operations import Enqueue, Operation, Record, SaveAmendment, SaveNamed

FILE_EDITOR = "author@file"
EVERY = 1_000_000


@dataclass(frozen=True, slots=True)
class Synced:
    """What was done to the file. `trouble` says why there is no commit, where there is none."""

    version: int
    taken_in: bool
    written: bool
    committed: int
    trouble: str = ""

    def counts(self) -> dict[str, Any]:
        told = {"git": self.trouble} if self.trouble else {}
        return {"version": self.version, "taken_in": int(self.taken_in), "committed": self.committed, **told}


# The page


def page(room: Room) -> NamedEntry | None:
    return next((n for n in room.local.named(NAME) if room.opens(n.tier)), None)


def body(room: Room) -> str:
    found = page(room)
    return found.body if found is not None else ""


def versions(room: Room) -> list[NamedEntry]:
    return room.local.named_versions(NAME) if page(room) is not None else []


def saving(
    room: Room, before: NamedEntry | None, text: str, how: str, *, editor: str = "", **about: str
) -> tuple[Operation, ...]:
    """The page's next version, what brought it about, and the job that writes the file."""
    inputs.page(text, NAME, BODY_LIMIT)
    expect = before.version if before is not None else 0
    tier = before.tier if before is not None else home(room)
    entry = NamedEntry(NAME, tier, text, room.now, editor or str(room.actor), expect + 1)
    told = EventDraft("curated.changed", NAME, {"version": expect + 1, "how": how, **about})
    return SaveNamed(entry, expect), Record(told), *writing(room, expect + 1)


def writing(room: Room, version: int) -> tuple[Operation, ...]:
    if room.curated_file is None:
        return ()
    return (Enqueue(JobDraft("curate", f"curate:{version}", {"version": version})),)


def home(room: Room) -> str:
    """The tier that the page belongs to: the narrowest lasting one of the workspace."""
    tiers = lasting(room)
    return next((tier.name for tier in tiers if tier.home == "workspace"), tiers[0].name)


def promotion(
    room: Room, amendment: Amendment, text: str, *, decided_by: str, reason: str, into: Dated | None = None
) -> tuple[Amendment, tuple[Operation, ...]]:
    """An amendment put on the page: both are one commit, and neither is made without the other.

    With `into`, or if the page has the text already, it is folded into that line.
    """
    before = page(room)
    present = before.body if before is not None else ""
    same = into or document.twin(present, text)
    today = room.now.date()
    if same is not None:
        edit = document.merged(present, same, text, today)
    else:
        edit = document.promoted(present, document.section_title(amendment.section, room.taxonomy), text, today)
    if edit.instead_of and not edit.merged:
        reason = f"{reason}; it takes the place of a line that it contradicts"
    state = AmendmentState.MERGED if edit.merged else AmendmentState.PROMOTED
    decided = replace(amendment, state=state, decided_by=decided_by, reason=reason, line=edit.text, updated_at=room.now)
    save = saving(room, before, edit.body, str(state), proposal=amendment.id, by=decided_by)
    return decided, (SaveAmendment(decided, amendment.version), *save)


# The file


def take_in(room: Room) -> bool:
    """If a person changed the file, their text becomes a version of the page, with what was promoted meanwhile."""
    file = room.curated_file
    if file is None:
        return False
    with file.locked():
        return _take_in(room, file)


def _take_in(room: Room, file: CuratedFile) -> bool:
    def attempt() -> bool:
        text = file.read()
        known = versions(room)
        written = _written(room)
        if text is None or any(v.body == text for v in known if v.version >= written):
            return False
        present = known[-1].body if known else ""
        base = known[written - 1].body if 0 < written <= len(known) else ""
        merged = document.carried(base, present, text)
        room.apply(room.local, *saving(room, known[-1] if known else None, merged, "file", editor=FILE_EDITOR))
        return True

    return deciding_anew(attempt)


def _written(room: Room) -> int:
    """The version that the file was last given; 0 if it never was."""
    told = room.local.events(subject=NAME, action="curated.written", limit=EVERY)
    return int(told[-1].detail["version"]) if told else 0


def sync(room: Room) -> Synced:
    """Bring the file and its commits into step with the page. Repeating it changes nothing."""
    file = room.curated_file
    if file is None:
        raise Refused("this workspace keeps its curated document in the database alone", fix="give a folder with --dir")
    with file.locked():
        taken = _take_in(room, file)
        known = versions(room)
        if not known:
            return Synced(0, taken, False, 0)
        current = known[-1]
        wrote = file.write(current.body, instead_of=file.read())
        if wrote and _written(room) != current.version:
            room.apply(room.local, Record(EventDraft("curated.written", NAME, {"version": current.version})))
        return committing(room, file, known, Synced(current.version, taken, wrote, 0))


def committing(room: Room, file: CuratedFile, known: Sequence[NamedEntry], done: Synced) -> Synced:
    """Commits as far as git allows; without git the file is there all the same, and the answer says so."""
    try:
        return replace(done, committed=_commit(room, file, known))
    except GitMissing as missing:
        return replace(done, trouble=missing.message)


def _commit(room: Room, file: CuratedFile, known: Sequence[NamedEntry]) -> int:
    """A commit for each version that has none yet; how many were made."""
    reached, head = _reached(file, known)
    made = 0
    for version in known[reached:]:
        if version.body != head:
            message = _message(room, version)
            file.commit(
                version.body, version=version.version, message=message, author=version.editor, at=version.edited_at
            )
            head = version.body
            made += 1
    return made


def _reached(file: CuratedFile, known: Sequence[NamedEntry]) -> tuple[int, str | None]:
    """The last version that has a commit, by what the commits say and hold; and the text of the newest commit."""
    head: str | None = None
    for commit in file.commits():
        head = commit.body if head is None else head
        said = commit.version or 0
        if 0 < said <= len(known) and known[said - 1].body == commit.body:
            return said, head
        for version in reversed(known):
            if version.body == commit.body:
                return version.version, head
    return 0, head


def changes(room: Room) -> dict[int, dict[str, Any]]:
    """What brought each version about, as the log has it; a version that was edited as a page is not there."""
    told = room.local.events(subject=NAME, action="curated.changed", limit=EVERY)
    return {int(event.detail["version"]): event.detail for event in told}


def _message(room: Room, version: NamedEntry) -> str:
    about = changes(room).get(version.version, {"how": "edit"})
    found = room.local.amendments([about["proposal"]]) if about.get("proposal") else []
    if found:
        amendment = found[0]
        verb = "Merge" if about["how"] == "merged" else "Promote"
        line = amendment.line if len(amendment.line) <= 60 else f"{amendment.line[:59]}…"
        return f"{verb}: {line}\n\nProposal {amendment.id}, by {amendment.decided_by}: {amendment.reason}"
    subjects = {"file": "Take in an edit of the file", "undo": "Take back a change", "rebuild": "Rebuild from a file"}
    return subjects.get(about["how"], f"Edit by {version.editor}")


def curate(room: Room, task: Task) -> dict[str, Any]:
    """K1: the job that writes MEMORY.md and commits it. Git may have done its part before a crash: that is seen."""
    if room.curated_file is None:
        return {}
    if not task.journaled("written"):
        counts = sync(room).counts()
        point = task.point("curate.completed", level="warn" if "git" in counts else "info", metadata=counts)
        task.commit("written", counts, point)
    return dict(task.output("written"))
