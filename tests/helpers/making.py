"""Values for tests, with every field that a test does not care about filled in."""

from __future__ import annotations

from datetime import UTC, datetime

from lukasa.model.entry import Entry, Scope
from lukasa.model.ids import new_id
from lukasa.model.values import Curator, Kind, Lifetime, Origin, Trust
from lukasa.spec.load import preset_text

# Lines for a spec: the rules may retire what a new statement replaces.
RETIRE = '\n[behaviour.conflict]\nby_rule = "retire"\nreason = "Only the latest value counts here."\n'
WORKSPACE = Scope("workspace", (("workspace", "w1"),))


class FixedClock:
    """A clock that a test moves."""

    def __init__(self, now: datetime | None = None) -> None:
        self.time = now or datetime(2026, 11, 15, 12, tzinfo=UTC)

    def now(self) -> datetime:
        return self.time


def make_entry(
    content: str = "The villain is called Malachar",
    *,
    at: datetime | None = None,
    trust: Trust = Trust.AUTHOR,
    kind: Kind = Kind.SEMANTIC,
    importance: float = 0.5,
    scope: Scope = WORKSPACE,
    tags: tuple[str, ...] = (),
) -> Entry:
    moment = at or datetime(2026, 11, 15, 12, tzinfo=UTC)
    return Entry(
        id=new_id(),
        scope=scope,
        content=content,
        kind=kind,
        lifetime=Lifetime.LONG_TERM,
        curator=Curator.AUTHOR,
        source="user",
        importance=importance,
        origin=Origin("tester", "library", "in-process", trust),
        trust=trust,
        created_at=moment,
        updated_at=moment,
        confirmed_at=moment,
        tags=tags,
    )


def support_spec(agents: str = "shared", external: str = "granted") -> str:
    """The spec of a support agent: what a tenant knows, what it knows of a customer, and one conversation."""
    text = preset_text("anchored")
    head, tiers = text.index("[anchor]"), text.index("[backend]")
    visible, audit = text.index("[visibility.interaction]"), text.index("[audit]")
    tail = text[tiers:visible] + _readers(agents, external) + text[audit:]
    for old, new in (("persistent", "tenant"), ("interaction", "conversation")):
        tail = tail.replace(f'"{old}"', f'"{new}"')
    return text[:head].replace('"anchored"', '"support"') + _SUPPORT + tail + _ACTIVE


def _readers(agents: str, external: str) -> str:
    lines = (f'[visibility.{tier}]\nagents = "{agents}"\nexternal = "{external}"\n' for tier in ("customer", "tenant"))
    talk = '[visibility.conversation]\nagents = "participants"\nexternal = "participants"\n'
    return "\n".join((talk, *lines, ""))


_ACTIVE = """
[behaviour.write]
mode = "auto"
confidence = 0.0
reason = "What a customer says counts at once."
"""
_SUPPORT = """[anchor]
keys = { workspace = "required", tenant_id = "required", customer_id = "required", conversation = "required" }

[typology]
conversation = ["episodic"]
customer = ["semantic", "procedural", "episodic"]
tenant = ["semantic", "procedural", "episodic"]

[[tiers]]
name = "conversation"
anchor = ["workspace", "tenant_id", "customer_id", "conversation"]
boundary = { type = "lifecycle", event = "conversation_end" }
persistent = false
home = "workspace"
description = "One exchange with a customer."

[[tiers]]
name = "customer"
anchor = ["workspace", "tenant_id", "customer_id"]
boundary = { type = "escalation", event = "promotion" }
persistent = true
home = "workspace"
description = "What one customer told."

[[tiers]]
name = "tenant"
anchor = ["workspace", "tenant_id"]
boundary = { type = "escalation", event = "promotion" }
persistent = true
home = "workspace"
description = "What holds for all customers of a tenant."

"""
