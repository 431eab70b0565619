"""The overview: what it shows, to whom, and how a form of its own is sent through each door."""

import asyncio
import re
import sys
from collections.abc import Callable
from html import unescape
from types import ModuleType
from typing import Annotated, Any, Literal

import httpx
import orjson
import pytest
from fastapi import FastAPI, Form, UploadFile
from pydantic import BaseModel, Field, SecretStr
from starlette.applications import Starlette
from starlette.middleware.sessions import SessionMiddleware
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from awp_publish import (
    AgentPublisher,
    ApiKey,
    Approval,
    BearerToken,
    DeclarationError,
    Mcp,
    Overview,
    Paths,
    Principal,
    Site,
    WebBotAuth,
)
from awp_publish.maps.chromium import open_chromium, why_unavailable
from awp_publish.plugins import approval
from awp_publish.problems import StoreUnavailable
from awp_publish.stores.memory import MemoryStore
from tests.client import TestClient
from tests.limit import OF_BROWSERS
from tests.live_server import serve
from tests.plugins.sign_in.shop import make_shop

DOORS: list[Literal["mcp", "a2a", "awp"]] = ["mcp", "a2a", "awp"]
TITLES = ["WoA", "Plain HTTP", "MCP 2026-07-28", "MCP 2025-11-25", "A2A", "AWP"]


class Order(BaseModel):
    order_id: int = Field(description="Names the order.")
    slug: str


def make_site(**options) -> Site:
    site = Site(name="Shop", description="Sells books.", url="https://shop.example", **options)

    @site.agent("order_book", rate_limit="30/minute", confirm="Order {copies} of {slug}", examples=[{"slug": "emma"}])
    def order_book(slug: str, copies: Annotated[int, Field(ge=1, le=20)] = 1) -> Order:
        """Order a book by its slug."""
        return Order(order_id=7, slug=slug)

    @site.agent("find", effect="read", scopes=["staff"] if "authenticate" in options else [], tags=["books", "new"])
    def find(words: list[str], deep: bool = False) -> dict[str, object]:
        """Find books <by> words."""
        return {"words": words, "deep": deep, "found": 2}

    @site.prompt("gift")
    def gift(reader: str) -> str:
        """Choose a gift."""
        return reader

    return site


def make_app(site: Site, routes=()) -> AgentPublisher:
    return AgentPublisher(Starlette(routes=routes), site=site)


def text_of(answer) -> str:
    """What a page says, without its tags."""
    assert answer.headers["content-type"] == "text/html; charset=utf-8", answer.text
    return re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]+>", " ", answer.text)))


def answers_of(answer) -> dict[str, str]:
    """The answers on a page by door."""
    found = re.findall(r'<h3 id="answer-[^"]+">([^<]+)</h3>(.*?)</article>', answer.text, re.DOTALL)
    return {title: unescape(re.sub(r"<[^>]+>", "", content)) for title, content in found}


@pytest.mark.parametrize("plugins", [[], ["no:overview"]])
def test_the_overview_costs_nothing_where_nobody_asks_for_it(open_client, monkeypatch, plugins):
    monkeypatch.delenv("AWP_PUBLISH_OVERVIEW", raising=False)
    monkeypatch.delitem(sys.modules, "awp_publish.plugins.overview.door", raising=False)
    own = [Route("/agents", lambda request: PlainTextResponse("estate agents"))]
    client = open_client(make_app(make_site(plugins=plugins), own))
    assert client.get("/agents").text == "estate agents"
    assert client.get("/agents/try/find").status_code == 404
    assert client.get("/agents/overview.css").status_code == 404
    assert "awp_publish.plugins.overview.door" not in sys.modules


@pytest.mark.parametrize(
    ("plugins", "value", "status"),
    [([], "1", 200), ([], "true", 200), ([], "0", 404), ([], "", 404), (["no:overview"], "1", 404)],
)
def test_the_environment_switches_it_on_unless_the_site_says_no(open_client, monkeypatch, plugins, value, status):
    monkeypatch.setenv("AWP_PUBLISH_OVERVIEW", value)
    assert open_client(make_app(make_site(plugins=plugins))).get("/agents").status_code == status


def test_an_environment_that_says_neither_yes_nor_no_is_refused(monkeypatch):
    monkeypatch.setenv("AWP_PUBLISH_OVERVIEW", "perhaps")
    with pytest.raises(DeclarationError, match="AWP_PUBLISH_OVERVIEW must be 1 or 0"):
        make_site()


def test_the_first_screen_says_what_is_degraded(open_client):
    site = make_site(plugins=["overview"])
    client = open_client(make_app(site))
    site.set_status(degraded_actions=["find"])
    site.refresh()
    said = text_of(client.get("/agents"))
    assert "Shop 1 action degraded https://shop.example" in said
    assert "find degraded at the moment" in said
    site.set_status(operational=False)
    site.refresh()
    assert "Shop Not operational" in text_of(client.get("/agents"))


