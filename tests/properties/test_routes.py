"""Routes are read as Starlette routes requests: what is published is reached, by the same endpoint and values."""

from collections.abc import Callable
from typing import Any

from hypothesis import HealthCheck, assume, given, settings, strategies as st
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Host, Mount, Route, Router

from awp_publish import AgentPublisher, DeclarationError, Site
from tests.client import TestClient
from tests.examples import examples

URL = "https://shop.example"
ANY = settings(deadline=None, max_examples=examples(60), suppress_health_check=list(HealthCheck))
SEGMENTS = st.sampled_from(["a", "b", "{x}", "{n:int}", "a-{x}"])
VALUES: dict[str, str | int] = {"x": "v", "n": 7}
PLACES = st.sampled_from(["", "", "/m", "/{x}", "shop.example", "other.example"])

Row = tuple[str, str, tuple[str, ...]]
"""Where a route stands, its path in it, and its methods."""


@st.composite
def rows(draw: st.DrawFn) -> list[Row]:
    table = list[Row]()
    for _ in range(draw(st.integers(1, 5))):
        place, segments = draw(PLACES), draw(st.lists(SEGMENTS, min_size=1, max_size=2))
        names = [segment for segment in (place.removeprefix("/"), *segments) if "{" in segment]
        if len({name.strip("a-{}").partition(":")[0] for name in names}) == len(names):  # no name stands twice
            methods = draw(st.sampled_from([("GET",), ("POST",), ("GET", "POST")]))
            table.append((place, "/" + "/".join(segments), methods))
    return table


def endpoint(name: str) -> Callable[[Request], Any]:
    async def answer(request: Request) -> Response:
        """Answer with what was asked."""
        return JSONResponse({"route": name, "values": request.path_params})

    return answer


def application_of(table: list[Row]) -> Starlette:
    routes = list[BaseRoute]()
    for number, (place, path, methods) in enumerate(table):
        route = Route(path, endpoint(f"route_{number}"), methods=list(methods), name=f"route_{number}")
        if place.startswith("/"):
            routes.append(Mount(place, routes=[route]))
        else:
            routes.append(Host(place, Router([route])) if place else route)
    return Starlette(routes=routes)


def filled(template: str) -> str:
    for name, value in VALUES.items():
        template = template.replace(f"{{{name}:int}}", str(value)).replace(f"{{{name}}}", str(value))
    return template


def addresses(table: list[Row]) -> list[tuple[str, str]]:
    """Return the methods and addresses at which the routes stand."""
    return [
        (method, filled((place if place.startswith("/") else "") + path))
        for place, path, methods in table
        for method in methods
    ]


@ANY
@given(rows())
def test_an_included_route_is_called_exactly_where_starlette_reaches_it(table):
    assume(table)
    app, site = application_of(table), Site("Shop", "Sells.", URL)
    mounts = sorted({place for place, _, _ in table if place.startswith("/")})
    site.include(operations=[f"route_{number}" for number in range(len(table))], mounts=mounts)
    plain = TestClient(app, base_url=URL)

    def reached(method: str, path: str) -> Any:
        answer = plain.request(method, path)
        return answer.json() if answer.status_code == 200 else {"route": "none", "values": {}}

    try:
        site.freeze(app)
    except DeclarationError:
        assert all(reached(*address)["route"] == "none" for address in addresses(table))
        return
    client = TestClient(AgentPublisher(app, site=site, check=False), base_url=URL)
    for action in site.catalog.actions:
        assert action.target is not None
        method, path = action.target.method, filled(action.target.path)
        expected = reached(method, path)
        inputs = {name: VALUES[name] for name in VALUES if f"{{{name}" in action.target.path}
        called = client.post(f"/agents/{action.agent_id}/invoke", json={"input": inputs})
        if action.id.startswith(expected["route"]):
            assert called.json() == expected
        else:
            assert called.status_code in (404, 405, 422)  # it is another route's address, or within another mount
    actions = [(action.target.method, action.id) for action in site.catalog.actions if action.target]
    results = [*actions, *((item.method, item.name) for item in site.left_out)]
    for method, path in addresses(table):
        route = reached(method, path)["route"]
        assert route == "none" or any((way, name.startswith(route)) == (method, True) for way, name in results)
