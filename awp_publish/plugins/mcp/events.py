"""Events of the site: the extension `io.modelcontextprotocol/events` (SEP-3415) of revision 2026-07-28.

`events/list`, `events/poll` and `events/stream` read the log in the site's store, so that any worker can answer them. A
cursor is the position in all logs that a caller may read: public ones, those of its scopes, and its own. The arguments
of a subscription are values of plain members of the payload. Error codes are those of the SEP's text of October 2026,
which calls them provisional.
"""

import logging
import time
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager, suppress
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Final

import mcp_types as types
from mcp.server.lowlevel.server import Server
from mcp.shared.exceptions import MCPError
from mcp.shared.subscriptions import SUBSCRIPTION_ID_META_KEY
from pydantic import Field

from awp_publish.calls.call import Principal, scopes_of
from awp_publish.http.doors import identify_caller
from awp_publish.http.streams import OpenStreams
from awp_publish.model import Event
from awp_publish.plugin import Context
from awp_publish.plugins.mcp.exchange import (
    PROTOCOL,
    Notice,
    RequestContext,
    WireResult,
    admit_caller,
    exchange_of,
    hold_stream,
    holds_thread,
    is_modern,
    notify,
)
from awp_publish.plugins.mcp.stopping import is_stopping
from awp_publish.plugins.mcp.tools import Tools
from awp_publish.problems import Problem, did_you_mean

logger: Final = logging.getLogger("awp_publish.calls")

EXTENSION: Final = "io.modelcontextprotocol/events"
STREAM: Final = "events/stream"
NOT_FOUND: Final = -32023
FORBIDDEN: Final = -32024
RESOURCE_EXHAUSTED: Final = -32025
UNSUPPORTED: Final = -32026
MAX_EVENTS: Final = 200
DEFAULT_EVENTS: Final = 50
QUIET_POLL_MS: Final = 5_000
BUSY_POLL_MS: Final = 1_000

LOOK_SECONDS: Final = 1.0
"""Seconds between two polls of the store by a stream. Events of this process arrive at once, others when polled."""

HEARTBEAT_SECONDS: Final = 10.0
VERIFY_SECONDS: Final = 60.0
"""Seconds after which a stream authenticates its caller again."""

STREAM_SECONDS: Final = 3600.0
"""Seconds after which a stream is ended, so that its client opens another one with its cursor."""

Milliseconds = Annotated[int, Field(ge=0, le=2**53, strict=True)]


class ListParams(types.PaginatedRequestParams):
    """Params of `events/list`."""


class SubscriptionParams(types.RequestParams):
    """A subscription: an event, the wanted values of its members, and where to begin (Event Subscriptions)."""

    name: str
    arguments: dict[str, Any] | None = None
    cursor: str | None = None
    max_age_ms: Milliseconds | None = None


class PollParams(SubscriptionParams):
    """Params of `events/poll`."""

    max_events: Annotated[int, Field(ge=1, strict=True)] | None = None


