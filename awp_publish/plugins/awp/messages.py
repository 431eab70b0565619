"""The messages of the AWP door: frames of JSON and MessagePack, requests, responses, events, errors.

A text frame is JSON, a binary frame MessagePack (extra "awp"), and a request is answered in its own encoding. Unknown
members are ignored. An unreadable frame is answered with an empty id, because its id is unknown.
"""

import math
import re
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

import msgpack
import orjson

from awp_publish.browsing.errors import AwpError
from awp_publish.browsing.history import write_cursor
from awp_publish.http.exchange import Message
from awp_publish.http.strict_json import parse_json
from awp_publish.model import JsonObject
from awp_publish.problems import NotJson

PROTOCOL: Final = "awp"
"""The name of the door."""

if TYPE_CHECKING:
    from awp_publish.browsing.session import Session


MAX_ID_LENGTH: Final = 256
"""Characters of a request's id, which is repeated in the response."""

_TRACE: Final = re.compile(r"[A-Za-z0-9._-]{1,128}")

Frame: TypeAlias = str | bytes


@dataclass(frozen=True, slots=True)
class AwpRequest:
    """One request. `trace` is the caller's trace id or one of ours; `is_packed` is the encoding of the response.

    `size` is that of its frame in bytes.
    """

    id: str
    method: str
    params: JsonObject
    key: str | None
    trace: str
    is_packed: bool
    size: int


class InvalidFrame(AwpError):
    """The frame is not a request. `request_id` is its id if that is readable, otherwise ""."""

    def __init__(self, request_id: str, message: str, **details: object) -> None:
        super().__init__("INVALID_REQUEST", message, details)
        self.request_id = request_id


def read_request(frame: Frame) -> AwpRequest:
    """Read the request in a frame. Raises InvalidFrame. A trace id that is not safe in logs is replaced."""
    is_packed = isinstance(frame, bytes)
    body = frame if isinstance(frame, bytes) else frame.encode("utf-8", "surrogatepass")
    try:
        document = read_msgpack(body) if is_packed else parse_json(body)
    except NotJson as problem:
        form, detail = "MessagePack" if is_packed else "JSON", problem.detail.replace("The body", "the message", 1)
        raise InvalidFrame("", f"Invalid {form}: {detail}") from problem
    if not isinstance(document, dict):
        raise InvalidFrame("", "A message must be one object.")
    message_id = document.get("id")
    if not isinstance(message_id, str) or not 0 < len(message_id) <= MAX_ID_LENGTH:
        raise InvalidFrame("", f"id must be a string of 1 to {MAX_ID_LENGTH} characters.", member="id")
    if document.get("type", "request") != "request":
        raise InvalidFrame(message_id, "Clients may only send messages of type request.", member="type")
    method, params, meta = document.get("method"), document.get("params"), document.get("meta")
    if not isinstance(method, str) or not method:
        words = "Missing required member: method" if method is None else "method must be a string."
        raise InvalidFrame(message_id, words, member="method")
    if params is not None and not isinstance(params, dict):
        raise InvalidFrame(message_id, "params must be an object.", member="params")
    if meta is not None and not isinstance(meta, dict):
        raise InvalidFrame(message_id, "meta must be an object.", member="meta")
    key, trace = (meta or {}).get("idempotency_key"), (meta or {}).get("trace_id")
    if key is not None and not isinstance(key, str):
        raise InvalidFrame(message_id, "meta.idempotency_key must be a string.", member="meta.idempotency_key")
    if not isinstance(trace, str) or not _TRACE.fullmatch(trace):
        trace = new_trace()
    return AwpRequest(message_id, method, params or {}, key, trace, is_packed, len(body))


def read_msgpack(packed: bytes) -> object:
    """Read a MessagePack message. Raises NotJson for what has no, or more than one, equivalent in JSON."""

    def refuse_extension(code: int, _: bytes) -> object:
        raise NotJson(f"The body holds extension type {code}, which JSON does not have.")

    def read_pairs(pairs: Sequence[tuple[object, object]]) -> dict[object, object]:
        members = dict(pairs)
        if len(members) != len(pairs):
            raise NotJson("The body has the same name twice in one object.")
        read_items(list(members.values()))
        return members

    def read_items(items: list[object]) -> list[object]:
        if any(isinstance(item, float) and not math.isfinite(item) for item in items):
            raise NotJson("The body holds a number that is not finite.")
        return items

    try:
        value = msgpack.unpackb(packed, object_pairs_hook=read_pairs, list_hook=read_items, ext_hook=refuse_extension)
        return parse_json(orjson.dumps(read_items([value])[0]))
    except NotJson:
        raise
    except (ValueError, TypeError, msgpack.UnpackException, RecursionError, MemoryError) as error:
        raise NotJson(f"The body is not usable MessagePack: {str(error)[:200] or type(error).__name__}.") from error


class JsonText:
    """A value that is JSON text already and is written unchanged."""

    __slots__ = ("body",)

    def __init__(self, body: bytes) -> None:
        self.body = body


def make_message(trace: str, **members: object) -> JsonObject:
    """Make a response or event. Both should have the trace and a span of their own (draft, Tracing)."""
    return {**members, "meta": {"trace_id": trace, "span_id": secrets.token_hex(8)}}


def make_error(request_id: str, error: AwpError, trace: str | None = None) -> JsonObject:
    """Make the response to a request that failed, with a new trace id if the request's is unknown."""
    return make_message(trace or new_trace(), id=request_id, type="response", error=error.describe())


def new_trace() -> str:
    return secrets.token_hex(16)


def write_json(value: object) -> bytes:
    """Write JSON text, with JsonText unchanged. Raises TypeError for values that JSON does not have."""

    def unwrap(value: object) -> object:
        if isinstance(value, JsonText):
            return orjson.Fragment(value.body)
        raise TypeError(f"{type(value).__name__} is not a JSON value.")

    return orjson.dumps(value, default=unwrap)


def write_frame(message: Mapping[str, object], *, is_packed: bool) -> Message:
    """Write the frame of a message. Raises TypeError, ValueError or OverflowError for unencodable values."""
    if not is_packed:
        return {"type": "websocket.send", "text": write_json(message).decode()}

    def unwrap(value: object) -> object:
        if isinstance(value, JsonText):
            return orjson.loads(value.body)
        raise TypeError(f"{type(value).__name__} is not a JSON value.")

    packed: bytes = msgpack.packb(message, default=unwrap, unicode_errors="replace")
    return {"type": "websocket.send", "bytes": packed}


MUTATION: Final = "page.som_mutation"
"""The only event. Without JavaScript only requests change a page, so it follows their responses."""


def mutations_since(session: "Session", cursors: Mapping[str, int], trace: str) -> list[JsonObject]:
    """Return the events of the pages that have changed since `cursors`.

    The patch turns the SOM at the cursor into the present one.
    """
    events = []
    for page_id, cursor in cursors.items():
        tab = session.tabs.get(page_id)
        if tab is None or tab.history.cursor <= cursor:
            continue
        observed = tab.observe({"mode": "mutations", "cursor": cursor})
        if observed.get("changed"):
            where = {"session_id": session.id, "page_id": page_id, "cursor": write_cursor(tab.history.cursor)}
            params = {**where, "patch": observed["patch"]}
            events.append(make_message(trace, type="event", method=MUTATION, params=params))
    return events
