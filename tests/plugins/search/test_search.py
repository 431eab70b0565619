"""Search over a site's own pages: what is found and read, what never is, and how the index stays true."""

import json
import sqlite3
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from typing import Any

import pytest
from hypothesis import given, strategies as st
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route

from awp_publish import AgentPublisher, DeclarationError, Discovery, Robots, Search, Site
from awp_publish.plugins.search.index import SqlitePageIndex
from awp_publish.plugins.search.page_index import IndexedPage, PageIndex
from awp_publish.plugins.search.postgres import PostgresPageIndex
from awp_publish.plugins.search.robots import RobotsRules
from awp_publish.plugins.search.search import MAX_FAILURES
from tests.client import TestClient

URL = "https://shop.example"
MCP = {"accept": "application/json, text/event-stream", "mcp-protocol-version": "2025-06-18"}


def html(title: str, text: str, head: str = "") -> str:
    return (
        f"<html><head><title>{title}</title>{head}</head><body><main><h1>{title}</h1><p>{text}</p></main></body></html>"
    )


LAMPS = html("Lamps", "A lamp of brass, with its wick.", '<meta name="description" content="All of our lamps.">')
OIL = html("Oil", "Oil for each lamp, in bottles.")
SOAP = html("Soap", "Soap from the harbour.")


class Shop:
    """Pages by path, which may change, and how often each was asked for and in which way."""

    def __init__(self, pages: Mapping[str, str | Response | Callable[[Request], Response]]) -> None:
        self.pages = dict(pages)
        self.asked: list[Request] = []

    async def answer(self, request: Request) -> Response:
        self.asked.append(request)
        page = self.pages.get(request.url.path)
        if page is None:
            return PlainTextResponse("There is no such page.", 404)
        if isinstance(page, str):
            return HTMLResponse(page)
        return page if isinstance(page, Response) else page(request)


def make_site(
    shop: Shop,
    search: Any = None,
    declared: tuple[str, ...] | None = None,
    plugins: Sequence[object] = (),
    **options: Any,
) -> Site:
    site = Site("Shop", "Sells lamps.", URL, plugins=["mcp", search or Search(), *plugins], **options)
    for path in shop.pages if declared is None else declared:
        site.page(path)
    return site


@contextmanager
def serve(shop: Shop, site: Site, extra: tuple[Route, ...] = ()) -> Iterator[TestClient]:
    routes = [*extra, *(Route(path, shop.answer) for path in shop.pages), Route("/{path:path}", shop.answer)]
    app = Starlette(routes=routes)
    app.add_middleware(AgentPublisher, site=site, check=False)
    with TestClient(app, base_url=URL) as client:
        yield client


def search(client: TestClient, query: str) -> list[dict[str, str]]:
    answer = client.post("/agents/search/invoke", json={"input": {"query": query}})
    assert answer.status_code == 200, answer.text
    results: list[dict[str, str]] = answer.json()["results"]
    return results


def ids(client: TestClient, query: str) -> list[str]:
    return [item["id"] for item in search(client, query)]


def fetch(client: TestClient, page_id: str) -> Any:
    return client.post("/agents/fetch/invoke", json={"input": {"id": page_id}})


def refresh(client: TestClient, site: Site) -> None:
    assert client.portal is not None
    client.portal.call(site.ask("search").refresh)


def test_the_template_of_many_pages_is_no_page():
    shop = Shop({"/oil": OIL, "/books/{slug}": SOAP})
    with serve(shop, make_site(shop)) as client:
        assert ids(client, "lamp") == ["/oil"]
    assert "/oil" in {request.url.path for request in shop.asked}
    assert not any("{" in request.url.path for request in shop.asked)