def test_a_row_says_what_differs_and_what_all_share_stands_above(open_client):
    site = Site("Shop", "Sells books.", url="https://shop.example", plugins=[*DOORS, "overview"])
    each: dict[str, dict[str, Any]] = {"look": {}, "buy": {"confirm": True, "expose": ["mcp"]}, "rest": {}}
    for name, options in each.items():
        site.agent(name, description="Does it.", rate_limit="5/minute", idempotency="1h", **options)(lambda: True)
    actions = section_of(open_client(make_app(site)).get("/agents").text, "actions")
    assert "Doors: WoA, Plain HTTP, MCP, A2A, AWP Limit: 5 a minute for each caller Idempotency: " in actions
    assert "Time limit: 30 seconds" in actions
    assert actions.count("5 a minute") == actions.count("Idempotency") == 1
    assert "Buy buy Does it. changes a person confirms only MCP" in actions


def test_the_overview_lists_findings_and_routes_that_were_left_out(open_client):
    site = Site(name="Shop", description="Sells books.", url="http://shop.test", plugins=["overview"])
    site.include()
    routes = [Route("/logout", lambda request: PlainTextResponse("bye"), methods=["POST"])]
    said = text_of(open_client(make_app(site, routes)).get("/agents"))
    assert re.search(r"Findings \([1-9]", said)
    assert "https" in said
    assert "Left out (1)" in said
    assert "POST /logout" in said


def test_every_page_keeps_strict_rules(open_client):
    client = open_client(make_app(make_site(plugins=["overview"])))
    for name, kind in (("svg", "image/svg+xml"), ("css", "text/css"), ("js", "text/javascript")):
        assert client.get(f"/agents/overview.{name}").headers["content-type"] == f"{kind}; charset=utf-8"
    for path in ("/agents", "/agents/try/find", "/agents/try/none"):
        answer = client.get(path, headers={"accept": "text/html"})
        assert answer.headers["content-security-policy"].startswith("default-src 'self';")
        assert answer.headers["cache-control"] == "no-store"
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert not re.search(r"<style|style=|<script>|\son\w+=|//(?!shop\.example)[^ \"]*\.(js|css)", answer.text)
        for name in re.findall(r'(?:src|href)="(/agents/overview\.[a-z]+)"', answer.text):
            file = client.get(name)
            assert file.status_code == 200
            assert client.get(name, headers={"if-none-match": file.headers["etag"]}).status_code == 304
            assert client.post(name).status_code == 405


@pytest.mark.parametrize(
    ("headers", "path", "kind"),
    [
        ({"accept": "text/markdown"}, "/agents", "text/markdown; charset=utf-8"),
        ({}, "/agents.md", "text/markdown; charset=utf-8"),
        ({"accept": "application/som+json"}, "/agents/try/order_book", "application/som+json"),
        ({}, "/agents/try/order_book.md", "text/markdown; charset=utf-8"),
    ],
)
def test_the_overview_is_given_in_the_formats_of_pages(open_client, headers, path, kind):
    answer = open_client(make_app(make_site(plugins=["overview"]))).get(path, headers=headers)
    assert (answer.status_code, answer.headers["content-type"]) == (200, kind)
    assert "Order a book by its slug." in answer.text


@pytest.mark.parametrize(
    ("expose", "titles"),
    [(["mcp"], TITLES[2:4]), (["plain", "a2a"], [TITLES[1], TITLES[4]]), (["awp"], TITLES[5:]), (["woa"], TITLES[:1])],
)
def test_a_form_is_for_the_doors_that_offer_its_action(open_client, expose, titles):
    site = make_site(plugins=[*DOORS, "overview"])

    @site.agent("echo", effect="read", expose=expose)
    def echo(word: str) -> str:
        """Say a word again."""
        return word

    client = open_client(make_app(site))
    shown = client.get("/agents/try/echo?word=sea").text
    assert re.findall(r'<label for="tab-(?!curl|python|test)[^"]*">([^<]+)<', shown) == titles
    answers = answers_of(client.post("/agents/try/echo", data={"word": "sea", "awp-do": "all"}))
    assert list(answers) == titles
    assert all("answered" in said for said in answers.values())


def make_files_app(url: str = "https://shop.example") -> tuple[FastAPI, list[tuple[str, bytes, list[bytes]]]]:
    site, seen = (
        Site("Shop", "Sells books.", url=url, plugins=[*DOORS, "overview"]),
        list[tuple[str, bytes, list[bytes]]](),
    )
    app = FastAPI()

    @app.post("/cover")
    @site.action("add_cover")
    async def add_cover(
        title: Annotated[str, Form()], cover: UploadFile, more: list[UploadFile] | None = None
    ) -> dict[str, int]:
        """Add a cover to a book."""
        others = [await item.read() for item in more or ()]
        seen.append((title, await cover.read(), others))
        return {"size": len(seen[-1][1]), "more": len(others)}

    app.add_middleware(AgentPublisher, site=site)
    return app, seen


