"""Headers that are part of a route's answer reach the caller at every door; a route may take any query."""

import json
from typing import Any

import pytest
from fastapi import FastAPI, Request, Response

from awp_publish import AgentPublisher
from awp_publish.client import AgentClient
from tests.doors.adapters import DOORS
from tests.guarded import KEYS, make_shop
from tests.installed import installed
from tests.plugins.mcp.mcp_messages import message, post

LINK = '</books?page=2>; rel="next"'


@pytest.fixture
def app():
    site, app = make_shop(plugins=installed("mcp", "a2a", "awp", "bridge"), secret_keys=KEYS), FastAPI()

    documented: dict[int | str, dict[str, Any]] = {200: {"headers": {"X-Stock": {"schema": {"type": "integer"}}}}}

    @app.get("/books", responses=documented)
    @site.action("list_books", idempotency="1h")
    async def list_books(response: Response) -> list[str]:
        """List the books; X-Shelf says on which shelf they are."""
        headers = {
            "x-total-count": "3",
            "link": LINK,
            "etag": '"1"',
            "X-Shelf": "B",
            "x-stock": "9",
            "x-inner": "secret",
        }
        response.headers.update(headers)
        return ["Emma"]

    @app.get("/extra")
    @site.action("find_books")
    async def find_books(request: Request, title: str = "") -> dict[str, str]:
        """Find books by title and by any member of `extra`."""
        return dict(request.query_params)

    app.add_middleware(AgentPublisher, site=site)
    return app


@pytest.mark.parametrize("door", DOORS)
def test_headers_that_are_part_of_the_answer_reach_the_caller(app, door):
    with AgentClient(app, door=door) as client:
        for _ in range(2):  # the second time from the record
            answer = client.send("list_books", key="k-1")
            headers = {name.replace("_", "-"): value for name, value in answer.headers.items()}
            expected = {"x-total-count": "3", "link": LINK, "etag": '"1"', "x-shelf": "B", "x-stock": "9"}
            assert expected.items() <= headers.items()
            assert "x-inner" not in headers


@pytest.mark.needs("bridge")
def test_the_bridge_passes_them_on(app, open_client):
    with open_client(app).websocket_connect("/actions-bridge", headers={"host": "shop.example"}) as socket:
        socket.send_json({"type": "action_call", "call_id": "c", "name": "list_books", "arguments": {}})
        headers = socket.receive_json()["headers"]
    assert (headers["x-total-count"], headers["x-shelf"], "x-inner" in headers) == ("3", "B", False)


@pytest.mark.needs("mcp")
def test_a_model_reads_them_over_mcp(app, open_client):
    answer = post(open_client(app), message("tools/call", {"name": "list_books", "arguments": {}}))
    [_, told] = answer.json()["result"]["content"]
    assert "x-total-count: 3" in told["text"].splitlines()


@pytest.mark.parametrize("door", DOORS)
def test_a_route_that_reads_the_query_itself_takes_further_members(app, open_client, door):
    caller = DOORS[door](open_client(app))
    assert caller.call("find_books", {"title": "Emma", "extra.color": "red"}).output == {
        "title": "Emma",
        "extra.color": "red",
    }


def test_other_routes_take_no_further_members(app, open_client):
    answer = open_client(app).get("/agents/actions/list_books", params={"colour": "red"})
    assert (answer.status_code, json.loads(answer.text)["code"]) == (422, "INVALID_INPUT")
