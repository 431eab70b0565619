"""The overview at `/agents`: what a site publishes, one form for every door, what a caller sees, how to connect.

It is for the site's owner, and there only where the site asks for it. It works without scripts: its forms post to it,
and it sends what they hold through the whole application in this process, as a client would, with the visitor's own
cookies and nothing else of theirs.
"""

import asyncio
import base64
import hashlib
import json
import logging
import re
import secrets
import shlex
import time
from collections.abc import Awaitable, Iterable, Mapping, Sequence
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from functools import partial
from html import escape
from keyword import iskeyword
from pathlib import Path
from typing import Any, Final, NamedTuple, cast, get_args
from urllib.parse import quote, urlencode, urlsplit

import orjson

from awp_publish.checks import Finding, check_documents
from awp_publish.checks.urls import is_loopback
from awp_publish.invoke import Carry, Handle
from awp_publish.media import BINARY
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
from awp_publish.policy.approval import digests_of, path_of
from awp_publish.policy.authentication import AuthenticationGate
from awp_publish.policy.botauth import WebBotAuth
from awp_publish.policy.call import Call, Deliver, Label, Principal, Result
from awp_publish.policy.guard import Expired, NotOurs, Tokens
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
from awp_publish.protocols.actions_json import SITE_ACTION, SITE_TOOL
from awp_publish.protocols.plain_request import QUERY_METHODS
from awp_publish.protocols.schema_reading import (
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
from awp_publish.redaction import HIDDEN, input_redactor
from awp_publish.schema import is_secret
from awp_publish.serve.credentials import is_cross_site, read_credentials, refuse_foreign_host
from awp_publish.serve.documents import Prepared
from awp_publish.serve.doors import DoorContext, LiveDoor
from awp_publish.serve.endpoint import DoorRequest, Endpoint, ProblemRenderer
from awp_publish.serve.forms import FORM, MULTIPART, FieldReader, read_form, read_query
from awp_publish.serve.http import (
    NO_SNIFFING,
    AsgiApp,
    Cors,
    Fields,
    Message,
    RawHeaders,
    Receive,
    Reply,
    Scope,
    Send,
    read_body,
    route_path,
)
from awp_publish.serve.negotiation import NegotiatedPages, negotiate
from awp_publish.serve.pages import FORWARDED, PageExchange, PageRequest
from awp_publish.serve.startup import DEVELOPMENT_CHECKS, check_addresses
from awp_publish.stores.store import Add, Swap
from awp_publish.threads import run_in_thread
from awp_publish.traffic import TrafficReport, traffic_breakdowns, traffic_svg, traffic_table

logger: Final = logging.getLogger("awp_publish.overview")

STATIC: Final = Path(__file__).parents[1] / "static"
FILES: Final = {"overview.css": b"text/css; charset=utf-8", "overview.js": b"text/javascript; charset=utf-8"}

SECURITY: Final = (
    (b"content-security-policy", b"default-src 'self'; frame-ancestors 'none'; form-action 'self'; base-uri 'none'"),
    (b"referrer-policy", b"same-origin"),
    (b"x-robots-tag", b"noindex"),
    (b"cache-control", b"no-store"),
    NO_SNIFFING,
)

MAX_DETAILED: Final = 100
"""Actions of a site whose inputs and outputs are all on one page; those of a larger one are on the page of each."""

MAX_COLUMNS: Final = 12
"""Callers that stand side by side."""

APPROVING_FOR: Final = 5.0
"""Seconds for which one operator may write approvals while others wait."""

APPROVABLE_FOR: Final = 3600.0
"""Seconds for which a form that approves may be sent after it was read."""

TRAFFIC_DAYS: Final = 30
MAX_FORM_BYTES: Final = 4_194_304
MAX_ANSWER_BYTES: Final = 1_048_576
MAX_COMPARED_LINES: Final = 400
MAX_EXPECTED: Final = 2000
"""Characters of an answer that a test compares with."""
TOKEN_BYTES: Final = 4
"""Bytes of JSON or English that make a token of a model, about."""


# --- HTML ---


class Html(str):
    """Text that is HTML already."""

    __slots__ = ()


def tag(name: str, /, *children: object, **attributes: object) -> Html:
    """Return an element. Children that are not `Html` are escaped; None and False are left out, also as attributes."""
    written = "".join(
        f" {key.rstrip('_').replace('_', '-')}" + ("" if value is True else f'="{escape(str(value))}"')
        for key, value in attributes.items()
        if value is not None and value is not False
    )
    return Html(
        f"<{name}{written}>{inner(children)}" + ("" if name in ("input", "br", "meta", "link") else f"</{name}>")
    )


def inner(children: object) -> Html:
    """Return one child, or several after each other, as HTML."""
    if isinstance(children, Html):
        return children
    if children is None or children is False:
        return Html()
    if isinstance(children, (str, int, float)):
        return Html(escape(str(children)))
    return Html("".join(inner(child) for child in cast(Iterable[object], children)))


def table(caption: str, heads: Sequence[str], rows: Iterable[Sequence[object]]) -> Html:
    """Return a table that can be scrolled where it does not fit."""
    lines = [
        tag("tr", (tag("th" if not n else "td", cell, scope=None if n else "row") for n, cell in enumerate(row)))
        for row in rows
    ]
    if not lines:
        return tag("p", "None.", class_="none")
    head = tag("thead", tag("tr", (tag("th", name, scope="col") for name in heads)))
    content = tag("table", tag("caption", caption), head, tag("tbody", lines))
    return tag("div", content, class_="scroll", tabindex=0, role="group", aria_label=caption)


def code(text: object) -> Html:
    return tag("code", text)


def block(text: object, label: str) -> Html:
    """Return text to copy."""
    return tag("pre", tag("code", text), tabindex=0, role="group", aria_label=label, data_copy=True)


def pretty(value: object) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False, default=str)


def size_of(count: int) -> str:
    return f"{count:,} bytes, about {tokens_of(count):,} tokens"


