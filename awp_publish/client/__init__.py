"""`AgentClient`: calls a site's actions as agents do, through any door. For tests, and for scripts against a live site.

with AgentClient(app) as client:
    assert client.call("order_book", slug="emma")["status"] == "ordered"

An application is called in process, on an event loop in a thread of its own and inside the application's lifespan; an
address is called over HTTP. No further package is needed, except `websockets` for the AWP door of a remote site.
"""

import base64
import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, Final, Protocol, TypeAlias
from urllib.parse import quote, urlsplit

from awp_publish.calls.wire import (
    Answer as Answer,
    CallFailed as CallFailed,
    NotYet,
    Wire,
    WireCall,
    WireRequest,
    WireResponse,
    mapping,
    protocol_in,
    root_in,
    unreadable,
)
from awp_publish.client.in_process import InProcess
from awp_publish.client.network import Network
from awp_publish.documents.members import WOA_PATH
from awp_publish.http.exchange import AsgiApp
from awp_publish.http.talk import TalkFailed
from awp_publish.plugin import installed, wires_of
from awp_publish.schema.media import is_json

Confirm: TypeAlias = Callable[[str], bool] | bool

POLL_SECONDS: Final = 0.05
MAX_POLL_SECONDS: Final = 2.0
"""Seconds between two polls of a job, at first and at most."""

MAX_RETRY_SECONDS: Final = 5.0
"""The longest Retry-After, in seconds, after which a refused call is sent once more."""

RETRIED: Final = frozenset({"RATE_LIMITED", "TEMPORARILY_UNAVAILABLE", "STORE_UNAVAILABLE", "HANDLER_UNAVAILABLE"})
"""Refusals of calls that did not take effect and may be sent again after Retry-After."""

ASKED_AGAIN: Final = frozenset({"CONFIRMATION_EXPIRED", "CONFIRMATION_STALE", "CONFIRMATION_SPENT"})
"""Refusals of a confirmation token that come with a new question."""


def doors() -> Mapping[str, Wire]:
    """Return the doors through which `AgentClient` calls, by name: those of installed plug-ins."""
    return wires_of(installed().values())


class _Transport(Protocol):
    prefix: str

    def request(self, method: str, path: str, headers: Mapping[str, str], body: bytes) -> WireResponse: ...

    def talk(
        self, path: str, headers: Mapping[str, str], messages: Sequence[Mapping[str, Any]]
    ) -> list[dict[str, Any]]: ...

    def close(self) -> None: ...


