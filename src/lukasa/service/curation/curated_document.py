"""The curated document: read it, write proposals into it, keep its file under git, rebuild it, and undo changes."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from contextvars import Context
from functools import partial
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from lukasa.curated import document
from lukasa.curated.document import NAME, Dated
from lukasa.model.amendment import Amendment, AmendmentState
from lukasa.model.entry import NamedEntry
from lukasa.model.errors import (
    Conflict,
    Damaged,
    GitError,
    GitMissing,
    InvalidInput,
    MirrorsCanonical,
    NotFound,
    Refused,
)
from lukasa.model.events import EventDraft
from lukasa.model.job import JobDraft
from lukasa.model.values import Trust
from lukasa.ports import CuratedFile
from lukasa.service import inputs
from lukasa.service.call import CallContext, retry_on_conflict
from lukasa.service.curation import kept_records, notices
from lukasa.service.entries.pages import BODY_LIMIT, lasting
from lukasa.service.entries.put import Memo, put_many
from lukasa.service.instrument import verb
from lukasa.service.jobs.task import Task, job_actor, job_context, whole
from lukasa.service.jobs.worker import JobSource, Worker
from lukasa.storage.operations import Enqueue, Operation, Record, SaveAmendment, SaveNamed


class Rebuilt(Struct, frozen=True):
    """A page taken from a file: whether it changed, and the outcomes of the entries for its lines.

    `records` are the files of the log and of decisions that came along.
    """

    page: NamedEntry
    changed: bool
    outcomes: dict[str, int]
    records: tuple[str, ...] = ()


class Curated(Struct, frozen=True):
    """The curated document: everybody reads it; its author and the triage of proposals write it."""

    ctx: CallContext

    @property
    def text(self) -> str:
        """The present text; empty if there is none."""
        return body(self.ctx)

    @property
    def warning(self) -> str:
        """A warning if the document is too long to load every time; else empty."""
        return document.warning(self.text)

    @property
    def path(self) -> Path | None:
        """The path of the file, if the spec asks for one."""
        return self.ctx.curated_file.path if self.ctx.curated_file is not None else None

    def lines(self) -> list[Dated]:
        """Return the dated lines."""
        return document.lines(self.text)

    def history(self) -> list[NamedEntry]:
        """Return every version, oldest first."""
        return versions(self.ctx)

    @verb("curated", "export")
    def export(self, file: CuratedFile | None = None) -> Synced:
        """Write the file, and a commit for each version without one: here, or in a new repository elsewhere."""
        self.ctx.require_author("export the curated document")
        if file is None:
            done = sync(self.ctx)
            kept_records.commit_now(self.ctx)
            return done
        known = versions(self.ctx)
        if not known:
            raise NotFound("there is no curated document yet", fix="`lukasa review` shows the proposals")
        with file.locked():
            there = file.read()
            if there is not None and all(v.body != there for v in known):
                raise Conflict(f"{file.path} holds another text", fix="choose an empty folder")
            file.write(known[-1].body, instead_of=there)
            return committing(self.ctx, file, known, Synced(known[-1].version, False, True, 0))

    @verb("curated", "rebuild")
    def rebuild(self, text: str) -> Rebuilt:
        """Replace the page by a file, and import an entry for each line that no entry states."""
        self.ctx.require_author("rebuild the curated document")
        inputs.page(text, NAME, BODY_LIMIT)
        changed = retry_on_conflict(lambda: self._replace(text))
        commit_now(self.ctx)
        found = page(self.ctx)
        if found is None:
            raise InvalidInput("the file holds no text", fix="name a file with dated lines")
        return Rebuilt(found, changed, self._remember())

    @verb("curated", "rebuild")
    def rebuild_from(self, source: CuratedFile) -> Rebuilt:
        """Do the same from the last commit of a repository; its log and decision records come along, if they are kept.

        Files that this workspace has already stay as they are.
        """
        last = next(iter(source.commits()), None)
        if last is None:
            raise NotFound(
                f"{source.path.parent} has no commit of {source.path.name}", fix="name a clone of the repository"
            )
        made = self.rebuild(last.body)
        back = kept_records.put_back(self.ctx, source.kept(kept_records.patterns(self.ctx)))
        return replace(made, records=tuple(back))

    def _replace(self, text: str) -> bool:
        before = page(self.ctx)
        if text == (before.body if before is not None else ""):
            return False
        self.ctx.apply(self.ctx.local, *saving(self.ctx, before, text, "rebuild"))
        return True

    def _remember(self) -> dict[str, int]:
        ctx, tier = self.ctx.acting(trust=Trust.IMPORTED), home(self.ctx)
        outcomes: dict[str, int] = {}
        for dated in self.lines():
            memo = Memo(dated.text, importance=0.8, source="curated", valid_at=dated.day)
            try:
                outcome = put_many(ctx, tier, [memo])[0].outcome
            except MirrorsCanonical:
                outcome = "refused"
            outcomes[outcome] = outcomes.get(outcome, 0) + 1
        return outcomes

    @verb("curated", "undo")
    def undo(self, version: int | None = None) -> NamedEntry:
        """Take back the change of a version, by default the last. Its proposal waits for a person again."""
        return take_back(self.ctx, version)


def take_back(ctx: CallContext, version: int | None) -> NamedEntry:
    """Take back the change of a version, by default of the last one, and commit the page without it."""
    ctx.require_author("take back a change of the curated document")
    take_in(ctx)
    made = retry_on_conflict(lambda: _take_back(ctx, version))
    commit_now(ctx)
    return made


def _take_back(ctx: CallContext, version: int | None) -> NamedEntry:
    known = versions(ctx)
    wanted = version if version is not None else len(known)
    if not 1 <= wanted <= len(known):
        raise NotFound(f"there is no version {wanted}", fix="`lukasa curated history` shows them")
    after, before = known[wanted - 1].body, known[wanted - 2].body if wanted > 1 else ""
    text = document.carried(after, before, known[-1].body)
    if text == known[-1].body:
        raise Refused(f"nothing of version {wanted} is left to take back", fix="edit the page instead")
    operations = saving(ctx, known[-1], text, "undo", undone=str(wanted))
    ctx.apply(ctx.local, *operations, *_reopened(ctx, wanted))
    return versions(ctx)[-1]


def _reopened(ctx: CallContext, version: int) -> list[Operation]:
    proposal = changes(ctx).get(version, {}).get("proposal")
    reason = f"version {version} of {NAME} was taken back"
    changed: dict[str, Any] = {"decided_by": str(ctx.actor), "reason": reason, "line": "", "updated_at": ctx.now}
    operations: list[Operation] = []
    for amendment in ctx.local.amendments([proposal]) if proposal else []:
        if amendment.state in (AmendmentState.PROMOTED, AmendmentState.MERGED):
            waiting = replace(amendment, state=AmendmentState.REVIEW, **changed)
            operations += [SaveAmendment(waiting, amendment.version), *notices.asking(ctx, waiting)]
    return operations


def promoted_in(ctx: CallContext, proposal: str) -> int | None:
    """Return the version that put a proposal on the page, if it is on the page."""
    found = next(iter(ctx.local.amendments([proposal])), None)
    if found is None or found.state not in (AmendmentState.PROMOTED, AmendmentState.MERGED):
        return None
    return max((version for version, about in changes(ctx).items() if about.get("proposal") == proposal), default=None)


FILE_EDITOR = "author@file"
EVERY = 1_000_000


class Synced(Struct, frozen=True):
    """The changes made to the file. `trouble` says why there is no commit."""

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
    """Return the page, if it exists; Damaged if its text is not the one that was written."""
    found = next((n for n in ctx.local.named(NAME) if ctx.opens(n.tier)), None)
    if found is not None and found.damaged:
        raise Damaged(f"page {NAME}")
    return found


def body(ctx: CallContext) -> str:
    """Return the text of the page."""
    found = page(ctx)
    return found.body if found is not None else ""


def versions(ctx: CallContext) -> list[NamedEntry]:
    """Return every version of the page."""
    return ctx.local.named_versions(NAME) if page(ctx) is not None else []


def saving(
    ctx: CallContext, before: NamedEntry | None, text: str, how: str, *, editor: str = "", **about: str
) -> tuple[Operation, ...]:
    """Return the operations that save the next version of the page, its event, and the job that writes the file."""
    inputs.page(text, NAME, BODY_LIMIT)
    expect = before.version if before is not None else 0
    tier = before.tier if before is not None else home(ctx)
    entry = NamedEntry(NAME, tier, text, ctx.now, editor or str(ctx.actor), expect + 1)
    told = EventDraft("curated.changed", NAME, {"version": expect + 1, "how": how, **about})
    return SaveNamed(entry, expect), Record(told), *writing(ctx, expect + 1)


def writing(ctx: CallContext, version: int) -> tuple[Operation, ...]:
    """Return the job that writes a version to the file, if the spec asks for a file."""
    if ctx.curated_file is None:
        return ()
    return (Enqueue(JobDraft("curate", f"curate:{version}", {"version": version})),)


def home(ctx: CallContext) -> str:
    """Return the tier of the page: the narrowest lasting one of the workspace."""
    tiers = lasting(ctx)
    return next((tier.name for tier in tiers if tier.home == "workspace"), tiers[0].name)


def promotion(
    ctx: CallContext, amendment: Amendment, text: str, *, decided_by: str, reason: str, into: Dated | None = None
) -> tuple[Amendment, tuple[Operation, ...]]:
    """Return the decided amendment and the operations that put it on the page, for one commit.

    With `into`, or if the page has the text already, the amendment is merged into that line.
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
    """If a person edited the file, save their text as a version of the page, with the amendments promoted meanwhile."""
    file = ctx.curated_file
    if file is None:
        return False
    with file.locked():
        return _take_in(ctx, file)


