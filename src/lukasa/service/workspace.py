"""A workspace as its users hold it: all verbs of memory, bound to one scope and one identity.

Each package of the service contributes the verbs of its noun as a base class. Handles are frozen: `at` and `acting`
return new ones, and no handle changes another, so threads and requests can share them.
"""

from __future__ import annotations

from lukasa.model.values import Trust
from lukasa.service import sessions
from lukasa.service.admin.admin_methods import AdminMethods
from lukasa.service.citations.citation_methods import CitationMethods
from lukasa.service.corpus.corpus_methods import CorpusMethods
from lukasa.service.corpus.submission_methods import SubmissionMethods
from lukasa.service.curation.curation_methods import CurationMethods
from lukasa.service.entries.entry_methods import EntryMethods
from lukasa.service.jobs.job_methods import JobMethods
from lukasa.service.retrieval.read_methods import ReadMethods
from lukasa.service.sessions.session_methods import SessionMethods
from lukasa.spec.types import TALK_KEYS, MemorySpec


class Workspace(
    EntryMethods,
    ReadMethods,
    CitationMethods,
    CorpusMethods,
    SubmissionMethods,
    SessionMethods,
    CurationMethods,
    JobMethods,
    AdminMethods,
    frozen=True,
):
    """One workspace: put, read, context and every other verb, for one actor in one scope."""

    @property
    def id(self) -> str:
        return self.ctx.info.id

    @property
    def name(self) -> str:
        return self.ctx.info.name

    @property
    def spec(self) -> MemorySpec:
        return self.ctx.spec

    def at(self, **keys: str) -> Workspace:
        """Return this workspace with more scope keys bound, as in `at(channel=…)` or `at(org_id=…, domain_id=…)`.

        A channel may be given by name, a conversation by ref code; both must exist. With a conversation, its channel
        and the keys under which it began are bound too.
        """
        ctx = self.ctx.at(**{key: value for key, value in keys.items() if key not in TALK_KEYS})
        bound = {}
        if "conversation" in keys:
            found = sessions.conversations.conversation(ctx, keys["conversation"])
            bound = {key: value for key, value in found.keys.items() if key in self.spec.custom_keys}
            has_channel = any(k.name == "channel" for k in self.spec.anchor)
            if "channel" not in keys and has_channel and ctx.takes_part("channel", found.channel):
                bound["channel"] = found.channel
            bound["conversation"] = found.id
        if "channel" in keys:
            bound["channel"] = sessions.conversations.channel(ctx, keys["channel"]).id
        return Workspace(ctx.at(**bound) if bound else ctx)

    def limited(self, *tiers: str) -> Workspace:
        """Return this workspace for these tiers alone, for a subagent: every verb is bounded, reads and writes."""
        return Workspace(self.ctx.limited(tiers))

    def in_project(self, folder: str) -> Workspace:
        """Return this workspace with the project of a folder at hand: what entries cite is pinned and checked there."""
        return Workspace(self.ctx.in_project(folder))

    def outbound(self, surface: str) -> Workspace:
        """Return this workspace for a surface, `chat` or `external`: what it returns passes the spec's gates to it."""
        return Workspace(self.ctx.outbound(surface))

    def acting(
        self, *, agent: str | None = None, principal: str | None = None, trust: Trust | None = None
    ) -> Workspace:
        """Return this workspace for an agent or another principal. Trust can only be lowered."""
        return Workspace(self.ctx.acting(agent=agent, principal=principal, trust=trust))
