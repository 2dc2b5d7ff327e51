"""Mnemon behind Anthropic's memory tool: `MemoryTool(world)` answers its commands. The Anthropic SDK is not needed."""

from __future__ import annotations

from mnemon.surfaces.anthropic.tool import MemoryTool

__all__ = ["MemoryTool"]
