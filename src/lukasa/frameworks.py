"""Memory for agent frameworks, each in the form that the framework asks for.

from lukasa.frameworks import PydanticAIMemory

A name is loaded when it is first used, and needs its framework then. The functions need none.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from lukasa.model.errors import MissingExtra
from lukasa.surfaces.frameworks.memory import by_model_or_rules, for_users, remember

if TYPE_CHECKING:
    from lukasa.surfaces.frameworks.agent_framework import AgentFrameworkProvider
    from lukasa.surfaces.frameworks.crewai import CrewAIMemory
    from lukasa.surfaces.frameworks.google_adk import AdkMemoryService
    from lukasa.surfaces.frameworks.llama_index import LlamaIndexMemoryBlock
    from lukasa.surfaces.frameworks.openai_agents import OpenAIAgentsMemory
    from lukasa.surfaces.frameworks.pydantic_ai import PydanticAIMemory
    from lukasa.surfaces.frameworks.strands import StrandsMemoryStore

__all__ = [
    "AdkMemoryService",
    "AgentFrameworkProvider",
    "CrewAIMemory",
    "LlamaIndexMemoryBlock",
    "OpenAIAgentsMemory",
    "PydanticAIMemory",
    "StrandsMemoryStore",
    "by_model_or_rules",
    "for_users",
    "remember",
]

# Of each name: its module, and the package with its framework.
_HOMES = {
    "AdkMemoryService": ("google_adk", "google-adk"),
    "AgentFrameworkProvider": ("agent_framework", "agent-framework-core"),
    "CrewAIMemory": ("crewai", "crewai"),
    "LlamaIndexMemoryBlock": ("llama_index", "llama-index-core"),
    "OpenAIAgentsMemory": ("openai_agents", "openai-agents"),
    "PydanticAIMemory": ("pydantic_ai", "pydantic-ai-slim"),
    "StrandsMemoryStore": ("strands", "strands-agents"),
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'lukasa.frameworks' has no attribute {name!r}")
    module, package = _HOMES[name]
    try:
        home = import_module(f"lukasa.surfaces.frameworks.{module}")
    except ImportError as missing:
        if (missing.name or "").partition(".")[0] == "lukasa":
            raise
        raise MissingExtra(
            f"{name} needs {package}, and it cannot be imported here: {missing}", fix=f"pip install --upgrade {package}"
        ) from missing
    return getattr(home, name)
