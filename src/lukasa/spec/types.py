"""The fifteen primitives as typed values, and the spec that holds one choice for each.

Foundational (always explicit):  anchor, typology, tiers, backend, retrieval
Behavioural (default by kind):   lifecycle, decay, write, promotion, conflict, consolidation, injection
Discipline (always explicit):    reference_only, sanitization, visibility
The audit posture is the same for every memory; an exemption must give its reason.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Literal, get_args

from msgspec import Struct

from lukasa.model.errors import InvalidScope
from lukasa.model.values import Kind

Primitive = Literal["lifecycle", "decay", "write", "promotion", "conflict", "consolidation", "injection"]
BEHAVIOURS: tuple[Primitive, ...] = (
    "lifecycle",
    "decay",
    "write",
    "promotion",
    "conflict",
    "consolidation",
    "injection",
)

# The words that a spec may use. Any other word would have no effect, so a spec that uses one is refused.
SignalName = Literal[
    "keyword", "vector", "multilingual", "structured", "exact", "speaker", "time", "answer", "context", "links"
]
SIGNALS: tuple[SignalName, ...] = get_args(SignalName)
KeptRecords = Literal["log", "decisions"]
KEPT: tuple[KeptRecords, ...] = get_args(KeptRecords)
PriorFactor = Literal["importance", "decay", "frequency"]
PRIOR: tuple[PriorFactor, ...] = get_args(PriorFactor)
TRIGGERS = (
    "session_close",
    "queue_depth",
    "revision_queue",
    "idle",
    "operator",
    "schedule:hourly",
    "schedule:daily",
    "schedule:weekly",
)
TRANSFORMS = ("strip_identifiers", "redact_secrets", "hedge_by_provenance", "auth_scoped_subset")
SURFACES = ("chat", "external")  # where content goes: into a chat, or to a client from outside, by its grant
AUDIT_RULES = ("keep-persistent", "keep-action-linked", "soft-supersession")


class AnchorKey(Struct, frozen=True):
    """A part of a scope. A write without a required key is refused; a nullable key may be omitted."""

    name: str
    required: bool


class Boundary(Struct, frozen=True):
    """The event that ends a tier: a lifecycle event, a change of scope, or an escalation to a broader anchor."""

    type: Literal["lifecycle", "scope", "escalation"]
    event: str


class Tier(Struct, frozen=True):
    """One level of memory. Tiers are ordered from the narrowest to the broadest.

    `admits` names the kinds and categories that may be written here; without any, everything may.
    """

    name: str
    anchor: tuple[AnchorKey, ...]
    typology: tuple[Kind, ...]
    boundary: Boundary
    persistent: bool
    home: Literal["workspace", "account"]
    description: str = ""
    admits: tuple[str, ...] = ()


class Backend(Struct, frozen=True):
    """Where memory and agent checkpoints are stored, and which model makes the vectors."""

    store: Literal["sqlite", "postgres", "memory"]
    checkpointer: Literal["separate-file", "none"]
    embedder: str


class Retrieval(Struct, frozen=True):
    """How reads find memory: the signals, how they are fused, and the prior: its factors and its weight."""

    signals: tuple[SignalName, ...]
    fusion: Literal["rrf", "zscore"]
    rrf_k: int
    weights: dict[str, float]
    candidates: int
    prior_weight: float
    tier_weights: dict[str, float]
    dedup_cosine: float
    recency_tiers: tuple[str, ...]
    trust_weights: dict[str, float]
    shares: dict[str, float]
    rerank: Literal["none", "model"]
    widening: float = 0.0  # equally good matches, to this share, come in the order of tiers; 0 switches it off
    prior: tuple[PriorFactor, ...] = PRIOR
    verify_ms: int = 20  # a read may spend so long on checking what its hits cite; 0 checks nothing
    floor: float = 0.0  # a question with less confidence counts as unanswered; 0 leaves nothing out


class LifecyclePolicy(StrEnum):
    DROP = "drop"  # dropped with its scope unless promoted at the boundary
    DISPOSE = "dispose"  # must be promoted, exempted or archived: it is listed in the disposition queue
    CORROBORATE = "corroborate"  # stays while corroborated; archived when invalidated
    INDEFINITE = "indefinite"  # stays until explicitly invalidated


SourceRule = Literal["keep", "recheck", "archive"]


class Lifecycle(Struct, frozen=True):
    """The end of an entry's life, and of the notes when their conversation ends.

    So many checks that fail one after the other archive an entry; 0 archives none. The source rules say what happens to
    an entry when a document that it links to changes, and when the last of these documents is gone: nothing, it waits
    for a check, or it is archived.
    """

    policy: LifecyclePolicy
    scratchpad: Literal["clear", "keep"] = "clear"
    max_failures: int = 0
    source_changed: SourceRule = "keep"
    source_vanished: SourceRule = "keep"


class DecayModel(StrEnum):
    NONE = "none"
    EXEMPT = "exempt"
    HOURLY = "hourly"  # rate ** hours since the last access, boosted by the number of reads
    DAILY = "daily"  # exp(-rate * days since creation)
    FORCING = "forcing"  # hourly; an entry below `threshold` waits for a disposition
    VALIDITY = "validity"  # full within `window_days` of the last corroboration, then rate ** hours after it
    SCOPE_CLOSE = "scope_close"  # full while the scope is open, then `rate` ** hours since it closed


class Decay(Struct, frozen=True):
    """How rank falls with time. The model decides which figures count."""

    model: DecayModel
    rate: float = 1.0
    window_days: float = 0.0
    stale_factor: float = 0.5
    threshold: float = 0.0


class WriteMode(StrEnum):
    AUTO = "auto"  # observations may be written as they happen
    EXPLICIT = "explicit"  # only on a decision to remember: an observed text is discarded
    PROMOTION = "promotion"  # agents' writes and observed texts are held until promotion; authors write directly
    MIXED = "mixed"  # on a decision, and observed texts from `confidence` on


class WritePolicy(Struct, frozen=True):
    """When something is written, and which texts are too short or too similar for a new entry.

    The rules of form (`min_chars`, editing instructions) are for observed texts, unless `form_rules` is "all".
    """

    mode: WriteMode
    confidence: float = 0.0
    min_chars: int = 12
    dedup_cosine: float = 0.85
    form_rules: Literal["observed", "all"] = "observed"


class Promotion(Struct, frozen=True):
    """When an entry is promoted. `to` is the target tier; empty means never.

    Relevance and accesses must exceed their minimum; observations, versions and recurrence (how often it was stated or
    confirmed, by whomever) must reach it. If `to` is the entry's
    own tier, the entry stays there: short-term becomes long-term, or its kind becomes `kind`.
    """

    to: str
    min_relevance: float = 0.0
    min_access: int = 0
    min_observations: int = 0
    min_versions: int = 0
    min_recurrence: int = 0
    kind: Kind | None = None


class ConflictRule(StrEnum):
    NOOP = "noop"  # both are kept: contradictions are observations too
    VALIDITY = "validity"  # the old fact's validity ends where the new one's begins
    SUPERSEDE = "supersede"  # the latest wins; the earlier one is archived


class ByRule(StrEnum):
    PREFER = "prefer"  # both stay active; a read shows the later one first, with the earlier one under it
    RETIRE = "retire"  # the earlier one is retired as `rule` says, without a person or a model


class ConflictPolicy(Struct, frozen=True):
    """The end of an entry that a new one replaces, and whether the rules alone may decide that it does."""

    rule: ConflictRule
    by_rule: ByRule = ByRule.PREFER


class Consolidation(Struct, frozen=True):
    """How many entries become few. Zero switches a limit off; every limit changes an entry's state, none removes it."""

    style: Literal["none", "compound", "merge", "supersession"]
    triggers: tuple[str, ...] = ()
    merge_cosine: float = 0.95
    prune_below: float = 0.0
    cap: int = 0
    stale_after_days: float = 0.0  # never recalled and older than this: becomes stale
    forget_after_days: float = 0.0  # stale and older than this: becomes forgotten


