"""Every verb. HTTP routes, the OpenAPI document, MCP tools and LangGraph tools derive from this table."""

from __future__ import annotations

from lukasa.surfaces.api import (
    admin_verbs,
    backup_verbs,
    conversation_verbs,
    corpus_verbs,
    curation_verbs,
    discovery_verbs,
    erase_verbs,
    home_verbs,
    looking_verbs,
    memory_verbs,
    overview_verbs,
    past_verbs,
    settings_verbs,
    submission_verbs,
    sync_verbs,
    workspace_verbs,
)
from lukasa.surfaces.api.verb import Verb

VERBS: tuple[Verb, ...] = (
    *memory_verbs.VERBS,
    *corpus_verbs.VERBS,
    *curation_verbs.VERBS,
    *submission_verbs.VERBS,
    *discovery_verbs.VERBS,
    *conversation_verbs.VERBS,
    *overview_verbs.VERBS,
    *home_verbs.VERBS,
    *looking_verbs.VERBS,
    *admin_verbs.VERBS,
    *past_verbs.VERBS,
    *workspace_verbs.VERBS,
    *erase_verbs.VERBS,
    *backup_verbs.VERBS,
    *settings_verbs.VERBS,
    *sync_verbs.VERBS,
)
BY_NAME = {verb.name: verb for verb in VERBS}
