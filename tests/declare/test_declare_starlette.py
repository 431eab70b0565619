"""Starlette: handlers that take a request say what they read, or only what their path says is known."""

import functools
from dataclasses import dataclass
from typing import Any

import orjson
import pytest
from pydantic import BaseModel, Field
from starlette.applications import Starlette
from starlette.datastructures import UploadFile
from starlette.endpoints import HTTPEndpoint
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import BaseRoute, Host, Match, Mount, Route, Router, WebSocketRoute
from typing_extensions import TypedDict

from awp_publish import DeclarationError


class Search(BaseModel):
    q: str
    limit: int = Field(10, ge=1)


@dataclass
class Point:
    x: int
    y: int = 0


class Move(TypedDict, total=False):
    to: int


class Found(BaseModel):
    path: dict[str, Any]
    query: dict[str, str]
    body: str
    type: str | None


async def echo(request: Request) -> Response:
    """Say what came."""
    found = Found(
        path=request.path_params,
        query=dict(request.query_params),
        body=(await request.body()).decode(),
        type=request.headers.get("content-type"),
    )
    return JSONResponse(found.model_dump())


def echoing(site, path: str = "/x", methods: list[str] | None = None, **options: Any) -> Starlette:
    return Starlette(routes=[Route(path, site.action("x", **options)(echo), methods=methods)])


JSON, FORM = "application/json", "application/x-www-form-urlencoded"


@pytest.mark.parametrize(
    ("path", "methods", "options", "given", "arrives"),
    [
        ("/x/{a}", None, {}, {"a": "1"}, {"path": {"a": "1"}}),
        ("/x/{n:int}/{p:path}", None, {}, {"n": 1, "p": "a/b"}, {"path": {"n": 1, "p": "a/b"}}),
        ("/x/{a}", None, {}, {"a": "1", "q": "b", "more": "c"}, {"path": {"a": "1"}, "query": {"q": "b", "more": "c"}}),
        ("/x", None, {"inputs": Search}, {"q": "a", "limit": 2}, {"query": {"q": "a", "limit": "2"}}),
        ("/x/{a}", None, {"inputs": Search}, {"a": "1", "q": "a"}, {"path": {"a": "1"}, "query": {"q": "a"}}),
        ("/x", ["POST"], {"inputs": Search}, {"q": "a"}, {"body": '{"q":"a"}', "type": JSON}),
        ("/x", ["POST"], {"inputs": Point}, {"x": 1}, {"body": '{"x":1}'}),
        ("/x", ["POST"], {"inputs": Move}, {"to": 1}, {"body": '{"to":1}'}),
        ("/x", ["PUT"], {"inputs": dict[str, int]}, {"any": 1}, {"body": '{"any":1}'}),
        ("/x", ["DELETE"], {"inputs": Search}, {"q": "a"}, {"query": {"q": "a"}, "body": ""}),
        ("/x", ["DELETE"], {"inputs": Search, "content_type": JSON}, {"q": "a"}, {"body": '{"q":"a"}'}),
        ("/x", ["POST"], {"inputs": Search, "content_type": FORM}, {"q": "a&b"}, {"body": "q=a%26b", "type": FORM}),
        ("/x", ["POST"], {"content_type": JSON}, {}, {"body": "{}", "type": JSON}),
        ("/x/{a}", ["POST"], {"inputs": Point}, {"a": "1", "x": 2}, {"path": {"a": "1"}, "body": '{"x":2}'}),
    ],
)
def test_inputs_travel_where_the_route_reads_them(site, start, path, methods, options, given, arrives):
    found = start(echoing(site, path, methods, outputs=Found, **options)).call("x", given)
    assert {name: found[name] for name in arrives} == arrives


def test_a_multipart_form_reaches_its_handler(site, start):
    async def read(request: Request) -> Response:
        """Read a form."""
        async with request.form() as form:
            return JSONResponse(dict(form.multi_items()))

    site.action("x", inputs=Search, content_type="multipart/form-data")(read)
    assert start(Starlette(routes=[Route("/x", read, methods=["POST"])])).call("x", {"q": "ü", "limit": 3}) == {
        "q": "ü",
        "limit": "3",
    }


@pytest.mark.parametrize("is_list", [False, True])
@pytest.mark.parametrize("file", [{"contentEncoding": "base64", "contentMediaType": "text/csv"}, {"format": "binary"}])
def test_a_file_of_a_multipart_form_is_declared_as_base64_or_as_binary(site, start, file, is_list):
    async def read(request: Request) -> Response:
        """Read files."""
        async with request.form() as form:
            files = [file for file in form.getlist("file") if isinstance(file, UploadFile)]
            return JSONResponse([[file.filename, (await file.read()).decode()] for file in files] + [form["note"]])

    kind = {"type": "string", **file}
    inputs = {
        "type": "object",
        "properties": {
            "file": {"type": "array", "items": kind} if is_list else kind,
            "note": {"type": "string"},
            "any": {"type": "array"},
        },
        "required": ["file"],
    }
    site.action("x", inputs=inputs, content_type="multipart/form-data")(read)
    front = start(Starlette(routes=[Route("/x", read, methods=["POST"])]))
    named = {"filename": "b.csv", "content": "YSxi"}
    for sent, name in (("YSxi", "file"), (named, "b.csv")):
        [[filename, content], note] = front.call("x", {"file": [sent] if is_list else sent, "note": "n"})
        assert (filename.partition(".")[0], content, note) == (name.partition(".")[0], "a,b", "n")
    assert front.ask("x", {"file": 3, "note": "n"}).json()["code"] == "INVALID_INPUT"
    assert front.inputs("x")["properties"]["any"] == {"type": "array"}