class AgentClient:
    """Calls the actions of a site through one door.

    `target` is an ASGI application, or the address of a site (`https://books.example`). `door` is one of `doors()`, or
    the `Wire` of another. The paths of doors are read from the site's documents, /agent.json first; without a `door`
    the first one that they name is used. `token` is sent as a bearer token, `headers` with every request. `confirm`
    answers the questions that a person would be asked: a function of the summary, or True or False for all of them;
    without it a question raises CallFailed with CONFIRMATION_REQUIRED. Sessions and receipts are kept from call to
    call, and background jobs are awaited for up to `timeout` seconds. A refusal that can be remedied (by waiting a
    moment, or with a new session) is retried once.

    Requests go only to the target, whatever its documents and redirects name (WoA section 8.2): of a published address
    only the path is used. A name that resolves to a private address is refused without `allow_private`, except
    `localhost`, names without a dot and IP addresses, which are evidently private or not.
    """

    def __init__(
        self,
        target: AsgiApp | str,
        *,
        door: str | Wire | None = None,
        token: str | None = None,
        headers: Mapping[str, str] | None = None,
        confirm: Confirm | None = None,
        timeout: float = 30.0,
        allow_private: bool = False,
    ) -> None:
        self._wire = _wire_of(door) if door is not None else None
        if isinstance(target, str):
            self._transport: _Transport = Network(target, timeout, allow_private)
        elif callable(target):
            self._transport = InProcess(target, timeout)
        else:
            raise TypeError(f"AgentClient takes an ASGI application or an address, not a {type(target).__name__}.")
        self._documents: dict[str, Mapping[str, Any]] = {}
        self.headers = {name.lower(): value for name, value in (headers or {}).items()}
        if token is not None:
            self.headers["authorization"] = f"Bearer {token}"
        self.confirm = confirm
        self.timeout = timeout
        self.session: str | None = None
        """The session that the site has issued last. It is sent with the next call."""
        self.receipts: dict[str, str] = {}
        """The receipts of successful calls, by action. They are sent with the next call."""

    def __enter__(self) -> "AgentClient":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the application's lifespan, if it was called in process."""
        self._transport.close()

    def through(self, door: str | Wire) -> "AgentClient":
        """Return a client at another door: the same caller and application, with a session and receipts of its own."""
        other = object.__new__(AgentClient)
        other.__dict__.update(self.__dict__)
        other._wire, other.session, other.receipts = _wire_of(door), None, {}
        return other

    @property
    def door(self) -> str:
        """The name of the door that calls go through."""
        return self._chosen.name

    @property
    def _chosen(self) -> Wire:
        if self._wire is None:
            wires = tuple(doors().values())
            self._wire = next((wire for wire in wires if wire.address_in(self._read)), wires[0])
        return self._wire

    def _read(self, path: str) -> Mapping[str, Any]:
        """Return a document of the site, or an empty mapping if it does not exist or is not readable."""
        if path not in self._documents:
            self._documents[path] = {}
            with suppress(CallFailed, ValueError, RecursionError):
                self._documents[path] = mapping(self.document(path))
            if isinstance(self._transport, InProcess) and (domain := self._documents[path].get("domain")):
                self._transport.host = str(domain)
        return self._documents[path]

    def _path_below(self, address: object) -> str:
        """Return the path of a published address below the target, "" if it has none."""
        path, mark, query = _path_of(address).partition("?")
        own = _path_of(protocol_in(self._read, "woa").get("document"))
        prefix = self._transport.prefix or (own.removesuffix(WOA_PATH) if own.endswith(WOA_PATH) else "")
        return f"/{path.removeprefix(prefix).lstrip('/')}{mark}{query}" if path else ""

    def call(self, action: str, inputs: Mapping[str, Any] | None = None, /, **more: Any) -> Any:
        """Call an action with these inputs and return its output. Raises CallFailed.

        A file is bytes, or a tuple of its name, its bytes and, if it is known, its media type.
        """
        return self.send(action, {**(inputs or {}), **more}).output

    def send(self, action: str, inputs: Mapping[str, Any] | None = None, *, key: str | None = None) -> Answer:
        """Call an action, optionally with an idempotency `key`, and return the whole answer. Raises CallFailed."""
        call = WireCall(
            action=action,
            inputs={name: _in_json(value) for name, value in (inputs or {}).items()},
            key=key or "",
            receipts=tuple(self.receipts.values()),
            session=self.session or "",
        )
        followed = set[str]()
        while True:
            try:
                answer = self._exchange(call)
                break
            except CallFailed as failed:
                question = failed.problem.get("confirmation")
                if failed.code in followed:
                    raise
                followed.add(failed.code)
                if isinstance(question, Mapping) and (failed.status == 428 or failed.code in ASKED_AGAIN):
                    summary = str(question.get("summary", ""))
                    if self.confirm is None or not (self.confirm(summary) if callable(self.confirm) else self.confirm):
                        raise
                    call = replace(call, confirmation=str(question.get("token")))
                    if not _fits_header(call.confirmation):
                        raise
                elif failed.code == "SESSION_UNKNOWN" and self.session is not None:
                    self.session = None
                    call = replace(call, session="")
                else:
                    pause = failed.headers.get("retry-after", "")
                    if failed.code not in RETRIED or not pause.isdecimal() or float(pause) > MAX_RETRY_SECONDS:
                        raise
                    time.sleep(float(pause))
        if _fits_header(session := answer.headers.get("awp-session", "")):
            self.session = session
        if _fits_header(receipt := answer.headers.get("awp-receipt", "")):
            self.receipts[action] = receipt
        output = answer.output
        if isinstance(output, Mapping) and {"job_id", "poll_endpoint"} <= output.keys():
            return replace(answer, output=self._wait(action, str(output["poll_endpoint"])))
        return answer

    def document(self, path: str) -> Any:
        """Return the document at a path such as `/.well-known/woa.json`: the text of one that is not JSON.

        Raises CallFailed if there is none.
        """
        answer = self._transport.request("GET", path, self.headers, b"")
        if answer.status != 200:
            raise CallFailed(
                path, {"status": answer.status, "code": "NO_DOCUMENT", "detail": "The site has no such document."}
            )
        return answer.json() if is_json(answer.media_type) else answer.body.decode()

    def _exchange(self, call: WireCall) -> Answer:
        """Send the requests of a call until its answer is there. Raises CallFailed, TimeoutError."""
        wire = self._chosen
        request = wire.write(call, self._path_below(wire.address_in(self._read)) or wire.path)
        polls = self._polls(f"{call.action} has not ended within {self.timeout:g} seconds.")
        while True:
            answer = wire.decode(call, request, self._transmit(call.action, request))
            if not isinstance(answer, NotYet):
                return answer
            request = answer.request
            if answer.is_running:
                next(polls)

    def _transmit(self, action: str, request: WireRequest) -> WireResponse:
        headers = {name.lower(): value for name, value in (*self.headers.items(), *request.headers)}
        if not request.frames:
            return self._transport.request(request.method, request.path, headers, request.content())
        try:
            answers = self._transport.talk(request.path, headers, request.frames)
        except TalkFailed as failed:
            if failed.body:
                return WireResponse(failed.status, {}, failed.body)
            raise CallFailed(action, {"status": failed.status, "detail": str(failed)}) from failed
        return WireResponse(101, {}, json.dumps(answers[-1]).encode())

    def _polls(self, expired: str) -> Iterator[None]:
        """Pause before each poll. Raises TimeoutError after the client's timeout."""
        until, pause = time.monotonic() + self.timeout, POLL_SECONDS
        while True:
            if time.monotonic() > until:
                raise TimeoutError(expired)
            time.sleep(pause)
            pause = min(pause * 2, MAX_POLL_SECONDS)
            yield

    def _wait(self, action: str, address: str) -> Any:
        """Return the result of a background job as soon as it has ended. Raises CallFailed, TimeoutError."""
        path = _path_of(address).partition("?")[0].removeprefix(self._transport.prefix)
        jobs = f"{self._path_below(root_in(self._read))}/jobs/"
        path = path[path.index(jobs) :] if jobs in path else path
        polls = self._polls(f"{action} has not ended within {self.timeout:g} seconds.")
        while True:
            answer = self._transport.request("GET", path, self.headers, b"")
            if answer.status >= 400:
                raise CallFailed(action, answer.problem(), answer.headers)
            try:
                job = answer.json()
                if "result" in job:
                    return job["result"]
                if "problem" in job:
                    raise CallFailed(action, job["problem"], answer.headers)
                if not job["status"]:
                    raise ValueError("a job without a status")
            except (ValueError, TypeError, LookupError, AttributeError, RecursionError) as error:
                raise unreadable(action, answer, error) from error
            next(polls)


