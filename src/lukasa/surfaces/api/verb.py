"""The definition of a verb, and the one way to perform a verb, for every surface.

An input says what to do and where to look. Only the credential says who asks: no input has a field for an owner, an
origin, a principal or a trust, and inputs refuse unknown fields.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from datetime import datetime
from typing import Annotated, Any, Literal, Self, TypeVar

from msgspec import Struct
from pydantic import BaseModel, BeforeValidator, ConfigDict, ValidationError, create_model
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaMode

from lukasa.model.errors import InvalidInput, brief
from lukasa.model.grant import Capability
from lukasa.model.secrets import Masked
from lukasa.service.admin.access import AccessControl, Credential
from lukasa.service.workspace import Workspace
from lukasa.surfaces.cli.data import plain

MOST_NUMBER = 2**63 - 1  # a database holds no greater one

Method = Literal["GET", "POST", "PUT", "PATCH", "DELETE"]
MOMENT = r"^\d{4}-\d{2}-\d{2}([Tt ]\d{2}:\d{2}.*)?$"  # the texts that are read as a time
_IN_PATH = re.compile(r"\{(\w+)\}")


class VerbInput(BaseModel):
    """An input: exactly these fields."""

    model_config = ConfigDict(extra="forbid")


def _moment(given: object) -> object:
    """Read a time. A bare number is refused: pydantic would take it as seconds since 1970, which nobody means."""
    if isinstance(given, str) and re.fullmatch(MOMENT, given):
        return datetime.fromisoformat(given)
    if given is None or isinstance(given, datetime):
        return given
    raise ValueError("write the time as 2026-11-15T09:30")


Moment = Annotated[datetime, BeforeValidator(_moment)]


class VerbOutput(BaseModel):
    """An output, built from a value of the engine by the names of its fields."""

    model_config = ConfigDict(extra="ignore")

    @classmethod
    def of(cls, value: Any) -> Self:
        return cls.model_validate(plain(value))

    def masked(self) -> Self:
        """Return this output with marks in place of the secrets of sensitive entries."""
        changes = {
            name: new for name in type(self).model_fields if (new := _masked(old := getattr(self, name))) is not old
        }
        return self.model_copy(update=changes) if changes else self

    def tag(self) -> int | None:
        """Return the version of the one entry or page that this output is about; None for other outputs."""
        return None


def _masked(value: Any) -> Any:
    if isinstance(value, VerbOutput):
        return value.masked()
    if isinstance(value, list):
        new = [_masked(one) for one in value]
        return value if all(a is b for a, b in zip(value, new, strict=True)) else new
    return value


class NoInput(VerbInput):
    """No input."""


M = TypeVar("M", bound=BaseModel)


def validated(model: type[M], fields: Mapping[str, Any]) -> M:
    """Return the fields as a model. The error names the field and the rule, never the value that was sent."""
    try:
        return model.model_validate(dict(fields))
    except ValidationError as error:
        faults = error.errors(include_url=False, include_input=False, include_context=False)
        named = [(".".join(map(str, fault["loc"])) or "input", fault["msg"]) for fault in faults[:5]]
        messages = [f"{brief(name, 100)}: {brief(message, 200)}" for name, message in named]
        raise InvalidInput("; ".join(messages), fix="follow the input schema of the tool") from None


class _Untitled(GenerateJsonSchema):
    """Give fields no title: it would only repeat the field's name."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False


def tool_schema(model: type[BaseModel], mode: JsonSchemaMode = "validation") -> dict[str, Any]:
    """Return a model's JSON schema as tools show it: without titles, and without the class's docstring."""
    made = model.model_json_schema(schema_generator=_Untitled, mode=mode)
    made.pop("title", None)
    made.pop("description", None)
    return made


class Call(Struct, frozen=True):
    """One call of a verb: the credential of the caller, and the workspace as that credential opens it."""

    access: AccessControl
    credential: Credential
    entered: Workspace | None = None

    @property
    def workspace(self) -> Workspace:
        if self.entered is None:
            raise InvalidInput("this verb needs a workspace", fix="name a workspace")
        return self.entered

    def at(self, channel: str | None = None, conversation: str | None = None) -> Workspace:
        """Return the workspace, bound to a channel or a conversation if the input names one."""
        named = {"channel": channel, "conversation": conversation}
        keys = {key: value for key, value in named.items() if value is not None}
        return self.workspace.at(**keys) if keys else self.workspace

    def overseen(self, capability: Capability) -> Workspace:
        """Return all of the workspace, for verbs about the whole of it."""
        return self.access.overseen(self.credential, self.workspace, capability)


class SessionTurn(Struct, frozen=True):
    """The turn of a session in which a tool runs: the entries retrieved so far, and the words of the owner, if any.

    Nobody but the owner stores a secret. The model sees marks in its place, so a put whose text the owner has just
    typed is written from the owner's words, by `author`, the owner's own handle. `typed` holds the last messages.
    """

    seen: Collection[str] = ()
    author: Workspace | None = None
    typed: tuple[Masked, ...] = ()


