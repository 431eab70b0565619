"""Where an action is published: at its own route only if that is known to give JSON to whoever calls."""

from typing import TYPE_CHECKING, Annotated, Any

import pytest
from fastapi import FastAPI
from fastapi.responses import HTMLResponse, JSONResponse, RedirectResponse, Response, StreamingResponse
from pydantic import BaseModel
from starlette.applications import Starlette
from starlette.routing import Route

if TYPE_CHECKING:
    from decimal import Decimal as OnlyForCheckers

PLAIN, OWN = "/agents/actions/act", "/act"


class SearchResponse(BaseModel):
    """A model that is called like a response."""

    titles: list[str] = []


async def model():
    raise NotImplementedError


async def unannotated(request):
    raise NotImplementedError


async def json_response(request) -> JSONResponse:
    raise NotImplementedError


async def marked(request) -> Annotated[JSONResponse, "always"]:
    raise NotImplementedError


async def some_response(request) -> Response:
    raise NotImplementedError


async def either(request) -> JSONResponse | RedirectResponse:
    raise NotImplementedError


async def unknown(request) -> "OnlyForCheckers":
    raise NotImplementedError


@pytest.mark.parametrize(
    ("handler", "address"),
    [
        (unannotated, PLAIN),
        (json_response, OWN),
        (marked, OWN),
        (some_response, PLAIN),
        (either, PLAIN),
        (unknown, PLAIN),
    ],
)
def test_of_a_plain_handler_only_its_annotation_tells(site, start, handler, address):
    declared = site.action("act", description="Act.")(handler)
    front = start(Starlette(routes=[Route("/act", declared)]))
    assert front.awas("act")["path"] == front.agent_json("act")["endpoint"] == address


async def a_model() -> SearchResponse:
    raise NotImplementedError


async def a_page() -> HTMLResponse:
    raise NotImplementedError


async def a_model_or_a_page() -> SearchResponse | Response:
    raise NotImplementedError


async def json_or_redirect() -> JSONResponse | RedirectResponse:
    raise NotImplementedError


async def in_parts() -> StreamingResponse:
    raise NotImplementedError


async def nothing() -> None:
    raise NotImplementedError


@pytest.mark.parametrize(
    ("handler", "options", "address"),
    [
        (model, {}, OWN),
        (a_model, {}, OWN),
        (a_page, {}, PLAIN),
        (a_model_or_a_page, {"response_model": SearchResponse}, PLAIN),
        (json_or_redirect, {"response_model": None}, PLAIN),
        (in_parts, {}, PLAIN),
        (nothing, {"status_code": 204}, OWN),
        (model, {"response_class": HTMLResponse}, PLAIN),
        (model, {"responses": {200: {"content": {"text/html": {}}}}}, PLAIN),
        (model, {"responses": {303: {"description": "For browsers."}}}, PLAIN),
        (model, {"responses": {404: {"content": {"text/html": {}}}}}, OWN),
    ],
)
def test_of_a_fastapi_route_its_openapi_document_tells(site, start, handler, options, address):
    app = FastAPI()
    app.get("/act", **options)(site.action("act", description="Act.")(handler))
    front = start(app)
    assert front.awas("act")["path"] == front.agent_json("act")["endpoint"] == address


def test_outputs_may_say_that_they_are_something_else(site, start):
    app, outputs = FastAPI(), {"type": "string", "contentMediaType": "text/csv"}
    app.get("/act")(site.action("act", description="Act.", outputs=outputs)(model))
    front = start(app)
    assert front.awas("act")["path"] == PLAIN
    assert front.awas("act")["outputs"]["type"] == "text/csv"


@pytest.mark.needs("awas")
def test_the_page_of_a_form_is_the_one_at_its_path_unless_the_site_says_so(site, start):
    app, form = FastAPI(), {"selector": "form"}
    app.get("/checkout", response_class=HTMLResponse)(model)
    for name, path, more in (
        ("checkout", "/checkout", {}),
        ("lost", "/nowhere", {}),
        ("told", "/checkout/told", {"extensions": {"x-page": "/cart"}}),
    ):
        options: dict[str, Any] = {"description": "Act.", "awas": form, "rate_limit": "9/minute", **more}
        app.post(path, operation_id=name)(site.action(name, method="POST", path=path, **options)(_fresh()))
    front = start(app)
    assert {name: front.awas(name).get("x-page") for name in ("checkout", "lost", "told")} == {
        "checkout": "/checkout",
        "lost": None,
        "told": "/cart",
    }


def _fresh() -> Any:
    async def handler() -> None: ...

    return handler