def test_a_file_is_chosen_in_a_field_for_files_and_sent_through_every_door(open_client):
    app, seen = make_files_app()
    client = open_client(app)
    page = client.get("/agents/try/add_cover").text
    assert re.search(r'<input type="file" name="cover" id="in-cover" aria', page)
    assert re.search(r'<input type="file" name="more" id="in-more" multiple aria', page)
    assert re.search(r'<form [^>]*enctype="multipart/form-data"', page)
    # As a browser without scripts sends it, with a field in which nothing was chosen.
    files = [("cover", ("a.png", b"\x89PNG\x00\xff")), ("more", ("", b""))]
    sent = client.post("/agents/try/add_cover", data={"title": "Emma", "awp-do": "all"}, files=files)
    assert list(answers_of(sent)) == TITLES
    assert all('"size": 6' in said for said in answers_of(sent).values()), answers_of(sent)
    assert seen == [("Emma", b"\x89PNG\x00\xff", [])] * 6
    # No page can fill in a file: what was sent goes along with the form until another one is chosen.
    kept = re.search(r'<input type="hidden" name="cover" value="([^"]+)">', sent.text)
    assert kept is not None
    assert "A file; the current one, 6 bytes, is sent until you choose another" in unescape(sent.text)
    again = client.post("/agents/try/add_cover", data={"title": "Emma", "cover": kept[1]})
    assert '"size": 6' in answers_of(again)["WoA"]
    files = [("cover", ("b.png", b"other")), ("more", ("c", b"\x00")), ("more", ("d", b"\x01"))]
    client.post("/agents/try/add_cover", data={"title": "Emma", "cover": kept[1]}, files=files)
    assert seen[-1] == ("Emma", b"other", [b"\x00", b"\x01"])


def test_a_large_file_is_sent_and_not_shown(open_client):
    app, seen = make_files_app()
    sent = open_client(app).post(
        "/agents/try/add_cover", data={"title": "Emma"}, files=[("cover", ("a", b"\x00" * 600_000))]
    )
    assert '"size": 600000' in answers_of(sent)["WoA"]
    assert len(seen[0][1]) == 600_000
    assert "(not shown: 600,000 bytes as base64)" in sent.text
    assert "/agents/try/add_cover?title=Emma" in sent.text
    assert "%28not" not in sent.text
    assert len(sent.text) < 900_000  # once, in the form


@pytest.mark.parametrize("given", [None, 5, "null", "héllo", [1, 2.5], {"result": 1}, True])
def test_answers_are_the_same_at_every_door(open_client, given):
    site = make_site(plugins=[*DOORS, "overview"])

    @site.agent("echo", effect="read")
    def echo() -> int | str | list[float] | dict[str, int] | None:
        """Answer."""
        return given

    answers = answers_of(open_client(make_app(site)).post("/agents/try/echo", data={"awp-do": "all"}))
    assert [title for title, said in answers.items() if "the same as WoA" in said] == TITLES[1:]


def test_a_picture_is_the_same_at_every_door(open_client):
    site = Site(name="Shop", description="Sells books.", url="https://shop.example", plugins=[*DOORS, "overview"])
    site.declare("cover", method="GET", path="/cover", description="A cover.")
    routes = [Route("/cover", lambda request: Response(b"\x89PNG\x00\xff", media_type="image/png"))]
    answers = answers_of(open_client(make_app(site, routes)).post("/agents/try/cover", data={"awp-do": "all"}))
    assert [title for title, said in answers.items() if "the same as WoA" in said] == TITLES[1:]


@pytest.mark.parametrize("is_outermost", [True, False])
def test_a_session_of_the_visitor_goes_on(open_client, is_outermost):
    """Whether the middleware of sessions sees the overview's own answers too, or only those of the application."""
    site = Site(name="Shop", description="Sells books.", url="https://shop.example", plugins=["overview"])

    async def sign_in(request: Request) -> JSONResponse:
        request.session["name"] = (await request.json())["name"]
        request.session.pop("visitor", None)
        return JSONResponse({"welcome": True})

    async def look(request: Request) -> JSONResponse:
        request.session.setdefault("visitor", True)
        return JSONResponse({"seen": dict(request.session)})

    site.declare("sign_in", method="POST", path="/in", inputs=dict[str, str], description="Sign in.")
    site.declare("look", method="GET", path="/look", description="Look.")
    app = Starlette(routes=[Route("/in", sign_in, methods=["POST"]), Route("/look", look)])
    if is_outermost:
        app.add_middleware(AgentPublisher, site=site)
        app.add_middleware(SessionMiddleware, secret_key="x" * 32)
    else:
        app.add_middleware(SessionMiddleware, secret_key="x" * 32)
        app.add_middleware(AgentPublisher, site=site)
    client = open_client(app)
    client.get("/look")
    client.post("/agents/try/sign_in", data={"name": "ann"})
    assert client.get("/look").json() == {"seen": {"name": "ann", "visitor": True}}
    [said] = answers_of(client.post("/agents/try/look", data={"awp-door": "plain"})).values()
    assert '"name": "ann"' in said


