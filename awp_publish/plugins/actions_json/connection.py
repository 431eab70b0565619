"""One WebSocket connection of the bridge: it reads items and acts on them."""

import hashlib
from contextlib import suppress
from dataclasses import dataclass

import orjson

from awp_publish.http.exchange import Receive, Send
from awp_publish.http.site_client import SiteClient
from awp_publish.http.sockets import IDLE_SECONDS, MAX_PENDING, Frame, SocketConnection
from awp_publish.maps.failures import RuntimeFailure
from awp_publish.maps.live_page import PrimitiveError
from awp_publish.model import JsonObject
from awp_publish.plugin import Context
from awp_publish.plugins.actions_json.dispatching import Dispatcher
from awp_publish.plugins.actions_json.items import (
    ANSWERS,
    ITEMS,
    MAX_EVENTS,
    MAX_ID,
    MAX_URL,
    MEMBERS,
    Selectors,
    error_item,
    invalid,
    read_error,
    read_item,
    read_text,
    require_object,
    require_text,
    write_item,
)
from awp_publish.plugins.actions_json.offers import Offers
from awp_publish.plugins.actions_json.pairing import PairedRuntimes
from awp_publish.plugins.actions_json.runtimes import BridgeCall, Owner, PairedRuntime, ReachableRuntime
from awp_publish.plugins.actions_json.visits import Visits


@dataclass(frozen=True, slots=True)
class BridgeServices:
    """The services that all connections of one public address of a site share."""

    door: Context
    offers: Offers
    paired: PairedRuntimes
    visits: Visits
    dispatcher: Dispatcher