def _take_in(ctx: CallContext, file: CuratedFile) -> bool:
    def attempt() -> bool:
        text = file.read()
        known = versions(ctx)
        if text is None or (known and known[-1].body == text):
            return False
        written = _written_here(ctx, file, known)
        if any(v.body == text for v in known if v.version >= written):
            return False
        present = known[-1].body if known else ""
        base = known[written - 1].body if 0 < written <= len(known) else ""
        merged = document.carried(base, present, text)
        ctx.apply(ctx.local, *saving(ctx, known[-1] if known else None, merged, "file", editor=FILE_EDITOR))
        return True

    return retry_on_conflict(attempt)


def _written(ctx: CallContext) -> int:
    """Return the version that was last written to a file; 0 if none was."""
    told = ctx.local.events(subject=NAME, action="curated.written", limit=EVERY)
    return int(told[-1].detail["version"]) if told else 0


def _written_here(ctx: CallContext, file: CuratedFile, known: Sequence[NamedEntry]) -> int:
    """Return the version that this file got last. On a database, the file of another machine may have got a later one.

    The newest commit tells, if Lukasa made it; the event log tells of the last writing on any machine.
    """
    with suppress(GitError):
        newest = next(iter(file.commits()), None)
        said = newest.version or 0 if newest is not None else 0
        if newest is not None and 0 < said <= len(known) and known[said - 1].body == newest.body:
            return said
    return _written(ctx)


