"""The messages of the AWP door: frames of JSON and MessagePack, answers, events, errors, repeated calls."""

import asyncio
import hashlib
import math
import re
import secrets
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeAlias

import msgpack
import orjson

from awp_publish.browsing.errors import AwpError, Code, refuse
from awp_publish.browsing.observing import write_cursor
from awp_publish.browsing.session import Session
from awp_publish.model import Catalog, JsonObject
from awp_publish.policy.call import RawHeaders
from awp_publish.problems import ConfirmationRequired, NotJson, PrerequisiteRequired, Problem, StoreUnavailable, code_of
from awp_publish.serve.endpoint import Telling, describe_problem
from awp_publish.serve.http import Message, parse_json

# --- MessagePack of the AWP door (extra "awp") ---


def read_msgpack(packed: bytes) -> object:
    """The value of a MessagePack message. Raises NotJson for what JSON could not say, or could say in two ways."""
    try:
        value = msgpack.unpackb(packed, object_pairs_hook=_read_pairs, list_hook=_read_list, ext_hook=_refuse_extension)
        return parse_json(orjson.dumps(_read_list([value])[0]))
    except NotJson:
        raise
    except (ValueError, TypeError, msgpack.UnpackException, RecursionError, MemoryError) as error:
        raise NotJson(f"The body is not usable MessagePack: {str(error)[:200] or type(error).__name__}.") from error


def write_msgpack(value: object, default: Callable[[object], object]) -> bytes:
    """A message. Raises TypeError, ValueError or OverflowError for what MessagePack cannot say."""
    packed: bytes = msgpack.packb(value, default=default, unicode_errors="replace")
    return packed


def _read_pairs(pairs: Sequence[tuple[object, object]]) -> dict[object, object]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise NotJson("The body has the same name twice in one object.")
    _check_numbers(found.values())
    return found


def _read_list(items: list[object]) -> list[object]:
    _check_numbers(items)
    return items


def _check_numbers(values: Iterable[object]) -> None:
    if any(isinstance(value, float) and not math.isfinite(value) for value in values):
        raise NotJson("The body holds a number that is not finite.")


def _refuse_extension(code: int, _: bytes) -> object:
    raise NotJson(f"The body holds extension type {code}, which JSON does not have.")


# --- The messages of the AWP door ---
# A text frame is JSON, a binary frame MessagePack, and a request is answered in the form that it came in. Unknown
# members are ignored. A frame that cannot be read is answered with an empty id, since nobody can tell whose it was.

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


# --- `page.som_mutation` ---
# Nothing changes by itself where no JavaScript runs, so the event follows the answer to the request that made the
# change.

MUTATION: Final = "page.som_mutation"


def cursors_of(session: Session) -> Mapping[str, int]:
    """Where the pages of a session are."""
    return {tab.id: tab.history.cursor for tab in session.tabs.values() if tab.history.current is not None}


def tell_changes(session: Session, before: Mapping[str, int], trace: str) -> list[dict[str, object]]:
    """The events of the pages that have changed since, in the trace of the request that did it.

    The patch makes the present SOM of the one before.
    """
    events = []
    for page_id, cursor in before.items():
        tab = session.tabs.get(page_id)
        if tab is None or tab.history.cursor <= cursor:
            continue
        told = tab.observe({"mode": "mutations", "cursor": cursor})
        if told.get("changed"):
            where = {"session_id": session.id, "page_id": page_id, "cursor": write_cursor(tab.history.cursor)}
            events.append(tell_event(MUTATION, {**where, "patch": told["patch"]}, trace))
    return events


# --- How the AWP door says a Problem ---

_CODES: Final[dict[int, Code]] = {
    401: "PERMISSION_DENIED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    409: "CONFLICT",
    410: "NOT_FOUND",
    428: "PERMISSION_DENIED",
    429: "RATE_LIMITED",
    504: "TIMEOUT",
}
RECOVERIES: Final[Mapping[str, str]] = {
    code_of(ConfirmationRequired.slug): (
        "Show details.confirmation.summary to your user. Only if they agree, send the same skills.invoke again with "
        "details.confirmation.token as params.confirmation."
    ),
    code_of(PrerequisiteRequired.slug): (
        "Invoke the skills that details.missing names, then retry with params.receipts: the list of the awp-receipt "
        "that result.headers of each of their answers has."
    ),
}
"""What callers of this door are told to do, where the way to do it is its own."""

