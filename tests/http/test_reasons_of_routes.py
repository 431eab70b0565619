"""What a route says when it refuses a call reaches the caller at every door, in the words of the site."""

import pytest
from fastapi import FastAPI, HTTPException
from fastapi.responses import JSONResponse

from awp_publish import AgentPublisher
from tests.doors.adapters import DOORS
from tests.guarded import KEYS, make_shop
from tests.installed import installed

REASONS = {
    "object": (HTTPException(409, {"reason": "Sold out.", "available": 2}), "Sold out."),
    "object without words": (HTTPException(409, {"available": 2, "wanted": 5}), "available: 2; wanted: 5"),
    "list": (HTTPException(409, ["The shop is closed", "The book is sold out"]), "closed; The book is sold out"),
    "list of objects": (HTTPException(409, [{"field": "copies", "message": "at most 2"}]), "at most 2"),
    "code alone": (HTTPException(409, {"code": "sold_out"}), "sold_out"),
    "empty detail": ({"message": "Sold out.", "detail": {}}, "Sold out."),
    "errors": ({"errors": ["Sold out", {"title": "Closed", "status": "409"}]}, "Sold out; Closed"),
    "errors by name": ({"errors": {"copies": ["at most 2"]}}, "copies: at most 2"),
    "both": ({"message": "Not ordered.", "errors": [{"msg": "at most 2 copies"}]}, "Not ordered: at most 2 copies"),
    "facts beside": ({"message": "Set the shop up.", "detail": {"at": "/setup"}}, "Set the shop up: at: /setup"),
    "title": ({"title": "Closed", "error": {"code": 7, "message": "Until Monday."}}, "Closed: Until Monday."),
    "oauth": ({"error": "invalid_grant", "error_description": "The code has expired."}, "The code has expired."),
    "nothing": ({"detail": [], "ok": False, "errors": {}}, "Conflict."),
    "deep": ({"detail": [[[[[["x"]]]]]]}, "Conflict."),
}


@pytest.fixture(params=DOORS)
def open_door(open_client, request):
    def open_door(add_routes, **options):
        site, app = make_shop(plugins=installed("mcp", "a2a", "awp"), secret_keys=KEYS, **options), FastAPI()
        add_routes(app, site)
        app.add_middleware(AgentPublisher, site=site)
        return DOORS[request.param](open_client(app))

    return open_door


@pytest.mark.parametrize("shape", REASONS)
def test_the_reason_is_told_whatever_its_shape(open_door, shape):
    refusal, words = REASONS[shape]

    def add_routes(app, site):
        @app.post("/order")
        @site.action("order_book")
        async def order_book() -> object:
            """Order a book."""
            if isinstance(refusal, HTTPException):
                raise refusal
            return JSONResponse(refusal, 409)

    answer = open_door(add_routes).call("order_book")
    assert (answer.code, words in answer.detail) == ("REFUSED", True), answer.detail


@pytest.mark.parametrize("status", [401, 403])
def test_the_recovery_of_the_sites_own_code_is_what_its_401_and_403_answer(open_door, status):
    def add_routes(app, site):
        @app.post("/login")
        @site.action("log_in")
        async def log_in() -> str:
            """Log in."""
            raise HTTPException(status, {"code": "WRONG_PASSWORD", "message": "No such account."})

    answer = open_door(add_routes, errors={"WRONG_PASSWORD": "ask the user for the password"}).call("log_in")
    assert (answer.code, answer.detail) == ("WRONG_PASSWORD", "No such account.")
    assert answer.recovery == "ask the user for the password"


def test_a_refusal_with_a_code_of_the_site_has_no_title_about_the_caller(open_client):
    site, app = make_shop(errors={"WRONG_PASSWORD": "ask the user for the password"}), FastAPI()

    @app.post("/login")
    @site.action("log_in")
    async def log_in() -> str:
        """Log in."""
        raise HTTPException(401, {"code": "WRONG_PASSWORD", "message": "No such account."})

    app.add_middleware(AgentPublisher, site=site)
    assert open_client(app).post("/agents/actions/log_in").json()["title"] == "The action refused the call"


@pytest.mark.parametrize(
    ("status", "headers", "code", "answered"),
    [
        (200, None, "HANDLER_FAILED", 500),
        (204, None, "HANDLER_FAILED", 500),
        (303, {"Location": "/login"}, "HANDLER_REDIRECTED", 502),
        (399, None, "HANDLER_REDIRECTED", 502),
        (400, None, "REFUSED", 400),
        (599, None, "HANDLER_FAILED", 599),
        (600, None, "HANDLER_FAILED", 500),
        (-1, None, "HANDLER_FAILED", 500),
    ],
)
def test_a_status_that_is_no_error_of_http_does_not_become_the_status_of_a_problem(
    open_client, status, headers, code, answered
):
    site, app = make_shop(), FastAPI()

    @site.agent("order_book")
    async def order_book() -> str:
        """Order a book."""
        raise HTTPException(status, "Sold out.", headers)

    @app.post("/list")
    @site.action("list_books")
    async def list_books() -> object:
        """List the books."""
        return JSONResponse({"detail": "Sold out."}, 700)

    app.add_middleware(AgentPublisher, site=site)
    client = open_client(app)
    refusal = client.post("/agents/actions/order_book")
    problem = refusal.json()
    assert (refusal.status_code, problem["status"], problem["code"]) == (answered, answered, code)
    assert (problem["detail"], problem.get("location")) == ("Sold out.", headers and headers["Location"])
    assert client.post("/agents/actions/list_books").status_code == 500