@pytest.mark.parametrize(
    ("path", "data", "told"),
    [
        ("find", {"words": "sea"}, "assert answer == {'words': ['sea'], 'deep': False, 'found': 2}"),
        ("find", {"words": "sea", "awp-door": "mcp"}, 'with AgentClient(app, door="mcp") as client:'),
        ("find", {"deep": "true"}, 'assert refused.value.code == "INVALID_INPUT"'),
        ("order_book", {"slug": "emma"}, "with AgentClient(app, confirm=True) as client:"),
        ("odd_names", {"class": "1", "x-y": "b"}, "client.call(\"odd_names\", {'class': 1, 'x-y': 'b'})"),
    ],
)
def test_a_call_is_copied_as_a_test_that_passes(open_client, monkeypatch, path, data, told):
    def make() -> AgentPublisher:
        site = make_site(plugins=[*DOORS, "overview"])
        inputs = {"type": "object", "properties": {"class": {"type": "integer"}, "x-y": {"type": "string"}}}
        site.declare("odd_names", method="POST", path="/odd", inputs=inputs, description="Odd names.")

        async def odd(request: Request) -> JSONResponse:
            return JSONResponse(await request.json())

        return make_app(site, [Route("/odd", odd, methods=["POST"])])

    page = unescape(open_client(make()).post(f"/agents/try/{path}", data=data).text)
    written = re.search(r'id="panel-test">.*?<code>(.*?)</code>', page, re.DOTALL)
    assert written is not None
    assert told in written[1]
    main = ModuleType("main")
    vars(main)["app"] = make()
    monkeypatch.setitem(sys.modules, "main", main)
    made: dict[str, Callable[[], None]] = {}
    exec(written[1], made)
    made[f"test_{path}"]()


def test_a_secret_input_is_sent_and_never_shown(open_client):
    site, seen = make_site(plugins=[*DOORS, "overview"]), list[str]()

    @site.agent("unlock", confirm=True)
    def unlock(password: SecretStr, door: str) -> bool:
        """Unlock a door."""
        seen.append(password.get_secret_value())
        return True

    client = open_client(make_app(site))
    page = client.post("/agents/try/unlock", data={"password": "open sesame", "door": "cave", "awp-do": "all"})
    assert "sesame" not in page.text
    assert "/agents/try/unlock?door=cave" in page.text
    form = page.text[page.text.index("<blockquote>") :].partition("</form>")[0]
    fields = dict(re.findall(r'<input type="hidden" name="([^"]+)" value="([^"]*)">', form))
    assert '<input type="password" name="password"' in form
    client.post("/agents/try/unlock", data={**fields, "password": "open sesame"})
    assert seen == ["open sesame"]


def test_credentials_are_sent_and_shown_as_stars(open_client):
    seen = list[object]()

    def check(token: str) -> Principal | None:
        seen.append(token)
        return Principal("ann", frozenset({"staff"}))

    site = make_site(plugins=[*DOORS, "overview"], authenticate=ApiKey(check))
    client = open_client(make_app(site))
    fields = {"words": "sea", "awp-do": "all", "awp-x-api-key": "s3cret", "awp-authorization": "Basic s3cret"}
    sent = client.post("/agents/try/find", data=fields).text
    form = client.get("/agents/try/find").text
    assert '<input type="password" name="awp-authorization"' in form
    assert "s3cret" not in sent
    assert "Authorization: Basic ***" in sent
    assert "X-API-Key: ***" in sent
    assert len(seen) >= len(TITLES)
    assert set(seen) == {"s3cret"}


def test_a_scope_stands_before_every_page(open_client):
    def check(token: str) -> Principal | None:
        return Principal(token, frozenset({token})) if token in ("operator", "staff") else None

    client = open_client(make_app(make_site(plugins=[Overview("operator")], authenticate=BearerToken(check))))
    for path in ("/agents", "/agents/try/find", "/agents.md"):
        nobody = client.get(path)
        assert nobody.status_code == 401
        assert "Bearer" in nobody.headers["www-authenticate"]
        assert client.get(path, headers={"authorization": "Bearer staff"}).status_code == 403
        assert client.get(path, headers={"authorization": "Bearer operator"}).status_code == 200
    assert client.post("/agents/try/find", data={"words": "sea"}).status_code == 401
    said = text_of(client.get("/agents", headers={"accept": "text/html"}))
    assert "The action requires authentication" in said
    assert "find" not in said


def test_a_scope_that_nobody_can_have_is_refused_at_the_start(open_client):
    with pytest.raises(DeclarationError, match='requires the scope "operator", but the site authenticates nobody'):
        open_client(make_app(make_site(plugins=[Overview("operator")])))


def test_the_overview_shows_what_a_caller_with_a_scope_sees(open_client):
    site = make_site(plugins=["overview", Mcp(list_only_allowed=True)], authenticate=BearerToken({"secret": "ann"}))
    client = open_client(make_app(site))
    shown = {}
    for sees in ("", "known", "scope:staff"):
        text = client.get("/agents", params={"sees": sees}).text
        tools = text[text.index("<caption>Tools that") :].partition("</table>")[0]
        shown[sees] = re.findall(r'<th scope="row"><code>(\w+)</code>', tools)
    assert shown == {"": ["order_book"], "known": ["order_book"], "scope:staff": ["order_book", "find"]}


