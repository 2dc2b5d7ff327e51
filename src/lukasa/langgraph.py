"""The names for a LangGraph program: `from lukasa.langgraph import LukasaStore`."""

from lukasa.surfaces.langgraph.base_store import LukasaStore
from lukasa.surfaces.langgraph.past import import_store
from lukasa.surfaces.langgraph.toolkit import context_node, memory_tools, persist_node

__all__ = ["LukasaStore", "context_node", "import_store", "memory_tools", "persist_node"]
