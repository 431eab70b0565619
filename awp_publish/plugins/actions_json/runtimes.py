"""Runtimes that carry out calls of the bridge, their owners, and the calls."""

import asyncio
import logging
import secrets
import time
from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final, Protocol

from awp_publish.browsing.driving import drive, has_large_page
from awp_publish.browsing.page import Steps
from awp_publish.browsing.session import Session
from awp_publish.http.dispatch import PASSED
from awp_publish.http.site_client import SiteClient
from awp_publish.maps.failures import RuntimeFailure, code_of_primitive
from awp_publish.maps.live_page import PrimitiveError
from awp_publish.maps.performing import HARMLESS, run_primitive
from awp_publish.maps.primitives import PRIMITIVES
from awp_publish.maps.runtime import HandlerCall, Runtime
from awp_publish.maps.script_page import CHANGING_METHODS
from awp_publish.maps.trace import ToolResult
from awp_publish.model import JsonObject
from awp_publish.plugins.actions_json.document import SITE_TOOL

logger: Final = logging.getLogger("awp_publish.calls")

KEY_LENGTH: Final = 16
"""Minimum characters of a runtime_key by which a runtime of an anonymous owner may reconnect."""
CODE_LENGTH: Final = 8
"""Minimum characters of an authorization_id by which an agent may reach a page. Our script's have 32."""

GRACE: Final = 30.0
"""Seconds for which a call waits for a runtime whose page is reloading."""

PAGE_SECONDS: Final = 30.0
"""Seconds after which loading a page of the site times out."""

MAX_QUEUED: Final = 64
"""Maximum calls that wait for one runtime."""

MAX_LOADS: Final = 5
"""How often a step that only reads is repeated if the page reloads meanwhile."""

MAX_ANSWERS: Final = 64
MAX_ANSWER_BYTES: Final = 1_000_000
"""Answers, and their characters in total, that are kept per owner. The latest is kept whatever its size."""
MAX_OWNERS: Final = 1_000
MAX_USED: Final = 1_000


class Peer(Protocol):
    """A connection to which items can be sent, of an agent or with runtimes."""

    owner: "Owner"
    runtimes: "dict[str, PairedRuntime]"
    session_key: str

    @property
    def has_room(self) -> bool:
        """True unless too many items wait to be sent, so that events for it are dropped."""

    def post(self, item: JsonObject) -> None:
        """Send an item, in order, without waiting for its delivery."""


class Owner:
    """The owner of connections: a principal, a session, or a single anonymous connection.

    `answers` are those to finished calls, by call_id; `running` has the ids of unfinished ones. `principal` is the key
    of a known caller; `scopes` are the caller's, None for an anonymous owner.
    """

    def __init__(self, key: str = "", principal: str = "", scopes: frozenset[str] | None = None) -> None:
        self.key = key
        self.principal = principal
        self.scopes = scopes
        self.agents: set[Peer] = set()
        self.runtimes: dict[str, PairedRuntime] = {}
        self.visit: SiteRuntime | None = None
        self.running: set[str] = set()
        self.answers: OrderedDict[str, tuple[bytes, str | None]] = OrderedDict()
        self._bytes = 0

    def remember(self, call_id: str, fingerprint: bytes, answer: str | None) -> None:
        """Keep the answer to a call for a repetition of the call; None if the answer may be given only once."""
        self.answers[call_id] = fingerprint, answer
        self._bytes += len(answer or "")
        while len(self.answers) > 1 and (len(self.answers) > MAX_ANSWERS or self._bytes > MAX_ANSWER_BYTES):
            self._bytes -= len(self.answers.popitem(last=False)[1][1] or "")


