"""From what somebody asks to be scrubbed to the one extent that it means, or a refusal."""

from __future__ import annotations

from lukasa.model.entry import Scope
from lukasa.model.errors import InvalidInput, InvalidScope
from lukasa.model.scrub import Extent, Mode
from lukasa.spec.types import Tier

ACCOUNT = "account"
TIER_MODES = (Mode.FULL, Mode.KEEP_NAMED)


def one(value: object, what: str) -> str:
    """The one thing that is meant, by its name. Nothing, blanks and patterns mean too much, and are refused."""
    if not isinstance(value, str) or not value.strip() or set(value) & set("*%?"):
        raise InvalidScope(f"{what} must be named, exactly one", fix="there is no way to scrub everything at once")
    return value


def tier_mode(value: object) -> Mode:
    for mode in TIER_MODES:
        if value in (mode, str(mode)):
            return mode
    raise InvalidInput(f"no such mode: {str(value)[:60]!r}", fix=f"use one of: {', '.join(TIER_MODES)}")


def of_tier(tier: Tier, scope: Scope, mode: Mode, workspace: str) -> Extent:
    """A tier's scope. If that is the whole of the tier here, its named entries and refused writes belong to it."""
    whole = all(key.name in ("account", "workspace") for key in tier.anchor)
    at_home = tier.home == "workspace"
    conversation = scope.value("conversation")
    place = workspace if at_home else ACCOUNT
    return Extent(place, mode, scope, conversation, whole=whole, copies=whole and at_home)


def of_thread(conversation: str, workspace: str) -> Extent:
    return Extent(workspace, Mode.PURGE_THREAD, conversation=conversation)
