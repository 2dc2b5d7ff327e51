"""Verbs about the author's pages: anybody with a pass reads them, the author alone writes them."""

from __future__ import annotations

from pydantic import Field

from lukasa.model.errors import NotFound
from lukasa.model.grant import Capability
from lukasa.surfaces.api.shapes import NamedListOut, NamedOut
from lukasa.surfaces.api.verb import Call, Given, Nothing, Verb

_AT = "/workspaces/{workspace}/named"


class NameIn(Given):
    name: str = Field(description="Name of a page, such as VOICE.")


class EditIn(NameIn):
    body: str = Field(description="The whole new text, as markdown.")
    tier: str | None = Field(None, description="For a new page: the tier that it belongs to.")
    expected_version: int | None = Field(None, description="Only if it is still at this version; 0 if it must be new.")


def named(call: Call, given: Nothing) -> NamedListOut:
    return NamedListOut.of({"named": call.workspace.named()})


def get(call: Call, given: NameIn) -> NamedOut:
    return NamedOut.of(call.workspace.get_named(given.name))


def history(call: Call, given: NameIn) -> NamedListOut:
    return NamedListOut.of({"named": call.workspace.named_history(given.name)})


def edit(call: Call, given: EditIn) -> NamedOut:
    made = call.workspace.edit_named(given.name, given.body, tier=given.tier, expect=given.expected_version)
    return NamedOut.of(made)


def version(call: Call, given: NameIn) -> int:
    try:
        return call.workspace.get_named(given.name).version
    except NotFound:
        return 0


VERBS = (
    Verb(
        "named_list",
        "List the author's standing pages, such as VOICE and SOUL: how to write, what to keep to. They are guidance.",
        Capability.READ,
        "GET",
        _AT,
        Nothing,
        NamedListOut,
        named,
    ),
    Verb(
        "named_get",
        "Show one of the author's pages in full.",
        Capability.READ,
        "GET",
        f"{_AT}/{{name}}",
        NameIn,
        NamedOut,
        get,
    ),
    Verb(
        "named_edit",
        "Write one of the author's pages. Only the author can; propose a change in words instead.",
        Capability.NAMED_WRITE,
        "PUT",
        f"{_AT}/{{name}}",
        EditIn,
        NamedOut,
        edit,
        mutates=True,
        owner_only=True,
        version_of=version,
        tool=False,
    ),
    Verb(
        "named_history",
        "Show every form that a page has had, the oldest first.",
        Capability.READ,
        "GET",
        f"{_AT}/{{name}}/history",
        NameIn,
        NamedListOut,
        history,
        tool=False,
    ),
)
