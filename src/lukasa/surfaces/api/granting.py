"""Verbs about grants: the owner's alone."""

from __future__ import annotations

from datetime import datetime

from pydantic import Field

from lukasa.model.grant import Capability
from lukasa.model.values import Trust
from lukasa.surfaces.api.shapes import GrantOut, GrantsOut, IssuedOut
from lukasa.surfaces.api.verb import Call, Given, Nothing, Verb


class GrantIn(Given):
    """What the new grant may do. It says nothing about who asks: that is the owner, or it is refused."""

    name: str = Field(description="What to call the grant.")
    workspaces: list[str] = Field(min_length=1, description="Names or ids of workspaces.")
    can: list[Capability] = Field(default=[Capability.READ, Capability.WRITE])
    tiers: list[str] = Field(default=[], description="Only these tiers. Without any, those of the workspace itself.")
    channels: list[str] = Field(default=[], description="Channels that it takes part in.")
    conversations: list[str] = Field(default=[], description="Conversations that it takes part in.")
    as_agent: str | None = Field(None, description="The agent it acts as; its own name if left out.")
    unverified: bool = Field(False, description="What it writes counts as text of unknown authorship.")
    expires_at: datetime | None = Field(None, description="When it ends.")


def grants(call: Call, given: Nothing) -> GrantsOut:
    return GrantsOut.of({"grants": call.access.grants()})


def create(call: Call, given: GrantIn) -> IssuedOut:
    issued = call.access.through(call.given).create(
        given.name,
        workspaces=given.workspaces,
        can=given.can,
        tiers=given.tiers,
        channels=given.channels,
        conversations=given.conversations,
        agent=given.as_agent,
        trust=Trust.UNTRUSTED if given.unverified else Trust.AGENT,
        expires=given.expires_at,
    )
    return IssuedOut(grant=GrantOut.of(issued.grant), token=issued.token)


class GrantIdIn(Given):
    id: str = Field(description="Id of a grant.")


def revoke(call: Call, given: GrantIdIn) -> GrantOut:
    return GrantOut.of(call.access.through(call.given).revoke(given.id))


VERBS = (
    Verb(
        "grant_list",
        "List all grants, also those that are over.",
        Capability.GRANTS,
        "GET",
        "/grants",
        Nothing,
        GrantsOut,
        grants,
        owner_only=True,
        tool=False,
    ),
    Verb(
        "grant_create",
        "Let another client in. The answer has its token, this once.",
        Capability.GRANTS,
        "POST",
        "/grants",
        GrantIn,
        IssuedOut,
        create,
        mutates=True,
        owner_only=True,
        status=201,
        tool=False,
        keyed=False,
    ),
    Verb(
        "grant_revoke",
        "End a grant; its token opens nothing from now on.",
        Capability.GRANTS,
        "DELETE",
        "/grants/{id}",
        GrantIdIn,
        GrantOut,
        revoke,
        mutates=True,
        owner_only=True,
        tool=False,
    ),
)
