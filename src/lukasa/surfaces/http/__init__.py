"""The server: routes made from the table of verbs, the page, and what guards them."""
