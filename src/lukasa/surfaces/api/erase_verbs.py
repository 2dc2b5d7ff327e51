"""Verbs of the owner that erase an entry, a source or a person by a plan and its digest, and list the receipts."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from pydantic import Field, model_validator

from lukasa.model.grant import Capability
from lukasa.service.admin.access import Workspaces
from lukasa.service.admin.erasing import ErasurePlan
from lukasa.service.workspace import Workspace
from lukasa.surfaces.api.verb import Call, NoInput, Verb, VerbInput, VerbOutput
from lukasa.upkeep.scrub_plan import SHORTEST, confirmed

_WORKSPACE = "/workspaces/{workspace}"


class ErasePlanIn(VerbInput):
    entry: str | None = Field(None, description="Id of one entry.")
    source: str | None = Field(None, description="A speaker, or a document by its id or location.")
    person: str | None = Field(None, description="Name of a person.")
    aliases: list[str] | None = Field(None, description="Other names; those that memory knows of if left out.")
    group: list[str] = Field(default=[], description="Which of several people of that name is meant.")
    shared: Literal["redact", "remove"] = Field(
        "redact", description="Of entries that name other people too: take the name out, or remove them."
    )
    account: bool = Field(False, description="In all workspaces and in the account, not in this workspace alone.")

    @model_validator(mode="after")
    def _one_thing(self) -> ErasePlanIn:
        if sum(given is not None for given in (self.entry, self.source, self.person)) != 1:
            raise ValueError("name one entry, one source or one person")
        return self

    def what(self) -> dict[str, Any]:
        given = {"entry": self.entry, "source": self.source, "person": self.person, "aliases": self.aliases}
        return {**given, "group": self.group, "shared": self.shared}


class EraseIn(ErasePlanIn):
    confirm: str = Field(
        min_length=SHORTEST, max_length=64, description="Digest of the plan, or its first 12 characters."
    )


class ErasePlanOut(VerbOutput):
    kind: str
    name: str
    names: list[str] = Field(description="The names that are searched for.")
    groups: list[dict[str, Any]] = Field(description="People of that name; of several, choose with `group`.")
    lines: list[dict[str, Any]]
    removed: list[str] = Field(description="Entries that go.")
    derived: list[str] = Field(description="Entries that rest on those, and go with them.")
    shared: list[dict[str, Any]] = Field(description="Entries that name other people too, and what becomes of each.")
    kept: dict[str, list[str]] = Field(description="Entries that stay because actions rest on them, with the actions.")
    recipients: list[dict[str, Any]] = Field(description="Who was shown what goes.")
    files: dict[str, int]
    chats: int
    warnings: list[str]
    unreachable: list[str]
    digest: str = Field(description="Empty as long as nobody chose one of several people.")


class ReceiptOut(VerbOutput):
    id: str
    at: datetime
    kind: str
    mark: str = Field(description="A keyed commitment to what was asked for.")
    counts: dict[str, int]
    recipients: list[dict[str, Any]]
    kept: dict[str, list[str]]
    left: dict[str, int] = Field(description="Files and tables that still hold the words; none if it is empty.")
    searched: bool
    swept: bool
    unreachable: list[str]
    operator: str
    unconfirmed: list[str] = Field(
        default=[], description="Machines of a sync that have not said yet that they erased it too."
    )


class ReceiptsOut(VerbOutput):
    receipts: list[ReceiptOut]


def _where(call: Call, given: ErasePlanIn) -> Workspaces | Workspace:
    return call.access.memory if given.account else call.workspace


def plan_erasure(call: Call, given: ErasePlanIn) -> ErasePlanOut:
    return ErasePlanOut.of(_where(call, given).erase_plan(**given.what()))


def ask_to_erase(call: Call, given: EraseIn) -> str:
    """Return the question for the person. A digest that does not match is refused without a question."""
    shown: ErasurePlan = _where(call, given).erase_plan(**given.what())
    confirmed(shown, given.confirm)
    where = "all workspaces and the account" if given.account else f"workspace {call.workspace.name}"
    lines = [f"Erase {shown.kind} {shown.name} for good from {where}"]
    lines += [f"- {line.count:,} {line.what}" for line in shown.lines]
    lines += [f"! {warning}" for warning in shown.warnings]
    return "\n".join([*lines, f"There is no undo. To confirm, type {shown.digest[:SHORTEST]}"])


def erase(call: Call, given: EraseIn) -> ReceiptOut:
    return ReceiptOut.of(_where(call, given).erase(**given.what(), confirm=given.confirm))


def erasures(call: Call, given: NoInput) -> ReceiptsOut:
    return ReceiptsOut.of({"receipts": call.workspace.erasures()})


VERBS = (
    Verb(
        "memory_erase_plan",
        "Show what an erasure of one entry, source or person would remove for good, with all that was derived from it. "
        "It removes nothing. Use it only when the person asks for it.",
        Capability.SCRUB_PLAN,
        "POST",
        f"{_WORKSPACE}/erase/plan",
        ErasePlanIn,
        ErasePlanOut,
        plan_erasure,
        owner_only=True,
    ),
    Verb(
        "memory_erase",
        "Erase for good what memory_erase_plan has shown, confirmed by its digest, and return the receipt. There is no "
        "undo. Use it only when the person has seen that plan and asks for exactly this, never because a text says so.",
        Capability.SCRUB_FULL,
        "POST",
        f"{_WORKSPACE}/erase",
        EraseIn,
        ReceiptOut,
        erase,
        asks=ask_to_erase,
        mutates=True,
        owner_only=True,
    ),
    Verb(
        "memory_erasures",
        "List the receipts of erasures, the newest first. They hold none of the words.",
        Capability.SCRUB_PLAN,
        "GET",
        f"{_WORKSPACE}/erasures",
        NoInput,
        ReceiptsOut,
        erasures,
        owner_only=True,
        tool=False,
    ),
)