def test_a_site_below_a_path_finds_the_pages_that_it_declares_and_those_of_its_sitemaps():
    listed = f"<urlset><url><loc>{URL}/shop/oil</loc></url><url><loc>{URL}/soap</loc></url></urlset>"
    shop = Shop({"/lamps": LAMPS, "/oil": OIL, "/soap": SOAP, "/more.xml": Response(listed)})
    site = Site("Shop", "Sells lamps.", f"{URL}/shop", plugins=["mcp", Search(sitemaps=["/more.xml"])])
    site.page("/lamps")
    app = Starlette(routes=[Route(path, shop.answer) for path in shop.pages])
    app.add_middleware(AgentPublisher, site=site, check=False)
    with TestClient(app, base_url=f"{URL}/shop", root_path="/shop") as client:
        assert search(client, "lamp") == [
            {"id": "/lamps", "title": "Lamps", "url": f"{URL}/shop/lamps"},
            {"id": "/oil", "title": "Oil", "url": f"{URL}/shop/oil"},
        ]
        assert fetch(client, "/oil").json()["url"] == f"{URL}/shop/oil"
        assert ids(client, "harbour") == []


def test_search_and_fetch_have_the_shape_that_research_demands():
    dated = HTMLResponse(LAMPS, headers={"last-modified": "Sat, 01 Aug 2026 10:00:00 GMT"})
    shop = Shop({"/lamps": dated, "/oil": OIL, "/soap": SOAP})
    with serve(shop, make_site(shop)) as client:
        found = {"results": [{"id": "/lamps", "title": "Lamps", "url": f"{URL}/lamps"}]}
        page = {
            "id": "/lamps",
            "title": "Lamps",
            "text": "# Lamps\n\nA lamp of brass, with its wick.",
            "url": f"{URL}/lamps",
            "metadata": {
                "description": "All of our lamps.",
                "last_modified": "Sat, 01 Aug 2026 10:00:00 GMT",
            },
        }
        for name, arguments, expected in (("search", {"query": "brass"}, found), ("fetch", {"id": "/lamps"}, page)):
            call = {"name": name, "arguments": arguments}
            message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
            result = client.post("/mcp", json=message, headers=MCP).json()["result"]
            assert [item["type"] for item in result["content"]] == ["text"]
            assert json.loads(result["content"][0]["text"]) == result["structuredContent"] == expected
        listed = client.post("/mcp", json={"jsonrpc": "2.0", "id": 1, "method": "tools/list"}, headers=MCP).json()
        tools = {tool["name"]: tool for tool in listed["result"]["tools"]}
        assert list(tools["search"]["inputSchema"]["properties"]) == ["query"]
        assert list(tools["fetch"]["inputSchema"]["properties"]) == ["id"]
        assert all(tools[name]["annotations"]["readOnlyHint"] for name in ("search", "fetch"))


def test_the_best_page_comes_first_and_a_title_counts_more_than_a_text():
    shop = Shop({"/a": html("Soap", "It smells of oil."), "/b": OIL, "/c": LAMPS})
    with serve(shop, make_site(shop)) as client:
        assert ids(client, "oil") == ["/b", "/a"]
        assert ids(client, "lamps and oils") == ["/b", "/c", "/a"], "words are reduced to their stems"
        assert ids(client, "umbrellas") == []
        assert ids(client, "  ") == []


def test_pages_are_asked_for_as_html_and_read_in_the_charset_that_they_name():
    tea = Response("<title>Чай</title><p>Noir".encode("koi8-r"), headers={"content-type": "text/html; charset=koi8-r"})
    shop = Shop({"/tea": tea})
    with serve(shop, make_site(shop)) as client:
        assert [item["title"] for item in search(client, "noir")] == ["Чай"]
        assert {request.headers["accept"].split(",")[0] for request in shop.asked} == {"text/html"}
        assert {request.headers["user-agent"] for request in shop.asked} == {"awp-publish-search"}


def test_a_page_is_fetched_by_its_address_too_and_an_unknown_one_is_refused_with_words():
    shop = Shop({"/lamps": LAMPS})
    with serve(shop, make_site(shop)) as client:
        assert fetch(client, f"{URL}/lamps").json()["id"] == "/lamps"
        for wrong in (
            "/oil",
            "",
            "https://other.example/lamps",
            "//lamps",
            "/lamps/../../x",
            "\ud800".encode("utf-8", "replace").decode(),
        ):
            refused = fetch(client, wrong)
            assert (refused.status_code, refused.json()["code"]) == (404, "PAGE_NOT_FOUND")
            assert refused.json()["recovery"] == "Call search, and use the id of a result."


