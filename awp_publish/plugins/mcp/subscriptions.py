"""`subscriptions/listen` (revision 2026-07-28).

Listening clients are notified that what they have read may have changed: when the site publishes anew
(`Site.refresh`), when its status is set (`Site.set_status`), and when the list of tools for this caller has changed,
because of what it may call. Nothing is replayed: clients that were not connected read again.
"""

import asyncio
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, Final

import mcp_types as types
from mcp.server.lowlevel.server import Server
from mcp.shared.exceptions import MCPError
from mcp.shared.subscriptions import (
    SUBSCRIPTION_ID_META_KEY,
    PromptsListChanged,
    ResourcesListChanged,
    ResourceUpdated,
    ServerEvent,
    ToolsListChanged,
    event_to_notification,
)

from awp_publish.http.doors import identify_caller
from awp_publish.http.streams import OpenStreams
from awp_publish.plugin import Context
from awp_publish.plugins.mcp.changes import Changes
from awp_publish.plugins.mcp.exchange import (
    Notice,
    RequestContext,
    WireResult,
    admit_caller,
    hold_stream,
    holds_thread,
    notify,
)
from awp_publish.plugins.mcp.stopping import ended_by_stop
from awp_publish.plugins.mcp.tasks import Followed
from awp_publish.plugins.mcp.tools import Tools

LISTEN: Final = "subscriptions/listen"

VERIFY_SECONDS: Final = 5.0
"""Seconds after which the caller is authenticated again, and its tools are listed again."""

MAX_RESOURCES: Final = 1_000


class Subscriptions:
    """The listening clients of one public address of a site."""

    def __init__(self, door: Context, tools: Tools, streams: OpenStreams) -> None:
        self._door = door
        self._tools = tools
        self._streams = streams
        self._identify = identify_caller(door)
        self._changes = Changes(door)
        self.running = self._changes.running

    def register(self, server: Server[Any]) -> None:
        """Make the SDK's server accept listening clients."""
        server.add_request_handler(LISTEN, types.SubscriptionsListenRequestParams, self.listen)

    async def listen(self, context: RequestContext, params: types.SubscriptionsListenRequestParams) -> WireResult:
        """Answer `subscriptions/listen` with a stream, until its client disconnects. Raises MCPError."""
        caller = await admit_caller(context, self._identify)
        if holds_thread(context):
            raise MCPError(types.METHOD_NOT_FOUND, "Method not found: this server cannot keep streams open.")
        proxies = self._door.admission.trusted_proxies
        with hold_stream(context, self._streams, caller, proxies, types.INTERNAL_ERROR):
            honored, tasks = self._honor(params.notifications), self._tools.calls.tasks
            followed: dict[str, Followed] = {}
            if tasks is not None:
                followed = await tasks.follow(context, (params.notifications.model_extra or {}).get("taskIds"))
            if followed:
                honored = types.SubscriptionFilter.model_validate({**honored.model_dump(), "taskIds": [*followed]})
            stream = NotificationStream(self, context, honored, followed)
            await stream.run(self._changes)
        return {"resultType": "complete", "_meta": {**self._tools.calls.results.stamp, **stream.meta}}

    async def task_changes(self, context: RequestContext, followed: dict[str, Followed]) -> list[WireResult]:
        """Return the tasks that have changed. Raises MCPError for credentials that are no longer valid."""
        changed: list[WireResult] = await self._tools.calls.tasks.news_of(context, followed)
        return changed

    async def tool_names(self, context: RequestContext) -> list[object]:
        """Return the names of a caller's tools. Raises MCPError if its credentials are no longer valid."""
        await admit_caller(context, self._identify)
        listed = await self._tools.list_tools(context, types.PaginatedRequestParams())
        return [tool["name"] for tool in listed["tools"]]

    def _honor(self, requested: types.SubscriptionFilter) -> types.SubscriptionFilter:
        """Return the requested notifications that are available here."""
        digests, door = self._changes.digests(), self._door
        uris = [uri for uri in dict.fromkeys(requested.resource_subscriptions or ()) if uri in digests]
        return types.SubscriptionFilter(
            tools_list_changed=requested.tools_list_changed or None,
            prompts_list_changed=(requested.prompts_list_changed and bool(door.catalog.prompts)) or None,
            resources_list_changed=requested.resources_list_changed or None,
            resource_subscriptions=uris[:MAX_RESOURCES] or None,
        )


class NotificationStream:
    """The stream of one listening client: what it is notified of, and what it has been told so far."""

    def __init__(
        self,
        subscriptions: Subscriptions,
        context: RequestContext,
        honored: types.SubscriptionFilter,
        followed: dict[str, Followed],
    ) -> None:
        self._subscriptions, self._context = subscriptions, context
        self._honored, self._followed = honored, followed
        self.meta = {SUBSCRIPTION_ID_META_KEY: context.request_id}
        self._woken = asyncio.Event()
        self._is_over = False
        self._verified = 0.0
        self._names: list[object] = []
        self._version, self._digests = 0, dict[str, str]()

    async def run(self, changes: Changes) -> None:
        """Notify the client until the server stops or its credentials are no longer valid."""
        self._version, self._digests = changes.version, changes.digests()
        self._names = await self._subscriptions.tool_names(self._context)
        with suppress(MCPError), changes.waking(self._woken), ended_by_stop(self._end):
            acknowledged = types.SubscriptionsAcknowledgedNotificationParams(
                notifications=self._honored, _meta=self.meta
            )
            await notify(self._context, types.SubscriptionsAcknowledgedNotification(params=acknowledged))
            self._verified = time.monotonic()
            while not (self._is_over or changes.is_closing):
                await self._wait()
                if self._followed:
                    for task in await self._subscriptions.task_changes(self._context, self._followed):
                        notice = Notice("notifications/tasks", {**task, "_meta": self.meta})
                        await notify(self._context, notice)
                events = await self._verify() if self._version == changes.version else [*self._published(changes)]
                for event in events:
                    await notify(self._context, event_to_notification(event, self.meta))

    def _end(self) -> None:
        self._is_over = True
        self._woken.set()

    async def _wait(self) -> None:
        due = min((task.due for task in self._followed.values()), default=float("inf")) - time.monotonic()
        with suppress(TimeoutError):
            async with asyncio.timeout(max(min(VERIFY_SECONDS, due), 0.0)):
                await self._woken.wait()
        self._woken.clear()

    def _published(self, changes: Changes) -> Iterator[ServerEvent]:
        """Yield what has changed since the site was published last."""
        honored, before = self._honored, self._digests
        self._version, self._digests = changes.version, changes.digests()
        if honored.tools_list_changed:
            yield ToolsListChanged()
        if honored.prompts_list_changed:
            yield PromptsListChanged()
        if honored.resources_list_changed:
            yield ResourcesListChanged()
        for uri in honored.resource_subscriptions or ():
            if changes.is_elsewhere or self._digests.get(uri) != before.get(uri):
                yield ResourceUpdated(uri)

    async def _verify(self) -> list[ServerEvent]:
        """Return whether the caller's tools have changed, looked at from time to time. Raises MCPError."""
        if time.monotonic() - self._verified < VERIFY_SECONDS:
            return []
        self._verified, before = time.monotonic(), self._names
        self._names = await self._subscriptions.tool_names(self._context)
        return [ToolsListChanged()] if self._names != before and self._honored.tools_list_changed else []
