"""A real Django application that nobody here wrote: django-oscar's shop, unchanged, behind gunicorn and uvicorn."""

import os
from collections.abc import Iterator, Mapping

import httpx
import httpx2
import pytest

from awp_publish.checks import check_documents
from tests.django.servers import DJANGO, GUNICORN, ROOT, UVICORN, environment, serving
from tests.plugins.a2a.a2a_client import make_caller, output, problem, state
from tests.plugins.mcp.mcp_messages import MODERN, connect_to
from tests.processes import run

pytestmark = [pytest.mark.slow, pytest.mark.limit(180)]  # the tables of a large project are made

SERVER = "tests.django.oscar_shop.server"
COMMANDS = {
    "wsgi": (*GUNICORN, "{place}", f"{SERVER}:wsgi"),
    "asgi": (*UVICORN, "{port}", f"{SERVER}:asgi"),
}
HOST = {"host": "shop.example"}
DOCUMENTS = ("/agent.json", "/.well-known/woa.json", "/.well-known/ai-actions.json", "/.well-known/agent-card.json")


@pytest.fixture(scope="module")
def shops(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mapping[str, str]]:
    """Both servers, in front of one database. The system checks have nothing to say, else there are none."""
    os.environ["OSCAR_DATABASE"] = str(tmp_path_factory.mktemp("oscar") / "oscar.db")
    try:
        assert run(SERVER, cwd=ROOT, env=environment()).returncode == 0
        with serving(COMMANDS) as addresses:
            yield addresses
    finally:
        del os.environ["OSCAR_DATABASE"]


@pytest.fixture(params=DJANGO)
def shop(request, shops) -> str:
    address: str = shops[request.param]
    return address


@pytest.fixture
def visitor(shop) -> Iterator[httpx2.Client]:
    with httpx2.Client(base_url=shop, timeout=30) as client:
        yield client


def call(visitor: httpx2.Client, action: str, **given: object) -> httpx2.Response:
    return visitor.post(f"/agents/{action}/invoke", json={"input": given})


def test_the_documents_tell_what_the_views_take(visitor):
    documents = {path: visitor.get(path).content for path in DOCUMENTS}
    assert [finding for finding in check_documents(documents) if finding.level == "error"] == []
    actions = {action["id"]: action for action in visitor.get("/agent.json").json()["actions"]}
    assert set(actions) == {
        "search_products",
        "show_product",
        "add_to_basket",
        "show_basket",
        "show_orders",
    }
    assert set(actions["add_to_basket"]["inputs"]) == {"pk", "quantity"}
    assert "price-asc" in str(actions["search_products"]["inputs"]["sort_by"])


def test_the_catalogue_is_searched_and_a_product_is_shown(visitor):
    found = call(visitor, "search_products", q="emma", sort_by="price-asc").json()
    assert "Emma" in found
    assert "Moby-Dick" not in found
    assert call(visitor, "search_products", sort_by="colour").json()["errors"][0]["pointer"] == "/sort_by"
    assert "£12.00" in call(visitor, "show_product", product_slug="emma", pk="1").json()
    assert call(visitor, "show_product", product_slug="emma", pk="99").status_code == 404


def test_a_basket_is_filled_and_belongs_to_its_caller(visitor, shop):
    answer = call(visitor, "add_to_basket", pk=1, quantity=2).json()
    assert answer["location"] == "/basket/"
    assert answer["messages"][0] == "2 copies of Emma have been added to your basket."
    assert "£24.00" in call(visitor, "show_basket").json()
    with httpx2.Client(base_url=shop, timeout=30) as other:
        assert "Your basket is empty" in call(other, "show_basket").json()


def test_an_error_message_for_people_is_a_refusal(visitor):
    refused = call(visitor, "add_to_basket", pk=2, quantity=1)
    assert (refused.status_code, refused.json()["code"], refused.json()["detail"]) == (
        422,
        "REFUSED",
        "no stock available",
    )
    assert "not able to ship more" in call(visitor, "add_to_basket", pk=1, quantity=20_000).json()["detail"]
    assert call(visitor, "add_to_basket", pk=1, quantity=0).json()["errors"][0]["pointer"] == "/quantity"


def test_customers_are_known_by_the_session_of_the_shop(visitor):
    assert call(visitor, "show_orders").json()["code"] == "AUTHENTICATION_REQUIRED"
    visitor.get("/accounts/login/")
    form = {
        "login-username": "ann@shop.example",
        "login-password": "only for tests",
        "login_submit": "Log In",
        "csrfmiddlewaretoken": visitor.cookies["csrftoken"],
    }
    assert visitor.post("/accounts/login/", data=form).status_code == 302
    assert "Order History" in call(visitor, "show_orders").json()
    foreign = visitor.post("/agents/show_orders/invoke", json={"input": {}}, headers={"origin": "https://evil.example"})
    assert foreign.status_code == 403


def test_pages_are_as_they_were(visitor):
    assert "Moby-Dick" in visitor.get("/search/", params={"q": "moby"}).text
    assert visitor.post("/basket/add/1/", data={"quantity": 1}).status_code == 403  # no CSRF token


async def test_the_official_mcp_client_shops(shop):
    async with httpx2.AsyncClient(headers=HOST) as http, connect_to(f"{shop}/mcp", http, MODERN) as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert tools["search_products"].annotations.read_only_hint is True
        assert tools["add_to_basket"].annotations.read_only_hint is False
        found = await client.call_tool("search_products", {"q": "emma"})
        assert "Emma" in found.content[0].text
        refused = await client.call_tool("add_to_basket", {"pk": 2, "quantity": 1})
        assert refused.is_error
        assert "no stock available" in refused.content[0].text
        assert not (await client.call_tool("add_to_basket", {"pk": 1, "quantity": 1})).is_error


async def test_the_official_a2a_client_shops(shop):
    async with httpx.AsyncClient(timeout=30) as http:
        caller = make_caller(http, f"{shop}/a2a", "1.0 JSON-RPC")
        done = await caller.call("add_to_basket", {"pk": 1, "quantity": 1})
        assert (state(done), output(done)["location"]) == ("completed", "/basket/")
        assert problem(await caller.call("add_to_basket", {"pk": 2, "quantity": 1}))["detail"] == "no stock available"
