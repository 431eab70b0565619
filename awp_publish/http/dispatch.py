"""Calls the route of an action with one in-process ASGI request through the wrapped application.

The request is derived from the caller's own, so that the application's dependencies, authentication and middleware
apply. If no middleware of the site runs outside of us, `state`, `session` and `user` carry over. Otherwise the request
enters through the outermost middleware, which sets them anew.

It arrives at the action's own route or is refused: the value of a path parameter may lead to another action's route,
which would bypass that action's gates.
"""

import asyncio
import base64
import binascii
import logging
import mimetypes
import re
import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache, cached_property, partial
from http.cookies import SimpleCookie
from typing import Any, Final, NamedTuple, TypeAlias, cast
from urllib.parse import parse_qsl, quote, unquote, urlencode

import orjson
from starlette.exceptions import HTTPException

from awp_publish.calls.authentication import challenges_of_route
from awp_publish.calls.call import PART_OF_ANSWER, SESSION_HEADER, Call, Content, Outcome, Result
from awp_publish.declare.discover import ITSELF, Routed, asks_for_host, compares_routes, find_arrival, fixed_arrivals
from awp_publish.http.credentials import TrustedProxies, read_credentials
from awp_publish.http.exchange import (
    AsgiApp,
    Fields,
    Message,
    RawHeaders,
    Receive,
    Scope,
    Send,
    content_length,
    mount_of,
    read_fields,
)
from awp_publish.http.in_process import PageAnswer
from awp_publish.http.redirects import (
    AFTER_WRITE,
    REDIRECTS,
    Follower,
    asks_to_sign_in,
    is_write,
    location_of,
    seconds_for_page,
)
from awp_publish.model import (
    ROUTE_CALL as ROUTE_CALL,
    SAFE_IN_PATH,
    Action,
    Catalog,
    JsonObject,
    Location,
    Parameter,
    RouteCredential,
    Target,
)
from awp_publish.problems import (
    AuthenticationRequired,
    DeclarationError,
    HandlerFailed,
    HandlerRedirected,
    HandlerUnavailable,
    InsufficientPermissions,
    InvalidCredentials,
    InvalidInput,
    InvalidOutput,
    Problem,
    Refused,
    Violation,
    phrase_of,
    refusal,
)
from awp_publish.schema import media, pointer_to, read_errors
from awp_publish.schema.files import MAX_MEDIA_TYPE, MEDIA_TYPE
from awp_publish.schema.paths import pattern_of

# --- From a route's HTTP answer to an outcome or a problem ---
# The route's own refusals are passed on. So is the JSON body of a failure, which the application chose to send. A
# failure without one, and an exception, are reported without details. Nothing here depends on a framework.

PASSED: Final = "awp_publish.passed"
"""The scope member with the id of the action whose gates a workflow has passed before it submits the action's form."""

CARRIED_HEADERS: Final = PART_OF_ANSWER | {
    b"set-cookie",
    b"www-authenticate",
    b"retry-after",
    b"location",
    b"ratelimit",
    b"ratelimit-policy",
    b"x-ratelimit-limit",
    b"x-ratelimit-remaining",
    b"x-ratelimit-reset",
}
_CHARSET: Final = re.compile(r"charset\s*=\s*\"?([\w.:-]+)", re.IGNORECASE)


_REPEATED: Final = b", "


def read_answer(
    call: Call, status: int, headers: Iterable[tuple[bytes, bytes]], body: bytes, codes: Mapping[str, str]
) -> Result:
    """Convert a route's HTTP answer. `codes` are the site's declared error codes, which a route's refusal may use.

    A success has a 2xx status and a JSON value (WoA section 5.2): an empty answer becomes null, text a string, and any
    other content base64. The Content-Type decides, or else the media type that the action declares. Without either, the
    answer has to be text.
    """
    action = call.action
    content_type = disposition = b""
    carried: list[tuple[bytes, bytes]] = []
    for name, value in headers:
        if name == b"content-type":
            content_type = _REPEATED if content_type else value
        elif name in CARRIED_HEADERS or name in action.answer_headers:
            carried.append((name, value))
        elif name == b"content-disposition":
            disposition = value
    if content_type is _REPEATED:
        content_type = read_fields(headers)[b"content-type"]
    if status in REDIRECTS and (location := location_of(carried)):
        if asks_to_sign_in(action, location):
            kept = [pair for pair in carried if pair[0] != b"location"]
            return read_answer(call, 401, [*kept, (b"content-type", b"application/json")], _SIGN_IN_HERE, codes)
        if status in AFTER_WRITE and is_write(action):
            output = {**_said_beside(content_type, body), "location": location}
            kept = [pair for pair in carried if pair[0] != b"location"]
            return Outcome(orjson.dumps(output), output, 200, tuple(kept), redirect=location)
    if status != 200 and not 200 <= status < 300:
        if status == 403 and action.security_schemes and body in _OLD_FASTAPI_REFUSALS:
            status = 401
        problem = _read_refusal(call, status, read_fields(headers), body, codes)
        if status == 401 and action.route_authenticates and all(name != b"www-authenticate" for name, _ in carried):
            # A 401 always has a challenge (RFC 9110 section 15.5.2).
            carried += [(b"www-authenticate", kind.encode("latin-1")) for kind in challenges_of_route(action)]
        problem.headers = (*problem.headers, *((k.decode("latin-1"), v.decode("latin-1")) for k, v in carried))
        return problem
    shown = 200 if status != 200 and status in (204, 205) else status
    if not body:
        return Outcome(b"null", None, shown, tuple(carried))
    if content_type != b"application/json" and not _is_json(content_type):
        kind = media.media_type_of(content_type)
        if kind in ("", media.BINARY) and isinstance(declared := action.outputs.get("contentMediaType"), str):
            kind = media.media_type_of(declared.encode("utf-8", "replace")) or kind
        if not (kind := kind or media.declared_type(action.outputs)):
            kind = media.TEXT
            try:
                body.decode()
            except UnicodeDecodeError:
                detail = f"Action {action.id} answered with bytes that are no text, and without a Content-Type."
                return InvalidOutput(detail)
        if media.is_text(kind) and not media.declared_type(action.outputs):
            named = _CHARSET.search(content_type.decode("latin-1"))
            charset = named[1] if named else "utf-8"
            try:
                text = body.decode(charset, "replace")
            except (LookupError, ValueError):  # an unknown charset, or one that does not support "replace"
                charset, text = "utf-8", body.decode("utf-8", "replace")
        else:
            charset, text = "", base64.b64encode(body).decode("ascii")
            kind = media.declared_type(action.outputs) if media.is_text(kind) else kind
        filename = media.file_name(disposition)
        if kind != media.TEXT or filename:
            carried.append(media.write_header(kind, filename))
        content = Content(content_type.decode("latin-1") or kind, charset, disposition.decode("latin-1"))
        return Outcome(orjson.dumps(text), text, shown, tuple(carried), content)
    try:
        sent = Content(content_type.decode("latin-1"), "", disposition.decode("latin-1")) if disposition else None
        return Outcome(body, orjson.loads(body), shown, tuple(carried) if carried else (), sent)
    except orjson.JSONDecodeError:
        return InvalidOutput(f"Action {action.id} answered with a body that is declared as JSON and is not.")


