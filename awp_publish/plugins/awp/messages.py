"""The messages of the AWP door: frames of JSON and MessagePack, requests, responses, events, errors.

A text frame is JSON, a binary frame MessagePack (extra "awp"), and a request is answered in its own encoding. Unknown
members are ignored. An unreadable frame is answered with an empty id, because its id is unknown.
"""

import asyncio
import hashlib
import math
import re
import secrets
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias
from weakref import WeakValueDictionary

import msgpack
import orjson

from awp_publish.browsing.errors import AwpError, Code
from awp_publish.browsing.page import write_cursor
from awp_publish.calls.call import RawHeaders, read_key
from awp_publish.http.endpoint import ProblemRenderer
from awp_publish.http.exchange import Message, header_members, parse_json
from awp_publish.model import JsonObject
from awp_publish.problems import (
    AnswerNotKept,
    ConfirmationRequired,
    NotJson,
    PrerequisiteRequired,
    Problem,
    StoreUnavailable,
    code_of,
)
from awp_publish.schema.redaction import Redact

PROTOCOL: Final = "awp"
"""The name of the door."""

if TYPE_CHECKING:
    from awp_publish.browsing.session import Session

# --- Requests ---

MAX_ID_LENGTH: Final = 256
"""Characters of a request's id, which is repeated in the response."""

_TRACE: Final = re.compile(r"[A-Za-z0-9._-]{1,128}")

Frame: TypeAlias = str | bytes


@dataclass(frozen=True, slots=True)
class AwpRequest:
    """One request. `trace` is the caller's trace id or one of ours; `is_packed` is the encoding of the response."""

    id: str
    method: str
    params: JsonObject
    key: str | None
    trace: str
    is_packed: bool


class InvalidFrame(AwpError):
    """The frame is not a request. `request_id` is its id if that is readable, otherwise ""."""

    def __init__(self, request_id: str, message: str, **details: object) -> None:
        super().__init__("INVALID_REQUEST", message, details)
        self.request_id = request_id


def read_request(frame: Frame) -> AwpRequest:
    """Read the request in a frame. Raises InvalidFrame. A trace id that is not safe in logs is replaced."""
    is_packed = isinstance(frame, bytes)
    try:
        document = (
            read_msgpack(frame) if isinstance(frame, bytes) else parse_json(frame.encode("utf-8", "surrogatepass"))
        )
    except NotJson as problem:
        form, detail = "MessagePack" if is_packed else "JSON", problem.detail.replace("The body", "the message", 1)
        raise InvalidFrame("", f"Invalid {form}: {detail}") from problem
    if not isinstance(document, dict):
        raise InvalidFrame("", "Invalid JSON: a message is one object.")
    given = document.get("id")
    if not isinstance(given, str) or not 0 < len(given) <= MAX_ID_LENGTH:
        raise InvalidFrame("", f"Invalid JSON: id must be a string of 1 to {MAX_ID_LENGTH} characters.", member="id")
    if document.get("type", "request") != "request":
        raise InvalidFrame(given, "A client sends messages of type request.", member="type")
    method, params, meta = document.get("method"), document.get("params"), document.get("meta")
    if not isinstance(method, str) or not method:
        words = "Missing required member: method" if method is None else "method must be text."
        raise InvalidFrame(given, words, member="method")
    if params is not None and not isinstance(params, dict):
        raise InvalidFrame(given, "params must be an object.", member="params")
    if meta is not None and not isinstance(meta, dict):
        raise InvalidFrame(given, "meta must be an object.", member="meta")
    key, trace = (meta or {}).get("idempotency_key"), (meta or {}).get("trace_id")
    if key is not None and not isinstance(key, str):
        raise InvalidFrame(given, "meta.idempotency_key must be text.", member="meta.idempotency_key")
    if not isinstance(trace, str) or not _TRACE.fullmatch(trace):
        trace = new_trace()
    return AwpRequest(given, method, params or {}, key, trace, is_packed)


def read_msgpack(packed: bytes) -> object:
    """Read a MessagePack message. Raises NotJson for what has no, or more than one, equivalent in JSON."""

    def refuse_extension(code: int, _: bytes) -> object:
        raise NotJson(f"The body holds extension type {code}, which JSON does not have.")

    def read_pairs(pairs: Sequence[tuple[object, object]]) -> dict[object, object]:
        found = dict(pairs)
        if len(found) != len(pairs):
            raise NotJson("The body has the same name twice in one object.")
        read_items(list(found.values()))
        return found

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


# --- Responses and events ---


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
    """Make a trace id of ours."""
    return secrets.token_hex(16)


def write_json(value: object) -> bytes:
    """Write JSON text, with JsonText unchanged. Raises TypeError for values that JSON does not have."""

    def unwrap(value: object) -> object:
        if isinstance(value, JsonText):
            return orjson.Fragment(value.body)
        raise TypeError(f"{type(value).__name__} is no JSON value.")

    return orjson.dumps(value, default=unwrap)


