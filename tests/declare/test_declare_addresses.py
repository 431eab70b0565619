"""Where an action is published: at its own route only if that is known to give JSON to whoever calls."""

from typing import TYPE_CHECKING, Annotated

import pytest
from fastapi import FastAPI
from fastapi.responses import HTMLResponse, JSONResponse, RedirectResponse, Response, StreamingResponse
from pydantic import BaseModel
from starlette.applications import Starlette
from starlette.routing import Route

from tests.installed import installed

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
def test_a_plain_handler_is_described_by_its_annotation(site, start, handler, address):
    declared = site.action("act", description="Act.")(handler)
    front = start(Starlette(routes=[Route("/act", declared)]))
    assert front.address("act") == address


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
def test_a_fastapi_route_is_described_by_its_openapi_document(site, start, handler, options, address):
    app = FastAPI()
    app.get("/act", **options)(site.action("act", description="Act.")(handler))
    front = start(app)
    assert front.address("act") == address


def test_outputs_may_say_that_they_are_something_else(site, start):
    app, outputs = FastAPI(), {"type": "string", "contentMediaType": "text/csv"}
    app.get("/act")(site.action("act", description="Act.", outputs=outputs)(model))
    front = start(app)
    assert front.address("act") == PLAIN
    assert front.outputs("act") == outputs


def test_a_site_without_any_other_door_publishes_guarded_actions_at_the_plain_one(make_site):
    site = make_site(plugins=[f"no:{name}" for name in installed("woa")])
    site.declare("act", method="GET", path="/act", description="Act.", rate_limit="9/minute")
    catalog = site.freeze(Starlette(routes=[Route("/act", json_response)]))
    assert catalog.doors == ()
    assert catalog.endpoint_of(catalog.actions[0]) == ("GET", PLAIN)