@dataclass(slots=True, eq=False)
class BridgeCall:
    """One call to a runtime.

    `members` accompany its arguments, as in the envelopes of other doors; `headers` accompany its answer. `step_id` is
    the last step that is known to have begun. `has_changed` is True if a step may have changed something, None if that
    is unknown. `session_key` is the key of the caller's session, whose cookies a page in this process gets.
    """

    call_id: str
    name: str
    arguments: JsonObject
    seconds: float
    members: Mapping[str, object] = field(default_factory=dict)
    peer: Peer | None = None
    session_key: str = ""
    step_id: str | None = None
    has_changed: bool | None = False
    headers: dict[str, str] = field(default_factory=dict)

    @property
    def effective(self) -> "BridgeCall":
        """The call that `actions.site` makes in mode "call", otherwise the call itself."""
        if self.name != SITE_TOOL or self.arguments.get("mode") != "call":
            return self
        arguments = self.arguments.get("arguments")
        return replace(
            self, name=str(self.arguments.get("action")), arguments=arguments if isinstance(arguments, dict) else {}
        )

    def note_step(self, step_id: str, changes: bool) -> None:
        """Record the beginning of a step."""
        self.step_id = step_id
        self.has_changed = bool(self.has_changed) or changes

    def describe_progress(self) -> JsonObject:
        """Return the progress of its steps, as evidence for a failure."""
        return {"call_id": self.call_id, "step_id": self.step_id}


class ReachableRuntime(ABC):
    """A page that can be called. Its calls run one at a time, in the order of their arrival."""

    def __init__(self, runtime_id: str, owner: Owner | None) -> None:
        self.id = runtime_id
        self.owner = owner
        self.title = ""
        self.current: BridgeCall | None = None
        self.runtime: Runtime | None = None
        self._turn = asyncio.Lock()
        self._queued = 0

    @property
    @abstractmethod
    def url(self) -> str:
        """The address that it shows."""

    async def carry_out(self, call: BridgeCall) -> ToolResult:
        """Run a call whose turn it is. Raises RuntimeFailure."""
        assert self.runtime is not None
        if call.name in PRIMITIVES and self.runtime.map.find("tools", call.name) is None:
            call.note_step(call.name, call.name not in HARMLESS)
            try:
                return ToolResult(await run_primitive(self.runtime.page, call.name, call.arguments, []))
            except PrimitiveError as error:
                evidence = {"code": error.code, **error.evidence}
                raise RuntimeFailure(code_of_primitive(error), error.message, evidence) from error
        if call.name != SITE_TOOL:
            return await self.runtime.call(call.name, call.arguments, seconds=call.seconds, on_step=call.note_step)
        runtime, arguments = self.runtime, call.arguments
        projection_name, summary = arguments.get("projection_name"), arguments.get("summary_name")
        projection = projection_name if isinstance(projection_name, str) else None
        match arguments["mode"]:
            case "list":
                output = await runtime.list()
            case "state_read":
                output = await runtime.state_read(projection)
            case "state_summary":
                limit = arguments.get("max_bytes")
                output = await runtime.state_summary(
                    projection,
                    summary if isinstance(summary, str) else None,
                    limit if isinstance(limit, int) else None,
                )
            case _:
                output = await runtime.state_diff(projection)
        return ToolResult(output)

    def describe(self) -> JsonObject:
        """Return the facts about it for a caller that may reach it."""
        return {"runtime_id": self.id, "url": self.url, **({"title": self.title} if self.title else {})}

    async def run(
        self, call: BridgeCall, work: Callable[[BridgeCall], Awaitable[ToolResult]] | None = None
    ) -> ToolResult:
        """Run a call when its turn has come, within its timeout. Raises RuntimeFailure."""
        if self._queued >= MAX_QUEUED:
            busy = {"limit": MAX_QUEUED, "retry_after_ms": 1_000}
            raise RuntimeFailure("permission_denied", "Too many calls are waiting for this runtime.", busy)
        began, self._queued = time.monotonic(), self._queued + 1
        try:
            async with asyncio.timeout(call.seconds):
                async with self._turn:
                    self.current = call
                    try:
                        return await (work or self.carry_out)(call)
                    finally:
                        self.current = None
        except TimeoutError:
            elapsed = round((time.monotonic() - began) * 1000)
            details: dict[str, object] = {"elapsed_ms": elapsed, "timeout_ms": round(call.seconds * 1000)}
            details |= call.describe_progress()
            words = f"The call took longer than {call.seconds:g} seconds."
            raise RuntimeFailure("handler_timeout", words, details, recoverable=call.has_changed is False) from None
        finally:
            self._queued -= 1


