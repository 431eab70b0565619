"""`AgentClient`: calls a site's actions as agents do, through any door. For tests, and for scripts against a live site.

with AgentClient(app) as client:
    assert client.call("order_book", slug="emma")["status"] == "ordered"

An application is called in process, on an event loop in a thread of its own and inside the application's lifespan; an
address is called over HTTP. No further package is needed, except `websockets` for the AWP door of a remote site.
"""

import base64
import json
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from ipaddress import ip_address
from socket import SHUT_RDWR
from threading import Timer
from typing import Any, Final, Literal, Protocol, TypeAlias, cast
from urllib.parse import quote, urlsplit

from awp_publish.http.exchange import AsgiApp
from awp_publish.http.in_process import InProcess, Response
from awp_publish.http.outgoing import (
    AddressNotPublic,
    AnswerTooLarge,
    Deadline,
    OutOfTime,
    TooManyRedirects,
    connect,
    request,
)
from awp_publish.http.talk import TalkFailed
from awp_publish.model import Paths
from awp_publish.schema import media

Door: TypeAlias = Literal["woa", "plain", "mcp", "a2a", "awp"]
Confirm: TypeAlias = Callable[[str], bool] | bool

DOORS: Final[tuple[Door, ...]] = ("woa", "plain", "mcp", "a2a", "awp")
MCP_VERSION: Final = "2026-07-28"
METHODS: Final = frozenset({"GET", "POST", "PUT", "PATCH", "DELETE"})
POLL_SECONDS: Final = 0.05
MAX_POLL_SECONDS: Final = 2.0
"""Seconds between two polls of a job, at first and at most."""

MAX_BYTES: Final = 16 * 1024 * 1024
"""Bytes of one response over the network, at most."""

MAX_REDIRECTS: Final = 3
CLOSE_SECONDS: Final = 1.0
"""Seconds for which a closed WebSocket is waited for."""

MAX_RETRY_SECONDS: Final = 5.0
"""The longest Retry-After, in seconds, after which a refused call is sent once more."""

RETRIED: Final = frozenset({"RATE_LIMITED", "TEMPORARILY_UNAVAILABLE", "STORE_UNAVAILABLE", "HANDLER_UNAVAILABLE"})
"""Refusals of calls that did not take effect and may be sent again after Retry-After."""

ASKED_AGAIN: Final = frozenset({"CONFIRMATION_EXPIRED", "CONFIRMATION_STALE", "CONFIRMATION_SPENT"})
"""Refusals of a confirmation token that come with a new question."""


class CallFailed(Exception):
    """A call was refused or failed. `problem` has the members of the site's problem, among them `code` and `status`."""

    def __init__(self, action: str, problem: Mapping[str, Any], headers: Mapping[str, str] | None = None) -> None:
        self.action = action
        self.problem = dict(problem)
        self.code = str(problem.get("code", ""))
        self.status = _status_in(problem)
        self.headers = dict(headers or {})
        super().__init__(f"{action}: {self.code} ({self.status}): {problem.get('detail', '')}")