_NOT_TOLD: Final = (b"set-cookie", b"x-ratelimit-")
"""Beginnings of headers that an agent must not see, or sees under another name."""


def telling_of(catalog: Catalog) -> Telling:
    """How this door tells problems."""
    return Telling(catalog, RECOVERIES)


def tell_problem(problem: Problem, telling: Telling, request_id: str, added: RawHeaders = ()) -> AwpError:
    """The error that a problem is. `details` is the problem as every door tells it, its headers beside it."""
    details = describe_problem(problem, telling.types, telling.recoveries, "", request_id)
    headers = headers_told((*_headers_of(problem), *added))
    if headers:
        details["headers"] = headers
    if headers.get("retry-after", "").isdigit():
        details["retry_after"] = int(headers["retry-after"])
        details["retry_after_ms"] = int(headers["retry-after"]) * 1000
    return AwpError(_code_of(problem), problem.detail, details)


def headers_told(headers: RawHeaders) -> dict[str, str]:
    """What other doors say in headers, by lower-case name."""
    return {
        name.decode("latin-1"): value.decode("latin-1")
        for name, value in headers
        if not name.startswith(_NOT_TOLD) and name not in (b"content-type", b"content-length")
    }


def _headers_of(problem: Problem) -> RawHeaders:
    return tuple(
        (name.lower().encode("latin-1"), value.encode("latin-1", "replace")) for name, value in problem.headers
    )


def _code_of(problem: Problem) -> Code:
    if isinstance(problem, StoreUnavailable):
        return "INTERNAL"
    return _CODES.get(problem.status) or ("SKILL_ERROR" if problem.status >= 500 else "INVALID_REQUEST")


# --- `meta.idempotency_key` of the AWP door ---
# Answers are remembered for each session, and for each connection where there is no session yet; the oldest go first.
# Errors are not remembered: what failed may be tried again under the same key.

MOST: Final = 64
"""Answers that are remembered in one place."""

MOST_BYTES: Final = 1_000_000
"""Of their JSON, all together; the last one is remembered whatever its size."""


class Recorded(NamedTuple):
    """What was asked under a key, what was answered, and how much that is."""

    fingerprint: bytes
    result: JsonObject
    size: int


class Repeats:
    """The answers under keys of one session or connection. `turn` has those with keys wait for one another."""

    __slots__ = ("_bytes", "_recorded", "turn")

    def __init__(self) -> None:
        self.turn = asyncio.Lock()
        self._recorded: OrderedDict[str, Recorded] = OrderedDict()
        self._bytes = 0

    def find(self, key: str, fingerprint: bytes) -> JsonObject | None:
        """The answer under a key. Raises AwpError CONFLICT if something else was asked under it."""
        recorded = self._recorded.get(key)
        if recorded is None:
            return None
        if recorded.fingerprint != fingerprint:
            raise AwpError("CONFLICT", "The idempotency key was used for another request.", {"idempotency_key": key})
        return recorded.result

    def keep(self, key: str, fingerprint: bytes, result: JsonObject) -> None:
        """Remember an answer."""
        size = len(write_json(result))
        self._recorded[key] = Recorded(fingerprint, result, size)
        self._bytes += size
        while len(self._recorded) > 1 and (len(self._recorded) > MOST or self._bytes > MOST_BYTES):
            _, oldest = self._recorded.popitem(last=False)
            self._bytes -= oldest.size


def fingerprint_of(method: str, params: Mapping[str, object]) -> bytes:
    """What tells one request from another."""
    return hashlib.sha256(orjson.dumps([method, params], option=orjson.OPT_SORT_KEYS)).digest()
