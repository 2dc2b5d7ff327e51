"""A backend for Anthropic's memory tool.

`MemoryTool(world)` answers the tool's commands and does not need Anthropic's SDK. `RunnerMemoryTool(world)` and
`AsyncRunnerMemoryTool(world)` work with the SDK's tool runners; the SDK is imported on first use.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from lukasa.surfaces.anthropic.tool import MemoryTool

if TYPE_CHECKING:
    from lukasa.surfaces.anthropic.runner import AsyncRunnerMemoryTool, RunnerMemoryTool

__all__ = ["AsyncRunnerMemoryTool", "MemoryTool", "RunnerMemoryTool"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'lukasa.anthropic' has no attribute {name!r}")
    return getattr(import_module("lukasa.surfaces.anthropic.runner"), name)
