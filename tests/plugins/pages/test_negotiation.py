"""Pages in the format that a request asks for, over HTTP: what is asked, what is kept, and what passes as it is."""

import asyncio
import gzip
import zlib
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import (
    FileResponse,
    HTMLResponse,
    JSONResponse,
    PlainTextResponse,
    RedirectResponse,
    Response,
    StreamingResponse,
)
from starlette.routing import Route

from awp_publish import AgentPublisher, DeclarationError, Limits, Pages, Site
from awp_publish.http.exchange import AsgiApp, Receive, Scope, Send
from awp_publish.plugins.pages.negotiation import negotiated_pages
from awp_publish.plugins.pages.rendering import MAX_PAGE_BYTES
from tests.client import TestClient

MARKDOWN = {"accept": "text/markdown"}
SOM = {"accept": "application/som+json"}
HTML = {"accept": "text/html"}
TYPES = {"text/markdown": "text/markdown; charset=utf-8", "application/som+json": "application/som+json"}
VARY = {"text/markdown": "Accept, Prefer", "application/som+json": "Accept"}
PAGE = '<!doctype html><html lang="en"><title>Shop</title><main><h1>Shop</h1><p>Two <b>books</b>.</p></main>'

Handler = Callable[[Request], Any]
Open = Callable[..., TestClient]


def make_site(**options: Any) -> Site:
    return Site("Shop", "Sells things.", url="https://shop.example", **options)


@pytest.fixture
def serve(open_client) -> Open:
    """A client for a site of one handler, at every path."""

    def serve_one(answer: Any, **options: Any) -> TestClient:
        async def handle(request: Request) -> Response:
            return answer(request) if callable(answer) else HTMLResponse(answer)

        app = Starlette(routes=[Route("/{path:path}", handle, methods=["GET", "POST"])])
        return open_client(AgentPublisher(app, site=make_site(**options), check=False, link_headers=False))

    return serve_one


# --- What is asked ---


@pytest.mark.parametrize("other", ["text/html;q=0.5", "*/*", "text/html, */*;q=0.8", ""])
def test_an_accept_header_of_several_lines_is_one(serve, other):
    for lines in (["text/markdown", other], [other, "text/markdown"]):
        answer = serve(PAGE).get("/", headers=[("accept", line) for line in lines])
        assert answer.text == "# Shop\n\nTwo **books**.\n"


def test_an_accept_header_of_very_many_ranges_means_html(serve):
    client = serve(PAGE)
    for count, expected in ((400, "text/markdown"), (600, "text/html")):
        answer = client.get("/", headers={"accept": "text/markdown, " * count + "*/*;q=0.1"})
        assert answer.headers["content-type"].startswith(expected), count


# --- What the application is asked, and what is kept of its answer ---


def test_a_page_that_changes_has_another_etag(serve):
    client = serve(lambda request: HTMLResponse(f"<p>{request.headers.get('cookie', 'nobody')}"))
    one, other = (client.get("/", headers={**MARKDOWN, "cookie": name}) for name in ("ada", "bob"))
    assert (one.text, other.text) == ("ada\n", "bob\n")
    assert one.headers["etag"] != other.headers["etag"]


# --- What caches are told ---


async def _stream() -> AsyncIterator[str]:
    yield PAGE[:20]
    yield PAGE[20:]


def _fail(request: Request) -> Response:
    raise HTTPException(403, "No.", {"content-type": "text/html"})


ANSWERS: dict[str, Callable[[Request], Response]] = {
    "a page": lambda request: HTMLResponse(PAGE),
    "a type in capitals": lambda request: Response(PAGE, media_type="Text/HTML"),
    "XHTML": lambda request: Response(PAGE, media_type="application/xhtml+xml"),
    "a stream": lambda request: StreamingResponse(_stream(), media_type="text/html"),
    "a file": lambda request: FileResponse(Path(__file__), media_type="text/html"),
    "an error": lambda request: HTMLResponse(PAGE, 404),
    "a failure": lambda request: HTMLResponse(PAGE, 500),
    "a refusal": _fail,
    "a redirect with a page": lambda request: HTMLResponse(PAGE, 302, {"location": "/there"}),
    "a part": lambda request: HTMLResponse(PAGE, 206, {"content-range": "bytes 0-3/4"}),
    "not modified": lambda request: Response(status_code=304),
    "data that is not modified": lambda request: Response(status_code=304, media_type="application/json"),
    "packed": lambda request: HTMLResponse(gzip.compress(PAGE.encode()), headers={"content-encoding": "gzip"}),
    "packed in an unknown way": lambda request: HTMLResponse(PAGE, headers={"content-encoding": "x"}),
    "too large": lambda request: HTMLResponse(PAGE + " " * MAX_PAGE_BYTES),
}


