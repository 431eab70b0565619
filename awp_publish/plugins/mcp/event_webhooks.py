"""Webhooks of the extension for events (SEP-3415, Webhook-Based Delivery): subscriptions, and what is sent to them."""

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any, Final, TypeAlias

import mcp_types as types
import orjson
from mcp.server.lowlevel.server import Server
from mcp.shared.exceptions import MCPError
from pydantic import BaseModel

from awp_publish.calls.call import Principal
from awp_publish.model import Event, utc_text
from awp_publish.plugin import Context
from awp_publish.plugins.mcp.events import (
    DEFAULT_EVENTS,
    FORBIDDEN,
    NOT_FOUND,
    RESOURCE_EXHAUSTED,
    UNSUPPORTED,
    EventExtension,
    Milliseconds,
    SubscriptionParams,
    floor_of,
)
from awp_publish.plugins.mcp.exchange import RequestContext, WireResult
from awp_publish.plugins.mcp.results import Results
from awp_publish.problems import Problem, StoreUnavailable

KIND: Final = "mcp-event"
"""The kind of our webhooks."""

CALLBACK_ENDPOINT_ERROR: Final = -32027

DEFAULT_TTL: Final = 86_400.0
MIN_TTL: Final = 60.0
MAX_TTL: Final = 7 * 86_400.0
"""Seconds for which a subscription is granted."""

MAX_TRIES: Final = 20
"""Attempts to store a subscription that others change at once."""

Positions: TypeAlias = dict[str, tuple[str, int]]
"""The positions of a reader, as the plug-in "events" keeps them: by log, an epoch and a number."""


class Delivery(BaseModel):
    """The address to which the events of a webhook subscription are sent."""

    mode: str = "webhook"
    url: str
    secret: str = ""


class SubscribeParams(SubscriptionParams):
    """Params of `events/subscribe`. A `ttlMs` of null requests no expiry; without one we choose the duration."""

    delivery: Delivery
    ttl_ms: Milliseconds | None = None


class UnsubscribeParams(types.RequestParams):
    """Params of `events/unsubscribe`."""

    name: str
    arguments: dict[str, Any] | None = None
    delivery: Delivery


