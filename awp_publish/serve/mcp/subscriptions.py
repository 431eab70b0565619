"""`subscriptions/listen` (revision 2026-07-28): clients that listen are told that what they have read may have changed.

They are told when the site publishes anew (`Site.refresh`), when it says what works (`Site.set_status`), and when the
list of tools that this very caller sees is another than before, because what they may call has changed. Workers tell
each other through the site's store, where it is shared. Nothing is replayed: whoever was not connected reads again.
"""

import asyncio
import logging
import secrets
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any, Final

import mcp_types as types

from awp_publish.problems import StoreUnavailable
from awp_publish.serve.doors import DoorContext, identify_caller
from awp_publish.serve.http import HOLDS_THREAD
from awp_publish.serve.mcp.calls import Context, Tools, WireResult, admit_caller, exchange_of
from awp_publish.stores.store import Add, Look, Store, Swap
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

logger: Final = logging.getLogger("awp_publish.calls")

LISTEN: Final = "subscriptions/listen"

LOOK_SECONDS: Final = 2.0
"""Seconds between two looks at what other workers have published."""

VERIFY_SECONDS: Final = 5.0
"""Seconds after which it is asked again who listens, and what they may call."""

MAX_LISTENING: Final = 1_000
MAX_RESOURCES: Final = 1_000
KEPT_SECONDS: Final = 86_400.0
_KEY: Final = "mcp-changed"


