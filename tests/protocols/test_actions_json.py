"""The map of a site: what is declared on pages, in the words of actions.json V1."""

import json
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

import httpx
import pytest
from fastapi import FastAPI, Query
from fastapi.responses import HTMLResponse
from pydantic import BaseModel, Field

from awp_publish import (
    About,
    AgentPublisher,
    Attachment,
    DeclarationError,
    Import,
    Locator,
    PageCheck,
    Projection,
    Records,
    Signal,
    Site,
    State,
    Transition,
    Value,
    __version__,
)
from awp_publish.checks import check_document
from awp_publish.maps.runtime import Runtime
from awp_publish.plugins.actions_json.drift import in_process
from awp_publish.plugins.actions_json.reading import ActionMap

FORM = "form[role='search']"


class Listed(BaseModel):
    titles: list[str]


class Chosen(BaseModel):
    slug: str


def bookshop(**page: Any) -> tuple[FastAPI, Site]:
    """A shop with a search form and an order that is confirmed."""
    maps = {"payments": Import("https://maps.example/payments/actions.json", trust="public", enabled=False)}
    site = Site("Bookshop", "Find and order books.", "https://books.example", about=About(imports=maps))
    app = FastAPI()

    @app.get("/search")
    @site.action("search_books", awas={"selector": FORM, "selectors": {"q": f"{FORM} input[name='q']"}})
    @site.page(**{"actions": ["search_books"], **page})
    async def search(q: Annotated[str, Query(max_length=200)]) -> None:
        """Search books by title."""

    @app.post("/orders")
    @site.action("order_book", confirm=True)
    async def order(slug: str) -> dict[str, str]:
        """Order a book."""
        return {"slug": slug}

    app.add_middleware(AgentPublisher, site=site)
    return app, site


async def published(app: FastAPI) -> dict[str, Any]:
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="https://books.example") as client:
        answer = await client.get("/.well-known/actions.json")
        alias = await client.get("/actions.json")
    assert answer.status_code == alias.status_code == 200
    assert answer.content == alias.content
    assert answer.headers["access-control-allow-origin"] == "*"
    assert [str(finding) for finding in check_document(answer.content)] == []
    found: dict[str, Any] = answer.json()
    return found


WHOLE: dict[str, Any] = {
    "guide": "Search before opening a book.",
    "locators": {
        "form": Locator(FORM, role="search", name="Site search"),
        "submit": f"{FORM} button",
        "done": "p.result-count",
    },
    "states": {
        "ready": State("A query can be typed.", where="form"),
        "listed": State("Books are listed.", where="li.book", shows=["results"]),
        "empty": State("There is no such book.", where=Locator("p.result-count", text_contains="Nothing")),
    },
    "transitions": {"find": Transition("ready", "listed", action="search_books", every_ms=1000)},
    "projections": {
        "results": Projection(
            "The books that are listed.",
            records={"books": Records("li.book", {"title": Value(".title", required=True)})},
            state="{'titles': $append([], records.books.title)}",
            schema=Listed,
            summaries={"short": "{'count': $count(state.titles)}"},
            after={"search_books": "$exists(state.titles)"},
        )
    },
    "signals": {"chosen": Signal("shop:chosen", payload=Chosen, at="ol.books", description="A book was opened.")},
    "attachments": {"guide": Attachment("status_badge", at="main h1", label="Readable by agents")},
    "checks": {"form_visible": PageCheck("The form is there.", visible=["form", "submit"])},
}


async def test_what_a_page_declares_is_published_under_its_id():
    app, _ = bookshop(**WHOLE)
    found = await published(app)
    assert list(found) == [
        "protocol",
        "version",
        "surface",
        "imports",
        "composition",
        "context",
        "states",
        "transitions",
        "tools",
        "signals",
        "attachments",
        "checks",
        "state_projections",
        "provenance",
    ]
    assert found["context"] == [
        {
            "id": "search",
            "title": "Search",
            "body": "Search before opening a book.",
            "load_when": {"url_contains": "/search"},
            "available_tools": ["search_books"],
            "next_states": ["search.ready", "search.listed", "search.empty"],
        }
    ]
    ready = found["states"][0]["diagnostics"][0]["target"]
    assert ready == {
        "selector": FORM,
        "role": "search",
        "name": "Site search",
        "url_contains": "/search",
        "confidence": "observed",
    }
    assert found["states"][1]["observables"] == ["search.results"]
    assert found["transitions"] == [
        {
            "name": "search.find",
            "from": "search.ready",
            "to": "search.listed",
            "tool": "search_books",
            "method": "tool_call",
            "rate_limit_ms": 1000,
            "reveals": ["search.results"],
            "convergence": {"complete_when": "search.listed", "max_attempts": 1},
        }
    ]
    projection = found["state_projections"][0]
    assert projection["scope"] == {"url_matches": "https://books.example/search*"}
    assert projection["snapshot"]["projection"]["expression"] == "{% {'titles': $append([], records.books.title)} %}"
    assert projection["postconditions"]["search_books"]["projection"] == "search.results"
    assert found["signals"][0]["payload"]["additionalProperties"] is False
    assert [one["target"]["selector"] for one in found["checks"][0]["assertions"]] == [FORM, f"{FORM} button"]
    assert found["imports"][0]["namespace"] == "payments"


