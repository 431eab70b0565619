"""The overview at `/agents`: what a site publishes, a form for every door, what a caller sees, how to connect.

It is for the site's owner, and served only if the site enables it. It works without scripts: its forms post to it, and
it sends their inputs through the whole application in this process, as a client would. Of the visitor's own request,
only the cookies and the address are passed on.
"""

import asyncio
import base64
import json
import logging
import re
import secrets
import shlex
import time
import tomllib
from collections.abc import Awaitable, Iterable, Mapping, Sequence
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from difflib import SequenceMatcher
from functools import partial
from keyword import iskeyword
from pathlib import Path
from string import Template
from typing import Any, Final, NamedTuple, cast, get_args
from urllib.parse import quote, urlencode, urlsplit

import orjson

from awp_publish.calls.authentication import AuthenticationGate
from awp_publish.calls.call import Call, Deliver, Label, Principal, Result
from awp_publish.calls.invoke import Carry, Handle
from awp_publish.calls.tokens import Expired, NotOurs, Tokens
from awp_publish.checks import Finding
from awp_publish.checks.urls import is_loopback
from awp_publish.documents.plain_request import QUERY_METHODS
from awp_publish.http.credentials import is_cross_site, read_credentials, refuse_foreign_host
from awp_publish.http.documents import Encodings, Prepared
from awp_publish.http.endpoint import DoorRequest, Endpoint, ProblemRenderer
from awp_publish.http.exchange import (
    NO_SNIFFING,
    AsgiApp,
    Cors,
    Fields,
    RawHeaders,
    Receive,
    Reply,
    Scope,
    Send,
    read_body,
    route_path,
    send_reply,
)
from awp_publish.http.forms import FieldReader, is_form, read_form, read_query
from awp_publish.http.html import Html, Pieces, inner, tag
from awp_publish.http.in_process import FORWARDED, PageExchange, PageRequest, TalkFailed, talk
from awp_publish.http.startup import check_published
from awp_publish.model import (
    DEFAULT_OPERATION,
    KNOWN,
    OPERATOR,
    PUBLIC,
    UNIT_NAMES,
    Action,
    Catalog,
    Effect,
    JsonObject,
    RateLimit,
)
from awp_publish.plugin import Answer, Context, Endpoints
from awp_publish.plugins.actions_json.document import SITE_ACTION, SITE_TOOL
from awp_publish.plugins.identity.botauth import WebBotAuth
from awp_publish.plugins.pages.negotiation import NegotiatedPages, negotiate
from awp_publish.plugins.traffic.record import TrafficReport, traffic_breakdowns, traffic_svg, traffic_table
from awp_publish.problems import (
    CrossSiteCookies,
    DeclarationError,
    InsufficientPermissions,
    InvalidInput,
    Problem,
    StoreUnavailable,
    UnknownAction,
    UnsupportedMediaType,
)
from awp_publish.schema import is_secret
from awp_publish.schema.media import BINARY
from awp_publish.schema.reading import (
    OBJECT,
    answer_schema,
    branches,
    kinds,
    members,
    object_facts,
    options,
    required_members,
    resolved,
)
from awp_publish.schema.redaction import HIDDEN, input_redactor
from awp_publish.stores.store import Add, Swap
from awp_publish.threads import run_in_thread

logger: Final = logging.getLogger("awp_publish.overview")

FILES: Final = {"overview.css": "text/css", "overview.js": "text/javascript"}

SECURITY: Final = (
    (b"content-security-policy", b"default-src 'self'; frame-ancestors 'none'; form-action 'self'; base-uri 'none'"),
    (b"referrer-policy", b"same-origin"),
    (b"x-robots-tag", b"noindex"),
    (b"cache-control", b"no-store"),
    NO_SNIFFING,
)

MAX_DETAILED: Final = 100
"""Maximum actions whose inputs and outputs are listed on the main page; otherwise, each has them on its own page."""

MAX_COLUMNS: Final = 12
"""Maximum callers that are compared side by side."""

APPROVING_FOR: Final = 5.0
"""Seconds after which the lock of an operator who writes approvals expires."""

APPROVABLE_FOR: Final = 3600.0
"""Seconds for which an approval form is valid."""

TRAFFIC_DAYS: Final = 30
MAX_FORM_BYTES: Final = 4_194_304
MAX_ANSWER_BYTES: Final = 1_048_576
MAX_COMPARED_LINES: Final = 400
MAX_EXPECTED: Final = 2000
"""Maximum characters of an answer in the assertion of a generated test."""
TOKEN_BYTES: Final = 4
"""Approximate bytes of JSON or English per token of a model."""


# --- HTML ---


STATIC: Final = Path(__file__).with_name("static")
fill: Final = Pieces(STATIC / "overview.html").fill
_CLIENTS: Final[list[dict[str, str]]] = tomllib.loads((STATIC / "clients.toml").read_text("utf-8"))["clients"]


def table(caption: str, heads: Sequence[str], rows: Iterable[Sequence[object]]) -> Html:
    """Return a table that scrolls if it does not fit."""
    lines = [
        tag("tr", (tag("th" if not n else "td", cell, scope=None if n else "row") for n, cell in enumerate(row)))
        for row in rows
    ]
    if not lines:
        return tag("p", "None.", class_="none")
    return fill("table", caption=caption, heads=[tag("th", name, scope="col") for name in heads], rows=lines)


def code(text: object) -> Html:
    return tag("code", text)


def block(text: object, label: str) -> Html:
    """Return text to copy."""
    return fill("block", text=text, label=label)


def pretty(value: object) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False, default=str)