SessionAnswer = tuple[dict[str, Any], tuple[str, ...]]  # the answer, and the ids of the entries that it retrieved
SessionRun = Callable[[Workspace, Mapping[str, Any], SessionTurn], SessionAnswer]


class SessionTool(Struct, frozen=True):
    """The form that a verb has for the agent of a LangGraph session: fewer arguments, and a brief answer.

    A session is bound to a workspace handle and a conversation, so `run` gets the handle instead of a credential, and
    the turn of the session.
    """

    input: type[VerbInput]
    run: SessionRun

    @classmethod
    def of(cls, input: type[VerbInput], run: SessionRun, *fields: str, **more: Any) -> SessionTool:
        """Offer some fields of a verb's input. `more` adds fields, or replaces the definition of one."""
        known = input.model_fields
        defined: dict[str, Any] = {name: (known[name].annotation, known[name]) for name in fields} | more
        config = ConfigDict(extra="forbid", strict=True)
        return cls(create_model(f"{input.__name__}InSession", __config__=config, **defined), run)


class Verb(Struct, frozen=True):
    """One thing that a client can ask for. `path` is below /v1; `{workspace}` in it is not an input.

    A verb with `version_of` changes one thing that has a version: its input has `expected_version`, which over HTTP
    is the If-Match header, and `version_of` returns the current version.

    A verb with `also` does several things, each with a capability of its own: any of them opens the verb, and the verb
    itself requires the one that a call needs. A person confirms a verb with `asks`: its input has `confirm`. Where a
    model fills in `confirm`, the surface puts this question to the person, and uses the text that the person types.
    """

    name: str
    description: str
    capability: Capability
    method: Method
    path: str
    input: type[VerbInput]
    output: type[VerbOutput]
    run: Callable[[Call, Any], VerbOutput]
    also: tuple[Capability, ...] = ()
    asks: Callable[[Call, Any], str] | None = None
    mutates: bool = False
    owner_only: bool = False
    status: int = 200
    version_of: Callable[[Call, Any], int] | None = None
    tool: bool = True  # offered to MCP clients as a tool
    everyday: tuple[str, ...] = ()  # fields of the tool that every MCP client lists; without any, `more` leads to it
    session: SessionTool | None = None  # offered to the agent of a LangGraph session as well, in this form
    keyed: bool = True  # takes an idempotency key; False where the answer is a secret, which is stored nowhere

    @property
    def title(self) -> str:
        """The name with a dot, as people read it: memory.put."""
        return self.name.replace("_", ".", 1)

    @property
    def capabilities(self) -> tuple[Capability, ...]:
        """The capabilities of which a credential must include one."""
        return (self.capability, *self.also)

    @property
    def needs(self) -> str:
        """The capabilities in words, for documentation."""
        return " or ".join(f"`{one}`" for one in self.capabilities)

    def open_to(self, credential: Credential) -> bool:
        return credential.allows(*self.capabilities) and (credential.is_owner or not self.owner_only)

    def require(self, credential: Credential) -> None:
        """Refuse a credential that the verb is not open to."""
        credential.require(*self.capabilities)
        if self.owner_only:
            credential.require_owner(f"use {self.title}")

    @property
    def in_workspace(self) -> bool:
        return "{workspace}" in self.path

    @property
    def path_fields(self) -> tuple[str, ...]:
        """The fields of the input that the path holds."""
        return tuple(name for name in _IN_PATH.findall(self.path) if name != "workspace")

    @property
    def other_fields(self) -> tuple[str, ...]:
        """The fields of the input that the query of a GET or DELETE holds, or else the body."""
        taken = {*self.path_fields, *(("expected_version",) if self.version_of else ())}
        return tuple(name for name in self.input.model_fields if name not in taken)


def perform(
    verb: Verb,
    access: AccessControl,
    credential: Credential,
    workspace: str | None,
    input: VerbInput,
    scope: Mapping[str, str] | None = None,
) -> VerbOutput:
    """Check the credential, enter the workspace, run the verb. The check comes before everything else.

    Only the owner, and a call that asks for it, gets the secrets of sensitive entries.
    """
    return ran(verb, prepare(verb, access, credential, workspace, scope), input)


def ran(verb: Verb, call: Call, input: VerbInput) -> VerbOutput:
    """Run a verb, and mask what only the owner, or a call that asks for it, may see."""
    output = verb.run(call, input)
    return output if call.credential.is_owner or getattr(input, "sensitive", False) else output.masked()


def prepare(
    verb: Verb,
    access: AccessControl,
    credential: Credential,
    workspace: str | None,
    scope: Mapping[str, str] | None = None,
) -> Call:
    """Check the credential and enter the workspace, with the scope keys that the request binds."""
    verb.require(credential)
    entered = access.enter(credential, workspace or "", scope) if verb.in_workspace else None
    return Call(access, credential, entered)
