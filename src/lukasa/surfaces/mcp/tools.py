"""Tools: the verbs of the table that are for agents, and the dispatcher that runs every request.

The dispatcher keeps nothing between two requests.
"""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, TypeVar

import mcp_types as types
from mcp.server import ServerRequestContext
from msgspec import Struct, field

from lukasa.model.errors import Forbidden, InvalidInput, LukasaError, NotFound
from lukasa.model.grant import Capability
from lukasa.model.text import escape_controls
from lukasa.service.admin.access import AccessControl, Credential
from lukasa.service.workspace import Workspace
from lukasa.surfaces.api.disclosing import disclose_output
from lukasa.surfaces.api.shapes import ContextOut, RecallOut
from lukasa.surfaces.api.table import VERBS
from lukasa.surfaces.api.verb import Verb, VerbInput, VerbOutput, perform, prepare, ran, tool_schema, validated
from lukasa.surfaces.cli.output import encode
from lukasa.surfaces.http.observing import current_request
from lukasa.surfaces.mcp import answers
from lukasa.surfaces.offload import offload

WORKSPACE = "workspace"  # every tool takes this argument; no verb's input has it, since over HTTP it is in the path
SCOPE = "scope"  # every tool takes this argument too; over HTTP it is a header
DETAIL = "detail"  # and this one: the answer as data
MORE = "more"  # the tool that leads to the verbs that a client does not list
# PUT, PATCH and DELETE replace or remove something; of the POSTs only these do.
_DESTRUCTIVE_POSTS = frozenset({"conversation_end", "memory_erase", "memory_scrub_execute", "scope_end"})
_OF_THE_CALL = {
    WORKSPACE: {"type": "string", "description": "Workspace, by name or id. Leave it out unless you were told one."},
    SCOPE: {
        "type": "object",
        "additionalProperties": {"type": "string"},
        "description": "Keys to work under, such as a tenant. Leave it out unless you were told some.",
    },
    DETAIL: {"type": "boolean", "description": "True for everything as JSON: scores, where it is from, whole ids."},
}
_ABOUT_MORE = (
    "What else memory can do: undo, history, notes, conversations, lists, checks, statistics. Call it if no other tool "
    "does what the user wants. With `tool` alone it explains that tool; with `arguments` too, even empty ones, it "
    "calls it."
)

RequestContext = ServerRequestContext[Any, Any]
T = TypeVar("T")


@cache
def tool(verb: Verb, *, brief: bool = False, several: bool = False) -> types.Tool:
    """Return the tool of a verb. A model pays for every word of it in each of its requests.

    `brief`: only the fields that an agent needs every day. `several`: the caller may reach more than one workspace.
    There is no output schema: the answers are texts.
    """
    schema = lean(tool_schema(verb.input))
    fields = schema.get("properties", {})
    if brief:
        fields = {name: field for name, field in fields.items() if name in verb.everyday}
    shared = {WORKSPACE, SCOPE, DETAIL} if not brief else {DETAIL} if verb.name in _DETAILED else set()
    if verb.in_workspace:
        shared |= {WORKSPACE} if several else set()
        fields |= {name: field for name, field in _OF_THE_CALL.items() if name in shared}
    return types.Tool(
        name=verb.name,
        title=verb.title,
        description=verb.description,
        input_schema={**schema, "properties": fields},
        annotations=hints(verb),
    )


_DETAILED = frozenset({"memory_read", "memory_get"})  # everyday tools whose answers leave something out