def tokens_of(count: int) -> int:
    """Return the approximate number of tokens in `count` bytes."""
    return -(-count // TOKEN_BYTES)


def size_of(count: int) -> str:
    return f"{count:,} bytes, about {tokens_of(count):,} tokens"


# --- Descriptions of actions and schemas ---

_KIND_WORDS: Final = {
    "string": "text",
    "integer": "whole number",
    "number": "number",
    "boolean": "yes or no",
    "array": "list",
    "object": "object",
}
_EFFECT_WORDS: Final[Mapping[Effect, str]] = {
    "read": "only reads",
    "idempotent": "changes something, and once more changes nothing more",
    "write": "changes something each time",
    "delete": "deletes",
    "irreversible": "cannot be undone",
}
_COUNTED_WORDS: Final = {"ip": "for each address", "global": "for all callers together"}
_LIMIT_WORDS: Final = {
    "minimum": "at least {}",
    "exclusiveMinimum": "more than {}",
    "maximum": "at most {}",
    "exclusiveMaximum": "less than {}",
    "minLength": "at least {} characters",
    "maxLength": "at most {} characters",
    "minItems": "at least {} entries",
    "maxItems": "at most {} entries",
    "multipleOf": "a multiple of {}",
    "pattern": "matches {}",
    "format": "{}",
    "contentMediaType": "{}",
    "contentEncoding": "as {}",
}
MAX_DEPTH: Final = 3
"""Levels of nested objects whose members are listed."""


def limit_words(limit: RateLimit) -> str:
    """Describe a limit: "30 a minute for each caller"."""
    unit = UNIT_NAMES[limit.unit]
    article = "an" if unit == "hour" else "a"
    window = f"{article} {unit}" if limit.count == 1 else f"in {limit.count} {unit}s"
    return f"{limit.requests} {window} {_COUNTED_WORDS.get(limit.scope or '', 'for each caller')}"


def policy_words(catalog: Catalog, action: Action) -> list[str]:
    """Describe the gates and limits of an action, one phrase each."""
    phrases = [_EFFECT_WORDS[action.effect]]
    if action.rate_limit is not None:
        phrases.append(limit_words(action.rate_limit))
    if catalog.site.rate_limit is not None:
        phrases.append(f"with all other actions {limit_words(catalog.site.rate_limit)}")
    if action.needs_confirmation:
        phrases.append("a person confirms")
    if action.scopes:
        phrases.append(f"callers need the scope{'s' * (len(action.scopes) > 1)} {', '.join(action.scopes)}")
    elif action.auth_required:
        phrases.append("callers have to be known")
    if action.allow_agents:
        phrases.append(f"for {', '.join(action.allow_agents)} only")
    if action.requires:
        phrases.append(f"only after a success of {', '.join(action.requires)}")
    if before := [one for one in action.depends_on if one not in action.requires]:
        phrases.append(f"comes after {', '.join(before)}")
    if action.idempotency is not None:
        phrases.append(f"the same key within {action.idempotency.window} gives the first answer again")
    if action.is_background:
        phrases.append("runs in the background, as a job")
    phrases.append(f"at most {action.timeout:g} seconds")
    return phrases


def kind_words(schema: object, root: JsonObject, depth: int = 0) -> str:
    """Describe a value's type: "whole number", "list of text", "one of new, used"."""
    facts = resolved(schema, root)
    if values := options(facts, root):
        shown = ", ".join(json.dumps(one, ensure_ascii=False) for one in values[:12])
        return f"one of {shown}" + (", ..." if len(values) > 12 else "")
    if facts.get("contentEncoding") == "base64":
        return "file"
    words = []
    for kind in kinds(facts, root):
        if kind == "array" and "items" in facts and depth < MAX_DEPTH:
            words.append(f"list of {kind_words(facts['items'], root, depth + 1)}")
        else:
            words.append(_KIND_WORDS.get(kind, kind))
    return " or ".join(words) or "anything"


def limits_of(facts: JsonObject) -> list[str]:
    """Describe the limits of a value: "at least 1 character"."""
    found = ((words, facts[key]) for key, words in _LIMIT_WORDS.items() if key in facts)
    one = {" characters": " character", " entries": " entry"}
    phrases = ((words.format(value), value) for words, value in found)
    return [re.sub(r" (characters|entries)$", lambda end: one[end[0]], text) if n == 1 else text for text, n in phrases]


def schema_rows(schema: JsonObject, root: JsonObject, prefix: str = "", depth: int = 0) -> Iterable[Sequence[object]]:
    """Yield a row for each member of an object, including those of nested objects."""
    facts = object_facts(schema, root)
    required = required_members(facts)
    for name, part in members(facts).items():
        own = resolved(part, root)
        limits = limits_of(own)
        if "default" in own:
            limits.append(f"{json.dumps(own['default'], ensure_ascii=False, default=str)} if left out")
        described = own.get("description", "")
        needed = "required" if name in required else "optional"
        yield code(prefix + name), kind_words(part, root), needed, described, ", ".join(limits)
        items = own.get("items")
        if depth < MAX_DEPTH and members(own):
            yield from schema_rows(own, root, f"{prefix}{name}.", depth + 1)
        elif depth < MAX_DEPTH and isinstance(items, OBJECT) and members(resolved(items, root)):
            yield from schema_rows(resolved(items, root), root, f"{prefix}{name}[].", depth + 1)


def schema_table(caption: str, schema: JsonObject) -> Html:
    """Return the members of a schema as a table, or a description of its type if it has none."""
    rows = list(schema_rows(schema, schema))
    if rows:
        return table(caption, ("name", "kind", "needed", "meaning", "limits"), rows)
    is_empty = kinds(resolved(schema, schema), schema) == ["object"] and "properties" in resolved(schema, schema)
    return tag("p", f"{caption}: ", "nothing" if is_empty else kind_words(schema, schema), ".")


# --- Requests for each door ---


class Wire(NamedTuple):
    """A protocol for calls: its key in URLs, its title, and the door that the site has to enable, "" for none."""

    key: str
    title: str
    door: str


WIRES: Final = (
    Wire("woa", "WoA", ""),
    Wire("plain", "Plain HTTP", ""),
    Wire("mcp", "MCP 2026-07-28", "mcp"),
    Wire("mcp-2025-11-25", "MCP 2025-11-25", "mcp"),
    Wire("a2a", "A2A", "a2a"),
    Wire("awp", "AWP", "awp"),
)
MODERN: Final = "2026-07-28"
CLASSIC: Final = "2025-11-25"
_MCP: Final = "io.modelcontextprotocol/"


@dataclass(frozen=True, slots=True)
class Filled:
    """A completed form: the input, and the fields besides it. `secrets` are headers whose values are not displayed."""

    given: Mapping[str, object]
    key: str = ""
    confirmation: str = ""
    receipts: tuple[str, ...] = ()
    session: str = ""
    message_id: str = ""
    secrets: tuple[tuple[str, str], ...] = ()

    def beside(self, key_field: str, receipts: object) -> dict[str, object]:
        """Return the non-empty fields besides the input."""
        found = {key_field: self.key, "confirmation": self.confirmation, "receipts": receipts, "session": self.session}
        return {name: value for name, value in found.items() if value}


@dataclass(frozen=True, slots=True)
class WireRequest:
    """One request of a protocol. `frames` are the messages of a WebSocket, in order."""

    wire: Wire
    method: str
    path: str
    headers: tuple[tuple[str, str], ...] = ()
    body: object = None
    frames: tuple[JsonObject, ...] = ()

    def content(self) -> bytes:
        return b"" if self.body is None else orjson.dumps(self.body)

    def text(self, origin: str) -> str:
        """Return the request for display, without credentials."""
        parts = urlsplit(origin)
        lines = [f"{self.method} {parts.path}{self.path} HTTP/1.1", f"Host: {parts.netloc}"]
        lines += [f"{name}: {_masked(name, value)}" for name, value in self.headers]
        if self.frames:
            lines[1:] = ["Upgrade: websocket", *lines[1:]]
            return "\n".join(lines) + "".join(f"\n\n> {pretty(frame)}" for frame in self.frames)
        return "\n".join(lines) + ("" if self.body is None else f"\n\n{pretty(self.body)}")

    def curl(self, origin: str) -> str:
        """Return the request as a curl command, without credentials."""
        words = ["curl", "-i"] + (["-X", self.method] if self.method not in ("GET", "POST") else [])
        lines = [shlex.join([*words, origin + self.path])]
        lines += [f"  -H {shlex.quote(f'{name}: {_masked(name, value)}')}" for name, value in self.headers]
        if self.body is not None:
            lines.append(f"  -d {shlex.quote(orjson.dumps(self.body).decode())}")
        return " \\\n".join(lines)


_MASK: Final = "***"
_SHOWN_HEADERS: Final = ("content-type", "accept", "idempotency-key", "mcp-", "a2a-", "awp-")
"""Prefixes of headers whose values are displayed; all others are treated as credentials."""


def _masked(name: str, value: str) -> str:
    """Return a header's value with credentials masked, since pages end up in screenshots."""
    if name.lower() == "authorization":
        return f"{value.partition(' ')[0]} {_MASK}" if " " in value else _MASK
    return value if name.lower().startswith(_SHOWN_HEADERS) else _MASK


def write_request(wire: Wire, catalog: Catalog, action: Action, filled: Filled) -> WireRequest:
    """Write the request of a call for one door."""
    paths, json_type = catalog.paths, ("Content-Type", "application/json")
    key_field = action.idempotency.key_field if action.idempotency else "idempotency_key"
    given, receipts = filled.given, list(filled.receipts)
    secret = filled.secrets
    if wire.key == "woa":
        named = {} if action.operation == DEFAULT_OPERATION else {"operation": action.operation}
        agent = {} if "{agent_id}" in paths.invoke else {"agent": action.agent_id}
        body: dict[str, object] = {**agent, **named, "input": given, **filled.beside(key_field, receipts)}
        return WireRequest(wire, "POST", catalog.invoke_path_of(action), (json_type, *secret), body)
    if wire.key == "plain":
        headers = {
            "Idempotency-Key": filled.key,
            "AWP-Confirmation": filled.confirmation,
            "AWP-Receipt": ", ".join(receipts),
            "AWP-Session": filled.session,
        }
        beside = (*((name, value) for name, value in headers.items() if value), *secret)
        path = catalog.plain_path_of(action)
        if action.method not in QUERY_METHODS:
            return WireRequest(wire, action.method, path, (json_type, *beside), given)
        query = urlencode(fields_of(given))
        return WireRequest(wire, action.method, path + (f"?{query}" if query else ""), beside)
    if wire.door == "mcp":
        others = filled.beside("idempotencyKey", receipts)
        meta: dict[str, object] = {f"awp/{name}": value for name, value in others.items()}
        name = SITE_TOOL if action.id == SITE_ACTION else action.id
        headers = {"Accept": "application/json, text/event-stream", "MCP-Protocol-Version": CLASSIC}
        if wire.key == "mcp":
            meta |= {f"{_MCP}protocolVersion": MODERN, f"{_MCP}clientCapabilities": {}}
            headers |= {"MCP-Protocol-Version": MODERN, "Mcp-Method": "tools/call", "Mcp-Name": name}
            headers |= _repeated_inputs(action, given)
        params: dict[str, object] = {"name": name, "arguments": given, **({"_meta": meta} if meta else {})}
        sent = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        return WireRequest(wire, "POST", paths.mcp, (json_type, *headers.items(), *secret), sent)
    if wire.key == "a2a":
        data = {"skill": action.id, "input": given, **filled.beside(key_field, receipts)}
        message = {"messageId": filled.message_id or "1", "role": "ROLE_USER", "parts": [{"data": data}]}
        sent = {"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": {"message": message}}
        return WireRequest(wire, "POST", paths.a2a, (json_type, ("A2A-Version", "1.0"), *secret), sent)
    hello = {"client_name": "overview", "client_version": "1", "awp_version": "0.1"}
    params = {"skill": action.id, "args": given, **filled.beside(key_field, receipts)}
    params.pop(key_field, None)
    invoke = {"id": "2", "type": "request", "method": "skills.invoke", "params": params}
    invoke |= {"meta": {"idempotency_key": filled.key}} if filled.key else {}
    greeting = {"id": "1", "type": "request", "method": "awp.hello", "params": hello}
    return WireRequest(wire, "GET", paths.awp, secret, frames=(greeting, invoke))


def _repeated_inputs(action: Action, given: Mapping[str, object]) -> dict[str, str]:
    """Return the headers that repeat inputs (MCP 2026-07-28, Streamable HTTP, `x-mcp-header`)."""
    marked = {
        name: part.get("x-mcp-header") for name, part in members(action.inputs).items() if isinstance(part, OBJECT)
    }
    found = {}
    for name, header in marked.items():
        if isinstance(header, str) and isinstance(value := given.get(name), (str, int, float)):
            text = ("true" if value else "false") if isinstance(value, bool) else str(value)
            is_plain = text.isascii() and text.isprintable() and text == text.strip()
            encoded = f"=?base64?{base64.b64encode(text.encode()).decode()}?="
            found[f"Mcp-Param-{header}"] = text if is_plain else encoded
    return found


def fields_of(given: Mapping[str, object]) -> list[tuple[str, str]]:
    """Return an input as the fields of a query: lists are repeated, objects are JSON."""
    found = []
    for name, value in given.items():
        for one in value if isinstance(value, list) else [value]:
            found.append((name, one if isinstance(one, str) else json.dumps(one, ensure_ascii=False)))
    return found


def python_call(action: Action, given: Mapping[str, object]) -> str:
    """Return a call of the Python client."""
    named = all(name.isidentifier() and not iskeyword(name) for name in given)
    arguments = [f"{name}={value!r}" for name, value in given.items()] if named else [repr(dict(given))]
    return f"client.call({', '.join([json.dumps(action.id), *arguments])})"


def write_test(action: Action, filled: Filled, chosen: Wire, answer: "WireAnswer | None") -> str:
    """Return the source of a test for a call. If the call was sent, the test expects the same answer."""
    options = [f"door={json.dumps(chosen.door or chosen.key)}"] if chosen is not WIRES[0] else []
    options += ["confirm=True"] if action.needs_confirmation else []
    options += ['token="..."'] if any(name == "Authorization" for name, _ in filled.secrets) else []
    opened = f"    with AgentClient({', '.join(['app', *options])}) as client:\n"
    call, end = python_call(action, filled.given), "    assert answer is not None\n"
    problem = answer.problem if answer is not None else None
    if problem is not None and problem.get("code") and answer is not None and answer.question is None:
        return (
            "import pytest\n\nfrom awp_publish.client import AgentClient, CallFailed\n\n"
            f"from main import app  # your application\n\n\ndef test_{action.id}():\n{opened}"
            f"        with pytest.raises(CallFailed) as refused:\n            {call}\n"
            f"    assert refused.value.code == {json.dumps(str(problem['code']))}\n"
        )
    if answer is not None and problem is None and not action.is_background:
        expected = repr(aligned(answer.output, None))
        if len(expected) <= MAX_EXPECTED:
            end = f"    assert answer {'is' if answer.output is None else '=='} {expected}\n"
    return (
        "from awp_publish.client import AgentClient\n\nfrom main import app  # your application\n\n\n"
        f"def test_{action.id}():\n{opened}        answer = {call}\n{end}"
    )


# --- Answers, converted to a common form ---


@dataclass(frozen=True, slots=True)
class WireAnswer:
    """An answer as received, and its output or problem in a common form. `problem` is None for a success."""

    request: WireRequest
    status: int
    headers: tuple[tuple[str, str], ...]
    text: str
    milliseconds: float
    spent: str = ""
    output: object = None
    problem: Mapping[str, Any] | None = None

    @property
    def common(self) -> object:
        """The output, or the members of the problem that are the same at every door."""
        if self.problem is None:
            return self.output
        return {
            name: self.problem[name] for name in ("status", "code", "title", "detail", "errors") if name in self.problem
        }

    @property
    def question(self) -> Mapping[str, Any] | None:
        """The confirmation that a person is asked for, None if there is none."""
        asked = self.problem.get("confirmation") if self.problem is not None else None
        return asked if isinstance(asked, dict) and isinstance(asked.get("token"), str) else None

    @property
    def job_id(self) -> str | None:
        """The id of the job that the call has become, None if it has not."""
        value = self.output
        found = value.get("job_id") if isinstance(value, dict) and "poll_endpoint" in value else None
        return found if isinstance(found, str) and _JOB_ID.fullmatch(found) else None


_JOB_ID: Final = re.compile(r"[A-Za-z0-9._~=-]{1,512}")


def read_answer(
    request: WireRequest, action: Action, status: int, content_type: str, body: bytes
) -> tuple[object, Any]:
    """Return the output and the problem of an answer, one of which is None. A body that is not JSON becomes text."""
    kind = content_type.partition(";")[0].strip().lower()
    if status < 400 and kind and not kind.endswith("json") and not kind.startswith("text/"):
        return base64.b64encode(body).decode(), None  # as at the JSON doors
    text = body.decode("utf-8", "replace")
    if content_type.startswith("text/event-stream"):
        messages = [line[5:].strip() for line in text.splitlines() if line.startswith("data:")]
        text = next((one for one in reversed(messages) if '"result"' in one or '"error"' in one), "")
    try:
        value: Any = orjson.loads(text)
    except orjson.JSONDecodeError:
        return (text, None) if status < 400 else (None, {"status": status, "detail": text[:500]})
    if content_type.startswith("application/problem+json"):
        return None, value
    if request.wire.door == "" or not isinstance(value, dict):
        return (value, None) if status < 400 else (None, {"status": status, "detail": text[:500]})
    if (error := value.get("error")) is not None and isinstance(error, dict):
        data = error.get("data")
        problem = data[0].get("metadata") if isinstance(data, list) and data and isinstance(data[0], dict) else data
        problem = problem if isinstance(problem, dict) and "code" in problem else error.get("details")
        return None, problem if isinstance(problem, dict) and "code" in problem else {
            "code": error.get("code"),
            "detail": error.get("message"),
        }
    result = value.get("result")
    if not isinstance(result, dict):
        return value, None
    if request.wire.door == "mcp":
        meta: Mapping[str, Any] = result["_meta"] if isinstance(result.get("_meta"), dict) else {}
        if result.get("isError"):
            return None, meta.get("awp/problem") or {"detail": _content_of(result.get("content"))}
        if "structuredContent" not in result:
            found = _content_of(result.get("content"))
            if isinstance(found, str) and "string" not in kinds(
                resolved(action.outputs, action.outputs), action.outputs
            ):
                with suppress(orjson.JSONDecodeError):  # without a schema, a text may be JSON
                    return orjson.loads(found), None
            return found, None
        output, declared = result["structuredContent"], answer_schema(action)
        is_wrapped = isinstance(output, dict) and output.keys() == {"result"} and "result" not in members(declared)
        is_wrapped &= bool(declared) if request.wire.key == "mcp" else declared.get("type") != "object"
        return (output["result"] if is_wrapped else output), None
    if request.wire.door == "a2a":
        task = result.get("task", result)
        state = task.get("status", {})
        parts = [part for one in task.get("artifacts", ()) for part in one.get("parts", ())]
        if state.get("state") == "TASK_STATE_COMPLETED" or parts:
            found = [part.get("data", part.get("text", part.get("raw"))) for part in parts]
            return (found[0] if len(found) == 1 else found), None
        found_data = [
            part["data"] for part in state.get("message", {}).get("parts", ()) if isinstance(part.get("data"), dict)
        ]
        problem = next((one for one in found_data if "code" in one), None)
        return (None, problem) if problem is not None else (found_data[0] if found_data else task, None)
    return result.get("output", result), None


def _content_of(content: object) -> object:
    """Return the text or the base64 of the first content block of an MCP result."""
    blocks = content if isinstance(content, list) else []
    first = blocks[0] if blocks and isinstance(blocks[0], dict) else {}
    held = first["resource"] if isinstance(first.get("resource"), dict) else first
    return next((held[name] for name in ("text", "data", "blob") if name in held), blocks)


async def send_request(
    request: WireRequest, catalog: Catalog, action: Action, app: AsgiApp, outer: Scope, seconds: float
) -> WireAnswer:
    """Send a request through the whole application, with the cookies and the address of the visitor of `outer`."""
    origin = urlsplit(catalog.url)
    carried = tuple(pair for pair in outer["headers"] if pair[0] in FORWARDED or pair[0] == b"cookie")
    own = (
        (name.lower().encode("latin-1", "replace"), value.encode("latin-1", "replace"))
        for name, value in request.headers
    )
    path, _, query = request.path.partition("?")
    headers = ((b"host", origin.netloc.encode()), *carried, *own)
    inside = PageRequest(
        origin, path.encode(), query.encode(), headers, request.method, request.content(), outer.get("state", {})
    )
    answer_headers: tuple[tuple[str, str], ...] = ()
    started, status, body = time.perf_counter(), 0, b""
    scope, content_type, failed = inside.scope(outer), "application/json", ""
    exchange = PageExchange(inside.body, MAX_ANSWER_BYTES)
    steps = Steps()
    timing = _STEPS.set(steps)
    try:
        async with asyncio.timeout(seconds):
            if request.frames:
                answers = await talk(app, inside.websocket(outer), request.frames)
                status, body = 101, orjson.dumps(answers[-1])
            else:
                await app(scope, exchange.receive, exchange.send)
    except TimeoutError:
        failed = f"There was no answer within {seconds:g} seconds."
    except TalkFailed as refused:
        status, body, failed = refused.status, refused.body, "" if refused.status else str(refused)
    except Exception as error:
        logger.exception("a call of %s from the overview failed at %s", action.id, request.wire.title)
        failed = f"The application failed with {type(error).__name__}; its log says more."
    finally:
        _STEPS.reset(timing)
    if exchange.answered.done():  # a failure after the answer does not matter
        answer, failed = exchange.collected(), ""
        status, body = answer.status, answer.body
        answer_headers = tuple((name.decode("latin-1"), value.decode("latin-1")) for name, value in answer.headers)
        content_type = {name.lower(): value for name, value in answer_headers}.get("content-type", "")
        # The application's session is the visitor's own: copy the changes that the call has made to it.
        now, before = scope.get("session"), outer.get("session")
        if isinstance(now, dict) and isinstance(before, dict):
            for name in before.keys() - now.keys():
                del before[name]
            for name, value in now.items():  # one by one, because a session may track its changes
                if name not in before or before[name] != value:
                    before[name] = value
    output: object = None
    problem: Any = {"detail": failed}
    if not failed:
        try:
            output, problem = read_answer(request, action, status, content_type, body)
        except (KeyError, AttributeError, TypeError):
            problem = {"detail": "The answer is not what this door gives."}
    passed = (time.perf_counter() - started) * 1000
    return WireAnswer(
        request, status, answer_headers, body.decode("utf-8", "replace"), passed, steps.words(passed), output, problem
    )


def aligned(value: object, like: object) -> object:
    """Return a JSON value with its members in the order of another's, and whole floats as integers."""
    if isinstance(value, dict):
        first = like if isinstance(like, dict) else {}
        names = [*(name for name in first if name in value), *(name for name in value if name not in first)]
        return {name: aligned(value[name], first.get(name)) for name in names}
    if isinstance(value, list):
        others = like if isinstance(like, list) else []
        return [aligned(one, others[n] if n < len(others) else None) for n, one in enumerate(value)]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def differing(answer: WireAnswer, first: WireAnswer) -> tuple[Html, int]:
    """Return an answer with marks on the lines that differ from the first answer, and the number of differences."""
    like = aligned(first.common, None)  # A2A does not keep the order of members, and has only floats
    mine, theirs = pretty(aligned(answer.common, like)).splitlines(), pretty(like).splitlines()
    if mine == theirs or len(mine) > MAX_COMPARED_LINES or len(theirs) > MAX_COMPARED_LINES:
        return inner("\n".join(mine)), 0 if mine == theirs else 1
    lines, count = list[object](), 0
    for kind, _, _, start, end in SequenceMatcher(None, theirs, mine, autojunk=False).get_opcodes():
        found = [(tag("mark", line) if kind != "equal" else line, "\n") for line in mine[start:end]]
        count += 0 if kind == "equal" else max(1, len(found))
        lines += found
    return inner(lines), count


# --- How to connect ---


def connections(catalog: Catalog) -> Iterable[Html]:
    """Yield instructions for connecting each client of `clients.toml` to the site."""
    name = re.sub(r"[^a-z0-9]+", "-", catalog.site.name.lower()).strip("-") or "site"
    address, request = catalog.url + catalog.paths.mcp, ""
    in_code = json.dumps({"name": name, "type": "http", "url": address})
    for action in catalog.actions[:1]:
        filled = Filled(action.examples[0] if action.examples else {})
        request = write_request(WIRES[0], catalog, action, filled).curl(catalog.url)
    facts = {
        "name": name,
        "origin": catalog.url,
        "mcp": address,
        "vscode_word": shlex.quote(in_code),
        "vscode_query": quote(in_code, safe=""),
        "cursor_file": pretty({"mcpServers": {name: {"url": address}}}),
        "cursor_query": quote(base64.b64encode(orjson.dumps({"url": address})), safe=""),
        "request": request,
    }
    for one in _CLIENTS:
        text, link = (Template(one.get(key, "")).substitute(facts) for key in ("text", "link"))
        if text and ("door" not in one or catalog.door(one["door"]) is not None):
            label, shown = one.get("label"), block(text, f"For {one['title']}")
            yield fill("client", title=one["title"], text=shown, label=label, link=link)


# --- The form ---


class BesideField(NamedTuple):
    """A field of the form besides the inputs: its name, label, hint, and HTML input type."""

    name: str
    label: str
    hint: str
    kind: str = "text"


PREFIX: Final = "awp-"
"""The prefix of fields that are not inputs."""

CHOSEN_DOOR: Final = "awp-door"

_BESIDE: Final = (
    BesideField("awp-key", "Idempotency key", "The same key with the same input gives the first answer again."),
    BesideField("awp-confirmation", "Confirmation", "The token of a refusal to whose summary a person has agreed."),
    BesideField("awp-receipts", "Receipts", "Of earlier successes that the action asks for, separated by commas."),
    BesideField("awp-session", "Session", "The AWP-Session that an earlier answer has handed out."),
    BesideField(
        "awp-authorization", "Authorization", 'A header such as "Bearer ...". It is sent and never shown.', "password"
    ),
)
_FORMATS: Final = {"date": "date", "email": "email", "uri": "url", "password": "password", "time": "time"}
LONG_TEXT: Final = 500
"""Characters above which a text gets a multi-line field."""

MAX_SHOWN_FILE: Final = 1000
"""Maximum characters of base64 on a page; of a larger file, only its size is displayed."""

CUT: Final = "(not shown:"


def input_field(name: str, schema: object, root: JsonObject, required: bool, value: str) -> Html:
    """Return the field for one input, with its label, type, limits and description."""
    facts, ident = resolved(schema, root), f"in-{name}"
    found, values = kinds(facts, root), options(facts, root)
    limits, typed, kept = limits_of(facts), kind_words(schema, root), None
    common = {"name": name, "id": ident, "aria_describedby": f"{ident}-hint"}
    if (media_type := file_type(schema, root)) is not None:
        typed, limits = "files" if "array" in found else "a file", []
        if value:  # pages cannot preset a file field, so a hidden field keeps the file until another one is chosen
            kept = tag("input", type="hidden", name=name, value=value)
            typed += f"; the one that is here, {size_words(value)}, is sent until another one is chosen"
        accept = media_type if media_type != BINARY else None
        many, described = "array" in found, f"{ident}-hint"
        field = tag("input", type="file", name=name, id=ident, multiple=many, accept=accept, aria_describedby=described)
    elif found == ["boolean"] or (values and all(isinstance(one, (str, int, float)) for one in values)):
        texts = [json.dumps(one) if isinstance(one, bool) else str(one) for one in values] or ["true", "false"]
        listed = texts if not value or value in texts else [*texts, value]
        choices = (tag("option", text, value=text, selected=text == value) for text in listed)
        field = tag("select", tag("option", "(left out)", value=""), choices, **common)
    else:
        is_list, is_object = "array" in found, "object" in found or not found
        items = kind_words(facts["items"], root) if is_list and "items" in facts else ""
        if is_list:
            typed += ", one in each line"
        elif is_object:
            typed += ", as JSON"
        long = int(cast(int, facts.get("maxLength", 0)) or 0) > LONG_TEXT or len(value) > LONG_TEXT or "\n" in value
        if is_list or is_object or long or name in ("text", "body", "message") or items == "object":
            field = tag("textarea", Html("\n") + inner(value), rows=4, **common)
        else:
            kind = "password" if is_secret(facts) else _FORMATS.get(str(facts.get("format")), "text")
            mode = "numeric" if found == ["integer"] else "decimal" if "number" in found else None
            shown = {"placeholder": str(facts["default"])} if "default" in facts else {}
            field = tag("input", type=kind, value=value, inputmode=mode, autocomplete="off", **common, **shown)
    hints = (str(facts.get("description", "")).rstrip("."), ", ".join([typed, *limits]))
    hint = " ".join(f"{one[0].upper()}{one[1:]}." for one in hints if one)
    needed = " required" if required else ""
    return fill("field", ident=ident, label=name, needed=needed, kept=kept, field=field, hint=hint)


def file_type(schema: object, root: JsonObject) -> str | None:
    """Return the media type of an input that takes a file or a list of files, None for any other input."""
    facts = resolved(schema, root)
    for part in (facts, *(resolved(branch, root) for branch in branches(facts))):
        inner = resolved(part.get("items"), root) if "items" in part else part
        if inner.get("contentEncoding") == "base64":
            return str(inner.get("contentMediaType", BINARY))
    return None


def size_words(content: str) -> str:
    """Describe the total size of files, given as lines of base64."""
    return f"{sum(len(line.strip()) * 3 // 4 - line.count('=') for line in content.splitlines()):,} bytes"


def shortened(action: Action, given: Mapping[str, object]) -> dict[str, object]:
    """Return an input for display, with large files replaced by their sizes."""
    found = dict(given)
    for name, part in members(object_facts(action.inputs, action.inputs)).items():
        if name in found and file_type(part, action.inputs) is not None:
            content = shown_value(found[name])
            if len(content) > MAX_SHOWN_FILE:
                found[name] = f"{CUT} {size_words(content)} as base64)"
    return found


def credential_headers(catalog: Catalog, action: Action) -> list[str]:
    """Return the headers, other than Authorization, from which the site or the action's route reads credentials."""
    site = catalog.site.authentication.api_key_header if catalog.site.authentication is not None else None
    named = [site or "", *(one.name for one in action.route_credentials if one.place == "header")]
    return list({name.lower(): name for name in named if name and name.lower() != "authorization"}.values())


def read_input(action: Action, pairs: Sequence[tuple[str, str | bytes]]) -> dict[str, object]:
    """Return the input from the fields of the form or of a deep link. Empty fields are left out."""
    facts = object_facts(action.inputs, action.inputs)
    chosen = {name for name, value in pairs if isinstance(value, bytes) and value}
    fields: list[tuple[str, str | bytes]] = []
    for name, value in pairs:
        if isinstance(value, bytes):
            fields += [(name, value)] if value else []
            continue
        if name.startswith(PREFIX) or not value.strip() or name in chosen:
            continue
        found = kinds(resolved(members(facts).get(name), action.inputs), action.inputs)
        if "array" not in found:
            fields.append((name, value.replace("\r\n", "\n")))
            continue
        try:
            listed = orjson.loads(value)
        except orjson.JSONDecodeError:
            listed = None
        if isinstance(listed, list):
            fields += [(name, one if isinstance(one, str) else json.dumps(one)) for one in listed]
        else:
            fields += [(name, line) for line in value.splitlines() if line.strip()]
    given = FieldReader(action.inputs).read(fields)
    # In the order of the schema, because the text of a confirmation may depend on it.
    declared = {name: given[name] for name in members(facts) if name in given}
    return declared | given


def shown_value(value: object) -> str:
    """Return the text of an input's value in its form field."""
    if isinstance(value, list):
        is_plain = all(isinstance(one, (str, int, float)) and "\n" not in str(one) for one in value)
        return "\n".join(map(shown_value, value)) if is_plain else pretty(value)
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


# --- Timing of calls ---

_STEPS: Final[ContextVar["Steps | None"]] = ContextVar("awp_publish_steps", default=None)
"""The timing of a call that the overview sends, None for all other calls."""


@dataclass(slots=True)
class Steps:
    """When a call and its handler began and ended, in seconds of perf_counter; 0 if that did not happen."""

    begun: float = 0.0
    handled: float = 0.0
    answered: float = 0.0
    ended: float = 0.0

    def words(self, milliseconds: float) -> str:
        """Describe how the time of a call was spent."""
        if not self.ended:
            return ""
        gates = (self.handled or self.ended) - self.begun
        parts = {"gates": gates}
        if self.handled:
            parts |= {"handler": self.answered - self.handled, "validation": self.ended - self.answered}
        parts["door"] = milliseconds / 1000 - (self.ended - self.begun)
        return ", ".join(f"{name} {max(0.0, seconds) * 1000:.1f} ms" for name, seconds in parts.items())


def time_call(carry: Carry) -> Carry:
    """Wrap the path of calls, to record when the overview's own calls begin and are answered."""

    def carry_timed(call: Call, deliver: Deliver) -> Awaitable[None]:
        steps = _STEPS.get()
        if steps is None:
            return carry(call, deliver)
        steps.begun = time.perf_counter()

        async def deliver_timed(result: Result) -> None:
            steps.ended = time.perf_counter()
            await deliver(result)

        return carry(call, deliver_timed)

    return carry_timed


def time_handler(handle: Handle) -> Handle:
    """Wrap a handler, to record when it begins and ends in the overview's own calls."""

    async def handle_timed(given: Any) -> Any:
        steps = _STEPS.get()
        if steps is None:
            return await handle(given)
        steps.handled = time.perf_counter()
        try:
            return await handle(given)
        finally:
            steps.answered = time.perf_counter()

    return handle_timed


# --- The endpoint ---


def caller_key(caller: Principal | None) -> str:
    return caller.key if caller is not None else ""


def scopes_of(caller: Principal | None) -> frozenset[str] | None:
    """Return a caller's scopes, None for an anonymous caller."""
    return caller.scopes if caller is not None else None


def open_door(door: Context) -> Endpoints:
    """Create the overview of one public address of a site.

    Raises DeclarationError if it requires a scope but the site authenticates nobody.
    """
    if door.options.audience is not None and not door.guards.authenticators:
        wrong = f'overview: asks for the scope "{door.options.audience}", and nothing here tells who calls.'
        raise DeclarationError("site", wrong, "Give Site(authenticate=...), or write overview=True for everybody.")
    root = door.catalog.paths.root
    door.invoker.surround(time_call, time_handler)
    pages = None
    reader = door.ask("pages")
    if reader is not None and door.settings.page_formats is not None:
        pages = NegotiatedPages(door.catalog, door.settings.page_formats, reader.renderer)
    answer = negotiate(OverviewDoor(door), pages, None, door.settings.timeout)

    async def answer_below(scope: Scope, receive: Receive, send: Send, rest: str) -> None:
        await answer(scope, receive, send)

    def serve_file(name: str, media_type: str) -> Answer:
        headers = ((b"content-type", f"{media_type}; charset=utf-8".encode()), (b"cache-control", b"no-cache"))
        encodings = Encodings((STATIC / name).read_bytes())
        file = Prepared(
            encodings, (*headers, (b"vary", b"Accept-Encoding"), NO_SNIFFING), datetime.now(UTC), media_type
        )

        async def answer_file(scope: Scope, receive: Receive, send: Send) -> None:
            await send_reply(file.answer(scope["method"], scope["headers"]), send)

        return answer_file

    for route in door.routes():
        if route.path == root and not route.is_opaque:
            logger.warning(
                "The application's own route %s is never reached: the overview is there. Give Site(paths=Paths(root="
                '"...")) another address, or Site(overview=False).',
                root,
            )
    exact: dict[str, Answer] = {root: answer, f"{root}/": answer}
    exact |= {f"{root}/{name}": serve_file(name, media_type) for name, media_type in FILES.items()}
    exact |= {f"{root}.md": answer} if pages is not None else {}
    return Endpoints(exact=exact, below={f"{root}/try/": answer_below})


class OverviewDoor(Endpoint):
    """Shows one public address of a site to its owner, and sends the calls of its forms."""

    methods = "GET, HEAD, POST, OPTIONS"
    usage = "The overview is read with GET, and its forms are sent with POST"

    def __init__(self, door: Context) -> None:
        super().__init__(ProblemRenderer(door.catalog), Cors(()), door.admission.own_origins)
        self.door, self.root = door, door.catalog.prefix + door.catalog.paths.root
        guards, scope = door.guards, door.options.audience
        needed = (scope,) if scope is not None else ()
        self._gate = AuthenticationGate(
            guards.authenticators, bool(needed), needed, guards.realm, guards.metadata_url, store=guards.store
        )
        self._approvals = Tokens(door.keys, f"approval:{door.settings.namespace}", APPROVABLE_FOR)
        self._found: tuple[object, tuple[Finding, ...]] = (None, ())
        self._cards: tuple[object, Html] = (None, Html())
        self._signers = {
            name for one in guards.authenticators if isinstance(one, WebBotAuth) for name in one.signers or ()
        }
        self.wires = tuple(one for one in WIRES if not one.door or door.catalog.door(one.door) is not None)

    def refuse_foreign(self, fields: Fields) -> None:
        """Refuse rebound hosts only. Forms from pages of other sites are refused in `_page`."""
        refuse_foreign_host(fields, self._own_origins)

    async def handle(self, request: DoorRequest, named: str | None) -> None:
        """Answer with a page. Refusals are pages too if the client accepts HTML."""
        status, extra = 200, cast(RawHeaders, ())
        try:
            title, content, extra = await self._page(request)
        except Problem as problem:
            if b"text/html" not in request.fields.get(b"accept", b""):
                raise
            title, status, described = problem.title, problem.status, self._renderer.describe(problem)
            content = fill("refusal", title=title, detail=described["detail"], recovery=described["recovery"])
            extra = tuple(
                (name.lower().encode(), value.encode("latin-1", "replace")) for name, value in problem.headers
            )
        page = fill("page", title=title, site=self.door.catalog.site.name, root=self.root, content=content)
        body = page.encode("utf-8", "replace")
        headers = ((b"content-type", b"text/html; charset=utf-8"), (b"content-length", b"%d" % len(body)), *SECURITY)
        await request.reply(Reply(status, (*headers, *extra), body))

    async def _page(self, request: DoorRequest) -> tuple[str, Html, RawHeaders]:
        """Return the title, the content and additional headers of the requested page. Raises a Problem."""
        scope, fields, catalog = request.scope, request.fields, self.door.catalog
        if scope["method"] == "POST" and is_cross_site(fields, self._own_origins):
            raise CrossSiteCookies("The form was sent by a page of another site, and was not read.")
        caller: Principal | None = None
        try:
            caller = await self._gate(read_credentials(scope, fields, self.door.admission.trusted_proxies))
        except Problem:
            if self._gate.required:
                raise
        path = route_path(scope).removeprefix(catalog.paths.root)
        if path.startswith("/try/"):
            action_id = path.removeprefix("/try/")
            visible = self.door.published().visible_to(scopes_of(caller))
            action = next((one for one in visible.actions if one.id == action_id), None)
            if action is None:
                wrong = f'This site has no action "{action_id[:100]}".'
                raise UnknownAction(wrong, recovery="Choose one in the overview.")
            is_sent = scope["method"] == "POST"
            pairs = await self._read_form(request) if is_sent else read_query(scope["query_string"])
            trial = Trial(self, action, pairs, scope)
            if is_sent and trial.wrong is None:
                await trial.send()
            return action.name, trial.page(), tuple(trial.cookies.values())
        if path not in ("", "/"):
            raise UnknownAction("There is no such page of the overview.")
        asked = dict(read_query(scope["query_string"])).get("sees", "")
        sees = asked if isinstance(asked, str) else ""
        notice = await self._approve(request, caller) if scope["method"] == "POST" else None
        documents, _ = self.door.documents()
        if self._found[0] is not documents:  # the checks run once after each publication
            check = partial(check_published, self.door.site, catalog.public, documents, self.door.routes(), "")
            self._found = (documents, await run_in_thread(check, asyncio.to_thread))
        traffic: TrafficReport | str | None = None
        if (record := self.door.ask("traffic")) is not None:
            try:
                traffic = await record.read(days=TRAFFIC_DAYS)
            except StoreUnavailable as problem:
                traffic = f"Traffic cannot be read at the moment: {problem.detail}"
            except Exception:
                logger.exception("traffic could not be read")
                traffic = "Traffic cannot be read at the moment: the store failed. The log says more."
        make = partial(self._overview, caller, sees, traffic, notice)
        return f"What {catalog.site.name} publishes", await run_in_thread(make, asyncio.to_thread), ()

    async def _read_form(self, request: DoorRequest) -> list[tuple[str, str | bytes]]:
        body = await read_body(request.scope, request.fields, request.receive, MAX_FORM_BYTES)
        content_type = request.fields.get(b"content-type", b"")
        if not is_form(content_type):
            raise UnsupportedMediaType("Send the form as application/x-www-form-urlencoded.")
        return read_form(content_type, body)

    def _may_approve(self, caller: Principal | None) -> bool:
        """Return True if the overview requires a scope, or the caller has the scope "operator"."""
        return self._gate.required or (caller is not None and OPERATOR in caller.scopes)

    async def _approve(self, request: DoorRequest, caller: Principal | None) -> Html:
        """Approve the actions of an operator's form, and return the result. Raises a Problem for an invalid form."""
        site, given = self.door.site, dict(await self._read_form(request))
        approvals = self.door.ask("approval")
        if approvals is None or "awp-approve" not in given:
            raise InvalidInput("This form is none of the overview's.", recovery="Load the page again.")
        if not self._may_approve(caller):
            raise InsufficientPermissions('Only a caller with the scope "operator" approves actions.')
        try:
            read = self._approvals.read(str(given["awp-approve"]))
        except (NotOurs, Expired):
            read = {}
        if not read or read["caller"] != caller_key(caller):
            raise InvalidInput(
                "This form is out of date, or was made for somebody else.", recovery="Load the page again."
            )
        now = {one.id: approvals.digest_of(one) for one in site.catalog.actions}
        digests = cast(Mapping[str, str], read["digests"])
        same = [name for name, digest in digests.items() if now.get(name) == digest]
        notices = list[object]()
        if len(same) < len(digests):
            changed = ", ".join(name for name in digests if name not in same)
            notices.append(tag("p", f"Not approved, for it has changed since you read it: {changed}.", class_="error"))
        if same:
            name = approvals.path.name
            # One operator at a time, across processes. An action that another one has approved meanwhile is reported.
            turn, store = Add("approving", secrets.token_bytes(16), APPROVING_FOR), site.store
            while True:
                if (await store.run((turn,))).failed is None:
                    break
                await asyncio.sleep(APPROVING_FOR / 100)
            try:
                late = [one.action for one in approvals.standing() if one.state == "approved" and one.action in same]
                same = [one for one in same if one not in late]
                if same:
                    await run_in_thread(partial(approvals.approve, *same), asyncio.to_thread)
            except (DeclarationError, OSError) as error:
                logger.warning("the approval of %s could not be written: %s", ", ".join(same), error)
                wrong = f"{name} cannot be written; approve on the command line."
                return tag("p", wrong, class_="error", role="alert")
            finally:
                await store.run((Swap(turn.key, turn.value, None),))
            if late:
                notices.append(tag("p", f"Approved before, and left as it is: {', '.join(late)}."))
            if same:
                logger.info("%s approved %s", caller.id if caller is not None else "", ", ".join(same))
                notices.append(
                    f"Approved: {', '.join(same)}. Keep {name} in version control, and start the site again."
                )
        return tag("div", notices, role="status")

    # --- What is published ---

    def _overview(
        self, caller: Principal | None, sees: str, traffic: TrafficReport | str | None, notice: Html | None
    ) -> Html:
        door = self.door
        catalog = door.published().visible_to(scopes_of(caller))
        site, (documents, fallbacks) = catalog.site, door.documents()
        cards = self._cards  # other readers' pages are made in other threads
        if cards[0] is not catalog:  # the cards are rendered once after each publication
            cards = self._cards = (catalog, inner([self._action(catalog, one) for one in catalog.actions]))
        problems = f"{catalog.paths.problems}/"  # the pages of single problems are not listed
        listed = {**documents, **fallbacks}
        documents = {path: one for path, one in listed.items() if not f"{path}/".startswith(problems)}
        hint: object = None
        if catalog.door("mcp") is None:
            hint = ("Clients of MCP connect where the site speaks it: ", code('Site(doors=["mcp"])'), ".")
        elif is_loopback(catalog.domain):
            hint = "This is an address of one machine: Claude on the web and ChatGPT cannot reach it."

        def section(ident: str, title: str, content: object) -> tuple[Html, Html]:
            link = tag("li", tag("a", title, href=f"#{ident}"))
            return link, fill("section", ident=ident, title=title, content=content)

        def listing(
            ident: str, title: str, caption: str, heads: Sequence[str], rows: Iterable[Sequence[object]]
        ) -> tuple[Html, Html]:
            rows = list(rows)
            return section(ident, f"{title} ({len(rows)})", table(caption, heads, rows))

        sections = [
            section("actions", f"Actions ({len(catalog.actions)})", cards[1]),
            section("sees", "What does a caller see?", self._sees(catalog, documents, sees)),
            section("connect", "Connect", fill("connect", hint=hint, clients=connections(catalog))),
            listing(
                "findings",
                "Findings",
                "What the checks find",
                ("level", "where", "what", "remedy"),
                (
                    (
                        tag("strong", one.level, class_=one.level),
                        (code(f"{one.document}#{one.pointer}") if one.document else "the site", " ", one.subject),
                        one.message,
                        (one.hint, " ", tag("small", f"{one.check}; {one.source}")),
                    )
                    for one in self._found[1]
                ),
            ),
            *(section("approval", *part) for part in self._approval(caller, notice)),
            *([section("traffic", "Traffic", self._traffic(catalog, traffic))] if traffic is not None else []),
            section("documents", f"Documents ({len(documents)})", self._documents(documents)),
            listing(
                "agents",
                "Agents",
                "Agents and their operations",
                ("agent", "name", "description", "operations"),
                (
                    (code(one.id), one.name, one.description, ", ".join(map(": ".join, one.operations.items())))
                    for one in catalog.agents
                ),
            ),
            listing(
                "pages",
                "Pages",
                "Pages",
                ("path", "title", "description"),
                (
                    (
                        code(one.path) if one.is_template else tag("a", one.path, href=catalog.prefix + one.path),
                        one.title,
                        one.description,
                    )
                    for one in catalog.pages
                ),
            ),
            listing(
                "prompts",
                "Prompts",
                "Prompts",
                ("prompt", "name", "description", "arguments"),
                (
                    (
                        code(one.id),
                        one.name,
                        one.description,
                        ", ".join(f"{arg.name}{'' if arg.required else ' (optional)'}" for arg in one.arguments),
                    )
                    for one in catalog.prompts
                ),
            ),
            listing(
                "left-out",
                "Left out",
                "What include() saw and did not take",
                ("route", "name", "why"),
                ((code(f"{one.method} {one.path}"), one.name, one.why) for one in door.site.left_out),
            ),
        ]
        links, contents = zip(*sections, strict=True)
        reader = "nobody in particular" if caller is None else caller.id
        if caller is not None and caller.scopes:
            reader += f", with the scopes {', '.join(sorted(caller.scopes))}"
        facts = {"site": site.name, "description": site.description, "url": catalog.url, "reader": reader}
        return fill("overview", **facts, links=links, sections=contents)

    def _action(self, catalog: Catalog, action: Action) -> Html:
        here, audience, tags = f"{self.root}/try/{action.id}", None, None
        if action.audience != PUBLIC:
            is_known = action.audience == KNOWN
            audience = "callers who are known" if is_known else f'callers with the scope "{action.audience}"'
        if action.tags:
            tags = f"{'category' if len(action.tags) == 1 else 'categories'} {', '.join(action.tags)}"
        is_degraded = action.id in catalog.status.degraded_actions
        return card(
            catalog,
            action,
            f"action-{action.id}",
            is_detailed=len(catalog.actions) <= MAX_DETAILED,
            here=here,
            broken="It does not work at the moment." if is_degraded else None,
            doors=", ".join(self._doors_of(action)) or "no door that is open",
            tags=tags,
            audience=audience,
        )

    def wires_of(self, action: Action) -> tuple[Wire, ...]:
        """Return the protocols whose doors offer an action."""
        return tuple(one for one in self.wires if action.is_exposed_at(one.door or one.key))

    def _doors_of(self, action: Action) -> list[str]:
        """Return the titles of the doors that offer an action."""
        titles = [one.title for one in self.wires_of(action)]
        has_bridge = self.door.catalog.door("bridge") is not None and action.is_exposed_at("bridge")
        return [*titles, "the Actions Bridge"] if has_bridge else titles

    def _approval(self, caller: Principal | None, notice: Html | None) -> Iterable[tuple[str, Html]]:
        """Yield the title and the content of the section about approval, if the site uses it.

        It lists the actions that wait, by the current file, but only those that the reader may know of once they are
        approved. An operator's button submits a signed token with the digests of the displayed actions, so that an
        action that has changed meanwhile is not approved.
        """
        site, may_approve = self.door.site, self._may_approve(caller)
        approvals = self.door.ask("approval")
        if approvals is None:
            return
        try:
            standing = approvals.standing()
        except DeclarationError as error:
            logger.warning("%s", error)
            wrong = f"{approvals.path.name} cannot be read. {error.remedy}"
            yield "Approval", tag("p", wrong, class_="error")
            return
        actions = {one.id: one for one in site.catalog.actions}
        approved = replace(site.catalog, actions=tuple(replace(one, is_approved=True) for one in actions.values()))
        known = {one.id: one for one in approved.visible_to(scopes_of(caller)).actions}

        def button(names: Sequence[str], label: str) -> Html | None:
            if not may_approve:
                return None
            digests = {name: approvals.digest_of(actions[name]) for name in names}
            token, _ = self._approvals.write({"caller": caller_key(caller), "digests": digests})
            return fill("approve", root=self.root, token=token, label=label)

        cards, waiting = list[Html](), list[str]()
        for one in standing:
            action, is_approved = actions.get(one.action), one.state == "approved"
            if action is None or (is_approved and action.is_approved):
                continue
            if action.id not in known:
                continue
            if is_approved:
                state = "Approved by now; hidden until all that it requires is approved and the site starts again."
            elif one.state == "new":
                state = "New: it was never approved."
            else:
                state = f"Changed since it was approved: {', '.join(one.changed)}."
            own = None
            if not is_approved:
                waiting.append(action.id)
                own = button([action.id], f"Approve {action.id}")
            ident, is_detailed = f"waiting-{action.id}", len(cards) < MAX_DETAILED
            cards.append(
                card(site.catalog, known[action.id], ident, is_detailed=is_detailed, waiting=state, button=own)
            )
        gone = [one.action for one in standing if may_approve and one.action not in actions]
        line = block(f"awp-publish approve module:app {' '.join(waiting)}", "Line that approves them")
        yield (
            f"Approval ({len(waiting)} waiting)",
            fill(
                "approval",
                notice=notice,
                cards=cards,
                none=None if cards else "Nothing waits.",
                gone=", ".join(gone) or None,
                button=button(waiting, "Approve all of these") if len(waiting) > 1 else None,
                command=line if waiting else None,
            ),
        )

    def _traffic(self, catalog: Catalog, report: TrafficReport | str) -> Html:
        """Return the traffic of the actions that a reader of this catalog may know of."""
        if isinstance(report, str):
            return tag("p", report, class_="error")
        report, days = report.of_actions({one.id for one in catalog.actions}), len(report.days)
        picture = Html(traffic_svg(report))
        if not report.rows:
            return fill("traffic", picture=picture, none=f"Nothing has been called or read in {days} days.")
        breakdowns = [
            table(one.caption, one.heads, ((code(line[0]), *line[1:]) for line in one.rows))
            for one in traffic_breakdowns(report, with_callers=self._gate.required)
        ]
        return fill("traffic", days=days, picture=picture, by_day=Html(traffic_table(report)), tables=breakdowns)

    def _documents(self, documents: Mapping[str, Prepared]) -> Html:
        prefix, rows = self.door.catalog.prefix, list[Sequence[object]]()
        for path, one in documents.items():
            compressed, full = one.variants[0].full, one.variants[-1].full
            headers = ((tag("dt", name.decode()), tag("dd", value.decode("latin-1"))) for name, value in full.headers)
            rows.append(
                (
                    tag("a", path, href=prefix + path),
                    one.media_type,
                    f"{len(one.body):,}",
                    f"{tokens_of(len(one.body)):,}",
                    f"{len(compressed.body):,} ({one.codings[0]})",
                    fill("headers", path=path, headers=headers),
                )
            )
        return fill(
            "documents",
            table=table("Documents", ("path", "type", "bytes", "tokens", "compressed", "headers"), rows),
            size=size_of(sum(len(one.body) for one in documents.values())),
            problems=prefix + self.door.catalog.paths.problems,
        )

    def _sees(self, catalog: Catalog, documents: Mapping[str, Prepared], asked: str) -> Html:
        """Return what the chosen kind of caller is shown and may call, and its size in tokens."""
        audiences = {action.audience for action in catalog.actions} - {PUBLIC, KNOWN}
        known = sorted(audiences.union(*(action.scopes for action in catalog.actions)))
        agents = {one for action in catalog.actions for one in action.allow_agents if one not in get_args(Label)}
        asks = any(one.auth_required or one.scopes or one.audience != PUBLIC for one in catalog.actions)
        choices = {
            "": "an anonymous caller",
            **({"known": "a known caller without a scope"} if asks else {}),
            **({f"scope:{' '.join(known)}": "a caller with all scopes"} if len(known) > 1 else {}),
            **{f"scope:{one}": f'a caller with the scope "{one}"' for one in known},
            **{f"agent:{one}": f"the agent {one}" for one in sorted({*agents, *self._signers})},
        }
        kind, _, named = asked.partition(":")
        chosen = asked if asked in choices or (kind in ("scope", "agent") and named) else ""
        choices.setdefault(chosen, f'a caller with the {kind} "{named}"' if kind == "scope" else f"the agent {named}")
        hides, sizes = self.door.settings.list_only_allowed, dict[str, int]()
        for action in catalog.actions:
            tool: JsonObject = {"name": action.id, "title": action.name, "description": action.description}
            sizes[action.id] = len(
                orjson.dumps({**tool, "inputSchema": action.inputs, "outputSchema": answer_schema(action)})
            )

        def visible(choice: str) -> Catalog:
            scopes = frozenset(choice.partition(":")[2].split() if choice.startswith("scope:") else ())
            return catalog.visible_to(scopes if choice else None)

        def tools(choice: str) -> dict[str, str]:
            """Return the actions that are listed for a caller, with the reason why each may not be called, or ""."""
            kind, _, named = choice.partition(":")
            scopes = frozenset(named.split() if kind == "scope" else ())
            names = {"verified", named, named.partition("://")[2]} if kind == "agent" else {"unknown", ""}
            found = {}
            for action in visible(choice).actions:
                needs = action.auth_required or action.scopes
                may = not needs or (choice != "" and scopes.issuperset(action.scopes))
                if not may and hides and not action.route_authenticates:
                    continue
                found[action.id] = ""
                if not may:
                    lacks = action.scopes and choice
                    found[action.id] = f"without {', '.join(action.scopes)}" if lacks else "not without credentials"
                elif action.allow_agents and names.isdisjoint(action.allow_agents):
                    found[action.id] = f"it is for {', '.join(action.allow_agents)}"
            return found

        listed, nobody = tools(chosen), tools("")
        rows = [
            (
                code(action.id),
                f"no, {why}" if (why := listed[action.id]) else "yes",
                f"{sizes[action.id]:,}",
                f"{tokens_of(sizes[action.id]):,}",
                ", ".join(self._doors_of(action)) or "none",
            )
            for action in catalog.actions
            if action.id in listed
        ]
        # Compare all kinds of callers, and mark the differences from an anonymous caller.
        columns = {text: tools(choice) for choice, text in list(choices.items())[:MAX_COLUMNS]}

        def standing(tools: Mapping[str, str], name: str) -> str:
            return "hidden" if name not in tools else "listed" if tools[name] else "callable"

        beside = [
            (code(name), *(word if word == standing(nobody, name) else tag("mark", word) for word in words))
            for name in sizes
            if (words := [standing(tools, name) for tools in columns.values()])
            and (len(sizes) <= MAX_DETAILED or len(set(words)) > 1)  # of many actions, only those that differ
        ][:MAX_DETAILED]
        costs = [tokens_of(sum(sizes[name] for name in tools)) for tools in columns.values()]
        beside.append(("tokens of the list", *(f"{n:,}" if n == costs[0] else tag("mark", f"{n:,}") for n in costs)))
        heads, caption = ("tool", *columns), "Side by side: marked is what differs from an anonymous caller"
        read = {path: len(one.body) for path, one in documents.items()}
        shown = ("tool", "may be called", "bytes", "tokens", "listed at")
        return fill(
            "sees",
            root=self.root,
            choices=[tag("option", text, value=key, selected=key == chosen) for key, text in choices.items()],
            tools=table(f"Tools that {choices[chosen]} is shown", shown, rows),
            size=size_of(sum(sizes[name] for name in listed)),
            side_by_side=table(caption, heads, beside) if len(columns) > 1 else None,
            public=len(catalog.public.actions),
            visible=len(visible(chosen).actions),
            total=f"{len(read)} documents, {size_of(sum(read.values()))}",
            documents=[tag("li", code(path), f": {size_of(size)}") for path, size in read.items()],
        )


# --- One form, every door ---


class Trial:
    """The completed form of an action, and the answers to it. `wrong` is set if the input cannot be read."""

    def __init__(
        self, overview: OverviewDoor, action: Action, pairs: Sequence[tuple[str, str | bytes]], scope: Scope
    ) -> None:
        self._door, self._scope, self._root = overview.door, scope, overview.root
        self._catalog, self._action = overview.door.published(), action
        self._wires = overview.wires_of(action) or overview.wires
        self._raw = {name: value for name, value in pairs if isinstance(value, str)}
        # A link fills in inputs and the door, but no session, confirmation or credentials: it may be a stranger's.
        is_link = scope["method"] in ("GET", "HEAD")
        self._controls = {
            name: value.strip()
            for name, value in self._raw.items()
            if name.startswith(PREFIX) and (name == CHOSEN_DOOR or not is_link)
        }
        if not pairs and action.examples:
            pairs = fields_of(action.examples[0])
        self._given: dict[str, object] = {}
        self.wrong: InvalidInput | None = None
        try:
            self._given = read_input(action, pairs)
        except InvalidInput as problem:
            self.wrong = problem
        self._key_headers = credential_headers(self._catalog, action)
        typed = {"Authorization": "awp-authorization"} | {name: PREFIX + name.lower() for name in self._key_headers}
        credentials = {name: re.sub(r"[\x00-\x1f\x7f]", "", self._control(field)) for name, field in typed.items()}
        receipts = (one.strip() for one in self._control("awp-receipts").split(","))
        filled = Filled(
            self._given,
            self._control("awp-key"),
            self._control("awp-confirmation"),
            tuple(one for one in receipts if one),
            self._control("awp-session"),
            secrets.token_hex(8),
            tuple((name, value) for name, value in credentials.items() if value),
        )
        redact = input_redactor(action.inputs)
        self._kept = filled if redact is None else replace(filled, given=redact(self._given))
        self._shown = replace(self._kept, given=shortened(action, self._kept.given))
        self._chosen = next((one for one in self._wires if one.key == self._control(CHOSEN_DOOR)), self._wires[0])
        self._requests = {one.key: write_request(one, self._catalog, action, filled) for one in self._wires}
        self._shown_requests = {one.key: write_request(one, self._catalog, action, self._shown) for one in self._wires}
        self._answers: list[WireAnswer] = []
        self._told: list[Html] = []
        self.cookies: dict[str, tuple[bytes, bytes]] = {}

    def _control(self, name: str) -> str:
        return self._controls.get(name, "")

    async def send(self) -> None:
        """Run the action of the button that was pressed: send the input, or poll a job."""
        do, seconds = self._controls.get("awp-do", "send"), self._action.timeout + 5.0
        if do == "job" and _JOB_ID.fullmatch(self._control("awp-job")):
            self._told.append(await self._job(self._control("awp-job")))
        elif do in ("send", "all"):
            sent = [one for one in self._wires if do == "all" or one is self._chosen]
            self._answers = [await self._send(self._requests[one.key], seconds) for one in sent]
            self._told = [await self._answer(one) for one in self._answers]
            for name, value in (pair for one in self._answers for pair in one.headers):
                if name.lower() == "set-cookie":
                    self.cookies[value.partition("=")[0]] = (b"set-cookie", value.encode("latin-1"))

    async def _send(self, request: WireRequest, seconds: float) -> WireAnswer:
        entrance = self._door.entrance(self._scope)
        return await send_request(request, self._catalog, self._action, entrance, self._scope, seconds)

    def page(self) -> Html:
        """Return the form with its answers."""
        action, origin = self._action, self._catalog.url
        given, requests = self._shown.given, self._shown_requests
        door = {} if self._chosen is self._wires[0] else {"awp-door": self._chosen.key}
        sent = next((one for one in self._answers if one.request.wire is self._chosen), None)
        shown = {key: (one.wire.title, one.text(origin)) for key, one in requests.items()}
        plain = next((one for one in (requests[self._chosen.key], *requests.values()) if not one.frames), None)
        if plain is not None:  # curl does not speak WebSocket
            shown["curl"] = ("curl", plain.curl(origin))
        client = f"from awp_publish.client import AgentClient\n\nclient = AgentClient({json.dumps(origin)})\n"
        shown["python"] = ("Python", f"{client}answer = {python_call(action, given)}")
        shown["test"] = ("As a test", write_test(action, self._shown, self._chosen, sent))
        tabs = [
            (
                tag("input", type="radio", name="tab", id=f"tab-{key}", checked=key == self._chosen.key, class_="tab"),
                tag("label", title, for_=f"tab-{key}"),
            )
            for key, (title, _) in shown.items()
        ]
        panels = [fill("panel", key=key, title=title, text=block(text, title)) for key, (title, text) in shown.items()]
        return fill(
            "try",
            root=self._root,
            **facts_of(self._catalog, action),
            form=self._form(),
            answers=self._told or None,
            none=None if self._told else "Nothing has been sent.",
            link=link_to(f"{self._root}/try/{action.id}", public_part(given), door),
            tabs=tabs,
            panels=panels,
            schemas=schema_tables(action),
        )

    def _form(self) -> Html:
        action, inputs, given = self._action, self._action.inputs, self._given
        parts = members(facts := object_facts(inputs, inputs))
        values = {name: shown_value(given[name]) if name in given else self._raw.get(name, "") for name in parts}
        if (redact := input_redactor(inputs)) is not None:  # secrets have to be typed each time
            values |= dict.fromkeys(given.keys() - public_part(redact(given)).keys() & values.keys(), "")
        required = required_members(facts)
        fields = [input_field(name, part, inputs, name in required, values[name]) for name, part in parts.items()]
        more = {name: shown_value(value) for name, value in given.items() if name not in values}
        fields += [input_field(name, {}, inputs, False, value) for name, value in more.items()]
        hint = "It is sent and never shown."
        secret = [BesideField(PREFIX + name.lower(), name, hint, "password") for name in self._key_headers]
        beside = [
            fill(
                "field",
                ident=one.name,
                label=one.label,
                field=tag(
                    "input",
                    type=one.kind,
                    name=one.name,
                    id=one.name,
                    # Credentials have to be typed each time, so that no page contains them.
                    value="" if one.kind == "password" else self._control(one.name),
                    autocomplete="off",
                    aria_describedby=f"{one.name}-hint",
                ),
                hint=one.hint,
            )
            for one in (*_BESIDE, *secret)
        ]
        summary = tag("summary", "Beside the input: keys, confirmation, credentials")
        doors = [
            tag(
                "label",
                tag("input", type="radio", name="awp-door", value=one.key, checked=one is self._chosen),
                f" {one.title}",
                class_="choice",
            )
            for one in self._wires
        ]
        content = fill(
            "form",
            wrong=self.wrong.detail if self.wrong is not None else None,
            fields=fields or None,
            none=None if fields else "It takes none.",
            beside=tag("details", summary, beside, open=any(self._control(one.name) for one in _BESIDE)),
            doors=doors,
            effect=_EFFECT_WORDS[action.effect] if action.effect != "read" else None,
            many=len(self._wires),
        )
        takes_files = any(file_type(part, inputs) is not None for part in parts.values())
        return tag(
            "form",
            content,
            method="post",
            action=f"{self._root}/try/{action.id}",
            enctype="multipart/form-data" if takes_files else None,
            novalidate=True,
            data_live=True,
        )

    async def _answer(self, answer: WireAnswer) -> Html:
        """Return one answer, compared with the first."""
        first, wire, problem, question = self._answers[0], answer.request.wire, answer.problem, None
        lines, count = differing(answer, first)
        compared: object = ""
        if answer is not first:
            words = ("differs from " if count else "the same as ", first.request.wire.title)
            compared = (" · ", tag("span", *words, class_="differs" if count else "same"))
        if (asked := answer.question) is not None:
            agreed = {"awp-door": wire.key, "awp-confirmation": asked["token"], "awp-do": "send"}
            question = fill(
                "question",
                summary=asked.get("summary", ""),
                until=asked.get("expires_at", ""),
                agree=self._again(agreed, "Agree and call again"),
            )
        headers = [(code(name), value) for name, value in answer.headers]
        sent = self._shown_requests[wire.key].text(self._catalog.url)
        return fill(
            "answer",
            key=wire.key,
            door=wire.title,
            state="ok" if problem is None else "error",
            said="answered" if problem is None else str(problem.get("code") or "refused"),
            status=f"{answer.status} · " if answer.status else "",
            milliseconds=f"{answer.milliseconds:.1f}",
            compared=compared,
            spent=answer.spent or None,
            lines=lines,
            recovery=str(problem["recovery"]) if problem and problem.get("recovery") else None,
            question=question,
            job=await self._job(answer.job_id) if answer.job_id is not None else None,
            sent=block(sent, f"Sent to {wire.title}"),
            headers=table(f"Headers of the answer through {wire.title}", ("header", "value"), headers)
            if headers
            else None,
            received=block(answer.text[:20_000] or "(empty)", f"Received from {wire.title}"),
        )

    def _again(self, controls: Mapping[str, str], label: str) -> Html:
        """Return a form that sends the same input with additional fields. Credentials have to be typed again."""
        filled, public = self._kept, public_part(self._kept.given)
        kept = {"awp-key": filled.key, "awp-receipts": ", ".join(filled.receipts), "awp-session": filled.session}
        hidden = [*fields_of_form(public), *{**kept, **controls}.items()]
        fields = [tag("input", type="hidden", name=name, value=value) for name, value in hidden if value]
        typed = {name: PREFIX + name.lower() for name, _ in filled.secrets}
        typed |= {name: name for name in filled.given.keys() - public.keys()}
        fields += [
            tag("label", f"{shown} ", tag("input", type="password", name=name, autocomplete="off"))
            for shown, name in typed.items()
        ]
        here = f"{self._root}/try/{self._action.id}"
        return tag("form", fields, tag("button", label), method="post", action=here, data_live=True)

    async def _job(self, job_id: str) -> Html:
        """Poll a job and return its progress."""
        filled, path = self._kept, f"{self._catalog.paths.jobs}/{job_id}"
        session = (("AWP-Session", filled.session),) if filled.session else ()
        request = WireRequest(Wire("job", "Job", ""), "GET", path, (*session, *filled.secrets))
        answer = await self._send(request, 10.0)
        state: Mapping[str, Any] = answer.output if isinstance(answer.output, dict) else {}
        progress: Mapping[str, Any] = state["progress"] if isinstance(state.get("progress"), dict) else {}
        status, fraction = str(state.get("status", "unknown")), progress.get("fraction")
        has_ended = status not in ("accepted", "running")
        value = 1 if has_ended else fraction if isinstance(fraction, (int, float)) else None
        content = fill(
            "job",
            said=f"{status}. {progress.get('message') or ''}",
            bar=tag("progress", max=1, aria_label="Progress of the job", value=value),
            state=block(pretty(answer.output if answer.problem is None else answer.problem), "State of the job"),
            again=None if has_ended else self._again({"awp-do": "job", "awp-job": job_id}, "Look again"),
        )
        return tag("div", content, class_="job", data_job=None if has_ended else job_id)


def facts_of(catalog: Catalog, action: Action) -> dict[str, object]:
    """Return the facts about an action that are both on its card and on its page."""
    facts = [tag("li", one) for one in policy_words(catalog, action)]
    return {"name": action.name, "id": action.id, "description": action.description, "facts": facts}


def card(
    catalog: Catalog, action: Action, ident: str, *, is_detailed: bool, here: str | None = None, **more: object
) -> Html:
    """Return the card of an action, with its examples if `here` is the address of its form."""
    examples = [
        fill("example", text=block(pretty(one), f"Example {n} of {action.id}"), link=link_to(here or "", one), number=n)
        for n, one in enumerate(action.examples if here else (), 1)
    ]
    schemas = None
    if is_detailed:
        schemas = fill("schemas", id=action.id, tables=schema_tables(action), examples=examples or None)
    return fill("card", ident=ident, schemas=schemas, here=here, **facts_of(catalog, action), **more)


def schema_tables(action: Action) -> tuple[Html, Html]:
    outputs = schema_table(f"Outputs of {action.id}", answer_schema(action))
    return schema_table(f"Inputs of {action.id}", action.inputs), outputs


def public_part(given: Mapping[str, object]) -> dict[str, object]:
    """Return an input without the members that are not displayed: secrets and large files."""
    written = {name: orjson.dumps(value).decode() for name, value in given.items()}
    return {name: value for name, value in given.items() if HIDDEN not in written[name] and CUT not in written[name]}


def fields_of_form(given: Mapping[str, object]) -> list[tuple[str, str]]:
    """Return an input as fields of the form."""
    return [(name, shown_value(value)) for name, value in given.items()]


def link_to(here: str, given: Mapping[str, object], controls: Mapping[str, str] | None = None) -> str:
    """Return the address of the form with these values."""
    query = urlencode([*fields_of_form(given), *(controls or {}).items()])
    return f"{here}?{query}" if query else here
