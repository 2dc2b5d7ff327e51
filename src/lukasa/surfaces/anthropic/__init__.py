"""A backend for Anthropic's memory tool (`memory_20250818`): shows a workspace as the folder that Claude expects."""
