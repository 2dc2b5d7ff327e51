"""Memory for any MCP client: tools made from the table of verbs, the author's pages as resources, two prompts."""
