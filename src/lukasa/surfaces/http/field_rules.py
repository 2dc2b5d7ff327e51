"""The rules for fields of inputs that the engine checks, as JSON Schema: lengths, patterns and choices, by name.

The engine refuses these values itself, with a better message than a schema gives. The OpenAPI document repeats the
rules, so that a client knows them before it asks; tests/stories/test_http_strictness.py holds the two together. Tools
of MCP do not repeat them: each rule costs tokens.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lukasa.model.citation import MOST_CITATIONS, MOST_TARGET
from lukasa.model.job import JobState
from lukasa.model.values import Curator, State
from lukasa.service.inputs import MAX_LABEL, MAX_QUERY
from lukasa.spec import preset_names
from lukasa.surfaces.api.verb import MOMENT, MOST_NUMBER

Rule = Mapping[str, Any]

MOST_KEY = 200  # characters of an idempotency key

_TEXT: Rule = {"minLength": 1, "pattern": r"^[^\u0000]*[^\u0000\s][^\u0000]*$"}
_BLANK: Rule = {"pattern": r"^[^\u0000]*$"}
_LABEL: Rule = {**_TEXT, "maxLength": MAX_LABEL}
_LINE: Rule = {
    "minLength": 1,
    "maxLength": MAX_LABEL,
    "pattern": r"^[^\u0000-\u001f\u007f]*[^\s\u0000-\u001f\u007f][^\u0000-\u001f\u007f]*$",
}
_LINE_OR_NONE: Rule = {
    "maxLength": MAX_LABEL,
    "pattern": r"^([^\u0000-\u001f\u007f]*[^\s\u0000-\u001f\u007f][^\u0000-\u001f\u007f]*)?$",
}
_LABEL_OR_NONE: Rule = {"maxLength": MAX_LABEL, "pattern": r"^([^\u0000]*[^\u0000\s][^\u0000]*)?$"}
_TEXT_OR_NONE: Rule = {"pattern": r"^([^\u0000]*[^\u0000\s][^\u0000]*)?$"}
_HEX = "[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"
_UUID: Rule = {"format": "uuid", "pattern": f"^{_HEX}$"}
_WHOLE_PATH: Rule = {"maxLength": 1000, "pattern": r"^[/~][^\u0000]*$"}
_QUERY: Rule = {"maxLength": MAX_QUERY}
_PAGE: Rule = {"pattern": "^[A-Za-z][A-Za-z0-9_-]{0,63}$"}
_SHARE: Rule = {"minimum": 0, "maximum": 1}
_NUMBER: Rule = {"maximum": MOST_NUMBER}
_LONG_AGO: Rule = {"pattern": r"^\s*(\d{1,5}\s*[hdw]|\d{4}-\d{2}-\d{2}.*)\s*$"}
_MOMENT: Rule = {"pattern": MOMENT}
_BASE64: Rule = {
    "contentEncoding": "base64",
    "minLength": 4,
    "pattern": "^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$",
}
_PATH: Rule = {**_TEXT, "maxLength": 4096}
_URL: Rule = {**_TEXT, "maxLength": 4096}

IDEMPOTENCY_KEY: Rule = {"type": "string", "minLength": 1, "maxLength": MOST_KEY, "pattern": "^[!-~]([ -~]*[!-~])?$"}
IF_MATCH: Rule = {"type": "string", "pattern": r'^(\*|"[0-9]{1,9}")$'}

# By the name of a field; for a list, of each of its values.
_FIELDS: Mapping[str, Rule] = {
    "action": {},
    "as_agent": _LINE,
    "as_of": {"pattern": r"^([A-Za-z][A-Za-z0-9_.-]{0,59}|\d{4}-\d{2}-\d{2}.*)$"},
    "category": _LABEL,
    "cites": {**_LINE, "maxLength": MOST_TARGET},
    "collection": _LINE,
    "channel": _LABEL,
    "content": _TEXT,
    "conversation": _LABEL,
    "corrects": _UUID,
    "curator": {"enum": [str(one) for one in Curator]},
    "data": _BASE64,
    "derivable": _UUID,
    "derived_from": _UUID,
    "description": _BLANK,
    "folder": _PATH,
    "ids": _UUID,
    "importance": _SHARE,
    "item": _UUID,
    "key": _LINE,
    "lifecycle": _LINE,
    "line": _NUMBER,
    "links": _LINE,
    "memories": _UUID,
    "memory": _UUID,
    "onto": _NUMBER,
    "origin": _LINE,
    "other": _UUID,
    "page": _NUMBER,
    "passage": _NUMBER,
    "q": _QUERY,
    "query": _QUERY,
    "reason": _LABEL,
    "section": _LABEL,
    "shown_to": _LABEL,
    "source": _LABEL,
    "standing": _LINE,
    "start": _NUMBER,
    "state": {"enum": [str(one) for one in State]},
    "supersedes": _UUID,
    "tag": _LABEL,
    "tags": _LINE,
    "text": _TEXT,
    "title": _LINE_OR_NONE,
    "url": _URL,
    "weight": _SHARE,
}
# Where a verb means something else by a name, or says more about it. An empty rule says nothing.
_OF_VERBS: Mapping[str, Mapping[str, Rule]] = {
    "bookmark_create": {
        "name": {"pattern": "^[A-Za-z][A-Za-z0-9_.-]{0,59}$"},
        "note": {"maxLength": 500, **_TEXT_OR_NONE},
    },
    "channel_create": {"name": _LINE},
    "corpus_about": {"document": _LABEL},
    "corpus_add": {"name": _LINE, "media_type": _LINE_OR_NONE},
    "corpus_discover": {"context": {"maxLength": 500, **_BLANK}},
    "corpus_list": {"collection": _LABEL, "after": _LABEL_OR_NONE},
    "corpus_read": {"document": _LABEL},
    "corpus_remove": {"document": _LABEL},
    "corpus_search": {"collections": _LABEL, "documents": _LABEL, "tags": _LABEL},
    "corpus_submissions": {"document": _LABEL, "state": {}},
    "corpus_submit": {"document": _LINE, "note": _LABEL_OR_NONE, "text": _TEXT_OR_NONE},
    "grant_create": {"name": _LINE, "workspaces": _LABEL},
    "grant_revoke": {"id": _LABEL},
    "job_list": {"state": {"enum": [str(one) for one in JobState]}},
    "markdown_render": {"text": {}},
    "memory_corroborate": {"reason": _LABEL_OR_NONE},
    "memory_erase": {"source": {}},
    "memory_erase_plan": {"source": {}},
    "memory_list": {"after": {"pattern": f"^({_HEX})?$"}, "tag": _LABEL_OR_NONE},
    "memory_read": {"tags": _LABEL},
    "memory_scrub_plan": {"channel": {}, "tier": _TEXT},
    "memory_scrub_execute": {"channel": {}, "tier": _TEXT},
    "memory_shown": {"since": _LONG_AGO, "shown_to": {}},
    "memory_table": {"conversation": {}, "ids": {}, "tags": {}},
    "memory_why": {"tags": _LABEL},
    "named_edit": {"name": _PAGE, "body": _TEXT_OR_NONE},
    "named_get": {"name": _PAGE},
    "named_history": {"name": _PAGE},
    "note_clear": {"key": {}},
    "review_undo": {"reason": _LABEL_OR_NONE},
    "scope_end": {"name": _LABEL},
    "backup_check": {"folder": _WHOLE_PATH},
    "backup_list": {"folder": _WHOLE_PATH},
    "backup_make": {"folder": _WHOLE_PATH},
    "workspace_create": {"name": _LINE, "preset": {"enum": [*preset_names()]}},
    "workspace_rename": {"name": _LINE},
    "workspace_stats": {"since": _LONG_AGO},
    "workspace_tokens": {"since": _LONG_AGO},
}
# Ids that are not UUIDs alone: a conversation has a short code, a job a key, a folder a path.
_LABELLED = ("conversation_", "note_", "transcript_", "job_", "corpus_unwatch", "feed_")
_REQUIRED_LISTS = {"memories", "can"}
_MOST_OF = {"cites": MOST_CITATIONS}


def ruled(verb: str, name: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema of a field with the rules that the engine checks."""
    rule = _rule(verb, name)
    made = dict(schema)
    if name in _REQUIRED_LISTS and made.get("type") == "array":
        made["minItems"] = 1
    options = [_of(option, rule, name) for option in made.get("anyOf", ())]
    if verb == "memory_update":
        options = [option for option in options if option != {"type": "null"}]
        made.pop("default", None)  # null means that the field was left out, and cannot be sent
    return {**made, "anyOf": options} if options else _of(made, rule, name)


def _rule(verb: str, name: str) -> Rule:
    own = _OF_VERBS.get(verb, {})
    if name == "id" and name not in own:
        return _LABEL if verb.startswith(_LABELLED) else _UUID
    return own[name] if name in own else _FIELDS.get(name, {})


def _of(schema: Mapping[str, Any], rule: Rule, name: str) -> dict[str, Any]:
    kind = schema.get("type")
    if kind == "array":
        most = {"maxItems": _MOST_OF[name]} if name in _MOST_OF else {}
        return {**schema, "items": _of(schema["items"], rule, ""), **most}
    if schema.get("format") == "date-time":
        return {**schema, **_MOMENT}
    wanted = {"string": ("pattern", "minLength", "maxLength", "enum", "format", "contentEncoding")}
    numeric = ("minimum", "maximum")
    keys = wanted.get(str(kind), numeric if kind in ("integer", "number") else ())
    return {**schema, **{key: rule[key] for key in keys if key in rule}}