def test_the_overview_shows_what_an_agent_that_signs_may_call(open_client):
    site = make_site(plugins=["overview"], authenticate=WebBotAuth(signers={"https://signer.example": "SignerBot"}))

    @site.agent("buy", allow_agents=["https://signer.example"])
    def buy() -> bool:
        """Buy."""
        return True

    client, told = open_client(make_app(site)), {}
    assert "https://signer.example only" in text_of(client.get("/agents"))
    for sees in ("", "agent:https://signer.example", "agent:https://other.example"):
        text = client.get("/agents", params={"sees": sees}).text
        told[sees] = re.findall(r'<th scope="row"><code>buy</code></th><td>((?:yes|no)[^<]*)', text)
    refusal = ["no, it is for https://signer.example"]
    assert told == {"": refusal, "agent:https://signer.example": ["yes"], "agent:https://other.example": refusal}


def test_the_comparison_of_many_actions_lists_those_that_differ(open_client):
    site = make_site(plugins=["overview"], authenticate=BearerToken({"t": "ann"}))
    for number in range(150):
        scopes = [f"scope_{number}"] if number < 20 else []
        site.agent(f"do_{number}", description="Do it.", scopes=scopes)(lambda: True)
    page = open_client(make_app(site)).get("/agents").text
    found = page[page.index("<caption>Side by side") :].partition("</table>")[0]
    assert found.count('scope="col"') == 13
    assert "<code>do_3</code>" in found
    assert "<code>do_100</code>" not in found
    assert "<code>do_100</code>" in page


async def test_the_overview_shows_traffic_as_a_picture_and_as_tables(open_client):
    site = make_site(plugins=[*DOORS, "overview"])
    client = open_client(make_app(site))
    assert "No calls and no page reads in 30 days." in text_of(client.get("/agents"))
    for given in ({"words": ["sea"]}, {"words": ["sea"]}, {"words": 5}):
        client.post("/agents/find/invoke", json={"input": given})
    client.post("/agents/nobody/invoke", json={"input": {}})
    answer = client.get("/agents")
    assert site.ask("traffic") is not None
    assert "keeps no traffic" not in answer.text
    report = await site.ask("traffic").read(days=30)
    assert report.chart(legend=False) in answer.text
    assert report.table() in answer.text
    said = text_of(answer)
    for words in ("4 calls and page reads in 30 days", "INVALID_INPUT woa 1", "UNKNOWN_AGENT woa 1"):
        assert words in said, words
    assert re.search(r"50 % within 90 % within 99 % within woa 2 0 2 0 <?[\d.]+ ms", said)
    assert re.search(r"Find find Find books <by> words. reads 3 1 <?[\d.]+ ms", said)
    assert not re.search(r"<style|style=|<script>", answer.text)
    assert "INVALID_INPUT" in client.get("/agents.md").text


def test_traffic_that_is_not_kept_is_not_shown(open_client):
    page = open_client(make_app(make_site(plugins=["overview", "no:traffic"]))).get("/agents")
    assert page.status_code == 200
    assert 'id="traffic"' not in page.text
    assert "keeps no traffic" in page.text
    assert 'class="month"' not in page.text
    assert "This site keeps no traffic" in page.text


@pytest.mark.parametrize("error", [StoreUnavailable("The store does not answer."), RuntimeError("a bug")])
def test_a_store_that_does_not_answer_costs_the_traffic_only(open_client, error):
    class GoneStore(MemoryStore):
        async def run(self, steps, *, durable=False):
            raise error

    page = open_client(make_app(make_site(plugins=["overview"], store=GoneStore()))).get("/agents")
    assert page.status_code == 200
    assert "Traffic cannot be read at the moment: " in text_of(page)
    assert "Order a book by its slug." in page.text


def section_of(page: str, ident: str) -> str:
    """What a section of the overview says; "" where there is none."""
    found = re.search(rf'<section aria-labelledby="{ident}">(.*?)</section>', page, re.DOTALL)
    return re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]+>", " ", found[1]))) if found is not None else ""


def test_the_overview_shows_what_waits_for_approval_and_what_has_changed(open_client, tmp_path, monkeypatch):
    monkeypatch.setattr(approval, "LOOK_EVERY", 3600)  # seconds
    file = tmp_path / "approved.json"

    def shop(words: str = "Order a book.", **options) -> tuple[Site, TestClient]:
        site = Site("Shop", "Sells.", url="https://shop.example", plugins=["overview", Approval(str(file))])

        @site.agent("search")
        def search(q: str) -> str:
            """Search."""
            return q

        @site.agent("order", description=words, **options)
        def order(title: str) -> str:
            return title

        @site.agent("close", audience="known")
        def close() -> bool:
            """Close the shop."""
            return True

        return site, open_client(make_app(site))

    site, client = shop()
    page = client.get("/agents").text
    said = section_of(page, "approval")
    assert "Approval (2 waiting)" in said
    assert said.count("New: it was never approved.") == 2
    assert "awp-publish approve module:app search order" in said
    assert "close" not in page  # which is for known callers
    assert "Actions (0)" in page

    site.approve("search", "order")
    site, client = shop("Order a book at once.", effect="delete")
    page = client.get("/agents").text
    said = section_of(page, "approval")
    assert "Approval (1 waiting)" in said
    assert "Changed since it was approved: effect, words." in said
    assert "Order a book at once." in said
    assert "approve module:app order" in said
    assert "order" not in section_of(page, "actions")

    site.approve("order")
    assert "Approved. It stays hidden until" in section_of(client.get("/agents").text, "approval")
    page = open_client(make_app(site)).get("/agents").text
    assert "Nothing is waiting." in section_of(page, "approval")
    assert "order" in section_of(page, "actions")
    assert not re.search(r"<style|style=|<script>", page)

    file.write_text("{")
    broken = open_client(make_app(site)).get("/agents")
    assert broken.status_code == 200
    assert "approved.json cannot be read" in section_of(broken.text, "approval")
    assert str(tmp_path) not in broken.text


