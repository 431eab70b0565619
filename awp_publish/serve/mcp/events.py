"""Events of the site: the extension `io.modelcontextprotocol/events` (SEP-3415), beside revision 2026-07-28.

`events/list`, `events/poll` and `events/stream` read the log in the site's store, so any worker answers any of them. A
cursor is the position in all logs that a caller may read: public ones, those of its scopes, and its own. The arguments
of a subscription are values of plain members of the payload. Error codes are those of the SEP's text of October 2026,
which calls them provisional.
"""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Final, cast

import mcp_types as types
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import Field

from awp_publish.events import (
    Batch,
    Events,
    Positions,
    logs_for,
    read_cursor,
    write_cursor,
)
from awp_publish.model import Event
from awp_publish.policy.call import Principal
from awp_publish.problems import Problem, StoreUnavailable, did_you_mean
from awp_publish.serve.doors import DoorContext, identify_caller
from awp_publish.serve.mcp.calls import PROTOCOL, Context, Tools, WireResult, admit_caller, exchange_of
from mcp.server.lowlevel.server import Server
from mcp.shared.exceptions import MCPError
from mcp.shared.subscriptions import SUBSCRIPTION_ID_META_KEY

logger: Final = logging.getLogger("awp_publish.calls")

EXTENSION: Final = "io.modelcontextprotocol/events"
STREAM: Final = "events/stream"

NOT_FOUND: Final = -32023
FORBIDDEN: Final = -32024
RESOURCE_EXHAUSTED: Final = -32025
UNSUPPORTED: Final = -32026
CALLBACK_ENDPOINT_ERROR: Final = -32027

MAX_EVENTS: Final = 200
DEFAULT_EVENTS: Final = 50
QUIET_POLL_MS: Final = 5_000
BUSY_POLL_MS: Final = 1_000

LOOK_SECONDS: Final = 1.0
"""Seconds between two looks of a stream at the store: what this process emits comes at once, what others emit so."""

HEARTBEAT_SECONDS: Final = 10.0
VERIFY_SECONDS: Final = 60.0
"""Seconds after which a stream asks again who its caller is."""

STREAM_SECONDS: Final = 3600.0
"""Seconds after which a stream is ended, for its client to open another with its cursor."""

MAX_STREAMS: Final = 1_000

_Milliseconds = Annotated[int, Field(ge=0, le=2**53)]


class ListParams(types.PaginatedRequestParams):
    """Params of `events/list`."""


class SubscriptionParams(types.RequestParams):
    """A subscription: an event, the values that are wanted, and where to begin (Event Subscriptions)."""

    name: str
    arguments: dict[str, Any] | None = None
    cursor: str | None = None
    max_age_ms: _Milliseconds | None = None


class PollParams(SubscriptionParams):
    """Params of `events/poll`."""

    max_events: Annotated[int, Field(ge=1)] | None = None


class Notice:
    """A notification that the SDK has no type for. Members that are null stay in it."""

    def __init__(self, method: str, params: Mapping[str, object]) -> None:
        self._message: dict[str, object] = {"method": method, "params": dict(params)}

    def model_dump(self, **_: object) -> dict[str, object]:
        """Return the message, as the SDK asks its own types for it."""
        return self._message