def test_nothing_is_indexed_that_robots_or_visitors_may_not_read():
    robots = "User-agent: GPTBot\nDisallow: /\n\nUser-agent: *\nDisallow: /kept*out$\nDisallow: /private\n"
    robots += "Allow: /private/lamp\n"
    shop = Shop(
        {
            "/robots.txt": PlainTextResponse(robots),
            "/lamps": LAMPS,
            "/private/lamp": LAMPS,
            "/private/lamb": LAMPS,
            "/kept/far/out": LAMPS,
            "/declared-out": LAMPS,
            "/noindex": html("Lamp", "A lamp", '<meta name="ROBOTS" content="nofollow, NoIndex">'),
            "/noindex-too": html("Lamp", "A lamp", '<meta name=" robots " content="none">'),
            "/keyworded": html("Lamp", "A lamp", '<meta name=keywords content="noindex"><meta content="noindex">'),
            "/header": HTMLResponse(LAMPS, headers={"x-robots-tag": "noindex"}),
            "/account": RedirectResponse("/sign-in"),
            "/members": HTMLResponse(LAMPS, 401),
            "/closed": HTMLResponse(LAMPS, 403),
            "/broken": HTMLResponse(LAMPS, 500),
            "/data": JSONResponse({"lamp": "lamp"}),
            "/ours": lambda request: HTMLResponse(LAMPS, 200 if "127.0.0.1" in str(request.client) else 403),
            "/welcome": lambda request: HTMLResponse(LAMPS if request.client and not request.cookies else SOAP),
            "/lamps/{kind}": LAMPS,
        }
    )
    site = make_site(
        shop, plugins=[Discovery(robots=Robots(disallow=["/declared-out"]))], authenticate=lambda credentials: None
    )

    async def list_orders(request: Request) -> Response:
        return HTMLResponse(LAMPS)

    site.action("list_orders", inputs={"type": "object"}, outputs=str, auth_required=True, description="List.")(
        list_orders
    )
    site.page("/orders")
    with serve(shop, site, (Route("/orders", list_orders),)) as client:
        client.cookies.set("session", "of a visitor")
        assert sorted(ids(client, "lamp")) == ["/keyworded", "/lamps", "/private/lamp", "/welcome"]
    assert not [request for request in shop.asked if "{" in request.scope["path"]], "a template is no address"


def test_after_some_pages_in_a_row_that_fail_the_rest_are_left_for_the_next_time():
    shop = Shop({f"/{number}": HTMLResponse("", 500 if number != 3 else 200) for number in range(30)})
    with serve(shop, make_site(shop)) as client:
        assert ids(client, "lamp") == []
        assert len([request for request in shop.asked if "." not in request.url.path]) == 4 + MAX_FAILURES


def test_a_robots_txt_that_fails_keeps_all_out_until_it_answers():
    shop = Shop({"/lamps": LAMPS, "/robots.txt": PlainTextResponse("", 500)})
    site = make_site(shop)
    with serve(shop, site) as client:
        assert ids(client, "lamp") == []
        shop.pages["/robots.txt"] = PlainTextResponse("")
        refresh(client, site)
        assert ids(client, "lamp") == ["/lamps"]


def test_pages_come_from_sitemaps_and_never_from_other_sites():
    def sitemap(*addresses: str) -> Response:
        listed = "".join(f"<url><loc>\n {address} </loc></url>" for address in addresses)
        return Response(f'<?xml version="1.0"?><urlset>{listed}</urlset>', media_type="application/xml")

    listed = "".join(f"<sitemap><loc>{URL}/{name}.xml</loc></sitemap>" for name in ("more", "index"))
    index = f"<sitemapindex>{listed}</sitemapindex>"
    shop = Shop(
        {
            "/robots.txt": PlainTextResponse(f"Sitemap: {URL}/index.xml\nSitemap: https://other.example/sitemap.xml\n"),
            "/sitemap.xml": sitemap(
                f"{URL}/lamps", "https://other.example/lamps", f"{URL}/lamps?colour=red&amp;size=2"
            ),
            "/index.xml": Response(index, media_type="application/xml"),
            "/more.xml": sitemap(f"{URL}/oil#prices", "mailto:lamp@shop.example", f"{URL}/agents"),
            "/guide/sitemap.xml": sitemap("/guide/wick"),
            "/lamps": LAMPS,
            "/oil": OIL,
            "/guide/wick": html("The wick of a lamp", "Trim it."),
        }
    )
    with serve(shop, make_site(shop, Search(sitemaps=["/guide/sitemap.xml"]), declared=())) as client:
        assert sorted(ids(client, "lamp")) == ["/guide/wick", "/lamps", "/lamps?colour=red&size=2", "/oil"]
    assert all(request.headers["host"] == "shop.example" for request in shop.asked)