class EventWebhooks:
    """The subscriptions with webhooks at one public address of a site whose callers can be known."""

    def __init__(self, door: Context, events: EventExtension, results: Results) -> None:
        served = door.ask("events")
        self._log: Any = served.log
        self._delivery: Any = served.delivery
        self._webhooks: Any = served.webhooks if door.guards.authenticators else None
        self._events, self._results = events, results
        if self._webhooks is not None:
            self._webhooks.kinds[KIND] = self.carry

    def register(self, server: Server[Any]) -> None:
        """Make the SDK's server accept subscriptions."""
        server.add_request_handler("events/subscribe", SubscribeParams, self.subscribe)
        server.add_request_handler("events/unsubscribe", UnsubscribeParams, self.unsubscribe)

    async def subscribe(self, context: RequestContext, params: SubscribeParams) -> WireResult:
        """Answer `events/subscribe`: begin a subscription, or refresh it. Raises MCPError."""
        caller, webhooks = await self._admit(context), self._webhooks
        event = self._events.find(params, caller)
        self._check(params.delivery)
        subscription_id = id_of(caller, params.delivery.url, event.id, params.arguments or {})
        with _as_mcp_errors(webhooks):
            for _ in range(MAX_TRIES):
                before = await webhooks.find(subscription_id)
                if before is not None and before.has_expired():
                    await webhooks.remove(before)
                    before = None
                hook = before or webhooks.new(
                    id=subscription_id, kind=KIND, principal=caller.key, url=params.delivery.url
                )
                hook = replace(hook, secret=params.delivery.secret, expires=self._grant(params), is_active=True)
                hook.logs, truncated = self._log.logs_for(event, caller), False
                if before is None:
                    truncated = await self._begin(context, event, caller, params, hook)
                else:
                    hook.rotate(before.secret)
                hook.about = {**hook.about, "scopes": sorted(caller.scopes)}
                if await webhooks.put(hook, before):
                    return self._describe(hook, before, truncated)
            raise StoreUnavailable("Too many requests change this subscription at the same time.")

    def _check(self, delivery: Delivery) -> None:
        """Refuse a delivery that is not possible. Raises MCPError."""
        if delivery.mode != "webhook":
            data = {"feature": "deliveryMode", "value": delivery.mode[:100]}
            raise MCPError(UNSUPPORTED, 'Unsupported: events/subscribe takes the delivery mode "webhook".', data)
        try:
            self._webhooks.check_secret(delivery.secret)
            self._webhooks.check_address(delivery.url)
        except self._webhooks.RefusedCallback as refused:
            raise MCPError(types.INVALID_PARAMS, refused.detail) from refused

    async def _begin(
        self, context: RequestContext, event: Event, caller: Principal, params: SubscribeParams, hook: Any
    ) -> bool:
        """Verify the address of a new subscription, and set where it begins. Returns whether events are gone."""
        await self._webhooks.verify(hook, is_forever=hook.expires is None)
        batch = await self._events.begin(context, event, caller, params, DEFAULT_EVENTS)
        hook.about = {"name": event.id, "arguments": params.arguments or {}, "positions": batch.before}
        if (since := floor_of(params)) is not None:
            hook.about["since"] = since.isoformat()
        truncated: bool = batch.truncated
        return truncated

    def _describe(self, hook: Any, before: Any, truncated: bool) -> WireResult:
        answer: WireResult = {
            "id": hook.id,
            "refreshBefore": _moment(hook.expires),
            "cursor": self._log.write_cursor(self._delivery.watermark(hook)),
            "truncated": truncated,
        }
        if before is not None:
            status: WireResult = {"active": before.is_active, "lastDeliveryAt": _moment(before.last_delivery)}
            status["lastError"] = before.last_error
            if before.failed_since is not None:
                status["failedSince"] = _moment(before.failed_since)
            answer["deliveryStatus"] = status
        return {**answer, "resultType": "complete", "_meta": self._results.stamp}

    async def unsubscribe(self, context: RequestContext, params: UnsubscribeParams) -> WireResult:
        """Answer `events/unsubscribe`. Raises MCPError."""
        caller = await self._admit(context)
        with _as_mcp_errors(self._webhooks):
            hook = await self._webhooks.find(id_of(caller, params.delivery.url, params.name, params.arguments or {}))
            if hook is None or hook.has_expired():
                raise MCPError(NOT_FOUND, "NotFound: you have no such subscription.", {"kind": "subscription"})
            await self._webhooks.remove(hook)
        return {"resultType": "complete", "_meta": self._results.stamp}

    def _grant(self, params: SubscribeParams) -> float | None:
        """Return when a subscription ends, None for never (Subscription TTL)."""
        if "ttl_ms" in params.model_fields_set and params.ttl_ms is None:
            return None if self._webhooks.is_durable else time.time() + DEFAULT_TTL
        requested = DEFAULT_TTL if params.ttl_ms is None else params.ttl_ms / 1000
        return time.time() + min(max(requested, MIN_TTL), MAX_TTL)

    async def carry(self, hook: Any) -> float | None:
        """Send the events that a subscription has not received yet. Returns None if the subscription has ended."""
        about = hook.about
        event = self._log.find(about["name"], Principal.of_key(hook.principal, frozenset(about["scopes"])))
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
        body = orjson.dumps({**occurrence.facts, "cursor": self._log.write_cursor(watermark)})
        return hook.message(occurrence.id, body, {"X-MCP-Subscription-Id": hook.id})

    def _gap(self, hook: Any, before: Positions) -> Any:
        return hook.control("gap", orjson.dumps({"type": "gap", "cursor": self._log.write_cursor(before)}))

    async def _admit(self, context: RequestContext) -> Principal:
        """Return the caller, who may have webhooks. Raises MCPError."""
        caller = await self._events.admit(context)
        if caller is None or self._webhooks is None:
            raise MCPError(FORBIDDEN, "Forbidden: webhooks require authentication.", {"reason": "unauthenticated"})
        return caller


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