def write_frame(message: Mapping[str, object], *, is_packed: bool) -> Message:
    """Write the frame of a message. Raises TypeError, ValueError or OverflowError for unencodable values."""
    if not is_packed:
        return {"type": "websocket.send", "text": write_json(message).decode()}

    def unwrap(value: object) -> object:
        if isinstance(value, JsonText):
            return orjson.loads(value.body)
        raise TypeError(f"{type(value).__name__} is no JSON value.")

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


# --- Problems as errors ---

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
        "Of the skills that details.missing names invoke those that have not succeeded yet, then retry; if the site "
        "does not know who calls, with params.receipts: the list of the awp-receipt that result.headers of each of "
        "their answers has. None is to be repeated for a receipt."
    ),
}
"""Recovery texts that are different at this door."""

_NOT_SHOWN: Final = (b"set-cookie", b"x-ratelimit-", b"content-type", b"content-length")
"""Prefixes of headers that an agent must not see, sees under another name, or that describe only the body."""


def error_of(problem: Problem, renderer: ProblemRenderer, trace: str, added: RawHeaders = ()) -> AwpError:
    """Return the error for a problem. `details` is the problem as every door renders it, with its headers."""
    details = renderer.describe(problem, "", trace)
    own = ((name.lower().encode("latin-1"), text.encode("latin-1", "replace")) for name, text in problem.headers)
    headers = shown_headers((*own, *added))
    if headers:
        details["headers"] = headers
    if headers.get("retry-after", "").isdigit():
        details["retry_after"] = int(headers["retry-after"])
        details["retry_after_ms"] = int(headers["retry-after"]) * 1000
    otherwise: Code = "SKILL_ERROR" if problem.status >= 500 else "INVALID_REQUEST"
    code = "INTERNAL" if isinstance(problem, StoreUnavailable) else _CODES.get(problem.status, otherwise)
    return AwpError(code, problem.detail, details)


def shown_headers(headers: RawHeaders) -> dict[str, str]:
    """Return the headers of other doors' responses under the names of members: retry_after, awp_receipt."""
    shown = ((key.decode("latin-1"), text.decode("latin-1")) for key, text in headers if not key.startswith(_NOT_SHOWN))
    return {name.replace("-", "_"): text for name, text in header_members(shown).items()}


# --- `meta.idempotency_key` ---

MAX_ANSWERS: Final = 64
MAX_ANSWER_BYTES: Final = 1_000_000
"""Bytes of the JSON of all remembered answers together. The latest answer is remembered whatever its size."""


class AnswerCache:
    """The answers by idempotency key, of one session or of one connection. The oldest are dropped first.

    Errors are not remembered, so that a failed request can be retried with the same key.
    """

    __slots__ = ("_answers", "_bytes", "_locks")

    def __init__(self) -> None:
        self._locks = WeakValueDictionary[str, asyncio.Lock]()
        # By key: the fingerprint of the request, the answer (None for one that is returned only once), its bytes.
        self._answers: OrderedDict[str, tuple[bytes, JsonObject | None, int]] = OrderedDict()
        self._bytes = 0

    async def answer_once(
        self,
        request: AwpRequest,
        run: Callable[[], Awaitable[JsonObject]],
        redact: Redact | None = None,
        *,
        is_safe: bool = False,
    ) -> JsonObject:
        """Return the remembered answer for a request's key; otherwise call `run`, and remember and return its answer.

        If `is_safe`, the request is always carried out again, but its key is still its own. `redact` finds values in an
        action's output that are returned only once: such an answer is not remembered. Requests with the same key wait
        for one another. Raises AwpError CONFLICT for the key of another request, InvalidIdempotencyKey for a malformed
        key, and AnswerNotKept.
        """
        if request.key is None:
            return await run()
        key = read_key(request.key)
        asked = orjson.dumps([request.method, request.params], option=orjson.OPT_SORT_KEYS)
        fingerprint = hashlib.sha256(asked).digest()
        lock = self._locks.setdefault(key, asyncio.Lock())
        async with lock:
            if key in self._answers:
                known, answer, _ = self._answers[key]
                if known != fingerprint:
                    words = "The idempotency key was used for another request."
                    raise AwpError("CONFLICT", words, {"idempotency_key": key})
                if is_safe:
                    return await run()
                if answer is None:
                    raise AnswerNotKept("The first request with this key succeeded; its answer is given only once.")
                return answer
            answer = await run()
            size = len(write_json(answer))
            kept: JsonObject | None = answer
            if is_safe:
                kept, size = None, 0
            if redact is not None and isinstance(text := answer.get("output"), JsonText):
                output = orjson.loads(text.body)
                kept, size = (answer, size) if redact(output) == output else (None, 0)
            self._answers[key] = fingerprint, kept, size
            self._bytes += size
            while len(self._answers) > 1 and (len(self._answers) > MAX_ANSWERS or self._bytes > MAX_ANSWER_BYTES):
                self._bytes -= self._answers.popitem(last=False)[1][2]
            return answer