def test_changed_pages_are_read_again_and_removed_ones_are_forgotten():
    def tagged(request: Request) -> Response:
        if request.headers.get("if-none-match") == '"1"':
            return Response(status_code=304)
        return HTMLResponse(LAMPS, headers={"etag": '"1"'})

    shop = Shop({"/lamps": tagged, "/oil": OIL, "/soap": SOAP})
    site = make_site(shop)
    with serve(shop, site) as client:
        assert sorted(ids(client, "lamp soap")) == ["/lamps", "/oil", "/soap"]
        shop.pages |= {"/oil": html("Oil", "Oil for stoves."), "/soap": HTMLResponse(SOAP, 410)}
        refresh(client, site)
        assert ids(client, "lamp soap") == ["/lamps"]
        assert ids(client, "stoves") == ["/oil"]
        assert [request.headers.get("if-none-match") for request in shop.asked if request.url.path == "/lamps"] == [
            None,
            '"1"',
        ]
        shop.pages["/oil"] = HTMLResponse("", 503)
        refresh(client, site)
        assert ids(client, "stoves") == ["/oil"], "a page that fails for now keeps its place"


def test_an_index_has_as_many_pages_and_bytes_as_it_may(caplog):
    shop = Shop({f"/lamp-{number}": html(f"Lamp {number}", "A lamp.") for number in range(5)})
    with serve(shop, make_site(shop, Search(max_pages=3))) as client:
        assert ids(client, "lamp") == ["/lamp-0", "/lamp-1", "/lamp-2"]
    assert "more than 3 pages" in caplog.text
    shop = Shop({"/a": html("Lamp", "A lamp." * 100), "/b": html("Lamp", "A lamp.")})
    with serve(shop, make_site(shop, Search(max_bytes=100))) as client:
        assert ids(client, "lamp") == ["/b"]
    assert "Search(max_bytes=100): 1 of 2 pages." in caplog.text


def test_a_site_without_pages_says_what_to_do(caplog):
    shop = Shop({})
    with serve(shop, make_site(shop)) as client:
        assert ids(client, "lamp") == []
    assert "found no page" in caplog.text


def test_an_index_beside_an_sqlite_store_is_there_again_after_a_restart(tmp_path):
    store = f"sqlite:///{tmp_path}/agents.db"
    shop = Shop({"/lamps": LAMPS})
    with serve(shop, make_site(shop, store=store)) as client:
        assert ids(client, "lamp") == ["/lamps"]
    assert (tmp_path / "agents-search.db").exists()
    with closing(SqlitePageIndex(f"{tmp_path}/agents-search.db", "shop.example")) as other:
        assert other.claim(time.time()), "another process reads the pages"
        with serve(shop, make_site(shop, store=store)) as client:
            asked = len(shop.asked)
            assert ids(client, "lamp") == ["/lamps"]
            assert [request.url.path for request in shop.asked[asked:]] == []


def test_a_file_that_is_no_database_is_left_alone(tmp_path, caplog):
    (tmp_path / "agents-search.db").write_text("notes of somebody" * 100)
    shop = Shop({"/lamps": LAMPS})
    with serve(shop, make_site(shop, store=f"sqlite:///{tmp_path}/agents.db")) as client:
        assert ids(client, "lamp") == ["/lamps"]
    assert "cannot be used" in caplog.text
    assert (tmp_path / "agents-search.db").read_text().startswith("notes")


