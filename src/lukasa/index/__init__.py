"""Search as code over rows: keyword scoring, vector search, neighbour search and the read cache. No SQL is in here.

A backend gives the rows through the protocols of `index.rows`; it decides nothing about ranking.
"""
