"""FastAPI applications: where handlers live, how decorators stand, and what an application does to its own document."""

import functools
from typing import Any

import pytest
from fastapi import APIRouter, FastAPI, Request
from pydantic import BaseModel, Field
from starlette.applications import Starlette
from starlette.routing import Mount

from awp_publish import AgentPublisher


class Book(BaseModel):
    title: str


class Unwritable:
    """No JSON Schema knows it."""


def passing(function):
    """A decorator that keeps what it wraps recognisable."""

    @functools.wraps(function)
    async def wrapper(*args: Any, **kwargs: Any) -> Any:
        return ["passed", await function(*args, **kwargs)]

    return wrapper


# --- Where the decorator stands ---


def test_the_decorator_stands_above_or_below_the_route_and_returns_the_function(site, start):
    app = FastAPI()

    async def below(a: int) -> int:
        """Below."""
        return a

    async def above(a: int) -> int:
        """Above."""
        return a

    assert site.action("below")(below) is below
    app.get("/below")(below)
    assert site.action("above")(app.get("/above")(above)) is above
    front = start(app)
    assert [front.call(name, {"a": 1}) for name in ("below", "above")] == [1, 1]


def test_decorators_may_lie_between_route_and_action(site, start):
    app = FastAPI()

    @app.get("/inside")
    @passing
    @site.action("inside")
    async def inside(a: int) -> Any:
        """Inside."""
        return a

    @app.get("/outside")
    @site.action("outside")
    @passing
    async def outside(a: int) -> Any:
        """Outside."""
        return a

    @site.action("around")
    @passing
    @app.get("/around")
    async def around(a: int) -> Any:
        """Around: the route leads to the function without the decorator."""
        return a

    front = start(app)
    assert [front.call(name, {"a": 1}) for name in ("inside", "outside")] == [["passed", 1]] * 2
    assert front.call("around", {"a": 1}) == 1


def test_a_decorator_that_hides_what_it_wraps_is_told(site, refusal):
    app = FastAPI()

    def hiding(function):
        async def wrapper(a: int) -> Any:
            return await function(a)

        return wrapper

    @app.get("/hidden")
    @hiding
    @site.action("hidden")
    async def hidden(a: int) -> int:
        """Hidden."""
        return a

    words = refusal(app)
    assert words.startswith('action "hidden": no route of this application leads to tests.declare.')
    assert words.endswith(
        "Give it a route, keep functools.wraps in its decorators, declare it before as_view(), or use @site.agent."
    )


def test_partials_of_one_function_are_different_handlers(site, start):
    app = FastAPI()

    async def scaled(factor: int, a: int) -> int:
        """Scale."""
        return factor * a

    for name, factor in (("double", 2), ("triple", 3)):
        app.get(f"/{name}")(site.action(name)(functools.partial(scaled, factor)))
    front = start(app)
    assert [front.call(name, {"a": 5}) for name in ("double", "triple")] == [10, 15]


class Scale:
    """Unhashable, and equal to its siblings: only identity tells these handlers apart."""

    def __init__(self, factor: int) -> None:
        self.factor = factor

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Scale)

    __hash__ = None  # type: ignore[assignment]

    async def __call__(self, a: int) -> int:
        """Scale."""
        return self.factor * a

    async def scale(self, a: int) -> int:
        """Scale."""
        return self.factor * a


def test_objects_and_bound_methods_are_handlers(site, start):
    app, double, triple = FastAPI(), Scale(2), Scale(3)
    app.get("/1")(site.action("object_double")(double))
    app.get("/2")(site.action("object_triple")(triple))
    app.add_api_route("/3", double.scale)
    app.add_api_route("/4", triple.scale)
    site.action("method_double")(double.scale)
    site.action("method_triple")(triple.scale)
    front = start(app)
    names = ("object_double", "object_triple", "method_double", "method_triple")
    assert [front.call(name, {"a": 5}) for name in names] == [10, 15, 10, 15]