def _wire_of(door: str | Wire) -> Wire:
    if isinstance(door, Wire):
        return door
    if (wire := doors().get(door)) is None:
        known = ", ".join(doors())
        raise ValueError(f"There is no door {door!r}. There are: {known}. For that of your own plug-in, give its Wire.")
    return wire


def _in_json(value: Any) -> Any:
    """Return an input as JSON has it: files in base64, with their names if they have some."""
    match value:
        case bytes() | bytearray() | memoryview():
            return base64.b64encode(value).decode()
        case (str() as name, bytes() | bytearray() | memoryview() as content):
            return {"filename": name, "content": _in_json(content)}
        case (str() as name, bytes() | bytearray() | memoryview() as content, str() as kind):
            return {"filename": name, "content_type": kind, "content": _in_json(content)}
        case list() | tuple():
            return [_in_json(item) for item in value]
        case Mapping():
            return {name: _in_json(item) for name, item in value.items()}
    return value


def _fits_header(value: str) -> bool:
    return bool(value) and value.isascii() and value.isprintable()


def _path_of(address: object) -> str:
    """Return the path and query of an address as they are sent, "" if there are none."""
    try:
        parts = urlsplit(address if isinstance(address, str) else "")
    except ValueError:
        return ""
    path = f"{parts.path}?{parts.query}" if parts.query else parts.path
    return quote(path, safe="%/:?#[]@!$&'()*+,;={}~", errors="replace")