def _status_in(problem: Mapping[str, Any]) -> int:
    """Return the HTTP status that a problem names, 0 if it names none."""
    status = problem.get("status")
    if isinstance(status, str) and status.isascii() and status.isdecimal() and len(status) == 3:
        status = int(status)
    if not isinstance(status, (int, float)) or isinstance(status, bool):
        return 0
    return int(status) if 100 <= status <= 999 else 0


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to a call: its output, and the HTTP headers or the corresponding members of the door's envelope.

    A file is an output of bytes, with its media type and its name if the site gives them.
    """

    output: Any
    headers: Mapping[str, str] = field(default_factory=dict)
    media_type: str = ""
    filename: str = ""

    @property
    def is_replayed(self) -> bool:
        return self.headers.get("idempotent-replayed") == "true"


class _Transport(Protocol):
    prefix: str

    def request(self, method: str, path: str, headers: Mapping[str, str], body: bytes) -> Response: ...

    def talk(self, path: str, headers: Mapping[str, str], messages: list[dict[str, Any]]) -> list[dict[str, Any]]: ...

    def close(self) -> None: ...


class AgentClient:
    """Calls the actions of a site through one door.

    `target` is an ASGI application, or the address of a site (`https://books.example`). The paths of its doors are read
    from its documents, /agent.json first; without a `door` the first of DOORS that they name is used. `token` is sent
    as a bearer token, `headers` with every request. `confirm` answers the questions that a person would be asked: a
    function of the summary, or True or False for all of them; without it a question raises CallFailed with
    CONFIRMATION_REQUIRED. Sessions and receipts are kept from call to call, and background jobs are awaited for up to
    `timeout` seconds. A refusal that can be remedied (by waiting a moment, or with a new session) is retried once.

    Requests go only to the target, whatever its documents and redirects name (WoA section 8.2): of a published address
    only the path is used. A name that resolves to a private address is refused without `allow_private`, except
    `localhost`, names without a dot and IP addresses, which are evidently private or not.
    """

    def __init__(
        self,
        target: AsgiApp | str,
        *,
        door: Door | None = None,
        token: str | None = None,
        headers: Mapping[str, str] | None = None,
        confirm: Confirm | None = None,
        timeout: float = 30.0,
        allow_private: bool = False,
    ) -> None:
        if door is not None and door not in DOORS:
            raise ValueError(f"There is no door {door!r}. There are: {', '.join(DOORS)}.")
        if isinstance(target, str):
            self._transport: _Transport = _Network(target, timeout, allow_private)
        elif callable(target):
            self._transport = InProcess(target, timeout)
        else:
            raise TypeError(f"AgentClient takes an ASGI application or an address, not a {type(target).__name__}.")
        self._door = door
        self._found: dict[str, str] | None = None
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

    def through(self, door: Door) -> "AgentClient":
        """Return a client at another door: the same caller and application, with a session and receipts of its own."""
        other = object.__new__(AgentClient)
        other.__dict__.update(self.__dict__)
        other._door, other.session, other.receipts = door, None, {}
        return other

    @property
    def door(self) -> Door:
        """The door that calls go through."""
        if self._door is not None:
            return self._door
        door: Door = next((one for one in DOORS if one in self._addresses()), "woa")
        self._door = door
        return door

    def _addresses(self) -> dict[str, str]:
        """Return the path of each door that the site's documents name, and of its `root`."""
        if self._found is not None:
            return self._found
        site, named = self._read("/agent.json"), {}
        protocols = _members(site.get("protocols"))
        own = _path_of(_members(protocols.get("x-woa")).get("document"))
        prefix = own.removesuffix("/.well-known/woa.json") if own.endswith("/.well-known/woa.json") else ""
        for door, name in (("woa", "x-woa"), ("mcp", "mcp"), ("a2a", "a2a"), ("awp", "x-awp")):
            named[door] = _members(protocols.get(name)).get("endpoint")
        if not named["woa"]:
            rest = _members(_members(self._read("/.well-known/woa.json").get("transports")).get("rest"))
            if rest:
                path = str(rest.get("invoke_path") or Paths().invoke)
                named["woa"] = f"{str(rest.get('base') or '').rstrip('/')}{path}"
        if not named["mcp"]:
            remotes = self._read("/.well-known/mcp/server-card.json").get("remotes")
            first = remotes[0] if isinstance(remotes, list) and remotes else None
            named["mcp"] = _members(first).get("url")
        if not named["a2a"]:
            offered = self._read("/.well-known/agent-card.json").get("supportedInterfaces")
            spoken = [_members(one) for one in offered] if isinstance(offered, list) else []
            named["a2a"] = next((one.get("url") for one in spoken if one.get("protocolBinding") == "JSONRPC"), None)
        status = _members(site.get("agent_status")).get("status_endpoint")
        below = [(_members(protocols.get("x-som")).get("endpoint"), "/som"), (status, "/status")]
        actions = site.get("actions")
        for action in actions if isinstance(actions, list) else ():
            below.append((_members(action).get("endpoint"), f"/actions/{_members(action).get('id')}"))
        for address, end in below:
            if isinstance(address, str) and "root" not in named and _path_of(address).endswith(end):
                named["root"] = address.removesuffix(end)
        self._found = {}
        for name, address in named.items():
            if path := _path_of(address):
                path, mark, query = path.partition("?")
                path = f"/{path.removeprefix(self._transport.prefix or prefix).lstrip('/')}"
                self._found[name] = f"{path}{mark}{query}"
        if actions:
            self._found["plain"] = ""
        return self._found

    def _read(self, path: str) -> Mapping[str, Any]:
        """Return a document of the site, or an empty mapping if it does not exist or is not readable."""
        with suppress(CallFailed, ValueError, RecursionError):
            return _members(self.document(path))
        return {}

    def call(self, action: str, inputs: Mapping[str, Any] | None = None, /, **more: Any) -> Any:
        """Call an action with these inputs and return its output. Raises CallFailed.

        A file is bytes, or a tuple of its name, its bytes and, if it is known, its media type.
        """
        return self.send(action, {**(inputs or {}), **more}).output

    def send(self, action: str, inputs: Mapping[str, Any] | None = None, *, key: str | None = None) -> Answer:
        """Call an action, optionally with an idempotency `key`, and return the whole answer. Raises CallFailed."""
        given: dict[str, Any] = {name: _in_json(value) for name, value in (inputs or {}).items()}
        confirmation, followed = None, set[str]()
        other = {"mcp": self._over_mcp, "a2a": self._over_a2a, "awp": self._over_awp}
        over = other.get(self.door, self._over_http)
        while True:
            try:
                answer = over(action, given, key, confirmation, list(self.receipts.values()))
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
                    confirmation = str(question.get("token"))
                    if not _fits_header(confirmation):
                        raise
                elif failed.code == "SESSION_UNKNOWN" and self.session is not None:
                    self.session = None
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
        """Return the JSON document at a path such as `/.well-known/woa.json`. Raises CallFailed if there is none."""
        answer = self._transport.request("GET", path, self.headers, b"")
        if answer.status != 200:
            raise CallFailed(path, {"status": answer.status, "code": "NO_DOCUMENT", "detail": "There is none."})
        return answer.json()

    def _over_http(
        self, action: str, inputs: dict[str, Any], key: str | None, confirmation: str | None, receipts: list[str]
    ) -> Answer:
        beside = {
            "idempotency-key": key,
            "awp-confirmation": confirmation,
            "awp-receipt": ", ".join(receipts) or None,
            "awp-session": self.session if self.door == "plain" else None,
        }
        headers = {**self.headers, **{name: value for name, value in beside.items() if value is not None}}
        if self.door == "woa":
            agent, _, operation = action.partition(".")
            envelope = {"input": inputs, **({"operation": operation} if operation else {})}
            envelope |= {"session": self.session} if self.session is not None else {}
            template = self._addresses().get("woa", Paths().invoke)
            answer = self._post(template.replace("{agent_id}", quote(agent, safe="")), envelope, headers)
        else:
            path = f"{self._root}/actions/{quote(action, safe='')}"
            answer = self._post(path, inputs, headers)
            if answer.status == 405:  # the action takes the method of its route
                method = answer.headers.get("allow", "").partition(",")[0].strip()
                answer = self._post(path, inputs, headers, method if method in METHODS else "GET")
        kind = answer.headers.get("content-type", "").partition(";")[0]
        if answer.status >= 400 or kind == "application/problem+json":
            raise CallFailed(action, _problem_in(answer), answer.headers)
        if kind == "application/json" or kind.endswith("+json"):
            with _reading(action, answer):
                return _with_content(answer.json(), answer.headers)
        is_text = media.is_text(kind)
        _, name = media.read_header(answer.headers.get(_CONTENT, "").encode("latin-1", "replace"))
        return Answer(answer.body.decode("utf-8", "replace") if is_text else answer.body, answer.headers, kind, name)

    def _over_mcp(
        self, action: str, inputs: dict[str, Any], key: str | None, confirmation: str | None, receipts: list[str]
    ) -> Answer:
        named = {"idempotencyKey": key, "confirmation": confirmation, "receipts": receipts or None}
        meta: dict[str, object] = {f"awp/{name}": value for name, value in named.items() if value is not None}
        own = "io.modelcontextprotocol/"
        meta |= {f"{own}protocolVersion": MCP_VERSION, f"{own}clientCapabilities": {}}
        arguments = {**inputs, **({"session": self.session} if self.session is not None else {})}
        params = {"name": action, "arguments": arguments, "_meta": meta}
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        headers = {
            **self.headers,
            "accept": "application/json, text/event-stream",
            "mcp-protocol-version": MCP_VERSION,
            "mcp-method": "tools/call",
            "mcp-name": action,
        }
        answer = self._post(self._addresses().get("mcp", Paths().mcp), message, headers)
        with _reading(action, answer):
            return _read_mcp(action, answer)

    def _over_a2a(
        self, action: str, inputs: dict[str, Any], key: str | None, confirmation: str | None, receipts: list[str]
    ) -> Answer:
        beside = {"idempotency_key": key, "confirmation": confirmation, "receipts": receipts or None}
        beside |= {"session": self.session}
        data = {
            "skill": action,
            "input": inputs,
            **{name: value for name, value in beside.items() if value is not None},
        }
        message = {"messageId": f"m-{time.time_ns()}", "role": "ROLE_USER", "parts": [{"data": data}]}
        task = self._send_a2a(action, "SendMessage", {"message": message}, lambda result: result["task"])
        until, pause = time.monotonic() + self.timeout, POLL_SECONDS
        while task.state in ("TASK_STATE_SUBMITTED", "TASK_STATE_WORKING"):
            if time.monotonic() > until:
                raise TimeoutError(f"{action} has not ended within {self.timeout:g} seconds.")
            time.sleep(pause)
            pause = min(pause * 2, MAX_POLL_SECONDS)
            task = self._send_a2a(action, "GetTask", {"id": task.id})
        with _reading(action):
            return task.read(action)

    def _send_a2a(
        self, action: str, method: str, params: object, task_in: Callable[[Any], Any] = lambda result: result
    ) -> "_Task":
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        answer = self._post(self._addresses().get("a2a", Paths().a2a), body, {**self.headers, "a2a-version": "1.0"})
        with _reading(action, answer):
            message = answer.json()
            if not isinstance(message, dict) or message.keys().isdisjoint(("error", "result")):
                problem = {"status": answer.status, "detail": f"The A2A door does not answer (HTTP {answer.status})."}
                raise CallFailed(action, problem, answer.headers)
            if "error" in message:
                data = message["error"].get("data") or [{}]
                metadata = data[0].get("metadata") if isinstance(data, list) and data else None
                raise CallFailed(action, metadata or {"detail": message["error"].get("message", "")}, answer.headers)
            task = task_in(message["result"])
            return _Task(str(task["id"]), str(task["status"]["state"]), task)

    def _over_awp(
        self, action: str, inputs: dict[str, Any], key: str | None, confirmation: str | None, receipts: list[str]
    ) -> Answer:
        hello = {"client_name": "awp_publish.client", "client_version": "1", "awp_version": "0.1"}
        params: dict[str, Any] = {"skill": action, "args": inputs, "receipts": receipts}
        params |= {"confirmation": confirmation} if confirmation is not None else {}
        params |= {"session": self.session} if self.session is not None else {}
        meta = {} if key is None else {"meta": {"idempotency_key": key}}
        messages: list[dict[str, Any]] = [
            {"id": "1", "type": "request", "method": "awp.hello", "params": hello},
            {"id": "2", "type": "request", "method": "skills.invoke", "params": params, **meta},
        ]
        try:
            answers = self._transport.talk(self._addresses().get("awp", Paths().awp), self.headers, messages)
        except TalkFailed as failed:
            raise CallFailed(action, {"status": failed.status, "detail": str(failed)}) from failed
        with _reading(action):
            return _read_awp(action, answers)

    def _post(self, path: str, body: object, headers: Mapping[str, str], method: str = "POST") -> Response:
        sent = json.dumps(body).encode()
        return self._transport.request(method, path, {**headers, "content-type": "application/json"}, sent)

    @property
    def _root(self) -> str:
        return self._addresses().get("root", Paths().root)

    def _wait(self, action: str, address: str) -> Any:
        """Return the result of a background job as soon as it has ended. Raises CallFailed, TimeoutError."""
        path = _path_of(address).partition("?")[0].removeprefix(self._transport.prefix)
        jobs = f"{self._root}/jobs/"
        path = path[path.index(jobs) :] if jobs in path else path
        until, pause = time.monotonic() + self.timeout, POLL_SECONDS
        while True:
            answer = self._transport.request("GET", path, self.headers, b"")
            if answer.status >= 400:
                raise CallFailed(action, _problem_in(answer), answer.headers)
            with _reading(action, answer):
                job = answer.json()
                if "result" in job:
                    return job["result"]
                if "problem" in job:
                    raise CallFailed(action, job["problem"], answer.headers)
                status = str(job["status"])
            if time.monotonic() > until:
                raise TimeoutError(f"{action} has not ended within {self.timeout:g} seconds: its job is {status}.")
            time.sleep(pause)
            pause = min(pause * 2, MAX_POLL_SECONDS)