async def test_an_action_whose_form_is_declared_is_a_workflow_of_portable_primitives():
    app, _ = bookshop(**WHOLE)
    search, order = (await published(app))["tools"]
    assert [(step["id"], step["primitive"]) for step in search["workflow"]["steps"]] == [
        ("form_ready", "locator.wait_for"),
        ("hide_overlay", "overlay.menu.hide"),
        ("type_q", "text.insert"),
        ("find_submit", "locator.element_info"),
        ("submit", "pointer.click"),
        ("verify", "locator.wait_for"),
        ("page", "page.info"),
    ]
    assert search["target"]["state"] == "search.ready"
    assert search["target"]["fallback_selectors"] == ["[data-awas-action='search_books']"]
    assert "handler" not in search["x_actions"]
    assert set(search["x_actions"]["result_schema"]["required"]) == {"ok", "url", "title"}
    assert "workflow" not in order
    assert order["x_actions"]["handler"] == "agents.invoke"
    assert order["x_actions"]["binding"] == {"arguments": {"agent_id": "order_book"}}


async def test_a_workflow_proves_that_it_can_begin_uncovers_the_page_and_is_verified():
    done = Locator("p.count", text_contains='"Emma"')
    submit = Locator("form button", text_contains="Find")
    app, _ = bookshop(locators={"form": FORM, "submit": submit, "done": done})
    document = await published(app)
    workflow = document["tools"][0]["workflow"]
    steps = {step["id"]: step for step in workflow["steps"]}
    assert list(steps)[:2] == ["form_ready", "hide_overlay"]
    assert workflow["x_state_machine"]["requires_state"] == steps["form_ready"]["args"]["locator"] == {"selector": FORM}
    assert steps["hide_overlay"]["on_error"] == "continue"
    assert "overlay.menu.hide" not in document["tools"][0]["requires"]
    assert steps["find_submit"]["args"]["locator"] == {"selector": "form button", "text_contains": "Find"}
    assert steps["verify"]["args"]["locator"] == {"selector": "p.count", "text_contains": '"Emma"'}
    [outcome] = document["state_projections"]
    assert outcome["postconditions"]["search_books"]["projection"] == outcome["name"] == "search.search_books_done"
    expression = outcome["snapshot"]["projection"]["expression"]
    assert expression == """{% {'is_shown': $count(records.done[$contains($, "\\"Emma\\"")]) > 0} %}"""


@pytest.mark.parametrize("lost", ["submit", "done"])
async def test_without_all_that_a_workflow_needs_a_tool_has_the_handler(lost: str):
    locators = {name: place for name, place in WHOLE["locators"].items() if name != lost}
    app, _ = bookshop(locators=locators)
    assert (await published(app))["tools"][0]["x_actions"]["handler"] == "agents.invoke"


