"""What every door does with a request: its id, the answer to it, and how a problem is said."""

import re
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import count
from typing import Final
from urllib.parse import quote, urlsplit

import orjson

from awp_publish.model import Catalog
from awp_publish.policy.call import Call, Result
from awp_publish.problems import Problem, slug_of
from awp_publish.serve.credentials import TrustedProxies, read_trusted_proxies
from awp_publish.serve.http import NO_SNIFFING, Fields, RawHeaders, Reply, Scope, Send, send_reply
from awp_publish.site import Site

# --- Problems as application/problem+json (RFC 9457) ---

MEDIA_TYPE: Final = b"application/problem+json"
_RESERVED: Final = frozenset(
    {"type", "title", "status", "detail", "instance", "code", "recovery", "request_id", "errors"}
)


def describe_problem(
    problem: Problem,
    types: str = "",
    recoveries: Mapping[str, str] | None = None,
    instance: str = "",
    request_id: str = "",
) -> dict[str, object]:
    """The members of a problem, in the order of RFC 9457 section 3.1, then ours.

    `types` is the address below which problem types are documented, `recoveries` what the site declared for a code.
    """
    described: dict[str, object] = {
        "type": f"{types}/{slug_of(problem.code)}" if types else "about:blank",
        "title": problem.title,
        "status": problem.status,
        "detail": problem.detail,
    }
    if instance:
        described["instance"] = f"{instance}#{request_id}" if request_id else instance
    described["code"] = problem.code
    described["recovery"] = problem.recovery or (recoveries or {}).get(problem.code) or problem.default_recovery
    if request_id:
        described["request_id"] = request_id
    if problem.errors:
        described["errors"] = [asdict(violation) for violation in problem.errors]
    described |= {name: value for name, value in problem.members.items() if name not in _RESERVED or name in _CARRIED}
    return described


_CARRIED: Final = frozenset({"type", "title", "errors", "recovery"})
"""Members that a route's own problem+json answer brings along in place of ours."""


def render_problem(
    problem: Problem,
    types: str = "",
    recoveries: Mapping[str, str] | None = None,
    instance: str = "",
    request_id: str = "",
    extra: RawHeaders = (),
) -> Reply:
    """The reply for a problem."""
    body = _dump(describe_problem(problem, types, recoveries, instance, request_id))
    return Reply(
        problem.status,
        (
            (b"content-type", MEDIA_TYPE),
            (b"content-length", b"%d" % len(body)),
            (b"cache-control", b"no-store"),
            NO_SNIFFING,
            *((name.lower().encode("latin-1"), value.encode("latin-1", "replace")) for name, value in problem.headers),
            *extra,
        ),
        body,
    )


def _dump(described: dict[str, object]) -> bytes:
    """Text from a request may hold what JSON cannot say, a lone surrogate: it is replaced, never a failure."""
    try:
        return orjson.dumps(described)
    except TypeError:
        return orjson.dumps(_printable(described))


def _printable(value: object) -> object:
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, dict):
        return {str(key): _printable(member) for key, member in value.items()}
    if isinstance(value, list):
        return [_printable(member) for member in value]
    return value if isinstance(value, (int, float, bool)) or value is None else str(value)


# --- One HTTP request to a door of ours: its id, and how its result is told ---

STATIC_HEADERS: Final[RawHeaders] = (
    (b"content-type", b"application/json"),
    (b"cache-control", b"no-store"),
    NO_SNIFFING,
)
_REQUEST_ID: Final = re.compile(rb"[A-Za-z0-9._-]{1,128}")
_PROCESS: Final = secrets.token_hex(8)
_numbers: Final = count(1)
"""Request ids are the process and a number: unlike between processes, and without a system call for each request."""


class Telling:
    """How the doors of one catalog tell results: where problem types are explained, and what the site says of them.

    `dialect` are recoveries by code for a door at which a caller has to say things otherwise than at the WoA door.
    """

    __slots__ = ("recoveries", "types")

    def __init__(self, catalog: Catalog, dialect: Mapping[str, str] | None = None) -> None:
        self.types = catalog.absolute(catalog.paths.problems)
        self.recoveries: Mapping[str, str] = {**(dialect or {}), **catalog.site.errors}


class Exchange:
    """One request and its answer. `call` is set as soon as the request is known to be one."""

    __slots__ = ("_cors", "_path", "_send", "_telling", "call", "fields", "request_id")

    def __init__(self, telling: Telling, scope: Scope, fields: Fields, cors: RawHeaders, send: Send) -> None:
        self._telling = telling
        self._path: str = scope["path"]
        self._cors = cors
        self._send = send
        self.fields = fields
        self.request_id = read_request_id(fields)
        self.call: Call | None = None

    async def deliver(self, result: Result) -> None:
        """Answer the request."""
        extra = (*self._cors, (b"x-request-id", self.request_id.encode()))
        added = self.call.headers if self.call is not None else ()
        if isinstance(result, Problem):
            told = self._telling
            if added:
                result.headers = _without_named(result.headers, added)
            path = quote(self._path)
            reply = render_problem(result, told.types, told.recoveries, path, self.request_id, (*added, *extra))
            await send_reply(reply, self._send)
            return
        carried = _without(result.headers, added) if added and result.headers else result.headers
        length = (b"content-length", b"%d" % len(result.body))
        headers = [*STATIC_HEADERS, length, *extra, *added, *carried]
        await self._send({"type": "http.response.start", "status": result.status, "headers": headers})
        await self._send({"type": "http.response.body", "body": result.body})


def read_request_id(fields: Fields) -> str:
    """The caller's own id, if it is fit to stand in a log and a header; else a new one."""
    given = fields.get(b"x-request-id")
    if given is not None and _REQUEST_ID.fullmatch(given):
        return given.decode("ascii")
    return f"{_PROCESS}{next(_numbers):016x}"


def _without(headers: RawHeaders, replaced: RawHeaders) -> RawHeaders:
    """A route's own headers, without those that a gate of ours has set."""
    names = {name for name, _ in replaced}
    return tuple(pair for pair in headers if pair[0] not in names)


def _without_named(headers: Sequence[tuple[str, str]], replaced: RawHeaders) -> tuple[tuple[str, str], ...]:
    names = {name.decode("ascii") for name, _ in replaced}
    return tuple(pair for pair in headers if pair[0].lower() not in names)


# --- What every HTTP door of one site holds its requests to, before they are calls ---


@dataclass(frozen=True, slots=True)
class Admission:
    """A size in bytes; other origins whose pages may call; the hosts of the site itself; proxies that are believed."""

    max_body_bytes: int
    allow_origins: tuple[str, ...]
    own_hosts: frozenset[str]
    trusted_proxies: TrustedProxies


def read_admission_of(site: Site) -> Admission:
    """What the site declares."""
    return Admission(
        site.limits.max_body_bytes,
        site.limits.allow_origins,
        frozenset(urlsplit(url).netloc.lower() for url in site.urls),
        read_trusted_proxies(site.guarding.trusted_proxies, site.guarding.forwarded),
    )
