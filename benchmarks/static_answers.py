"""Other ways to serve a document."""

from importlib import import_module
from pathlib import Path
from typing import Any, Final

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from awp_publish import Site
from awp_publish.http.exchange import AsgiApp, RawHeaders, Receive, Scope, Send
from benchmarks.applications import JSON_ANSWER, SMALL_BODY
from benchmarks.shop import order_books, price_books, published, read_book

DOCUMENT: Final = "/.well-known/woa.json"


def starlette_route(body: bytes, headers: RawHeaders) -> Starlette:
    """A Starlette application with one route that answers the given bytes, with as few headers as that takes."""
    named = {name.decode(): value.decode() for name, value in headers if name in _NEEDED}

    async def answer(request: Request) -> Response:
        return Response(body, headers=named)

    return Starlette(routes=[Route(DOCUMENT, answer)])


_NEEDED: Final = frozenset({b"content-type", b"content-encoding"})


def documents_inside() -> AsgiApp:
    """A Starlette application of the same kind as `starlette_route`, with awp_publish in `add_middleware`."""
    return published(starlette_route(SMALL_BODY, JSON_ANSWER), shop_site_without_routes(), "inside")


def shop_site_without_routes() -> Site:
    """The shop's actions as functions, so that the document is of the same size in an application without routes."""
    site = Site("Bookshop", "Find, read about and order public-domain books.", "https://books.example")
    site.agent("read_book")(read_book)
    site.agent("order_books", effect="write")(order_books)
    site.agent("price_books")(price_books)
    return site


class WhiteNoiseFile:
    """WhiteNoise's StaticFile behind the thinnest ASGI adapter: it is told the three headers it asks for."""

    _NAMES: Final = {
        b"accept-encoding": "HTTP_ACCEPT_ENCODING",
        b"if-none-match": "HTTP_IF_NONE_MATCH",
        b"range": "HTTP_RANGE",
    }

    def __init__(self, file: Path, packed: Path, headers: RawHeaders) -> None:
        named = [(name.decode(), value.decode()) for name, value in headers if name in _KEPT]
        static_file = import_module("whitenoise.responders").StaticFile
        self._file = static_file(str(file), named, {"gzip": str(packed)})

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        asked = {self._NAMES[name]: value.decode() for name, value in scope["headers"] if name in self._NAMES}
        found = self._file.get_response(scope["method"], asked)
        headers = [(name.lower().encode(), value.encode()) for name, value in found.headers]
        await send({"type": "http.response.start", "status": int(found.status), "headers": headers})
        await send({"type": "http.response.body", "body": _read(found.file)})


_KEPT: Final = frozenset({b"content-type", b"cache-control", b"etag"})


def _read(file: Any) -> bytes:
    if file is None:
        return b""
    with file:
        return bytes(file.read())