def test_without_a_lifespan_the_calls_read_the_pages():
    shop = Shop({"/lamps": LAMPS, "/oil": OIL})
    site = make_site(Shop({}), declared=())
    for path in ("/lamps", "/oil"):
        site.page(path)
    routes = [Route("/lamps", shop.answer), Route("/oil", shop.answer)]
    client = TestClient(AgentPublisher(Starlette(routes=routes), site=site), base_url=URL)
    assert ids(client, "brass") == ["/lamps"]
    assert fetch(client, "/oil").json()["title"] == "Oil"
    asked = len(shop.asked)
    assert ids(client, "bottles") == ["/oil"]
    assert len(shop.asked) == asked, "not before it is time again"


@pytest.mark.parametrize("is_async", [True, False])
def test_a_site_may_search_by_itself(is_async):
    asked = list[str]()

    def find(query: str) -> list[dict[str, str]]:
        asked.append(query)
        return [{"title": "All lamps", "url": "/lamps"}, {"title": "Oil", "url": f"{URL}/oil"}]

    async def find_later(query: str) -> list[dict[str, str]]:
        return find(query)

    shop = Shop({"/robots.txt": PlainTextResponse("User-agent: *\nDisallow: /secret"), "/lamps": LAMPS, "/secret": OIL})
    with serve(shop, make_site(shop, Search(by=find_later if is_async else find))) as client:
        assert search(client, "brass") == [
            {"id": "/lamps", "title": "All lamps", "url": f"{URL}/lamps"},
            {"id": "/oil", "title": "Oil", "url": f"{URL}/oil"},
        ]
        assert asked == ["brass"]
        assert fetch(client, "/lamps").json()["text"].startswith("# Lamps")
        assert [fetch(client, path).status_code for path in ("/secret", "/nowhere")] == [404, 404]


@pytest.mark.parametrize(
    "answer", [None, "lamps", [{"title": "Lamps"}], [{"title": "x", "url": "https://other.example"}], 7]
)
def test_a_search_of_the_sites_own_that_answers_something_else_is_a_problem(answer):
    shop = Shop({"/lamps": LAMPS})
    with serve(shop, make_site(shop, Search(by=lambda query: answer))) as client:
        refused = client.post("/agents/search/invoke", json={"input": {"query": "lamp"}})
        assert (refused.status_code, refused.json()["code"]) == (500, "INVALID_OUTPUT")


def test_a_site_with_an_action_of_that_name_is_told_what_to_do():
    site = make_site(Shop({}))

    @site.agent("search")
    async def find(q: str) -> str:
        """Find a lamp."""
        return q

    with pytest.raises(DeclarationError, match=r'the action "search", and so does the site.*Search\(by=function\)'):
        site.freeze(())


def test_a_site_is_told_where_python_has_no_full_text_search(monkeypatch):
    monkeypatch.setattr("awp_publish.plugins.search.index.has_full_text_search", lambda: False)
    with pytest.raises(DeclarationError, match=r"Search\(by=function\)"):
        make_site(Shop({})).freeze(())
    make_site(Shop({}), Search(by=lambda query: [])).freeze(())


@pytest.mark.parametrize("wrong", [{"every": "soon"}, {"max_pages": 0}, {"sitemaps": ["sitemap.xml"]}, {"by": "find"}])
def test_a_wrong_option_is_refused_by_its_name(wrong):
    with pytest.raises(DeclarationError, match=rf"plugins\.search\.{next(iter(wrong))}"):
        Site("Shop", "Sells lamps.", URL, plugins=[Search(**wrong)])


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ('"', []),
        ("NOT brass", ["/lamps"]),
        ("title:brass", ["/lamps"]),
        ("bra*", []),
        ("brass AND", ["/lamps"]),
        ("NEAR(brass wick, 1) OR", ["/lamps"]),
        ("^brass", ["/lamps"]),
        ('bra"ss', []),
        ("BRÄSS brass", ["/lamps"]),
        ("'; DROP TABLE x; --", []),
        ("brass " * 10_000, ["/lamps"]),
    ],
)
def test_a_query_is_words_and_never_a_language(query, found):
    shop = Shop({"/lamps": LAMPS})
    with serve(shop, make_site(shop)) as client:
        assert ids(client, query[:2_000]) == found