def _said_beside(content_type: bytes, body: bytes) -> Mapping[str, object]:
    """Return the members of the JSON object that a redirect after a write may have as its body."""
    if not body or not _is_json(content_type):
        return {}
    with suppress(orjson.JSONDecodeError):
        if isinstance(said := orjson.loads(body), dict):
            return said
    return {}


_SIGN_IN_HERE: Final = b'{"detail":"The site asks its visitors to sign in here."}'

_OLD_FASTAPI_REFUSALS: Final = frozenset(
    (b'{"detail":"Not authenticated"}', b'{"detail":"Invalid authentication credentials"}')
)
"""Bodies with which FastAPI before 0.122 answered 403 if credentials were missing or of another scheme."""


def _is_json(content_type: bytes) -> bool:
    media_type = content_type.split(b";", 1)[0].strip().lower()
    return media_type == b"application/json" or media_type.endswith(b"+json")


def _read_refusal(call: Call, status: int, fields: Fields, body: bytes, codes: Mapping[str, str]) -> Problem:
    action = call.action
    if 300 <= status < 400:
        location = location_of(fields)
        return HandlerRedirected(
            f"Action {action.id} answered {status} with a redirect.", members={"location": location} if location else {}
        )
    content_type, document = fields.get(b"content-type", b""), cast(object, None)
    if _is_json(content_type):
        with suppress(orjson.JSONDecodeError):
            document = orjson.loads(body)
    elif content_type.startswith(b"text/plain"):
        document = body.decode("utf-8", "replace")
    if status >= 500 or status < 300:
        kind: type[Problem] = HandlerUnavailable if status == 503 else HandlerFailed
        words = f"Action {action.id} failed. The site's log has the cause under this request_id."
        if status == 503:
            words = f"Action {action.id} is unavailable."
        if status < 500 or not isinstance(document, Mapping):
            return kind(words)
        return refusal(kind, status, document, codes, words)
    if status == 422:
        # FastAPI reports a missing header with credentials as a validation error, but it is not an input.
        listed = document.get("detail") if isinstance(document, Mapping) else None
        places = [one.get("loc") for one in listed if isinstance(one, Mapping)] if isinstance(listed, list) else []
        known = {one.name for one in action.route_credentials if one.place == "header"}
        for place in places:
            if isinstance(place, list) and len(place) == 2 and place[0] == "header" and str(place[1]).lower() in known:
                headers = [("WWW-Authenticate", kind) for kind in challenges_of_route(action)]
                detail = f"The action needs the header {place[1]}, which says who calls."
                return AuthenticationRequired(detail, headers=headers)
        if errors := _fastapi_errors(call, document):
            return InvalidInput.of(errors)
    kinds: Mapping[int, type[Problem]] = {403: InsufficientPermissions}
    if status == 401:
        kinds = {401: InvalidCredentials if _shows_credentials(call) else AuthenticationRequired}
    refused = refusal(kinds.get(status, Refused), status, document, codes, phrase_of(status))
    if status in kinds:
        refused.usual_recovery = Refused.recoveries.get(status)
    return refused


def _check_credentials(call: Call) -> None:
    """Raise AuthenticationRequired if an action needs a caller, and only its route's security can know one.

    The route itself may answer nobody, too: its security is optional, and the action is declared with `auth_required`.
    """
    action = call.action
    is_asked = action.auth_required and not action.route_authenticates and action.route_credentials
    if is_asked and call.principal is None and not _shows_credentials(call):
        headers = [("WWW-Authenticate", kind) for kind in challenges_of_route(action)]
        raise AuthenticationRequired("The action requires authentication.", headers=headers)


def _shows_credentials(call: Call) -> bool:
    """Return True if the request has any of the credentials that the route reads, or an `Authorization` header."""
    if call.has_credentials:
        shown = call.credentials()
    elif isinstance(call.context, Mapping) and "headers" in call.context:
        scope = cast(Scope, call.context)
        shown = read_credentials(scope, read_fields(scope["headers"]), TrustedProxies())
    else:
        return False
    places = {
        "header": {name for name, value in shown.headers.items() if value},
        "cookie": {pair.partition("=")[0].strip() for pair in shown.headers.get("cookie", "").split(";")},
        "query": {name for name, _ in parse_qsl(shown.query.decode("latin-1"))},
    }
    known = (*call.action.route_credentials, RouteCredential("header", "authorization"))
    return any(one.name in places[one.place] for one in known)