class PairedRuntime(ReachableRuntime):
    """A runtime at the other end of a connection: a visitor's tab, an extension, anything that speaks the protocol.

    While its page is reloading, `peer` is None and calls wait. `dropped` counts answers to unknown calls and events
    that are not declared.
    """

    url = ""

    def __init__(self, runtime_id: str, owner: Owner, peer: Peer, url: str) -> None:
        super().__init__(runtime_id, owner)
        self.key: str | None = None
        self.authorization_id: str | None = None
        self.peer: Peer | None = peer
        self.is_ready = True
        self.announced: frozenset[str] = frozenset()
        self.listeners: set[Peer] = set()
        self.last: tuple[str, Peer | None] | None = None
        self.dropped = {"answers": 0, "events": 0}
        self.leaving: asyncio.TimerHandle | None = None
        self.url = url
        self._asked: dict[str, asyncio.Future[JsonObject]] = {}
        self._interrupted: set[str] = set()
        self._back = asyncio.Event()
        self._back.set()
        self._has_ended = False
        self._is_closed = False
        self._used: OrderedDict[str, None] = OrderedDict()

    @property
    def is_away(self) -> bool:
        """True while its page is reloading."""
        return self.peer is None

    @property
    def can_return(self) -> bool:
        """True if it has a key by which it can be recognized when it reconnects."""
        return self.key is not None and (len(self.key) >= KEY_LENGTH or bool(self.owner and self.owner.key))

    async def carry_out(self, call: BridgeCall) -> ToolResult:
        """Pass a call on. Our own script is sent its steps one by one instead. Raises RuntimeFailure."""
        if self.runtime is not None:
            return await super().carry_out(call)
        item: dict[str, object] = {"type": "action_call", "call_id": call.call_id, "name": call.name}
        item |= {"arguments": call.arguments, "timeout_ms": round(call.seconds * 1000)}
        answer = await self.ask(item | dict(call.members))
        steps = answer.get("steps")
        return ToolResult(answer.get("output"), steps if isinstance(steps, list) else ())

    async def ask_script(self, method: str, arguments: JsonObject) -> JsonObject:
        """Send one step to our script. If the page unloads meanwhile, the step counts as done or is repeated.

        Raises RuntimeFailure.
        """
        item: JsonObject = {"type": "action_call", "call_id": f"step.{secrets.token_hex(8)}", "name": f"page.{method}"}
        for _ in range(MAX_LOADS):
            answer = await self.ask({**item, "arguments": arguments, "timeout_ms": round(GRACE * 1000)})
            if not answer.get("interrupted"):
                output = answer.get("output")
                return output if isinstance(output, dict) else {}
            if method in CHANGING_METHODS:
                if method == "invoke":
                    raise self._gone("The page was closed while one of its functions was running.")
                return {"ok": True, "value": {"navigated": True}}
        raise RuntimeFailure("transport_failed", "The page reloads over and over.", {"runtime_id": self.id})

    def depart(self) -> None:
        """Record that its connection is lost and that it may reconnect."""
        self.peer = None
        self._back.clear()
        self._interrupted = set(self._asked)

    def come_back(self, peer: Peer) -> None:
        """Record that it is connected again, possibly by another connection."""
        if self.leaving is not None:
            self.leaving.cancel()
            self.leaving = None
        self.peer = peer
        self._is_closed = False
        self._back.set()

    def close_tab(self) -> None:
        """Fail the calls that run or wait, because the page says that its tab is being closed."""
        self._is_closed = True
        self.fail(self._gone("The tab was closed."))

    def end(self, words: str = "The runtime has disconnected.") -> None:
        """End the runtime, and fail the calls that wait for it."""
        self._has_ended = True
        self.peer = None
        self.fail(self._gone(words))
        self._back.set()

    def fail(self, failure: RuntimeFailure) -> None:
        """Fail the requests that wait for its answers."""
        for future in self._asked.values():
            if not future.done():
                future.set_exception(failure)
                future.exception()  # marks it as retrieved: nobody may be waiting any more

    def _gone(self, words: str = "The runtime has disconnected.") -> RuntimeFailure:
        call = self.current
        changed = call.has_changed if call is not None else False
        details: dict[str, object] = {"runtime_id": self.id}
        if call is not None:
            details |= call.describe_progress()
        if changed is None:
            details["reason"] = "The runtime does not report its steps and may have started one that changes something."
        return RuntimeFailure("transport_failed", words, details, recoverable=changed is False)

    async def ask(self, item: JsonObject) -> JsonObject:
        """Send an action_call and return its output. It is never sent twice. Raises RuntimeFailure."""
        while self.peer is None and not (self._has_ended or self._is_closed):
            await self._back.wait()
        if self._is_closed:
            raise self._gone("The tab was closed.")
        peer, call = self.peer, self.current
        if peer is None:
            raise self._gone()
        if call is not None and self.runtime is None:
            call.has_changed = None  # from now on this is unknown here
        wire_id = str(item["call_id"])
        if wire_id in self._used:  # another caller has used the same id
            wire_id = f"{wire_id}.{secrets.token_hex(4)}"
        self._used[wire_id] = None
        while len(self._used) > MAX_USED:
            self._used.popitem(last=False)
        future: asyncio.Future[JsonObject] = asyncio.get_running_loop().create_future()
        self._asked[wire_id] = future
        try:
            peer.post({**item, "call_id": wire_id, "runtime_id": self.id})
            return await future
        except asyncio.CancelledError:
            # Stop the steps that have not begun.
            if self.peer is not None:
                words = "The call has ended: it timed out, or its caller disconnected."
                error = {"code": "handler_timeout", "message": words, "severity": "minor", "recoverable": False}
                logger.debug("a runtime is told to stop call %s", wire_id)
                stop = {"type": "action_error", "call_id": wire_id, "runtime_id": self.id, "error": error}
                self.peer.post(stop)
            raise
        finally:
            del self._asked[wire_id]
            self._interrupted.discard(wire_id)

    def waits_for(self, call_id: object) -> bool:
        """Return True if the answer to a call is still awaited."""
        return call_id in self._asked

    def take_answer(self, call_id: str, item: JsonObject, failure: RuntimeFailure | None) -> None:
        """Handle an answer. One that is not awaited is dropped and counted."""
        future = self._asked.get(call_id)
        if future is None or future.done():
            self.dropped["answers"] += 1
            return
        if failure is not None:
            future.set_exception(failure)
            future.exception()
        else:
            future.set_result(item)

    def take_interrupted(self) -> None:
        """Complete the step that was running when its page unloaded, now that the new page is ready.

        This applies to our script only. Other runtimes keep track of their steps and answer themselves.
        """
        for call_id in tuple(self._interrupted) if self.runtime is not None else ():
            future = self._asked.get(call_id)
            if future is not None and not future.done():
                future.set_result({"output": None, "interrupted": True})
        self._interrupted.clear()


