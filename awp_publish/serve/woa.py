"""The WoA REST door: `POST /agents/{agent_id}/invoke` (draft-gaikwad-woa-00, sections 4.3.1, 5.1 and 5.2)."""

import re
import secrets
from collections.abc import Mapping
from functools import partial
from typing import Final
from urllib.parse import parse_qs, parse_qsl, quote

from awp_publish.invoke import Call, Invoker, Result
from awp_publish.model import Catalog, Door
from awp_publish.problems import (
    AgentMismatch,
    BodyTooLarge,
    EnvelopeNotAnObject,
    InvalidEnvelope,
    InvalidInput,
    MethodNotAllowed,
    MissingInput,
    NotAcceptable,
    Problem,
    UnsupportedMediaType,
    Violation,
)
from awp_publish.serve.json_text import parse_json
from awp_publish.serve.problem_json import render_problem
from awp_publish.serve.reply import (
    NO_SNIFFING,
    RawHeaders,
    Receive,
    Reply,
    Scope,
    Send,
    accepts,
    header,
    preflight,
    send_reply,
)

PROTOCOL: Final = "woa"
VERSION: Final = "1"
METHODS: Final = "POST, OPTIONS"
_REQUEST_ID: Final = re.compile(r"[A-Za-z0-9._-]{1,128}")
_JSON_TYPE: Final = re.compile(r'application/json\s*(;\s*charset\s*=\s*"?utf-?8"?\s*)?', re.IGNORECASE)
_STATIC_HEADERS: Final[RawHeaders] = (
    (b"content-type", b"application/json"),
    (b"cache-control", b"no-store"),
    NO_SNIFFING,
)


class HungUp(Exception):
    """The caller left before its request was complete; there is nobody to answer."""


def door_of(invoke_path: str) -> Door:
    """What the documents may say about this door."""
    return Door(PROTOCOL, VERSION, invoke_path)


class InvokeAddress:
    """The invocation URL template, read backwards: from a request to the agent it means."""

    def __init__(self, template: str) -> None:
        path, _, query = template.partition("?")
        self._path = re.compile(_as_pattern(path))
        pairs = parse_qsl(query, keep_blank_values=True)
        self._query = [(name, re.compile(_as_pattern(value))) for name, value in pairs if "{agent_id}" in value]
        self._fixed = [(name, value) for name, value in pairs if "{agent_id}" not in value]

    def match(self, path: str, query_string: bytes) -> re.Match[str] | None:
        """Whether a request is an invocation.

        A path with a placeholder is shared with the application's own, so its query has to be there too.
        """
        matched = self._path.fullmatch(path)
        if matched is None or not self._path.groups or not self._fixed:
            return matched
        given = parse_qs(query_string.decode("latin-1"), keep_blank_values=True)
        return matched if all(value in given.get(name, ()) for name, value in self._fixed) else None

    def agent_of(self, matched: re.Match[str], query_string: bytes) -> str | None:
        """The agent that the URL names, None if it names none."""
        if self._path.groups:
            return matched["agent_id"]
        if not self._query:
            return None
        given = parse_qs(query_string.decode("latin-1"))
        found = (pattern.fullmatch(value) for name, pattern in self._query for value in given.get(name, ()))
        return next((match["agent_id"] for match in found if match), None)


def _as_pattern(text: str) -> str:
    return re.escape(text).replace(re.escape("{agent_id}"), r"(?P<agent_id>[^/]+)")


