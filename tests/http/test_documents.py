"""How documents are served, over HTTP."""

import gzip
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, cast

import brotli
import pytest
from fastapi import FastAPI
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from awp_publish import About, AgentPublisher, Security, SessionUser, Site
from awp_publish.plugin import installed as plugins
from tests.client import TestClient
from tests.documents.known import ALL
from tests.installed import installed

SECURITY = Security(contact=["mailto:security@shop.example"], expires=datetime(2099, 1, 1, tzinfo=UTC))


def make_full_site() -> Site:
    """A site that has every document, but the one that only a site below a path has."""
    discovery = [cast(Any, plugins()[name].options)(security=SECURITY) for name in installed("discovery")]
    options = {"login": "/login", "user": SessionUser("user")}
    people = [cast(Any, plugins()[name].options)(**options) for name in installed("sign_in")]
    site = Site(
        "Shop",
        "Sells things.",
        url="https://shop.example",
        plugins=[*installed("mcp", "a2a"), *discovery, *people],
        secret_keys=["a-secret-key-of-this-test-and-nobody-else"],
    )
    site.page("/", title="The shop")
    return site


CATALOG = make_full_site().freeze()
EVERY_PATH = [
    document.path_in(CATALOG)
    for protocol in ALL
    for document in protocol.documents
    if document.condition is None or document.condition(CATALOG)
]
UNENCODED = {"accept-encoding": "identity"}


@pytest.fixture(scope="module")
def client() -> Iterator[TestClient]:
    """One application for all tests: none of them changes what it publishes."""
    site, app = make_full_site(), FastAPI()
    app.add_api_route("/", lambda: PlainTextResponse("Welcome."))

    @app.get("/search")
    @site.action("search")
    async def search(q: str) -> list[str]:
        """Search the shop's things by name; a long sentence, so that compressing the documents is worth it."""
        return [q]

    app.add_middleware(AgentPublisher, site=site)
    with TestClient(app, base_url="https://shop.example") as client:
        yield client


@pytest.mark.parametrize("path", EVERY_PATH)
class TestEveryDocument:
    def test_a_document_is_readable_from_any_origin_and_never_sniffed(self, client, path):
        headers = client.get(path, headers={"origin": "https://elsewhere.example"}).headers
        assert headers["access-control-allow-origin"] == "*"
        assert "access-control-allow-credentials" not in headers
        assert headers["x-content-type-options"] == "nosniff"

    def test_answers_head_with_the_headers_of_get_and_no_body(self, client, path):
        got, head = client.get(path), client.head(path)
        assert head.status_code == 200
        assert head.content == b""
        assert dict(head.headers) == dict(got.headers)

    def test_a_document_answers_a_preflight(self, client, path):
        asked = {"origin": "https://elsewhere.example", "access-control-request-method": "GET"}
        answer = client.options(path, headers=asked | {"access-control-request-headers": "if-none-match"})
        assert answer.status_code == 204
        assert answer.headers["access-control-allow-origin"] == "*"
        assert "GET" in answer.headers["access-control-allow-methods"]
        assert answer.headers["access-control-allow-headers"] == "*"

    def test_refuses_other_methods_and_says_which_there_are(self, client, path):
        for method in ("POST", "PUT", "PATCH", "DELETE"):
            answer = client.request(method, path)
            assert (answer.status_code, answer.headers["allow"]) == (405, "GET, HEAD, OPTIONS"), method
            assert answer.json()["code"] == "METHOD_NOT_ALLOWED", method

    def test_a_document_is_not_sent_again_to_a_client_that_has_it(self, client, path):
        first = client.get(path, headers=UNENCODED)
        for condition in ("{etag}", "W/{etag}", '"other", {etag}', '"a",W/"b" , {etag}', "*"):
            asked = {"if-none-match": condition.format(etag=first.headers["etag"])}
            for method in ("GET", "HEAD"):
                answer = client.request(method, path, headers=UNENCODED | asked)
                assert answer.status_code == 304, condition
                assert answer.content == b""
                assert answer.headers["etag"] == first.headers["etag"]
                for name in ("cache-control", "vary", "last-modified", "access-control-allow-origin"):
                    assert answer.headers[name] == first.headers[name]

    def test_a_document_has_a_strong_etag_that_differs_by_coding(self, client, path):
        codings = ("identity", "gzip", "br")
        etags = [client.get(path, headers={"accept-encoding": coding}).headers["etag"] for coding in codings]
        assert all(etag.startswith('"') and etag.endswith('"') for etag in etags)
        used = {client.get(path, headers={"accept-encoding": c}).headers.get("content-encoding") for c in codings}
        assert len(set(etags)) == len(used)

    def test_an_etag_of_one_coding_does_not_stand_for_another(self, client, path):
        plain = client.get(path, headers=UNENCODED)
        zipped = client.get(path, headers={"accept-encoding": "gzip", "if-none-match": plain.headers["etag"]})
        expected = 200 if zipped.headers.get("content-encoding") == "gzip" else 304
        assert zipped.status_code == expected

    def test_varies_by_accept_encoding_whatever_was_accepted(self, client, path):
        for coding in ("identity", "gzip"):
            assert client.get(path, headers={"accept-encoding": coding}).headers["vary"] == "Accept-Encoding"