def _fastapi_errors(call: Call, document: object) -> tuple[Violation, ...]:
    """Convert FastAPI's request validation errors, which name parts of the request, to violations of the input."""
    listed = document.get("detail") if isinstance(document, Mapping) else None
    if not isinstance(listed, list):
        return ()
    parameters, found = call.action.way.parameters if call.action.way else (), []
    sure: list[Violation] = []
    whole = next((one.name for one in parameters if one.location == "body"), None)
    for error in listed:
        if not isinstance(error, Mapping) or not isinstance(error.get("loc"), list):
            continue
        place, *rest = error["loc"] or [""]
        if place == "body" and whole is not None:
            rest = [whole, *rest]
        elif rest:
            places = ("json", "form", "file", "rows") if place == "body" else (place,)
            named = (one.name for one in parameters if one.location in places and one.wire_name == rest[0])
            rest = [next(named, rest[0]), *rest[1:]]
        if error.get("type") == SURE_PLACE:
            sure.append(Violation(pointer_to(rest), str(error.get("msg", "is invalid"))))
        else:
            found.append((rest, str(error.get("msg", "is invalid")), str(error.get("type"))))
    return (*dict.fromkeys(sure), *read_errors(found, call.input))


SURE_PLACE: Final = "awp_publish.place"
"""The `type` of an error whose location consists only of input members, whether they were given or not."""


# --- An action's input as the HTTP request that its route understands: path, query, headers, body ---

NOT_CARRIED: Final = frozenset(
    {
        b"accept",
        b"accept-encoding",
        SESSION_HEADER,
        b"connection",
        b"content-encoding",
        b"content-length",
        b"content-type",
        b"expect",
        b"if-match",
        b"if-modified-since",
        b"if-none-match",
        b"if-range",
        b"if-unmodified-since",
        b"keep-alive",
        b"range",
        b"te",
        b"trailer",
        b"transfer-encoding",
        b"upgrade",
        # Some middleware reads another method or address from these, which would make it a different call.
        b"x-http-method",
        b"x-http-method-override",
        b"x-method-override",
        b"x-original-method",
        b"x-original-uri",
        b"x-original-url",
        b"x-rewrite-url",
    }
)
"""Headers of the caller's request that are not passed on to the route.

They describe its own body, connection, cache or address, or are a secret between the caller and us.
"""

_ACCEPT_JSON: Final = (b"accept", b"application/json")
JSON: Final = "application/json"
FORM: Final = "application/x-www-form-urlencoded"
MULTIPART: Final = "multipart/form-data"
_REST: Final[Mapping[str, Location]] = {JSON: "json", FORM: "form", MULTIPART: "form"}
"""Where additional properties are sent, by the body's media type. Without such a body, they go into the query."""


MAX_PATH_VALUE: Final = 8_000
"""The maximum length of a path parameter in characters. RFC 9110 section 4.1 asks for URIs of up to 8000 octets."""

_OTHER_METHODS: Final = frozenset({"_method", "_http_method", "x-http-method-override"})
"""Fields from which some middleware reads another method. They are sent only if the route declares them."""


_Address: TypeAlias = tuple[str, bytes, bytes]
"""Path, raw path and query string."""


@dataclass(slots=True)
class _Parts:
    """The values of one input, by where they are sent."""

    path: dict[str, tuple[str, str]] = field(default_factory=dict)
    headers: list[tuple[bytes, bytes]] = field(default_factory=list)
    cookies: list[str] = field(default_factory=list)
    json: dict[str, object] = field(default_factory=dict)
    form: list[tuple[str, str]] = field(default_factory=list)
    files: list[tuple[str, "File"]] = field(default_factory=list)
    whole: object = None


class Encoder:
    """Makes the requests for the route of one action. Everything that does not depend on the input is prepared once.

    It does no I/O. Values that could reach another route (a slash in a single path segment, a line break in a header)
    are refused as invalid input.
    """

    def __init__(self, action: Action, target: Target) -> None:
        self._target = target
        self._keys = frozenset(one.name for one in action.route_credentials if one.place == "query")
        self._content_type = (b"content-type", (target.content_type or "").encode("latin-1"))
        self._parameters = {parameter.name: parameter for parameter in target.parameters}
        self._rest: Location = _REST.get(target.content_type or "", "query")
        self._whole = next((p for p in target.parameters if p.location == "body"), None)
        self._is_plain_json = target.content_type == JSON and all(p.location == "json" for p in target.parameters)
        self._pieces = re.split(r"({\w+})", target.path)
        self._address: _Address = target.path, quote(target.path, safe=SAFE_IN_PATH).encode("ascii"), b""

    def write(self, outer: Scope, given: JsonObject) -> tuple[Scope, bytes]:
        """Return the scope and the body of the request for a valid input. `outer` is the caller's own scope.

        Raises InvalidInput for a value that cannot be sent.
        """
        path, raw_path, query = self._address
        if self._is_plain_json:
            try:
                body = orjson.dumps(given)
            except TypeError as error:  # orjson refuses to go deeper than 254 levels
                raise _unsendable("", "is nested too deeply") from error
            headers = [_ACCEPT_JSON, self._content_type, content_length(len(body))]
            for pair in outer["headers"]:
                if pair[0] not in NOT_CARRIED:
                    headers.append(pair)
        else:
            (path, raw_path, query), own, cookies, body = self._place_all(given)
            # The input's own headers replace the caller's of the same name; its cookies join them.
            replaced = NOT_CARRIED.union(name for name, _ in own)
            kept = [pair for pair in outer["headers"] if pair[0] not in replaced]
            if cookies:
                kept.append((b"cookie", "; ".join(cookies).encode("latin-1")))
                joined = read_fields(kept)[b"cookie"]
                kept = [*(pair for pair in kept if pair[0] != b"cookie"), (b"cookie", joined)]
            headers = [_ACCEPT_JSON, *own, *kept]
        if self._keys and outer.get("query_string"):  # API keys of the caller, which are not inputs
            keys = [pair for pair in parse_qsl(outer["query_string"].decode("latin-1")) if pair[0] in self._keys]
            query = b"&".join(filter(None, (query, urlencode(keys).encode("ascii"))))
        if outer.get("root_path") and (mounted := mount_of(outer)):
            path, raw_path = mounted + path, mounted.encode("utf-8") + raw_path
        scope = {**outer}
        scope["method"], scope["path"], scope["raw_path"] = self._target.method, path, raw_path
        scope["query_string"], scope["headers"] = query, headers
        scope["extensions"] = {}  # server extensions for sending files would bypass `exchange.send`
        return scope, body

    def _place_all(self, given: JsonObject) -> tuple[_Address, list[tuple[bytes, bytes]], list[str], bytes]:
        """Return the address with its query, the headers and cookies from the input, and the body."""
        target, (path, raw_path, _) = self._target, self._address
        query: list[tuple[str, str]] = []
        parts: _Parts | None = None
        for name, value in given.items():
            parameter = self._parameters.get(name)
            if parameter is None:
                if self._rest != "json" and name.lower() in _OTHER_METHODS:
                    raise _unsendable(pointer_to([name]), "is not an input of this action")
                parameter = Parameter(name, self._rest, name)
            if parameter.location != "query":
                parts = parts or _Parts()
                _place(parts, parameter, value)
            elif type(value) is str:
                query.append((parameter.wire_name, value))
            else:
                query += [(parameter.wire_name, text) for text in _texts(value)]
        written = urlencode(query).encode("ascii") if query else b""
        if parts is None:
            if target.content_type is None:
                return (path, raw_path, written), [], [], b""
            parts = _Parts()
        if parts.path:
            texts = {"{" + name + "}": both for name, both in parts.path.items()}
            pieces = [texts.get(piece) or (piece, quote(piece, safe=SAFE_IN_PATH)) for piece in self._pieces]
            path = "".join(plain for plain, _ in pieces)
            raw_path = "".join(quoted for _, quoted in pieces).encode("ascii")
        if target.content_type is None:
            return (path, raw_path, written), parts.headers, parts.cookies, b""
        body, content_type = self._write_body(parts)
        return (path, raw_path, written), [*parts.headers, content_type, content_length(len(body))], parts.cookies, body

    def _write_body(self, parts: _Parts) -> tuple[bytes, tuple[bytes, bytes]]:
        content_type = self._target.content_type or ""
        if content_type == MULTIPART:
            named, body = _multipart(parts.form, parts.files)
            return body, (b"content-type", named.encode("latin-1"))
        if content_type == FORM:
            body = urlencode(parts.form).encode("ascii")
        elif self._whole is None:
            body = _json_text(parts.json, "")
        elif parts.whole is None:
            body = b""
        # The whole body is one input: JSON, or the text of another media type.
        elif content_type == JSON or content_type.endswith("+json") or not isinstance(parts.whole, str):
            body = _json_text(parts.whole, pointer_to([self._whole.name]))
        else:
            body = parts.whole.encode()
        return body, self._content_type