class WoaDoor:
    """Answers invocation requests for one catalog."""

    def __init__(self, catalog: Catalog, invoker: Invoker, max_body_bytes: int, allow_origins: tuple[str, ...]) -> None:
        self._invoker = invoker
        self._most = max_body_bytes
        self._origins = frozenset(allow_origins)
        self._types = catalog.absolute(catalog.paths.problems)
        self._recoveries = catalog.site.errors

    async def __call__(self, scope: Scope, receive: Receive, send: Send, agent_id: str | None) -> None:
        """Answer one request; `agent_id` is the agent that the URL names."""
        headers: RawHeaders = scope["headers"]
        extra = (*self._cors(headers), (b"x-request-id", (request_id := _request_id(headers)).encode()))
        if scope["method"] == "OPTIONS":
            await send_reply(self._preflight(headers), send)
            return
        deliver = partial(self._deliver, scope["path"], request_id, extra, send)
        try:
            _check_request(scope["method"], headers)
            envelope = _read_envelope(parse_json(await self._read_body(headers, receive)), agent_id)
            action = self._invoker.find(*envelope[:2])
        except HungUp:
            return
        except Problem as problem:
            await deliver(problem)
            return
        call = Call(action, envelope[2], request_id, PROTOCOL, scope, partial(_wait_for_hang_up, receive))
        await self._invoker.run(call, deliver)

    async def _read_body(self, headers: RawHeaders, receive: Receive) -> bytes:
        declared = header(headers, b"content-length")
        if declared is not None and declared.isdigit() and int(declared) > self._most:
            raise self._too_large()
        parts: list[bytes] = []
        size = 0
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise HungUp
            part = message.get("body", b"")
            size += len(part)
            if size > self._most:
                raise self._too_large()
            parts.append(part)
            if not message.get("more_body", False):
                return b"".join(parts)

    def _too_large(self) -> Problem:
        return BodyTooLarge(f"The body is larger than {self._most} bytes.", members={"max_body_bytes": self._most})

    async def _deliver(self, path: str, request_id: str, extra: RawHeaders, send: Send, result: Result) -> None:
        if isinstance(result, Problem):
            reply = render_problem(result, self._types, self._recoveries, quote(path), request_id, extra)
        else:
            length = (b"content-length", b"%d" % len(result.body))
            reply = Reply(result.status, (*_STATIC_HEADERS, length, *extra, *result.headers), result.body)
        await send_reply(reply, send)

    # --- CORS: an explicit list, never credentials ---

    def _cors(self, headers: RawHeaders) -> RawHeaders:
        if not self._origins:
            return ()
        origin = header(headers, b"origin")
        if "*" in self._origins:
            return ((b"access-control-allow-origin", b"*"), _EXPOSED)
        vary = ((b"vary", b"Origin"),)
        if origin is None or origin not in self._origins:
            return vary
        return ((b"access-control-allow-origin", origin.encode("latin-1")), _EXPOSED, *vary)

    def _preflight(self, headers: RawHeaders) -> Reply:
        allowed = dict(self._cors(headers)).get(b"access-control-allow-origin")
        if allowed is None:
            return Reply(204, ((b"allow", METHODS.encode()),))
        return preflight(METHODS, allowed, ((b"vary", b"Origin"),))


_EXPOSED: Final = (b"access-control-expose-headers", b"X-Request-Id, Location, Retry-After, Link")


def _request_id(headers: RawHeaders) -> str:
    given = header(headers, b"x-request-id")
    return given if given is not None and _REQUEST_ID.fullmatch(given) else secrets.token_hex(16)


def _check_request(method: str, headers: RawHeaders) -> None:
    """WoA section 4.3.1: POST, a body of type application/json, and an answer that is JSON."""
    if method != "POST":
        raise MethodNotAllowed(f"Invoke with POST, not {method[:20]}.", headers=[("Allow", METHODS)])
    accept = header(headers, b"accept")
    if not accepts(accept, "application/json"):
        raise NotAcceptable(f'The answer is application/json, which "Accept: {(accept or "")[:100]}" rules out.')
    content_type = header(headers, b"content-type")
    if content_type is None or not _JSON_TYPE.fullmatch(content_type.strip()):
        named = f'"{content_type[:100]}"' if content_type else "no Content-Type"
        raise UnsupportedMediaType(f"The body must be application/json in UTF-8; the request has {named}.")
    if header(headers, b"content-encoding") not in (None, "identity"):
        raise UnsupportedMediaType("The body must not be content-encoded.")


def _read_envelope(document: object, url_agent: str | None) -> tuple[str, str | None, Mapping[str, object]]:
    """Agent, operation and input (WoA section 5.1); further members are ignored."""
    if not isinstance(document, dict):
        raise EnvelopeNotAnObject(f"The body is {_kind(document)}, not an object.")
    agent, operation = _text(document, "agent"), _text(document, "operation")
    if agent is not None and url_agent is not None and agent != url_agent:
        raise AgentMismatch(f'The URL names agent "{url_agent[:100]}", the envelope "{agent[:100]}".')
    named = url_agent if agent is None else agent
    if named is None:
        raise InvalidEnvelope("agent: is missing, and the URL does not name an agent either.")
    if "input" not in document:
        raise MissingInput("The envelope has no member input.")
    given = document["input"]
    if not isinstance(given, dict):
        detail = f"must be an object, not {_kind(given)}"
        raise InvalidInput(f"The input {detail}.", errors=[Violation("", detail)])
    return named, operation, given


def _text(document: Mapping[str, object], name: str) -> str | None:
    value = document.get(name)
    if name in document and not isinstance(value, str):
        raise InvalidEnvelope(f"{name}: must be a string, not {_kind(value)}.")
    return value if isinstance(value, str) else None


def _kind(value: object) -> str:
    """A JSON value's kind, in words."""
    return _KINDS.get(type(value), "a number")


_KINDS: Final = {dict: "an object", list: "an array", str: "a string", bool: "a boolean", type(None): "null"}


async def _wait_for_hang_up(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
