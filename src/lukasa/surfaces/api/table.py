"""The table: every verb there is. HTTP routes, the OpenAPI document and MCP tools are made from it."""

from __future__ import annotations

from lukasa.surfaces.api import (
    drawing,
    entries,
    granting,
    oversight,
    pages,
    places,
    recall,
    reviewing,
    scrubbing,
    sessions,
    surveying,
    working,
)
from lukasa.surfaces.api.verb import Verb

VERBS: tuple[Verb, ...] = (
    *recall.VERBS,
    *entries.VERBS,
    *pages.VERBS,
    *places.VERBS,
    *reviewing.VERBS,
    *sessions.VERBS,
    *oversight.VERBS,
    *surveying.VERBS,
    *drawing.VERBS,
    *scrubbing.VERBS,
    *working.VERBS,
    *granting.VERBS,
)
BY_NAME = {verb.name: verb for verb in VERBS}
