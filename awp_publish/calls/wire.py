"""The client's side of a door: how a call is written for it, and how its answer is read. No I/O.

A plug-in lists the wires of its doors in `Plugin.wires`. `AgentClient`, the command line and the overview send calls
with these, so a door that brings its wire can be called from all three.
"""

import base64
import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from secrets import token_hex
from typing import Any, Final, TypeAlias

from awp_publish.documents.members import AGENT_JSON_PATH
from awp_publish.model import Action, Catalog, Paths
from awp_publish.schema import media

CONTENT: Final = media.HEADER.decode()
JSON_TYPE: Final = ("Content-Type", "application/json")

ReadDocument: TypeAlias = Callable[[str], Mapping[str, Any]]
"""Returns the JSON document at a path of a site, an empty mapping if there is none."""


class CallFailed(Exception):
    """A call was refused or failed. `problem` has the members of the site's problem, among them `code` and `status`."""

    def __init__(self, action: str, problem: Mapping[str, Any], headers: Mapping[str, str] | None = None) -> None:
        self.action = action
        self.problem = dict(problem)
        self.code = str(problem.get("code", ""))
        self.status = status_in(problem)
        self.headers = dict(headers or {})
        reason = f"{self.code} ({self.status})" if self.code else f"HTTP {self.status}" if self.status else ""
        super().__init__(": ".join(filter(None, (action, reason, str(problem.get("detail") or "")))))


@dataclass(frozen=True, slots=True, kw_only=True)
class WireCall:
    """A call to write. `declared` is its action if the writer has the site's catalog."""

    action: str
    inputs: Mapping[str, object]
    key: str = ""
    confirmation: str = ""
    receipts: Sequence[str] = ()
    session: str = ""
    message_id: str = field(default_factory=lambda: token_hex(8))
    declared: Action | None = None

    def members(self, key_field: str = "idempotency_key") -> dict[str, object]:
        """Return what accompanies the input, by the names of the members of an envelope."""
        named = {
            key_field: self.key,
            "confirmation": self.confirmation,
            "receipts": list(self.receipts),
            "session": self.session,
        }
        return {name: value for name, value in named.items() if value}

    def headers(self) -> tuple[tuple[str, str], ...]:
        """Return what accompanies the input, as HTTP headers."""
        named = {
            "Idempotency-Key": self.key,
            "AWP-Confirmation": self.confirmation,
            "AWP-Receipt": ", ".join(self.receipts),
            "AWP-Session": self.session,
        }
        return tuple((name, value) for name, value in named.items() if value)


@dataclass(frozen=True, slots=True)
class WireRequest:
    """A request of a door's protocol. A `body` is sent as JSON; `frames` are the messages of a WebSocket, in order."""

    method: str
    path: str
    headers: tuple[tuple[str, str], ...] = ()
    body: object = None
    frames: tuple[Mapping[str, Any], ...] = ()

    def __post_init__(self) -> None:
        if self.body is not None and JSON_TYPE not in self.headers:
            object.__setattr__(self, "headers", (JSON_TYPE, *self.headers))

    def content(self) -> bytes:
        return b"" if self.body is None else json.dumps(self.body).encode()


@dataclass(frozen=True, slots=True)
class WireResponse:
    """An HTTP response; the names of its headers are lower-case. Of a WebSocket, the last message with status 101."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def media_type(self) -> str:
        return self.headers.get("content-type", "").partition(";")[0]

    def json(self) -> Any:
        """Return the JSON of the body; of an event stream, the JSON of its last event."""
        if self.media_type == "text/event-stream":
            lines = [line[5:] for line in self.body.decode().splitlines() if line.startswith("data:")]
            return json.loads(next((line for line in reversed(lines) if line.strip()), ""))
        return json.loads(self.body)

    def problem(self) -> dict[str, Any]:
        """Return the problem in the body, or one that quotes it."""
        try:
            problem = self.json()
        except (ValueError, RecursionError):
            problem = None
        if isinstance(problem, dict) and "code" in problem:
            return {**problem, "status": status_in(problem) or self.status}
        return {"status": self.status, "code": "", "detail": self.body[:200].decode("utf-8", "replace")}


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


@dataclass(frozen=True, slots=True)
class NotYet:
    """There is no answer yet: `request` has to be sent next, after a pause if the call is still running.

    `output` is what is known of a running call.
    """

    request: WireRequest
    is_running: bool = False
    output: object = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Wire:
    """The client's side of one door.

    `name` chooses it (`AgentClient(door=...)`), `door` is that of the door if several wires lead to it, which differ by
    their `version`. `write` makes the request of a call for the door's path, and `read` reads the response: it may
    raise any error that strange data cause. `find` returns the door's address in the documents of a site; `path` is
    where it is if they do not say. `path_in` returns its path in a catalog, None if the site does not have it. Of
    several wires, callers prefer that of the lowest `order`.
    """

    name: str
    title: str
    write: Callable[[WireCall, str], WireRequest]
    read: Callable[[WireCall, WireRequest, WireResponse], Answer | NotYet]
    path: str
    door: str = ""
    version: str = ""
    find: Callable[[ReadDocument], object] | None = None
    path_in: Callable[[Catalog], str | None] | None = None
    order: int = 2

    def __post_init__(self) -> None:
        object.__setattr__(self, "door", self.door or self.name)

    @property
    def label(self) -> str:
        """The title with the version."""
        return f"{self.title} {self.version}".rstrip()

    def path_of(self, catalog: Catalog) -> str | None:
        """Return the path of the door below a site's url, None if the site does not have this door."""
        if self.path_in is not None:
            return self.path_in(catalog)
        door = catalog.door(self.door)
        return door.path if door is not None else None

    def address_in(self, read: ReadDocument) -> object:
        """Return what the documents of a site say of the door's address, None for nothing."""
        return self.find(read) if self.find is not None else protocol_in(read, self.door).get("endpoint")

    def decode(self, call: WireCall, request: WireRequest, response: WireResponse) -> Answer | NotYet:
        """Return the answer in a response. Raises CallFailed, also for one that is not as the protocol demands."""
        try:
            return self.read(call, request, response)
        except (ValueError, TypeError, LookupError, AttributeError, RecursionError) as error:
            raise unreadable(call.action, response, error) from error