RAW = {
    "$ref": "#/$defs/Search",
    "$defs": {"Search": {"type": "object", "properties": {"q": {"$ref": "#/$defs/Word"}}}, "Word": {"minLength": 2}},
}


def test_a_raw_schema_is_taken_and_its_root_written_out(site, start):
    front = start(echoing(site, "/x/{a:int}", inputs=RAW, outputs={"type": "object"}))
    assert front.inputs("x")["properties"] == {
        "q": {"$ref": "#/$defs/Word"},
        "a": {"type": "integer", "minimum": 0},
    }
    assert front.inputs("x")["required"] == ["a"]
    assert front.call("x", {"a": 1, "q": "ab"})["query"] == {"q": "ab"}
    assert front.ask("x", {"a": 1, "q": "a"}).json()["errors"][0]["pointer"] == "/q"


def test_declared_inputs_may_say_more_about_a_path_parameter(site, start):
    inputs = {"type": "object", "properties": {"a": {"type": "integer", "maximum": 9}}}
    front = start(echoing(site, "/x/{a}", inputs=inputs))
    assert front.call("x", {"a": 3})["path"] == {"a": "3"}
    assert front.ask("x", {"a": 10}).status_code == 422


def test_a_route_of_which_nothing_is_said_takes_its_path_and_may_answer_anything(site, start):
    async def name_shelf(request: Request) -> Response:
        """Name a shelf."""
        return PlainTextResponse(request.path_params["a"])

    front = start(Starlette(routes=[Route("/x/{a}", site.action("x")(name_shelf))]))
    assert front.inputs("x") == {
        "type": "object",
        "properties": {"a": {"type": "string", "minLength": 1, "pattern": r"^[^/\u0000]+$"}},
        "additionalProperties": False,
        "required": ["a"],
    }
    assert front.outputs("x") == {}


def test_a_route_that_reads_the_query_itself_takes_any_member_of_it(site, start):
    front = start(echoing(site, "/x/{a}"))
    assert "additionalProperties" not in front.inputs("x")
    assert front.call("x", {"a": "b", "q": "c"})["query"] == {"q": "c"}


def test_an_answer_is_held_to_declared_outputs(site, start):
    assert start(echoing(site, outputs=Search)).ask("x", {}).json()["code"] == "INVALID_OUTPUT"


# --- Class endpoints ---


def test_a_class_endpoint_is_declared_on_its_methods_or_on_the_class(site, start):
    @site.action("read_it", method="GET")
    class Endpoint(HTTPEndpoint):
        """Whatever this class does."""

        async def get(self, request: Request) -> Response:
            """Read it."""
            return JSONResponse("read")

        @site.action("write_it", inputs=Search)
        async def post(self, request: Request) -> Response:
            """Write it."""
            return JSONResponse(await request.json())

    front = start(Starlette(routes=[Route("/it", Endpoint)]))
    assert front.call("read_it", {}) == "read"
    assert front.call("write_it", {"q": "a"}) == {"q": "a"}
    assert [front.action(name).description for name in ("read_it", "write_it")] == ["Read it.", "Write it."]


def test_a_class_endpoint_with_several_methods_must_be_told_apart(site, refusal):
    @site.action("it")
    class Endpoint(HTTPEndpoint):
        """It."""

        async def get(self, request: Request) -> Response:
            return JSONResponse("read")

        async def delete(self, request: Request) -> Response:
            return JSONResponse("gone")

    assert refusal(Starlette(routes=[Route("/it", Endpoint)])) == (
        'action "it": is reachable in several ways (DELETE /it, GET /it). Choose one with path=... or method=...'
    )


def test_a_route_may_allow_some_of_the_methods_of_its_class(site, start):
    @site.action("it")
    class Endpoint(HTTPEndpoint):
        """It."""

        async def get(self, request: Request) -> Response:
            return JSONResponse("read")

        async def delete(self, request: Request) -> Response:
            return JSONResponse("gone")

    assert start(Starlette(routes=[Route("/it", Endpoint, methods=["DELETE"])])).call("it", {}) == "gone"


class Raw:
    """Answer with the method."""

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        await PlainTextResponse(scope["method"])(scope, receive, send)


def test_an_asgi_application_as_endpoint_answers_to_every_method(site, start):
    raw = site.action("raw", method="PATCH")(Raw())
    assert start(Starlette(routes=[Route("/raw", raw)])).call("raw", {}) == "PATCH"


