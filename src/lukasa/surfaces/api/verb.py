"""What a verb is, and the one way to perform one, whichever surface it came through.

An input says what to do and where to look. Who asks is in the pass, and in nothing else: no input has a field for an
owner, an origin, a principal or a trust, and unknown fields are refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Literal, Self

from msgspec import Struct
from pydantic import BaseModel, ConfigDict

from lukasa.model.errors import InvalidInput
from lukasa.model.grant import Capability
from lukasa.service.admin.access import Access, Credential
from lukasa.service.workspace import Workspace
from lukasa.surfaces.cli.data import plain

Method = Literal["GET", "POST", "PUT", "PATCH", "DELETE"]
_IN_PATH = re.compile(r"\{(\w+)\}")


class Given(BaseModel):
    """An input: exactly these fields."""

    model_config = ConfigDict(extra="forbid")


class Told(BaseModel):
    """An output, made from a value of the engine by the names of its fields."""

    model_config = ConfigDict(extra="ignore")

    @classmethod
    def of(cls, value: Any) -> Self:
        return cls.model_validate(plain(value))

    def tag(self) -> int | None:
        """The version of the one thing this is about, where it is about one."""
        return None


class Nothing(Given):
    """No input."""


class Call(Struct, frozen=True):
    """One call of a verb: who asks, and the workspace as they may hold it."""

    access: Access
    given: Credential
    entered: Workspace | None = None

    @property
    def workspace(self) -> Workspace:
        if self.entered is None:
            raise InvalidInput("this verb needs a workspace", fix="name one")
        return self.entered

    def at(self, channel: str | None = None, conversation: str | None = None) -> Workspace:
        """The workspace with a channel or a conversation bound, where they are named."""
        named = {"channel": channel, "conversation": conversation}
        keys = {key: value for key, value in named.items() if value is not None}
        return self.workspace.at(**keys) if keys else self.workspace

    def overseen(self, capability: Capability) -> Workspace:
        """All of the workspace, for verbs about the whole of it."""
        return self.access.overseen(self.given, self.workspace, capability)


class Verb(Struct, frozen=True):
    """One thing that a client can ask for. `path` stands under /v1; `{workspace}` in it is not an input.

    A verb with `version_of` changes one thing that has a version: its input has `expected_version`, which over HTTP
    is the If-Match header, and `version_of` tells which version is there.

    A verb with `also` does several things, each with a capability of its own: any of them opens the verb, and the verb
    itself requires the one that a call needs. A verb with `asks` is confirmed by a person: its input has `confirm`, and
    where a model fills it in, a surface that can reaches the person with this question, and takes what they type.
    """

    name: str
    description: str
    capability: Capability
    method: Method
    path: str
    input: type[Given]
    output: type[Told]
    run: Callable[[Call, Any], Told]
    also: tuple[Capability, ...] = ()
    asks: Callable[[Call, Any], str] | None = None
    mutates: bool = False
    owner_only: bool = False
    status: int = 200
    version_of: Callable[[Call, Any], int] | None = None
    tool: bool = True  # offered to agents as a tool
    keyed: bool = True  # may be sent twice under one key; not where the answer is a secret, which is kept nowhere

    @property
    def title(self) -> str:
        """The name with a dot, as people read it: memory.put."""
        return self.name.replace("_", ".", 1)

    @property
    def capabilities(self) -> tuple[Capability, ...]:
        """Those of which a pass must include one."""
        return (self.capability, *self.also)

    @property
    def needs(self) -> str:
        """The same in words, for who reads about it."""
        return " or ".join(f"`{one}`" for one in self.capabilities)

    def open_to(self, given: Credential) -> bool:
        return given.allows(*self.capabilities) and (given.is_owner or not self.owner_only)

    def require(self, given: Credential) -> None:
        """Refuse a pass that the verb is not open to."""
        given.require(*self.capabilities)
        if self.owner_only:
            given.require_owner(f"use {self.title}")

    @property
    def in_workspace(self) -> bool:
        return "{workspace}" in self.path

    @property
    def path_fields(self) -> tuple[str, ...]:
        """The fields of the input that stand in the path."""
        return tuple(name for name in _IN_PATH.findall(self.path) if name != "workspace")

    @property
    def other_fields(self) -> tuple[str, ...]:
        """The fields of the input that stand in the query of a GET or DELETE, else in the body."""
        taken = {*self.path_fields, *(("expected_version",) if self.version_of else ())}
        return tuple(name for name in self.input.model_fields if name not in taken)


def perform(verb: Verb, access: Access, given: Credential, workspace: str | None, input: Given) -> Told:
    """Check the pass, enter the workspace, run the verb. What a pass does not include is refused before anything."""
    call = prepare(verb, access, given, workspace)
    return verb.run(call, input)


def prepare(verb: Verb, access: Access, given: Credential, workspace: str | None) -> Call:
    verb.require(given)
    entered = access.enter(given, workspace or "") if verb.in_workspace else None
    return Call(access, given, entered)