class Subscriptions:
    """Those who listen at one public address of a site."""

    def __init__(self, door: DoorContext, tools: Tools) -> None:
        self._door = door
        self._tools = tools
        self._identify = identify_caller(door)
        self._store: Store = door.guards.store
        self._listening: dict[asyncio.Event, asyncio.AbstractEventLoop] = {}
        self._version = 0
        self._is_elsewhere = False
        self._unwritten: tuple[asyncio.AbstractEventLoop, asyncio.Event] | None = None
        self._is_closing = False
        door.site.change_listeners.append(self.tell)

    def register(self, server: Server[Any]) -> None:
        """Have the SDK's server take those who listen."""
        server.add_request_handler(LISTEN, types.SubscriptionsListenRequestParams, self.listen)

    def tell(self) -> None:
        """Tell all who listen, here and at other workers. May be called in any thread."""
        self._note_change(is_elsewhere=False)
        if self._unwritten is not None:
            loop, event = self._unwritten
            with suppress(RuntimeError):  # the loop has ended
                loop.call_soon_threadsafe(event.set)

    def _note_change(self, *, is_elsewhere: bool) -> None:
        self._version += 1
        self._is_elsewhere = is_elsewhere
        self._wake()

    def _wake(self) -> None:
        for woken, loop in tuple(self._listening.items()):
            with suppress(RuntimeError):  # the loop has ended, and its listeners with it
                loop.call_soon_threadsafe(woken.set)

    async def listen(self, context: Context, params: types.SubscriptionsListenRequestParams) -> WireResult:
        """Answer `subscriptions/listen` with a stream, until its client hangs up. Raises MCPError."""
        await admit_caller(context, self._identify)
        if HOLDS_THREAD in exchange_of(context).scope:  # of which the server has few
            raise MCPError(types.METHOD_NOT_FOUND, "Method not found: this server cannot keep streams open.")
        if len(self._listening) >= MAX_LISTENING:
            raise MCPError(types.INTERNAL_ERROR, "Too many clients listen.")
        meta, honored = {SUBSCRIPTION_ID_META_KEY: context.request_id}, self._honor(params.notifications)
        changes: list[ServerEvent] = []
        changes += [ToolsListChanged()] if honored.tools_list_changed else []
        changes += [PromptsListChanged()] if honored.prompts_list_changed else []
        changes += [ResourcesListChanged()] if honored.resources_list_changed else []
        digests, version, woken = self._digests(), self._version, asyncio.Event()
        names = await self._names(context)
        self._listening[woken] = asyncio.get_running_loop()
        try:
            told = types.SubscriptionsAcknowledgedNotificationParams(notifications=honored, _meta=meta)
            acknowledged = types.SubscriptionsAcknowledgedNotification(params=told)
            await context.session.send_notification(acknowledged, related_request_id=context.request_id)
            verified = time.monotonic()
            while not self._is_closing:
                with suppress(TimeoutError):
                    async with asyncio.timeout(VERIFY_SECONDS):
                        await woken.wait()
                woken.clear()
                events = list[ServerEvent]()
                if self._version != version:
                    version, before, digests = self._version, digests, self._digests()
                    wanted = honored.resource_subscriptions or ()
                    is_new = self._is_elsewhere
                    events = [
                        *changes,
                        *(ResourceUpdated(one) for one in wanted if is_new or digests.get(one) != before.get(one)),
                    ]
                elif time.monotonic() - verified >= VERIFY_SECONDS:
                    verified = time.monotonic()
                    now = await self._names(context)
                    if now is None:  # nobody knows them any more
                        break
                    if now != names and honored.tools_list_changed:
                        events = [ToolsListChanged()]
                    names = now
                for event in events:
                    notification = event_to_notification(event, meta)
                    await context.session.send_notification(notification, related_request_id=context.request_id)
        finally:
            del self._listening[woken]
        return {"resultType": "complete", "_meta": {**self._tools.stamp, **meta}}

    def _honor(self, wanted: types.SubscriptionFilter) -> types.SubscriptionFilter:
        """Return what of the wanted notifications there are here."""
        known, door = self._digests(), self._door
        uris = [one for one in dict.fromkeys(wanted.resource_subscriptions or ()) if one in known]
        return types.SubscriptionFilter(
            tools_list_changed=wanted.tools_list_changed or None,
            prompts_list_changed=(wanted.prompts_list_changed and bool(door.catalog.prompts)) or None,
            resources_list_changed=wanted.resources_list_changed or None,
            resource_subscriptions=uris[:MAX_RESOURCES] or None,
        )

    def _digests(self) -> dict[str, str]:
        """Return what every document is now, by its address."""
        return {
            self._door.catalog.absolute(path): one.encodings.digest
            for documents in self._door.documents()
            for path, one in documents.items()
        }

    async def _names(self, context: Context) -> list[object] | None:
        """Return the tools that a caller is listed, None for one whose credentials are not valid any more."""
        with suppress(MCPError):
            await admit_caller(context, self._identify)
            listed = await self._tools.list_tools(context, types.PaginatedRequestParams())
            return [one["name"] for one in listed["tools"]]
        return None

    # --- Workers ---

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Exchange with other workers that something has changed, as long as the application runs."""
        self._is_closing = False
        unwritten = asyncio.Event()
        task: asyncio.Task[None] | None = None
        if self._store.is_shared:
            self._unwritten = (asyncio.get_running_loop(), unwritten)
            task = asyncio.create_task(self._exchange(unwritten), name="awp_publish changes")
        try:
            yield
        finally:
            self._unwritten, self._is_closing = None, True
            self._wake()
            if task is not None:
                task.cancel()
                await asyncio.wait({task})

    async def _exchange(self, unwritten: asyncio.Event) -> None:
        seen: bytes | None = None
        has_looked = False
        while True:
            with suppress(StoreUnavailable):
                raw = (await self._store.run((Look(_KEY),))).seen[0]
                now = raw if isinstance(raw, bytes) else None
                if has_looked and now != seen and now is not None:
                    self._note_change(is_elsewhere=True)
                seen, has_looked = now, True
                if unwritten.is_set():
                    new = secrets.token_bytes(8)
                    step = Add(_KEY, new, KEPT_SECONDS) if now is None else Swap(_KEY, now, new, KEPT_SECONDS)
                    if (await self._store.run((step,))).failed is not None:
                        continue
                    seen = new
                    unwritten.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(LOOK_SECONDS):
                    await unwritten.wait()