# --- Mounts, hosts and what is none of ours ---


def test_nested_mounts_with_parameters(site, start):
    inner = Mount("/{area:path}/in", routes=[Route("/x/{a}", site.action("x")(echo))])
    front = start(Starlette(routes=[Mount("/{tenant:int}", routes=[inner])]))
    assert front.call("x", {"tenant": 1, "area": "b/c", "a": "d"})["path"] == {"tenant": 1, "area": "b/c", "a": "d"}


def test_a_host_is_looked_into(site, start):
    app = Starlette(routes=[Host("shop.example", Router([Route("/x", site.action("x")(echo))]))])
    assert start(app).call("x", {})["body"] == ""


class Foreign:
    """An application of a framework whose routes are not Starlette's."""

    def __init__(self) -> None:
        self.routes = [object()]

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        await (Starlette() if scope["type"] == "lifespan" else Raw())(scope, receive, send)


@pytest.mark.parametrize("path", ["/raw", "/below/raw"])
def test_an_application_with_routes_of_its_own_kind_is_one_place(site, start, path):
    site.declare("raw", method="PATCH", path=path, description="Be raw.")
    app = Foreign() if path == "/raw" else Starlette(routes=[Mount("/below", Foreign())])
    assert start(app).call("raw", {}) == "PATCH"


class Custom(BaseRoute):
    """A kind of route that only its application knows."""

    def matches(self, scope: Any) -> Any:
        return (Match.FULL if scope["type"] == "http" and scope["path"] == "/custom" else Match.NONE), {}

    async def handle(self, scope: Any, receive: Any, send: Any) -> None:
        await PlainTextResponse("custom")(scope, receive, send)


def test_websockets_mounted_applications_and_unknown_routes_are_left_alone(site, start):
    async def talk(socket: Any) -> None: ...

    site.declare("custom", method="GET", path="/custom", description="Be custom.")
    site.declare("raw", method="POST", path="/raw/below", description="Be raw.")
    routes = [WebSocketRoute("/talk", talk), Mount("/raw", Raw()), Route("/x", site.action("x")(echo)), Custom()]
    front = start(Starlette(routes=routes))
    assert list(front.agents()) == ["custom", "raw", "x"]
    assert (front.call("custom", {}), front.call("raw", {})) == ("custom", "POST")


def test_a_websocket_handler_is_no_action(site, refusal):
    @site.action("talk")
    async def talk(socket: Any) -> None:
        """Talk."""

    assert refusal(Starlette(routes=[WebSocketRoute("/talk", talk)])).startswith(
        'action "talk": no route of this application leads to '
    )


@pytest.mark.parametrize("around", [GZipMiddleware, lambda app: GZipMiddleware(GZipMiddleware(app))])
def test_middleware_around_applications_and_mounts_is_looked_through(site, start, around):
    mounted = Mount(
        "/in", routes=[Route("/y", site.action("y")(functools.partial(echo)))], middleware=[Middleware(GZipMiddleware)]
    )
    front = start(around(Starlette(routes=[mounted])))
    assert front.call("y", {})["body"] == ""


def test_one_handler_on_two_routes_is_told_apart_by_path(site, start):
    site.action("old", path="/old/{a}")(echo)
    site.action("new", path="/new/{a:int}")(echo)
    front = start(Starlette(routes=[Route("/old/{a}", echo), Route("/new/{a:int}", echo)]))
    assert front.call("old", {"a": "1"})["path"] == {"a": "1"}
    assert front.call("new", {"a": 1})["path"] == {"a": 1}


@pytest.mark.parametrize("keyword", ["oneOf", "anyOf"])
def test_inputs_that_are_a_union_reach_the_route(site, start, keyword):
    card = {"properties": {"number": {"type": "string"}}, "required": ["number"]}
    bank = {"properties": {"iban": {"type": "string"}}, "required": ["iban"]}
    inputs = {"type": "object", "properties": {"amount": {"type": "integer"}}, keyword: [card, bank]}
    front = start(echoing(site, methods=["POST"], inputs=inputs))
    assert orjson.loads(front.call("x", {"amount": 3, "iban": "DE1"})["body"]) == {"amount": 3, "iban": "DE1"}


@pytest.mark.parametrize("option", ["inputs", "outputs"])
def test_a_schema_of_another_dialect_is_refused_where_it_is_declared(site, option):
    schema: Any = {"$schema": "http://json-schema.org/draft-07/schema#", "type": "object", "properties": {}}
    with pytest.raises(DeclarationError) as refused:
        site.action("x", **dict[str, Any]({option: schema}))
    words = str(refused.value)
    assert "written in another dialect" in words
    assert "leave $schema out or translate the schema" in words


def test_a_schema_that_names_its_dialect_is_taken(site, start):
    schema = {"$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object", "properties": {}}
    assert start(echoing(site, methods=["POST"], inputs=schema)).inputs("x")["type"] == "object"