def test_an_operator_approves_what_they_have_read_and_nobody_else_does(open_client, tmp_path):
    file = tmp_path / "approved.json"

    def shop(audience: str | None = "operator", words: str = "Order a book.") -> TestClient:
        known = {name: Principal(name, frozenset({"operator"})) for name in ("ann", "bob")} | {"eve": Principal("eve")}
        site = Site(
            "Shop",
            "Sells.",
            url="https://shop.example",
            authenticate=BearerToken(known.get),
            plugins=[Overview(audience), Approval(file)],
            secret_keys=["k" * 32],
        )

        @site.agent("search")
        def search(q: str) -> str:
            """Search."""
            return q

        @site.agent("order", description=words)
        def order(title: str) -> str:
            return title

        return open_client(make_app(site))

    def as_one(name: str) -> dict[str, str]:
        return {"authorization": f"Bearer {name}"}

    def buttons(page: str) -> dict[str, str]:
        found = re.findall(r'name="awp-approve" value="([^"]+)"><button class="button">([^<]+)<', page)
        return {label: value for value, label in found}

    client = shop()
    given = buttons(client.get("/agents", headers=as_one("ann")).text)
    assert list(given) == ["Approve search", "Approve order", "Approve all of these"]
    form = {"awp-approve": given["Approve order"]}
    for headers, status in (
        ({}, 401),
        (as_one("eve"), 403),
        ({**as_one("ann"), "sec-fetch-site": "cross-site"}, 403),
        ({**as_one("ann"), "origin": "https://evil.example"}, 403),
        (as_one("bob"), 422),
    ):
        assert client.post("/agents", data=form, headers=headers).status_code == status
    for wrong in ({"other": "x"}, {"awp-approve": "x"}, {"awp-approve": given["Approve order"] + "x"}):
        assert client.post("/agents", data=wrong, headers=as_one("ann")).status_code == 422
    assert not file.exists()

    # What has changed since it was read is not approved by the old form, and what has not is.
    changed = shop(words="Order a book at once.")
    sent = changed.post("/agents", data={"awp-approve": given["Approve all of these"]}, headers=as_one("ann"))
    said = section_of(sent.text, "approval")
    assert "Not approved, because it has changed since you read it: order." in said
    assert "Approved: search. Every worker publishes it within seconds. Keep approved.json in version control." in said
    assert "Approval (1 waiting)" in said
    client.post("/agents", data=form, headers=as_one("ann"))
    assert "Nothing is waiting." in section_of(shop().get("/agents", headers=as_one("ann")).text, "approval")

    file.unlink()
    everybody = shop(audience=None)
    page = everybody.get("/agents").text
    assert buttons(page) == {}
    assert "New: it was never approved." in section_of(page, "approval")
    for headers in ({}, as_one("eve")):
        assert everybody.post("/agents", data=form, headers=headers).status_code == 403
    assert not file.exists()
    own = buttons(everybody.get("/agents", headers=as_one("bob")).text)
    file.mkdir()  # which no file replaces
    broken = everybody.post("/agents", data={"awp-approve": own["Approve order"]}, headers=as_one("bob"))
    assert broken.status_code == 200
    assert "approved.json cannot be" in broken.text


