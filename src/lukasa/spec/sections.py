"""Read the sections of a spec file other than [behaviour], one function each."""

from __future__ import annotations

import re
from collections.abc import Mapping

from lukasa.model.values import Kind
from lukasa.spec.decode import NAME, TomlTable, nearest
from lukasa.spec.types import (
    AUDIT_RULES,
    PRIOR,
    SIGNALS,
    SURFACES,
    TRANSFORMS,
    AnchorKey,
    AuditExemption,
    Backend,
    Boundary,
    DisclosureRules,
    NamedDefault,
    Profile,
    ReferenceOnly,
    Retrieval,
    SanitizationGate,
    Tier,
    TierVisibility,
    Triage,
    TriggerRules,
)

DEFAULT_PROFILES = {"lean": Profile(3, False), "balanced": Profile(7, True), "deep": Profile(15, True, 15)}
# By trust below the author's: the factor of a rank, and the share of the places of an answer.
TRUST_WEIGHTS = {"untrusted": 0.6, "imported": 0.9, "agent": 0.95}
SHARES = {"untrusted": 0.4, "imported": 0.6, "agent": 0.75}
DAY = 24 * 60  # minutes
MOST_JUDGED = 100
MOST_DAYS = 3650
NAMED = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,59}")
# These words have a special meaning in [behaviour] tables.
RESERVED = frozenset({*Kind, "same", "next", "reason"})


def read_anchor(root: TomlTable) -> tuple[AnchorKey, ...]:
    table = root.table("anchor")
    example = {"account": "required", "workspace": "required"}
    if "keys" not in table:
        table.wrong("keys", "missing: the keys that scope this memory", example)
    keys = table.table("keys")
    table.close()
    if "keys" in table and not keys.data:
        table.wrong("keys", "names no key", example)
    for name in keys.data:
        if not NAME.fullmatch(name):
            keys.wrong(name[:60], "not a name: lower-case letters, digits, - and _", "required")
    options = ("required", "nullable")
    return tuple(AnchorKey(name, keys.choice(name, options) == "required") for name in keys.data)


def read_tiers(root: TomlTable, anchor: tuple[AnchorKey, ...]) -> tuple[Tier, ...]:
    """The tiers with their kinds, which [typology] lists: one line for each tier."""
    typology = root.table("typology")
    found = []
    for table in root.tables("tiers"):
        name = table.name("name", example="workspace")
        if name in RESERVED:
            table.wrong("name", f"{name!r} is a reserved word", f"{name}s")
        found.append(
            Tier(
                name=name,
                anchor=_tier_anchor(table, anchor),
                typology=_kinds(typology, name),
                boundary=_boundary(table),
                persistent=table.flag("persistent", example=True),
                home=table.choice("home", ("workspace", "account")),
                description=table.text("description", "", blank=True),
                admits=table.texts("admits", (), example=("procedural", "preferences")),
            )
        )
        table.close()
    typology.close()
    return tuple(found)


def _kinds(typology: TomlTable, tier: str) -> tuple[Kind, ...]:
    if not tier:
        return ()
    if tier not in typology:
        typology.wrong(tier, "this tier has no typology", ("episodic",))
        return ()
    kinds = typology.choices(tier, tuple(Kind), example=(Kind.SEMANTIC,))
    if not kinds and typology.data[tier] == []:
        typology.wrong(tier, "names no kind of memory", ("episodic",))
    return kinds


def _tier_anchor(table: TomlTable, declared: tuple[AnchorKey, ...]) -> tuple[AnchorKey, ...]:
    """The tier's keys as [anchor] declares them; a question mark makes a required key nullable in this tier."""
    known = {key.name: key for key in declared}
    items = table.texts("anchor", example=tuple(known)[:1] or ("workspace",))
    found = []
    for item in items:
        name = item.removesuffix("?")
        if name not in known:
            meant = nearest(name, known)
            better = tuple(meant if other == item else other for other in items) if meant else tuple(known)
            table.wrong("anchor", f"{name[:60]!r} is not declared in [anchor]", better)
        else:
            found.append(AnchorKey(name, known[name].required and not item.endswith("?")))
    if found and not any(key.required for key in found):
        table.wrong("anchor", "a tier needs at least one required key", tuple(k.name for k in declared if k.required))
    return tuple(found)