def _json_text(value: object, pointer: str) -> bytes:
    try:
        return orjson.dumps(value)
    except TypeError as error:  # orjson refuses to go deeper than 254 levels
        raise _unsendable(pointer, "is nested too deeply") from error


def _unsendable(pointer: str, detail: str) -> InvalidInput:
    return InvalidInput(
        f"The input cannot be sent to the action: {pointer or 'it'} {detail}.", errors=[Violation(pointer, detail)]
    )


# --- Placing values ---


def _texts(value: object) -> Iterator[str]:
    """Yield a value's texts for a query, form or header: one per list item, none for null, JSON for objects."""
    if value is None:
        return
    if isinstance(value, list):
        for item in value:
            yield from _texts(item)
    elif isinstance(value, str):
        yield value
    elif isinstance(value, float) and value.is_integer():
        yield str(int(value))  # 5.0 is an integer in JSON Schema, but not to every parser of queries
    else:
        yield orjson.dumps(value).decode()


def _place(parts: _Parts, parameter: Parameter, value: object) -> None:
    """Put a value where its parameter is sent. Raises InvalidInput if it cannot be sent there."""
    name = parameter.wire_name
    match parameter.location:
        case "json":
            parts.json[name] = value
        case "form":
            if not (parameter.is_box and value is False):
                parts.form += [(name, text) for text in _texts(value)]
        case "path":
            text = next(_texts(value), "")
            segments = text.split("/") if parameter.spans_segments else [text]
            if not text or any(segment in (".", "..") for segment in segments):
                raise _unsendable(pointer_to([parameter.name]), "must not be empty, . or ..")
            if "/" in text and not parameter.spans_segments:
                raise _unsendable(pointer_to([parameter.name]), 'must not contain "/"')
            if len(text) > MAX_PATH_VALUE:
                raise _unsendable(pointer_to([parameter.name]), f"must not be longer than {MAX_PATH_VALUE} characters")
            if "\0" in text:
                raise _unsendable(pointer_to([parameter.name]), "must not contain a null character")
            parts.path[name] = (text, quote(text, safe="/" if parameter.spans_segments else ""))
        case "header" | "cookie" as place:
            for text in _texts(value):
                if any(character in text for character in "\r\n\0"):
                    raise _unsendable(pointer_to([parameter.name]), "must not contain line breaks or null characters")
                try:
                    written = text.encode("latin-1")
                except UnicodeEncodeError as error:
                    raise _unsendable(pointer_to([parameter.name]), "must contain Latin-1 characters only") from error
                if place == "header":
                    parts.headers.append((name.lower().encode("latin-1"), written))
                else:
                    cookie: SimpleCookie = SimpleCookie()
                    cookie[name] = text
                    parts.cookies.append(cookie[name].OutputString())
        case "rows":
            parts.form += _rows(name, value)
        case "file":
            for index, one in enumerate(value if isinstance(value, list) else [value]):
                if one is not None:
                    where = pointer_to([parameter.name, index] if isinstance(value, list) else [parameter.name])
                    parts.files.append((name, _read_file(name, one, where)))
        case "body":
            parts.whole = value


