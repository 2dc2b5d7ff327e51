"""The curated document of a workspace: the page in the database, and the file under git where the spec wants one.

The database has the truth: the named entry MEMORY with all its versions. The file follows it, a commit for each
version. What a person makes of the file is taken in as a version of theirs before anything else is done.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from lukasa.curated import document
from lukasa.curated.document import NAME, Dated
from lukasa.model.amendment import Amendment, AmendmentState
from lukasa.model.entry import NamedEntry
from lukasa.model.errors import GitMissing, Refused
from lukasa.model.events import EventDraft
from lukasa.model.job import JobDraft
from lukasa.ports import CuratedFile
from lukasa.service import inputs
from lukasa.service.call import CallContext, retry_on_conflict
from lukasa.service.entries.pages import BODY_LIMIT, lasting
from lukasa.service.jobs.task import Task
from lukasa.storage.operations import Enqueue, Operation, Record, SaveAmendment, SaveNamed

FILE_EDITOR = "author@file"
EVERY = 1_000_000


class Synced(Struct, frozen=True):
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


def page(ctx: CallContext) -> NamedEntry | None:
    return next((n for n in ctx.local.named(NAME) if ctx.opens(n.tier)), None)


def body(ctx: CallContext) -> str:
    found = page(ctx)
    return found.body if found is not None else ""


def versions(ctx: CallContext) -> list[NamedEntry]:
    return ctx.local.named_versions(NAME) if page(ctx) is not None else []


def saving(
    ctx: CallContext, before: NamedEntry | None, text: str, how: str, *, editor: str = "", **about: str
) -> tuple[Operation, ...]:
    """The page's next version, what brought it about, and the job that writes the file."""
    inputs.page(text, NAME, BODY_LIMIT)
    expect = before.version if before is not None else 0
    tier = before.tier if before is not None else home(ctx)
    entry = NamedEntry(NAME, tier, text, ctx.now, editor or str(ctx.actor), expect + 1)
    told = EventDraft("curated.changed", NAME, {"version": expect + 1, "how": how, **about})
    return SaveNamed(entry, expect), Record(told), *writing(ctx, expect + 1)


def writing(ctx: CallContext, version: int) -> tuple[Operation, ...]:
    if ctx.curated_file is None:
        return ()
    return (Enqueue(JobDraft("curate", f"curate:{version}", {"version": version})),)


def home(ctx: CallContext) -> str:
    """The tier that the page belongs to: the narrowest lasting one of the workspace."""
    tiers = lasting(ctx)
    return next((tier.name for tier in tiers if tier.home == "workspace"), tiers[0].name)


def promotion(
    ctx: CallContext, amendment: Amendment, text: str, *, decided_by: str, reason: str, into: Dated | None = None
) -> tuple[Amendment, tuple[Operation, ...]]:
    """An amendment put on the page: both are one commit, and neither is made without the other.

    With `into`, or if the page has the text already, it is folded into that line.
    """
    before = page(ctx)
    present = before.body if before is not None else ""
    same = into or document.twin(present, text)
    today = ctx.now.date()
    if same is not None:
        edit = document.merged(present, same, text, today)
    else:
        edit = document.promoted(present, document.section_title(amendment.section, ctx.taxonomy), text, today)
    if edit.instead_of and not edit.merged:
        reason = f"{reason}; it takes the place of a line that it contradicts"
    state = AmendmentState.MERGED if edit.merged else AmendmentState.PROMOTED
    decided = replace(amendment, state=state, decided_by=decided_by, reason=reason, line=edit.text, updated_at=ctx.now)
    save = saving(ctx, before, edit.body, str(state), proposal=amendment.id, by=decided_by)
    return decided, (SaveAmendment(decided, amendment.version), *save)


# The file


def take_in(ctx: CallContext) -> bool:
    """If a person changed the file, their text becomes a version of the page, with what was promoted meanwhile."""
    file = ctx.curated_file
    if file is None:
        return False
    with file.locked():
        return _take_in(ctx, file)


def _take_in(ctx: CallContext, file: CuratedFile) -> bool:
    def attempt() -> bool:
        text = file.read()
        known = versions(ctx)
        written = _written(ctx)
        if text is None or any(v.body == text for v in known if v.version >= written):
            return False
        present = known[-1].body if known else ""
        base = known[written - 1].body if 0 < written <= len(known) else ""
        merged = document.carried(base, present, text)
        ctx.apply(ctx.local, *saving(ctx, known[-1] if known else None, merged, "file", editor=FILE_EDITOR))
        return True

    return retry_on_conflict(attempt)


def _written(ctx: CallContext) -> int:
    """The version that the file was last given; 0 if it never was."""
    told = ctx.local.events(subject=NAME, action="curated.written", limit=EVERY)
    return int(told[-1].detail["version"]) if told else 0


def sync(ctx: CallContext) -> Synced:
    """Bring the file and its commits into step with the page. Repeating it changes nothing."""
    file = ctx.curated_file
    if file is None:
        raise Refused("this workspace keeps its curated document in the database alone", fix="give a folder with --dir")
    with file.locked():
        taken = _take_in(ctx, file)
        known = versions(ctx)
        if not known:
            return Synced(0, taken, False, 0)
        current = known[-1]
        wrote = file.write(current.body, instead_of=file.read())
        if wrote and _written(ctx) != current.version:
            ctx.apply(ctx.local, Record(EventDraft("curated.written", NAME, {"version": current.version})))
        return committing(ctx, file, known, Synced(current.version, taken, wrote, 0))


def committing(ctx: CallContext, file: CuratedFile, known: Sequence[NamedEntry], done: Synced) -> Synced:
    """Commits as far as git allows; without git the file is there all the same, and the answer says so."""
    try:
        return replace(done, committed=_commit(ctx, file, known))
    except GitMissing as missing:
        return replace(done, trouble=missing.message)


def _commit(ctx: CallContext, file: CuratedFile, known: Sequence[NamedEntry]) -> int:
    """A commit for each version that has none yet; how many were made."""
    reached, head = _reached(file, known)
    made = 0
    for version in known[reached:]:
        if version.body != head:
            message = _message(ctx, version)
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


def changes(ctx: CallContext) -> dict[int, dict[str, Any]]:
    """What brought each version about, as the log has it; a version that was edited as a page is not there."""
    told = ctx.local.events(subject=NAME, action="curated.changed", limit=EVERY)
    return {int(event.detail["version"]): event.detail for event in told}


def _message(ctx: CallContext, version: NamedEntry) -> str:
    about = changes(ctx).get(version.version, {"how": "edit"})
    found = ctx.local.amendments([about["proposal"]]) if about.get("proposal") else []
    if found:
        amendment = found[0]
        verb = "Merge" if about["how"] == "merged" else "Promote"
        line = amendment.line if len(amendment.line) <= 60 else f"{amendment.line[:59]}…"
        return f"{verb}: {line}\n\nProposal {amendment.id}, by {amendment.decided_by}: {amendment.reason}"
    subjects = {"file": "Take in an edit of the file", "undo": "Take back a change", "rebuild": "Rebuild from a file"}
    return subjects.get(about["how"], f"Edit by {version.editor}")


def curate(ctx: CallContext, task: Task) -> dict[str, Any]:
    """K1: the job that writes MEMORY.md and commits it. Git may have done its part before a crash: that is seen."""
    if ctx.curated_file is None:
        return {}
    if not task.journaled("written"):
        counts = sync(ctx).counts()
        point = task.point("curate.completed", level="warn" if "git" in counts else "info", metadata=counts)
        task.commit("written", counts, point)
    return dict(task.output("written"))
