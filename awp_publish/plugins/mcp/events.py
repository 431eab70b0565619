"""Events of the site: the extension `io.modelcontextprotocol/events` (SEP-3415) of revision 2026-07-28.

`events/list`, `events/poll` and `events/stream` read the log in the site's store, so that any worker can answer them. A
cursor is the position in all logs that a caller may read: public ones, those of its scopes, and its own. The arguments
of a subscription are values of plain members of the payload. Error codes are those of the SEP's text of October 2026,
which calls them provisional.
"""

import logging
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import aclosing, asynccontextmanager, contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import Annotated, Any, Final, TypeAlias

import mcp_types as types
import orjson
from mcp.server.lowlevel.server import Server
from mcp.shared.exceptions import MCPError
from mcp.shared.subscriptions import SUBSCRIPTION_ID_META_KEY
from pydantic import BaseModel, Field

from awp_publish.calls.call import Principal, scopes_of
from awp_publish.http.doors import identify_caller
from awp_publish.http.streams import OpenStreams
from awp_publish.model import Event, utc_text
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
from awp_publish.problems import Problem, StoreUnavailable, did_you_mean

logger: Final = logging.getLogger("awp_publish.calls")

EXTENSION: Final = "io.modelcontextprotocol/events"
STREAM: Final = "events/stream"
KIND: Final = "mcp-event"
"""The kind of our webhooks."""

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
"""Seconds between two polls of the store by a stream. Events of this process arrive at once, others when polled."""

HEARTBEAT_SECONDS: Final = 10.0
VERIFY_SECONDS: Final = 60.0
"""Seconds after which a stream authenticates its caller again."""

STREAM_SECONDS: Final = 3600.0
"""Seconds after which a stream is ended, so that its client opens another one with its cursor."""

DEFAULT_TTL: Final = 86_400.0
MIN_TTL: Final = 60.0
MAX_TTL: Final = 7 * 86_400.0
"""Seconds for which a subscription is granted."""

_Milliseconds = Annotated[int, Field(ge=0, le=2**53, strict=True)]


class ListParams(types.PaginatedRequestParams):
    """Params of `events/list`."""


class SubscriptionParams(types.RequestParams):
    """A subscription: an event, the wanted values of its members, and where to begin (Event Subscriptions)."""

    name: str
    arguments: dict[str, Any] | None = None
    cursor: str | None = None
    max_age_ms: _Milliseconds | None = None


class PollParams(SubscriptionParams):
    """Params of `events/poll`."""

    max_events: Annotated[int, Field(ge=1, strict=True)] | None = None


class Delivery(BaseModel):
    """The address to which the events of a webhook subscription are sent."""

    mode: str = "webhook"
    url: str
    secret: str = ""


class SubscribeParams(SubscriptionParams):
    """Params of `events/subscribe`. A `ttlMs` of null requests no expiry; without one we choose the duration."""

    delivery: Delivery
    ttl_ms: _Milliseconds | None = None


class UnsubscribeParams(types.RequestParams):
    """Params of `events/unsubscribe`."""

    name: str
    arguments: dict[str, Any] | None = None
    delivery: Delivery


Positions: TypeAlias = dict[str, tuple[str, int]]
"""The positions of a reader, as the plug-in "events" keeps them: by log, an epoch and a number."""

MAX_TRIES: Final = 20
"""Attempts to store a subscription that others change at once."""


