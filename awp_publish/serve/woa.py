"""The WoA REST door: `POST /agents/{agent_id}/invoke` (draft-gaikwad-woa-00, sections 4.3.1, 5.1 and 5.2)."""

import re
import secrets
from collections.abc import Mapping
from functools import partial
from itertools import count
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
    Fields,
    RawHeaders,
    Receive,
    Reply,
    Scope,
    Send,
    accepts,
    preflight,
    read_fields,
    send_reply,
)

PROTOCOL: Final = "woa"
VERSION: Final = "1"
METHODS: Final = "POST, OPTIONS"
_REQUEST_ID: Final = re.compile(rb"[A-Za-z0-9._-]{1,128}")
_JSON_TYPE: Final = re.compile(rb'application/json\s*(;\s*charset\s*=\s*"?utf-?8"?\s*)?', re.IGNORECASE)
_STATIC_HEADERS: Final[RawHeaders] = (
    (b"content-type", b"application/json"),
    (b"cache-control", b"no-store"),
    NO_SNIFFING,
)
_PROCESS: Final = secrets.token_hex(8)
_numbers: Final = count(1)
"""Request ids are the process and a number: unlike between processes, and without a system call for each request."""


class HungUp(Exception):
    """The caller left before its request was complete; there is nobody to answer."""


def door_of(invoke_path: str) -> Door:
    """What the documents may say about this door."""
    return Door(PROTOCOL, VERSION, invoke_path)


class InvokeAddress:
    """The invocation URL template, read backwards: from a request to the agent it means."""

    def __init__(self, template: str) -> None:
        self._template = template
        path, _, query = template.partition("?")
        self._path = re.compile(_as_pattern(path))
        pairs = parse_qsl(query, keep_blank_values=True)
        self._query = [(name, re.compile(_as_pattern(value))) for name, value in pairs if "{agent_id}" in value]
        self._fixed = [(name, value) for name, value in pairs if "{agent_id}" not in value]

    def calls(self, catalog: Catalog) -> Mapping[str, str]:
        """The invocation paths of the catalog's agents, where an agent is told by the path alone."""
        if "?" in self._template or "{agent_id}" not in self._template:
            return {}
        return {self._template.replace("{agent_id}", agent.id): agent.id for agent in catalog.agents}

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
        fields = read_fields(scope["headers"])
        if scope["method"] == "OPTIONS":
            await send_reply(self._preflight(fields), send)
            return
        request_id = _request_id(fields)
        deliver = partial(self._deliver, scope["path"], request_id, self._cors(fields) if self._origins else (), send)
        try:
            _check_request(scope["method"], fields)
            body = await self._read_body(fields, receive)
            agent, operation, given = _read_envelope(parse_json(body), agent_id)
            action = self._invoker.find(agent, operation)
        except HungUp:
            return
        except Problem as problem:
            await deliver(problem)
            return
        call = Call(action, given, request_id, PROTOCOL, scope, partial(_wait_for_hang_up, receive))
        await self._invoker.run(call, deliver)

    async def _read_body(self, fields: Fields, receive: Receive) -> bytes:
        declared = fields.get(b"content-length")
        if declared is not None and declared.isdigit() and int(declared) > self._most:
            raise self._too_large()
        body = bytearray()
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise HungUp
            body += message.get("body", b"")
            if len(body) > self._most:
                raise self._too_large()
            if not message.get("more_body", False):
                return bytes(body)

    def _too_large(self) -> Problem:
        return BodyTooLarge(f"The body is larger than {self._most} bytes.", members={"max_body_bytes": self._most})

    async def _deliver(self, path: str, request_id: str, cors: RawHeaders, send: Send, result: Result) -> None:
        extra = (*cors, (b"x-request-id", request_id.encode()))
        if isinstance(result, Problem):
            await send_reply(
                render_problem(result, self._types, self._recoveries, quote(path), request_id, extra), send
            )
            return
        length = (b"content-length", b"%d" % len(result.body))
        headers = [*_STATIC_HEADERS, length, *extra, *result.headers]
        await send({"type": "http.response.start", "status": result.status, "headers": headers})
        await send({"type": "http.response.body", "body": result.body})

    # --- CORS: an explicit list, never credentials ---

    def _cors(self, fields: Fields) -> RawHeaders:
        if not self._origins:
            return ()
        if "*" in self._origins:
            return ((b"access-control-allow-origin", b"*"), _EXPOSED)
        vary = ((b"vary", b"Origin"),)
        origin = fields.get(b"origin")
        if origin is None or origin.decode("latin-1") not in self._origins:
            return vary
        return ((b"access-control-allow-origin", origin), _EXPOSED, *vary)

    def _preflight(self, fields: Fields) -> Reply:
        allowed = dict(self._cors(fields)).get(b"access-control-allow-origin")
        if allowed is None:
            return Reply(204, ((b"allow", METHODS.encode()),))
        return preflight(METHODS, allowed, ((b"vary", b"Origin"),))


