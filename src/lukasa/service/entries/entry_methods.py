"""The methods of a workspace that write: entries and pages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from lukasa.curated.document import NAME
from lukasa.model.entry import NamedEntry, SourceLink
from lukasa.model.errors import InvalidInput
from lukasa.model.secrets import redact
from lukasa.model.values import SHARED, Curator, Kind, Lifetime, Outcome
from lukasa.service import curation, entries, inputs
from lukasa.service.call import Bound
from lukasa.service.instrument import verb
from lukasa.storage.operations import LinkAction

if TYPE_CHECKING:
    from lukasa.service.citations.citing import Cite
    from lukasa.service.entries.put import Memo, Written
    from lukasa.service.entries.undo import Permit, Undone


_CHECKED = {"confirmed": "checked, and it holds", "failed": "checked, and it could not be confirmed"}


class EntryMethods(Bound, frozen=True):
    """Write, revise and undo entries; write pages."""

    @verb("memory", "put")
    def put(
        self,
        tier: str,
        content: str,
        *,
        kind: Kind | str | None = None,
        importance: float = 0.5,
        lifetime: Lifetime | str | None = None,
        tags: Sequence[str] = (),
        owner: str = SHARED,
        source: str = "",
        curator: Curator | str | None = None,
        links: Sequence[SourceLink | str] = (),
        derived_from: Sequence[str] = (),
        valid_at: datetime | str | None = None,
        supersedes: str | None = None,
        corrects: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        cites: Sequence[Cite | str] = (),
    ) -> Written:
        """Remember a text in a tier. The result says what the write did with it, and why."""
        memo = entries.put.Memo(
            content=content,
            kind=kind,
            importance=importance,
            lifetime=lifetime,
            tags=tags,
            owner=owner,
            source=source,
            curator=curator,
            links=links,
            derived_from=derived_from,
            valid_at=valid_at,
            supersedes=supersedes,
            corrects=corrects,
            metadata=metadata or {},
            cites=cites,
        )
        return self._shown(entries.put.put_many(self.ctx, tier, [memo])[0])

    @verb("memory", "put")
    def put_many(self, tier: str, memos: Sequence[Memo | str]) -> list[Written]:
        """Remember several texts in one transaction: all of them, or none."""
        batch = inputs.several(memos, "memos")
        made = [entries.put.Memo(m) if isinstance(m, str) else m for m in batch]
        return [self._shown(written) for written in entries.put.put_many(self.ctx, tier, made)]

    @verb("memory", "update")
    def update(self, id: str, *, expect: int | None = None, **patch: Any) -> Written:
        """Change content, importance, tags, kind, lifetime, metadata or valid_at of an entry.

        With `expect`, the change is made only if the entry is still at that version.
        """
        return self._shown(entries.revise.update(self.ctx, id, patch, expect=expect))

    @verb("memory", "forget")
    def forget(self, id: str, reason: str = "forgotten on request") -> Written:
        """Take an entry out of recall. Its row and history stay; `restore` brings it back.

        An entry that it had replaced holds again, unless a more trusted one contradicts that.
        """
        return self._shown(entries.revise.forget(self.ctx, id, inputs.label(reason, "reason")))

    @verb("memory", "restore")
    def restore(self, id: str, reason: str = "restored on request") -> Written:
        """Bring an entry back from history. It counts as said now."""
        return self._shown(entries.revise.restore(self.ctx, id, inputs.label(reason, "reason")))

    @verb("memory", "corroborate")
    def corroborate(self, id: str, outcome: Outcome | str = "confirmed", reason: str = "") -> Written:
        """Record that an entry was checked: `confirmed` renews it, and `failed` counts against it.

        Enough independent observations make an episode a fact, and let in a claim that was held for them. A failed
        check archives a fact whose documents have changed, and any entry at the spec's `max_failures` in a row.
        """
        said = inputs.label(reason or _CHECKED.get(str(outcome), "checked"), "reason")
        return self._shown(entries.corroborate.corroborate(self.ctx, id, outcome, said))

    @verb("memory", "accept")
    def accept(self, id: str, reason: str = "accepted by the author") -> Written:
        """Let a held entry into recall. Only the author may."""
        return entries.revise.accept(self.ctx, id, inputs.label(reason, "reason"))

    @verb("memory", "undo")
    def undo(self, what: str | int, reason: str = "undone on request", *, permit: Permit | None = None) -> Undone:
        """Take back the last change of an entry, the change of one event, all changes of a job, or a promotion.

        A promotion is known by the id of its proposal, an accepted change of a document by that of its submission:
        either then waits for a person again. `permit` sees each entry as
        it is and as it would be, before anything is written, and raises to refuse.
        """
        done = entries.undo.undo(self.ctx, what, inputs.label(reason, "reason"), permit=permit)
        return replace(done, entries=tuple(map(self.ctx.shown, done.entries)))

    def _shown(self, written: Written) -> Written:
        """Return the outcome of a write as the caller may see it."""
        return replace(written, entry=self.ctx.shown(written.entry)) if written.entry is not None else written

    @verb("memory", "link")
    def link_action(self, action: str, entries: Sequence[str], description: str = "") -> None:
        """Record that an action rests on entries. From then on nobody can remove their rows."""
        label = inputs.one_line(action, "action")
        found = [self.ctx.entry(id) for id in entries]
        if not found:
            raise InvalidInput(f"action {label[:60]!r} rests on no entry", fix="name at least one entry")
        for store in (self.ctx.local, self.ctx.account):
            ids = tuple(entry.id for home, entry in found if home is store)
            if ids:
                self.ctx.apply(store, LinkAction(label, description[:2000], ids))

    def _open(self, page: NamedEntry) -> NamedEntry:
        """Return a page of the owner; for everybody else, marks replace its secrets."""
        return page if self.ctx.is_author else replace(page, body=redact(page.body)[0])

    def named(self) -> list[NamedEntry]:
        """Return the pages of all tiers in reach."""
        return [self._open(page) for page in entries.pages.named(self.ctx)]

    def get_named(self, name: str) -> NamedEntry:
        """Return the page of that name."""
        return self._open(entries.pages.get_named(self.ctx, name))

    @verb("page", "edit")
    def edit_named(self, name: str, body: str, *, tier: str | None = None, expect: int | None = None) -> NamedEntry:
        """Write a page; with `expect`, only if it is still at that version."""
        made = entries.pages.edit_named(self.ctx, name, body, tier=tier, expect=expect)
        if made.name == NAME:
            curation.curated_document.commit_now(self.ctx)
        return made

    def named_history(self, name: str) -> list[NamedEntry]:
        """Return every version of a page, oldest first."""
        return [self._open(page) for page in entries.pages.named_versions(self.ctx, name)]