def _rows(prefix: str, value: object) -> Iterator[tuple[str, str]]:
    """Yield the numbered fields of a Django formset. Rows with an id, which exist already, come first."""
    rows = [row for row in value if isinstance(row, Mapping)] if isinstance(value, list) else []
    there = next((index for index, row in enumerate(rows) if row.get("id") is None), len(rows))
    yield f"{prefix}-TOTAL_FORMS", str(len(rows))
    yield f"{prefix}-INITIAL_FORMS", str(there)
    for index, row in enumerate(rows):
        for name, inner in row.items():
            if inner is not False:  # an unchecked box is not sent
                yield from ((f"{prefix}-{index}-{name}", text) for text in _texts(inner))


class File(NamedTuple):
    """A file in an input."""

    name: str
    media_type: str
    content: bytes


def _read_file(field_name: str, value: object, pointer: str) -> File:
    """Read a file given as base64, as a data URL (RFC 2397), or as an object with either as its `content`.

    The object has a `filename` and may have a `content_type`.

    A file without a name gets that of its field, with the extension of its media type, which forms may check. Raises
    InvalidInput.
    """
    filename, media_type, text = "", "", value
    if isinstance(value, Mapping):
        media_type, text = str(value.get("content_type") or ""), value.get("content")
        filename = media.plain_name(str(value.get("filename", "")))
        if media_type and (len(media_type) > MAX_MEDIA_TYPE or not re.fullmatch(MEDIA_TYPE, media_type)):
            raise _unsendable(f"{pointer}/content_type", "must be a media type, such as image/png")
        if not filename:
            raise _unsendable(f"{pointer}/filename", "must name a file")
    if not isinstance(text, str):
        raise _unsendable(pointer, "must be base64, a data URL, or an object with filename and content")
    if found := _DATA_URL.match(text):
        media_type, text = media_type or (found[1] or "").lower(), text[found.end() :]
    try:
        content = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        raise _unsendable(pointer, "must be base64") from error
    if not media_type:
        by_name = mimetypes.guess_type(filename)[0] if filename else None
        media_type = by_name or next((kind for start, kind in _SIGNATURES if start.match(content)), "")
    extension = _EXTENSIONS.get(media_type) or mimetypes.guess_extension(media_type or OCTETS) or ""
    kept = "" if media_type in ("", OCTETS) else extension
    return File(filename or f"{field_name}{kept}", media_type or OCTETS, content)


OCTETS: Final = "application/octet-stream"
_DATA_URL: Final = re.compile(r"data:([\w.+-]+/[\w.+-]+)?(?:;[\w.+-]+=[^;,]*)*;base64,", re.IGNORECASE)
_EXTENSIONS: Final[Mapping[str, str]] = {"image/jpeg": ".jpg", "image/webp": ".webp", "text/plain": ".txt"}
_SIGNATURES: Final = (
    (re.compile(rb"\x89PNG\r\n\x1a\n"), "image/png"),
    (re.compile(rb"\xff\xd8\xff"), "image/jpeg"),
    (re.compile(rb"GIF8[79]a"), "image/gif"),
    (re.compile(rb"RIFF.{4}WEBP", re.DOTALL), "image/webp"),
    (re.compile(rb"%PDF-"), "application/pdf"),
)
"""Signatures of files whose media type is not given (WHATWG MIME Sniffing, section 6)."""


def _multipart(fields: Iterable[tuple[str, str]], files: Iterable[tuple[str, File]]) -> tuple[str, bytes]:
    """Return the content type and the body of a multipart/form-data request (RFC 7578)."""
    boundary = secrets.token_hex(16)
    pieces: list[bytes] = []
    for name, text in fields:
        pieces += [_part_head(boundary, name), b"\r\n\r\n", text.encode(), b"\r\n"]
    for name, file in files:
        kind = f'; filename="{_quoted(file.name)}"\r\nContent-Type: {file.media_type}'.encode()
        pieces += [_part_head(boundary, name) + kind, b"\r\n\r\n", file.content, b"\r\n"]
    return f"{MULTIPART}; boundary={boundary}", b"".join([*pieces, f"--{boundary}--\r\n".encode()])


def _part_head(boundary: str, name: str) -> bytes:
    return f'--{boundary}\r\nContent-Disposition: form-data; name="{_quoted(name)}"'.encode()


def _quoted(name: str) -> str:
    return name.replace('"', "%22").replace("\r", "%0D").replace("\n", "%0A")


# --- Calling the route ---

logger: Final = logging.getLogger("awp_publish.calls")

MAX_DECODINGS: Final = 4
"""How often an application whose routes are unknown is assumed to percent-decode a path, at most."""

_OF_CONNECTION: Final = ("asgi", "http_version", "scheme", "server", "client", "root_path")
_ELSEWHERE: Final = "names another address of this site"
_NOWHERE: Final = "does not fit the action's address"


@dataclass(frozen=True, slots=True)
class CalledApplication:
    """The application that calls go to: `inside` is what this middleware wraps, `routes` the object with its routes.

    `entrance` is the outermost application if calls have to pass middleware outside of us, otherwise None. `outside` is
    the same, but set even if that middleware is trusted. `state` returns the lifespan state for requests that enter
    there. `session_cookies` are the names of the cookies in which middleware outside of us keeps sessions. `visit`
    returns the outermost application for a caller's request to a page, `inside` if it is None.
    """

    inside: AsgiApp
    routes: object
    entrance: AsgiApp | None = None
    outside: AsgiApp | None = None
    state: Callable[[], Mapping[str, object]] = dict
    session_cookies: frozenset[bytes] = frozenset()
    visit: Callable[[Scope], AsgiApp] | None = None