def unreadable(action: str, response: WireResponse, error: Exception) -> CallFailed:
    """Return the failure of a call whose answer is not built as its protocol demands."""
    detail = f"The answer cannot be read: {type(error).__name__}."
    problem = {"status": response.status, "code": "UNREADABLE_ANSWER", "detail": detail}
    return CallFailed(action, problem, response.headers)


def read_http(call: WireCall, request: WireRequest, response: WireResponse) -> Answer:
    """Return the answer of a door that answers with the output itself, or with problem+json."""
    headers, kind = response.headers, response.media_type
    if response.status >= 400 or kind == "application/problem+json":
        raise CallFailed(call.action, response.problem(), headers)
    if media.is_json(kind):
        return with_content(response.json(), headers)
    text, _ = media.decode(response.body, headers.get("content-type", ""))
    return Answer(text if media.is_text(kind) else response.body, headers, kind, file_name(headers))


def with_content(output: Any, headers: Mapping[str, str]) -> Answer:
    """Return the answer for an output in JSON, which stands for a file if a header says so."""
    if CONTENT not in headers or not isinstance(output, str):
        return Answer(output, headers)
    kind, name = media.read_header(headers[CONTENT].encode("latin-1", "replace"))
    if not media.is_text(kind):
        with suppress(ValueError):
            output = base64.b64decode(output, validate=True)
    return Answer(output, headers, kind, name)


def file_name(headers: Mapping[str, str]) -> str:
    """Return the name of the file in an answer, "" if it has none."""
    return media.read_header(headers.get(CONTENT, "").encode("latin-1", "replace"))[1]


def header_members(members: object) -> dict[str, str]:
    """Return the HTTP headers that an envelope has as members. Those with underscores have them for hyphens."""
    return {name.replace("_", "-"): text for name, text in mapping(members).items() if isinstance(text, str)}


def mapping(value: object) -> Mapping[str, Any]:
    """Return a JSON object, an empty one in place of anything else."""
    return value if isinstance(value, Mapping) else {}


def status_in(problem: Mapping[str, Any]) -> int:
    """Return the HTTP status that a problem names, 0 if it names none."""
    status = problem.get("status")
    if isinstance(status, str) and status.isascii() and status.isdecimal() and len(status) == 3:
        status = int(status)
    if not isinstance(status, (int, float)) or isinstance(status, bool):
        return 0
    return int(status) if 100 <= status <= 999 else 0


def protocol_in(read: ReadDocument, door: str) -> Mapping[str, Any]:
    """Return what a site's agent.json says of a door."""
    protocols = mapping(read(AGENT_JSON_PATH).get("protocols"))
    return mapping(protocols.get(door) or protocols.get(f"x-{door}"))


def root_in(read: ReadDocument) -> str:
    """Return the address below which a site has the plain door, its jobs and its status, as its agent.json says."""
    site = read(AGENT_JSON_PATH)
    ends = [
        (mapping(mapping(site.get("protocols")).get("x-som")).get("endpoint"), "/som"),
        (mapping(site.get("agent_status")).get("status_endpoint"), "/status"),
    ]
    for action in actions_in(read):
        ends.append((mapping(action).get("endpoint"), f"/actions/{mapping(action).get('id')}"))
    for address, end in ends:
        if isinstance(address, str) and address.endswith(end):
            return address.removesuffix(end)
    return Paths().root


def actions_in(read: ReadDocument) -> Sequence[Any]:
    """Return the actions in a site's agent.json."""
    actions = read(AGENT_JSON_PATH).get("actions")
    return actions if isinstance(actions, list) else ()