async def test_what_portable_primitives_cannot_fill_has_the_handler_and_a_checkbox_is_clicked():
    site, app = Site("Shop", "Sells.", "https://shop.example"), FastAPI()
    fields = {name: f"[name={name}]" for name in ("text", "number", "flag")}
    locators = {"form": "form", "submit": "form button", "done": "p"}

    @app.get("/plain")
    @site.action("plain", awas={"selectors": fields})
    @site.page(actions=["plain"], locators=locators)
    async def plain(number: int, flag: bool = False, text: str = "") -> None:
        """Take what can be typed."""

    @app.get("/partly")
    @site.action("partly", awas={"selectors": {"text": "[name=text]", "sort": "[name=sort]"}})
    @site.page(actions=["partly"], locators=locators)
    async def partly(text: str, sort: Literal["a", "b"] = "a", page: int = 1) -> None:
        """Take what can be typed, and what need not be given."""

    @app.get("/choosing")
    @site.action("choosing", awas={"selectors": {"choice": "[name=choice]"}})
    @site.page(actions=["choosing"], locators=locators)
    async def choosing(choice: Literal["a", "b"]) -> None:
        """Take what is chosen from a list."""

    app.add_middleware(AgentPublisher, site=site)
    plain_tool, partly_tool, choosing_tool = (await published(app))["tools"]
    guard, ready, _, typing, *_ = partly_tool["workflow"]["steps"]
    assert (guard["id"], ready["id"], typing["id"]) == ("fits_the_form", "form_ready", "type_text")
    assert guard["when"] == (
        "{% $exists(input.`sort`) or $exists(input.`page`) "
        '? $error("The form has no field for sort, page. Leave it out.") : false %}'
    )
    steps = {step["id"]: step for step in plain_tool["workflow"]["steps"]}
    assert steps["type_number"]["args"]["text"] == "{% $string(input.number) %}"
    assert "when" not in steps["type_number"]
    assert steps["type_text"]["when"] == "{% $exists(input.text) %}"
    assert steps["checked_flag"]["args"] == {"selector": "[name=flag]:checked"}
    assert "input.flag !=" in steps["check_flag"]["when"]
    assert choosing_tool["x_actions"]["handler"] == "agents.invoke"


@pytest.mark.parametrize(
    ("css", "choices", "is_chosen"),
    [
        ("input[type=radio][name=size]", Literal["small", "large"], True),
        ("form input[name='size'][type='radio']", Literal["1", "2"], True),
        ("input[name=size]", Literal["small", "large"], False),
        ("input[type=radio] + select", Literal["small", "large"], False),
        ("input[type=radio][name=size]", Literal["small", "it's"], False),
    ],
)
async def test_one_of_several_is_chosen_where_they_are_radio_buttons(css: str, choices: Any, is_chosen: bool):
    site, app = Site("Shop", "Sells.", "https://shop.example"), FastAPI()

    @app.get("/sizes")
    @site.action("choose", awas={"selectors": {"size": css}})
    @site.page(actions=["choose"], locators={"form": "form", "submit": "form button", "done": "p"})
    async def choose(size: choices = None) -> HTMLResponse:
        """Choose a size."""
        buttons = "".join(f"<input type=radio name=size value={one}>" for one in get_args(choices))
        return HTMLResponse(f"<title>{size}</title><form>{buttons}<button>Choose</button></form><p>Chosen</p>")

    app.add_middleware(AgentPublisher, site=site)
    document = await published(app)
    assert ("workflow" in document["tools"][0]) is is_chosen
    if not is_chosen:
        return
    async with in_process(app, site.catalog, {}) as open_page, open_page() as page:
        await page.perform("browser.navigate", {"url": "https://shop.example/sizes"})
        last, runtime = get_args(choices)[-1], Runtime(ActionMap.read(document), page)
        for given, title in (({"size": last}, last), ({}, "None")):
            output = (await runtime.call("choose", given)).output
            assert output == {"ok": True, "url": page.url, "title": title}


async def test_a_page_of_several_addresses_is_scoped_by_a_pattern_and_stands_in_no_list_of_addresses():
    site, app = Site("Shop", "Sells.", "https://shop.example/en"), FastAPI()

    @app.get("/books/{slug}/reviews")
    @site.page(states={"shown": State("A book is shown.", where="h1")})
    async def reviews(slug: str) -> None:
        """Read what others say."""

    app.add_middleware(AgentPublisher, site=site)
    found = await published(app)
    assert found["states"][0]["name"] == "reviews.shown"
    assert found["states"][0]["diagnostics"][0]["target"]["url_matches"] == "https://shop.example/en/books/*/reviews"
    assert found["tools"] == []


async def test_a_site_without_pages_publishes_a_map_of_tools():
    site, app = Site("Shop", "Sells.", "https://shop.example"), FastAPI()

    @site.agent("summarize")
    async def summarize(text: str) -> str:
        """Summarise a text."""
        return text

    app.add_middleware(AgentPublisher, site=site)
    found = await published(app)
    assert list(found) == ["protocol", "version", "surface", "tools", "provenance"]