def _boundary(table: TomlTable) -> Boundary:
    if "boundary" not in table:
        table.wrong("boundary", "missing: what ends this tier", {"type": "scope", "event": "workspace_change"})
        return Boundary("scope", "")
    inner = table.table("boundary")
    boundary = Boundary(
        type=inner.choice("type", ("lifecycle", "scope", "escalation")),
        event=inner.name("event", example="conversation_end"),
    )
    inner.close()
    return boundary


def read_backend(root: TomlTable) -> Backend:
    table = root.table("backend")
    backend = Backend(
        store=table.choice("store", ("sqlite", "postgres", "memory")),
        checkpointer=table.choice("checkpointer", ("separate-file", "none"), "separate-file"),
        embedder=table.text("embedder", "auto", example="auto"),
    )
    table.close()
    return backend


def read_retrieval(root: TomlTable, tiers: tuple[str, ...]) -> Retrieval:
    table = root.table("retrieval")
    signals = table.choices("signals", SIGNALS, example=SIGNALS)
    if not signals and "signals" in table:
        table.wrong("signals", "names no signal", SIGNALS)
    retrieval = Retrieval(
        signals=signals,
        fusion=table.choice("fusion", ("rrf", "zscore")),
        rrf_k=table.whole("rrf_k", 60, low=1),
        weights=_weights(table, "weights", signals),
        candidates=table.whole("candidates", 200, low=1),
        prior_weight=table.number("prior_weight", 1.0),
        tier_weights=_weights(table, "tier_weights", tiers),
        dedup_cosine=table.number("dedup_cosine", 0.9, above=True, high=1.0),
        recency_tiers=table.choices("recency_tiers", tiers, (), example=tiers[:1]),
        trust_weights=_by_trust(table, "trust_weights", TRUST_WEIGHTS),
        shares=_by_trust(table, "shares", SHARES),
        rerank=table.choice("rerank", ("none", "model"), "none"),
        widening=table.number("widening", 0.0, high=1.0, example=0.9),
        prior=table.choices("prior", PRIOR, PRIOR, example=PRIOR),
        verify_ms=table.whole("verify_ms", 20),
        floor=table.number("floor", 0.0, high=1.0, example=0.12),
    )
    table.close()
    return retrieval


def _weights(table: TomlTable, key: str, names: tuple[str, ...]) -> dict[str, float]:
    """A weight for every name; an omitted name weighs 1."""
    inner = table.table(key)
    weights = {name: inner.number(name, 1.0) for name in names}
    inner.close()
    if names and not sum(weights.values()) > 0:
        table.wrong(key, "the weights add up to zero", dict.fromkeys(names, 1.0))
    return weights


def _by_trust(table: TomlTable, key: str, defaults: Mapping[str, float]) -> dict[str, float]:
    """A number in [0, 1] for every trust below the author's."""
    inner = table.table(key)
    found = {name: inner.number(name, default, high=1.0) for name, default in defaults.items()}
    inner.close()
    return found


def read_reference_only(root: TomlTable) -> ReferenceOnly:
    table = root.table("reference_only")
    if "reference_only" not in root:
        return ReferenceOnly((), "primary", 1.0, 1, 1)
    value = ReferenceOnly(
        non_mirror=table.texts("non_mirror", example=("documents",)),
        calibration=table.choice("calibration", ("primary", "backstop")),
        similarity=table.number("similarity", 0.6, above=True, high=1.0),
        max_chars=table.whole("max_chars", 20_000, low=1),
        max_file_chars=table.whole("max_file_chars", 1_000_000, low=1),
    )
    table.close()
    return value


def read_sanitization(root: TomlTable, tiers: tuple[str, ...]) -> tuple[SanitizationGate, ...]:
    gates = []
    for table in root.tables("sanitization"):
        gates.append(
            SanitizationGate(
                boundary=table.choice("boundary", ("tenant", "context", "trust")),
                into=table.choice("into", ("", *tiers), "", example=tiers[-1] if tiers else ""),
                transforms=table.choices("transforms", TRANSFORMS, example=TRANSFORMS[:1]),
                to=table.choice("to", ("", *SURFACES), "", example=SURFACES[0]),
            )
        )
        if gates[-1].into and gates[-1].to:
            table.wrong("to", "a gate is for what enters a tier or for what goes to a surface, not for both", "")
        if "transforms" in table and not gates[-1].transforms:
            table.wrong("transforms", "a gate needs at least one transform", TRANSFORMS[:1])
        table.close()
    return tuple(gates)