_CONTENT: Final = media.HEADER.decode()


def _with_content(output: Any, headers: Mapping[str, str]) -> Answer:
    """Return the answer for an output in JSON, which stands for a file if a header says so."""
    if _CONTENT not in headers or not isinstance(output, str):
        return Answer(output, headers)
    kind, name = media.read_header(headers[_CONTENT].encode("latin-1", "replace"))
    if not media.is_text(kind):
        with suppress(ValueError):
            output = base64.b64decode(output, validate=True)
    return Answer(output, headers, kind, name)


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


def _members(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


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


def _header_members(members: object, underscored: bool = False) -> dict[str, str]:
    """Return the HTTP headers that an envelope has as members; those of AWP have underscores instead of hyphens."""
    items = _members(members).items()
    return {name.replace("_", "-") if underscored else name: text for name, text in items if isinstance(text, str)}


def _problem_in(answer: Response) -> dict[str, Any]:
    try:
        problem = answer.json()
    except (ValueError, RecursionError):
        problem = None
    if isinstance(problem, dict) and "code" in problem:
        return {**problem, "status": _status_in(problem) or answer.status}
    return {"status": answer.status, "code": "", "detail": answer.body[:200].decode("utf-8", "replace")}


@contextmanager
def _reading(action: str, answer: Response | None = None) -> Iterator[None]:
    """Raise CallFailed for an answer that is not built as its door's protocol demands."""
    try:
        yield
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError) as error:
        status, headers = (answer.status, answer.headers) if answer is not None else (0, {})
        detail = f"The answer cannot be read: {type(error).__name__}."
        raise CallFailed(action, {"status": status, "code": "UNREADABLE_ANSWER", "detail": detail}, headers) from error