class EventExtension:
    """The events of one public address of a site, as they are listed, polled and streamed."""

    def __init__(self, door: Context, tools: Tools, streams: OpenStreams) -> None:
        self._catalog = door.catalog
        served = door.ask("events")  # without that plug-in, there are no events
        self._events: Any = served.log if served is not None else None
        self._invoker = door.invoker
        self._identify = identify_caller(door)
        self._tools = tools
        self._has_webhooks = served is not None and bool(door.guards.authenticators)
        self._streams = streams
        self._proxies = door.admission.trusted_proxies
        self._is_closing = False

    def register(self, server: Server[Any]) -> None:
        server.extensions[EXTENSION] = {}
        server.add_request_handler("events/list", ListParams, self.list_events)
        server.add_request_handler("events/poll", PollParams, self.poll)
        server.add_request_handler(STREAM, SubscriptionParams, self.stream)

    async def list_events(self, context: RequestContext, _params: ListParams) -> WireResult:
        """Answer `events/list` (Listing Available Events)."""
        caller = await self.admit(context)
        scopes = scopes_of(caller)
        delivery = ["poll", *([] if holds_thread(context) else ["push"])]
        delivery += ["webhook"] if self._has_webhooks else []
        listed = [
            {
                "name": event.id,
                "description": event.description,
                "delivery": delivery,
                "inputSchema": event.inputs,
                "payloadSchema": event.payload,
            }
            for event in self._catalog.events
            if event.is_for(scopes)
        ]
        return {"events": listed, "resultType": "complete", "_meta": self._tools.calls.results.stamp}

    async def poll(self, context: RequestContext, params: PollParams) -> WireResult:
        """Answer `events/poll` (Poll-Based Delivery). Raises MCPError."""
        caller = await self.admit(context)
        event = self.find(params, caller)
        most = min(params.max_events or DEFAULT_EVENTS, MAX_EVENTS)
        batch = await self.begin(context, event, caller, params, most)
        return {
            "events": [occurrence.facts for occurrence in batch.occurrences],
            "cursor": self._events.write_cursor(batch.positions),
            "truncated": batch.truncated,
            "hasMore": batch.has_more,
            "nextPollMs": BUSY_POLL_MS if batch.occurrences else QUIET_POLL_MS,
            "resultType": "complete",
            "_meta": self._tools.calls.results.stamp,
        }

    async def stream(self, context: RequestContext, params: SubscriptionParams) -> WireResult:
        """Answer `events/stream` (Push-Based Delivery): past events after the cursor, and then events as they happen.

        Raises MCPError before the stream has begun.
        """
        caller = await self.admit(context)
        event = self.find(params, caller)
        if holds_thread(context):
            data = {"feature": "deliveryMode", "value": "push"}
            raise MCPError(UNSUPPORTED, "Unsupported: this server cannot keep streams open; poll.", data)
        with hold_stream(context, self._streams, caller, self._proxies, RESOURCE_EXHAUSTED):
            return await self._stream(context, params, event, caller)

    async def _stream(
        self, context: RequestContext, params: SubscriptionParams, event: Event, caller: Principal | None
    ) -> WireResult:
        meta = {SUBSCRIPTION_ID_META_KEY: context.request_id}
        first = await self.begin(context, event, caller, params, DEFAULT_EVENTS)

        async def send(kind: str, **params: object) -> None:
            await notify(context, Notice(f"notifications/events/{kind}", {**params, "_meta": meta}))

        async def send_events(batch: Any) -> None:
            for occurrence, after in batch.steps():
                await send("event", **occurrence.facts, cursor=self._events.write_cursor(after))

        await send("active", cursor=self._events.write_cursor(first.before), truncated=first.truncated)
        await send_events(first)
        began = spoke = verified = time.monotonic()
        since, logs = floor_of(params), self._events.logs_for(event, caller)
        batches = self._events.follow(event, logs, first.positions, params.arguments, LOOK_SECONDS, since)
        async with aclosing(batches):
            async for batch in batches:
                now = time.monotonic()
                if now - verified >= VERIFY_SECONDS or (caller is not None and caller.has_expired()):
                    verified, current = now, None
                    with suppress(MCPError):
                        current = await admit_caller(context, self._identify)
                    if current != caller or self._events.find(event.id, current) is None:
                        error = {"code": FORBIDDEN, "message": "Forbidden", "data": {"reason": "Access revoked"}}
                        await send("terminated", error=error)
                        break
                if batch.truncated and since is None:  # with `since` it was reported at the beginning
                    await send("active", cursor=self._events.write_cursor(batch.before), truncated=True)
                if batch.occurrences:
                    await send_events(batch)
                    spoke = now
                if self._is_closing or is_stopping() or now - began > STREAM_SECONDS:
                    break
                if now - spoke >= HEARTBEAT_SECONDS:
                    await send("heartbeat", cursor=self._events.write_cursor(batch.positions))
                    spoke = now
        return {"resultType": "complete", "_meta": {**self._tools.calls.results.stamp, **meta}}

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """End the streams when the application stops."""
        self._is_closing = False
        try:
            yield
        finally:
            self._is_closing = True

    async def admit(self, context: RequestContext) -> Principal | None:
        """Return the caller. Raises MCPError for wrong credentials, and in revisions without extensions."""
        if not is_modern(context):
            raise MCPError(types.METHOD_NOT_FOUND, "Method not found", context.method)
        return await admit_caller(context, self._identify)

    def find(self, params: SubscriptionParams, caller: Principal | None) -> Event:
        """Return the event of a subscription after checking its arguments. Raises MCPError."""
        event: Event | None = self._events.find(params.name, caller)
        if event is None or event not in self._catalog.events:
            scopes = scopes_of(caller)
            suggestion = did_you_mean(params.name, [event.id for event in self._catalog.events if event.is_for(scopes)])
            detail = f'NotFound: this site has no event "{params.name[:100]}". {suggestion}'.rstrip()
            raise MCPError(NOT_FOUND, detail, {"kind": "event"})
        wrong = self._events.check_arguments(event, params.arguments or {})
        if wrong:
            detail = "; ".join(f"{violation.pointer or '/'}: {violation.detail}" for violation in wrong[:3])
            errors = [{"pointer": violation.pointer, "detail": violation.detail} for violation in wrong]
            raise MCPError(
                types.INVALID_PARAMS, f"The arguments do not match what {event.id} takes: {detail}", {"errors": errors}
            )
        return event

    async def begin(
        self, context: RequestContext, event: Event, caller: Principal | None, params: SubscriptionParams, most: int
    ) -> Any:
        """Read from the cursor of a subscription, or from now on without one. Raises MCPError."""
        positions = self._events.read_cursor(event, params.cursor) if params.cursor is not None else None
        exchange = exchange_of(context)
        try:
            logs, since = self._events.logs_for(event, caller), floor_of(params)
            batch = await self._events.read(event, logs, positions, most=most, since=since, arguments=params.arguments)
        except Problem as problem:
            self._invoker.note_refusal(PROTOCOL, exchange.request_id, problem)
            raise MCPError(types.INTERNAL_ERROR, problem.detail) from problem
        # A cursor that is not valid here has lost its place: that is a gap, never an error (Cursor Lifecycle).
        return batch._replace(truncated=True) if params.cursor is not None and positions is None else batch


def floor_of(params: SubscriptionParams) -> datetime | None:
    """Return the earliest time of events to deliver, or None for no limit (Bounding replay)."""
    if params.max_age_ms is not None and params.cursor is not None:
        with suppress(OverflowError):
            return datetime.now(UTC) - timedelta(milliseconds=params.max_age_ms)
    return None