class RouteCaller:
    """Sends calls to the routes of one ASGI application. If `catalog` is a part of a catalog, `among` is the whole.

    Raises DeclarationError for a route that another one hides.
    """

    def __init__(self, app: CalledApplication, catalog: Catalog, among: Catalog | None = None) -> None:
        self._app = app
        arrivals = _compared(app.routes, catalog, among or catalog)
        self._ways = {
            one.id: (Encoder(one, one.way), arrivals.get(one.id)) for one in catalog.actions if one.way is not None
        }
        self.codes = catalog.site.errors
        self._follower = Follower(catalog.url, app.visit or (lambda scope: app.inside), app.state)

    def check(self, call: Call) -> None:
        """Raise InvalidInput if a call cannot be sent to its route."""
        action = call.action
        if action.way is not None:
            encoder, arrive = self._ways[action.id]
            scope, _ = encoder.write(cast(Scope, call.context), call.input)
            if arrive is not None:
                arrive(scope)

    async def rehearse(self, call: Call) -> None:
        """Run only the route's security checks for a call. Raises the Problem of a 401 or 403.

        Any other answer, and any failure, is ignored: the call itself will run into it.
        """
        app, action = self._app, call.action
        _check_credentials(call)
        if action.rehearsal is None:
            return
        entrance = app.outside if call.is_fresh else app.entrance
        scope, body = self._ways[action.id][0].write(cast(Scope, call.context), call.input)
        exchange = Rehearsal(call, body, self.codes)
        if entrance is not None:
            scope = come_from_outside(scope, app.state(), call.request_id)
        scope[ROUTE_CALL] = exchange
        routed = find_arrival(app.routes, dict(scope))
        if routed is None or not routed.endpoints or routed.endpoints[-1] is not action.rehearsal:
            return
        scope = _GuardedScope(scope, routed.endpoints, exchange)
        try:
            if entrance is None:
                await app.inside(scope, exchange.receive, exchange.send)
            else:
                await asyncio.ensure_future(entrance(scope, exchange.receive, exchange.send))
        except Exception:
            logger.exception("the security of action %s failed (request_id=%s)", action.id, call.request_id)
            return
        if exchange.status in (401, 403) and not exchange.is_misrouted:
            result = read_answer(call, exchange.status, exchange.headers, exchange.body, self.codes)
            if isinstance(result, Problem):
                raise result

    async def call(self, call: Call) -> Result:
        """Send a call to its route and return the answer. Raises a Problem, or whatever the application raises."""
        app = self._app
        if call.action.auth_required:
            _check_credentials(call)
        entrance = app.outside if call.is_fresh else app.entrance
        encoder, arrive = self._ways[call.action.id]
        scope, body = encoder.write(call.context, call.input)  # type: ignore[arg-type]
        exchange = RouteCall(call, body, self.codes)
        if entrance is not None:
            exchange.outer_session = scope.get("session")
            exchange.session_cookies = app.session_cookies
            scope = come_from_outside(scope, app.state(), call.request_id)
        # `way` has every endpoint that the routing may set in the scope on the way to the action's own.
        if arrive is not None and (way := arrive(scope)):
            scope = _GuardedScope(scope, way, exchange)
        scope[ROUTE_CALL] = exchange
        try:
            if entrance is None:
                inside = app.inside
                await inside(scope, exchange.receive, exchange.send)
            else:  # in a task, so that context variables set by the middleware do not leak into the caller's
                await asyncio.ensure_future(entrance(scope, exchange.receive, exchange.send))
        except Exception:
            if exchange.is_misrouted:
                raise _refuse(call.action, _ELSEWHERE) from None
            if isinstance(call.answer, HandlerFailed):
                call.answer = None  # it was made from an exception that was then re-raised
            raise
        if exchange.is_misrouted:
            return _refuse(call.action, _ELSEWHERE)
        status = exchange.status
        if status >= 500 or status < 200:
            logger.error("action %s: its route answered %d (request_id=%s)", call.action.id, status, call.request_id)
        answer = call.answer
        if answer is None:
            unfinished = exchange.body or b"".join(exchange.parts or ())  # the answer's last message is missing
            answer = read_answer(call, status, exchange.headers, unfinished, self.codes)
        if status in REDIRECTS and not call.is_delivered:
            call.answer = None  # what is at the address belongs to it
            answer = await self._follow(call, answer, exchange, scope)
        return answer

    async def _follow(self, call: Call, answer: Result, exchange: "RouteCall", sent: Scope) -> Result:
        """Return the answer to a call whose route redirects, with what is at that address."""
        sets, follow = tuple(exchange.headers), self._follower.follow
        if isinstance(answer, HandlerRedirected) and not is_write(call.action):
            page = await follow(call, sent, sets, b"application/json")
            if page is None:
                return answer
            if isinstance(page, str):
                return Outcome(orjson.dumps({"location": page}), {"location": page}, redirect=page)
            self._take_cookies(call, page.headers)
            followed = read_answer(call, page.status, page.headers, page.body, self.codes)
            if isinstance(followed, Outcome):
                followed.redirect = location_of(sets)
            return followed
        if not isinstance(answer, Outcome) or not answer.redirect:
            return answer
        page = None
        with suppress(TimeoutError):  # it has succeeded already
            async with asyncio.timeout(seconds_for_page(call)):
                page = await follow(call, sent, sets, b"application/json, text/markdown;q=0.9")
        if not isinstance(page, PageAnswer) or page.status != 200:
            return answer
        self._take_cookies(call, page.headers)
        kind = media.media_type_of(read_fields(page.headers).get(b"content-type", b""))
        content: object = page.body.decode("utf-8", "replace") if kind == "text/markdown" else None
        if _is_json(kind.encode()):
            with suppress(orjson.JSONDecodeError):
                content = orjson.loads(page.body)
        if content is not None:
            said = answer.output if isinstance(answer.output, Mapping) else {}
            output: JsonObject = {**said, "location": answer.redirect, "page": content}
            cookies = tuple(pair for pair in page.headers if pair[0].lower() == b"set-cookie")
            kept = tuple(pair for pair in answer.headers if pair[0] != b"set-cookie")
            answer = Outcome(orjson.dumps(output), output, 200, (*kept, *cookies), redirect=answer.redirect)
        return answer

    @staticmethod
    def _take_cookies(call: Call, headers: RawHeaders) -> None:
        if call.on_cookies is not None:
            call.on_cookies([value for name, value in headers if name.lower() == b"set-cookie"])


