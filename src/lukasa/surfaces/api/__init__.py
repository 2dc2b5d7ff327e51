"""One table of verbs, from which HTTP routes, their OpenAPI document and MCP tools are made."""