class EventExtension:
    """The events of one public address of a site."""

    def __init__(self, door: Context, tools: Tools, streams: OpenStreams) -> None:
        self._catalog = door.catalog
        served = door.ask("events")  # without that plug-in, there are no events
        self._events: Any = served.log if served is not None else None
        self._invoker = door.invoker
        self._identify = identify_caller(door)
        self._tools = tools
        self._delivery: Any = served.delivery if served is not None else None
        self._webhooks: Any = served.webhooks if served is not None and door.guards.authenticators else None
        if self._webhooks is not None:
            self._webhooks.kinds[KIND] = self.carry
        self._streams = streams
        self._proxies = door.admission.trusted_proxies
        self._is_closing = False

    def register(self, server: Server[Any]) -> None:
        """Make the SDK's server offer the extension."""
        server.extensions[EXTENSION] = {}
        server.add_request_handler("events/list", ListParams, self.list_events)
        server.add_request_handler("events/poll", PollParams, self.poll)
        server.add_request_handler(STREAM, SubscriptionParams, self.stream)
        server.add_request_handler("events/subscribe", SubscribeParams, self.subscribe)
        server.add_request_handler("events/unsubscribe", UnsubscribeParams, self.unsubscribe)

    async def list_events(self, context: RequestContext, _params: ListParams) -> WireResult:
        """Answer `events/list` (Listing Available Events)."""
        caller = await self._admit(context)
        scopes = scopes_of(caller)
        delivery = ["poll", *([] if holds_thread(context) else ["push"])]
        delivery += ["webhook"] if self._webhooks is not None else []
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
        caller = await self._admit(context)
        event = self.find(params, caller)
        most = min(params.max_events or DEFAULT_EVENTS, MAX_EVENTS)
        batch = await self._begin(context, event, caller, params, most)
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
        caller = await self._admit(context)
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
        first = await self._begin(context, event, caller, params, DEFAULT_EVENTS)

        async def send(kind: str, **params: object) -> None:
            await notify(context, Notice(f"notifications/events/{kind}", {**params, "_meta": meta}))

        async def send_events(batch: Any) -> None:
            for occurrence, after in batch.steps():
                await send("event", **occurrence.facts, cursor=self._events.write_cursor(after))

        await send("active", cursor=self._events.write_cursor(first.before), truncated=first.truncated)
        await send_events(first)
        began = spoke = verified = time.monotonic()
        since, logs = _floor(params), self._events.logs_for(event, caller)
        batches = self._events.follow(event, logs, first.positions, params.arguments, LOOK_SECONDS, since)
        async with aclosing(batches):
            async for batch in batches:
                now = time.monotonic()
                if now - verified >= VERIFY_SECONDS or (caller is not None and caller.has_expired()):
                    verified, known = now, None
                    with suppress(MCPError):
                        known = await admit_caller(context, self._identify)
                    if known != caller or self._events.find(event.id, known) is None:
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

    async def subscribe(self, context: RequestContext, params: SubscribeParams) -> WireResult:
        """Answer `events/subscribe` (Webhook-Based Delivery): begin a subscription, or refresh it. Raises MCPError."""
        caller, webhooks = await self._admit_subscriber(context), self._webhooks
        event, delivery = self.find(params, caller), params.delivery
        if delivery.mode != "webhook":
            data = {"feature": "deliveryMode", "value": delivery.mode[:100]}
            raise MCPError(UNSUPPORTED, 'Unsupported: events/subscribe takes the delivery mode "webhook".', data)
        try:
            webhooks.check_secret(delivery.secret)
            webhooks.check_address(delivery.url)
        except webhooks.RefusedCallback as refused:
            raise MCPError(types.INVALID_PARAMS, refused.detail) from refused
        expires = self._grant(params, webhooks)
        logs, arguments = self._events.logs_for(event, caller), params.arguments or {}
        subscription_id = id_of(caller, delivery.url, event.id, arguments)
        with _as_mcp_errors(self._webhooks):
            for _ in range(MAX_TRIES):
                before = await webhooks.find(subscription_id)
                if before is not None and before.has_expired():
                    await webhooks.remove(before)
                    before = None
                hook = webhooks.new(id=subscription_id, kind=KIND, principal=caller.key, url=delivery.url)
                hook.secret, hook.expires, hook.logs, truncated = delivery.secret, expires, logs, False
                if before is None:
                    await webhooks.verify(hook, is_forever=expires is None)
                    batch = await self._begin(context, event, caller, params, DEFAULT_EVENTS)
                    truncated = batch.truncated
                    hook.about = {"name": event.id, "arguments": arguments, "positions": batch.before}
                    if (since := _floor(params)) is not None:
                        hook.about["since"] = since.isoformat()
                else:
                    hook = replace(before, secret=delivery.secret, expires=expires, logs=logs, is_active=True)
                    hook.rotate(before.secret)
                hook.about = {**hook.about, "scopes": sorted(caller.scopes)}
                if await webhooks.put(hook, before):
                    break
            else:
                raise StoreUnavailable("Too many requests change this subscription at the same time.")
        answer: WireResult = {
            "id": hook.id,
            "refreshBefore": _moment(expires),
            "cursor": self._events.write_cursor(self._delivery.watermark(hook)),
            "truncated": truncated,
        }
        if before is not None:
            status: WireResult = {"active": before.is_active, "lastDeliveryAt": _moment(before.last_delivery)}
            status["lastError"] = before.last_error
            if before.failed_since is not None:
                status["failedSince"] = _moment(before.failed_since)
            answer["deliveryStatus"] = status
        return {**answer, "resultType": "complete", "_meta": self._tools.calls.results.stamp}

    async def unsubscribe(self, context: RequestContext, params: UnsubscribeParams) -> WireResult:
        """Answer `events/unsubscribe`. Raises MCPError."""
        caller = await self._admit_subscriber(context)
        with _as_mcp_errors(self._webhooks):
            hook = await self._webhooks.find(id_of(caller, params.delivery.url, params.name, params.arguments or {}))
            if hook is None or hook.has_expired():
                raise MCPError(NOT_FOUND, "NotFound: you have no such subscription.", {"kind": "subscription"})
            await self._webhooks.remove(hook)
        return {"resultType": "complete", "_meta": self._tools.calls.results.stamp}

    def _grant(self, params: SubscribeParams, webhooks: Any) -> float | None:
        """Return when a subscription ends, None for never (Subscription TTL)."""
        if "ttl_ms" in params.model_fields_set and params.ttl_ms is None:
            return None if webhooks.is_durable else time.time() + DEFAULT_TTL
        wanted = DEFAULT_TTL if params.ttl_ms is None else params.ttl_ms / 1000
        return time.time() + min(max(wanted, MIN_TTL), MAX_TTL)

    async def carry(self, hook: Any) -> float | None:
        """Send the events that a subscription has not received yet. Returns None if the subscription has ended."""
        about = hook.about
        event = self._events.find(about["name"], Principal.of_key(hook.principal, frozenset(about["scopes"])))
        if event is None:
            error = {"code": NOT_FOUND, "message": "NotFound", "data": {"kind": "event"}}
            await self._webhooks.send(
                hook, hook.control("terminated", orjson.dumps({"type": "terminated", "error": error}))
            )
            return None
        since = datetime.fromisoformat(about["since"]) if "since" in about else None
        gap = self._gap if since is None else None  # with `since` it was reported when they subscribed
        pause: float | None = await self._delivery.carry(
            hook, event, self._message, arguments=about["arguments"], since=since, gap=gap
        )
        return pause

    def _message(self, hook: Any, occurrence: Any, watermark: Positions) -> Any:
        body = orjson.dumps({**occurrence.facts, "cursor": self._events.write_cursor(watermark)})
        return hook.message(occurrence.id, body, {"X-MCP-Subscription-Id": hook.id})

    def _gap(self, hook: Any, before: Positions) -> Any:
        return hook.control("gap", orjson.dumps({"type": "gap", "cursor": self._events.write_cursor(before)}))

    async def _admit(self, context: RequestContext) -> Principal | None:
        """Return the caller. Raises MCPError for wrong credentials, and in revisions without extensions."""
        if not is_modern(context):
            raise MCPError(types.METHOD_NOT_FOUND, "Method not found", context.method)
        return await admit_caller(context, self._identify)

    async def _admit_subscriber(self, context: RequestContext) -> Principal:
        """Return the caller, who may have webhooks. Raises MCPError."""
        caller = await self._admit(context)
        if caller is None or self._webhooks is None:
            raise MCPError(FORBIDDEN, "Forbidden: webhooks require authentication.", {"reason": "unauthenticated"})
        return caller

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

    async def _begin(
        self, context: RequestContext, event: Event, caller: Principal | None, params: SubscriptionParams, most: int
    ) -> Any:
        """Read from the cursor of a subscription, or from now on without one. Raises MCPError."""
        positions = self._events.read_cursor(event, params.cursor) if params.cursor is not None else None
        exchange = exchange_of(context)
        try:
            logs, since = self._events.logs_for(event, caller), _floor(params)
            batch = await self._events.read(event, logs, positions, most=most, since=since, arguments=params.arguments)
        except Problem as problem:
            self._invoker.note_refusal(PROTOCOL, exchange.request_id, problem)
            raise MCPError(types.INTERNAL_ERROR, problem.detail) from problem
        # A cursor that is not valid here has lost its place: that is a gap, never an error (Cursor Lifecycle).
        return batch._replace(truncated=True) if params.cursor is not None and positions is None else batch