async def test_the_second_of_two_operators_who_approve_at_once_is_told_that_it_is_decided(tmp_path):
    file = tmp_path / "approved.json"
    known = {name: Principal(name, frozenset({"operator"})) for name in ("ann", "bob")}
    stored: Any = {"store": f"sqlite:///{tmp_path / 'agents.db'}", "secret_keys": ["k" * 32]}

    def shop() -> httpx.AsyncClient:
        """One of several processes, of one site."""
        options: Any = {
            "authenticate": BearerToken(known.get),
            "plugins": [Overview("operator"), Approval(file)],
            **stored,
        }
        site = Site("Shop", "Sells.", url="https://shop.example", **options)

        @site.agent("search")
        def search(q: str) -> str:
            """Search."""
            return q

        @site.agent("order")
        def order(title: str) -> str:
            """Order a book."""
            return title

        transport = httpx.ASGITransport(AgentPublisher(Starlette(), site=site))
        return httpx.AsyncClient(transport=transport, base_url="https://shop.example")

    async with shop() as one, shop() as other:
        forms = []
        for client, name in ((one, "ann"), (other, "bob")):
            page = (await client.get("/agents", headers={"authorization": f"Bearer {name}"})).text
            forms.append(re.findall(r'name="awp-approve" value="([^"]+)"', page))
        asked = [  # Ann: order, then everything; Bob: order and search, at once
            (client, name, value)
            for client, name, values in ((one, "ann", forms[0][1:]), (other, "bob", forms[1][:2]))
            for value in values
        ]
        pages = await asyncio.gather(
            *(
                client.post("/agents", data={"awp-approve": value}, headers={"authorization": f"Bearer {name}"})
                for client, name, value in asked
            )
        )
    said = "".join(section_of(page.text, "approval") for page in pages)
    for name in ("order", "search"):
        answer = re.findall(r"(Approved|Already approved, and left as it is): ([a-z, ]+)", said)
        assert [name in names.split(", ") for kind, names in answer if kind == "Approved"].count(True) == 1
        assert any(name in names.split(", ") for kind, names in answer if kind != "Approved")
    assert sorted(orjson.loads(file.read_bytes())["actions"]) == ["order", "search"]
    assert [path.name for path in tmp_path.iterdir() if path.name.endswith(".new")] == []


def test_a_site_without_approval_shows_nothing_of_it(open_client):
    assert section_of(open_client(make_app(make_site(plugins=["overview"]))).get("/agents").text, "approval") == ""


def test_the_overview_links_to_the_page_of_connected_agents(open_client):
    page = open_client(make_shop(settings={"plugins": ["overview"]})).get("/agents").text
    assert '<a href="/agents/connections">' in page
    assert "/agents/connections" not in open_client(make_app(make_site(plugins=["overview"]))).get("/agents").text


def test_the_overview_moves_with_the_paths_of_the_site(open_client):
    site = make_site(plugins=["overview"], paths=Paths(root="/for-agents"))
    client = open_client(make_app(site))
    assert client.get("/agents").status_code == 404
    page = client.get("/for-agents")
    assert 'href="/for-agents/try/find"' in page.text
    assert client.get("/for-agents/overview.js").status_code == 200
    assert '"found": 2' in unescape(client.post("/for-agents/try/find", data={"words": "sea"}).text)


def test_nothing_that_is_sent_breaks_it(open_client):
    site = make_site(plugins=[*DOORS, "overview"])

    @site.agent("odd", name="<b>Odd</b>")
    def odd(given: object = None, where: dict[str, object] | None = None) -> object:
        """Take anything."""
        raise RuntimeError("a bug")

    client = open_client(make_app(site))
    for body in (
        {"given": "<script>alert(1)</script>", "where": "{", "awp-do": "all"},
        {"where": '{"a": [1, {"b": null}]}', "unknown": "x", "awp-do": "all", "awp-door": "none"},
        {"awp-do": "job", "awp-job": "../../etc"},
        {"awp-key": "\ud800".encode("utf-8", "surrogatepass").decode("latin-1"), "awp-authorization": "a\r\nb: c"},
    ):
        page = client.post("/agents/try/odd", data=body)
        assert page.status_code == 200, page.text
        assert "<script>alert" not in page.text
        assert "<b>Odd" not in page.text
    assert client.post("/agents/try/odd", content=b"%ff=%ff", headers={"content-type": "text/plain"}).status_code == 415
    assert client.post("/agents/try/order_book", data={"copies": ["1", "2"]}).status_code == 200
    assert client.put("/agents").status_code == 405
    assert client.get("/agents/try/none").status_code == 404
    assert client.head("/agents").status_code == 200
    assert client.get("/agents/").status_code == 200