def test_a_query_that_is_too_long_is_refused_as_any_input_is():
    shop = Shop({"/lamps": LAMPS})
    with serve(shop, make_site(shop)) as client:
        refused = client.post("/agents/search/invoke", json={"input": {"query": "x" * 2_001}})
        assert (refused.status_code, refused.json()["code"]) == (422, "INVALID_INPUT")


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def index(request: pytest.FixtureRequest) -> Iterator[PageIndex]:
    made = open_index(request, request.param, "shop.example")
    made.put(IndexedPage(path="/lamps", title="Lamps", text="A lamp of brass."), 1.0)
    made.put(IndexedPage(path="/tokyo", title="東京", text="ランプは東京の港にあります。"), 1.0)
    yield made
    made.close()


def open_index(request: pytest.FixtureRequest, kind: str, site: str, file: str | None = None) -> PageIndex:
    if kind == "sqlite":
        return SqlitePageIndex(file, site)
    return PostgresPageIndex(request.getfixturevalue("postgres_url"), site)


@given(
    query=st.text()
    | st.text("\"'*:^(){}[]+-AND OR NOT NEAR lamp").map(str)
    | st.binary().map(lambda raw: raw.decode("latin-1"))
)
def test_no_query_is_an_error(index, query):
    assert len(index.search(query, 10)) <= 2


@given(texts=st.lists(st.text(max_size=60), max_size=6))
def test_an_indexed_page_is_found_and_leaves_no_word_behind(texts):
    with closing(SqlitePageIndex(None, "x")) as index:
        for round_ in range(2):
            for number, text in enumerate(texts):
                index.put(IndexedPage(path=f"/{number}", title=text[:5], text=f"{text} lamp{number}x"), float(round_))
        for number in range(len(texts)):
            assert [path for path, _ in index.search(f"lamp{number}x", 10)] == [f"/{number}"]
            index.remove(f"/{number}")
            assert index.search(f"lamp{number}x", 10) == []
        index._connection.execute(f"INSERT INTO {index._words} ({index._words}) VALUES ('integrity-check')")


def test_scripts_without_spaces_are_searched_by_their_characters(index):
    assert [path for path, _ in index.search("東京", 10)] == ["/tokyo"]
    assert [path for path, _ in index.search("港に", 10)] == ["/tokyo"]
    assert index.search("京東", 10) == []


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_two_sites_share_a_database_without_seeing_each_other(request, tmp_path, kind):
    def open_for(site: str) -> Any:
        return closing(open_index(request, kind, site, f"{tmp_path}/agents-search.db"))

    with open_for("a.example") as first, open_for("b.example") as second:
        first.put(IndexedPage(path="/lamps", title="Lamps", text="A lamp."), 1.0)
        assert second.search("lamp", 10) == []
        assert second.claim(10.0)
        assert first.claim(10.0)
        with open_for("a.example") as third:
            assert [path for path, _ in third.search("lamp", 10)] == ["/lamps"]
            assert not third.claim(10.0)
            first.release()
            assert third.claim(10.0)
            assert not first.claim(20.0)
            assert first.claim(1_000.0), "one that was killed does not hold it forever"


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_an_index_finds_stems_titles_first_and_rare_words_before_common_ones(request, kind):
    with closing(open_index(request, kind, "ranked.example")) as index:
        index.put(IndexedPage(path="/oil", title="Oil", text="Oil for each lamp, in bottles. Café."), 1.0)
        index.put(IndexedPage(path="/lamps", title="Lamps", text="A light of brass."), 1.0)
        index.put(IndexedPage(path="/rope", title="Rope", text="Rope with tar and tar."), 1.0)
        index.put(IndexedPage(path="/tar", title="Tar", text="Black, for hulls and decks."), 1.0)
        for number in range(8):
            index.put(IndexedPage(path=f"/soap/{number}", title="Soap", text="Soap of the harbour, not a light."), 1.0)
        assert [path for path, _ in index.search("lamp", 10)] == ["/lamps", "/oil"]
        assert [path for path, _ in index.search("tar", 10)] == ["/tar", "/rope"]
        assert [path for path, _ in index.search("bottled cafe", 10)] == ["/oil"]
        assert index.search("light oil", 10)[0][0] == "/oil"
        assert len(index.search("soap", 3)) == 3


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_an_index_remembers_what_it_was_told(request, kind):
    page = IndexedPage(path="/lamps", title="Lamps", text="A\0lamp.", modified="today", etag='"1"', digest=b"\0x")
    with closing(open_index(request, kind, "facts.example")) as index:
        assert (index.begun(), index.ended(), index.page("/lamps")) == (0.0, 0.0, None)
        assert index.claim(1.0)
        index.begin(2.0)
        index.put(page, 3.0)
        index.confirm("/lamps", 4.0)
        index.end(5.0)
        assert (index.begun(), index.ended()) == (2.0, 5.0)
        found, known = index.page("/lamps"), index.known()["/lamps"]
        assert found is not None
        assert (found.title, found.modified, "lamp" in found.text) == ("Lamps", "today", True)
        assert (known.etag, known.digest, known.checked) == ('"1"', b"\0x", 4.0)
        index.remove("/lamps")
        assert (index.known(), index.search("lamp", 10)) == ({}, [])


