"""An action's input as the HTTP request that its route understands: path, query, headers, cookies, body."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from http.cookies import SimpleCookie
from typing import Final, TypeAlias
from urllib.parse import parse_qsl, quote, urlencode

import orjson

from awp_publish.calls.call import SESSION_HEADER
from awp_publish.http.exchange import Scope, content_length, mount_of, read_fields
from awp_publish.http.multipart import File, read_file, unsendable, write_multipart
from awp_publish.model import SAFE_IN_PATH, Action, JsonObject, Location, Parameter, Target
from awp_publish.schema import pointer_to
from awp_publish.schema.files import file_inputs
from awp_publish.schema.media import FORM, JSON, MULTIPART

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

_REST: Final[Mapping[str, Location]] = {JSON: "json", FORM: "form", MULTIPART: "form"}
"""The place of additional properties, by the body's media type. Without such a body, they go into the query."""

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
        self._keys = frozenset(
            credential.name for credential in action.route_credentials if credential.place == "query"
        )
        self._content_type = (b"content-type", (target.content_type or "").encode("latin-1"))
        self._parameters = {parameter.name: parameter for parameter in target.parameters}
        self._rest: Location = _REST.get(target.content_type or "", "query")
        self._whole = next((p for p in target.parameters if p.location == "body"), None)
        self._is_file = self._whole is not None and any(
            name == self._whole.name for name, *_ in file_inputs(action.inputs)
        )
        self._is_plain_json = target.content_type == JSON and all(p.location == "json" for p in target.parameters)
        self._pieces = re.split(r"({\w+})", target.path)
        self._address: _Address = target.path, quote(target.path, safe=SAFE_IN_PATH).encode("ascii"), b""

    def write(self, outer: Scope, inputs: JsonObject) -> tuple[Scope, bytes]:
        """Return the scope and the body of the request for a valid input. `outer` is the caller's own scope.

        Raises InvalidInput for a value that cannot be sent.
        """
        path, raw_path, query = self._address
        if self._is_plain_json:
            try:
                body = orjson.dumps(inputs)
            except TypeError as error:  # orjson refuses to go deeper than 254 levels
                raise unsendable("", "is nested too deeply") from error
            headers = [_ACCEPT_JSON, self._content_type, content_length(len(body))]
            for pair in outer["headers"]:
                if pair[0] not in NOT_CARRIED:
                    headers.append(pair)
        else:
            (path, raw_path, query), own, cookies, body = self._place_all(inputs)
            # The input's own headers replace the caller's of the same name; its cookies join them.
            replaced = NOT_CARRIED.union(name for name, _ in own)
            carried = [pair for pair in outer["headers"] if pair[0] not in replaced]
            if cookies:
                carried.append((b"cookie", "; ".join(cookies).encode("latin-1")))
                joined = read_fields(carried)[b"cookie"]
                carried = [*(pair for pair in carried if pair[0] != b"cookie"), (b"cookie", joined)]
            headers = [_ACCEPT_JSON, *own, *carried]
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

    def _place_all(self, inputs: JsonObject) -> tuple[_Address, list[tuple[bytes, bytes]], list[str], bytes]:
        """Return the address with its query, the headers and cookies from the input, and the body."""
        target, (path, raw_path, _) = self._target, self._address
        query: list[tuple[str, str]] = []
        parts: _Parts | None = None
        for name, value in inputs.items():
            parameter = self._parameters.get(name)
            if parameter is None:
                if self._rest != "json" and name.lower() in _OTHER_METHODS:
                    raise unsendable(pointer_to([name]), "is not an input of this action")
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
            named, body = write_multipart(parts.form, parts.files)
            return body, (b"content-type", named.encode("latin-1"))
        if content_type == FORM:
            body = urlencode(parts.form).encode("ascii")
        elif self._whole is None:
            body = _json_text(parts.json, "")
        elif parts.whole is None:
            body = b""
        elif self._is_file:
            file = read_file(self._whole.wire_name, parts.whole, pointer_to([self._whole.name]))
            named = file.media_type if "*" in content_type else content_type
            return file.content, (b"content-type", named.encode("latin-1"))
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
        raise unsendable(pointer, "is nested too deeply") from error


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
                raise unsendable(pointer_to([parameter.name]), 'must not be empty, "." or ".."')
            if "/" in text and not parameter.spans_segments:
                raise unsendable(pointer_to([parameter.name]), 'must not contain "/"')
            if len(text) > MAX_PATH_VALUE:
                raise unsendable(pointer_to([parameter.name]), f"must not be longer than {MAX_PATH_VALUE} characters")
            if "\0" in text:
                raise unsendable(pointer_to([parameter.name]), "must not contain a null character")
            parts.path[name] = (text, quote(text, safe="/" if parameter.spans_segments else ""))
        case "header" | "cookie" as place:
            for text in _texts(value):
                if any(character in text for character in "\r\n\0"):
                    raise unsendable(pointer_to([parameter.name]), "must not contain line breaks or null characters")
                try:
                    written = text.encode("latin-1")
                except UnicodeEncodeError as error:
                    raise unsendable(pointer_to([parameter.name]), "must contain Latin-1 characters only") from error
                if place == "header":
                    parts.headers.append((name.lower().encode("latin-1"), written))
                else:
                    cookie: SimpleCookie = SimpleCookie()
                    cookie[name] = text
                    parts.cookies.append(cookie[name].OutputString())
        case "rows":
            parts.form += _rows(name, value)
        case "file":
            for index, item in enumerate(value if isinstance(value, list) else [value]):
                if item is not None:
                    where = pointer_to([parameter.name, index] if isinstance(value, list) else [parameter.name])
                    parts.files.append((name, read_file(name, item, where)))
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
