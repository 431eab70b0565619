"""Who is signed in is asked of the site in every call, once: in the request that goes to the route, where it can be."""

import gc
from collections import Counter
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlencode

import pytest
from fastapi import Depends
from starlette.middleware import Middleware

from awp_publish import current_caller
from benchmarks.measure import Case, ask
from benchmarks.person import hidden_fields
from tests.client import TestClient
from tests.plugins.sign_in.shop import URL, Agent, customer, invoke, make_shop

WAYS: dict[str, dict[str, Any]] = {
    "routed": {},
    "unrouted": {},
    "background": {"execution": "async"},
    "confirmed": {"confirm": True},
    "hidden": {"audience": "known"},
}
"""Actions that are asked about at the route, before it, and by the gates."""


class CountPasses:
    """Middleware of the site that counts requests by their path, and headers of a body of those that have none."""

    def __init__(self, app, passes: Counter[str]) -> None:
        self.app, self.passes = app, passes

    async def __call__(self, scope, receive, send) -> None:
        if scope["type"] == "http":
            self.passes[scope["path"]] += 1
            names = [name.decode() for name, _ in scope["headers"] if scope["method"] == "GET"]
            self.passes.update(name for name in names if name.startswith(("content-", "transfer-")))
        await self.app(scope, receive, send)


class Blocking:
    """A shop that may block a person, and whose route counts the orders that it has placed."""

    def __init__(self, sessions_outside: bool) -> None:
        self.blocked: set[str] = set()
        self.orders = 0
        self.passes: Counter[str] = Counter()

        def find_user(request) -> str | None:
            name = request.session.get("user")
            return None if name in self.blocked else name

        plugins = ["mcp", "jobs"]
        app = make_shop(sessions_outside=sessions_outside, user=find_user, settings={"plugins": plugins})
        counting = Middleware(CountPasses, passes=self.passes)
        app.user_middleware.insert(0 if sessions_outside else len(app.user_middleware), counting)

        @app.post("/gifts")
        @app.state.site.action("send_gift", auth_required=True, idempotency=True)
        async def send_gift(copies: int, name: str = Depends(customer)) -> str:
            """Send a gift."""
            self.orders += 1
            return f"{copies} from {name}"

        for name, options in WAYS.items():
            declare = app.state.site.agent if name == "unrouted" else app.state.site.action

            @declare(name, auth_required=True, **options)
            async def give() -> str:
                """Give something."""
                self.orders += 1
                return "given"

            if name != "unrouted":
                app.post(f"/{name}")(give)

        self.http = TestClient(app, base_url=URL)
        self.token = ""
        self.tests = 0

    def send(self, key: str, copies: object = 1):
        headers = {"authorization": f"Bearer {self.token}", "idempotency-key": f"{key} of {self.tests}"}
        return self.http.post("/agents/send_gift/invoke", json={"input": {"copies": copies}}, headers=headers)


@pytest.fixture(scope="module", params=[False, True], ids=["sessions inside", "sessions outside"])
def opened(request) -> Iterator[Blocking]:
    made = Blocking(request.param)
    with made.http:
        made.token = Agent(made.http, TestClient(made.http.app, base_url=URL)).sign_in("ann")["access_token"]
        yield made


@pytest.fixture
def shop(opened) -> Blocking:
    """The shop as it was at first: nobody is blocked, and nothing is ordered."""
    opened.blocked.clear()
    opened.passes.clear()
    opened.orders, opened.tests = 0, opened.tests + 1
    return opened


def test_the_site_is_asked_by_requests_that_have_no_body(shop):
    agent = Agent(shop.http, TestClient(shop.http.app, base_url=URL))
    page = agent.follow(agent.ask(), "ben")
    form = urlencode({**hidden_fields(page.text), "answer": "allow", "scope": "orders"}).encode()
    kind = {"content-type": "application/x-www-form-urlencoded"}
    for body in (form, iter([form])):  # which is sent in chunks
        answer = agent.browser.post("/agents/sign-in/consent", content=body, headers=kind, follow_redirects=False)
        assert answer.status_code in (303, 409)
    assert not {"content-type", "content-length", "transfer-encoding"} & shop.passes.keys()


def test_a_blocked_person_reaches_no_route_and_gets_no_recorded_answer(shop):
    assert shop.send("first").json() == "1 from ann"
    shop.blocked.add("ann")
    for key in ("first", "second"):
        refused = shop.send(key)
        assert refused.status_code == 401
        assert 'error="invalid_token"' in refused.headers["www-authenticate"]
        assert "has signed out" in refused.json()["detail"]
    assert shop.orders == 1


def test_a_blocked_person_learns_nothing_from_the_gates_and_nothing_runs(shop):
    shop.blocked.add("ann")
    assert shop.send("first", "many").status_code == 401
    for name in WAYS:
        assert invoke(shop.http, name, shop.token).status_code == (404 if name == "hidden" else 401), name
    assert shop.orders == 0
    shop.blocked.clear()
    assert shop.send("first", "many").status_code == 422
    assert [invoke(shop.http, name, shop.token).status_code for name in WAYS] == [200, 200, 202, 428, 200]


def test_a_key_of_a_refused_call_is_free(shop):
    shop.blocked.add("ann")
    assert shop.send("first").status_code == 401
    shop.blocked.clear()
    assert shop.send("first").json() == "1 from ann"
    assert shop.orders == 1


def test_a_call_passes_the_sites_middleware_once_on_its_way_to_the_route(shop):
    answer = shop.send("first")
    assert answer.json() == "1 from ann"
    assert "set-cookie" not in answer.headers
    del shop.passes["/agents/send_gift/invoke"]  # the agent's own request
    assert shop.passes == {"/gifts": 1}


@pytest.mark.parametrize(("caller", "status"), [("ann", 200), ("somebody who is blocked", 401), ("nobody", 200)])
async def test_a_call_leaves_no_circles_for_the_garbage_collector(shop, caller, status):
    token = [] if caller == "nobody" else [(b"authorization", f"Bearer {shop.token}".encode())]
    path = f"/agents/actions/{'list_books' if caller == 'nobody' else 'read_profile'}"
    case = Case("a call", shop.http.app, path, "GET", ((b"host", b"shop.example"), *token))
    shop.blocked |= {"ann"} if caller == "somebody who is blocked" else set()
    assert (await ask(case)).status == status
    gc.freeze()  # what there is already is not looked through
    gc.disable()
    try:
        for _ in range(20):
            await ask(case)
        assert gc.collect() < 200  # a call that takes long has a task, which is one
    finally:
        gc.enable()
        gc.unfreeze()


def test_a_blocked_person_is_refused_by_guarded_routes_too(open_client):
    blocked: set[str] = set()

    def find_user(request) -> str | None:
        name = request.session.get("user")
        return None if name in blocked else name

    app = make_shop(user=find_user, settings={"guard_routes": True})

    @app.get("/caller")
    @app.state.site.action("name_caller", auth_required=True)
    async def name_caller() -> str:
        """Name the caller, whom only the gates have checked."""
        caller = current_caller()
        return caller.id if caller is not None else ""

    shop = open_client(app)
    headers = {"authorization": f"Bearer {Agent(shop, TestClient(app, base_url=URL)).sign_in('ann')['access_token']}"}
    assert shop.get("/caller", headers=headers).json() == "ann"
    blocked.add("ann")
    refused = shop.get("/caller", headers=headers)
    assert refused.status_code == 401
    assert "has signed out" in refused.json()["detail"]
