"""The curated document as its users hold it: to read, export, rebuild and take back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from lukasa.curated import document
from lukasa.curated.document import NAME, Dated
from lukasa.model.amendment import AmendmentState
from lukasa.model.entry import NamedEntry
from lukasa.model.errors import Conflict, InvalidInput, MirrorsCanonical, NotFound, Refused
from lukasa.model.values import Trust
from lukasa.ports import CuratedFile
from lukasa.service import inputs
from lukasa.service.call import CallContext, retry_on_conflict
from lukasa.service.curation import publish
from lukasa.service.curation.publish import Synced
from lukasa.service.entries.pages import BODY_LIMIT
from lukasa.service.entries.put import Memo, put_many
from lukasa.service.instrument import verb
from lukasa.storage.operations import Operation, SaveAmendment


class Rebuilt(Struct, frozen=True):
    """A page taken from a file: whether it changed, and what became of an entry for each of its lines."""

    page: NamedEntry
    changed: bool
    outcomes: dict[str, int]


class Curated(Struct, frozen=True):
    """The curated document: everybody reads it, its author and the triage of proposals write it."""

    ctx: CallContext

    @property
    def text(self) -> str:
        return publish.body(self.ctx)

    @property
    def warning(self) -> str:
        return document.warning(self.text)

    @property
    def path(self) -> Path | None:
        """Where the file is, if the spec wants one."""
        return self.ctx.curated_file.path if self.ctx.curated_file is not None else None

    def lines(self) -> list[Dated]:
        return document.lines(self.text)

    def history(self) -> list[NamedEntry]:
        return publish.versions(self.ctx)

    @verb("curated", "export")
    def export(self, file: CuratedFile | None = None) -> Synced:
        """Write the file and a commit for each version that has none: here, or as a new repository elsewhere."""
        self.ctx.require_author("export the curated document")
        if file is None:
            return publish.sync(self.ctx)
        known = publish.versions(self.ctx)
        if not known:
            raise NotFound("there is no curated document yet", fix="`lukasa review` shows what is proposed for it")
        with file.locked():
            there = file.read()
            if there is not None and all(v.body != there for v in known):
                raise Conflict(f"{file.path} holds another text", fix="choose an empty folder")
            file.write(known[-1].body, instead_of=there)
            return publish.committing(self.ctx, file, known, Synced(known[-1].version, False, True, 0))

    @verb("curated", "rebuild")
    def rebuild(self, text: str) -> Rebuilt:
        """Take the page from a file, and give each line an entry if none says the same. Trust is that of an import."""
        self.ctx.require_author("rebuild the curated document")
        inputs.page(text, NAME, BODY_LIMIT)
        changed = retry_on_conflict(lambda: self._replace(text))
        found = publish.page(self.ctx)
        if found is None:
            raise InvalidInput("the file is empty", fix="name a file with dated lines")
        return Rebuilt(found, changed, self._remember())

    def _replace(self, text: str) -> bool:
        before = publish.page(self.ctx)
        if text == (before.body if before is not None else ""):
            return False
        self.ctx.apply(self.ctx.local, *publish.saving(self.ctx, before, text, "rebuild"))
        return True

    def _remember(self) -> dict[str, int]:
        ctx, tier = self.ctx.acting(trust=Trust.IMPORTED), publish.home(self.ctx)
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
        """Take back what a version changed, the last one by default. Its proposal waits for a person again."""
        self.ctx.require_author("take back a change of the curated document")
        publish.take_in(self.ctx)
        return retry_on_conflict(lambda: self._undo(version))

    def _undo(self, version: int | None) -> NamedEntry:
        known = publish.versions(self.ctx)
        wanted = version if version is not None else len(known)
        if not 1 <= wanted <= len(known):
            raise NotFound(f"there is no version {wanted}", fix="`lukasa curated history` shows them")
        after, before = known[wanted - 1].body, known[wanted - 2].body if wanted > 1 else ""
        text = document.carried(after, before, known[-1].body)
        if text == known[-1].body:
            raise Refused(f"nothing of version {wanted} is left to take back", fix="edit the page instead")
        operations = publish.saving(self.ctx, known[-1], text, "undo", undone=str(wanted))
        self.ctx.apply(self.ctx.local, *operations, *self._reopened(wanted))
        return publish.versions(self.ctx)[-1]

    def _reopened(self, version: int) -> list[Operation]:
        proposal = publish.changes(self.ctx).get(version, {}).get("proposal")
        reason = f"version {version} of {NAME} was taken back"
        changed: dict[str, Any] = {
            "decided_by": str(self.ctx.actor),
            "reason": reason,
            "line": "",
            "updated_at": self.ctx.now,
        }
        return [
            SaveAmendment(replace(amendment, state=AmendmentState.REVIEW, **changed), amendment.version)
            for amendment in (self.ctx.local.amendments([proposal]) if proposal else [])
            if amendment.state in (AmendmentState.PROMOTED, AmendmentState.MERGED)
        ]
