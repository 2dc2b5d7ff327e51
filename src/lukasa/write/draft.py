"""What travels down the write path."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from enum import StrEnum
from functools import lru_cache
from types import MappingProxyType
from typing import Any, NamedTuple

from msgspec import Struct

from lukasa.model.entry import Category, Entry, GateVerdict, Scope, SourceLink
from lukasa.model.transcript import Quote
from lukasa.model.values import Curator, Gate, Kind, Lifetime, Origin, Trust
from lukasa.spec.taxonomy import Taxonomy
from lukasa.spec.types import Behaviour, MemorySpec
from lukasa.storage.operations import Verdict
from lukasa.storage.port import Near


class Proposal(NamedTuple):
    """Something a caller wants remembered, already validated, nothing decided yet."""

    id: str
    scope: Scope
    content: str
    curator: Curator
    source: str
    origin: Origin
    owner: str
    importance: float
    kind: Kind | None = None
    lifetime: Lifetime = Lifetime.LONG_TERM
    tags: tuple[str, ...] = ()
    conversation: str | None = None
    links: tuple[SourceLink, ...] = ()
    derived_from: tuple[str, ...] = ()
    derived_trust: tuple[Trust, ...] = ()
    valid_at: datetime | None = None
    supersedes: str | None = None
    gate: GateVerdict | None = None
    category: str = ""
    metadata: Mapping[str, Any] = MappingProxyType({})
    evidence: tuple[Quote, ...] = ()
    path: str | None = None


class Canonical(Struct, frozen=True):
    """A body that memory must not repeat, and the category of the spec's non-mirror list it belongs to."""

    id: str
    category: str
    body: str


class Action(StrEnum):
    ADD = "add"
    UPDATE = "update"  # add, and end the validity of (or supersede) the targets
    MERGE = "merge"  # the target already says it
    NOOP = "noop"  # contradicts the targets, and all stay
    DISCARD = "discard"


class Decision(Struct, frozen=True):
    action: Action
    targets: tuple[Entry, ...] = ()
    reason: str = ""


@lru_cache(maxsize=256)
def _verdict(step: str, outcome: str, reason: str) -> Verdict:
    """One value for all who are told the same, which most are."""
    return Verdict(step, outcome, reason)


class Draft(NamedTuple):
    """A proposal on its way. A tuple, since each step of each write makes one: that takes a third of the time."""

    proposal: Proposal
    content: str
    kind: Kind
    trust: Trust
    gate: GateVerdict
    category: Category | None = None
    decision: Decision = Decision(Action.ADD)
    ledger: tuple[Verdict, ...] = ()

    @property
    def settled(self) -> bool:
        """True once a step has decided that nothing will be stored."""
        return self.gate.verdict is Gate.DISCARD

    def noting(self, step: str, outcome: str, reason: str, **data: Any) -> Draft:
        verdict = Verdict(step, outcome, reason, data) if data else _verdict(step, outcome, reason)
        return self._with(self.gate, (*self.ledger, verdict))

    def ruled(self, verdict: Gate, confidence: float, reason: str) -> Draft:
        return self._with(GateVerdict(verdict, confidence, reason), self.ledger)

    def _with(self, gate: GateVerdict, ledger: tuple[Verdict, ...]) -> Draft:
        return Draft(self.proposal, self.content, self.kind, self.trust, gate, self.category, self.decision, ledger)


class Setting(NamedTuple):
    """What the steps are given: the spec, the time, and what the store knew when it was asked."""

    spec: MemorySpec
    taxonomy: Taxonomy
    now: datetime
    canonical: tuple[Canonical, ...] = ()
    neighbours: tuple[Near, ...] = ()

    def among(self, neighbours: tuple[Near, ...]) -> Setting:
        return Setting(self.spec, self.taxonomy, self.now, self.canonical, neighbours)

    def behaviour(self, draft: Draft) -> Behaviour:
        return self.spec.behaviour(draft.proposal.scope.tier, draft.kind)


Step = Callable[[Draft, Setting], Draft]


def run(steps: tuple[Step, ...], draft: Draft, setting: Setting) -> Draft:
    """A pipeline is a list and a loop; a discarded draft goes no further."""
    for step in steps:
        if draft.gate.verdict is Gate.DISCARD:
            break
        draft = step(draft, setting)
    return draft
