"""Memory as the tools of an agent, for any agent loop: each verb with a `session` form, under its own name.

A wrong call never raises: the model gets the error and what to change.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from lukasa.model.errors import InvalidInput, LukasaError
from lukasa.ports import Tool, ToolCall
from lukasa.service.workspace import Workspace
from lukasa.surfaces.api.table import VERBS
from lukasa.surfaces.api.verb import SessionTool, SessionTurn, Verb, tool_schema, validated


class Outcome(Struct, frozen=True):
    """The result of a call: the text for the model, the entries it retrieved, whether it failed."""

    text: str
    retrieved: tuple[str, ...] = ()
    failed: bool = False


NO_TURN = SessionTurn()


class Toolbox:
    """The memory tools of one workspace handle. The tools reach as far as the handle does."""

    def __init__(self, world: Workspace, verbs: Sequence[Verb] = VERBS) -> None:
        self.world = world
        self._forms = {verb.name: verb.session for verb in verbs if verb.session is not None}
        self.tools: tuple[Tool, ...] = tuple(
            _tool(verb, verb.session, world) for verb in verbs if verb.session is not None
        )

    def call(self, call: ToolCall, *, turn: SessionTurn = NO_TURN, faults: int = 0) -> Outcome:
        """Run one call in a turn of the session; `faults` counts the turn's unreadable calls."""
        tool = next((tool for tool in self.tools if tool.name == call.name), None)
        try:
            if tool is None:
                names = ", ".join(tool.name for tool in self.tools)
                raise InvalidInput(f"there is no tool {call.name[:60]!r}", fix=f"use one of: {names}")
            if call.fault:
                return _unreadable(tool, call, faults)
            form = self._forms[tool.name]
            given = validated(form.input, call.arguments).model_dump(exclude_unset=True)
            # Models send null for an argument that they leave out; a required one, as the value of a note, may be null.
            fields = form.input.model_fields
            meant = {name: value for name, value in given.items() if value is not None or fields[name].is_required()}
            answer, retrieved = form.run(self.world, meant, turn)
        except LukasaError as error:
            return Outcome(_failure(error.code, error.message, error.fix), failed=True)
        return Outcome(json.dumps(answer, ensure_ascii=False), retrieved)


def _unreadable(tool: Tool, call: ToolCall, faults: int) -> Outcome:
    """Answer a call with unreadable arguments: the first time with the schema, later with an end."""
    if faults:
        fix = "go on without this tool, and tell the user what could not be done"
        return Outcome(_failure("refused", "the arguments could not be read again", fix), failed=True)
    fix = f"call {tool.name} again with one JSON object that fits {json.dumps(tool.parameters, ensure_ascii=False)}"
    return Outcome(_failure("invalid-input", f"the arguments could not be read: {call.fault}", fix), failed=True)


def _failure(code: str, message: str, fix: str) -> str:
    return json.dumps({"error": {"code": code, "message": message, "fix": fix}}, ensure_ascii=False)


# Tools derived from verbs


def _tool(verb: Verb, form: SessionTool, world: Workspace) -> Tool:
    """Return a verb as a tool, with the tiers that this handle reaches."""
    schema = tool_schema(form.input)
    properties = {field: _without_null(described) for field, described in schema["properties"].items()}
    if "tier" in properties:
        reachable = world.ctx.reachable()
        tiers = "; ".join(f"{tier.name}: {tier.description}" for tier in reachable)
        about = f"{properties['tier']['description']} {tiers}"
        properties["tier"] = {"type": "string", "enum": [tier.name for tier in reachable], "description": about}
    required = schema.get("required", [])
    parameters = {
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": False,
    }
    return Tool(verb.name, verb.description, parameters)


def _without_null(field: Mapping[str, Any]) -> dict[str, Any]:
    """Return an optional field as its one type: small models stumble over `anyOf` with null."""
    shown = {key: value for key, value in field.items() if key not in ("anyOf", "default")}
    typed = [option for option in field.get("anyOf", ()) if option != {"type": "null"}]
    return {**typed[0], **shown} if typed else shown
