"""What a LangGraph program imports: `from lukasa.langgraph import LukasaStore`."""

from lukasa.surfaces.langgraph.nodes import context_node, persist_node
from lukasa.surfaces.langgraph.store import LukasaStore
from lukasa.surfaces.langgraph.tools import memory_tools

__all__ = ["LukasaStore", "context_node", "memory_tools", "persist_node"]