def _read_mcp(action: str, answer: Response) -> Answer:
    response = answer.json()
    if "error" in response or "result" not in response:
        error = response.get("error", {})
        problem = error.get("data") if isinstance(error.get("data"), Mapping) else response
        if "detail" not in problem:
            detail = error.get("message") or f"The MCP door does not answer (HTTP {answer.status})."
            problem = {"detail": detail, "status": answer.status}
        raise CallFailed(action, problem, answer.headers)
    result = response["result"]
    meta = _members(result.get("_meta"))
    headers = _header_members(meta.get("awp/headers"))
    if result.get("isError"):
        problem = meta.get("awp/problem") or {"detail": result["content"][0].get("text", "")}
        raise CallFailed(action, problem, headers)
    if "structuredContent" in result:
        return _with_content(result["structuredContent"], headers)
    block = result["content"][0]
    if block["type"] == "text":
        return Answer(block["text"], headers)
    resource = block.get("resource", block)
    _, name = media.read_header(headers.get(_CONTENT, "").encode("latin-1", "replace"))
    if "text" in resource:
        return Answer(resource["text"], headers, str(resource.get("mimeType", "")), name)
    content = base64.b64decode(resource.get("blob") or resource["data"])
    return Answer(content, headers, str(resource.get("mimeType", "")), name)