@pytest.mark.parametrize("answer", ANSWERS.values(), ids=ANSWERS)
def test_every_page_and_nothing_else_varies_by_accept(serve, answer):
    client = serve(answer)
    for accept in ("*/*", "text/html", "text/markdown", "application/som+json", "image/png"):
        for method in ("GET", "HEAD", "POST"):
            response = client.request(method, "/", headers={"accept": accept}, follow_redirects=False)
            kind = response.headers.get("content-type", "").lower()
            is_page = response.status_code == 304 or (response.status_code == 200 and "html" in kind)
            is_rendered = kind.startswith(("text/markdown", "application/som"))
            assert ("Accept" in response.headers.get("vary", "")) == (is_page or is_rendered), (accept, method)


# --- What passes as it is ---


async def _drip(parts: int, part: bytes = b"<p>x</p>" * 20_000) -> AsyncIterator[bytes]:
    for _ in range(parts):
        yield part


PASSING: Mapping[str, tuple[Handler, int]] = {
    "JSON": (lambda request: JSONResponse({"a": 1}), 200),
    "text": (lambda request: PlainTextResponse("a"), 200),
    "a redirect": (lambda request: RedirectResponse("/elsewhere"), 307),
    "nothing": (lambda request: Response(status_code=204), 204),
    "no type": (lambda request: Response(b"<p>a", headers={}), 200),
    "a part": (lambda request: HTMLResponse("<p>a", 206, {"content-range": "bytes 0-3/9"}), 206),
    "its own Markdown": (lambda request: PlainTextResponse("# Mine", media_type="text/markdown"), 200),
    "an unknown coding": (lambda request: HTMLResponse(b"\x8b\x01", headers={"content-encoding": "br"}), 200),
    "a broken coding": (lambda request: HTMLResponse(b"\x8b\x01", headers={"content-encoding": "gzip"}), 200),
    "a large page": (lambda request: HTMLResponse("x" * (MAX_PAGE_BYTES + 1)), 200),
    "a large stream": (lambda request: StreamingResponse(_drip(40), media_type="text/html"), 200),
}


@pytest.mark.parametrize(("answer", "status"), PASSING.values(), ids=PASSING)
def test_a_page_that_cannot_be_converted_passes_whole(serve, answer, status):
    client = serve(answer)
    with client.stream("GET", "/", headers=MARKDOWN, follow_redirects=False) as asked:
        given = b"".join(asked.iter_raw())
    with client.stream("GET", "/", headers=HTML, follow_redirects=False) as plain:
        assert b"".join(plain.iter_raw()) == given
    assert asked.status_code == status
    assert asked.headers == plain.headers


def test_a_coding_of_the_application_is_undone(serve):
    zipped = gzip.compress(PAGE.encode())
    packed = {"gzip": zipped, "x-gzip": zipped, "deflate": zlib.compress(PAGE.encode())}

    def answer(request: Request) -> Response:
        coding = request.url.path[1:]
        return HTMLResponse(packed[coding], headers={"content-encoding": coding})

    client = serve(answer)
    for coding in packed:
        response = client.get(f"/{coding}", headers=MARKDOWN)
        assert response.text == "# Shop\n\nTwo **books**.\n"
        assert "content-encoding" not in response.headers


def test_a_small_body_that_unpacks_to_a_huge_one_is_not_unpacked(serve):
    bomb = gzip.compress(b"<p>x" * MAX_PAGE_BYTES)
    client = serve(lambda request: HTMLResponse(bomb, headers={"content-encoding": "gzip"}))
    with client.stream("GET", "/", headers=MARKDOWN) as answer:
        assert b"".join(answer.iter_raw()) == bomb


def test_members_of_a_packed_body_are_one_page_unless_there_are_very_many(serve):
    client = serve(
        lambda request: HTMLResponse(
            gzip.compress(b"<p>x") * int(request.url.path[1:]), headers={"content-encoding": "gzip"}
        )
    )
    assert client.get("/2", headers=MARKDOWN).text == "x\n\nx\n"
    assert client.get("/100", headers=MARKDOWN).headers["content-type"].startswith("text/markdown")
    assert client.get("/101", headers=MARKDOWN).headers["content-type"].startswith("text/html")


