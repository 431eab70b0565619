"""The files that are read first: llms.txt, catalogues, what crawlers look for. A site's own files come before ours."""

import hashlib
import json
import re
from datetime import UTC, datetime
from typing import Literal
from xml.etree import ElementTree

import pytest
from fastapi import FastAPI, Request
from fastapi.responses import HTMLResponse, PlainTextResponse, RedirectResponse
from starlette.applications import Starlette
from starlette.middleware.gzip import GZipMiddleware
from starlette.middleware.sessions import SessionMiddleware

from awp_publish import (
    About,
    AgentPublisher,
    BearerToken,
    DeclarationError,
    Discovery,
    Idempotency,
    Paths,
    Robots,
    Security,
    SessionUser,
    Site,
)
from awp_publish.plugins.templating import page_meta, structured_data
from tests.documents.known import ALL

SHOP = "https://shop.example"


def make_app(**options):
    site = Site("The Tea Shop", "Sells tea. And cups.", url=SHOP, **options)
    app = FastAPI()

    @app.get("/", response_class=HTMLResponse)
    @site.page(title="Front page")
    async def front() -> str:
        """Look around; it is nice here."""
        return (
            '<html lang="en"><head><title>Tea &amp; cups</title><meta name="description" content="All our teas.">'
            "</head><body><main><h1>Tea</h1><p>Fresh.</p></main></body></html>"
        )

    @app.get("/teas/{slug}", response_class=HTMLResponse)
    async def tea(slug: str) -> HTMLResponse:
        status = 200 if slug in ("assam", "darjeeling") else 404
        return HTMLResponse(f"<title>{slug}</title><main><h1>{slug}</h1></main>", status)

    @app.get("/search")
    @site.action("search_teas", rate_limit="30/minute", examples=[{"q": "assam"}])
    async def search(q: str, page: int = 1) -> list[str]:
        """Search the teas; by name only. There is more to say of it."""
        return [q]

    @app.post("/orders")
    @site.action("order_tea", confirm=True, requires=["search_teas"], idempotency=Idempotency("24h"))
    async def order(slug: str) -> str:
        """Order a tea."""
        return slug

    app.add_middleware(AgentPublisher, site=site)
    return app


def test_every_link_of_llms_txt_leads_to_markdown(open_client):
    client = open_client(make_app())
    for link in re.findall(r"\]\((\S+)\)", client.get("/llms.txt").text):
        answer = client.get(link)
        assert (answer.status_code, answer.headers["content-type"]) == (200, "text/markdown; charset=utf-8")


def test_the_agent_is_in_the_body_of_a_call_whose_address_does_not_name_it(open_client):
    site = Site("Shop", "Sells.", url=SHOP, paths=Paths(invoke="/call"))

    @site.agent("look")
    async def look() -> str:
        """Look at books."""
        return "books"

    client = open_client(AgentPublisher(Starlette(), site=site))
    address, call = re.findall(r"POST (\S+) with JSON (.*}})", client.get("/llms.txt").text.replace("{...}", "{}"))[0]
    assert client.post(address, json=json.loads(call.replace("NAME", "look"))).json() == "books"
    assert '"agent":"look"' in client.get("/agents/webmcp.tools.js").text


@pytest.mark.needs("mcp")
def test_a_name_with_accents_is_an_address_and_a_realm_in_ascii(open_client):
    users = SessionUser("user", cookie="session")
    site = Site(
        "Café Müller",
        "Sells.",
        url=SHOP,
        plugins=["mcp"],
        authenticate=[BearerToken({"a-token-of-sixteen": "ann"}), users],
    )

    @site.agent("mine", auth_required=True)
    async def mine() -> str:
        """Show what is mine."""
        return "mine"

    client = open_client(AgentPublisher(Starlette(), site=site))
    assert client.get("/.well-known/agent-skills/cafe-muller/SKILL.md").status_code == 200
    assert client.get("/mcp/server-card").json()["name"] == "example.shop/cafe-muller"
    refused = client.post("/agents/mine/invoke", json={"input": {}})
    assert refused.headers["www-authenticate"].startswith('Bearer realm="shop.example"')


