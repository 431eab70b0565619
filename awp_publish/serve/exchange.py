"""One HTTP request to a door of ours: its id, and how its result is told."""

import re
import secrets
from collections.abc import Mapping, Sequence
from itertools import count
from typing import Final
from urllib.parse import quote

from awp_publish.model import Catalog
from awp_publish.policy.call import Call, Result
from awp_publish.problems import Problem
from awp_publish.serve.problem_json import render_problem
from awp_publish.serve.reply import NO_SNIFFING, Fields, RawHeaders, Scope, Send, send_reply

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
