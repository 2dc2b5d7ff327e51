"""Decide what a caller sees: the one rule that every verb asks, for scopes, entries, conversations and tiers.

docs/explanation/trust.md states it. A key of the spec's own separates tenants; a channel or a conversation is a place
of work. `Sight` has what the rule depends on: who acts, what is bound, what is granted, and what the spec declares.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct, field

from lukasa.model.entry import Entry, Scope
from lukasa.model.errors import Refused
from lukasa.model.grant import Reach
from lukasa.model.selection import Selection
from lukasa.model.values import SHARED, Origin, Trust, Visibility
from lukasa.spec.types import TALK_KEYS, MemorySpec, TierVisibility
from lukasa.storage.port import Store

MOST_LOOKED_AT = 1000  # entries in which to look for one of a grant's own
UNBIND = "leave these scope keys out: use a handle without them, and no --scope or LUKASA_SCOPE"


class Sight(Struct, frozen=True, kw_only=True):
    """The actor of a call with its scope keys and limits, and the rule for what it sees."""

    spec: MemorySpec
    local: Store
    origin: Origin
    agent: str | None = None
    keys: Mapping[str, str] = field(default_factory=dict)
    reach: Reach | None = None  # the limits of a grant; None is no limit
    within: tuple[str, ...] | None = None  # the only tiers of a subagent; None is no limit
    overseeing: bool = False  # background work: it sees every scope, whoever it acts for

    @property
    def owners(self) -> tuple[str, ...]:
        """The owners whose entries this context may see: all, and its own agent."""
        return (SHARED,) if self.agent is None else (SHARED, self.agent)

    def owners_in(self, tier: str) -> tuple[str, ...] | None:
        """Return the owners whose entries a search of a tier brings; None for all.

        Where entries are their writer's alone, the owner of the memory reads those of every agent.
        """
        return None if self.is_author and self.spec.readers(tier).agents == "owner" else self.owners

    @property
    def is_author(self) -> bool:
        """Whether the owner of the memory acts, who may see and decide everything."""
        return self.agent is None and self.origin.trust is Trust.AUTHOR

    @property
    def tenancy(self) -> dict[str, str]:
        """The bound keys of the spec's own, such as a tenant. Channels and conversations are not among them."""
        return {key: self.keys[key] for key in self.spec.custom_keys if key in self.keys}

    @property
    def oversees(self) -> bool:
        """Whether keys that are not bound are open: to the owner, and to background work."""
        return self.reach is None and (self.is_author or self.overseeing)

    def require_whole(self, what: str) -> None:
        """Refuse a handle that is bound to one tenant: what concerns the whole workspace would tell of the others."""
        if self.tenancy:
            named = ", ".join(f"{key}={value[:60]}" for key, value in self.tenancy.items())
            raise Refused(f"a handle bound to {named} cannot {what}: that is about the whole workspace", fix=UNBIND)

    def opens(self, tier: str) -> bool:
        """Whether this context reaches a tier: by the limits of a subagent, of its grant, and of the spec."""
        if self.within is not None and tier not in self.within:
            return False
        if self.reach is None:
            return True
        if all(known.name != tier for known in self.spec.tiers):
            return False
        return tier in self.reach.tiers if self.reach.tiers else self.spec.readers(tier).external != "closed"

    def may_bind(self, key: str, value: str) -> bool:
        """Say whether a handle may bind this value. Only the owner's may bind another value than the bound one."""
        if key in TALK_KEYS:
            return self.takes_part(key, value)
        if not self.is_author and key in self.keys:
            return self.keys[key] == value
        return self.reach is None or self._open(key)

    def takes_part(self, key: str, id: str) -> bool:
        """Say whether this context may see a channel or conversation; of another key, whether it may bind the value.

        A conversation is for the tenant under which it began. A grant sees the channels and conversations that it
        lists, those that its own principal began, and all of them if the spec grants a tier of that key.
        """
        if key not in TALK_KEYS:
            return self.may_bind(key, id)
        if not self._owned(key, id):
            return False
        if self.reach is None or self._listed(key, id):
            return True
        return any(
            self.opens(tier.name) and self.spec.readers(tier.name).external == "granted"
            for tier in self.spec.tiers
            if any(one.name == key for one in tier.anchor)
        )

    def _listed(self, key: str, id: str) -> bool:
        reach = self.reach or Reach()
        return id in (reach.channels if key == "channel" else reach.conversations) or self._began(id)

    def _began(self, id: str) -> bool:
        begun = self.local.events(subject=id, limit=1)
        return bool(begun) and begun[0].actor.principal == self.origin.principal

    def _owned(self, key: str, id: str) -> bool:
        """Say whether a channel or conversation is for this tenant; channels are for all."""
        found = self.local.conversation(id) if key == "conversation" and self.spec.custom_keys else None
        return found is None or self.owns(found.keys)

    def owns(self, keys: Mapping[str, str]) -> bool:
        """Say whether something that was made under these keys is for this context."""
        return all(
            self.keys[key] == value if key in self.keys else self.oversees or self._open(key)
            for key, value in keys.items()
        )

    def _open(self, key: str) -> bool:
        """Say whether a grant leaves a key of the spec's own open: it binds the broadest one, and this one is below."""
        return self.reach is not None and self.spec.custom_keys[0] in self.reach.scope

    def admits(self, scope: Scope) -> bool:
        """Whether this context may see a scope: key by key, as it is bound, granted and declared."""
        return self.opens(scope.tier) and all(
            self._admits(scope.tier, key, value) for key, value in scope.anchor if key not in ("account", "workspace")
        )

    def _admits(self, tier: str, key: str, value: str | None) -> bool:
        bound = self.keys.get(key)
        if bound is not None and bound != value and key not in TALK_KEYS:
            return False
        if value is not None and not self._owned(key, value):
            return False
        if value is None or self.oversees:
            return True
        readers = self.spec.readers(tier)
        if key in TALK_KEYS:
            return self._among(readers, key, value)
        if self.reach is None:
            return bound is not None
        if not self._open(key):
            return False
        return readers.external != "participants" or key in self.reach.scope or self._joined(key, value)

    def _among(self, readers: TierVisibility, key: str, id: str) -> bool:
        """Say whether a grant, or an agent, is among those who see a channel or conversation in a tier."""
        if self.reach is not None:
            return readers.external == "granted" or self._listed(key, id)
        return self.keys.get(key) == id or readers.agents != "participants" or self._began(id)

    def _joined(self, key: str, value: str) -> bool:
        """Say whether a grant takes part in a scope of the spec's own: it wrote there, or nobody did yet."""
        there = tuple(
            count.scope
            for count in self.local.census()
            if count.scope.value(key) == value
            and self.owns({k: v for k, v in count.scope.anchor if k in self.tenancy and v})
        )
        if not there:
            return True
        found = self.local.find(Selection(there, frozenset(Visibility), None), limit=MOST_LOOKED_AT)
        return any(entry.origin.principal == self.origin.principal for entry in found)

    def sees(self, entry: Entry) -> bool:
        """Say whether an entry is there for this context."""
        return (self.is_author or entry.owner in self.owners) and self.admits(entry.scope)