def test_llms_txt_suffices_to_sign_in_and_order(open_client):
    site = Site("Shop", "Sells.", url=SHOP, authenticate=SessionUser("user", endpoints={"login": "/sign-in"}))
    app = FastAPI()

    @app.post("/sign-in")
    @site.action("sign_in")
    async def sign_in(request: Request, name: str) -> str:
        """Sign in."""
        request.session["user"] = name
        return name

    @app.post("/orders")
    @site.action("order", auth_required=True, confirm=True)
    async def order(slug: str) -> str:
        """Order."""
        return slug

    app.add_middleware(AgentPublisher, site=site)
    app.add_middleware(SessionMiddleware, secret_key="a secret of the shop")
    client = open_client(app)
    text = client.get("/llms.txt").text
    assert "- sign in: call sign_in; then send its answer's AWP-Session as `session` beside `input`" in text
    (template,) = re.findall(r"POST (\S+) with", text)
    begun = client.post(template.replace("NAME", "sign_in"), json={"input": {"name": "ann"}})
    client.cookies.clear()
    call = {"input": {"slug": "assam"}, "session": begun.headers["awp-session"]}
    asked = client.post(template.replace("NAME", "order"), json=call)
    assert asked.status_code == 428
    call["confirmation"] = asked.json()["confirmation"]["token"]
    assert client.post(template.replace("NAME", "order"), json=call).json() == "assam"


@pytest.mark.parametrize("path", ["/llms.txt", "/robots.txt", "/sitemap.xml", "/.well-known/security.txt"])
def test_a_file_of_the_applications_own_comes_first(open_client, path):
    security = Security(contact=["mailto:a@shop.example"], expires=datetime(2099, 1, 1, tzinfo=UTC))
    app = make_app(plugins=[Discovery(security=security)])
    app.add_api_route(path, lambda: PlainTextResponse("our own"))
    client = open_client(app)
    assert client.get(path).text == "our own"


def serve_in_the_browser(site):
    """Return an application that answers every path with its page, compressed, as one for the browser does."""
    app = FastAPI()

    @app.get("/robots.txt", response_class=HTMLResponse)
    async def robots() -> str:
        return "User-agent: own"

    @app.get("/{path:path}", include_in_schema=False, response_class=HTMLResponse)
    async def page(path: str) -> str:
        return f"\n<!doctype html><title>Shop</title><h1>The shop</h1>{'<p>Tea</p>' * 200}"

    app.add_middleware(GZipMiddleware)
    app.add_middleware(AgentPublisher, site=site)
    return app


def test_the_page_that_an_application_has_at_every_path_is_no_file_of_its_own(open_client):
    bearer = BearerToken(lambda token: token)
    client = open_client(serve_in_the_browser(Site("Shop", "Sells tea.", url=SHOP, authenticate=bearer)))
    for path, start in (("/llms.txt", "# Shop\n"), ("/auth.md", "# ")):
        for accept in ("*/*", "text/html", "text/markdown"):
            got = client.get(path, headers={"accept": accept})
            assert got.text.startswith(start), (path, accept)
            assert client.head(path, headers={"accept": accept}).headers["content-type"] == got.headers["content-type"]
    assert client.get("/robots.txt").text == "User-agent: own"
    assert "The shop" in client.get("/other.txt").text


def test_the_sign_in_page_to_which_an_application_sends_strangers_is_no_file_of_its_own(open_client):
    app = FastAPI()

    @app.get("/robots.txt")
    async def robots() -> RedirectResponse:
        return RedirectResponse("/static/robots.txt")

    @app.get("/{path:path}")
    async def page(path: str) -> RedirectResponse:
        return RedirectResponse(f"/accounts/login/?next=/{path}")

    app.add_middleware(AgentPublisher, site=Site("Shop", "Sells tea.", url=SHOP))
    client = open_client(app)
    client.follow_redirects = False
    for accept in ("*/*", "text/markdown"):
        assert client.get("/llms.txt", headers={"accept": accept}).text.startswith("# Shop\n")
    assert client.get("/robots.txt").headers["location"] == "/static/robots.txt"