async def test_the_same_declarations_give_the_same_bytes():
    bodies = set()
    for _ in range(2):
        app, _ = bookshop(**WHOLE)
        bodies.add(json.dumps(await published(app)))
    assert len(bodies) == 1


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"actions": ["find_books"]}, 'actions: there is no action "find_books"'),
        ({"transitions": {"go": Transition("a", "b")}}, 'the page has no state "a"'),
        ({"states": {"a": State("Here.", where="h1", shows=["lost"])}}, 'the page has no projection "lost"'),
        ({"attachments": {"a": Attachment("shortcut", at="h1", label="A", opens="lost")}}, 'no action "lost"'),
        ({"projections": {"p": Projection("P", {}, state="1", schema={"type": "objekt"})}}, "p.schema: not a valid"),
        ({"signals": {"s": Signal("shop:s", payload={"type": "objekt"})}}, "s.payload: not a valid"),
        ({"signals": {"s": Signal("shop:s", payload=int)}}, "the detail of an event must be an object"),
    ],
)
async def test_names_that_stand_for_nothing_are_refused_at_the_start(options: dict[str, Any], words: str):
    app, site = bookshop(**options)
    with pytest.raises(DeclarationError, match=words):
        site.freeze(app)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"locators": {"form": "form["}}, "not a CSS selector"),
        ({"locators": {"form": Locator("a", fallbacks=["b["])}}, "not a CSS selector"),
        ({"states": {"a": State("Here.", where=[])}}, "must name at least one place"),
        ({"states": {"a b": State("Here.", where="h1")}}, "lower-case letters"),
        ({"projections": {"p": Projection("P", {}, state="{% records %}")}}, "without {% and %}"),
        (
            {"projections": {"p": Projection("P", {}, state="{'a': ")}},
            "cannot be used: The expression cannot be parsed",
        ),
        ({"projections": {"p": Projection("P", {}, state="$now()")}}, r"\$now is not allowed"),
        ({"projections": {"p": Projection("P", {}, state="1", summaries={"s": "("})}}, "cannot be parsed"),
        ({"signals": {"s": Signal(" ")}}, "event must not be empty"),
        ({"transitions": {"t": Transition("a", "a", every_ms=-1)}}, "every_ms must not be negative"),
        ({"attachments": {"a": Attachment("shortcut", at="h1", label="")}}, "label must not be empty"),
        ({"attachments": {"a": {"kind": "shortcut", "at": "h1", "label": "A", "placement": "above"}}}, "beforebegin"),
        ({"guid": "Search first."}, 'did you mean "guide"'),
    ],
)
def test_mistakes_are_refused_where_they_are_written(options: dict[str, Any], words: str):
    with pytest.raises(DeclarationError, match=words):
        bookshop(**options)


class ListedBook(BaseModel):
    title: str
    address: str
    cents: int = Field(default_factory=int)


class ListedBooks(BaseModel):
    books: list[ListedBook]


class Order(BaseModel):
    order_id: str


async def test_a_whole_page_is_published_word_for_word():
    payments = Import("https://maps.example.org/payments/actions.json", kind="public", trust="public", enabled=False)
    facts = ("Bookshop", "Find, read about and order public-domain books.", "https://books.example")
    site, app = Site(*facts, about=About(imports={"payments": payments})), FastAPI()
    paging = "Do not page through the list to find one book: search for its title."

    @app.get("/search")
    @site.action("search_books", awas={"selector": FORM, "selectors": {"q": f"{FORM} input[name='q']"}})
    @site.page(
        id="search",
        title="Search",
        guide="Search books by title, author or subject. Read the results with the projection search.results before "
        "opening one.",
        actions=["search_books"],
        locators={
            "form": Locator(FORM, role="search", name="Site search"),
            "submit": f"{FORM} button[type='submit']",
            "done": "p.result-count",
        },
        states={
            "form_ready": State("The search form can take a query.", where=Locator(FORM, role="search")),
            "results_visible": State(
                "At least one book is listed.", where="ol.book-results > li.book", shows=["results"]
            ),
            "nothing_found": State(
                "The shop has no such book.", where=Locator("p.result-count", text_contains="Nothing on our shelves")
            ),
        },
        transitions={
            "find": Transition(
                "form_ready", "results_visible", action="search_books", every_ms=1000, do_not_use=[paging]
            )
        },
        projections={
            "results": Projection(
                "The books that the list shows.",
                records={
                    "books": Records(
                        "ol.book-results > li.book",
                        {
                            "title": Value(".book-title", required=True),
                            "address": Value(".book-title a", attribute="href", required=True),
                            "cents": Value("data.book-price", attribute="value"),
                        },
                    )
                },
                state="{'books': $append([], records.books.{'title': title, 'address': address, "
                "'cents': $number(cents)})}",
                schema=ListedBooks,
                summaries={"short": "{'count': $count(state.books), 'titles': $append([], state.books.title)}"},
                after={"search_books": "$exists(state.books)"},
            )
        },
        signals={
            "book_chosen": Signal(
                "bookshop:book-chosen",
                payload=Chosen,
                at="ol.book-results",
                description="A visitor opened a book of the list.",
            )
        },
        attachments={
            "guide": Attachment(
                "status_badge",
                at="main h1",
                label="Readable by agents",
                description="Tells visitors that an agent may read the list.",
            )
        },
        checks={
            "form_visible": PageCheck(
                "The search form is on the page before search_books is called.",
                visible=["form", f"{FORM} input[name='q']", "submit"],
                severity="major",
            )
        },
    )
    async def search(
        q: Annotated[str, Query(max_length=200, description="Words of a title, an author or a subject.")],
    ) -> None:
        """Search books by title, author or subject."""

    @app.post("/orders")
    @site.action("order_book", confirm=True)
    async def order(slug: str) -> Order:
        """Order a book. A person has to confirm it."""
        return Order(order_id=slug)

    app.add_middleware(AgentPublisher, site=site)
    expected = json.loads((Path(__file__).parent / "actions_json_example.json").read_text())
    expected["provenance"]["created_by"] = f"awp-publish {__version__}"
    found = await published(app)
    assert found == expected
    assert list(found) == list(expected)