class SiteRuntime(ReachableRuntime):
    """A page of this site in this process, for one caller. `site` sends the requests of the running call."""

    def __init__(self, runtime_id: str, owner: Owner | None, session: Session, address: str) -> None:
        super().__init__(runtime_id, owner)
        self.address = address
        self.session = session
        self.site: SiteClient | None = None
        self.receipts: dict[str, str] = {}
        self.last_used = time.monotonic()

    @property
    def principal(self) -> str:
        """The key of its caller, "" if unknown."""
        return self.owner.principal if self.owner is not None else ""

    @property
    def url(self) -> str:
        return self.session.url or ""

    async def drive(self, steps: Steps) -> JsonObject:
        """Run a method of the session. Raises AwpError."""
        assert self.site is not None
        members = {PASSED: self.current.name} if self.current is not None else {}
        fetch = partial(self.site.fetch, members=members)
        return await drive(steps, fetch, "page", PAGE_SECONDS, in_thread=has_large_page(self.session))


def agent_of(handled: HandlerCall) -> JsonObject:
    """Return the agent that the map binds a tool to. What a caller sends never decides."""
    operation = handled.bound.get("operation")
    agent: dict[str, object] = {"agent_id": handled.bound.get("agent_id", handled.tool)}
    return agent | ({"operation": operation} if operation is not None else {})
