"""The heads of a site's pages: what is written into them, and which pages are left as they are."""

import pytest
from hypothesis import given, settings, strategies as st
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response, StreamingResponse
from starlette.routing import Route

from awp_publish import AgentPublisher, Site
from awp_publish.plugins.templating import head_links
from tests.client import TestClient
from tests.examples import examples

URL = "https://shop.example"
PAGE = "<!doctype html><html><head><title>Lamps &amp; oil</title></head><body><h1>Lamps</h1></body></html>"


def client_of(answer, **options) -> TestClient:
    site = Site("Lamp shop", "Sells lamps.", url=URL, **options)
    routes = [Route(path, answer) for path in ("/lamps", "/lamps/{name}", "/account")]
    site.page("/lamps", title="Lamps")
    site.page("/lamps/{name}", title="A lamp")

    @site.agent("search_lamps")
    def search_lamps(q: str) -> list[str]:
        """Search lamps."""
        return [q]

    return TestClient(AgentPublisher(Starlette(routes=routes), site=site, check=False), base_url=URL)


def test_a_listed_page_gets_a_head_that_agents_and_search_engines_read():
    answer = client_of(lambda request: HTMLResponse(PAGE)).get("/lamps")
    head, _, body = answer.text.partition("</head>")
    for part in (
        "<!-- For agents: /llms.txt",
        f'<link rel="canonical" href="{URL}/lamps">',
        '<meta property="og:title" content="Lamps &amp; oil">',
        '<meta name="author" content="Lamp shop">',
        '<script type="application/ld+json">{"@context":"https://schema.org"',
        '<script type="module" src="/agents/webmcp.tools.js"></script>',
    ):
        assert head.count(part) == 1
    assert body == "<body><h1>Lamps</h1></body></html>"
    assert int(answer.headers["content-length"]) == len(answer.content)


def test_a_page_of_many_addresses_is_canonical_at_its_own():
    client = client_of(lambda request: HTMLResponse(PAGE))
    assert f'<link rel="canonical" href="{URL}/lamps/desk%20lamp">' in client.get("/lamps/desk%20lamp").text


@pytest.mark.parametrize("path", ["/account", "/lamps?page=2"])
def test_a_page_that_is_not_listed_or_has_a_query_is_left_as_it_is(path):
    assert client_of(lambda request: HTMLResponse(PAGE)).get(path).text == PAGE


def test_head_elements_of_the_page_itself_are_kept():
    own = (
        "<link rel='canonical' href='/other'><meta property=og:title content=Mine>"
        '<script type="application/ld+json">{}</script>'
    )
    text = client_of(lambda request: HTMLResponse(PAGE.replace("</head>", f"{own}</HEAD>"))).get("/lamps").text
    assert (text.count("canonical"), text.count("og:title"), text.count("ld+json")) == (1, 1, 1)
    assert "og:description" in text


def test_a_template_that_calls_head_links_is_left_as_it_is():
    site = Site("Lamp shop", "Sells lamps.", url=URL)
    site.page("/lamps", title="Lamps")

    def answer(request: Request) -> Response:
        return HTMLResponse(f"<head>{head_links(site.catalog, path='/lamps')}</head>")

    app = AgentPublisher(Starlette(routes=[Route("/lamps", answer)]), site=site, check=False)
    text = TestClient(app, base_url=URL).get("/lamps").text
    assert text == f"<head>{head_links(site.catalog, path='/lamps')}</head>"


@pytest.mark.parametrize(
    ("page", "headers"),
    [
        (PAGE, {"content-security-policy": "script-src 'nonce-a'"}),
        (PAGE.replace("<title>", '<meta http-equiv="Content-Security-Policy" content="a"><title>'), {}),
    ],
)
def test_no_script_is_added_where_a_policy_may_forbid_it(page, headers):
    text = client_of(lambda request: HTMLResponse(page, headers=headers)).get("/lamps").text
    assert "canonical" in text
    assert "webmcp.tools" not in text


@pytest.mark.parametrize(
    "headers",
    [
        {"etag": '"1"'},
        {"accept-ranges": "bytes"},
        {"content-encoding": "br"},
        {"content-type": "text/html; charset=iso-8859-1"},
    ],
)
def test_an_answer_that_depends_on_its_bytes_is_left_as_it_is(headers):
    def answer(request: Request) -> Response:
        return Response(PAGE, headers={"content-type": "text/html; charset=utf-8"} | headers)

    client = client_of(answer)
    with client.stream("GET", "/lamps") as streamed:
        assert b"".join(streamed.iter_raw()) == PAGE.encode()


def test_an_error_page_is_left_as_it_is():
    assert client_of(lambda request: HTMLResponse(PAGE, status_code=404)).get("/lamps").text == PAGE


def test_a_page_in_parts_is_passed_on_as_it_comes():
    def answer(request: Request) -> Response:
        return StreamingResponse(iter(["<head></head><p>", "1", "2"]), media_type="text/html")

    text = client_of(answer).get("/lamps").text
    assert text.startswith("<head><!-- For agents")
    assert text.endswith("</head><p>12")


def test_head_requests_announce_the_length_of_get():
    client = client_of(lambda request: HTMLResponse(PAGE))
    assert client.head("/lamps").headers["content-length"] == client.get("/lamps").headers["content-length"]


def test_a_site_can_leave_heads_alone():
    client = client_of(lambda request: HTMLResponse(PAGE), plugins=["no:head"])
    assert client.get("/lamps").text == PAGE


@settings(max_examples=examples(60), deadline=None)
@given(
    st.lists(st.sampled_from(["<head>", "</head>", "<script>", "</script>", "<!--", "-->", "<title>", "a", "ß", "é&"]))
)
def test_nothing_of_a_page_is_lost(parts):
    page = "".join(parts)
    text = client_of(lambda request: HTMLResponse(page)).get("/lamps").text
    before, _, rest = text.partition("<!-- For agents")
    assert page.startswith(before)
    assert page == before + rest[len(rest) - (len(page) - len(before)) :] if rest else text == page
