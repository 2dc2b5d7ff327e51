"""The HTTP server: routes from the verb table, the owner's page, and authentication."""
