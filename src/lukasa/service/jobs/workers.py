"""Workers for an account: where they find work, which model they may ask, and how much they may spend."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence

from lukasa.model.conversation import WorkspaceInfo
from lukasa.model.errors import InvalidInput, LukasaError
from lukasa.model.telemetry import Spending
from lukasa.ports import Chat, Clock, Span, no_span
from lukasa.service.call import CallContext
from lukasa.service.jobs import handlers
from lukasa.service.jobs.allowance import Guard
from lukasa.service.jobs.budget import Budget
from lukasa.service.jobs.worker import Crew, Station, Tell, Trouble, Worker, said

REST = 30.0  # seconds for which a workspace that cannot be opened is left alone


class Stations:
    """The workspaces of an account, as a worker asks for them before each job: a new one is noticed at once."""

    def __init__(
        self,
        workspaces: Callable[[], Sequence[WorkspaceInfo]],
        ctx: Callable[[WorkspaceInfo], CallContext],
        tell: Tell,
        kinds: Collection[str] | None = None,
    ) -> None:
        self._workspaces = workspaces
        known = handlers.HANDLERS
        self._handlers = known if kinds is None else {kind: work for kind, work in known.items() if kind in kinds}
        self._room = ctx
        self._tell = tell
        self._known: dict[str, Station] = {}
        self._resting: dict[str, float] = {}

    def __call__(self) -> list[Station]:
        for info in self._workspaces():
            if info.ready and info.id not in self._known and time.monotonic() >= self._resting.get(info.id, 0.0):
                try:
                    self._known[info.id] = handlers.station(self._room(info), self._handlers)
                except LukasaError as error:
                    self._resting[info.id] = time.monotonic() + REST
                    self._tell(Trouble(info.name, said(error)))
        return list(self._known.values())

    def spent(self, day: str) -> list[Spending]:
        """What models have cost since then, in all workspaces."""
        return [spending for station in self() for spending in station.store.spent(day)]


def crew(
    threads: int,
    workspaces: Callable[[], Sequence[WorkspaceInfo]],
    ctx: Callable[[WorkspaceInfo], CallContext],
    *,
    chat: Chat | None,
    clock: Clock,
    budget: Budget,
    tell: Tell | None = None,
    span: Span | None = None,
    workspace: str | None = None,
    kinds: Collection[str] | None = None,
) -> Crew:
    """Workers for all workspaces and kinds of work, or for those named. The budget is the account's in any case."""
    if chat is not None and budget.cost is not None and budget.price(chat.name) is None:
        raise InvalidInput(
            f"LUKASA_BUDGET_COST is set, but {chat.name} has no price",
            fix=f"set LUKASA_PRICES={chat.name}=PROMPT/COMPLETION, per million tokens, or LUKASA_BUDGET_TOKENS instead",
        )
    told = tell or (lambda what: None)
    guard = Guard(clock, budget, Stations(workspaces, ctx, told).spent)

    def wanted() -> list[WorkspaceInfo]:
        return [info for info in workspaces() if workspace is None or info.id == workspace]

    each = [Stations(wanted, ctx, told, kinds) for _ in range(threads)]
    seen = span or no_span
    return Crew([Worker(here, clock=clock, chat=chat, allowance=guard, tell=told, span=seen) for here in each])
