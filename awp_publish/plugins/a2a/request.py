"""One request to the A2A door, and the SDK's response to it."""

import asyncio
import re
from abc import ABC, abstractmethod
from contextlib import suppress
from typing import Any, Final, cast

import orjson
from a2a.types.a2a_pb2 import Message as A2aMessage
from a2a.utils.constants import A2A_JSON_MEDIA_TYPE
from a2a.utils.errors import A2AError, InvalidParamsError

from awp_publish.calls.call import Result
from awp_publish.calls.wire import mapping
from awp_publish.http.accept import accepts
from awp_publish.http.cors import Cors
from awp_publish.http.exchange import NO_SNIFFING, Message, RawHeaders, Receive, Reply, Scope, Send
from awp_publish.http.problem_details import ProblemRenderer
from awp_publish.http.request import STATIC_HEADERS, DoorRequest
from awp_publish.model import Event, JsonObject
from awp_publish.plugins.a2a.record import TaskRecord
from awp_publish.plugins.a2a.tasks import describe
from awp_publish.plugins.a2a.wire import write_error_info, write_metadata
from awp_publish.problems import Problem
from awp_publish.schema.large_numbers import with_integers

DOOR: Final = "a2a"
REQUEST: Final = "awp_publish.a2a"
"""The key of the scope, and of the SDK's context, for the request."""

_OTHER_VERSION: Final = re.compile(r"A2A version '(.*)' is not supported.*'([\d.]+)'")

_JSON, _NO_STORE = STATIC_HEADERS[:2]
_A2A_JSON: Final = A2A_JSON_MEDIA_TYPE.encode()


class A2aRequest(DoorRequest, ABC):
    """One HTTP request, the task to which its message belongs, and the call that the message becomes.

    `document` are its parameters, strictly parsed. `is_read` is set once the SDK has understood it, `refused` if a
    refusal needs its HTTP status, `error` if our handler refuses. `headers` are those of every response, `cookies`
    those that the action has set: agents do not see them, but a caller's HTTP client stores them.

    A message has a `call`, or the `problem` because of which it did not become one; `before` are the skill and the
    input that its task had before it. `event` is the event to which it subscribes, instead of a call. `is_new` means
    that its task began with it: then nothing is stored if the call is refused. `sent` is the message without a session.
    """

    # Class defaults, because most requests need few of them.
    body: bytes = b""
    size = 0
    document: object = None
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
    sent: A2aMessage
    is_background = False
    _is_disconnected = False
    _start: Message | None = None
    _is_replaced = False

    def __init__(self, renderer: ProblemRenderer, cors: Cors, scope: Scope, receive: Receive, send: Send) -> None:
        super().__init__(renderer, cors, scope, receive, send)
        self.headers = self._cors
        self.cancelled = asyncio.Event()
        self._leaving = asyncio.Lock()

    @abstractmethod
    def refusal(self, problem: Problem) -> Reply:
        """Return the response for a problem of a request that the SDK does not get."""

    @abstractmethod
    def correction(self, start: Message, body: bytes) -> Reply | None:
        """Return a response to replace the SDK's, whose body begins with `body`, or None if that is right."""

    async def disconnected(self) -> None:
        """Return when the client has disconnected. Several tasks may wait; only one of them reads."""
        async with self._leaving:
            if not self._is_disconnected:
                await super().disconnected()
                self._is_disconnected = True

    async def deliver(self, result: Result) -> None:
        """Answer a request that the SDK does not get."""
        await self.reply(self.refusal(cast(Problem, result)))

    async def send(self, message: Message) -> None:
        """Send a part of the SDK's response. Its start is held back until the first part of its body is checked."""
        if message["type"] == "http.response.start":
            self._start = message
            return
        start, self._start = self._start, None
        body = sent = message.get("body", b"")
        if start is not None and (reply := self.correction(start, body)) is not None:
            self._is_replaced = True
            await self.reply(reply)
        if self._is_replaced:
            return
        if start is not None and isinstance(self.error, InvalidParamsError):
            sent = with_text_metadata(body)
        if b".0" in sent:
            sent = with_integers(sent)
        if sent is not body:
            message = {**message, "body": sent}
        if start is not None:
            await self._send(self._begin(start, len(sent)))
        await self._send(message)

    def _begin(self, start: Message, length: int) -> Message:
        """Return the start of the SDK's response, with our headers and the status of a refusal.

        JSON-RPC returns errors with 200, but a demand for credentials needs its HTTP status. A2A 1.0.0 has the media
        type application/json, 1.0.1 application/a2a+json: a caller gets the one that it accepts.
        """
        refused, status, own = self.refused, start["status"], self.own_headers(self.refused)
        if refused is not None and (status != 200 or refused.status in (401, 403)):
            status = refused.status
        names, headers = {name for name, _ in own}, list[tuple[bytes, bytes]]()
        for name, value in start.get("headers", ()):
            if value == _A2A_JSON and self._prefers_json:
                headers.append(_JSON)
            elif name == b"content-length":
                headers.append((name, b"%d" % length))
            elif name not in names:
                headers.append((name, value))
        return {**start, "status": status, "headers": [*headers, *own]}

    @property
    def _prefers_json(self) -> bool:
        accept, content_type = self.fields.get(b"accept", b""), self.fields.get(b"content-type", b"")
        sends_json = content_type.partition(b";")[0].strip().lower() == _JSON[1]
        return not accepts(accept, A2A_JSON_MEDIA_TYPE) or (_A2A_JSON not in accept and sends_json)

    def describe(self, problem: Problem) -> tuple[dict[str, Any], list[dict[str, Any]]]:
        """Return the members of a problem, and the details of an error that have the same."""
        described = describe(problem, self.renderer, self.request_id)
        return described, [write_error_info(problem.code, described)]

    def own_headers(self, problem: Problem | None) -> RawHeaders:
        """Return the headers of a response, for a problem with those of the problem."""
        added = problem.headers if problem is not None else ()
        pairs = tuple((name.lower().encode("latin-1"), value.encode("latin-1", "replace")) for name, value in added)
        request_id = (b"x-request-id", self.request_id.encode())
        return (*pairs, _NO_STORE, NO_SNIFFING, request_id, *self.cookies, *self.headers)

    def make_reply(self, status: int, answer: dict[str, Any], problem: Problem | None = None) -> Reply:
        body = orjson.dumps(answer)
        return Reply(status, (_JSON, (b"content-length", b"%d" % len(body)), *self.own_headers(problem)), body)


def with_text_metadata(body: bytes) -> bytes:
    """Return an error of the SDK with the metadata of google.rpc.ErrorInfo, which are texts; it writes a list there."""
    with suppress(orjson.JSONDecodeError):  # an event of a stream has no JSON alone
        answer = orjson.loads(body)
        error = mapping(mapping(answer).get("error"))
        for detail in error.get("details") or error.get("data") or ():
            if isinstance(detail, dict) and "metadata" in detail:
                detail["metadata"] = write_metadata(detail["metadata"])
        return orjson.dumps(answer)
    return body


def other_version(what: str, fault: str) -> str:
    """Return the message for a request of another version than its method or address, which the SDK's `fault` names."""
    versions = _OTHER_VERSION.match(fault)
    if versions is None:
        return ""
    own, sent = versions[2], versions[1][:20]
    return (
        f"{what} belongs to A2A {own}, and this is a request of {sent}: send the header A2A-Version: {own}. "
        "A request without it is one of 0.3."
    )