_EXPOSED: Final = (b"access-control-expose-headers", b"X-Request-Id, Location, Retry-After, Link")


def _request_id(fields: Fields) -> str:
    given = fields.get(b"x-request-id")
    return (
        given.decode("ascii")
        if given is not None and _REQUEST_ID.fullmatch(given)
        else f"{_PROCESS}{next(_numbers):016x}"
    )


def _check_request(method: str, fields: Fields) -> None:
    """WoA section 4.3.1: POST, a body of type application/json, and an answer that is JSON."""
    if method != "POST":
        raise MethodNotAllowed(f"Invoke with POST, not {method[:20]}.", headers=[("Allow", METHODS)])
    accept = fields.get(b"accept")
    if accept is not None and not accepts(accept, "application/json"):
        raise NotAcceptable(f'The answer is application/json, which "Accept: {_shown(accept)}" rules out.')
    content_type = fields.get(b"content-type", b"")
    if content_type != b"application/json" and not _JSON_TYPE.fullmatch(content_type.strip()):
        named = f'"{_shown(content_type)}"' if content_type else "no Content-Type"
        raise UnsupportedMediaType(f"The body must be application/json in UTF-8; the request has {named}.")
    if fields.get(b"content-encoding", b"identity") != b"identity":
        raise UnsupportedMediaType("The body must not be content-encoded.")


def _shown(value: bytes) -> str:
    return value[:100].decode("latin-1")


def _read_envelope(document: object, url_agent: str | None) -> tuple[str, str | None, Mapping[str, object]]:
    """Agent, operation and input (WoA section 5.1); further members are ignored."""
    if not isinstance(document, dict):
        raise EnvelopeNotAnObject(f"The body is {_kind(document)}, not an object.")
    agent = document.get("agent", url_agent)
    if not isinstance(agent, str):
        raise _wrong_member(document, "agent")
    if url_agent is not None and agent != url_agent:
        raise AgentMismatch(f'The URL names agent "{url_agent[:100]}", the envelope "{agent[:100]}".')
    operation = document.get("operation")
    if not isinstance(operation, str) and "operation" in document:
        raise _wrong_member(document, "operation")
    given = document.get("input")
    if not isinstance(given, dict):
        raise _wrong_input(document)
    return agent, operation, given


def _wrong_member(document: Mapping[str, object], name: str) -> Problem:
    if name not in document:
        return InvalidEnvelope(f"{name}: is missing, and the URL does not name an agent either.")
    return InvalidEnvelope(f"{name}: must be a string, not {_kind(document[name])}.")


def _wrong_input(document: Mapping[str, object]) -> Problem:
    if "input" not in document:
        return MissingInput("The envelope has no member input.")
    detail = f"must be an object, not {_kind(document['input'])}"
    return InvalidInput(f"The input {detail}.", errors=[Violation("", detail)])


def _kind(value: object) -> str:
    """A JSON value's kind, in words."""
    return _KINDS.get(type(value), "a number")


_KINDS: Final = {dict: "an object", list: "an array", str: "a string", bool: "a boolean", type(None): "null"}


async def _wait_for_hang_up(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