def _floor(params: SubscriptionParams) -> datetime | None:
    """Return the earliest time of events to deliver, or None for no limit (Bounding replay)."""
    if params.max_age_ms is not None and params.cursor is not None:
        with suppress(OverflowError):
            return datetime.now(UTC) - timedelta(milliseconds=params.max_age_ms)
    return None


def id_of(caller: Principal, url: str, event_id: str, arguments: Mapping[str, object]) -> str:
    """Return the id of a subscription, a hash of its key (Subscription identity)."""
    key = orjson.dumps([caller.key, url, event_id, arguments], option=orjson.OPT_SORT_KEYS)
    return f"sub_{sha256(key).hexdigest()[:32]}"


def _moment(seconds: float | None) -> str | None:
    if seconds is None:
        return None
    return utc_text(datetime.fromtimestamp(seconds, UTC), "milliseconds")


@contextmanager
def _as_mcp_errors(webhooks: Any) -> Iterator[None]:
    """Convert problems with a subscription to the extension's errors (Error Handling)."""
    try:
        yield
    except webhooks.RefusedCallback as refused:
        raise MCPError(CALLBACK_ENDPOINT_ERROR, refused.detail, {"reason": refused.reason}) from refused
    except webhooks.TooMany as many:
        raise MCPError(RESOURCE_EXHAUSTED, str(many), {"limit": many.what, "max": many.most}) from many
    except Problem as problem:
        raise MCPError(types.INTERNAL_ERROR, problem.detail) from problem
