"""What a LangGraph program imports: `from lukasa.langgraph import LukasaStore`."""

from lukasa.surfaces.langgraph.store import LukasaStore
from lukasa.surfaces.langgraph.toolkit import context_node, memory_tools, persist_node

__all__ = ["LukasaStore", "context_node", "memory_tools", "persist_node"]