@pytest.mark.parametrize(
    ("where", "names"),
    [
        ("form", ["form"]),  # the page's locator of this name
        ("li.book", ["book"]),
        ("main > p#total", ["total"]),
        ("ul, ol:not(.empty)", ["ol"]),
        ("[data-shown]", ["here"]),
        (Locator("p", text_equals="Ready"), ["message"]),
        (["li.book", "ol .book", "p.book_1"], ["book", "book_1", "book_1_1"]),
    ],
)
async def test_what_a_state_looks_for_is_named_after_it(where: Any, names: list[str]):
    app, _ = bookshop(locators={"form": FORM}, states={"here": State("It is here.", where=where)})
    assert [one["name"] for one in (await published(app))["states"][0]["diagnostics"]] == names


class Person(BaseModel):
    name: str


class Branch(BaseModel):
    leader: Person
    members: list[Person]
    parent: "Branch | None" = None


class Club(BaseModel):
    name: Chosen
    branches: list[Branch]


async def test_types_that_a_state_uses_once_stand_where_they_are_used():
    projection = Projection("A club.", records={}, state="records", schema=Club)
    app, _ = bookshop(projections={"club": projection})
    schema = (await published(app))["state_projections"][0]["snapshot"]["output_schema"]
    assert schema["properties"]["name"]["properties"] == {"slug": {"type": "string"}}
    assert schema["properties"]["branches"]["items"] == {"$ref": "#/$defs/Branch"}  # it has itself inside
    assert sorted(schema["$defs"]) == ["Branch", "Person"]


async def test_a_site_says_who_has_reviewed_its_map():
    said = {"reviewed_by": "The shop's owners", "reviewed_at": "2026-03-31", "revision": "7"}
    site, app = Site("Shop", "Sells.", "https://shop.example", about=About(provenance=said)), FastAPI()
    app.add_middleware(AgentPublisher, site=site)
    assert (await published(app))["provenance"] == {
        "created_by": f"awp-publish {__version__}",
        "source": "declarations of the site",
        "revision": "7",
        "reviewed_by": "The shop's owners",
        "reviewed_at": "2026-03-31",
    }


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({"source": "/home/ann/shop"}, "not for the public"),
        ({"source": "C:\\shop"}, "not for the public"),
        ({"source": "https://ann:secret@git.example/shop"}, "not for the public"),
        ({"owner": "Ann"}, "created_by"),
        ({"source": ""}, "source"),
    ],
)
def test_what_a_public_map_must_not_tell_is_refused(said: dict[str, str], words: str):
    with pytest.raises(DeclarationError, match=words):
        Site("Shop", "Sells.", "https://shop.example", about=About(provenance=said))


def test_an_import_has_an_address():
    with pytest.raises(DeclarationError, match="uri must not be empty"):
        Site("Shop", "Sells.", "https://shop.example", about=About(imports={"pay": Import("")}))