@dataclass(frozen=True, slots=True)
class _Task:
    """A task of A2A."""

    id: str
    state: str
    members: Mapping[str, Any]

    def read(self, action: str) -> Answer:
        task = self.members
        headers = _header_members(_members(task.get("metadata")).get("headers"))
        if self.state != "TASK_STATE_COMPLETED":
            parts = _members(task["status"].get("message")).get("parts", [])
            problem = next((part["data"] for part in parts if isinstance(part.get("data"), Mapping)), None)
            raise CallFailed(action, problem or {"detail": self.state}, headers)
        part = task["artifacts"][0]["parts"][0]
        if "raw" in part:
            about = str(part.get("mediaType", "")), str(part.get("filename", ""))
            return Answer(base64.b64decode(part["raw"]), headers, *about)
        return Answer(part["data"] if "data" in part else part.get("text"), headers)


def _read_awp(action: str, answers: list[dict[str, Any]]) -> Answer:
    for message in answers:
        if "error" in message:
            details = message["error"].get("details", {})
            problem = details if "detail" in details else {**details, "detail": message["error"].get("message", "")}
            raise CallFailed(action, problem, _header_members(details.get("headers"), underscored=True))
    result = answers[-1]["result"]
    return _with_content(result["output"], _header_members(result.get("headers"), underscored=True))


