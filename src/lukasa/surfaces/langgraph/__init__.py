"""LangGraph: a store, nodes, tools, and the reference agent."""