def tokens_of(count: int) -> int:
    """Return about how many tokens of a model so many bytes are."""
    return -(-count // TOKEN_BYTES)


# --- What is published, in words ---

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
"""Levels of objects whose members are listed; deeper ones are called objects."""


def limit_words(limit: RateLimit) -> str:
    """Say a limit: "30 a minute for each caller"."""
    unit = UNIT_NAMES[limit.unit]
    article = "an" if unit == "hour" else "a"
    window = f"{article} {unit}" if limit.count == 1 else f"in {limit.count} {unit}s"
    return f"{limit.requests} {window} {_COUNTED_WORDS.get(limit.scope or '', 'for each caller')}"


def policy_words(catalog: Catalog, action: Action) -> list[str]:
    """Say what stands before the handler of an action, one thing after the other."""
    said = [_EFFECT_WORDS[action.effect]]
    if action.rate_limit is not None:
        said.append(limit_words(action.rate_limit))
    if catalog.site.rate_limit is not None:
        said.append(f"with all other actions {limit_words(catalog.site.rate_limit)}")
    if action.needs_confirmation:
        said.append("a person confirms")
    if action.scopes:
        said.append(f"callers need the scope{'s' * (len(action.scopes) > 1)} {', '.join(action.scopes)}")
    elif action.auth_required:
        said.append("callers have to be known")
    if action.allow_agents:
        said.append(f"for {', '.join(action.allow_agents)} only")
    if action.requires:
        said.append(f"only after a success of {', '.join(action.requires)}")
    if before := [one for one in action.depends_on if one not in action.requires]:
        said.append(f"comes after {', '.join(before)}")
    if action.idempotency is not None:
        said.append(f"the same key within {action.idempotency.window} gives the first answer again")
    if action.is_background:
        said.append("runs in the background, as a job")
    said.append(f"at most {action.timeout:g} seconds")
    return said


def kind_words(schema: object, root: JsonObject, depth: int = 0) -> str:
    """Say what a value is: "whole number", "list of text", "one of new, used"."""
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
    """Say within which limits a value has to be: "at least 1 character"."""
    found = ((words, facts[key]) for key, words in _LIMIT_WORDS.items() if key in facts)
    one = {" characters": " character", " entries": " entry"}
    said = ((words.format(value), value) for words, value in found)
    return [re.sub(r" (characters|entries)$", lambda end: one[end[0]], text) if n == 1 else text for text, n in said]


def schema_rows(schema: JsonObject, root: JsonObject, prefix: str = "", depth: int = 0) -> Iterable[Sequence[object]]:
    """Yield a row for each member of an object, and for those of objects in it."""
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
    """Return the members of a schema as a table, or what it is where it has none."""
    rows = list(schema_rows(schema, schema))
    if rows:
        return table(caption, ("name", "kind", "needed", "meaning", "limits"), rows)
    is_empty = kinds(resolved(schema, schema), schema) == ["object"] and "properties" in resolved(schema, schema)
    return tag("p", f"{caption}: ", "nothing" if is_empty else kind_words(schema, schema), ".")


# --- Requests, as each door takes them ---


class Wire(NamedTuple):
    """A way to send a call: its key in addresses, its name, and the door that the site needs for it, "" for none."""

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
    """What the form holds: the input, and what goes beside it. `secrets` are headers whose values are not shown."""

    given: Mapping[str, object]
    key: str = ""
    confirmation: str = ""
    receipts: tuple[str, ...] = ()
    session: str = ""
    message_id: str = ""
    secrets: tuple[tuple[str, str], ...] = ()

    def beside(self, key_field: str, receipts: object) -> dict[str, object]:
        """Return what goes beside the input, without what is empty."""
        found = {key_field: self.key, "confirmation": self.confirmation, "receipts": receipts, "session": self.session}
        return {name: value for name, value in found.items() if value}


@dataclass(frozen=True, slots=True)
class WireRequest:
    """One request as it goes over the wire. `frames` are the messages of a WebSocket, sent one after the other."""

    wire: Wire
    method: str
    path: str
    headers: tuple[tuple[str, str], ...] = ()
    body: object = None
    frames: tuple[JsonObject, ...] = ()

    def content(self) -> bytes:
        return b"" if self.body is None else orjson.dumps(self.body)

    def text(self, origin: str) -> str:
        """Return the request as it is shown."""
        parts = urlsplit(origin)
        lines = [f"{self.method} {parts.path}{self.path} HTTP/1.1", f"Host: {parts.netloc}"]
        lines += [f"{name}: {_masked(name, value)}" for name, value in self.headers]
        if self.frames:
            lines[1:] = ["Upgrade: websocket", *lines[1:]]
            return "\n".join(lines) + "".join(f"\n\n> {pretty(frame)}" for frame in self.frames)
        return "\n".join(lines) + ("" if self.body is None else f"\n\n{pretty(self.body)}")

    def curl(self, origin: str) -> str:
        """Return the request as a command line."""
        words = ["curl", "-i"] + (["-X", self.method] if self.method not in ("GET", "POST") else [])
        lines = [shlex.join([*words, origin + self.path])]
        lines += [f"  -H {shlex.quote(f'{name}: {_masked(name, value)}')}" for name, value in self.headers]
        if self.body is not None:
            lines.append(f"  -d {shlex.quote(orjson.dumps(self.body).decode())}")
        return " \\\n".join(lines)


_MASK: Final = "***"
_SHOWN_HEADERS: Final = ("content-type", "accept", "idempotency-key", "mcp-", "a2a-", "awp-")
"""Beginnings of the names of headers whose values are shown; all others are credentials."""


def _masked(name: str, value: str) -> str:
    """Return a header's value as it may be shown, without credentials: pages end up in screenshots."""
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
        told = filled.beside("idempotencyKey", receipts)
        meta: dict[str, object] = {f"awp/{name}": value for name, value in told.items()}
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
    """Return a call as a test, which expects what `answer` was if the call was sent."""
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


# --- Answers, read back into what they have in common ---


@dataclass(frozen=True, slots=True)
class WireAnswer:
    """What came back: on the wire, and what it means at every door. `problem` is None for a success."""

    request: WireRequest
    status: int
    headers: tuple[tuple[str, str], ...]
    text: str
    milliseconds: float
    spent: str = ""
    output: object = None
    problem: Mapping[str, Any] | None = None

    @property
    def told(self) -> object:
        """Return what a caller makes of it, without what differs by door because each door says it in its own way."""
        if self.problem is None:
            return self.output
        return {
            name: self.problem[name] for name in ("status", "code", "title", "detail", "errors") if name in self.problem
        }

    @property
    def question(self) -> Mapping[str, Any] | None:
        """Return the confirmation that a person is asked for."""
        asked = self.problem.get("confirmation") if self.problem is not None else None
        return asked if isinstance(asked, dict) and isinstance(asked.get("token"), str) else None

    @property
    def job_id(self) -> str | None:
        """Return the job that the call has become."""
        value = self.output
        found = value.get("job_id") if isinstance(value, dict) and "poll_endpoint" in value else None
        return found if isinstance(found, str) and _JOB_ID.fullmatch(found) else None


_JOB_ID: Final = re.compile(r"[A-Za-z0-9._~=-]{1,512}")


def read_answer(
    request: WireRequest, action: Action, status: int, content_type: str, body: bytes
) -> tuple[object, Any]:
    """Return the output and the problem of an answer; of a body that is no JSON the text."""
    kind = content_type.partition(";")[0].strip().lower()
    if status < 400 and kind and not kind.endswith("json") and not kind.startswith("text/"):
        return base64.b64encode(body).decode(), None  # as doors of JSON give it
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
        told = data[0].get("metadata") if isinstance(data, list) and data and isinstance(data[0], dict) else data
        told = told if isinstance(told, dict) and "code" in told else error.get("details")
        return None, told if isinstance(told, dict) and "code" in told else {
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
                with suppress(orjson.JSONDecodeError):  # what no schema describes is JSON in a text, or a text
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
        told = [
            part["data"] for part in state.get("message", {}).get("parts", ()) if isinstance(part.get("data"), dict)
        ]
        problem = next((one for one in told if "code" in one), None)
        return (None, problem) if problem is not None else (told[0] if told else task, None)
    return result.get("output", result), None


def _content_of(content: object) -> object:
    """Return what the first block of an MCP result holds: a text, or base64."""
    blocks = content if isinstance(content, list) else []
    first = blocks[0] if blocks and isinstance(blocks[0], dict) else {}
    held = first["resource"] if isinstance(first.get("resource"), dict) else first
    return next((held[name] for name in ("text", "data", "blob") if name in held), blocks)


async def send_request(
    request: WireRequest, catalog: Catalog, action: Action, app: AsgiApp, outer: Scope, seconds: float
) -> WireAnswer:
    """Send a request through the application, as the visitor of `outer` could send it from elsewhere."""
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
    told: tuple[tuple[str, str], ...] = ()
    started, status, body = time.perf_counter(), 0, b""
    scope, content_type, failed = inside.scope(outer), "application/json", ""
    exchange = PageExchange(inside.body, MAX_ANSWER_BYTES)
    steps = Steps()
    timing = _STEPS.set(steps)
    try:
        async with asyncio.timeout(seconds):
            if request.frames:
                status, body = await _talk(app, scope, request.frames)
            else:
                await app(scope, exchange.receive, exchange.send)
    except TimeoutError:
        failed = f"There was no answer within {seconds:g} seconds."
    except Exception as error:
        logger.exception("a call of %s from the overview failed at %s", action.id, request.wire.title)
        failed = f"The application failed with {type(error).__name__}; its log says more."
    finally:
        _STEPS.reset(timing)
    if exchange.answered.done():  # what the application still does after its answer is its own affair
        answer, failed = exchange.collected(), ""
        status, body = answer.status, answer.body
        told = tuple((name.decode("latin-1"), value.decode("latin-1")) for name, value in answer.headers)
        content_type = {name.lower(): value for name, value in told}.get("content-type", "")
        # A session of the application's is the visitor's own, and goes on with what the call has made of it.
        now, before = scope.get("session"), outer.get("session")
        if isinstance(now, dict) and isinstance(before, dict):
            for name in before.keys() - now.keys():
                del before[name]
            for name, value in now.items():  # one by one: a session may keep count of its changes
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
        request, status, told, body.decode("utf-8", "replace"), passed, steps.words(passed), output, problem
    )


async def _talk(app: AsgiApp, scope: Scope, frames: Sequence[JsonObject]) -> tuple[int, bytes]:
    """Open a WebSocket, send each frame after the answer to the one before, and return the last answer."""
    to_app, from_app = asyncio.Queue[Message](), asyncio.Queue[Message]()
    scheme = "wss" if scope["scheme"] == "https" else "ws"
    extensions: JsonObject = {"websocket.http.response": {}}
    scope = {**scope, "type": "websocket", "scheme": scheme, "subprotocols": [], "extensions": extensions}
    scope.pop("method")
    task = asyncio.ensure_future(app(scope, to_app.get, from_app.put))
    task.add_done_callback(lambda _: from_app.put_nowait({"type": "websocket.close"}))
    status, answer = 0, b""
    try:
        to_app.put_nowait({"type": "websocket.connect"})
        opened = await from_app.get()
        if opened["type"] == "websocket.http.response.start":
            return opened["status"], (await from_app.get()).get("body", b"")
        for frame in frames if opened["type"] == "websocket.accept" else ():
            to_app.put_nowait({"type": "websocket.receive", "text": orjson.dumps(frame).decode()})
            while True:
                message = await from_app.get()
                if message["type"] != "websocket.send":
                    return status, answer
                status, answer = 101, (message.get("text") or "").encode() or message.get("bytes") or b""
                if orjson.loads(answer).get("id") == frame["id"]:
                    break
            if b'"error"' in answer and "error" in orjson.loads(answer):
                break
        return status, answer
    finally:
        to_app.put_nowait({"type": "websocket.disconnect", "code": 1000})
        await asyncio.wait({task}, timeout=1.0)
        task.cancel()
        await asyncio.wait({task})


def aligned(value: object, like: object) -> object:
    """Return JSON as it is, with its members in the order of another's and whole numbers without a fraction."""
    if isinstance(value, dict):
        first = like if isinstance(like, dict) else {}
        names = [*(name for name in first if name in value), *(name for name in value if name not in first)]
        return {name: aligned(value[name], first.get(name)) for name in names}
    if isinstance(value, list):
        others = like if isinstance(like, list) else []
        return [aligned(one, others[n] if n < len(others) else None) for n, one in enumerate(value)]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def differing(answer: WireAnswer, first: WireAnswer) -> tuple[Html, int]:
    """Return what an answer tells, with its lines marked that the first one has not, and how many these are."""
    like = aligned(first.told, None)  # A2A carries objects without an order, and every number as a float
    mine, theirs = pretty(aligned(answer.told, like)).splitlines(), pretty(like).splitlines()
    if mine == theirs or len(mine) > MAX_COMPARED_LINES or len(theirs) > MAX_COMPARED_LINES:
        return inner("\n".join(mine)), 0 if mine == theirs else 1
    lines, count = list[object](), 0
    for kind, _, _, start, end in SequenceMatcher(None, theirs, mine, autojunk=False).get_opcodes():
        found = [(tag("mark", line) if kind != "equal" else line, "\n") for line in mine[start:end]]
        count += 0 if kind == "equal" else max(1, len(found))
        lines += found
    return inner(lines), count


# --- How to connect ---


def connections(catalog: Catalog) -> Iterable[tuple[str, str, Html | None]]:
    """Yield for each client its name, a line or a file to copy, and a link that sets it up."""
    origin = catalog.url
    name = re.sub(r"[^a-z0-9]+", "-", catalog.site.name.lower()).strip("-") or "site"
    if catalog.door("mcp") is not None:
        address = origin + catalog.paths.mcp
        in_code = {"name": name, "type": "http", "url": address}
        cursor = base64.b64encode(orjson.dumps({"url": address})).decode()
        yield "Claude Code", f"claude mcp add --transport http {name} {address}", None
        told = "Settings, Connectors, Add custom connector; its address is"
        link = tag("a", "Open the connectors of Claude", href="https://claude.ai/settings/connectors", class_="button")
        yield "Claude (web, desktop, phone)", f"{told}\n{address}", link
        told = "Settings, Apps & Connectors, Advanced settings, Developer mode; then Create, with the address"
        link = tag(
            "a", "Open the connectors of ChatGPT", href="https://chatgpt.com/#settings/Connectors", class_="button"
        )
        yield "ChatGPT", f"{told}\n{address}", link
        install = f"vscode:mcp/install?{quote(json.dumps(in_code), safe='')}"
        yield (
            "VS Code",
            f"code --add-mcp {shlex.quote(json.dumps(in_code))}",
            tag("a", "Install in VS Code", href=install, class_="button"),
        )
        install = f"cursor://anysphere.cursor-deeplink/mcp/install?name={name}&config={quote(cursor, safe='')}"
        in_file = pretty({"mcpServers": {name: {"url": address}}})
        yield "Cursor (.cursor/mcp.json)", in_file, tag("a", "Install in Cursor", href=install, class_="button")
        inspector = "npx @modelcontextprotocol/inspector --cli"
        yield "MCP Inspector", f"{inspector} {address} --transport http --method tools/list", None
        yield (
            "Official MCP client for Python",
            f"from mcp import Client\n\nasync with Client({json.dumps(address)}) as client:\n"
            "    print(await client.list_tools())",
            None,
        )
        yield (
            "Official MCP client for TypeScript",
            'import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";\n\n'
            f'const client = new Client({{ name: "{name}-client", version: "1" }});\n'
            f"await client.connect(new StreamableHTTPClientTransport(new URL({json.dumps(address)})));\n"
            "console.log(await client.listTools());",
            None,
        )
    if catalog.door("a2a") is not None:
        yield (
            "Official A2A client for TypeScript",
            'import { ClientFactory } from "@a2a-js/sdk/client";\n\n'
            f"const client = await new ClientFactory().createFromUrl({json.dumps(origin)});",
            None,
        )
        yield (
            "Official A2A client for Python",
            "import httpx\nfrom a2a.client import A2ACardResolver\n\nasync with httpx.AsyncClient() as http:\n"
            f"    card = await A2ACardResolver(http, {json.dumps(origin)}).get_agent_card()",
            None,
        )
    yield (
        "awp-publish for Python",
        f"from awp_publish.client import AgentClient\n\nclient = AgentClient({json.dumps(origin)})",
        None,
    )
    if catalog.actions:
        action = catalog.actions[0]
        given = action.examples[0] if action.examples else {}
        written = write_request(WIRES[0], catalog, action, Filled(given))
        yield "Any HTTP client", written.curl(origin), None


# --- The form ---


class BesideField(NamedTuple):
    """A field of the form beside the input: its name, its label, and how it is typed."""

    name: str
    label: str
    hint: str
    kind: str = "text"


PREFIX: Final = "awp-"
"""What the names of fields begin with that are no inputs."""

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
"""Characters from which a text is typed in several lines."""

MAX_SHOWN_FILE: Final = 1000
"""Characters of base64 that pages show; of a larger file they say how large it is."""

CUT: Final = "(not shown:"


def input_field(name: str, schema: object, root: JsonObject, required: bool, value: str) -> Html:
    """Return the field for one input, with its label and what its schema says."""
    facts, ident = resolved(schema, root), f"in-{name}"
    found, values = kinds(facts, root), options(facts, root)
    limits = limits_of(facts)
    described = str(facts.get("description", "")).rstrip(".")
    typed = kind_words(schema, root)
    kept: object = None
    if (media_type := file_type(schema, root)) is not None:
        typed, limits = "files" if "array" in found else "a file", []
        if value:  # no page can fill in a file: what was sent goes along until another one is chosen
            kept = tag("input", type="hidden", name=name, value=value)
            typed += f"; the one that is here, {size_words(value)}, is sent until another one is chosen"
        field = tag(
            "input",
            type="file",
            name=name,
            id=ident,
            multiple="array" in found,
            accept=media_type if media_type != BINARY else None,
            aria_describedby=f"{ident}-hint",
        )
    elif found == ["boolean"] or (values and all(isinstance(one, (str, int, float)) for one in values)):
        texts = [json.dumps(one) if isinstance(one, bool) else str(one) for one in values] or ["true", "false"]
        listed = texts if not value or value in texts else [*texts, value]
        left_out = tag("option", "(left out)", value="")
        field = tag(
            "select",
            left_out,
            (tag("option", text, value=text, selected=text == value) for text in listed),
            name=name,
            id=ident,
            aria_describedby=f"{ident}-hint",
        )
    else:
        is_list, is_object = "array" in found, "object" in found or not found
        items = kind_words(facts["items"], root) if is_list and "items" in facts else ""
        if is_list:
            typed += ", one in each line"
        elif is_object:
            typed += ", as JSON"
        long = int(cast(int, facts.get("maxLength", 0)) or 0) > LONG_TEXT or len(value) > LONG_TEXT or "\n" in value
        common = {"name": name, "id": ident, "aria_describedby": f"{ident}-hint"}
        if is_list or is_object or long or name in ("text", "body", "message") or items == "object":
            field = tag("textarea", Html("\n") + inner(value), rows=4, **common)
        else:
            kind = "password" if is_secret(facts) else _FORMATS.get(str(facts.get("format")), "text")
            mode = "numeric" if found == ["integer"] else "decimal" if "number" in found else None
            shown = {"placeholder": str(facts["default"])} if "default" in facts else {}
            field = tag("input", type=kind, value=value, inputmode=mode, autocomplete="off", **common, **shown)
    said = (described, ", ".join([typed, *limits]))
    hint = " ".join(f"{one[0].upper()}{one[1:]}." for one in said if one)
    label = tag("label", name, tag("span", " required" if required else "", class_="needed"), for_=ident)
    return tag(
        "div",
        label,
        kept,
        field,
        tag("p", hint, id=f"{ident}-hint", class_="hint"),
        class_="field",
    )


def file_type(schema: object, root: JsonObject) -> str | None:
    """Return the media type of the file that an input takes, or a list of; None where it takes none."""
    facts = resolved(schema, root)
    for part in (facts, *(resolved(branch, root) for branch in branches(facts))):
        inner = resolved(part.get("items"), root) if "items" in part else part
        if inner.get("contentEncoding") == "base64":
            return str(inner.get("contentMediaType", BINARY))
    return None


def size_words(content: str) -> str:
    """Say how large the files of base64 in the lines of a text are."""
    return f"{sum(len(line.strip()) * 3 // 4 - line.count('=') for line in content.splitlines()):,} bytes"


def shortened(action: Action, given: Mapping[str, object]) -> dict[str, object]:
    """Return an input as pages show it: of a large file only how large it is."""
    found = dict(given)
    for name, part in members(object_facts(action.inputs, action.inputs)).items():
        if name in found and file_type(part, action.inputs) is not None:
            content = shown_value(found[name])
            if len(content) > MAX_SHOWN_FILE:
                found[name] = f"{CUT} {size_words(content)} as base64)"
    return found


def credential_headers(catalog: Catalog, action: Action) -> list[str]:
    """Return the headers in which the site or the action's route looks for a caller, besides Authorization."""
    site = catalog.site.authentication.api_key_header if catalog.site.authentication is not None else None
    named = [site or "", *(one.name for one in action.route_credentials if one.place == "header")]
    return list({name.lower(): name for name in named if name and name.lower() != "authorization"}.values())


def read_input(action: Action, pairs: Sequence[tuple[str, str | bytes]]) -> dict[str, object]:
    """Return the input that fields of the form, or of a deep link, stand for. Empty fields are left out."""
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
    # In one order, whatever that of the fields: what a person is asked may follow it.
    declared = {name: given[name] for name in members(facts) if name in given}
    return declared | given


def shown_value(value: object) -> str:
    """Return an input as it stands in its field."""
    if isinstance(value, list):
        is_plain = all(isinstance(one, (str, int, float)) and "\n" not in str(one) for one in value)
        return "\n".join(map(shown_value, value)) if is_plain else pretty(value)
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


# --- Where the time of a call goes ---

_STEPS: Final[ContextVar["Steps | None"]] = ContextVar("awp_publish_steps", default=None)
"""The steps of the call that the overview sends; None for everybody else's."""


@dataclass(slots=True)
class Steps:
    """When a call began, when its handler did, and when both ended: in seconds, 0 for what did not happen."""

    begun: float = 0.0
    handled: float = 0.0
    answered: float = 0.0
    ended: float = 0.0

    def words(self, milliseconds: float) -> str:
        """Say how the time of a call through a door was spent."""
        if not self.ended:
            return ""
        gates = (self.handled or self.ended) - self.begun
        parts = {"gates": gates}
        if self.handled:
            parts |= {"handler": self.answered - self.handled, "validation": self.ended - self.answered}
        parts["door"] = milliseconds / 1000 - (self.ended - self.begun)
        return ", ".join(f"{name} {max(0.0, seconds) * 1000:.1f} ms" for name, seconds in parts.items())


def time_call(carry: Carry) -> Carry:
    """Return what carries calls, and notes when those of the overview begin and are answered."""

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
    """Return a handler, whose beginning and end are noted in calls of the overview."""

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


def audience_words(action: Action) -> str:
    """Say for whom an action is that is not for everybody."""
    whom = "callers who are known" if action.audience == KNOWN else f'callers with the scope "{action.audience}"'
    return f"Only {whom} are told of it."


def caller_id(caller: Principal | None) -> str:
    return caller.id if caller is not None else ""


def scopes_of(caller: Principal | None) -> frozenset[str] | None:
    """Return a caller's scopes, None for nobody known."""
    return caller.scopes if caller is not None else None


def open_overview(door: DoorContext) -> LiveDoor:
    """Make the overview of one public address of a site. Raises DeclarationError for a scope that nobody can have."""
    if isinstance(door.settings.overview, str) and not door.guards.authenticators:
        wrong = f'overview: asks for the scope "{door.settings.overview}", and nothing here tells who calls.'
        raise DeclarationError("site", wrong, "Give Site(authenticate=...), or write overview=True for everybody.")
    overview, root = Overview(door), door.catalog.paths.root
    door.invoker.surround(time_call, time_handler)
    pages = None
    if door.pages is not None and door.settings.page_formats is not None:
        pages = NegotiatedPages(door.catalog, door.settings.page_formats, door.pages.renderer)
    answer = negotiate(overview, pages, None, door.settings.timeout)

    async def answer_below(scope: Scope, receive: Receive, send: Send, rest: str) -> None:
        await answer(scope, receive, send)

    for route in door.routes():
        if route.path == root and not route.is_opaque:
            logger.warning(
                "The application's own route %s is never reached: the overview is there. Give Site(paths=Paths(root="
                '"...")) another address, or Site(overview=False).',
                root,
            )
    exact = {root: answer, f"{root}/": answer, **{f"{root}/{name}": overview.answer_file for name in FILES}}
    exact |= {f"{root}.md": answer} if pages is not None else {}
    return LiveDoor(exact, {f"{root}/try/": answer_below})


class Overview(Endpoint):
    """Shows one public address of a site to its owner, and sends what its forms hold."""

    methods = "GET, HEAD, POST, OPTIONS"
    usage = "The overview is read with GET, and its forms are sent with POST"

    def __init__(self, door: DoorContext) -> None:
        super().__init__(ProblemRenderer(door.catalog), Cors(()), door.admission.own_hosts)
        self._door, self._root = door, door.catalog.prefix + door.catalog.paths.root
        guards, scope = door.guards, door.settings.overview
        needed = (scope,) if isinstance(scope, str) else ()
        self._gate = AuthenticationGate(
            guards.authenticators, bool(needed), needed, guards.realm, guards.metadata_url, store=guards.store
        )
        namespace = door.settings.namespace
        self._approvals = Tokens(door.keys, f"approval:{namespace}", APPROVABLE_FOR)
        self._files = {name: (STATIC / name).read_bytes() for name in FILES}
        self._found: tuple[object, tuple[Finding, ...]] = (None, ())
        self._cards: tuple[object, Html] = (None, Html())
        self._signers = {
            name for one in guards.authenticators if isinstance(one, WebBotAuth) for name in one.signers or ()
        }
        self._wires = tuple(one for one in WIRES if not one.door or door.catalog.door(one.door) is not None)

    async def answer_file(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve the style or the script."""
        request = DoorRequest(self._renderer, self._cors, scope, receive, send)
        if scope["method"] == "HEAD":
            request.drop_content()
        name = route_path(scope).rpartition("/")[2]
        body = self._files[name]
        etag = b'"%s"' % hashlib.sha256(body).hexdigest()[:32].encode()
        shared = ((b"etag", etag), (b"cache-control", b"no-cache"), NO_SNIFFING)
        if etag in request.fields.get(b"if-none-match", b""):
            await request.reply(Reply(304, shared))
        else:
            length = (b"content-length", b"%d" % len(body))
            await request.reply(Reply(200, ((b"content-type", FILES[name]), length, *shared), body))

    def refuse_foreign(self, fields: Fields) -> None:
        """Refuse pages of rebound hosts. What pages of other sites send is refused where a form is read."""
        refuse_foreign_host(fields, self._own_hosts)

    async def handle(self, request: DoorRequest, named: str | None) -> None:
        """Answer with a page; refusals are a page too where a browser asks."""
        try:
            page = await self._page(request)
        except Problem as problem:
            if b"text/html" not in request.fields.get(b"accept", b""):
                raise
            told = self._renderer.describe(problem)
            content = (tag("h1", problem.title), tag("p", told["detail"]), tag("p", told["recovery"]))
            extra = tuple(
                (name.lower().encode(), value.encode("latin-1", "replace")) for name, value in problem.headers
            )
            await self._show(request, problem.title, content, problem.status, extra)
            return
        title, shown, extra = page
        await self._show(request, title, shown, extra=extra)

    async def _show(
        self,
        request: DoorRequest,
        title: str,
        content: object,
        status: int = 200,
        extra: RawHeaders = (),
    ) -> None:
        site, root = self._door.catalog.site.name, self._root
        head = (
            Html('<meta charset="utf-8">'),
            tag("title", f"{title} · {site}"),
            tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
            tag("meta", name="color-scheme", content="light dark"),
            tag("meta", name="description", content=f"What {site} publishes for agents, and how it answers."),
            tag("link", rel="stylesheet", href=f"{root}/overview.css"),
            tag("script", src=f"{root}/overview.js", defer=True),
        )
        skip = tag("a", "Skip to the content", href="#content", class_="skip")
        bar = tag("header", tag("a", site, href=root, class_="home"), tag("span", " for agents"))
        page = tag("html", tag("head", head), tag("body", skip, bar, tag("main", content, id="content")), lang="en")
        body = f"<!doctype html>{page}".encode("utf-8", "replace")
        headers = ((b"content-type", b"text/html; charset=utf-8"), (b"content-length", b"%d" % len(body)), *SECURITY)
        await request.reply(Reply(status, (*headers, *extra), body))

    async def _page(self, request: DoorRequest) -> tuple[str, object, RawHeaders]:
        """Return the title, the content and further headers of the page that a request asks for. Raises a Problem."""
        scope, fields, catalog = request.scope, request.fields, self._door.catalog
        if scope["method"] == "POST" and is_cross_site(fields, self._own_hosts):
            raise CrossSiteCookies("The form was sent by a page of another site, and was not read.")
        credentials = read_credentials(scope, fields, self._door.admission.trusted_proxies)
        caller: Principal | None = None
        try:
            caller = await self._gate(credentials)
        except Problem:
            if self._gate.required:
                raise
        path = route_path(scope).removeprefix(catalog.paths.root)
        action_id = path.removeprefix("/try/") if path.startswith("/try/") else None
        if path not in ("", "/") and action_id is None:
            raise UnknownAction("There is no such page of the overview.")
        pairs = read_query(scope["query_string"])
        if action_id is None:
            notice = await self._approve(request, caller) if scope["method"] == "POST" else None
            await self._find()
            asked = dict(pairs).get("sees", "")
            sees = asked if isinstance(asked, str) else ""
            traffic: TrafficReport | str | None = None
            if (record := self._door.site.traffic) is not None:
                try:
                    traffic = await record.read(days=TRAFFIC_DAYS)
                except StoreUnavailable as problem:
                    traffic = f"Traffic cannot be read at the moment: {problem.detail}"
                except Exception:
                    logger.exception("traffic could not be read")
                    traffic = "Traffic cannot be read at the moment: the store failed. The log says more."
            make = partial(self._overview, caller, sees, traffic, notice)
            return f"What {catalog.site.name} publishes", await run_in_thread(make, asyncio.to_thread), ()
        action = next((one for one in catalog.actions if one.id == action_id), None)
        if action is None or not action.is_for(scopes_of(caller)):
            raise UnknownAction(f'This site has no action "{action_id[:100]}".', recovery="Choose one in the overview.")
        if scope["method"] == "POST":
            pairs = await self._read_form(request)
        return action.name, *await self._try(action, pairs, scope, is_sent=scope["method"] == "POST")

    async def _read_form(self, request: DoorRequest) -> list[tuple[str, str | bytes]]:
        body = await read_body(request.scope, request.fields, request.receive, MAX_FORM_BYTES)
        content_type = request.fields.get(b"content-type", b"")
        if content_type.split(b";", 1)[0].strip().lower() not in (FORM, MULTIPART):
            raise UnsupportedMediaType("Send the form as application/x-www-form-urlencoded.")
        return read_form(content_type, body)

    def _may_approve(self, caller: Principal | None) -> bool:
        """An operator is who this overview asks for, or has the scope by that name; never just everybody."""
        return self._gate.required or (caller is not None and OPERATOR in caller.scopes)

    async def _approve(self, request: DoorRequest, caller: Principal | None) -> Html:
        """Approve what an operator has read, and say what came of it. Raises a Problem for anybody else's form."""
        site, given = self._door.site, dict(await self._read_form(request))
        if not site.settings.approval or "awp-approve" not in given:
            raise InvalidInput("This form is none of the overview's.", recovery="Load the page again.")
        if not self._may_approve(caller):
            raise InsufficientPermissions('Only a caller with the scope "operator" approves actions.')
        try:
            read = self._approvals.read(str(given["awp-approve"]))
        except (NotOurs, Expired):
            read = {}
        if not read or read["caller"] != caller_id(caller):
            raise InvalidInput(
                "This form is out of date, or was made for somebody else.", recovery="Load the page again."
            )
        now = {one.id: digests_of(one)["digest"] for one in site.catalog.actions}
        digests = cast(Mapping[str, str], read["digests"])
        same = [name for name, digest in digests.items() if now.get(name) == digest]
        told = list[object]()
        if len(same) < len(digests):
            changed = ", ".join(name for name in digests if name not in same)
            told.append(tag("p", f"Not approved, for it has changed since you read it: {changed}.", class_="error"))
        if same:
            name = path_of(site.settings.approval).name
            # One operator after the other, in whichever process: the first decision stands, and the next is told so.
            turn, store = Add("approving", secrets.token_bytes(16), APPROVING_FOR), site.store
            while True:
                if (await store.run((turn,))).failed is None:
                    break
                await asyncio.sleep(APPROVING_FOR / 100)
            try:
                late = [one.action for one in site.approvals() if one.state == "approved" and one.action in same]
                same = [one for one in same if one not in late]
                if same:
                    await run_in_thread(partial(site.approve, *same), asyncio.to_thread)
            except (DeclarationError, OSError) as error:
                logger.warning("the approval of %s could not be written: %s", ", ".join(same), error)
                wrong = f"{name} cannot be written; approve on the command line."
                return tag("p", wrong, class_="error", role="alert")
            finally:
                await store.run((Swap(turn.key, turn.value, None),))
            if late:
                told.append(tag("p", f"Approved before, and left as it is: {', '.join(late)}."))
            if same:
                logger.info("%s approved %s", caller_id(caller), ", ".join(same))
                told.append(f"Approved: {', '.join(same)}. Keep {name} in version control, and start the site again.")
        return tag("div", told, role="status")

    async def _find(self) -> None:
        """Let the checks look at the documents, once for each time that they are published."""
        door, (documents, _) = self._door, self._door.documents()
        if self._found[0] is documents:
            return
        bodies = {
            door.catalog.prefix + path: one.body for path, one in documents.items() if one.media_type.endswith("json")
        }
        catalog, routes = door.catalog, door.routes()

        def check() -> tuple[Finding, ...]:
            found = [*check_addresses(catalog, documents, routes, ""), *check_documents(bodies)]
            is_local = is_loopback(catalog.domain)
            return tuple(one for one in found if not (is_local and one.check in DEVELOPMENT_CHECKS))

        self._found = (documents, await run_in_thread(check, asyncio.to_thread))

    # --- What is published ---

    def _overview(
        self, caller: Principal | None, sees: str, traffic: TrafficReport | str | None, notice: Html | None
    ) -> Html:
        door = self._door
        catalog = door.published().visible_to(scopes_of(caller))
        (documents, fallbacks), findings, left_out = door.documents(), self._found[1], door.site.left_out
        if self._cards[0] is not catalog:  # a card for each action, the same until the catalog is published anew
            self._cards = (catalog, inner([self._action(catalog, one) for one in catalog.actions]))
        problems = f"{catalog.paths.problems}/"  # a page for each, of which nobody has to see the list
        listed = {**documents, **fallbacks}
        documents = {path: one for path, one in listed.items() if not f"{path}/".startswith(problems)}
        lines = [
            (tag("dt", name), tag("dd", block(text, f"For {name}"), tag("p", link) if link else None))
            for name, text, link in connections(catalog)
        ]
        hint = None
        if catalog.door("mcp") is None:
            hint = tag("p", "Clients of MCP connect where the site speaks it: ", code('Site(doors=["mcp"])'), ".")
        elif is_loopback(catalog.domain):
            hint = tag("p", "This is an address of one machine: Claude on the web and ChatGPT cannot reach it.")
        sections: list[tuple[str, str, object]] = [
            ("actions", f"Actions ({len(catalog.actions)})", self._cards[1]),
            ("sees", "What does a caller see?", self._sees(catalog, documents, sees)),
            ("connect", "Connect", (hint, tag("dl", lines, class_="connect"))),
            (
                "findings",
                f"Findings ({len(findings)})",
                table(
                    "What the checks find",
                    ("level", "where", "what", "remedy"),
                    [
                        (
                            tag("strong", one.level, class_=one.level),
                            (code(f"{one.document}#{one.pointer}") if one.document else "the site", " ", one.subject),
                            one.message,
                            (one.hint, " ", tag("small", f"{one.check}; {one.source}")),
                        )
                        for one in findings
                    ],
                ),
            ),
            *self._approval(caller, notice),
            *([("traffic", "Traffic", self._traffic(catalog, traffic))] if traffic is not None else []),
            ("documents", f"Documents ({len(documents)})", self._documents(documents)),
            (
                "agents",
                f"Agents ({len(catalog.agents)})",
                table(
                    "Agents and their operations",
                    ("agent", "name", "description", "operations"),
                    [
                        (
                            code(one.id),
                            one.name,
                            one.description,
                            ", ".join(f"{key}: {value}" for key, value in one.operations.items()),
                        )
                        for one in catalog.agents
                    ],
                ),
            ),
            (
                "pages",
                f"Pages ({len(catalog.pages)})",
                table(
                    "Pages",
                    ("path", "title", "description"),
                    [
                        (
                            code(one.path) if one.is_template else tag("a", one.path, href=catalog.prefix + one.path),
                            one.title,
                            one.description or "",
                        )
                        for one in catalog.pages
                    ],
                ),
            ),
            (
                "prompts",
                f"Prompts ({len(catalog.prompts)})",
                table(
                    "Prompts",
                    ("prompt", "name", "description", "arguments"),
                    [
                        (
                            code(one.id),
                            one.name,
                            one.description or "",
                            ", ".join(f"{arg.name}{'' if arg.required else ' (optional)'}" for arg in one.arguments),
                        )
                        for one in catalog.prompts
                    ],
                ),
            ),
            (
                "left-out",
                f"Left out ({len(left_out)})",
                table(
                    "What include() saw and did not take",
                    ("route", "name", "why"),
                    [(code(f"{one.method} {one.path}"), one.name, one.why) for one in left_out],
                ),
            ),
        ]
        known = "nobody in particular" if caller is None else caller.id
        scopes = f", with the scopes {', '.join(sorted(caller.scopes))}" if caller is not None and caller.scopes else ""
        links = (tag("li", tag("a", title, href=f"#{ident}")) for ident, title, _ in sections)
        return inner(
            (
                tag("h1", f"What {catalog.site.name} publishes"),
                tag("p", catalog.site.description, class_="lead"),
                tag("p", "Its address is ", code(catalog.url), f"; to the site you are {known}{scopes}."),
                tag("nav", tag("ul", links), aria_label="On this page"),
                (
                    tag("section", tag("h2", title, id=ident), content, aria_labelledby=ident)
                    for ident, title, content in sections
                ),
            )
        )

    def _action(self, catalog: Catalog, action: Action) -> Html:
        here = f"{self._root}/try/{action.id}"
        examples = (
            (
                block(pretty(one), f"Example {number} of {action.id}"),
                tag("a", f"Fill in the form with example {number}", href=link_to(here, one)),
            )
            for number, one in enumerate(action.examples, 1)
        )
        about = tag(
            "details",
            tag("summary", "Inputs and outputs", tag("span", f" of {action.id}", class_="quiet")),
            schema_table(f"Inputs of {action.id}", action.inputs),
            schema_table(f"Outputs of {action.id}", answer_schema(action)),
            (tag("h4", "Examples"), examples) if action.examples else None,
        )
        heading = tag("h3", action.name, " ", code(action.id), id=f"action-{action.id}")
        words = tag("ul", (tag("li", one) for one in policy_words(catalog, action)), class_="facts")
        is_degraded = action.id in catalog.status.degraded_actions
        return tag(
            "article",
            heading,
            tag("p", action.description),
            tag("p", tag("strong", "It does not work at the moment."), class_="error") if is_degraded else None,
            words,
            tag("p", "Offered at ", ", ".join(self._doors_of(action)) or "no door that is open", "."),
            tag("p", "In the category " if len(action.tags) == 1 else "In the categories ", ", ".join(action.tags), ".")
            if action.tags
            else None,
            tag("p", audience_words(action)) if action.audience != PUBLIC else None,
            about if len(catalog.actions) <= MAX_DETAILED else None,
            tag("p", tag("a", f"Try {action.id}", href=here, class_="button")),
            class_="card",
            aria_labelledby=f"action-{action.id}",
        )

    def _wires_of(self, action: Action) -> tuple[Wire, ...]:
        """Return the wires whose doors offer an action."""
        return tuple(one for one in self._wires if action.is_exposed_at(one.door or one.key))

    def _doors_of(self, action: Action) -> list[str]:
        """Return the titles of the doors that offer an action."""
        catalog = self._door.catalog
        titles = [one.title for one in self._wires_of(action)]
        has_bridge = catalog.door("bridge") is not None and action.is_exposed_at("bridge")
        return [*titles, "the Actions Bridge"] if has_bridge else titles

    def _approval(self, caller: Principal | None, notice: Html | None) -> list[tuple[str, str, object]]:
        """Return the section of what waits for approval, by the file as it is now; none for a site without approval.

        What would not be for a reader once it is approved is not told to them before. A button of an operator's sends
        what they have read, signed: what has changed meanwhile is not approved by it.
        """
        scopes, may_approve = scopes_of(caller), self._may_approve(caller)

        def button(names: Sequence[str], label: str) -> Html | None:
            if not may_approve or not names:
                return None
            digests = {name: digests_of(actions[name])["digest"] for name in names}
            token, _ = self._approvals.write({"caller": caller_id(caller), "digests": digests})
            field = tag("input", type="hidden", name="awp-approve", value=token)
            here = f"{self._root}#approval"
            return tag("form", field, tag("button", label, class_="button"), method="post", action=here)

        site = self._door.site
        if not site.settings.approval:
            return []
        try:
            standing = site.approvals()
        except DeclarationError as error:
            logger.warning("%s", error)
            wrong = f"{path_of(site.settings.approval).name} cannot be read. {error.remedy}"
            return [("approval", "Approval", tag("p", wrong, class_="error"))]
        actions = {one.id: one for one in site.catalog.actions}
        cards, waiting, gone = list[Html](), list[str](), list[str]()
        for one in standing:
            if (action := actions.get(one.action)) is None:
                gone.append(one.action)
                continue
            is_settled = one.state == "approved" and action.is_approved
            if is_settled or not replace(action, is_approved=True).is_for(scopes):
                continue
            if one.state == "approved":
                said = "Approved by now; hidden until all that it requires is approved and the site starts again."
            elif one.state == "new":
                said = "New: it was never approved."
            else:
                said = f"Changed since it was approved: {', '.join(one.changed)}."
            waiting += [one.action] if one.state != "approved" else []
            ident = f"waiting-{action.id}"
            cards.append(
                tag(
                    "article",
                    tag("h3", action.name, " ", code(action.id), id=ident),
                    tag("p", tag("strong", said), class_="warning"),
                    tag("p", action.description),
                    tag("ul", (tag("li", fact) for fact in policy_words(site.catalog, action)), class_="facts"),
                    tag(
                        "details",
                        tag("summary", "Inputs and outputs", tag("span", f" of {action.id}", class_="quiet")),
                        schema_table(f"Inputs of {action.id}", action.inputs),
                        schema_table(f"Outputs of {action.id}", answer_schema(action)),
                    )
                    if len(cards) < MAX_DETAILED
                    else None,
                    button([action.id], f"Approve {action.id}") if one.state != "approved" else None,
                    class_="card",
                    aria_labelledby=ident,
                )
            )
        lines = f"awp-publish approve module:app {' '.join(waiting)}" if waiting else None
        content = (
            notice,
            tag("p", "What is not approved is there for nobody. Actions that are not for you are not listed here."),
            cards or tag("p", "Nothing waits.", class_="none"),
            tag("p", "Approved, and there no more: ", ", ".join(gone), ".") if gone else None,
            button(waiting, "Approve all of these") if len(waiting) > 1 else None,
            (tag("p", "On the command line, as they are now:"), block(lines, "Line that approves them"))
            if lines
            else None,
        )
        return [("approval", f"Approval ({len(waiting)} waiting)", content)]

    def _traffic(self, catalog: Catalog, report: TrafficReport | str) -> object:
        """Show what has been called, as far as a reader of this catalog may know of it."""
        if isinstance(report, str):
            return tag("p", report, class_="error")
        hidden = {one.id for one in self._door.site.catalog.actions} - {one.id for one in catalog.actions}
        rows = tuple(row for row in report.rows if row.action not in hidden)
        latencies = {key: one for key, one in report.latencies.items() if key[2] not in hidden}
        report = replace(report, rows=rows, latencies=latencies)
        picture = tag("div", Html(traffic_svg(report)), class_="picture card")
        if not rows:
            return picture, tag("p", f"Nothing has been called or read in {len(report.days)} days.", class_="none")

        told = [
            table(one.caption, one.heads, ((code(line[0]), *line[1:]) for line in one.rows))
            for one in traffic_breakdowns(report, with_callers=self._gate.required)  # for readers who are known
        ]
        days = f"Calls, jobs and readings of pages in the last {len(report.days)} days (UTC), of all workers."
        by_day = tag("div", Html(traffic_table(report)), class_="scroll", tabindex=0, role="group", aria_label="By day")
        return tag("p", days), picture, by_day, told

    def _documents(self, documents: Mapping[str, Prepared]) -> object:
        rows, total = list[Sequence[object]](), 0
        prefix, problems = self._door.catalog.prefix, self._door.catalog.paths.problems
        for path, one in documents.items():
            full, total = one.variants[-1].full, total + len(one.body)
            headers = ((tag("dt", name.decode()), tag("dd", value.decode("latin-1"))) for name, value in full.headers)
            rows.append(
                (
                    tag("a", path, href=prefix + path),
                    one.media_type,
                    f"{len(one.body):,}",
                    f"{tokens_of(len(one.body)):,}",
                    f"{len(one.variants[0].full.body):,} ({one.codings[0]})",
                    tag(
                        "details",
                        tag("summary", "headers", tag("span", f" of {path}", class_="quiet")),
                        tag("dl", headers),
                    ),
                )
            )
        pages = tag("a", "pages of the problem types", href=prefix + problems)
        return (
            table("Documents", ("path", "type", "bytes", "tokens", "compressed", "headers"), rows),
            tag("p", f"All of them: {size_of(total)}. Besides, there are the ", pages, "."),
        )

    def _sees(self, catalog: Catalog, documents: Mapping[str, Prepared], asked: str) -> object:
        """Show what anybody, a caller with scopes, or an agent that signs reads and may call, and what that costs."""
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
        scopes = frozenset(named.split()) if chosen.startswith("scope:") else frozenset[str]()
        choices.setdefault(chosen, f'a caller with the {kind} "{named}"' if kind == "scope" else f"the agent {named}")
        hides, sizes = self._door.settings.list_only_allowed, dict[str, int]()
        for action in catalog.actions:
            tool: JsonObject = {"name": action.id, "title": action.name, "description": action.description}
            tool = {**tool, "inputSchema": action.inputs, "outputSchema": answer_schema(action)}
            sizes[action.id] = len(orjson.dumps(tool))

        def tools(choice: str) -> dict[str, str]:
            """Return what is listed to a caller, each with "" for what they may call, or why they may not."""
            kind, _, named = choice.partition(":")
            scopes = frozenset(named.split()) if kind == "scope" else frozenset[str]()
            names = {"verified", named, named.partition("://")[2]} if kind == "agent" else {"unknown", ""}
            found = {}
            for action in catalog.visible_to(scopes if choice else None).actions:
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
        # Side by side: what differs from what an anonymous caller is shown, is marked.
        columns = {text: tools(choice) for choice, text in list(choices.items())[:MAX_COLUMNS]}

        def standing(tools: Mapping[str, str], name: str) -> str:
            return "hidden" if name not in tools else "listed" if tools[name] else "callable"

        beside = [
            (code(name), *(word if word == standing(nobody, name) else tag("mark", word) for word in words))
            for name in sizes
            if (words := [standing(tools, name) for tools in columns.values()])
            and (len(sizes) <= MAX_DETAILED or len(set(words)) > 1)  # of many, those that are not the same for all
        ][:MAX_DETAILED]
        costs = [tokens_of(sum(sizes[name] for name in tools)) for tools in columns.values()]
        beside.append(("tokens of the list", *(f"{n:,}" if n == costs[0] else tag("mark", f"{n:,}") for n in costs)))
        form = tag(
            "form",
            tag("label", "Caller", for_="sees-who"),
            tag(
                "select",
                (tag("option", text, value=key, selected=key == chosen) for key, text in choices.items()),
                name="sees",
                id="sees-who",
            ),
            tag("button", "Show"),
            action=f"{self._root}#sees",
            class_="row",
        )
        visible = catalog.visible_to(scopes if chosen else None)
        read = {path: len(one.body) for path, one in documents.items()}
        return (
            form,
            table(
                f"Tools that {choices[chosen]} is shown",
                ("tool", "may be called", "bytes", "tokens", "listed at"),
                rows,
            ),
            tag("p", f"The whole list of tools: {size_of(sum(sizes[name] for name in listed))}."),
            table("Side by side: marked is what differs from an anonymous caller", ("tool", *columns), beside)
            if len(columns) > 1
            else None,
            tag(
                "p",
                f"Documents are the same for every caller. They name the {len(catalog.public.actions)} actions that "
                f"are public, of {len(visible.actions)} that this caller may know of; the "
                "others are in the lists that doors give to callers whom they know. What you may not see yourself is "
                "not told of others either.",
            ),
            tag(
                "details",
                tag("summary", f"{len(read)} documents, {size_of(sum(read.values()))}"),
                tag("ul", (tag("li", code(path), f": {size_of(size)}") for path, size in read.items())),
            ),
        )

    # --- One form, every door ---

    async def _try(
        self, action: Action, pairs: Sequence[tuple[str, str | bytes]], scope: Scope, *, is_sent: bool
    ) -> tuple[Html, RawHeaders]:
        """Return the form of an action with what came of it, and the cookies that its visitor is set."""
        door, catalog = self._door, self._door.published()
        wires = self._wires_of(action) or self._wires
        texts = [(name, value) for name, value in pairs if isinstance(value, str)]
        controls = {name: value.strip() for name, value in texts if name.startswith(PREFIX)}
        if not pairs and action.examples:
            pairs = fields_of(action.examples[0])
        wrong: InvalidInput | None = None
        given: dict[str, object] = {}
        try:
            given = read_input(action, pairs)
        except InvalidInput as problem:
            wrong = problem
        secrets_given = [("Authorization", controls.get("awp-authorization", ""))]
        key_headers = credential_headers(catalog, action)
        secrets_given += [(name, controls.get(f"{PREFIX}{name.lower()}", "")) for name in key_headers]
        filled = Filled(
            given,
            controls.get("awp-key", ""),
            controls.get("awp-confirmation", ""),
            tuple(one.strip() for one in controls.get("awp-receipts", "").split(",") if one.strip()),
            controls.get("awp-session", ""),
            secrets.token_hex(8),
            tuple((name, re.sub(r"[\x00-\x1f\x7f]", "", value)) for name, value in secrets_given if value),
        )
        redact = input_redactor(action.inputs)
        kept = filled if redact is None else replace(filled, given=redact(given))
        shown = replace(kept, given=shortened(action, kept.given))
        chosen = next((one for one in wires if one.key == controls.get("awp-door")), wires[0])
        requests = {one.key: write_request(one, catalog, action, filled) for one in wires}
        shown_requests = {one.key: write_request(one, catalog, action, shown) for one in wires}
        told: object = None
        answers: list[WireAnswer] = []
        cookies: dict[str, tuple[bytes, bytes]] = {}
        if is_sent and wrong is None:
            app, seconds, do = door.entrance(scope), action.timeout + 5.0, controls.get("awp-do", "send")
            if do == "job" and _JOB_ID.fullmatch(controls.get("awp-job", "")):
                told = await self._job(action, controls["awp-job"], kept, app, scope)
            elif do in ("send", "all"):
                sent = [one for one in wires if do == "all" or one is chosen]
                answers = [await send_request(requests[one.key], catalog, action, app, scope, seconds) for one in sent]
                told = [
                    await self._answer(one, answers[0], shown_requests[one.request.wire.key], action, kept, app, scope)
                    for one in answers
                ]
                for name, value in (pair for one in answers for pair in one.headers):
                    if name.lower() == "set-cookie":
                        cookies[value.partition("=")[0]] = (b"set-cookie", value.encode("latin-1"))
        here = f"{self._root}/try/{action.id}"
        link = link_to(here, public_part(shown.given), {"awp-door": chosen.key} if chosen is not wires[0] else {})
        page = inner(
            (
                tag("p", tag("a", "All that is published", href=f"{self._root}#action-{action.id}")),
                tag("h1", action.name, " ", code(action.id)),
                tag("p", action.description, class_="lead"),
                tag("ul", (tag("li", one) for one in policy_words(catalog, action)), class_="facts"),
                self._form(action, texts, given, controls, chosen, here, key_headers, wrong),
                tag(
                    "section",
                    tag("h2", "Answers", id="answers-title"),
                    tag("div", told, class_="answers") if told else tag("p", "Nothing has been sent.", class_="none"),
                    id="answers",
                    aria_labelledby="answers-title",
                    aria_live="polite",
                ),
                self._requests(action, shown_requests, shown, chosen, answers, link),
                tag(
                    "section",
                    tag("h2", "Inputs and outputs", id="schemas"),
                    schema_table(f"Inputs of {action.id}", action.inputs),
                    schema_table(f"Outputs of {action.id}", answer_schema(action)),
                    aria_labelledby="schemas",
                ),
            )
        )
        return page, tuple(cookies.values())

    def _form(
        self,
        action: Action,
        pairs: Sequence[tuple[str, str]],
        given: Mapping[str, object],
        controls: Mapping[str, str],
        chosen: Wire,
        here: str,
        key_headers: Sequence[str],
        wrong: InvalidInput | None,
    ) -> Html:
        wires = self._wires_of(action) or self._wires
        facts = object_facts(action.inputs, action.inputs)
        required, raw = required_members(facts), dict(pairs)
        values = {name: shown_value(given[name]) if name in given else raw.get(name, "") for name in members(facts)}
        if (redact := input_redactor(action.inputs)) is not None:  # a secret is typed for each sending
            values |= dict.fromkeys(given.keys() - public_part(redact(given)).keys() & values.keys(), "")
        more = [name for name in given if name not in values]
        takes_files = any(file_type(part, action.inputs) is not None for part in members(facts).values())
        fields = [
            input_field(name, part, action.inputs, name in required, values[name])
            for name, part in members(facts).items()
        ]
        fields += [input_field(name, {}, action.inputs, False, shown_value(given[name])) for name in more]
        secret = [
            BesideField(f"{PREFIX}{name.lower()}", name, "It is sent and never shown.", "password")
            for name in key_headers
        ]
        beside = [
            tag(
                "div",
                tag("label", one.label, for_=one.name),
                tag(
                    "input",
                    type=one.kind,
                    name=one.name,
                    id=one.name,
                    # A credential is typed for each sending: no page holds one.
                    value="" if one.kind == "password" else controls.get(one.name, ""),
                    autocomplete="off",
                    aria_describedby=f"{one.name}-hint",
                ),
                tag("p", one.hint, id=f"{one.name}-hint", class_="hint"),
                class_="field",
            )
            for one in (*_BESIDE, *secret)
        ]
        doors = (
            tag(
                "label",
                tag("input", type="radio", name="awp-door", value=one.key, checked=one is chosen),
                f" {one.title}",
                class_="choice",
            )
            for one in wires
        )
        note = None
        if action.effect != "read":
            many = len(wires)
            note = tag(
                "p",
                f"This is no rehearsal: it {_EFFECT_WORDS[action.effect]}; all doors together call it {many} times.",
                class_="hint",
            )
        return tag(
            "form",
            tag("p", tag("strong", wrong.detail), class_="error", role="alert") if wrong is not None else None,
            tag(
                "fieldset",
                tag("legend", "Input"),
                tag("div", fields, class_="fields") if fields else tag("p", "It takes none."),
            ),
            tag(
                "details",
                tag("summary", "Beside the input: keys, confirmation, credentials"),
                beside,
                open=any(controls.get(one.name) for one in _BESIDE),
            ),
            tag("fieldset", tag("legend", "Door"), tag("div", doors, class_="choices")),
            tag(
                "p",
                tag("button", "Send", name="awp-do", value="send", class_="button"),
                " ",
                tag("button", "Send through all doors", name="awp-do", value="all"),
                " ",
                tag("button", "Show the requests", name="awp-do", value="show"),
                class_="row",
            ),
            note,
            method="post",
            action=here,
            enctype="multipart/form-data" if takes_files else None,
            novalidate=True,
            data_live=True,
        )

    def _requests(
        self,
        action: Action,
        requests: Mapping[str, WireRequest],
        filled: Filled,
        chosen: Wire,
        answers: Sequence[WireAnswer],
        link: str,
    ) -> Html:
        origin = self._door.catalog.url
        client = f"from awp_publish.client import AgentClient\n\nclient = AgentClient({json.dumps(origin)})\n"
        sent = next((one for one in answers if one.request.wire is chosen), None)
        shown = {key: (one.wire.title, one.text(origin)) for key, one in requests.items()}
        plain = next((one for one in (requests[chosen.key], *requests.values()) if not one.frames), None)
        if plain is not None:  # no line of curl is a WebSocket
            shown["curl"] = ("curl", plain.curl(origin))
        shown |= {
            "python": ("Python", f"{client}answer = {python_call(action, filled.given)}"),
            "test": ("As a test", write_test(action, filled, chosen, sent)),
        }
        tabs = [
            (
                tag("input", type="radio", name="tab", id=f"tab-{key}", checked=key == chosen.key, class_="tab"),
                tag("label", title, for_=f"tab-{key}"),
            )
            for key, (title, _) in shown.items()
        ]
        panels = [
            tag("div", tag("h3", title), block(text, title), class_="panel", id=f"panel-{key}")
            for key, (title, text) in shown.items()
        ]
        return tag(
            "section",
            tag("h2", "The exact request", id="requests-title"),
            tag("p", "The form as it is filled in now has an address: ", tag("a", "link to this form", href=link), "."),
            tag(
                "div",
                tag("div", tabs, class_="tablist", role="radiogroup", aria_labelledby="requests-title"),
                panels,
                class_="tabs",
            ),
            id="requests",
            aria_labelledby="requests-title",
        )

    async def _answer(
        self,
        answer: WireAnswer,
        first: WireAnswer,
        request: WireRequest,
        action: Action,
        filled: Filled,
        app: AsgiApp,
        scope: Scope,
    ) -> Html:
        """Return one answer beside the others."""
        lines, count = differing(answer, first)
        compared = None
        if answer is not first:
            compared = tag(
                "span",
                "the same as " if not count else "differs from ",
                first.request.wire.title,
                class_="differs" if count else "same",
            )
        state = "ok" if answer.problem is None else "error"
        said = "answered" if answer.problem is None else str(answer.problem.get("code") or "refused")
        heading = f"answer-{answer.request.wire.key}"
        question, job = None, None
        if (asked := answer.question) is not None:
            agreed = {"awp-door": answer.request.wire.key, "awp-confirmation": asked["token"], "awp-do": "send"}
            question = tag(
                "div",
                tag("h4", "A person is asked"),
                tag(
                    "p",
                    "The agent shows this to the person it works for, and calls again with the token once they agree:",
                ),
                tag("blockquote", str(asked.get("summary", ""))),
                tag(
                    "p",
                    "The token is good for this caller and this input until ",
                    code(str(asked.get("expires_at", ""))),
                    ".",
                ),
                self._again(action, filled, agreed, "Agree and call again"),
                class_="question",
            )
        if answer.job_id is not None:
            job = await self._job(action, answer.job_id, filled, app, scope)
        problem = answer.problem or {}
        recovery = (
            tag("p", tag("strong", "What to do: "), str(problem["recovery"])) if problem.get("recovery") else None
        )
        headers = table(
            f"Headers of the answer through {answer.request.wire.title}",
            ("header", "value"),
            [(code(n), v) for n, v in answer.headers],
        )
        raw = answer.text[:20_000] or "(empty)"
        return tag(
            "article",
            tag("h3", answer.request.wire.title, id=heading),
            tag(
                "p",
                tag("strong", said, class_=state),
                f" · {answer.status} · " if answer.status else " · ",
                f"{answer.milliseconds:.1f} ms",
                (" · ", compared) if compared else None,
            ),
            tag("p", answer.spent, class_="hint") if answer.spent else None,
            tag(
                "pre",
                tag("code", lines),
                tabindex=0,
                role="group",
                aria_label=f"Answer through {answer.request.wire.title}",
            ),
            recovery,
            question,
            job,
            tag(
                "details",
                tag("summary", "On the wire", tag("span", f" through {answer.request.wire.title}", class_="quiet")),
                tag("h4", "Sent"),
                block(request.text(self._door.catalog.url), f"Sent to {answer.request.wire.title}"),
                tag("h4", "Received"),
                headers if answer.headers else None,
                block(raw, f"Received from {answer.request.wire.title}"),
            ),
            class_="card",
            aria_labelledby=heading,
        )

    def _again(self, action: Action, filled: Filled, controls: Mapping[str, str], label: str) -> Html:
        """Return a form that sends the same input with something more. Credentials have to be typed again."""
        kept = {"awp-key": filled.key, "awp-receipts": ", ".join(filled.receipts), "awp-session": filled.session}
        public = public_part(filled.given)
        hidden = [*fields_of_form(public), *{**kept, **controls}.items()]
        fields = [tag("input", type="hidden", name=name, value=value) for name, value in hidden if value]
        typed = [
            tag("label", f"{name} ", tag("input", type="password", name=f"{PREFIX}{name.lower()}", autocomplete="off"))
            for name, _ in filled.secrets
        ]
        typed += [
            tag("label", f"{name} ", tag("input", type="password", name=name, autocomplete="off"))
            for name in filled.given.keys() - public.keys()
        ]
        here = f"{self._root}/try/{action.id}"
        return tag("form", fields, typed, tag("button", label), method="post", action=here, data_live=True)

    async def _job(self, action: Action, job_id: str, filled: Filled, app: AsgiApp, scope: Scope) -> Html:
        """Return how far a job is."""
        catalog = self._door.catalog
        session = (("AWP-Session", filled.session),) if filled.session else ()
        path = f"{catalog.paths.jobs}/{job_id}"
        request = WireRequest(Wire("job", "Job", ""), "GET", path, (*session, *filled.secrets))
        answer = await send_request(request, catalog, action, app, scope, 10.0)
        state: Mapping[str, Any] = answer.output if isinstance(answer.output, dict) else {}
        progress: Mapping[str, Any] = state["progress"] if isinstance(state.get("progress"), dict) else {}
        status, fraction = str(state.get("status", "unknown")), progress.get("fraction")
        has_ended = status not in ("accepted", "running")
        bar = {"value": 1 if has_ended else fraction} if has_ended or isinstance(fraction, (int, float)) else {}
        return tag(
            "div",
            tag("h4", "Job"),
            tag("p", f"{status}. {progress.get('message') or ''}"),
            tag("progress", max=1, aria_label="Progress of the job", **bar),
            block(pretty(answer.output if answer.problem is None else answer.problem), "State of the job"),
            None if has_ended else self._again(action, filled, {"awp-do": "job", "awp-job": job_id}, "Look again"),
            class_="job",
            data_job=None if has_ended else job_id,
        )


def public_part(given: Mapping[str, object]) -> dict[str, object]:
    """Return an input without the members that are not shown: secrets, and large files."""
    written = {name: orjson.dumps(value).decode() for name, value in given.items()}
    return {name: value for name, value in given.items() if HIDDEN not in written[name] and CUT not in written[name]}


def fields_of_form(given: Mapping[str, object]) -> list[tuple[str, str]]:
    """Return an input as the fields of the form hold it."""
    return [(name, shown_value(value)) for name, value in given.items()]


def link_to(here: str, given: Mapping[str, object], controls: Mapping[str, str] | None = None) -> str:
    """Return the address of the form as it is filled in."""
    query = urlencode([*fields_of_form(given), *(controls or {}).items()])
    return f"{here}?{query}" if query else here
