"""What an action says to AWAS alone: where it stands in the page, what comes before it, how it is tried."""

from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.responses import HTMLResponse
from starlette.applications import Starlette
from starlette.routing import Route

from awp_publish import DeclarationError, Site
from tests.declare.test_declare_actions import ordering
from tests.plugins.awas.conftest import published


def on_a_page(site: Any, awas: Any) -> FastAPI:
    """An application with one action, whose selectors are published with the page on which they are."""
    return ordering(site, awas=awas, extensions={"awas": {"x-page": "/orders/new"}})


@pytest.mark.parametrize(
    ("awas", "members"),
    [
        ({"type": "form_submission"}, {"type": "form_submission"}),
        ({"selector": "form#order"}, {"selector": "form#order"}),
        ({"preconditions": ["The book is in stock."]}, {"preconditions": ["The book is in stock."]}),
        ({"preview_url": "/orders/preview"}, {"previewUrl": "/orders/preview"}),
        ({"dry_run": True}, {"dryRunSupported": True}),
    ],
)
def test_the_given_members_are_published(site, start, awas, members):
    read = published(start(on_a_page(site, awas)), "order")
    assert {name: read.get(name) for name in members} == members


def test_a_result_says_where_it_stands_in_the_page(site, start):
    result = {
        "type": "list",
        "selector": "#books",
        "itemSelector": ".book",
        "properties": {"title": ".title"},
        "pagination": {"selector": ".pages", "nextButton": ".pages .next", "currentPage": ".pages .current"},
    }
    assert published(start(on_a_page(site, {"result": result})), "order")["result"] == result


@pytest.mark.parametrize(
    ("selectors", "book"),
    [
        ({"book": "input[name=book]"}, "input[name=book]"),
        ("data-awas", "[data-awas-action='order'] [data-awas-param='book']"),
        ("data-ai", "[data-ai-action='order'] [data-ai-param='book']"),
    ],
)
def test_selectors_say_where_inputs_stand_in_the_page(site, start, selectors, book):
    parameters = published(start(on_a_page(site, {"selectors": selectors})), "order")["parameters"]
    assert next(parameter for parameter in parameters if parameter["name"] == "book")["selector"] == book


@pytest.mark.parametrize(
    "selector", ["form:has(input)", "a:is(.x, .y)", "#a > b ~ c", "input[name='q' i]", "ul li:nth-child(2)"]
)
def test_selectors_of_css_level_four_are_taken(site, start, selector):
    assert published(start(on_a_page(site, {"selector": selector})), "order")["selector"] == selector


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (
            {"type": "search_it"},
            "awas.type: must be 'form_submission', 'navigation', 'search', 'filter', 'data_retrieval'",
        ),
        ({"colour": "red"}, "awas.colour: there is no such option."),
        ("search", "awas: must be a dictionary."),
        ({"selector": "form["}, "awas.selector: 'form[' is not a CSS selector ("),
        ({"selector": " "}, "awas.selector: a CSS selector must not be empty."),
        (
            {"selectors": "data-x"},
            'awas.selectors: must be "data-awas", "data-ai", or a dictionary of input names and CSS',
        ),
        (
            {"selectors": {"book": 3}},
            'awas.selectors: must be "data-awas", "data-ai", or a dictionary of input names and CSS',
        ),
        ({"selectors": {"book": "a["}}, "awas.selectors: 'a[' is not a CSS selector ("),
        ({"result": "list"}, "awas.result: must be a dictionary."),
        ({"result": {"type": "list"}}, "awas.result: selector is missing."),
        (
            {"result": {"type": "grid", "selector": "#a"}},
            "awas.result: type must be one of 'single', 'list', 'table', 'form', not 'grid'.",
        ),
        (
            {"result": {"type": "list", "selector": "#a", "itemSelector": "li["}},
            "awas.result: 'li[' is not a CSS selector (",
        ),
        (
            {"result": {"type": "list", "selector": "#a", "item_selector": "li"}},
            "awas.result: 'item_selector' is not one of its members; did you mean 'itemSelector'?",
        ),
        (
            {"result": {"type": "list", "selector": "#a", "properties": {"title": 3}}},
            "awas.result: 3 is not a CSS selector.",
        ),
        (
            {"result": {"type": "list", "selector": "#a", "pagination": {"selector": "p["}}},
            "awas.result: 'p[' is not a CSS selector (",
        ),
        ({"preconditions": ["", "x"]}, "awas.preconditions.0: must not be empty."),
        (
            {"preview_url": "preview"},
            "awas.preview_url: 'preview' is neither a path beginning with \"/\" nor an absolute URL.",
        ),
        ({"dry_run": "no"}, "awas.dry_run: must be True or False."),
    ],
)
def test_a_wrong_value_is_refused_where_it_is_written(site, value, words):
    with pytest.raises(DeclarationError) as refused:
        site.action("order", awas=value)
    assert str(refused.value).startswith(f'action "order": {words}')


def test_a_selector_of_what_is_no_input_is_refused_at_the_start(site, refusal):
    words = 'action "order": awas.selectors: "books" is not an input. There are: book, count.'
    assert refusal(on_a_page(site, {"selectors": {"books": "#a"}})) == words


def test_the_options_of_a_plugin_that_is_left_out_are_refused_by_its_name():
    site = Site("Shop", "Sells.", url="https://shop.example", plugins=["no:awas"])
    with pytest.raises(DeclarationError) as refused:
        site.action("order", awas={"dry_run": True})
    words = 'awas: is an option of the plug-in "awas", which the site does not have. Name it in plugins=["awas"]'
    assert str(refused.value) == f'action "order": {words}, or leave the option out.'


def test_the_page_of_a_form_is_the_one_at_its_path_unless_the_site_says_so(site, start):
    app, form = FastAPI(), {"selector": "form"}
    app.get("/checkout", response_class=HTMLResponse)(_fresh())
    for name, path, more in (
        ("checkout", "/checkout", {}),
        ("lost", "/nowhere", {}),
        ("told", "/checkout/told", {"extensions": {"x-page": "/cart"}}),
    ):
        options: dict[str, Any] = {"description": "Act.", "awas": form, "rate_limit": "9/minute", **more}
        app.post(path, operation_id=name)(site.action(name, method="POST", path=path, **options)(_fresh()))
    front = start(app)
    assert {name: published(front, name).get("x-page") for name in ("checkout", "lost", "told")} == {
        "checkout": "/checkout",
        "lost": None,
        "told": "/cart",
    }


def _fresh() -> Any:
    async def handler() -> None: ...

    return handler


@pytest.mark.parametrize("keyword", ["oneOf", "anyOf"])
def test_inputs_that_are_a_union_are_published(site, start, keyword):
    card = {"properties": {"number": {"type": "string"}}, "required": ["number"]}
    bank = {"properties": {"iban": {"type": "string"}}, "required": ["iban"]}
    inputs = {"type": "object", "properties": {"amount": {"type": "integer"}}, keyword: [card, bank]}
    site.declare("pay", method="POST", path="/pay", description="Pay.", inputs=inputs)
    front = start(Starlette(routes=[Route("/pay", _fresh(), methods=["POST"])]))
    assert {each["name"] for each in published(front, "pay")["parameters"]} == {"amount", "number", "iban"}
    [pay] = front.client.get("/agent.json").json()["actions"]
    assert set(pay["inputs"]) == {"amount", "number", "iban"}
