"""`subscriptions/listen` (revision 2026-07-28).

Listening clients are notified that what they have read may have changed: when the site publishes anew
(`Site.refresh`), when its status is set (`Site.set_status`), and when the list of tools for this caller has changed,
because of what it may call. Workers notify each other through the site's store if it is shared, also when one starts
whose documents are others than those of the last: while a new version is deployed. Nothing is replayed: clients that
were not connected read again.
"""

import asyncio
import secrets
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from hashlib import sha256
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
from awp_publish.plugins.mcp.tools import Tools
from awp_publish.problems import StoreUnavailable
from awp_publish.stores.store import Store
from awp_publish.stores.values import read_value, replacement

LISTEN: Final = "subscriptions/listen"

LOOK_SECONDS: Final = 2.0
"""Seconds between two polls for changes that other workers have published."""

VERIFY_SECONDS: Final = 5.0
"""Seconds after which the caller is authenticated again, and its tools are listed again."""

MAX_RESOURCES: Final = 1_000
KEPT_SECONDS: Final = 86_400.0


class Subscriptions:
    """The listening clients of one public address of a site."""

    def __init__(self, door: Context, tools: Tools, streams: OpenStreams) -> None:
        self._door = door
        self._tools = tools
        self._streams = streams
        self._identify = identify_caller(door)
        self._store: Store = door.guards.store
        self._key = f"mcp-changed:{door.catalog.absolute('/')}"
        self._listening: dict[asyncio.Event, asyncio.AbstractEventLoop] = {}
        self._version = 0
        self._digested: tuple[int, dict[str, str]] = (-1, {})
        self._is_elsewhere = False
        self._unwritten: tuple[asyncio.AbstractEventLoop, asyncio.Event] | None = None
        self._is_closing = False
        door.site.change_listeners.append(self.tell)

    def register(self, server: Server[Any]) -> None:
        """Make the SDK's server accept listening clients."""
        server.add_request_handler(LISTEN, types.SubscriptionsListenRequestParams, self.listen)

    def tell(self) -> None:
        """Notify all listening clients, here and at other workers. May be called from any thread."""
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
            with suppress(RuntimeError):  # the listener's loop has ended
                loop.call_soon_threadsafe(woken.set)

    async def listen(self, context: RequestContext, params: types.SubscriptionsListenRequestParams) -> WireResult:
        """Answer `subscriptions/listen` with a stream, until its client disconnects. Raises MCPError."""
        caller = await admit_caller(context, self._identify)
        if holds_thread(context):
            raise MCPError(types.METHOD_NOT_FOUND, "Method not found: this server cannot keep streams open.")
        proxies = self._door.admission.trusted_proxies
        with hold_stream(context, self._streams, caller, proxies, types.INTERNAL_ERROR):
            return await self._listen(context, params)

    async def _listen(self, context: RequestContext, params: types.SubscriptionsListenRequestParams) -> WireResult:
        meta, honored = {SUBSCRIPTION_ID_META_KEY: context.request_id}, self._honor(params.notifications)
        tasks, wanted_tasks = self._tools.calls.tasks, (params.notifications.model_extra or {}).get("taskIds")
        followed = await tasks.follow(context, wanted_tasks) if tasks is not None else {}
        if followed:
            honored = types.SubscriptionFilter.model_validate({**honored.model_dump(), "taskIds": [*followed]})
        changes: list[ServerEvent] = []
        changes += [ToolsListChanged()] if honored.tools_list_changed else []
        changes += [PromptsListChanged()] if honored.prompts_list_changed else []
        changes += [ResourcesListChanged()] if honored.resources_list_changed else []
        version, digests, woken = self._version, self._digests(), asyncio.Event()
        names = await self._names(context)
        self._listening[woken] = asyncio.get_running_loop()
        is_over = False

        def end() -> None:
            nonlocal is_over
            is_over = True
            woken.set()

        try:
            with ended_by_stop(end):
                acknowledged = types.SubscriptionsAcknowledgedNotificationParams(notifications=honored, _meta=meta)
                await notify(context, types.SubscriptionsAcknowledgedNotification(params=acknowledged))
                verified = time.monotonic()
                while not (is_over or self._is_closing):
                    due = min((resource.due for resource in followed.values()), default=float("inf")) - time.monotonic()
                    with suppress(TimeoutError):
                        async with asyncio.timeout(max(min(VERIFY_SECONDS, due), 0.0)):
                            await woken.wait()
                    woken.clear()
                    if followed and tasks is not None:
                        try:
                            news = await tasks.news_of(context, followed)
                        except MCPError:  # nobody knows them any more
                            break
                        for task in news:
                            await notify(context, Notice("notifications/tasks", {**task, "_meta": meta}))
                    events = list[ServerEvent]()
                    if self._version != version:
                        version, before, digests = self._version, digests, self._digests()
                        wanted = honored.resource_subscriptions or ()
                        is_new = self._is_elsewhere
                        events = [
                            *changes,
                            *(ResourceUpdated(uri) for uri in wanted if is_new or digests.get(uri) != before.get(uri)),
                        ]
                    elif time.monotonic() - verified >= VERIFY_SECONDS:
                        verified = time.monotonic()
                        now = await self._names(context)
                        if now is None:  # the credentials are no longer valid
                            break
                        if now != names and honored.tools_list_changed:
                            events = [ToolsListChanged()]
                        names = now
                    for event in events:
                        await notify(context, event_to_notification(event, meta))
        finally:
            del self._listening[woken]
        return {"resultType": "complete", "_meta": {**self._tools.calls.results.stamp, **meta}}

    def _honor(self, wanted: types.SubscriptionFilter) -> types.SubscriptionFilter:
        """Return the requested notifications that are available here."""
        digests, door = self._digests(), self._door
        uris = [uri for uri in dict.fromkeys(wanted.resource_subscriptions or ()) if uri in digests]
        return types.SubscriptionFilter(
            tools_list_changed=wanted.tools_list_changed or None,
            prompts_list_changed=(wanted.prompts_list_changed and bool(door.catalog.prompts)) or None,
            resources_list_changed=wanted.resources_list_changed or None,
            resource_subscriptions=uris[:MAX_RESOURCES] or None,
        )

    def _digests(self) -> dict[str, str]:
        """Return the digest of every document by its address, computed once for each change."""
        version, digests = self._digested
        if version != self._version:
            version = self._version
            digests = {
                self._door.catalog.absolute(path): document.encodings.digest
                for documents in self._door.documents()
                for path, document in documents.items()
            }
            self._digested = version, digests
        return digests

    async def _names(self, context: RequestContext) -> list[object] | None:
        """Return the names of a caller's tools, or None if its credentials are no longer valid."""
        with suppress(MCPError):
            await admit_caller(context, self._identify)
            listed = await self._tools.list_tools(context, types.PaginatedRequestParams())
            return [tool["name"] for tool in listed["tools"]]
        return None

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Exchange notifications of changes with other workers while the application runs."""
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
            try:
                now = await read_value(self._store, self._key)
                if has_looked and now != seen and now is not None:
                    self._note_change(is_elsewhere=True)
                published = sha256(repr(sorted(self._digests().items())).encode()).digest()
                if not has_looked and (now is None or now[8:] != published):
                    unwritten.set()
                seen, has_looked = now, True
                if unwritten.is_set():
                    new = secrets.token_bytes(8) + published
                    step = replacement(self._key, now, new, KEPT_SECONDS)
                    if (await self._store.run((step,))).failed is not None:
                        continue
                    seen = new
                    unwritten.clear()
            except StoreUnavailable:  # `unwritten` is still set, so the wait below would return at once
                await asyncio.sleep(LOOK_SECONDS)
                continue
            with suppress(TimeoutError):
                async with asyncio.timeout(LOOK_SECONDS):
                    await unwritten.wait()
