"""Runtimes at the other end of connections: how they register, reconnect, are found and end."""

import asyncio

from awp_publish.maps.failures import RuntimeFailure
from awp_publish.maps.runtime import HandlerCall, Runtime
from awp_publish.maps.script_page import ScriptPage
from awp_publish.model import JsonObject
from awp_publish.plugins.actions_json.items import MAX_RUNTIMES, error_item, failure_of, invalid
from awp_publish.plugins.actions_json.offers import Offers
from awp_publish.plugins.actions_json.ready import Ready
from awp_publish.plugins.actions_json.runtimes import (
    CODE_LENGTH,
    GRACE,
    KEY_LENGTH,
    Owner,
    PairedRuntime,
    Peer,
    agent_of,
)
from awp_publish.plugins.actions_json.tools import HANDLER


class PairedRuntimes:
    """The connected runtimes of one public address of a site, in this process. `seconds` limit a workflow of theirs."""

    def __init__(self, offers: Offers, seconds: float) -> None:
        self._offers, self._seconds = offers, seconds
        self._authorized: dict[str, PairedRuntime] = {}
        self._keyed: dict[str, PairedRuntime] = {}

    def authorized(self, authorization_id: str) -> PairedRuntime | None:
        """Return the runtime whose visitor has passed on an authorization, or None."""
        return self._authorized.get(authorization_id)

    def register(self, connection: Peer, item: JsonObject) -> PairedRuntime:
        """Handle a runtime_ready of a new runtime, a reloaded page, or a known runtime. Raises RuntimeFailure."""
        ready = Ready.read(item)
        runtime = self._returning(connection, ready)
        if runtime is None:
            runtime = self._admit(connection, ready)
        elif runtime.peer is not connection:
            self._move(runtime, connection, ready.runtime_id)
        self._index(runtime, connection, ready)
        runtime.url, runtime.title = ready.url, ready.title
        runtime.is_ready, runtime.announced = ready.has_usable_map, ready.announced
        if isinstance(page := runtime.runtime.page if runtime.runtime is not None else None, ScriptPage):
            page.url = ready.url
        runtime.come_back(connection)
        return runtime

    def _returning(self, connection: Peer, ready: Ready) -> PairedRuntime | None:
        """Return the known runtime that a runtime_ready is of, by its key or its id. Raises RuntimeFailure."""
        owner = connection.owner
        by_key = self._keyed.get(_keyed_as(owner, ready.key)) if ready.key is not None else None
        by_id = owner.runtimes.get(ready.runtime_id)
        if by_key is not None and by_id not in (None, by_key):
            raise invalid("The runtime_id is that of another runtime.", member="runtime_id")
        if by_id is not None and by_id.peer is not connection and by_key is not by_id:
            raise invalid("The runtime_id is taken by another connection.", member="runtime_id")
        runtime = by_key or by_id
        authorized = self._authorized.get(ready.authorization_id) if ready.authorization_id is not None else None
        if authorized is not None and authorized is not runtime:
            raise invalid("The authorization_id is taken.", member="authorization_id")
        return runtime

    def _admit(self, connection: Peer, ready: Ready) -> PairedRuntime:
        """Return a new runtime of a connection. Raises RuntimeFailure if its owner has too many."""
        owner = connection.owner
        if max(len(connection.runtimes), len(owner.runtimes)) >= MAX_RUNTIMES:
            raise RuntimeFailure("permission_denied", "One owner has too many runtimes.", {"limit": MAX_RUNTIMES})
        runtime = PairedRuntime(ready.runtime_id, owner, connection, ready.url)
        if ready.is_driven:
            self._drive(runtime)
        return runtime

    def _index(self, runtime: PairedRuntime, connection: Peer, ready: Ready) -> None:
        """Make a runtime known by its id, its key and its authorization, and no longer by earlier ones."""
        owner = connection.owner
        if runtime.key is not None and runtime.key != ready.key:
            self._keyed.pop(_keyed_as(owner, runtime.key), None)
        if runtime.authorization_id != ready.authorization_id and runtime.authorization_id is not None:
            self._authorized.pop(runtime.authorization_id, None)  # revoked
            runtime.listeners.clear()
        runtime.key, runtime.authorization_id = ready.key, ready.authorization_id
        connection.runtimes[ready.runtime_id] = owner.runtimes[ready.runtime_id] = runtime
        if ready.authorization_id is not None and len(ready.authorization_id) >= CODE_LENGTH:
            self._authorized[ready.authorization_id] = runtime
        if runtime.can_return and ready.key is not None:
            self._keyed[_keyed_as(owner, ready.key)] = runtime

    def _move(self, runtime: PairedRuntime, connection: Peer, runtime_id: str) -> None:
        """Move a runtime that has reconnected by its key, even if its old connection is not closed yet."""
        if (before := runtime.peer) is not None:
            before.runtimes.pop(runtime.id, None)
            words = "The runtime has reconnected on another connection."
            before.post(error_item(RuntimeFailure("transport_failed", words), runtime_id=runtime.id))
            runtime.depart()
        if runtime.owner is not None:
            runtime.owner.runtimes.pop(runtime.id, None)
        runtime.owner, runtime.id = connection.owner, runtime_id
        call = runtime.current
        caller = call.peer if call is not None else None
        if caller is not None and not (runtime.owner is caller.owner or caller in runtime.listeners):
            runtime.fail(RuntimeFailure("permission_denied", "The page now belongs to another visitor."))
        runtime.take_interrupted()

    def _drive(self, runtime: PairedRuntime) -> None:
        """Set up the runner in this process for a page whose script runs single steps."""

        async def invoke(handled: HandlerCall) -> object:
            members = runtime.current.members if runtime.current is not None else {}
            arguments = {**agent_of(handled), "input": handled.arguments, **members}
            reply = await page.ask("invoke", {"handler": HANDLER, "arguments": arguments})
            answer = reply if isinstance(reply, dict) else {}
            status, body = answer.get("status"), answer.get("body")
            if isinstance(status, int) and 200 <= status < 300:
                return body
            raise failure_of(status if isinstance(status, int) else 500, body if isinstance(body, dict) else {})

        page = ScriptPage(runtime.ask_script, url=runtime.url)
        ours = self._offers.map_of(runtime.owner or Owner())
        runtime.runtime = Runtime(ours, page, handlers={HANDLER: invoke}, seconds=self._seconds)

    def leave(self, connection: Peer) -> None:
        """Release the runtimes of a closed connection. One with a key may reconnect within GRACE seconds."""
        connection.owner.agents.discard(connection)
        for runtime in tuple(connection.runtimes.values()):
            if runtime.peer is not connection:
                continue
            if runtime.can_return:
                runtime.depart()
                runtime.leaving = asyncio.get_running_loop().call_later(GRACE, self.end, runtime)
            else:
                self.end(runtime)
        for runtime in {*self._authorized.values()}:
            runtime.listeners.discard(connection)

    def end(self, runtime: PairedRuntime) -> None:
        """Remove a runtime, and fail the calls that wait for it."""
        if runtime.leaving is not None:
            runtime.leaving.cancel()
        if runtime.owner is not None and runtime.owner.runtimes.get(runtime.id) is runtime:
            del runtime.owner.runtimes[runtime.id]
        if runtime.peer is not None:
            runtime.peer.runtimes.pop(runtime.id, None)
        for index in (self._authorized, self._keyed):
            for name in [name for name, indexed in index.items() if indexed is runtime]:
                del index[name]
        runtime.end()

    def end_all(self) -> None:
        """End all runtimes by which somebody could come back."""
        for runtime in {*self._keyed.values(), *self._authorized.values()}:
            self.end(runtime)


def _keyed_as(owner: Owner, key: str) -> str:
    """Return the lookup key of a runtime. A long key works across owners, for visitors that sign in meanwhile."""
    return key if len(key) >= KEY_LENGTH else f"{owner.key} {key}"
