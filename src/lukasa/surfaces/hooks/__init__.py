"""Hooks: answer the events of a harness such as Claude Code from memory."""