class RouteCall:
    """The ASGI exchange of a call with its route: provides the request's body and collects the answer.

    `parts` are the chunks of a streamed answer. `is_misrouted` is set if the routing has chosen another route.
    """

    __slots__ = (
        "_call",
        "_codes",
        "_request",
        "_session",
        "body",
        "headers",
        "is_misrouted",
        "outer_session",
        "parts",
        "session_cookies",
        "status",
    )
    session_cookies: frozenset[bytes]

    def __init__(self, call: Call, request: bytes, codes: Mapping[str, str]) -> None:
        self._call = call
        self._request: bytes | None = request
        self._codes = codes
        self.parts: list[bytes] | None = None
        self.status = 0
        self.headers: Iterable[tuple[bytes, bytes]] = ()
        self.body = b""
        self.outer_session: object = None
        self.is_misrouted = False
        self._session: object = None

    @property
    def request_id(self) -> str:
        """The request id that problems contain."""
        return self._call.request_id

    @property
    def target(self) -> Target | None:
        """The action's own route."""
        return self._call.action.target

    @property
    def action(self) -> Action:
        """The action that is called."""
        return self._call.action

    @property
    def input(self) -> JsonObject:
        """The call's input."""
        return self._call.input

    @property
    def hidden(self) -> object:
        """The endpoint of a hidden route if the request is for one, None if it is for the action's own route."""
        entry = self._call.action.entry
        return entry.arrival.endpoint if entry is not None and entry.arrival is not None else None

    def mark_misrouted(self) -> None:
        """Note that the routing has chosen another route than the action's own. The call is then refused."""
        self.is_misrouted = True

    @property
    def is_fresh(self) -> bool:
        """True if the request has to enter through all middleware, even if that is trusted."""
        return self._call.is_fresh

    async def arrive(self, app: AsgiApp, scope: Scope, receive: Receive, send: Send) -> None:
        """Continue to the route after the request has passed the middleware outside of us."""
        self._session = scope.get("session")
        await app(scope, receive, send)

    async def receive(self) -> Message:
        if self._request is not None:
            body, self._request = self._request, None
            return {"type": "http.request", "body": body, "more_body": False}
        if self._call.disconnected is not None:
            await self._call.disconnected()
        return {"type": "http.disconnect"}

    async def send(self, message: Message) -> None:
        if self.is_misrouted:
            return
        kind = message["type"]
        if kind == "http.response.start":
            self.status = message["status"]
            self.headers = message.get("headers", ())
            if (on_cookies := self._call.on_cookies) is not None:
                on_cookies([value for name, value in self.headers if name.lower() == b"set-cookie"])
        elif kind == "http.response.body":
            body = message.get("body", b"")
            if message.get("more_body"):
                self.parts = self.parts or []
                self.parts.append(body)
                return
            if self.parts is not None:
                body = b"".join((*self.parts, body))
            self.body = body
            if self.outer_session is not None:
                self._copy_session_out()
            answer = read_answer(self._call, self.status, self.headers, body, self._codes)
            if not isinstance(answer, HandlerRedirected):  # a read is answered by what is at that address
                self._call.answer = answer

    def _copy_session_out(self) -> None:
        """Copy the route's session into that of the caller's own request, whose middleware saves its session later."""
        outer, inner = self.outer_session, self._session
        if outer is inner or not isinstance(outer, MutableMapping) or not isinstance(inner, Mapping):
            return
        if dict(outer) != dict(inner):
            outer.clear()
            outer.update(inner)
        # That middleware also sets the cookie, and a response sets each cookie once (RFC 6265 section 4.1.1).
        written = self.session_cookies
        self.headers = [
            (name, value)
            for name, value in self.headers
            if name.lower() != b"set-cookie" or value.partition(b"=")[0].strip() not in written
        ]


class Rehearsal(RouteCall):
    """An exchange that only runs the route's security checks. Its answer does not become the call's answer."""

    __slots__ = ()

    @property
    def hidden(self) -> object:
        return self._call.action.rehearsal

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status, self.headers = message["status"], message.get("headers", ())
        elif message["type"] == "http.response.body":
            self.body += message.get("body", b"")


def come_from_outside(scope: Scope, state: Mapping[str, object], request_id: str) -> Scope:
    """Return the scope as the server would have made it, without the members that outer middleware has added."""
    kept = ("type", "method", "path", "raw_path", "query_string", "headers", "extensions", *_OF_CONNECTION)
    fresh: Scope = {name: scope[name] for name in kept if name in scope}
    if all(name != b"x-request-id" for name, _ in scope["headers"]):
        fresh["headers"].append((b"x-request-id", request_id.encode("latin-1")))
    if "state" in scope:
        fresh["state"] = dict(state)
    return fresh


# --- Checking the route that a request arrives at ---

Compare = Callable[[Scope], tuple[object, ...]]
"""Returns the endpoints on the way to the action's route. Raises InvalidInput if a request arrives at another one."""


def _compared(app: object, catalog: Catalog, among: Catalog) -> Mapping[str, Compare]:
    """Return the route checks of the actions whose routing depends on the request. The others are checked now.

    Raises DeclarationError for a route that another one hides.
    """
    if compares_routes(app):
        return {}
    by_host, found, fixed = asks_for_host(app), {}, fixed_arrivals(app)
    known = cache(partial(_addresses_of, among))
    for action in catalog.actions:
        if action.target is None:
            continue
        compare = _Arrivals(app, known, action, action.target)
        if by_host or any(parameter.location == "path" for parameter in action.target.parameters):
            found[action.id] = compare
            if action.target.arrival is None:
                known()  # fill the cache now, not during the first call
        else:
            compare.check_fixed(action.target, fixed)
    return found