class EventExtension:
    """The events of one public address of a site."""

    def __init__(self, door: DoorContext, tools: Tools) -> None:
        self._catalog = door.catalog
        self._events: Events = door.site.events
        self._invoker = door.invoker
        self._identify = identify_caller(door)
        self._tools = tools
        self._streams = 0
        self.is_closing = asyncio.Event()

    def register(self, server: Server[Any]) -> None:
        """Have the SDK's server offer the extension."""
        server.extensions[EXTENSION] = {}
        server.add_request_handler("events/list", ListParams, self.list_events)
        server.add_request_handler("events/poll", PollParams, self.poll)
        server.add_request_handler(STREAM, SubscriptionParams, self.stream)

    # --- The methods ---

    async def list_events(self, context: Context, _params: ListParams) -> WireResult:
        """Answer `events/list` (Listing Available Events)."""
        caller = await self._admit(context)
        scopes = caller.scopes if caller is not None else None
        listed = [
            {
                "name": one.id,
                "description": one.description,
                "delivery": self.delivery,
                "inputSchema": one.inputs,
                "payloadSchema": one.payload,
            }
            for one in self._catalog.events
            if one.is_for(scopes)
        ]
        return {"events": listed, "resultType": "complete", "_meta": self._tools.stamp}

    @property
    def delivery(self) -> list[str]:
        """The delivery modes of every event."""
        return ["poll", "push"]

    async def poll(self, context: Context, params: PollParams) -> WireResult:
        """Answer `events/poll` (Poll-Based Delivery). Raises MCPError."""
        caller = await self._admit(context)
        event = self.find(params, caller)
        most = min(params.max_events or DEFAULT_EVENTS, MAX_EVENTS)
        batch = await self._begin(context, event, caller, params, most)
        return {
            "events": [one.facts for one in batch.occurrences],
            "cursor": write_cursor(batch.positions),
            "truncated": batch.truncated,
            "hasMore": batch.has_more,
            "nextPollMs": BUSY_POLL_MS if batch.occurrences else QUIET_POLL_MS,
            "resultType": "complete",
            "_meta": self._tools.stamp,
        }

    async def stream(self, context: Context, params: SubscriptionParams) -> WireResult:
        """Answer `events/stream` (Push-Based Delivery): what has happened, and what happens from now on.

        Raises MCPError before the stream has begun.
        """
        caller = await self._admit(context)
        event = self.find(params, caller)
        if self._streams >= MAX_STREAMS:
            raise MCPError(RESOURCE_EXHAUSTED, "Too many streams are open.", {"limit": "streams", "max": MAX_STREAMS})
        meta = {SUBSCRIPTION_ID_META_KEY: context.request_id}
        self._streams += 1
        try:
            await self._tell(context, event, caller, params, meta)
        finally:
            self._streams -= 1
        return {"resultType": "complete", "_meta": {**self._tools.stamp, **meta}}

    async def _tell(
        self,
        context: Context,
        event: Event,
        caller: Principal | None,
        params: SubscriptionParams,
        meta: Mapping[str, object],
    ) -> None:
        """Send the notifications of a stream until it ends."""

        async def send(kind: str, **told: object) -> None:
            notice = Notice(f"notifications/events/{kind}", {**told, "_meta": meta})
            await context.session.send_notification(cast(Any, notice), related_request_id=context.request_id)

        logs = frozenset(logs_for(event, caller))
        async with self._woken_by(logs) as woken:
            batch = await self._begin(context, event, caller, params, DEFAULT_EVENTS)
            await send("active", cursor=write_cursor(batch.before), truncated=batch.truncated)
            began = told = verified = time.monotonic()
            is_away = False
            while True:
                for one, after in batch.steps():
                    await send("event", **one.facts, cursor=write_cursor(after))
                    told = time.monotonic()
                if batch.has_more:
                    batch = await self._read(event, logs, params, batch.positions)
                    continue
                if self.is_closing.is_set() or time.monotonic() - began > STREAM_SECONDS:
                    return
                with suppress(TimeoutError):
                    async with asyncio.timeout(LOOK_SECONDS):
                        await woken.wait()
                woken.clear()
                now = time.monotonic()
                if now - verified >= VERIFY_SECONDS:
                    verified = now
                    if not await self._is_still(context, event, caller):
                        error = {"code": FORBIDDEN, "message": "Forbidden", "data": {"reason": "Access revoked"}}
                        await send("terminated", error=error)
                        return
                positions = batch.positions
                try:
                    batch = await self._read(event, logs, params, positions)
                    is_away = False
                except StoreUnavailable as problem:
                    if not is_away:
                        error = {"code": types.INTERNAL_ERROR, "message": problem.detail}
                        await send("error", error=error)
                    is_away = True
                    batch = Batch((), positions, positions)
                if batch.truncated:
                    await send("active", cursor=write_cursor(batch.before), truncated=True)
                if now - told >= HEARTBEAT_SECONDS:
                    await send("heartbeat", cursor=write_cursor(positions))
                    told = now

    async def _is_still(self, context: Context, event: Event, caller: Principal | None) -> bool:
        """Say whether the caller of a stream is who it was, and may know of its event."""
        with suppress(MCPError):
            now = await admit_caller(context, self._identify)
            return now == caller and self._events.find(event.id, now) is not None
        return False

    @asynccontextmanager
    async def _woken_by(self, logs: frozenset[str]) -> AsyncIterator[asyncio.Event]:
        """Give what is set whenever this process emits into one of these logs, or the door closes."""
        loop, woken = asyncio.get_running_loop(), asyncio.Event()

        def wake(log: str) -> None:
            if log in logs:
                with suppress(RuntimeError):  # the loop has ended, and the stream with it
                    loop.call_soon_threadsafe(woken.set)

        forget: Callable[[], None] = self._events.listen(wake)
        try:
            yield woken
        finally:
            forget()

    # --- What they share ---

    async def _admit(self, context: Context) -> Principal | None:
        """Return the caller. Raises MCPError for wrong credentials, and in revisions that know no extensions."""
        if context.protocol_version not in MODERN_PROTOCOL_VERSIONS:
            raise MCPError(types.METHOD_NOT_FOUND, "Method not found", context.method)
        return await admit_caller(context, self._identify)

    def find(self, params: SubscriptionParams, caller: Principal | None) -> Event:
        """Return the event of a subscription whose arguments are right. Raises MCPError."""
        event = self._events.find(params.name, caller)
        if event is None or event not in self._catalog.events:
            scopes = caller.scopes if caller is not None else None
            meant = did_you_mean(params.name, [one.id for one in self._catalog.events if one.is_for(scopes)])
            told = f'NotFound: this site has no event "{params.name[:100]}". {meant}'.rstrip()
            raise MCPError(NOT_FOUND, told, {"kind": "event"})
        wrong = self._events.check_arguments(event, params.arguments or {})
        if wrong:
            told = "; ".join(f"{one.pointer or '/'}: {one.detail}" for one in wrong[:3])
            errors = [{"pointer": one.pointer, "detail": one.detail} for one in wrong]
            raise MCPError(
                types.INVALID_PARAMS, f"The arguments are not what {event.id} takes: {told}", {"errors": errors}
            )
        return event

    async def _begin(
        self, context: Context, event: Event, caller: Principal | None, params: SubscriptionParams, most: int
    ) -> Batch:
        """Read from the cursor of a subscription on; from now on without one. Raises MCPError."""
        positions = read_cursor(event, params.cursor) if params.cursor is not None else None
        exchange = exchange_of(context)
        try:
            batch = await self._read(event, logs_for(event, caller), params, positions, most)
        except Problem as problem:
            self._invoker.note_refusal(PROTOCOL, exchange.request_id, problem)
            raise MCPError(types.INTERNAL_ERROR, problem.detail) from problem
        # A cursor that means nothing here has lost its place: a gap, never an error (Cursor Lifecycle).
        return batch._replace(truncated=True) if params.cursor is not None and positions is None else batch

    async def _read(
        self,
        event: Event,
        logs: "frozenset[str] | tuple[str, ...]",
        params: SubscriptionParams,
        positions: Positions | None,
        most: int = DEFAULT_EVENTS,
    ) -> Batch:
        since = None
        if params.max_age_ms is not None and params.cursor is not None:
            with suppress(OverflowError):
                since = datetime.now(UTC) - timedelta(milliseconds=params.max_age_ms)
        return await self._events.read(event, logs, positions, most=most, since=since, arguments=params.arguments)
