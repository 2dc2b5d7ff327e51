"""Tell clients when a resource that they subscribed to has changed.

The event log of a memory also grows by other programs, so the server looks at its head. It looks only while somebody
is subscribed, and only at what the credential of that request may see.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import anyio
import mcp_types as types
from anyio.abc import TaskGroup
from mcp.server import Server
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ResourcesListChanged, ResourceUpdated
from mcp.shared.exceptions import MCPError

from lukasa.service.admin.access import Credential
from lukasa.surfaces.mcp import resources
from lukasa.surfaces.mcp.tools import Dispatcher, Refusal, RequestContext

POLL = 0.5  # seconds between two looks
MOST = 100  # resources of one subscription
Stopped = Callable[[], bool]


class Watcher:
    """The subscriptions of a server: a stream for each `subscriptions/listen`, a task for each older subscription."""

    def __init__(self, dispatcher: Dispatcher, stopped: Stopped = lambda: False) -> None:
        self._dispatcher = dispatcher
        self._stopped = stopped
        self._group: TaskGroup | None = None
        self._older: dict[tuple[int, str], anyio.CancelScope] = {}

    @asynccontextmanager
    async def lifespan(self, server: Server[Any]) -> AsyncIterator[dict[str, Any]]:
        """Hold the tasks of subscriptions in the older form as long as the server runs."""
        async with anyio.create_task_group() as group:
            self._group = group
            try:
                yield {}
            finally:
                self._group = None
                group.cancel_scope.cancel()

    async def listen(
        self, ctx: RequestContext, params: types.SubscriptionsListenRequestParams
    ) -> types.SubscriptionsListenResult:
        """Serve one stream of changes until its client leaves, the credential ends or the server stops."""
        wanted = params.notifications
        uris = list(wanted.resource_subscriptions or ())
        seen = await self._look(ctx, uris)
        bus = InMemorySubscriptionBus()
        handler = ListenHandler(bus)

        async def publish(changed: Sequence[str]) -> None:
            for uri in changed:
                await bus.publish(ResourceUpdated(uri=uri) if uri else ResourcesListChanged())

        async with anyio.create_task_group() as group:
            listed = [""] if wanted.resources_list_changed else []
            group.start_soon(self._follow, ctx, [*uris, *listed], seen, publish, handler.close)
            result = await handler(ctx, params)
            group.cancel_scope.cancel()
        return result

    async def subscribe(self, ctx: RequestContext, params: types.SubscribeRequestParams) -> types.EmptyResult:
        """Begin to tell an older client about one resource, over a connection that stays."""
        uri, group = str(params.uri), self._group
        seen = await self._look(ctx, [uri])
        key = (id(ctx.session), uri)
        if group is not None and key not in self._older:
            if len(self._older) >= MOST:
                raise MCPError(types.INVALID_REQUEST, f"there are {MOST} subscriptions already")
            scope = self._older[key] = anyio.CancelScope()

            async def publish(changed: Sequence[str]) -> None:
                for one in changed:
                    await ctx.session.send_resource_updated(one)

            async def run() -> None:
                with scope:
                    await self._follow(ctx, [uri], seen, publish, scope.cancel)

            group.start_soon(run)
        return types.EmptyResult()

    async def unsubscribe(self, ctx: RequestContext, params: types.UnsubscribeRequestParams) -> types.EmptyResult:
        scope = self._older.pop((id(ctx.session), str(params.uri)), None)
        if scope is not None:
            scope.cancel()
        return types.EmptyResult()

    async def _look(self, ctx: RequestContext, uris: Sequence[str]) -> dict[str, str]:
        """Return the state of each resource; raise an error of the protocol for one that is not there."""
        if len(uris) > MOST:
            raise MCPError(types.INVALID_PARAMS, f"{len(uris)} resources are too many; subscribe to at most {MOST}")
        try:
            return await self._dispatcher.answer(ctx, lambda given: self._states(given, uris))
        except Refusal as refusal:
            raise MCPError(types.INVALID_PARAMS, str(refusal)) from None

    def _states(self, credential: Credential, uris: Sequence[str]) -> dict[str, str]:
        return {uri: resources.state(self._dispatcher, credential, uri) for uri in uris}

    async def _follow(
        self,
        ctx: RequestContext,
        uris: Sequence[str],
        seen: dict[str, str],
        publish: Callable[[Sequence[str]], Awaitable[None]],
        end: Callable[[], None],
    ) -> None:
        """Look again and again, and publish what has changed. An empty URI stands for the list of resources."""
        while not self._stopped():
            await anyio.sleep(POLL)
            try:
                now = await self._dispatcher.answer(ctx, lambda given: self._states(given, uris))
            except Refusal:
                break  # such as a revoked grant
            changed = [uri for uri in uris if now[uri] != seen.get(uri, now[uri])]
            seen = now
            await publish(changed)
        end()
