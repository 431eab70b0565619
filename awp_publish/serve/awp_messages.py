"""The messages of the AWP door: frames in, requests out; results and errors in, frames out (MVP section 3, draft).

A text frame is JSON, a binary frame MessagePack, and a request is answered in the form that it came in. Unknown members
are ignored. A frame that cannot be read is answered with an empty id, since nobody can tell whose it was.
"""

import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

import orjson

from awp_publish.browsing.errors import AwpError, refuse
from awp_publish.model import JsonObject
from awp_publish.problems import NotJson
from awp_publish.serve.json_text import parse_json
from awp_publish.serve.msgpack_frames import read_msgpack, write_msgpack
from awp_publish.serve.reply import Message

LONGEST_ID: Final = 256
"""Characters of a request's id: it is sent back."""

_TRACE: Final = re.compile(r"[A-Za-z0-9._-]{1,128}")

Frame: TypeAlias = str | bytes


class JsonText:
    """A value that is JSON text already, and stays as it is written."""

    __slots__ = ("body",)

    def __init__(self, body: bytes) -> None:
        self.body = body


@dataclass(frozen=True, slots=True)
class Request:
    """One request. `trace` is the caller's own trace id, or one of ours; `is_packed` tells how it is answered."""

    id: str
    method: str
    params: JsonObject
    key: str | None
    trace: str
    is_packed: bool


class Unreadable(AwpError):
    """A frame that is no request. `request_id` is its id as far as that could be read, else empty."""

    def __init__(self, request_id: str, message: str, details: JsonObject | None = None) -> None:
        super().__init__("INVALID_REQUEST", message, details)
        self.request_id = request_id


def read_request(frame: Frame) -> Request:
    """The request in a frame. Raises Unreadable."""
    document = _read_document(frame)
    if not isinstance(document, dict):
        raise Unreadable("", "Invalid JSON: a message is one object.")
    given = document.get("id")
    if not isinstance(given, str) or not 0 < len(given) <= LONGEST_ID:
        raise Unreadable("", f"Invalid JSON: id must be a string of 1 to {LONGEST_ID} characters.", {"member": "id"})
    try:
        return _read_members(given, document, isinstance(frame, bytes))
    except AwpError as error:
        raise Unreadable(given, error.message, error.details) from error


def _read_document(frame: Frame) -> object:
    try:
        if isinstance(frame, bytes):
            return read_msgpack(frame)
        return parse_json(frame.encode("utf-8", "surrogatepass"))
    except NotJson as problem:
        form = "MessagePack" if isinstance(frame, bytes) else "JSON"
        raise Unreadable("", f"Invalid {form}: {problem.detail.replace('The body', 'the message', 1)}") from problem


def _read_members(request_id: str, document: Mapping[str, object], is_packed: bool) -> Request:
    if document.get("type", "request") != "request":
        refuse("A client sends messages of type request.", member="type")
    method, params = document.get("method"), document.get("params")
    if not isinstance(method, str) or not method:
        refuse("Missing required member: method" if method is None else "method must be text.", member="method")
    if params is not None and not isinstance(params, dict):
        refuse("params must be an object.", member="params")
    meta = document.get("meta")
    if meta is not None and not isinstance(meta, dict):
        refuse("meta must be an object.", member="meta")
    key, trace = _read_meta(meta or {})
    return Request(request_id, method, params or {}, key, trace, is_packed)


def _read_meta(meta: Mapping[str, object]) -> tuple[str | None, str]:
    """Idempotency key and trace id. A trace id that is not fit to stand in a log is replaced."""
    key, trace = meta.get("idempotency_key"), meta.get("trace_id")
    if key is not None and not isinstance(key, str):
        refuse("meta.idempotency_key must be text.", member="meta.idempotency_key")
    if isinstance(trace, str) and _TRACE.fullmatch(trace):
        return key, trace
    return key, new_trace()


# --- Answers ---


def tell_result(request: Request, result: JsonObject) -> dict[str, object]:
    """The response of a request that succeeded."""
    return {"id": request.id, "type": "response", "result": result, "meta": _meta_of(request.trace)}


def tell_error(request_id: str, error: AwpError, request: Request | None = None) -> dict[str, object]:
    """The response of a request that did not."""
    trace = new_trace() if request is None else request.trace
    return {"id": request_id, "type": "response", "error": error.describe(), "meta": _meta_of(trace)}


def tell_event(method: str, params: JsonObject, trace: str) -> dict[str, object]:
    """An event, in the trace of the request that brought it about."""
    return {"type": "event", "method": method, "params": params, "meta": _meta_of(trace)}


def new_trace() -> str:
    """A trace id of ours."""
    return secrets.token_hex(16)


def _meta_of(trace: str) -> JsonObject:
    """Draft, Tracing: responses and events should have both."""
    return {"trace_id": trace, "span_id": secrets.token_hex(8)}


def write_frame(message: Mapping[str, object], *, is_packed: bool) -> Message:
    """The frame of a message. Raises TypeError, ValueError or OverflowError for what the encoding cannot say."""
    if is_packed:
        return {"type": "websocket.send", "bytes": write_msgpack(message, _unwrap_value)}
    return {"type": "websocket.send", "text": write_json(message).decode()}


def write_json(value: object) -> bytes:
    """JSON text, in which JsonText stands as it is. Raises TypeError for what JSON cannot say."""
    return orjson.dumps(value, default=_unwrap_text)


def _unwrap_text(value: object) -> object:
    if isinstance(value, JsonText):
        return orjson.Fragment(value.body)
    raise TypeError(f"{type(value).__name__} is no JSON value.")


def _unwrap_value(value: object) -> object:
    if isinstance(value, JsonText):
        return orjson.loads(value.body)
    raise TypeError(f"{type(value).__name__} is no JSON value.")