class BridgeConnection(SocketConnection):
    """One WebSocket connection: an agent, a runtime, or both."""

    def __init__(
        self, bridge: BridgeServices, owner: Owner, site: SiteClient, receive: Receive, send: Send, session_key: str
    ) -> None:
        door = bridge.door
        super().__init__(receive, send, door.admission.max_body_bytes, IDLE_SECONDS, door.options.messages_per_second)
        self.owner = owner
        self.runtimes: dict[str, PairedRuntime] = {}
        self.refusal: RuntimeFailure | None = None
        self._bridge, self._site, self.session_key = bridge, site, session_key
        self._calls = 0

    is_greeted = True

    def leave(self) -> None:
        """Release its runtimes, and the page of an anonymous caller."""
        self._bridge.paired.leave(self)
        if (visit := self.owner.visit) is not None and not self.owner.key:
            self._bridge.visits.end(visit)

    @property
    def has_room(self) -> bool:
        """True unless too many items wait to be sent, so that events for it are dropped."""
        return len(self._pending) < MAX_EVENTS

    def post(self, item: JsonObject) -> None:
        """Send an item, in order, without waiting for its delivery."""
        self._pending.start(self._write_item(item), "awp_publish bridge item")

    async def _write_item(self, item: JsonObject) -> None:
        await self._write_text(write_item(item))

    async def _write_text(self, text: str) -> None:
        with suppress(OSError):  # disconnected: reading ends as well
            await self.write({"type": "websocket.send", "text": text})

    async def refuse_large(self, frame: Frame) -> None:
        """Answer a frame that is too large. The connection then closes, and the calls that wait for it fail."""
        await self._write_item(error_item(invalid("The message is too large.", max_bytes=self.max_bytes)))

    async def take(self, frame: Frame, retry_after_ms: int | None) -> None:
        """Handle one item. An invalid one is answered with an action_error, and the connection stays open."""
        call_id = runtime_id = None
        try:
            item = read_item(frame)
            kind = item.get("type")
            ids = item.get("call_id"), item.get("runtime_id")
            call_id, about = (name if isinstance(name, str) and 0 < len(name) <= MAX_ID else None for name in ids)
            runtime_id = about if kind != "action_call" else None
            waiting = self.runtimes.get(about or "")
            # Awaited answers are exempt from the rate limit: a workflow consists of many small steps.
            is_asked_for = waiting is not None and kind in ANSWERS and waiting.waits_for(call_id)
            if retry_after_ms is not None and not is_asked_for:
                details = {"retry_after_ms": retry_after_ms}
                raise RuntimeFailure("permission_denied", "There were too many messages.", details)
            if self.refusal is not None:
                raise self.refusal
            if not isinstance(kind, str) or kind not in ITEMS:
                raise invalid(f"type must be one of {', '.join(ITEMS)}.", member="type")
            if kind == "action_call":
                await self._take_call(item)
            elif kind == "runtime_ready":
                runtime = self._bridge.paired.register(self, item)
                self.owner.agents.discard(self)
                if runtime.runtime is not None:
                    self._pending.start(self._ask_page(runtime, has_events=False), "awp_publish bridge page")
            else:
                self._take_from_runtime(kind, item)
        except RuntimeFailure as failure:
            self.post(error_item(failure, call_id, runtime_id))

    def _take_from_runtime(self, kind: str, item: JsonObject) -> None:
        if kind == "action_error" and item.get("runtime_id") is None and item.get("call_id") is not None:
            runtime_id = next(iter(self.runtimes), "") if len(self.runtimes) == 1 else ""
        elif kind == "action_error" and item.get("runtime_id") is None:
            read_error(item)
            return  # it names neither a runtime nor a call
        else:
            runtime_id = require_text(item, "runtime_id")
        runtime = self.runtimes.get(runtime_id)
        if kind in ("action_call_output", "action_error"):
            call_id = require_text(item, "call_id") if kind == "action_call_output" else read_text(item, "call_id")
            failure = read_error(item) if kind == "action_error" else None
            if kind == "action_call_output" and "output" not in item:
                raise invalid("Missing required member: output", member="output")
            if runtime is not None and call_id is not None:
                runtime.take_answer(call_id, item, failure)
            return
        if runtime is None:
            details = {"runtime_id": runtime_id}
            raise RuntimeFailure("runtime_not_ready", "This runtime has not sent runtime_ready.", details)
        if kind == "runtime_status":
            url = read_text(item, "url", MAX_URL)
            for name in ("states", "attachments"):
                if not isinstance(item.get(name, []), list):
                    raise invalid(f"{name} must be a list.", member=name)
            read_text(item, "observed_at")
            runtime.url = url or runtime.url
            if item.get("closing") is True:
                runtime.close_tab()
            if runtime.runtime is not None and item.get("events"):
                self._pending.start(self._ask_page(runtime, has_events=True), "awp_publish bridge events")
            progress, call = item.get("call"), runtime.current
            if isinstance(progress, dict) and call is not None and isinstance(step := progress.get("step_id"), str):
                call.step_id = step[:MAX_ID]
                call.has_changed = progress.get("mutating") is not False
            return
        self._take_event(runtime, item)

    def _take_event(self, runtime: PairedRuntime, item: JsonObject) -> None:
        """Forward an event to the agents that may reach its runtime. An undeclared event is dropped and counted."""
        event_id, name = require_text(item, "event_id"), require_text(item, "name")
        payload = item.get("payload")
        if "payload" not in item:
            raise invalid("Missing required member: payload", member="payload")
        offers = self._bridge.offers
        signal = offers.signals.get(name)
        if signal is None:
            runtime.dropped["events"] += 1
            return
        schema = signal.get("payload")
        if isinstance(schema, dict):
            key = f"signal {name}"
            if offers.validator(key, schema)(payload):
                runtime.dropped["events"] += 1
                return
        else:
            payload = {}
        forwarded: dict[str, object] = {"event_id": event_id, "name": name}
        for member, longest in (("event", MAX_ID), ("url", MAX_URL), ("observed_at", MAX_ID)):
            if (text := read_text(item, member, longest)) is not None:
                forwarded[member] = text
        self._forward_event(runtime, {**forwarded, "payload": payload})

    def _forward_event(self, runtime: PairedRuntime, event: JsonObject) -> None:
        """Send an event to the agents that may reach its runtime, with the id of the agent's own call if one runs."""
        item = {"type": "dom_event", "runtime_id": runtime.id, **event}
        during = (runtime.current.call_id, runtime.current.peer) if runtime.current is not None else runtime.last
        for agent in {*(runtime.owner.agents if runtime.owner is not None else ()), *runtime.listeners}:
            if not agent.has_room:
                runtime.dropped["events"] += 1
                continue
            mine = during is not None and during[1] is agent
            agent.post({**item, "previous_call_id": during[0]} if mine and during is not None else item)

    async def _ask_page(self, runtime: PairedRuntime, *, has_events: bool) -> None:
        """Make our script's page listen and attach as the map declares, or fetch and forward its events."""
        assert runtime.runtime is not None
        with suppress(RuntimeFailure, PrimitiveError):  # the page has unloaded; the next one sends a runtime_ready
            if not has_events:
                await runtime.runtime.status()
                return
            for event in await runtime.runtime.signals():
                self._forward_event(runtime, event)

    async def _take_call(self, item: JsonObject) -> None:
        """Handle an action_call. A finished one with the same id gets the same answer. Raises RuntimeFailure."""
        call_id, name = require_text(item, "call_id"), require_text(item, "name")
        arguments, selectors = require_object(item, "arguments"), Selectors.read(item)
        members = {member: item[member] for member in MEMBERS if item.get(member) is not None}
        most = self._bridge.door.settings.limits.timeout
        timeout_ms = item.get("timeout_ms")
        if timeout_ms is not None and (
            isinstance(timeout_ms, bool) or not isinstance(timeout_ms, (int, float)) or timeout_ms <= 0
        ):
            raise invalid("timeout_ms must be a positive number.", member="timeout_ms")
        seconds = min(most, timeout_ms / 1000) if isinstance(timeout_ms, (int, float)) else most
        if call_id in self.owner.running:
            raise invalid("A call with this call_id is still running.", member="call_id")
        encoded = orjson.dumps([name, arguments, members], option=orjson.OPT_SORT_KEYS)
        fingerprint = hashlib.sha256(encoded).digest()
        if call_id in self.owner.answers:
            previous, answer = self.owner.answers[call_id]
            if previous != fingerprint:
                raise invalid("The call_id was used for another call.", member="call_id")
            if answer is None:
                words = "The first call of this call_id succeeded; its answer is returned only once."
                raise RuntimeFailure("handler_failed", words, {"code": "ANSWER_NOT_KEPT"}, recoverable=False)
            self._pending.start(self._write_text(answer), "awp_publish bridge item")
            return
        if self._calls >= MAX_PENDING:
            details = {"limit": MAX_PENDING, "retry_after_ms": 1_000}
            raise RuntimeFailure("permission_denied", "Too many calls are running.", details)
        call = BridgeCall(call_id, name, arguments, seconds, members, self, self.session_key)
        self.owner.running.add(call_id)
        self._calls += 1
        self._refused = 0
        self._pending.start(self._answer(call, selectors, fingerprint), f"awp_publish bridge {name[:50]}")

    async def _answer(self, call: BridgeCall, selectors: Selectors, fingerprint: bytes) -> None:
        runtime: ReachableRuntime | None = None
        try:
            try:
                runtime, result = await self._bridge.dispatcher.dispatch(self.owner, call, selectors, self._site)
            except RuntimeFailure as failure:
                item = {**error_item(failure, call.call_id), **({"headers": call.headers} if call.headers else {})}
            else:
                if isinstance(runtime, PairedRuntime):
                    runtime.last = call.call_id, self
                output_item = {"type": "action_call_output", "call_id": call.call_id, "runtime_id": runtime.id}
                item = {**output_item, "output": result.output, **({"headers": call.headers} if call.headers else {})}
                item |= {"steps": list(result.steps)} if result.steps else {}
            answer = write_item(item)
            is_secret = self._bridge.offers.gives_once(call, item)
            self.owner.remember(call.call_id, fingerprint, None if is_secret else answer)
        finally:
            self.owner.running.discard(call.call_id)
            self._calls -= 1
        await self._write_text(answer)