def lean(schema: Any) -> Any:
    """Return a JSON schema without what tells a model nothing: null as a choice, and defaults that are nothing."""
    if isinstance(schema, list):
        return [lean(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    made = {name: lean(one) for name, one in schema.items() if not (name == "default" and one in _NOTHING)}
    choices = [one for one in made.get("anyOf", []) if one != {"type": "null"}]
    if len(choices) == 1:
        made = {**choices[0], **{name: one for name, one in made.items() if name != "anyOf"}}
    elif choices:
        made["anyOf"] = choices
    return made


_NOTHING: tuple[Any, ...] = (None, [], {}, False, "")


def more(verbs: Sequence[Verb]) -> types.Tool:
    """Return the tool that explains and calls these verbs."""
    schema = {
        "type": "object",
        "additionalProperties": False,
        "properties": {
            "tool": {"type": "string", "enum": [verb.name for verb in verbs]},
            "arguments": {"type": "object"},
        },
        "required": ["tool"],
    }
    discovers = any(verb.capability is Capability.DISCOVER for verb in verbs)
    changes = any(verb.mutates for verb in verbs)
    return types.Tool(
        name=MORE,
        title="More tools",
        description=_ABOUT_MORE,
        input_schema=schema,
        annotations=types.ToolAnnotations(
            read_only_hint=not changes,
            destructive_hint=any(bool(hints(verb).destructive_hint) for verb in verbs) if changes else None,
            open_world_hint=discovers,
        ),
    )


def hints(verb: Verb) -> types.ToolAnnotations:
    if not verb.mutates:
        return types.ToolAnnotations(read_only_hint=True, open_world_hint=False)
    return types.ToolAnnotations(
        read_only_hint=False,
        destructive_hint=verb.method in ("PUT", "PATCH", "DELETE") or verb.name in _DESTRUCTIVE_POSTS,
        idempotent_hint=verb.method in ("PUT", "DELETE"),
        open_world_hint=verb.capability is Capability.DISCOVER,
    )


def result(output: VerbOutput, *, detail: bool = False) -> types.CallToolResult:
    """Return an output as text; with `detail` as data, and the same as one JSON document in the text."""
    if isinstance(output, RecallOut):
        output = answers.in_part(output)
    if not detail:
        return _text_result(answers.text_of(output))
    text = output.text if isinstance(output, ContextOut) else encode(output.model_dump(mode="json"), indent=None)
    answer = _text_result(text)
    return answer.model_copy(update={"structured_content": output.model_dump(mode="json")})


def _text_result(text: str) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(type="text", text=text)])


def error_result(message: str) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(type="text", text=message)], is_error=True)


# Dispatch


class Refusal(Exception):
    """The text that a client gets instead of an answer: what is wrong, and what to do.

    `missing` is true if what the client asked for is not there.
    """

    def __init__(self, message: str, *, missing: bool = False) -> None:
        super().__init__(message)
        self.missing = missing