def test_a_method_may_be_decorated_in_its_class(site, start):
    class Shop:
        factor = 2

        @site.action("scale")
        async def scale(self, a: int) -> int:
            """Scale."""
            return self.factor * a

        @site.action("fixed")
        @staticmethod
        async def fixed(a: int) -> int:
            """Return it."""
            return a

    app, shop = FastAPI(), Shop()
    app.add_api_route("/scale", shop.scale)
    app.add_api_route("/fixed", shop.fixed)
    front = start(app)
    assert (front.call("scale", {"a": 5}), front.call("fixed", {"a": 5})) == (10, 5)


def test_an_agent_of_an_object_is_not_mistaken_for_the_route_of_its_sibling(site, start):
    app = FastAPI()
    app.get("/double")(Scale(2))
    site.agent("triple")(Scale(3))
    assert start(app).call("triple", {"a": 5}) == 15


# --- Routers, mounts, prefixes ---


def test_nested_routers_with_prefixes(site, start):
    app, outer, inner = FastAPI(), APIRouter(prefix="/in"), APIRouter(prefix="/deep/{z}")

    @inner.post("/x/{a}")
    @site.action("x")
    async def x(z: int, a: int, book: Book) -> list[Any]:
        """Do x."""
        return [z, a, book.title]

    outer.include_router(inner)
    app.include_router(outer, prefix="/v1")
    front = start(app)
    assert front.address("x") == "/v1/in/deep/{z}/x/{a}"
    assert front.call("x", {"z": 1, "a": 2, "title": "Emma"}) == [1, 2, "Emma"]


def twice_included(site, **options: Any) -> FastAPI:
    app, router = FastAPI(), APIRouter()

    async def version(request: Request) -> str:
        """Say the version."""
        return request.url.path

    for name, path in options.items():
        site.action(name, **({"path": path} if path else {}))(version)
    router.get("/version")(version)
    app.include_router(router, prefix="/v1")
    app.include_router(router, prefix="/v2")
    return app


def test_a_handler_on_several_routes_is_told_apart_by_path(site, start):
    front = start(twice_included(site, old="/v1/version", new="/v2/version"))
    assert [front.call(name, {}) for name in ("old", "new")] == ["/v1/version", "/v2/version"]


def test_a_handler_on_several_routes_must_be_told_apart(site, refusal):
    assert refusal(twice_included(site, version="")) == (
        'action "version": is reachable in several ways (GET /v1/version, GET /v2/version). '
        "Choose one with path=... or method=..."
    )


@pytest.mark.filterwarnings("ignore:Duplicate Operation ID")
def test_a_route_with_several_methods_is_told_apart_by_method(site, start, make_site):
    app = FastAPI()

    @app.api_route("/x", methods=["GET", "POST"])
    @site.action("read_x", method="GET")
    @site.action("write_x", method="POST")
    async def x(request: Request) -> str:
        """Do x."""
        return request.method

    front = start(app)
    assert [front.call(name, {}) for name in ("read_x", "write_x")] == ["GET", "POST"]


@pytest.mark.filterwarnings("ignore:Duplicate Operation ID")
def test_get_and_head_are_one_way(site, start):
    app = FastAPI()

    @app.api_route("/x", methods=["GET", "HEAD"])
    @site.action("x")
    async def x() -> int:
        """Do x."""
        return 1

    assert start(app).call("x", {}) == 1


@pytest.mark.parametrize("method", ["head", "options", "trace"])
def test_methods_that_only_ask_about_a_resource_are_no_actions(site, refusal, method):
    app = FastAPI()

    @getattr(app, method)("/x")
    @site.action("x")
    async def x() -> None:
        """Do x."""

    assert refusal(app) == 'action "x": its route has none of the methods GET, POST, PUT, PATCH and DELETE.'


def sub_application(site) -> FastAPI:
    app = FastAPI()

    @app.post("/x/{a}")
    @site.action("x")
    async def x(a: int, book: Book, request: Request) -> list[Any]:
        """Do x."""
        return [a, book.title, dict(request.path_params)]

    return app


def test_a_mounted_application_of_the_same_kind(site, start):
    app = FastAPI()
    app.mount("/sub", sub_application(site))
    front = start(app)
    assert front.address("x") == "/sub/x/{a}"
    assert front.call("x", {"a": 2, "title": "Emma"}) == [2, "Emma", {"a": "2"}]


