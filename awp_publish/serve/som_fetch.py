"""Fetching a page of this site in process, as a stranger would who comes by the front door.

Nothing of the caller is taken along by which a site could know them: no cookie, no credentials, none of the state that
middleware in front of us has made of these. So what comes back may be told to everybody. The origin is the declared
one.
"""

import asyncio
from dataclasses import dataclass
from typing import Final
from urllib.parse import urljoin, urlsplit

from awp_publish.model import Catalog
from awp_publish.serve.negotiate_formats import LARGEST
from awp_publish.serve.reply import AsgiApp, Message, RawHeaders, Receive, Scope, read_fields, route_path
from awp_publish.serve.som_address import Address

CARRIED: Final = frozenset(
    {
        b"accept-language",
        b"cf-connecting-ip",
        b"fly-client-ip",
        b"forwarded",
        b"traceparent",
        b"true-client-ip",
        b"user-agent",
        b"x-forwarded-for",
        b"x-real-ip",
        b"x-request-id",
    }
)
"""The language that is wanted, and where the request is from: a page that only some addresses see stays theirs."""

ACCEPT_HTML: Final = (b"accept", b"text/html, application/xhtml+xml;q=0.9, */*;q=0.1")


@dataclass(frozen=True, slots=True)
class Fetched:
    """What the application answered; `is_whole` unless it was more than a page may be."""

    status: int
    headers: RawHeaders
    body: bytes
    is_whole: bool = True


def scope_of(catalog: Catalog, outer: Scope, address: Address) -> Scope:
    """The request for a page: GET, at the declared origin."""
    own = urlsplit(catalog.url)
    path: str = outer["path"]
    mounted = path[: len(path) - len(route_path(outer))]
    headers = [pair for pair in outer["headers"] if pair[0] in CARRIED]
    return {
        "type": "http",
        "asgi": outer.get("asgi", {"version": "3.0"}),
        "http_version": "1.1",
        "method": "GET",
        "scheme": own.scheme,
        "root_path": outer.get("root_path", ""),
        "path": mounted + address.decoded_path,
        "raw_path": mounted.encode() + address.path.encode("ascii"),
        "query_string": address.query.encode("ascii"),
        "headers": [(b"host", own.netloc.encode("ascii")), *headers, ACCEPT_HTML],
        "client": outer.get("client"),
        "server": outer.get("server"),
        "state": {},
        "extensions": {},
    }


async def fetch_page(app: AsgiApp, scope: Scope, receive: Receive) -> Fetched:
    """Ask the application. Raises whatever it raises."""
    collecting = _Collecting(receive)
    await app(scope, collecting.receive, collecting.send)
    return collecting.fetched()


class _Collecting:
    """The two ends of the request. An answer that grows too large is told that its reader has gone."""

    def __init__(self, receive: Receive) -> None:
        self._outer = receive
        self._is_asked = False
        self._status = 500
        self._headers: RawHeaders = ()
        self._body = bytearray()
        self._is_full = asyncio.Event()

    async def receive(self) -> Message:
        if not self._is_asked:
            self._is_asked = True
            return {"type": "http.request", "body": b"", "more_body": False}
        await self._wait()
        return {"type": "http.disconnect"}

    async def _wait(self) -> None:
        """Until the page is too large, or the caller has gone."""
        async with asyncio.TaskGroup() as group:
            gone = group.create_task(self._gone())
            full = group.create_task(self._is_full.wait())
            await asyncio.wait({gone, full}, return_when=asyncio.FIRST_COMPLETED)
            gone.cancel()
            full.cancel()

    async def _gone(self) -> None:
        while (await self._outer())["type"] != "http.disconnect":
            pass

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._status, self._headers = message["status"], tuple(message.get("headers", ()))
        elif message["type"] == "http.response.body":
            if len(self._body) <= LARGEST:
                self._body += message.get("body", b"")
            else:
                self._is_full.set()
                await asyncio.sleep(0)  # an application that never waits is stopped by the timeout

    def fetched(self) -> Fetched:
        return Fetched(self._status, self._headers, bytes(self._body), len(self._body) <= LARGEST)


def redirect_of(fetched: Fetched, url: str) -> str | None:
    """Where a redirect leads, None for any other answer."""
    location = read_fields(fetched.headers).get(b"location")
    if fetched.status not in (301, 302, 303, 307, 308) or location is None:
        return None
    return urljoin(url, location.decode("latin-1"))