class Dispatcher(Struct, frozen=True):
    """Finds the credential of a request with `identify`, runs verbs in a thread, and turns errors into Refusals.

    `home` is the workspace of a call that names none; `scope` binds scope keys of the owner's program in every call.
    With `every`, all tools are listed, and not only those of every day.
    """

    access: AccessControl
    identify: Callable[[RequestContext], Credential]
    home: str | None = None
    verbs: tuple[Verb, ...] = VERBS
    scope: Mapping[str, str] = field(default_factory=dict)
    every: bool = False

    async def answer(self, ctx: RequestContext, work: Callable[[Credential], T]) -> T:
        """Do the work in a thread, with the credential of this request. Every error becomes a Refusal."""
        return await offload(self._answer, ctx, work)

    def _answer(self, ctx: RequestContext, work: Callable[[Credential], T]) -> T:
        try:
            return work(self.identify(ctx))
        except Exception as error:  # noqa: BLE001 - the surface's last handler: the client gets words for any error
            raise Refusal(_message(error), missing=isinstance(error, NotFound)) from None

    def tools(self, credential: Credential, *, every: bool = False) -> list[types.Tool]:
        """Return the tools that are open to a credential: those of every day and `more`, or every one."""
        ours = [verb for verb in self.verbs if verb.tool and verb.open_to(credential)]
        if every or self.every:
            return [tool(verb) for verb in ours]
        rest = [verb for verb in ours if not verb.everyday]
        several = len(self.access.visible(credential)) > 1
        listed = [tool(verb, brief=True, several=several) for verb in ours if verb.everyday]
        return [*listed, more(rest)] if rest else listed

    def explain(self, credential: Credential, name: str) -> types.CallToolResult:
        """Return what a tool does, and its arguments."""
        verb = self._verb(name)
        verb.require(credential)
        made = tool(verb)
        schema = encode(made.input_schema["properties"], indent=None)
        needed = ", ".join(made.input_schema.get("required", [])) or "none"
        return _text_result(f"{made.description}\nrequired: {needed}\narguments: {schema}")

    def verb(self, name: str) -> Verb | None:
        return next((verb for verb in self.verbs if verb.name == name), None)

    def _verb(self, name: str) -> Verb:
        verb = self.verb(name)
        if verb is None:
            raise NotFound(f"no tool {name[:60]!r}", fix="list the tools")
        if not verb.tool:
            raise Forbidden(
                f"{verb.name} is not offered to MCP clients",
                fix="ask the owner to do it on the page of this memory or at a terminal",
            )
        return verb

    def input_schema(self, name: str) -> dict[str, Any] | None:
        verb = self.verb(name)
        return tool(verb).input_schema if verb is not None and verb.tool else None

    def perform(self, credential: Credential, name: str, arguments: Mapping[str, Any]) -> VerbOutput:
        verb, workspace, input, scope = self._call(credential, name, arguments)
        return perform(verb, self.access, credential, workspace, input, scope)

    def enter(self, credential: Credential, name: str, workspace: str) -> Workspace:
        """Return a workspace as a call of this verb enters it."""
        verb, chosen, _, scope = self._call(credential, name, {WORKSPACE: workspace})
        return prepare(verb, self.access, credential, chosen, scope).workspace

    def call(self, credential: Credential, name: str, arguments: Mapping[str, Any]) -> types.CallToolResult:
        """Run a tool, and note what its answer holds in the disclosure ledger."""
        detail = arguments.get(DETAIL, False)
        if not isinstance(detail, bool):
            raise InvalidInput("detail is not true or false", fix="leave it out for a short answer")
        verb, workspace, input, scope = self._call(credential, name, arguments)
        call = prepare(verb, self.access, credential, workspace, scope)
        output = ran(verb, call, input)
        answer = result(output, detail=detail)
        (text,) = answer.content
        said = text.text if isinstance(text, types.TextContent) else ""
        disclose_output(call, verb, input, output, said, *([] if detail else [answers.cost_of]))
        return answer

    def question(self, credential: Credential, name: str, arguments: Mapping[str, Any]) -> str:
        """Return the question that a person must confirm before this call of a verb with `asks`."""
        verb, workspace, input, scope = self._call(credential, name, arguments)
        call = prepare(verb, self.access, credential, workspace, scope)
        question = "" if verb.asks is None else verb.asks(call, input)
        return "\n".join(escape_controls(line) for line in question.split("\n"))

    def _call(
        self, credential: Credential, name: str, arguments: Mapping[str, Any]
    ) -> tuple[Verb, str | None, VerbInput, dict[str, str]]:
        """Return the verb, the workspace, the input and the scope keys of a call that the verb is open to."""
        verb = self._verb(name)
        verb.require(credential)
        fields = {key: value for key, value in arguments.items() if key != DETAIL}
        workspace = self.workspace(credential, fields.pop(WORKSPACE, None)) if verb.in_workspace else None
        scope = self._scope(fields.pop(SCOPE, None)) if verb.in_workspace else {}
        return verb, workspace, validated(verb.input, fields), scope

    def _scope(self, given: object) -> dict[str, str]:
        """Return the scope keys of a call: those of the server, and those that the call adds to them."""
        asked = {} if given is None else given
        if not isinstance(asked, Mapping) or not all(isinstance(value, str) for value in asked.values()):
            raise InvalidInput("scope is not an object of texts", fix='write it as {"org_id": "acme"}, or leave it out')
        for key, value in self.scope.items():
            if asked.get(key, value) != value:
                raise NotFound(f"no {key} {asked[key][:60]!r} in this workspace", fix="ask the owner to grant it")
        return {**asked, **self.scope}

    def workspace(self, credential: Credential, named: object = None) -> str:
        """Return the workspace of a call: the named one, else the server's own, else the only visible one."""
        if named is not None and not isinstance(named, str):
            raise InvalidInput("workspace is not text", fix="give a name or an id, or leave it out")
        chosen = named or self.home
        if chosen:
            return chosen
        visible = [info.name for info in self.access.visible(credential)]
        if len(visible) == 1:
            return visible[0]
        if not visible:
            raise NotFound("no workspace of this credential exists any more", fix="ask the owner for another grant")
        raise InvalidInput("which workspace?", fix=f"name one as `workspace`: {', '.join(visible[:20])}")


def _message(error: Exception) -> str:
    if isinstance(error, LukasaError):
        message, fix = error.message, error.fix
    else:
        last = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{os.path.basename(last.filename)}:{last.lineno} in {last.name}"
        request = f" request_id={current_request.get()}" if current_request.get() else ""
        print(f"lukasa mcp: unexpected {type(error).__name__} at {where}{request}", file=sys.stderr)
        message, fix = f"unexpected {type(error).__name__}", "try once more; the server's stderr says where it happened"
    return escape_controls(message + (f"\nfix: {fix}" if fix else ""))