class Injection(Struct, frozen=True):
    """How a tier enters the prompt. Lower `priority` is evicted first."""

    mode: Literal["always", "on_demand"]
    budget: int
    priority: int


class Behaviour(Struct, frozen=True):
    """The seven behavioural primitives for one kind of entry in one tier."""

    lifecycle: Lifecycle
    decay: Decay
    write: WritePolicy
    promotion: Promotion
    conflict: ConflictPolicy
    consolidation: Consolidation
    injection: Injection


class ValueOrigin(StrEnum):
    """The origin of a value in a spec."""

    EXPLICIT = "explicit"
    DEFAULT = "typology default"
    DEVIATION = "deviation"


class Choice(Struct, frozen=True):
    """One resolved behavioural value with its origin; a deviation has a `reason`."""

    tier: str
    kind: Kind
    primitive: Primitive
    value: object
    provenance: ValueOrigin
    reason: str = ""


class ReferenceOnly(Struct, frozen=True):
    """Canonical state that memory must not copy. `primary` refuses a copy; `backstop` holds and flags it."""

    non_mirror: tuple[str, ...]
    calibration: Literal["primary", "backstop"]
    similarity: float
    max_chars: int
    max_file_chars: int


class SanitizationGate(Struct, frozen=True):
    """Transforms that run in order when content crosses a boundary: into memory, or `to` a surface.

    Without `to`, they change what enters the tier `into`; an empty `into` means every tier. With `to`, they change what
    the surface gets; what is stored stays as it is.
    """

    boundary: str
    into: str
    transforms: tuple[str, ...]
    to: str = ""