def test_a_stream_is_made_over_when_it_is_whole(serve):
    client = serve(lambda request: StreamingResponse(_drip(3, b"<p>x</p>"), media_type="text/html"))
    answer = client.get("/", headers=MARKDOWN)
    assert answer.text == "x\n\nx\n\nx\n"
    assert answer.headers["content-length"] == "8"


def test_a_stream_without_end_passes_when_patience_is_over(serve):
    async def drip() -> AsyncIterator[bytes]:
        for number in range(3):
            yield f"<p>{number}".encode()

    client = serve(lambda request: StreamingResponse(drip(), media_type="text/html"), limits=Limits(timeout=1e-9))
    assert client.get("/", headers=MARKDOWN).text == "<p>0<p>1<p>2"


def test_the_charset_of_the_answer_is_read(serve):
    client = serve(lambda request: Response("<p>é".encode("latin-1"), media_type="text/html; charset=iso-8859-1"))
    assert client.get("/", headers=MARKDOWN).text == "é\n"


def test_a_file_is_read_without_the_servers_shortcuts(serve, tmp_path: Path):
    (tmp_path / "page.html").write_text(PAGE)
    client = serve(lambda request: FileResponse(tmp_path / "page.html"))
    assert client.get("/", headers={**MARKDOWN, "range": "bytes=0-3"}).text == "# Shop\n\nTwo **books**.\n"


def test_a_failing_handler_fails_as_it_does_for_anybody(serve):
    def answer(request: Request) -> Response:
        raise HTTPException(418) if request.url.path == "/known" else ValueError("lost")

    client = serve(answer)
    assert client.get("/known", headers=MARKDOWN).status_code == 418
    with pytest.raises(ValueError, match="lost"):
        client.get("/", headers=MARKDOWN)


async def test_an_answer_that_is_never_finished_stays_unfinished():
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/html")]})
        await send({"type": "http.response.body", "body": b"<p>a", "more_body": True})

    sent = await _talk(AgentPublisher(app, make_site()), MARKDOWN)
    assert [(message["type"], message.get("body"), message.get("more_body")) for message in sent[1:]] == [
        ("http.response.body", b"<p>a", True)
    ]


async def test_a_page_that_is_too_large_is_passed_on_before_it_is_complete():
    passed = asyncio.Event()

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/html")]})
        await send({"type": "http.response.body", "body": b"x" * (MAX_PAGE_BYTES + 1), "more_body": True})
        assert passed.is_set()
        await send({"type": "http.response.body", "body": b"y"})

    sent = await _talk(AgentPublisher(app, make_site()), MARKDOWN, passed.set)
    assert sent[-1]["body"] == b"y"


async def test_a_request_for_headers_alone_is_answered_without_a_body():
    app = AgentPublisher(Starlette(routes=[Route("/", lambda request: HTMLResponse(PAGE))]), make_site(), check=False)
    sent = await _talk(app, MARKDOWN, method="HEAD")
    assert [message.get("body") for message in sent] == [None, b""]
    assert dict(sent[0]["headers"])[b"content-length"] != b"0"
    assert (await _talk(app, {}))[-1]["body"] == PAGE.encode()  # who says nothing is given the page


async def _talk(
    app: AsgiApp, headers: Mapping[str, str], on_body: Callable[[], object] = list, method: str = "GET"
) -> list[Any]:
    sent: list[Any] = []

    async def receive() -> Any:
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        sent.append(message)
        if message["type"] == "http.response.body":
            on_body()

    raw = [(name.encode(), value.encode()) for name, value in headers.items()]
    scope = {"type": "http", "method": method, "path": "/", "raw_path": b"/", "query_string": b"", "headers": raw}
    await app({**scope, "root_path": "", "http_version": "1.1", "scheme": "https"}, receive, send)
    return sent


def test_large_pages_are_made_over_beside_the_event_loop_and_remembered(serve):
    page = "<main>" + "<p>words and <b>words</b></p>" * 3_000
    client = serve(page)
    one, other = (client.get("/", headers=MARKDOWN) for _ in range(2))
    assert one.text == other.text
    assert one.text.count("**words**") == 3_000


# --- Where we stand ---