@pytest.mark.parametrize(
    ("accepted", "chosen"),
    [
        ("gzip", "gzip"),
        ("br", "br"),
        ("", None),
    ],
)
def test_the_coding_that_the_client_likes_best_is_sent(client, accepted, chosen):
    plain = client.get("/.well-known/woa.json", headers=UNENCODED).content
    with client.stream("GET", "/.well-known/woa.json", headers={"accept-encoding": accepted}) as answer:
        body = b"".join(answer.iter_raw())
    assert answer.headers.get("content-encoding") == chosen
    assert int(answer.headers["content-length"]) == len(body)
    opened = {"gzip": gzip.decompress, "br": brotli.decompress, None: bytes}[chosen]
    assert opened(body) == plain


def test_every_start_publishes_the_same_bytes_and_etags(open_client):
    def start() -> TestClient:
        site, app = make_full_site(), Starlette()
        site.declare("status", method="GET", path="/status", description="Say how it goes.")
        return open_client(AgentPublisher(app, site=site))

    one, other = start(), start()
    for path in EVERY_PATH:
        for coding in ("identity", "gzip", "br"):
            headers = {"accept-encoding": coding}
            assert one.get(path, headers=headers).headers["etag"] == other.get(path, headers=headers).headers["etag"]


def test_documents_of_several_addresses_name_the_address_that_was_asked(open_client):
    site = Site(name="Shop", description="Sells.", url=["https://shop.example", "https://laden.example:8443"])
    site.declare("status", method="GET", path="/status", description="Say how it goes.")
    client = open_client(AgentPublisher(Starlette(), site=site))

    def base(host: str) -> str:
        return client.get("/.well-known/woa.json", headers={"host": host}).json()["transports"]["rest"]["base"]

    assert base("shop.example") == "https://shop.example"
    assert base("LADEN.example:8443") == "https://laden.example:8443"
    assert base("evil.example") == "https://shop.example"


def test_the_host_header_of_a_request_never_reaches_a_document(client):
    answer = client.get("/.well-known/woa.json", headers={"host": "evil.example", "x-forwarded-host": "evil.example"})
    assert b"evil" not in answer.content


def test_a_mounted_application_serves_its_documents_below_its_mount(open_client):
    site = Site(name="Shop", description="Sells things.", url="https://example.com/shop")
    site.declare("status", method="GET", path="/status", description="Say how it goes.")
    shop = AgentPublisher(Starlette(routes=[Route("/status", lambda request: PlainTextResponse("fine"))]), site=site)
    outer = Starlette()
    outer.mount("/shop", shop)
    client = open_client(outer)
    document = client.get("/shop/.well-known/woa.json").json()
    rest = document["transports"]["rest"]
    assert rest["base"] + rest["invoke_path"] == "https://example.com/shop/agents/{agent_id}/invoke"
    assert client.post("/shop/agents/status/invoke", json={"input": {}}).json() == "fine"


def test_a_server_that_leaves_the_root_path_in_is_understood(open_client):
    site = Site(name="Shop", description="Sells things.", url="https://example.com/api")
    app = FastAPI()

    @app.get("/things")
    @site.action("things")
    async def things() -> list[str]:
        """List the things."""
        return ["one"]

    app.add_middleware(AgentPublisher, site=site)
    client = open_client(app, root_path="/api")
    for prefix in ("", "/api"):
        assert client.get(f"{prefix}/agent.json").status_code == 200
        assert client.post(f"{prefix}/agents/things/invoke", json={"input": {}}).json() == ["one"]