def read_visibility(root: TomlTable, tiers: tuple[str, ...]) -> dict[str, TierVisibility]:
    table = root.table("visibility")
    found: dict[str, TierVisibility] = {}
    if "visibility" not in root:
        return found
    for tier in tiers:
        if tier not in table:
            table.wrong(tier, "this tier has no visibility", {"agents": "shared", "external": "closed"})
            continue
        inner = table.table(tier)
        found[tier] = TierVisibility(
            agents=inner.choice("agents", ("shared", "participants", "owner")),
            external=inner.choice("external", ("closed", "granted", "participants")),
        )
        inner.close()
    table.close()
    return found


def read_audit(root: TomlTable) -> tuple[AuditExemption, ...]:
    table = root.table("audit")
    table.choice("posture", ("universal",), "universal")
    exemptions = []
    for inner in table.tables("exemptions"):
        rule = inner.choice("rule", AUDIT_RULES)
        reason = inner.text("reason", example="why this agent may go without the rule")
        exemptions.append(AuditExemption(rule, reason))
        inner.close()
    table.close()
    return tuple(exemptions)


def read_profiles(root: TomlTable) -> dict[str, Profile]:
    table = root.table("profiles")
    found = {}
    for name, default in DEFAULT_PROFILES.items():
        inner = table.table(name)
        found[name] = Profile(
            limit=inner.whole("limit", default.limit, low=1),
            rewrite=inner.flag("rewrite", default.rewrite),
            inject_cap=inner.whole("inject_cap", default.inject_cap),
        )
        inner.close()
    table.close()
    return found


def read_triggers(root: TomlTable) -> TriggerRules:
    table = root.table("triggers")
    base = TriggerRules()
    value = TriggerRules(
        queue_depth=table.whole("queue_depth", base.queue_depth, low=1),
        revision_queue=table.whole("revision_queue", base.revision_queue, low=1),
        idle_minutes=table.number("idle_minutes", base.idle_minutes, above=True, high=DAY),
        reflect_at=table.whole("reflect_at", base.reflect_at, low=1),
        clock=table.flag("clock", base.clock),
    )
    table.close()
    return value


def read_triage(root: TomlTable) -> Triage:
    table = root.table("triage")
    base = Triage()
    value = Triage(
        promote_above=table.number("promote_above", base.promote_above, high=1.0),
        reject_below=table.number("reject_below", base.reject_below, high=1.0),
        batch=table.whole("batch", base.batch, low=1),
        every_minutes=table.whole("every_minutes", base.every_minutes, low=1),
    )
    if value.reject_below > value.promote_above:
        table.wrong("reject_below", "must not be above promote_above", min(0.3, value.promote_above))
    if value.batch > MOST_JUDGED:
        table.wrong("batch", f"a model judges at most {MOST_JUDGED} proposals at a time", base.batch)
    if DAY % value.every_minutes:
        table.wrong("every_minutes", "must divide a day into equal windows", base.every_minutes)
    table.close()
    return value


def read_disclosure(root: TomlTable) -> DisclosureRules:
    table = root.table("disclosure")
    base = DisclosureRules()
    value = DisclosureRules(
        record=table.flag("record", base.record),
        keep_days=table.whole("keep_days", base.keep_days, low=1),
        most=table.whole("most", base.most, low=1),
        reason=table.text("reason", base.reason, example="why nobody needs to know what went into prompts", blank=True),
    )
    if not value.record and not value.reason.strip():
        table.wrong("reason", "a memory without a disclosure ledger needs a reason", "prompts are logged elsewhere")
    if value.record and value.reason.strip():
        table.wrong("record", "a reason is for a memory without a disclosure ledger", False)
    if value.keep_days > MOST_DAYS:
        table.wrong("keep_days", f"at most {MOST_DAYS} days", base.keep_days)
    table.close()
    return value


def read_named(root: TomlTable, tiers: tuple[Tier, ...]) -> tuple[NamedDefault, ...]:
    lasting = tuple(tier.name for tier in tiers if tier.persistent)
    found: list[NamedDefault] = []
    for table in root.tables("named"):
        name = table.text("name", example="VOICE")
        if name and not NAMED.fullmatch(name):
            table.wrong("name", f"{name[:60]!r} is not a name: letters, digits, - and _", "VOICE")
        if any(other.name == name for other in found):
            table.wrong("name", f"{name[:60]!r} is named twice", f"{name[:50]}_2")
        tier = table.choice("tier", lasting) if lasting else table.text("tier", "")
        found.append(NamedDefault(name, tier, table.text("body", example="…")))
        table.close()
    return tuple(found)