def test_the_fallbacks_are_cached_like_other_documents(open_client):
    client = open_client(make_app())
    answer = client.get("/llms.txt", headers={"accept-encoding": "identity"})
    again = client.get("/llms.txt", headers={"accept-encoding": "identity", "if-none-match": answer.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    head = client.head("/llms.txt", headers={"accept-encoding": "identity"})
    assert (head.status_code, head.headers["content-length"]) == (200, str(len(answer.content)))
    assert client.options("/llms.txt").status_code in (200, 204)


def test_the_skill_is_in_the_index_with_the_digest_of_its_bytes(open_client):
    client = open_client(make_app())
    index = client.get("/.well-known/agent-skills/index.json").json()
    (skill,) = index["skills"]
    assert (skill["name"], skill["type"]) == ("the-tea-shop", "skill-md")
    body = client.get(skill["url"]).content
    assert skill["digest"] == f"sha256:{hashlib.sha256(body).hexdigest()}"
    assert body.startswith(b'---\nname: the-tea-shop\ndescription: "Sells tea.')
    assert client.get("/.well-known/skills/index.json").json() == index


def test_the_api_catalog_is_a_linkset_of_what_answers(open_client):
    client = open_client(make_app())
    answer = client.get("/.well-known/api-catalog")
    assert answer.headers["content-type"].startswith("application/linkset+json")
    (context,) = answer.json()["linkset"]
    assert context.pop("anchor") == f"{SHOP}/"
    targets = [link["href"] for links in context.values() for link in links]
    assert f"{SHOP}/openapi.json" in targets
    for target in targets:
        assert client.get(target).status_code == 200


def test_ard_lists_every_interface_and_action_once_and_nothing_that_does_not_answer(open_client):
    client = open_client(make_app(plugins=["mcp", "a2a"]))
    catalogue = client.get("/.well-known/ard.json")
    assert catalogue.content == client.get("/.well-known/ai-catalog.json").content
    document = catalogue.json()
    assert set(document) == {"specVersion", "host", "entries"}
    identifiers = [entry["identifier"] for entry in document["entries"]]
    assert len(set(identifiers)) == len(identifiers)
    for kind in (
        "mcp:the-tea-shop",
        "a2a:the-tea-shop",
        "skill:the-tea-shop",
        "action:search_teas",
        "action:order_tea",
    ):
        assert f"urn:air:shop.example:{kind}" in identifiers
    for entry in document["entries"]:
        assert 2 <= len(entry["representativeQueries"]) <= 5
        assert client.get(entry["url"]).status_code == 200


def test_clients_of_older_a2a_find_a_card_of_their_version(open_client):
    from a2a.compat.v0_3.types import AgentCard

    AgentCard.model_validate(open_client(make_app(plugins=["a2a"])).get("/.well-known/agent.json").json())


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"content_signal": {"train": "no"}}, "content_signal: train=no is not known"),
        *[
            ({"content_signal": {name: value}}, f"content_signal: {name}={value} is not known")
            for name, value in (("search", "full"), ("ai-input", "maybe"), ("ai-train", "reference"), ("use", "yes"))
        ],
        ({"content_usage": "train-ai=n  "}, "content_usage must be one line"),
        ({"bots": {"GPT\nBot": True}}, "is not the name of a crawler"),
        ({"disallow": ["account"]}, 'must be a path such as "/account"'),
        ({"license": "not an address"}, "neither a path"),
    ],
)
def test_a_line_that_would_break_robots_txt_is_refused(wrong, said):
    with pytest.raises(DeclarationError, match="robots") as refused:
        Site("Shop", "Sells.", url=SHOP, plugins=[Discovery(robots=Robots(**wrong))])
    assert said in str(refused.value)


@pytest.mark.parametrize("name", ["search", "ai-input", "ai-train", "use"])
def test_every_value_of_a_signal_is_taken(name):
    for value in ("immediate", "reference", "full") if name == "use" else ("yes", "no"):
        Site("Shop", "Sells.", url=SHOP, plugins=[Discovery(robots=Robots(content_signal={name: value}))])


PREFLIGHT = {"origin": "https://agent.example", "access-control-request-method": "GET"}