@pytest.mark.limit(OF_BROWSERS)
@pytest.mark.skipif(why_unavailable() is not None, reason=str(why_unavailable()))
async def test_a_browser_keeps_its_page_while_forms_are_sent_and_jobs_run():
    def make(url: str) -> AgentPublisher:
        site = Site("Shop", "Sells books.", url=url, plugins=["mcp", "overview"])

        @site.agent("pack", execution="async")
        async def pack(box: int) -> str:
            """Pack a box."""
            return f"packed {box}"

        schema = {"type": "string", "contentEncoding": "base64"}
        inputs = {"type": "object", "properties": {"cover": schema}, "required": ["cover"]}
        site.declare("add_cover", method="POST", path="/cover", inputs=inputs, description="Add a cover.")

        async def add_cover(request: Request) -> JSONResponse:
            return JSONResponse({"cover": (await request.json())["cover"]})

        return make_app(site, [Route("/cover", add_cover, methods=["POST"])])

    async with serve(make) as url, open_chromium([url]) as chromium:
        page = (await chromium.open(f"{url}/agents/try/pack")).page
        wrong: list[str] = []
        page.on("pageerror", lambda error: wrong.append(str(error)))
        await page.set_viewport_size({"width": 390, "height": 800})
        await page.evaluate("window.kept = true")
        await page.fill("#in-box", "7")
        await page.wait_for_selector("#panel-woa:has-text('\"box\": 7')")
        await page.click("label[for=tab-curl]")
        assert await page.is_visible("#panel-curl")
        await page.click("text=Send through all doors")
        await page.wait_for_selector(".job:has-text('packed 7')")  # which asks again by itself
        assert await page.is_visible("#panel-curl")
        assert await page.evaluate("window.kept && document.documentElement.scrollWidth <= innerWidth")

        await page.goto(f"{url}/agents/try/add_cover")
        chosen: Any = {"name": "a.png", "mimeType": "image/png", "buffer": b"\x89PNG\x00\xff"}
        await page.set_input_files("#in-cover", [chosen])
        await page.click("text=Send through all doors")
        await page.wait_for_selector("#answers article:nth-of-type(3):has-text('iVBORwD/')")
        assert await page.evaluate("document.getElementById('in-cover').files.length") == 1  # the page was kept
        await page.goto(f"{url}/agents")
        assert await page.locator("tr[data-effect]:visible").count() == 2
        await page.fill(".filter [name=words]", "COVER add")
        assert await page.locator("tr[data-effect]:visible").count() == 1
        assert await page.inner_text(".filter output") == "1 of 2 actions"
        assert "words=COVER+add" in str(await page.get_attribute("th:nth-child(4) a.sort", "href"))
        assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        await page.context.grant_permissions(["clipboard-read", "clipboard-write"])
        await page.click("summary:has-text('Claude')")
        await page.wait_for_selector("summary:has-text('Claude: copied')")
        assert (
            await page.evaluate("navigator.clipboard.readText()") == f"claude mcp add --transport http shop {url}/mcp"
        )
        assert await page.is_visible("text=Open Claude's connectors")
        await page.keyboard.press("Escape")
        assert not await page.is_visible("text=Open Claude's connectors")
        assert wrong == []


@pytest.mark.limit(OF_BROWSERS)
@pytest.mark.skipif(why_unavailable() is not None, reason=str(why_unavailable()))
@pytest.mark.parametrize("width", [1280, 390])
async def test_five_hundred_actions_are_a_page_that_one_can_read(width):
    def make(url: str) -> AgentPublisher:
        site = Site("Warehouse", "Keeps stock.", url=url, plugins=["mcp", "overview"])
        for number in range(500):
            description = f"Show what is on shelf {number}, with the date of each delivery."
            site.declare(f"show_shelf_{number}", method="GET", path=f"/{number}", description=description)

        async def show(request: Request) -> JSONResponse:
            return JSONResponse({})

        return make_app(site, [Route("/{number}", show)])

    async with serve(make) as url, open_chromium([url]) as chromium:
        page = (await chromium.open(f"{url}/agents")).page
        await page.set_viewport_size({"width": width, "height": 900})
        size = await page.evaluate("[document.documentElement.scrollWidth, document.documentElement.scrollHeight]")
        assert size[0] == width
        assert size[1] < 9_000
        await page.fill("input[type=search]", "shelf_321")
        await page.wait_for_selector("output:has-text('1 of 500 actions')")
        assert await page.locator("tr[id^=action-]:visible").count() == 1


FOCUSED = """css => {
    const one = document.activeElement;
    if (!one || one === document.body) return null;
    const marked = one.labels?.[0] && one.type === "radio" ? one.labels[0] : one;
    return {
        number: [...document.querySelectorAll(css)].indexOf(one),
        is_shown: getComputedStyle(marked).outlineStyle !== "none" && getComputedStyle(marked).outlineWidth !== "0px",
    };
}"""
"""The focused element: its number among those of a selector, -1 for another, and whether its focus is drawn."""


@pytest.mark.limit(OF_BROWSERS)
@pytest.mark.skipif(why_unavailable() is not None, reason=str(why_unavailable()))
async def test_everything_that_can_be_operated_is_reached_by_the_keyboard_and_shows_it():
    def make(url: str) -> AgentPublisher:
        site = Site("Warehouse", "Keeps stock.", url=url, plugins=["mcp", "overview"])
        for number in range(3):
            site.declare(f"show_shelf_{number}", method="GET", path=f"/{number}", description="Show a shelf.")

        async def show(request: Request) -> JSONResponse:
            return JSONResponse({})

        return make_app(site, [Route("/{number}", show)])

    async with serve(make) as url, open_chromium([url]) as chromium:
        page = (await chromium.open(f"{url}/agents")).page
        operated = "a[href], button, summary, input:not([type=hidden]):not([type=radio]), select"
        expected = await page.evaluate(
            "css => [...document.querySelectorAll(css)].filter(one => one.checkVisibility()).length", operated
        )
        reached, is_shown = list[int](), list[bool]()
        for _ in range(400):
            await page.keyboard.press("Tab")
            focused = await page.evaluate(FOCUSED, operated)
            if focused is None:
                break
            reached.append(focused["number"])
            is_shown.append(focused["is_shown"])
        assert expected > 10
        assert len({number for number in reached if number >= 0}) >= expected
        assert all(is_shown)
        await page.focus("input[type=search]")
        await page.keyboard.type("shelf_2")
        await page.wait_for_selector("output:has-text('1 of 3 actions')")
