"""The page: its files, the charts and the rendered markdown that it shows."""