TALK_KEYS = ("channel", "conversation")  # their values are rows of the workspace, and have participants
BUILT_IN_KEYS = ("account", "workspace", *TALK_KEYS)


class TierVisibility(Struct, frozen=True):
    """The readers of a tier: agents in scope, and clients from outside."""

    agents: Literal["shared", "participants", "owner"]
    external: Literal["closed", "granted", "participants"]


class AuditExemption(Struct, frozen=True):
    """A rule of the audit posture that does not apply to this memory, and the reason."""

    rule: str
    reason: str


class Profile(Struct, frozen=True):
    """The size of a read. `inject_cap` replaces the spec's cap for this profile; zero keeps it."""

    limit: int
    rewrite: bool
    inject_cap: int = 0


class TriggerRules(Struct, frozen=True):
    """When the events in a tier's `triggers` fire, and when reflection reads new observations."""

    queue_depth: int = 20  # new entries since the last run of this trigger
    revision_queue: int = 10  # superseded, invalidated or stale since then
    idle_minutes: float = 10.0  # without a change
    reflect_at: int = 10  # observations that no reflection has read yet
    clock: bool = True  # regular work runs by the clock; without, when the workspace falls idle


class Triage(Struct, frozen=True):
    """How rules decide a proposal by its confidence, how many proposals a model judges at a time, and how often.

    Between the two confidences, rules leave the decision to a model or a person.
    """

    promote_above: float = 0.8
    reject_below: float = 0.3
    batch: int = 20
    every_minutes: int = 30


class DisclosureRules(Struct, frozen=True):
    """How many days the disclosure ledger keeps, and at most how many texts; without a ledger, the `reason`."""

    record: bool = True
    keep_days: int = 90
    most: int = 50_000
    reason: str = ""


class NamedDefault(Struct, frozen=True):
    """A named entry that exists from the start, with its first text."""

    name: str
    tier: str
    body: str


class MemorySpec(Struct, frozen=True, eq=False):
    """One choice for each primitive: everything that the engine needs to know about an agent's memory."""

    name: str
    title: str
    description: str
    anchor: tuple[AnchorKey, ...]
    tiers: tuple[Tier, ...]
    backend: Backend
    retrieval: Retrieval
    behaviours: dict[tuple[str, Kind], Behaviour]
    choices: tuple[Choice, ...]
    reference_only: ReferenceOnly
    sanitization: tuple[SanitizationGate, ...]
    visibility: dict[str, TierVisibility]
    audit_exemptions: tuple[AuditExemption, ...]
    profiles: dict[str, Profile]
    inject_cap: int
    standing_importance: float
    context_budget: int
    named: tuple[NamedDefault, ...]
    taxonomy: str
    triggers: TriggerRules = TriggerRules()
    triage: Triage = Triage()
    disclosure: DisclosureRules = DisclosureRules()
    curated: Literal["named", "git"] = "named"  # the curated document: a named entry, or a file under git
    curated_keeps: tuple[KeptRecords, ...] = ()  # the records that the repository of the document holds, too
    file: str = ""  # the file it was read from; equality ignores it

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, MemorySpec):
            return NotImplemented
        names = [name for name in self.__struct_fields__ if name != "file"]
        return all(getattr(self, name) == getattr(other, name) for name in names)

    def __ne__(self, other: object) -> bool:
        return not self == other

    @property
    def custom_keys(self) -> tuple[str, ...]:
        """The anchor's keys that this spec adds, from the broadest to the narrowest: an organisation, a customer."""
        return tuple(key.name for key in self.anchor if key.name not in BUILT_IN_KEYS)

    def readers(self, name: str) -> TierVisibility:
        """Return who reads a tier. A spec that says nothing shares it, and closes the account to other clients."""
        if name in self.visibility:
            return self.visibility[name]
        tier = self.tier(name)
        talk = any(key.name in TALK_KEYS for key in tier.anchor)
        return TierVisibility("shared", "participants" if talk else "granted" if tier.home == "workspace" else "closed")

    def tier(self, name: str) -> Tier:
        for tier in self.tiers:
            if tier.name == name:
                return tier
        known = ", ".join(t.name for t in self.tiers)
        raise InvalidScope(f"unknown tier {str(name)[:60]!r} in spec {self.name!r}", fix=f"use one of: {known}")

    def exemption(self, rule: str) -> str:
        """Return the reason why a rule of the audit posture does not apply here; empty if it does."""
        return next((exemption.reason for exemption in self.audit_exemptions if exemption.rule == rule), "")

    def behaviour(self, tier: str, kind: Kind) -> Behaviour:
        return self.behaviours[tier, kind]