@pytest.mark.parametrize("origins", [(), ("https://agent.example",), ("*",)])
@pytest.mark.parametrize("path", ["/index.md", "/teas/assam.md"])
def test_origins_that_the_site_allows_may_read_the_markdown_of_its_pages(open_client, path, origins):
    client = open_client(make_app(allow_origins=origins))
    may_read = {"*": "*", "https://agent.example": "https://agent.example"}.get(origins[0]) if origins else None
    asked = client.options(path, headers=PREFLIGHT)
    assert (asked.status_code, asked.headers["allow"]) == (204, "GET, HEAD, OPTIONS")
    assert asked.text == ""
    got = client.get(path, headers={"origin": "https://agent.example"})
    unchanged = client.get(path, headers={"origin": "https://agent.example", "if-none-match": got.headers["etag"]})
    assert (got.status_code, unchanged.status_code) == (200, 304)
    allowed = [item.headers.get("access-control-allow-origin") for item in (asked, got, unchanged)]
    assert allowed == [may_read] * 3
    assert ("origin" in got.headers.get("vary", "").lower()) is (origins == ("https://agent.example",))
    other = client.get(path, headers={"origin": "https://other.example"})
    assert other.headers.get("access-control-allow-origin") == ("*" if may_read == "*" else None)
    html = client.get(path.removesuffix("index.md").removesuffix(".md"), headers={"origin": "https://agent.example"})
    assert "access-control-allow-origin" not in html.headers
    assert client.options("/nowhere.md", headers=PREFLIGHT).status_code == 404


def test_a_page_has_its_markdown_at_its_address_with_md_behind_it(open_client):
    client = open_client(make_app(about=About(updated="2026-11-01")))
    answer = client.get("/index.md")
    assert answer.headers["content-type"] == "text/markdown; charset=utf-8"
    assert answer.headers["link"].startswith(f'<{SHOP}/>; rel="canonical"')
    assert "accept" not in answer.headers.get("vary", "").lower()
    assert answer.text.startswith(
        '---\ntitle: "Tea & cups"\ndescription: "All our teas."\n'
        f'canonical: "{SHOP}/"\ndoc_version: "1.0"\nlast_updated: "2026-11-01"\n---\n\n'
        f"> All actions and pages of this site: {SHOP}/llms.txt\n"
    )
    assert "# Tea" in answer.text
    assert answer.text.endswith(f"## Sitemap\n\n[All pages]({SHOP}/sitemap.md)\n")
    assert "# assam" in client.get("/teas/assam.md").text
    assert client.head("/teas/assam.md").headers["content-type"] == "text/markdown; charset=utf-8"
    assert client.get("/nowhere.md").status_code == 404
    assert client.get("/teas/nothing.md").status_code == 404


def test_the_addresses_in_a_pages_head_lead_to_the_same_page_in_other_formats(open_client):
    site, app = Site("Shop", "Sells.", url=SHOP), FastAPI()

    @app.get("/teas/{slug}", response_class=HTMLResponse)
    @site.page(title="A tea")
    async def tea(slug: Literal["earl grey"], lang: str = "en") -> str:
        address = f"/teas/{slug}?lang={lang}"
        head = page_meta(site.catalog, address, title=slug) + structured_data(site.catalog, address, title=slug)
        return f"<html><head><title>{slug}</title>{head}</head><body><main><h1>{slug} {lang}</h1></main></body></html>"

    app.add_middleware(AgentPublisher, site=site)
    client = open_client(app)
    page = client.get("/teas/earl grey?lang=de")
    links = re.findall(r'<link rel="(\w+)"(?: type="([^"]+)")? href="([^"]+)">', page.text)
    assert [rel for rel, _, _ in links] == ["canonical", "alternate", "alternate"]
    for _, kind, address in links:
        answer = client.get(address)
        assert answer.headers["content-type"].startswith(kind or "text/html")
        assert "earl grey de" in answer.text