def test_an_index_in_postgresql_is_shared_by_all_workers(postgres_url):
    shop = Shop({"/lamps": LAMPS, "/oil": OIL})
    with serve(shop, make_site(shop, store=postgres_url)) as client:
        assert ids(client, "wick") == ["/lamps"]
    with closing(PostgresPageIndex(postgres_url, "shop.example")) as other:
        assert other.claim(time.time()), "another worker reads the pages"
        asked = len(shop.asked)
        with serve(shop, make_site(shop, store=postgres_url)) as client:
            assert ids(client, "bottles") == ["/oil"]
            assert client.post("/agents/fetch/invoke", json={"input": {"id": "/oil"}}).json()["title"] == "Oil"
            assert shop.asked[asked:] == []


def test_an_index_in_a_postgresql_that_is_gone_is_a_problem_and_no_crash():
    shop = Shop({"/lamps": LAMPS})
    with serve(shop, make_site(shop, store="postgresql://nobody@127.0.0.1:1/nothing")) as client:
        answer = client.post("/agents/search/invoke", json={"input": {"query": "lamp"}})
        assert (answer.status_code, answer.json()["code"]) == (503, "STORE_UNAVAILABLE")


def test_tables_of_another_version_are_made_again(tmp_path):
    file = f"{tmp_path}/agents-search.db"
    with closing(SqlitePageIndex(file, "a.example")) as index:
        index.put(IndexedPage(path="/lamps", title="Lamps", text="A lamp."), 1.0)
        facts = index._facts
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute(f"UPDATE {facts} SET value = 0 WHERE name = 'version'")
    with closing(SqlitePageIndex(file, "a.example")) as index:
        assert index.search("lamp", 10) == []


@pytest.mark.parametrize(
    ("text", "path", "allowed"),
    [
        ("", "/x", True),
        ("User-agent: *\nDisallow: /x", "/x/y", False),
        ("User-agent: *\nDisallow:", "/x", True),
        ("User-agent: a\nUser-agent: *\nDisallow: /x", "/x", False),
        ("User-agent: *\nDisallow: /x\nUser-agent: b\nDisallow: /", "/y", True),
        ("User-agent: *\nDisallow: /y\n\nUser-agent: b\nDisallow: /\n\nuser-AGENT: *\nDisallow: /x # all", "/x", False),
        ("User-agent: *\nDisallow: /x\nAllow: /x/y", "/x/y", True),
        ("User-agent: *\nAllow: /x\nDisallow: /x", "/x", True),
        ("User-agent: *\nDisallow: /*.pdf$", "/a.pdf", False),
        ("User-agent: *\nDisallow: /*.pdf$", "/a.pdf.html", True),
        ("User-agent: *\nDisallow: /a*b*c", "/axxbxxcxx", False),
        ("User-agent: *\nDisallow: /a*b*c", "/acb", True),
        ("User-agent: *\nDisallow: /$", "/", False),
        ("User-agent: *\nDisallow: /$", "/x", True),
        ("User-agent: *\nDisallow: /caf%C3%A9", "/café", False),
        ("User-agent: *\nDisallow: *?print=1", "/x?print=1", False),
        ("Disallow: /", "/x", True),
    ],
)
def test_the_rules_of_robots_txt_are_read_as_its_standard_says(text, path, allowed):
    assert RobotsRules.read(text).allow(path) is allowed