@pytest.mark.needs("agent_json")
@pytest.mark.parametrize(("root_path", "taken"), [("", ""), ("/api", ""), ("/api", "/api")])
def test_a_refusal_of_a_site_below_a_path_names_addresses_that_lead_there(open_client, root_path, taken):
    site = Site("Shop", "Sells things.", url="https://example.com/api", plugins=installed("mcp", "a2a", "awp"))

    @site.agent("things")
    async def things() -> list[str]:
        """List the things."""
        return ["one"]

    client = open_client(AgentPublisher(Starlette(), site=site), root_path=root_path)
    for address, document in (
        ("/agents/thing/invoke", "/api/.well-known/woa.json"),
        ("/agents/actions/thing", "/api/agent.json"),
    ):
        problem = client.post(f"{taken}{address}", json={"input": {}}).json()
        assert problem["recovery"].startswith(f"GET {document} ")
        assert problem["instance"].partition("#")[0] == f"/api{address}"
        assert problem["type"].startswith("https://example.com/api/agents/problems/")
        page = client.get(taken + problem["type"].removeprefix("https://example.com/api")).text
        assert f"GET {document} " in page


def test_documents_point_at_the_openapi_of_the_application(client):
    link = client.get("/agent.json").headers["link"]
    assert '</openapi.json>; rel="service-desc"; type="application/json"' in link
    assert client.get("/openapi.json").status_code == 200


@pytest.mark.needs("a2a")
def test_the_a2a_extension_is_described_by_a_document_like_all_others(client):
    answer = client.get("/a2a/skills")
    assert answer.headers["content-type"] == "text/markdown; charset=utf-8"
    assert answer.headers["access-control-allow-origin"] == "*"
    assert client.get("/a2a/skills", headers={"if-none-match": answer.headers["etag"]}).status_code == 304
    card = client.get("/.well-known/agent-card.json").json()
    assert card["capabilities"]["extensions"][0]["uri"] == "https://shop.example/a2a/skills"


@pytest.mark.needs("woa")
@pytest.mark.needs("awas")
def test_no_document_points_at_one_that_is_left_out(open_client):
    site = Site("Shop", "Sells.", url="https://shop.example", about=About(leave_out=["awas", "woa"]))
    site.declare("search", method="GET", path="/search", description="Search.")
    client = open_client(AgentPublisher(Starlette(), site))
    manifests = ("/.well-known/mcp-manifest.json", "/.well-known/a2a-manifest.json", "/.well-known/awas.json")
    for path in ("/.well-known/ai-actions.json", *manifests):
        assert client.get(path).status_code == 404
    protocols = client.get("/agent.json").json()["protocols"]
    assert "x-awas" not in protocols
    assert "document" not in protocols["x-woa"]


@pytest.mark.needs("status")
@pytest.mark.needs("plain")
def test_while_a_site_does_not_work_no_action_of_it_is_called_operational(site, open_client):
    site.declare("search", method="GET", path="/search", description="Search.")
    client = open_client(AgentPublisher(Starlette(routes=[Route("/search", PlainTextResponse("x"))]), site))
    site.set_status(operational=False)
    site.refresh()
    answer = client.get("/agents/status").json()
    assert (answer["operational"], answer["degraded_actions"]) == (False, ["search"])
    assert answer["actions"] == {"search": "degraded"}
    assert client.get("/agent.json").json()["agent_status"]["degraded_actions"] == ["search"]


def test_objects_of_the_first_start_are_old_for_the_collector_and_none_is_frozen():
    start = """if True:
        import gc
        frozen = gc.get_freeze_count()  # CPython 3.12 starts with some
        from starlette.applications import Starlette
        from awp_publish import AgentPublisher, Site
        site = Site("Shop", "Sells things.", "https://shop.example")
        AgentPublisher(Starlette(), site=site).open()
        assert gc.isenabled()
        assert gc.get_freeze_count() <= frozen
        assert any(one is site.catalog for one in gc.get_objects(generation=2))
    """
    done = subprocess.run([sys.executable, "-c", start], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
