"""A backend for Anthropic's memory tool (`memory_20250818`): a view of memory as the folder that Claude expects."""
