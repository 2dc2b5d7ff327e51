"""What a LangGraph program imports: `from mnemon.langgraph import MnemonStore`."""

from mnemon.surfaces.langgraph.nodes import context_node, persist_node
from mnemon.surfaces.langgraph.store import MnemonStore
from mnemon.surfaces.langgraph.tools import memory_tools

__all__ = ["MnemonStore", "context_node", "memory_tools", "persist_node"]