def sync(ctx: CallContext) -> Synced:
    """Write the page to the file and commit its versions. A repetition changes nothing."""
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
    """Commit versions to git. Without git, the file is written all the same, and the result says so."""
    try:
        return replace(done, committed=_commit(ctx, file, known))
    except GitMissing as missing:
        return replace(done, trouble=missing.message)


def _commit(ctx: CallContext, file: CuratedFile, known: Sequence[NamedEntry]) -> int:
    """Commit each version that has no commit yet; return how many."""
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
    """Return the last version that has a commit, and the text of the newest commit."""
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
    """Return the cause of each version, from the event log; versions edited as a page have none."""
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


def commit_now(ctx: CallContext) -> str:
    """Do the waiting jobs that write the file, here and now; return the trouble, if there is any.

    A change of the page and its job are one transaction. So a crash before this, or a failure in it, leaves the commit
    to a worker.
    """
    if ctx.curated_file is None:
        return ""
    return Context().run(_commit_now, ctx)  # its telemetry is the job's, not that of the verb that runs


def _commit_now(ctx: CallContext) -> str:
    handler = partial(curate, job_context(ctx, "curate"))
    source = JobSource(ctx.info.name, whole(ctx), {"curate": handler}, job_actor)
    worker, trouble = Worker(lambda: [source], clock=ctx.clock), ""
    while (run := worker.step()) is not None:
        trouble = run.error or str(run.result.get("git", ""))
    return trouble


def curate(ctx: CallContext, task: Task) -> dict[str, Any]:
    """K1: write MEMORY.md and commit it. After a crash, commits that git already has are not repeated."""
    if ctx.curated_file is None:
        return {}
    if not task.journaled("written"):
        counts = sync(ctx).counts()
        point = task.telemetry("curate.completed", level="warn" if "git" in counts else "info", metadata=counts)
        task.commit("written", counts, point)
    return dict(task.output("written"))