class _Arrivals:
    """Checks that the requests of one action arrive at its own route.

    The application's routes are matched in their order, for each request, because routes may be added at runtime. If
    its routes are unknown, the known addresses of the site take their place: other actions, pages, and our own paths.
    """

    def __init__(
        self, app: object, known: Callable[[], Mapping[str, re.Pattern[str]]], action: Action, target: Target
    ) -> None:
        self._app = app
        self._known = known
        self._action = action
        self._own = target.arrival
        self._slashes = None if any(one.spans_segments for one in target.parameters) else target.path.count("/")
        self._path = target.path

    @cached_property
    def _rivals(self) -> list[re.Pattern[str]]:
        """Patterns of other addresses that only some values of the action's path parameters lead to."""
        others = (pattern for path, pattern in self._known().items() if path != self._path)
        return [pattern for pattern in others if not pattern.fullmatch(self._path)]

    def __call__(self, scope: Scope) -> tuple[object, ...]:
        routed = find_arrival(self._app, dict(scope))
        if routed is None:
            raise _refuse(self._action, _NOWHERE)
        if not self._is_own(routed):
            raise _refuse(self._action, _ELSEWHERE)
        if self._own is None:
            self._check_unknown_routes(scope["path"][len(mount_of(scope)) :])
        return routed.endpoints

    def check_fixed(self, target: Target, find: Callable[[Scope], Routed | None]) -> None:
        """Check a path without parameters, at start-up. Raises DeclarationError if another route answers it."""
        scope: Scope = {"type": "http", "method": target.method, "path": target.path, "headers": [], "root_path": ""}
        routed = find(scope)
        if routed is not None and not self._is_own(routed):
            raise DeclarationError(
                f'action "{self._action.id}"',
                f"path: another route, which stands before its own, answers {target.method} {target.path}"
                f"{f' ({routed.arrival.path})' if routed.arrival.endpoint is not None else ''}.",
                "Register its route first.",
            )

    def _is_own(self, routed: Routed) -> bool:
        arrival = routed.arrival
        if arrival.endpoint is ITSELF:
            return True
        if self._own is None or arrival.endpoint is None:
            return self._own is None and arrival.endpoint is None
        return arrival.endpoint is self._own.endpoint and arrival.path == self._own.path

    def _check_unknown_routes(self, path: str) -> None:
        plain = path
        for _ in range(MAX_DECODINGS):
            plain = unquote(plain)
        if unquote(plain) != plain:
            raise _refuse(self._action, "must not be percent-encoded so often")
        plain = plain.replace("\\", "/").strip()
        if self._slashes is not None and plain.count("/") != self._slashes:
            raise _refuse(self._action, "must not hold an encoded slash")
        if not {".", ".."}.isdisjoint(plain.split("/")):
            raise _refuse(self._action, "must not hold an encoded . or ..")
        if any(rival.fullmatch(plain) or rival.fullmatch(plain.rstrip("/")) for rival in self._rivals):
            raise _refuse(self._action, _ELSEWHERE)


def _addresses_of(catalog: Catalog) -> Mapping[str, re.Pattern[str]]:
    """Return patterns of all known addresses of a site, by path template."""
    paths = catalog.paths
    known = {action.target.path for action in catalog.actions if action.target is not None}
    known |= {unquote(page.path) for page in catalog.pages} | catalog.documents | {door.path for door in catalog.doors}
    known |= {
        f"{paths.actions}/{{action_id}}",
        paths.status,
        paths.som,
        paths.invoke.partition("?")[0],
        f"{paths.jobs}/{{job_id}}",
        paths.problems,
    }
    return {path: re.compile(pattern_of(path), re.IGNORECASE | re.DOTALL) for path in known}


def _refuse(action: Action, detail: str) -> InvalidInput:
    names = [one.name for one in action.target.parameters if one.location == "path"] if action.target else []
    pointers = [pointer_to([name]) for name in names] or [""]
    subject = "The address" if not names else " and ".join(pointers)
    return InvalidInput(
        f"The input cannot be sent to the action: {subject} {detail}.",
        errors=[Violation(pointer, detail) for pointer in pointers],
    )


class _GuardedScope(dict[str, Any]):
    """A scope in which the routing may set only endpoints on the way to the action's own route.

    The route was checked beforehand; this applies if middleware inside of us changes the path afterwards.
    """

    def __init__(self, scope: Scope, way: tuple[object, ...], call: RouteCall) -> None:
        super().__init__(scope)
        self._ahead = (scope.get("endpoint"), *way)
        self._call = call
        self._has_arrived = False

    def update(self, *args: Any, **members: Any) -> None:
        super().update(*args, **members)
        endpoint = self.get("endpoint")
        if self._has_arrived:
            return  # the endpoint may change its own scope
        if all(endpoint is not one for one in self._ahead):
            self._call.mark_misrouted()
            raise HTTPException(404)
        self._has_arrived = endpoint is self._ahead[-1]


# --- The caller's request, stored with a background job ---
# It includes the headers with their credentials, so that the route's authentication and session work for the job as
# they do for a call. They are deleted when the job ends.

_PLAIN: Final = ("http_version", "scheme", "root_path", "path")
_ADDRESSES: Final = ("server", "client")


def pack_request(scope: Scope) -> JsonObject:
    """Return the members of an ASGI scope that a job needs, as JSON."""
    headers = [
        (name.decode("latin-1"), value.decode("latin-1")) for name, value in scope["headers"] if name not in NOT_CARRIED
    ]
    kept = {name: scope[name] for name in (*_PLAIN, *_ADDRESSES) if scope.get(name) is not None}
    if scope.get("query_string"):
        kept["query_string"] = scope["query_string"].decode("latin-1")
    return {**kept, "headers": headers}


def unpack_request(packed: Mapping[str, object], state: Mapping[str, object]) -> Scope:
    """Return a scope made from a packed request. `state` is the application's lifespan state in this process."""
    listed = packed.get("headers")
    pairs = listed if isinstance(listed, list) else []
    return {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "scheme": "https",
        "root_path": "",
        "path": "/",
        **{name: packed[name] for name in _PLAIN if name in packed},
        **{name: _address(packed[name]) for name in _ADDRESSES if name in packed},
        "headers": [(name.encode("latin-1"), value.encode("latin-1")) for name, value in pairs],
        "query_string": str(packed.get("query_string", "")).encode("latin-1"),
        "state": dict(state),
        "extensions": {},
    }


def _address(packed: object) -> tuple[object, ...] | None:
    return tuple(packed) if isinstance(packed, list) else None