def test_pages_whose_placeholders_have_few_values_are_listed_one_by_one(open_client):
    site, app = (
        Site("Shop", "Sells.", url=SHOP, plugins=[Discovery(robots=Robots(disallow=["/teas/black"]))]),
        FastAPI(),
    )

    @app.get("/teas/{kind}/{page}", response_class=HTMLResponse)
    @site.page(title="Teas")
    async def teas(kind: Literal["green", "black", "white & yellow"], page: Literal["1", "2"]) -> str:
        return f"<h1>{kind}</h1>"

    @app.get("/orders/{number}", response_class=HTMLResponse)
    @site.page(title="An order")
    async def order(number: int) -> str:
        return "<h1>Yours</h1>"

    @app.get("/account", response_class=HTMLResponse)  # which nobody has declared
    async def account() -> str:
        return "<h1>Yours</h1>"

    app.add_middleware(AgentPublisher, site=site)
    client = open_client(app)
    spaces = {"s": "http://www.sitemaps.org/schemas/sitemap/0.9"}
    found = [
        item.text for item in ElementTree.fromstring(client.get("/sitemap.xml").content).findall(".//s:loc", spaces)
    ]
    kinds = ("green", "white%20%26%20yellow")
    assert found == [f"{SHOP}/teas/{kind}/{page}" for kind in kinds for page in "12"]
    files = re.findall(r"\((.+)\)", client.get("/sitemap.md").text)
    assert files == [f"{address}.md" for address in found]
    assert {client.get(address).headers["content-type"] for address in found} == {"text/html; charset=utf-8"}
    assert {client.get(address).headers["content-type"] for address in files} == {"text/markdown; charset=utf-8"}


def test_a_page_that_does_not_say_what_it_is_has_the_words_of_its_declaration(open_client):
    site, app = Site("Shop", "Sells.", url=SHOP), FastAPI()

    @app.get("/teas", response_class=HTMLResponse)
    @site.page(title="All teas")
    async def teas() -> str:
        """Find a tea among all of ours."""
        return "<h1>Ours</h1>"

    app.add_middleware(AgentPublisher, site=site)
    text = open_client(app).get("/teas.md").text
    assert text.startswith('---\ntitle: "All teas"\ndescription: "Find a tea among all of ours."\ncanonical: ')


def test_head_is_answered_where_the_framework_only_knows_get(open_client):
    client = open_client(make_app())
    page = client.get("/teas/assam")
    head = client.head("/teas/assam")
    assert (head.status_code, head.content, head.headers["vary"]) == (200, b"", "Accept")
    assert head.headers["content-length"] == str(len(page.content))
    assert client.head("/orders").status_code == 405


def test_a_markdown_file_of_the_applications_own_is_left_alone(open_client):
    app = make_app()
    app.add_api_route("/index.md", lambda: PlainTextResponse("ours", media_type="text/markdown"))
    assert open_client(app).get("/index.md").text == "ours"


def test_a_document_that_is_left_out_is_nowhere(open_client):
    app = make_app(about=About(leave_out=["llms_txt", "ard", "agent_skills", "sitemap"]), plugins=["mcp"])
    client = open_client(app)
    for path in ("/llms.txt", "/.well-known/ard.json", "/.well-known/ai-catalog.json", "/sitemap.xml"):
        assert client.get(path).status_code == 404
    everything = [client.get(path) for path in ("/robots.txt", "/.well-known/api-catalog", "/index.md")]
    for answer in everything:
        text = answer.text + answer.headers.get("link", "")
        for name in ("llms.txt", "ard.json", "agent-skills", "sitemap"):
            assert name not in text


def test_a_protocol_that_is_not_published_is_not_advertised_either(open_client):
    left_out = [protocol.name for protocol in ALL if protocol.name not in ("woa", "api_catalog")]
    client = open_client(make_app(about=About(leave_out=left_out)))
    assert "agent.json" not in client.get("/.well-known/api-catalog").text
    assert "describedby" not in client.get("/.well-known/api-catalog").text


def test_leaving_out_what_is_not_there_is_a_mistake(open_client):
    with pytest.raises(DeclarationError, match='"llms" is not a protocol that is published'):
        open_client(make_app(about=About(leave_out=["llms"])))


@pytest.mark.parametrize(
    ("words", "line"),
    [
        ("Say hello!", "Say hello!"),
        ("Is it open? Ask here.", "Is it open?"),
        ("List teas of a kind, e.g. green ones. Sorted; fast.", "List teas of a kind, e.g. green ones."),
        ("List teas; by name only. There is more.", "List teas."),
        ("List teas", "List teas."),
    ],
)
def test_llms_txt_has_the_first_sentence_of_each_description(open_client, words, line):
    site = Site("Shop", "Sells tea.", url=SHOP)
    site.agent("teas", description=words)(lambda: "assam")
    assert f"- teas {{}}: {line}\n" in open_client(AgentPublisher(FastAPI(), site=site)).get("/llms.txt").text