def test_a_mount_may_have_parameters_of_its_own(site, start):
    front = start(Starlette(routes=[Mount("/{tenant:int}", sub_application(site))]))
    assert front.inputs("x")["required"] == ["tenant", "a", "title"]
    assert front.inputs("x")["properties"]["tenant"] == {"type": "integer", "minimum": 0}
    assert front.call("x", {"tenant": 7, "a": 2, "title": "Emma"}) == [2, "Emma", {"a": "2", "tenant": 7}]


def test_only_operations_of_the_outermost_document_are_linked_to_it(site, start):
    app = FastAPI(generate_unique_id_function=lambda route: f"the_{route.name}")

    @app.get("/y", deprecated=True)
    @site.action("y")
    async def y() -> None:
        """Do y."""

    app.mount("/sub", sub_application(site))
    front = start(app)
    assert front.action("y").operation_id == "the_y"
    assert front.action("x").operation_id is None


def test_below_a_root_path(site, open_client):
    app = FastAPI()

    @app.get("/y")
    @site.action("y")
    async def y(request: Request) -> list[str]:
        """Do y."""
        return [request.scope["root_path"], request.scope["path"]]

    client = open_client(AgentPublisher(app, site, check=False), root_path="/api")
    assert client.post("/api/agents/y/invoke", json={"input": {}}).json() == ["/api", "/api/y"]


# --- The application's own document ---


@pytest.mark.parametrize(
    "options", [{"openapi_url": None}, {"docs_url": None, "redoc_url": None}, {"separate_input_output_schemas": False}]
)
@pytest.mark.parametrize("listed", [True, False])
def test_hidden_routes_and_hidden_documents_are_described_all_the_same(site, start, options, listed):
    app = FastAPI(**options)

    @app.post("/x", include_in_schema=listed)
    @site.action("x")
    async def x(book: Book) -> Book:
        """Do x."""
        return book

    front = start(app)
    assert front.inputs("x")["required"] == ["title"]
    assert front.call("x", {"title": "Emma"}) == {"title": "Emma"}


def a_failure() -> Any:
    raise RuntimeError("not today")


@pytest.mark.parametrize(
    "openapi",
    [
        a_failure,
        lambda: None,
        list,
        lambda: {"paths": {}},
        lambda: {"paths": None},
        lambda: {"paths": {"/x": None}},
        lambda: {"paths": {"/x": {"post": []}}},
    ],
)
def test_an_action_works_with_any_openapi_document_of_the_application(site, start, openapi):
    app = FastAPI()
    app.openapi = openapi  # type: ignore[method-assign]

    @app.post("/x")
    @site.action("x")
    async def x(book: Book) -> str:
        """Do x."""
        return book.title

    assert start(app).call("x", {"title": "Emma"}) == "Emma"


def test_a_document_of_the_applications_own_making_is_believed(site, start):
    app = FastAPI()
    book = {"type": "object", "properties": {"title": {"$ref": "#/components/schemas/Title"}}, "required": ["title"]}
    document = {
        "paths": {
            "/x": {
                "post": {
                    "parameters": [{"$ref": "#/components/parameters/Limit"}],
                    "requestBody": {"$ref": "#/components/requestBodies/Book"},
                    "responses": {"200": {"$ref": "#/components/responses/Title"}},
                }
            }
        },
        "security": [{"key": []}],
        "components": {
            "schemas": {"Title": {"type": "string", "maxLength": 9}},
            "parameters": {"Limit": {"name": "limit", "in": "query", "schema": {"type": "integer"}, "example": 3}},
            "requestBodies": {"Book": {"required": True, "content": {"application/json": {"schema": book}}}},
            "responses": {"Title": {"content": {"application/json": {"schema": {"type": "string"}}}}},
        },
    }
    app.openapi = lambda: document  # type: ignore[method-assign]

    @app.post("/x")
    @site.action("x")
    async def x(request: Request):
        """Do x."""
        return (await request.json())["title"]

    front = start(app)
    assert front.inputs("x") == {
        "type": "object",
        "properties": {"limit": {"type": "integer", "examples": [3]}, "title": {"$ref": "#/$defs/Title"}},
        "required": ["title"],
        "$defs": {"Title": {"type": "string", "maxLength": 9}},
    }
    assert front.outputs("x") == {"type": "string"}
    assert front.action("x").auth_required is True
    assert front.call("x", {"title": "Emma"}) == "Emma"


