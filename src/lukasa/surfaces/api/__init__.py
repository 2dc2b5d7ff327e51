"""The verb table: HTTP routes, their OpenAPI document, MCP tools and LangGraph tools derive from it."""
