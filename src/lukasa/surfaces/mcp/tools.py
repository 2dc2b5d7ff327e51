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
from lukasa.model.values import Kind
from lukasa.read.excerpt import excerpt
from lukasa.read.question import query_terms
from lukasa.service.admin.access import AccessControl, Credential
from lukasa.surfaces.api.disclosing import disclose_output
from lukasa.surfaces.api.shapes import ContextOut, HitOut, RecallOut
from lukasa.surfaces.api.table import VERBS
from lukasa.surfaces.api.verb import Verb, VerbInput, VerbOutput, perform, prepare, ran, tool_schema, validated
from lukasa.surfaces.cli.output import encode
from lukasa.surfaces.http.observing import current_request
from lukasa.surfaces.offload import offload

WORKSPACE = "workspace"  # every tool takes this argument; no verb's input has it, since over HTTP it is in the path
LONG = 2_000  # characters of a hit that memory_read gives; memory_get gives the rest
# PUT, PATCH and DELETE replace or remove something; of the POSTs only these do.
_DESTRUCTIVE_POSTS = frozenset({"conversation_end", "memory_erase", "memory_scrub_execute", "scope_end"})
SCOPE = "scope"  # every tool takes this argument too; over HTTP it is a header
_SCOPE_SCHEMA = {
    "type": "object",
    "additionalProperties": {"type": "string"},
    "description": "Scope keys to work under, such as a tenant. Leave it out unless you were told some.",
}
_WORKSPACE_SCHEMA = {
    "type": "string",
    "description": "Workspace, by name or id. Leave it out unless you were told one.",
}

RequestContext = ServerRequestContext[Any, Any]
T = TypeVar("T")


@cache
def tool(verb: Verb) -> types.Tool:
    """Return the tool of a verb: its schemas, and hints of what it does."""
    schema = tool_schema(verb.input)
    if verb.in_workspace:
        schema["properties"] = {**schema.get("properties", {}), WORKSPACE: _WORKSPACE_SCHEMA, SCOPE: _SCOPE_SCHEMA}
    return types.Tool(
        name=verb.name,
        title=verb.title,
        description=verb.description,
        input_schema=schema,
        output_schema=tool_schema(verb.output, "serialization"),
        annotations=hints(verb),
    )


def hints(verb: Verb) -> types.ToolAnnotations:
    if not verb.mutates:
        return types.ToolAnnotations(title=verb.title, read_only_hint=True, open_world_hint=False)
    return types.ToolAnnotations(
        title=verb.title,
        read_only_hint=False,
        destructive_hint=verb.method in ("PUT", "PATCH", "DELETE") or verb.name in _DESTRUCTIVE_POSTS,
        idempotent_hint=verb.method in ("PUT", "DELETE"),
        open_world_hint=verb.capability is Capability.DISCOVER,
    )


def result(output: VerbOutput) -> types.CallToolResult:
    """Return an output as data, and again as text for clients that read nothing else."""
    if isinstance(output, RecallOut):
        terms = query_terms(output.query)
        output = output.model_copy(update={"hits": [shortened(hit, terms) for hit in output.hits]})
    data = output.model_dump(mode="json")
    if isinstance(output, ContextOut):
        text = output.text  # made for a prompt, which reads it as it is
    else:
        text = encode(output.model_dump(mode="json", exclude_none=True), indent=None)
    return types.CallToolResult(content=[types.TextContent(type="text", text=text)], structured_content=data)


def shortened(hit: HitOut, terms: Sequence[str]) -> HitOut:
    """Return a long hit with only the sentences around the words of the question.

    A rule stays whole: its exception may be in the rest of it.
    """
    text = hit.entry.content
    if len(text) <= LONG or hit.entry.kind == Kind.PROCEDURAL:
        return hit.model_copy(update={"excerpt": None})
    part = excerpt(text, terms, LONG)
    entry = hit.entry.model_copy(update={"content": part.of(text)})
    where = f"{part.start + 1}-{part.end}/{len(text)}"
    return hit.model_copy(update={"entry": entry, "excerpt": None, "part": where})


def error_result(message: str) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(type="text", text=message)], is_error=True)


# Dispatch


class Refusal(Exception):
    """The text that a client gets instead of an answer: what is wrong, and what to do."""


class Dispatcher(Struct, frozen=True):
    """Finds the credential of a request with `identify`, runs verbs in a thread, and turns errors into Refusals.

    `home` is the workspace of a call that names none; `scope` binds scope keys of the owner's program in every call.
    """

    access: AccessControl
    identify: Callable[[RequestContext], Credential]
    home: str | None = None
    verbs: tuple[Verb, ...] = VERBS
    scope: Mapping[str, str] = field(default_factory=dict)

    async def answer(self, ctx: RequestContext, work: Callable[[Credential], T]) -> T:
        """Do the work in a thread, with the credential of this request. Every error becomes a Refusal."""
        return await offload(self._answer, ctx, work)

    def _answer(self, ctx: RequestContext, work: Callable[[Credential], T]) -> T:
        try:
            return work(self.identify(ctx))
        except Exception as error:  # noqa: BLE001 - the surface's last handler: the client gets words for any error
            raise Refusal(_message(error)) from None

    def tools(self, credential: Credential) -> list[types.Tool]:
        """Return the tools that are open to a credential."""
        return [tool(verb) for verb in self.verbs if verb.tool and verb.open_to(credential)]

    def verb(self, name: str) -> Verb | None:
        return next((verb for verb in self.verbs if verb.name == name), None)

    def input_schema(self, name: str) -> dict[str, Any] | None:
        verb = self.verb(name)
        return tool(verb).input_schema if verb is not None and verb.tool else None

    def perform(self, credential: Credential, name: str, arguments: Mapping[str, Any]) -> VerbOutput:
        verb, workspace, input, scope = self._call(credential, name, arguments)
        return perform(verb, self.access, credential, workspace, input, scope)

    def call(self, credential: Credential, name: str, arguments: Mapping[str, Any]) -> types.CallToolResult:
        """Run a tool, and note what its answer holds in the disclosure ledger."""
        verb, workspace, input, scope = self._call(credential, name, arguments)
        call = prepare(verb, self.access, credential, workspace, scope)
        output = ran(verb, call, input)
        answer = result(output)
        (text,) = answer.content
        disclose_output(call, verb, input, output, text.text if isinstance(text, types.TextContent) else "")
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
        verb = self.verb(name)
        if verb is None:
            raise NotFound(f"no tool {name[:60]!r}", fix="list the tools")
        if not verb.tool:
            raise Forbidden(
                f"{verb.name} is not offered to MCP clients",
                fix="ask the owner to use the command line, or the page that `lukasa serve` opens",
            )
        verb.require(credential)
        fields = dict(arguments)
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