def test_extra_openapi_of_a_route_describes_what_its_handler_reads_itself(site, start):
    app = FastAPI()
    schema = {"type": "object", "properties": {"title": {"type": "string"}}, "required": ["title"]}
    body = {"requestBody": {"required": True, "content": {"application/json": {"schema": schema}}}}

    @app.post("/x", openapi_extra={**body, "parameters": [{"name": "q", "in": "query", "schema": {"type": "string"}}]})
    @site.action("x")
    async def x(request: Request) -> list[Any]:
        """Do x."""
        return [await request.json(), request.query_params["q"]]

    assert start(app).call("x", {"title": "Emma", "q": "a"}) == [{"title": "Emma"}, "a"]


def test_declared_inputs_and_outputs_replace_what_fastapi_knows(site, start):
    app = FastAPI()

    @app.post("/x/{a}")
    @site.action("x", inputs=Book, outputs={"type": "object"})
    async def x(a: int, request: Request, q: str = "q") -> Any:
        """Do x."""
        return [a, q, await request.json()] if q == "list" else {"a": a, "q": q, **(await request.json())}

    front = start(app)
    assert front.inputs("x")["required"] == ["title", "a"]
    assert front.call("x", {"a": 1, "title": "Emma"}) == {"a": 1, "q": "q", "title": "Emma"}


def broken(app: FastAPI, site=None) -> None:
    class Model(BaseModel):
        model_config = {"arbitrary_types_allowed": True}
        wrong: Unwritable

    async def handler(model: Model) -> None:
        """Break."""

    app.post("/broken")(site.action("broken")(handler) if site else handler)


def test_a_route_that_fastapi_cannot_describe_spoils_no_other(site, start):
    app = FastAPI()
    broken(app)

    @app.post("/x")
    @site.action("x")
    async def x(book: Book) -> Book:
        """Do x."""
        return book

    assert start(app).call("x", {"title": "Emma"}) == {"title": "Emma"}


def test_a_declared_route_that_fastapi_cannot_describe_is_named(site, refusal):
    app = FastAPI()
    broken(app, site)
    assert refusal(app) == (
        'action "broken": FastAPI cannot describe /broken: tests.declare.test_declare_fastapi_routes.Unwritable has no '
        "JSON Schema. Declare inputs=... and outputs=... (a model or a JSON Schema)."
    )


def test_an_output_that_fastapi_cannot_describe_can_be_declared(site, start):
    app = FastAPI()

    class Model(BaseModel):
        model_config = {"arbitrary_types_allowed": True}
        wrong: Unwritable | None = None
        title: str

    @app.post("/x")
    @site.action("x", inputs=Book, outputs=Book)
    async def x(model: Model) -> Any:
        """Do x."""
        return {"title": model.title}

    assert start(app).call("x", {"title": "Emma"}) == {"title": "Emma"}


def test_a_model_that_writes_a_wrong_schema_of_its_own_is_named(site, refusal):
    app = FastAPI()

    class Odd(BaseModel):
        a: int = Field(json_schema_extra={"type": "objct"})

    @app.post("/x")
    @site.action("x")
    async def x(odd: Odd) -> None:
        """Do x."""

    words = refusal(app)
    assert words.startswith('action "x": FastAPI cannot describe /x: components.schemas.Odd.')
    assert "\n" not in words


def test_a_summary_of_the_route_describes_its_action(site, start):
    app = FastAPI()

    @app.get("/shelf", summary="Show the first shelf.")
    @site.action("show_shelf")
    async def shelf() -> int:
        return 1

    assert start(app).action("show_shelf").description == "Show the first shelf."
