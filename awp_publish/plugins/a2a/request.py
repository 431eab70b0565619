"""One request to the A2A door, and who sends it."""

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from a2a.types.a2a_pb2 import Message
from a2a.utils.errors import A2AError

from awp_publish.calls.call import Principal
from awp_publish.http.client_address import client_address
from awp_publish.http.cors import Cors
from awp_publish.http.credentials import read_credentials
from awp_publish.http.exchange import RawHeaders, Receive, Scope, Send
from awp_publish.http.problem_details import ProblemRenderer
from awp_publish.http.request import DoorRequest
from awp_publish.model import Action, Event, JsonObject
from awp_publish.plugin import Context
from awp_publish.plugins.a2a.records import TaskRecord
from awp_publish.problems import Problem

DOOR: Final = "a2a"
REQUEST: Final = "awp_publish.a2a"
"""The key of the scope, and of the SDK's context, for the request."""


class A2aRequest(DoorRequest):
    """One HTTP request, the task to which its message belongs, and the call that the message becomes.

    `document` are its parameters, strictly parsed; `envelope` is the whole JSON-RPC call, None for other requests.
    `is_read` is set once the SDK has understood it, `refused` if a refusal needs its HTTP status, `error` if our
    handler refuses. `headers` are those of every response, `cookies` those that the action has set: agents do not see
    them, but a caller's HTTP client stores them.

    A message has a `call`, or the `problem` because of which it did not become one; `before` are the skill and the
    input that its task had before it. `event` is the event to which it subscribes, instead of a call. `is_new` means
    that its task began with it: then nothing is stored if the call is refused. `sent` is the message without a session.
    """

    # Class defaults, because most requests need few of them.
    body: bytes = b""
    size = 0
    document: object = None
    envelope: Mapping[str, object] | None = None
    extensions: set[str]
    is_read = False
    error: A2AError | None = None
    refused: Problem | None = None
    cookies: RawHeaders = ()
    record: TaskRecord
    before: tuple[str, JsonObject | None] = ("", None)
    is_new = True
    problem: Problem | None = None
    event: tuple[Event, JsonObject] | None = None
    sent: Message
    is_background = False
    _is_disconnected = False

    def __init__(self, renderer: ProblemRenderer, cors: Cors, scope: Scope, receive: Receive, send: Send) -> None:
        super().__init__(renderer, cors, scope, receive, send)
        self.headers = self._cors
        self.cancelled = asyncio.Event()
        self._leaving = asyncio.Lock()

    async def disconnected(self) -> None:
        """Return when the client has disconnected. Several tasks may wait; only one of them reads."""
        async with self._leaving:
            if not self._is_disconnected:
                await super().disconnected()
                self._is_disconnected = True


class Callers:
    """Who sends a request, and what they may see."""

    def __init__(self, door: Context) -> None:
        self._trusted = door.admission.trusted_proxies
        self._identify = door.guards.identify()
        self._identify_uncounted = replace(self._identify, store=None)

    def address(self, request: A2aRequest) -> str:
        """Return the address that a request came from."""
        return client_address(request.scope, request.fields, self._trusted)

    async def principal(self, request: A2aRequest, *, of_call: bool = False) -> Principal | None:
        """Return the caller, None if unknown. Raises a Problem for invalid credentials.

        With `of_call` wrong credentials are ignored: the call itself reports and counts them.
        """
        identify = self._identify_uncounted if of_call else self._identify
        try:
            return await identify(read_credentials(request.scope, request.fields, self._trusted))
        except Problem:
            if of_call:
                return None
            raise

    async def key(self, request: A2aRequest, *, of_call: bool = False) -> str:
        """Return the key of the caller, "" if unknown. Raises a Problem for invalid credentials."""
        return key_of(await self.principal(request, of_call=of_call))

    async def may_see(self, action: Action, request: A2aRequest) -> bool:
        """Return True if the caller of a request may know of an action."""
        if action.is_public:
            return True
        principal = await self.principal(request, of_call=True)
        return action.is_for(principal.scopes if principal is not None else None)


def key_of(caller: Principal | None) -> str:
    """Return the key of a caller, "" for an unknown one."""
    return caller.key if caller is not None else ""
