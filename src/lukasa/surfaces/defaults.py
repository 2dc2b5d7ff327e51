"""What surfaces choose where a caller chooses nothing."""

from __future__ import annotations

from lukasa.spec.types import MemorySpec


def default_tier(spec: MemorySpec) -> str:
    """Where a memory goes that names no tier: the workspace, or the broadest lasting tier that stays in it."""
    lasting = [tier.name for tier in spec.tiers if tier.persistent and tier.home == "workspace"]
    if "workspace" in lasting:
        return "workspace"
    return lasting[-1] if lasting else spec.tiers[-1].name