def test_other_middleware_may_compress_what_was_made(open_client):
    async def page(request: Request) -> Response:
        return HTMLResponse("<p>word</p>" * 1_000)

    for publisher_is_outside in (True, False):
        app = Starlette(routes=[Route("/", page)])
        if publisher_is_outside:
            app.add_middleware(GZipMiddleware)
        app.add_middleware(AgentPublisher, site=make_site(), check=False, link_headers=False)
        if not publisher_is_outside:
            app.add_middleware(GZipMiddleware)
        answer = open_client(app).get("/", headers={**MARKDOWN, "accept-encoding": "gzip"})
        assert answer.text.startswith("word\n\nword\n")
        assert answer.headers.get("content-encoding") == (None if publisher_is_outside else "gzip")


def test_each_address_of_a_site_has_its_own_pages(open_client):
    site = Site("Shop", "Sells.", url=["https://shop.example", "https://laden.example"])
    app = Starlette(routes=[Route("/", lambda request: HTMLResponse('<a href="/x">x</a>'))])
    client = open_client(AgentPublisher(app, site=site, check=False, link_headers=False))
    for host in ("shop.example", "laden.example"):
        assert client.get("/", headers={**MARKDOWN, "host": host}).text == f"[x](https://{host}/x)\n"


def test_documents_and_doors_are_never_made_over(serve):
    client = serve(PAGE)
    assert client.get("/agent.json", headers=MARKDOWN).headers["content-type"] == "application/json"
    assert client.get("/agents/problems/not-json", headers=MARKDOWN).headers["content-type"].startswith("text/html")


def test_the_plugin_is_refused_where_its_package_is_missing(monkeypatch):
    monkeypatch.setattr("awp_publish.plugins.pages.PACKAGE", "nowhere_to_be_found")
    with pytest.raises(DeclarationError, match=r'^site: plugins: "pages" needs .*pip install'):
        make_site(plugins=["pages"])
    with pytest.raises(DeclarationError, match=r"pages.* needs .*pip install"):
        make_site(plugins=[Pages(in_query=True)])
    assert make_site().ask("pages") is None


# --- For adapters of other gateways ---


def test_an_adapter_asks_the_application_itself():
    publisher = AgentPublisher(Starlette(), make_site(), check=False)
    scope = {
        "method": "GET",
        "path": "/a",
        "root_path": "",
        "query_string": b"",
        "headers": [(b"accept", b"text/html")],
    }
    context: Any = publisher.context(scope, "pages")
    pages = negotiated_pages(context)
    assert pages is not None
    assert pages.read_request(scope) is None
    asked = pages.read_request({**scope, "headers": [(b"accept", b"text/markdown"), (b"cookie", b"a=b")]})
    assert asked is not None
    assert (b"cookie", b"a=b") in asked.scope["headers"]
    reply = asked.render(200, [(b"Content-Type", b"text/html; charset=utf-8")], b"<p>a")
    assert reply is not None
    assert (reply.status, reply.body) == (200, b"a\n")
    assert asked.render(200, [(b"content-type", b"application/json")], b"{}") is None
    assert (
        dict(asked.pass_headers([(b"Content-Type", b"text/html"), (b"Vary", b"Cookie")]))[b"vary"] == b"Cookie, Accept"
    )


@pytest.mark.parametrize(("method", "path"), [("GET", "/page.md"), ("HEAD", "/page")])
async def test_an_application_that_reads_bodies_is_asked_twice_with_the_same_one(method, path):
    read = []

    async def handle(request: Request) -> Response:
        read.append(await request.body())
        known = request.url.path == "/page" and request.method == "GET"
        return HTMLResponse(PAGE) if known else Response(status_code=405 if method == "HEAD" else 404)

    app = Starlette(routes=[Route("/{path:path}", handle, methods=["GET", "HEAD"])])
    received = iter([{"type": "http.request", "body": b"once", "more_body": False}])

    async def receive():
        return next(received)  # a server would wait here

    sent = []

    async def send(message):
        sent.append(message)

    scope = {"type": "http", "method": method, "path": path, "headers": [], "query_string": b"", "root_path": ""}
    publisher = AgentPublisher(app, site=make_site())
    await publisher({**scope, "scheme": "https", "http_version": "1.1", "server": ("shop.example", 443)}, receive, send)
    assert (sent[0]["status"], read) == (200, [b"once", b"once"])
