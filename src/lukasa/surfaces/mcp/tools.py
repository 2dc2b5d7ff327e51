"""Tools: the verbs of the table that are for agents, each with its schemas and with hints of what it does."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import mcp_types as types

from lukasa.model.values import Kind
from lukasa.read.excerpt import excerpt
from lukasa.read.question import query_terms
from lukasa.surfaces.api.shapes import ContextOut, HitOut, RecallOut
from lukasa.surfaces.api.table import VERBS
from lukasa.surfaces.api.verb import Verb, VerbOutput, tool_schema
from lukasa.surfaces.cli.output import encode
from lukasa.surfaces.mcp.desk import WORKSPACE

# A PUT, a PATCH and a DELETE take the place of something; these POSTs take something away as well.
_TAKES_AWAY = frozenset({"conversation_end", "memory_scrub_execute"})
LONG = 2_000  # characters of one hit, of which an agent reads every one; another tool has the rest
_PLACE = {
    "type": "string",
    "description": "Workspace, by name or id. Leave it out unless you were told one.",
}


@cache
def tool(verb: Verb) -> types.Tool:
    asked = tool_schema(verb.input)
    if verb.in_workspace:
        asked["properties"] = {**asked.get("properties", {}), WORKSPACE: _PLACE}
    return types.Tool(
        name=verb.name,
        title=verb.title,
        description=verb.description,
        input_schema=asked,
        output_schema=tool_schema(verb.output, "serialization"),
        annotations=hints(verb),
    )


def hints(verb: Verb) -> types.ToolAnnotations:
    if not verb.mutates:
        return types.ToolAnnotations(title=verb.title, read_only_hint=True, open_world_hint=False)
    return types.ToolAnnotations(
        title=verb.title,
        read_only_hint=False,
        destructive_hint=verb.method in ("PUT", "PATCH", "DELETE") or verb.name in _TAKES_AWAY,
        idempotent_hint=verb.method in ("PUT", "DELETE"),
        open_world_hint=False,
    )


TOOLS = tuple(verb for verb in VERBS if verb.tool)


def result(told: VerbOutput) -> types.CallToolResult:
    """The answer as data, and once more as text for clients that read nothing else."""
    if isinstance(told, RecallOut):
        asked = query_terms(told.query)
        told = told.model_copy(update={"hits": [in_part(hit, asked) for hit in told.hits]})
    data = told.model_dump(mode="json")
    if isinstance(told, ContextOut):
        text = told.text  # made for a prompt, where it is read as it stands
    else:
        text = encode(told.model_dump(mode="json", exclude_none=True), indent=None)
    return types.CallToolResult(content=[types.TextContent(type="text", text=text)], structured_content=data)


def in_part(hit: HitOut, asked: Sequence[str]) -> HitOut:
    """Of a long hit, the sentences around what was asked for. A rule is given whole: the exception may stand in the
    rest of it."""
    text = hit.entry.content
    if len(text) <= LONG or hit.entry.kind == Kind.PROCEDURAL:
        return hit.model_copy(update={"excerpt": None})
    part = excerpt(text, asked, LONG)
    entry = hit.entry.model_copy(update={"content": part.of(text)})
    where = f"{part.start + 1}-{part.end}/{len(text)}"
    return hit.model_copy(update={"entry": entry, "excerpt": None, "part": where})


def refused(words: str) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(type="text", text=words)], is_error=True)