class _Network:
    """A site at an address, over HTTP. Redirects are followed only within that site."""

    def __init__(self, address: str, timeout: float, allow_private: bool) -> None:
        parts = urlsplit(address)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"{address!r} is not the address of a site. Write https://books.example, for instance.")
        self._parts = parts
        self._timeout = timeout
        try:
            ip_address(parts.hostname)
            says_what_it_is = True
        except ValueError:
            says_what_it_is = "." not in parts.hostname or parts.hostname.endswith(".localhost")
        self._has_to_be_public = not (allow_private or says_what_it_is)
        self._authority = parts.netloc.rpartition("@")[2]
        self.prefix = parts.path.rstrip("/")

    def request(self, method: str, path: str, headers: Mapping[str, str], body: bytes) -> Response:
        def check(_: str, target: str, status: int) -> None:
            if not self._is_ours(target):
                raise _network_failed(path, "OFF_SITE_REDIRECT", f"{path} redirects to another site, {target[:200]}.")
            if status not in (307, 308) and method not in ("GET", "HEAD"):
                detail = f"{path} redirects to {target[:200]}: the call was not made. Give AgentClient that address."
                raise _network_failed(path, "REDIRECTED", detail)

        try:
            answer = request(
                method,
                f"{self._parts.scheme}://{self._authority}{self._below(path)}",
                headers=headers,
                body=body,
                deadline=Deadline(self._timeout),
                max_bytes=MAX_BYTES,
                is_public=self._has_to_be_public,
                max_redirects=MAX_REDIRECTS,
                check=check,
            )
        except AddressNotPublic as error:
            raise self._not_public(error) from None
        except AnswerTooLarge:
            detail = f"The answer of {path} has more than {MAX_BYTES} bytes."
            raise _network_failed(path, "ANSWER_TOO_LARGE", detail) from None
        except TooManyRedirects:
            raise _network_failed(path, "REDIRECTED", "Too many redirects.") from None
        except OutOfTime:
            raise OutOfTime(f"{path} was not answered within {self._timeout:g} seconds.") from None
        fields = {name.lower(): value for name, value in answer.headers.items()}
        return Response(answer.status, fields, answer.body)

    def _below(self, path: str) -> str:
        """Return a path below the target's, so that nothing in it becomes a part of the authority."""
        return f"{self.prefix}/{path.lstrip('/')}"

    def _is_ours(self, address: str) -> bool:
        """Return True if an address has the target's authority, or differs only by upgrading http to https."""
        try:
            parts = urlsplit(address)
            ports = [one.port or {"http": 80, "https": 443}.get(one.scheme) for one in (self._parts, parts)]
        except ValueError:
            return False
        if parts.hostname != self._parts.hostname or parts.scheme not in ("http", "https"):
            return False
        steps_up = (self._parts.scheme, parts.scheme) == ("http", "https") and ports == [80, 443]
        return steps_up or (parts.scheme == self._parts.scheme and ports[0] == ports[1])

    def _not_public(self, error: AddressNotPublic) -> CallFailed:
        detail = f"{error}. If that is meant, write AgentClient(..., allow_private=True)."
        return _network_failed(cast(str, self._parts.hostname), "PRIVATE_ADDRESS", detail)

    def talk(self, path: str, headers: Mapping[str, str], messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
        try:
            from websockets.exceptions import InvalidStatus, WebSocketException
            from websockets.sync.client import connect as open_websocket
        except ModuleNotFoundError:
            wanted = 'The AWP door of a site needs the package websockets: pip install "awp-publish[awp]".'
            raise RuntimeError(wanted) from None
        scheme = "wss" if self._parts.scheme == "https" else "ws"
        received: list[dict[str, Any]] = []
        deadline = Deadline(self._timeout)
        host, port = cast(str, self._parts.hostname), self._parts.port or (443 if scheme == "wss" else 80)
        try:
            connected = connect(host, port, deadline, is_public=self._has_to_be_public)
        except AddressNotPublic as error:
            raise self._not_public(error) from None

        def cut() -> None:
            with suppress(OSError):  # it is closed already
                connected.shutdown(SHUT_RDWR)

        # websockets has a time limit for each step, but none for all of them.
        timer = Timer(deadline.left(), cut)
        timer.daemon = True
        timer.start()
        try:
            with open_websocket(
                f"{scheme}://{self._authority}{self._below(path)}",
                sock=connected,
                additional_headers=dict(headers),
                open_timeout=deadline.left(),
                close_timeout=CLOSE_SECONDS,
                max_size=MAX_BYTES,
            ) as opened:
                left = MAX_BYTES
                for message in messages:
                    opened.send(json.dumps(message))
                    while True:
                        text = opened.recv(timeout=deadline.left())
                        left -= len(text)
                        if left < 0:
                            detail = f"The answers of {path} have more than {MAX_BYTES} bytes."
                            raise _network_failed(path, "ANSWER_TOO_LARGE", detail)
                        heard = json.loads(text)
                        if not isinstance(heard, dict):
                            raise TalkFailed("A message is not a JSON object.")
                        if heard.get("id") == message["id"]:
                            break
                    received.append(heard)
                    if "error" in heard:
                        break
        except InvalidStatus as refused:
            raise TalkFailed("The connection was refused.", refused.response.status_code) from None
        except (ValueError, RecursionError):
            raise TalkFailed("A message is not JSON.") from None
        except (TimeoutError, WebSocketException) as error:
            deadline.left()  # raises OutOfTime if that is what closed it
            raise TalkFailed(f"The connection was closed: {error}") from None
        finally:
            timer.cancel()
            connected.close()
        return received

    def close(self) -> None:
        """Do nothing: no connection stays open."""


def _network_failed(subject: str, code: str, detail: str) -> CallFailed:
    return CallFailed(subject, {"code": code, "status": 0, "detail": detail})
